"""Containers, leaves and what does not fit together."""

from collections import OrderedDict, namedtuple
from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import Mismatch, same_bits
from ..containers import leaves, mapped
from ..oracle import clipping as oracle
from ..oracle.samples import sample, whole_numbers
from ..run import Run
from .battery import STEPS, Entry
from .judging import applied_directly, exacts, like_tree, made, near

Layer = namedtuple("Layer", ("kernel", "bias"))  # noqa: PYI024 - the plain form is what users have

CONTAINERS: dict[str, Any] = {
    "dict": {"b": host_array([1.0, -2.0]), "a": host_array([[3.0]])},
    "list": [host_array([1.0]), host_array([2.0]), host_array([3.0])],
    "tuple": (host_array([1.0]), host_array([2.0])),
    "namedtuple": Layer(host_array([[1.0, 2.0]]), host_array([3.0])),
    "ordered-dict": OrderedDict([("z", host_array([1.0])), ("a", host_array([2.0]))]),
    "one-element": ([host_array([1.0])],),
    "nested": {
        "net": [Layer({"w": host_array([1.0])}, (host_array(2.0), [])), OrderedDict(x=host_array([4.0]))]
    },
    "empty-inside": {"a": {}, "b": [], "c": (), "d": host_array([1.0])},
}


@case("TREE-001", each={"tree": CONTAINERS})
def containers_are_kept(run: Run, tree: Any) -> None:
    """A step without a state."""
    expected = mapped(
        lambda host, _: HostArray(host.dtype, host.shape, tuple(2 * x for x in host.values)), tree
    )
    result, _ = run.step("ScalingStep", scale=2.0).apply(made(run, tree))
    same_bits(run.read(result), expected)


@case("TREE-001", each={"tree": CONTAINERS})
def state_has_the_same_containers(run: Run, tree: Any) -> None:
    """The trace of a first call is the gradient."""
    _, state = run.step("MomentumStep").apply(made(run, tree))
    same_bits(run.read(state["trace"]), tree)


@case("TREE-002", each={"shape": ((), (3,), (2, 2))})
def bare_array(run: Run, shape: tuple[int, ...]) -> None:
    """Gradients, weights and trace."""
    gradient, weight = whole_numbers(shape), whole_numbers(shape, seed=1)
    result, _ = run.step("WeightDecayStep", weight_decay=1.0).apply(made(run, gradient), made(run, weight))
    sums = tuple(g + w for g, w in zip(gradient.values, weight.values, strict=True))
    same_bits(run.read(result), HostArray("float32", shape, sums))
    _, state = run.step("MomentumStep").apply(made(run, gradient))
    same_bits(run.read(state["trace"]), gradient)


@case("TREE-003", each={"entry": STEPS})
def none_passes(run: Run, entry: Entry) -> None:
    """Beside a leaf that comes out as if alone; the weights have an array there."""
    leaf, weight = sample((2, 3)), sample((2, 3), seed=1)
    step = run.make(entry.described)
    alone, _ = step.apply(made(run, {"a": leaf}), made(run, {"a": weight}))
    gradients = {"a": leaf, "frozen": None, "part": [None]}
    weights = {"a": weight, "frozen": sample((4,), scale=100.0), "part": [None]}
    both, _ = step.apply(made(run, gradients), made(run, weights))
    same_bits(run.read(both), {"a": run.read(alone)["a"], "frozen": None, "part": [None]})


@case("TREE-004", each={"dtype": ("float32", "bfloat16")})
def none_leaves_the_state_alone(run: Run, dtype: str) -> None:
    """A leaf that has no gradient in the second call."""
    weights = {"a": sample((3,), dtype), "b": sample((2,), dtype, seed=1)}
    step = run.step("AdamStep")
    _, first = step.apply(made(run, weights), made(run, weights))
    _, second = step.apply(made(run, {"a": weights["a"], "b": None}), made(run, weights), first)
    before, after = run.read(first), run.read(second)
    for name in ("first_moment", "second_moment"):
        same_bits(after[name]["b"], before[name]["b"], path=name)
        if after[name]["a"] == before[name]["a"]:
            raise Mismatch(f"{name}['a'] did not move although that leaf has a gradient")
    same_bits(after["count"], HostArray("int32", (), (2,)))


