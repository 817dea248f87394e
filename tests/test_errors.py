"""One table of bad input: each is refused with argument, rule, value, type, way out, and the place."""

import pickle
import re
from dataclasses import fields

import bad_arguments
import bad_combinations
import bad_states
import bad_trees
import pytest
from bad_input import Bad

from steps_core import (
    AdamStep,
    ArgumentError,
    ArgumentTypeError,
    LeafTypeError,
    StateError,
    StepsError,
    TreeMismatchError,
    UnknownNameError,
)
from steps_core.errors import shown
from steps_core.schedules import SCHEDULES
from steps_core.steps import STEPS

ROWS = [*bad_arguments.ROWS, *bad_combinations.ROWS, *bad_trees.ROWS, *bad_states.ROWS]


def assert_refused(row: Bad) -> None:
    """Fail unless a row is refused with the class, text and parts that it names."""
    with pytest.raises(row.error, match=re.escape(row.says[0])) as caught:
        row.call()
    error, text = caught.value, str(caught.value)
    assert type(error) is row.error
    for fragment in row.says:
        assert fragment in text, f"{fragment!r} is missing in {text!r}"
    assert error.argument == row.argument
    assert error.path == row.path
    assert error.slot == row.slot
    assert error.rule
    assert error.way_out and error.way_out in text


@pytest.mark.parametrize("row", ROWS, ids=[row.what for row in ROWS])
def test_bad_input_is_refused(row: Bad) -> None:
    """By its own class, with all its parts in the text and as attributes."""
    assert_refused(row)


def test_libraries_are_not_mixed() -> None:
    """Nor are sparse, whole-number or recording tensors taken."""
    pytest.importorskip("torch")
    for row in bad_trees.mixed_libraries():
        assert_refused(row)


def test_every_option_of_every_step_and_schedule_stands_in_the_table() -> None:
    """A new option must be added with what it refuses."""
    listed = {row.what.split("=")[0] for row in bad_arguments.ROWS}
    for name, kind in {**STEPS, **SCHEDULES}.items():
        for field in fields(kind):
            if field.name != "slots":
                assert f"{name}({field.name}" in listed


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (ArgumentError, ValueError),
        (ArgumentTypeError, TypeError),
        (UnknownNameError, KeyError),
        (LeafTypeError, TypeError),
        (TreeMismatchError, ValueError),
        (StateError, ValueError),
    ],
)
def test_every_error_is_ours_and_one_of_pythons(kind: type[StepsError], builtin: type[Exception]) -> None:
    """Whoever catches ValueError, TypeError or KeyError catches them; the text is shown as it is."""
    error = kind("a text", argument="beta1")
    assert isinstance(error, StepsError) and isinstance(error, builtin)
    assert str(error) == "a text"
    assert (error.argument, error.rule, error.value, error.way_out, error.path, error.slot) == (
        "beta1",
        *[None] * 5,
    )


def test_a_long_value_is_cut_short() -> None:
    """An error text stays readable; the value itself is kept."""
    with pytest.raises(
        ArgumentTypeError, match=r"beta1 must be a number, got \[0, 0, .*\.\.\. \(list\)"
    ) as caught:
        AdamStep(beta1=[0] * 1000)
    assert len(str(caught.value)) < 200
    assert caught.value.value == [0] * 1000
    assert shown("x" * 78) == f"{'x' * 78!r} (str)"


def test_the_value_and_the_rule_are_kept_as_parts() -> None:
    """A program need not read the text."""
    with pytest.raises(ArgumentError, match=r"beta1 must be at least 0 and below 1, got 2\.0") as caught:
        AdamStep(beta1=2.0)
    error = caught.value
    assert (error.argument, error.rule, error.value) == ("beta1", "be at least 0 and below 1", 2.0)
    assert error.way_out == "pass a number such as 0.9"


def test_an_error_survives_pickling() -> None:
    """As it must to leave a worker process."""
    with pytest.raises(ArgumentError, match="beta1") as caught:
        AdamStep(beta1=2.0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.argument == "beta1"
