"""A copy of the package in a folder is tested as it lies there, under the folder's name."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from steps_conformance.reports.jsonl import read
from steps_conformance.reports.markdown import plain
from steps_conformance.runner import TargetDidNotStartError, look_at_target
from steps_conformance.targets.copy import NoPackageError, load_copy
from steps_conformance.targets.provenance import source_hash
from steps_conformance.worker_process import Limits

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def copied(tmp_path):
    """Copy the package under a name, with one text replaced in one of its files."""

    def copy(name, file="__init__.py", old="", new=""):
        folder = tmp_path / "yourlib/_vendor" / name
        shutil.copytree(ROOT / "steps_core", folder, ignore=shutil.ignore_patterns("__pycache__"))
        changed = folder / file
        assert old in changed.read_text()
        changed.write_text(changed.read_text().replace(old, new, 1) if old else changed.read_text())
        return folder

    return copy


def run(folder, report, *arguments):
    call = [
        sys.executable,
        "-m",
        "steps_conformance",
        "run",
        "--target",
        f"path:{folder}",
        "--backend",
        "numpy",
    ]
    done = subprocess.run(
        [*call, "--report", str(report), *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    return done, read(report / "report.jsonl") if (report / "report.jsonl").exists() else None


def test_a_copy_is_tested_and_the_header_says_which(copied, tmp_path):
    folder = copied("any_name")

    done, report = run(folder, tmp_path / "report", "--id", "CLIP-GLOBAL-003")

    assert done.returncode == 0, done.stdout + done.stderr
    target = report.header.target
    assert (target.name, target.path, target.hash) == ("any_name", str(folder), source_hash(folder))
    assert target.warnings == ()
    assert "warning" not in done.stderr


def test_a_copy_of_the_same_name_is_tested_and_not_the_installed_package(copied, tmp_path):
    """Its fault is found: a norm that it computes is not the one that was installed."""
    folder = copied(
        "steps_core", "steps/clipping.py", "    norm = call.global_norm(gradients)\n", "    norm = None\n"
    )

    done, report = run(folder, tmp_path / "report", "--id", "CLIP-GLOBAL-001")

    assert done.returncode == 1, done.stdout + done.stderr
    assert report.header.target.path == str(folder)
    assert "FAIL" in {result.outcome for result in report.results}


def test_a_copy_that_reaches_for_another_copy_is_a_warning(copied, tmp_path):
    folder = copied("any_name", "__init__.py", '"""', 'import steps_core as _wrong\n\n"""')

    done, report = run(folder, tmp_path / "report", "--id", "CLIP-GLOBAL-003")

    (warning,) = report.header.target.warnings
    assert warning.startswith(f"another copy is loaded beside the tested one, from {ROOT / 'steps_core'}; ")
    assert f"warning: {warning}" in done.stderr


def test_a_copy_that_reaches_for_another_copy_in_the_middle_of_a_case_is_a_warning_in_every_form(
    copied, tmp_path
):
    late = "    import steps_core as _wrong\n    norm = call.global_norm(gradients)\n"
    folder = copied("any_name", "steps/clipping.py", "    norm = call.global_norm(gradients)\n", late)

    done, report = run(folder, tmp_path / "report", "--id", "CLIP-GLOBAL-003")

    assert done.returncode == 0, done.stdout + done.stderr
    assert report.header.target.warnings == ()
    (warning,) = report.warnings()
    assert warning.startswith(
        f"numpy: another copy is loaded beside the tested one, from {ROOT / 'steps_core'}; "
    )
    assert f"warning: {warning}" in done.stderr
    assert f"- warning: {plain(warning)}" in (tmp_path / "report/report.md").read_text()
    assert f"<li>{warning}</li>" in (tmp_path / "report/report.html").read_text()
    assert read(tmp_path / "report/report.jsonl").warnings() == [warning]


def test_another_copy_is_seen_in_a_module_that_nothing_imports(copied, tmp_path):
    folder = copied("any_name")
    (folder / "steps/lonely.py").write_text("import steps_core as _wrong\n")

    facts = look_at_target(f"path:{folder}", tmp_path / "target", Limits())

    assert len(facts.warnings) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("json", "the name json is taken by another module; rename the folder .*/json"),
        ("steps.core", "cannot be imported with a dot in its name; rename the folder"),
    ],
)
def test_a_name_that_cannot_be_imported_is_refused(copied, name, text):
    with pytest.raises(NoPackageError, match=text):
        load_copy(copied(name))


def test_a_folder_that_is_no_package_says_so(tmp_path):
    with pytest.raises(
        TargetDidNotStartError, match=r"NoPackageError: path: must name the folder of a package"
    ):
        look_at_target(f"path:{tmp_path}", tmp_path / "target", Limits())


def test_a_copy_that_fails_when_it_is_imported_leaves_no_half_of_itself(copied):
    folder = copied("broken_copy", "__init__.py", '"""', 'raise RuntimeError("planted")\n"""')

    with pytest.raises(RuntimeError, match="planted"):
        load_copy(folder)

    assert "broken_copy" not in sys.modules
