"""The vectors: their files, their numbers, and that playing them notices what is wrong."""

import json
import math
import re
from fractions import Fraction

import pytest
import steps_backends
from jsonschema import Draft202012Validator
from steps_backends import HostArray, host_array
from steps_conformance.compare import Mismatch
from steps_conformance.descriptions import description
from steps_conformance.requirements import load_requirements
from steps_conformance.run import Run
from steps_conformance.targets.protocol import CAPABILITIES
from steps_conformance.vectors.files import differing_files, folder
from steps_conformance.vectors.model import Expected, Vector, VectorCall, load_vectors, unchanged
from steps_conformance.vectors.numbers import float_of, number_of, text_of
from steps_conformance.vectors.playing import play

FILES = sorted(file for file in folder().glob("*.json") if file.name != "schema.json")


def test_the_oracle_makes_the_shipped_files_byte_for_byte():
    assert differing_files() == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_file_keeps_to_the_schema(file):
    schema = json.loads((folder() / "schema.json").read_text())
    Draft202012Validator.check_schema(schema)

    Draft202012Validator(schema).validate(json.loads(file.read_text()))


def test_the_schema_refuses_a_number_that_is_not_exact_text():
    schema = json.loads((folder() / "schema.json").read_text())
    content = json.loads(FILES[0].read_text())
    content["vectors"][0]["calls"][0]["gradients"] = {"dtype": "float32", "shape": [1], "values": [0.1]}

    assert list(Draft202012Validator(schema).iter_errors(content))


def test_ids_are_unique_and_name_requirements_that_exist():
    listed = [vector for vectors in load_vectors().values() for vector in vectors]

    assert len({vector.id for vector in listed}) == len(listed) > 500
    assert {vector.requirement for vector in listed} <= set(load_requirements())
    assert all(vector.id.startswith(f"{vector.requirement}/v-") for vector in listed)


@pytest.mark.parametrize(
    "value", [1.5, -0.1, 5e-324, 1.7976931348623157e308, 0.0, -0.0, math.inf, -math.inf, 2**-1074 * 3]
)
def test_a_float_comes_back_from_its_text(value):
    back = float_of(text_of(value))

    assert back == value
    assert math.copysign(1, back) == math.copysign(1, value)


def test_a_number_without_end_keeps_106_bits():
    third = number_of(text_of(Fraction(1, 3)))

    assert third != Fraction(1, 3)
    assert abs(third - Fraction(1, 3)) * 3 <= Fraction(1, 2**106)


@pytest.mark.parametrize(
    ("given", "way_out"),
    [
        ("0.5", "; write 0x1p-1"),
        ("0x1.8p+0", "; write 0x3p-1"),
        ("-0X.8P1", "; write -0x1p+0"),
        ("0x1p3", "; write 0x1p+3"),
        ("0", "; write +0"),
        ("-Infinity", "; write -inf"),
        ("9" * 400, ""),
        ("0x.p1", ""),
        ("half", ""),
    ],
)
def test_a_text_that_is_no_number_is_refused_with_the_text_that_is(given, way_out):
    with pytest.raises(
        ValueError, match=rf"a number must look like 0x1p-3.*got '.* \(str\){re.escape(way_out)}$"
    ):
        number_of(given)


@pytest.mark.parametrize(
    ("given", "way_out"), [(0.5, "; write 0x1p-1"), (3, r"; write 0x3p\+0"), (True, ""), (None, ""), ([], "")]
)
def test_what_is_no_text_is_no_number(given, way_out):
    with pytest.raises(TypeError, match=rf'must be a text such as "0x1p-1", got .* \(\w+\){way_out}$'):
        number_of(given)


@pytest.mark.parametrize("given", ["0x1p+999999999999", "0x1p+2000000000", "-0x1p-100001"])
def test_a_number_that_would_fill_the_memory_is_refused(given):
    with pytest.raises(
        ValueError, match=r"exponent of a number must lie between -100,000 and 100,000, got '-?0x1p"
    ):
        number_of(given)
    with pytest.raises(ValueError, match="at most 10,000 characters, got 10,003"):
        number_of("0x1" + "0" * 10_000)


@pytest.mark.parametrize("given", ["0x1p+1024", "0x1p-1075", "0x20000000000001p+0"])
def test_a_number_that_no_float_is_is_not_rounded_in_silence(given):
    with pytest.raises(ValueError, match="is no number of float64; round before you write it"):
        float_of(given)