@case("TREE-005", each={"subtree": {"dict": {"w": sample((2,))}, "list": [sample((2,)), sample((3,))]}})
def none_against_a_subtree(run: Run, subtree: Any) -> None:
    """In a tree whose other leaves fit."""
    gradients = made(run, {"ok": sample((2,)), "gone": None})
    weights = made(run, {"ok": sample((2,)), "gone": subtree})
    step = run.step("WeightDecayStep")
    run.refuses(lambda: step.apply(gradients, weights), kind="ValueError", saying=("['gone']",))


EMPTY: dict[str, Any] = {
    "dict": {},
    "list": [],
    "none-inside": {"a": None},
    "nested": {"a": [], "b": {"c": (), "d": [None]}},
}


@case("TREE-006", each={"entry": STEPS})
def tree_without_arrays(run: Run, entry: Entry) -> None:
    """Containers with nothing in them; None for the tree where no weights are needed."""
    for tree in [*EMPTY.values(), *([] if entry.needs_weights else [None])]:
        passes_unchanged(run, entry, tree)


def passes_unchanged(run: Run, entry: Entry, tree: Any) -> None:
    """Require that two calls give the tree back, the second with the state of the first."""
    step = run.make(entry.described)
    result, state = step.apply(tree, tree)
    again, _ = step.apply(tree, tree, state)
    for outcome in (result, again):
        if outcome != tree or type(outcome) is not type(tree):
            raise Mismatch(f"expected {tree!r}, got {outcome!r}")


@case("TREE-006", each={"tree": EMPTY})
def count_of_no_arrays(run: Run, tree: Any) -> None:
    """Before and after a call."""
    step = run.step("AdamStep")
    first = step.init(tree)
    _, second = step.apply(tree, tree, first)
    for state in (first, second):
        assert state["count"] is None, f"expected a count of None, got {state['count']!r}"


KERNEL, BIAS = sample((2, 3)), sample((3,))
MISFITS: dict[str, tuple[Any, Any, str]] = {
    "missing": ({"layer1": {"kernel": KERNEL, "bias": BIAS}}, {"layer1": {"kernel": KERNEL}}, "['layer1']"),
    "extra": ({"layer1": {"kernel": KERNEL}}, {"layer1": {"kernel": KERNEL, "bias": BIAS}}, "['layer1']"),
    "length": ({"a": [BIAS, BIAS]}, {"a": [BIAS]}, "['a']"),
    "list-for-tuple": ({"b": BIAS, "a": [BIAS]}, {"b": BIAS, "a": (BIAS,)}, "['a']"),
    "array-for-subtree": ({"a": [BIAS]}, {"a": BIAS}, "['a']"),
    "subtree-for-array": ({"a": BIAS}, {"a": {"w": BIAS}}, "['a']"),
    "none-for-array": ({"a": BIAS}, {"a": None}, "['a']"),
}


@case("TREE-007", each={"row": MISFITS})
def structures_that_differ(run: Run, row: tuple[Any, Any, str]) -> None:
    """One entry too few or too many, or another container."""
    gradients, weights, path = row
    step = run.step("WeightDecayStep")
    saying = (path, "gradients", "weights")
    run.refuses(
        lambda: step.apply(made(run, gradients), made(run, weights)), kind="ValueError", saying=saying
    )


@case("TREE-008", each={"shape": ((2,), (1,), (), (3, 1), (1, 3))})
def shapes_that_differ(run: Run, shape: tuple[int, ...]) -> None:
    """Shapes that could be broadcast, and shapes that could not."""
    gradients = made(run, {"layer1": {"kernel": KERNEL, "bias": BIAS}})
    weights = made(run, {"layer1": {"kernel": KERNEL, "bias": sample(shape)}})
    step = run.step("WeightDecayStep")
    saying = ("['layer1']['bias']", "(3,)", str(shape))
    run.refuses(lambda: step.apply(gradients, weights), kind="ValueError", saying=saying)


@case("TREE-009", each={"dtype_name": ("int32", "bool"), "where": ("gradients", "weights")})
def arrays_of_other_dtypes(run: Run, dtype_name: str, where: str) -> None:
    """In the gradients, and in the weights."""
    bad = {"layer1": {"kernel": run.array([[1.0]]), "bias": run.array([1, 0], dtype_name)}}
    good = {"layer1": {"kernel": run.array([[1.0]]), "bias": run.array([1.0, 0.0])}}
    gradients, weights = (bad, good) if where == "gradients" else (good, bad)
    step = run.step("WeightDecayStep")
    saying = (f"{where}['layer1']['bias']", dtype_name)
    run.refuses(lambda: step.apply(gradients, weights), kind="TypeError", saying=saying)


