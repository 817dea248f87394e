"""PyTorch as a target: its functions that clip gradients, and its optimizers.

Both change parameters in place. So parameters are made for each call: copies for clipping, and for an
optimizer parameters of -0.0, to which a sum adds nothing, not even the sign of a zero: what they hold
afterwards is the update. Weights are not given to an optimizer: with them, the update could be read only as
far as the rounding of weights lets it. That is why weight decay cannot be expressed.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..protocol import Description, NotExpressible, TargetStep
from .flat import arrays_of, like
from .package import ALL, REAL, Peer, expectations_of
from .reading import constant, is_off, options_of, refusing, require


@dataclass(frozen=True)
class TorchTarget(Peer):
    """PyTorch, imported when it is first used."""

    def make(self, description: Description) -> TargetStep:
        """Return the clipping function or the optimizer of that description."""
        options = options_of(description)
        name = description["step"]
        with refusing():
            if name == "GradientClippingStep":
                by_element = options["variant"] in ("per-weight", "per-parameter")
                clipping = TorchClipping(_clipping(options), REAL if by_element else ALL)
                clipping.check()
                return clipping
            if name not in _OPTIMIZERS:
                raise NotExpressible(f"it has no {name}")
            step = TorchOptimizer(_OPTIMIZERS[name](options), ALL if name == "SGDStep" else REAL)
            step.check()
            return step


@dataclass(frozen=True)
class TorchClipping:
    """Clipping in place, of copies."""

    clip: Callable[[list[Any]], Any]
    dtypes: frozenset[str]

    def check(self) -> None:
        """Have the function check its options, which it gets with each call."""
        import torch

        self.clip([_parameter(torch.ones(1, dtype=torch.float64))])

    def init(self, weights: Any) -> None:
        """Return the state: there is none."""

    def apply(self, gradients: Any, weights: Any, state: Any) -> tuple[Any, Any]:
        """Return the clipped gradients."""
        with refusing():
            parameters = [_parameter(gradient) for gradient in arrays_of(gradients)]
            self.clip(parameters)
            return like(gradients, [parameter.grad for parameter in parameters]), None


@dataclass(frozen=True)
class TorchOptimizer:
    """An optimizer, made for each call, with its state dict as the state.

    Complex leaves are documented to be stepped through as pairs of real numbers: for an adaptive optimizer
    that is another rule than the modulus, so those declare real leaves.
    """

    make: Callable[[list[Any]], Any]
    dtypes: frozenset[str]

    def check(self) -> None:
        """Have the optimizer check its options."""
        import torch

        self.make([torch.zeros(1, requires_grad=True)])

    def init(self, weights: Any) -> Any:
        """Return the state for weights: nothing before the first step."""
        return {}

    def apply(self, gradients: Any, weights: Any, state: Any) -> tuple[Any, Any]:
        """Return the updates and the next state dict."""
        import torch

        with refusing():
            arrays = arrays_of(gradients)
            if not arrays:
                return gradients, state
            parameters = [_parameter(gradient) for gradient in arrays]
            with torch.no_grad():
                for parameter in parameters:
                    parameter.fill_(-0.0)
            optimizer = self.make(parameters)
            if state:
                # loading keeps the tensors that it is given, and a step writes to them
                optimizer.load_state_dict(copy.deepcopy(state))
            optimizer.step()
            updates = [parameter.detach() for parameter in parameters]
            return like(gradients, updates), optimizer.state_dict()


def _parameter(gradient: Any) -> Any:
    """Return a parameter with a copy of a gradient as its gradient."""
    parameter = gradient.detach().clone().requires_grad_()
    parameter.grad = gradient.detach().clone()
    return parameter


def _clipping(options: dict[str, Any]) -> Callable[[list[Any]], Any]:
    import torch

    norm, value = torch.nn.utils.clip_grad_norm_, torch.nn.utils.clip_grad_value_
    variant, threshold = options["variant"], options["threshold"]
    require(threshold is not None, "clipping that is off is not called")
    if variant in ("per-weight", "per-parameter"):
        return lambda parameters: value(parameters, threshold)
    if variant == "global":
        return lambda parameters: norm(parameters, threshold)
    require(variant == "per-layer", f"it has no clipping {variant}")
    # one call for each parameter, as its users write it
    return lambda parameters: [norm([parameter], threshold) for parameter in parameters]


def _rate(options: dict[str, Any]) -> Any:
    rate = constant(options["learning_rate"], "lr, whose schedulers are objects that step beside it,")
    is_negative = isinstance(rate, (int, float)) and rate < 0
    require(not is_negative, "its rates are not negative; it has maximize")
    require(
        is_off(options["weight_decay"]),
        "weight decay changes weights in place, and their rounding would hide the update",
    )
    return rate


def _adam(options: dict[str, Any]) -> Callable[[list[Any]], Any]:
    import torch

    rate = _rate(options)
    require(is_off(options["epsilon_root"]), "Adam has no epsilon inside of the root")
    require(is_off(options["amsgrad"]), "amsgrad takes the maximum before the bias correction: another rule")
    require(is_off(options["nesterov"]), "NAdam has a schedule of its momentum: another rule")
    betas, epsilon = (options["beta1"], options["beta2"]), options["epsilon"]
    return lambda parameters: torch.optim.Adam(parameters, lr=rate, betas=betas, eps=epsilon)


def _rmsprop(options: dict[str, Any]) -> Callable[[list[Any]], Any]:
    import torch

    rate = _rate(options)
    require(is_off(options["epsilon_inside"]), "RMSprop has its epsilon outside of the root")
    require(is_off(options["nesterov"]), "RMSprop has no nesterov")
    return lambda parameters: torch.optim.RMSprop(
        parameters,
        lr=rate,
        alpha=options["decay"],
        eps=options["epsilon"],
        momentum=options["momentum"],
        centered=options["centered"],
    )


def _sgd(options: dict[str, Any]) -> Callable[[list[Any]], Any]:
    import torch

    rate = _rate(options)
    momentum, nesterov = options["momentum"], options["nesterov"]
    return lambda parameters: torch.optim.SGD(parameters, lr=rate, momentum=momentum, nesterov=nesterov)


_OPTIMIZERS: dict[str, Callable[[dict[str, Any]], Callable[[list[Any]], Any]]] = {
    "AdamStep": _adam,
    "RMSPropStep": _rmsprop,
    "SGDStep": _sgd,
}

target = TorchTarget(
    name="torch",
    sources=("torch.optim", "torch.nn.utils"),
    expectations=expectations_of(__file__),
)
