"""A target that takes its process along costs its case, and nothing else: the rest runs."""

import os
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from steps_conformance.outcomes import Outcome
from steps_conformance.runner import RowRun
from steps_conformance.worker import Order
from steps_conformance.worker_process import Limits

PROGRAM = Path(__file__).parent / "planted/planted_suite/violent_command.py"
PACKAGE = "planted_suite.violent"
LAST = "VIOLENT-WAY-002/behaves"
LIMITS = Limits(case_seconds=5.0, start_seconds=60.0, restarts=5)
IN_PROCESS = ("planted_suite.violent_target:target", "planted_suite.backends:honest")
linux = pytest.mark.skipif(
    sys.platform != "linux", reason="limits memory and reads the process table of Linux"
)
posix = pytest.mark.skipif(os.name != "posix", reason="ends processes by signals")


@pytest.fixture
def outcomes_of(planted, tmp_path):
    """Run ways to misbehave, and then the case that behaves; return the results."""

    def run(*ways, through=IN_PROCESS, limits=LIMITS):
        target, backend = through
        results = []
        RowRun(
            Order(target, backend, PACKAGE, (*(f"VIOLENT-WAY-001/misbehaves[{way}]" for way in ways), LAST)),
            tmp_path / "row",
            limits,
            found_row=lambda row: None,
            found_result=results.append,
            found_warning=pytest.fail,
            stop=threading.Event(),
        ).run()
        return results

    return run


@pytest.fixture
def command():
    """The violent target as a command, and its row."""
    return shlex.join([sys.executable, str(PROGRAM)]), "host"


def test_a_target_that_exits_with_success_is_a_crash(outcomes_of):
    exits, last = outcomes_of("exits")

    assert (exits.outcome, last.outcome) == (Outcome.CRASH, Outcome.PASS)
    assert exits.message == "the process ended with status 0 in the middle of the case"


@posix
def test_a_target_that_segfaults_is_a_crash_that_shows_where(outcomes_of):
    segfaults, last = outcomes_of("segfaults")

    assert (segfaults.outcome, last.outcome) == (Outcome.CRASH, Outcome.PASS)
    assert "was ended by signal 11 in the middle of the case" in segfaults.message
    assert "in _segfaults" in segfaults.message


def test_a_target_that_hangs_is_a_timeout(outcomes_of):
    began = time.monotonic()

    hangs, last = outcomes_of("hangs", limits=Limits(case_seconds=1.0, start_seconds=60.0))

    assert (hangs.outcome, last.outcome) == (Outcome.TIMEOUT, Outcome.PASS)
    assert hangs.message == "took longer than 1 s"
    assert time.monotonic() - began < 60


@posix
def test_a_target_that_forks_and_comes_back_twice_is_judged_once(outcomes_of):
    """The child has the suite's own work in its hands, and does not do it."""
    forks, last = outcomes_of("forks")

    assert (forks.outcome, last.outcome) == (Outcome.PASS, Outcome.PASS)


def test_a_thread_that_a_target_leaves_does_not_hold_up_the_end(outcomes_of):
    began = time.monotonic()

    leaves, last = outcomes_of("leaves-a-thread")

    assert (leaves.outcome, last.outcome) == (Outcome.PASS, Outcome.PASS)
    assert time.monotonic() - began < LIMITS.start_seconds / 2


@linux
def test_a_target_that_eats_memory_is_stopped_at_the_limit(outcomes_of):
    limits = Limits(case_seconds=60.0, start_seconds=60.0, memory=1024)

    eats, last = outcomes_of("eats-memory", limits=limits)

    assert (eats.outcome, last.outcome) == (Outcome.ERROR, Outcome.PASS)
    assert "MemoryError" in eats.message
    assert "the process may hold 1024 MiB, as --memory-limit says" in eats.message


def test_a_flood_of_output_hinders_nothing_and_is_kept_nowhere(outcomes_of, tmp_path):
    """20 MB go to standard output and error; the case passes, and no file grows."""
    floods, last = outcomes_of("floods")

    assert (floods.outcome, last.outcome) == (Outcome.PASS, Outcome.PASS)
    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) < 100_000


