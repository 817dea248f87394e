"""Custom steps: a graph of steps and operations as one step."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..call import Call, Values
from ..contract import Step
from ..deferred import Entries, is_deferred
from ..descriptions import described
from ..errors import ArgumentError, ArgumentTypeError, refusal
from ..graphs.graph import Graph, unknown_parameter
from ..graphs.hyper_parameters import settled_value
from ..graphs.plan import Plan
from ..leaves import Leaves
from ..metadata import Metadata
from ..state import State, StateView

_NUMBERS = (*range(1, 10), 0)


class Overrides(Metadata):
    """A read-only mapping of hyper-parameters to values, with a hash."""

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))


@dataclass(frozen=True, init=False, repr=False)
class CustomStep(Step):
    """Run a graph as a step, with its hyper-parameters at their defaults or overridden.

    g' = graph(gradients, weights; hyper-parameters)

    Overrides are given by keyword, as a mapping, or as pairs of a name and a value; a name may be given
    once. A val that is None counts as not given: None is overridden by keyword or in the mapping.

    Args:
        graph: `Graph`: a function under ``@graph``, or ``Graph.from_json(text)``.
        graph_signature: placeholders that the graph must have, as "(gradients,weights)" or
            [["gradients", "weights"]]; None: not checked. Default None.
        overrides: mapping of names to values. Default None.
        name1, val1, ..., name9, val9, name0, val0: pairs of a name and its value.
        nameN, valN: lists of further names and values, of equal length.
        **hyper_parameters: values by name.
        set_breakpoint, metadata: as of every step.

    State: ``{node name: state}``, one entry for each step and each operation with a state; and one for each
    hyper-parameter that is a `Tunable`, under its name.

    Raises:
        ArgumentTypeError: graph is no `Graph`, or a value has the wrong type for its node.
        ArgumentError: the signature differs, a name is given twice or without a value, or a node does not
            take a value; the text names hyper-parameter, node and option.
        UnknownNameError: the graph has no such hyper-parameter.

    Example:
        >>> import numpy as np
        >>> from steps_core import graph
        >>> @graph
        ... def decayed(gradients, weights, *, weight_decay=1e-4):
        ...     return -(gradients + weight_decay * weights)
        >>> step = CustomStep(decayed, weight_decay=0.5)
        >>> step(np.asarray([1.0]), np.asarray([2.0])).gradients
        array([-2.])
    """

    graph: Graph
    overrides: Mapping[str, Any] = field(default_factory=Overrides)

    def __init__(
        self,
        graph: Any,
        graph_signature: str | Sequence[Sequence[str]] | None = None,
        overrides: Mapping[str, Any] | None = None,
        *,
        set_breakpoint: bool = False,
        metadata: Mapping[Any, Any] | None = None,
        **hyper_parameters: Any,
    ) -> None:
        if not isinstance(graph, Graph):
            way_out = "write @graph above the function, or pass Graph.from_json(text)"
            raise refusal(ArgumentTypeError, "graph", "be a Graph", graph, way_out)
        _check_signature(graph, graph_signature)
        pairs, keywords = _separated(hyper_parameters)
        values: dict[str, Any] = {}
        given = (*_mapping(overrides).items(), *keywords.items(), *pairs)
        _check_given_once(name for name, _ in given)
        for name, value in given:
            if name not in graph.defaults:
                raise unknown_parameter(name, list(graph.defaults))
            values[name] = settled_value(name, value)
        in_order = Overrides({name: values[name] for name in graph.defaults if name in values})
        self._set(graph=graph, overrides=in_order, set_breakpoint=set_breakpoint, metadata=metadata)
        self.__post_init__()

    @classmethod
    def named_options(cls, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options by name, as a template keeps them."""
        rest = {**dict(zip(("graph", "graph_signature", "overrides"), arguments, strict=False)), **options}
        kept = ("graph", "graph_signature", "set_breakpoint", "metadata")
        named = {name: rest.pop(name) for name in kept if name in rest}
        overrides = rest.pop("overrides", None) or Entries(())
        pairs, keywords = _separated(rest)
        entries = overrides.items if isinstance(overrides, Entries) else tuple(_mapping(overrides).items())
        given = (*entries, *keywords.items(), *pairs)
        _check_given_once(name for name, _ in given)
        settled = (
            (name, value if is_deferred(value) else settled_value(name, value)) for name, value in given
        )
        return {**named, "overrides": Entries(tuple(settled))}

    @classmethod
    def _check_named(cls, named: Mapping[str, Any]) -> None:
        """Accept any name: those that are left here are ports."""

    def _check_options(self) -> None:
        self._plan  # noqa: B018  # A value that a node does not take is refused now, not at the first call.

    @cached_property
    def _plan(self) -> Plan:
        return self.graph.planned(self.overrides)

    @property
    def hyper_parameters(self) -> dict[str, Any]:
        """The hyper-parameters and the values that they have here."""
        return {**self.graph.defaults, **self.overrides}

    @property
    def negates(self) -> bool:
        """Whether the output is negated: see `Graph`."""
        return self._plan.negates

    @property
    def needs_weights(self) -> bool:
        """Whether the graph has a placeholder for them."""
        return len(self.graph.placeholders) == 2

    @property
    def constrains(self) -> bool:
        """Whether the graph ends with a constraint."""
        return self._plan.constrains

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The tunable hyper-parameters, and the nodes that have a state."""
        return (*self._plan.tunables, *self._plan.steps)

    def own_state(self, weights: Leaves) -> State:
        """Return the first state of each node."""
        return self._plan.initial_state(weights)

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the graph's output, and every node's new state."""
        return self._plan.advance(call, gradients, state)

    def describe(self) -> dict[str, Any]:
        """Return ``{"step": "CustomStep", "options": {"graph": document, "overrides": {...}}}``."""
        options: dict[str, Any] = {"set_breakpoint": True} if self.set_breakpoint else {}
        options["graph"] = self.graph.describe()
        if self.overrides:
            options["overrides"] = described(self.overrides)
        return {"step": "CustomStep", "options": options}

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.overrides.items())
        return f"CustomStep({self.graph.name}{given})"


