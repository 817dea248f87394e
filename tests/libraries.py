"""The array libraries of the unit tests: each makes arrays, and reads them back as NumPy arrays."""

import importlib
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

REAL = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
NARROW = ("float16", "bfloat16")

DTYPES = {
    "numpy": (*REAL, *COMPLEX),
    "torch": (*REAL, *COMPLEX),
    "jax": ("float16", "bfloat16", "float32", "complex64"),
    "array_api_strict": ("float32", "float64", *COMPLEX),
}
NAMES = tuple(DTYPES)
KINDS = tuple((name, dtype) for name in NAMES for dtype in DTYPES[name])


def numpy_dtype(name: str) -> np.dtype:
    """Return NumPy's dtype of that name; bfloat16 is the one of ml_dtypes."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def numpy_array(values: Any, dtype: str) -> np.ndarray:
    """Return values, which may lie outside the dtype's range, as a NumPy array."""
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(numpy_dtype(dtype))


@dataclass(frozen=True)
class Library:
    """One array library."""

    name: str

    @property
    def module(self) -> Any:
        """The library itself."""
        return importlib.import_module(self.name)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of leaves that it has."""
        return DTYPES[self.name]

    def array(self, values: Any, dtype: str = "float32", device: Any = None) -> Any:
        """Return values as an array of this library."""
        host = numpy_array(values, dtype)
        if self.name == "torch":
            return _tensor(self.module, host, dtype)
        if self.name == "jax":
            return self.module.device_put(host)
        if self.name == "array_api_strict":
            return self.module.asarray(host, device=device)
        return host

    def read(self, array: Any) -> np.ndarray:
        """Return an array of this library as a NumPy array of the same dtype."""
        assert self.holds(array), f"{type(array)} is no array of {self.name}"
        if self.name == "torch":
            wide = array.detach().float() if array.dtype is self.module.bfloat16 else array.detach()
            return wide.numpy().astype(self.dtype_of(array), copy=True)
        if self.name == "array_api_strict":
            array = array.to_device(self.module.Device("CPU_DEVICE"))
        return np.array(array)

    def values(self, result: Any) -> np.ndarray:
        """Return what a function of the arithmetic returned: NumPy gives scalars there, steps never do."""
        return np.asarray(result) if isinstance(result, np.generic) else self.read(result)

    def holds(self, value: Any) -> bool:
        """Return whether value is an array (no scalar) of this library."""
        kinds = {
            "numpy": lambda: np.ndarray,
            "torch": lambda: self.module.Tensor,
            "jax": lambda: self.module.Array,
            "array_api_strict": lambda: type(self.module.asarray(0)),
        }
        return isinstance(value, kinds[self.name]())

    def dtype_of(self, array: Any) -> np.dtype:
        """Return the dtype of an array as NumPy's."""
        if self.name in ("torch", "array_api_strict"):
            return numpy_dtype(str(array.dtype).rsplit(".", maxsplit=1)[-1])
        return np.dtype(array.dtype)


def _tensor(torch: Any, host: np.ndarray, dtype: str) -> Any:
    if dtype == "bfloat16":
        return torch.asarray(host.astype(np.float32)).to(torch.bfloat16)
    return torch.asarray(host.copy())
