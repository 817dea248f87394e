"""The command: what it prints, what it writes, and its exit codes."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from steps_conformance.reports.jsonl import read

ROOT = Path(__file__).resolve().parents[2]
ONE_CASE = "CLIP-OPTION-001/default-is-per-weight-with-one"


def command(*arguments, **options):
    call = [sys.executable, "-m", "steps_conformance", *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=False, timeout=300, **options)


def test_a_run_that_passes_is_written_and_ends_with_0(tmp_path):
    done = command(
        "run", "--backend", "numpy", "--id", ONE_CASE, "--report", str(tmp_path / "new" / "report")
    )

    assert done.returncode == 0, done.stderr
    assert "conformant" in done.stdout
    written = tmp_path / "new" / "report"
    assert {file.name for file in written.iterdir()} == {
        "report.jsonl",
        "report.md",
        "report.html",
        "report.xml",
        "badge.json",
    }
    report = read(written / "report.jsonl")
    assert (report.complete, [result.outcome for result in report.results]) == (True, ["PASS"])
    assert report.header.target.name == "steps_core"


def test_a_target_that_fails_ends_with_1(planted):
    done = command("run", "--backend", "numpy", "--id", ONE_CASE, "--target", "planted_suite.targets:target")

    assert done.returncode == 1
    assert "FAIL CLIP-OPTION-001/default-is-per-weight-with-one on numpy" in done.stdout
    assert "the target refused: KeyError: no step is called 'GradientClippingStep'" in done.stdout


def test_a_target_that_does_not_start_ends_with_2(planted):
    done = command("run", "--backend", "numpy", "--target", "planted_suite.dying_target:target")

    assert done.returncode == 2
    assert "target planted_suite.dying_target:target: the process ended with status 3" in done.stderr


def test_a_named_backend_that_does_not_run_ends_with_2(planted):
    asked = ("--backend", "numpy", "--backend", "planted_suite.backends:absent")

    done = command("run", *asked, "--id", ONE_CASE)

    assert done.returncode == 2
    assert "no_such_library is not installed; pip install no-such-library" in done.stdout
    assert "no verdict" in done.stdout


def test_a_probe_that_disagrees_with_the_declaration_ends_with_2(planted):
    done = command("run", "--backend", "planted_suite.backends:boastful", "--id", ONE_CASE)

    assert done.returncode == 2
    assert "flushes_subnormals is declared, but it is not seen" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--backend", "nunpy"), "no backend is called 'nunpy'; there are numpy, numpy-readonly, torch"),
        (
            ("--id", "CLIP-OPTION-999"),
            "no case has the id 'CLIP-OPTION-999'; there are, for example, CLIP-OPTION",
        ),
        (("--topic", "cliping"), "no case has the topic 'cliping'; there are, for example, clipping"),
        (("--jobs", "0"), "Invalid value for '--jobs'"),
    ],
)
def test_wrong_use_ends_with_2_and_says_what_there_is(arguments, text):
    done = command("run", *arguments)

    assert done.returncode == 2
    assert text in " ".join(done.stderr.split())


def test_the_list_shows_requirements_and_cases():
    done = command("list", "--topic", "clipping")

    assert "CLIP-OPTION-001" in done.stdout
    assert "SCHEDULE-" not in done.stdout
    assert ONE_CASE in command("list", "--topic", "clipping", "--cases").stdout.splitlines()


def test_every_backend_is_shown_with_its_reason():
    done = command("backends")

    assert done.returncode == 0
    assert "numpy-readonly" in done.stdout
    assert "cupy" in done.stdout


@pytest.fixture
def started(request, planted, tmp_path):
    """A run in the middle of its cases, and its report; of a parent that ignores SIGINT, where asked."""
    call = [sys.executable, "-m", "steps_conformance", "run", "--backend", "numpy", "--report", str(tmp_path)]
    if getattr(request, "param", None) == "ignored":
        # as a shell starts what runs in the background
        call = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *call]
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    report = tmp_path / "report.jsonl"
    assert comes_true(lambda: report.exists() and report.read_text().count("\n") > 5)
    yield process, report
    process.kill()
    process.communicate()


def comes_true(holds):
    until = time.monotonic() + 60
    while time.monotonic() < until and not holds():
        time.sleep(0.05)
    return holds()


@pytest.mark.skipif(os.name != "posix", reason="sends a signal of POSIX")
@pytest.mark.parametrize(
    ("started", "name"),
    [("asked", "SIGINT"), ("ignored", "SIGINT"), ("asked", "SIGTERM")],
    indirect=["started"],
)
def test_an_interrupted_run_leaves_a_report_without_a_footer(started, name):
    process, report = started

    process.send_signal(signal.Signals[name])
    _, said = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "interrupted" in said
    assert not read(report).complete


@pytest.mark.skipif(not Path("/proc").exists(), reason="reads the process table of Linux")
def test_no_worker_outlives_a_run_that_is_killed(started):
    process, _ = started
    workers = children(process.pid)
    assert workers

    process.kill()
    process.communicate(timeout=60)

    assert comes_true(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def children(parent):
    """Return the ids of the processes that a process started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # after the name, which stands in brackets: state, then the parent's id
            if int(status.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(status.parent.name))
    return found


@pytest.fixture
def checkout(tmp_path):
    """A copy of the three packages and nothing else."""
    for part in ("steps_core", "backends/steps_backends", "conformance"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_a_bare_checkout_tests_itself(checkout):
    call = [
        sys.executable,
        "conformance",
        "run",
        "--backend",
        "numpy",
        "--id",
        ONE_CASE,
        "--report",
        "report",
    ]

    done = subprocess.run(call, cwd=checkout, capture_output=True, text=True, check=False, timeout=300)

    assert done.returncode == 0, done.stdout + done.stderr
    assert Path(read(checkout / "report" / "report.jsonl").header.target.path) == checkout / "steps_core"


def test_a_bare_checkout_without_packages_gives_one_line(checkout):
    # -S: without site-packages
    call = [sys.executable, "-S", "conformance", "run"]

    done = subprocess.run(call, cwd=checkout, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("not installed: array-api-compat, ")
    assert "; pip install array-api-compat " in line
