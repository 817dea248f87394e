"""Vectors of chains."""

from typing import Any

from steps_backends import host_array

from ...descriptions import chain, description
from ...oracle import adam as adam_oracle
from ...oracle import clipping as clipping_oracle
from ...oracle.exact import exact, number
from ..model import Vector, VectorCall, unchanged
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
    return sheet.listed()


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
