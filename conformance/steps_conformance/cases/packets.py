"""Streams of a packet: taken out, treated differently, and put together again."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from steps_backends import host_array

from ..case import case
from ..compare import same_bits
from ..containers import mapped
from ..descriptions import description
from ..graph_documents import Document, both, custom, graph, node, step_node
from ..oracle.samples import sample
from ..run import Run
from ..targets.protocol import Description
from .judging import ALL_DTYPES, made, refuses_a_name, refuses_as

CLIP = description("GradientClippingStep", variant="global", threshold=0.5)
STEPS: dict[str, Description] = {
    "clip": CLIP,
    "adam": description("AdamStep"),
    "momentum": description("MomentumStep"),
}
CONTAINERS: dict[str, Callable[..., Any]] = {"dict": dict, "ordered": OrderedDict}


def packet(kind: Callable[..., Any] = dict, dtype: str = "float32") -> Any:
    """Return a packet of three streams."""
    return kind(
        [
            ("norm", [sample((3,), dtype, seed=1), sample((), dtype, seed=2)]),
            ("conv", {"w": sample((2, 2), dtype, seed=3, scale=5.0)}),
            ("head", sample((4,), dtype, seed=4, scale=9.0)),
        ]
    )


def parted(step: Description) -> Document:
    """Return a graph that runs a step on two streams and doubles the third, merged out of order."""
    return graph(
        node("rest", "extract_streams", "gradients", names=["conv", "norm"]),
        node("head", "extract_streams", "gradients", names=["head"]),
        step_node("treated", step, "rest"),
        node("doubled", "multiply", "head", 2.0),
        node("out", "merge_streams", "doubled", "treated"),
        negates=False,
    )


@case("PACKET-001", each={"inner": STEPS, "dtype": ALL_DTYPES})
def streams_are_treated_alone(run: Run, inner: Description, dtype: str) -> None:
    """Over two calls, beside the step on a tree of those streams."""
    document = parted(inner) if inner["step"] != "AdamStep" else {**parted(inner), "negates": True}
    whole = packet(dtype=dtype)
    rest = {name: whole[name] for name in ("norm", "conv")}
    step, alone = run.make(custom(document)), run.make(inner)
    state, other = step.init(made(run, whole)), alone.init(made(run, rest))
    same_bits(run.read(state["treated"]), run.read(other))
    for _ in range(2):
        result, state = step.apply(made(run, whole), None, state)
        expected, other = alone.apply(made(run, rest), None, other)
        read, wanted = run.read(result), run.read(expected)
        same_bits({name: read[name] for name in rest}, wanted)
    same_bits(run.read(state["treated"]), run.read(other))


@case("PACKET-002", each={"kind": CONTAINERS, "dtype": ("float16", "float32")})
def merged_in_the_order_of_the_gradients(run: Run, kind: Callable[..., Any], dtype: str) -> None:
    """With the container of the gradients."""
    document = graph(
        node("c", "extract_streams", "gradients", names=["head"]),
        node("b", "extract_streams", "gradients", names=["conv"]),
        node("a", "extract_streams", "gradients", names=["norm"]),
        node("some", "merge_streams", "c", "a"),
        node("out", "merge_streams", "b", "some"),
    )
    whole = packet(kind, dtype)
    result, _ = run.make(custom(document)).apply(made(run, whole), None, None)
    read = run.read(result)
    same_bits(read, whole)
    if kind is OrderedDict:  # the order of a dict means nothing, and compilers sort its keys
        same_bits(list(read.values()), list(whole.values()))


@case("PACKET-002", each={"kind": CONTAINERS})
def merged_streams_meet_the_whole(run: Run, kind: Callable[..., Any]) -> None:
    """As operands of one operation."""
    document = both(
        node("b", "extract_streams", "gradients", names=["head", "conv"]),
        node("a", "extract_streams", "gradients", names=["norm"]),
        node("merged", "merge_streams", "b", "a"),
        node("out", "subtract", "merged", "weights"),
    )
    whole = packet(kind)
    zeros = mapped(lambda host, _: host_array([0.0] * len(host.values), host.dtype, host.shape), whole)
    result, _ = run.make(custom(document)).apply(made(run, whole), made(run, zeros), None)
    same_bits(run.read(result), whole)


@case("PACKET-003", each={"name": {"misspelt": "heads", "empty": "", "with-a-space": "conv "}})
def unknown_streams(run: Run, name: str) -> None:
    """In the call, when the streams are known; the empty name when the graph is made."""
    document = graph(node("out", "extract_streams", "gradients", names=[name]))

    def call() -> Any:
        return run.make(custom(document)).apply(made(run, packet()), None, None)

    refuses_a_name(call, *([repr(name), "conv", "head", "norm"] if name else ["empty"]))


@case("PACKET-004", each={"how": ("in-names", "in-packets")})
def double_streams(run: Run, how: str) -> None:
    """Neither may win over the other."""
    if how == "in-names":
        document = graph(node("out", "extract_streams", "gradients", names=["conv", "conv"]))
    else:
        document = graph(
            node("a", "extract_streams", "gradients", names=["conv", "head"]),
            node("b", "extract_streams", "gradients", names=["norm", "head"]),
            node("out", "merge_streams", "a", "b"),
        )
    refuses_as(
        ("ValueError",),
        lambda: run.make(custom(document)).apply(made(run, packet()), None, None),
        "conv" if how == "in-names" else "head",
    )


@case("PACKET-005", each={"kind": ("array", "list", "tuple")})
def no_packets(run: Run, kind: str) -> None:
    """What has no names."""
    leaf = made(run, sample((2,)))
    given = {"array": leaf, "list": [leaf], "tuple": (leaf, leaf)}[kind]
    document = graph(node("out", "extract_streams", "gradients", names=["conv"]))
    refuses_as(
        ("ValueError", "TypeError"), lambda: run.make(custom(document)).apply(given, None, None), "packet"
    )


@case("PACKET-006", each={"kind": CONTAINERS})
def forgotten_streams(run: Run, kind: Callable[..., Any]) -> None:
    """An output without head."""
    document = graph(node("out", "extract_streams", "gradients", names=["conv", "norm"]))
    step = run.make(custom(document))
    run.refuses(
        lambda: step.apply(made(run, packet(kind)), None, None), kind="ValueError", saying=("tree structure",)
    )


@case("PACKET-007", each={"dtype": ("float16", "float32")})
def streams_of_weights(run: Run, dtype: str) -> None:
    """Decay on one stream only."""
    decay = description("WeightDecayStep", weight_decay=0.5)
    document = both(
        node("g", "extract_streams", "gradients", names=["conv"]),
        node("w", "extract_streams", "weights", names=["conv"]),
        node("rest", "extract_streams", "gradients", names=["norm", "head"]),
        step_node("decayed", decay, "g", "w"),
        node("out", "merge_streams", "decayed", "rest"),
    )
    whole = packet(dtype=dtype)
    result, _ = run.make(custom(document)).apply(made(run, whole), made(run, whole), None)
    conv, _ = run.make(decay).apply(made(run, whole["conv"]), made(run, whole["conv"]), None)
    same_bits(run.read(result), {**whole, "conv": run.read(conv)})


@case("PACKET-007")
def other_streams_of_weights(run: Run) -> None:
    """The gradients of one beside the weights of another."""
    document = both(
        node("g", "extract_streams", "gradients", names=["conv"]),
        node("w", "extract_streams", "weights", names=["head"]),
        step_node("decayed", description("WeightDecayStep"), "g", "w"),
        node("rest", "extract_streams", "gradients", names=["norm", "head"]),
        node("out", "merge_streams", "decayed", "rest"),
    )
    step = run.make(custom(document))
    whole = made(run, packet())
    run.refuses(lambda: step.apply(whole, whole, None), kind="ValueError", saying=("decayed",))
