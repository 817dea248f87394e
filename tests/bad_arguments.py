"""Constructor arguments that must be refused: every argument of every step and schedule."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from steps_core import (
    AdamStep,
    ArgumentError,
    ArgumentTypeError,
    CenteringStep,
    ChainedStep,
    ConstantSchedule,
    ConstraintStep,
    CosineSchedule,
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
    UnknownNameError,
    WarmupSchedule,
    WeightDecayStep,
)

NAN, INF = float("nan"), float("inf")


@dataclass(frozen=True)
class Bad:
    """A call that must be refused, and what its error must say."""

    what: str
    call: Callable[[], Any]
    error: type[Exception]
    argument: str
    says: tuple[str, ...]
    path: str | None = None
    slot: str | None = None


def shown(value: Any) -> str:
    """Return how an error shows a value: with its type."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype} (ndarray)"
    if isinstance(value, np.generic):
        return f"({type(value).__name__})"
    return f"{value!r} ({type(value).__name__})"


NO_NUMBER = ["1.0", True, [1.0], 1j, np.asarray(1.0), {}]

# What each kind of argument must be, how the error says so, and what breaks it: by type, and by value.
RULES: dict[str, tuple[str, list[Any], list[Any]]] = {
    "rate": ("finite number", [*NO_NUMBER, None, AdamStep], [NAN, INF, -INF, 10**400]),
    "finite": ("finite number", [*NO_NUMBER, None], [NAN, INF, -INF, 10**400]),
    "decay": ("at least 0 and below 1", [*NO_NUMBER, None], [NAN, -0.1, 1, 1.0, 1.5, INF]),
    "amount": ("at least 0", [*NO_NUMBER, None], [NAN, -1e-9, INF, -INF]),
    "floor": ("at least 0", NO_NUMBER, [NAN, -1e-9, INF]),
    "threshold": ("at least 0", NO_NUMBER, [NAN, -1.0, -INF]),
    "positive": ("above 0", [*NO_NUMBER, None], [NAN, 0, -1.0, INF]),
    "bound": ("a number", NO_NUMBER, [NAN]),
    "flag": ("True or False", [1, 0.0, "yes", None, np.True_], []),
    "stop": ("True or False", [1, 0.0, "yes"], []),
    "axis": ("auto", [True, 1.5, None, (0, 1.5), (True,), {0}], ["first", (), (0, 0)]),
    "length": ("whole number of at least 1", [1.5, 3.0, "3", True, None, NAN], [0, -1]),
    "variant": ("", [1, True, ("global",)], ["globl", "", "GLOBAL"]),
    "constraint": ("", [1, None, ("box",)], ["boxes", ""]),
    "mapping": ("be a mapping", [1, "text", [("a", 1)]], []),
    "inner": ("be a step", [None, 1, "AdamStep", AdamStep, len, np.ones(1), {}], []),
    "mask": ("", [None, 1, "kernel", np.ones(1), bool], []),
}

OWN_RATE = {"learning_rate": "rate", "weight_decay": "amount"}
ARGUMENTS: list[tuple[type, dict[str, Any], dict[str, str]]] = [
    (
        GradientClippingStep,
        {},
        {"variant": "variant", "threshold": "threshold", "epsilon": "floor", "unit_axis": "axis"},
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
        },
    ),
    (SGDStep, {}, {**OWN_RATE, "momentum": "decay", "nesterov": "flag"}),
    (MomentumStep, {}, {"decay": "decay", "nesterov": "flag"}),
    (WeightDecayStep, {}, {"weight_decay": "amount"}),
    (CenteringStep, {}, {"unit_axis": "axis"}),
    (MonitorStep, {}, {}),
    (SkipNonFiniteStep, {"inner": AdamStep()}, {"inner": "inner"}),
    (MaskedStep, {"inner": AdamStep(), "mask": True}, {"inner": "inner", "mask": "mask"}),
    (ConstraintStep, {"constraint": "nonnegative"}, {"constraint": "constraint"}),
    (ConstraintStep, {"constraint": "box", "lower": 0.0}, {"lower": "bound", "upper": "bound"}),
    (ConstraintStep, {"constraint": "norm-ball"}, {"radius": "positive", "unit_axis": "axis"}),
    (ConstraintStep, {"constraint": "unit-norm"}, {"unit_axis": "axis"}),
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
    (WarmupSchedule, {"steps": 5, "then": 1.0}, {"steps": "length", "then": "rate", "initial": "finite"}),
]

