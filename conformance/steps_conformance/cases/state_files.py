"""Writing states to disk and reading them back."""

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from steps_backends import HostArray

from ..case import case
from ..compare import same_bits, same_kind
from ..descriptions import description
from ..oracle.samples import sample
from ..run import Run
from .battery import STEPS, Entry
from .judging import ALL_DTYPES, made, refuses_as

NEEDS = ("state_files",)
ADAM = description("AdamStep", amsgrad=True)


@contextmanager
def state_file() -> Iterator[Path]:
    """Yield the name of a file in a folder that goes away."""
    with TemporaryDirectory() as folder:
        yield Path(folder) / "state.safetensors"


def tree(dtype: str = "float32", seed: int = 0) -> Any:
    """Return a tree of several ranks, with an empty leaf."""
    return {
        "a": [sample((2, 3), dtype, seed=seed), None],
        "b": sample((), dtype, seed=seed),
        "c": HostArray(dtype, (0,), ()),
    }


def loaded(run: Run, state: Any, like: Any) -> Any:
    """Return what a state is after it has been saved and loaded."""
    with state_file() as file:
        run.save_state(state, str(file))
        return run.load_state(str(file), like)


@case("FILE-001", each={"entry": STEPS}, needs=NEEDS)
def state_of_every_step(run: Run, entry: Entry) -> None:
    """After a call."""
    weights = made(run, tree())
    subject = run.make(entry.described)
    first = subject.init(weights)
    _, state = subject.apply(weights, weights, first)
    result = loaded(run, state, first)
    same_bits(run.read(result), run.read(state))
    same_kind(run.backend, result, state)


@case("FILE-001", each={"dtype": ALL_DTYPES}, needs=NEEDS)
def state_of_every_dtype(run: Run, dtype: str) -> None:
    """Adam after a call."""
    weights = made(run, tree(dtype))
    subject = run.make(ADAM)
    _, state = subject.apply(weights, weights)
    result = loaded(run, state, subject.init(weights))
    same_bits(run.read(result), run.read(state))
    same_kind(run.backend, result, state)


@case("FILE-001", needs=NEEDS)
def state_of_no_arrays(run: Run) -> None:
    """The state for weights without arrays has a count of None."""
    subject = run.make(ADAM)
    state = subject.init({"a": None, "b": []})
    result = loaded(run, state, state)
    assert result == state, f"expected {state}, got {result}"


@case(
    "FILE-002", each={"entry": {name: entry for name, entry in STEPS.items() if entry.remembers}}, needs=NEEDS
)
def training_goes_on(run: Run, entry: Entry) -> None:
    """Two calls, a save and a load, and two more."""
    weights = made(run, tree(seed=9))
    subject = run.make(entry.described)
    state = subject.init(weights)
    for seed in (1, 2):
        _, state = subject.apply(made(run, tree(seed=seed)), weights, state)
    again = loaded(run, state, subject.init(weights))
    for seed in (3, 4):
        expected, state = subject.apply(made(run, tree(seed=seed)), weights, state)
        result, again = subject.apply(made(run, tree(seed=seed)), weights, again)
        same_bits(run.read(result), run.read(expected))
        same_bits(run.read(again), run.read(state))


KEYS: dict[str, Any] = {
    "dots": {"a.b": 1, "a": {"b": 2}},
    "slashes": {"a/b": 1, "a": {"b": 2}, "/": 3},
    "brackets": {"a']['b": 1, "a": {"b": 2}, "[0]": 3},
    "quotes": {"it's": 1, 'say "it"': 2, "back\\slash": 3},
    "blank": {"": 1, " ": 2, "\n": 3},
    "beyond-ascii": {"größe": 1, "重み": 2},
    "like-ours": {"count": 1, "first_moment": 2, "__metadata__": 3},
    "lists": {"0": 1, "a": [2, 3], "a[0]": 4},
}


