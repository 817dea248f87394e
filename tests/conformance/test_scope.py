"""What a target does not offer is UNSUPPORTED by its declaration, and by nothing else."""

import inspect
from dataclasses import dataclass, field
from typing import Any

import pytest
import steps_backends
from steps_backends import host_array
from steps_conformance.accuracy.measuring import Measure, measure, start_of
from steps_conformance.case import load_cases
from steps_conformance.descriptions import chain, description
from steps_conformance.execution import execute
from steps_conformance.outcomes import Outcome
from steps_conformance.run import Run
from steps_conformance.targets.host_row import row as host_row
from steps_conformance.targets.scope import SPECIFIED_STEPS, NotOfferedError, Scope, scope_of
from steps_conformance.targets.specified import CHOICES, OPTIONS
from steps_conformance.targets.steps_core import PackageTarget

import steps_core

CLIP_ONLY = Scope(
    ("float32", "float64"),
    ("GradientClippingStep", "ChainedStep"),
    {"GradientClippingStep": {"variant": ["per-layer"], "unit_axis": True}},
)


def test_the_specified_steps_are_those_of_the_package():
    public = {name for name in steps_core.__all__ if name.endswith("Step")} - {"Step"}

    assert public == set(SPECIFIED_STEPS)


def test_the_specified_options_are_those_of_the_package():
    elsewhere = {"steps", "named", "hyper_parameters"}  # the slots of a chain, and Python's way of overrides
    for step, options in OPTIONS.items():
        public = set(inspect.signature(getattr(steps_core, step)).parameters) - elsewhere

        assert public == set(options), step


def test_the_choices_are_those_of_the_package():
    needed = {"box": {"lower": 0.0, "upper": 1.0}, "norm-ball": {"radius": 1.0}}
    for (step, option), values in CHOICES.items():
        make = getattr(steps_core, step)
        for value in values:
            assert make(**{option: value, **needed.get(value, {})})
        with pytest.raises(steps_core.StepsError, match=f"{option} must") as refused:
            make(**{option: "no such value"})

        assert all(f"{value!r}" in str(refused.value) for value in values if value is not None)


WRONG_LACKS = [
    (
        {"GradientClippingStep": {"varient": ["per-layer"]}},
        r"there is no option 'varient' \(str\) of GradientClippingStep; its options .*; did you mean variant",
    ),
    (
        {"GradientClippingStep": {"variant": ["per-wieght"]}},
        r"GradientClippingStep.variant: there is no value 'per-wieght' \(str\); there .*mean per-weight",
    ),
    ({"AdamStep": {1: True}}, r"lacks.AdamStep: there is no option 1 \(int\) of AdamStep; its options are"),
    ({"ChainedStep": {"stepone": True}}, "metadata and the slots step1, step2 and so on"),
    (
        {"AdamStep": ["amsgrad"]},
        r"lacks.AdamStep must be a dict of options, such as .*, got \['amsgrad'\] \(list\)",
    ),
    (["AdamStep"], r"lacks must be a dict of steps, got \['AdamStep'\] \(list\)"),
    ({"AdmaStep": {}}, "got AdmaStep; did you mean AdamStep"),
]


@pytest.mark.parametrize(("lacks", "text"), WRONG_LACKS)
def test_a_lack_that_the_specification_does_not_know_is_refused(lacks, text):
    """Else a misspelt one would leave the very cases to fail that it was to declare."""
    with pytest.raises((ValueError, TypeError), match=text):
        Scope(lacks=lacks)


def test_every_specified_lack_is_taken():
    Scope(lacks={step: dict.fromkeys(options, True) for step, options in OPTIONS.items()})
    Scope(lacks={step: {option: list(values)} for (step, option), values in CHOICES.items()})
    Scope(lacks={"ChainedStep": {"step0": True, "step12": True}})


@pytest.mark.parametrize(
    ("described", "text"),
    [
        (description("AdamStep"), "the target does not offer AdamStep"),
        (chain(description("GradientClippingStep"), description("AdamStep")), "does not offer AdamStep"),
        (
            description("GradientClippingStep", variant="per-layer"),
            "does not offer variant='per-layer' of GradientClippingStep",
        ),
        (
            description("GradientClippingStep", unit_axis=0),
            "does not offer the option unit_axis of GradientClippingStep",
        ),
        (
            chain(description("GradientClippingStep", variant="per-layer")),
            "does not offer variant='per-layer' of GradientClippingStep",
        ),
    ],
)
def test_what_is_not_offered_is_named(described, text):
    with pytest.raises(NotOfferedError, match=text):
        CLIP_ONLY.check(described)


