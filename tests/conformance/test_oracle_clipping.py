"""The oracle's norms, units and clipping rules, against numbers worked out by hand."""

from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from steps_backends import HostArray, host_array
from steps_conformance.oracle import centering, clipping, constraint
from steps_conformance.oracle.exact import Exact, constant, exact, mp, norm, number
from steps_conformance.oracle.units import units


def leaf(values: object, dtype: str = "float64") -> Exact:
    """Return an exact array of these values as doubles."""
    return exact(host_array(values, dtype))


def close(actual: Exact, expected: list[object]) -> bool:
    """Return whether two lists of numbers agree to 45 digits."""
    wanted = [number(value) for value in expected]
    pairs = zip(actual.values, wanted, strict=True)
    return all(abs(a - b) <= abs(b) * mp.mpf(10) ** -45 for a, b in pairs)


def test_a_float_is_taken_as_the_double_it_is() -> None:
    """0.1 is the double nearest to a tenth, not a tenth."""
    assert number(0.1) == number(Fraction(0.1))
    assert number(0.1) != mp.mpf(1) / 10


def test_every_number_becomes_one_of_the_oracle() -> None:
    """Numbers of Python and of another context of mpmath, and the elements of arrays."""
    import mpmath

    for given in (1, 0.5, Fraction(1, 3), mpmath.mpf(2)):
        assert isinstance(number(given), mp.mpf)
    assert isinstance(number(1 + 2j), mp.mpc)
    assert abs(3 * number(Fraction(1, 3)) - 1) < mp.mpf(10) ** -45
    assert all(isinstance(value, mp.mpf) for value in leaf([0.5, -2.0]).values)
    assert all(isinstance(value, mp.mpf) for value in constant(0.5, leaf([1.0, 2.0])).values)


def test_the_shared_precision_of_mpmath_is_left_alone() -> None:
    """The oracle works in a context of its own."""
    import mpmath

    assert mp.dps == 50
    assert mpmath.mp.dps == 15


@pytest.mark.parametrize(
    ("values", "length"),
    [([], 0), ([3.0, 4.0], 5), ([3e200, 4e200], 5e200), ([3 + 4j, 12.0], 13), ([2.0, -3.0, 6.0], 7)],
)
def test_norms_of_whole_triangles(values: list[complex], length: float) -> None:
    """Pythagorean numbers give whole norms, also where a double would overflow on the way."""
    scale = mp.mpf(10) ** -16
    assert abs(norm([number(value) for value in values]) - number(length)) <= scale * number(length)


def test_per_weight_keeps_sign_and_phase() -> None:
    """Each element stops at the threshold on its own ray."""
    (real,) = clipping.per_weight([leaf([-3.0, 0.5, 2.0])], 1.0)
    (rotated,) = clipping.per_weight([leaf([3 + 4j, 0.3 + 0.4j], "complex128")], 2.5)
    assert close(real, [-1, 0.5, 1])
    assert close(rotated, [1.5 + 2j, 0.3 + 0.4j])


def test_per_layer_takes_leaf_by_leaf_and_global_all_together() -> None:
    """[3, 4] and [12] have norms 5 and 12 apart, 13 together."""
    leaves = [leaf([3.0, 4.0]), leaf([12.0])]
    apart, together = clipping.per_layer(leaves, 6.0), clipping.global_norm(leaves, 6.5)
    assert close(apart[0], [3, 4])
    assert close(apart[1], [6])
    assert close(together[0], [1.5, 2])
    assert close(together[1], [6])


def test_a_norm_at_the_threshold_changes_nothing() -> None:
    """The factor is exactly 1 up to the threshold, and continuous there."""
    (same,) = clipping.global_norm([leaf([3.0, 4.0])], 5.0)
    (zero,) = clipping.global_norm([leaf([3.0, 4.0])], 0.0)
    assert same.values == (3, 4)
    assert zero.values == (0, 0)
    assert clipping.global_norm([leaf([0.0])], 0.0)[0].values == (0,)


def test_relative_limits_come_from_the_weights_of_the_same_column() -> None:
    """Columns with weight norms 5 and 0 get limits of 5 and of epsilon, times the threshold."""
    gradient, weight = leaf([[6.0, 6.0], [8.0, 8.0]]), leaf([[3.0, 0.0], [4.0, 0.0]])
    (clipped,) = clipping.per_weight_relative([gradient], [weight], 0.5, 0.25)
    assert close(clipped, [1.5, Fraction(3, 40), 2, Fraction(1, 10)])


def test_relative_limits_by_rows() -> None:
    """unit_axis=0 takes rows for units."""
    gradient, weight = leaf([[6.0, 8.0], [6.0, 8.0]]), leaf([[3.0, 4.0], [0.0, 0.0]])
    (clipped,) = clipping.per_weight_relative([gradient], [weight], 1.0, 2.5, unit_axis=0)
    assert close(clipped, [3, 4, 1.5, 2])


