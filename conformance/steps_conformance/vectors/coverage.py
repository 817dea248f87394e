"""The table of kinds of input by step: what the vectors have, what they lack, and why."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from steps_backends import LEAF_DTYPES

from .kinds import (
    Kind,
    arrays,
    at_each_place,
    end_of_the_range,
    every_rank,
    has_a_state,
    has_both_zeros,
    in_a_call,
    is_long,
    mixes_dtypes,
)
from .model import Vector
from .thresholds import equals_the_norm, in_both_layouts, is_huge, is_tiny, threshold_is

CLIPPING = ("per-weight", "per-layer", "global", "per-weight-relative")
SUBJECTS = (
    *CLIPPING,
    "AdamStep", "RMSPropStep", "SGDStep", "MomentumStep", "WeightDecayStep", "CenteringStep",
    "ConstraintStep", "ScalingStep", "ChainedStep", "MonitorStep", "SkipNonFiniteStep", "MaskedStep",
    "CustomStep",
)  # fmt: skip
"""The columns: the variants of clipping, and the other steps."""

KINDS = (
    *(Kind(f"{dtype}, each rank from 0 to 5", every_rank(dtype)) for dtype in LEAF_DTYPES),
    Kind("one leaf", in_a_call(lambda call: len(arrays(call.gradients)) == 1)),
    Kind("100 leaves", in_a_call(lambda call: len(arrays(call.gradients)) >= 100)),
    Kind("1,000 leaves", in_a_call(lambda call: len(arrays(call.gradients)) >= 1000)),
    Kind("several dtypes in one tree", in_a_call(mixes_dtypes)),
    Kind("an empty leaf", in_a_call(lambda call: any(0 in a.shape for a in arrays(call.gradients)))),
    Kind("a tree without arrays", in_a_call(lambda call: not arrays(call.gradients))),
    Kind("None for a leaf", in_a_call(lambda call: _has_none(call.gradients))),
    Kind("the smallest subnormal, in each real dtype", end_of_the_range("smallest_subnormal")),
    Kind("the smallest normal, in each real dtype", end_of_the_range("smallest_normal")),
    Kind("the largest number, in each real dtype", end_of_the_range("largest")),
    Kind("zeros of both signs", in_a_call(has_both_zeros)),
    Kind("NaN at each place", at_each_place(math.isnan)),
    Kind("+inf at each place", at_each_place(lambda value: value == math.inf)),
    Kind("-inf at each place", at_each_place(lambda value: value == -math.inf)),
    Kind("50 calls", is_long),
    Kind("a state that is given", has_a_state),
    Kind("threshold 0", threshold_is(lambda threshold, _: threshold == 0), CLIPPING),
    Kind("a threshold below the normal numbers", threshold_is(is_tiny), CLIPPING),
    Kind("a threshold equal to what it limits", threshold_is(equals_the_norm), CLIPPING),
    Kind("a threshold as large as numbers get", threshold_is(is_huge), CLIPPING),
    Kind("threshold inf", threshold_is(lambda threshold, _: threshold == math.inf), CLIPPING),
    Kind("threshold None", threshold_is(lambda threshold, _: threshold is None), CLIPPING),
    Kind("both layouts of an uneven matrix", in_both_layouts, ("per-weight-relative",)),
)

_NO_STATE = "it keeps no state"
_ALONE = "each leaf is processed alone"
_LIKE_THE_CLIP = "its leaves meet in the sum of the global clip, and a compiler takes minutes over so many"
_STATELESS = (*CLIPPING, "WeightDecayStep", "CenteringStep", "ConstraintStep")
_BY_ELEMENT = (
    "per-weight", "per-weight-relative", "AdamStep", "RMSPropStep", "SGDStep", "MomentumStep",
    "WeightDecayStep", "CenteringStep", "ConstraintStep", "ScalingStep", "MaskedStep",
)  # fmt: skip

ABSENT: Mapping[str, Mapping[str, str]] = {
    "100 leaves": dict.fromkeys(_BY_ELEMENT, _ALONE),
    "1,000 leaves": {
        **dict.fromkeys((*_BY_ELEMENT, "per-layer"), _ALONE),
        **dict.fromkeys(("ChainedStep", "MonitorStep", "SkipNonFiniteStep", "CustomStep"), _LIKE_THE_CLIP),
    },
    "50 calls": dict.fromkeys(_STATELESS, _NO_STATE),
    "a state that is given": dict.fromkeys(_STATELESS, _NO_STATE),
}
"""Kind and step -> why there is no such vector."""

RUNS: Mapping[str, tuple[str, ...]] = {
    "AdamStep": ("default", "amsgrad", "nesterov", "weight_decay"),
    "RMSPropStep": ("default", "centered", "momentum", "nesterov", "weight_decay"),
    "SGDStep": ("momentum", "nesterov"),
    "MomentumStep": ("default", "nesterov"),
    "ScalingStep": (
        "ConstantSchedule", "ExponentialSchedule", "LinearSchedule", "CosineSchedule", "WarmupSchedule",
        "PiecewiseSchedule",
    ),
    "ChainedStep": ("default",),
    "MonitorStep": ("default",),
    "SkipNonFiniteStep": ("default",),
    "MaskedStep": ("default",),
    "CustomStep": ("default",),
}  # fmt: skip
"""Steps that remember something, and the options with which they must have long runs and given states."""


def subject(vector: Vector) -> str | None:
    """Return the column of a vector; None for a clip without a variant."""
    name: str = vector.step["step"]
    if name != "GradientClippingStep":
        return name
    variant = vector.step.get("options", {}).get("variant", "per-parameter")
    return None if variant is None else str(variant).replace("parameter", "weight")


def by_subject(vectors: Iterable[Vector]) -> dict[str, list[Vector]]:
    """Return the vectors of each column."""
    found: dict[str, list[Vector]] = {name: [] for name in SUBJECTS}
    for vector in vectors:
        name = subject(vector)
        if name is not None:
            found[name].append(vector)
    return found


def counts(vectors: Iterable[Vector]) -> dict[tuple[str, str], int]:
    """Return how many vectors have each kind, by kind and step, where the kind makes sense."""
    found = by_subject(vectors)
    return {(kind.name, name): kind.count(found[name]) for kind in KINDS for name in kind.only or SUBJECTS}


def runs(vectors: Iterable[Vector]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return how many vectors have fifty calls, and a given state, by step and option."""
    found = by_subject(vectors)
    return {
        (name, option): (is_long(chosen), has_a_state(chosen))
        for name, options in RUNS.items()
        for option in options
        for chosen in [[vector for vector in found[name] if _has_option(vector, option)]]
    }


def _has_option(vector: Vector, option: str) -> bool:
    options = vector.step.get("options", {})
    if option.endswith("Schedule"):
        return any(isinstance(v, dict) and v.get("schedule") == option for v in options.values())
    return option == "default" or bool(options.get(option, False))


def _has_none(tree: Any) -> bool:
    """Return whether a container holds None."""
    if isinstance(tree, dict):
        return any(part is None or _has_none(part) for part in tree.values())
    if isinstance(tree, (list, tuple)):
        return any(part is None or _has_none(part) for part in tree)
    return False