@pytest.mark.parametrize(
    "described",
    [
        description("GradientClippingStep", variant="global"),
        description("GradientClippingStep"),
        chain(description("GradientClippingStep", variant="per-weight")),
        # names that nobody specified are mistakes, and the target has to refuse them itself
        description("NoSuchStep"),
        description("GradientClippingStep", variant="no-such-variant"),
        {"step": ["AdamStep"]},
        None,
    ],
)
def test_what_is_offered_and_what_is_a_mistake_reach_the_target(described):
    CLIP_ONLY.check(described)


def test_a_description_that_is_too_deep_reaches_the_target_too():
    """Whether it is refused is a matter of the target."""
    deep = description("GradientClippingStep")
    for _ in range(5_000):
        deep = {"step": "ChainedStep", "options": {"step1": deep}}

    CLIP_ONLY.check(deep)


def test_a_target_that_says_nothing_offers_everything():
    scope = scope_of(PackageTarget())

    for step in SPECIFIED_STEPS:
        scope.check(description(step))
    assert scope.lacking(steps_backends.LEAF_DTYPES, in_process=True) is None


@dataclass(frozen=True)
class Narrow(PackageTarget):
    """The package, which declares less than it can."""

    scope: Scope = field(default_factory=Scope)


def outcome_of(identity: str, scope: Scope, backend: Any) -> tuple[Outcome, str]:
    result = execute(load_cases()[identity], backend, Narrow("steps_core", scope))
    return result.outcome, result.message


def test_a_case_outside_of_the_scope_is_unsupported_with_its_reason():
    numpy = steps_backends.get("numpy")

    assert outcome_of("CLIP-OPTION-009/state-is-an-empty-dict[per-layer]", CLIP_ONLY, numpy) == (
        Outcome.UNSUPPORTED,
        "the target does not offer variant='per-layer' of GradientClippingStep",
    )
    assert outcome_of("CLIP-WEIGHT-004/signed-zeros[float16]", CLIP_ONLY, numpy) == (
        Outcome.UNSUPPORTED,
        "the target does not offer float16",
    )
    assert outcome_of("CLIP-WEIGHT-004/signed-zeros[float64]", CLIP_ONLY, numpy) == (Outcome.PASS, "")


@pytest.mark.parametrize(
    "identity",
    [
        "CONTRACT-002/inputs-stay-as-they-were[adam]",
        "CONTRACT-007/no-warning[adam]",
        "CONTRACT-008/breakpoint-changes-nothing[adam]",
        "UPDATE-004/inputs-stay[float32]",
    ],
)
def test_a_case_that_would_show_nothing_about_another_process_is_not_passed(identity):
    """There, memory, warnings and the debugger are not ours: such a pass would be empty."""
    elsewhere = Scope(in_process=False)

    outcome, why = outcome_of(identity, elsewhere, host_row)

    assert outcome is Outcome.UNSUPPORTED
    assert why == "the target runs in another process, and this case looks at what one process shares"
    assert outcome_of(identity, Scope(), steps_backends.get("numpy"))[0] is Outcome.PASS


def test_what_is_not_offered_is_not_measured_and_says_so():
    run = Run(host_row, Narrow("steps_core", Scope(("float32",), ("SGDStep",))))

    def needs_adam(run):
        run.step("AdamStep")

    def needs_updates(run):
        Run(host_row, PlainTarget()).apply_updates(None, None)

    def of_values(run):
        return float(len(start_of(run, host_array([[1.0, 2.0], [3.0, 4.0]])).values))

    rows = [
        Measure("A-001", "name", dtype, 1, function)
        for dtype, function in [
            ("float64", of_values),
            ("float32", needs_adam),
            ("float32", needs_updates),
            ("float32", of_values),
        ]
    ]

    assert [(row.ulps, row.reason) for row in measure(run, rows)] == [
        (None, "the target does not offer float64"),
        (None, "the target does not offer AdamStep"),
        (None, "target plain does not claim apply_updates"),
        (4.0, ""),
    ]


class PlainTarget:
    name, capabilities = "plain", frozenset()
