"""States on disk: saved from one library, carried on in another, never half written."""

import os
import stat
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import assert_same_trees, assert_within_ulps, leaves_of, read_tree
from libraries import Library

from steps_core import (
    AdamStep,
    ChainedStep,
    CosineSchedule,
    GradientClippingStep,
    MaskedStep,
    MonitorStep,
    RMSPropStep,
    SkipNonFiniteStep,
    StateError,
    load_state,
    save_state,
)

CHAIN = ChainedStep(GradientClippingStep(variant="global", threshold=1.0), AdamStep())
FULL = ChainedStep(
    SkipNonFiniteStep(AdamStep(learning_rate=CosineSchedule(0.1, 20), amsgrad=True)), MonitorStep()
)
SHAPES = {"kernel": (2, 3), "scale": ()}


def weights(library: Library) -> dict[str, Any]:
    """Return weights to be trained."""
    rng = np.random.default_rng(12)
    return {key: library.array(rng.normal(size=shape)) for key, shape in SHAPES.items()}


def gradients_at(library: Library, count: int) -> dict[str, Any]:
    """Return gradients of whole numbers: their squares add up exactly, in the order of any library."""
    rng = np.random.default_rng(1000 + count)
    return {key: library.array(rng.integers(-9, 10, size=shape)) for key, shape in SHAPES.items()}


def run(library: Library, state: Any, counts: range) -> tuple[list[Any], Any]:
    """Return the updates of the calls with these numbers, and the state after them."""
    updates = []
    for count in counts:
        gradients = gradients_at(library, count)
        result, state = CHAIN(gradients, weights(library), state)
        updates.append(read_tree(library, result))
    return updates, state


def test_a_state_saved_on_numpy_is_carried_on_in_another_library(library: Library, tmp_path: Path) -> None:
    """After 5 steps: the next 5 updates agree with NumPy's within 4 ulps."""
    numpy = Library("numpy")
    _, state = run(numpy, CHAIN.init(weights(numpy)), range(5))
    save_state(state, tmp_path / "state")
    expected, _ = run(numpy, state, range(5, 10))
    loaded = load_state(tmp_path / "state", like=CHAIN.init(weights(library)))
    assert_same_trees(read_tree(library, loaded), state)
    updates, after = run(library, loaded, range(5, 10))
    for one, other in zip(leaves_of(updates), leaves_of(expected), strict=True):
        assert_within_ulps(one, other.astype(float), 4)
    assert int(after["step2"]["count"]) == 10


def test_a_state_saved_on_any_library_comes_back_to_numpy(library: Library, tmp_path: Path) -> None:
    """Bit for bit, with every kind of entry."""
    _, state = FULL(weights(library), weights(library))
    save_state(state, tmp_path / "state")
    loaded = load_state(tmp_path / "state", like=FULL.init(weights(Library("numpy"))))
    assert_same_trees(loaded, read_tree(library, state))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "complex128"])
def test_states_of_every_dtype_come_back(library: Library, dtype: str, tmp_path: Path) -> None:
    """Moments of narrow weights are float32, of complex ones complex and real."""
    if dtype not in library.dtypes:
        pytest.skip(f"{library.name} has no {dtype} here")
    step = RMSPropStep(centered=True, momentum=0.5)
    leaf = library.array([[1.0, -2.0, 8.0], [0.5, 3.0, 0.0]], dtype)
    _, state = step(leaf)
    save_state(state, tmp_path / "state")
    loaded = load_state(tmp_path / "state", like=step.init(leaf))
    assert_same_trees(read_tree(library, loaded), read_tree(library, state))


def test_containers_none_and_flags_come_back(library: Library, tmp_path: Path) -> None:
    """The form is that of the state it is like; None entries stay None."""
    inner = MaskedStep(AdamStep(), {"a": True, "b": False})
    step = SkipNonFiniteStep(ChainedStep(inner, MonitorStep()))
    leaf = library.array(np.ones((2, 3)))
    tree = {"b": (leaf, None), "a": OrderedDict(x=leaf)}
    _, state = step(tree)
    save_state(state, tmp_path / "state")
    loaded = load_state(str(tmp_path / "state"), like=step.init(tree))
    assert type(loaded["inner"]["step1"]["inner"]["first_moment"]["a"]) is OrderedDict
    assert loaded["inner"]["step1"]["inner"]["first_moment"]["b"] == (None, None)
    assert_same_trees(read_tree(library, loaded), read_tree(library, state))


def test_a_state_without_entries_comes_back(tmp_path: Path) -> None:
    """Stateless steps, and trees without arrays."""
    for step, tree in ((ChainedStep(), np.ones(1)), (AdamStep(), {}), (AdamStep(), None)):
        save_state(step.init(tree), tmp_path / "state")
        assert load_state(tmp_path / "state", like=step.init(tree)) == step.init(tree)


def test_a_state_comes_back_to_its_devices(tmp_path: Path) -> None:
    """Each entry to the device of the entry it is like."""
    pytest.importorskip("array_api_strict")
    strict = Library("array_api_strict")
    there = strict.module.Device("device1")
    leaf = strict.array([1.0], device=there)
    _, state = AdamStep()(leaf)
    save_state(state, tmp_path / "state")
    for device in (there, strict.module.Device("CPU_DEVICE")):
        like = AdamStep().init(leaf.to_device(device))
        loaded = load_state(tmp_path / "state", like=like)
        assert {str(entry.device) for entry in leaves_of(loaded)} == {str(device)}


