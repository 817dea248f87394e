"""Custom steps: graphs with hyper-parameters, state by node, nesting, sign, and what is refused."""

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from steps_backends import host_array

from ..case import case
from ..compare import Mismatch, same_bits
from ..descriptions import chain, description, encoded, schedule
from ..graph_documents import (
    Document,
    both,
    custom,
    described,
    graph,
    node,
    parameter,
    step_node,
)
from ..graph_samples import ADAM, CLIP, DECAYED, LARS, TRAINED
from ..oracle.exact import exact
from ..oracle.samples import sample, steady, whole_numbers
from ..run import Run
from ..targets.protocol import Description
from .judging import ALL_DTYPES, made, near, refuses_a_name, refuses_as
from .operations import follows_oracle

NEGATIVE = graph(node("n", "negative", "gradients"))
CONSTRAINT = description("ConstraintStep", constraint="nonnegative")


def leaves_of(dtype: str, seed: int) -> dict[str, Any]:
    """Return a tree of two leaves."""
    return {"kernel": sample((2, 3), dtype, seed=seed), "bias": [sample((3,), dtype, seed=seed + 1)]}


@case("CUSTOM-001", each={"names": (("gradients", "weights"), ("w", "g"), ("x1", "_y"))})
def placeholders_by_order(run: Run, names: tuple[str, str]) -> None:
    """The first less the second."""
    document = graph(node("out", "subtract", *names), placeholders=names)
    g, w = whole_numbers((4,), seed=1), whole_numbers((4,), seed=2)
    result, _ = run.make(custom(document)).apply(made(run, g), made(run, w), None)
    same_bits(run.read(result), host_array([a - b for a, b in zip(g.values, w.values, strict=True)]))


@case("CUSTOM-001")
def one_placeholder(run: Run) -> None:
    """With weights and without; the identity too."""
    leaf = whole_numbers((4,), seed=1)
    for document, factor in ((NEGATIVE, -1.0), (graph(), 1.0)):
        step = run.make(custom(document))
        for weights in (None, made(run, leaf)):
            result, _ = step.apply(made(run, leaf), weights, None)
            same_bits(run.read(result), host_array([factor * value for value in leaf.values]))


@case("CUSTOM-001")
def weights_are_asked_for(run: Run) -> None:
    """By a graph of two placeholders."""
    step = run.make(custom(DECAYED))
    leaf = made(run, sample((3,)))
    run.refuses(lambda: step.apply(leaf, None, None), kind="ValueError", saying=("weights",))


@case("CUSTOM-002", each={"dtype": ALL_DTYPES})
def parameters_feed_operations_and_options(run: Run, dtype: str) -> None:
    """One name in an operation and in the options of two steps, beside the graph of plain numbers."""
    value = 0.375

    def document(where: Any, parameters: Mapping[str, Any]) -> Document:
        option = where if isinstance(where, str) else None
        given = parameter(option) if option else encoded(where)
        return graph(
            step_node(
                "clipped", {"step": "GradientClippingStep", "options": {"threshold": given}}, "gradients"
            ),
            step_node("m", {"step": "MomentumStep", "options": {"decay": given}}, "clipped"),
            node("out", "multiply", "m", where),
            parameters=parameters,
        )

    plain = run.make(custom(document(value, {})))
    by_default = run.make(custom(document("p", {"p": value})))
    by_override = run.make(custom(document("p", {"p": 0.5}), p=value))
    states: list[Any] = [None, None, None]
    for leaf in steady((3,), 3, dtype, seed=5):
        results = []
        for index, step in enumerate((plain, by_default, by_override)):
            result, states[index] = step.apply(made(run, leaf), None, states[index])
            results.append(run.read(result))
        same_bits(results[1], results[0])
        same_bits(results[2], results[0])


@case("CUSTOM-002", each={"document": TRAINED, "dtype": ("float16", "float32", "float64", "complex64")})
def trained(run: Run, document: Document, dtype: str) -> None:
    """Five calls of graphs that people use, against the oracle."""
    kernels, biases = steady((2, 3), 5, dtype, seed=8), steady((3,), 5, dtype, seed=9)
    # Of the signs of the gradients, so that no sum cancels.
    weights = {"kernel": kernels[0], "bias": [biases[0]]} if len(document["placeholders"]) == 2 else None
    calls = [({"kernel": k, "bias": [b]}, weights) for k, b in zip(kernels, biases, strict=True)]
    follows_oracle(run, document, calls, wide=16)


