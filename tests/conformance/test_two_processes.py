"""The row of DTensors: cases run in two processes at once, and what happens to either is seen."""

import json
import os
import subprocess
import sys

import pytest

TARGET = """
import os
from steps_conformance.targets.steps_core import PackageTarget

class Faulty(PackageTarget):
    def make(self, description):
        import torch.distributed as dist
        if dist.get_rank() == 1 and description["step"] == "CenteringStep":
            os._exit(3)
        if dist.get_rank() == 1 and description["step"] == "WeightDecayStep":
            raise LookupError("only here")
        return super().make(description)

target = Faulty()
"""


@pytest.fixture
def gloo():
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this build of torch has no gloo")


@pytest.fixture
def run(tmp_path):
    """Run chosen cases on the row, and return exit code and results by id."""

    def with_options(*options):
        call = [sys.executable, "-m", "steps_conformance", "run", "--backend", "torch-dtensor"]
        path = os.pathsep.join([str(tmp_path), *sys.path])
        done = subprocess.run(
            [*call, "--report", str(tmp_path / "report"), *options],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        lines = (tmp_path / "report/report.jsonl").read_text().splitlines()
        found = [line for line in map(json.loads, lines) if "outcome" in line]
        return done, {line["id"]: line for line in found}

    return with_options


@pytest.mark.usefixtures("gloo")
def test_the_rules_of_shards_hold_in_two_processes(run):
    done, results = run("--id", "SHARD-003", "--id", "SHARD-004/reductions-do-not-grow-with-the-leaves")

    assert done.returncode == 0, done.stdout + done.stderr
    assert {line["outcome"] for line in results.values()} == {"PASS"}
    assert len(results) == 3


@pytest.mark.usefixtures("gloo")
def test_a_failure_of_the_second_process_is_the_case_s_and_the_row_goes_on(run, tmp_path):
    """It dies, or fails alone while the first one waits for it."""
    (tmp_path / "faulty.py").write_text(TARGET)
    names = ("weight-decay", "centering", "sgd")
    cases = [f"SHARD-002/results-lie-as-gradients-do[{name}]" for name in names]
    chosen = [argument for case in cases for argument in ("--id", case)]
    done, results = run("--target", "faulty:target", *chosen)

    assert done.returncode == 1, done.stdout + done.stderr
    assert [results[case]["outcome"] for case in cases] == ["ERROR", "CRASH", "PASS"]
    assert results[cases[0]]["message"].startswith("in process 1 of two: LookupError: only here")
    assert "the second process ended with status 3" in results[cases[1]]["message"]


def test_elsewhere_the_row_is_not_run_and_says_why():
    import steps_backends

    probe = steps_backends.get("torch-dtensor").probe()
    assert not probe.runs
    assert "it needs two processes" in probe.reason or "is not installed" in probe.reason


NO_GLOO = """
import types
__version__ = "1.0"
distributed = types.SimpleNamespace(is_available=lambda: False)
"""


@pytest.mark.parametrize(
    ("torch", "reason"),
    [
        ("raise ModuleNotFoundError('there is none', name='torch')", "torch is not installed; pip install"),
        ("raise OSError('no libtorch')", "torch cannot be imported: OSError: no libtorch"),
        (NO_GLOO, "this build of torch has no gloo"),
    ],
    ids=["missing", "broken", "without gloo"],
)
def test_what_is_missing_is_said_as_of_any_row(run, tmp_path, torch, reason):
    """The second process is not started, and is not to blame."""
    (tmp_path / "torch.py").write_text(torch)
    done, results = run("--id", "SHARD-003")

    assert done.returncode == 2, done.stdout + done.stderr
    assert reason in " ".join(done.stdout.split())
    assert "process did not start" not in done.stdout
    assert results == {}
