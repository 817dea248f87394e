"""Keras as a target: its optimizers on the JAX backend, and the clipping that is an argument of each.

Its optimizers hand out weights, not updates. So they get weights of -0.0, to which a sum adds nothing, not
even the sign of a zero; what comes back is the update. That is why weight decay cannot be expressed, and
constraints are functions of weights. Clipping is seen through SGD with a rate of 1.

Set ``KERAS_BACKEND=jax`` before Python starts; on another backend of Keras the target does not start.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..protocol import Description, NotExpressible, TargetStep
from .flat import arrays_of, like
from .package import REAL, Peer, expectations_of
from .reading import is_off, is_schedule, options_of, refusing, require, schedule_options


@dataclass(frozen=True)
class KerasTarget(Peer):
    """Keras, imported when it is first used."""

    def make(self, description: Description) -> TargetStep:
        """Return the optimizer of that description."""
        import keras

        if keras.config.backend() != "jax":
            raise ImportError(f"set KERAS_BACKEND=jax, it is {keras.config.backend()}")
        options = options_of(description)
        name = description["step"]
        if name not in _MAKERS:
            raise NotExpressible(f"it has no {name}")
        with refusing():
            step = KerasStep(_MAKERS[name](options), clips=name == "GradientClippingStep")
            step.check()
            return step


@dataclass(frozen=True)
class KerasStep:
    """An optimizer, made for each call; its state is the list of its variables' values.

    Attributes:
        make: makes the optimizer.
        clips: whether the update is to be turned round: that of SGD with the rate 1 is the negative gradient.
    """

    make: Callable[[], Any]
    clips: bool
    dtypes: frozenset[str] = REAL

    def check(self) -> None:
        """Have the optimizer see its options: some it looks at no sooner than in a step."""
        import jax.numpy as jnp

        optimizer, parameters, state = self._built([jnp.ones((2,))])
        optimizer.stateless_apply(state, [jnp.ones((2,))], parameters)

    def init(self, weights: Any) -> Any:
        """Return the values of the variables before the first step."""
        with refusing():
            return self._built(arrays_of(weights))[2]

    def apply(self, gradients: Any, weights: Any, state: Any) -> tuple[Any, Any]:
        """Return the updates and the next values of the variables."""
        with refusing():
            arrays = arrays_of(gradients)
            optimizer, parameters, first = self._built(arrays)
            updates, after = optimizer.stateless_apply(first if state is None else state, arrays, parameters)
            turned = [-update for update in updates] if self.clips else list(updates)
            return like(gradients, turned), list(after)

    def _built(self, arrays: list[Any]) -> tuple[Any, list[Any], list[Any]]:
        """Return an optimizer built for arrays like these, values of -0.0, and those of its variables."""
        import jax.numpy as jnp
        import keras

        zeros = [jnp.full(array.shape, -0.0, array.dtype) for array in arrays]
        parameters = [keras.Variable(zero, dtype=str(zero.dtype)) for zero in zeros]
        optimizer = self.make()
        optimizer.build(parameters)
        return optimizer, zeros, [variable.value for variable in optimizer.variables]


def _clipping(options: dict[str, Any]) -> Callable[[], Any]:
    import keras

    names = {
        "per-weight": "clipvalue",
        "per-parameter": "clipvalue",
        "per-layer": "clipnorm",
        "global": "global_clipnorm",
    }
    variant, threshold = options["variant"], options["threshold"]
    require(isinstance(variant, str) and variant in names, f"it has no clipping {variant}")
    return lambda: keras.optimizers.SGD(learning_rate=1.0, **{names[variant]: threshold})


def _rate(options: dict[str, Any]) -> Callable[[], Any]:
    """Return what makes the rate: a number, or a schedule of Keras."""
    import keras

    require(
        is_off(options["weight_decay"]),
        "weight decay changes weights in place, and their rounding would hide the update",
    )
    value = options["learning_rate"]
    if not is_schedule(value):
        return lambda: value
    schedules = keras.optimizers.schedules
    name, given = value["schedule"], schedule_options(value)
    if name == "ExponentialSchedule":
        return lambda: schedules.ExponentialDecay(given["initial"], given["decay_steps"], given["decay_rate"])
    if name == "LinearSchedule":
        return lambda: schedules.PolynomialDecay(
            given["initial"], given["steps"], end_learning_rate=given["final"], power=1.0
        )
    if name == "CosineSchedule":
        initial, final = given["initial"], given["final"]
        require(not is_off(initial), "CosineDecay gives its end as a share of its start")
        return lambda: schedules.CosineDecay(initial, given["steps"], alpha=final / initial)
    raise NotExpressible(f"none of its schedules is a {name}")


def _adam(options: dict[str, Any]) -> Callable[[], Any]:
    import keras

    rate = _rate(options)
    require(is_off(options["epsilon_root"]), "Adam has no epsilon inside of the root")
    require(is_off(options["amsgrad"]), "amsgrad takes the maximum before the bias correction: another rule")
    require(is_off(options["nesterov"]), "Nadam has a schedule of its momentum: another rule")
    require(
        is_off(options["epsilon"]),
        "its epsilon is added before the bias correction, as documented: the same rule with epsilon 0 only",
    )
    return lambda: keras.optimizers.Adam(
        rate(), beta_1=options["beta1"], beta_2=options["beta2"], epsilon=options["epsilon"]
    )


def _rmsprop(options: dict[str, Any]) -> Callable[[], Any]:
    import keras

    rate = _rate(options)
    require(not is_off(options["epsilon_inside"]), "RMSprop has its epsilon inside of the root")
    require(is_off(options["nesterov"]), "RMSprop has no nesterov")
    _require_rate_outside(options)
    return lambda: keras.optimizers.RMSprop(
        rate(),
        rho=options["decay"],
        momentum=options["momentum"],
        epsilon=options["epsilon"],
        centered=options["centered"],
    )


def _sgd(options: dict[str, Any]) -> Callable[[], Any]:
    import keras

    rate = _rate(options)
    _require_rate_outside(options)
    momentum, nesterov = options["momentum"], options["nesterov"]
    return lambda: keras.optimizers.SGD(rate(), momentum=momentum, nesterov=nesterov)


def _require_rate_outside(options: dict[str, Any]) -> None:
    """Its buffer holds the rate, which is the same rule as long as the rate is constant."""
    both = is_schedule(options["learning_rate"]) and not is_off(options["momentum"])
    require(not both, "its momentum holds the rate, so with a schedule it is another rule")


_MAKERS: dict[str, Callable[[dict[str, Any]], Callable[[], Any]]] = {
    "GradientClippingStep": _clipping,
    "AdamStep": _adam,
    "RMSPropStep": _rmsprop,
    "SGDStep": _sgd,
}

target = KerasTarget(name="keras", sources=("keras.src.optimizers",), expectations=expectations_of(__file__))
