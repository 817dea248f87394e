"""The probe that all backends share: real operations, compared with the declaration."""

import importlib
from collections.abc import Callable
from typing import Any

from .formats import COMPONENTS, LEAF_DTYPES, format_of
from .host import HostArray, host_array
from .protocol import Backend, Probe


def probe(backend: Backend, *, device_problem: Callable[[], str | None] = lambda: None) -> Probe:
    """Import the library, ask for the device, compute on it, and look for deviations.

    Args:
        backend: the backend to use.
        device_problem: asks the library's runtime for the device; returns what is wrong, or None.
    """
    declared = backend.declaration
    library, error = _attempt(importlib.import_module, declared.library)
    if error:
        return Probe(False, _import_problem(declared.library, declared.requirement, error))
    version = str(getattr(library, "__version__", "unknown"))
    problem, error = _attempt(lambda: device_problem() or _wrong_sum(backend))
    if error:
        problem = f"a sum on {declared.device} failed: {_shown(error)}"
    if problem:
        return Probe(False, problem, version)
    return Probe(True, None, version, tuple(deviations(backend)))


def _attempt(function: Callable[..., Any], *args: Any) -> tuple[Any, Exception | None]:
    try:
        return function(*args), None
    except Exception as error:  # noqa: BLE001 - whatever a library raises is a finding here
        return None, error


def deviations(backend: Backend) -> list[str]:
    """Return one sentence for each point in which the backend is not what it declares."""
    declared, found = backend.declaration, []
    for dtype in LEAF_DTYPES:
        problem = _dtype_problem(backend, dtype)
        if dtype in declared.dtypes and problem:
            found.append(f"{dtype} is declared, but {problem}")
        if dtype not in declared.dtypes and not problem:
            found.append(f"{dtype} is not declared, but it works")
    for trait, is_seen in _SIGNS.items():
        seen = is_seen(backend)
        if seen and trait not in declared.traits:
            found.append(f"{trait} is not declared, but it is seen")
        if not seen and trait in declared.traits:
            found.append(f"{trait} is declared, but it is not seen")
    device = backend.device_of(backend.array(host_array([1.0])))
    if declared.device not in device.lower():
        found.append(f"device {declared.device} is declared, but arrays are made on {device}")
    return found


def _import_problem(library: str, requirement: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == library:
        return f"{library} is not installed; pip install {requirement}"
    return f"{library} cannot be imported: {_shown(error)}; pip install {requirement}"


def _wrong_sum(backend: Backend) -> str | None:
    array = backend.array(host_array([3.0, 4.0]))
    total = backend.call(_sum_of_squares, array)
    backend.synchronize([total])
    result = backend.read(total)
    expected = HostArray("float32", (1,), (25.0,))
    return None if result == expected else f"3*3 + 4*4 gave {result} instead of {expected}"


def _sum_of_squares(array: Any) -> Any:
    squares = array * array
    return squares[:1] + squares[1:]


def _double(array: Any) -> Any:
    return array + array


def _doubled(backend: Backend, value: complex, dtype: str) -> HostArray:
    return backend.read(backend.call(_double, backend.array(host_array([value], dtype))))


def _dtype_problem(backend: Backend, dtype: str) -> str | None:
    """Return why dtype does not work here, or None: make an array, compute with it, read it."""
    unit = 1 + 1j if dtype in COMPONENTS else 1.0
    # a value with the last bit set shows a silently narrower dtype
    value = unit * (1 + 2.0 ** (1 - format_of(dtype).precision))
    result, error = _attempt(lambda: _doubled(backend, value, dtype))
    if error:
        return f"it fails: {_shown(error)}"
    expected = host_array([2 * value], dtype)
    return None if result == expected else f"{expected} came back as {result}"


def _flushes_subnormals(backend: Backend) -> bool:
    subnormal = format_of("float32").smallest_normal / 4
    return _doubled(backend, subnormal, "float32").values == (0.0,)


def _can_be_written(backend: Backend) -> bool:
    array = backend.array(host_array([1.0, 2.0]))
    _, error = _attempt(_write_first, array)
    return error is None and backend.read(array).values[0] == 3.0


def _write_first(array: Any) -> None:
    array[0] = 3.0


def _is_traced(backend: Backend) -> bool:
    """Return whether a function run by the backend gets something else than the array that was passed."""
    array, seen = backend.array(host_array([1.0])), []

    def record(given: Any) -> Any:
        seen.append(type(given))
        return _double(given)

    backend.call(record, array)
    return seen != [type(array)]


def _lacks_boolean_indexing(backend: Backend) -> bool:
    array = backend.array(host_array([1.0, 2.0]))
    return _attempt(lambda: array[array > array])[1] is not None


_SIGNS: dict[str, Callable[[Backend], bool]] = {
    "flushes_subnormals": _flushes_subnormals,
    "mutable": _can_be_written,
    "jit": _is_traced,
    "optional_features_off": _lacks_boolean_indexing,
}
"""How the traits that can be seen are seen."""


def _shown(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else 'no text'}"