@case("CUSTOM-003", dtypes=("float64",))
def numbers_as_doubles(run: Run) -> None:
    """1 - (1 - 2^-40) in an operation and in an option; float32 would give 0."""
    document = graph(
        node("left", "subtract", 1.0, "decay"),
        node("large", "multiply", "left", 2.0**30),
        step_node("scaled", described("ScalingStep", scale=parameter("large")), "gradients"),
        node("out", "multiply", "scaled", "left"),
        parameters={"decay": 1 - 2.0**-40},
    )
    step = run.make(custom(document))
    result, _ = step.apply(made(run, host_array([3.0, -5.0])), None, None)
    same_bits(run.read(result), host_array([3.0 * 2.0**-50, -5.0 * 2.0**-50]))
    result, _ = step.apply(made(run, host_array([3.0], "float64")), None, None)
    same_bits(run.read(result), host_array([3.0 * 2.0**-50], "float64"))


@case("CUSTOM-004")
def overrides(run: Run) -> None:
    """Beside the graph with that default; None where an option takes it."""
    other = {**DECAYED, "parameters": both(parameters={"share": 2.0, "limit": 1.0})["parameters"]}
    tree, weights = made(run, leaves_of("float32", 1)), made(run, leaves_of("float32", 3))
    results = [
        run.read(run.make(described_step).apply(tree, weights, None)[0])
        for described_step in (custom(DECAYED, share=2.0), custom(other))
    ]
    same_bits(results[0], results[1])
    unclipped, _ = run.make(custom(DECAYED, limit=None, share=0.0)).apply(tree, weights, None)
    negated, _ = run.make(custom(NEGATIVE)).apply(tree, None, None)
    same_bits(run.read(unclipped), run.read(negated))


@case("CUSTOM-004", each={"name": ("shares", "gradients", "clipped")})
def unknown_overrides(run: Run, name: str) -> None:
    """A misspelt name, a placeholder, a node."""
    refuses_a_name(lambda: run.make(custom(DECAYED, **{name: 1.0})), repr(name), "share", "limit")


BAD_VALUES: dict[str, tuple[str, Any, str]] = {
    "negative-threshold": ("limit", -1.0, "ValueError"),
    "nan-threshold": ("limit", float("nan"), "ValueError"),
    "text-threshold": ("limit", "big", "TypeError"),
    "bool-threshold": ("limit", True, "TypeError"),
}


@case("CUSTOM-005", each={"row": BAD_VALUES})
def bad_values_of_options(run: Run, row: tuple[str, Any, str]) -> None:
    """As the option's own, with parameter, node and option."""
    name, value, kind = row
    step = {"step": "CustomStep", "options": {"graph": DECAYED, "overrides": {name: encoded(value)}}}
    run.refuses(lambda: run.make(step), kind=kind, saying=("clipped", "threshold", "limit"))


@case("CUSTOM-005", each={"value": {"text": "x", "bool": True, "none": None, "nan": float("nan")}})
def bad_values_of_operations(run: Run, value: Any) -> None:
    """An operation computes with numbers."""
    step = {"step": "CustomStep", "options": {"graph": DECAYED, "overrides": {"share": encoded(value)}}}
    refuses_as(("TypeError", "ValueError"), lambda: run.make(step), "share", "number")


@case("CUSTOM-005", each={"kind": ("division", "root")})
def numbers_that_cannot_be_computed(run: Run, kind: str) -> None:
    """A division by 0, and the root of a negative number."""
    nodes = {
        "division": node("number", "divide", 1.0, "p"),
        "root": node("number", "sqrt", "p"),
    }
    document = graph(nodes[kind], node("out", "multiply", "gradients", "number"), parameters={"p": 1.0})
    bad = 0.0 if kind == "division" else -1.0
    run.refuses(lambda: run.make(custom(document, p=bad)), kind="ValueError", saying=("number",))


@case("CUSTOM-006")
def defaults_are_checked(run: Run) -> None:
    """Also where an override would be right."""
    document = graph(
        step_node("m", described("MomentumStep", decay=parameter("momentum")), "gradients"),
        parameters={"momentum": 1.5},
    )
    for described_step in (custom(document), custom(document, momentum=0.5)):
        run.refuses(partial(run.make, described_step), kind="ValueError", saying=("m", "decay", "1.5"))


@case("CUSTOM-007", each={"dtype": ALL_DTYPES})
def states_by_node(run: Run, dtype: str) -> None:
    """Each that remembers, and each step; moments in the shape of what the node sees."""
    document = graph(
        step_node("clipped", CLIP, "gradients"),
        step_node("adam", ADAM, "clipped"),
        node("units", "norm", "gradients", over="unit"),
        node("average", "moving_average", "units"),
        node("n", "norm", "gradients"),
        node("total", "trace", "n"),
        node("calls", "counter"),
        node("a", "multiply", "adam", "average"),
        node("b", "multiply", "a", "total"),
        node("out", "multiply", "b", "calls"),
    )
    step = run.make(custom(document))
    weights = {"kernel": sample((2, 3), dtype, seed=1)}
    first = step.init(made(run, weights))
    _, second = step.apply(made(run, weights), made(run, weights), first)
    for state in (first, second):
        if set(state) != {"clipped", "adam", "average", "total", "calls"} or state["clipped"] != {}:
            raise Mismatch(f"expected an entry for each step and stateful operation, got {sorted(state)}")
        shapes = {
            "average": run.read(state["average"]["mean"]["kernel"]).shape,
            "total": run.read(state["total"]["trace"]).shape,
            "adam": run.read(state["adam"]["first_moment"]["kernel"]).shape,
        }
        if shapes != {"average": (1, 3), "total": (), "adam": (2, 3)}:
            raise Mismatch(f"moments must have the shapes of what their node sees, got {shapes}")


