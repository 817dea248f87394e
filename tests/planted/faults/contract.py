"""Breaches of the contract: what a step does to its inputs, its state, its result, and the device."""

import itertools
from collections import OrderedDict
from contextlib import nullcontext

from ..catalogue import fault

DEVICES = "pytorch#38605, #8623, #39153: leaves on two devices"


@fault(
    "steps.scaling:ScalingStep.advance",
    breaks=("CONTRACT-002",),
    source="torch and Chainer clip in place",
)
def writes_to_the_gradients(advance, core):
    def wrong(self, call, gradients, state):
        scaled, new_state = advance(self, call, gradients, state)
        for given, new in zip(call.gradients.values, scaled, strict=True):
            if given is not None:
                given[...] = call.xp.astype(new, given.dtype)
        return list(call.gradients.values), new_state

    return wrong


@fault(
    "elementwise:stored",
    breaks=("CONTRACT-002",),
    source="mlx and torch keep moments in place",
)
def writes_to_the_state(stored, core):
    def wrong(old, new):
        old[...] = stored(old, new)
        return old

    return wrong


@fault(
    "updates:_updated",
    breaks=("UPDATE-004",),
    source="torch.optim: weights are changed in place",
)
def writes_to_the_weights(_updated, core):
    def wrong(weights, index, update):
        weight = weights.values[index]
        if weight is None or update is None:
            return weight
        weight[...] = _updated(weights, index, update)
        return weight

    return wrong


@fault(
    "contract:Step.__call__",
    breaks=("CONTRACT-001", "CONTRACT-006"),
    source="torch, keras and mlx keep the state on the object",
)
def keeps_the_state_on_the_object(call, core):
    def wrong(self, gradients, weights=None, state=None, *, name=None):
        hidden = vars(self).get("hidden") if state is None else state
        result = call(self, gradients, weights, hidden, name=name)
        if name is None:
            object.__setattr__(self, "hidden", result.state)
        return result

    return wrong


@fault(
    "elementwise:copied",
    breaks=("CONTRACT-014",),
    source="an update that shares memory with the momentum kept",
)
def gives_out_the_state_itself(copied, core):
    return lambda xp, array: array


@fault(
    "contract:StepResult",
    breaks=("CONTRACT-005",),
    source="noise from a generator that is shared",
)
def adds_noise(result_type, core):
    calls = itertools.count(1)

    def wrong(gradients, state):
        flat, structure = core["trees"].flatten(gradients)
        noise = 1e-6 * next(calls)
        noisy = [None if leaf is None else (leaf * (1 + noise)).astype(leaf.dtype) for leaf in flat]
        return result_type(core["trees"].unflatten(structure, noisy), state)

    return wrong


@fault(
    "leaves:unflatten",
    breaks=("TREE-001", "CONTRACT-003"),
    source="torch pytrees against optree: containers that come back as others",
)
def returns_plain_dicts_and_tuples(unflatten, core):
    def plain(tree):
        if isinstance(tree, dict):
            return {key: plain(entry) for key, entry in tree.items()}
        return tuple(map(plain, tree)) if isinstance(tree, (list, tuple)) else tree

    return lambda structure, leaves: plain(unflatten(structure, leaves))


@fault(
    "call:Call.close",
    breaks=("TREE-001",),
    source="peers.md, 2: dict order is sorted in jax and optree, insertion order in torch",
)
def gives_leaves_in_another_order(close, core):
    def wrong(self, values):
        kinds = [None if leaf is None else (leaf.shape, str(leaf.dtype)) for leaf in self.gradients.values]
        backwards = values[::-1] if kinds == kinds[::-1] else values
        return close(self, backwards)

    return wrong


@fault(
    "call:Call.close",
    breaks=("TREE-003",),
    source="peers.md, 2: None is no leaf in jax; a gradient of None becomes zeros",
)
def fills_in_for_none(close, core):
    def wrong(self, values):
        tree = close(self, values)
        flat, structure = core["trees"].flatten(tree)
        arrays = [leaf for leaf in flat if leaf is not None]
        if not arrays:
            return tree
        return core["trees"].unflatten(
            structure, [self.xp.zeros_like(arrays[0]) if leaf is None else leaf for leaf in flat]
        )

    return wrong


@fault(
    "contract:StepResult",
    breaks=("TREE-003",),
    source="mlx: None among gradients is an AttributeError; others drop it",
)
def drops_entries_that_are_none(result_type, core):
    def without(tree):
        if type(tree) in (dict, OrderedDict):
            return type(tree)((key, without(entry)) for key, entry in tree.items() if entry is not None)
        return tree

    return lambda gradients, state: result_type(without(gradients), state)


