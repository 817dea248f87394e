"""Constructor arguments that must be refused: every argument of every step and schedule."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from bad_input import INF, NAN, Bad, shown

from steps_core import (
    AdamStep,
    ArgumentError,
    ArgumentTypeError,
    CenteringStep,
    ChainedStep,
    ConstantSchedule,
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
    WarmupSchedule,
    WeightDecayStep,
    graph,
)

Broken = tuple[Any, type[Exception], str]


def by_type(rule: str, *values: Any) -> list[Broken]:
    """Return values of a wrong type, and the rule that the error must name."""
    return [(value, ArgumentTypeError, rule) for value in values]


def by_value(rule: str, *values: Any) -> list[Broken]:
    """Return values of the right type that are not allowed, and the rule."""
    return [(value, ArgumentError, rule) for value in values]


NO_NUMBER = ["1.0", True, [1.0], 1j, np.asarray(1.0), {}]
NUMBER = [*by_type("must be a number", *NO_NUMBER), *by_value("be a number other than NaN", NAN)]
NUMBER += by_value("fit a double", 10**400)
GIVEN = [*NUMBER, *by_type("must be a number", None)]
RATE = by_type("must be a finite number or a schedule", *NO_NUMBER, None, AdamStep)
TEXTS = 'be "auto", an int or a tuple of ints'

# What breaks each kind of argument.
RULES: dict[str, list[Broken]] = {
    "rate": [*RATE, *by_value("be a finite number", INF, -INF), *by_value("other than NaN", NAN)],
    "finite": [*GIVEN, *by_value("must be a finite number", INF, -INF)],
    "decay": [*GIVEN, *by_value("must be at least 0 and below 1", -0.1, 1, 1.0, 1.5, INF)],
    "amount": [*GIVEN, *by_value("must be a finite number of at least 0", -1e-9, INF, -INF)],
    "floor": [*NUMBER, *by_value("must be a finite number of at least 0", -1e-9, INF)],
    "graph": by_type("must be a Graph", None, "graph", len, AdamStep(), {}),
    "signature": [
        *by_type("must be a text such as", 1, {}),
        *by_value("must be a text such as", "gradients", ["gradients"], [["a"], ["b"]]),
        *by_value("the placeholders of the graph", "(gradients)", [["g", "w"]]),
    ],
    "overrides": by_type("must be a mapping of names to values", 1, "a", ["a"]),
    "threshold": [*NUMBER, *by_value("must be a number of at least 0", -1.0, -INF)],
    "positive": [*GIVEN, *by_value("must be a finite number above 0", 0, -1.0, INF)],
    "bound": NUMBER,
    "flag": by_type("must be True or False", 1, 0.0, "yes", None, np.True_),
    "stop": by_type("must be True or False", 1, 0.0, "yes"),
    "axis": [
        *by_type(f"must {TEXTS}", True, 1.5, None, (0, 1.5), (True,), {0}),
        *by_value(f"must {TEXTS}", "first"),
        *by_value("must name at least one axis, and each once", (), (0, 0)),
    ],
    "length": [
        *by_type("must be a whole number of at least 1", 1.5, 3.0, "3", True, None, NAN),
        *by_value("must be a whole number of at least 1", 0, -1),
    ],
    "variant": [
        *by_type("must be a text", 1, True, ("global",)),
        *by_value("must be one of 'per-parameter', 'per-weight'", "globl", "", "GLOBAL"),
    ],
    "constraint": [
        *by_type("must be a text", 1, None, ("box",)),
        *by_value("must be one of 'nonnegative', 'box', 'norm-ball'", "boxes", ""),
    ],
    "metadata": by_type("must be a mapping", 1, "text", [("a", 1)]),
    "step": by_type("must be a step", 1, "AdamStep", AdamStep, len, np.ones(1), {}),
    "inner": by_type("must be a step", 1, "AdamStep", AdamStep, len, np.ones(1), {}, None),
    "mask": by_type("must be a tree of booleans or a function", 1, "kernel", np.ones(1), bool),
}
RULES["factor"] = [broken for broken in RULES["rate"] if broken[0] is not None]

OWN_RATE = {"learning_rate": "rate", "weight_decay": "amount"}
PORTS = {"set_breakpoint": "stop", "metadata": "metadata"}

# A class, options that are right, and the kind of each argument to be spoilt.
ARGUMENTS: list[tuple[type, dict[str, Any], dict[str, str]]] = [
    (
        GradientClippingStep,
        {},
        {"variant": "variant", "threshold": "threshold", "epsilon": "floor", "unit_axis": "axis", **PORTS},
    ),
    (
        AdamStep,
        {},
        {
            **OWN_RATE,
            "beta1": "decay",
            "beta2": "decay",
            "epsilon": "amount",
            "epsilon_root": "amount",
            "amsgrad": "flag",
            "nesterov": "flag",
            **PORTS,
        },
    ),
    (
        RMSPropStep,
        {},
        {
            **OWN_RATE,
            "decay": "decay",
            "epsilon": "amount",
            "epsilon_inside": "flag",
            "centered": "flag",
            "momentum": "decay",
            "nesterov": "flag",
            **PORTS,
        },
    ),
    (SGDStep, {}, {**OWN_RATE, "momentum": "decay", "nesterov": "flag", **PORTS}),
    (MomentumStep, {}, {"decay": "decay", "nesterov": "flag", **PORTS}),
    (ScalingStep, {}, {"scale": "factor", "learning_rate": "factor"}),
    (ScalingStep, {"scale": 1.0}, PORTS),
    (WeightDecayStep, {}, {"weight_decay": "amount", **PORTS}),
    (CenteringStep, {}, {"unit_axis": "axis", **PORTS}),
    (MonitorStep, {}, PORTS),
    (SkipNonFiniteStep, {"inner": AdamStep()}, {"inner": "inner", **PORTS}),
    (MaskedStep, {"inner": AdamStep(), "mask": True}, {"inner": "inner", "mask": "mask", **PORTS}),
    (
        CustomStep,
        {"graph": graph(lambda g: -g)},
        {"graph": "graph", "graph_signature": "signature", "overrides": "overrides", **PORTS},
    ),
    (ConstraintStep, {"constraint": "nonnegative"}, {"constraint": "constraint", **PORTS}),
    (ConstraintStep, {"constraint": "box", "lower": 0.0}, {"lower": "bound", "upper": "bound"}),
    (ConstraintStep, {"constraint": "norm-ball"}, {"radius": "positive", "unit_axis": "axis"}),
    (ConstraintStep, {"constraint": "unit-norm"}, {"unit_axis": "axis"}),
    (ChainedStep, {}, {"step1": "step", "step9": "step", "step0": "step", **PORTS}),
    (ConstantSchedule, {"value": 1.0}, {"value": "finite"}),
    (
        ExponentialSchedule,
        {"initial": 1.0, "decay_rate": 0.5, "decay_steps": 5},
        {"initial": "finite", "decay_rate": "positive", "decay_steps": "length"},
    ),
    (
        LinearSchedule,
        {"initial": 1.0, "final": 0.0, "steps": 5},
        {"initial": "finite", "final": "finite", "steps": "length"},
    ),
    (
        CosineSchedule,
        {"initial": 1.0, "steps": 5},
        {"initial": "finite", "final": "finite", "steps": "length"},
    ),
    (
        WarmupSchedule,
        {"steps": 5, "then": 1.0},
        {"steps": "length", "then": "rate", "initial": "finite"},
    ),
]


def rows() -> Iterator[Bad]:
    """Yield a row for each argument and each value that breaks its rule."""
    for kind, options, arguments in ARGUMENTS:
        for argument, rule in arguments.items():
            for broken in RULES[rule]:
                yield _row(
                    kind, argument, broken, lambda value, k=kind, o=options, a=argument: k(**{**o, a: value})
                )
    for broken in RULES["step"]:
        yield _row(ChainedStep, "step2", broken, lambda value: ChainedStep(AdamStep(), value))
    for broken in RULES["length"]:
        yield _row(PiecewiseSchedule, "boundaries", broken, lambda value: PiecewiseSchedule([value], [1, 2]))
    for broken in RULES["finite"]:
        yield _row(PiecewiseSchedule, "values", broken, lambda value: PiecewiseSchedule([1], [1, value]))


def _row(kind: type, argument: str, broken: Broken, make: Callable[[Any], Any]) -> Bad:
    value, error, rule = broken
    what = f"{kind.__name__}({argument}={str(value)[:20]})"
    return Bad(what, lambda: make(value), error, argument, (argument, rule, shown(value)))


ROWS = list(rows())
