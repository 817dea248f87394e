"""Steps as JSON."""

import json
import math
from typing import Any

from ..case import case
from ..compare import Mismatch
from ..descriptions import chain, description, schedule
from ..graph_documents import custom, graph
from ..run import Run
from ..targets.protocol import Description
from .battery import COSINE, STEPS, Entry
from .judging import refuses_as

NEEDS = ("describe",)


def says(run: Run, given: Description, expected: Description) -> None:
    """Require what a step made of one description says of itself."""
    got = run.describe(given)
    if got != expected:
        raise Mismatch(f"expected {json.dumps(expected)}, got {got!r}")


@case("DESCRIBE-001", each={"entry": STEPS}, needs=NEEDS)
def round_trip(run: Run, entry: Entry) -> None:
    """The description of every step."""
    first = run.describe(entry.described)
    says(run, first, first)


@case("DESCRIBE-001", each={"entry": STEPS}, needs=NEEDS)
def nothing_is_lost(run: Run, entry: Entry) -> None:
    """Every option in the table of steps differs from its default, but for spellings."""
    got = run.describe(entry.described)
    given = entry.described["options"]
    expected = {key: value for key, value in given.items() if value != "per-weight"}
    if got["step"] != entry.described["step"] or got["options"].keys() != expected.keys():
        raise Mismatch(f"expected the options {sorted(expected)}, got {got!r}")


STOPPED: dict[str, Description] = {
    "plain": description("MonitorStep", set_breakpoint=True),
    "chain": {
        "step": "ChainedStep",
        "options": {"set_breakpoint": True, "step2": description("MonitorStep")},
    },
    "custom": {"step": "CustomStep", "options": {"set_breakpoint": True, **custom(graph())["options"]}},
}


@case("DESCRIBE-001", each={"given": STOPPED}, needs=NEEDS)
def a_breakpoint_is_not_lost(run: Run, given: Description) -> None:
    """Of a plain step, a chain and a custom step."""
    got = run.describe(given)
    if got["options"].get("set_breakpoint") is not True:
        raise Mismatch(f"expected set_breakpoint to be true, got {got!r}")
    says(run, got, got)


DEFAULTS: dict[str, Description] = {
    "adam": description("AdamStep", learning_rate=1e-3, beta1=0.9, epsilon_root=0.0, amsgrad=False),
    "adam-whole": description("AdamStep", epsilon_root=0, weight_decay=0),
    "clipping": description("GradientClippingStep", variant="per-weight", threshold=1.0, unit_axis="auto"),
    "clipping-whole": description("GradientClippingStep", threshold=1, epsilon=1e-3),
    "rmsprop": description("RMSPropStep", decay=0.9, epsilon_inside=True, momentum=0.0),
    "sgd": description("SGDStep", learning_rate=0.01, nesterov=False),
    "momentum": description("MomentumStep", decay=0.9),
    "decay": description("WeightDecayStep", weight_decay=1e-4),
    "breakpoint": description("MonitorStep", set_breakpoint=False),
    "chain": chain(None, None),
}


@case("DESCRIBE-002", each={"given": DEFAULTS}, needs=NEEDS)
def defaults_are_left_out(run: Run, given: Description) -> None:
    """Nothing but defaults."""
    says(run, given, {"step": given["step"], "options": {}})


FLOATS = {"tenth": 0.1, "third": -1 / 3, "tiny": 5e-324, "huge": 1.7e308, "many-digits": 0.1 + 2.0**-56}


@case("DESCRIBE-003", each={"value": FLOATS}, needs=NEEDS)
def floats(run: Run, value: float) -> None:
    """To the last bit."""
    says(
        run,
        {"step": "ScalingStep", "options": {"scale": {"float": value.hex()}}},
        {"step": "ScalingStep", "options": {"scale": {"float": value.hex()}}},
    )


@case("DESCRIBE-003", needs=NEEDS)
def infinity(run: Run) -> None:
    """A threshold of infinity."""
    says(
        run,
        description("GradientClippingStep", threshold=math.inf),
        {"step": "GradientClippingStep", "options": {"threshold": {"float": "inf"}}},
    )


@case("DESCRIBE-004", needs=NEEDS)
def slots_of_a_chain(run: Run) -> None:
    """Gaps, step0, and a chain inside."""
    adam = {"step": "AdamStep", "options": {}}
    momentum = {"step": "MomentumStep", "options": {}}
    inner = {"step": "ChainedStep", "options": {"step1": momentum, "step2": adam}}
    given = {"step2": momentum, "step5": None, "step9": inner, "step0": adam}
    expected = {key: value for key, value in given.items() if value is not None}
    says(run, {"step": "ChainedStep", "options": given}, {"step": "ChainedStep", "options": expected})


@case("DESCRIBE-005", needs=NEEDS)
def schedules(run: Run) -> None:
    """One with another inside, and the default of an option left out."""
    warm = schedule("WarmupSchedule", steps=5, then=COSINE)
    given = schedule("WarmupSchedule", steps=5, then=COSINE, initial=0.0)
    expected = {"step": "SGDStep", "options": {"learning_rate": warm}}
    says(run, description("SGDStep", learning_rate=given), expected)
    steps = schedule("PiecewiseSchedule", boundaries=(2, 4), values=(0.1, 0.2, 0.3))
    says(run, description("ScalingStep", scale=steps), description("ScalingStep", scale=steps))


SPELLINGS = {"per-parameter": {}, "per-parameter-relative": {"variant": "per-weight-relative"}}


@case("DESCRIBE-006", each={"spelling": SPELLINGS.keys()}, needs=NEEDS)
def old_spelling(run: Run, spelling: str) -> None:
    """Of both variants."""
    expected = {"step": "GradientClippingStep", "options": SPELLINGS[spelling]}
    says(run, description("GradientClippingStep", variant=spelling), expected)


@case("DESCRIBE-006", needs=NEEDS)
def axes_are_whole_numbers(run: Run) -> None:
    """A tuple of axes is a list."""
    given = description("CenteringStep", unit_axis=(0, -1))
    says(run, given, {"step": "CenteringStep", "options": {"unit_axis": [0, -1]}})


@case("DESCRIBE-007", each={"entry": STEPS}, needs=NEEDS)
def survives_json(run: Run, entry: Entry) -> None:
    """Written strictly, so that NaN and infinities would fail."""
    got = run.describe(entry.described)
    again = json.loads(json.dumps(got, allow_nan=False))
    assert again == got, f"{got!r} became {again!r}"


MALFORMED: dict[str, Any] = {
    "no-name": {"options": {}},
    "name-is-a-number": {"step": 3, "options": {}},
    "options-are-a-list": {"step": "AdamStep", "options": ["amsgrad"]},
    "float-is-no-number": {"step": "ScalingStep", "options": {"scale": {"float": "one"}}},
    "float-is-a-float": {"step": "ScalingStep", "options": {"scale": {"float": 1.5}}},
    "unknown-tag": {"step": "ScalingStep", "options": {"scale": {"double": "0x1p0"}}},
    "schedule-for-a-step": {"schedule": "CosineSchedule", "options": {}},
    "text": "AdamStep",
    "nothing": None,
}


@case("DESCRIBE-008", each={"given": MALFORMED})
def malformed(run: Run, given: Any) -> None:
    """Each fault alone."""
    refuses_as(("ValueError", "TypeError", "KeyError"), lambda: run.make(given))
