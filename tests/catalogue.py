"""One or more samples of every public step, for the tests that all steps have in common."""

from typing import Any

from steps_core import (
    AdamStep,
    CenteringStep,
    ChainedStep,
    ConstraintStep,
    CosineSchedule,
    ExponentialSchedule,
    GradientClippingStep,
    LinearSchedule,
    MaskedStep,
    MomentumStep,
    MonitorStep,
    PiecewiseSchedule,
    RMSPropStep,
    ScalingStep,
    SGDStep,
    SkipNonFiniteStep,
    Step,
    Tunable,
    WarmupSchedule,
    WeightDecayStep,
)


def has_axes(path: tuple[Any, ...], leaf: Any) -> bool:
    """Return whether a leaf is no scalar: a mask."""
    return leaf.ndim > 0


SAMPLES: dict[str, Step] = {
    "clip per weight": GradientClippingStep(threshold=0.75),
    "clip per layer": GradientClippingStep(variant="per-layer", threshold=0.75),
    "clip global": GradientClippingStep(variant="global", threshold=0.75),
    "clip relative": GradientClippingStep(variant="per-weight-relative", threshold=0.5),
    "clip off": GradientClippingStep(variant=None),
    "adam": AdamStep(),
    "adam with all options": AdamStep(
        learning_rate=CosineSchedule(0.1, 10),
        epsilon_root=1e-6,
        amsgrad=True,
        nesterov=True,
        weight_decay=0.01,
    ),
    "rmsprop": RMSPropStep(),
    "rmsprop with all options": RMSPropStep(
        learning_rate=ExponentialSchedule(0.1, 0.5, 10),
        epsilon_inside=False,
        centered=True,
        momentum=0.9,
        nesterov=True,
        weight_decay=0.01,
    ),
    "sgd": SGDStep(),
    "sgd with all options": SGDStep(
        learning_rate=LinearSchedule(0.1, 0.0, 10), momentum=0.9, nesterov=True, weight_decay=0.01
    ),
    "momentum": MomentumStep(),
    "momentum nesterov": MomentumStep(nesterov=True),
    "scaling": ScalingStep(scale=-0.5),
    "scaling by a schedule": ScalingStep(
        learning_rate=WarmupSchedule(3, PiecewiseSchedule((2,), (0.5, 0.25)))
    ),
    "weight decay": WeightDecayStep(weight_decay=0.01),
    "centering": CenteringStep(),
    "monitor": MonitorStep(),
    "skip non-finite": SkipNonFiniteStep(AdamStep()),
    "masked": MaskedStep(AdamStep(), has_axes),
    "nonnegative": ConstraintStep("nonnegative"),
    "box": ConstraintStep("box", lower=-0.5, upper=0.5),
    "norm ball": ConstraintStep("norm-ball", radius=0.5),
    "unit norm": ConstraintStep("unit-norm"),
    "clip relative, tunable": GradientClippingStep(
        variant="per-weight-relative", threshold=Tunable(0.5), epsilon=Tunable(2.0**-10)
    ),
    "adam, tunable": AdamStep(
        learning_rate=Tunable(0.1), beta1=Tunable(0.9), epsilon=Tunable(1e-6), weight_decay=Tunable(0.01)
    ),
    "masked and skipped, tunable": MaskedStep(
        SkipNonFiniteStep(SGDStep(learning_rate=CosineSchedule(0.1, 10), momentum=Tunable(0.9))), has_axes
    ),
    "empty chain": ChainedStep(),
    "chain": ChainedStep(
        MonitorStep(),
        GradientClippingStep(variant="global"),
        ChainedStep(step1=CenteringStep(), step0=AdamStep()),
        ConstraintStep("nonnegative"),
    ),
}

# These ask how large an element is, which has no answer for complex numbers.
NEED_AN_ORDER = ("nonnegative", "box", "chain")
