"""Vectors of gradient descent, momentum and weight decay."""

from typing import Any

from ...descriptions import description
from ...oracle import momentum as oracle
from ...oracle.exact import exact, number
from ...oracle.samples import sample
from ..model import Vector, VectorCall
from .optimizing import exacts_of, run_of, steady
from .sheet import ALL_DTYPES, Sheet, expect, sized

# Requirement, options, whether it needs weights.
SGD: dict[str, tuple[str, dict[str, Any], bool]] = {
    "default": ("SGD-001", {}, False),
    "momentum": ("SGD-002", {"momentum": 0.9}, False),
    "nesterov": ("SGD-003", {"momentum": 0.5, "nesterov": True}, False),
    "weight-decay": ("SGD-004", {"weight_decay": 0.25, "learning_rate": 0.125}, True),
}
MOMENTUM: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("MOMENTUM-001", {}),
    "no-memory": ("MOMENTUM-001", {"decay": 0.0}),
    "nesterov": ("MOMENTUM-002", {"decay": 0.5, "nesterov": True}),
}


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    for dtype in ALL_DTYPES:
        count = 50 if dtype in ("float32", "float64") else 4
        gradients = steady(count, dtype, seed=23)
        for label, (requirement, options, decays) in SGD.items():
            weights = steady(count, dtype, seed=24) if decays else None
            steps = oracle.sgd(exacts_of(gradients) or [], exacts_of(weights), **options)
            size = options["learning_rate"] if decays else None
            calls = run_of(gradients, weights, steps, ulps=8, counts=False, size=size)
            step = description("SGDStep", **options)
            sheet.add(requirement, f"{label}-{dtype}", f"{count} calls", step, calls)
        for label, (requirement, chosen) in MOMENTUM.items():
            steps = oracle.momentum(exacts_of(gradients) or [], **chosen)
            calls = run_of(gradients, None, steps, ulps=8, counts=False)
            step = description("MomentumStep", **chosen)
            sheet.add(requirement, f"{label}-{dtype}", f"{count} calls", step, calls)
        _decay(sheet, dtype)
    return sheet.listed()


def _decay(sheet: Sheet, dtype: str) -> None:
    gradient, weight = sample((2, 3), dtype, seed=25), sample((2, 3), dtype, seed=26)
    added = exact(gradient).map(lambda g, w: g + number(0.25) * w, exact(weight))
    one = VectorCall(gradient, weight, expect(gradient, added, wide=1, of=sized(gradient, 1)))
    step = description("WeightDecayStep", weight_decay=0.25)
    sheet.add("DECAY-001", dtype, "a quarter of the weights is added", step, [one])
