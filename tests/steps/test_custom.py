"""CustomStep: overrides, signature, state by node, its place in chains and graphs, its sign."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from comparing import assert_same_bits, assert_same_trees, assert_within_ulps, read_tree
from libraries import Library

from steps_core import (
    AdamStep,
    ArgumentError,
    ArgumentTypeError,
    ChainedStep,
    ConstraintStep,
    CosineSchedule,
    CustomStep,
    GradientClippingStep,
    Graph,
    LeafTypeError,
    MaskedStep,
    MomentumStep,
    RMSPropStep,
    ScalingStep,
    SGDStep,
    SkipNonFiniteStep,
    StateError,
    StepsError,
    TreeMismatchError,
    Tunable,
    UnknownNameError,
    WeightDecayStep,
    apply_updates,
    build,
    check_end_to_end,
    extract_streams,
    graph,
    graphs,
    load_state,
    merge_streams,
    save_state,
)


@graph
def decayed(gradients, weights, *, weight_decay=0.5, threshold=10.0):
    """The graph of the design's example."""
    clipped = GradientClippingStep(variant="global", threshold=threshold)(gradients)
    return -(clipped + weight_decay * weights)


@graph
def scaled(gradients, *, scale=2.0):
    """One placeholder, one hyper-parameter."""
    return gradients * scale