def test_options_are_exact_and_no_doubles() -> None:
    """Thresholds, floors, bounds and radii of a third, given as fractions."""
    third, whole = Fraction(1, 3), [leaf([[3.0], [4.0]])]
    still, far = leaf([[0.0], [0.0]]), leaf([[-3.0], [4.0]])
    assert close(clipping.per_weight(whole, third)[0], [third, third])
    assert close(clipping.per_layer(whole, third)[0], [third * 3 / 5, third * 4 / 5])
    assert close(clipping.global_norm(whole, third)[0], [third * 3 / 5, third * 4 / 5])
    assert close(
        clipping.per_weight_relative(whole, [still], third, third)[0], [third**2 * 3 / 5, third**2 * 4 / 5]
    )
    assert close(constraint.box(far, still, -third, third), [-third, third])
    assert close(constraint.norm_ball(far, still, third), [-third * 3 / 5, third * 4 / 5])


def test_the_floor_under_weights_is_a_thousandth() -> None:
    """Where none is given."""
    (clipped,) = clipping.per_weight_relative([leaf([3.0, 4.0])], [leaf([0.0, 0.0])], 5.0)
    assert close(clipped, [number(1e-3) * 3, number(1e-3) * 4])


REDUCED = {(2, 3): (0,), (2, 3, 2): (0,), (2, 3, 2, 2): (0, 1, 2), (2, 2, 2, 2, 3): (0, 1, 2, 3)}


@pytest.mark.parametrize(("shape", "over"), REDUCED.items(), ids=str)
def test_automatic_units_follow_the_paper(shape: tuple[int, ...], over: tuple[int, ...]) -> None:
    """Elements share a unit when their indices agree on the axes that are not reduced."""
    indices = list(product(*map(range, shape)))
    sharing = {
        (one, other)
        for one, a in enumerate(indices)
        for other, b in enumerate(indices)
        if all(a[axis] == b[axis] for axis in range(len(shape)) if axis not in over)
    }
    assert sharing == {(one, other) for unit in units(shape) for one in unit for other in unit}


@pytest.mark.parametrize("shape", [(), (4,), (1, 4), (4, 1), (1, 4, 1), (1, 1, 4, 1), (1, 1)])
def test_a_leaf_with_one_long_axis_is_one_unit(shape: tuple[int, ...]) -> None:
    """At most one axis longer than 1: the whole leaf."""
    assert len(units(shape)) == 1


def test_kept_axes_by_number() -> None:
    """A tuple keeps several axes, negative numbers count from the end, and a vector stays whole."""
    assert units((2, 2, 2), (0, -1)) == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert units((2, 3), -1) == units((2, 3), 1) == [[0, 3], [1, 4], [2, 5]]
    assert units((3,), 0) == [[0, 1, 2]]
    assert units((2, 2), ()) == [[0, 1, 2, 3]]


def test_centering_removes_the_mean_of_each_column() -> None:
    """What is left sums to zero in each unit, and a vector is left alone."""
    assert centering.centered(leaf([[1.0, 2.0], [3.0, 6.0]])).values == (-1, -2, 1, 2)
    assert centering.centered(leaf([[1.0, 2.0], [3.0, 6.0]]), 0).values == (-0.5, 0.5, -1.5, 1.5)
    assert centering.centered(leaf([1.0, 3.0])).values == (1, 3)


def test_constraints_lead_to_the_nearest_point_of_their_set() -> None:
    """Weights + updates are the projection of what they would have been."""
    weight, update = leaf([[1.0, -2.0], [2.0, 0.5]]), leaf([[-3.0, 5.0], [2.0, 3.5]])

    def moved(changed: Exact) -> list[Any]:
        return [w + u for w, u in zip(weight.values, changed.values, strict=True)]

    ball = moved(constraint.norm_ball(update, weight, 2.5, 0))
    unit = moved(constraint.unit_norm(update, weight))
    assert moved(constraint.nonnegative(update, weight)) == [0, 3, 4, 4]
    assert moved(constraint.box(update, weight, -1.0, 3.5)) == [-1, 3, 3.5, 3.5]
    assert moved(constraint.box(update, weight, upper=3.0)) == [-2, 3, 3, 3]
    assert moved(constraint.box(update, weight, lower=3.5)) == [3.5, 3.5, 4, 4]
    inside = moved(constraint.norm_ball(update, weight, 4.0))
    assert all(abs(norm(inside[column::2]) - 4) < 1e-40 for column in (0, 1))
    assert abs(norm(ball[:2]) - 2.5) < 1e-40
    assert abs(ball[0] * 3 + ball[1] * 2) < 1e-40
    assert abs(norm(ball[2:]) - 2.5) < 1e-40
    assert all(abs(norm(unit[column::2]) - 1) < 1e-40 for column in (0, 1))
    assert [part > 0 for part in unit] == [False, True, True, True]
    assert constraint.unit_norm(leaf([0.0]), leaf([0.0])).values == (0,)


def test_complex_parts_and_shapes_survive() -> None:
    """An exact array keeps its shape, and complex values both parts."""
    array = exact(HostArray("complex64", (1, 2), (1 + 2j, -3j)))
    assert array.shape == (1, 2)
    assert array.values == (mp.mpc(1, 2), mp.mpc(0, -3))