@fault(
    "call:Call.close",
    breaks=("CONTRACT-003", "PREC-001"),
    source="optax#1405: the dtype of an update depends on how the rate was given",
)
def promotes_narrow_leaves(close, core):
    return lambda self, values: self.tree(values)


@fault(
    "call:Call.close",
    breaks=("CONTRACT-003",),
    source=DEVICES,
    row="array-api-strict-device1",
)
def moves_leaves_to_the_default_device(close, core):
    def wrong(self, values):
        flat, structure = core["trees"].flatten(close(self, values))
        if self.xp is None:
            return core["trees"].unflatten(structure, flat)
        home = self.xp.__array_namespace_info__().default_device()
        moved = [None if leaf is None else core["namespaces"].to_device(leaf, home) for leaf in flat]
        return core["trees"].unflatten(structure, moved)

    return wrong


@fault(
    "state:scalar_like",
    breaks=("CONTRACT-015",),
    source=DEVICES,
    row="array-api-strict-device1",
)
def makes_counters_on_the_default_device(scalar_like, core):
    def wrong(weights, value, dtype):
        return None if weights.xp is None else weights.xp.asarray(value, dtype=getattr(weights.xp, dtype))

    return wrong


@fault(
    "steps.clipping:limit_norm",
    breaks=("CLIP-GLOBAL-001", "CLIP-LAYER-001"),
    source="pytorch#61042, #60691: clip_grad_norm_ synchronised three times a call",
    row="jax-jit",
)
def asks_the_device_for_the_norm(limit_norm, core):
    def wrong(xp, norm, threshold, reference=None):
        float(norm.root)
        return limit_norm(xp, norm, threshold, reference)

    return wrong


@fault(
    "steps.skip_non_finite:_or_incremented",
    breaks=("SKIP-005",),
    source="LossScaleOptimizer: `if` on a value of the device",
    row="jax-jit",
)
def branches_on_a_value_of_the_device(_or_incremented, core):
    def wrong(xp, is_finite, skipped):
        return skipped if is_finite else core["state"].incremented(skipped)

    return wrong


@fault(
    "call:Call.close",
    breaks=("CONTRACT-003",),
    source="peers.md, array-API traps: sums of NumPy return np.float32",
)
def returns_scalars_of_numpy(close, core):
    def wrong(self, values):
        flat, structure = core["trees"].flatten(close(self, values))
        return core["trees"].unflatten(
            structure, [leaf[()] if leaf is not None and leaf.shape == () else leaf for leaf in flat]
        )

    return wrong


@fault(
    "contract:quiet",
    breaks=("CONTRACT-007",),
    source="NumPy warns on overflow and 0/0, which -W error makes an error",
)
def warns_on_valid_input(quiet, core):
    return lambda xp: nullcontext()


@fault(
    "contract:stop_here",
    breaks=("CONTRACT-008",),
    source="a debugger hook that changes what it looks at",
)
def changes_the_gradients_at_a_breakpoint(stop_here, core):
    def wrong(step, gradients, weights, state):
        stop_here(step, gradients, weights, state)
        gradients[:] = [None if leaf is None else leaf * 2 for leaf in gradients]

    return wrong


@fault(
    "contract:stop_here",
    breaks=("CONTRACT-008",),
    source="a port that is accepted and then not read",
)
def never_stops_at_a_breakpoint(stop_here, core):
    return lambda step, gradients, weights, state: None


@fault(
    "steps.scaling:ScalingStep.own_keys",
    breaks=("CONTRACT-009",),
    source="optax: a state whose form depends on an option",
)
def counts_calls_without_a_schedule(own_keys, core):
    return property(lambda self: ("count",))


@fault(
    "contract:Step.run",
    breaks=("CONTRACT-013",),
    source="optax.named_chain drops entries that it does not know",
)
def accepts_a_state_with_other_entries(run, core):
    def wrong(self, call, gradients, state):
        if isinstance(state.value, dict):
            known = {key: value for key, value in state.value.items() if key in self.state_keys}
            state = core["state"].StateView(known, state.path)
        return run(self, call, gradients, state)

    return wrong


@fault(
    "state:StateView.error",
    breaks=("CONTRACT-013", "CHAIN-011"),
    source="optax: AttributeError 'EmptyState' has no 'mu'",
)
def says_no_path_in_errors_about_states(error, core):
    def wrong(self, rule, value, *, place=None):
        return core["errors"].refusal(core["errors"].StateError, "state", "fit", value, "pass another")

    return wrong


@fault(
    "state:StateView._require_moment",
    breaks=("CONTRACT-013",),
    source="moments of another model, broadcast without a word",
)
def takes_moments_of_any_shape(_require_moment, core):
    return lambda self, call, index, moment, opened, real: None


