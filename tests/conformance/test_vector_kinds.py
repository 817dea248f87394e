"""The kinds of input: each step that should have one has it, and a kind that is lost is noticed."""

import dataclasses

import pytest
from steps_backends import HostArray, host_array
from steps_conformance.vectors.coverage import ABSENT, KINDS, RUNS, SUBJECTS, by_subject, counts, runs
from steps_conformance.vectors.kinds import at_each_place, every_rank
from steps_conformance.vectors.model import Vector, VectorCall, load_vectors
from steps_conformance.vectors.thresholds import equals_the_norm, in_both_layouts

VECTORS = [vector for listed in load_vectors().values() for vector in listed]
COUNTS, LONG = counts(VECTORS), runs(VECTORS)
CELLS = list(COUNTS)


@pytest.mark.parametrize("cell", CELLS, ids=" | ".join)
def test_a_kind_is_there_or_says_why_not(cell):
    kind, step = cell
    reason = ABSENT.get(kind, {}).get(step)

    assert (COUNTS[cell] == 0) == (reason is not None), f"{COUNTS[cell]} vectors, reason {reason!r}"


@pytest.mark.parametrize("cell", LONG, ids=" | ".join)
def test_a_step_that_remembers_has_long_runs_and_given_states(cell):
    long, given = LONG[cell]

    assert long > 0
    assert given > 0


def test_every_step_of_the_vectors_has_a_column():
    assert all(by_subject(VECTORS).values())
    assert set(RUNS) <= set(SUBJECTS)
    assert set(ABSENT) <= {kind.name for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_is_lost_without_the_vectors_that_have_it(kind):
    """Every count falls to 0 when its vectors are taken away, and only then."""
    name = next(name for name in kind.only or SUBJECTS if COUNTS[kind.name, name])
    listed = by_subject(VECTORS)[name]
    plain = [dataclasses.replace(vector, calls=(), state=None, step=PLAIN) for vector in listed]

    assert kind.count(listed) > 0
    assert kind.count(plain) == 0


PLAIN = {"step": "GradientClippingStep", "options": {"variant": "global", "threshold": {"float": "0x1p+0"}}}


def clipped(gradients, weights=None, **options):
    call = VectorCall(gradients, weights, None)
    step = {"step": "GradientClippingStep", "options": options}
    return Vector("X-001/v-x", "X-001", "a test", "", step, None, None, (call,))


def number(value):
    return {"float": value.hex()}


def test_all_ranks_count_together_and_not_one_less():
    vectors = [clipped(host_array([1.0] * 1, "float32", (1,) * rank)) for rank in range(6)]

    assert every_rank("float32")(vectors) == 6
    assert every_rank("float32")(vectors[:-1]) == 0
    assert every_rank("float16")(vectors) == 0


def test_places_count_together_and_not_one_less():
    def at(leaf, element):
        values = [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
        values[leaf][element] = float("nan")
        return clipped([host_array(row) for row in values])

    vectors = [at(0, 0), at(0, 1), at(0, 2), at(1, 0)]
    is_nan = at_each_place(lambda value: value != value)

    assert is_nan(vectors) == 4
    for left_out in range(1, 4):
        assert is_nan([vector for n, vector in enumerate(vectors) if n != left_out]) == 0


@pytest.mark.parametrize(
    ("options", "weights", "equal"),
    [
        ({"variant": "global", "threshold": number(5.0)}, None, True),
        ({"variant": "global", "threshold": number(5.5)}, None, False),
        ({"variant": "per-layer", "threshold": number(5.0)}, None, True),
        ({"variant": "per-weight", "threshold": number(4.0)}, None, True),
        ({"variant": "per-weight", "threshold": number(5.0)}, None, False),
        ({"variant": "per-weight-relative", "threshold": number(0.5)}, [6.0, 8.0], True),
        ({"variant": "per-weight-relative", "threshold": number(0.5)}, [6.0, 9.0], False),
    ],
    ids=["global", "global-not", "layer", "weight", "weight-not", "relative", "relative-not"],
)
def test_a_threshold_that_is_met_exactly_is_told_from_others(options, weights, equal):
    vector = clipped(host_array([3.0, -4.0]), None if weights is None else host_array(weights), **options)

    assert equals_the_norm(float.fromhex(options["threshold"]["float"]), vector) == equal


def test_an_even_matrix_tells_no_layout():
    even = HostArray("float32", (2, 2), (1.0,) * 4)
    uneven = HostArray("float32", (2, 2), (1.0, 8.0, 8.0, 64.0))

    assert in_both_layouts([clipped(uneven, unit_axis=0), clipped(uneven)]) == 2
    assert in_both_layouts([clipped(uneven, unit_axis=0)]) == 0
    assert in_both_layouts([clipped(even, unit_axis=0), clipped(even)]) == 0