@case("CUSTOM-008")
def weights_by_the_second_input(run: Run) -> None:
    """Decay of a step that gets them, none of one that does not, half of computed ones."""
    decay = description("WeightDecayStep", weight_decay=1.0)
    plain = both(
        step_node("s", description("SGDStep", learning_rate=1.0), "gradients"),
        node("zero", "multiply", "weights", 0.0),
        node("out", "subtract", "s", "zero"),
    )
    halves = both(node("half", "multiply", "weights", 0.5), step_node("out", decay, "gradients", "half"))
    g, w = host_array([1.0, -3.0]), host_array([4.0, 8.0])
    for document, expected in ((plain, [-1.0, 3.0]), (halves, [3.0, 1.0])):
        result, _ = run.make(custom(document)).apply(made(run, g), made(run, w), None)
        same_bits(run.read(result), host_array(expected))


@case("CUSTOM-008")
def missing_weights_of_a_step(run: Run) -> None:
    """When the graph is made."""
    document = graph(step_node("decayed", description("WeightDecayStep"), "gradients"))
    run.refuses(lambda: run.make(custom(document)), kind="ValueError", saying=("decayed", "weights"))


@case("CUSTOM-009", each={"dtype": ALL_DTYPES})
def the_arithmetic_of_a_chain(run: Run, dtype: str) -> None:
    """Clip, momentum and Adam, over three calls."""
    steps = (CLIP, description("MomentumStep"), ADAM)
    document = graph(
        step_node("a", steps[0], "gradients"), step_node("b", steps[1], "a"), step_node("c", steps[2], "b")
    )
    one, other = run.make(custom(document)), run.make(chain(*steps))
    state: Any = None
    other_state: Any = None
    for leaf in steady((2, 3), 3, dtype, seed=15):
        result, state = one.apply(made(run, [leaf]), None, state)
        expected, other_state = other.apply(made(run, [leaf]), None, other_state)
        same_bits(run.read(result), run.read(expected))


@case("CUSTOM-009", dtypes=("float16",))
def nothing_is_rounded_between_nodes(run: Run) -> None:
    """Out of float16's range and back."""
    document = graph(node("up", "multiply", "gradients", 1024.0), node("out", "divide", "up", 1024.0))
    leaf = host_array([60000.0, 6e-8], "float16")
    result, _ = run.make(custom(document)).apply(made(run, leaf), None, None)
    same_bits(run.read(result), leaf)


INNER = graph(
    step_node("clipped", described("GradientClippingStep", threshold=parameter("t")), "gradients"),
    parameters={"t": 1.0},
)


@case("CUSTOM-010", each={"dtype": ("float16", "float32")})
def nesting(run: Run, dtype: str) -> None:
    """A chain in a graph in a chain, a graph in a graph, and the flat chain: the same bits."""
    inner = graph(step_node("both", chain(CLIP, description("MomentumStep")), "gradients"))
    in_graph = graph(step_node("inner", custom(inner), "gradients"), step_node("adam", ADAM, "inner"))
    forms = [
        chain(custom(inner), ADAM),
        custom(in_graph),
        chain(CLIP, description("MomentumStep"), ADAM),
        chain(custom(in_graph)),
    ]
    steps = [run.make(form) for form in forms]
    states: list[Any] = [None] * len(steps)
    for leaf in steady((3,), 3, dtype, seed=25):
        results = []
        for index, step in enumerate(steps):
            result, states[index] = step.apply(made(run, leaf), None, states[index])
            results.append(run.read(result))
        for result in results[1:]:
            same_bits(result, results[0])


@case("CUSTOM-010")
def empty_slots_are_handed_down(run: Run) -> None:
    """Of a chain inside, one of whose steps has an option of the graph."""
    options = {"step1": None, "step3": described("ScalingStep", scale=parameter("k")), "step0": None}
    inside = {"step": "ChainedStep", "options": options}
    result, state = run.make(
        custom(graph(step_node("out", inside, "gradients"), parameters={"k": 3.0}))
    ).apply(run.array([2.0]))
    same_bits(run.read(result), host_array([6.0]))
    assert not run.shows_state or state == {"out": {"step3": {}}}, f"expected step3 alone, got {state}"


