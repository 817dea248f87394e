"""The commands on reports that there are: merge, diff, render, and the Markdown for a job summary."""

import json
import re
import shlex
from pathlib import Path

import pytest
from made_reports import made_report
from steps_conformance.cli import app
from steps_conformance.commands import accuracy
from steps_conformance.reports.jsonl import read, write
from steps_conformance.reports.replaying import command as replaying
from steps_conformance.reports.tables import failures
from typer.testing import CliRunner

README = Path(__file__).parents[2] / "README.md"
TWO = {"A-MUST-001/x": ["PASS"], "B-MUST-001/x": ["PASS"]}
FAILING = {**TWO, "A-MUST-001/x": ["FAIL"]}
FORMS = {"report.jsonl", "report.html", "report.md", "report.xml", "badge.json"}


def command(*arguments, **environment):
    done = CliRunner(env={"GITHUB_STEP_SUMMARY": None, **environment}).invoke(app, [*map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def said(done):
    return " ".join(done.output.split())


@pytest.fixture
def folder(tmp_path):
    """Write a report into a folder of that name, whole or truncated, and return the folder."""

    def made(name, report):
        place = tmp_path / name
        place.mkdir()
        write(report, place / "report.jsonl")
        if not report.complete:
            lines = (place / "report.jsonl").read_text().splitlines(keepends=True)
            (place / "report.jsonl").write_text("".join(lines[:-1]))
        return place

    return made


def test_merge_writes_every_form_and_judges_the_whole(folder, tmp_path):
    first, second = folder("one", made_report(TWO, ("numpy",))), folder("two", made_report(TWO, ("torch",)))

    done = command("report", "merge", tmp_path / "deep" / "out", first, second / "report.jsonl")

    assert done.exit_code == 0, said(done)
    assert {file.name for file in (tmp_path / "deep" / "out").iterdir()} == FORMS
    assert read(tmp_path / "deep" / "out" / "report.jsonl").header.rows == ("numpy", "torch")
    assert "conformant" in said(done)


def test_merge_does_not_write_over_a_report(folder, tmp_path):
    """As where OUT is forgotten: `report merge a b` has the form of `report diff a b`."""
    first, second = folder("one", made_report(TWO)), folder("two", made_report(TWO, ("torch",)))
    before = (first / "report.jsonl").read_text()

    done = command("report", "merge", first, second)

    assert done.exit_code == 2
    assert f"OUT must hold no report, and {first} holds report.jsonl" in said(done)
    assert "name a new folder, and then the reports" in said(done)
    assert (first / "report.jsonl").read_text() == before


@pytest.mark.parametrize(
    ("second", "code", "text"),
    [
        (made_report(TWO, ("torch",)), 0, "conformant"),
        (made_report(FAILING, ("torch",)), 1, "not conformant: 1 requirement not met"),
        (made_report({"C-MUST-001/x": ["PASS"]}, ("torch",)), 2, "torch: 2 of 3 planned cases did not run"),
        (made_report(FAILING), 2, "the outcome of A-MUST-001/x on numpy must be the same in all reports"),
        (made_report(TWO, ("torch",), suite="1.3"), 2, "the version of the suite must be the same"),
        (made_report(TWO, ("torch",), complete=False), 2, "has no footer: its run did not come to its end"),
    ],
)
def test_merge_ends_with_the_code_of_the_whole_or_refuses(folder, tmp_path, second, code, text):
    done = command(
        "report", "merge", tmp_path / "out", folder("one", made_report(TWO)), folder("two", second)
    )

    assert done.exit_code == code, said(done)
    assert text in said(done)
    refused = "must be the same" in said(done) or "footer" in said(done)
    assert (tmp_path / "out").exists() != refused


def test_merge_writes_into_a_folder_only(folder, tmp_path):
    place = folder("one", made_report(TWO))

    done = command("report", "merge", place / "report.jsonl", place)

    assert done.exit_code == 2
    assert "OUT, where the result goes, must be a folder that can be written to" in said(done)
    assert read(place / "report.jsonl").complete


@pytest.mark.parametrize(
    ("old", "new", "code", "text"),
    [
        (made_report(TWO), made_report(TWO), 0, "no change; 2 as before nothing is worse"),
        (made_report(FAILING), made_report(TWO), 0, "1 newly passing; 1 as before nothing is worse"),
        (
            made_report(TWO),
            made_report(FAILING),
            1,
            "1 newly failing; 1 as before something is worse: 1 in red",
        ),
        (made_report(TWO), made_report(TWO, complete=False), 2, "has no footer"),
        (made_report(TWO, complete=False), made_report(TWO), 2, "has no footer"),
        (made_report(TWO), made_report(TWO, ("torch",)), 2, "no case has an outcome in both reports"),
    ],
)
def test_diff_says_what_changed_and_ends_with_its_code(folder, old, new, code, text):
    done = command("report", "diff", folder("old", old), folder("new", new))

    assert done.exit_code == code, said(done)
    assert text in said(done)


def test_diff_shows_each_change_with_what_was_and_what_is(folder):
    old = made_report({**TWO, "C-SHOULD-001/x": ["PASS"], "D-MUST-001/gone": ["PASS"]})
    new = made_report({**FAILING, "C-SHOULD-001/x": ["UNSUPPORTED"], "E-MUST-001/new": ["PASS"]}, suite="1.3")

    printed = said(command("report", "diff", folder("old", old), folder("new", new)))

    for part in (
        "newly failing backend case level was is numpy A-MUST-001/x MUST PASS FAIL",
        "changed outcome backend case level was is numpy C-SHOULD-001/x SHOULD PASS UNSUPPORTED",
        "new id backend case level was is numpy E-MUST-001/new MUST PASS",
        "gone id backend case level was is numpy D-MUST-001/gone MUST PASS",
        "old: clipper 1.0, sha256 abababababab, suite 1.2",
    ):
        assert part in printed


def test_a_long_diff_is_cut_and_counted_and_json_has_it_all(folder):
    cases = {f"A-MUST-001/{n}": ["PASS"] for n in range(70)}
    old = folder("old", made_report(cases))
    new = folder("new", made_report({case: ["FAIL"] for case in cases}))

    assert "20 more of 70; --json writes them all" in said(command("report", "diff", old, new))
    done = command("report", "diff", "--json", old, new)
    found = json.loads(done.stdout)
    assert (done.exit_code, found["worse"], found["same"], len(found["newly_failing"])) == (1, True, 0, 70)
    assert found["newly_failing"][0] == {
        "row": "numpy",
        "id": "A-MUST-001/0",
        "requirement": "A-MUST-001",
        "level": "MUST",
        "old": "PASS",
        "new": "FAIL",
        "message": "3 expected, got 4",
        "worse": True,
    }
    assert set(found) == {
        *("schema", "old", "new", "worse", "same"),
        *("newly_failing", "newly_passing", "changed_outcome", "new_id", "gone_id"),
    }


def test_what_is_worse_is_never_cut_off_by_what_is_not(folder):
    cases = {f"A-MUST-001/{n}": ["PASS"] for n in range(70)}
    new = {**TWO, **cases, "Z-MUST-001/fails": ["FAIL"]}

    printed = said(
        command("report", "diff", folder("old", made_report(TWO)), folder("new", made_report(new)))
    )

    assert "Z-MUST-001/fails MUST FAIL" in printed
    assert "71 new id; 2 as before something is worse: 1 in red" in printed


def test_render_makes_every_form_again(folder):
    place = folder("one", made_report(FAILING))
    (place / "report.html").write_text("old")

    done = command("report", "render", place)

    # not a judgement: the report is written, whatever it says
    assert done.exit_code == 0
    assert {file.name for file in place.iterdir()} == FORMS
    assert "A-MUST-001" in (place / "report.html").read_text()


def test_render_of_a_truncated_report_says_so_in_every_form_and_ends_with_2(folder):
    place = folder("one", made_report(TWO, complete=False))

    done = command("report", "render", place)

    assert done.exit_code == 2
    assert "its run did not come to its end" in said(done)
    for name in ("report.html", "report.md", "report.xml"):
        assert "the run did not come to its end" in (place / name).read_text()
    assert json.loads((place / "badge.json").read_text())["message"] == "no verdict"


READING = (
    ("report", "merge", "{other}/out", "{place}"),
    ("report", "diff", "{place}", "{other}"),
    ("report", "diff", "{other}", "{place}"),
    ("report", "render", "{place}"),
    ("expectations", "update", "{other}/e.toml", "--report", "{place}/report.jsonl"),
    ("expectations", "update", "{other}/e.toml", "--report", "{place}"),
    ("accuracy", "--backend", "numpy", "--report", "{place}"),
)
NOT_WHOLE = {
    "no text \udcff": "report.jsonl is no text in UTF-8",
    None: "there is no report at",
    "": "report.jsonl is empty",
    "{not json}\n": "report.jsonl, line 1",
    "whole lines, no footer": "footer",
    "half a line at the end": "footer",
}


@pytest.mark.parametrize(
    ("call", "text", "words"),
    [
        (call, text, words)
        for call in READING
        for text, words in NOT_WHOLE.items()
        # `accuracy` takes a folder without report.jsonl too: its table alone goes to report.md
        if call[0] != "accuracy" or text is not None
    ],
)
def test_every_command_recognises_a_report_that_is_not_whole(folder, monkeypatch, call, text, words):
    monkeypatch.setattr(accuracy, "_measured", lambda *_, **__: pytest.fail("measured for nothing"))
    place, other = folder("one", made_report(TWO)), folder("two", made_report(TWO))
    file = place / "report.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    if text is None:
        file.unlink()
    elif text == "whole lines, no footer":
        file.write_text("".join(lines[:-1]))
    elif text == "half a line at the end":
        file.write_text("".join(lines[:-1]) + lines[-1][:20])
    else:
        file.write_bytes(text.encode(errors="surrogateescape"))

    done = command(*(word.format(place=place, other=other) for word in call))

    assert done.exit_code == 2, said(done)
    assert words in said(done)
    assert not (other / "out").exists() and not (other / "e.toml").exists()


@pytest.mark.parametrize("call", [call for call in READING if call[0] != "accuracy"])
def test_a_report_that_is_not_there_says_what_can_be_named(folder, tmp_path, call):
    absent, other = tmp_path / "nodir", folder("two", made_report(TWO))

    done = command(*(word.format(place=absent, other=other) for word in call))

    assert done.exit_code == 2
    assert re.search(
        r"there is no report at .*nodir.*; name a folder that `run --report DIR` wrote", said(done)
    )


@pytest.mark.parametrize("call", READING)
def test_a_report_that_is_not_whole_says_how_to_go_on_with_it(folder, call):
    place, other = folder("one", made_report(TWO, complete=False)), folder("two", made_report(TWO))

    done = command(*(word.format(place=place, other=other) for word in call))

    assert f"go on with it by the command that began it, with --resume {place} in the place" in said(done)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("[1]", "one/report.jsonl, line 1: must be an object, got [1] (list)"),
        ("{}", "one/report.jsonl, line 1: lacks record"),
        ("[" * 100_000, "one/report.jsonl, line 1: maximum recursion depth exceeded"),
    ],
    ids=["a-list", "nothing", "deep"],
)
def test_a_line_that_is_none_is_named_with_its_folder(folder, line, text):
    place = folder("one", made_report(TWO))
    (place / "report.jsonl").write_text(line + "\n")

    done = command("report", "diff", place, place)

    assert (done.exit_code, text in said(done)) == (2, True), said(done)


