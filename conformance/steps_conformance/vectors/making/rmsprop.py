"""Vectors of RMSProp."""

from typing import Any

from steps_backends import HostArray, format_of, host_array

from ...descriptions import description, schedule
from ...oracle import rmsprop as oracle
from ...oracle import schedules
from ...oracle.exact import exact
from ..model import Expected, Vector, VectorCall
from .every_kind import Subject, add_every_kind, callwise
from .optimizing import exacts_of, run_of, steady
from .resuming import add_resumed
from .sheet import ALL_DTYPES, Sheet, expect

# Requirement, options, whether it needs weights, the magnitude whose ulps count.
OPTIONS: dict[str, tuple[str, dict[str, Any], bool, float | None]] = {
    "default": ("RMSPROP-001", {}, False, None),
    "other-numbers": ("RMSPROP-001", {"learning_rate": 0.25, "decay": 0.5, "epsilon": 0.125}, False, None),
    "no-memory": ("RMSPROP-001", {"decay": 0.0}, False, None),
    "epsilon-outside": ("RMSPROP-002", {"epsilon_inside": False, "epsilon": 0.0625}, False, None),
    "centered": ("RMSPROP-003", {"centered": True, "epsilon": 0.5}, False, 1e-3),
    "momentum": ("RMSPROP-005", {"momentum": 0.9}, False, None),
    "nesterov": ("RMSPROP-006", {"momentum": 0.5, "nesterov": True}, False, None),
    "weight-decay": ("RMSPROP-007", {"weight_decay": 0.25}, True, 1e-3),
    "everything": (
        "RMSPROP-006",
        {"centered": True, "epsilon": 0.5, "momentum": 0.5, "nesterov": True, "weight_decay": 0.25},
        True,
        1e-3,
    ),
}


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    for label, (rule, options, decays, size) in OPTIONS.items():
        for dtype in ALL_DTYPES:
            requirement = "RMSPROP-012" if dtype.startswith("complex") else rule
            count = 50 if dtype in ("float32", "float64") else 4
            gradients = steady(count, dtype, seed=13)
            _run(sheet, requirement, f"{label}-{dtype}", options, gradients, decays, size)
    _edges(sheet)
    for label in ("default", "centered", "momentum", "nesterov", "weight-decay"):
        rule, options, decays, size = OPTIONS[label]
        for dtype in ("float16", "float32", "float64", "complex64"):
            requirement = "RMSPROP-012" if dtype.startswith("complex") else rule
            step = description("RMSPropStep", **options)
            add_resumed(
                sheet, requirement, label, step, oracle.rmsprop, dtype,
                counts=False, weighs=decays, size=size, ulps=_ulps(options), **options,
            )  # fmt: skip
    others = {"zeros": "RMSPROP-008", "extreme": "RMSPROP-009"}
    answer = callwise(lambda gradients, _: _answers(gradients))
    add_every_kind(sheet, Subject("rmsprop", description("RMSPropStep"), answer, "RMSPROP-001", others))
    return sheet.listed()


def _answers(gradients: list[HostArray]) -> list[Expected]:
    form = format_of("float32" if format_of(gradients[0].dtype).precision < 24 else gradients[0].dtype)
    updates = oracle.rmsprop([exact(g) for g in gradients], largest=form.largest).updates
    return [expect(gradient, update, wide=8) for gradient, update in zip(gradients, updates, strict=True)]


def _run(
    sheet: Sheet,
    requirement: str,
    name: str,
    options: dict[str, Any],
    gradients: list[HostArray],
    decays: bool,
    size: float | None,
) -> None:
    weights = steady(len(gradients), gradients[0].dtype, seed=14) if decays else None
    steps = oracle.rmsprop(exacts_of(gradients) or [], exacts_of(weights), **options)
    calls = run_of(gradients, weights, steps, ulps=_ulps(options), counts=False, size=size)
    shows = f"{len(gradients)} calls with {', '.join(options) or 'the defaults'}"
    sheet.add(requirement, name, shows, description("RMSPropStep", **options), calls)


def _ulps(options: dict[str, Any]) -> float:
    """Return the tolerance over fifty calls; a variance is a difference, and has twice the error."""
    return 16 if options.get("centered") else 8


def _edges(sheet: Sheet) -> None:
    zeros = host_array([0.0, -0.0], "float16")
    nothing = Expected("float16", (2,), (0.0, 0.0))
    one = VectorCall(zeros, None, nothing)
    source = "google-deepmind/optax#1755"
    for label, options in (
        ("inside", {}),
        ("outside", {"epsilon_inside": False}),
        ("none", {"epsilon": 0.0}),
        ("centered", {"centered": True, "epsilon": 0.0}),
    ):
        step = description("RMSPropStep", **options)
        sheet.add(
            "RMSPROP-008", f"float16-zeros-{label}", "a zero gradient gives 0", step, [one], source=source
        )
    huge = [host_array([1e30, -3e38]), host_array([1.0, 1.0])]
    steps = oracle.rmsprop([exact(g) for g in huge], largest=format_of("float32").largest)
    calls = run_of(huge, None, steps, ulps=8, counts=False)
    sheet.add(
        "RMSPROP-009",
        "1e30",
        "a second moment stops at the largest number",
        description("RMSPropStep"),
        calls,
    )
    gradients = steady(4, "float32", seed=15)
    rate = schedules.cosine(0.5, 4)
    steps = oracle.rmsprop([exact(g) for g in gradients], learning_rate=rate)
    calls = run_of(gradients, None, steps, ulps=8, counts=True)
    step = description("RMSPropStep", learning_rate=schedule("CosineSchedule", initial=0.5, steps=4))
    sheet.add("SCHED-009", "schedule", "the schedule gets 0 at the first call", step, calls)
