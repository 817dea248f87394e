"""Trees: containers, None, dtypes and devices of every leaf, and the paths in errors."""

import dataclasses
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import numpy as np
import pytest
from comparing import leaves_of, read_tree
from libraries import Library

from steps_core import (
    AdamStep,
    ArgumentError,
    ArgumentTypeError,
    ChainedStep,
    GradientClippingStep,
    LeafTypeError,
    MonitorStep,
    SGDStep,
    SkipNonFiniteStep,
    TreeMismatchError,
    apply_updates,
    register_container,
)

Layer = namedtuple("Layer", ["kernel", "bias"])
CHAIN = ChainedStep(MonitorStep(), GradientClippingStep(variant="global", threshold=2.0), AdamStep())


class Pair:
    """A container of a user."""

    def __init__(self, left: Any, right: Any, name: str = "") -> None:
        self.left, self.right, self.name = left, right, name


register_container(
    Pair, lambda p: ((p.left, p.right), p.name, ("left", "right")), lambda name, both: Pair(*both, name)
)


def make_containers(leaf: Any) -> dict[str, Any]:
    """Return one tree of each kind of container, each with four leaves."""
    return {
        "dict": {"b": leaf, "a": {"y": leaf, "x": leaf}, 3: leaf},
        "list": [leaf, [leaf, [leaf]], leaf],
        "tuple": (leaf, (leaf, leaf), (), (leaf,)),
        "namedtuple": Layer(Layer(leaf, leaf), Layer(leaf, leaf)),
        "OrderedDict": OrderedDict([("z", leaf), ("a", [leaf, leaf, leaf])]),
        "defaultdict": defaultdict(list, {"z": leaf, "a": [leaf, leaf, leaf]}),
        "registered": Pair(leaf, [leaf, Pair(leaf, leaf, "inner")], "outer"),
    }


@pytest.mark.parametrize("name", make_containers(0))
def test_containers_keep_their_kind(library: Library, name: str) -> None:
    """In gradients, in each moment of the state, and in new weights."""
    tree = make_containers(library.array([1.0]))[name]
    updates, state = CHAIN(tree, tree, CHAIN.init(tree))
    moments = state["step3"]["first_moment"], state["step3"]["second_moment"]
    for result in (updates, *moments, apply_updates(tree, updates)):
        assert _same_kind(result, tree)
        assert len(_leaves(result)) == 4
        assert all(library.holds(leaf) for leaf in _leaves(result))
    assert float(state["step1"]["norm"]) == 2.0


def _same_kind(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same_kind(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_same_kind, one, other))
    if isinstance(one, Pair):
        return (
            one.name == other.name and _same_kind(one.left, other.left) and _same_kind(one.right, other.right)
        )
    return True


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, Pair):
        return [*_leaves(tree.left), *_leaves(tree.right)]
    if isinstance(tree, dict):
        return [leaf for entry in tree.values() for leaf in _leaves(entry)]
    if isinstance(tree, (list, tuple)):
        return [leaf for entry in tree for leaf in _leaves(entry)]
    return [tree]


def test_a_class_that_jax_knows_is_opened() -> None:
    """Nested in our containers and holding them; its fixed parts stay."""
    jax = pytest.importorskip("jax")

    @dataclasses.dataclass
    class Module:
        kernel: Any
        children: Any
        name: str

    jax.tree_util.register_dataclass(Module, ["kernel", "children"], ["name"])
    leaf = Library("jax").array([3.0])
    tree = {"net": Module(leaf, [leaf, Module(leaf, (), "inner")], "outer")}
    updates, state = CHAIN(tree, tree)
    for result in (updates, state["step3"]["first_moment"]):
        module = result["net"]
        assert type(module) is Module and module.name == "outer"
        assert module.children[1].name == "inner" and module.children[1].children == ()
    again, _ = CHAIN(tree, tree, state)
    assert jax.tree.structure(again) == jax.tree.structure(tree)


