"""MLX as a target: its function that clips gradients by their norm, and its optimizers.

There is no row of MLX, so the adapter takes NumPy arrays, makes arrays of MLX on its default device with the
same bits, and turns the results back. Optimizers hand out weights, not updates; they get weights of -0.0, to
which a sum adds nothing, not even the sign of a zero. That is why weight decay cannot be expressed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..protocol import Description, NotExpressible, TargetStep
from .flat import arrays_of, like
from .package import Peer, expectations_of
from .reading import is_off, is_schedule, options_of, refusing, require, schedule_options

DTYPES = frozenset({"float16", "bfloat16", "float32"})
"""What it has on every device; complex64 exists, but nothing says that gradients may be complex."""


@dataclass(frozen=True)
class MlxTarget(Peer):
    """MLX, imported when it is first used."""

    def make(self, description: Description) -> TargetStep:
        """Return the clipping function or the optimizer of that description."""
        options = options_of(description)
        name = description["step"]
        with refusing():
            if name == "GradientClippingStep":
                clipping = MlxClipping(_clipping(options))
                clipping.check()
                return clipping
            if name not in _OPTIMIZERS:
                raise NotExpressible(f"it has no {name}")
            step = MlxOptimizer(_OPTIMIZERS[name](options))
            step.make()
            return step


@dataclass(frozen=True)
class MlxClipping:
    """Clipping of a list of arrays."""

    clip: Callable[[list[Any]], list[Any]]
    dtypes: frozenset[str] = DTYPES

    def check(self) -> None:
        """Have the function check its options, which it gets with each call."""
        import mlx.core as mx

        self.clip([mx.array([1.0])])

    def init(self, weights: Any) -> None:
        """Return the state: there is none."""

    def apply(self, gradients: Any, weights: Any, state: Any) -> tuple[Any, Any]:
        """Return the clipped gradients."""
        with refusing():
            clipped = self.clip([_to_mlx(array) for array in arrays_of(gradients)])
            return like(gradients, [_to_numpy(array) for array in clipped]), None


@dataclass(frozen=True)
class MlxOptimizer:
    """An optimizer, made for each call, with its state as the state."""

    make: Callable[[], Any]
    dtypes: frozenset[str] = DTYPES

    def init(self, weights: Any) -> Any:
        """Return the state for weights."""
        with refusing():
            optimizer = self.make()
            optimizer.init(_numbered([_to_mlx(array) for array in arrays_of(weights)]))
            return optimizer.state

    def apply(self, gradients: Any, weights: Any, state: Any) -> tuple[Any, Any]:
        """Return the updates and the next state."""
        import mlx.core as mx
        from mlx.utils import tree_map

        with refusing():
            arrays = _numbered([_to_mlx(array) for array in arrays_of(gradients)])
            optimizer = self.make()
            optimizer.init(arrays)
            if state is not None:
                # a step writes into the dicts of its state
                optimizer.state = tree_map(lambda leaf: leaf, state)
            zeros = {name: mx.full(array.shape, -0.0, array.dtype) for name, array in arrays.items()}
            updates = optimizer.apply_gradients(arrays, zeros)
            return like(gradients, [_to_numpy(array) for array in updates.values()]), optimizer.state


def _numbered(arrays: list[Any]) -> dict[str, Any]:
    return {f"leaf{number}": array for number, array in enumerate(arrays)}


def _to_mlx(array: Any) -> Any:
    """Return an array of MLX with the same bits; bfloat16 goes through float32, which loses nothing."""
    import mlx.core as mx
    import numpy as np

    if not isinstance(array, (np.ndarray, np.generic)):
        raise TypeError(f"gradients must be arrays of NumPy, got {type(array).__name__}")
    if array.dtype.name == "bfloat16":
        return mx.array(array.astype(np.float32)).astype(mx.bfloat16)
    return mx.array(np.array(array))


def _to_numpy(array: Any) -> Any:
    import ml_dtypes
    import mlx.core as mx
    import numpy as np

    if array.dtype == mx.bfloat16:
        return np.array(array.astype(mx.float32)).astype(ml_dtypes.bfloat16)
    return np.array(array)


def _clipping(options: dict[str, Any]) -> Callable[[list[Any]], list[Any]]:
    import mlx.optimizers as library

    # it has no annotations
    clip: Callable[..., tuple[list[Any], Any]] = library.clip_grad_norm
    variant, threshold = options["variant"], options["threshold"]
    require(threshold is not None, "clipping that is off is not called")
    if variant == "global":
        return lambda arrays: clip(arrays, threshold)[0]
    require(variant == "per-layer", f"it has no clipping {variant}")
    # one call for each array, as its users write it
    return lambda arrays: [clip([array], threshold)[0][0] for array in arrays]


def _rate(options: dict[str, Any]) -> Any:
    require(
        is_off(options["weight_decay"]),
        "weight decay changes weights in place, and their rounding would hide the update",
    )
    return _scheduled(options["learning_rate"])


def _scheduled(value: Any) -> Any:
    import mlx.optimizers as library

    if not is_schedule(value):
        return value
    name, options = value["schedule"], schedule_options(value)
    if name == "ExponentialSchedule":
        require(options["decay_steps"] == 1, "exponential_decay decays by its rate at each step")
        return library.exponential_decay(options["initial"], options["decay_rate"])
    if name == "LinearSchedule":
        return library.linear_schedule(options["initial"], options["final"], options["steps"])
    if name == "CosineSchedule":
        return library.cosine_decay(options["initial"], options["steps"], options["final"])
    raise NotExpressible(f"none of its schedules is a {name}")


def _adam(options: dict[str, Any]) -> Callable[[], Any]:
    import mlx.optimizers as library

    rate = _rate(options)
    require(is_off(options["epsilon_root"]), "Adam has no epsilon inside of the root")
    require(is_off(options["amsgrad"]), "it has no amsgrad")
    require(is_off(options["nesterov"]), "it has no nesterov in Adam")
    betas, epsilon = [options["beta1"], options["beta2"]], options["epsilon"]
    return lambda: library.Adam(rate, betas=betas, eps=epsilon, bias_correction=True)


def _rmsprop(options: dict[str, Any]) -> Callable[[], Any]:
    import mlx.optimizers as library

    rate = _rate(options)
    require(is_off(options["epsilon_inside"]), "RMSprop has its epsilon outside of the root")
    require(not is_off(options["epsilon"]), "the epsilon of RMSprop is above 0, as documented")
    require(is_off(options["centered"]), "RMSprop has no centred form")
    require(is_off(options["momentum"]) and is_off(options["nesterov"]), "RMSprop has no momentum")
    return lambda: library.RMSprop(rate, alpha=options["decay"], eps=options["epsilon"])


def _sgd(options: dict[str, Any]) -> Callable[[], Any]:
    import mlx.optimizers as library

    rate = _rate(options)
    momentum, nesterov = options["momentum"], options["nesterov"]
    return lambda: library.SGD(rate, momentum=momentum, nesterov=nesterov)


_OPTIMIZERS: dict[str, Callable[[dict[str, Any]], Callable[[], Any]]] = {
    "AdamStep": _adam,
    "RMSPropStep": _rmsprop,
    "SGDStep": _sgd,
}

target = MlxTarget(name="mlx", sources=("mlx.optimizers",), expectations=expectations_of(__file__))
