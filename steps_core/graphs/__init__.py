"""Graphs: custom steps made of steps and operations, traced from a function or read from JSON.

@graph
def decayed(gradients, weights, *, weight_decay=1e-4, threshold=1.0):
    clipped = GradientClippingStep(variant="global", threshold=threshold)(gradients)
    return -(clipped + weight_decay * weights)

step = CustomStep(decayed, weight_decay=5e-4)
"""

from ..packets import Packet, extract_streams, merge_streams
from .functions import *  # noqa: F403
from .functions import __all__ as _functions
from .graph import Graph
from .model import OperationNode, Parameter, StepNode
from .tracing import graph

__all__ = [  # noqa: PLE0604
    *_functions,
    "Graph",
    "OperationNode",
    "Packet",
    "Parameter",
    "StepNode",
    "extract_streams",
    "graph",
    "merge_streams",
]
