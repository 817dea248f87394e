"""Steps that run on some leaves only."""

from typing import Any

from ..case import case
from ..compare import Mismatch, same_bits
from ..descriptions import chain, description
from ..oracle.samples import sample
from ..run import Run
from ..targets.protocol import Description
from .judging import ALL_DTYPES, made

MASK: dict[str, Any] = {"mask": {"dict": {"free": True, "frozen": False}}}
CLIP = description("GradientClippingStep", variant="global", threshold=0.5)
INNER: dict[str, Description] = {
    "clip": CLIP,
    "adam": description("AdamStep", weight_decay=0.1),
    "chain": chain(CLIP, description("AdamStep")),
}


def masked(inner: Description, mask: Any) -> Description:
    """Return the description of a masked step."""
    return {"step": "MaskedStep", "options": {"inner": inner, "mask": mask}}


def tree(dtype: str = "float32") -> dict[str, Any]:
    """Return a tree with two free leaves and two frozen ones, which are large."""
    return {
        "free": {"a": sample((3,), dtype, seed=1), "b": sample((2, 2), dtype, seed=2)},
        "frozen": [sample((2,), dtype, seed=3, scale=900.0), sample((), dtype, seed=4, scale=900.0)],
    }


@case("MASK-001", each={"inner": INNER, "dtype": ALL_DTYPES})
def others_pass(run: Run, inner: Description, dtype: str) -> None:
    """Two calls, beside the step inside on the free leaves alone."""
    whole = tree(dtype)
    step, alone = run.make(masked(inner, MASK)), run.make(inner)
    weights = made(run, whole)
    state, inner_state = step.init(weights), alone.init(weights["free"])
    for _ in range(2):
        result, state = step.apply(made(run, whole), weights, state)
        expected, inner_state = alone.apply(made(run, whole["free"]), weights["free"], inner_state)
        same_bits(run.read(result), {"free": run.read(expected), "frozen": whole["frozen"]})


@case("MASK-002", each={"dtype": ALL_DTYPES})
def frozen_leaves_do_not_count(run: Run, dtype: str) -> None:
    """Huge frozen leaves beside free ones whose norm is below the threshold."""
    whole = tree(dtype)
    clip = description("GradientClippingStep", variant="global", threshold=100.0)
    result, _ = run.make(masked(clip, MASK)).apply(made(run, whole))
    same_bits(run.read(result), whole)


@case(
    "MASK-003",
    each={
        "mask": {
            "whole": ({"mask": True}, ("free", "frozen")),
            "nothing": ({"mask": False}, ()),
            "a-layer": (MASK, ("free",)),
            "each-leaf": (
                {
                    "mask": {
                        "dict": {
                            "free": {"dict": {"a": False, "b": False}},
                            "frozen": {"list": [True, True]},
                        }
                    }
                },
                ("frozen",),
            ),
        }
    },
)
def prefixes(run: Run, mask: tuple[Any, tuple[str, ...]]) -> None:
    """Doubling the chosen leaves."""
    described, chosen = mask
    whole = tree()
    double = description("ScalingStep", scale=2.0)
    result, _ = run.make(masked(double, described)).apply(made(run, whole))
    doubled, _ = run.make(double).apply(made(run, whole))
    read, expected = run.read(result), run.read(doubled)
    same_bits(read, {key: expected[key] if key in chosen else whole[key] for key in whole})


@case("MASK-004", each={"inner": {"adam": INNER["adam"], "momentum": description("MomentumStep")}})
def no_state_outside(run: Run, inner: Description) -> None:
    """The first state, and the next."""
    weights = made(run, tree())
    step = run.make(masked(inner, MASK))
    state = step.init(weights)
    for _ in range(2):
        if set(state) != {"inner"}:
            raise Mismatch(f"expected the entry inner, got {sorted(state)}")
        for key, moments in state["inner"].items():
            if key != "count" and moments["frozen"] != [None, None]:
                raise Mismatch(f"expected None for frozen leaves in {key}, got {moments['frozen']!r}")
        _, state = step.apply(weights, weights, state)


@case(
    "MASK-005",
    each={
        "mask": {
            "other-key": {"dict": {"free": True, "other": False}},
            "missing-key": {"dict": {"free": True}},
            "other-container": {"list": [True, False]},
            "too-deep": {"dict": {"free": True, "frozen": {"list": [True, {"list": [True]}]}}},
        }
    },
)
def misfits(run: Run, mask: Any) -> None:
    """Masks of other trees."""
    step = run.make(masked(CLIP, {"mask": mask}))
    run.refuses(lambda: step.apply(made(run, tree())), kind="ValueError", saying=("mask",))


@case("MASK-006", each={"mask": {"number": 1, "text": "all", "none": None, "float": {"float": "0x1p+0"}}})
def no_mask(run: Run, mask: Any) -> None:
    """In the place of the mask."""
    run.refuses(lambda: run.make(masked(CLIP, mask)), kind="TypeError", saying=("mask",))


@case("MASK-007", needs={"negates"})
def sign_of_the_step_inside(run: Run) -> None:
    """A chainable step, and an optimizer."""
    for inner, expected in ((CLIP, False), (description("AdamStep"), True)):
        if run.negates(masked(inner, {"mask": True})) is not expected:
            raise Mismatch(f"a masked {inner['step']} must have negates {expected}")


@case("MASK-007")
def constraint_inside(run: Run) -> None:
    """Before another step of a chain, and at its end."""
    constraint = masked(description("ConstraintStep", constraint="nonnegative"), {"mask": True})
    run.make(chain(description("SGDStep"), constraint))
    early = chain(constraint, description("SGDStep"))
    run.refuses(lambda: run.make(early), kind="ValueError", saying=("step1", "last"))
