"""The script for a CUDA machine, tried on the CPU; no GPU has run it here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools/gpu_check.sh"


def check(report, *options, **variables):
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    call = ["bash", str(SCRIPT), "--report", str(report), *options]
    environment = {**os.environ, "PYTHON": sys.executable, "JAX_PLATFORMS": "cpu", **variables}
    return subprocess.run(call, env=environment, capture_output=True, text=True, check=False, timeout=240)


@pytest.mark.skipif(sys.platform == "win32", reason="the script is Bash, for machines with CUDA")
def test_it_runs_the_suite_and_measures_each_library(tmp_path):
    done = check(tmp_path, "--device", "cpu", "--scale", "0.0001", "--id", "CLIP-GLOBAL-003")

    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "report.md").is_file() and (tmp_path / "report.jsonl").is_file()
    found = json.loads((tmp_path / "speed.json").read_text())["rows"]
    assert list(found) == ["torch", "numpy", "jax"]
    for result in found.values():
        assert result["bandwidth"] > 0
        assert list(result["sizes"]) == ["1 x 10,000", "10 x 100"]  # what was measured
        assert all(taken > 0 for size in result["sizes"].values() for taken in size["seconds"].values())
    text = (tmp_path / "speed.md").read_text()
    assert "| torch | CPU |" in text and "fused Adam with clip_grad_norm_" in text
    assert len(text.splitlines()) == 4 + 2 * (3 + 1 + 1)
    assert text in done.stdout
    assert "suite: conformant in these topics (0); 0 of 3 rows not run" in done.stdout


def test_what_was_not_measured_stands_in_the_table_with_the_reason():
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        from chain_speed import table
    finally:
        sys.path.remove(str(SCRIPT.parent))
    few = {"device": "G", "bandwidth": 1e12, "sizes": {"1,000 x 10,000": {"not_run": "too many leaves"}}}

    text = table({"jax": few, "cupy": {"not_run": "no CUDA device"}})

    assert "| jax | G | 1000.0 | 1,000 x 10,000 | not run: too many leaves | | | |" in text
    assert "| cupy | | | | not run: no CUDA device | | | |" in text


@pytest.mark.skipif(sys.platform == "win32", reason="the script is Bash, for machines with CUDA")
def test_a_missing_device_is_no_success(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    done = check(tmp_path, "--scale", "0.0001", "--id", "CLIP-GLOBAL-003")

    assert done.returncode == 2
    lines = (tmp_path / "speed.md").read_text().splitlines()[4:]
    assert [line[: line.index("not run: ")] for line in lines] == [
        f"| {row} | | | | " for row in ("torch-cuda", "cupy", "jax-cuda")
    ]
    assert "no CUDA device" in (tmp_path / "report.md").read_text()
    assert "suite: no verdict (2); 3 of 3 rows not run" in done.stdout
    assert "| passed" not in (tmp_path / "report.md").read_text()


MISSING = "raise ModuleNotFoundError('there is none', name='{0}')"


@pytest.mark.skipif(sys.platform == "win32", reason="the script is Bash, for machines with CUDA")
def test_a_missing_library_is_said_in_one_line_and_the_others_go_on(tmp_path):
    """In the report of the suite, in the table and at the end."""
    (tmp_path / "jax.py").write_text(MISSING.format("jax"))
    path = {"PYTHONPATH": str(tmp_path)}
    done = check(tmp_path, "--device", "cpu", "--scale", "0.0001", "--id", "CLIP-GLOBAL-003", **path)

    assert done.returncode == 2, done.stdout + done.stderr
    reason = "jax is not installed; pip install jax"
    assert f"not run: jax: {reason}" in done.stdout.splitlines()
    assert f"| jax | | | | not run: {reason} | | | |" in (tmp_path / "speed.md").read_text()
    assert reason in (tmp_path / "report.md").read_text()
    found = json.loads((tmp_path / "speed.json").read_text())["rows"]
    assert [row for row, result in found.items() if "sizes" in result] == ["torch", "numpy"]
    assert "suite: no verdict (2); 1 of 3 rows not run" in done.stdout
