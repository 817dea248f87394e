"""Host arrays: exact values outside any library."""

import math

import pytest
from steps_backends import HostArray, host_array


def test_shape_follows_the_nesting():
    assert host_array([[1, 2, 3], [4, 5, 6]]) == HostArray("float32", (2, 3), (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    assert host_array(2.5) == HostArray("float32", (), (2.5,))
    assert host_array([]) == HostArray("float32", (0,), ())
    assert host_array([[], []]).shape == (2, 0)


def test_a_flat_list_takes_a_shape():
    assert host_array([1, 2, 3, 4], shape=[2, 2]).shape == (2, 2)
    assert host_array([], shape=(3, 0, 2)).values == ()


def test_values_are_rounded_once_to_the_dtype():
    assert host_array([1 / 3], "float16").values == (0.333251953125,)
    assert host_array([1e39], "float32").values == (math.inf,)
    assert host_array([complex(1 / 3, -0.0)], "complex64").values == (complex(0.3333333432674408, -0.0),)
    assert host_array([1, 0], "bool").values == (True, False)
    assert host_array([7], "int32").values == (7,)


def test_rows_of_different_length_are_refused():
    with pytest.raises(ValueError, match="rows of one array differ in shape"):
        host_array([[1, 2], [3]])


def test_a_shape_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 2\) needs 4 values, got 3"):
        host_array([1, 2, 3], shape=(2, 2))


def test_a_long_array_is_shown_short():
    assert str(host_array(list(range(10)))) == (
        "float32[10] [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, ... 2 more]"
    )
