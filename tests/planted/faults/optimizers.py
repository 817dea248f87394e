"""Wrong optimizers: moments, bias corrections, epsilons, momentum and weight decay."""

from ..catalogue import fault
from .wrong_numbers import through_bfloat16

STATE = "peers.md, 3: dtype, state, schedule"


class Without:
    """A namespace in which some functions do something else."""

    def __init__(self, xp, **others):
        self._xp = xp
        vars(self).update(others)

    def __getattr__(self, name):
        return getattr(self._xp, name)


@fault(
    "steps.adam:cast_for",
    breaks=("ADAM-001", "PREC-004"),
    source="optax#1414: beta2 = 0.999 passes through bfloat16 and becomes 1",
)
def passes_the_betas_through_bfloat16(cast_for, core):
    return lambda xp, value, leaf: through_bfloat16(cast_for(xp, value, leaf))


@fault(
    "steps.adam:bias_correction",
    breaks=("ADAM-001", "ADAM-003"),
    source="peers.md, 2: mlx corrects no bias unless asked",
)
def corrects_no_bias(bias_correction, core):
    return lambda xp, count, decay: xp.ones_like(count)


@fault(
    "steps.adam:bias_correction",
    breaks=("ADAM-001", "ADAM-003"),
    source=f"{STATE}: step 0 against step 1 (optax#415)",
)
def corrects_the_bias_of_the_next_step(bias_correction, core):
    return lambda xp, count, decay: bias_correction(xp, count + 1.0, decay)


@fault(
    "steps.adam:bias_correction",
    breaks=("ADAM-001",),
    source="every peer: 1 - beta2**t in float32 has four digits left at t = 1",
)
def takes_a_power_of_a_rounded_beta(bias_correction, core):
    def wrong(xp, count, decay):
        base = xp.full_like(count, decay) if isinstance(decay, float) else decay
        return 1.0 - base**count

    return wrong


@fault(
    "steps.adam:AdamStep._scalars",
    breaks=("ADAM-004",),
    source="peers.md, 2: keras adds epsilon to the uncorrected root",
)
def adds_epsilon_to_the_uncorrected_root(_scalars, core):
    def wrong(self, xp, leaf, rate, count):
        scalars = _scalars(self, xp, leaf, rate, count)
        return scalars._replace(epsilon=xp.ones_like(scalars.epsilon) * self.epsilon)

    return wrong


@fault(
    "steps.adam:AdamStep._scalars",
    breaks=("ADAM-004",),
    source="optax has both epsilons, and recipes take one for the other",
)
def adds_epsilon_inside_the_root(_scalars, core):
    def wrong(self, xp, leaf, rate, count):
        scalars = _scalars(self, xp, leaf, rate, count)
        return scalars._replace(
            epsilon=scalars.epsilon * 0.0, epsilon_root=scalars.epsilon_root + scalars.epsilon
        )

    return wrong


@fault(
    "steps.adam:quotient_or_zero",
    breaks=("ADAM-009",),
    source="optax#1755: a zero gradient gives NaN where epsilon has become 0",
)
def divides_zero_by_zero_in_adam(quotient_or_zero, core):
    return lambda xp, numerator, denominator: numerator / denominator


@fault(
    "steps.rmsprop:quotient_or_zero",
    breaks=("RMSPROP-008",),
    source="optax#1784: the same in RMSProp",
)
def divides_zero_by_zero_in_rmsprop(quotient_or_zero, core):
    return lambda xp, numerator, denominator: numerator / denominator


@fault(
    "numerics.moments:squared_magnitude",
    breaks=("ADAM-007", "RMSPROP-012"),
    source="pytorch#59998: complex gradients as pairs of real ones, or squared as they are",
)
def squares_only_the_real_part(squared_magnitude, core):
    return lambda xp, x, factor=1.0: factor * core["numerics.norms"].real_parts(xp, x)[0] ** 2


def _coupled(kernel):
    """Return a kernel of g + weight_decay * w, without a decay of its own."""

    def wrong(xp, g, w, moments, scalars, options):
        if w is None or not isinstance(options.weight_decay, float):
            return kernel(xp, g, w, moments, scalars, options)
        return kernel(xp, g + options.weight_decay * w, None, moments, scalars, options)

    return wrong


@fault(
    "steps.adam:adam_kernel",
    breaks=("ADAM-008",),
    source="torch.optim.Adam: weight decay goes through the moments",
)
def couples_weight_decay_in_adam(adam_kernel, core):
    return _coupled(adam_kernel)


@fault(
    "steps.rmsprop:rmsprop_kernel",
    breaks=("RMSPROP-007",),
    source="torch.optim.RMSprop, likewise",
)
def couples_weight_decay_in_rmsprop(rmsprop_kernel, core):
    return _coupled(rmsprop_kernel)


