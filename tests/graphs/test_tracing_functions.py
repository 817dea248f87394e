"""@graph: what a function becomes, and what is refused in it."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from steps_core import (
    AdamStep,
    ArgumentError,
    ArgumentTypeError,
    CosineSchedule,
    CustomStep,
    GradientClippingStep,
    Graph,
    MaskedStep,
    MomentumStep,
    MonitorStep,
    ScalingStep,
    SGDStep,
    StepsError,
    UnknownNameError,
    build,
    graph,
    graphs,
    merge_streams,
)
from steps_core.graphs import OperationNode, Parameter, StepNode
from steps_core.graphs.model import MOST_NODES, PORTS
from steps_core.masks import MaskTree


def test_a_function_becomes_data() -> None:
    """Placeholders, hyper-parameters, nodes in order, output and name."""

    @graph
    def decayed(g, w, *, weight_decay=1e-4):
        return -(GradientClippingStep(threshold=2)(g) + weight_decay * w)

    assert decayed == Graph(
        placeholders=("g", "w"),
        parameters=(Parameter("weight_decay", 1e-4),),
        nodes=(
            StepNode("gradient_clipping_step", GradientClippingStep(threshold=2), ("g",)),
            OperationNode("multiply", "multiply", ("weight_decay", "w")),
            OperationNode("add", "add", ("gradient_clipping_step", "multiply")),
            OperationNode("negative", "negative", ("add",)),
        ),
        output="negative",
        name="decayed",
    )
    assert decayed.signature == "(g,w)"
    assert decayed.defaults == {"weight_decay": 1e-4}
    assert hash(decayed) == hash(
        graph(name="decayed")(lambda g, w, *, weight_decay=1e-4: None or decayed_again(g, w, weight_decay))
    )


def decayed_again(g: Any, w: Any, weight_decay: Any) -> Any:
    """The same, called by another function."""
    return -(GradientClippingStep(threshold=2)(g) + weight_decay * w)


def test_the_function_runs_once() -> None:
    """Calls of the step do not run it again."""
    runs = []

    @graph
    def counted(g):
        runs.append(1)
        return -g

    step = CustomStep(counted)
    for _ in range(3):
        step(np.asarray([1.0]))
    assert runs == [1]


def test_loops_and_branches_of_python_are_unrolled() -> None:
    """On plain values."""

    @graph
    def repeated(g):
        for _ in range(3):
            g = 0.5 * g
        return g

    assert [node.name for node in repeated.nodes] == ["multiply", "multiply_2", "multiply_3"]
    assert CustomStep(repeated)(np.asarray([8.0])).gradients == [1.0]


def test_a_graph_cannot_be_changed() -> None:
    """It is frozen."""
    made = graph(lambda g: -g)
    with pytest.raises(AttributeError, match="cannot assign to field 'output'"):
        made.output = "g"  # type: ignore[misc]


def test_numbers_of_every_kind_are_constants() -> None:
    """NumPy's too; on either side."""
    made = graph(lambda g: np.float64(2.0) * g + np.int64(3) - (g * 2 + math.inf) * 0.5)
    constants = [value for node in made.nodes for value in node.inputs if isinstance(value, float)]
    assert constants == [2.0, 3.0, 2.0, math.inf, 0.5]


def _from_another_graph() -> Any:
    kept: list[Any] = []
    graph(lambda g: kept.append(g) or -g)
    return graph(lambda g: kept[0] + g)


def _unused_step() -> Any:
    @graph
    def unused(g):
        MonitorStep()(g)
        return -g

    return unused


def _unpacked() -> Any:
    @graph
    def unpacked(g):
        updates, _ = AdamStep()(g)
        return updates

    return unpacked


ONE = graph(lambda g, *, b=2.0: -b * g)
ARRAY = np.asarray([1.0, 2.0])
TYPE, VALUE, NAME = ArgumentTypeError, ArgumentError, UnknownNameError

