"""A graph with values for its hyper-parameters: every step made, every order settled, ready to run."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ..call import Call, Values, widened
from ..contract import Step
from ..deferred import Template
from ..errors import ArgumentError, ArgumentTypeError, StepsError, TreeMismatchError, refusal
from ..leaves import Leaves, open_tree, require_partner
from ..namespaces import Array, quiet
from ..packets import in_order_of
from ..state import State, StateView, scalar_like
from ..steps.nesting import advance_inner, errors_in, initial_inner_state
from ..trees import flatten
from ..tunable import Tunable
from .model import Input, Node, OperationNode, Parameter, StepNode, Structure
from .operations import NUMBER, OPERATIONS, SCALAR, TREE, Kind
from .signs import AmbiguousSignError, negates, sign_error
from .stateful import STATEFUL_NAMES, Counter
from .tunables import Loans, initial_entries, lent, place_of, read_entries, returned
from .values import Scalar, TreeValue, Value, numbered, opened_as, tree_value

_PASSES_ON = ("extract_streams", "merge_streams")


@dataclass(frozen=True)
class Plan:
    """What a call walks through.

    Attributes:
        placeholders: the names of gradients and weights.
        numbers: hyper-parameters, and what is computed from them alone.
        nodes: those that depend on arrays, in order.
        steps: the steps of their nodes, by name.
        options: the checked options of operations, by node.
        output: the name of the result.
        tunables: the tunable hyper-parameters and their first values.
        loans: by node, what of these its step's options use.
        first: how many of the nodes the state depends on.
        negates: whether the result is to be added to the weights.
        constrains: whether the result keeps weights in a set.
    """

    placeholders: tuple[str, ...]
    numbers: Mapping[str, Any]
    nodes: tuple[Node, ...]
    steps: Mapping[str, Any]
    options: Mapping[str, Mapping[str, Any]]
    output: str
    tunables: Mapping[str, float]
    loans: Mapping[str, Loans]
    first: int
    negates: bool
    constrains: bool

    def initial_state(self, weights: Leaves) -> State:
        """Return the first state of each step, by node.

        The graph is run on the weights up to the last step, each of which passes its input on, so that
        moments get the shapes of what their step will see.
        """
        wide = _widened(weights)
        given = tree_value(weights, wide, is_given=True)
        call = Call(weights, weights, wide)
        state: State = initial_entries(self.tunables, weights)
        values: dict[str, Value] = {**self.numbers, **dict.fromkeys(self.placeholders, given)}
        values |= {name: Scalar(entry) for name, entry in state.items()}
        with quiet(weights.xp):
            for node in self.nodes[: self.first]:
                with errors_in(node.name, node.title):
                    if isinstance(node, StepNode):
                        subject = self._subject(node, call, values)
                        first = initial_inner_state(self.steps[node.name], _own_leaves(subject))
                        state[node.name] = returned(first, self.loans.get(node.name, ()))
                        values[node.name] = (
                            Scalar(scalar_like(weights, 0.0, "float32"))
                            if node.kind is Counter
                            else values[str(node.inputs[0])]
                        )
                    else:
                        values[node.name] = self._evaluated(node, call, values)
        return state

    def advance(self, call: Call, gradients: Values, state: StateView) -> tuple[Values, State]:
        """Return the output's leaves and every step's new state."""
        values: dict[str, Value] = dict(self.numbers)
        values[self.placeholders[0]] = tree_value(call.gradients, gradients, is_given=True)
        if len(self.placeholders) == 2:
            assert call.given_weights is not None and call.weights is not None
            values[self.placeholders[1]] = tree_value(
                _without_partners(call.given_weights, call.weights), call.weights, is_given=True
            )
        new_state: State = read_entries(self.tunables, call, state)
        values |= {name: Scalar(entry) for name, entry in new_state.items()}
        for node in self.nodes:
            with errors_in(node.name, node.title):
                if isinstance(node, StepNode):
                    values[node.name], new_state[node.name] = self._stepped(node, call, values, state)
                else:
                    values[node.name] = self._evaluated(node, call, values)
        return _as_gradients(self.output, call, values[self.output]), new_state

    def _evaluated(self, node: OperationNode, call: Call, values: Mapping[str, Value]) -> Value:
        inputs = [_value_of(value, values) for value in node.inputs]
        return OPERATIONS[node.operation].evaluate(call, inputs, self.options[node.name])

    def _stepped(
        self, node: StepNode, call: Call, values: Mapping[str, Value], state: StateView
    ) -> tuple[Value, Any]:
        step, loans = self.steps[node.name], self.loans.get(node.name, ())
        entry = state.child(node.name)
        if loans:
            entry = StateView(lent(entry.value, loans, values), entry.path)
        subject = self._subject(node, call, values)
        if not isinstance(subject, TreeValue):
            scalar, new_state = _stepped_scalar(step, subject, entry)
            return scalar, returned(new_state, loans)
        weights = values[str(node.inputs[1])] if len(node.inputs) == 2 else None
        assert weights is None or isinstance(weights, TreeValue)
        inner = _inner_call(call, subject, weights)
        results, new_state = advance_inner(step, inner, subject.values, entry)
        new_state = returned(new_state, loans)
        if node.kind is Counter:
            return Scalar(results[0]), new_state
        return tree_value(subject.leaves, results), new_state

    def _subject(self, node: StepNode, call: Call, values: Mapping[str, Value]) -> Value:
        """Return what the step is applied to; a counter looks at the gradients for their library."""
        if node.inputs:
            return _value_of(node.inputs[0], values)
        return tree_value(call.gradients, call.gradients.values, is_given=True)


def _inner_call(call: Call, subject: TreeValue, weights: TreeValue | None) -> Call:
    """Return the call that a step inside sees: what it is applied to, and the weights that it was given."""
    if weights is None:
        return Call(subject.leaves, None, None, call.norms)
    given = weights.leaves if weights.is_given else opened_as(weights)
    if subject.leaves is not call.gradients or not weights.is_given:
        require_partner(subject.leaves, given)
    return Call(subject.leaves, given, weights.values, call.norms)


def _own_leaves(value: Value) -> Leaves:
    """Return the leaves that tell a step shapes, dtypes and paths."""
    if isinstance(value, TreeValue):
        return value.leaves
    return open_tree(value.array if isinstance(value, Scalar) else None, "value")


def _stepped_scalar(step: Step, value: Value, state: StateView) -> tuple[Value, State]:
    """Return what an operation with a state makes of a scalar."""
    array = value.array if isinstance(value, Scalar) else _filled(value, state)
    opened = open_tree(array, "value")
    results, new_state = step.run(Call(opened, None, None), opened.values, state)
    return Scalar(results[0]), new_state


def _filled(number: Value, state: StateView) -> Array | None:
    """Return a number as an array like those of the state: the sum over nothing is a number."""
    kept = [leaf for leaf in flatten(state.value)[0] if leaf is not None]
    floating = [leaf for leaf in kept if str(leaf.dtype).rsplit(".", 1)[-1].startswith("float")]
    if not floating:
        return None
    xp = open_tree(floating[0], "state").xp
    return xp.full_like(floating[0], number)


def _value_of(value: Input, values: Mapping[str, Value]) -> Value:
    return values[value] if isinstance(value, str) else value


def _widened(weights: Leaves) -> Values:
    return [widened(weights.xp, leaf) for leaf in weights.values]


def _without_partners(weights: Leaves, wide: Values) -> Leaves:
    """Return the weights without those that have no gradient."""
    if not any(value is None for value in wide):
        return weights
    kept = [None if value is None else leaf for leaf, value in zip(weights.values, wide, strict=True)]
    return replace(weights, values=kept)


def _as_gradients(output: str, call: Call, value: Value) -> Values:
    """Return the output's leaves in the places of the gradients', refusing another tree or shape."""
    assert isinstance(value, TreeValue)
    gradients, leaves, values = call.gradients, value.leaves, value.values
    if leaves.structure != gradients.structure:
        places = _aligned(leaves, gradients)
        values = [values[place] for place in places]
    for index, (given, made) in enumerate(zip(gradients.values, values, strict=True)):
        if given is None or made is None or tuple(made.shape) == tuple(given.shape):
            continue
        path = gradients.path(index)
        rule = f"have the shape {tuple(given.shape)} of {path}"
        way_out = "end the graph with a value of the gradients' shapes"
        raise refusal(
            TreeMismatchError, f"the output {output!r} of the graph", rule, made, way_out, path=path
        )
    return values


def _aligned(leaves: Leaves, gradients: Leaves) -> list[int]:
    """Return for each gradient the place of its leaf in a packet of the same streams in another order."""
    indices, wanted = numbered(leaves), numbered(gradients)
    if isinstance(indices, Mapping) and isinstance(wanted, Mapping) and set(indices) == set(wanted):
        ordered = in_order_of(indices, wanted)
        if all(flatten(ordered[name])[1] == flatten(wanted[name])[1] for name in wanted):
            order = {name: flatten(ordered[name])[0] for name in wanted}
            places = [place for name in wanted for place in flatten(wanted[name])[0]]
            found = {
                place.value: index.value
                for place, index in zip(
                    places, (index for name in wanted for index in order[name]), strict=True
                )
            }
            return [found[place] for place in range(len(gradients.values))]
    way_out = "merge all streams of the gradients again before the output"
    rule = "have the tree structure of gradients"
    raise refusal(TreeMismatchError, "the output of the graph", rule, leaves.tree, way_out)


def make_plan(
    structure: Structure,
    placeholders: tuple[str, ...],
    parameters: Sequence[Parameter],
    output: str,
    values: Mapping[str, Any],
    *,
    declared: bool | None,
) -> Plan:
    """Return the plan of a graph for these values of its hyper-parameters.

    Args:
        structure: the checked nodes.
        placeholders, parameters, output: of the graph.
        values: a value for each hyper-parameter.
        declared: what the graph says about its sign, where its nodes leave that open.

    Raises:
        StepsError: a node's inputs do not go together, or an option does not take a value; the text
            names node, option and hyper-parameter.
    """
    kinds: dict[str, Kind] = dict.fromkeys(placeholders, TREE)
    tunables = {name: value.value for name, value in values.items() if isinstance(value, Tunable)}
    kinds |= {parameter.name: SCALAR if parameter.name in tunables else NUMBER for parameter in parameters}
    numbers = {**values, **tunables}  # Tunable ones by their first values.
    moving = set(tunables)
    steps: dict[str, Any] = {}
    loans: dict[str, Loans] = {}
    options: dict[str, Mapping[str, Any]] = {}
    for name in structure.order:
        node = structure.nodes[name]
        inputs = [kinds[value] if isinstance(value, str) else NUMBER for value in node.inputs]
        with _naming(name):
            if isinstance(node, StepNode):
                kinds[name] = _step_kind(node, inputs)
                steps[name] = _made(node, kinds, numbers, moving, structure.nodes)
                loans[name] = _loans(node, steps[name], moving)
                _check_weights(node, steps[name])
            else:
                operation = OPERATIONS[node.operation]
                options[name] = operation.checked(dict(node.options))
                _check_numbers(node, numbers, parameters)
                kinds[name] = operation.kind(inputs, options[name])
                if all(value in numbers or not isinstance(value, str) for value in node.inputs):
                    if any(value in moving for value in node.inputs):
                        moving.add(name)
                    operands = [_value_of(value, numbers) for value in node.inputs]
                    numbers[name] = operation.evaluate(_NO_CALL, operands, options[name])
    if kinds[output] != TREE:
        way_out = "return gradients, or what is computed from them leaf by leaf"
        raise refusal(ArgumentTypeError, f"the output {output!r}", "be a tree", str(kinds[output]), way_out)
    nodes = tuple(structure.nodes[name] for name in structure.order if kinds[name].shape != "number")
    constrains = _check_constraints(structure, output, steps)
    return Plan(
        placeholders=placeholders,
        numbers={name: value for name, value in numbers.items() if name not in moving},
        nodes=nodes,
        steps=steps,
        options=options,
        output=output,
        tunables=tunables,
        loans={name: places for name, places in loans.items() if places},
        first=max((i for i, node in enumerate(nodes, start=1) if isinstance(node, StepNode)), default=0),
        negates=_negates(structure, placeholders, output, numbers, steps, declared),
        constrains=constrains,
    )


_NO_CALL: Any = None  # numbers are computed without arrays


@contextmanager
def _naming(node: str) -> Iterator[None]:
    """Name the node in an error about it."""
    try:
        yield
    except StepsError as error:
        if error.slot is None:
            error.args = (f"node {node!r}: {error}",)
            error.slot = node
        raise


def _step_kind(node: StepNode, inputs: Sequence[Kind]) -> Kind:
    if node.kind is Counter:
        return SCALAR
    if node.kind in STATEFUL_NAMES and inputs[0] == SCALAR:
        return SCALAR
    for what, given in zip(("the input", "the weights"), inputs, strict=False):
        if given != TREE:
            way_out = "pass gradients, or what is computed from them leaf by leaf"
            raise refusal(ArgumentTypeError, f"{what} of {node.title}", "be a tree", str(given), way_out)
    return TREE


def _made(
    node: StepNode,
    kinds: Mapping[str, Kind],
    numbers: Mapping[str, Any],
    moving: Collection[str],
    computed: Collection[str],
) -> Any:
    """Return the node's step, with the values of the hyper-parameters that its options name.

    An option that follows from a tunable hyper-parameter is tunable too.
    """
    if not isinstance(node.step, Template):
        return node.step
    for option, name in node.references():
        if name not in numbers:
            place = f"option {'.'.join(option)} of {node.title}"
            rule = "be a hyper-parameter, or a number computed from some"
            raise refusal(ArgumentTypeError, place, rule, f"{name} ({kinds[name]})", "pass a number")

    def value_of(name: str) -> Any:
        if name in moving:
            return Tunable(numbers[name])
        return _exact(numbers[name]) if name in computed else numbers[name]

    try:
        return node.step.made(value_of)
    except StepsError as error:
        error.args = (f"{error} ({_origins(node, error, computed)})",)
        raise


def _exact(value: Any) -> Any:
    """Return a whole number that was computed as a double as an int: options may ask for one."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _loans(node: StepNode, step: Any, moving: Collection[str]) -> Loans:
    return tuple((place_of(step, option), name) for option, name in node.references() if name in moving)


