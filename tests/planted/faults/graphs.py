"""Wrong graphs: nodes, hyper-parameters, operations, packets."""

from contextlib import nullcontext
from dataclasses import replace

from ..catalogue import fault


@fault(
    "graphs.plan:Plan.advance",
    breaks=("CUSTOM-001",),
    source="placeholders told apart by their names instead of their order",
)
def exchanges_gradients_and_weights(advance, core):
    def wrong(self, call, gradients, state):
        if len(self.placeholders) < 2:
            return advance(self, call, gradients, state)
        other = core["tunable"].with_options(self, {"placeholders": self.placeholders[::-1]})
        return advance(other, call, gradients, state)

    return wrong


@fault(
    "graphs.graph:Graph.planned",
    breaks=("CUSTOM-004",),
    source="keras#17278: a value that is stored and not used",
)
def ignores_overrides(planned, core):
    return lambda self, overrides: planned(self, {})


@fault(
    "steps.custom:_check_signature",
    breaks=("CUSTOM-021",),
    source="a port that is accepted and then not read",
)
def checks_no_signature(_check_signature, core):
    return lambda graph, signature: None


@fault(
    "graphs.plan:_made",
    breaks=("CUSTOM-005", "CUSTOM-006"),
    source="keras#17278: a bad value is found when the saved model is loaded",
)
def checks_values_when_they_are_used(_made, core):
    class Later:
        """A step that cannot be made."""

        negates = needs_weights = constrains = False

        def __init__(self, error):
            self.error = error

        def init(self, weights):
            raise self.error

        def __call__(self, gradients, weights=None, state=None):
            raise self.error

    def wrong(*arguments):
        try:
            return _made(*arguments)
        except core["errors"].StepsError as error:
            return Later(error)

    return wrong


@fault(
    "graphs.plan:Plan.initial_state",
    breaks=("CUSTOM-007",),
    source="peers.md, 2: states by position",
)
def numbers_the_states_of_nodes(initial_state, core):
    def wrong(self, weights):
        return {f"node{n}": entry for n, entry in enumerate(initial_state(self, weights).values())}

    return wrong


@fault(
    "graphs.plan:_inner_call",
    breaks=("CUSTOM-008",),
    source="weights from the surrounding call, which the graph did not pass on",
)
def passes_no_weights_into_nodes(_inner_call, core):
    return lambda call, subject, weights: _inner_call(call, subject, None)


@fault(
    "graphs.signs:_agreed",
    breaks=("CUSTOM-012",),
    source="a sign that is guessed",
)
def guesses_a_sign_that_is_open(_agreed, core):
    return lambda node, signs: signs[0]


@fault(
    "graphs.signs:_of_operation",
    breaks=("CUSTOM-011",),
    source="unary minus does not count",
)
def overlooks_a_minus(_of_operation, core):
    def wrong(node, inputs):
        return inputs[0] if node.operation == "negative" else _of_operation(node, inputs)

    return wrong


@fault(
    "graphs.plan:_check_constraints",
    breaks=("CUSTOM-013",),
    source="a constraint in the middle, which what follows undoes",
)
def lets_a_constraint_stand_anywhere_in_a_graph(_check_constraints, core):
    return lambda structure, output, steps: False


@fault(
    "graphs.plan:_as_gradients",
    breaks=("CUSTOM-014",),
    source="an output of another shape, broadcast onto the weights",
)
def returns_an_output_of_any_shape(_as_gradients, core):
    return lambda output, call, value: value.values


@fault(
    "building:check_level",
    breaks=("CUSTOM-016",),
    source="a document of a thousand brackets exhausts the stack",
)
def reads_documents_of_any_depth(check_level, core):
    return lambda path, level: None


@fault(
    "graphs.json_form:_require_object",
    breaks=("CUSTOM-015",),
    source="entries that are not known are dropped without a word",
)
def drops_unknown_entries_of_documents(_require_object, core):
    def wrong(value, path, known, needed):
        kept = (
            {name: entry for name, entry in value.items() if name in known}
            if isinstance(value, dict)
            else value
        )
        _require_object(kept, path, known, needed)

    return wrong


@fault(
    "graphs.plan:errors_in",
    breaks=("CUSTOM-019",),
    source="a failure deep in a graph, without the node",
)
def names_no_node_in_errors(errors_in, core):
    return lambda slot, title: nullcontext()


@fault(
    "graphs.plan:read_entries",
    breaks=("CUSTOM-022",),
    source="optax#1440: the value is taken when the graph is made",
)
def uses_the_first_value_of_a_hyper_parameter(read_entries, core):
    def wrong(tunables, call, state):
        entries = read_entries(tunables, call, state)
        return {
            name: None if entry is None else call.xp.full_like(entry, tunables[name])
            for name, entry in entries.items()
        }

    return wrong


