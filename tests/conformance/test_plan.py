"""Which cases are run."""

import pytest
from steps_conformance.case import Case, load_cases
from steps_conformance.plan import SelectionError, selected
from steps_conformance.requirements import load_requirements


def a_case(requirement, name, topic):
    return Case(f"{requirement}/{name}", requirement, topic, print, {}, frozenset(), frozenset())


CASES = {
    case.id: case
    for case in (
        a_case("A-ONE-001", "x", "topic_a"),
        a_case("A-ONE-001", "y[float16]", "topic_a"),
        a_case("A-ONE-002", "x", "topic_a"),
        a_case("B-ONE-001", "x", "topic_b"),
    )
}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, [0, 1, 2, 3]),
        ({"topics": ["topic_b"]}, [3]),
        ({"ids": ["A-ONE-001"]}, [0, 1]),
        ({"ids": ["A-ONE-001/y[float16]"]}, [1]),
        ({"ids": ["A-*"]}, [0, 1, 2]),
        ({"ids": ["A-ONE-001/*"]}, [0, 1]),
        ({"ids": ["A-ONE-002"], "topics": ["topic_b"]}, [2, 3]),
    ],
)
def test_cases_are_selected(asked, found):
    assert list(selected(CASES, **asked)) == [list(CASES)[place] for place in found]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"topics": ["topic_c"]}, "no case has the topic 'topic_c'; there are, for example, topic_"),
        ({"ids": ["A-ONE-003"]}, "no case has the id 'A-ONE-003'; there are, for example, .*A-ONE-00"),
        ({"ids": ["C-*"]}, r"no case has the id 'C-\*'"),
        ({"ids": ["A-ONE"]}, "no case has the id 'A-ONE'"),
    ],
)
def test_what_does_not_exist_is_refused(asked, text):
    with pytest.raises(SelectionError, match=text):
        selected(CASES, **asked)


def test_a_topic_has_one_name_for_requirements_and_cases():
    rules = load_requirements()

    assert {case.id: case.topic for case in load_cases().values()} == {
        case.id: rules[case.requirement].topic for case in load_cases().values()
    }
