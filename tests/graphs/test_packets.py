"""Packets: trees by name, taken apart and put together again."""

from collections import OrderedDict, UserDict
from typing import Any

import numpy as np
import optree
import pytest
from libraries import Library

from steps_core import (
    AdamStep,
    ArgumentError,
    ArgumentTypeError,
    CustomStep,
    GradientClippingStep,
    Packet,
    ScalingStep,
    StepsError,
    TreeMismatchError,
    UnknownNameError,
    extract_streams,
    graph,
    merge_streams,
)


def test_a_packet_is_an_ordered_dict() -> None:
    """A class of our own would be one opaque leaf to other libraries."""
    packet = Packet({"conv": [1.0], "head": 2.0})
    assert type(packet) is OrderedDict
    assert list(packet.items()) == [("conv", [1.0]), ("head", 2.0)]
    assert packet == Packet([("conv", [1.0]), ("head", 2.0)])
    assert Packet() == OrderedDict()
    assert optree.tree_leaves(packet) == [1.0, 2.0]


BAD_PACKETS: list[tuple[Any, type, str]] = [
    (3, ArgumentTypeError, "streams must be a mapping of names to trees, got 3"),
    (["conv"], ArgumentTypeError, "streams must be a mapping of names to trees"),
    ({1: 2.0}, ArgumentTypeError, "the name of a stream must be a text, got 1"),
    ({"": 2.0}, ArgumentError, "the name of a stream must not be empty"),
    ([("a", 1), ("a", 2)], ArgumentError, "streams must name each stream once, got 'a'"),
]


@pytest.mark.parametrize(("streams", "kind", "message"), BAD_PACKETS)
def test_a_bad_packet_is_refused(streams: Any, kind: type, message: str) -> None:
    """It names the stream."""
    with pytest.raises(kind, match=message):
        Packet(streams)


STREAMS = {"conv": [1.0], "norm": {"scale": 2.0}, "head": 3.0}


@pytest.mark.parametrize("make", [dict, OrderedDict, Packet, UserDict])
def test_streams_are_extracted_in_their_order_and_merged_in_that_of_the_arguments(make: Any) -> None:
    """The trees themselves are not copied."""
    packet = make(STREAMS)
    two, one = extract_streams(packet, ["head", "conv"]), extract_streams(packet, ("norm",))
    assert list(two) == ["conv", "head"]
    assert two["conv"] is STREAMS["conv"]
    assert type(two) is (dict if make is dict else OrderedDict)
    merged = merge_streams(two, one)
    assert list(merged) == ["conv", "head", "norm"]
    assert dict(merged) == STREAMS
    assert type(merged) is type(two)
    assert list(packet) == list(STREAMS)


BAD_CALLS: list[tuple[Any, type, str]] = [
    (lambda: extract_streams([1.0], ["a"]), ArgumentTypeError, "packet must be a mapping of names to trees"),
    (
        lambda: extract_streams(STREAMS, "conv"),
        ArgumentTypeError,
        r"pass a list such as \[\"conv\", \"head\"\]",
    ),
    (
        lambda: extract_streams(STREAMS, []),
        ArgumentError,
        "names must name at least one stream, and each once",
    ),
    (lambda: extract_streams(STREAMS, ["conv", "conv"]), ArgumentError, "and each once"),
    (lambda: extract_streams(STREAMS, [1]), ArgumentTypeError, "the name of a stream must be a text, got 1"),
    (lambda: extract_streams(STREAMS, ["con"]), UnknownNameError, r"\(conv, norm, head\), got 'con' \(str\)"),
    (lambda: merge_streams(), ArgumentError, "packets must be given"),
    (lambda: merge_streams(STREAMS, [1]), ArgumentTypeError, "packet must be a mapping of names to trees"),
    (lambda: merge_streams(STREAMS, {"head": 1}), ArgumentError, "packets must share no stream, got 'head'"),
]


