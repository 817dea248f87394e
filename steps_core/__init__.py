"""Gradient-processing steps for any array library: clipping, chains, Adam, RMSProp, scaling, constraints.

step = ChainedStep(GradientClippingStep(variant="global", threshold=1.0), AdamStep(learning_rate=1e-3))
state = step.init(weights)
updates, state = step(gradients, weights, state)
weights = apply_updates(weights, updates)
"""

from ._version import __version__
from .building import build
from .contract import Step, StepLike, StepResult, check_end_to_end
from .errors import (
    ArgumentError,
    ArgumentTypeError,
    LeafTypeError,
    StateError,
    StepsError,
    TreeMismatchError,
    UnknownNameError,
)
from .graphs import Graph, graph
from .packets import Packet, extract_streams, merge_streams
from .schedules import (
    ConstantSchedule,
    CosineSchedule,
    ExponentialSchedule,
    LinearSchedule,
    PiecewiseSchedule,
    WarmupSchedule,
)
from .state_files import load_state, save_state
from .steps import (
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
    ScalingStep,
    SGDStep,
    SkipNonFiniteStep,
    WeightDecayStep,
)
from .trees import register_container
from .tunable import Tunable
from .updates import apply_updates

__all__ = [
    "AdamStep",
    "ArgumentError",
    "ArgumentTypeError",
    "CenteringStep",
    "ChainedStep",
    "ConstantSchedule",
    "ConstraintStep",
    "CosineSchedule",
    "CustomStep",
    "ExponentialSchedule",
    "GradientClippingStep",
    "Graph",
    "LeafTypeError",
    "LinearSchedule",
    "MaskedStep",
    "MomentumStep",
    "MonitorStep",
    "Packet",
    "PiecewiseSchedule",
    "RMSPropStep",
    "SGDStep",
    "ScalingStep",
    "SkipNonFiniteStep",
    "StateError",
    "Step",
    "StepLike",
    "StepResult",
    "StepsError",
    "TreeMismatchError",
    "Tunable",
    "UnknownNameError",
    "WarmupSchedule",
    "WeightDecayStep",
    "__version__",
    "apply_updates",
    "build",
    "check_end_to_end",
    "extract_streams",
    "graph",
    "load_state",
    "merge_streams",
    "register_container",
    "save_state",
]
