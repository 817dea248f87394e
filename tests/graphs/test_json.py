"""Graphs as JSON: round trips, the schema, and documents that are refused."""

import copy
import json
import random
import re
import sys
from collections.abc import Iterator
from typing import Any

import jsonschema
import numpy as np
import pytest
from catalogue import decayed, everything_once

from steps_core import (
    AdamStep,
    ArgumentError,
    ArgumentTypeError,
    ChainedStep,
    CosineSchedule,
    CustomStep,
    GradientClippingStep,
    Graph,
    MaskedStep,
    StepsError,
    extract_streams,
    graph,
    graphs,
    merge_streams,
)
from steps_core.graphs.json_form import FORMAT
from steps_core.graphs.operations import OPERATIONS
from steps_core.graphs.stateful import STATEFUL


@graph
def inner(g, *, t=1.0):
    """Stands inside `nested`."""
    return GradientClippingStep(threshold=t)(g)


@graph
def nested(g, *, s=2.0, q=3.0):
    """A chain with graphs and a mask in it."""
    masked = MaskedStep(CustomStep(inner, overrides={"t": q}), {"a": [True, False], "b": (True,)})
    return -ChainedStep(CustomStep(inner, t=s), masked)(g)


@graph(negates=True)
def streams(g, w, *, rate=0.1, steps=10, kind="per-layer", axis=(0, 1), decay=0.9):
    """Packets, schedules, texts, tuples and a stated sign."""
    a, b = extract_streams(g, ["a"]), extract_streams(g, ["b", "c"])
    adam = AdamStep(learning_rate=CosineSchedule(rate, steps))(a, extract_streams(w, ["a"]))
    clipped = GradientClippingStep(variant=kind, unit_axis=axis, threshold=None)(b)
    return merge_streams(adam, graphs.trace(clipped, decay=decay) * 2.0**-1074)


GRAPHS = {
    made.name: made for made in (decayed, everything_once, nested, streams, graph(name="id")(lambda g: g))
}
SCHEMA = jsonschema.Draft202012Validator(Graph.json_schema())


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_goes_through_json_exactly(name: str) -> None:
    """Equal, the same text again, and valid under the schema."""
    made = GRAPHS[name]
    text = made.to_json()
    again = Graph.from_json(text)
    assert again == made
    assert again.to_json() == text
    assert Graph.from_json(text.encode()) == made
    assert Graph.from_json(made.describe()) == made
    SCHEMA.validate(json.loads(text))


def test_the_schema_is_one_and_knows_every_operation() -> None:
    """A new operation must be added there."""
    jsonschema.Draft202012Validator.check_schema(Graph.json_schema())
    listed = Graph.json_schema()["$defs"]["operation"]["properties"]["operation"]["enum"]
    assert sorted(listed) == sorted([*OPERATIONS, *STATEFUL])
    assert Graph.json_schema()["properties"]["format"]["const"] == FORMAT


def test_what_is_read_runs_like_what_was_written() -> None:
    """Bit for bit, over two calls."""
    rng = np.random.default_rng(3)
    trees = [{"w": rng.normal(size=(2, 3)), "b": rng.normal(size=3)} for _ in range(3)]
    for made in (decayed, everything_once):
        results = []
        for step in (CustomStep(made), CustomStep(Graph.from_json(made.to_json()))):
            state = step.init(trees[0])
            for gradients in trees[1:]:
                updates, state = step(gradients, trees[0], state)
            results.append(updates)
        assert all((results[0][key] == results[1][key]).all() for key in ("w", "b"))


def test_a_function_has_no_name_in_json() -> None:
    """A mask that is a function, and a schedule that is one."""
    for made in (
        graph(lambda g, *, t=1.0: MaskedStep(GradientClippingStep(threshold=t), lambda path, leaf: True)(g)),
        graph(lambda g: AdamStep(learning_rate=lambda count: 0.1 * count)(g)),
        graph(lambda g, *, rate=abs: AdamStep(learning_rate=rate)(g)),
    ):
        with pytest.raises(ArgumentTypeError, match="is not known by name elsewhere"):
            made.to_json()


def document(**changes: Any) -> dict[str, Any]:
    """Return a valid document with changes; None takes an entry out."""
    base = {
        "format": FORMAT,
        "version": 1,
        "placeholders": ["g"],
        "nodes": [{"name": "n", "operation": "negative", "inputs": ["g"]}],
        "output": "n",
    }
    return {name: value for name, value in {**base, **changes}.items() if value is not None}


def nodes(*listed: dict[str, Any]) -> dict[str, Any]:
    """Return a valid document but for its nodes, of which the last is the output."""
    return document(nodes=list(listed), output=listed[-1]["name"])


def deep(levels: int) -> Any:
    """Return a list in a list in a list."""
    return [] if levels == 0 else [deep(levels - 1)]