@case("CUSTOM-010")
def ports_are_handed_down(run: Run) -> None:
    """The other options of a graph inside, one of whose two hyper-parameters is the graph's own."""
    document = graph(
        node("scaled", "multiply", "gradients", "factor"),
        node("out", "add", "scaled", "offset"),
        parameters={"factor": 1.0, "offset": 0.0},
    )
    options = {
        "graph": document,
        "graph_signature": "(gradients)",
        "set_breakpoint": False,
        "overrides": {"factor": parameter("outer"), "offset": {"float": "0x1p-1"}},
    }
    inside = {"step": "CustomStep", "options": options}
    outer = graph(step_node("out", inside, "gradients"), parameters={"outer": 3.0})
    for described_step, expected in ((custom(outer), [6.5]), (custom(outer, outer=-1.0), [-1.5])):
        result, _ = run.make(described_step).apply(run.array([2.0]))
        same_bits(run.read(result), host_array(expected))


@case("CUSTOM-010")
def parameters_are_handed_down(run: Run) -> None:
    """Through a chain and a mask to a graph inside."""
    inside = {
        "step": "CustomStep",
        "options": {"graph": INNER, "overrides": {"t": parameter("outer")}},
    }
    masked = {"step": "MaskedStep", "options": {"inner": inside, "mask": {"mask": True}}}
    document = graph(
        step_node("out", {"step": "ChainedStep", "options": {"step1": masked}}, "gradients"),
        parameters={"outer": 0.5},
    )
    leaf = host_array([9.0, -0.25])
    for described_step, expected in (
        (custom(document), [0.5, -0.25]),
        (custom(document, outer=0.125), [0.125, -0.125]),
    ):
        result, _ = run.make(described_step).apply(made(run, leaf), None, None)
        same_bits(run.read(result), host_array(expected))
    run.refuses(
        lambda: run.make(custom(document, outer=-1.0)), kind="ValueError", saying=("outer", "threshold")
    )


SIGNS: dict[str, tuple[Document, bool]] = {
    "negation": (NEGATIVE, True),
    "identity": (graph(), False),
    "negated-sum": (DECAYED, True),
    "negative-constant": (graph(node("n", "multiply", "gradients", -0.5)), True),
    "negative-quotient": (graph(node("n", "divide", "gradients", -0.5)), True),
    "positive-constant": (graph(node("n", "multiply", 0.5, "gradients")), False),
    "computed-number": (LARS, True),
    "two-negations": (graph(node("a", "negative", "gradients"), node("n", "multiply", "a", -1.0)), False),
    "optimizer": (graph(step_node("n", ADAM, "gradients")), True),
    "chainable-step": (graph(step_node("n", CLIP, "gradients")), False),
    "optimizer-of-negation": (graph(node("a", "negative", "gradients"), step_node("n", ADAM, "a")), False),
    "sum-of-optimizers": (TRAINED["two-optimizers"], True),
    "optimizer-and-decay": (
        both(
            step_node("a", ADAM, "gradients"),
            node("d", "multiply", "weights", 0.5),
            node("n", "subtract", "a", "d"),
        ),
        True,
    ),
    "centred": (
        graph(node("m", "mean", "gradients", over="leaf"), node("n", "subtract", "gradients", "m")),
        False,
    ),
    "average": (graph(node("a", "negative", "gradients"), node("n", "moving_average", "a")), True),
    "negated-factor": (
        both(
            node("w", "norm", "weights", over="leaf"),
            node("a", "negative", "w"),
            node("n", "multiply", "a", "gradients"),
        ),
        True,
    ),
    "negated-divisor": (
        graph(
            node("s", "norm", "gradients"), node("a", "negative", "s"), node("n", "divide", "gradients", "a")
        ),
        True,
    ),
    "negated-optimizer": (
        graph(
            step_node("a", ADAM, "gradients"),
            node("c", "counter"),
            node("f", "divide", -0.5, "c"),
            node("n", "multiply", "a", "f"),
        ),
        False,
    ),
    "rate-of-zero": (
        graph(node("r", "negative", "p"), node("n", "multiply", "r", "gradients"), parameters={"p": 0.0}),
        True,
    ),
    "choice": (
        graph(
            node("is", "greater", "gradients", 0.0),
            node("a", "negative", "gradients"),
            node("n", "where", "is", "a", 0.0),
        ),
        True,
    ),
}


@case("CUSTOM-011", each={"row": SIGNS}, needs={"negates"})
def signs(run: Run, row: tuple[Document, bool]) -> None:
    """Read from the nodes."""
    document, expected = row
    if run.negates(custom(document)) is not expected:
        raise Mismatch(f"negates must be {expected}")