@pytest.mark.parametrize(("call", "kind", "message"), BAD_CALLS)
def test_a_bad_call_is_refused(call: Any, kind: type, message: str) -> None:
    """Nothing is dropped, nothing overwritten."""
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, StepsError)


@graph
def parted(gradients, weights, *, rate=0.5):
    """Merge in another order than the gradients'."""
    head = ScalingStep(learning_rate=rate)(extract_streams(gradients, ["head"]))
    rest = extract_streams(gradients, ["norm", "conv"])
    clipped = GradientClippingStep(variant="global", threshold=1.0)(rest)
    return merge_streams(head, -clipped - 0.5 * extract_streams(weights, ["conv", "norm"]))


def packet_of(library: Library, make: Any, scale: float = 1.0) -> Any:
    """Return a packet of arrays."""
    return make(
        [
            ("conv", [library.array([3.0 * scale]), None]),
            ("head", {"w": library.array([2.0 * scale])}),
            ("norm", (library.array([[4.0 * scale]]),)),
        ]
    )


@pytest.mark.parametrize("make", [dict, OrderedDict])
def test_the_result_is_in_the_order_of_the_gradients(library: Library, make: Any) -> None:
    """The norm is that of the extracted streams alone."""
    step = CustomStep(parted)
    gradients, weights = packet_of(library, make), packet_of(library, make, 2.0)
    updates = step(gradients, weights).gradients
    assert type(updates) is make
    assert list(updates) == ["conv", "head", "norm"]
    assert library.read(updates["head"]["w"]).tolist() == [-1.0]
    np.testing.assert_allclose(library.read(updates["conv"][0]), [-0.6 - 3.0], rtol=1e-6)
    assert updates["conv"][1] is None
    np.testing.assert_allclose(library.read(updates["norm"][0]), [[-0.8 - 4.0]], rtol=1e-6)


def test_a_merged_packet_meets_the_whole_one() -> None:
    """As an operand beside gradients and weights, whatever the order of the merge."""
    whole = graph(
        lambda g, w: merge_streams(extract_streams(g, ["b"]), extract_streams(g, ["a"])) + 0.5 * g + w
    )
    packet = Packet({"a": np.asarray([2.0]), "b": np.asarray([4.0])})
    assert CustomStep(whole)(packet, packet).gradients == Packet({"a": [5.0], "b": [10.0]})


def test_the_state_of_a_stream_is_that_of_its_part() -> None:
    """Moments exist for the extracted streams only; init and call agree."""
    step = CustomStep(
        graph(lambda g: merge_streams(AdamStep()(extract_streams(g, ["a"])), -extract_streams(g, ["b"])))
    )
    packet = {"a": np.asarray([1.0]), "b": np.asarray([1.0, 2.0])}
    state = step.init(packet)
    assert list(state["adam_step"]["first_moment"]) == ["a"]
    _, after = step(packet, packet, state)
    assert optree.tree_structure(after) == optree.tree_structure(state)


REFUSED: list[tuple[Any, Any, type, str]] = [
    (lambda g: extract_streams(g, ["a"]), np.ones(2), TreeMismatchError, "gradients must be a packet here"),
    (lambda g: extract_streams(g, ["x"]), {"a": np.ones(2)}, UnknownNameError, r"\(a\), got 'x'"),
    (
        lambda g: merge_streams(extract_streams(g, ["a"]), extract_streams(g, ["a"])),
        {"a": np.ones(2)},
        ArgumentError,
        "packets must share no stream, got 'a'",
    ),
    (
        lambda g: extract_streams(g, ["a"]) + g,
        {"a": np.ones(2), "b": np.ones(2)},
        TreeMismatchError,
        "must have the same tree structure",
    ),
]


@pytest.mark.parametrize(("traced", "gradients", "kind", "message"), REFUSED)
def test_a_packet_that_does_not_fit_is_refused(traced: Any, gradients: Any, kind: type, message: str) -> None:
    """In the call, with the node in a note."""
    step = CustomStep(graph(traced))
    with pytest.raises(kind, match=message) as caught:
        step(gradients)
    assert caught.value.__notes__