def _origins(node: StepNode, error: StepsError, computed: Collection[str]) -> str:
    """Return which hyper-parameters give the option that an error is about, or all options."""
    given = [(".".join(option), option[-1], name) for option, name in node.references()]
    about = [entry for entry in given if entry[1] == error.argument] or given
    return ", ".join(
        f"option {option!r} is the {'number' if name in computed else 'hyper-parameter'} {name!r}"
        for option, _, name in about
    )


def _check_weights(node: StepNode, step: Any) -> None:
    if getattr(step, "needs_weights", False) and len(node.inputs) < 2:
        way_out = "write step(gradients, weights) in the graph"
        raise refusal(ArgumentError, f"the weights of {node.title}", "be given", None, way_out)


def _check_numbers(node: OperationNode, numbers: Mapping[str, Any], parameters: Sequence[Parameter]) -> None:
    for value in node.inputs:
        if value not in numbers or not isinstance(value, str):
            continue
        number = numbers[value]
        if isinstance(number, bool) and value not in {p.name for p in parameters}:
            continue
        if isinstance(number, bool) or not isinstance(number, (int, float)) or number != number:
            rule = "be a number, because an operation computes with it"
            way_out = "give it a number"
            if callable(number):
                way_out = "let a step use the schedule: ScalingStep(learning_rate=...)(value) in the graph"
            raise refusal(ArgumentTypeError, f"the parameter {value!r}", rule, number, way_out)


