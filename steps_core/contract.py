"""The contract of a step: what every step is, takes and returns."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from . import checks
from .breakpoints import stop_here
from .call import Call, Values, open_call
from .deferred import Deferrable, Deferred
from .descriptions import described, options_beyond_defaults
from .errors import ArgumentError, ArgumentTypeError, refusal, shown
from .leaves import Leaves, open_tree
from .metadata import Metadata
from .namespaces import quiet
from .state import State, StateView
from .trees import Tree
from .tunable import (
    Tunable,
    as_held,
    entry_names,
    given_tunables,
    in_float32,
    initial_entries,
    read_entries,
    with_options,
)


class StepResult(NamedTuple):
    """What a call returns: the processed gradients (updates, of an end-to-end step) and the new state."""

    gradients: Tree
    state: State


@runtime_checkable
class StepLike(Protocol):
    """What a chain asks of a step, so that steps of another copy of this package may stand in it."""

    @property
    def negates(self) -> bool:
        """Whether the result is to be added to the weights."""

    def init(self, weights: Tree) -> Any:
        """Return the first state."""

    def __call__(self, gradients: Tree, weights: Tree | None = None, state: Any = None) -> Any:
        """Return the processed gradients and the new state."""


@dataclass(frozen=True, kw_only=True)
class Step(Deferrable, ABC):
    """One gradient-processing step: options that never change, checked when it is made.

    A step holds no state, so one object may serve many models. Every option that is a number may also be
    a `Tunable`, which stands in the state and can be replaced between calls.

    Args:
        set_breakpoint: stop in the debugger (``sys.breakpointhook``) at each call. Default False.
        metadata: anything a user attaches; read-only, not part of equality. Default empty.
    """

    tunable_entries: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Each tunable option with the name of its state entry; a step that has some sets its own."""

    set_breakpoint: bool = field(default=False, repr=False)
    metadata: Mapping[Any, Any] = field(default_factory=Metadata, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check and normalise the options."""
        stops = False if self.set_breakpoint is None else self.set_breakpoint
        self._set(set_breakpoint=checks.flag("set_breakpoint", stops), metadata=Metadata(self.metadata))
        tunables = given_tunables(self)
        if tunables:
            self._check_tunables(tunables)
        else:
            self._check_options()

    def _check_tunables(self, tunables: dict[str, Tunable]) -> None:
        self._set(**{name: option.value for name, option in tunables.items()})
        self._set(tunable_entries=entry_names(tunables, ()))
        self._check_options()
        tunables = {name: Tunable(getattr(self, name)) for name in tunables}
        self._set(**{name: in_float32(option.value) for name, option in tunables.items()})
        with as_held():
            self._check_options()
        self._set(**tunables)
        self._set(tunable_entries=entry_names(tunables, self.own_keys))

    @abstractmethod
    def _check_options(self) -> None:
        """Refuse bad options and normalise good ones with `_set`."""

    def _set(self, **options: Any) -> None:
        for name, value in options.items():
            object.__setattr__(self, name, value)

    @property
    @abstractmethod
    def negates(self) -> bool:
        """Whether this is an end-to-end step, whose result is added to the weights."""

    @property
    def needs_weights(self) -> bool:
        """Whether a call without weights is refused."""
        return False

    @property
    def constrains(self) -> bool:
        """Whether the result must reach the weights unchanged: a chain allows such a step only last."""
        return False

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The entries of the state beside those of tunable options; none for a stateless step."""
        return ()

    def own_state(self, weights: Leaves) -> State:
        """Return the first value of these entries for opened weights; ``{}`` for a stateless step."""
        return {}

    @property
    def state_keys(self) -> tuple[str, ...]:
        """The entries of the state."""
        if not self.tunable_entries:
            return self.own_keys
        return (*self.own_keys, *(entry for _, entry in self.tunable_entries))

    def initial_state(self, weights: Leaves) -> State:
        """Return the first state for opened weights."""
        if not self.tunable_entries:
            return self.own_state(weights)
        return {**self.own_state(weights), **initial_entries(self, weights)}

    @abstractmethod
    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the processed wide gradients and the new state.

        Args:
            call: what the steps of this call share.
            gradients: wide leaves, as the step before left them.
            state: this step's own entries of the state.
        """

    def init(self, weights: Tree) -> State:
        """Return the first state for these weights: plain dicts holding arrays and trees of arrays.

        Args:
            weights: tree of floating or complex arrays.

        Raises:
            LeafTypeError: a leaf is no such array.
            TreeMismatchError: two leaves belong to different libraries.
        """
        return self.initial_state(open_tree(weights, "weights"))

    def __call__(
        self,
        gradients: Tree,
        weights: Tree | None = None,
        state: State | None = None,
        *,
        name: str | None = None,
    ) -> StepResult:
        """Return the processed gradients and the new state; nothing given is written to.

        Args:
            gradients: tree of floating or complex arrays; None is "no gradient here".
            weights: tree of the same structure and shapes, or None. Default None.
            state: what ``init`` or the last call returned. Without one the step starts afresh, so a
                training loop that drops the state restarts moments and counters at each call. Default None.
            name: of the node, while a graph is traced. There a call returns the gradients alone.

        Raises:
            LeafTypeError: a leaf is not a floating or complex array.
            TreeMismatchError: gradients and weights differ in structure, shape, library or device.
            StateError: the state is not one that this step made for such weights.
            ArgumentError: the step needs weights and got none.
        """
        if isinstance(gradients, Deferred) or name is not None:
            return self._traced(gradients, weights, state, name)  # type: ignore[no-any-return]
        call, wide = open_call(gradients, weights)
        with quiet(call.xp):
            if state is None:
                state = self.initial_state(call.given_weights or call.gradients)
            values, new_state = self.run(call, wide, StateView(state))
            return StepResult(call.close(values), new_state)

    def _traced(self, gradients: Any, weights: Any, state: Any, name: str | None) -> Any:
        """Add this step to the graph that is being traced."""
        if not isinstance(gradients, Deferred):
            way_out = "name the nodes of graphs only"
            raise refusal(ArgumentTypeError, "name", "be left out beside arrays", name, way_out)
        if state is not None:
            way_out = "leave it out; CustomStep keeps the state of each node"
            raise refusal(ArgumentTypeError, "state", "be left out in a graph", state, way_out)
        return gradients.processed_by(self, weights, name)

    def run(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Check what this step asks of a call, then advance: the door for chains and wrappers."""
        if self.set_breakpoint:
            stop_here(self, gradients, call.weights, state.value)
        if self.needs_weights and call.weights is None:
            raise missing_weights(self)
        state.require(self.state_keys)
        if not self.tunable_entries:
            return self.advance(call, gradients, state)
        options, entries, own = read_entries(self, call, state)
        values, new_state = with_options(self, options).advance(call, gradients, own)
        return values, {**new_state, **entries}

    def describe(self) -> dict[str, Any]:
        """Return ``{"step": name, "options": {...}}``: JSON, from which `build` makes an equal step.

        Only options that differ from their default are named. Floats are tagged hexadecimal texts.
        """
        return {"step": type(self).__name__, "options": described(options_beyond_defaults(self))}


def missing_weights(step: object) -> ArgumentError:
    """Return the error for a step that got no weights and needs them."""
    name = type(step).__name__
    way_out = "call step(gradients, weights, state)"
    return ArgumentError(
        f"weights must be given, because {name} needs them here, got None (NoneType); {way_out}",
        argument="weights",
        rule="be given",
        way_out=way_out,
    )


def checked_step(argument: str, value: Any) -> StepLike:
    """Return value if it is a step, by protocol: it has init and negates, and can be called."""
    if isinstance(value, type):
        way_out = f"make the step: {value.__name__}()"
        raise refusal(ArgumentTypeError, argument, "be a step", value, way_out)
    if not (callable(value) and callable(getattr(value, "init", None)) and hasattr(value, "negates")):
        raise refusal(ArgumentTypeError, argument, "be a step", value, "pass a step such as AdamStep()")
    return value  # type: ignore[no-any-return]


def check_end_to_end(step: StepLike) -> None:
    """Refuse a step whose result is not to be added to the weights.

    Args:
        step: any step.

    Raises:
        ArgumentError: ``step.negates`` is False.
        ArgumentTypeError: it is no step.

    Example:
        >>> from steps_core import AdamStep, check_end_to_end
        >>> check_end_to_end(AdamStep())
    """
    if not checked_step("step", step).negates:
        way_out = "end the chain with ScalingStep(scale=-1.0) or ScalingStep(learning_rate=...)"
        raise ArgumentError(
            f"step must be end-to-end, so that its result can be added to the weights, got {shown(step)}, "
            f"which keeps the gradient's sign; {way_out}",
            argument="step",
            rule="be end-to-end",
            value=step,
            way_out=way_out,
        )