REFUSED: dict[str, tuple[Any, type, str]] = {
    "no function": (lambda: graph(3), TYPE, "function must be a function, got 3"),
    "a step": (lambda: graph(AdamStep()), TYPE, "write @graph above a function of gradients"),
    "a graph": (lambda: graph(graph(lambda g: -g)), TYPE, "function must be a function"),
    "no placeholder": (lambda: graph(lambda: 1), TYPE, "must return one value of the graph, got 1"),
    "three placeholders": (
        lambda: graph(lambda a, b, c: a + b + c),
        VALUE,
        r"placeholders must be one \(grad",
    ),
    "a positional default": (
        lambda: graph(lambda a, b=3: a + b),
        TYPE,
        "the argument 'b' of the function must",
    ),
    "star arguments": (
        lambda: graph(lambda *a: a[0]),
        TYPE,
        r"write \(gradients, weights, \*, name=default\)",
    ),
    "double star": (lambda: graph(lambda g, **k: g), TYPE, "keyword-only with one"),
    "no default": (
        lambda: graph(lambda g, *, a: a * g),
        TYPE,
        "'a' must have a default, got 'a'.*write a=1.0",
    ),
    "a port's name": (lambda: graph(lambda g, *, val1=1.0: val1 * g), VALUE, "not be the name of a port"),
    "an unused placeholder": (lambda: graph(lambda g, w: -g), VALUE, "the placeholder 'w' must be used"),
    "an unused parameter": (lambda: graph(lambda g, *, a=1.0: -g), VALUE, "the parameter 'a' must be used"),
    "an unused step": (_unused_step, VALUE, "the node 'monitor_step' must be used"),
    "a constant output": (lambda: graph(lambda g: 1.0), TYPE, "return one value of the graph, got 1.0"),
    "two outputs": (lambda: graph(lambda g: (g, g)), TYPE, "must return one value of the graph"),
    "nothing": (lambda: graph(lambda g: None), TYPE, r"got None \(NoneType\); return the updates"),
    "a scalar output": (lambda: graph(lambda g: graphs.norm(g)), TYPE, "the output 'norm' must be a tree"),
    "a number output": (lambda: graph(lambda g, *, a=1.0: a), VALUE, "the placeholder 'g' must be used"),
    "a truth output": (lambda: graph(lambda g: g > 0), TYPE, "got 'tree of booleans'"),
    "a condition": (lambda: graph(lambda g: g if g > 0 else -g), TYPE, "not be used as a condition while"),
    "an equality": (lambda: graph(lambda g: g if g == 0 else -g), TYPE, "not be compared with =="),
    "an inequality": (lambda: graph(lambda g: g if g != 0 else -g), TYPE, "not be compared with !="),
    "a float": (lambda: graph(lambda g: float(g)), TYPE, "not be turned into a number"),
    "a length": (lambda: graph(lambda g: len(g)), TYPE, "not be asked for its length"),
    "an item": (lambda: graph(lambda g: g["a"]), TYPE, r'extract_streams\(packet, \["name"\]\)'),
    "an array of it": (lambda: graph(lambda g: np.asarray(g)), TYPE, "not be turned into an array"),
    "an array beside": (
        lambda: graph(lambda g: g * ARRAY),
        TYPE,
        "value of the graph or a number, got an array",
    ),
    "an array before": (
        lambda: graph(lambda g: ARRAY * g),
        TYPE,
        "value of the graph or a number, got an array",
    ),
    "a text": (lambda: graph(lambda g: g * "x"), TYPE, "be a value of the graph or a number, got 'x'"),
    "a bool": (lambda: graph(lambda g: g * True), TYPE, "value of the graph or a number, got True"),
    "NaN": (lambda: graph(lambda g: g * math.nan), VALUE, "a number other than NaN"),
    "an unpacked step": (_unpacked, TYPE, "a step in a graph returns its gradients alone"),
    "another graph's value": (
        _from_another_graph,
        VALUE,
        "belong to the graph <lambda>, which is being traced",
    ),
    "a tree as option": (
        lambda: graph(lambda g: AdamStep(learning_rate=g)(g)),
        TYPE,
        "node 'adam_step': option learning_rate of AdamStep must be a hyper-parameter",
    ),
    "booleans added": (
        lambda: graph(lambda g: (g > 0) + 1),
        TYPE,
        "input 1 of add must hold numbers, not bool",
    ),
    "a condition of numbers": (
        lambda: graph(lambda g: graphs.where(g, g, 1.0)),
        TYPE,
        "input 1 of where must hold",
    ),
    "no over": (
        lambda: graph(lambda g: graphs.norm(g, over="units") * g),
        VALUE,
        "over must be one of 'tree'",
    ),
    "no order": (
        lambda: graph(lambda g: graphs.norm(g, order=3) * g),
        VALUE,
        "order must be 1, 2 or infinity",
    ),
    "no axis": (lambda: graph(lambda g: graphs.norm(g, over="unit", unit_axis="x") * g), VALUE, "unit_axis"),
    "a norm of a scalar": (
        lambda: graph(lambda g: g * graphs.norm(graphs.norm(g))),
        TYPE,
        "input 1 of norm must",
    ),
    "a step of a scalar": (
        lambda: graph(lambda g: g * AdamStep()(graphs.norm(g))),
        TYPE,
        "the input of AdamStep must be a tree, got 'scalar'",
    ),
    "a bad name": (
        lambda: graph(lambda g: graphs.square(g, name="a b")),
        VALUE,
        "letters, digits and underscores",
    ),
    "a name that is no text": (lambda: graph(lambda g: graphs.square(g, name=3)), TYPE, "be a text, got 3"),
    "a taken name": (lambda: graph(lambda g: graphs.square(g, name="g")), VALUE, "be used once, got 'g'"),
    "an operation outside": (lambda: graphs.sqrt(ARRAY), TYPE, "call it in a function under @graph; outside"),
    "a stateful one outside": (
        lambda: graphs.trace(ARRAY),
        TYPE,
        "the input of trace must be a value of a graph",
    ),
    "a counter outside": (lambda: graphs.counter(), TYPE, "the input of counter must be a value of a graph"),
    "a bad decay": (
        lambda: graph(lambda g: graphs.trace(g, decay=1.0)),
        VALUE,
        "decay must be at least 0 and",
    ),
    "a called graph": (
        lambda: graph(lambda g: -g)(ARRAY),
        TYPE,
        "the graph <lambda> must not be called itself",
    ),
    "mixed packets": (lambda: graph(lambda g: merge_streams(g, {"a": 1})), TYPE, "be a value of the graph"),
    "an empty graph's name": (
        lambda: graph(name="")(lambda g: -g),
        VALUE,
        "name must be of 1 to 200 printable",
    ),
    "a name of two lines": (
        lambda: graph(name="a\nb")(lambda g: -g),
        VALUE,
        "name must be of 1 to 200 printable",
    ),
    "a parameter called self": (lambda: graph(lambda g, *, self=1.0: self * g), VALUE, "name of a port"),
    "the gradients of a step": (
        lambda: graph(lambda g: AdamStep()(g).gradients),
        TYPE,
        "a step in a graph returns its gradients alone",
    ),
    "a dict that is no mask": (
        lambda: graph(lambda g, *, a={"b": 1.0}: g * a),
        TYPE,
        "the parameter 'a' must be no mapping but a tree of booleans",
    ),
    "a parameter given twice inside": (
        lambda: graph(lambda g, *, a=1.0: CustomStep(ONE, overrides={"b": a}, b=7.0)(g)),
        VALUE,
        "name each hyper-parameter once, got 'b'",
    ),
    "a schedule in an operation": (
        lambda: CustomStep(ONE, b=CosineSchedule(1.0, 10)),
        TYPE,
        r"let a step use the schedule: ScalingStep\(learning_rate",
    ),
    "an unknown override": (lambda: CustomStep(graph(lambda g: -g), a=1), NAME, r"\(none\), got 'a'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_graph_is_refused(name: str) -> None:
    """Each with what is wrong and the way out."""
    make, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message) as caught:
        make()
    assert isinstance(caught.value, StepsError)


def test_after_an_error_the_next_function_is_traced_afresh() -> None:
    """No trace is left over."""
    with pytest.raises(ZeroDivisionError, match="by zero"):
        graph(lambda g: g * (1 // 0))
    with pytest.raises(ArgumentTypeError, match="call it in a function under @graph"):
        graphs.counter()


def test_a_graph_in_a_graph_is_traced_in_between() -> None:
    """The inner one does not disturb the outer."""

    @graph
    def outer(g):
        inner = graph(lambda h: h * graphs.counter(), name="inner")
        return CustomStep(inner)(g) + graphs.counter() * g

    assert [node.name for node in outer.nodes] == ["custom_step", "counter", "multiply", "add"]


@pytest.mark.parametrize("port", PORTS)
def test_every_port_is_no_hyper_parameter(port: str) -> None:
    """Its value could not be told from the port's."""
    with pytest.raises(ArgumentError, match="not be the name of a port"):
        Graph(("g",), (Parameter(port, 1.0),), (OperationNode("m", "multiply", ("g", port)),), "m")


def test_a_long_graph_runs_and_a_longer_one_is_refused() -> None:
    """One node after another, without recursion."""

    def repeated(times: int) -> Graph:
        names = ["g", *(f"n{number}" for number in range(times))]
        nodes = tuple(OperationNode(name, "negative", (before,)) for before, name in pairwise(names))
        return Graph(("g",), (), nodes, names[-1])

    assert CustomStep(repeated(MOST_NODES))(np.asarray([1.0])).gradients == [1.0]
    with pytest.raises(ArgumentError, match=f"nodes must be at most {MOST_NODES}, got {MOST_NODES + 1}"):
        repeated(MOST_NODES + 1)


BY_HAND: dict[str, tuple[Any, str]] = {
    "a list of nodes": (
        lambda: Graph(("g",), (), [], "g"),
        "nodes must be a tuple of StepNode or OperationNode",
    ),
    "a text": (lambda: Graph("g", (), (), "g"), "placeholders must be a tuple of str"),
    "no node": (lambda: Graph(("g",), (), ("n",), "n"), "nodes must be a tuple"),
    "no step": (
        lambda: Graph(("g",), (), (StepNode("n", 3, ("g",)),), "n"),
        "node 'n': step must be a step, got 3",
    ),
    "a name that is none": (lambda: Graph(("g",), (), (), "g", name=3), "name must be a text"),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_graph_made_by_hand_is_checked_too(name: str) -> None:
    """Its fields have types."""
    make, message = BY_HAND[name]
    with pytest.raises(ArgumentTypeError, match=message):
        make()


def test_a_misspelt_option_is_refused_where_it_is_written() -> None:
    """As Python does it for steps without hyper-parameters."""
    with pytest.raises(TypeError, match=r"AdamStep\(\) got an unexpected keyword argument 'learningrate'"):
        graph(lambda g, *, lr=0.1: AdamStep(learningrate=lr)(g))
    with pytest.raises(TypeError, match=r"CosineSchedule\(\) got an unexpected keyword argument 'step'"):
        graph(lambda g, *, n=10: AdamStep(learning_rate=CosineSchedule(1.0, step=n))(g))


def test_a_graph_never_changes() -> None:
    """Nor when the containers change from which its defaults and overrides came."""
    mask, other = {"a": True, "b": False}, {"a": False, "b": True}
    made = graph(lambda g, *, m=mask: MaskedStep(SGDStep(learning_rate=1.0), m)(g))
    step = CustomStep(made, m=other)
    mask["b"] = other["a"] = True
    gradients = {"a": np.asarray([1.0]), "b": np.asarray([1.0])}
    assert CustomStep(made)(gradients).gradients == {"a": -1.0, "b": 1.0}
    assert step(gradients).gradients == {"a": 1.0, "b": -1.0}
    assert CustomStep(made, m=MaskTree({"a": False, "b": True})) == step
    assert Graph.from_json(made.to_json()) == made
    assert build(step.describe()) == step
    assert isinstance(hash(made), int)
    assert isinstance(hash(step), int)


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), np.float16(0.5)])
def test_scalars_of_numpy_are_numbers(value: Any) -> None:
    """As defaults and overrides, for operations and options; so they have a form in JSON."""
    made = graph(lambda g, *, a=value: MomentumStep(decay=a)(g) * a)
    assert made == graph(lambda g, *, a=0.5: MomentumStep(decay=a)(g) * a)
    assert CustomStep(made, a=value).overrides == {"a": 0.5}
    assert Graph.from_json(made.to_json()) == made


def test_a_whole_number_that_is_computed_is_one() -> None:
    """For options that count."""
    made = graph(lambda g, *, n=10: ScalingStep(scale=CosineSchedule(1.0, n * 2))(g))
    assert CustomStep(made, n=7)(np.asarray([1.0])).gradients == [1.0]
    with pytest.raises(ArgumentError, match=r"option 'scale.steps' is the number 'multiply'"):
        CustomStep(made, n=0)


def test_infinity_is_a_number_in_every_format() -> None:
    """A finite number that float32 cannot hold is refused, in the call, by its node."""
    gradients = np.asarray([-2.0, 3e38], "float32")
    one_sided = graph(lambda g: graphs.clip(g, -math.inf, 1.0))
    assert CustomStep(one_sided)(gradients).gradients.tolist() == [-2.0, 1.0]
    assert CustomStep(graph(lambda g: graphs.minimum(g, math.inf)))(gradients).gradients[1] == np.float32(
        3e38
    )
    assert CustomStep(graph(lambda g: g / math.inf))(gradients).gradients.tolist() == [0.0, 0.0]
    with pytest.raises(ArgumentError, match="a number of the graph must fit float32") as caught:
        CustomStep(graph(lambda g: g * 1e300))(gradients)
    assert caught.value.__notes__ == ["in multiply (multiply)"]
    assert caught.value.slot == "multiply"


def test_lists_among_the_options_of_a_traced_step_mean_what_they_mean_elsewhere() -> None:
    """A mask of a list fits a list; axes are the same as in a tuple, also through JSON."""
    masked = graph(lambda g, *, r=1.0: MaskedStep(SGDStep(learning_rate=r), [True, False])(g))
    updates = CustomStep(masked)([np.asarray([1.0]), np.asarray([1.0])]).gradients
    assert updates == [-1.0, 1.0]
    inner = graph(
        lambda g, *, t=1.0, axes=(0,): GradientClippingStep(threshold=t, unit_axis=axes)(g), name="inner"
    )
    outer = graph(lambda g, *, t=1.0: CustomStep(inner, t=t, axes=[0, 1])(g))
    clipped = graph(lambda g, *, t=1.0: GradientClippingStep(threshold=t, unit_axis=[0, 1])(g))
    for made in (masked, outer, clipped):
        assert Graph.from_json(made.to_json()) == made