def _mapping(overrides: Any) -> Mapping[str, Any]:
    if overrides is None:
        return {}
    if not isinstance(overrides, Mapping):
        rule = "be a mapping of names to values"
        raise refusal(ArgumentTypeError, "overrides", rule, overrides, 'pass {"weight_decay": 5e-4}')
    return overrides


def _check_given_once(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise refusal(ArgumentError, "overrides", "name each hyper-parameter once", name, "drop one")
        seen.add(name)


def _separated(options: Mapping[str, Any]) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
    """Return the name/value pairs of the ports, and what is given by keyword."""
    rest = dict(options)
    pairs = list(_numbered_pairs(rest))
    pairs += _listed_pairs(rest)
    return pairs, rest


def _numbered_pairs(options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for number in _NUMBERS:
        name, value = options.pop(f"name{number}", None), options.pop(f"val{number}", None)
        if name is None and value is None:
            continue
        if name is None:
            way_out = f"pass name{number}=..., or leave val{number} out"
            raise refusal(ArgumentError, f"name{number}", f"be given with val{number}", None, way_out)
        _check_is_text(f"name{number}", name)
        if value is None:
            way_out = f"pass val{number}=..., or {name}=None to override it with None"
            raise refusal(
                ArgumentError, f"val{number}", f"be given with name{number}={name!r}", None, way_out
            )
        yield name, value


def _listed_pairs(options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    names, values = options.pop("nameN", None), options.pop("valN", None)
    names, values = _list("nameN", names), _list("valN", values)
    if len(names) != len(values):
        rule = f"have one value for each of the {len(names)} names in nameN"
        raise refusal(ArgumentError, "valN", rule, values, "pass two lists of equal length")
    for name, value in zip(names, values, strict=True):
        _check_is_text("an entry of nameN", name)
        if value is None:
            way_out = f"leave {name} out, or pass {name}=None to override it with None"
            raise refusal(ArgumentError, "valN", f"hold a value for {name!r}", None, way_out)
        yield name, value


def _list(argument: str, value: Any) -> Sequence[Any]:
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise refusal(ArgumentTypeError, argument, "be a list", value, "pass a list")
    return value


def _check_is_text(argument: str, name: Any) -> None:
    if not isinstance(name, str):
        rule = "be the name of a hyper-parameter"
        raise refusal(ArgumentTypeError, argument, rule, name, 'pass a text such as "weight_decay"')


def _check_signature(graph: Graph, signature: Any) -> None:
    if signature is None:
        return
    names = _signature_names(signature)
    if names != graph.placeholders:
        rule = f"be {graph.signature}, the placeholders of the graph {graph.name}, in that order"
        raise refusal(ArgumentError, "graph_signature", rule, signature, f"pass {graph.signature!r}")


def _signature_names(signature: Any) -> tuple[str, ...]:
    if isinstance(signature, str):
        match = re.fullmatch(r"\s*\(([^()]*)\)\s*", signature)
        if match:
            return tuple(name.strip() for name in match[1].split(",") if name.strip())
    elif isinstance(signature, (list, tuple)) and len(signature) == 1:
        (names,) = signature
        if isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names):
            return tuple(names)
    rule = "be a text such as '(gradients,weights)' or [['gradients', 'weights']]"
    kind = ArgumentError if isinstance(signature, (str, list, tuple)) else ArgumentTypeError
    raise refusal(kind, "graph_signature", rule, signature, "list the placeholders in parentheses")