def test_a_torch_state_never_records(tmp_path: Path) -> None:
    """Also where the weights do."""
    torch = pytest.importorskip("torch")
    leaf = torch.ones(2, requires_grad=True)
    save_state(AdamStep()(torch.ones(2), leaf).state, tmp_path / "state")
    loaded = load_state(tmp_path / "state", like=AdamStep().init(leaf))
    assert not any(entry.requires_grad for entry in leaves_of(loaded))


def test_the_file_holds_paths_and_no_code(tmp_path: Path) -> None:
    """safetensors: anyone can read it."""
    safetensors = pytest.importorskip("safetensors.numpy")
    _, state = AdamStep()({"bias": np.asarray([2.0], "float32")})
    save_state(state, tmp_path / "state")
    entries = safetensors.load_file(tmp_path / "state")
    assert set(entries) == {"['count']", "['first_moment']['bias']", "['second_moment']['bias']"}
    assert entries["['count']"] == 1


@pytest.mark.parametrize("broken", ["os.fsync", "os.replace", "os.chmod"])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: Any, broken: str) -> None:
    """Bit for bit, and nothing beside it."""
    file = tmp_path / "state"
    save_state(AdamStep().init(np.ones(1)), file)
    before = file.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(broken, fail)
    with pytest.raises(OSError, match="disk full"):
        save_state(AdamStep().init(np.ones(50)), file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_bad_state_is_refused_before_the_file_is_touched(tmp_path: Path) -> None:
    """An entry that is no array of a dtype that states hold."""
    file = tmp_path / "state"
    save_state({"a": np.ones(1)}, file)
    before = file.read_bytes()
    for entry in (1.0, "text", np.ones(1, "int64"), np.ones(1, "float16"), object()):
        with pytest.raises(
            StateError, match=r"state\['a'\] must be an array of dtype float32.*got .*use the step"
        ):
            save_state({"a": entry}, file)
    assert file.read_bytes() == before


def test_a_missing_folder_or_file_is_the_callers_own_error(tmp_path: Path) -> None:
    """As with any file."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        save_state({}, tmp_path / "nowhere" / "state")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_state(tmp_path / "nowhere", like={})


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_the_old_files_permissions_stay(tmp_path: Path) -> None:
    """A new file gets those of any new file."""
    file, plain = tmp_path / "state", tmp_path / "plain"
    plain.touch()
    save_state({}, file)
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    file.chmod(0o640)
    save_state({}, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize("damage", ["empty", "cut short", "header", "text", "directory of bytes"])
def test_a_damaged_file_is_refused(tmp_path: Path, damage: str) -> None:
    """The file and the way out are named."""
    file = tmp_path / "state"
    like = AdamStep().init(np.ones(100))
    save_state(like, file)
    content = file.read_bytes()
    file.write_bytes(
        {
            "empty": b"",
            "cut short": content[:-8],
            "header": b"\xff" * 16 + content[16:],
            "text": b"not a state at all",
            "directory of bytes": bytes(range(256)),
        }[damage]
    )
    with pytest.raises(
        StateError, match=r"file must hold a saved state, got .*state.*pass a file that save_state wrote"
    ) as caught:
        load_state(file, like=like)
    assert caught.value.argument == "file"


def test_a_file_of_another_maker_is_refused(tmp_path: Path) -> None:
    """safetensors without our mark, or with another version's."""
    safetensors = pytest.importorskip("safetensors.numpy")
    for notes in (None, {"format": "steps state 99"}):
        safetensors.save_file({"['count']": np.ones(1)}, tmp_path / "state", metadata=notes)
        with pytest.raises(StateError, match=r"its format is .*, not 'steps state 1'"):
            load_state(tmp_path / "state", like={"count": np.ones(1)})


def test_a_state_of_another_form_is_refused(tmp_path: Path) -> None:
    """The first entry that is missing, left over, or of another shape or dtype is named."""
    file = tmp_path / "state"
    save_state({"a": np.ones(2), "b": None}, file)
    for like, text, path in (
        ({"a": np.ones(2), "b": None, "c": np.ones(1)}, r"like\['c'\] must have an entry in", "like['c']"),
        ({"b": None}, r"like\['a'\] must exist, because .* has that entry", "like['a']"),
        ({"a": np.ones(2)}, r"like\['b'\] must exist, because", "like['b']"),
        (
            {"a": np.ones(3), "b": None},
            r"like\['a'\] must have the file's shape \(2,\) and dtype float64",
            "like['a']",
        ),
        ({"a": np.ones(2, "float32"), "b": None}, r"shape \(2,\) and dtype float64", "like['a']"),
        ({"a": None, "b": None}, r"like\['a'\] must be None in both", "like['a']"),
        ({"a": np.ones(2), "b": np.ones(1)}, r"like\['b'\] must be None in both", "like['b']"),
    ):
        with pytest.raises(StateError, match=text) as caught:
            load_state(file, like=like)
        assert caught.value.path == path and caught.value.argument == "state"


def test_without_safetensors_the_way_out_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    """It is needed for this alone."""
    monkeypatch.setitem(__import__("sys").modules, "safetensors", None)
    with pytest.raises(ImportError, match="needs the package safetensors: pip install safetensors"):
        save_state({}, tmp_path / "state")
