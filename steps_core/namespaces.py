"""The only door to array-api-compat: which library an array belongs to, and what depends on that."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import array_api_compat

from .shards import distributed_like, is_sharded, whole

Array = Any
Namespace = Any

# array-api-compat's own look-ups go through functools caches, which warn under torch.compile; what is
# needed inside a call is therefore answered here, once for each type.
_NAMESPACES: dict[type, Namespace | None] = {}
_IS_TORCH: dict[type, bool] = {}
_IS_OF_NUMPY: dict[type, bool] = {}
_IS_TRACED_BY_JAX: dict[type, bool] = {}

# torch.compile looks through all of sys.modules where that is asked, and fails if its own imports change it
# meanwhile. So libraries are kept here once they are seen.
_LOADED: dict[str, Any] = {name: sys.modules[name] for name in ("torch", "jax") if name in sys.modules}

# NumPy works out the name of a dtype anew each time it is asked.
_DTYPE_NAMES: dict[tuple[type, Any], str] = {}

# Their arithmetic does not follow ndarray's: a mask would be dropped, ``*`` would multiply matrices.
_NOT_ARRAYS = {"MaskedArray", "matrix"}

# What answers for JAX's namespace while somebody compiles a step; see `recorder_of`.
_ON_JAX: ContextVar[Any] = ContextVar("_ON_JAX", default=None)


def loaded(name: str) -> Any:
    """Return an array library that this process has loaded; None where it has not."""
    if name in _LOADED:
        return _LOADED[name]
    if name in sys.modules:
        _LOADED[name] = sys.modules[name]
    return _LOADED.get(name)


def namespace_of(value: Any) -> Namespace:
    """Return the array-API namespace of an array, or None if value is not one."""
    kind = type(value)
    if kind not in _NAMESPACES:
        _NAMESPACES[kind] = _find_namespace(value)
    return _NAMESPACES[kind]


def _find_namespace(value: Any) -> Namespace | None:
    torch = loaded("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        import array_api_compat.torch as xp

        return xp
    if isinstance(value, type) or not array_api_compat.is_array_api_obj(value):
        return None
    if any(base.__name__ in _NOT_ARRAYS for base in type(value).__mro__):
        return None
    return array_api_compat.array_namespace(value)


def library_name(xp: Namespace) -> str:
    """Return the name of the library behind a namespace, such as ``torch``."""
    name: str = xp.__name__
    return name.rsplit("array_api_compat.", 1)[-1].split(".", 1)[0]


def is_split_by_compiler(xp: Namespace) -> bool:
    """Return whether arrays may lie in parts on several devices without the code that is traced seeing it."""
    return library_name(xp) == "jax"


def dtype_name(dtype: Any) -> str:
    """Return the plain name of a dtype of any library, such as ``float32``."""
    # With its class, because dtypes of two libraries may have one hash, and warn when they are compared.
    key = (type(dtype), dtype)
    if key not in _DTYPE_NAMES:
        name = getattr(dtype, "name", None)
        _DTYPE_NAMES[key] = name if isinstance(name, str) else str(dtype).rsplit(".", 1)[-1]
    return _DTYPE_NAMES[key]


def is_torch(array: Array) -> bool:
    """Return whether this is a PyTorch tensor."""
    kind = type(array)
    if kind not in _IS_TORCH:
        xp = namespace_of(array)
        _IS_TORCH[kind] = xp is not None and library_name(xp) == "torch"
    return _IS_TORCH[kind]


def _is_of_numpy(array: Array) -> bool:
    kind = type(array)
    if kind not in _IS_OF_NUMPY:
        _IS_OF_NUMPY[kind] = array_api_compat.is_numpy_array(array)
    return _IS_OF_NUMPY[kind]


def device_of(array: Array) -> Any:
    """Return the device of an array; None while JAX traces."""
    if is_torch(array):
        return array.device
    if _is_of_numpy(array):
        return "cpu"
    # Asking a traced array makes JAX search all that it has traced for the origin, to tell it in an error.
    return None if is_traced_by_jax(array) else array_api_compat.device(array)


def is_single_device(device: Any) -> bool:
    """Return whether this is one known device rather than a JAX sharding or a traced unknown."""
    return device is not None and not hasattr(device, "device_set")


def replicated_sharding(sharding: Any) -> Any:
    """Return the JAX sharding that has a whole copy on each device of another one."""
    jax = sys.modules["jax"]
    devices = sorted(sharding.device_set, key=lambda device: device.id)
    mesh = getattr(sharding, "mesh", None) or jax.sharding.Mesh(devices, ("all",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(), memory_kind=sharding.memory_kind)


def to_device(array: Array, device: Any) -> Array:
    """Return the array on a device of its own library."""
    return array.to(device) if is_torch(array) else array_api_compat.to_device(array, device)


def astype(xp: Namespace, array: Array, dtype: Any) -> Array:
    """Return the array in dtype; the same object where it has it already."""
    return array if array.dtype == dtype else xp.astype(array, dtype)


def part_of(array: Array, axis: int, start: int, stop: int) -> Array:
    """Return a view of a range of one axis.

    PyTorch's own indexing asks the CUDA driver even for a fake tensor, so tensors are narrowed.
    """
    if is_torch(array):
        return array.narrow(axis, start, stop - start)
    return array[(*(slice(None),) * axis, slice(start, stop), ...)]


def as_array(xp: Namespace, value: Array) -> Array:
    """Return the value as an array: NumPy's operations on 0-d arrays give scalars."""
    return value if hasattr(value, "__setitem__") else xp.asarray(value)


