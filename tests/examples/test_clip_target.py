"""The clipping target in JavaScript: what it claims holds, and what it lacks is declared."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from steps_conformance.reports.jsonl import read
from steps_conformance.reports.verdict import judge

FILE = Path(__file__).parents[2] / "examples/clip_target.js"

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None, reason="node is not installed; install Node.js 18 or newer"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of a run of all cases of clipping, and of what holds for every step."""
    folder = tmp_path_factory.mktemp("report")
    topics = ("clipping", "clipping_norms", "contract", "trees")
    call = [
        sys.executable,
        "-m",
        "steps_conformance",
        "run",
        "--target",
        f"node {FILE}",
        "--report",
        str(folder),
    ]
    for topic in topics:
        call += ["--topic", topic]
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return read(folder / "report.jsonl")


def test_it_conforms_in_what_it_declares(report):
    counts = report.counts("host")

    assert set(counts) == {"PASS", "UNSUPPORTED"}
    assert counts["PASS"] > 300
    assert judge(report).headline.startswith("conformant for the declared capabilities")


def test_each_rule_that_it_offers_is_really_run(report):
    passed = Counter(
        report.header.planned[result.id].rsplit("-", 1)[0]
        for result in report.results
        if result.outcome == "PASS"
    )

    assert {"CLIP-WEIGHT", "CLIP-LAYER", "CLIP-GLOBAL", "CLIP-OPTION"} <= passed.keys()
    assert min(passed["CLIP-WEIGHT"], passed["CLIP-LAYER"]) > 10


def test_the_norms_that_overflow_and_vanish_are_among_what_passes(report):
    passed = {report.header.planned[result.id] for result in report.results if result.outcome == "PASS"}

    assert {"CLIP-GLOBAL-004", "CLIP-GLOBAL-005", "CLIP-GLOBAL-006", "CLIP-LAYER-004"} <= passed


def test_all_that_it_lacks_is_declared(report):
    why = {result.message for result in report.results if result.outcome == "UNSUPPORTED"}

    assert all(text.startswith(("the target ", "the protocol ")) for text in why)
    assert "the target does not offer variant='per-weight-relative' of GradientClippingStep" in why
    assert "the target does not offer complex64" in why


def test_the_header_names_the_file(report):
    assert (report.header.target.name, report.header.target.path) == ("clip.js", str(FILE))


def test_a_fault_of_the_program_is_found(tmp_path):
    """Were the norm a plain sum of squares, 1e200 in float64 would overflow."""
    faulty = tmp_path / "clip_target.js"
    text = FILE.read_text()
    scale = next(line for line in text.splitlines() if "const scale = " in line)
    faulty.write_text(text.replace(scale, "  const scale = 1;"))
    call = [sys.executable, "-m", "steps_conformance", "run", "--target", f"node {faulty}"]

    done = subprocess.run(
        [*call, "--id", "CLIP-GLOBAL-004", "--report", str(tmp_path / "report")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 1
    assert "FAIL CLIP-GLOBAL-004" in done.stdout
    lines = map(json.loads, (tmp_path / "report/report.jsonl").read_text().splitlines())
    assert {line["outcome"] for line in lines if line["record"] == "case"} >= {"PASS", "FAIL"}
