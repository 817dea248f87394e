"""Wrong schedules, rates and tunable options."""

from ..catalogue import fault

OFF_BY_ONE = "optax#415, #1744, axlearn#1118: step 0 against 1, steps against steps - 1"


@fault(
    "steps.rates:rate_at",
    breaks=("SCHED-009", "SCALE-005"),
    source=OFF_BY_ONE,
)
def counts_from_1(rate_at, core):
    def wrong(call, argument, rate, count):
        return rate_at(call, argument, rate, None if count is None else count + 1)

    return wrong


@fault(
    "steps.scaling:advance_rate",
    breaks=("SCALE-005",),
    source="optax#206: a rate whose count is read and not written",
)
def does_not_advance_the_count(advance_rate, core):
    def wrong(call, argument, rate, state):
        value, _ = advance_rate(call, argument, rate, state)
        return value, {"count": state.count(call)} if callable(rate) else {}

    return wrong


@fault(
    "schedules:CosineSchedule.at",
    breaks=("SCHED-004",),
    source=OFF_BY_ONE,
)
def ends_the_cosine_one_step_early(at, core):
    return lambda self, xp, count: at(self, xp, count * (self.steps / max(self.steps - 1, 1)))


@fault(
    "schedules:_share",
    breaks=("SCHED-003",),
    source="a schedule that is not held at its end",
)
def goes_on_beyond_the_end(_share, core):
    return lambda xp, count, steps: count / float(steps)


@fault(
    "schedules:WarmupSchedule._following",
    breaks=("SCHED-005",),
    source="warm-up: what follows starts where the warm-up is, not at its own 0",
)
def starts_the_following_schedule_late(_following, core):
    return lambda self, count: _following(self, count + self.steps)


@fault(
    "schedules:PiecewiseSchedule.at",
    breaks=("SCHED-006",),
    source=OFF_BY_ONE,
)
def jumps_after_the_boundary(at, core):
    return lambda self, xp, count: at(self, xp, xp.maximum(count - 1, xp.zeros_like(count)))


@fault(
    "schedules:ExponentialSchedule.at",
    breaks=("SCHED-002",),
    source="optax and keras have a staircase option under the same name",
)
def decays_in_stairs(at, core):
    return lambda self, xp, count: at(self, xp, xp.floor(count / self.decay_steps) * self.decay_steps)


@fault(
    "schedules:LinearSchedule.at",
    breaks=("SCHED-003",),
    source="initial and final exchanged",
)
def runs_backwards(at, core):
    return lambda self, xp, count: self.initial + self.final - at(self, xp, count)


@fault(
    "steps.end_to_end:rate_negates",
    breaks=("CONTRACT-010", "CONTRACT-011"),
    source="a scheduled rate whose sign nobody asked",
)
def takes_schedules_for_chainable(rate_negates, core):
    return lambda rate: not callable(rate) and rate_negates(rate)


@fault(
    "contract:read_entries",
    breaks=("TUNE-004",),
    source="optax#1440, keras: the value is taken when the step is made, and not at the call",
)
def uses_the_first_value_for_ever(read_entries, core):
    def wrong(step, call, state):
        _, entries, rest = read_entries(step, call, state)
        options = {}
        for option, entry in step.tunable_entries:
            value, first = entries[entry], getattr(step, option).value
            options[option] = first if value is None else call.xp.full_like(value, first)
        return options, entries, rest

    return wrong


@fault(
    "contract:initial_entries",
    breaks=("TUNE-001",),
    source="optax#1414: hyper-parameters in the state, in another dtype",
)
def holds_tunable_options_in_float64(initial_entries, core):
    def wrong(step, weights):
        return {
            name: None if value is None else weights.xp.astype(value, weights.xp.float64)
            for name, value in initial_entries(step, weights).items()
        }

    return wrong


@fault(
    "tunable:Tunable.describe",
    breaks=("TUNE-013",),
    source="a description that loses what can be tuned",
)
def describes_a_tunable_option_as_a_plain_one(describe, core):
    return lambda self: core["descriptions"].described(self.value)


@fault(
    "contract:entry_names",
    breaks=("TUNE-002",),
    source="two entries of one name",
)
def calls_both_entries_momentum(entry_names, core):
    return lambda tunables, taken: entry_names(tunables, ())


@fault(
    "steps.clipping:_zeroed_at_zero",
    breaks=("TUNE-009",),
    source="optax#1752, for a threshold that is known at the call only",
)
def forgets_a_tunable_threshold_of_0(_zeroed_at_zero, core):
    return lambda call, gradients, clipped, threshold: clipped


@fault(
    "steps.end_to_end:is_always",
    breaks=("TUNE-010",),
    source="an option of 0 is optimised away, although it may change",
)
def takes_the_first_value_for_the_only_one(is_always, core):
    return lambda option, number: core["tunable"].first_value(option) == number


@fault(
    "steps.scaling:checked_rate",
    breaks=("SCALE-004",),
    source="a number as a text, from a configuration file",
)
def converts_texts_to_rates(checked_rate, core):
    return lambda argument, value: checked_rate(argument, float(value) if isinstance(value, str) else value)
