"""States on disk: safetensors files, which hold no code, read back into any array library."""

import os
import tempfile
from pathlib import Path
from typing import Any

from .errors import ArgumentTypeError, StateError, refusal, shown
from .namespaces import dtype_name, from_numpy, namespace_of, to_numpy
from .trees import Tree, flatten, leaf_paths, unflatten

_FORMAT = "steps state 1"

_DTYPES = ("float32", "float64", "int32", "bool")

# Complex entries are stored with their real and imaginary parts along one more axis.
_PARTS = {"complex64": "float32", "complex128": "float64"}


def save_state(state: Tree, file: str | os.PathLike[str]) -> None:
    """Write a state to a file, all of it or nothing.

    Each entry is stored under its path, such as ``['step2']['first_moment']['bias']``. The file is written
    beside its place and moved there when it is whole, so that a failed write leaves the old file.

    Args:
        state: what a step's ``init`` or call returned, of any array library.
        file: where to; its folder must exist.

    Raises:
        StateError: an entry is no array of a dtype that states hold.
        ArgumentTypeError: state is no dict, or file no path.
        ImportError: the package safetensors is missing.
        OSError: the file cannot be written.

    Example:
        >>> import numpy as np, tempfile, pathlib
        >>> from steps_core import AdamStep, load_state
        >>> step, weights = AdamStep(), np.asarray([1.0, 2.0])
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "state.safetensors"
        >>> save_state(step.init(weights), file)
        >>> load_state(file, like=step.init(weights))["count"]
        array(0, dtype=int32)
    """
    _check_arguments("state", state, file)
    leaves, structure = flatten(state)
    entries, notes = {}, {"format": _FORMAT}
    for path, leaf in zip(leaf_paths(structure, ""), leaves, strict=True):
        if leaf is None:
            notes[path] = "none"
            continue
        name = dtype_name(leaf.dtype) if namespace_of(leaf) is not None else ""
        if name not in _DTYPES and name not in _PARTS:
            raise _bad_entry(f"state{path}", f"be an array of dtype {', '.join([*_DTYPES, *_PARTS])}", leaf)
        entries[path] = _as_stored(to_numpy(leaf))
        if name in _PARTS:
            notes[path] = name
    _write_whole(Path(file), _safetensors().numpy.save(entries, notes))


def _check_arguments(argument: str, state: Any, file: Any) -> None:
    if not isinstance(state, dict):
        way_out = "pass step.init(weights), or the second part of what a call returned"
        raise refusal(ArgumentTypeError, argument, "be a state, which is a dict", state, way_out)
    if not isinstance(file, (str, os.PathLike)) or not os.fspath(file):
        raise refusal(ArgumentTypeError, "file", "be a path", file, 'pass a path such as "state.safetensors"')


def _as_stored(values: Any) -> Any:
    import numpy

    if values.dtype.kind == "c":
        values = numpy.stack([values.real, values.imag], axis=-1)
    return numpy.asarray(values, order="C")


def _write_whole(file: Path, content: bytes) -> None:
    """Write beside the file, then rename; the old file stays until the new one is on disk."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as beside:
            beside.write(content)
            beside.flush()
            os.fsync(beside.fileno())
        os.chmod(name, _mode_of(file))
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode_of(file: Path) -> int:
    """Return the permissions of the old file, or those that a new file gets."""
    if file.exists():
        return file.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def load_state(file: str | os.PathLike[str], *, like: Tree) -> Tree:
    """Return the state in a file as arrays of the library, devices and form of another state.

    Args:
        file: what `save_state` wrote.
        like: ``step.init(weights)``, for the weights that the state is to be used with.

    Raises:
        StateError: the file is no such file, or holds another state than one like this: the text names the
            first entry that is missing, left over, or of another shape or dtype.
        ImportError: the package safetensors is missing.
        OSError: the file cannot be read.

    Example:
        See `save_state`.
    """
    _check_arguments("like", like, file)
    entries, notes = _read(file)
    if notes.get("format") != _FORMAT:
        raise _bad_file(file, f"its format is {shown(notes.get('format'))}, not {_FORMAT!r}")
    leaves, structure = flatten(like)
    paths = leaf_paths(structure, "")
    held = {*entries, *(path for path, note in notes.items() if note == "none")}
    for path in [*paths, *sorted(held)]:
        if path not in held:
            raise _bad_entry(f"like{path}", f"have an entry in {os.fspath(file)}", "nothing")
        if path not in paths:
            raise _bad_entry(f"like{path}", f"exist, because {os.fspath(file)} has that entry", "nothing")
    return unflatten(
        structure,
        [
            _restored(f"like{path}", leaf, entries.get(path), notes.get(path))
            for path, leaf in zip(paths, leaves, strict=True)
        ],
    )


def _read(file: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the entries as NumPy arrays, and the notes."""
    safetensors = _safetensors()
    with open(file, "rb"):
        pass  # A missing file is the caller's OSError, not a damaged one.
    try:
        with safetensors.safe_open(os.fspath(file), framework="numpy") as content:
            return {key: content.get_tensor(key) for key in content.keys()}, content.metadata() or {}
    except (safetensors.SafetensorError, ValueError, TypeError) as error:
        raise _bad_file(file, f"the content is damaged or of another kind ({error})") from error


def _restored(path: str, like: Any, values: Any, note: str | None) -> Any:
    if like is None or values is None:
        if like is None and values is None:
            return None
        raise _bad_entry(path, "be None in both the state and the file, or in neither", like)
    if note is not None:
        values = values.view(note)[..., 0]
    name, shape = str(values.dtype), tuple(values.shape)
    if name != dtype_name(like.dtype) or shape != tuple(like.shape):
        raise _bad_entry(path, f"have the file's shape {shape} and dtype {name}", like)
    return from_numpy(values, like)


def _safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            "saving and loading states needs the package safetensors: pip install safetensors"
        ) from error
    return safetensors


def _bad_entry(path: str, rule: str, value: Any) -> StateError:
    way_out = "use the step and the weights that the state was made with"
    return StateError(
        f"{path} must {rule}, got {shown(value)}; {way_out}",
        argument="state",
        rule=rule,
        value=value,
        way_out=way_out,
        path=path,
    )


def _bad_file(file: str | os.PathLike[str], reason: str) -> StateError:
    way_out = "pass a file that save_state wrote"
    return StateError(
        f"file must hold a saved state, got {os.fspath(file)!r}, where {reason}; {way_out}",
        argument="file",
        rule="hold a saved state",
        value=os.fspath(file),
        way_out=way_out,
    )