@case("CUSTOM-011", needs={"check_end_to_end"})
def end_to_end(run: Run) -> None:
    """A graph that ends in a negation is one; the identity is refused."""
    run.check_end_to_end(custom(NEGATIVE))
    run.refuses(lambda: run.check_end_to_end(custom(graph())), kind="ValueError", saying=("end-to-end",))


OPEN = (
    node("minus", "multiply", "gradients", -0.5),
    node("before", "previous_value", "gradients"),
    node("out", "add", "minus", "before"),
)


@case("CUSTOM-012", needs={"negates"})
def open_signs(run: Run) -> None:
    """Refused, and taken as said."""
    run.refuses(lambda: run.make(custom(graph(*OPEN))), kind="ValueError", saying=("negates", "out"))
    for said in (True, False):
        if run.negates(custom(graph(*OPEN, negates=said))) is not said:
            raise Mismatch(f"negates must be {said}, as the document says")


@case("CUSTOM-012", each={"document": {"negation": NEGATIVE, "optimizer": SIGNS["optimizer"][0]}})
def contradicted_signs(run: Run, document: Document) -> None:
    """The last node tells."""
    run.refuses(
        lambda: run.make(custom({**document, "negates": False})), kind="ValueError", saying=("negates",)
    )


@case("CUSTOM-013")
def constraints_at_the_end(run: Run) -> None:
    """Of a graph at the end of a chain, and of one stream."""
    document = both(node("n", "negative", "gradients"), step_node("out", CONSTRAINT, "n", "weights"))
    streams = both(
        node("a", "extract_streams", "gradients", names=["a"]),
        node("w", "extract_streams", "weights", names=["a"]),
        node("b", "extract_streams", "gradients", names=["b"]),
        node("minus_a", "negative", "a"),
        node("minus_b", "negative", "b"),
        step_node("kept", CONSTRAINT, "minus_a", "w"),
        node("out", "merge_streams", "kept", "minus_b"),
    )
    g = {"a": host_array([9.0, 1.0]), "b": host_array([9.0])}
    w = {"a": host_array([2.0, 2.0]), "b": host_array([2.0])}
    result, _ = run.make(chain(CLIP_NOTHING, custom(streams))).apply(made(run, g), made(run, w), None)
    same_bits(run.read(result), {"a": host_array([-2.0, -1.0]), "b": host_array([-9.0])})
    early = chain(custom(document), description("ScalingStep", scale=1.0))
    run.refuses(lambda: run.make(early), kind="ValueError", saying=("step1", "last"))


CLIP_NOTHING = description("GradientClippingStep", variant=None)

EARLY: dict[str, Document] = {
    "negated": both(step_node("kept", CONSTRAINT, "gradients", "weights"), node("out", "negative", "kept")),
    "followed": both(step_node("kept", CONSTRAINT, "gradients", "weights"), step_node("out", CLIP, "kept")),
    "used-twice": both(
        step_node("kept", CONSTRAINT, "gradients", "weights"), node("out", "add", "kept", "kept")
    ),
}


@case("CUSTOM-013", each={"document": EARLY})
def constraints_before_the_end(run: Run, document: Document) -> None:
    """What follows would leave the set."""
    run.refuses(lambda: run.make(custom(document)), kind="ValueError", saying=("kept", "last"))


@case(
    "CUSTOM-014",
    each={
        "document": {
            "norm": graph(node("out", "norm", "gradients")),
            "number": graph(
                node("zero", "multiply", "gradients", 0.0),
                node("out", "add", "p", "p"),
                parameters={"p": 1.0},
            ),
        }
    },
)
def outputs_that_are_no_trees(run: Run, document: Document) -> None:
    """When the graph is made."""
    refuses_as(("TypeError", "ValueError"), lambda: run.make(custom(document)))


@case("CUSTOM-014", each={"over": ("leaf", "unit")})
def outputs_of_other_shapes(run: Run, over: str) -> None:
    """What is left of each leaf."""
    step = run.make(custom(graph(node("out", "norm", "gradients", over=over))))
    tree = {"kernel": made(run, sample((2, 3)))}
    run.refuses(lambda: step.apply(tree, None, None), kind="ValueError", saying=("out", "kernel", "(2, 3)"))


def changed(**changes: Any) -> Document:
    """Return the graph of a negation with changes."""
    return {**NEGATIVE, **changes}


