"""The operations that keep a state: moving average, trace, previous value, counter."""

from typing import Any

import numpy as np
import pytest
from comparing import assert_within_ulps, read_tree
from libraries import Library

from steps_core import ArgumentError, CustomStep, MomentumStep, Tunable, graph, graphs

VALUES = [2.0, -4.0, 0.0, 8.0]
RESULTS: dict[str, tuple[Any, list[float]]] = {
    "moving_average": (lambda x: graphs.moving_average(x, decay=0.5), [1.0, -1.5, -0.75, 3.625]),
    "corrected": (
        lambda x: graphs.moving_average(x, decay=0.5, bias_correction=True),
        [2.0, -2.0, -0.75 / 0.875, 3.625 / 0.9375],
    ),
    "trace": (lambda x: graphs.trace(x, decay=0.5), [2.0, -3.0, -1.5, 7.25]),
    "nesterov": (lambda x: graphs.trace(x, decay=0.5, nesterov=True), [3.0, -5.5, -0.75, 11.625]),
    "previous_value": (lambda x: graphs.previous_value(x), [0.0, 2.0, -4.0, 0.0]),
    "counter": (lambda x: graphs.counter() + 0.0 * x, [0.0, 1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_an_operation_remembers(kind: tuple[Library, str], name: str) -> None:
    """Over four calls, in every dtype."""
    library, dtype = kind
    traced, expected = RESULTS[name]
    step, state = CustomStep(graph(traced)), None
    for value, result in zip(VALUES, expected, strict=True):
        updates, state = step([library.array([value], dtype), None], state=state)
        assert updates[1] is None
        assert_within_ulps(library.read(updates[0]), [result], 2)


@pytest.mark.parametrize("name", RESULTS)
def test_it_remembers_a_scalar_too(library: Library, name: str) -> None:
    """The norm of the tree, which is the value here."""
    traced, expected = RESULTS[name]
    step = CustomStep(graph(lambda g: graphs.sign(g) * 0.0 + traced(graphs.sum(g))))
    state = step.init(library.array([9.0, 9.0]))
    for value, result in zip(VALUES, expected, strict=True):
        updates, state = step(library.array([value, 0.0]), None, state)
        assert_within_ulps(library.read(updates), [result, result], 2)


def test_a_trace_is_the_momentum_step() -> None:
    """Its state has the same entry."""
    step, momentum = CustomStep(graph(lambda g: graphs.trace(g, decay=0.75))), MomentumStep(decay=0.75)
    state, other = None, None
    for value in VALUES:
        one, state = step(np.asarray([value]), state=state)
        two, other = momentum(np.asarray([value]), state=other)
        assert one == two
        assert state == {"trace": other}


def test_the_state_is_float32_at_least_and_keeps_its_form(kind: tuple[Library, str]) -> None:
    """As the moments of steps."""
    library, dtype = kind
    step = CustomStep(
        graph(lambda g: graphs.previous_value(graphs.moving_average(g, bias_correction=True)) + g)
    )
    weights = library.array([1.0, 2.0], dtype)
    state = step.init(weights)
    _, after = step(weights, weights, state)
    wide = {"float16": "float32", "bfloat16": "float32"}.get(dtype, dtype)
    for tree in (state, after):
        values = read_tree(library, tree)
        assert values["moving_average"]["mean"].dtype == wide
        assert values["previous_value"]["previous"].dtype == wide
        assert values["moving_average"]["count"].dtype == "int32"


@pytest.mark.parametrize("name", [name for name in RESULTS if name != "counter"])
def test_what_is_kept_shares_no_memory_with_what_is_given(name: str) -> None:
    """Changing gradients or updates in place does not reach the next call."""
    traced, expected = RESULTS[name]
    step, state = CustomStep(graph(traced)), None
    for value, result in zip(VALUES, expected, strict=True):
        gradients = np.asarray([value])
        updates, state = step(gradients, state=state)
        assert updates == pytest.approx(result)
        gradients[...] = 99.0
        updates[...] = 99.0


def test_a_scalar_of_nothing_is_zero(library: Library) -> None:
    """Where all gradients of a call are None, the average decays."""
    step = CustomStep(graph(lambda g: g + graphs.moving_average(graphs.norm(g), decay=0.5)))
    weights = [library.array([3.0])]
    _, state = step(weights, weights, step.init(weights))
    result, state = step([None], weights, state)
    assert result == [None]
    assert library.read(state["moving_average"]["mean"]) == 0.75


def test_bad_options_are_refused_as_in_steps() -> None:
    """With the option's name."""
    with pytest.raises(ArgumentError, match=r"decay must be at least 0 and below 1, got 1.5"):
        graph(lambda g: graphs.moving_average(g, decay=1.5))
    with pytest.raises(ArgumentError, match="node 'trace': decay must be at least 0 and below 1, got 7"):
        CustomStep(graph(lambda g, *, d=0.5: graphs.trace(g, decay=d)), d=7)


def test_a_decay_may_be_tunable() -> None:
    """As of every step."""
    step = CustomStep(graph(lambda g, *, b=0.9: graphs.moving_average(g, decay=b)), b=Tunable(0.5))
    assert step(np.asarray([2.0])).gradients == [1.0]
    other = graph(lambda g: graphs.moving_average(g, decay=Tunable(0.5), bias_correction=True))
    assert CustomStep(other).init(np.asarray([2.0]))["moving_average"]["decay"] == 0.5
    np.testing.assert_allclose(CustomStep(other)(np.asarray([2.0])).gradients, [2.0], rtol=1e-7)
