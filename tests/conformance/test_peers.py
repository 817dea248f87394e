"""Other libraries as targets: what they declare, and the page that is made of it."""

from importlib import import_module
from pathlib import Path

import pytest
from steps_conformance.case import load_cases
from steps_conformance.descriptions import chain, description, tunable
from steps_conformance.expectations.files import load_expectations
from steps_conformance.requirements import load_requirements
from steps_conformance.targets.peers.flat import arrays_of, like
from steps_conformance.targets.peers.page import DATA, PAGE, main, peers_page, standing
from steps_conformance.targets.peers.reading import DEFAULTS, options_of, slots
from steps_conformance.targets.peers.summary import (
    KINDS,
    PEERS,
    Counts,
    from_json,
    kind_and_reason,
    to_json,
)
from steps_conformance.targets.protocol import CAPABILITIES, NotExpressible, Refusal

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def summaries():
    return from_json((DOCS / DATA).read_text(encoding="utf-8"))


def target_of(name):
    return import_module(f"steps_conformance.targets.peers.{name}").target


def test_the_page_is_made_from_the_data_beside_it(summaries):
    assert (DOCS / PAGE).read_text(encoding="utf-8") == peers_page(summaries, load_requirements())


def test_the_data_can_be_written_again(summaries):
    assert to_json(summaries) == (DOCS / DATA).read_text(encoding="utf-8")


def test_the_page_is_made_again_by_the_command(tmp_path):
    (tmp_path / DATA).write_bytes((DOCS / DATA).read_bytes())

    main([str(tmp_path)])

    assert (tmp_path / PAGE).read_bytes() == (DOCS / PAGE).read_bytes()


def test_every_library_is_on_the_page(summaries):
    assert tuple(one.name for one in summaries) == PEERS


@pytest.mark.parametrize("name", PEERS)
def test_the_page_declares_what_the_expectation_file_declares(summaries, name):
    (one,) = [summary for summary in summaries if summary.name == name]
    shown = {(d.id, d.outcome, d.when, f"{d.kind}: {d.reason}", d.report) for d in one.deviations}

    declared = {
        (entry.id, str(entry.outcome), str(entry.when), entry.reason, entry.report)
        for entry in load_expectations([Path(target_of(name).expectations)])
    }

    assert shown == declared


@pytest.mark.parametrize("name", PEERS)
def test_nothing_that_failed_is_undeclared(summaries, name):
    (one,) = [summary for summary in summaries if summary.name == name]

    assert [identity for identity, counts in one.requirements.items() if counts.undeclared] == []
    assert sum(counts.deviates for counts in one.requirements.values()) == sum(
        deviation.cases for deviation in one.deviations
    )


def test_every_requirement_and_case_of_the_data_exists(summaries):
    known = {case.requirement for case in load_cases().values()} | load_cases().keys()

    for one in summaries:
        assert one.requirements.keys() <= load_requirements().keys()
        assert {deviation.id for deviation in one.deviations} <= known


@pytest.mark.parametrize("name", PEERS)
def test_naming_a_target_imports_no_library_and_claims_what_exists(name):
    target = target_of(name)

    assert target.name == name
    assert target.capabilities <= CAPABILITIES.keys()
    assert "state_form" not in target.capabilities


@pytest.mark.parametrize(
    ("counts", "what"),
    [
        (Counts(), "not expressible"),
        (Counts(not_expressible=3), "not expressible"),
        (Counts(holds=2, not_expressible=3), "holds"),
        (Counts(holds=2, deviates=1), "deviates"),
        (Counts(holds=2, deviates=1, undeclared=1), "undeclared"),
    ],
)
def test_one_case_that_deviates_makes_a_requirement_deviate(counts, what):
    assert standing(counts) == what


def test_a_reason_starts_with_its_kind():
    assert kind_and_reason("range: it overflows: twice.") == ("range", "it overflows: twice.")
    with pytest.raises(ValueError, match="must start with one of range, rule"):
        kind_and_reason("it overflows")
    assert next(iter(KINDS)) == "range"


def test_the_defaults_are_those_of_the_steps():
    import steps_core

    for name, options in DEFAULTS.items():
        required = {"inner": steps_core.SGDStep(), "mask": True, "constraint": "nonnegative"}
        either = {"scale": 1.0} if name == "ScalingStep" else {}
        given = {key: value for key, value in required.items() if key in options} | either
        step = getattr(steps_core, name)(**given)
        plain = {key: getattr(step, key) for key in options if key not in given and key != "learning_rate"}
        same = {"per-parameter": "per-weight"}  # spellings are normalised
        assert plain == {key: same.get(options[key], options[key]) for key in plain}, name


@pytest.mark.parametrize(
    "described",
    [
        description("UnknownStep"),
        description("AdamStep", set_breakpoint=True),
        description("AdamStep", learning_rate=tunable(0.1)),
    ],
    ids=["step", "option", "tunable"],
)
def test_what_only_this_project_has_cannot_be_expressed(described):
    with pytest.raises(NotExpressible, match=r"it has no|nothing like|not held in the state"):
        options_of(described)


def test_the_slots_of_a_chain_run_by_number_and_step0_is_the_tenth():
    steps = [description("SGDStep", learning_rate=float(number)) for number in range(1, 12)]
    described = chain(*steps)
    described["options"]["step0"] = described["options"].pop("step10")
    described["options"]["step3"] = None

    assert slots(described) == steps[:2] + steps[3:]


def test_a_flat_list_of_arrays_goes_back_into_the_containers():
    tree = {"b": ["first", None], "a": ("second",)}

    assert arrays_of(tree) == ["first", "second"]
    assert like(tree, [1, 2]) == {"b": [1, None], "a": (2,)}


def test_clipping_functions_are_asked_for_their_refusal_when_they_are_made():
    pytest.importorskip("torch")
    make = target_of("torch").make

    with pytest.raises(Refusal, match="could not convert string to float"):
        make(description("GradientClippingStep", variant="global", threshold="high"))


def test_torch_says_what_it_cannot_express():
    pytest.importorskip("torch")
    make = target_of("torch").make

    for described in (
        description("AdamStep", nesterov=True),
        description("RMSPropStep"),
        description("SGDStep", learning_rate=-1.0),
        description("SGDStep", weight_decay=0.1),
        description("GradientClippingStep", variant="per-weight-relative"),
    ):
        with pytest.raises(NotExpressible, match=r"\w"):
            make(described)


def test_the_update_of_torch_is_read_without_a_rounding_of_weights():
    torch = pytest.importorskip("torch")
    step = target_of("torch").make(description("SGDStep", learning_rate=1e-3))
    gradient = torch.tensor([1e-30, -0.0, 0.0])

    update, _ = step.apply({"w": gradient}, {"w": torch.tensor([1e9, 1.0, 1.0])}, None)

    assert update["w"].tolist() == (-1e-3 * gradient).tolist()
    assert torch.signbit(update["w"]).tolist() == [True, False, True]
    assert gradient.grad is None
