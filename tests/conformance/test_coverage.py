"""Requirements and cases cover each other, and what is missing on either side is seen."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import steps_backends
from steps_conformance.case import Case, load_cases
from steps_conformance.coverage import coverage, percent, shipped_capabilities, shipped_declarations
from steps_conformance.requirements import Requirement, load_requirements

ROOT = Path(__file__).resolve().parents[2]
NUMPY = steps_backends.get("numpy").declaration


def a_case(requirement, name, topic, dtypes=(), needs=()):
    identity = f"{requirement}/{name}"
    return Case(identity, requirement, topic, print, {}, frozenset(dtypes), frozenset(needs))


def by_id(*things):
    return {thing.id: thing for thing in things}


RULES = by_id(
    *(
        Requirement(rule, "MUST", "t", "t", "a", "s", topic)
        for rule, topic in (("A-ONE-001", "topic_a"), ("A-ONE-002", "topic_a"), ("B-ONE-001", "topic_b"))
    )
)
CASES = by_id(
    a_case("A-ONE-001", "x", "topic_a"),
    a_case("A-ONE-001", "y", "topic_a", dtypes=("float16", "complex128")),
    a_case("A-ONE-002", "x", "topic_a", needs=("state_files",)),
    a_case("B-ONE-001", "x", "topic_b"),
)


def found(rules=RULES, cases=CASES, declarations=(NUMPY,), capabilities=(frozenset({"state_files"}),)):
    return coverage(rules, cases, declarations, capabilities)


def without(things, *ids):
    return {identity: thing for identity, thing in things.items() if identity not in ids}


def test_nothing_is_missing_where_all_fits():
    topic_a, topic_b = found().topics

    assert found().complete
    assert (topic_a.requirements, topic_a.covered, topic_a.cases, topic_a.ruled, topic_a.live) == (
        2,
        2,
        3,
        3,
        3,
    )
    assert (topic_b.topic, topic_b.requirements, topic_b.cases) == ("topic_b", 1, 1)


def test_a_requirement_without_a_case_is_missing():
    fewer = found(cases=without(CASES, "A-ONE-002/x"))

    assert not fewer.complete
    assert fewer.requirements_without_case == {"A-ONE-002": "has no case"}
    assert (fewer.topics[0].requirements, fewer.topics[0].covered) == (2, 1)


def test_a_case_without_a_requirement_is_missing():
    fewer = found(rules=without(RULES, "A-ONE-001"))

    assert not fewer.complete
    assert fewer.cases_without_requirement == ("A-ONE-001/x", "A-ONE-001/y")
    assert (fewer.topics[0].cases, fewer.topics[0].ruled) == (3, 1)


def test_a_case_that_runs_on_no_backend_is_dead_and_the_requirement_lives_by_another():
    narrow = found(declarations=[replace(NUMPY, dtypes=("float32", "float16"))])

    assert narrow.dead_cases == {"A-ONE-001/y": "no backend declares complex128, float16 together"}
    assert not narrow.complete
    assert narrow.requirements_without_case == {}
    assert narrow.topics[0].live == 2


def test_dtypes_that_only_different_backends_declare_do_not_make_a_case_live():
    apart = [replace(NUMPY, dtypes=("float32", dtype)) for dtype in ("float16", "complex128")]

    assert list(found(declarations=apart).dead_cases) == ["A-ONE-001/y"]


def test_a_requirement_whose_only_case_no_target_can_run_has_no_live_case():
    unclaimed = found(capabilities=[frozenset({"negates"})])

    assert unclaimed.dead_cases == {"A-ONE-002/x": "no target claims state_files"}
    assert unclaimed.requirements_without_case == {
        "A-ONE-002": "has no live case: none of its cases can ever run"
    }
    assert unclaimed.topics[0].covered == 1


@pytest.mark.parametrize(("part", "whole", "text"), [(999, 1000, "99 %"), (3, 3, "100 %"), (0, 0, "–")])
def test_only_all_of_it_is_a_hundred_percent(part, whole, text):
    assert percent(part, whole) == text


def test_the_suite_is_covered_both_ways_and_every_case_can_run():
    whole = coverage(load_requirements(), load_cases(), shipped_declarations(), shipped_capabilities())

    assert whole.requirements_without_case == {}
    assert whole.cases_without_requirement == ()
    assert whole.dead_cases == {}


RETIRED = "\nRetired: PLANT-GATE-001 (was wrong)\n"
RULE = "### {} (MUST): planted\nRule.\nAccuracy: exact bits.\nSource: planted.\n"
MODULE = "from steps_conformance.case import case\n"
PLANTED_CASE = '@case("PLANT-GATE-001"{})\ndef planted(run):\n    run.step("AdamStep")\n'
OTHER_CASE = PLANTED_CASE.format("").replace("Adam", "SGD")


@pytest.fixture
def suite(tmp_path):
    """A copy of the suite to which files can be added, and a function that runs its command."""
    package = tmp_path / "steps_conformance"
    shutil.copytree(
        ROOT / "conformance" / "steps_conformance",
        package,
        ignore=shutil.ignore_patterns("__pycache__"),
    )

    def run(*arguments, **files):
        for name, text in files.items():
            suffix = {"requirements": ".md", "cases": ".py"}[name.partition("_")[0]]
            folder, _, stem = name.partition("_")
            (package / folder / f"{stem}{suffix}").write_text(text)
        call = [sys.executable, "-m", "steps_conformance", *(arguments or ("list", "--coverage"))]
        path = os.pathsep.join([str(tmp_path), str(ROOT / "backends")])
        environment = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(
            call, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
        )

    return run


def test_the_command_ends_with_0_where_nothing_is_missing():
    call = [sys.executable, "-m", "steps_conformance", "list", "--coverage", "--topic", "masked"]

    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=120)

    assert (done.returncode, done.stderr) == (0, "")
    assert "masked" in done.stdout
    assert "adam" not in done.stdout
    assert "100 %" in done.stdout


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"requirements_planted": RULE.format("PLANT-GATE-001")}, "PLANT-GATE-001 has no case"),
        (
            {"cases_planted": MODULE + PLANTED_CASE.format("")},
            "PLANT-GATE-001/planted shows no requirement that is written down",
        ),
        (
            {
                "requirements_planted": RULE.format("PLANT-GATE-001"),
                "requirements_again": RULE.format("PLANT-GATE-001"),
            },
            "PLANT-GATE-001 stands in again.md and again in planted.md",
        ),
        (
            {
                "requirements_planted": RULE.format("PLANT-GATE-001")
                + "\nRetired: PLANT-GATE-001 (was wrong)\n"
            },
            "PLANT-GATE-001 is retired in planted.md, and used in planted.md; take a new id",
        ),
        (
            {
                "cases_planted": MODULE
                + PLANTED_CASE.format("")
                + PLANTED_CASE.format("").replace("Adam", "SGD")
            },
            "two cases are called PLANT-GATE-001/planted; rename one function or label",
        ),
    ],
    ids=["no case", "no requirement", "id twice", "retired id", "case id twice"],
)
def test_the_command_ends_with_1_at_each_kind_of_gap(suite, files, text):
    done = suite(**files)

    assert done.returncode == 1, done.stdout
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_names_a_case_that_can_never_run(suite):
    declared = PLANTED_CASE.format(', dtypes=("float64", "bfloat16"), needs={"negates"}')
    done = suite(
        requirements_planted=RULE.format("PLANT-GATE-001"),
        cases_planted=MODULE + declared,
        cases_claims="""
from steps_conformance.targets.steps_core import PackageTarget

PackageTarget.capabilities = property(lambda self: frozenset({"apply_updates"}))
""",
    )

    assert done.returncode == 1
    assert "PLANT-GATE-001 has no live case: none of its cases can ever run" in done.stderr
    assert "PLANT-GATE-001/planted can never run: no target claims negates" in done.stderr


def test_the_ids_of_cases_and_coverage_are_not_shown_together():
    call = [sys.executable, "-m", "steps_conformance", "list", "--coverage", "--cases"]

    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=120)

    assert done.returncode == 2
    assert "--cases and --coverage exclude each other; pass one of them" in done.stderr


def test_a_run_of_a_suite_with_a_doubled_id_is_no_verdict(suite):
    done = suite("run", "--backend", "numpy", requirements_again=RULE.format("CLIP-GLOBAL-003"))

    assert done.returncode == 2
    assert "CLIP-GLOBAL-003 stands in again.md and again in clipping_norms.md" in done.stderr