ONE_PIECE = {"boundaries": [1], "values": [1.0, 0.5]}


def by_rule() -> Iterator[Bad]:
    """Yield a row for each argument and each value that breaks its rule."""
    for kind, options, arguments in ARGUMENTS:
        ports = (
            {} if kind.__name__.endswith("Schedule") else {"set_breakpoint": "stop", "metadata": "mapping"}
        )
        for argument, rule in {**arguments, **ports}.items():
            yield from _rows(kind, options, argument, rule)
    for argument in ("scale", "learning_rate"):
        rule, of_type, of_value = RULES["rate"]
        RULES["factor"] = (rule, [value for value in of_type if value is not None], of_value)
        yield from _rows(ScalingStep, {}, argument, "factor")
    yield from _rows(ScalingStep, {"scale": 1.0}, "set_breakpoint", "stop")
    yield from _rows(ScalingStep, {"scale": 1.0}, "metadata", "mapping")
    yield from _rows(ChainedStep, {}, "set_breakpoint", "stop")
    yield from _rows(ChainedStep, {}, "metadata", "mapping")
    for entry in RULES["inner"][1]:
        if entry is not None:
            for slot in ("step1", "step0"):
                yield from _rows(ChainedStep, {}, slot, "inner", [entry])
            yield _row(
                ChainedStep,
                "step2",
                entry,
                ArgumentTypeError,
                "be a step",
                lambda e=entry: ChainedStep(AdamStep(), e),
            )
    for entry, rule in ((1.5, "length"), (True, "length"), ("1", "length"), (0, "length")):
        options = {**ONE_PIECE, "boundaries": [entry]}
        error = ArgumentError if entry == 0 and entry is not False else ArgumentTypeError
        yield _row(
            PiecewiseSchedule,
            "boundaries",
            entry,
            error,
            RULES[rule][0],
            lambda o=options: PiecewiseSchedule(**o),
        )
    for entry, error in (
        ("1", ArgumentTypeError),
        (None, ArgumentTypeError),
        (NAN, ArgumentError),
        (INF, ArgumentError),
    ):
        options = {**ONE_PIECE, "values": [1.0, entry]}
        yield _row(
            PiecewiseSchedule, "values", entry, error, "number", lambda o=options: PiecewiseSchedule(**o)
        )


def _rows(
    kind: type, options: dict, argument: str, rule: str, only: list[Any] | None = None
) -> Iterator[Bad]:
    says, of_type, of_value = RULES[rule]
    for error, values in ((ArgumentTypeError, of_type), (ArgumentError, of_value)):
        for value in values if only is None else only if error is ArgumentTypeError else []:
            # NaN, an infinite rate and an axis named twice are refused by a narrower rule than the argument's.
            fragment = (
                says
                if error is ArgumentTypeError and rule in ("rate", "flag", "stop", "mapping", "inner")
                else ""
            )
            yield _row(
                kind, argument, value, error, fragment, lambda v=value: kind(**{**options, argument: v})
            )


def _row(kind: type, argument: str, value: Any, error: type, says: str, call: Callable[[], Any]) -> Bad:
    what = f"{kind.__name__}({argument}={value if not isinstance(value, int) else str(value)[:9]!s})"
    return Bad(what, call, error, argument, (argument, says, _shown_short(value)))


def _shown_short(value: Any) -> str:
    text = shown(value)
    return text if len(text) < 80 else text[:60]