def test_the_end_of_a_flood_is_shown_with_a_crash(outcomes_of):
    floods, last = outcomes_of("floods-and-exits")

    assert (floods.outcome, last.outcome) == (Outcome.CRASH, Outcome.PASS)
    assert floods.message.endswith("last words")
    assert len(floods.message) < 5_000


def test_a_command_that_exits_is_a_crash_and_is_started_again(outcomes_of, command):
    exits, half, last = outcomes_of("exits", "half-a-line", through=command)

    assert [exits.outcome, half.outcome, last.outcome] == [Outcome.CRASH, Outcome.CRASH, Outcome.PASS]
    assert "asked to apply, the target's process ended with status 0 without an answer" in exits.message
    assert 'in the middle of a line: \'{"id": 3, "res\'' in half.message


@posix
def test_a_command_that_segfaults_is_a_crash(outcomes_of, command):
    segfaults, last = outcomes_of("segfaults", through=command)

    assert (segfaults.outcome, last.outcome) == (Outcome.CRASH, Outcome.PASS)
    assert "the target's process was ended by signal 11" in segfaults.message


def test_a_command_that_prints_between_its_answers_is_an_error(outcomes_of, command):
    garbage, last = outcomes_of("garbage", through=command)

    assert (garbage.outcome, last.outcome) == (Outcome.ERROR, Outcome.PASS)
    assert garbage.message.startswith(
        "the target broke the protocol: asked to apply: answered what is no JSON"
    )
    assert "progress: 50 %" in garbage.message


@linux
def test_a_command_that_hangs_is_a_timeout_and_is_gone(outcomes_of, command):
    hangs, last = outcomes_of("hangs", through=command, limits=Limits(case_seconds=2.0, start_seconds=60.0))

    assert (hangs.outcome, last.outcome) == (Outcome.TIMEOUT, Outcome.PASS)
    # the signal is sent; the command belongs to nobody by now, so that nobody can wait for its end
    assert comes_true(lambda: not running(str(PROGRAM)))


@linux
def test_a_command_that_eats_memory_costs_its_case(outcomes_of, command):
    limits = Limits(case_seconds=60.0, start_seconds=60.0, memory=1024)

    eats, last = outcomes_of("eats-memory", through=command, limits=limits)

    assert (eats.outcome, last.outcome) == (Outcome.CRASH, Outcome.PASS)
    assert "MemoryError" in eats.message


def test_a_command_that_ends_too_often_leaves_the_rest_not_run(outcomes_of, command):
    limits = Limits(case_seconds=5.0, start_seconds=60.0, restarts=1)

    results = outcomes_of("exits", "half-a-line", "garbage", through=command, limits=limits)

    assert [result.outcome for result in results] == [
        *(Outcome.CRASH, Outcome.CRASH, Outcome.NOTRUN, Outcome.NOTRUN),
    ]
    assert results[-1].message == (
        "given up: the target's process may be started again 1 times, see --restarts"
    )


@linux
def test_a_command_does_not_outlive_a_run_that_is_killed(planted, command):
    """Even a command that neither reads nor ends: the worker ends its whole group."""
    script = "from planted_suite.hanging_run import main; main()"
    environment = {**os.environ, "VIOLENT_COMMAND": command[0]}
    process = subprocess.Popen([sys.executable, "-c", script], env=environment)
    assert comes_true(lambda: running(str(PROGRAM)))

    process.kill()
    process.wait()

    assert comes_true(lambda: not running(str(PROGRAM)))


def comes_true(holds):
    until = time.monotonic() + 30
    while time.monotonic() < until and not holds():
        time.sleep(0.05)
    return holds()


def running(name):
    """Return the ids of the processes with a name in their command line."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes()
        except OSError:
            continue
        if name.encode() in words:
            found.append(file.parent.name)
    return found
