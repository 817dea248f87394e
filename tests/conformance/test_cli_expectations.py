"""The command with expectation files and with accuracy: what it prints and writes, and its exit codes."""

import json
import subprocess
import sys

import pytest
from steps_conformance.reports.jsonl import read

CASE = "CLIP-OPTION-001/default-is-per-weight-with-one"
MASKED = "MASK-001"
PLANTED = ("--target", "planted_suite.targets:target")
ENTRY = '[[expected]]\nid = "{}"\noutcome = "{}"\nreason = "{}"\n'


def command(*arguments):
    call = [sys.executable, "-m", "steps_conformance", *map(str, arguments)]
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=300)
    done.stdout = " ".join(done.stdout.split())
    done.stderr = " ".join(done.stderr.split())
    return done


@pytest.fixture
def expected(tmp_path):
    def write(*entries):
        file = tmp_path / "expected.toml"
        file.write_text("# The deviations.\n\n" + "\n".join(ENTRY.format(*entry) for entry in entries))
        return file

    return write


def test_a_declared_failure_is_xfail_and_what_is_left_decides(planted, expected, tmp_path):
    file = expected((CASE, "FAIL", "planted: no clipping"))

    done = command(
        *("run", "--backend", "numpy", "--id", CASE, *PLANTED),
        *("--expectations", file, "--report", tmp_path / "report"),
    )

    # nothing at all passed, so there is no verdict, and no failure is left
    assert done.returncode == 2, done.stdout
    assert f"FAIL as declared {CASE} on numpy: planted: no clipping" in done.stdout
    found = read(tmp_path / "report" / "report.jsonl")
    assert [result.outcome for result in found.results] == ["FAIL"]
    assert [result.outcome for result in found.judged()] == ["XFAIL"]
    assert "planted: no clipping" in (tmp_path / "report" / "report.md").read_text()
    assert "planted: no clipping" in (tmp_path / "report" / "report.html").read_text()


def test_a_declared_failure_that_passes_ends_with_1(expected):
    done = command(
        "run", "--backend", "numpy", "--id", CASE, "--expectations", expected((CASE, "FAIL", "once"))
    )

    assert done.returncode == 1
    assert "XPASS" in done.stdout
    assert "not as declared: 1 declared deviation did not happen: CLIP-OPTION-001" in done.stdout


def test_a_target_brings_its_own_expectations(planted, tmp_path):
    done = command(
        *("run", "--backend", "numpy", "--id", "CLIP-OPTION-001", "--report", tmp_path),
        *("--target", "planted_suite.targets:declaring"),
    )

    assert "planted: there is no clipping" in done.stdout
    header, *_ = map(json.loads, (tmp_path / "report.jsonl").read_text().splitlines())
    assert header["target"]["expectations"] == [header["expectations"][0]["file"]]
    assert {result.outcome for result in read(tmp_path / "report.jsonl").judged()} == {"XFAIL"}


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (
            ("CLIP-OPTION-999", "FAIL", "r"),
            "no case and no requirement 'CLIP-OPTION-999'; did you mean CLIP-",
        ),
        ((CASE, "XPASS", "r"), "outcome must be one of FAIL, ERROR, CRASH, TIMEOUT, got 'XPASS' (str)"),
        ((CASE, "FAIL", "TODO: say why"), "reason must say why, got 'TODO: say why' (str); find out"),
    ],
)
def test_a_wrong_expectation_file_ends_with_2_before_anything_runs(expected, tmp_path, entry, text):
    (tmp_path / "report.jsonl").write_text("an older report\n")
    run = ("run", "--backend", "numpy", "--id", CASE, "--report", tmp_path)

    done = command(*run, "--expectations", expected(entry))

    assert done.returncode == 2
    assert text in done.stderr
    assert "PASS" not in done.stdout
    assert (tmp_path / "report.jsonl").read_text() == "an older report\n"