@case("FILE-003", each={"keys": KEYS}, needs=NEEDS)
def odd_keys(run: Run, keys: Any) -> None:
    """Each leaf holds a number of its own."""
    weights = numbered(run, keys)
    subject = run.step("MomentumStep")
    _, state = subject.apply(weights)
    result = loaded(run, state, subject.init(weights))
    same_bits(run.read(result), run.read(state))


def numbered(run: Run, keys: Any) -> Any:
    """Return the tree with an array in the place of each number."""
    if isinstance(keys, dict):
        return {key: numbered(run, part) for key, part in keys.items()}
    if isinstance(keys, list):
        return [numbered(run, part) for part in keys]
    return run.array([float(keys)])


@case(
    "FILE-004",
    each={"change": ("missing", "extra", "shape", "dtype", "nesting")},
    needs=NEEDS,
    dtypes=("complex64",),
)
def other_form(run: Run, change: str) -> None:
    """The file holds the trace of weights a and b."""
    subject = run.step("MomentumStep")
    saved = subject.init({"a": run.array([1.0, 2.0]), "b": run.array([3.0])})
    other = {
        "missing": {"a": run.array([1.0, 2.0])},
        "extra": {"a": run.array([1.0, 2.0]), "b": run.array([3.0]), "c": run.array([4.0])},
        "shape": {"a": run.array([1.0, 2.0]), "b": run.array([3.0, 4.0])},
        "dtype": {"a": run.array([1.0, 2.0]), "b": run.array([3.0], "complex64")},
        "nesting": {"a": run.array([1.0, 2.0]), "b": [run.array([3.0])]},
    }[change]
    path = "['trace']['c']" if change == "extra" else "['trace']['b']"
    like = subject.init(other)
    run.refuses(lambda: loaded(run, saved, like), kind="ValueError", saying=(path,))


class Trap:
    """An object whose pickle makes a file when it is loaded."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self.file,)


@case("FILE-005", each={"content": ("pickle", "text", "nothing")}, needs=NEEDS)
def no_state(run: Run, content: str) -> None:
    """A pickle with a trap in it, a text, and an empty file."""
    like = run.step("MomentumStep").init([run.array([1.0])])
    with state_file() as file:
        sprung = file.with_name("sprung")
        data = {"pickle": pickle.dumps(Trap(sprung)), "text": b"trace: [0.0]", "nothing": b""}[content]
        file.write_bytes(data)
        run.refuses(lambda: run.load_state(str(file), like), kind="ValueError", saying=("state",))
        assert not sprung.exists(), "loading ran what the file said"


@case("FILE-006", each={"bad": {"text": "momentum", "function": max, "whole": 3}}, needs=NEEDS)
def failed_save(run: Run, bad: Any) -> None:
    """Over a file with a good state."""
    subject = run.step("MomentumStep")
    _, state = subject.apply([run.array([1.0, 2.0])])
    with state_file() as file:
        run.save_state(state, str(file))
        refuses_as(("ValueError", "TypeError"), lambda: run.save_state({"trace": [bad]}, str(file)))
        same_bits(run.read(run.load_state(str(file), state)), run.read(state))
        left = sorted(path.name for path in file.parent.iterdir())
        assert left == [file.name], f"expected only {file.name}, got {left}"


@case("FILE-007", each={"part": (0.05, 0.5, 0.95)}, needs=NEEDS)
def cut_short(run: Run, part: float) -> None:
    """A part of a good file."""
    subject = run.make(ADAM)
    state = subject.init(made(run, tree()))
    with state_file() as file:
        run.save_state(state, str(file))
        data = file.read_bytes()
        file.write_bytes(data[: int(len(data) * part)])
        run.refuses(lambda: run.load_state(str(file), state), kind="ValueError")


@case("FILE-007", needs=NEEDS)
def tensors_of_another_program(run: Run) -> None:
    """A safetensors file, made by hand, that has the entries of the state and says nothing of being one."""
    like = run.step("MomentumStep").init([run.array([1.0])])
    header = json.dumps({"['trace'][0]": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    with state_file() as file:
        file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
        run.refuses(lambda: run.load_state(str(file), like), kind="ValueError")
