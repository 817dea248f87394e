"""Wrong chains and wrappers: order, states, weights, masks, monitors."""

from contextlib import nullcontext

from ..catalogue import fault

CHAINS = "peers.md, 2"


@fault(
    "steps.chain:ChainedStep.advance",
    breaks=("CHAIN-013",),
    source="jax and optree sort keys: step10 comes before step2",
)
def runs_slots_in_the_order_of_their_texts(advance, core):
    def wrong(self, call, gradients, state):
        ordered = core["tunable"].with_options(self, {"slots": tuple(sorted(self.slots))})
        return advance(ordered, call, gradients, state)

    return wrong


@fault(
    "steps.chain:ChainedStep.advance",
    breaks=("CHAIN-001", "CHAIN-002", "CHAIN-013"),
    source="hooks that run last in, first out",
)
def runs_steps_backwards(advance, core):
    def wrong(self, call, gradients, state):
        return advance(
            core["tunable"].with_options(self, {"slots": self.slots[::-1]}), call, gradients, state
        )

    return wrong


@fault(
    "steps.chain:NAMED_SLOTS",
    breaks=("CHAIN-002",),
    source="the source's port list: step0 comes after step9",
)
def runs_step0_first(slots, core):
    return tuple(sorted(slots))


@fault(
    "steps.chain:ChainedStep.advance",
    breaks=("TREE-013",),
    source=f"{CHAINS}: torch.optim and keras keep states by position",
)
def finds_states_by_position(advance, core):
    def wrong(self, call, gradients, state):
        by_position = dict(zip(self.own_keys, state.value.values(), strict=False))
        return advance(self, call, gradients, core["state"].StateView(by_position, state.path))

    return wrong


@fault(
    "steps.chain:advance_inner",
    breaks=("PREC-002",),
    source="two steps called by hand: each rounds its result",
)
def rounds_between_steps(advance_inner, core):
    def wrong(step, call, gradients, state):
        values, new_state = advance_inner(step, call, gradients, state)
        rounded = [
            None
            if new is None or given is None
            else call.xp.astype(call.xp.astype(new, given.dtype), new.dtype)
            for new, given in zip(values, call.gradients.values, strict=True)
        ]
        return rounded, new_state

    return wrong


@fault(
    "steps.chain:ChainedStep.own_state",
    breaks=("CHAIN-007", "CHAIN-012"),
    source="states kept by object: the same step twice shares one",
)
def shares_the_state_of_a_step_that_stands_twice(own_state, core):
    def wrong(self, weights):
        states = own_state(self, weights)
        return {
            slot: states[slot]
            for place, (slot, step) in enumerate(self.slots)
            if step not in [earlier for _, earlier in self.slots[:place]]
        }

    return wrong


@fault(
    "steps.chain:ChainedStep.advance",
    breaks=("CHAIN-008",),
    source="optax: extra arguments reach the first transformation alone",
)
def gives_weights_to_the_first_step_alone(advance, core):
    def wrong(self, call, gradients, state):
        new_state, given, weights = {}, call.given_weights, call.weights
        for slot, step in self.slots:
            gradients, new_state[slot] = core["steps.nesting"].advance_inner(
                step, call, gradients, state.child(slot)
            )
            call.given_weights, call.weights = None, None
        call.given_weights, call.weights = given, weights
        return gradients, new_state

    return wrong


@fault(
    "steps.chain:ChainedStep._check_options",
    breaks=("CHAIN-009",),
    source="optax: that keep_params_nonnegative must be last stands in its docstring only",
)
def lets_a_constraint_stand_anywhere(_check_options, core):
    return lambda self: None


@fault(
    "steps.chain:errors_in",
    breaks=("CHAIN-010",),
    source="optax: a shared text is the only hint of which step failed",
)
def does_not_say_which_step_failed(errors_in, core):
    return lambda slot, title: nullcontext()


@fault(
    "steps.chain:ChainedStep.advance",
    breaks=("CHAIN-004",),
    source="optax.chain() raises: not enough values to unpack",
)
def fails_without_steps(advance, core):
    def wrong(self, call, gradients, state):
        self.slots[0]
        return advance(self, call, gradients, state)

    return wrong


@fault(
    "steps.chain:ChainedStep.negates",
    breaks=("CONTRACT-010", "CONTRACT-011"),
    source="two negations make none",
)
def negates_if_any_step_does(negates, core):
    return property(lambda self: any(step.negates for _, step in self.slots))


