"""Vectors of gradient descent, momentum and weight decay."""

from typing import Any

from steps_backends import HostArray

from ...descriptions import description
from ...oracle import momentum as oracle
from ...oracle.exact import Scalar, exact, mp, number
from ...oracle.samples import sample
from ..model import Expected, Vector, VectorCall
from .every_kind import Subject, add_every_kind, callwise, leafwise
from .optimizing import exacts_of, run_of, steady
from .resuming import add_resumed
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
    _resumed(sheet)
    _every_kind(sheet)
    return sheet.listed()


def _resumed(sheet: Sheet) -> None:
    for dtype in ("float16", "float32", "float64", "complex64"):
        for label in ("momentum", "nesterov"):
            requirement, options, _ = SGD[label]
            step = description("SGDStep", **options)
            name = f"sgd-{label}"
            add_resumed(sheet, requirement, name, step, oracle.sgd, dtype, counts=False, **options)
        for label in ("default", "nesterov"):
            requirement, chosen = MOMENTUM[label]
            step = description("MomentumStep", **chosen)
            name = f"momentum-{label}"
            add_resumed(sheet, requirement, name, step, oracle.momentum, dtype, counts=False, **chosen)


def _every_kind(sheet: Sheet) -> None:
    def descent(gradients: list[HostArray], _: Any) -> list[Expected]:
        updates = oracle.sgd([exact(g) for g in gradients]).updates
        return [expect(g, update, wide=2) for g, update in zip(gradients, updates, strict=True)]

    def sums(gradients: list[HostArray], _: Any) -> list[Expected]:
        updates = oracle.momentum([exact(g) for g in gradients]).updates
        if len(gradients) == 1:  # the first trace is the gradient
            return [expect(gradients[0], updates[0], wide=0, narrow=0)]
        return [expect(g, update, wide=8) for g, update in zip(gradients, updates, strict=True)]

    add_every_kind(sheet, Subject("sgd", description("SGDStep"), callwise(descent), "SGD-001"))
    add_every_kind(sheet, Subject("momentum", description("MomentumStep"), callwise(sums), "MOMENTUM-001"))
    step = description("WeightDecayStep", weight_decay=0.25)
    add_every_kind(sheet, Subject("decay", step, leafwise(_decayed), "DECAY-001", weighs=True))


def _decayed(gradient: HostArray, weight: HostArray | None) -> Expected:
    assert weight is not None
    added = exact(gradient).map(lambda g, w: g + number(0.25) * w, exact(weight))
    size = exact(gradient).map(_larger, exact(weight))
    return expect(gradient, added, wide=2, of=size)


def _larger(gradient: Scalar, weight: Scalar) -> Scalar:
    """Return the larger summand, for both parts of a complex one; 1 where the gradient is not finite."""
    size = max(abs(gradient), abs(weight) / 4)
    size = size if mp.isfinite(size) else mp.mpf(1)
    return mp.mpc(size, size) if isinstance(gradient, mp.mpc) else size


def _decay(sheet: Sheet, dtype: str) -> None:
    gradient, weight = sample((2, 3), dtype, seed=25), sample((2, 3), dtype, seed=26)
    added = exact(gradient).map(lambda g, w: g + number(0.25) * w, exact(weight))
    one = VectorCall(gradient, weight, expect(gradient, added, wide=1, of=sized(gradient, 1)))
    step = description("WeightDecayStep", weight_decay=0.25)
    sheet.add("DECAY-001", dtype, "a quarter of the weights is added", step, [one])
