"""Probes of planted backends: a lie of the declaration, a wrong library, a missing one."""

from dataclasses import dataclass, replace

import pytest
import steps_backends
from steps_backends.numpy import NumpyBackend
from steps_backends.probing import probe

NUMPY = steps_backends.get("numpy").declaration


def declared(**changes):
    return NumpyBackend(replace(NUMPY, **changes))


def test_an_honest_declaration_has_no_deviation():
    assert declared().probe().deviations == ()


@pytest.mark.parametrize(
    ("changes", "deviation"),
    [
        ({"dtypes": NUMPY.dtypes[1:]}, "float16 is not declared, but it works"),
        (
            {"traits": NUMPY.traits | {"flushes_subnormals"}},
            "flushes_subnormals is declared, but it is not seen",
        ),
        ({"traits": NUMPY.traits - {"mutable"}}, "mutable is not declared, but it is seen"),
        ({"traits": NUMPY.traits | {"read_only"}}, "mutable is declared, but it is not seen"),
        ({"traits": NUMPY.traits | {"jit"}}, "jit is declared, but it is not seen"),
        (
            {"traits": NUMPY.traits | {"optional_features_off"}},
            "optional_features_off is declared, but it is not",
        ),
        ({"device": "cuda"}, "device cuda is declared, but arrays are made on cpu"),
    ],
)
def test_a_lie_is_a_deviation(changes, deviation):
    (found,) = declared(**changes).probe().deviations

    assert deviation in found


def test_a_declared_dtype_that_the_library_lacks_is_a_deviation():
    strict = steps_backends.get("array-api-strict")
    if not strict.probe().runs:
        pytest.skip("array-api-strict is not installed")
    boastful = replace(
        strict, declaration=replace(strict.declaration, dtypes=("float16", *strict.declaration.dtypes))
    )

    (found,) = boastful.probe().deviations

    assert "float16 is declared, but it fails: TypeError: array-api-strict has no float16" in found


@dataclass(frozen=True)
class Narrowing(NumpyBackend):
    """Makes float32 of float64 without a word, as JAX does."""

    def array(self, host):
        return super().array(replace(host, dtype="float32") if host.dtype == "float64" else host)


def test_a_dtype_that_is_silently_narrowed_is_a_deviation():
    (found,) = Narrowing(NUMPY).probe().deviations

    assert "float64 is declared, but float64[1]" in found
    assert "came back as float32[1]" in found


@dataclass(frozen=True)
class Miscounting(NumpyBackend):
    def call(self, function, *args):
        return function(*args) + 1


def test_a_wrong_sum_does_not_run():
    found = Miscounting(NUMPY).probe()

    assert not found.runs
    assert "3*3 + 4*4 gave float32[1] [26.0] instead of float32[1] [25.0]" in found.reason


def test_a_missing_library_gives_the_command():
    found = declared(library="no_such_library", requirement="no-such-library").probe()

    assert not found.runs
    assert found.reason == "no_such_library is not installed; pip install no-such-library"
    assert found.version is None


def test_a_library_that_cannot_be_imported_gives_its_words(tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("raise OSError('no such file: libfoo.so')")
    monkeypatch.syspath_prepend(tmp_path)

    found = declared(library="broken_library", requirement="broken").probe()

    assert (
        found.reason
        == "broken_library cannot be imported: OSError: no such file: libfoo.so; pip install broken"
    )


def test_a_missing_device_is_the_reason():
    found = probe(declared(), device_problem=lambda: "no CUDA device: planted")

    assert (found.runs, found.reason) == (False, "no CUDA device: planted")
    assert found.version


def test_a_device_that_fails_is_the_reason():
    def fail():
        raise RuntimeError("driver says no")

    found = probe(declared(), device_problem=fail)

    assert found.reason == "a sum on cpu failed: RuntimeError: driver says no"
