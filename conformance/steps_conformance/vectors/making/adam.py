"""Vectors of Adam."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from steps_backends import HostArray, format_of, host_array

from ...descriptions import description, schedule
from ...oracle import adam as oracle
from ...oracle import schedules
from ...oracle.exact import exact, number
from ..model import Expected, Vector, VectorCall
from .every_kind import Subject, add_every_kind, callwise
from .optimizing import changing, exacts_of, expected_state, run_of, steady
from .resuming import add_resumed
from .sheet import ALL_DTYPES, Sheet, expect, whole

NAN = math.nan

# Requirement, options, whether it needs weights.
OPTIONS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "default": ("ADAM-001", {}, False),
    "other-numbers": (
        "ADAM-001",
        {"learning_rate": 0.25, "beta1": 0.5, "beta2": 0.75, "epsilon": 0.125},
        False,
    ),
    "no-memory": ("ADAM-001", {"beta1": 0.0, "beta2": 0.0}, False),
    "epsilon-root": ("ADAM-004", {"epsilon_root": 0.0625}, False),
    "amsgrad": ("ADAM-005", {"amsgrad": True, "beta2": 0.5}, False),
    "nesterov": ("ADAM-006", {"nesterov": True}, False),
    "weight-decay": ("ADAM-008", {"weight_decay": 0.25}, True),
    "everything": (
        "ADAM-008",
        {
            "amsgrad": True,
            "nesterov": True,
            "weight_decay": 0.125,
            "epsilon_root": 1e-6,
            "learning_rate": 0.01,
        },
        True,
    ),
    "ascending": ("ADAM-016", {"learning_rate": -1.0, "epsilon": 0.0}, False),
}


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    for label, (rule, options, decays) in OPTIONS.items():
        for dtype in ALL_DTYPES:
            requirement = "ADAM-007" if dtype.startswith("complex") else rule
            count = 50 if dtype in ("float32", "float64") else 4
            _run(sheet, requirement, f"{label}-{dtype}", options, steady(count, dtype, seed=3), decays)
    _run(
        sheet,
        "ADAM-002",
        "changing-signs",
        {"learning_rate": 0.125},
        changing(50, "float32", seed=8),
        size=0.125,
    )
    _scheduled(sheet)
    _edges(sheet)
    _resumed(sheet)
    others = {"extreme": "ADAM-012", "zeros": "ADAM-009", "nan": "ADAM-017", "inf": "ADAM-017"}
    answer = callwise(lambda gradients, _: _answers(gradients))
    add_every_kind(sheet, Subject("adam", description("AdamStep"), answer, "ADAM-001", others))
    return sheet.listed()


def _resumed(sheet: Sheet) -> None:
    for label in ("default", "amsgrad", "nesterov", "weight-decay"):
        rule, options, decays = OPTIONS[label]
        for dtype in ("float16", "float32", "float64", "complex64"):
            requirement = "ADAM-007" if dtype.startswith("complex") else rule
            step, size = description("AdamStep", **options), 1e-3 if decays else None
            add_resumed(
                sheet, requirement, label, step, oracle.adam, dtype,
                counts=True, weighs=decays, size=size, ulps=16, **options,
            )  # fmt: skip


def _answers(gradients: list[HostArray]) -> list[Expected]:
    """Return the updates; where a first moment is subnormal, ulps of the first normal one count."""
    form = format_of("float32" if format_of(gradients[0].dtype).precision < 24 else gradients[0].dtype)
    given = [exact(gradient) for gradient in gradients]
    updates = oracle.adam(given, largest=form.largest).updates
    least = 16 * number(form.smallest_normal)
    tiny = [tuple(0 < abs(value) < least for value in leaf.values) for leaf in given]
    if not any(map(any, tiny)):
        return [expect(g, update, wide=8) for g, update in zip(gradients, updates, strict=True)]
    sizes = [leaf.map(lambda x: least if 0 < abs(x) < least else x) for leaf in given]
    ofs = oracle.adam(sizes, largest=form.largest).updates
    return [
        replace(expect(gradient, update, wide=8, of=of), or_zero=lost)
        for gradient, update, of, lost in zip(gradients, updates, ofs, tiny, strict=True)
    ]


def _run(
    sheet: Sheet,
    requirement: str,
    name: str,
    options: dict[str, Any],
    gradients: list[HostArray],
    decays: bool = False,
    size: float | None = None,
) -> None:
    dtype = gradients[0].dtype
    weights = steady(len(gradients), dtype, seed=4) if decays else None
    largest = format_of("float32" if format_of(dtype).precision < 24 else dtype).largest
    steps = oracle.adam(exacts_of(gradients) or [], exacts_of(weights), largest=largest, **options)
    ulps = 16 if len(gradients) > 10 else 8
    of = _size(options, weights) if decays and size is None else size
    calls = run_of(gradients, weights, steps, ulps=ulps, counts=True, size=of)
    shows = f"{len(gradients)} calls with {', '.join(options) or 'the defaults'}"
    sheet.add(requirement, name, shows, description("AdamStep", **options), calls)


def _size(options: dict[str, Any], weights: list[HostArray] | None) -> float | None:
    # Decay and direction may cancel; both are below the rate in size.
    return None if weights is None else abs(float(options.get("learning_rate", 1e-3)))


def _scheduled(sheet: Sheet) -> None:
    rates: dict[str, tuple[Any, Callable[[int], Any]]] = {
        "cosine": (schedule("CosineSchedule", initial=0.5, steps=4), schedules.cosine(0.5, 4)),
        "linear": (
            schedule("LinearSchedule", initial=0.5, final=0.125, steps=3),
            schedules.linear(0.5, 0.125, 3),
        ),
    }
    for label, (described, rate) in rates.items():
        step = description("AdamStep", learning_rate=described)
        for count, name in ((4, f"schedule-{label}"), (50, f"schedule-{label}-50-calls")):
            gradients = steady(count, "float32", seed=5)
            steps = oracle.adam([exact(g) for g in gradients], learning_rate=rate)
            calls = run_of(gradients, None, steps, ulps=8 if count < 10 else 16, counts=True)
            sheet.add("SCHED-009", name, "the schedule gets 0 at the first call", step, calls)


def _edges(sheet: Sheet) -> None:
    zeros = host_array([0.0, -0.0], "float16")
    nothing = Expected("float16", (2,), (0.0, 0.0))
    sheet.add(
        "ADAM-009", "float16-zeros", "a zero gradient gives 0", description("AdamStep"),
        [VectorCall(zeros, None, nothing)], source="google-deepmind/optax#1755",
    )  # fmt: skip
    single = host_array([0.0, -0.0])
    nothing = Expected("float32", (2,), (0.0, 0.0))
    step = description("AdamStep", epsilon=0.0)
    sheet.add("ADAM-009", "no-epsilon-zeros", "0/0 is 0", step, [VectorCall(single, None, nothing)])
    huge = [host_array([1e30, -3e38]), host_array([1.0, 1.0])]
    largest = format_of("float32").largest
    steps = oracle.adam([exact(g) for g in huge], largest=largest)
    calls = run_of(huge, None, steps, ulps=8, counts=True)
    sheet.add(
        "ADAM-010", "1e30", "a second moment stops at the largest number", description("AdamStep"), calls
    )
    _saturated_count(sheet)
    good = oracle.adam([exact(host_array([1.0]))]).updates[0].values[0]
    one = VectorCall(host_array([NAN, 1.0]), None, Expected("float32", (2,), (NAN, good), 8))
    sheet.add("ADAM-017", "nan-stays", "NaN stays at its element", description("AdamStep"), [one])


def _saturated_count(sheet: Sheet) -> None:
    """At its end the counter stays, and both corrections are 1; these moments stay where they are, too."""
    last, gradient, square = 2**31 - 1, host_array([0.5]), host_array([0.25])
    state = {"count": HostArray("int32", (), (last,)), "first_moment": gradient, "second_moment": square}
    update = exact(gradient).map(lambda g: -number(1e-3) * g / (g + number(1e-8)))
    moments = {"first_moment": exact(gradient), "second_moment": exact(square)}
    expected = {"count": whole(last), **expected_state(gradient, moments, None, 2)}
    one = VectorCall(gradient, None, Expected("float32", (1,), update.values, 8), expected)
    shows = "the counter stays at 2^31 - 1"
    sheet.add("PREC-006", "last-count", shows, description("AdamStep"), [one], state=state)