def _check_constraints(structure: Structure, output: str, steps: Mapping[str, Any]) -> bool:
    """Return whether the output keeps weights in a set; refuse such a step anywhere else."""
    constraining = [name for name, step in steps.items() if getattr(step, "constrains", False)]
    for name in constraining:
        place = name
        while place != output:
            users = structure.users[place]
            following = structure.nodes.get(users[0])
            if len(users) > 1 or getattr(following, "operation", None) not in _PASSES_ON:
                way_out = "return its result from the graph"
                rule = f"be the last step, because {users[0]} would undo its constraint"
                raise refusal(ArgumentError, f"node {name!r}", rule, steps[name], way_out, slot=name)
            place = users[0]
    return bool(constraining)


def _negates(
    structure: Structure,
    placeholders: tuple[str, ...],
    output: str,
    numbers: Mapping[str, Any],
    steps: Mapping[str, Any],
    declared: bool | None,
) -> bool:
    def number_of(value: Input) -> Any:
        return numbers.get(value) if isinstance(value, str) else value

    try:
        found = negates(structure, output, placeholders[0], number_of, steps)
    except AmbiguousSignError as ambiguous:
        if declared is None:
            raise sign_error(str(ambiguous)) from None
        return declared
    if declared is None or declared == found or not _tells_sign(structure.nodes.get(output)):
        return found if declared is None else declared
    rule = f"be {found}, as the output {output!r} tells"
    raise refusal(ArgumentError, "negates", rule, declared, "leave negates out")


def _tells_sign(node: Node | None) -> bool:
    return isinstance(node, StepNode) or (node is not None and node.operation == "negative")
