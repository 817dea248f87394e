"""The wheel holds three packages and nothing else, and works without the checkout around it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"steps_core", "steps_backends", "steps_conformance"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return a wheel built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    built = subprocess.run(command, capture_output=True, text=True, check=False)

    assert built.returncode == 0, built.stdout + built.stderr
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Return a folder into which pip installed the wheel."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", folder, wheel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    return folder


def test_the_wheel_installs_exactly_three_packages(installed):
    names = {path.name for path in installed.iterdir()}
    made_by_pip = {name for name in names if name == "bin" or name.endswith(".dist-info")}

    assert names - made_by_pip == PACKAGES
    assert [name.split("-")[0] for name in made_by_pip if name != "bin"] == ["steps_core"]


def test_the_wheel_holds_every_file_of_the_packages(wheel):
    """Requirements, templates and the type marker are data: a build that drops them still imports."""
    expected = {
        path.relative_to(home).as_posix()
        for home, package in (
            (ROOT, "steps_core"),
            (ROOT / "backends", "steps_backends"),
            (ROOT / "conformance", "steps_conformance"),
        )
        for path in (home / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert held == expected
    assert {f"{package}/py.typed" for package in PACKAGES} <= held


def test_the_installed_packages_work_from_another_folder(installed, tmp_path):
    command = [sys.executable, "-W", "error", Path(__file__).with_name("installed.py")]
    environment = {"PYTHONPATH": str(installed)}
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert result.returncode == 0, result.stderr


def test_the_check_of_an_installed_distribution_refuses_the_checkout(tmp_path):
    """Beside it, the checkout of this very test is no installed distribution."""
    environment = {"PYTHONPATH": ":".join(str(ROOT / home) for home in ("", "backends", "conformance"))}
    command = [sys.executable, Path(__file__).with_name("installed.py")]
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert result.returncode == 1
    assert "AssertionError" in result.stderr
