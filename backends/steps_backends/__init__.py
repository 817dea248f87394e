"""Array libraries as data: what each can do, how to make and read its arrays, and how it runs a step fast."""

from importlib import import_module

from .compiling import CompiledStep, compile  # noqa: A004  # The field's word.
from .declaration import TRAITS, Declaration
from .formats import FORMATS, LEAF_DTYPES, Format, format_of
from .host import HostArray, host_array
from .protocol import Backend, HostReadError, Probe

# None of these imports its library before a row is used.
_MODULES = ("numpy", "torch", "torch_dtensor", "jax", "array_api_strict", "cupy")


def _rows() -> dict[str, Backend]:
    modules = (import_module(f".{module}", __name__) for module in _MODULES)
    return {row.declaration.name: row for module in modules for row in module.ROWS}


def names() -> list[str]:
    """Return the names of all rows, whether or not they can run here."""
    return list(_rows())


def get(name: str) -> Backend:
    """Return the backend of that name.

    Raises:
        KeyError: there is no such row; the text lists those there are.
    """
    rows = _rows()
    if name not in rows:
        raise KeyError(f"no backend is called {name!r}; there are {', '.join(rows)}")
    return rows[name]


__all__ = [
    "FORMATS",
    "LEAF_DTYPES",
    "TRAITS",
    "Backend",
    "CompiledStep",
    "Declaration",
    "Format",
    "HostArray",
    "HostReadError",
    "Probe",
    "compile",
    "format_of",
    "get",
    "host_array",
    "names",
]