def test_a_zero_in_digits_keeps_its_sign():
    assert [math.copysign(1, number_of(text)) for text in ("0x0p+0", "-0x0p+0")] == [1, -1]


class Scaled:
    """A target whose every step multiplies by a number, and may forget its state."""

    name, version, path, hash = "scaled", "1", "here", "0"
    capabilities = frozenset(CAPABILITIES)

    def __init__(self, factor, state=None):
        self.factor, self.state = factor, state

    def make(self, _):
        return self

    def init(self, _):
        return {}

    def apply(self, gradients, weights, state):
        return gradients * self.factor, {} if self.state is None else self.state


def run_with(target):
    return Run(steps_backends.get("numpy"), target)


def vector(expected, expected_state=None):
    gradient = host_array([1.0, -2.0])
    call = VectorCall(gradient, None, expected, expected_state)
    return Vector("X-001/v-x", "X-001", "a test", "", description("ScalingStep"), None, None, (call,))


DOUBLED = Expected("float32", (2,), (Fraction(2), Fraction(-4)), 1)


def test_a_right_result_passes():
    play(run_with(Scaled(2.0)), vector(DOUBLED))


@pytest.mark.parametrize(
    ("target", "expected", "says"),
    [
        (Scaled(2.001), DOUBLED, r"call 1 of 1: gradients.*expected 2"),
        (Scaled(-2.0), DOUBLED, r"expected 2.0, got -2.0"),
        (Scaled(2.0), unchanged(host_array([1.0, -2.0])), r"expected 1.0.*got 2.0"),
        (Scaled(1.0), Expected("float64", (2,), (1.0, -2.0)), r"expected float64\[2\], got float32\[2\]"),
        (
            Scaled(1.0),
            Expected("float32", (1, 2), (1.0, -2.0)),
            r"expected float32\[1, 2\], got float32\[2\]",
        ),
        (Scaled(1.0), Expected("float32", (2,), (math.nan, -2.0)), r"expected nan, got 1.0"),
        (Scaled(1.0), {"a": DOUBLED}, r"expected leaves at \[\"\['a'\]\"\]"),
    ],
    ids=["value", "sign", "unchanged", "dtype", "shape", "nan", "tree"],
)
def test_a_wrong_result_is_noticed(target, expected, says):
    with pytest.raises(Mismatch, match=says):
        play(run_with(target), vector(expected))


def test_a_missing_state_is_noticed():
    with pytest.raises(Mismatch, match=r"call 1 of 1: state: expected leaves at .*count.*, got"):
        play(run_with(Scaled(2.0)), vector(DOUBLED, {"count": Expected("int32", (), (1,))}))


class Flushing(Run):
    """A run on a backend that takes subnormal numbers for zero."""

    traits = frozenset({"flushes_subnormals"})


def flushed(or_zero):
    return vector(Expected("float32", (2,), (Fraction(1, 3), Fraction(-2)), 1, None, or_zero))


class Zeroing(Scaled):
    """A target that gives 0 for the first element and leaves the second."""

    def apply(self, gradients, weights, state):
        return gradients * [0.0, 1.0], state


def test_a_zero_is_right_where_a_number_on_the_way_is_flushed():
    play(Flushing(steps_backends.get("numpy"), Narrowed(Zeroing(1.0))), flushed((True, False)))


@pytest.mark.parametrize(
    ("kind", "or_zero"),
    [(Run, (True, False)), (Flushing, (False, True)), (Flushing, None)],
    ids=["nothing-is-flushed", "another-element", "nowhere"],
)
def test_a_zero_is_wrong_elsewhere(kind, or_zero):
    with pytest.raises(Mismatch, match=r"expected 0.333.*got 0.0"):
        play(kind(steps_backends.get("numpy"), Narrowed(Zeroing(1.0))), flushed(or_zero))


class Narrowed(Scaled):
    """A target whose results are those of another, in float32."""

    def __init__(self, inner):
        self.inner = inner

    def apply(self, gradients, weights, state):
        result, state = self.inner.apply(gradients, weights, state)
        return result.astype("float32"), state


def test_a_vector_needs_the_dtypes_of_what_it_starts_from():
    """A library that lacks one of them cannot play it."""
    narrow, wide = host_array([1.0], "bfloat16"), host_array([1.0], "float64")
    state = {"count": HostArray("int32", (), (0,)), "trace": wide}
    call = VectorCall(host_array([1.0]), None, None)
    started = Vector("X-001/v-x", "X-001", "a test", "", description("ScalingStep"), narrow, state, (call,))

    assert started.dtypes() == {"float32", "bfloat16", "float64"}
