"""Playing a vector on a target, and comparing what comes back."""

from typing import Any

from steps_backends import HostArray

from ..compare import Mismatch, same_bits, within_ulps
from ..containers import leaves, mapped
from ..flushing import accepting_flushed, accepting_flushed_bits
from ..run import Run
from .model import Expected, Vector, VectorCall


def play(run: Run, vector: Vector) -> None:
    """Run the calls of a vector in order; raise Mismatch at the first result that is not as expected.

    A target that does not claim ``state_form`` is judged by its results alone; vectors of requirements that
    speak of the state are not for it.
    """
    step = run.make(vector.step)
    first = vector.calls[0]
    if vector.state is not None:
        state = _made(run, vector.state)
    else:
        state = step.init(_made(run, first.gradients if vector.init is None else vector.init))
    for number, call in enumerate(vector.calls, start=1):
        weights = None if call.weights is None else _made(run, call.weights)
        result, state = step.apply(_made(run, call.gradients), weights, state)
        where = f"call {number} of {len(vector.calls)}: "
        _check(run, result, call.expected, call, f"{where}gradients")
        if call.expected_state is not None and run.shows_state:
            _check(run, state, call.expected_state, call, f"{where}state")


def _made(run: Run, tree: Any) -> Any:
    return mapped(lambda host, _: run.array(host.values, host.dtype, host.shape), tree)


def _check(run: Run, actual: Any, expected: Any, call: VectorCall, where: str) -> None:
    read, wanted = run.read(actual), dict(leaves(expected))
    found = dict(leaves(read))
    if found.keys() != wanted.keys():
        raise Mismatch(f"{where}: expected leaves at {sorted(wanted)}, got {sorted(found)}")
    inputs = dict(leaves(call.gradients))
    for path, got in found.items():
        want = wanted[path]
        if got is None or want is None:
            if got is not want:
                raise Mismatch(f"{where}{path}: expected {want}, got {got}")
            continue
        _check_leaf(run, got, want, inputs.get(path), f"{where}{path}")


def _check_leaf(run: Run, got: HostArray, want: Expected, given: HostArray | None, where: str) -> None:
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        raise Mismatch(f"{where}: expected {want.dtype}{list(want.shape)}, got {got.dtype}{list(got.shape)}")
    if want.values is None:
        if given is None:
            raise Mismatch(f"{where}: the vector has no input here that could come back unchanged")
        same_bits(got, accepting_flushed_bits(run.traits, got, given), path=where)
        return
    if got.dtype in ("int32", "bool"):
        same_bits(
            got,
            HostArray(
                got.dtype, got.shape, tuple(type(g)(w) for g, w in zip(got.values, want.values, strict=True))
            ),
            path=where,
        )
        return
    exact = accepting_flushed(run.traits, got, want.values)
    if want.or_zero is not None and "flushes_subnormals" in run.traits:
        rows = zip(exact, got.values, want.or_zero, strict=True)
        exact = [0.0 if may and value == 0 else wanted for wanted, value, may in rows]
    within_ulps(got, exact, want.ulps, of=want.of, path=where)