def test_a_report_that_an_editor_has_marked_as_utf_8_is_read(folder):
    place = folder("one", made_report(TWO))
    text = (place / "report.jsonl").read_text()
    (place / "report.jsonl").write_text(text, encoding="utf-8-sig")

    assert command("report", "diff", place, place / "report.jsonl").exit_code == 0


def test_the_summary_is_added_to_a_file_and_to_the_summary_of_the_job(folder, tmp_path):
    place = folder("one", made_report(FAILING))
    (tmp_path / "job.md").write_text("of an earlier step\n")

    done = command(
        *("report", "render", place, "--summary", tmp_path / "own.md", "--github-summary"),
        GITHUB_STEP_SUMMARY=str(tmp_path / "job.md"),
    )

    assert done.exit_code == 0, said(done)
    text = (place / "report.md").read_text()
    assert (tmp_path / "own.md").read_text() == text
    assert (tmp_path / "job.md").read_text() == f"of an earlier step\n{text}"


def test_without_github_summary_nothing_is_written_to_the_job(folder, tmp_path):
    (tmp_path / "job.md").touch()

    command("report", "render", folder("one", made_report(TWO)), GITHUB_STEP_SUMMARY=str(tmp_path / "job.md"))

    assert (tmp_path / "job.md").read_text() == ""


