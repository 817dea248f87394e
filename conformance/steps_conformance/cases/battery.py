"""The table of all steps that common cases run through. It holds no cases."""

from dataclasses import dataclass

from ..descriptions import chain, description, schedule
from ..targets.protocol import Description

COSINE = schedule("CosineSchedule", initial=0.5, steps=4)
ADAM = {"learning_rate": 0.01, "weight_decay": 0.1}
RMSPROP = {"learning_rate": 0.01, "momentum": 0.9, "weight_decay": 0.1}


@dataclass(frozen=True)
class Entry:
    """One step of the table.

    Attributes:
        described: its description.
        needs_weights: whether a call needs weights.
        takes_complex: whether it takes complex leaves.
        remembers: whether it has a state that is not empty.
    """

    described: Description
    needs_weights: bool = False
    takes_complex: bool = True
    remembers: bool = False


def _clip(variant: str) -> Description:
    return description("GradientClippingStep", variant=variant, threshold=0.5)


def _constraint(kind: str, **options: float) -> Description:
    return description("ConstraintStep", constraint=kind, **options)


STEPS: dict[str, Entry] = {
    "clip-per-weight": Entry(_clip("per-weight")),
    "clip-per-layer": Entry(_clip("per-layer")),
    "clip-global": Entry(_clip("global")),
    "clip-relative": Entry(_clip("per-weight-relative"), needs_weights=True),
    "scaling": Entry(description("ScalingStep", scale=0.1)),
    "scaling-by-rate": Entry(description("ScalingStep", learning_rate=0.1)),
    "scaling-scheduled": Entry(description("ScalingStep", scale=COSINE), remembers=True),
    "adam": Entry(description("AdamStep"), remembers=True),
    "adam-amsgrad": Entry(description("AdamStep", amsgrad=True, **ADAM), needs_weights=True, remembers=True),
    "adam-nesterov": Entry(description("AdamStep", nesterov=True, learning_rate=COSINE), remembers=True),
    "rmsprop": Entry(description("RMSPropStep"), remembers=True),
    "rmsprop-centered": Entry(
        description("RMSPropStep", centered=True, epsilon_inside=False, learning_rate=COSINE), remembers=True
    ),
    "rmsprop-momentum": Entry(
        description("RMSPropStep", nesterov=True, **RMSPROP), needs_weights=True, remembers=True
    ),
    "sgd": Entry(description("SGDStep")),
    "sgd-momentum": Entry(
        description("SGDStep", momentum=0.9, nesterov=True, weight_decay=0.1),
        needs_weights=True,
        remembers=True,
    ),
    "momentum": Entry(description("MomentumStep"), remembers=True),
    "weight-decay": Entry(description("WeightDecayStep"), needs_weights=True),
    "centering": Entry(description("CenteringStep")),
    "monitor": Entry(description("MonitorStep"), remembers=True),
    "skip-non-finite": Entry(description("SkipNonFiniteStep", inner=description("AdamStep")), remembers=True),
    "nonnegative": Entry(_constraint("nonnegative"), needs_weights=True, takes_complex=False),
    "box": Entry(_constraint("box", lower=-0.5, upper=0.25), needs_weights=True, takes_complex=False),
    "norm-ball": Entry(_constraint("norm-ball", radius=0.75), needs_weights=True),
    "unit-norm": Entry(_constraint("unit-norm"), needs_weights=True),
    "empty-chain": Entry(chain()),
    "chain": Entry(
        chain(description("MonitorStep"), _clip("global"), description("AdamStep", **ADAM)),
        needs_weights=True,
        remembers=True,
    ),
}
