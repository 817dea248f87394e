"""What a case gets: steps of the target, refusals, and mistakes of cases that are found on every backend."""

import pytest
import steps_backends
from steps_backends import host_array
from steps_conformance.case import Case
from steps_conformance.compare import Mismatch
from steps_conformance.descriptions import chain, description, schedule
from steps_conformance.run import CaseMistakeError, Run
from steps_conformance.targets.protocol import Refusal

NUMPY = steps_backends.get("numpy")


def case_with(dtypes=(), needs=()):
    return Case("DEMO-RUN-001/demo", "DEMO-RUN-001", "demo", print, {}, frozenset(dtypes), frozenset(needs))


@pytest.fixture
def run(planted):
    return Run(NUMPY, planted.target)


def test_arrays_are_made_and_read(run):
    array = run.array([[1, 2]], "float64")

    assert NUMPY.holds(array)
    assert run.read({"a": array, "b": None}) == {"a": host_array([[1.0, 2.0]], "float64"), "b": None}


def test_reading_what_is_no_array_is_a_mismatch(run):
    with pytest.raises(Mismatch, match=r"\['a'\] must be an array of numpy, got builtins.float: 1.0"):
        run.read({"a": 1.0})


def test_a_step_is_made_and_applied(run):
    step = run.step("IdentityStep")
    array = run.array([1.0])

    processed, state = step.apply(array, state=step.init(array))

    assert run.read(processed) == host_array([1.0])
    assert state == {}
    assert step.description == {"step": "IdentityStep", "options": {}}


def test_a_case_must_declare_its_dtypes(planted):
    declared = Run(NUMPY, planted.target, case_with(dtypes=("float16",)))

    declared.array([1.0], "float16")
    declared.array([1.0])
    declared.array([1], "int32")
    with pytest.raises(
        CaseMistakeError, match=r'makes an array of float64; declare it: dtypes=\("float64",\)'
    ):
        declared.array([1.0], "float64")


def test_a_case_must_declare_what_it_needs(planted):
    declared = Run(NUMPY, planted.target, case_with())

    with pytest.raises(CaseMistakeError, match=r'uses negates; declare it: needs=\{"negates"\}'):
        declared.negates(description("IdentityStep"))


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("apply_updates", (None, None)),
        ("save_state", ({}, "file")),
        ("load_state", ("file", {})),
        ("negates", ({},)),
        ("check_end_to_end", ({},)),
        ("describe", ({},)),
    ],
)
def test_what_the_target_does_not_claim_is_not_called(run, method, arguments):
    with pytest.raises(CaseMistakeError, match="target planted does not claim"):
        getattr(run, method)(*arguments)


def test_the_right_refusal_is_returned(run):
    refusal = run.refused("KeyError", "UnknownStep", saying=("no step", "'UnknownStep'"))

    assert refusal.message == "no step is called 'UnknownStep'"


def test_no_refusal_is_a_mismatch(run):
    with pytest.raises(Mismatch, match=r"must be refused with a ValueError, but gave .*Subject"):
        run.refused("ValueError", "IdentityStep")


def test_a_refusal_of_another_kind_is_a_mismatch(run):
    with pytest.raises(
        Mismatch, match="must be refused with a ValueError, was refused with a KeyError: no step"
    ):
        run.refused("ValueError", "UnknownStep")


def test_a_refusal_that_says_too_little_is_a_mismatch(run):
    with pytest.raises(Mismatch, match=r"the refusal must say 'way out', it says: no step is called"):
        run.refused("KeyError", "UnknownStep", saying=("no step", "way out"))


def test_another_exception_is_no_refusal(run):
    with pytest.raises(ZeroDivisionError, match="planted"):
        run.refuses(lambda: run.step("RaisingStep").apply(run.array([1.0])), kind="ValueError")


def test_a_text_in_place_of_texts_is_a_mistake(run):
    with pytest.raises(CaseMistakeError, match="saying a tuple"):
        run.refuses(lambda: None, kind="ValueError", saying="word")
    with pytest.raises(CaseMistakeError, match="kind must be one of"):
        run.refuses(lambda: None, kind="OSError")


def test_a_refusal_has_one_of_three_kinds():
    with pytest.raises(
        ValueError, match="kind must be one of ValueError, TypeError, KeyError, got 'OSError'"
    ):
        Refusal("OSError", "text")


def test_options_become_json():
    described = chain(
        description(
            "ScalingStep", scale=schedule("LinearSchedule", initial=0.1, final=float("inf"), steps=3)
        ),
        None,
        description("DemoStep", axes=(0, -1), flag=True, text="a", nothing=None),
    )

    assert described == {
        "step": "ChainedStep",
        "options": {
            "step1": {
                "step": "ScalingStep",
                "options": {
                    "scale": {
                        "schedule": "LinearSchedule",
                        "options": {
                            "initial": {"float": "0x1.999999999999ap-4"},
                            "final": {"float": "inf"},
                            "steps": 3,
                        },
                    }
                },
            },
            "step2": None,
            "step3": {
                "step": "DemoStep",
                "options": {"axes": [0, -1], "flag": True, "text": "a", "nothing": None},
            },
        },
    }


def test_an_option_that_is_no_json_is_refused():
    with pytest.raises(TypeError, match=r"an option must be a number, .* got .*object"):
        description("DemoStep", option=object())
