"""Making a step's state and reading it back: plain dicts of one fixed structure, checked on every call."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .call import Call, Values
from .errors import StateError, StepsError, shown
from .leaves import Leaves, open_tree, require_same_device
from .namespaces import Array, as_array, astype, copied, detached, dtype_name, namespace_of
from .numerics.formats import is_complex_name, real_name, wide_name
from .numerics.moments import next_count
from .placing import scalar_place
from .trees import Tree, require_same_structure

State = dict[str, Any]


def zeros_like(weights: Leaves, *, real: bool = False) -> Tree:
    """Return a tree of zeros for moments: float32 at least; real where it holds squared magnitudes."""
    return weights.rebuild([_zeros(weights.xp, leaf, real) for leaf in weights.values])


def _zeros(xp: Any, leaf: Array | None, real: bool) -> Array | None:
    if leaf is None:
        return None
    name = wide_name(dtype_name(leaf.dtype))
    dtype = getattr(xp, real_name(name) if real else name)
    # From the leaf, so that shardings and placements carry over.
    return xp.zeros_like(detached(leaf), dtype=dtype)


def scalar_like(weights: Leaves, value: float | bool | int, dtype: str) -> Array | None:
    """Return a 0-d array on the first weight's device; None where there is no array."""
    for leaf in weights.values:
        if leaf is not None:
            xp = weights.xp
            return xp.asarray(value, dtype=getattr(xp, dtype), device=scalar_place(leaf))
    return None


def count_from_zero(weights: Leaves) -> Array | None:
    """Return the counter of a new state."""
    return scalar_like(weights, 0, "int32")


def incremented(count: Array | None) -> Array | None:
    """Return the counter after one more call."""
    if count is None:
        return None
    xp = namespace_of(count)
    return as_array(xp, next_count(xp, count))


def stored(old: Array, new: Array) -> Array:
    """Return a new value of a state entry in the dtype that it always has, detached."""
    xp = namespace_of(old)
    return as_array(xp, astype(xp, detached(new), old.dtype))


def stored_copy(old: Array, new: Array) -> Array:
    """Return a new value of a state entry that shares no memory with the updates given out."""
    xp = namespace_of(old)
    return stored(old, copied(xp, new))


@contextmanager
def _as_state_error() -> Iterator[None]:
    """Turn an error about any tree into one about the state."""
    try:
        yield
    except StepsError as error:
        raise StateError(
            str(error),
            argument="state",
            rule=error.rule,
            value=error.value,
            way_out=error.way_out,
            path=error.path,
        ) from None


@dataclass(frozen=True)
class StateView:
    """A step's state and where it stands, such as ``state['step2']``."""

    value: Any
    path: str = "state"

    def require(self, keys: Iterable[str]) -> None:
        """Refuse a state that is not a dict with exactly these keys."""
        expected = sorted(keys)
        if not isinstance(self.value, dict):
            raise self.error(f"be a dict with the entries {expected}", self.value)
        got = sorted(self.value, key=str)
        if got == expected:
            return
        missing = [f"{self.path}[{key!r}]" for key in expected if key not in self.value]
        extra = [f"{self.path}[{key!r}]" for key in got if key not in expected]
        listed = [f"missing: {', '.join(missing)}"] * bool(missing)
        listed += [f"not known: {', '.join(extra)}"] * bool(extra)
        rule = f"have exactly the entries {expected} ({'; '.join(listed)})"
        raise self.error(rule, self.value, place=[*missing, *extra][0])

    def child(self, key: str) -> "StateView":
        """Return one entry."""
        return StateView(self.value[key], f"{self.path}[{key!r}]")

    def error(self, rule: str, value: Any, *, place: str | None = None) -> StateError:
        """Return the error for an entry that breaks a rule, at a place in it."""
        way_out = "pass the state that this step returned for these weights, or step.init(weights)"
        return StateError(
            f"{self.path} must {rule}, got {shown(value)}; {way_out}",
            argument="state",
            rule=rule,
            value=value,
            way_out=way_out,
            path=place or self.path,
        )

    def scalar(self, key: str, dtype_names: Sequence[str]) -> Array | None:
        """Return a 0-d entry of one of these dtypes; None where the state was made without arrays."""
        entry = self.child(key)
        value = entry.value
        if value is None:
            return None
        if namespace_of(value) is None or value.shape != () or dtype_name(value.dtype) not in dtype_names:
            raise entry.error(f"be a 0-d array of dtype {' or '.join(dtype_names)}", value)
        return value

    def count(self, call: Call) -> Array | None:
        """Return the counter."""
        count = self.scalar("count", ("int32",))
        self.require_scalar(call, "count", count)
        return count

    def require_scalar(self, call: Call, key: str, value: Array | None) -> None:
        """Refuse a scalar that is missing, or of another library than the gradients."""
        if call.xp is None:
            return
        if value is None or namespace_of(value) is not call.xp:
            raise self.child(key).error("be a 0-d array of the gradients' library", value)

    def leaves(self, call: Call, key: str, *, real: bool = False) -> Values:
        """Return the leaves of a tree of moments, checked against the gradients."""
        entry = self.child(key)
        with _as_state_error():
            opened = open_tree(entry.value, entry.path)
            require_same_structure("gradients", call.gradients.structure, entry.path, opened.structure)
            for index, (leaf, moment) in enumerate(zip(call.gradients.values, opened.values, strict=True)):
                if leaf is not None:
                    self._require_moment(call, index, moment, opened, real)
        return opened.values

    def _require_moment(
        self, call: Call, index: int, moment: Array | None, opened: Leaves, real: bool
    ) -> None:
        leaf = call.gradients.values[index]
        assert leaf is not None
        expected = _moment_dtypes(call, index, real)
        if (
            moment is None
            or opened.xp is not call.xp
            or tuple(moment.shape) != tuple(leaf.shape)
            or dtype_name(moment.dtype) not in expected
        ):
            rule = (
                f"be an array like {call.path(index)}, of shape {tuple(leaf.shape)} and dtype {expected[0]}"
            )
            raise StateView(moment, opened.path(index)).error(rule, moment)
        require_same_device(leaf, moment, call.gradients, opened, index)


def _moment_dtypes(call: Call, index: int, real: bool) -> tuple[str, ...]:
    """Return the dtypes that a moment may have: the weight's widened, or any wide one without weights."""
    weights = call.given_weights
    weight = None if weights is None else weights.values[index]
    if weight is not None:
        name = wide_name(dtype_name(weight.dtype))
        return (real_name(name) if real else name,)
    leaf = call.gradients.values[index]
    assert leaf is not None
    if not real and is_complex_name(dtype_name(leaf.dtype)):
        return ("complex64", "complex128")
    return ("float32", "float64")
