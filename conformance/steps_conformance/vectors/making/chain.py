"""Vectors of chains."""

from collections.abc import Sequence
from typing import Any

from steps_backends import host_array

from ...descriptions import chain, description
from ...oracle import adam as adam_oracle
from ...oracle import clipping as clipping_oracle
from ...oracle import momentum as momentum_oracle
from ...oracle.exact import exact, number
from ..model import Expected, Vector, VectorCall, unchanged
from .every_kind import Subject, add_every_kind
from .limits import limited_as_one
from .monitor import seen
from .optimizing import expected_state, steady
from .sheet import Sheet, expect

CLIP = description("GradientClippingStep", variant="global", threshold=0.5)
ADAM = description("AdamStep", learning_rate=0.125)
NEGATE = description("ScalingStep", scale=-1.0)


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    _empty(sheet)
    _order(sheet)
    for label, step in (
        ("flat", chain(CLIP, ADAM)),
        ("nested", chain(chain(CLIP), chain(chain(ADAM)))),
        ("named", description("ChainedStep", step3=CLIP, step0=ADAM)),
        ("skipping", description("ChainedStep", step1=None, step2=CLIP, step5=None, step9=ADAM)),
    ):
        for dtype in ("float32", "float16"):
            _clip_then_adam(sheet, label, step, dtype)
    _long(sheet)
    _from_a_state(sheet)
    step = chain(CLIP, NEGATE)
    add_every_kind(sheet, Subject("chain", step, _opposites, "CHAIN-001", many=True))
    return sheet.listed()


def _opposites(gradients: Sequence[Any], _: Any) -> list[Any]:
    return [limited_as_one(tree, 0.5, factor=-1.0) for tree in gradients]


def _empty(sheet: Sheet) -> None:
    leaf = host_array([1.0, -0.0, float("nan"), 1e-45])
    one = VectorCall(leaf, None, unchanged(leaf), {})
    sheet.add("CHAIN-004", "no-steps", "the empty chain is the identity", chain(), [one])


def _order(sheet: Sheet) -> None:
    leaf = host_array([3.0, 4.0])
    double = description("ScalingStep", scale=2.0)
    # Doubled before the clip changes nothing after it; after the clip it doubles the limit.
    for label, step, factor in (
        ("clip-last", chain(double, CLIP, NEGATE), -0.1),
        ("clip-first", chain(CLIP, double, NEGATE), -0.2),
        ("step0-last", description("ChainedStep", step0=double, step9=CLIP, step1=NEGATE), -0.2),
    ):
        wanted = exact(leaf).map(lambda g, by=factor: g * number(by))
        one = VectorCall(leaf, None, expect(leaf, wanted, wide=4))
        requirement = "CHAIN-002" if label == "step0-last" else "CHAIN-001"
        sheet.add(requirement, label, "steps run in the order of their slots", step, [one])


def _clip_then_adam(sheet: Sheet, label: str, step: dict[str, Any], dtype: str) -> None:
    gradients = steady(5, dtype, seed=61, scale=2.0)
    clipped = [clipping_oracle.global_norm([exact(g)], 0.5)[0] for g in gradients]
    steps = adam_oracle.adam(clipped, learning_rate=0.125)
    calls = [
        VectorCall(gradient, None, expect(gradient, update, wide=12))
        for gradient, update in zip(gradients, steps.updates, strict=True)
    ]
    if label == "flat":
        inner: Any = expected_state(gradients[-1], steps.states[-1], 5, 12)
        calls[-1] = VectorCall(gradients[-1], None, calls[-1].expected, {"step1": {}, "step2": inner})
    requirement = {"nested": "CHAIN-006", "named": "CHAIN-002", "skipping": "CHAIN-003"}.get(
        label, "CHAIN-001"
    )
    sheet.add(requirement, f"clip-adam-{label}-{dtype}", "a clip, then Adam, over five calls", step, calls)


def _long(sheet: Sheet) -> None:
    """Fifty calls of a monitor, a clip, a monitor and momentum; the norm after the clip is the threshold."""
    monitor, momentum = description("MonitorStep"), description("MomentumStep", decay=0.5)
    step = chain(monitor, CLIP, monitor, momentum, NEGATE)
    for dtype in ("float32", "bfloat16"):
        gradients = steady(50, dtype, seed=62, scale=4.0)
        clipped = [clipping_oracle.global_norm([exact(g)], 0.5)[0] for g in gradients]
        steps = momentum_oracle.momentum(clipped, decay=0.5)
        calls = []
        for count, gradient in enumerate(gradients):
            update = steps.updates[count].map(lambda value: -value)
            state = {
                "step1": seen([exact(gradient)]),
                "step2": {},
                "step3": seen([clipped[count]], ulps=8),
                "step4": expected_state(gradient, steps.states[count], None, 12),
                "step5": {},
            }
            calls.append(VectorCall(gradient, None, expect(gradient, update, wide=12), state))
        shows = "fifty calls of monitor, clip, monitor and momentum"
        sheet.add("CHAIN-012", f"50-calls-{dtype}", shows, step, calls)


def _from_a_state(sheet: Sheet) -> None:
    step = chain(CLIP, description("MomentumStep", decay=0.5))
    gradient, trace = host_array([0.25, -0.25]), host_array([2.0, 4.0])
    sums = Expected("float32", (2,), (1.25, 1.75))
    one = VectorCall(gradient, None, sums, {"step1": {}, "step2": {"trace": sums}})
    state = {"step1": {}, "step2": {"trace": trace}}
    shows = "the state of each slot goes on"
    sheet.add("CHAIN-012", "state-given", shows, step, [one], state=state)
