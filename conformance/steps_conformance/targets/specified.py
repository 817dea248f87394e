"""The names that the requirements give to steps, options and values. Any other is a mistake."""

import re

_EVERY = ("set_breakpoint", "metadata")

OPTIONS = {
    "AdamStep": (
        *("learning_rate", "weight_decay", "beta1", "beta2", "epsilon", "epsilon_root"),
        *("amsgrad", "nesterov", *_EVERY),
    ),
    "CenteringStep": ("unit_axis", *_EVERY),
    "ChainedStep": _EVERY,
    "ConstraintStep": ("constraint", "lower", "upper", "radius", "unit_axis", *_EVERY),
    "CustomStep": ("graph", "graph_signature", "overrides", *_EVERY),
    "GradientClippingStep": ("variant", "threshold", "epsilon", "unit_axis", *_EVERY),
    "MaskedStep": ("inner", "mask", *_EVERY),
    "MomentumStep": ("decay", "nesterov", *_EVERY),
    "MonitorStep": _EVERY,
    "RMSPropStep": (
        *("learning_rate", "weight_decay", "decay", "epsilon", "epsilon_inside"),
        *("centered", "momentum", "nesterov", *_EVERY),
    ),
    "SGDStep": ("learning_rate", "weight_decay", "momentum", "nesterov", *_EVERY),
    "ScalingStep": ("scale", "learning_rate", *_EVERY),
    "SkipNonFiniteStep": ("inner", *_EVERY),
    "WeightDecayStep": ("weight_decay", *_EVERY),
}
"""By step, the options that its requirements name. A ChainedStep has its slots besides, see ``is_option``."""

CHOICES = {
    ("ConstraintStep", "constraint"): ("nonnegative", "box", "norm-ball", "unit-norm"),
    ("GradientClippingStep", "variant"): (
        *("per-weight", "per-parameter", "per-layer", "global"),
        *("per-weight-relative", "per-parameter-relative", None),
    ),
}
"""By step and option, all the values there are, where they can be counted."""

_SLOT = re.compile(r"step[0-9]+")


def is_option(step: str, option: str) -> bool:
    """Return whether a step has an option of that name; a chain has slots without end."""
    return option in OPTIONS[step] or (step == "ChainedStep" and _SLOT.fullmatch(option) is not None)