NEGATIVE = {"name": "n", "operation": "negative", "inputs": ["g"]}
ADAM = {"name": "adam", "step": {"step": "AdamStep"}, "inputs": ["g"]}

BAD: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", r"document must be JSON \("),
    "no object": ("[]", "graph must be a JSON object"),
    "a double entry": ('{"format": 1, "format": 2}', "an object has the entry 'format' twice"),
    "NaN": ('{"format": NaN}', "NaN is no JSON"),
    "bytes that are no text": (b"\xff\xfe\xfa", "document must be JSON"),
    "deep text": ("[" * 100_000, "document must be JSON"),
    "a long text": (" " * 10_000_001, "be at most 10000000 characters long"),
    "another format": (document(format="onnx"), r"graph\['format'\] must be 'steps-core-graph', got 'onnx'"),
    "another version": (document(version=2), r"graph\['version'\] must be 1, got 2"),
    "a true version": (document(version=True), r"graph\['version'\] must be 1, got True"),
    "no version": (document(version=None), "graph must have the entry 'version'"),
    "an extra entry": (document(code="print()"), "have no other entries than .*, got 'code'"),
    "placeholders as text": (document(placeholders="g"), r"graph\['placeholders'\] must be a list"),
    "no placeholder": (document(placeholders=[]), "placeholders must be one"),
    "a placeholder that is no text": (document(placeholders=[3]), r"\['placeholders'\]\[0\] must be a text"),
    "too many nodes": (document(nodes=[NEGATIVE] * 10_001), "be at most 10000, got 10001"),
    "an unknown output": (document(output="x"), "output must be one of g, n, got 'x'"),
    "an unused placeholder": (document(placeholders=["g", "w"]), "the placeholder 'w' must be used"),
    "an unused node": (document(nodes=[NEGATIVE, {**NEGATIVE, "name": "m"}]), "the node 'm' must be used"),
    "an unknown input": (
        nodes({**NEGATIVE, "inputs": ["x"]}),
        "node 'n': input must be one of g, n, got 'x'",
    ),
    "a dangling parameter": (
        document(parameters=[{"name": "a", "default": 1}]),
        "the parameter 'a' must be used",
    ),
    "a missing default": (
        document(parameters=[{"name": "a"}]),
        "the parameter 'a' must have a default",
    ),
    "an unknown operation": (
        nodes({**NEGATIVE, "operation": "eval"}),
        "node 'n': operation must be one of add",
    ),
    "an unknown step": (
        nodes({**ADAM, "step": {"step": "os.system"}}),
        r"must name one of AdamStep, .*os.system",
    ),
    "an unknown option": (
        nodes({**ADAM, "step": {"step": "AdamStep", "options": {"lr": 1}}}),
        r"node 'adam': step\['options'\] must name one of",
    ),
    "a bad option": (
        nodes({**ADAM, "step": {"step": "AdamStep", "options": {"beta1": 2}}}),
        "beta1 must be at least 0 and below 1, got 2",
    ),
    "an unknown parameter": (
        nodes({**ADAM, "step": {"step": "AdamStep", "options": {"beta1": {"parameter": "b"}}}}),
        "node 'adam': option beta1 must be one of g, adam, got 'b'",
    ),
    "a bad default": (
        document(
            parameters=[{"name": "b", "default": 2}],
            nodes=[{**ADAM, "step": {"step": "AdamStep", "options": {"beta1": {"parameter": "b"}}}}],
            output="adam",
        ),
        "node 'adam': beta1 must be .* got 2 .*option 'beta1' is the hyper-parameter 'b'",
    ),
    "a step and an operation": (
        nodes({**NEGATIVE, **ADAM}),
        "have either an operation with options, or a step",
    ),
    "neither": (nodes({"name": "n", "inputs": ["g"]}), "have either an operation with options, or a step"),
    "too few inputs": (nodes({**NEGATIVE, "inputs": []}), "node 'n': inputs must be 1 of negative"),
    "too many inputs": (nodes({**NEGATIVE, "inputs": ["g", "g"]}), "node 'n': inputs must be 1 of negative"),
    "no inputs of a step": (nodes({**ADAM, "inputs": []}), "node 'adam': inputs must be 1 to 2 of AdamStep"),
    "an input of a counter": (
        nodes({"name": "c", "operation": "counter", "inputs": ["g"]}),
        "node 'c': inputs must be 0 of counter",
    ),
    "an option of an operation": (
        nodes({**NEGATIVE, "options": {"over": "leaf"}}),
        "node 'n': the operation negative has no entry 'over'",
    ),
    "a decimal number": (nodes({**NEGATIVE, "inputs": [1.5]}), "must be a name or a tagged float"),
    "a number that is none": (nodes({**NEGATIVE, "inputs": [{"float": "1.5"}]}), "hold a hexadecimal float"),
    "a NaN constant": (
        nodes({"name": "n", "operation": "add", "inputs": ["g", {"float": "nan"}]}),
        "be a name or a number other than NaN",
    ),
    "a circle": (
        nodes(
            {"name": "a", "operation": "add", "inputs": ["g", "b"]},
            {"name": "b", "operation": "sign", "inputs": ["a"]},
        ),
        "nodes must not depend on each other in a circle, got '(a -> b -> a|b -> a -> b)' ",
    ),
    "a node of itself": (
        nodes({"name": "a", "operation": "add", "inputs": ["g", "a"]}),
        "in a circle, got 'a -> a'",
    ),
    "a name twice": (nodes(NEGATIVE, {**NEGATIVE}), "the name of a node must be used once, got 'n'"),
    "a bad name": (nodes({**NEGATIVE, "name": "__import__('os')"}), "letters, digits and underscores"),
    "a node that is no object": (document(nodes=["n"]), r"graph\['nodes'\]\[0\] must be a JSON object"),
    "a deep option": (
        nodes({**ADAM, "step": {"step": "AdamStep", "options": {"beta1": deep(200)}}}),
        "be nested at most 100 levels deep",
    ),
    "a scalar output": (
        nodes({"name": "n", "operation": "norm", "inputs": ["g"]}),
        "the output 'n' must be a tree",
    ),
    "a sign that is none": (document(negates=3), "negates must be True, False or None"),
    "a contradicted sign": (document(negates=False), "negates must be True, as the output 'n' tells"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_document_is_refused(name: str) -> None:
    """It says where and why."""
    bad, message = BAD[name]
    with pytest.raises(StepsError, match=message):
        Graph.from_json(bad)


def test_graphs_in_graphs_in_graphs_end_somewhere() -> None:
    """A depth that would exhaust Python is refused."""
    made = document()
    for _ in range(200):
        custom = {"step": "CustomStep", "options": {"graph": made}}
        made = nodes({"name": "n", "step": custom, "inputs": ["g"]})
    with pytest.raises(ArgumentError, match="nested at most 100 levels deep"):
        Graph.from_json(made)


ODD = [None, True, 3, -1, 1.5, "x", "", [], {}, {"float": "zz"}, {"float": "nan"}, {"parameter": "nope"}]
ODD += [
    {"step": "Nope"},
    "g",
    [[]],
    {"a": 1},
    2**80,
    "a" * 200,
    {"schedule": "X"},
    {"mask": 3},
    {"tunable": 3},
]
GONE = object()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return every place in a document."""
    yield path
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, entry in entries:
        yield from places(entry, (*path, key))


def mutated(made: Graph, rng: random.Random) -> Any:
    """Return a valid document with one place changed, taken out, doubled or renamed."""
    whole = {"top": copy.deepcopy(made.describe())}
    path = rng.choice(list(places(whole))[1:])
    parent: Any = whole
    for key in path[:-1]:
        parent = parent[key]
    value = parent[path[-1]]
    names = [*made.placeholders, *(node.name for node in made.nodes)]
    changed = rng.choice(
        [
            lambda: rng.choice(ODD),
            lambda: GONE,
            lambda: [*value, rng.choice(value)] if isinstance(value, list) and value else rng.choice(ODD),
            lambda: value[:-1] if isinstance(value, (list, str)) else rng.choice(ODD),
            lambda: {**value, "extra": 1} if isinstance(value, dict) else rng.choice(ODD),
            lambda: rng.choice(names) if isinstance(value, str) else rng.choice(ODD),
        ]
    )()
    if changed is GONE:
        del parent[path[-1]]
    else:
        parent[path[-1]] = changed
    return whole.get("top")


def test_two_thousand_mutants_are_refused_or_read() -> None:
    """With an error of ours that names something; what is read round-trips."""
    rng = random.Random(20)
    texts = []
    for _ in range(2000):
        mutant = mutated(rng.choice(list(GRAPHS.values())), rng)
        given = mutant if rng.random() < 0.5 else json.dumps(mutant)
        try:
            made = Graph.from_json(given)
        except StepsError as error:
            texts.append(str(error))
        else:
            assert Graph.from_json(made.to_json()) == made
    assert len(texts) >= 1500
    assert all(len(text) > 30 and re.search("must|has no", text) for text in texts)


def test_loading_runs_no_code(monkeypatch: Any) -> None:
    """Python reports nothing compiled, executed, imported, opened or started; and no step is called."""
    text = nested.to_json()
    Graph.from_json(text)
    seen: list[str] = []
    watching = [True]
    sys.addaudithook(lambda event, arguments: seen.append(event) if watching[0] else None)
    monkeypatch.setattr(GradientClippingStep, "run", None)
    compile("1", "seen", "eval")
    assert seen
    seen.clear()
    read = Graph.from_json(text)
    watching.clear()
    watching.append(False)
    assert read == nested
    forbidden = ("compile", "exec", "import", "open", "os.", "subprocess.", "socket.", "ctypes.", "pickle.")
    assert [event for event in seen if event.startswith(forbidden)] == []
