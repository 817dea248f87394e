"""Optax as a target: each step is a gradient transformation of its public interface.

The state is the transformation's own, so ``state_form`` is not claimed. Trees are those of JAX.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..protocol import Description, NotExpressible, TargetStep
from .package import ALL, REAL, Peer, expectations_of
from .reading import (
    Maker,
    constant,
    is_off,
    is_schedule,
    options_of,
    refusing,
    require,
    schedule_options,
    slots,
)

_NEVER = 2**31 - 1  # so many errors in a row that apply_if_finite never gives up


@dataclass(frozen=True)
class OptaxTarget(Peer):
    """Optax, imported when it is first used."""

    def make(self, description: Description) -> TargetStep:
        """Return the transformation of that description."""
        with refusing():
            step = OptaxStep(_transformation(description), _dtypes(description))
            if description.get("step") in _CHECKED:
                step.check()
            return step

    def apply_updates(self, weights: Any, updates: Any) -> Any:
        """Return the weights with the updates added."""
        import optax

        with refusing():
            return optax.apply_updates(weights, updates)


@dataclass(frozen=True)
class OptaxStep:
    """One transformation; its updates are added to the weights, as ours are."""

    transformation: Any
    dtypes: frozenset[str]

    def check(self) -> None:
        """Have the transformation see its options: it looks at them no sooner than in a call."""
        import jax.numpy as jnp

        one = jnp.ones((2,))
        self.transformation.update(one, self.transformation.init(one), one)

    def init(self, weights: Any) -> Any:
        """Return the state for weights."""
        with refusing():
            return self.transformation.init(weights)

    def apply(self, gradients: Any, weights: Any, state: Any) -> tuple[Any, Any]:
        """Return the updates and the next state."""
        with refusing():
            before = (
                self.transformation.init(gradients if weights is None else weights)
                if state is None
                else state
            )
            updates, after = self.transformation.update(gradients, before, weights)
            return updates, after


def _dtypes(description: Any) -> frozenset[str]:
    """Return the leaf dtypes of a step: clip and keep_params_nonnegative compare, wherever they stand."""
    if not isinstance(description, dict):
        return ALL
    options = description.get("options", {})
    name, variant = description.get("step"), options.get("variant", "per-parameter")
    by_element = name == "GradientClippingStep" and variant in ("per-weight", "per-parameter")
    if by_element or name == "ConstraintStep":
        return REAL
    return ALL.intersection(*map(_dtypes, options.values()))


def _transformation(description: Any) -> Any:
    import optax

    require(isinstance(description, dict), "its transformations are no other objects")
    name = description.get("step")
    if name == "ChainedStep":
        steps = slots(description)
        require(bool(steps), "chain takes at least one transformation; identity() is what does nothing")
        return optax.chain(*map(_transformation, steps))
    if name not in _MAKERS:
        raise NotExpressible(f"it has no {name}")
    return _MAKERS[name](options_of(description))


def _clipping(options: dict[str, Any]) -> Any:
    import optax

    variant, threshold = options["variant"], options["threshold"]
    require(threshold is not None, "clipping that is off is left out of the chain")
    if variant in ("per-weight", "per-parameter"):
        return optax.clip(threshold)
    if variant == "global":
        return optax.clip_by_global_norm(threshold)
    require(variant in ("per-weight-relative", "per-parameter-relative"), f"it has no clipping {variant}")
    require(threshold != math.inf, "clipping that is off is left out of the chain")
    require(options["epsilon"] is not None, "its eps is a number")
    require(
        options["unit_axis"] == "auto",
        "adaptive_grad_clip takes one list of axes to sum over, whatever the rank of the leaf",
    )
    return optax.adaptive_grad_clip(threshold, eps=options["epsilon"])


def _scaling(options: dict[str, Any]) -> Any:
    import optax

    scale, rate = options["scale"], options["learning_rate"]
    require((scale is None) != (rate is None), "scale and rate are two functions")
    if rate is not None:
        return optax.scale_by_learning_rate(_rate(rate))
    return optax.scale_by_schedule(_rate(scale)) if is_schedule(scale) else optax.scale(scale)


def _adam(options: dict[str, Any]) -> Any:
    import optax

    keys = {"b1": "beta1", "b2": "beta2", "eps": "epsilon", "eps_root": "epsilon_root"}
    named = {key: options[option] for key, option in keys.items()}
    amsgrad, nesterov = options["amsgrad"], options["nesterov"]
    require(isinstance(amsgrad, bool), "amsgrad is a function of its own")
    if amsgrad:
        require(nesterov is False, "scale_by_amsgrad has no nesterov")
        return _descent([optax.scale_by_amsgrad(**named)], options)
    return _descent([optax.scale_by_adam(**named, nesterov=nesterov)], options)


def _rmsprop(options: dict[str, Any]) -> Any:
    import optax

    centered = options["centered"]
    require(isinstance(centered, bool), "centred scaling is a function of its own")
    scale = optax.scale_by_stddev if centered else optax.scale_by_rms
    first = scale(
        decay=options["decay"],
        eps=options["epsilon"],
        initial_scale=0.0,
        eps_in_sqrt=options["epsilon_inside"],
    )
    return _descent([first, *_traces(options)], options)


def _sgd(options: dict[str, Any]) -> Any:
    return _descent(_traces(options), options)


def _descent(transformations: list[Any], options: dict[str, Any]) -> Any:
    """Return transformations with decoupled weight decay and the negative rate after them, as adamw has."""
    import optax

    decay = options["weight_decay"]
    decays = [] if is_off(decay) else [optax.add_decayed_weights(decay)]
    rate = optax.scale_by_learning_rate(_rate(options["learning_rate"]))
    return optax.chain(*transformations, *decays, rate)


def _traces(options: dict[str, Any]) -> list[Any]:
    import optax

    momentum, nesterov = options["momentum"], options["nesterov"]
    if is_off(momentum):
        require(is_off(nesterov), "without momentum there is no trace that could look ahead")
        return []
    return [optax.trace(decay=momentum, nesterov=nesterov)]


def _momentum(options: dict[str, Any]) -> Any:
    import optax

    return optax.trace(decay=options["decay"], nesterov=options["nesterov"])


def _weight_decay(options: dict[str, Any]) -> Any:
    import optax

    return optax.add_decayed_weights(constant(options["weight_decay"], "weight_decay"))


def _centering(options: dict[str, Any]) -> Any:
    import optax

    axis = options["unit_axis"]
    require(axis == 0 and type(axis) is int, "centralize takes the mean over all axes but the first")
    return optax.centralize()


def _skip(options: dict[str, Any]) -> Any:
    import optax

    return optax.apply_if_finite(_transformation(options["inner"]), max_consecutive_errors=_NEVER)


def _masked(options: dict[str, Any]) -> Any:
    import optax

    return optax.masked(_transformation(options["inner"]), _mask(options["mask"]))


def _mask(described: Any) -> Any:
    """Return the tree of bools of a described mask, and leave to Optax what is none."""
    if isinstance(described, dict) and described.keys() == {"mask"}:
        return _mask_tree(described["mask"])
    return described


def _mask_tree(described: Any) -> Any:
    if not isinstance(described, dict):
        return described
    ((kind, entries),) = described.items()
    if kind == "dict":
        return {key: _mask_tree(entry) for key, entry in entries.items()}
    return (list if kind == "list" else tuple)(map(_mask_tree, entries))


def _constraint(options: dict[str, Any]) -> Any:
    import optax

    plain = {key: options[key] for key in ("lower", "upper", "radius", "unit_axis")}
    require(
        options["constraint"] == "nonnegative",
        "its projections are functions of the weights, not transformations of updates",
    )
    require(
        plain == {"lower": None, "upper": None, "radius": 1.0, "unit_axis": "auto"},
        "keep_params_nonnegative has no options",
    )
    return optax.keep_params_nonnegative()


_MAKERS: dict[str, Maker] = {
    "GradientClippingStep": _clipping,
    "ScalingStep": _scaling,
    "AdamStep": _adam,
    "RMSPropStep": _rmsprop,
    "SGDStep": _sgd,
    "MomentumStep": _momentum,
    "WeightDecayStep": _weight_decay,
    "CenteringStep": _centering,
    "SkipNonFiniteStep": _skip,
    "MaskedStep": _masked,
    "ConstraintStep": _constraint,
}


_CHECKED = _MAKERS.keys() - {"MaskedStep"}
"""The steps that can be tried on any array."""


def _rate(value: Any) -> Any:
    """Return a number as it is, and a described schedule as a function of the count."""
    import optax

    if not is_schedule(value):
        return value
    name, options = value["schedule"], schedule_options(value)
    if name == "ConstantSchedule":
        return optax.constant_schedule(options["value"])
    if name == "ExponentialSchedule":
        return optax.exponential_decay(options["initial"], options["decay_steps"], options["decay_rate"])
    if name == "LinearSchedule":
        return optax.linear_schedule(options["initial"], options["final"], options["steps"])
    if name == "CosineSchedule":
        initial, final = options["initial"], options["final"]
        require(not is_off(initial), "cosine_decay_schedule gives its end as a share of its start")
        return optax.cosine_decay_schedule(initial, options["steps"], alpha=final / initial)
    if name == "WarmupSchedule":
        return _warmup(options)
    return _piecewise(options["boundaries"], options["values"])


def _warmup(options: dict[str, Any]) -> Any:
    import optax

    given = _rate(options["then"])
    then = given if callable(given) else optax.constant_schedule(given)
    line = optax.linear_schedule(options["initial"], then(0), options["steps"])
    return optax.join_schedules([line, then], [options["steps"]])


def _piecewise(boundaries: Sequence[int], values: Sequence[float]) -> Any:
    import optax

    require(len(values) == len(boundaries) + 1, "join_schedules has one schedule more than boundaries")
    return optax.join_schedules([optax.constant_schedule(value) for value in values], list(boundaries))


target = OptaxTarget(
    name="optax",
    sources=("optax",),
    expectations=expectations_of(__file__),
    capabilities=frozenset({"trees", "apply_updates"}),
)
