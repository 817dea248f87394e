"""Going on with a run that broke off: what is finished stays, the rest is run, and two runs never mix."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from steps_conformance.allowances import Allowance
from steps_conformance.expectations.model import Expectation
from steps_conformance.outcomes import Outcome
from steps_conformance.reports.jsonl import JsonLinesWriter, read
from steps_conformance.reports.model import (
    CaseResult,
    Header,
    Report,
    RequirementFacts,
    RowFacts,
    TargetFacts,
)
from steps_conformance.resuming import ResumeError, check_same_run, read_broken_off, remaining

RUN = ("run", "--backend", "numpy", "--id", "CLIP-OPTION-009", "--id", "CLIP-GLOBAL-003")


def command(*arguments):
    call = [sys.executable, "-m", "steps_conformance", *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The lines of a report that is whole."""
    folder = tmp_path_factory.mktemp("whole")
    done = command(*RUN, "--report", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "report.jsonl").read_text().splitlines(keepends=True)


@pytest.fixture
def broken_off(whole, tmp_path):
    """Write the first lines of that report, some of them changed, and half of one more."""

    def write(count=6, *, change=lambda record: record):
        lines = [json.dumps(change(json.loads(line))) + "\n" for line in whole[:count]]
        (tmp_path / "report.jsonl").write_text("".join(lines) + whole[count][:40])
        return tmp_path / "report.jsonl"

    return write


def cases(file):
    records = map(json.loads, file.read_text().splitlines())
    return {record["id"]: record for record in records if record["record"] == "case"}


def test_what_is_finished_keeps_its_outcome_and_the_rest_is_run(broken_off, tmp_path):
    """The finished cases are marked, so that one that were run again would lose its mark."""

    def mark(record):
        return record | {"seconds": 1234.5} if record["record"] == "case" else record

    file = broken_off(change=mark)
    kept = read_broken_off(file)

    done = command(*RUN, "--resume", str(tmp_path))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "conformant" in done.stdout
    report = read(file)
    assert report.complete
    assert [result.id for result in report.results] == list(report.header.planned)
    marked = {result.id for result in report.results if result.seconds == 1234.5}
    assert marked == {result.id for result in kept.results}
    assert len(marked) == 4
    assert (tmp_path / "report.html").exists()
    assert file.read_text().count('"record": "row"') == 1


def test_a_failure_that_was_found_before_still_counts(broken_off, tmp_path):
    def fail(record):
        outcome = {"outcome": "CRASH", "message": "planted"} if record["record"] == "case" else {}
        return record | outcome

    broken_off(change=fail)

    done = command(*RUN, "--resume", str(tmp_path))

    assert done.returncode == 1
    assert "planted" in done.stdout


def test_a_run_without_any_result_starts_from_the_beginning(broken_off, tmp_path):
    file = broken_off(1)

    done = command(*RUN, "--resume", str(tmp_path))

    assert done.returncode == 0, done.stdout + done.stderr
    assert read(file).complete


def target(**changes):
    return lambda record: (
        record | {"target": record["target"] | changes} if record["record"] == "header" else record
    )


def header(**changes):
    return lambda record: record | changes if record["record"] == "header" else record


def row(**changes):
    return lambda record: record | changes if record["record"] == "row" else record


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (target(hash="f" * 64), "target hash: was 'ffff"),
        (header(suite_hash="e" * 64), "suite_hash: was 'eeee"),
        (row(version="1.0"), "backend numpy: version: was '1.0', is '"),
    ],
    ids=["hash", "suite", "library"],
)
def test_another_run_is_refused_and_the_report_is_left_as_it_was(broken_off, tmp_path, change, text):
    file = broken_off(change=change)
    before = file.read_text()

    done = command(*RUN, "--resume", str(tmp_path))

    assert done.returncode == 2
    assert "this is not the run that broke off" in done.stderr
    assert text in done.stderr
    assert "run all of it anew, with --report instead of --resume" in done.stderr
    assert file.read_text() == before


def test_other_cases_are_refused(broken_off, tmp_path):
    broken_off()

    done = command("run", "--backend", "numpy", "--id", "CLIP-GLOBAL-003", "--resume", str(tmp_path))

    assert done.returncode == 2
    assert "planned cases: 4 gone, such as CLIP-OPTION-009/state-is-an-empty-dict" in done.stderr


def test_a_report_that_is_whole_is_not_gone_on_with(whole, tmp_path):
    (tmp_path / "report.jsonl").write_text("".join(whole))

    done = command(*RUN, "--resume", str(tmp_path))

    assert done.returncode == 2
    assert "is whole; run the suite with --report" in done.stderr


def test_wrong_use_says_what_to_do(tmp_path):
    nothing = command(*RUN, "--resume", str(tmp_path))
    both = command(*RUN, "--resume", str(tmp_path), "--report", str(tmp_path / "other"))

    assert (nothing.returncode, both.returncode) == (2, 2)
    assert "nothing to resume: " in nothing.stderr
    assert "leave --report out" in both.stderr


HEADER = Header(
    suite="1",
    python="3",
    platform="here",
    started="2026-01-01T00:00:00+00:00",
    target=TargetFacts("t", "1", "p", "h"),
    rows=("numpy",),
    named=(),
    requirements={"A-001": RequirementFacts("A-001", "MUST", "title", "topic")},
    planned={"A-001/a": "A-001", "A-001/b": "A-001"},
)
ROW = RowFacts("numpy", runs=True, library="numpy", version="2", device="cpu")