MALFORMED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "format": (changed(format="other"), ("format",)),
    "version": (changed(version=99), ("version", "99")),
    "extra-entry": (changed(code="import os"), ("code",)),
    "no-nodes": ({k: v for k, v in NEGATIVE.items() if k != "nodes"}, ("nodes",)),
    "nodes-no-list": (changed(nodes="n"), ("nodes",)),
    "node-no-object": (changed(nodes=["n"]), ("nodes",)),
    "unknown-output": (changed(output="x"), ("'x'",)),
    "no-placeholder": (changed(placeholders=[]), ("placeholders",)),
    "three-placeholders": (changed(placeholders=["gradients", "b", "c"]), ("placeholders",)),
    "unused-placeholder": (changed(placeholders=["gradients", "w"]), ("'w'",)),
    "unused-parameter": (changed(parameters=[{"name": "p", "default": 1}]), ("'p'",)),
    "unused-node": (graph(node("m", "square", "gradients"), node("n", "negative", "gradients")), ("'m'",)),
    "no-default": (changed(parameters=[{"name": "p"}]), ("'p'", "default")),
    "name-of-a-port": (
        graph(node("n", "multiply", "gradients", "weights"), parameters={"weights": 1.0}),
        ("weights",),
    ),
    "unknown-operation": (graph(node("n", "eval", "gradients")), ("'n'", "eval")),
    "unknown-step": (
        graph(step_node("n", {"step": "NoStep", "options": {}}, "gradients")),
        ("'n'", "NoStep"),
    ),
    "unknown-option": (
        graph(step_node("n", description("MomentumStep", decays=0.5), "gradients")),
        ("'n'", "decays"),
    ),
    "unknown-option-of-an-operation": (graph(node("n", "norm", "gradients", axis=1)), ("'n'", "axis")),
    "unknown-input": (graph(node("n", "negative", "x")), ("'n'", "'x'")),
    "unknown-parameter": (
        graph(step_node("n", described("MomentumStep", decay=parameter("p")), "gradients")),
        ("'n'", "'p'"),
    ),
    "too-few-inputs": (graph(node("n", "add", "gradients")), ("'n'", "2")),
    "too-many-inputs": (graph(node("n", "negative", "gradients", "gradients")), ("'n'", "1")),
    "three-inputs-of-a-step": (graph(step_node("n", ADAM, "gradients", "gradients", "gradients")), ("'n'",)),
    "double-name": (graph(node("n", "negative", "gradients"), node("n", "negative", "n")), ("'n'",)),
    "name-of-a-placeholder": (graph(node("gradients", "negative", "gradients")), ("gradients",)),
    "bad-name": (graph(node("a b", "negative", "gradients")), ("a b",)),
    "cycle": (graph(node("a", "add", "gradients", "b"), node("b", "negative", "a")), ("a", "b")),
    "own-input": (graph(node("n", "add", "gradients", "n")), ("n",)),
    "nan-constant": (graph(node("n", "multiply", "gradients", float("nan"))), ("'n'",)),
    "decimal-constant": (
        changed(nodes=[{"name": "n", "operation": "multiply", "inputs": ["gradients", 0.5]}]),
        ("'n'",),
    ),
    "step-and-operation": (changed(nodes=[{**NEGATIVE["nodes"][0], "step": ADAM}]), ("'n'",)),
    "condition-that-is-none": (graph(node("n", "where", "gradients", "gradients", 0.0)), ("'n'",)),
    "booleans-as-numbers": (
        graph(node("is", "greater", "gradients", 0.0), node("n", "add", "is", 1.0)),
        ("'n'",),
    ),
    "tree-as-option": (
        graph(step_node("n", described("MomentumStep", decay=parameter("gradients")), "gradients")),
        ("'n'", "decay"),
    ),
    "scalar-to-a-step": (graph(node("s", "norm", "gradients"), step_node("n", ADAM, "s")), ("'n'",)),
    "bad-over": (
        graph(node("s", "norm", "gradients", over="all"), node("n", "multiply", "s", "gradients")),
        ("over",),
    ),
}


@case("CUSTOM-015", each={"row": MALFORMED})
def malformed(run: Run, row: tuple[Any, tuple[str, ...]]) -> None:
    """One fault each."""
    document, saying = row
    step = {"step": "CustomStep", "options": {"graph": document}}
    refuses_as(("ValueError", "TypeError", "KeyError"), lambda: run.make(step), *saying)


@case("CUSTOM-015", each={"document": {"number": 3, "text": "graph", "list": [], "none": None}})
def no_document(run: Run, document: Any) -> None:
    """In the place of the graph."""
    step = {"step": "CustomStep", "options": {"graph": document}}
    refuses_as(("ValueError", "TypeError"), lambda: run.make(step), "graph")


@case("CUSTOM-016", each={"kind": ("nodes", "options", "graphs")})
def bounded(run: Run, kind: str) -> None:
    """10,001 nodes; 2,000 lists in each other; 300 graphs in each other."""
    document = NEGATIVE
    if kind == "nodes":
        names = ["gradients", *(f"n{number}" for number in range(10_001))]
        document = graph(*(node(name, "negative", before) for before, name in pairwise(names)))
    elif kind == "options":
        deep: Any = []
        for _ in range(2000):
            deep = [deep]
        document = graph(step_node("n", {"step": "MomentumStep", "options": {"decay": deep}}, "gradients"))
    else:
        for _ in range(300):
            document = graph(step_node("n", custom(document), "gradients"))
    run.refuses(lambda: run.make(custom(document)), kind="ValueError", saying=("at most",))