@pytest.mark.parametrize("call", [("report", "render", "{place}"), ("run", "--backend", "numpy")])
def test_a_summary_that_cannot_be_written_ends_the_command_before_it_works(folder, tmp_path, call):
    place = folder("one", made_report(TWO))
    words = [word.format(place=place) for word in call]

    unset = command(*words, "--github-summary")
    nowhere = command(*words, "--summary", tmp_path / "no" / "such.md")

    assert (unset.exit_code, nowhere.exit_code) == (2, 2)
    assert "GITHUB_STEP_SUMMARY names, and it is not set; outside of GitHub Actions pass --summary" in said(
        unset
    )
    assert "such.md cannot be written: No such file or directory" in said(nowhere)
    assert {file.name for file in place.iterdir()} == {"report.jsonl"}


def test_a_run_adds_its_summary(tmp_path):
    case = "CLIP-OPTION-001/default-is-per-weight-with-one"

    done = command("run", "--backend", "numpy", "--id", case, "--summary", tmp_path / "summary.md")

    assert done.exit_code == 0, said(done)
    assert "**conformant in a selection of the cases** (exit code 0)" in (tmp_path / "summary.md").read_text()


def test_the_commands_on_reports_that_the_readme_shows_run(folder, tmp_path, monkeypatch):
    for name, backend in (("numpy", "numpy"), ("torch", "torch"), ("old", "numpy"), ("new", "numpy")):
        folder(name, made_report(TWO, (backend,)))
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^steps-conformance (report .*?)(?:#.*)?$", README.read_text(), re.MULTILINE)

    codes = [command(*shlex.split(line)).exit_code for line in lines]

    assert [line.split()[1] for line in lines] == ["merge", "diff", "render"]
    assert codes == [0, 0, 0]


def test_the_command_that_a_report_shows_runs_the_failure_again(planted, tmp_path):
    asked = (
        "run",
        "--backend",
        "numpy",
        "--backend",
        "numpy-readonly",
        "--target",
        "planted_suite.targets:target",
    )
    ids = ("--id", "CLIP-OPTION-003", "--id", "CLIP-OPTION-001/default-is-per-weight-with-one")
    assert command(*asked, *ids, "--report", tmp_path / "first").exit_code == 1
    found = read(tmp_path / "first" / "report.jsonl")
    shown = failures(found)[-1]

    program, *words = shlex.split(replaying(found.header, shown))
    done = command(*words, "--report", tmp_path / "again")

    assert (program, done.exit_code) == ("steps-conformance", 1)
    again = read(tmp_path / "again" / "report.jsonl")
    assert [(one.row, one.id, one.outcome, one.message) for one in again.failures()] == [
        (row, shown.id, shown.outcome, shown.message) for row in shown.rows
    ]


def test_json_of_a_diff_holds_no_command_of_a_ci_system(folder):
    new = folder("new", made_report(FAILING, message="##[error]bad\n::error::bad"))

    printed = command("report", "diff", "--json", folder("old", made_report(TWO)), new).stdout

    assert "##[" not in printed and "\n::" not in printed
    assert json.loads(printed)["newly_failing"][0]["message"] == "##[error]bad\n::error::bad"
