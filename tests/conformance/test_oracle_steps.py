"""The oracle's stateful rules, against closed forms and numbers worked out by hand."""

from typing import Any

import pytest
from steps_conformance.oracle.adam import adam
from steps_conformance.oracle.exact import Exact, exact, mp, number
from steps_conformance.oracle.momentum import momentum, sgd
from steps_conformance.oracle.rmsprop import rmsprop
from steps_conformance.oracle.samples import sample
from steps_conformance.oracle.schedules import cosine
from steps_conformance.oracle.sequences import Start, Steps

TINY = mp.mpf(10) ** -40


def series(*values: complex) -> list[Exact]:
    """Return one gradient of one element for each value."""
    return [Exact((1,), (number(value),)) for value in values]


def updates(steps: Steps) -> list[Any]:
    """Return the single element of each update."""
    return [update.values[0] for update in steps.updates]


def assert_close(actual: list[Any], expected: list[Any]) -> None:
    """Fail unless the numbers agree to 40 digits."""
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        assert abs(one - number(other)) <= TINY * max(1, abs(number(other)))


def test_adam_on_a_constant_gradient_moves_by_the_rate() -> None:
    """Corrected moments of a constant are the constant and its square, so each update is -rate * sign."""
    assert_close(updates(adam(series(-3.0, -3.0, -3.0), epsilon=0.0, learning_rate=0.5)), [0.5] * 3)


def test_adam_with_nesterov_looks_one_step_ahead() -> None:
    """A constant gradient g has m = g (1 - b^t), which enters divided by 1 - b^(t+1), plus g's own share."""
    b = mp.mpf(1) / 2
    outcome = updates(adam(series(2.0, 2.0), beta1=0.5, epsilon=0.0, learning_rate=1.0, nesterov=True))
    first = b * (1 - b) / (1 - b**2) + (1 - b) / (1 - b)
    second = b * (1 - b**2) / (1 - b**3) + (1 - b) / (1 - b**2)
    assert_close(outcome, [-first, -second])


def test_adam_moments_are_weighted_sums() -> None:
    """m = (1 - b1) sum b1^(t-i) g_i, and v likewise of the squares."""
    gradients = [1.0, -2.0, 0.5, 4.0]
    state = adam(series(*gradients), beta1=0.75, beta2=0.875).states[-1]
    m = sum(0.25 * 0.75 ** (3 - i) * g for i, g in enumerate(gradients))
    v = sum(0.125 * 0.875 ** (3 - i) * g**2 for i, g in enumerate(gradients))
    assert state["first_moment"].values == (m,)
    assert state["second_moment"].values == (v,)


def test_adam_second_update_by_hand() -> None:
    """With betas of 1/2, gradients 1 and 3 give m = 7/4, v = 19/4, both over 3/4."""
    second = updates(adam(series(1.0, 3.0), beta1=0.5, beta2=0.5, epsilon=0.0, learning_rate=1.0))[1]
    assert_close([second], [-(mp.mpf(7) / 3) / mp.sqrt(mp.mpf(19) / 3)])


def test_adam_epsilons_stand_inside_and_outside_of_the_root() -> None:
    """sqrt(1 + 3) + 2 = 4."""
    assert_close(updates(adam(series(1.0), epsilon=2.0, epsilon_root=3.0, learning_rate=1.0)), [-0.25])


def test_adam_decays_weights_at_the_rate() -> None:
    """The decay is added to the direction, then multiplied by the rate."""
    outcome = adam(series(1.0), series(8.0), epsilon=0.0, learning_rate=0.5, weight_decay=0.25)
    assert_close(updates(outcome), [-(1 + 2) * 0.5])


def test_adam_with_amsgrad_remembers_the_largest_corrected_moment() -> None:
    """After a gradient of 8 the denominator stays 8, where plain Adam lets it fall."""
    options = {"beta1": 0.5, "beta2": 0.5, "epsilon": 0.0, "learning_rate": 1.0}
    kept = adam(series(8.0, 0.0), amsgrad=True, **options)
    small = adam(series(0.5), amsgrad=True, **options)
    fallen = adam(series(8.0, 0.0), **options)
    assert [state["second_moment_max"].values[0] for state in kept.states] == [64, 64]
    assert small.states[0]["second_moment_max"].values == (0.25,)
    assert_close(updates(kept), [-1, -(mp.mpf(2) / mp.mpf("0.75")) / 8])
    assert_close(updates(fallen), [-1, -(mp.mpf(2) / mp.mpf("0.75")) / mp.sqrt(16 / mp.mpf("0.75"))])


