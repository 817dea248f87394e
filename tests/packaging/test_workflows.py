"""The workflows of GitHub: well formed, safe, about what there is, and right in what their scripts do."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github/workflows"
BASH = shutil.which("bash") or "bash"
# no machine of GitHub has these devices
NEEDS_A_GPU = {"torch-cuda", "cupy", "jax-cuda"}


def read(text):
    return YAML(typ="safe").load(text)


def workflow(name):
    return read((WORKFLOWS / name).read_text(encoding="utf-8"))


def snippet():
    """Return the workflow in the README that another project is to write."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    marker = re.escape("<!-- file: .github/workflows/conformance.yml -->")
    (found,) = re.findall(rf"^{marker}\n```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return found


def linted(program, *arguments, cwd=ROOT):
    call = [Path(sys.executable).with_name(program), *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=False, cwd=cwd, timeout=120)


def schema(*files):
    return linted("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *files)


def security(folder):
    return linted("zizmor", "--offline", "--no-progress", folder)


def test_the_workflows_have_the_form_of_workflows(tmp_path):
    ours = schema(*sorted(WORKFLOWS.glob("*.yml")))
    wrong = tmp_path / "wrong.yml"
    wrong.write_text((WORKFLOWS / "ci.yml").read_text().replace("runs-on:", "runs_on:"))

    assert ours.returncode == 0, ours.stdout
    assert schema(wrong).returncode == 1


def test_the_workflows_are_safe(tmp_path):
    """Inputs do not become parts of scripts, rights are few, and credentials are not kept."""
    ours = security(".github")
    folder = tmp_path / ".github/workflows"
    folder.mkdir(parents=True)
    called = (WORKFLOWS / "conformance.yml").read_text()
    (folder / "injected.yml").write_text(called.replace('"$TARGET"', '"${{ inputs.target }}"'))

    assert ours.returncode == 0, ours.stdout
    injected = security(tmp_path)
    assert injected.returncode != 0
    assert "template-injection" in injected.stdout


def sessions():
    """Return for each nox session that there is the libraries that it can be run for."""
    call = [sys.executable, "-m", "nox", "--list"]
    listed = subprocess.run(call, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    found = {}
    for name, library in re.findall(r"^[*-] (\w+)(?:\(([\w-]+)\))? -> ", listed, re.MULTILINE):
        found.setdefault(name, set()).update({library} - {""})
    return found


def test_every_job_runs_the_nox_session_of_its_name_and_every_session_has_a_job():
    jobs = workflow("ci.yml")["jobs"]
    runs = {
        name: [step["run"] for step in job["steps"] if step.get("run", "").startswith("nox ")]
        for name, job in jobs.items()
    }

    assert {name: len(found) for name, found in runs.items()} == dict.fromkeys(jobs, 1)
    assert {name: re.findall(r'--session "?(\w+)', found[0]) for name, found in runs.items()} == {
        name: [name] for name in jobs
    }
    assert sessions().keys() == jobs.keys()


@pytest.mark.parametrize("job", ["conformance", "compiled", "random"])
def test_every_library_that_needs_no_gpu_is_run(job):
    libraries = set(workflow("ci.yml")["jobs"][job]["strategy"]["matrix"]["backend"])

    assert libraries
    assert libraries == sessions()[job] - NEEDS_A_GPU


def test_the_readme_names_sessions_that_there_are():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r'nox -s "(\w+)\(([\w-]+)\)"', text)

    assert named
    assert [one for one in named if one[1] not in sessions().get(one[0], ())] == []


def test_the_oldest_python_that_we_take_is_tested():
    versions = workflow("ci.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"]
    (oldest,) = re.findall(
        r'^requires-python = ">=(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )

    assert versions == ["3.11", "3.12", "3.13"]
    assert versions[0] == oldest


def test_every_action_is_pinned_and_of_github():
    used = [
        step["uses"]
        for file in WORKFLOWS.glob("*.yml")
        for job in workflow(file.name)["jobs"].values()
        for step in job["steps"]
        if "uses" in step
    ]

    assert used
    assert [one for one in used if not re.fullmatch(r"actions/[a-z-]+@(v\d+|[0-9a-f]{40})", one)] == []


def test_the_snippet_calls_the_workflow_with_inputs_that_it_has(tmp_path):
    (tmp_path / "conformance.yml").write_text(snippet())
    (job,) = read(snippet())["jobs"].values()
    # YAML 1.1 has `on` for true, which this reader does not
    inputs = workflow("conformance.yml")["on"]["workflow_call"]["inputs"]
    required = {name for name, one in inputs.items() if one.get("required")}
    called = re.fullmatch(r"OWNER/steps-core/(.+)@main", job["uses"])

    assert schema(tmp_path / "conformance.yml").returncode == 0
    assert called and (ROOT / called[1]).is_file()
    assert required <= set(job["with"]) <= set(inputs)


def script(name):
    """Return the environment and the text of a step of the reusable workflow."""
    steps = workflow("conformance.yml")["jobs"]["conformance"]["steps"]
    (step,) = [step for step in steps if step.get("name") == name]
    return step["env"], step["run"]


def played(tmp_path, name, inputs, code=0):
    """Run a step as the runner does, with programs that write down what they get; return what came of it."""
    for program in ("steps-conformance", "python"):
        stub = tmp_path / "bin" / program
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(f'#!{BASH}\nprintf "%s\\n" "$@" > called\nexit {code}\n')
        stub.chmod(0o755)
    defaults = {
        key: str(one.get("default", ""))
        for key, one in workflow("conformance.yml")["on"]["workflow_call"]["inputs"].items()
    }
    values = {**defaults, **inputs}
    env, text = script(name)
    filled = {
        key: re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda match: values[match[1]], value)
        for key, value in env.items()
    }
    output = tmp_path / "output"
    done = subprocess.run(
        [BASH, "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
        env={
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_OUTPUT": str(output),
            **filled,
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    called = tmp_path / "called"
    calls = called.read_text().splitlines() if called.exists() else []
    return done, calls, output.read_text() if output.exists() else ""


def test_the_inputs_of_the_snippet_become_the_arguments_of_a_run(tmp_path):
    (job,) = read(snippet())["jobs"].values()
    done, calls, _ = played(tmp_path, "run", {**job["with"], "topics": "clipping adam"})

    assert done.returncode == 0, done.stderr
    assert calls == [
        "run", "--target", "my_target:target", "--report", "conformance-report",
        "--backend", "numpy", "--backend", "torch", "--expectations", "expectations.toml",
        "--topic", "clipping", "--topic", "adam",
    ]  # fmt: skip


def test_pip_gets_the_suite_and_the_requirements(tmp_path):
    (job,) = read(snippet())["jobs"].values()
    _, calls, _ = played(tmp_path, "install", job["with"])
    _, by_default, _ = played(tmp_path, "install", {"target": "a:b"})

    assert calls == ["-m", "pip", "install", "steps-core[conformance,torch]", "-e", "."]
    assert by_default == ["-m", "pip", "install", "steps-core[conformance]", "."]


@pytest.mark.parametrize(
    ("fail_on", "code", "status", "strict"),
    [
        ("must", 0, 0, False),
        ("must", 1, 1, False),
        ("must", 2, 2, False),
        ("should", 1, 1, True),
        ("never", 1, 0, False),
        ("never", 2, 2, False),
    ],
)
def test_fail_on_says_which_verdict_fails_the_job(tmp_path, fail_on, code, status, strict):
    done, calls, output = played(tmp_path, "run", {"target": "a:b", "fail-on": fail_on}, code)

    assert done.returncode == status, done.stderr
    assert ("--strict" in calls) == strict
    assert output == f"exit-code={code}\n"


def test_another_word_for_fail_on_is_refused_before_anything_runs(tmp_path):
    done, calls, _ = played(tmp_path, "run", {"target": "a:b", "fail-on": "May"})

    assert (done.returncode, calls) == (2, [])
    assert "fail-on must be must, should or never, got 'May'" in done.stderr