SCALE = 3.0
FORMS: dict[str, dict[str, Any]] = {
    "keyword": {"scale": SCALE},
    "mapping": {"overrides": {"scale": SCALE}},
    **{f"pair {n}": {f"name{n}": "scale", f"val{n}": SCALE} for n in range(10)},
    "lists": {"nameN": ["scale"], "valN": [SCALE]},
    "empty forms": {"overrides": {}, "nameN": [], "valN": None, "name1": None, "val1": None, "scale": SCALE},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_hyper_parameter_is_overridden_in_every_form(form: str) -> None:
    """All give the same step."""
    step = CustomStep(scaled, **FORMS[form])
    assert step == CustomStep(scaled, scale=SCALE)
    assert hash(step) == hash(CustomStep(scaled, scale=SCALE))
    assert step.hyper_parameters == {"scale": SCALE}
    assert step(np.asarray([1.0])).gradients.tolist() == [3.0]


def test_without_overrides_the_defaults_hold() -> None:
    """And an override that says the same is another step, with the same results."""
    assert CustomStep(scaled)(np.asarray([1.0])).gradients.tolist() == [2.0]
    assert CustomStep(scaled).hyper_parameters == {"scale": 2.0}
    assert CustomStep(scaled).overrides == {}


def test_none_is_a_value_by_keyword_and_mapping() -> None:
    """Where the option takes it: no clipping."""
    gradients, weights = np.asarray([30.0, 40.0]), np.asarray([0.0, 0.0])
    assert CustomStep(decayed)(gradients, weights).gradients.tolist() == [-6.0, -8.0]
    for options in ({"threshold": None}, {"overrides": {"threshold": None}}):
        assert CustomStep(decayed, **options)(gradients, weights).gradients.tolist() == [-30.0, -40.0]


BAD_OVERRIDES = {
    "an unknown name": ({"scales": 1.0}, UnknownNameError, r"\(scale\), got 'scales' \(str\)"),
    "an unknown name in a pair": (
        {"name3": "s", "val3": 1.0},
        UnknownNameError,
        r"\(scale\), got 's' \(str\)",
    ),
    "a name given twice": (
        {"scale": 1.0, "name1": "scale", "val1": 1.0},
        ArgumentError,
        "name each hyper-parameter once, got 'scale'",
    ),
    "twice in pairs": (
        {"name1": "scale", "val1": 1.0, "nameN": ["scale"], "valN": [1.0]},
        ArgumentError,
        "name each hyper-parameter once",
    ),
    "a value without a name": ({"val7": 1.0}, ArgumentError, "name7 must be given with val7, got None"),
    "a name without a value": (
        {"name7": "scale"},
        ArgumentError,
        "val7 must be given with name7='scale', got None.*or scale=None to override it with None",
    ),
    "lists of unequal length": (
        {"nameN": ["scale"], "valN": [1.0, 2.0]},
        ArgumentError,
        "valN must have one value for each of the 1 names in nameN",
    ),
    "values without names": ({"valN": [1.0]}, ArgumentError, "one value for each of the 0 names in nameN"),
    "None in a list": (
        {"nameN": ["scale"], "valN": [None]},
        ArgumentError,
        "valN must hold a value for 'scale'",
    ),
    "a text for a list": ({"nameN": "scale", "valN": [1.0]}, ArgumentTypeError, "nameN must be a list"),
    "a number for a name": (
        {"name1": 1, "val1": 1.0},
        ArgumentTypeError,
        "name1 must be the name of a hyper",
    ),
    "no mapping": (
        {"overrides": ["scale"]},
        ArgumentTypeError,
        "overrides must be a mapping of names to values",
    ),
    "a text for a number": (
        {"scale": "big"},
        ArgumentTypeError,
        "node 'multiply': the parameter 'scale' must be a",
    ),
    "a bool for a number": ({"scale": True}, ArgumentTypeError, "the parameter 'scale' must be a number"),
    "NaN": ({"scale": float("nan")}, ArgumentTypeError, "the parameter 'scale' must be a number"),
    "an array": ({"scale": np.asarray(1.0)}, ArgumentTypeError, "the parameter 'scale' must be a number"),
}


@pytest.mark.parametrize("case", BAD_OVERRIDES)
def test_a_bad_override_is_refused(case: str) -> None:
    """It says which, and what there is."""
    options, kind, message = BAD_OVERRIDES[case]
    with pytest.raises(kind, match=message):
        CustomStep(scaled, **options)


def test_an_option_is_checked_when_the_value_is_filled_in() -> None:
    """Hyper-parameter, node and option stand in the text, the node in the error's slot too."""
    with pytest.raises(ArgumentError, match=r"^node 'gradient_clipping_step': ") as caught:
        CustomStep(decayed, threshold=-1.0)
    text = str(caught.value)
    assert "threshold must be a number of at least 0, got -1.0 (float)" in text
    assert "option 'threshold' is the hyper-parameter 'threshold'" in text
    assert caught.value.slot == "gradient_clipping_step"


def test_a_default_is_checked_when_the_graph_is_made() -> None:
    """Not at the first call."""
    with pytest.raises(
        ArgumentError, match="node 'momentum_step': decay must be at least 0 and below 1, got 2"
    ):
        graph(lambda g, *, momentum=2.0: MomentumStep(decay=momentum)(g))


SIGNATURES = ["(gradients,weights)", " ( gradients , weights ) ", [["gradients", "weights"]], None]


@pytest.mark.parametrize("signature", SIGNATURES)
def test_a_signature_is_checked_against_the_graph(signature: Any) -> None:
    """In both of the source's forms."""
    assert CustomStep(decayed, graph_signature=signature) == CustomStep(decayed)
    assert CustomStep(decayed, signature) == CustomStep(decayed)


BAD_SIGNATURES = {
    "(gradients)": (ArgumentError, r"graph_signature must be \(gradients,weights\), the placeholders of the"),
    "(weights,gradients)": (ArgumentError, "in that order"),
    "gradients,weights": (ArgumentError, r"graph_signature must be a text such as '\(gradients,weights\)'"),
    (("gradients",), ("weights",)): (ArgumentError, "list the placeholders in parentheses"),
    7: (ArgumentTypeError, "list the placeholders in parentheses"),
}


@pytest.mark.parametrize("signature", BAD_SIGNATURES, ids=str)
def test_another_signature_is_refused(signature: Any) -> None:
    """It says what the graph has."""
    kind, message = BAD_SIGNATURES[signature]
    with pytest.raises(kind, match=message):
        CustomStep(decayed, graph_signature=signature)


@pytest.mark.parametrize("thing", [lambda g: g, AdamStep(), "graph", None])
def test_only_a_graph_makes_a_custom_step(thing: Any) -> None:
    """The way out is the decorator."""
    with pytest.raises(
        ArgumentTypeError, match=r"graph must be a Graph, got .*; write @graph above the function"
    ):
        CustomStep(thing)


def test_names_of_placeholders_are_free() -> None:
    """Their order counts."""
    step = CustomStep(graph(lambda first, second: first - second), "(first,second)")
    assert step(np.asarray([3.0]), np.asarray([1.0])).gradients.tolist() == [2.0]


def test_the_state_has_an_entry_for_each_node(library: Library) -> None:
    """Named after the class, numbered from the second; stateless steps have an empty one."""

    @graph
    def several(gradients):
        first = AdamStep()(GradientClippingStep()(gradients))
        second = AdamStep()(gradients)
        return first + second + RMSPropStep()(gradients, name="by_name") + 0.0 * graphs.counter()

    step = CustomStep(several)
    weights = {"w": library.array([1.0, 2.0])}
    state = step.init(weights)
    expected = {"gradient_clipping_step", "adam_step", "adam_step_2", "by_name", "counter"}
    assert set(state) == set(step.state_keys) == expected
    assert state["gradient_clipping_step"] == {}
    assert set(state["adam_step_2"]) == {"count", "first_moment", "second_moment"}
    _, state = step(weights, weights, state)
    assert {int(library.read(state[name]["count"])) for name in ("adam_step", "adam_step_2", "counter")} == {
        1
    }


@pytest.mark.parametrize("change", ["missing", "extra", "wrong", "deep"])
def test_a_wrong_state_is_refused_by_path(change: str) -> None:
    """Nothing is dropped."""
    step = CustomStep(graph(lambda g: AdamStep()(g)))
    weights = np.asarray([1.0])
    state = step.init(weights)
    bad = {
        "missing": ({}, r"missing: state\['adam_step'\]"),
        "extra": ({**state, "more": {}}, r"not known: state\['more'\]"),
        "wrong": ({"adam_step": 3}, r"state\['adam_step'\] must be a dict"),
        "deep": (
            {"adam_step": {**state["adam_step"], "count": None}},
            r"state\['adam_step'\]\['count'\] must be a 0-d array",
        ),
    }
    value, message = bad[change]
    with pytest.raises(StateError, match=message):
        step(weights, weights, value)


def test_an_error_inside_names_the_node() -> None:
    """As a note, and as the error's slot, down through chains and graphs."""
    inner = graph(lambda g: ChainedStep(ScalingStep(scale=1.0), ConstraintStep("nonnegative"))(-g, g))
    step = ChainedStep(MomentumStep(), CustomStep(inner))
    with pytest.raises(LeafTypeError, match="must be real under 'nonnegative'") as caught:
        step(np.asarray([1j]), np.asarray([1j]))
    assert caught.value.slot == "step2.chained_step.step2"
    assert caught.value.__notes__ == [
        "in step2 (ConstraintStep)",
        "in chained_step (ChainedStep)",
        "in step2 (CustomStep)",
    ]


def test_graph_and_chain_are_the_same_arithmetic(kind: tuple[Library, str]) -> None:
    """Bit for bit: the wide leaves go from node to node, narrow ones are rounded once."""
    library, dtype = kind
    steps = (GradientClippingStep(variant="global", threshold=0.5), MomentumStep(), SGDStep(weight_decay=0.1))

    @graph
    def same(gradients, weights):
        for step in steps[:-1]:
            gradients = step(gradients)
        return steps[-1](gradients, weights)

    rng = np.random.default_rng(5)
    weights, *gradients = [
        {"a": library.array(rng.normal(size=(2, 3)), dtype), "b": (library.array(rng.normal(), dtype), None)}
        for _ in range(4)
    ]
    chain, custom = ChainedStep(*steps), CustomStep(same)
    ours, theirs = custom.init(weights), chain.init(weights)
    for tree in gradients:
        one, ours = custom(tree, weights, ours)
        other, theirs = chain(tree, weights, theirs)
        assert_same_trees(read_tree(library, one), read_tree(library, other))


def test_a_value_out_of_the_narrow_range_between_nodes_is_not_lost(library: Library) -> None:
    """60000 * 1000 / 1000 in float16."""
    if "float16" not in library.dtypes:
        pytest.skip(f"{library.name} has no float16")
    step = CustomStep(graph(lambda g: (g * 1000) / 1000))
    result = library.read(step(library.array([60000.0], "float16")).gradients)
    assert_same_bits(result, np.asarray([60000.0], "float16"))


def test_graphs_chains_and_wrappers_nest() -> None:
    """A graph in a graph in a chain in a mask, with hyper-parameters handed down."""
    inner = graph(lambda g, *, t=1.0: GradientClippingStep(threshold=t)(g), name="inner")
    outer = graph(
        lambda g, *, s=2.0, q=3.0: ChainedStep(
            CustomStep(inner, t=s * 2),
            MaskedStep(CustomStep(inner, overrides={"t": q}), {"a": True, "b": False}),
        )(g),
        name="outer",
    )
    gradients = {"a": np.asarray([9.0]), "b": np.asarray([9.0])}
    step = ChainedStep(SkipNonFiniteStep(CustomStep(outer)), CustomStep(outer, s=1.0, q=0.5))
    first = CustomStep(outer)(gradients).gradients
    assert (first["a"].tolist(), first["b"].tolist()) == ([3.0], [4.0])
    both = step(gradients).gradients
    assert (both["a"].tolist(), both["b"].tolist()) == ([0.5], [2.0])
    with pytest.raises(ArgumentError, match=r"option 'step2.inner.overrides.t' is the hyper-parameter 'q'"):
        CustomStep(outer, q=-1.0)


def test_a_schedule_may_be_a_hyper_parameter_or_have_some() -> None:
    """The rate is 0.5 at the first call and 0.25 half way."""
    by_value = CustomStep(
        graph(lambda g, *, rate=1.0: SGDStep(learning_rate=rate)(g)), rate=CosineSchedule(0.5, 2)
    )
    inside = CustomStep(
        graph(lambda g, *, start=1.0, steps=9: SGDStep(learning_rate=CosineSchedule(start, steps))(g)),
        start=0.5,
        steps=2,
    )
    for step in (by_value, inside):
        state, results = None, []
        for _ in range(2):
            updates, state = step(np.asarray([1.0]), state=state)
            results.append(float(updates[0]))
        assert results == pytest.approx([-0.5, -0.25])


ZERO = Tunable(0.0)

SIGNS: dict[str, tuple[Any, bool]] = {
    "a negation": (lambda g: -g, True),
    "a negated sum": (lambda g, w: -(g + 0.1 * w), True),
    "two negations": (lambda g: -(0.5 * -g), False),
    "a negative constant": (lambda g: -0.1 * g, True),
    "a negative number": (lambda g, *, rate=0.1: -rate * g, True),
    "a quotient": (lambda g: g / -2.0, True),
    "a positive product": (lambda g: g * 0.1, False),
    "a step": (lambda g: AdamStep()(g), True),
    "a chainable step": (lambda g: MomentumStep()(g), False),
    "a step of a negated value": (lambda g: SGDStep()(-g), False),
    "a negated step": (lambda g: -AdamStep()(g), False),
    "decoupled decay": (lambda g, w: AdamStep()(g) - 0.1 * w, True),
    "a step less its mean": (lambda g: g - graphs.mean(g), False),
    "a normalised step": (lambda g: -g / (1 + graphs.norm(g)), True),
    "an average": (lambda g: -graphs.moving_average(g), True),
    "an average of a negation": (lambda g: graphs.trace(-g), True),
    "merged streams": (
        lambda g: merge_streams(AdamStep()(extract_streams(g, ["a"])), SGDStep()(extract_streams(g, ["b"]))),
        True,
    ),
    "a negated factor": (lambda g, w: -0.1 * graphs.norm(w) / graphs.norm(g) * g, True),
    "a negated divisor": (lambda g: g / (-graphs.norm(g)), True),
    "a negated size of an optimizer": (lambda g: AdamStep()(g) * (-0.1 / (1 + graphs.counter())), False),
    "two negated factors": (lambda g: -graphs.norm(g) * -g, False),
    "a rate of zero": (lambda g, *, rate=0.0: -rate * g, True),
    "a tunable rate of zero": (lambda g, *, rate=ZERO: -rate * g, True),
    "a product of weights": (lambda g, w: g - 0.1 * w * graphs.norm(w), False),
    "an unchanged gradient": (lambda g: g, False),
    "a choice": (lambda g: graphs.where(g > 0, -g, 0.0), True),
    "a graph": (lambda g: CustomStep(scaled, scale=-1.0)(g), True),
}


@pytest.mark.parametrize("name", SIGNS)
def test_a_graph_knows_its_sign(name: str) -> None:
    """From its nodes."""
    traced, negates = SIGNS[name]
    step = CustomStep(graph(traced))
    assert step.negates is negates
    if negates:
        check_end_to_end(step)
    else:
        with pytest.raises(ArgumentError, match="step must be end-to-end"):
            check_end_to_end(step)


def test_an_override_may_turn_the_sign() -> None:
    """It is read with the values that hold."""
    assert not CustomStep(scaled).negates
    assert CustomStep(scaled, scale=-2.0).negates
    assert ChainedStep(CustomStep(scaled, scale=-2.0), ScalingStep(scale=-1.0)).negates is False


def test_a_sign_that_the_nodes_leave_open_is_said() -> None:
    """Neither guessed nor contradicted."""

    def mixed(g):
        return -0.1 * g + 0.9 * graphs.previous_value(g)

    with pytest.raises(
        ArgumentError, match="negates must be given, because the inputs of node 'add' have two signs"
    ):
        graph(mixed)
    assert CustomStep(graph(negates=True)(mixed)).negates
    assert not CustomStep(graph(negates=False)(mixed)).negates
    with pytest.raises(
        ArgumentError, match="negates must be True, as the output 'negative' tells, got False"
    ):
        graph(negates=False)(lambda g: -g)
    with pytest.raises(ArgumentTypeError, match="negates must be True, False or None"):
        graph(negates=1)(lambda g: -g)  # type: ignore[arg-type]


def test_a_constraint_comes_last() -> None:
    """In a graph, through merged streams, and a graph that ends so in its chain."""
    ends = graph(lambda g, w: ConstraintStep("nonnegative")(-g, w))
    part = graph(
        lambda g, w: merge_streams(
            ConstraintStep("nonnegative")(-extract_streams(g, ["a"]), extract_streams(w, ["a"])),
            -extract_streams(g, ["b"]),
        )
    )
    assert CustomStep(ends).constrains
    assert CustomStep(part).constrains
    packet = {"a": np.asarray([9.0]), "b": np.asarray([9.0])}
    weights = {"a": np.asarray([1.0]), "b": np.asarray([1.0])}
    moved = apply_updates(weights, CustomStep(part)(packet, weights).gradients)
    assert (moved["a"].tolist(), moved["b"].tolist()) == ([0.0], [-8.0])
    with pytest.raises(ArgumentError, match="step1 must be the last step"):
        ChainedStep(CustomStep(ends), ScalingStep(scale=1.0))
    for bad in (
        lambda g, w: -ConstraintStep("nonnegative")(g, w),
        lambda g, w: MomentumStep()(ConstraintStep("nonnegative")(g, w)),
        lambda g, w: CustomStep(ends)(g, w) * 0.5,
    ):
        with pytest.raises(
            ArgumentError, match=r"must be the last step, because .* would undo its constraint"
        ):
            graph(bad)


def test_a_narrow_gradient_under_a_constraint_is_refused_in_a_graph_too() -> None:
    """Rounding would leave the set."""
    step = CustomStep(graph(lambda g, w: ConstraintStep("nonnegative")(-g, w)))
    with pytest.raises(LeafTypeError, match="be of a dtype that holds every float32"):
        step(np.asarray([1.0], "float16"), np.asarray([1.0], "float32"))


def test_weights_are_asked_for() -> None:
    """By the placeholder, and by a step that needs them when the graph is made."""
    with pytest.raises(ArgumentError, match="weights must be given, because CustomStep needs them"):
        CustomStep(decayed)(np.asarray([1.0]))
    with pytest.raises(
        ArgumentError, match=r"the weights of WeightDecayStep must be given.*step\(gradients, weights"
    ):
        graph(lambda g: WeightDecayStep()(g))


def test_a_step_in_a_graph_gets_the_weights_only_if_they_are_passed() -> None:
    """Adam without them, beside decay that has them."""
    step = CustomStep(graph(lambda g, w: AdamStep(learning_rate=0.1)(g) - 0.5 * w))
    updates = step(np.asarray([3.0]), np.asarray([2.0])).gradients
    np.testing.assert_allclose(updates, [-1.1])


def test_weights_may_be_computed_before_a_step_gets_them(library: Library) -> None:
    """Decay towards half of the weights; also inside a chain, and in a wrapper."""
    step = CustomStep(
        graph(lambda g, w: ChainedStep(MaskedStep(WeightDecayStep(weight_decay=1.0), True))(g, w * 0.5))
    )
    result = step(library.array([1.0], "float32"), library.array([4.0], "float32")).gradients
    assert library.read(result).tolist() == [3.0]


def test_moments_have_the_shapes_of_what_their_step_sees(library: Library) -> None:
    """The average of each column's norm, and of a scalar."""

    @graph
    def averaged(gradients):
        units = graphs.moving_average(graphs.norm(gradients, over="unit"), decay=0.5, name="units")
        total = graphs.moving_average(graphs.norm(gradients), decay=0.5, name="total")
        return gradients / units * total

    step = CustomStep(averaged)
    gradients = {"w": library.array([[3.0, 1.0], [4.0, 0.0]]), "none": None}
    state = step.init(gradients)
    assert state["units"]["mean"]["w"].shape == (1, 2)
    assert state["total"]["mean"].shape == ()
    before = read_tree(library, state)
    result, state = step(gradients, gradients, state)
    assert_same_trees(
        {k: v["mean"] for k, v in read_tree(library, state).items() if k == "total"},
        {"total": np.asarray(np.float32(np.sqrt(26.0) / 2))},
    )
    np.testing.assert_allclose(
        library.read(result["w"]), np.asarray([[1.2, 2.0], [1.6, 0.0]]) * np.sqrt(26.0) / 2, rtol=1e-6
    )
    assert read_tree(library, state)["units"]["mean"]["w"].dtype == before["units"]["mean"]["w"].dtype


BAD_OUTPUTS = {
    "a norm of each leaf": (
        lambda g: graphs.norm(g, over="leaf"),
        np.ones((2, 3)),
        r"have the shape \(2, 3\)",
    ),
    "one stream": (lambda g: extract_streams(g, ["a"]), {"a": np.ones(2), "b": np.ones(2)}, "tree structure"),
}


@pytest.mark.parametrize("name", BAD_OUTPUTS)
def test_an_output_of_another_form_is_refused(name: str) -> None:
    """The result has the tree and shapes of the gradients."""
    traced, gradients, message = BAD_OUTPUTS[name]
    with pytest.raises(TreeMismatchError, match=message):
        CustomStep(graph(traced))(gradients)


def test_a_described_step_is_built_again() -> None:
    """With its overrides, also inside a chain; copies and pickles are equal too."""
    for step in (
        CustomStep(decayed),
        CustomStep(decayed, weight_decay=0.25, threshold=None),
        CustomStep(decayed, set_breakpoint=True),
        ChainedStep(CustomStep(scaled, scale=-3.0), MaskedStep(CustomStep(scaled), True)),
    ):
        assert build(step.describe()) == step
        assert copy.deepcopy(step) == step
        assert pickle.loads(pickle.dumps(step)) == step


def test_its_repr_shows_the_graph_and_what_is_overridden() -> None:
    """Short."""
    assert repr(CustomStep(decayed, threshold=2)) == "CustomStep(decayed, threshold=2)"


def test_the_state_goes_through_a_file(tmp_path: Any, library: Library) -> None:
    """And on in the next call."""
    step = CustomStep(graph(lambda g: -graphs.trace(g) / (1 + graphs.moving_average(graphs.norm(g)))))
    gradients = {"w": library.array([3.0, 4.0])}
    _, state = step(gradients)
    save_state(state, tmp_path / "state.safetensors")
    loaded = load_state(tmp_path / "state.safetensors", like=step.init(gradients))
    one, other = step(gradients, None, state), step(gradients, None, loaded)
    assert_same_trees(read_tree(library, one.gradients), read_tree(library, other.gradients))


@graph
def tuned(gradients, weights, *, rate=0.5, decay=0.75):
    """Hyper-parameters that feed operations and options, directly and computed, also inside a chain."""
    masked = MaskedStep(SGDStep(learning_rate=rate / 2, momentum=decay), True)
    chain = ChainedStep(GradientClippingStep(variant="global", threshold=rate), masked)
    return chain(MomentumStep(decay=decay)(gradients)) - rate * weights


def test_a_tunable_hyper_parameter_is_held_once(library: Library) -> None:
    """It feeds all its nodes, and a new value counts from the next call on."""
    step = CustomStep(tuned, rate=Tunable(0.5), decay=Tunable(0.75))
    weights = {"a": library.array([1.0, 2.0])}
    state = step.init(weights)
    assert set(state) == set(step.state_keys) == {"rate", "decay", "momentum_step", "chained_step"}
    assert set(state["momentum_step"]) == {"trace"}
    assert set(state["chained_step"]["step2"]["inner"]) == {"momentum"}
    assert state["chained_step"]["step1"] == {}
    other = None
    for rate in (0.5, 0.5, 0.125, 2.0):
        state = {**state, "rate": library.array(rate)}
        updates, state = step(weights, weights, state)
        expected, other = CustomStep(tuned, rate=rate)(weights, weights, other)
        assert_within_ulps(library.read(updates["a"]), library.read(expected["a"]), 4)
        assert library.read(state["rate"]) == np.float32(rate)
    assert build(step.describe()) == step


def test_a_tunable_default_is_in_the_json() -> None:
    """And back."""
    made = graph(lambda g, *, rate=HALF: SGDStep(learning_rate=rate)(g))
    assert Graph.from_json(made.to_json()) == made
    assert CustomStep(made).state_keys == ("rate", "sgd_step")
    assert CustomStep(made, rate=0.5).state_keys == ("sgd_step",)


def test_a_tunable_hyper_parameter_of_an_inner_graph_stands_there() -> None:
    """Handed down from outside it stands outside, and only there."""
    inner = graph(lambda g, *, scale=2.0: g * scale, name="inner")
    outer = graph(lambda g, *, scale=2.0: CustomStep(inner, scale=scale)(g), name="outer")
    own = graph(lambda g: CustomStep(inner, scale=Tunable(3.0))(g), name="own")
    weights = np.asarray([1.0])
    assert CustomStep(own).init(weights) == {"custom_step": {"scale": 3.0}}
    assert CustomStep(outer, scale=Tunable(3.0)).init(weights) == {"scale": 3.0, "custom_step": {}}
    assert CustomStep(outer, scale=Tunable(3.0))(weights).gradients == [3.0]


def test_a_tunable_hyper_parameter_does_not_compile_again() -> None:
    """Under jax.jit, one trace for four values."""
    jax = pytest.importorskip("jax")
    step, traces = CustomStep(tuned, rate=Tunable(0.5)), []

    def call(*arguments):
        traces.append(1)
        return step(*arguments)

    weights = {"a": jax.numpy.asarray([1.0, 2.0])}
    jitted, state = jax.jit(call), step.init(weights)
    for rate in (0.5, 0.25, 1.0, 2.0):
        _, state = jitted(weights, weights, {**state, "rate": jax.numpy.float32(rate)})
    assert len(traces) == 1


HALF = Tunable(0.5)

BAD_TUNABLES = {
    "a rule broken": (
        {"decay": Tunable(1.5)},
        ArgumentError,
        "decay must be at least 0 and below 1, got 1.5",
    ),
    "no number wanted": ({"kind": Tunable(1.0)}, ArgumentTypeError, "node 'gradient_clipping_step': variant"),
    "in a schedule": (
        {"initial": Tunable(1.0)},
        ArgumentTypeError,
        "node 'scaling_step': initial must be a num",
    ),
}


@pytest.mark.parametrize("name", BAD_TUNABLES)
def test_a_tunable_that_does_not_suit_is_refused(name: str) -> None:
    """By the option's own rule."""

    @graph
    def several(g, *, decay=0.5, kind="global", initial=0.5):
        scaled = ScalingStep(scale=CosineSchedule(initial, 10))(MomentumStep(decay=decay)(g))
        return GradientClippingStep(variant=kind)(scaled)

    options, error, message = BAD_TUNABLES[name]
    with pytest.raises(error, match=message):
        CustomStep(several, **options)


def test_a_tree_without_arrays_passes(library: Library) -> None:
    """None and nothing, with every kind of node; then arrays come back where they were."""
    step = CustomStep(
        graph(
            lambda g: -graphs.trace(g) / (1 + graphs.moving_average(graphs.norm(g))) / (1 + graphs.counter())
        )
    )
    for tree in ({}, [None, None], ()):
        result, state = step(tree)
        assert result == tree
        result, _ = step(tree, tree, state)
        assert result == tree
    weights = [library.array([1.0])]
    state = step.init(weights)
    result, state = step([None], weights, state)
    assert result == [None]
    result, state = step([library.array([2.0])], weights, state)
    assert library.read(result[0]).shape == (1,)


def test_nothing_is_named_like_a_step_of_ours_by_chance() -> None:
    """Names that the function gives are kept, and may not stand twice."""
    with pytest.raises(ArgumentError, match="the name of a node must be used once, got 'a'"):
        graph(lambda g: AdamStep()(g, name="a") + AdamStep()(g, name="a"))
    with pytest.raises(ArgumentTypeError, match="name must be left out beside arrays, got 'a'"):
        AdamStep()(np.asarray([1.0]), name="a")
    with pytest.raises(ArgumentTypeError, match="state must be left out in a graph"):
        graph(lambda g: AdamStep()(g, None, {}))


ODD = [None, True, -1, 0, 2**80, 1e400, -1e400, float("nan"), "x", b"x", [], (), {}, object(), AdamStep, 1j]


@pytest.mark.parametrize("name", ["rate", "beta", "steps", "amsgrad"])
def test_whatever_a_hyper_parameter_is_the_error_is_ours(name: str) -> None:
    """One of many odd values: it is taken, or refused by node or name."""

    @graph
    def scheduled(gradients, weights, *, rate=0.5, beta=0.5, steps=10, amsgrad=False):
        schedule = CosineSchedule(rate, steps)
        adam = AdamStep(learning_rate=schedule, beta1=beta, weight_decay=rate / 2, amsgrad=amsgrad)
        return adam(gradients, weights) * rate

    texts = []
    for value in ODD:
        try:
            CustomStep(scheduled, overrides={name: value})
        except StepsError as error:
            texts.append(str(error))
    assert len(texts) > 10
    assert all("node '" in text or f"the parameter '{name}'" in text for text in texts), texts