def copied(xp: Namespace, array: Array) -> Array:
    """Return a copy that shares no memory with array."""
    return xp.astype(array, array.dtype, copy=True)


def quiet(xp: Namespace) -> AbstractContextManager[Any]:
    """Return the context in which valid input raises no floating-point warning.

    Only NumPy, and the strict namespace that is built on it, warn. For the others the context is
    empty: ``numpy.errstate`` would break ``torch.compile(fullgraph=True)``. So it is where there is no array.
    """
    if xp is not None and library_name(xp) in ("numpy", "array_api_strict"):
        errstate: AbstractContextManager[Any] = sys.modules["numpy"].errstate(all="ignore")
        return errstate
    return nullcontext()


def detached(array: Array) -> Array:
    """Return the array as a constant for automatic differentiation."""
    if hasattr(array, "detach"):
        return array.detach()
    if is_traced_by_jax(array):
        return sys.modules["jax"].lax.stop_gradient(array)
    return array


def recorder_of(xp: Namespace) -> Any:
    """Return what a namespace that only records operations keeps whole things with; None for all others.

    Such a namespace has a ``recorder``, and JAX's has one within `answering_on_jax`. Its methods:

    - ``of_square_sums(arrays, axes, function)``, a function of the sums of each array over its own axes, and
      ``joint_square_sums(arrays)``: the named reductions, which whoever runs the record may compute in
      another form that meets the same requirements;
    - ``evaluated(function, count)``: the 0-d float32 result of a function of the count, called at each run;
    - ``seen_by_users(leaf)``: what a function of the user, such as a mask, gets in place of a leaf;
    - ``stop()``: is told that the step stops in the debugger here at each call;
    - ``refuse(reason)``: raises, because what comes next cannot be recorded.
    """
    recorder = getattr(xp, "recorder", None)
    if recorder is None and xp is not None and library_name(xp) == "jax":
        return _ON_JAX.get()
    return recorder


@contextmanager
def answering_on_jax(recorder: Any) -> Iterator[None]:
    """Have whoever compiles a step with JAX answer as a recorder does, or nobody where it is None."""
    token = _ON_JAX.set(recorder)
    try:
        yield
    finally:
        _ON_JAX.reset(token)


def computed_once(scalars: Any) -> Any:
    """Return a named tuple of 0-d arrays as it is; all of them must be 0 where the first one is.

    XLA copies what a scalar is computed from into the loop of every leaf that uses it: a norm over many
    leaves into each of them, which takes minutes to compile. It copies no conditional whose branches differ.
    """
    first = scalars[0]
    if not is_traced_by_jax(first):
        return scalars
    jax = sys.modules["jax"]
    zeros = type(scalars)(*map(jax.numpy.zeros_like, scalars))
    return jax.lax.cond(first == 0, lambda: zeros, lambda: scalars)


def requires_grad(array: Array) -> bool:
    """Return whether PyTorch would record operations on this array."""
    return bool(getattr(array, "requires_grad", False)) and sys.modules["torch"].is_grad_enabled()


def is_traced_by_jax(array: Any) -> bool:
    """Return whether this is an abstract value inside a JAX transformation."""
    kind = type(array)
    if kind not in _IS_TRACED_BY_JAX:
        jax = loaded("jax")
        _IS_TRACED_BY_JAX[kind] = jax is not None and issubclass(kind, jax.core.Tracer)
    return _IS_TRACED_BY_JAX[kind]


def is_compiled_by_torch() -> bool:
    """Return whether torch.compile is recording this code instead of running it."""
    torch = loaded("torch")
    return torch is not None and bool(torch.compiler.is_compiling())


def is_tracing(array: Any) -> bool:
    """Return whether a library is recording this code instead of running it."""
    return is_traced_by_jax(array) or is_compiled_by_torch()


def to_numpy(array: Array) -> Any:
    """Return the values as a NumPy array on the host, waiting for the device."""
    import numpy

    if is_torch(array):
        array = whole(array.detach()).cpu()
    elif array_api_compat.is_cupy_array(array):
        array = array.get()
    elif not (array_api_compat.is_numpy_array(array) or array_api_compat.is_jax_array(array)):
        default = array.__array_namespace__().__array_namespace_info__().default_device()
        array = array.to_device(default)
    return numpy.asarray(array)


def from_numpy(values: Any, like: Array) -> Array:
    """Return NumPy values as an array of the library, device and sharding of like."""
    if array_api_compat.is_jax_array(like):
        return sys.modules["jax"].device_put(values, like.sharding)
    array = namespace_of(like).asarray(values, device=device_of(like))
    return distributed_like(array, like) if is_sharded(like) else array
