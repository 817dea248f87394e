"""One or more samples of every public step, for the tests that all steps have in common."""

from typing import Any

from steps_core import (
    AdamStep,
    CenteringStep,
    ChainedStep,
    ConstraintStep,
    CosineSchedule,
    CustomStep,
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
    graph,
    graphs,
)


def has_axes(path: tuple[Any, ...], leaf: Any) -> bool:
    """Return whether a leaf is no scalar: a mask."""
    return leaf.ndim > 0


@graph
def decayed(gradients, weights, *, weight_decay=1e-2, threshold=1.0):
    """Return minus the clipped gradients and a share of the weights."""
    clipped = GradientClippingStep(variant="global", threshold=threshold)(gradients)
    return -(clipped + weight_decay * weights)


@graph
def everything_once(gradients, weights, *, rate=0.1, decay=0.5):
    """Use every operation, and steps in steps."""
    smooth = graphs.moving_average(gradients, decay=decay, bias_correction=True)
    size = graphs.moving_average(graphs.norm(gradients), decay=0.9)
    units = graphs.norm(weights, over="unit") + graphs.mean(abs(gradients), over="unit")
    leaf = graphs.sum(graphs.square(abs(gradients)), over="leaf") + graphs.norm(weights, over="leaf", order=1)
    total = graphs.mean(abs(gradients)) + graphs.norm(gradients, order=float("inf"))
    small = graphs.clip(graphs.exp(-abs(weights)), 0.1, graphs.maximum(size, 0.5))
    chosen = graphs.where(
        graphs.isfinite(gradients) & ~(abs(gradients) < 1e-3) | (leaf > 2.0), smooth, graphs.sign(gradients)
    )
    before = graphs.previous_value(chosen)
    summed = graphs.trace(chosen + 0.5 * before, decay=decay, nesterov=True)
    scaled = summed * small / (1.0 + graphs.sqrt(units) + graphs.log(2.0 + graphs.minimum(total, 10.0)))
    adam = ChainedStep(GradientClippingStep(threshold=1.0), AdamStep(learning_rate=rate))(scaled, weights)
    return adam / (1 + graphs.counter()) ** 0.5


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
    "graph": CustomStep(decayed, weight_decay=0.5),
    "graph with everything": CustomStep(everything_once, decay=0.25),
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