@fault(
    "steps.chain:checked_step",
    breaks=("CHAIN-003",),
    source="an empty slot that ends the chain",
)
def stops_at_the_first_tenth_step(checked_step, core):
    def wrong(slot, step):
        if slot == "step0":
            raise core["errors"].ArgumentError("step0 must be left out, got a step; use step1 to step9")
        return checked_step(slot, step)

    return wrong


@fault(
    "building:_built_chain",
    breaks=("CHAIN-014",),
    source="unknown keyword arguments that are swallowed",
)
def drops_slots_that_it_does_not_know(_built_chain, core):
    def wrong(options, path):
        known = {name: step for name, step in options.items() if name.removeprefix("step").isdecimal()}
        return _built_chain(known, path)

    return wrong


@fault(
    "steps.skip_non_finite:_chosen",
    breaks=("SKIP-003", "SKIP-004"),
    source="the update is skipped, and the moments are poisoned",
)
def advances_the_inner_state_of_a_skipped_call(_chosen, core):
    return lambda xp, finite_for, new, old: new


@fault(
    "steps.skip_non_finite:_or_zero",
    breaks=("SKIP-002",),
    source="optax.zero_nans: the finite part of a bad gradient is used",
)
def zeroes_the_bad_elements_alone(_or_zero, core):
    return lambda xp, finite_for, leaf: None if leaf is None else xp.where(xp.isfinite(leaf), leaf, 0.0)


@fault(
    "steps.skip_non_finite:_or_incremented",
    breaks=("SKIP-005",),
    source="optax#1746: a counter that is never counted up, or never reset",
)
def counts_good_calls_as_skipped(_or_incremented, core):
    def wrong(xp, is_finite, skipped):
        return None if skipped is None else core["state"].incremented(skipped)

    return wrong


@fault(
    "steps.skip_non_finite:SkipNonFiniteStep.advance",
    breaks=("SKIP-006",),
    source="pytorch, error_if_nonfinite: raises on finite gradients whose norm overflows",
)
def skips_large_finite_gradients(advance, core):
    def wrong(self, call, gradients, state):
        norm = call.global_norm(gradients)
        if norm is not None:
            plain = core["numerics.norms"].plain_norm(call.xp, norm)
            call.norms[-1] = (gradients, norm._replace(root=norm.root + plain * 0.0))
        return advance(self, call, gradients, state)

    return wrong


@fault(
    "steps.masked:MaskedStep._chosen",
    breaks=("MASK-001", "MASK-002", "MASK-004"),
    source="a mask that is stored and not used",
)
def ignores_the_mask(_chosen, core):
    return lambda self, leaves: [leaf is not None for leaf in leaves.values]


@fault(
    "steps.masked:MaskedStep.advance",
    breaks=("MASK-001",),
    source="optax#159: whether leaves outside the mask pass or become zeros",
)
def zeroes_leaves_outside_the_mask(advance, core):
    def wrong(self, call, gradients, state):
        merged, new_state = advance(self, call, gradients, state)
        chosen = self._chosen(call.gradients)
        return [
            new if inside or new is None else new * 0.0 for inside, new in zip(chosen, merged, strict=True)
        ], new_state

    return wrong


@fault(
    "steps.masked:_where",
    breaks=("MASK-002",),
    source="maxtext#5290: frozen leaves inflate the global norm",
)
def counts_masked_leaves_in_norms(_where, core):
    return lambda chosen, values: list(values)


@fault(
    "masks:MaskTree.over",
    breaks=("MASK-003",),
    source="a boolean stands for its first leaf only",
)
def spreads_no_boolean_over_what_is_below(over, core):
    def wrong(self, structure, name):
        values = over(self, structure, name)
        return (
            values
            if len(values) == len(self.values)
            else [*self.values, *[False] * len(values)][: len(values)]
        )

    return wrong


@fault(
    "steps.masked:MaskedStep.own_state",
    breaks=("MASK-004",),
    source="state for weights that are never trained",
)
def keeps_states_for_masked_leaves(own_state, core):
    return lambda self, weights: {"inner": core["steps.nesting"].initial_inner_state(self.inner, weights)}


@fault(
    "steps.wrapping:WrappingStep.negates",
    breaks=("MASK-007", "CONTRACT-010"),
    source="a wrapper that counts as nothing",
)
def counts_wrappers_as_chainable(negates, core):
    return property(lambda self: False)


