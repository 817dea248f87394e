"""Measuring accuracy: errors are counted right, and a result that is a little wrong shows."""

import time
from fractions import Fraction

import numpy as np
import pytest
import steps_backends
from steps_backends import host_array
from steps_conformance.accuracy.inputs import norm_of, pattern, repeated
from steps_conformance.accuracy.measures import measures_of
from steps_conformance.accuracy.measuring import Row, largest_error, measure
from steps_conformance.accuracy.table import groups, markdown_table
from steps_conformance.accuracy.taking import MeasuringError, take
from steps_conformance.cli import app
from steps_conformance.run import Run
from steps_conformance.targets.protocol import Refusal
from steps_conformance.targets.steps_core import target
from typer.testing import CliRunner

NORMS = ("CLIP-LAYER-004", "CLIP-REL-016", "CLIP-GLOBAL-011")


class Off:
    """A target whose results are those of another, off by a factor."""

    def __init__(self, factor):
        self.factor = factor
        self.capabilities = target.capabilities

    def make(self, description):
        self.step = target.make(description)
        return self

    def init(self, weights):
        return self.step.init(weights)

    def apply(self, gradients, weights, state):
        result, state = self.step.apply(gradients, weights, state)
        if isinstance(result, list):
            return [leaf * np.float32(self.factor) for leaf in result], state
        return result * np.asarray(self.factor, result.real.dtype), state


def norms(run, largest):
    return list(measure(run, measures_of(NORMS, largest)))


def test_an_error_counts_in_ulps_of_the_exact_value():
    got = host_array([1.0 + 2**-22, -2.0])

    assert largest_error(got, [Fraction(1), Fraction(-2)]) == 2.0
    assert largest_error(got, [Fraction(1) + Fraction(1, 2**22), Fraction(-2)]) == 0.0


@pytest.mark.parametrize("kind", ["mixed", "equal"])
def test_the_norm_of_a_repeated_pattern_is_exact(kind):
    values = pattern("float32", kind, seed=1)
    vector = np.asarray(repeated(values, "float32", 2500).values)

    assert float(norm_of(values, 2500)) == pytest.approx(float(np.linalg.norm(vector)), rel=1e-14)


def test_norms_are_within_four_ulps_up_to_ten_thousand_elements():
    rows = norms(Run(steps_backends.get("numpy"), target), 10_000)

    assert {row.requirement for row in rows} == set(NORMS)
    assert max(row.ulps for row in rows if row.ulps is not None and not in_rows_of_equal_numbers(row)) <= 4
    assert max(row.ulps for row in rows if row.ulps is not None and in_rows_of_equal_numbers(row)) <= 64


def in_rows_of_equal_numbers(row):
    """NumPy adds rows one after another, and equal ones are rounded the same way: CLIP-REL-016."""
    return row.requirement == "CLIP-REL-016" and row.name.endswith("equal elements")


def test_results_that_are_off_by_a_millionth_show():
    rows = norms(Run(steps_backends.get("numpy"), Off(1 + 1e-6)), 10)

    assert all(row.ulps > 4 for row in rows if row.dtype in ("float32", "float64", "complex64"))


def test_a_dtype_that_is_not_there_is_not_measured():
    rows = norms(Run(steps_backends.get("array-api-strict"), target), 1)

    missing = [row for row in rows if row.dtype == "bfloat16"]
    assert missing
    assert all(row.ulps is None and "does not declare bfloat16" in row.reason for row in missing)


class Refusing:
    """A target that has no step at all."""

    def make(self, description):
        raise Refusal("KeyError", f"no step is called {description['step']}")


def test_a_step_that_the_target_refuses_is_not_measured():
    rows = norms(Run(steps_backends.get("numpy"), Refusing()), 1)

    assert rows
    assert all(
        row.ulps is None
        and row.reason == "the target refused: KeyError: no step is called GradientClippingStep"
        for row in rows
    )


def test_the_table_has_a_column_for_each_backend():
    rows = [
        Row("numpy", "ADAM-001", "Adam, calls", "float32", 1000, 1.5),
        Row("jax", "ADAM-001", "Adam, calls", "float32", 1000, None, "why"),
    ]

    assert "| ADAM-001 | Adam, calls | float32 | 1,000 | 1.50 | - |" in markdown_table(rows)


def test_measures_of_one_thing_stand_together_by_dtype_and_size():
    def row(name, dtype, size, ulps, backend="numpy", reason=""):
        return Row(backend, f"{name.upper()}-001", name, dtype, size, ulps, reason)

    rows = [
        row("a", "float16", 10, 1.0),
        row("b", "float16", 1, None, reason="no b"),
        row("a", "float32", 1, 2.0),
        row("a", "float16", 1, 3.0),
        row("a", "float16", 1, None, "jax", "no a there"),
    ]

    first, second = groups(rows)

    assert first.lines == [
        ["float16", "1", "3.00", "-"],
        ["float16", "10", "1.00", ""],
        ["float32", "1", "2.00", ""],
    ]
    assert first.reasons == ["no a there"]
    assert (second.name, second.lines, second.reasons) == ("b", [], ["no b"])


def test_a_process_that_fails_is_an_error():
    with pytest.raises(MeasuringError, match="no_such_module"):
        list(take("numpy", "no_such_module:target", 1, NORMS))


def test_measuring_that_nobody_follows_any_more_ends_at_once(planted):
    # the second measure of this target takes ten minutes
    rows = take("numpy", "planted_suite.stalling_target:target", 1, NORMS)
    next(rows)
    started = time.monotonic()

    rows.close()

    assert time.monotonic() - started < 30


def test_a_measure_that_takes_too_long_is_an_error_and_what_was_measured_before_stays(planted):
    rows = take("numpy", "planted_suite.stalling_target:target", 1, NORMS, longest_seconds=10)

    assert next(rows).backend == "numpy"
    with pytest.raises(MeasuringError, match=r"^a measure took longer than 10 s$"):
        list(rows)


def test_the_command_adds_its_table_to_a_report(tmp_path):
    (tmp_path / "report.md").write_text("# Conformance\n")
    result = CliRunner().invoke(
        app,
        [
            *("accuracy", "--backend", "numpy", "--largest", "1", "--id", "CLIP-LAYER-004"),
            *("--report", str(tmp_path)),
        ],
    )

    assert result.exit_code == 0, result.output
    text = (tmp_path / "report.md").read_text()
    assert text.startswith("# Conformance\n\n## Accuracy")
    assert "| CLIP-LAYER-004 | norm of a leaf | float32 | 1 |" in text