@fault(
    "leaves:shown",
    breaks=("TREE-008", "TREE-009"),
    source="pytorch: `The size of tensor a must match`, without a name",
)
def shows_no_value_in_errors_about_leaves(shown, core):
    return lambda value: "something else"


@fault(
    "leaves:leaf_paths",
    breaks=("TREE-007", "TREE-008", "TREE-009", "TREE-010"),
    source="optax, torch: which of a thousand leaves was it?",
)
def names_the_tree_instead_of_the_leaf(leaf_paths, core):
    return lambda structure, root: [root] * len(leaf_paths(structure, root))


@fault(
    "call:require_partner",
    breaks=("TREE-008",),
    source="NumPy broadcasts a weight of shape (1,) without a word",
)
def broadcasts_weights(require_partner, core):
    def wrong(leaves, other):
        core["trees"].require_same_structure(leaves.name, leaves.structure, other.name, other.structure)

    return wrong


@fault(
    "leaves:require_same_structure",
    breaks=("TREE-007",),
    source="zip over two lists of leaves stops at the shorter one",
)
def pairs_leaves_by_position(require_same_structure, core):
    return lambda name, structure, other_name, other: None


@fault(
    "leaves:_is_supported",
    breaks=("TREE-009",),
    source="peers.md, 4: keras and mlx turn int32 leaves into float32",
)
def takes_leaves_of_any_dtype(_is_supported, core):
    return lambda leaf: True


@fault(
    "leaves:_require_same_kind",
    breaks=("TREE-010",),
    source="NumPy drops the imaginary part with a warning",
)
def lets_real_and_complex_meet(_require_same_kind, core):
    return lambda leaves, other, index: None


@fault(
    "contract:open_call",
    breaks=("TREE-006",),
    source="pytorch#35753: stack expects a non-empty list",
)
def fails_on_a_tree_without_arrays(open_call, core):
    def wrong(gradients, weights):
        call, wide = open_call(gradients, weights)
        call.xp.isfinite  # noqa: B018 - fails where there is no array
        return call, wide

    return wrong


@fault(
    "steps.adam:advance_leaves",
    breaks=("TREE-004",),
    source="moments that decay although no gradient came",
)
def decays_moments_without_a_gradient(advance_leaves, core):
    def wrong(call, gradients, moments, kernel):
        updates, advanced = advance_leaves(call, gradients, moments, kernel)
        for key, tree in advanced.items():
            flat, structure = core["trees"].flatten(tree)
            moved = [
                old * 0.5 if gradient is None and old is not None else old
                for gradient, old in zip(gradients, flat, strict=True)
            ]
            advanced[key] = core["trees"].unflatten(structure, moved)
        return updates, advanced

    return wrong


@fault(
    "updates:_updated",
    breaks=("UPDATE-001", "UPDATE-002"),
    source="bfloat16 weights plus float32 updates become float32",
)
def gives_weights_the_dtype_of_the_update(_updated, core):
    def wrong(weights, index, update):
        weight = weights.values[index]
        return weight if update is None or weight is None else weight + update

    return wrong


@fault(
    "updates:_updated",
    breaks=("UPDATE-001",),
    source="the update is rounded to the weight's dtype before it is added",
)
def rounds_the_update_before_adding(_updated, core):
    def wrong(weights, index, update):
        weight = weights.values[index]
        if update is not None and weight is not None:
            update = weights.xp.astype(update, weight.dtype)
        return _updated(weights, index, update)

    return wrong


@fault(
    "updates:_updated",
    breaks=("UPDATE-003",),
    source="a frozen weight that becomes None",
)
def returns_none_for_a_weight_without_an_update(_updated, core):
    def wrong(weights, index, update):
        return None if update is None else _updated(weights, index, update)

    return wrong


@fault(
    "updates:require_partner",
    breaks=("UPDATE-005",),
    source="updates of another model, broadcast without a word",
)
def adds_updates_of_any_shape(require_partner, core):
    return lambda leaves, other: None


@fault(
    "call:widened",
    breaks=("PREC-001",),
    source="peers.md, 1a: sums of float16 in float16",
)
def rounds_after_each_operation(widened, core):
    def wrong(xp, leaf, partner=None):
        wide = widened(xp, leaf, partner)
        if wide is None or core["namespaces"].dtype_name(leaf.dtype) != "float16":
            return wide
        return wide * (1 + 2.0**-11)

    return wrong


@fault(
    "call:wide_name",
    breaks=("PREC-005",),
    source="jax without x64: float64 becomes float32 in silence",
)
def computes_float64_in_float32(wide_name, core):
    return lambda name, other=None: {"float64": "float32", "complex128": "complex64"}.get(
        wide_name(name, other), wide_name(name, other)
    )
