"""Cases: their ids, and what their decorator refuses."""

import pytest
import steps_backends
from steps_conformance.case import Case, case, load_cases

NUMPY = steps_backends.get("numpy").declaration
STRICT = steps_backends.get("array-api-strict").declaration


def made(function):
    """Return the cases that were registered for a function."""
    return [found for found in load_cases(function.__module__).values() if found.function is function]


def test_an_id_is_made_of_requirement_function_and_values():
    @case("DEMO-ID-001", each={"dtype": ("float16", "float32"), "size": {"one": 1, "many": 1000}})
    def a_name_of_words(run, dtype, size):
        pass

    assert [found.id for found in made(a_name_of_words)] == [
        "DEMO-ID-001/a-name-of-words[float16-one]",
        "DEMO-ID-001/a-name-of-words[float16-many]",
        "DEMO-ID-001/a-name-of-words[float32-one]",
        "DEMO-ID-001/a-name-of-words[float32-many]",
    ]
    assert [found.arguments["size"] for found in made(a_name_of_words)] == [1, 1000, 1, 1000]


def test_dtypes_come_from_parameters_and_from_the_decorator():
    @case("DEMO-ID-002", each={"weight_dtype": ("float64",), "word": ("float16",)}, dtypes=("complex64",))
    def uses_dtypes(run, weight_dtype, word):
        pass

    (found,) = made(uses_dtypes)

    assert found.dtypes == {"float64", "complex64"}


def test_what_is_not_declared_is_unsupported():
    @case("DEMO-ID-003", dtypes=("float16",), needs=("state_files",))
    def needs_much(run):
        pass

    (found,) = made(needs_much)

    assert found.unsupported(NUMPY, {"state_files", "negates"}) is None
    assert found.unsupported(NUMPY, ()) == "the target does not claim state_files"
    assert found.unsupported(STRICT, {"state_files"}) == "array-api-strict does not declare float16"


def test_a_shape_makes_a_label():
    @case("DEMO-ID-004", each={"shape": ((), (3,), (2, 4))})
    def has_shapes(run, shape):
        pass

    assert [found.id.rsplit("[")[-1] for found in made(has_shapes)] == ["scalar]", "3]", "2x4]"]


def test_a_value_without_a_readable_label_is_refused():
    with pytest.raises(ValueError, match="give a mapping of short labels to values"):

        @case("DEMO-ID-005", each={"options": ({"a": 1},)})
        def unreadable(run, options):
            pass


def test_two_cases_of_one_id_are_refused():
    @case("DEMO-ID-006")
    def twice(run):
        pass

    def other():
        @case("DEMO-ID-006")
        def twice(run):
            assert run

    with pytest.raises(ValueError, match="two cases are called DEMO-ID-006/twice; rename"):
        other()


def test_two_values_of_one_label_are_refused():
    with pytest.raises(ValueError, match=r"two cases are called DEMO-ID-007/same\[1\]"):

        @case("DEMO-ID-007", each={"value": (1, "1")})
        def same(run, value):
            pass


@pytest.mark.parametrize("identity", ["demo-001", "DEMO-1", "DEMO", "DEMO-0001", ""])
def test_a_malformed_requirement_id_is_refused(identity):
    with pytest.raises(ValueError, match="a requirement id looks like CLIP-GLOBAL-003, got"):
        case(identity)


def test_parameters_must_fit():
    with pytest.raises(
        TypeError, match=r"wrong must take run and what each names, \(run, dtype\), got \(run, other\)"
    ):

        @case("DEMO-ID-008", each={"dtype": ("float32",)})
        def wrong(run, other):
            pass


def test_unknown_needs_and_dtypes_are_refused():
    with pytest.raises(ValueError, match=r"needs must come from apply_updates, .*, got telepathy"):
        case("DEMO-ID-009", needs=("telepathy",))
    with pytest.raises(ValueError, match=r"dtypes must come from .*, got int32"):
        case("DEMO-ID-009", dtypes=("int32",))
    with pytest.raises(TypeError, match="needs must be a set or tuple of names, got the text 'negates'"):
        case("DEMO-ID-009", needs="negates")


def test_cases_of_the_suite_are_ordered_by_topic():
    found = load_cases()

    topics = [one.topic for one in found.values()]

    assert all(isinstance(one, Case) for one in found.values())
    assert topics == sorted(topics)


def test_cases_of_one_package_do_not_meet_those_of_another(planted):
    assert all(one.requirement.startswith("PLANT-") for one in load_cases("planted_suite.cases").values())
    assert not any(one.requirement.startswith("PLANT-") for one in load_cases().values())
