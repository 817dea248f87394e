"""Vectors of custom steps: graphs in JSON inside them, run by the oracle of graphs."""

from collections.abc import Mapping, Sequence
from typing import Any

from steps_backends import HostArray, host_array

from ...containers import leaves, mapped
from ...graph_documents import Document, custom, graph, node
from ...graph_samples import DECAYED, LARS, PARTED, SIGN_DESCENT, TRAINED
from ...oracle import momentum as momentum_oracle
from ...oracle.exact import Exact, exact, mp
from ...oracle.graphs import GraphRun, Tree
from ...oracle.samples import graded, sample, steady
from ..model import Expected, Vector, VectorCall, unchanged
from .every_kind import Subject, add_every_kind, callwise
from .sheet import NARROW, Sheet, expect

DTYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
_WIDE = {"float16": "float32", "bfloat16": "float32"}


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    _trained(sheet)
    _overridden(sheet)
    _long(sheet)
    _streams(sheet)
    _averages(sheet)
    _reductions(sheet)
    _identity(sheet)
    _every_kind(sheet)
    _resumed(sheet)
    return sheet.listed()


def _trained(sheet: Sheet) -> None:
    for name, document in TRAINED.items():
        for dtype in DTYPES:
            calls = _calls(5, dtype, with_weights=_has_weights(document))
            shows = f"five calls of the graph {name} in {dtype}"
            _add(sheet, "CUSTOM-002", f"{name}-{dtype}", shows, document, calls)


def _overridden(sheet: Sheet) -> None:
    calls = _calls(3, "float32", with_weights=True)
    overrides = {"share": 2.0, "limit": 0.125}
    _add(sheet, "CUSTOM-004", "decayed", "two defaults are overridden", DECAYED, calls, overrides=overrides)
    overrides = {"momentum": 0.0, "rate": -1.0}
    _add(
        sheet, "CUSTOM-004", "lars", "an option and a number are overridden", LARS, calls, overrides=overrides
    )


def _long(sheet: Sheet) -> None:
    for dtype in ("float32", "float64"):
        for name, document in (("lars", LARS), ("sign-descent", SIGN_DESCENT)):
            calls = _calls(50, dtype, with_weights=_has_weights(document))
            shows = f"fifty calls of the graph {name} in {dtype}, with the state at the end"
            _add(sheet, "OPERATION-006", f"{name}-50-{dtype}", shows, document, calls, traced="m")


def _streams(sheet: Sheet) -> None:
    for dtype in ("float16", "float32", "float64"):
        packets = [
            {
                "norm": [leaf, None],
                "conv": {"w": sample((2, 2), dtype, seed=30 + number, scale=5.0)},
                "head": sample((3,), dtype, seed=60 + number),
            }
            for number, leaf in enumerate(steady((2,), 1, dtype, seed=29))
        ]
        calls = [(packet, packet) for packet in packets]
        shows = "two streams are clipped together and go through Adam, the third has its own rate"
        _add(sheet, "PACKET-001", f"parted-{dtype}", shows, PARTED, calls)


AVERAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "moving-average": ("OPERATION-005", {"operation": "moving_average", "decay": 0.75}),
    "corrected": ("OPERATION-005", {"operation": "moving_average", "decay": 0.999, "bias_correction": True}),
    "trace": ("OPERATION-006", {"operation": "trace"}),
    "nesterov": ("OPERATION-006", {"operation": "trace", "decay": 0.5, "nesterov": True}),
    "previous": ("OPERATION-007", {"operation": "previous_value"}),
}


def _averages(sheet: Sheet) -> None:
    for name, (requirement, described) in AVERAGES.items():
        options = {key: value for key, value in described.items() if key != "operation"}
        alone = graph(node("out", described["operation"], "gradients", **options))
        scalar = graph(
            node("n", "norm", "gradients"),
            node("s", described["operation"], "n", **options),
            node("safe", "add", "s", 1.0),
            node("out", "divide", "gradients", "safe"),
        )
        for dtype in ("float16", "float32", "float64", "complex64"):
            calls = _calls(5, dtype, with_weights=False)
            _add(sheet, requirement, f"{name}-{dtype}", f"{name} over five calls", alone, calls)
        calls = _calls(5, "float32", with_weights=False)
        _add(sheet, "OPERATION-009", name, f"{name} of the norm of the tree", scalar, calls)
    counted = graph(
        node("calls", "counter"),
        node("next", "add", "calls", 1.0),
        node("out", "divide", "gradients", "next"),
    )
    calls = _calls(4, "float32", with_weights=False)
    _add(sheet, "OPERATION-008", "counter", "each gradient divided by the number of its call", counted, calls)