def test_adam_takes_the_modulus_of_a_complex_gradient() -> None:
    """g = 3 + 4j has modulus 5, so the first update is -g / 5."""
    outcome = adam(series(3 + 4j), epsilon=0.0, learning_rate=1.0)
    assert abs(outcome.updates[0].values[0] - mp.mpc(-3, -4) / 5) < TINY
    assert abs(outcome.states[0]["second_moment"].values[0] - 25 * (1 - number(0.999))) < TINY


def test_adam_saturates_and_rests() -> None:
    """A second moment stops at the largest number; a zero gradient without epsilon moves nothing."""
    assert adam(series(1e30), largest=1e38).states[0]["second_moment"].values == (number(1e38),)
    assert updates(adam(series(0.0), epsilon=0.0)) == [0]


def test_adam_asks_a_schedule_for_calls_made_before() -> None:
    """The first call is number 0."""
    outcome = adam(series(1.0, 1.0, 1.0), epsilon=0.0, learning_rate=lambda count: mp.mpf(count + 1))
    assert_close(updates(outcome), [-1, -2, -3])


def test_rmsprop_first_update_by_hand() -> None:
    """v = 1/10 of 1, not corrected; epsilon inside of the root, or outside."""
    v = 1 - number(0.9)
    inside = updates(rmsprop(series(1.0), epsilon=0.5, learning_rate=1.0))
    outside = updates(rmsprop(series(1.0), epsilon=0.5, learning_rate=1.0, epsilon_inside=False))
    assert_close(inside, [-1 / mp.sqrt(v + 0.5)])
    assert_close(outside, [-1 / (mp.sqrt(v) + 0.5)])


def test_rmsprop_centred_on_a_constant_has_a_closed_form() -> None:
    """v - m^2 = g^2 (1 - d^t) d^t for a constant gradient."""
    outcome = rmsprop(series(2.0, 2.0, 2.0), decay=0.5, epsilon=0.0, learning_rate=1.0, centered=True)
    assert_close(updates(outcome), [-1 / mp.sqrt((1 - mp.mpf(2) ** -t) * mp.mpf(2) ** -t) for t in (1, 2, 3)])
    assert [state["mean"].values[0] for state in outcome.states] == [1, 1.5, 1.75]


def test_rmsprop_momentum_gathers_directions_without_the_rate() -> None:
    """Directions 1 and 1 with momentum 1/2: buffers 1 and 3/2, looked ahead 3/2 and 7/4."""
    options = {"decay": 0.0, "epsilon": 0.0, "momentum": 0.5}
    plain = rmsprop(series(4.0, 4.0), learning_rate=0.25, **options)
    ahead = rmsprop(series(4.0, 4.0), learning_rate=0.25, nesterov=True, **options)
    assert_close(updates(plain), [-0.25, -0.375])
    assert_close(updates(ahead), [-0.375, -0.4375])
    assert [state["momentum"].values[0] for state in plain.states] == [1, 1.5]


def test_rmsprop_decays_weights_outside_of_the_momentum() -> None:
    """The decay never enters the buffer."""
    options = {"decay": 0.0, "epsilon": 0.0, "momentum": 0.5, "learning_rate": 1.0, "weight_decay": 0.125}
    assert_close(updates(rmsprop(series(4.0, 4.0), series(8.0, 16.0), **options)), [-2, -3.5])


def test_rmsprop_saturates_and_rests() -> None:
    """As Adam does; 0/0 counts as 0, a complex mean enters by its modulus, no spread is below 0."""
    assert rmsprop(series(1e30), largest=1e38).states[0]["second_moment"].values == (number(1e38),)
    assert updates(rmsprop(series(0.0), epsilon=0.0)) == [0]
    state = rmsprop(series(2j), decay=0.5, centered=True, epsilon=0.0, learning_rate=1.0)
    assert updates(state) == [mp.mpc(0, -2)]
    far = Start(1, {"second_moment": series(0.0)[0], "mean": series(4.0)[0]})
    assert updates(rmsprop(series(1.0), epsilon=1.0, learning_rate=1.0, centered=True, start=far)) == [-1]