def test_an_error_inside_a_class_that_jax_knows_names_the_attribute() -> None:
    """As in any other container."""
    jax = pytest.importorskip("jax")

    @jax.tree_util.register_pytree_with_keys_class
    class Box:
        def __init__(self, value: Any) -> None:
            self.value = value

        def tree_flatten_with_keys(self) -> Any:
            return [(jax.tree_util.GetAttrKey("value"), self.value)], None

        @classmethod
        def tree_unflatten(cls, _: Any, children: Any) -> Any:
            return cls(*children)

    with pytest.raises(LeafTypeError, match=r"gradients\['box'\]\.value must be a dense array") as caught:
        SGDStep()({"box": Box(3)})
    assert caught.value.path == "gradients['box'].value"


def test_an_error_inside_a_registered_container_names_the_entry() -> None:
    """By the names that were given for its children."""
    with pytest.raises(LeafTypeError, match="right") as caught:
        SGDStep()(Pair(np.ones(1), "text"))
    assert "gradients" in caught.value.path and "right" in caught.value.path


def test_registering_twice_is_refused() -> None:
    """The class is a container already."""
    with pytest.raises(
        ArgumentError, match=r"kind must not be a container already, got .*Pair.*leave this call out"
    ):
        register_container(Pair, lambda p: ((p.left, p.right), None), lambda _, both: Pair(*both))
    with pytest.raises(ArgumentError, match="kind must not be a container already"):
        register_container(dict, lambda d: (d.values(), None), lambda _, values: dict(values))


@pytest.mark.parametrize(
    ("argument", "arguments"),
    [("kind", (3, len, len)), ("flatten", (int, 3, len)), ("unflatten", (int, len, 3))],
)
def test_registering_wants_a_class_and_functions(argument: str, arguments: tuple) -> None:
    """The wrong one is named."""
    with pytest.raises(ArgumentTypeError, match=rf"{argument} must be a .*got 3 \(int\)") as caught:
        register_container(*arguments)
    assert caught.value.argument == argument


def test_a_bare_array_is_a_tree(library: Library) -> None:
    """Its moments are bare arrays."""
    updates, state = AdamStep()(library.array([1.0]))
    assert library.holds(updates) and library.holds(state["first_moment"])


@pytest.mark.parametrize("tree", [{}, [], (), {"a": {}, "b": [(), {}]}, None, [None, {"a": None}]], ids=repr)
def test_a_tree_without_arrays_is_legal(tree: Any) -> None:
    """Its counts are None, and every call gives it back."""
    for step in (CHAIN, SkipNonFiniteStep(AdamStep()), SGDStep(momentum=0.5)):
        state = step.init(tree)
        updates, after = step(tree, tree, state)
        assert updates == tree
        assert after == state
    assert AdamStep().init(tree)["count"] is None


def test_none_is_no_gradient_here(library: Library) -> None:
    """It may stand against an array in weights and state; counts still count calls."""
    weights = {"a": library.array([3.0]), "b": library.array([4.0])}
    _, state = CHAIN(weights, weights)
    updates, after = CHAIN({"a": library.array([3.0]), "b": None}, weights, state)
    assert updates["b"] is None and library.holds(updates["a"])
    assert library.read(after["step3"]["first_moment"]["b"]) == library.read(
        state["step3"]["first_moment"]["b"]
    )
    assert float(after["step1"]["norm"]) == 3.0
    assert int(after["step3"]["count"]) == 2
    _, last = CHAIN(weights, weights, after)
    assert int(last["step3"]["count"]) == 3


def test_none_against_a_subtree_is_a_mismatch() -> None:
    """None stands for one leaf."""
    with pytest.raises(
        TreeMismatchError, match=r"a leaf at gradients\['a'\] and a dict of 1 at weights\['a'\]"
    ):
        SGDStep()({"a": None}, {"a": {"b": np.ones(1)}})


def test_numpy_scalars_are_arrays_of_rank_zero() -> None:
    """In gradients and weights; results and state are arrays."""
    updates, state = AdamStep(weight_decay=0.1)([np.float32(2.0), np.float64(1.0)], [np.float32(1.0)] * 2)
    for leaf in (*updates, *state["first_moment"], *state["second_moment"]):
        assert type(leaf) is np.ndarray and leaf.shape == ()
    assert updates[0].dtype == np.float32


