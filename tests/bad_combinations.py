"""Constructor arguments that must be refused because of each other, or of what they hold."""

from typing import Any

from bad_input import INF, Bad, shown

from steps_core import (
    AdamStep,
    ArgumentError,
    ArgumentTypeError,
    ChainedStep,
    ConstraintStep,
    MaskedStep,
    PiecewiseSchedule,
    RMSPropStep,
    ScalingStep,
    SGDStep,
    UnknownNameError,
)

ONE_PIECE: dict[str, Any] = {"boundaries": [1], "values": [1.0, 0.5]}

ROWS: list[Bad] = [
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