TOGETHER: list[Bad] = [
    Bad(
        "ScalingStep()",
        ScalingStep,
        ArgumentError,
        "scale",
        ("exactly one of scale and learning_rate", "scale=None (NoneType)", "pass ScalingStep(scale=...) or"),
    ),
    Bad(
        "ScalingStep of both",
        lambda: ScalingStep(scale=1.0, learning_rate=2.0),
        ArgumentError,
        "scale",
        ("exactly one of", "scale=1.0 (float)", "learning_rate=2.0 (float)"),
    ),
    Bad(
        "SGD nesterov without momentum",
        lambda: SGDStep(nesterov=True),
        ArgumentError,
        "momentum",
        ("momentum must be above 0 with nesterov=True", "0.0 (float)", "pass momentum=0.9"),
    ),
    Bad(
        "RMSProp nesterov without momentum",
        lambda: RMSPropStep(nesterov=True),
        ArgumentError,
        "momentum",
        ("momentum must be above 0 with nesterov=True", "0.0 (float)", "pass momentum=0.9"),
    ),
    Bad(
        "box without bounds",
        lambda: ConstraintStep("box"),
        ArgumentError,
        "lower",
        ("lower must be given, or upper", "None (NoneType)", 'pass ConstraintStep("box", lower=-1.0'),
    ),
    *(
        Bad(
            f"box from {lower} to {upper}",
            lambda lower=lower, upper=upper: ConstraintStep("box", lower=lower, upper=upper),
            ArgumentError,
            "lower",
            ("lower must be at most upper=", shown(lower), "exchange the bounds"),
        )
        for lower, upper in ((1.0, -1.0), (INF, INF), (-INF, -INF), (INF, None))
    ),
    *(
        Bad(
            f"{constraint} with {option}",
            lambda c=constraint, o=option, v=value: ConstraintStep(c, **{o: v}),
            ArgumentError,
            option,
            (f"{option} must be left out with '{constraint}'", shown(value), f"leave {option} out"),
        )
        for constraint, option, value in (
            ("nonnegative", "lower", 1.0),
            ("nonnegative", "upper", 1.0),
            ("nonnegative", "radius", 2.0),
            ("nonnegative", "unit_axis", 0),
            ("norm-ball", "lower", 0.0),
            ("norm-ball", "upper", 0.0),
            ("unit-norm", "radius", 2.0),
            ("unit-norm", "upper", 2.0),
        )
    ),
    Bad(
        "box with radius",
        lambda: ConstraintStep("box", lower=0.0, radius=2.0),
        ArgumentError,
        "radius",
        ("radius must be left out with 'box'", "norm-ball", "2.0 (float)"),
    ),
    Bad(
        "steps by position and by name",
        lambda: ChainedStep(AdamStep(), step2=AdamStep()),
        ArgumentError,
        "steps",
        ("by position or by name", "1 by position", "step2 by name", "give all steps by position"),
    ),
    *(
        Bad(
            f"a slot named {slot}",
            lambda s=slot: ChainedStep(**{s: AdamStep()}),
            UnknownNameError,
            slot,
            (
                f"{slot} is not a slot of ChainedStep",
                "step1, step2",
                "step9, step0",
                "give the steps by position",
            ),
        )
        for slot in ("step10", "step", "steps", "first", "set_breakpoints")
    ),
    Bad(
        "a constraint before another step",
        lambda: ChainedStep(step3=ConstraintStep("nonnegative"), step0=AdamStep()),
        ArgumentError,
        "step3",
        ("step3 must be the last step", "step0 would undo", "(ConstraintStep)", "move step3 to the end"),
        slot="step3",
    ),
    *(
        Bad(
            f"pieces at {boundaries}",
            lambda b=boundaries: PiecewiseSchedule(b, [1.0, 2.0, 3.0]),
            ArgumentError,
            "boundaries",
            ("boundaries must increase", "(tuple)", "sort them"),
        )
        for boundaries in ([5, 3], [3, 3])
    ),
    Bad(
        "too few pieces",
        lambda: PiecewiseSchedule([3, 5], [1.0, 2.0]),
        ArgumentError,
        "values",
        ("values must have 3 entries, one more than boundaries", "(1.0, 2.0) (tuple)", "one value per piece"),
    ),
    *(
        Bad(
            f"pieces given as {value!r}",
            lambda v=value, a=argument: PiecewiseSchedule(**{**ONE_PIECE, a: v}),
            ArgumentTypeError,
            argument,
            (f"{argument} must be a list or tuple", shown(value), "pass a list"),
        )
        for argument in ("boundaries", "values")
        for value in (None, 3, "12", {3})
    ),
    *(
        Bad(
            f"a mask of {mask!r}",
            lambda m=mask: MaskedStep(AdamStep(), m),
            ArgumentTypeError,
            path,
            (f"{path} must be True or False", shown(entry), "pass a bool"),
        )
        for mask, path, entry in (({"a": 1}, "mask['a']", 1), ([True, None], "mask[1]", None))
    ),
]

ROWS: list[Bad] = [*by_rule(), *TOGETHER]