@fault(
    "steps.sgd:sgd_kernel",
    breaks=("SGD-004",),
    source="torch.optim.SGD: weight decay goes into the momentum",
)
def couples_weight_decay_in_sgd(sgd_kernel, core):
    def wrong(g, w, moments, scalars, options):
        if w is None or not isinstance(options.weight_decay, float):
            return sgd_kernel(g, w, moments, scalars, options)
        return sgd_kernel(g + options.weight_decay * w, None, moments, scalars, options)

    return wrong


@fault(
    "steps.adam:AdamStep._scalars",
    breaks=("ADAM-008",),
    source="Loshchilov and Hutter 2019: some AdamW do not multiply the decay by the rate",
)
def decays_weights_without_the_rate(_scalars, core):
    def wrong(self, xp, leaf, rate, count):
        return _scalars(self, xp, leaf, rate, count)._replace(decay=self.weight_decay)

    return wrong


@fault(
    "steps.adam:adam_kernel",
    breaks=("ADAM-005",),
    source="torch.optim.Adam: the maximum is of uncorrected moments",
)
def takes_the_maximum_of_uncorrected_moments(adam_kernel, core):
    def wrong(xp, g, w, moments, scalars, options):
        if not options.amsgrad:
            return adam_kernel(xp, g, w, moments, scalars, options)
        root = scalars.second_correction**0.5
        uncorrected = scalars._replace(
            second_correction=scalars.second_correction * 0.0 + 1.0,
            moment_size=scalars.moment_size * root,
            gradient_size=scalars.gradient_size * root,
            epsilon=scalars.epsilon * root,
        )
        return adam_kernel(xp, g, w, moments, uncorrected, options)

    return wrong


@fault(
    "steps.adam:adam_kernel",
    breaks=("ADAM-005",),
    source="a maximum that is used and not kept",
)
def forgets_the_largest_second_moment(adam_kernel, core):
    def wrong(xp, g, w, moments, scalars, options):
        update, *advanced = adam_kernel(xp, g, w, moments, scalars, options)
        return (update, *advanced[:2], *(moment * 0.0 for moment in advanced[2:]))

    return wrong


@fault(
    "steps.adam:AdamStep._scalars",
    breaks=("ADAM-006",),
    source="Nesterov's Adam with the correction of this step instead of the next",
)
def corrects_nesterov_for_this_step(_scalars, core):
    def wrong(self, xp, leaf, rate, count):
        scalars = _scalars(self, xp, leaf, rate, count)
        if not self.nesterov:
            return scalars
        return scalars._replace(moment_size=scalars.gradient_size * scalars.beta1 / (1.0 - scalars.beta1))

    return wrong


@fault(
    "steps.sgd:next_trace",
    breaks=("SGD-003",),
    source="Nesterov's momentum that looks at the old trace",
)
def looks_back_instead_of_ahead(next_trace, core):
    def wrong(trace, x, decay, *, nesterov):
        new, direction = next_trace(trace, x, decay, nesterov=nesterov)
        return new, x + decay * trace if nesterov else direction

    return wrong


@fault(
    "steps.momentum:next_trace",
    breaks=("MOMENTUM-001",),
    source="momentum as a moving average, as in moments: (1 - decay) * g",
)
def damps_the_gradient_in_a_trace(next_trace, core):
    return lambda trace, x, decay, *, nesterov: next_trace(trace, (1.0 - decay) * x, decay, nesterov=nesterov)


@fault(
    "steps.momentum:next_trace",
    breaks=("MOMENTUM-002",),
    source="an option that is accepted and then not read",
)
def ignores_nesterov(next_trace, core):
    return lambda trace, x, decay, *, nesterov: next_trace(trace, x, decay, nesterov=False)


@fault(
    "steps.sgd:sgd_kernel",
    breaks=("SGD-002",),
    source="momentum with the rate in its buffer: a change of the rate acts late",
)
def keeps_the_rate_in_the_momentum(sgd_kernel, core):
    def wrong(g, w, moments, scalars, options):
        if not moments:
            return sgd_kernel(g, w, moments, scalars, options)
        return sgd_kernel(g * scalars.rate, w, moments, scalars._replace(rate=1.0), options)

    return wrong


@fault(
    "steps.rmsprop:rmsprop_kernel",
    breaks=("RMSPROP-002",),
    source="peers.md, 2: torch and mlx add epsilon outside of the root",
)
def adds_epsilon_on_the_other_side_of_the_root(rmsprop_kernel, core):
    def wrong(xp, g, w, moments, scalars, options):
        other = core["tunable"].with_options(options, {"epsilon_inside": not options.epsilon_inside})
        return rmsprop_kernel(xp, g, w, moments, scalars, other)

    return wrong


@fault(
    "steps.rmsprop:rmsprop_kernel",
    breaks=("RMSPROP-004",),
    source="torch.optim.RMSprop: rounding makes a variance negative and its root NaN",
)
def takes_the_root_of_a_negative_variance(rmsprop_kernel, core):
    def wrong(xp, g, w, moments, scalars, options):
        return rmsprop_kernel(Without(xp, maximum=lambda x, _: x), g, w, moments, scalars, options)

    return wrong