def test_the_same_array_twice_is_two_leaves(library: Library) -> None:
    """It counts twice in a norm."""
    leaf = library.array([3.0])
    assert float(MonitorStep()([leaf, leaf]).state["norm"]) == np.float32(np.sqrt(18.0))


def test_leaves_of_one_tree_may_have_different_dtypes(library: Library) -> None:
    """Each comes back in its own; moments are float32 at least."""
    gradients = {
        dtype: library.array([1.0, -2.0], dtype) for dtype in library.dtypes if "complex" not in dtype
    }
    gradients["complex"] = library.array([1j], "complex64")
    updates, state = CHAIN(gradients)
    for key, leaf in gradients.items():
        assert library.dtype_of(updates[key]) == library.dtype_of(leaf)
    wide = [library.dtype_of(leaf).name for leaf in leaves_of(state["step3"]["second_moment"])]
    assert set(wide) <= {"float32", "float64"}
    assert not any(np.isnan(leaf).any() for leaf in leaves_of(read_tree(library, updates)))


@pytest.mark.parametrize("layout", ["C", "F", "strided", "readonly"])
def test_the_memory_layout_does_not_matter(layout: str) -> None:
    """Elementwise results are the same bits."""
    values = np.random.default_rng(11).normal(size=(6, 8))
    arrays = {
        "C": values,
        "F": np.asfortranarray(values),
        "strided": np.repeat(values, 2, axis=1)[:, ::2],
        "readonly": values.copy(),
    }
    arrays["readonly"].flags.writeable = False
    result = AdamStep()(arrays[layout], arrays[layout]).gradients
    np.testing.assert_array_equal(result, AdamStep()(values).gradients)


def test_a_tree_that_contains_itself_is_refused() -> None:
    """Instead of Python's stack overflow."""
    tree: list = [np.ones(1)]
    tree.append(tree)
    with pytest.raises(ArgumentError, match="a tree must not contain itself"):
        SGDStep()(tree)


def test_the_first_place_where_trees_part_is_named() -> None:
    """Also where a container has another kind or length."""
    leaf = np.ones(1)
    for gradients, weights, place in (
        (
            {"a": {"b": leaf, "c": leaf}},
            {"a": {"b": leaf}},
            r"a leaf at gradients\['a'\]\['c'\] and nothing at weights",
        ),
        ({"a": {"b": leaf}}, {"a": {"b": leaf, "c": leaf}}, r"nothing at gradients\['a'\]\['c'\] and a leaf"),
        ([leaf, (leaf,)], [leaf, [leaf]], r"a tuple of 1 at gradients\[1\] and a list of 1 at weights\[1\]"),
        ([leaf], [leaf, leaf], r"nothing at gradients\[1\] and a leaf at weights\[1\]"),
        (
            Layer(leaf, leaf),
            Layer(leaf, [leaf]),
            r"a leaf at gradients\.bias and a list of 1 at weights\.bias",
        ),
        (Pair(leaf, leaf, "x"), Pair(leaf, leaf, "y"), "a Pair of 2 with other fixed parts at gradients"),
    ):
        with pytest.raises(TreeMismatchError, match=place) as caught:
            SGDStep()(gradients, weights)
        assert caught.value.path.startswith("weights") and caught.value.argument == "weights"


def test_dicts_may_be_written_in_another_order() -> None:
    """Keys belong together, not places."""
    weights = {"b": np.asarray([10.0]), "a": np.asarray([20.0, 30.0])}
    gradients = {"a": np.asarray([1.0, 2.0]), "b": np.asarray([3.0])}
    updates = SGDStep(learning_rate=1.0, weight_decay=1.0)(gradients, weights).gradients
    assert updates["a"].tolist() == [-21.0, -32.0] and updates["b"] == [-13.0]
    assert list(updates) == ["a", "b"]
