"""Chains: steps that run one after another as one step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..call import Call, Values
from ..contract import Step, StepLike, checked_step
from ..descriptions import described
from ..errors import ArgumentError, UnknownNameError, shown
from ..leaves import Leaves
from ..state import State, StateView
from .nesting import advance_inner, errors_in, initial_inner_state

NAMED_SLOTS = (*(f"step{number}" for number in range(1, 10)), "step0")


@dataclass(frozen=True, init=False, repr=False)
class ChainedStep(Step):
    """Run steps in order, each on what the one before it returned, as one step.

    g' = stepN(... step2(step1(g)))

    The leaves are widened once on entry and cast once on exit, so that nested and flat chains give the
    same bits; calling two steps by hand rounds twice. Every step gets the weights. A constraint may only
    stand last.

    Args:
        steps: any number of steps, which take the slots step1, step2, ...; None is skipped. Or:
        step1, ..., step9, step0: the ten named slots, in this order: step0 is the tenth.
        set_breakpoint, metadata: as of every step.

    An end-to-end step negates, so that its result is added to the weights. A chain of chainable steps
    alone needs ``ScalingStep(scale=-1.0)`` or ``ScalingStep(learning_rate=...)`` at its end.

    State: ``{"step1": ..., ...}``, one entry a step; ``{}`` for the empty chain, which changes nothing.

    Raises:
        ArgumentTypeError: an entry is not a step.
        ArgumentError: positional and named steps are mixed, or a constraint stands before another step.
        UnknownNameError: a slot of that name does not exist.

    Example:
        >>> import numpy as np
        >>> from steps_core import GradientClippingStep, ScalingStep
        >>> clip = GradientClippingStep(variant="global", threshold=1.0)
        >>> ChainedStep(clip, ScalingStep(scale=-1.0))(np.asarray([3.0, 4.0])).gradients
        array([-0.6, -0.8])
    """

    slots: tuple[tuple[str, StepLike], ...] = field(default=())

    def __init__(
        self,
        *steps: StepLike | None,
        set_breakpoint: bool = False,
        metadata: Mapping[Any, Any] | None = None,
        **named: StepLike | None,
    ) -> None:
        if steps and named:
            way_out = "give all steps by position, or all by name"
            raise ArgumentError(
                f"steps must be given by position or by name, got {len(steps)} by position and "
                f"{', '.join(named)} by name; {way_out}",
                argument="steps",
                rule="be given by position or by name",
                value=named,
                way_out=way_out,
            )
        given = _positional(steps) if steps else _named(named)
        slots = tuple((slot, checked_step(slot, step)) for slot, step in given if step is not None)
        self._set(slots=slots, set_breakpoint=set_breakpoint, metadata=metadata)
        self.__post_init__()

    @classmethod
    def named_options(cls, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the steps by slot, as a template keeps them."""
        by_slot = {**dict(_positional(arguments)), **options}
        return {slot: step for slot, step in by_slot.items() if step is not None}

    @classmethod
    def _check_named(cls, named: Mapping[str, Any]) -> None:
        """Accept any slot: the chain that is made refuses what is none."""

    def _check_options(self) -> None:
        for (slot, step), (following, _) in zip(self.slots, self.slots[1:], strict=False):
            if getattr(step, "constrains", False):
                way_out = f"move {slot} to the end of the chain"
                raise ArgumentError(
                    f"{slot} must be the last step, because {following} would undo its constraint, "
                    f"got {shown(step)}; {way_out}",
                    argument=slot,
                    rule="be the last step",
                    value=step,
                    way_out=way_out,
                    slot=slot,
                )

    @property
    def negates(self) -> bool:
        """Whether an odd number of the steps negates."""
        return sum(bool(step.negates) for _, step in self.slots) % 2 == 1

    @property
    def needs_weights(self) -> bool:
        """Whether any step does."""
        return False  # The step that does says so itself, with its slot.

    @property
    def constrains(self) -> bool:
        """Whether the last step does."""
        return bool(self.slots) and bool(getattr(self.slots[-1][1], "constrains", False))

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The slots that are taken."""
        return tuple(slot for slot, _ in self.slots)

    def own_state(self, weights: Leaves) -> State:
        """Return the first state of each step, by slot."""
        return {slot: initial_inner_state(step, weights) for slot, step in self.slots}

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return what the last step returned, and every step's new state."""
        new_state = {}
        for slot, step in self.slots:
            with errors_in(slot, type(step).__name__):
                gradients, new_state[slot] = advance_inner(step, call, gradients, state.child(slot))
        return gradients, new_state

    def describe(self) -> dict[str, Any]:
        """Return ``{"step": "ChainedStep", "options": {"step1": {...}, ...}}``."""
        options = {"set_breakpoint": True} if self.set_breakpoint else {}
        return {"step": "ChainedStep", "options": {**options, **described(dict(self.slots))}}

    def __repr__(self) -> str:
        by_position = self.state_keys == tuple(slot for slot, _ in _positional(self.slots))
        entries = (repr(step) if by_position else f"{slot}={step!r}" for slot, step in self.slots)
        return f"ChainedStep({', '.join(entries)})"


def _positional(steps: tuple[Any, ...]) -> list[tuple[str, Any]]:
    return [(f"step{number}", step) for number, step in enumerate(steps, start=1)]


def _named(named: Mapping[str, Any]) -> list[tuple[str, Any]]:
    for slot in named:
        if slot not in NAMED_SLOTS:
            way_out = "use step1 to step9 and step0, or give the steps by position"
            raise UnknownNameError(
                f"{slot} is not a slot of ChainedStep (slots: {', '.join(NAMED_SLOTS)}); {way_out}",
                argument=slot,
                rule="be a slot of ChainedStep",
                value=slot,
                way_out=way_out,
            )
    return [(slot, named[slot]) for slot in NAMED_SLOTS if slot in named]