@fault(
    "steps.rmsprop:next_second_moment",
    breaks=("RMSPROP-009",),
    source="one gradient of 1e30 freezes every known RMSProp for ever",
)
def lets_a_second_moment_become_infinite_in_rmsprop(next_second_moment, core):
    return lambda xp, moment, x, decay: decay * moment + (1.0 - decay) * x * x


@fault(
    "numerics.moments:at_most_largest",
    breaks=("ADAM-010", "RMSPROP-009"),
    source="one gradient of 1e30 freezes every known Adam for ever",
)
def lets_second_moments_become_infinite(at_most_largest, core):
    return lambda xp, x: x


@fault(
    "numerics.moments:squared_magnitude",
    breaks=("ADAM-011",),
    source="(1 - beta2) * g**2, whose square overflows before it is made small",
)
def squares_before_it_makes_small(squared_magnitude, core):
    return lambda xp, x, factor=1.0: factor * squared_magnitude(xp, x)


@fault(
    "state:next_count",
    breaks=("PREC-006",),
    source="peers.md, 2: counters that wrap around at 2**31",
)
def lets_counts_wrap_around(next_count, core):
    return lambda xp, count: count + 1


@fault(
    "steps.adam:count_from_zero",
    breaks=("ADAM-013",),
    source="peers.md, 2: torch counts in float32, exactly up to 2**24",
)
def counts_in_float32(count_from_zero, core):
    return lambda weights: core["state"].scalar_like(weights, 0, "float32")


@fault(
    "state:_zeros",
    breaks=("PREC-003", "CONTRACT-004"),
    source="optax#377: moments in the dtype of bfloat16 weights, which the first call changes",
)
def keeps_moments_in_the_leafs_dtype(_zeros, core):
    def wrong(xp, leaf, real):
        return None if leaf is None else xp.zeros_like(leaf)

    return wrong


@fault(
    "elementwise:stored",
    breaks=("CONTRACT-004",),
    source="optax#377: bfloat16 weights and float32 gradients; a moment becomes float32 after one step",
)
def stores_moments_as_they_were_computed(stored, core):
    return lambda old, new: core["namespaces"].as_array(core["namespaces"].namespace_of(old), new)


@fault(
    "contract:Step.__call__",
    breaks=("ADAM-001", "SGD-002", "MOMENTUM-001"),
    source="a training loop, or a wrapper, that drops the state",
)
def drops_the_state_that_it_is_given(call, core):
    def wrong(self, gradients, weights=None, state=None, *, name=None):
        return call(self, gradients, weights, None, name=name)

    return wrong


@fault(
    "steps.adam:next_average",
    breaks=("ADAM-001",),
    source="state exchanged: beta1 where the past does not belong",
)
def weighs_the_gradient_with_beta(next_average, core):
    return lambda average, x, decay: next_average(average, x, 1.0 - decay)


@fault(
    "steps.end_to_end:EndToEndStep.needs_weights",
    breaks=("ADAM-014", "RMSPROP-013", "SGD-007"),
    source="weight decay that is left out without a word where no weights come",
)
def leaves_weight_decay_out_without_weights(needs_weights, core):
    return property(lambda self: False)


@fault(
    "steps.weight_decay:WeightDecayStep.advance",
    breaks=("DECAY-001",),
    source="decay with the wrong sign: weights grow",
)
def lets_weights_grow(advance, core):
    def wrong(self, call, gradients, state):
        decayed, new_state = advance(self, call, gradients, state)
        return [
            None if old is None else old - (new - old) for old, new in zip(gradients, decayed, strict=True)
        ], new_state

    return wrong


@fault(
    "steps.scaling:ScalingStep.advance",
    breaks=("SCALE-002",),
    source="peers.md, 2: sign conventions; torch subtracts, optax adds",
)
def forgets_to_negate_with_a_learning_rate(advance, core):
    def wrong(self, call, gradients, state):
        scaled, new_state = advance(self, call, gradients, state)
        if self.scale is not None:
            return scaled, new_state
        return [None if leaf is None else -leaf for leaf in scaled], new_state

    return wrong


@fault(
    "steps.sgd:sgd_kernel",
    breaks=("SGD-001",),
    source="ascent",
)
def climbs(sgd_kernel, core):
    def wrong(g, w, moments, scalars, options):
        return sgd_kernel(g, w, moments, scalars._replace(rate=-scalars.rate), options)

    return wrong


@fault(
    "checks:decay_rate",
    breaks=("ADAM-015", "RMSPROP-011", "SGD-006", "MOMENTUM-004"),
    source="beta = 1 divides by 0 at the first step",
)
def accepts_a_decay_of_1(decay_rate, core):
    return lambda argument, value: core["checks"].finite_non_negative(argument, value)
