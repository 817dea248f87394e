"""A copy of steps_core under any name works where steps_core is not installed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys

class Absent:
    '''Makes the original impossible to import, whatever is installed around this test.'''
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("steps_core", "steps_backends", "steps_conformance"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import pathlib
import pkgutil
import numpy as np
import yourlib._vendor.any_name as steps

for module in pkgutil.walk_packages(steps.__path__, steps.__name__ + "."):
    __import__(module.name)

step = steps.ChainedStep(steps.GradientClippingStep(variant="global", threshold=1.0), steps.AdamStep())
weights = {"layer": [np.ones((2, 3), np.float32), np.ones(3, np.float32)]}
gradients = {"layer": [np.full((2, 3), 2, np.float32), np.full(3, -2, np.float32)]}
updates, state = step(gradients, weights, step.init(weights))
weights = steps.apply_updates(weights, updates)
assert abs(float(weights["layer"][0][0, 0]) - 0.999) < 1e-6, weights

steps.save_state(state, pathlib.Path(sys.argv[1]))
again = steps.load_state(pathlib.Path(sys.argv[1]), like=step.init(weights))
assert int(again["step2"]["count"]) == 1
assert steps.build(step.describe()) == step
print(steps.__file__, steps.__version__)
assert not any(name.split(".")[0] == "steps_core" for name in sys.modules)
"""


@pytest.fixture
def yourlib(tmp_path):
    """Return a folder in which another library holds a copy."""
    vendor = tmp_path / "yourlib/_vendor"
    shutil.copytree(ROOT / "steps_core", vendor / "any_name", ignore=shutil.ignore_patterns("__pycache__"))
    (vendor / "__init__.py").touch()
    (vendor.parent / "__init__.py").touch()
    return tmp_path


def run(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_copy_trains_saves_and_builds_without_the_original(yourlib):
    result = run(yourlib, PROGRAM, "state.safetensors")

    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(str(yourlib))


def test_the_original_cannot_be_reached_in_that_test(yourlib):
    program = PROGRAM.replace("import yourlib._vendor.any_name as steps", "import steps_core as steps")

    result = run(yourlib, program, "state.safetensors")

    assert result.returncode == 1
    assert "No module named 'steps_core'" in result.stderr


def test_a_copy_brings_its_licence_and_version(yourlib):
    copy = yourlib / "yourlib/_vendor/any_name"

    assert (copy / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert (copy / "_version.py").is_file()


def test_steps_of_a_copy_and_of_the_original_stand_in_one_chain(yourlib):
    program = """
import numpy as np
import steps_core
import yourlib._vendor.any_name as copied

clip = copied.GradientClippingStep(variant="global", threshold=1.0)
chain = steps_core.ChainedStep(clip, steps_core.ScalingStep(scale=-1.0))
gradients = np.asarray([3.0, 4.0], np.float32)
updates, _ = chain(gradients, gradients, chain.init(gradients))
assert updates.tolist() == [np.float32(-0.6), np.float32(-0.8)], updates
"""
    result = run(yourlib, program)

    assert result.returncode == 0, result.stderr
