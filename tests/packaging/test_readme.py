"""What the README says is true: its code runs, its table is complete, CI runs its commands."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import steps_core

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def code() -> str:
    """Return the Python code that a reader types in order; files of their own are left out."""
    return "".join(re.findall(r"(?<!-->\n)^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL))


def file(name: str) -> str:
    """Return the text of a file that the reader is to write."""
    pattern = rf"^<!-- file: {re.escape(name)} -->\n```[a-z]+\n(.*?)^```$"
    (found,) = re.findall(pattern, README, re.MULTILINE | re.DOTALL)
    return found


def command(name: str) -> str:
    (found,) = re.findall(rf"^<!-- command: {name} -->\n```sh\n(.*)\n```$", README, re.MULTILINE)
    return found


def test_the_python_code_runs_from_top_to_bottom(tmp_path):
    """Later blocks go on where earlier ones stopped, as a reader does."""
    program = tmp_path / "readme.py"
    program.write_text(code())
    result = subprocess.run(
        [sys.executable, "-W", "error", program], capture_output=True, text=True, check=False
    )

    assert "step.init(weights)" in code()
    assert result.returncode == 0, result.stderr


def test_the_target_runs_and_is_judged(tmp_path):
    """The clip there is wrong for large and small gradients, and right for ordinary ones."""
    (tmp_path / "my_target.py").write_text(file("my_target.py"))
    (line,) = re.findall(r"^steps-conformance (run --target my_target:target .*)$", README, re.MULTILINE)
    result = subprocess.run(
        [Path(sys.executable).with_name("steps-conformance"), *shlex.split(line), "--report", "report"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    records = map(json.loads, (tmp_path / "report/report.jsonl").read_text().splitlines())
    outcomes = {record["id"]: record["outcome"] for record in records if record["record"] == "case"}

    assert result.returncode == 1, result.stdout + result.stderr
    assert {"PASS", "FAIL"} <= set(outcomes.values()) <= {"PASS", "FAIL", "ERROR"}


def test_the_deviations_that_the_target_declares_come_true(tmp_path):
    for name in ("my_target.py", "expectations.toml"):
        (tmp_path / name).write_text(file(name))
    (line,) = re.findall(r"^steps-conformance (run --expectations .*)$", README, re.MULTILINE)
    chosen = ("--backend", "numpy", "--id", "CLIP-GLOBAL-003", "--id", "CLIP-GLOBAL-004")
    subprocess.run(
        [Path(sys.executable).with_name("steps-conformance"), *shlex.split(line), *chosen],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )

    records = [json.loads(line) for line in (tmp_path / "report/report.jsonl").read_text().splitlines()]
    expected = [record for record in records if record["record"] == "expected"]

    assert {record["outcome"] for record in expected} == {"XFAIL"}
    assert {record["declared"] for record in expected} == {"CLIP-GLOBAL-004"}


def test_the_table_shows_every_step_and_schedule():
    public = {name for name in steps_core.__all__ if name.endswith(("Step", "Schedule"))} - {"Step"}
    shown = set(re.findall(r"`(\w+(?:Step|Schedule))(?:\(.*?\))?`", README))

    assert public == shown


@pytest.mark.parametrize("name", ["main", "test"])
def test_a_command_sets_everything_up_by_itself(name):
    text = command(name)

    assert text.startswith("python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e ")
    assert text.count(" && ") == 2


def test_ci_takes_the_test_command_from_here():
    """CI reads the README with this expression; were it to find nothing, it would stop with an error."""
    script = (ROOT / ".ci/run").read_text()
    expression = re.findall(r"^readme_command\(\) \{\n(.*?)^\}$", script, re.MULTILINE | re.DOTALL)
    result = subprocess.run(
        [shutil.which("bash") or "bash", "-c", expression[0], "readme_command", "test"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert result.stdout.strip() == command("test")
    assert "readme_command test" in script


def test_every_file_and_folder_that_is_linked_exists():
    targets = [t for t in re.findall(r"\]\(([^)]+)\)", README) if "://" not in t]

    assert targets
    assert [t for t in targets if not (ROOT / t.split("#")[0]).exists()] == []