def _reductions(sheet: Sheet) -> None:
    for operation, options in (
        ("norm", {}),
        ("norm", {"order": 1.0}),
        ("norm", {"order": float("inf")}),
        ("sum", {}),
        ("mean", {}),
    ):
        for over in ("tree", "leaf", "unit"):
            document = graph(
                node("size", "abs", "gradients"),
                node("r", operation, "size", over=over, **options),
                node("whole", "add", "r", 1.0),
                node("out", "divide", "gradients", "whole"),
            )
            label = f"{operation}{''.join(f'-{value:g}' for value in options.values())}-{over}"
            for dtype in ("float16", "float32", "float64"):
                tree = {
                    "kernel": graded((2, 3), dtype, seed=1),
                    "conv": graded((2, 1, 2, 2), dtype, seed=2),
                    "scale": sample((), dtype, seed=3),
                    "empty": host_array([], dtype, (0, 2)),
                    "none": None,
                }
                shows = f"each element divided by 1 + the {operation} over its {over}"
                _add(sheet, "OPERATION-003", f"{label}-{dtype}", shows, document, [(tree, None)])
    for size in (1e30, 1e-30, 3e38):
        document = graph(node("n", "norm", "gradients"), node("out", "divide", "gradients", "n"))
        leaf = host_array([size, -size / 2, 0.0])
        shows = "what is divided by its norm has the norm 1, at any size"
        _add(sheet, "OPERATION-004", f"unit-vector-{size:g}", shows, document, [(leaf, None)])


def _identity(sheet: Sheet) -> None:
    leaf = host_array([1.0, -0.0, float("nan"), float("inf"), 1e-45])
    call = VectorCall(leaf, None, unchanged(leaf), {})
    shows = "a graph without nodes gives its gradients back"
    sheet.add("CUSTOM-001", "identity", shows, custom(graph()), [call])


REMEMBERING = graph(node("m", "trace", "gradients", decay=0.5), node("out", "negative", "m"))


def _every_kind(sheet: Sheet) -> None:
    def negated_sums(gradients: list[HostArray], _: Any) -> list[Expected]:
        sums = momentum_oracle.momentum([exact(g) for g in gradients], decay=0.5).updates
        first = len(gradients) == 1  # the first trace is the gradient
        return [
            expect(g, each.map(lambda x: -x), wide=0 if first else 8, narrow=0 if first else 1)
            for g, each in zip(gradients, sums, strict=True)
        ]

    subject = Subject("custom", custom(REMEMBERING), callwise(negated_sums), "OPERATION-006", many=True)
    add_every_kind(sheet, subject)


def _resumed(sheet: Sheet) -> None:
    for dtype in ("float16", "float32", "float64", "complex64"):
        wide = _WIDE.get(dtype, dtype)
        kernel, bias = steady((2, 3), 1, wide, seed=8)[0], steady((3,), 1, wide, seed=9)[0]
        state = {"kernel": kernel, "bias": [bias]}
        calls = _calls(3, dtype, with_weights=False)
        shows = "three calls that go on from a trace that is given"
        _add(sheet, "OPERATION-006", f"resumed-{dtype}", shows, REMEMBERING, calls, traced="m", start=state)


def _has_weights(document: Document) -> bool:
    return len(document["placeholders"]) == 2


def _calls(count: int, dtype: str, *, with_weights: bool) -> list[tuple[Any, Any]]:
    """Return calls on two leaves; weights have the signs of the gradients, so that no sum cancels."""
    kernels, biases = steady((2, 3), count, dtype, seed=8), steady((3,), count, dtype, seed=9)
    trees = [{"kernel": kernel, "bias": [bias]} for kernel, bias in zip(kernels, biases, strict=True)]
    return [(tree, trees[0] if with_weights else None) for tree in trees]


def _add(
    sheet: Sheet,
    requirement: str,
    name: str,
    shows: str,
    document: Document,
    calls: Sequence[tuple[Any, Any]],
    *,
    overrides: Mapping[str, Any] | None = None,
    traced: str | None = None,
    start: Any = None,
) -> None:
    step = custom(document, **(overrides or {}))
    run = GraphRun(document, step["options"].get("overrides", {}))
    if traced is not None and start is not None:
        run.memory[traced] = _exact_tree(start)
    made = []
    for gradients, weights in calls:
        expected = run.call(_exact_tree(gradients) or {}, _exact_tree(weights))
        made.append(VectorCall(gradients, weights, _expected_tree(gradients, expected, narrow=1)))
    if traced is not None:
        gradients, weights = calls[-1]
        last = {traced: {"trace": _expected_tree(gradients, run.memory[traced], narrow=None)}}
        made[-1] = VectorCall(gradients, weights, made[-1].expected, last)
    state = None if start is None else {traced: {"trace": start}}
    init = calls[0][1] if start is None else None
    sheet.add(requirement, name, shows, step, made, init=init, state=state)


def _exact_tree(tree: Any) -> Tree | None:
    return None if tree is None else {path: exact(leaf) for path, leaf in leaves(tree) if leaf is not None}


def _expected_tree(like: Any, values: Mapping[str, Exact], *, narrow: float | None) -> Any:
    """Return expectations of 16 ulps; of a complex element, of its modulus; narrow None: as in states."""

    def expected(leaf: HostArray, path: str) -> Expected:
        value = values[path]
        dtype = leaf.dtype if narrow is not None else _WIDE.get(leaf.dtype, leaf.dtype)
        ulps = narrow if narrow is not None and dtype in NARROW else 16
        of = None
        if dtype.startswith("complex"):
            of = tuple(mp.mpc(abs(each), abs(each)) for each in value.values)
        return Expected(dtype, value.shape, value.values, ulps, of)

    return mapped(expected, like)
