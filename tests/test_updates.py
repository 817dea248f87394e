"""apply_updates: weights + updates."""

import numpy as np
import pytest
from comparing import assert_same_bits, assert_same_trees, read_tree
from libraries import Library

from steps_core import ArgumentError, LeafTypeError, TreeMismatchError, apply_updates


def test_updates_are_added(kind: tuple[Library, str]) -> None:
    """In every dtype; the result has the weight's."""
    library, dtype = kind
    weights = {"a": library.array([1.0, 2.0], dtype), "b": [library.array(3.0, dtype)]}
    updates = {"a": library.array([-0.5, 0.5], dtype), "b": [library.array(1.0, dtype)]}
    result = apply_updates(weights, updates)
    assert library.read(result["a"]).tolist() == [0.5, 2.5]
    assert library.read(result["b"][0]) == 4.0
    assert library.dtype_of(result["a"]) == library.dtype_of(weights["a"])


def test_nothing_given_is_written_to(library: Library) -> None:
    """Neither weights nor updates; the result is new memory."""
    weights, updates = library.array([1.0, 2.0]), library.array([0.0, 0.5])
    before = read_tree(library, [weights, updates])
    result = apply_updates(weights, updates)
    assert_same_trees(read_tree(library, [weights, updates]), before)
    assert result is not weights


WIDER = [
    ("float16", "float32", 2.0**-11 + 2.0**-23),
    ("float32", "float64", 2.0**-24 + 2.0**-40),
    ("float64", "float16", 2.0**-11),
]


@pytest.mark.parametrize(("weight", "update", "amount"), WIDER)
def test_the_sum_is_taken_in_the_wider_dtype_and_cast_to_the_weights(
    weight: str, update: str, amount: float
) -> None:
    """A little more than half of the last place of 1 rounds up, only if the little is not lost before."""
    result = apply_updates(np.asarray([1.0], weight), np.asarray([amount], update))
    assert_same_bits(result, np.asarray([1.0 + amount]).astype(weight))


def test_where_an_update_is_none_the_weight_stays(library: Library) -> None:
    """The very object."""
    weights = [library.array([1.0]), library.array([2.0]), None]
    result = apply_updates(weights, [None, library.array([1.0]), None])
    assert result[0] is weights[0] and result[2] is None
    assert library.read(result[1]) == [3.0]


def test_a_numpy_scalar_comes_back_as_an_array() -> None:
    """With or without an update."""
    for update in (None, np.float32(0.0)):
        result = apply_updates([np.float32(1.0)], [update])[0]
        assert type(result) is np.ndarray and result.shape == ()


def test_a_sum_beyond_the_weights_dtype_raises_no_warning() -> None:
    """It is infinite, as the addition says."""
    assert apply_updates(np.asarray([60000.0], "float16"), np.asarray([1e6], "float32")) == [np.inf]


def test_torch_weights_that_record_are_refused_outside_no_grad() -> None:
    """The new weight would hang on the graph of the old one; the way out is named."""
    torch = pytest.importorskip("torch")
    weights = {"w": torch.ones(2, requires_grad=True)}
    updates = {"w": torch.ones(2)}
    with pytest.raises(
        ArgumentError, match=r"weights\['w'\] must not record.*call apply_updates under torch.no_grad"
    ):
        apply_updates(weights, updates)
    with torch.no_grad():
        result = apply_updates(weights, updates)["w"]
    assert result.tolist() == [2.0, 2.0] and not result.requires_grad


def test_containers_and_dtypes_are_those_of_the_weights() -> None:
    """Also where a tuple holds float16."""
    result = apply_updates(
        (np.ones(1, "float16"), {"b": np.ones(2)}), (np.ones(1), {"b": np.ones(2, "float32")})
    )
    assert type(result) is tuple
    assert (result[0].dtype, result[1]["b"].dtype) == (np.float16, np.float64)


def test_a_mismatch_is_refused_before_anything_is_added() -> None:
    """The text names the first place."""
    with pytest.raises(TreeMismatchError, match=r"weights\['b'\]"):
        apply_updates({"a": np.ones(1), "b": np.ones(1)}, {"a": np.ones(1)})
    with pytest.raises(
        TreeMismatchError, match=r"weights\['a'\] must have the shape \(2,\) of updates\['a'\]"
    ):
        apply_updates({"a": np.ones(1)}, {"a": np.ones(2)})
    with pytest.raises(LeafTypeError, match=r"updates\['a'\] must be a dense array"):
        apply_updates({"a": np.ones(1)}, {"a": np.ones(1, int)})
