"""Which axes a unit of a leaf stretches over."""

import pytest

from steps_core.numerics.units import reduced_axes

AUTO = {
    (): (),
    (5,): (0,),
    (0,): (0,),
    (1, 7): (0, 1),
    (7, 1): (0, 1),
    (1, 1, 4): (0, 1, 2),
    (2, 3): (0,),
    (2, 0): (0, 1),
    (2, 3, 4): (0,),
    (1, 3, 4): (0,),
    (3, 3, 8, 16): (0, 1, 2),
    (1, 1, 8, 16): (0, 1, 2),
    (2, 2, 2, 2, 2): (0, 1, 2, 3),
    (2, 2, 2, 2, 2, 2): (0, 1, 2, 3, 4),
}

EXPLICIT = {
    ((2, 3), 0): (1,),
    ((2, 3), 1): (0,),
    ((2, 3), -1): (0,),
    ((2, 3), -2): (1,),
    ((1, 7), 0): (1,),
    ((5,), 0): (0,),
    ((5,), 3): (0,),
    ((), 2): (),
    ((2, 3, 4), (0, 2)): (1,),
    ((2, 3, 4), (2, 0)): (1,),
    ((2, 3, 4), (-1, 0)): (1,),
    ((2, 3, 4), (0, 1, 2)): (),
    ((2, 3, 4), (1, -2)): (0, 2),
    ((16, 8, 3, 3), 0): (1, 2, 3),
}


@pytest.mark.parametrize("shape", AUTO)
def test_auto_takes_the_output_axis_last(shape: tuple[int, ...]) -> None:
    """Rank 2 and 3: over axis 0; from rank 4 on: over all but the last; one long axis: the whole leaf."""
    assert reduced_axes(shape, "auto") == AUTO[shape]


@pytest.mark.parametrize(("shape", "unit_axis"), EXPLICIT)
def test_a_named_axis_is_kept(shape: tuple[int, ...], unit_axis: int | tuple[int, ...]) -> None:
    """The others are reduced; rank 0 and 1 are one unit."""
    assert reduced_axes(shape, unit_axis) == EXPLICIT[shape, unit_axis]


@pytest.mark.parametrize("unit_axis", [2, -3, (0, 2), (5,)])
def test_an_axis_that_the_leaf_lacks_is_an_error(unit_axis: int | tuple[int, ...]) -> None:
    """The text names the first such axis and the rank."""
    wrong = unit_axis if isinstance(unit_axis, int) else unit_axis[-1]
    with pytest.raises(IndexError, match=f"axis {wrong} of a leaf of rank 2"):
        reduced_axes((2, 3), unit_axis)
