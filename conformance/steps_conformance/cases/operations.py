"""The operations that graphs use beside steps."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import Mismatch, same_bits, within_ulps
from ..containers import leaves, mapped
from ..graph_documents import Document, both, custom, graph, node
from ..oracle.exact import Exact, exact, mp
from ..oracle.graphs import GraphRun, Tree
from ..oracle.samples import graded, sample, steady
from ..run import Run
from ..targets.protocol import Description
from .judging import ALL_DTYPES, WIDE_DTYPES, made, near

ZERO_WEIGHTS = node("nothing", "multiply", "weights", 0.0)


def exact_tree(tree: Any) -> Tree | None:
    """Return the leaves of a tree of HostArrays by path, as the oracle of graphs takes them."""
    if tree is None:
        return None
    return {path: exact(leaf) for path, leaf in leaves(tree) if leaf is not None}


def in_tree(like: Any, values: Mapping[str, Exact]) -> Any:
    """Return exact arrays in the containers of a tree."""
    return mapped(lambda _, path: values[path], like)


def follows_oracle(
    run: Run,
    document: Document,
    calls: Sequence[tuple[Any, Any]],
    *,
    wide: float,
    narrow: float = 1,
    overrides: Mapping[str, Any] | None = None,
) -> Any:
    """Require the output of each call to be the oracle's; return the last state.

    Args:
        run: the run.
        document: the graph.
        calls: gradients and weights (or None) of each call, trees of HostArrays.
        wide, narrow: tolerances in ulps, as of `near`.
        overrides: values of hyper-parameters.
    """
    step = run.make(custom(document, **(overrides or {})))
    encoded: dict[str, Any] = custom(document, **(overrides or {}))["options"].get("overrides", {})
    oracle = GraphRun(document, encoded)
    state: Any = None
    for gradients, weights in calls:
        given = None if weights is None else made(run, weights)
        result, state = step.apply(made(run, gradients), given, state)
        expected = oracle.call(exact_tree(gradients) or {}, exact_tree(weights))
        near_by_modulus(run, result, in_tree(gradients, expected), wide, narrow)
    return state


def near_by_modulus(run: Run, actual: Any, expected: Any, wide: float, narrow: float) -> None:
    """Require what `near` does, but of complex elements each part within ulps of the modulus.

    In a product or quotient of complex numbers one part may cancel.
    """
    arrays, wanted = dict(leaves(actual)), dict(leaves(expected))
    if arrays.keys() != wanted.keys():
        raise Mismatch(f"expected leaves at {sorted(wanted)}, got {sorted(arrays)}")
    for path, array in arrays.items():
        values = None if wanted[path] is None else wanted[path].values
        if values is None or not any(isinstance(value, mp.mpc) for value in values):
            near(run, array, wanted[path], wide, narrow=narrow)
        else:
            sizes = tuple(mp.mpc(abs(value), abs(value)) for value in values)
            within_ulps(run.read(array), values, wide, of=sizes, path=path)


def tree(dtype: str = "float32", *, seed: int = 0) -> dict[str, Any]:
    """Return a tree of three leaves whose elements differ."""
    return {
        "kernel": graded((2, 3), dtype, seed=seed),
        "bias": [sample((4,), dtype, seed=seed + 1), sample((), dtype, seed=seed + 2)],
    }


# Each on x and y; abs where the rule is for numbers above 0.
ELEMENTWISE: dict[str, list[Document]] = {
    "add": [node("out", "add", "gradients", "weights")],
    "add-number": [node("out", "add", 1.5, "gradients"), ZERO_WEIGHTS],
    "subtract": [node("out", "subtract", "gradients", "weights")],
    "subtract-from-number": [node("out", "subtract", 1.5, "gradients"), ZERO_WEIGHTS],
    "multiply": [node("out", "multiply", "gradients", "weights")],
    "multiply-number": [node("out", "multiply", "gradients", 0.3), ZERO_WEIGHTS],
    "divide": [node("out", "divide", "gradients", "weights")],
    "divide-by-number": [node("out", "divide", "gradients", 3.0), ZERO_WEIGHTS],
    "divide-number": [node("out", "divide", 3.0, "gradients"), ZERO_WEIGHTS],
    "negative": [node("out", "negative", "gradients"), ZERO_WEIGHTS],
    "abs": [node("out", "abs", "gradients"), ZERO_WEIGHTS],
    "sign": [node("out", "sign", "gradients"), ZERO_WEIGHTS],
    "square": [node("out", "square", "gradients"), ZERO_WEIGHTS],
    "sqrt": [node("size", "abs", "gradients"), node("out", "sqrt", "size"), ZERO_WEIGHTS],
}
TRANSCENDENT: dict[str, list[Document]] = {
    "exp": [node("out", "exp", "gradients"), ZERO_WEIGHTS],
    "log": [
        node("size", "abs", "gradients"),
        node("large", "add", "size", 2.0),
        node("out", "log", "large"),
        ZERO_WEIGHTS,
    ],
    "power": [node("size", "abs", "gradients"), node("out", "power", "size", 1.5), ZERO_WEIGHTS],
    "power-of-number": [node("out", "power", 2.0, "gradients"), ZERO_WEIGHTS],
}
ORDERED: dict[str, list[Document]] = {
    "minimum": [node("out", "minimum", "gradients", "weights")],
    "minimum-number": [node("out", "minimum", 0.25, "gradients"), ZERO_WEIGHTS],
    "maximum": [node("out", "maximum", "gradients", "weights")],
    "maximum-number": [node("out", "maximum", "gradients", 0.25), ZERO_WEIGHTS],
    "clip": [node("out", "clip", "gradients", -0.5, 0.25), ZERO_WEIGHTS],
    "clip-between-trees": [
        node("upper", "abs", "weights"),
        node("lower", "negative", "upper"),
        node("out", "clip", "gradients", "lower", "upper"),
    ],
    **{
        f"where-{name}": [
            node("is", name, "gradients", "weights"),
            node("out", "where", "is", "gradients", 7.0),
        ]
        for name in ("less", "less_equal", "greater", "greater_equal")
    },
    "where-equal-is-both": [
        node("is", "less_equal", "gradients", "gradients"),
        node("not", "less", "gradients", "gradients"),
        node("first", "where", "is", "gradients", 7.0),
        node("out", "where", "not", 9.0, "first"),
        ZERO_WEIGHTS,
    ],
    "where-numbers": [
        node("is", "greater", "gradients", 0.0),
        node("out", "where", "is", 1.5, -2.5),
        ZERO_WEIGHTS,
    ],
    "logic": [
        node("a", "greater", "gradients", 0.0),
        node("b", "greater", "weights", 0.0),
        node("both", "logical_and", "a", "b"),
        node("either", "logical_or", "a", "b"),
        node("neither", "logical_not", "either"),
        node("first", "where", "both", "gradients", 0.5),
        node("out", "where", "neither", "weights", "first"),
    ],
    "isfinite": [
        node("is", "isfinite", "gradients"),
        node("out", "where", "is", "gradients", 1.0),
        ZERO_WEIGHTS,
    ],
}


def with_both(nodes: Sequence[Document]) -> Document:
    """Return the graph of these nodes, its sign left open; weights that are not used are added times 0."""
    names = [entry["name"] for entry in nodes]
    if "nothing" in names:
        return both(*nodes, node("whole", "add", "out", "nothing"), negates=False)
    return both(*nodes, negates=False) if nodes[-1]["operation"] != "negative" else both(*nodes)


@case("OPERATION-001", each={"nodes": ELEMENTWISE, "dtype": ALL_DTYPES})
def elementwise(run: Run, nodes: list[Document], dtype: str) -> None:
    """On a tree of three leaves."""
    calls = [(tree(dtype, seed=10), tree(dtype, seed=20))]
    follows_oracle(run, with_both(nodes), calls, wide=4)


@case("OPERATION-001", each={"nodes": TRANSCENDENT, "dtype": ("float16", "bfloat16", "float32", "float64")})
def transcendent(run: Run, nodes: list[Document], dtype: str) -> None:
    """Whose last bit differs between libraries."""
    calls = [({"x": sample((7,), dtype, seed=3)}, {"x": sample((7,), dtype, seed=4)})]
    follows_oracle(run, with_both(nodes), calls, wide=8)


@case("OPERATION-001", each={"nodes": ORDERED, "dtype": ("float16", "bfloat16", "float32", "float64")})
def ordered(run: Run, nodes: list[Document], dtype: str) -> None:
    """What asks which of two is larger gives one of them, exactly."""
    calls = [(tree(dtype, seed=30), tree(dtype, seed=40))]
    follows_oracle(run, with_both(nodes), calls, wide=0, narrow=0)


SCALARS: dict[str, list[Document]] = {
    "number-and-leaf": [node("out", "multiply", "gradients", 0.7)],
    "scalar-and-leaf": [node("n", "norm", "gradients"), node("out", "divide", "gradients", "n")],
    "scalar-of-scalars": [
        node("n", "norm", "gradients"),
        node("m", "norm", "gradients", order=1.0),
        node("p", "divide", "n", "m"),
        node("q", "maximum", "p", 0.125),
        node("out", "multiply", "gradients", "q"),
    ],
    "leaf-and-its-norm": [
        node("n", "norm", "gradients", over="leaf"),
        node("out", "divide", "gradients", "n"),
    ],
    "leaf-and-its-units": [
        node("n", "norm", "gradients", over="unit"),
        node("out", "divide", "gradients", "n"),
    ],
    "units-and-leaf-norm": [
        node("u", "norm", "gradients", over="unit"),
        node("n", "norm", "gradients", over="leaf"),
        node("s", "divide", "u", "n"),
        node("out", "multiply", "s", "gradients"),
    ],
    "choice-by-scalar": [
        node("n", "norm", "gradients"),
        node("is", "greater", "n", 0.5),
        node("half", "multiply", "gradients", 0.5),
        node("out", "where", "is", "half", "gradients"),
    ],
    "choice-by-leaf": [
        node("n", "norm", "gradients", over="leaf"),
        node("is", "less", "n", 2.0),
        node("out", "where", "is", "gradients", 0.25),
    ],
}


@case("OPERATION-002", each={"nodes": SCALARS, "dtype": ("float16", "float32", "float64")})
def scalars(run: Run, nodes: list[Document], dtype: str) -> None:
    """Numbers, scalars, what is left of a leaf and of its units."""
    follows_oracle(run, graph(*nodes), [(tree(dtype, seed=50), None)], wide=6)


@case("OPERATION-002", dtypes=("float64",))
def a_scalar_of_mixed_leaves(run: Run) -> None:
    """The norm of a float32 and a float64 leaf meets both; no dtype changes."""
    whole = {"a": sample((3,), "float32", seed=1), "b": sample((3,), "float64", seed=2)}
    nodes = [node("n", "norm", "gradients"), node("out", "divide", "gradients", "n")]
    follows_oracle(run, graph(*nodes), [(whole, None)], wide=4)


REDUCTIONS: dict[str, dict[str, Any]] = {
    **{f"norm-{over}": {"operation": "norm", "over": over} for over in ("tree", "leaf", "unit")},
    **{
        f"norm1-{over}": {"operation": "norm", "over": over, "order": 1.0}
        for over in ("tree", "leaf", "unit")
    },
    **{
        f"largest-{over}": {"operation": "norm", "over": over, "order": math.inf}
        for over in ("tree", "leaf", "unit")
    },
    **{f"sum-{over}": {"operation": "sum", "over": over} for over in ("tree", "leaf", "unit")},
    **{f"mean-{over}": {"operation": "mean", "over": over} for over in ("tree", "leaf", "unit")},
    "norm-rows": {"operation": "norm", "over": "unit", "unit_axis": 0},
    "norm-both-axes": {"operation": "norm", "over": "unit", "unit_axis": [0, 1]},
    "mean-last": {"operation": "mean", "over": "unit", "unit_axis": -1},
}
FORMS: dict[str, tuple[int, ...]] = {"matrix": (3, 4), "rank-4": (2, 3, 2, 4), "row": (1, 6)}


def reduced(options: Mapping[str, Any]) -> Document:
    """Return the graph that gives a reduction of |x| at each element."""
    rest = {key: value for key, value in options.items() if key != "operation"}
    return graph(
        node("size", "abs", "gradients"),
        node("r", options["operation"], "size", **rest),
        node("zero", "multiply", "gradients", 0.0),
        node("out", "add", "zero", "r"),
    )


@case(
    "OPERATION-003", each={"options": REDUCTIONS, "form": FORMS, "dtype": ("float16", "float32", "float64")}
)
def reductions(run: Run, options: dict[str, Any], form: tuple[int, ...], dtype: str) -> None:
    """Of numbers that are far apart."""
    follows_oracle(run, reduced(options), [({"x": graded(form, dtype, seed=7)}, None)], wide=4)


LONG = ("norm-tree", "norm-unit", "sum-unit", "mean-leaf")


@case("OPERATION-003", each={"options": {name: REDUCTIONS[name] for name in LONG}})
def reductions_of_long_leaves(run: Run, options: dict[str, Any]) -> None:
    """Of 10,000 elements in two columns."""
    follows_oracle(run, reduced(options), [({"x": sample((5000, 2), seed=7)}, None)], wide=4)


@case("OPERATION-003", each={"options": {k: v for k, v in REDUCTIONS.items() if "-tree" in k}})
def reductions_of_many_leaves(run: Run, options: dict[str, Any]) -> None:
    """Of 300 leaves, empty ones among them; of 40 on a backend that compiles each call."""
    whole = [sample((n % 5,), seed=n) for n in range(40 if "jit" in run.traits else 300)]
    follows_oracle(run, reduced(options), [(whole, None)], wide=4)


@case(
    "OPERATION-003", each={"options": {k: v for k, v in REDUCTIONS.items() if "-" in k and "rows" not in k}}
)
def reductions_of_nothing(run: Run, options: dict[str, Any]) -> None:
    """An empty leaf beside one of ones: the empty one changes nothing, and alone it gives 0."""
    rest = {key: value for key, value in options.items() if key != "operation"}
    document = graph(
        node("r", options["operation"], "gradients", **rest),
        node("out", "add", "gradients", "r"),
    )
    empty = host_array([], "float32", (0, 3))
    result, _ = run.make(custom(document)).apply([made(run, empty), None], None, None)
    same_bits(run.read(result), [empty, None])


@case("OPERATION-003", each={"name": ("sum", "mean")})
def sums_keep_signs(run: Run, name: str) -> None:
    """Numbers of both signs, exactly representable."""
    whole = {"x": host_array([[3.0, -5.0], [-1.0, 7.0]]), "y": host_array([2.0, -2.0])}
    document = graph(node("r", name, "gradients"), node("out", "add", "gradients", "r"))
    follows_oracle(run, document, [(whole, None)], wide=1)


EXTREMES = {"large": 1e30, "largest": 3e38, "small": 1e-30}


@case("OPERATION-004", each={"size": EXTREMES, "over": ("tree", "leaf", "unit")})
def norms_of_extremes(run: Run, size: float, over: str) -> None:
    """Divided by their norm, they are a unit vector."""
    whole = {"x": host_array([size, 0.0, -size / 2])}
    nodes = [node("n", "norm", "gradients", over=over), node("out", "divide", "gradients", "n")]
    follows_oracle(run, graph(*nodes), [(whole, None)], wide=4)


@case("OPERATION-004", each={"size": EXTREMES, "over": ("tree", "leaf", "unit")})
def means_of_extremes(run: Run, size: float, over: str) -> None:
    """Whose sum overflows."""
    whole = {"x": host_array([size, size, size])}
    nodes = [
        node("m", "mean", "gradients", over=over),
        node("zero", "multiply", "gradients", 0.0),
        node("out", "add", "zero", "m"),
    ]
    follows_oracle(run, graph(*nodes), [(whole, None)], wide=4)


MANY = {"largest": 3e38, "tiny": 2.0**-122}


@case("OPERATION-004", each={"size": MANY, "over": ("tree", "leaf", "unit")})
def means_of_many(run: Run, size: float, over: str) -> None:
    """So many that a sum over few parts of them overflows, or a part of each loses its digits."""
    whole = {"x": host_array([abs(value) * size for value in sample((300,)).values])}
    nodes = [
        node("m", "mean", "gradients", over=over),
        node("zero", "multiply", "gradients", 0.0),
        node("out", "add", "zero", "m"),
    ]
    follows_oracle(run, graph(*nodes), [(whole, None)], wide=4)


@case("OPERATION-004", each={"over": ("tree", "leaf", "unit")})
def means_of_equals(run: Run, over: str) -> None:
    """Many equal numbers near the smallest normal one: a part of each would lose digits, all alike."""
    whole = {"x": host_array([4 / 3 * 2.0**-125] * 300)}
    nodes = [
        node("m", "mean", "gradients", over=over),
        node("zero", "multiply", "gradients", 0.0),
        node("out", "add", "zero", "m"),
    ]
    follows_oracle(run, graph(*nodes), [(whole, None)], wide=4)


@case("OPERATION-004", each={"size": {"large": 1e38, "small": 1e-35}})
def division_by_extremes(run: Run, size: float) -> None:
    """By a number, and by a scalar: no reciprocal may be taken that leaves the format."""
    whole = {"x": host_array([size, -size / 2, size / 3])}
    by_number = graph(node("out", "divide", "gradients", float(size)))
    by_scalar = graph(node("n", "norm", "gradients", order=math.inf), node("out", "divide", "gradients", "n"))
    for document in (by_number, by_scalar):
        follows_oracle(run, document, [(whole, None)], wide=4)


def over_calls(dtype: str, seed: int) -> list[tuple[Any, Any]]:
    """Return five calls whose gradients keep their signs."""
    return [({"x": leaf}, None) for leaf in steady((3,), 5, dtype, seed=seed)]


AVERAGES: dict[str, dict[str, Any]] = {
    "default": {},
    "slow": {"decay": 0.999},
    "none": {"decay": 0.0},
    "corrected": {"decay": 0.75, "bias_correction": True},
}
TRACES: dict[str, dict[str, Any]] = {
    "default": {},
    "half": {"decay": 0.5},
    "nesterov": {"decay": 0.75, "nesterov": True},
}


@case("OPERATION-005", each={"options": AVERAGES, "dtype": ALL_DTYPES})
def moving_averages(run: Run, options: dict[str, Any], dtype: str) -> None:
    """Over five calls."""
    document = graph(node("out", "moving_average", "gradients", **options))
    follows_oracle(run, document, over_calls(dtype, 60), wide=8)


@case("OPERATION-006", each={"options": TRACES, "dtype": ALL_DTYPES})
def traces(run: Run, options: dict[str, Any], dtype: str) -> None:
    """Over five calls."""
    document = graph(node("out", "trace", "gradients", **options))
    follows_oracle(run, document, over_calls(dtype, 70), wide=8)


@case("OPERATION-007", each={"dtype": ALL_DTYPES})
def previous_values(run: Run, dtype: str) -> None:
    """Zeros, then each gradient a call late."""
    step = run.make(custom(graph(node("out", "previous_value", "gradients"))))
    state: Any = None
    before = mapped(lambda host, _: host_array([0.0] * 3, dtype, (3,)), {"x": sample((3,), dtype)})
    for gradients, _ in over_calls(dtype, 80):
        result, state = step.apply(made(run, gradients), None, state)
        same_bits(run.read(result), before)
        before = gradients


@case("OPERATION-008")
def counters(run: Run) -> None:
    """0, 1, 2, and from a count near the largest on, the largest."""
    document = graph(
        node("n", "counter"), node("zero", "multiply", "gradients", 0.0), node("out", "add", "zero", "n")
    )
    step = run.make(custom(document))
    leaf = host_array([5.0, 6.0])
    state = step.init(made(run, leaf))
    for count in range(3):
        result, state = step.apply(made(run, leaf), None, state)
        same_bits(run.read(result), host_array([float(count)] * 2))
    state["n"]["count"] = run.array(2**31 - 2, "int32", ())
    for _ in range(3):
        _, state = step.apply(made(run, leaf), None, state)
        same_bits(run.read(state["n"]["count"]), host_array(2**31 - 1, "int32"))


STATEFUL_SCALARS: dict[str, Document] = {
    "moving-average": node("s", "moving_average", "n", decay=0.75, bias_correction=True),
    "trace": node("s", "trace", "n", decay=0.5),
    "previous-value": node("s", "previous_value", "n"),
}


@case("OPERATION-009", each={"operation": STATEFUL_SCALARS})
def scalars_are_remembered(run: Run, operation: Document) -> None:
    """The norm of the tree."""
    document = graph(
        node("n", "norm", "gradients"),
        operation,
        node("safe", "add", "s", 1.0),
        node("out", "divide", "gradients", "safe"),
    )
    state = follows_oracle(run, document, over_calls("float32", 90), wide=8)
    (entry,) = [value for key, value in state["s"].items() if key != "count"]
    if run.read(entry).shape != ():
        raise Mismatch(f"the state of a scalar must be a 0-d array, got shape {run.read(entry).shape}")


NAN = math.nan


@case("OPERATION-010", each={"dtype": ("float16", "float32")})
def nan_passes(run: Run, dtype: str) -> None:
    """In minimum, maximum, clip and sign, on either side; a comparison does not hold."""
    x, y = host_array([NAN, 1.0, NAN, 2.0], dtype), host_array([1.0, NAN, NAN, 2.0], dtype)
    for name in ("minimum", "maximum"):
        both_sides = both(node("out", name, "gradients", "weights"))
        _gives(run, custom(both_sides), x, y, host_array([NAN, NAN, NAN, 2.0], dtype))
        _gives(
            run, custom(graph(node("out", name, "gradients", 2.0))), x, None, x if name == "minimum" else None
        )
    _gives(
        run,
        custom(graph(node("c", "clip", "gradients", -1.5, 1.5), node("out", "sign", "c"))),
        x,
        None,
        host_array([NAN, 1.0, NAN, 1.0], dtype),
    )
    for name in ("less", "less_equal", "greater", "greater_equal"):
        chosen = both(node("is", name, "gradients", "weights"), node("out", "where", "is", 1.0, 0.0))
        equal = 1.0 if "equal" in name else 0.0
        _gives(run, custom(chosen), x, y, host_array([0.0, 0.0, 0.0, equal], dtype))


@case("OPERATION-010", each={"dtype": ("float16", "float32", "float64")})
def nothing_real_is_nan(run: Run, dtype: str) -> None:
    """The root and the logarithm of a negative number."""
    x = host_array([-4.0, 1.0], dtype)
    for name, of_one in (("sqrt", 1.0), ("log", 0.0)):
        _gives(run, custom(graph(node("out", name, "gradients"))), x, None, host_array([NAN, of_one], dtype))


def _gives(
    run: Run, step: Description, x: HostArray, y: HostArray | None, expected: HostArray | None
) -> None:
    result, _ = run.make(step).apply(made(run, x), None if y is None else made(run, y), None)
    if expected is None:
        expected = host_array([NAN, 2.0, NAN, 2.0], x.dtype)
    same_bits(run.read(result), expected)


COMPLEX_REFUSED: dict[str, list[Document]] = {
    "minimum": [node("out", "minimum", "gradients", 1.0)],
    "maximum": [node("out", "maximum", "gradients", "gradients")],
    "clip": [node("out", "clip", "gradients", -1.0, 1.0)],
    "less": [node("is", "less", "gradients", 1.0), node("out", "where", "is", "gradients", 0.0)],
    "sum": [node("s", "sum", "gradients"), node("out", "multiply", "gradients", "s")],
    "mean": [node("s", "mean", "gradients"), node("out", "multiply", "gradients", "s")],
}


@case("OPERATION-011", each={"nodes": COMPLEX_REFUSED}, dtypes=("complex64",))
def complex_numbers_have_no_order(run: Run, nodes: list[Document]) -> None:
    """The path is said."""
    step = run.make(custom(graph(*nodes)))
    leaf = {"kernel": made(run, sample((3,), "complex64"))}
    run.refuses(lambda: step.apply(leaf, None, None), kind="TypeError", saying=("kernel", "real"))


@case("OPERATION-011", each={"dtype": [dtype for dtype in WIDE_DTYPES if dtype.startswith("complex")]})
def sizes_of_complex_numbers_are_real(run: Run, dtype: str) -> None:
    """A product with one keeps the phase; a norm counts moduli."""
    document = graph(
        node("size", "abs", "gradients"),
        node("n", "norm", "gradients", over="unit"),
        node("s", "divide", "size", "n"),
        node("out", "multiply", "gradients", "s"),
    )
    follows_oracle(run, document, [(tree(dtype, seed=95), None)], wide=6)


@case("OPERATION-012")
def infinite_constants(run: Run) -> None:
    """A one-sided clip, a bound that binds nothing, and a comparison that always holds."""
    x = host_array([-2.0, 3e38, math.inf, -math.inf])
    documents = {
        "clip": (graph(node("out", "clip", "gradients", -math.inf, 1.0)), [-2.0, 1.0, 1.0, -math.inf]),
        "minimum": (graph(node("out", "minimum", "gradients", math.inf)), list(x.values)),
        "less": (
            graph(node("is", "less", "gradients", math.inf), node("out", "where", "is", 1.0, 0.0)),
            [1.0, 1.0, 0.0, 1.0],
        ),
    }
    for document, expected in documents.values():
        _gives(run, custom(document), x, None, host_array(expected))


@case("OPERATION-012", each={"operation": ("multiply", "maximum", "less")})
def numbers_beyond_the_format(run: Run, operation: str) -> None:
    """1e300 beside a leaf of float32."""
    nodes = [node("out", operation, "gradients", 1e300)]
    if operation == "less":
        nodes = [node("is", operation, "gradients", 1e300), node("out", "where", "is", "gradients", 0.0)]
    step = run.make(custom(graph(*nodes)))
    leaf = made(run, sample((3,)))
    run.refuses(lambda: step.apply(leaf, None, None), kind="ValueError", saying=("fit", "1e+300"))