@case("CUSTOM-016")
def large(run: Run) -> None:
    """10,000 nodes one after another are no trouble."""
    names = ["gradients", *(f"n{number}" for number in range(10_000))]
    document = graph(*(node(name, "negative", before) for before, name in pairwise(names)))
    run.make(custom(document))


@case("CUSTOM-017", needs={"describe"})
def overrides_are_described(run: Run) -> None:
    """As floats of a description, and only where there are some."""
    plain, overridden = run.describe(custom(DECAYED)), run.describe(custom(DECAYED, share=0.5))
    assert plain["options"].keys() == {"graph"}, f"expected the graph alone, got {sorted(plain['options'])}"
    got = overridden["options"].get("overrides")
    assert got == {"share": {"float": (0.5).hex()}}, f"expected share=0.5, got {got}"


@case(
    "CUSTOM-017",
    each={
        "step": {
            "decayed": custom(DECAYED, share=0.5),
            "lars": custom(LARS),
            "nested": chain(custom(graph(step_node("n", custom(INNER, t=0.5), "gradients"))), ADAM),
            "scheduled": custom(
                graph(
                    step_node("n", described("SGDStep", learning_rate=parameter("rate")), "gradients"),
                    parameters={"rate": schedule("CosineSchedule", initial=0.5, steps=10)},
                )
            ),
        }
    },
    needs={"describe"},
)
def describing(run: Run, step: Description) -> None:
    """What is described is described again, and runs alike."""
    again = run.describe(step)
    if run.describe(again) != again:
        raise Mismatch(f"a description must describe itself, got {again} and {run.describe(again)}")
    tree, weights = made(run, leaves_of("float32", 1)), made(run, leaves_of("float32", 3))
    one, _ = run.make(step).apply(tree, weights, None)
    other, _ = run.make(again).apply(tree, weights, None)
    same_bits(run.read(one), run.read(other))


@case(
    "CUSTOM-018",
    each={"document": {"decayed": DECAYED, "lars": LARS, "two-optimizers": TRAINED["two-optimizers"]}},
)
def none_passes(run: Run, document: Document) -> None:
    """Beside arrays, and alone; then arrays again."""
    step = run.make(custom(document))
    weights = made(run, {"a": sample((3,), seed=1), "b": [sample((2,), seed=2)]})
    state = step.init(weights)
    for a, b in (
        (sample((3,), seed=3), None),
        (None, None),
        (sample((3,), seed=4), sample((2,), seed=5)),
    ):
        result, state = step.apply(made(run, {"a": a, "b": [b]}), weights, state)
        if (result["a"] is None, result["b"][0] is None) != (a is None, b is None):
            raise Mismatch(f"None must come back where it was, got {result}")


@case("CUSTOM-018", each={"tree": {"empty": {}, "none": [None], "nothing": ()}})
def trees_without_arrays(run: Run, tree: Any) -> None:
    """Every kind of node."""
    document = graph(
        node("n", "norm", "gradients"),
        node("average", "moving_average", "n"),
        node("calls", "counter"),
        node("m", "trace", "gradients"),
        step_node("adam", ADAM, "m"),
        node("a", "multiply", "adam", "average"),
        node("out", "multiply", "a", "calls"),
    )
    step = run.make(custom(document))
    state = step.init(tree)
    for _ in range(2):
        result, state = step.apply(tree, None, state)
        if result != tree or type(result) is not type(tree):
            raise Mismatch(f"expected {tree!r}, got {result!r}")


@case("CUSTOM-019", dtypes=("complex64",))
def errors_name_the_node(run: Run) -> None:
    """A constraint that has no order to work with, inside a chain in a graph in a chain."""
    document = both(step_node("kept", chain(CONSTRAINT), "gradients", "weights"))
    step = run.make(chain(CLIP, custom(document)))
    leaf = {"kernel": made(run, sample((3,), "complex64"))}
    run.refuses(
        lambda: step.apply(leaf, leaf, None),
        kind="TypeError",
        saying=("kernel", "kept", "step2", "ConstraintStep"),
    )


BAD_STATES: dict[str, tuple[str, ...]] = {
    "missing": ("missing", "adam"),
    "extra": ("other",),
    "inside": ("adam", "count"),
    "no-dict": ("adam",),
}


