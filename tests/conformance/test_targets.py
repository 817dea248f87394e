"""Targets: which copy was tested, and what counts as a refusal."""

from types import ModuleType

import pytest
from steps_conformance.descriptions import description
from steps_conformance.targets.protocol import CAPABILITIES, OptionalMethods, Refusal
from steps_conformance.targets.provenance import source_hash
from steps_conformance.targets.steps_core import PackageTarget, refusals


@pytest.fixture
def package(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.py").write_text("a = 1\n")
    (tmp_path / "inner" / "b.py").write_text("b = 1\n")
    return tmp_path


def test_the_hash_depends_on_sources_alone(package):
    before = source_hash(package)

    (package / "notes.txt").write_text("no source")
    (package / "__pycache__").mkdir()
    (package / "a.py").write_bytes(b"a = 1\r\n")

    assert source_hash(package) == before


def test_every_change_of_the_sources_changes_the_hash(package):
    hashes = [source_hash(package)]

    (package / "a.py").write_text("a = 2\n")
    hashes.append(source_hash(package))
    (package / "a.py").rename(package / "c.py")
    hashes.append(source_hash(package))
    (package / "inner" / "b.py").unlink()
    hashes.append(source_hash(package))
    (package / "d.py").touch()
    hashes.append(source_hash(package))

    assert len(set(hashes)) == len(hashes)


def test_bytes_that_move_from_one_file_to_the_next_change_the_hash(package):
    (package / "a.py").write_text("1\n2\n")
    before = source_hash(package)

    (package / "a.py").write_text("1\n")
    (package / "inner" / "b.py").write_text("2\nb = 1\n")

    assert source_hash(package) != before


def test_a_file_can_be_hashed_alone(package):
    assert source_hash(package / "a.py") != source_hash(package / "inner" / "b.py")


def planted_module():
    module = ModuleType("planted_module")
    module.StepsError = type("StepsError", (Exception,), {})
    return module


@pytest.mark.parametrize("builtin", [ValueError, TypeError, KeyError])
def test_own_errors_become_refusals_with_their_notes(builtin):
    module = planted_module()
    error = type("OwnError", (module.StepsError, builtin), {"__str__": lambda self: "the text"})()
    error.add_note("in step2 (AdamStep)")

    with pytest.raises(Refusal, match=f"{builtin.__name__}: the text\nin step2") as caught, refusals(module):
        raise error

    assert (caught.value.kind, caught.value.message) == (builtin.__name__, "the text\nin step2 (AdamStep)")


def test_other_exceptions_are_faults():
    with pytest.raises(ValueError, match="of a library"), refusals(planted_module()):
        raise ValueError("of a library")


def test_an_own_error_without_a_builtin_class_is_a_fault():
    module = planted_module()

    with pytest.raises(AssertionError, match="StepsError must derive from one of"), refusals(module):
        raise module.StepsError("text")


def test_the_target_has_the_methods_of_what_it_claims():
    methods = {name for name in vars(OptionalMethods) if not name.startswith("_")}

    target = PackageTarget()

    assert target.capabilities == set(CAPABILITIES)
    assert all(callable(getattr(target, name)) for name in methods)


def test_the_installed_package_is_found():
    target = PackageTarget()

    assert (target.name, target.hash) == ("steps_core", source_hash(target.path))
    assert target.describe(description("SGDStep")) == {"step": "SGDStep", "options": {}}
    with pytest.raises(Refusal, match="UnknownStep"):
        target.make(description("UnknownStep"))


def test_naming_the_target_imports_nothing():
    assert PackageTarget("no_such_package").name == "no_such_package"