def test_an_update_makes_a_file_that_run_takes_once_the_reasons_are_written(planted, expected, tmp_path):
    file = expected(("MASK-001", "FAIL", "of another day"), ("CLIP-OPTION-002", "FAIL", "kept"))
    run = ("run", "--backend", "numpy", "--id", "CLIP-OPTION-001", "--id", "CLIP-OPTION-002", *PLANTED)
    command(*run, "--report", tmp_path)

    done = command("expectations", "update", file, "--report", tmp_path / "report.jsonl")

    assert done.returncode == 0, done.stderr
    assert "added, say why: CLIP-OPTION-001" in done.stdout
    text = file.read_text()
    assert text.startswith('# The deviations.\n\n[[expected]]\nid = "MASK-001"')
    assert "no step is called 'GradientClippingStep'" in text
    refused = command(*run, "--expectations", file)
    assert refused.returncode == 2
    assert "reason must say why" in refused.stderr
    file.write_text(text.replace("TODO: say why", "no clipping here"))
    taken = command(*run, "--expectations", file)
    assert "no clipping here" in taken.stdout
    assert "not conformant" not in taken.stdout
    again = command("expectations", "update", file, "--report", tmp_path / "report.jsonl")
    assert again.stdout == "nothing to change"


def test_an_update_from_a_run_that_was_broken_off_is_refused(expected, tmp_path):
    command("run", "--backend", "numpy", "--id", CASE, "--report", tmp_path)
    report = tmp_path / "report.jsonl"
    report.write_text("".join(report.read_text().splitlines(keepends=True)[:-1]))

    done = command("expectations", "update", expected(), "--report", report)

    assert done.returncode == 2
    assert (
        "has no footer: its run did not come to its end; go on with it by the command that began it"
        in done.stderr
    )


def test_a_run_measures_accuracy_into_all_forms_of_the_report(tmp_path):
    done = command(
        *("run", "--backend", "numpy", "--id", "MOMENTUM-001", "--id", "CLIP-LAYER-004"),
        *("--accuracy", "--largest", "1", "--report", tmp_path),
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "largest error in ulps" in done.stdout
    found = read(tmp_path / "report.jsonl")
    assert {row.backend for row in found.accuracy} == {"numpy"}
    assert {row.requirement for row in found.accuracy} == {"CLIP-LAYER-004", "MOMENTUM-001"}
    assert "## Accuracy" in (tmp_path / "report.md").read_text()
    assert "<h2>Accuracy</h2>" in (tmp_path / "report.html").read_text()


def test_accuracy_goes_into_a_report_that_there_is_and_takes_the_place_of_what_was_measured(tmp_path):
    command("run", "--backend", "numpy", "--id", CASE, "--report", tmp_path)
    before = read(tmp_path / "report.jsonl")
    assert "Accuracy" not in (tmp_path / "report.html").read_text()

    measured = ("accuracy", "--backend", "numpy", "--largest", "1", "--report", tmp_path)
    for choice in (["CLIP-LAYER-004"], ["MOMENTUM-001"], ["MOMENTUM-001"]):
        done = command(*measured, "--id", *choice)
        assert done.returncode == 0, done.stderr

    found = read(tmp_path / "report.jsonl")
    assert (found.header, found.results, found.complete) == (before.header, before.results, True)
    keys = [(row.backend, row.requirement, row.name, row.dtype, row.size) for row in found.accuracy]
    assert {requirement for _, requirement, *_ in keys} == {"CLIP-LAYER-004", "MOMENTUM-001"}
    assert len(set(keys)) == len(keys)
    assert (tmp_path / "report.md").read_text().count("## Accuracy") == 1
    assert "<h2>Accuracy</h2>" in (tmp_path / "report.html").read_text()


def test_accuracy_of_what_no_measure_backs_ends_with_2():
    done = command("accuracy", "--backend", "numpy", "--id", "MASK-*")

    assert done.returncode == 2
    assert "nothing is measured of MASK-001" in done.stderr
    assert "measured are ADAM-001" in done.stderr


def test_accuracy_of_another_copy_than_the_reports_is_refused(planted, tmp_path):
    command("run", "--backend", "numpy", "--id", CASE, "--report", tmp_path)
    before = (tmp_path / "report.jsonl").read_text()

    done = command("accuracy", "--backend", "numpy", "--report", tmp_path, *PLANTED)

    assert done.returncode == 2
    assert "is of steps_core with the hash" in done.stderr
    assert "planted_suite.targets:target has the hash 000000000000; run the suite again" in done.stderr
    assert (tmp_path / "report.jsonl").read_text() == before
