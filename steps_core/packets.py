"""Packets: trees by name of a stream, so that parts of the parameters can be treated differently."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .deferred import Deferred
from .errors import ArgumentError, ArgumentTypeError, UnknownNameError, refusal
from .trees import Tree

Streams = Mapping[str, Tree]


class Packet:
    """A packet is an ``OrderedDict`` of trees, one per named stream; this checks the names and makes one.

    Args:
        streams: mapping of names to trees, or pairs of both.

    Raises:
        ArgumentTypeError: streams is neither, or a name is not a text.
        ArgumentError: a name is empty, or stands twice.

    Example:
        >>> Packet({"conv": [1.0], "head": 2.0})
        OrderedDict([('conv', [1.0]), ('head', 2.0)])
    """

    def __new__(  # type: ignore[misc]
        cls, streams: Streams | Iterable[tuple[str, Tree]] = ()
    ) -> "OrderedDict[str, Tree]":
        """Return an ordinary OrderedDict: a class of our own would be an opaque leaf to other libraries."""
        try:
            pairs = list(streams.items()) if isinstance(streams, Mapping) else [(k, v) for k, v in streams]
        except (TypeError, ValueError):
            way_out = 'pass {"conv": tree, "head": tree}'
            rule = "be a mapping of names to trees"
            raise refusal(ArgumentTypeError, "streams", rule, streams, way_out) from None
        names = [name for name, _ in pairs]
        for name in names:
            _check_name(name)
            if names.count(name) > 1:
                raise refusal(ArgumentError, "streams", "name each stream once", name, "rename one of them")
        return OrderedDict(pairs)


def extract_streams(packet: Any, names: Sequence[str]) -> Any:
    """Return the packet of the named streams, in the order in which the packet holds them.

    Args:
        packet: mapping of names to trees; in a graph, a value whose tree is one.
        names: at least one, each once.

    Returns:
        A dict of a dict, else an OrderedDict, holding the same trees, uncopied.

    Raises:
        ArgumentTypeError: packet is no mapping, or names no list of texts.
        UnknownNameError: the packet has no such stream.
        ArgumentError: names is empty, or a name stands twice.

    Example:
        >>> extract_streams({"conv": [1.0], "head": 2.0, "norm": 3.0}, ["norm", "conv"])
        {'conv': [1.0], 'norm': 3.0}
    """
    if isinstance(packet, Deferred):
        return packet.extracted(names)  # type: ignore[attr-defined]
    chosen = checked_names(names)
    streams = _streams(packet)
    for name in chosen:
        if name not in streams:
            listed = ", ".join(map(str, streams)) or "none"
            raise UnknownNameError(
                f"names must be among the streams of the packet ({listed}), got {name!r} (str); "
                "check the spelling",
                argument="names",
                rule=f"be among the streams of the packet ({listed})",
                value=name,
                way_out="check the spelling",
            )
    return _like(streams)((name, tree) for name, tree in streams.items() if name in chosen)


def merge_streams(*packets: Any) -> Any:
    """Return one packet of all streams of these.

    Args:
        packets: mappings of names to trees, which share no name. In a graph, values whose trees are
            such; there the streams come in the order in which the gradients hold them.

    Returns:
        A dict where all are dicts, else an OrderedDict, holding the same trees, uncopied.

    Raises:
        ArgumentTypeError: one is no mapping.
        ArgumentError: none is given, or a stream stands in two of them.

    Example:
        >>> merge_streams({"conv": [1.0]}, {"head": 2.0})
        {'conv': [1.0], 'head': 2.0}
    """
    for packet in packets:
        if isinstance(packet, Deferred):
            return packet.merged(packets)  # type: ignore[attr-defined]
    if not packets:
        raise refusal(ArgumentError, "packets", "be given", packets, "pass at least one packet")
    streams = [_streams(packet) for packet in packets]
    names = [name for packet in streams for name in packet]
    for name in names:
        if names.count(name) > 1:
            way_out = "extract streams of different names before"
            raise refusal(ArgumentError, "packets", "share no stream", name, way_out)
    kind = dict if all(_like(packet) is dict for packet in streams) else OrderedDict
    return kind((name, tree) for packet in streams for name, tree in packet.items())


def in_order_of(packet: Streams, names: Iterable[str]) -> Streams:
    """Return the packet with its streams in another order; names that are not listed come last."""
    places = {name: place for place, name in enumerate(names)}
    return type(packet)(sorted(packet.items(), key=lambda item: places.get(item[0], len(places))))  # type: ignore[call-arg]


def checked_names(names: Any) -> tuple[str, ...]:
    """Return the names of streams as a tuple; a bare text, doubles and an empty list are refused."""
    way_out = 'pass a list such as ["conv", "head"]'
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise refusal(ArgumentTypeError, "names", "be a list of names", names, way_out)
    for name in names:
        _check_name(name)
    if not names or len(set(names)) != len(names):
        raise refusal(ArgumentError, "names", "name at least one stream, and each once", names, way_out)
    return tuple(names)


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise refusal(ArgumentTypeError, "the name of a stream", "be a text", name, 'pass one such as "conv"')
    if not name:
        raise refusal(ArgumentError, "the name of a stream", "not be empty", name, 'pass one such as "conv"')


def _streams(packet: Any) -> Streams:
    if not isinstance(packet, Mapping):
        way_out = 'pass a packet such as {"conv": tree, "head": tree}'
        raise refusal(ArgumentTypeError, "packet", "be a mapping of names to trees", packet, way_out)
    return packet


def _like(streams: Streams) -> type:
    return dict if type(streams) is dict else OrderedDict