def test_rmsprop_keeps_what_its_options_need() -> None:
    """No entry of the state is there without them."""
    assert rmsprop(series(1.0)).states[0].keys() == {"second_moment"}
    options = {"centered": True, "momentum": 0.5}
    assert rmsprop(series(1.0), **options).states[0].keys() == {"second_moment", "mean", "momentum"}


def test_momentum_and_its_look_ahead_by_hand() -> None:
    """m = 1/2 m + g: 4, 6; looked ahead g + m/2: 6, 7."""
    assert updates(momentum(series(4.0, 4.0), decay=0.5)) == [4, 6]
    assert updates(momentum(series(4.0, 4.0), decay=0.5, nesterov=True)) == [6, 7]


def test_gradient_descent_by_hand() -> None:
    """Minus the rate times the direction, momentum, look-ahead and decay each in its place."""
    assert updates(sgd(series(4.0, -4.0), learning_rate=0.5)) == [-2, 2]
    assert updates(sgd(series(4.0, 4.0), learning_rate=0.5, momentum=0.5)) == [-2, -3]
    assert updates(sgd(series(4.0, 4.0), learning_rate=0.5, momentum=0.5, nesterov=True)) == [-3, -3.5]
    assert updates(sgd(series(4.0), series(8.0), learning_rate=0.5, weight_decay=0.25)) == [-3]
    assert updates(sgd(series(4.0), learning_rate=0.5, weight_decay=0.25)) == [-2]
    assert sgd(series(4.0)).states == [{}]
    assert sgd([Exact((0,), ())]) == Steps([Exact((0,), ())], [{}])


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        (adam, {"amsgrad": True, "nesterov": True}),
        (rmsprop, {"centered": True, "momentum": 0.5}),
        (sgd, {"momentum": 0.9, "learning_rate": cosine(0.5, 6)}),
        (momentum, {"nesterov": True}),
    ],
    ids=["adam", "rmsprop", "sgd", "momentum"],
)
def test_a_run_that_starts_in_the_middle_goes_on_as_the_whole_one(rule: Any, options: Any) -> None:
    """With the count and the state of the calls before."""
    gradients = [exact(sample((3,), seed=seed)) for seed in range(6)]
    whole = rule(gradients, **options)
    start = Start(4, whole.states[3])
    rest = rule(gradients[4:], start=start, **options)

    assert rest.updates == whole.updates[4:]
    assert rest.states == whole.states[4:]


BY_DEFAULT: dict[Any, dict[str, Any]] = {
    adam: {
        "learning_rate": 1e-3,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "epsilon_root": 0.0,
        "amsgrad": False,
        "nesterov": False,
        "weight_decay": 0.0,
        "largest": float("inf"),
    },
    rmsprop: {
        "learning_rate": 1e-3,
        "decay": 0.9,
        "epsilon": 1e-8,
        "epsilon_inside": True,
        "centered": False,
        "momentum": 0.0,
        "nesterov": False,
        "weight_decay": 0.0,
        "largest": float("inf"),
    },
    sgd: {"learning_rate": 1e-2, "momentum": 0.0, "nesterov": False, "weight_decay": 0.0},
    momentum: {"decay": 0.9, "nesterov": False},
}


@pytest.mark.parametrize("rule", BY_DEFAULT, ids=lambda rule: rule.__name__)
def test_the_defaults_are_those_of_the_steps(rule: Any) -> None:
    """What is not given is what design.md says."""
    gradients, options = series(1.5, -2.0, 1e-3), BY_DEFAULT[rule]
    given = (gradients,) if rule is momentum else (gradients, series(3.0, 1.0, -2.0))

    assert rule(*given) == rule(*given, **options)


@pytest.mark.parametrize("rule", BY_DEFAULT, ids=lambda rule: rule.__name__)
def test_every_leaf_keeps_its_shape_and_the_order_of_its_elements(rule: Any) -> None:
    """A leaf of six elements, against each of them alone."""
    gradients = [exact(sample((2, 3), seed=seed)) for seed in range(3)]
    whole = rule(gradients)
    apart = [rule([Exact((), (gradient.values[place],)) for gradient in gradients]) for place in range(6)]

    for call, update in enumerate(whole.updates):
        assert update.shape == (2, 3)
        assert list(update.values) == [one.updates[call].values[0] for one in apart]
        for name, part in whole.states[call].items():
            assert part.shape == (2, 3)
            assert list(part.values) == [one.states[call][name].values[0] for one in apart]
