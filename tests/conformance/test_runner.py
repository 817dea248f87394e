"""The runner: a process that dies or hangs costs one case, and every planned case gets an outcome."""

import threading
import time
from collections import Counter

import pytest
from steps_conformance.case import load_cases
from steps_conformance.journal import JournalReader, JournalWriter
from steps_conformance.outcomes import Outcome
from steps_conformance.runner import RowRun, TargetDidNotStartError, look_at_backend, look_at_target
from steps_conformance.worker import Order
from steps_conformance.worker_process import Limits

PACKAGE = "planted_suite.cases"
TARGET = "planted_suite.targets:target"
SHORT = Limits(case_seconds=1.0, start_seconds=60.0, restarts=5)


@pytest.fixture
def run_row(planted, tmp_path):
    """Run cases of the planted suite on one row; return what was found about the row, and the results."""

    def run(ids, *, backend="planted_suite.backends:honest", target=TARGET, limits=SHORT, target_hash=None):
        rows, results = [], []
        order = Order(target, backend, PACKAGE, tuple(ids))
        RowRun(
            order,
            tmp_path / "row",
            limits,
            found_row=rows.append,
            found_result=results.append,
            found_warning=pytest.fail,
            stop=threading.Event(),
            target_hash=target_hash,
        ).run()
        (row,) = rows
        return row, results

    return run


def ids(*parts):
    return [identity for identity in load_cases(PACKAGE) if any(part in identity for part in parts)]


def test_every_way_to_end_costs_one_case(run_row):
    planned = list(load_cases(PACKAGE))

    row, results = run_row(planned)

    assert row.runs
    assert (row.library, row.device, row.reason, row.deviations) == ("numpy", "cpu", None, ())
    assert [result.id for result in results] == planned
    assert Counter(result.outcome for result in results) == {
        Outcome.PASS: 3,
        Outcome.FAIL: 3,
        Outcome.ERROR: 4,
        Outcome.CRASH: 2,
        Outcome.TIMEOUT: 1,
        Outcome.UNSUPPORTED: 1,
    }


def test_a_process_that_ends_with_success_in_a_case_is_a_crash(run_row):
    _, (crash, last) = run_row(ids("with-success", "LAST"))

    assert crash.outcome is Outcome.CRASH
    assert crash.message == "the process ended with status 0 in the middle of the case"
    assert last.outcome is Outcome.PASS


def test_a_crash_shows_the_last_words(run_row):
    _, (crash,) = run_row(ids("is-killed"))

    assert "was ended by signal 6 in the middle of the case" in crash.message
    assert "last words" in crash.message


def test_a_case_that_is_gone_is_not_run_and_no_crash(run_row):
    _, (gone, last) = run_row(["PLANT-GONE-001/x", *ids("LAST")])

    assert (gone.outcome, last.outcome) == (Outcome.NOTRUN, Outcome.PASS)
    assert "the suite changed while the run went on" in gone.message


def test_a_hanging_case_is_a_timeout(run_row):
    began = time.monotonic()

    _, (timeout, last) = run_row(ids("hangs", "LAST"))

    assert (timeout.outcome, timeout.message) == (Outcome.TIMEOUT, "took longer than 1 s")
    assert last.outcome is Outcome.PASS
    assert time.monotonic() - began < 60


def test_restarts_are_bounded_and_the_rest_is_not_run(run_row):
    limits = Limits(case_seconds=1.0, start_seconds=60.0, restarts=1)

    _, results = run_row(ids("CRASH", "TIMEOUT", "LAST"), limits=limits)

    assert [result.outcome for result in results] == [
        *(Outcome.CRASH, Outcome.CRASH, Outcome.NOTRUN, Outcome.NOTRUN),
    ]
    assert results[-1].message == "given up: its process may be started again 1 times"


def test_the_last_permitted_process_may_finish(run_row):
    limits = Limits(case_seconds=1.0, start_seconds=60.0, restarts=2)

    _, results = run_row(ids("CRASH", "LAST"), limits=limits)

    assert [result.outcome for result in results] == [Outcome.CRASH, Outcome.CRASH, Outcome.PASS]


def test_a_target_that_does_not_start_again_leaves_the_rest_not_run(run_row, tmp_path, monkeypatch):
    monkeypatch.setenv("PLANTED_MARK", str(tmp_path / "mark"))

    _, results = run_row(ids("with-success", "LAST"), target="planted_suite.once:target")

    assert [result.outcome for result in results] == [Outcome.CRASH, Outcome.NOTRUN]
    assert results[-1].message == "the target did not start: RuntimeError: planted: only once"