def written(tmp_path, *things):
    writer = JsonLinesWriter(tmp_path / "report.jsonl")
    writer.started(HEADER)
    for thing in things:
        (writer.found_row if isinstance(thing, RowFacts) else writer.found_result)(thing)
    writer.close()
    return tmp_path / "report.jsonl"


def test_a_case_that_was_not_run_and_a_backend_that_did_not_run_are_tried_again(tmp_path):
    absent = RowFacts("jax", runs=False, reason="not installed")
    results = [
        CaseResult("numpy", "A-001/a", Outcome.NOTRUN, "given up"),
        CaseResult("numpy", "A-001/b", Outcome.FAIL),
    ]

    kept = read_broken_off(written(tmp_path, ROW, absent, *results))

    assert (list(kept.rows), [result.id for result in kept.results]) == (["numpy"], ["A-001/b"])
    assert remaining(kept, "numpy", HEADER.planned) == ("A-001/a",)
    assert remaining(kept, "jax", HEADER.planned) == ("A-001/a", "A-001/b")
    assert remaining(None, "numpy", HEADER.planned) == ("A-001/a", "A-001/b")


def test_a_line_that_is_broken_in_the_middle_is_an_error_and_not_left_out(tmp_path):
    file = written(tmp_path, ROW)
    with file.open("a") as stream:
        stream.write('{"record": "case", "id\n{"record": "row"}\n')

    with pytest.raises(ResumeError, match=r"nothing to resume: .*report.jsonl, line 3"):
        read_broken_off(file)


def test_a_report_without_its_last_line_end_is_truncated_for_everybody_else(broken_off):
    assert not read(broken_off()).complete


ONCE = Expectation("A-001/a", Outcome.FAIL, "why", cases=("A-001/a",))
ALLOWED = Allowance("flushes_subnormals", "it flushes", "zero", "it does so", ("A-001",))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"expectations": (ONCE,)}, "\n  expectations: 1 new, such as A-001/a\n"),
        ({"allowances": (ALLOWED,)}, "\n  allowances: 1 new, such as flushes_subnormals\n"),
        (
            {"requirements": {"A-001": RequirementFacts("A-001", "SHOULD", "title", "topic")}},
            "\n  requirements: 1 changed, such as A-001\n",
        ),
        ({"suite": "2"}, "suite: was '1', is '2'"),
        ({"python": "3.99"}, "python: was '3', is '3.99'"),
        ({"platform": "there"}, "platform: was 'here', is 'there'"),
        ({"strict": True}, "strict: was False, is True"),
        ({"rows": ("numpy", "jax")}, r"rows: was \('numpy',\), is \('numpy', 'jax'\)"),
        ({"target": TargetFacts("t", "2", "p", "h")}, "target version: was '1', is '2'"),
        ({"planned": {"A-001/a": "A-001"}}, "planned cases: 1 gone, such as A-001/b"),
        ({"planned": {**HEADER.planned, "A-001/c": "A-001"}}, "planned cases: 1 new, such as A-001/c"),
        ({"planned": {"A-001/a": "A-001", "A-001/b": "A-002"}}, "some show another requirement"),
    ],
)
def test_every_other_difference_is_named(changes, text):
    kept = Report(HEADER, {"numpy": ROW})

    check_same_run(kept, replace(HEADER, started="later"), lambda name: ROW)
    with pytest.raises(ResumeError, match=f"(?s)not the run that broke off.*{text}"):
        check_same_run(kept, replace(HEADER, **changes), lambda name: ROW)


def test_what_other_cases_bring_with_them_is_no_difference_of_its_own():
    more = replace(
        HEADER,
        planned={**HEADER.planned, "B-001/c": "B-001"},
        requirements={**HEADER.requirements, "B-001": RequirementFacts("B-001", "MUST", "title", "topic")},
        expectations=(ONCE,),
        allowances=(ALLOWED,),
    )

    with pytest.raises(ResumeError, match="not the run that broke off") as refused:
        check_same_run(Report(HEADER, {"numpy": ROW}), more, lambda name: ROW)

    _, *differing, _ = str(refused.value).splitlines()
    assert differing == ["  planned cases: 1 new, such as B-001/c; give --id and --topic as before"]


def test_a_backend_that_does_not_run_any_more_is_named():
    gone = replace(ROW, runs=False, reason="not installed")

    with pytest.raises(ResumeError, match="backend numpy: it ran, and does not run now: not installed"):
        check_same_run(Report(HEADER, {"numpy": ROW}), HEADER, lambda name: gone)


def test_the_file_is_never_without_what_is_kept(tmp_path):
    """Were the resumed run to break off at once, nothing would be lost."""
    kept = read_broken_off(written(tmp_path, ROW, CaseResult("numpy", "A-001/b", Outcome.FAIL, "why")))

    writer = JsonLinesWriter(tmp_path / "report.jsonl", kept)
    before = (tmp_path / "report.jsonl").read_text()
    writer.started(HEADER)

    assert (tmp_path / "report.jsonl").read_text() == before
    writer.found_row(ROW)
    writer.found_result(CaseResult("numpy", "A-001/a", Outcome.PASS))
    writer.close()
    assert len(read_broken_off(tmp_path / "report.jsonl").results) == 2


def test_a_failure_while_the_kept_results_are_written_loses_nothing(tmp_path):
    file = written(tmp_path, ROW, CaseResult("numpy", "A-001/b", Outcome.FAIL, "why"))
    before = file.read_text()
    writer = JsonLinesWriter(file, Report(HEADER, {"numpy": ROW}, [None]))

    with pytest.raises(TypeError, match="dataclass"):
        writer.started(HEADER)
    writer.close()

    assert file.read_text() == before