@case("CUSTOM-020", each={"kind": list(BAD_STATES)})
def wrong_states(run: Run, kind: str) -> None:
    """The place is said."""
    document = graph(step_node("clipped", CLIP, "gradients"), step_node("adam", ADAM, "clipped"))
    step = run.make(custom(document))
    leaf = made(run, sample((3,)))
    state = step.init(leaf)
    bad = {
        "missing": {"clipped": {}},
        "extra": {**state, "other": {}},
        "inside": {**state, "adam": {**state["adam"], "count": None}},
        "no-dict": {**state, "adam": []},
    }[kind]
    run.refuses(lambda: step.apply(leaf, None, bad), kind="ValueError", saying=BAD_STATES[kind])


SIGNATURES: dict[str, tuple[Any, bool]] = {
    "text": ("(gradients,weights)", True),
    "spaces": ("( gradients, weights )", True),
    "lists": ([["gradients", "weights"]], True),
    "one-too-few": ("(gradients)", False),
    "other-order": ([["weights", "gradients"]], False),
    "no-parentheses": ("gradients,weights", False),
    "a-flat-list": (["gradients", "weights"], False),
}


@case("CUSTOM-021", each={"row": SIGNATURES})
def signatures(run: Run, row: tuple[Any, bool]) -> None:
    """Both forms, and what does not fit."""
    signature, fits = row
    step = {"step": "CustomStep", "options": {"graph": DECAYED, "graph_signature": signature}}
    if fits:
        run.make(step)
    else:
        run.refuses(lambda: run.make(step), kind="ValueError", saying=("graph_signature",))


NO_SIGNATURES: dict[str, tuple[Any, str]] = {
    "no-parentheses": ("gradients,weights", "ValueError"),
    "two-lists": ([["gradients"], ["weights"]], "ValueError"),
    "empty-list": ([], "ValueError"),
    "texts": (["gradients", "weights"], "ValueError"),
    "one-text": (["gradients"], "ValueError"),
    "number-in-it": ([["gradients", 1]], "ValueError"),
    "number": (1, "TypeError"),
    "bool": (True, "TypeError"),
}


@case("CUSTOM-021", each={"row": NO_SIGNATURES})
def malformed_signatures(run: Run, row: tuple[Any, str]) -> None:
    """What is no signature of any graph."""
    signature, kind = row
    step = {"step": "CustomStep", "options": {"graph": DECAYED, "graph_signature": signature}}
    run.refuses(lambda: run.make(step), kind=kind, saying=("graph_signature",))


TUNED = both(
    node("half", "multiply", "rate", 0.5),
    step_node("m", described("MomentumStep", decay=parameter("decay")), "gradients"),
    step_node(
        "chained",
        {
            "step": "ChainedStep",
            "options": {
                "step1": described("GradientClippingStep", variant="global", threshold=parameter("rate")),
                "step2": described("SGDStep", learning_rate=parameter("half"), momentum=parameter("decay")),
            },
        },
        "m",
    ),
    node("share", "multiply", "rate", "weights"),
    node("out", "subtract", "chained", "share"),
    parameters={"rate": 0.5, "decay": 0.75},
)


def tunable(value: float) -> dict[str, Any]:
    """Return the value of a hyper-parameter that the state holds."""
    return {"tunable": encoded(value)}


@case("CUSTOM-022", each={"dtype": ("float16", "float32", "float64")})
def tunable_hyper_parameters(run: Run, dtype: str) -> None:
    """Fed to operations and to options, also of steps in a chain; replaced after two calls."""
    step = run.make(custom(TUNED, rate=tunable(0.5), decay=tunable(0.75)))
    # Of the signs of the gradients, so that no difference cancels.
    gradients = steady((3,), 4, dtype, seed=41)
    weights = made(run, gradients[0])
    state = step.init(weights)
    if set(state) != {"rate", "decay", "m", "chained"} or set(state["m"]) != {"trace"}:
        raise Mismatch(f"the state must hold rate and decay once, beside the nodes, got {state}")
    other: Any = None
    for number, leaf in enumerate(gradients):
        rate = 0.5 if number < 2 else 0.125
        state = {**state, "rate": run.array(rate, "float32", ())}
        plain = run.make(custom(TUNED, rate=rate))
        result, state = step.apply(made(run, leaf), weights, state)
        expected, other = plain.apply(made(run, leaf), weights, other)
        near(run, result, exact(run.read(expected)), 8)
        same_bits(run.read(state["rate"]), host_array(rate))


@case("CUSTOM-022")
def bad_tunable_hyper_parameters(run: Run) -> None:
    """By the rule of the option, and what is no 0-d float32 array in the state."""
    step = custom(TUNED, decay=tunable(1.5))
    run.refuses(lambda: run.make(step), kind="ValueError", saying=("decay", "m", "1.5"))
    made_step = run.make(custom(TUNED, rate=tunable(0.5)))
    leaf = made(run, sample((3,)))
    state = {**made_step.init(leaf), "rate": leaf}
    run.refuses(lambda: made_step.apply(leaf, leaf, state), kind="ValueError", saying=("state", "rate"))