@case(
    "TREE-009",
    each={
        "leaf": {
            "float": 1.0,
            "int": 3,
            "bool": True,
            "complex": 1j,
            "text": "weights.bin",
            "set": {1.0},
            "generator": (number for number in (1.0,)),
        },
        "where": ("gradients", "weights"),
    },
)
def leaves_that_are_no_arrays(run: Run, leaf: Any, where: str) -> None:
    """Called directly, since a compiler would make an array of a number first."""
    bad = {"layer1": {"kernel": run.array([[1.0]]), "bias": leaf}}
    good = {"layer1": {"kernel": run.array([[1.0]]), "bias": run.array(1.0)}}
    gradients, weights = (bad, good) if where == "gradients" else (good, bad)
    saying = (f"{where}['layer1']['bias']", type(leaf).__name__)
    run.refuses(
        lambda: applied_directly(run, "WeightDecayStep", gradients, weights), kind="TypeError", saying=saying
    )


@case("TREE-010", each={"dtype": ("float32", "complex64"), "weights_dtype": ("float32", "complex64")})
def real_against_complex(run: Run, dtype: str, weights_dtype: str) -> None:
    """Both ways round; two of a kind are taken."""
    gradients = made(run, {"layer1": {"bias": sample((2,), dtype)}})
    weights = made(run, {"layer1": {"bias": sample((2,), weights_dtype)}})
    step = run.step("WeightDecayStep")
    if dtype == weights_dtype:
        step.apply(gradients, weights)
        return
    saying = ("['layer1']['bias']",)
    run.refuses(lambda: step.apply(gradients, weights), kind="TypeError", saying=saying)


SHAPES = [(), (1,), (3,), (0,), (2, 3), (0, 2), (1, 1), (2, 1, 3), (2, 1, 3, 2), (2, 1, 1, 2, 2)]


@case("TREE-011", each={"entry": STEPS})
def rank_is_kept(run: Run, entry: Entry) -> None:
    """In the result, and in each part of the state that is a tree like the weights."""
    gradients = {str(shape): sample(shape) for shape in SHAPES}
    weights = {str(shape): sample(shape, seed=1) for shape in SHAPES}
    step = run.make(entry.described)
    result, state = step.apply(made(run, gradients), made(run, weights))
    found = dict(leaves(run.read({"result": result, "state": state})))
    for shape in SHAPES:
        places = [path for path in found if path.endswith(f"[{str(shape)!r}]")]
        assert places, f"the leaf of shape {shape} is missing"
        for path in places:
            assert found[path].shape == shape, f"{path}: expected shape {shape}, got {found[path].shape}"


@case("TREE-012")
def one_array_twice(run: Run) -> None:
    """The joint norm of [3, 4] and itself is sqrt(50), and there are two traces."""
    array = run.array([3.0, 4.0])
    expected = oracle.global_norm(exacts([host_array([3.0, 4.0])] * 2), 1.0)
    options = {"variant": "global", "threshold": 1.0}
    result, _ = run.step("GradientClippingStep", **options).apply({"a": array, "b": array})
    near(run, result, like_tree({"a": array, "b": array}, expected), 4)
    step = run.step("MomentumStep", decay=0.5)
    _, state = step.apply({"a": array, "b": array})
    _, state = step.apply({"a": array, "b": None}, None, state)
    trace = {"a": host_array([4.5, 6.0]), "b": host_array([3.0, 4.0])}
    same_bits(run.read(state["trace"]), trace)


@case("TREE-013", each={"entry": STEPS})
def keys_in_another_order(run: Run, entry: Entry) -> None:
    """Weights and state in the reverse order of the gradients."""
    gradients = {"b": whole_numbers((3,)), "a": whole_numbers((2, 2), seed=1)}
    weights = {"b": whole_numbers((3,), seed=2), "a": whole_numbers((2, 2), seed=3)}
    step = run.make(entry.described)
    _, state = step.apply(made(run, gradients), made(run, weights))
    expected = run.read(step.apply(made(run, gradients), made(run, weights), state)[0])
    result, _ = step.apply(made(run, gradients), made(run, reverse(weights)), reverse(state))
    same_bits(run.read(result), expected)


def reverse(tree: Any) -> Any:
    """Return the tree with the keys of every dict in the reverse order."""
    if type(tree) is dict:
        return {key: reverse(tree[key]) for key in reversed(list(tree))}
    return tree