@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        ("planted_suite.backends:absent", "no_such_library is not installed; pip install no-such-library"),
        ("planted_suite.backends:raising", "the probe did not start: RuntimeError: planted: the probe fails"),
        ("planted_suite.backends:missing", "planted_suite.backends has no attribute 'missing'"),
        (
            "no_such_module:row",
            "the backend did not start: ModuleNotFoundError: No module named 'no_such_module'",
        ),
    ],
)
def test_a_backend_that_cannot_run_is_a_row_with_its_reason_and_no_result(run_row, backend, reason):
    row, results = run_row(ids("PASS"), backend=backend)

    assert not row.runs
    assert reason in row.reason
    assert results == []


def test_a_target_that_dies_is_no_crash_of_a_case(run_row):
    row, results = run_row(ids("PASS"), target="planted_suite.dying_target:target")

    assert (row.runs, results) == (False, [])
    assert "the process ended with status 3 before its first case" in row.reason


def test_a_probe_whose_declaration_lies_is_shown(run_row):
    row, _ = run_row(ids("PASS-001"), backend="planted_suite.backends:boastful")

    assert row.deviations == ("flushes_subnormals is declared, but it is not seen",)


def test_another_copy_than_the_named_one_is_shown(run_row):
    row, _ = run_row(ids("PASS-001"), target_hash="f" * 64)

    assert row.deviations == ("it tested another copy than the header names, with the hash 000000000000",)


def test_a_start_that_hangs_is_given_up(run_row):
    row, results = run_row(ids("PASS"), limits=Limits(case_seconds=1.0, start_seconds=0.01, restarts=5))

    assert (row.runs, results) == (False, [])
    assert "the process took too long before its first case" in row.reason


def test_a_row_can_be_stopped(planted, tmp_path):
    stop, results = threading.Event(), []
    order = Order(TARGET, "planted_suite.backends:honest", PACKAGE, tuple(ids("hangs")))
    row = RowRun(
        order,
        tmp_path / "row",
        Limits(),
        found_row=lambda row: stop.set(),
        found_result=results.append,
        found_warning=pytest.fail,
        stop=stop,
    )

    row.run()

    assert results == []


def test_the_target_is_looked_at_in_a_process_of_its_own(planted, tmp_path):
    found = look_at_target(TARGET, tmp_path / "target", SHORT)

    assert (found.name, found.version, found.path) == ("planted", "1.0", "planted/targets.py")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (
            "planted_suite.targets:hashless",
            "NoTargetError: a target must have name, .*hashless, .*, has no hash; ",
        ),
        ("planted_suite.targets:boastful", "ValueError: capabilities must come from .*, got telepathy"),
        (
            "planted_suite.targets:astray",
            "ValueError: expectations must be the absolute path of a file, got 'expectations.toml' .str.",
        ),
        ("planted_suite.targets:missing", "NotFoundError: planted_suite.targets has no attribute 'missing'"),
        ("planted_suite.targets", "NotFoundError: write module:attribute"),
        ("no_such_module:target", "No module named 'no_such_module'"),
        ("planted_suite.dying_target:target", "the process ended with status 3"),
    ],
)
def test_a_target_that_does_not_start_says_why(planted, tmp_path, target, reason):
    with pytest.raises(TargetDidNotStartError, match=f"(?s)target {target}: .*{reason}"):
        look_at_target(target, tmp_path / "target", SHORT)


def test_a_backend_can_be_looked_at_alone(planted):
    assert look_at_backend("planted_suite.backends:honest").runs
    assert not look_at_backend("planted_suite.backends:absent").runs
    assert "did not start" in look_at_backend("planted_suite.backends:raising").reason


def test_the_journal_leaves_a_line_that_is_not_whole(tmp_path):
    file = tmp_path / "journal.jsonl"
    reader = JournalReader(file)
    assert reader.new_events() == []
    writer = JournalWriter(file)

    writer.write("start", id="a")
    with file.open("ab") as stream:
        stream.write(b'{"event": "en')
    first = reader.new_events()
    with file.open("ab") as stream:
        stream.write(b'd", "id": "a"}\n')
    second = reader.new_events()

    assert (first, second) == ([{"event": "start", "id": "a"}], [{"event": "end", "id": "a"}])
    writer.close()