@fault(
    "steps.monitor:MonitorStep.advance",
    breaks=("MONITOR-004",),
    source="pytorch, error_if_nonfinite: a norm that overflows counts as a gradient that is not finite",
)
def judges_finiteness_by_the_plain_norm(advance, core):
    def wrong(self, call, gradients, state):
        passed, new_state = advance(self, call, gradients, state)
        norm = new_state["norm"]
        if norm is None or call.global_norm(gradients) is None:
            return passed, new_state
        finite = core["namespaces"].as_array(call.xp, call.xp.isfinite(norm))
        return passed, {**new_state, "finite": finite}

    return wrong


@fault(
    "steps.monitor:MonitorStep.own_state",
    breaks=("MONITOR-005",),
    source="deepmd-kit#5519: a float64 norm reported in float32",
)
def always_shows_float32(own_state, core):
    def wrong(self, weights):
        state = own_state(self, weights)
        norm = core["state"].scalar_like(weights, 0.0, "float32")
        return {**state, "norm": norm}

    return wrong


@fault(
    "steps.monitor:_kept",
    breaks=("MONITOR-002",),
    source="apex#1468: the norm before the gradients were unscaled, a call late",
)
def shows_the_norm_of_the_call_before(_kept, core):
    return lambda old, new: old


@fault(
    "call:Call.global_norm",
    breaks=("MONITOR-006",),
    source="optax#326: the norm before the clip cannot be had; a cached one is that of other gradients",
)
def shares_one_norm_among_all_steps_of_a_call(global_norm, core):
    def wrong(self, values):
        return self.norms[0][1] if self.norms else global_norm(self, values)

    return wrong


@fault(
    "steps.centering:centered",
    breaks=("CENTER-001",),
    source="the mean of the whole leaf instead of each unit's",
)
def removes_the_mean_of_the_whole_leaf(centered, core):
    return lambda xp, leaf, axes: centered(xp, leaf, tuple(range(leaf.ndim)))


@fault(
    "steps.centering:mean_over",
    breaks=("CENTER-001",),
    source="a mean over n - 1, as of a variance",
)
def divides_the_mean_by_one_less(mean_over, core):
    def wrong(xp, x, axes):
        count = 1
        for axis in axes:
            count *= x.shape[axis]
        return mean_over(xp, x, axes) * (count / max(count - 1, 1))

    return wrong


@fault(
    "steps.centering:CenteringStep.advance",
    breaks=("CENTER-002",),
    source="biases that are centred to nothing",
)
def centres_vectors(advance, core):
    def wrong(self, call, gradients, state):
        centred, new_state = advance(self, call, gradients, state)
        return [
            new if new is None or new.ndim != 1 or 0 in new.shape else new - call.xp.mean(new)
            for new in centred
        ], new_state

    return wrong


@fault(
    "steps.constraint:nonnegative",
    breaks=("CONSTRAINT-001",),
    source="jax#2843: the update is projected, and not the weight that it leads to",
)
def projects_the_update(nonnegative, core):
    return lambda xp, update, weight: xp.maximum(update, xp.zeros_like(update))


@fault(
    "steps.constraint:boxed",
    breaks=("CONSTRAINT-002",),
    source="lower and upper exchanged",
)
def exchanges_the_bounds_of_a_box(boxed, core):
    return lambda xp, update, weight, lower, upper: boxed(xp, update, weight, upper, lower)


@fault(
    "steps.constraint:in_norm_ball",
    breaks=("CONSTRAINT-003",),
    source="weights on the sphere, also those that were inside the ball",
)
def pulls_weights_to_the_sphere(in_norm_ball, core):
    def wrong(xp, update, weight, radius, axes):
        norms, limits = core["numerics.norms"], core["numerics.limits"]
        half = weight * 0.5 + update * 0.5
        norm = norms.scaled_norm(xp, norms.square_sums(xp, half, axes))
        return limits.rescale(xp, half, norm) * radius - weight

    return wrong


@fault(
    "steps.constraint:of_unit_norm",
    breaks=("CONSTRAINT-005",),
    source="0 / 0: a unit of zeros has no direction",
)
def divides_a_unit_of_zeros_by_its_norm(of_unit_norm, core):
    def wrong(xp, update, weight, axes):
        found = of_unit_norm(xp, update, weight, axes)
        moved = weight + update
        return xp.where(xp.sum(xp.abs(moved), axis=axes, keepdims=True) == 0, xp.nan, found)

    return wrong


@fault(
    "steps.constraint:require_wide_enough",
    breaks=("CONSTRAINT-010",),
    source="an update that is rounded after it was constrained",
)
def constrains_updates_that_are_rounded_later(require_wide_enough, core):
    return lambda gradients, weights: None