@fault(
    "graphs.graph:settled_value",
    breaks=("CUSTOM-003",),
    source="hyper-parameters in the lowest dtype (optax#1414)",
)
def rounds_hyper_parameters_to_float32(settled_value, core):
    def wrong(name, value):
        settled = settled_value(name, value)
        is_rounded = isinstance(settled, float) and 0 < abs(settled) < 1e30
        return core["tunable"].in_float32(settled) if is_rounded else settled

    return wrong


@fault(
    "graphs.reductions:norm",
    breaks=("OPERATION-003",),
    source="a norm per leaf where one of the tree is asked for",
)
def takes_norms_per_leaf(norm, core):
    return lambda call, value, over, order, unit_axis: norm(
        call, value, "leaf" if over == "tree" else over, order, unit_axis
    )


@fault(
    "graphs.reductions:plain_norm",
    breaks=("OPERATION-004",),
    source="keras, optax: a root of a plain sum of squares",
)
def gives_infinite_norms_of_large_leaves(plain_norm, core):
    def wrong(xp, norm):
        return xp.where(norm.is_big, xp.inf, plain_norm(xp, norm))

    return wrong


@fault(
    "graphs.reductions:_mean",
    breaks=("OPERATION-004",),
    source="a mean whose sum overflows",
)
def sums_before_it_divides(_mean, core):
    def wrong(xp, leaf, axes):
        count = 1
        for axis in axes:
            count *= leaf.shape[axis]
        return core["numerics.sums"].sum_over(xp, leaf, axes) / max(count, 1)

    return wrong


@fault(
    "graphs.stateful:bias_correction",
    breaks=("OPERATION-005",),
    source="mlx corrects no bias unless asked; here not even then",
)
def corrects_no_bias_of_averages(bias_correction, core):
    return lambda xp, count, decay: xp.ones_like(count)


@fault(
    "graphs.stateful:PreviousValue.advance",
    breaks=("OPERATION-007",),
    source="the value of this call instead of the one before",
)
def gives_the_value_of_this_call(advance, core):
    def wrong(self, call, gradients, state):
        _, new_state = advance(self, call, gradients, state)
        return gradients, new_state

    return wrong


@fault(
    "graphs.stateful:Counter.advance",
    breaks=("OPERATION-008",),
    source="optax#415: step 0 against step 1",
)
def counts_this_call(advance, core):
    def wrong(self, call, gradients, state):
        (value,), new_state = advance(self, call, gradients, state)
        return [None if value is None else value + 1], new_state

    return wrong


@fault(
    "graphs.arithmetic:_first_unless",
    breaks=("OPERATION-010",),
    source="cupy#9031: minimum and maximum that ignore NaN",
)
def ignores_nan_in_minimum_and_maximum(_first_unless, core):
    def wrong(xp, x, y, replaces):
        found = _first_unless(xp, x, y, replaces)
        return xp.where(xp.isnan(found), 0.0, found)

    return wrong


@fault(
    "graphs.arithmetic:safe_sqrt",
    breaks=("OPERATION-010",),
    source="a root that is 0 below 0",
)
def takes_the_root_of_negative_numbers_for_0(safe_sqrt, core):
    return lambda xp, x: safe_sqrt(xp, xp.where(x < 0, 0.0, x))


@fault(
    "graphs.values:number_for",
    breaks=("OPERATION-012",),
    source="a number beyond float32 becomes infinity without a word",
)
def lets_numbers_overflow(number_for, core):
    return lambda number, leaf: core["numerics.formats"].constant(
        number, core["numerics.formats"].format_of(leaf)
    )


@fault(
    "graphs.operations:in_order_of",
    breaks=("PACKET-002",),
    source="streams in the order in which they were merged",
)
def keeps_streams_in_the_order_of_merging(in_order_of, core):
    return lambda packet, names: packet


@fault(
    "graphs.operations:extract_streams",
    breaks=("PACKET-003",),
    source="optax.partition: a label that fits nothing is not missed",
)
def leaves_out_streams_that_do_not_exist(extract_streams, core):
    return lambda packet, names: type(packet)((n, tree) for n, tree in packet.items() if n in names)


@fault(
    "graphs.operations:merge_streams",
    breaks=("PACKET-004",),
    source="dict.update: the last one wins",
)
def lets_the_last_of_two_streams_win(merge_streams, core):
    def wrong(*packets):
        merged = {}
        for packet in packets:
            merged.update(packet)
        return merged

    return wrong


@fault(
    "graphs.plan:OPERATIONS",
    breaks=("PACKET-001",),
    source="peers.md, 2: partition turns a global norm into one per group, or none",
)
def treats_all_streams_together(operations, core):
    def evaluate(call, inputs, options):
        return inputs[0]

    return {**operations, "extract_streams": replace(operations["extract_streams"], evaluate=evaluate)}
