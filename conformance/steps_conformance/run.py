"""What a case gets: one backend, one target, and the ways to use them together."""

from collections.abc import Callable, Iterable
from typing import Any

from steps_backends import LEAF_DTYPES, Backend, HostArray, host_array

from .case import Case
from .compare import Mismatch
from .containers import mapped
from .descriptions import description
from .targets.checking import checked_result
from .targets.declaring import NotDeclaredError, OpaqueState, opened
from .targets.protocol import REFUSAL_KINDS, Description, Refusal, Target, TargetStep
from .targets.scope import scope_of


class CaseMistakeError(Exception):
    """A case uses something that it did not declare; the text says what to declare."""


class Subject:
    """One step of the target, run in the way of the backend."""

    def __init__(self, backend: Backend, target: Target, described: Description) -> None:
        self.description = described
        self._backend = backend
        step = target.make(described)
        # one object for all calls: a compiling backend finds its compiled function by it
        self._apply = step.apply
        self._init = step.init
        self._shows_state = "state_form" in target.capabilities

    def init(self, weights: Any) -> Any:
        """Return the state for weights."""
        return self._shown(self._init(weights))

    def apply(self, gradients: Any, weights: Any = None, state: Any = None) -> tuple[Any, Any]:
        """Return the processed gradients and the next state; a state of None is left to the target."""
        given = opened(state)
        if state is given and state is not None and not self._shows_state:
            raise NotDeclaredError(
                "the case makes up or changes a state, and the target does not claim state_form"
            )
        processed, next_state = checked_result(self._backend.call(self._apply, gradients, weights, given))
        return processed, self._shown(next_state)

    def _shown(self, state: Any) -> Any:
        return state if self._shows_state else OpaqueState(state)


class Run:
    """One backend with one target, for one case.

    Attributes:
        backend: makes and reads arrays, and runs calls.
        target: the implementation under test.
    """

    def __init__(self, backend: Backend, target: Target, case: Case | None = None) -> None:
        self.backend = backend
        self.target = target
        self._case = case

    @property
    def traits(self) -> frozenset[str]:
        """The traits that the backend declares, such as ``flushes_subnormals``."""
        return self.backend.declaration.traits

    def array(self, values: Any, dtype: str = "float32", shape: Iterable[int] | None = None) -> Any:
        """Return an array of the backend, each value rounded once to dtype.

        Args:
            values: a number, nested lists, or a flat list together with ``shape``.
            dtype: the dtype; a leaf dtype other than float32 must be declared by the case.
            shape: the shape, for a flat list in C order.
        """
        if self._case is not None and dtype in LEAF_DTYPES and dtype not in self._case.dtypes | {"float32"}:
            raise CaseMistakeError(f'this case makes an array of {dtype}; declare it: dtypes=("{dtype}",)')
        return self.backend.array(host_array(values, dtype, None if shape is None else tuple(shape)))

    @property
    def shows_state(self) -> bool:
        """Whether the target claims that its state has the form of the requirements."""
        return "state_form" in self.target.capabilities

    def read(self, tree: Any) -> Any:
        """Return the tree with every array of the backend read as a HostArray; a bare array is a tree."""
        return mapped(self._read_leaf, tree)

    def _read_leaf(self, leaf: Any, path: str) -> HostArray:
        if isinstance(leaf, OpaqueState):
            raise NotDeclaredError("the case reads the state, and the target does not claim state_form")
        if not self.backend.holds(leaf):
            name = self.backend.declaration.library
            kind = f"{type(leaf).__module__}.{type(leaf).__qualname__}"
            raise Mismatch(f"{path or 'the result'} must be an array of {name}, got {kind}: {leaf!r}")
        return self.backend.read(leaf)

    def step(self, name: str, /, **options: Any) -> Subject:
        """Return a step of the target; an option may be a description of a step or schedule."""
        return self.make(description(name, **options))

    def make(self, described: Description) -> Subject:
        """Return the step of that description."""
        self._check(described)
        return Subject(self.backend, self.target, described)

    def made_by_the_target(self, described: Description) -> TargetStep:
        """Return the step as the target makes it, to be called as it is and not in the way of the backend."""
        self._check(described)
        return self.target.make(described)

    def _check(self, described: Description) -> None:
        scope_of(self.target).check(described)

    def refused(self, kind: str, name: str, /, *, saying: Iterable[str] = (), **options: Any) -> Refusal:
        """Check that the target refuses to make a step; see ``refuses``."""
        return self.refuses(lambda: self.step(name, **options), kind=kind, saying=saying)

    def refuses(self, function: Callable[[], Any], *, kind: str, saying: Iterable[str] = ()) -> Refusal:
        """Check that the target refuses something, and return its refusal.

        Of a target that does not claim ``error_form`` any refusal will do.

        Args:
            function: does the refused thing.
            kind: the class of error: ValueError, TypeError or KeyError.
            saying: texts that the message must contain, in any order.
        """
        if kind not in REFUSAL_KINDS or isinstance(saying, str):
            raise CaseMistakeError(
                f"kind must be one of {REFUSAL_KINDS} and saying a tuple, got {kind!r}, {saying!r}"
            )
        try:
            result = function()
        except Refusal as refusal:
            return _checked(refusal, kind, tuple(saying)) if self._has_error_form else refusal
        raise Mismatch(f"must be refused with a {kind}, but gave {result!r}")

    @property
    def _has_error_form(self) -> bool:
        return "error_form" in self.target.capabilities

    def apply_updates(self, weights: Any, updates: Any) -> Any:
        """Return the weights with the updates added by the target."""
        return self._optional("apply_updates", "apply_updates")(weights, updates)

    def save_state(self, state: Any, file: str) -> None:
        """Have the target write a state to a file."""
        self._optional("state_files", "save_state")(state, file)

    def load_state(self, file: str, like: Any) -> Any:
        """Return the state that the target reads from a file, in the form of like."""
        return self._optional("state_files", "load_state")(file, like)

    def negates(self, described: Description) -> bool:
        """Return whether the target says that this step negates."""
        self._check(described)
        answer: bool = self._optional("negates", "negates")(described)
        return answer

    def check_end_to_end(self, described: Description) -> None:
        """Have the target refuse a step that is not end-to-end."""
        self._check(described)
        self._optional("check_end_to_end", "check_end_to_end")(described)

    def describe(self, described: Description) -> Description:
        """Return what the target says of the step that it makes of this description."""
        self._check(described)
        answer: Description = self._optional("describe", "describe")(described)
        return answer

    def _optional(self, capability: str, method: str) -> Callable[..., Any]:
        if self._case is not None and capability not in self._case.needs:
            raise CaseMistakeError(f'this case uses {method}; declare it: needs={{"{capability}"}}')
        if capability not in self.target.capabilities:
            raise CaseMistakeError(f"target {self.target.name} does not claim {capability}")
        function: Callable[..., Any] = getattr(self.target, method)
        return function


def _checked(refusal: Refusal, kind: str, saying: tuple[str, ...]) -> Refusal:
    if refusal.kind != kind:
        raise Mismatch(f"must be refused with a {kind}, was refused with a {refusal.kind}: {refusal.message}")
    missing = [text for text in saying if text not in refusal.message]
    if missing:
        raise Mismatch(f"the refusal must say {', '.join(map(repr, missing))}, it says: {refusal.message}")
    return refusal
