"""The steps, one rule a file."""

from ..contract import Step
from .adam import AdamStep
from .centering import CenteringStep
from .chain import ChainedStep
from .clipping import GradientClippingStep
from .constraint import ConstraintStep
from .custom import CustomStep
from .masked import MaskedStep
from .momentum import MomentumStep
from .monitor import MonitorStep
from .rmsprop import RMSPropStep
from .scaling import ScalingStep
from .sgd import SGDStep
from .skip_non_finite import SkipNonFiniteStep
from .weight_decay import WeightDecayStep

STEPS: dict[str, type[Step]] = {
    step.__name__: step
    for step in (
        AdamStep,
        CenteringStep,
        ChainedStep,
        ConstraintStep,
        CustomStep,
        GradientClippingStep,
        MaskedStep,
        MomentumStep,
        MonitorStep,
        RMSPropStep,
        SGDStep,
        ScalingStep,
        SkipNonFiniteStep,
        WeightDecayStep,
    )
}

__all__ = [
    "STEPS",
    "AdamStep",
    "CenteringStep",
    "ChainedStep",
    "ConstraintStep",
    "CustomStep",
    "GradientClippingStep",
    "MaskedStep",
    "MomentumStep",
    "MonitorStep",
    "RMSPropStep",
    "SGDStep",
    "ScalingStep",
    "SkipNonFiniteStep",
    "WeightDecayStep",
]
