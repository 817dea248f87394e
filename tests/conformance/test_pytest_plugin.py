"""The plugin of pytest: every case an item, nothing that is no pass passes, nobody else's run is touched."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

import pytest
import steps_backends
from steps_conformance.case import load_cases
from steps_conformance.execution import execute
from steps_conformance.outcomes import Outcome
from steps_conformance.requirements import load_requirements
from steps_conformance.targets.steps_core import target
from steps_conformance.under_pytest import collecting

pytest_plugins = ["pytester"]

SUITE = ("--pyargs", "steps_conformance")
ONE = "CLIP-OPTION-001/default-is-per-weight-with-one"
RULE = "CLIP-OPTION-001"
INSTALLED = bool(entry_points(group="pytest11", name="steps_conformance"))
# an installation older than the plugin does not name it yet
PLUGIN = () if INSTALLED else ("-p", "steps_conformance.pytest_plugin")
# what costs time in each run and changes nothing here
QUICK = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")

TARGET = """
from steps_conformance.targets.protocol import Refusal
from steps_conformance.targets.steps_core import PackageTarget


class Doubling(PackageTarget):
    def make(self, description):
        made = super().make(description)
        return Doubled(made)


class Doubled:
    def __init__(self, step):
        self.step, self.init = step, step.init

    def apply(self, gradients, weights, state):
        result, state = self.step.apply(gradients, weights, state)
        return {key: leaf * 2 for key, leaf in result.items()} if type(result) is dict else result * 2, state


class Raising(PackageTarget):
    def make(self, description):
        raise ZeroDivisionError("planted")


class Limited(PackageTarget):
    capabilities = frozenset()


doubling, raising, limited = Doubling(), Raising(), Limited()
"""


@pytest.fixture(scope="module", autouse=True)
def _loaded():
    """Load all libraries: pytester forgets the modules that a run adds, and NumPy cannot be loaded twice."""
    assert execute(load_cases()[ONE], steps_backends.get("numpy"), target).outcome is Outcome.PASS


@pytest.fixture
def project(pytester, monkeypatch):
    """Another project, with faulty targets."""
    pytester.makepyfile(faulty=TARGET)
    monkeypatch.syspath_prepend(pytester.path)
    monkeypatch.delitem(sys.modules, "faulty", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return pytester


def run(project, *arguments):
    return project.runpytest_inprocess(*PLUGIN, *QUICK, *arguments)


def outcomes(project, *arguments):
    return run(project, *arguments).parseoutcomes()


def written(project, text):
    return project.makefile(".toml", expectations=text)


def expected(identity, outcome="FAIL", reason="known"):
    return f'[[expected]]\nid = "{identity}"\noutcome = "{outcome}"\nreason = "{reason}"\n'


def test_every_case_is_an_item_under_its_id(project):
    result = run(project, *SUITE, "--backend", "numpy", "--topic", "clipping", "--collect-only", "-q")

    ids = [line for line in result.outlines if line.startswith("steps_conformance/")]
    wanted = [case.id for case in load_cases().values() if case.topic == "clipping"]
    assert ids == [f"steps_conformance/numpy::{identity}" for identity in wanted]
    assert result.ret == 0


@pytest.mark.parametrize("prefix", ["", "steps_conformance::", "steps_conformance/numpy::"])
def test_an_id_can_be_typed_as_it_is_printed(project, prefix):
    result = run(project, f"{prefix}{ONE}", "--backend", "numpy", "-v")

    result.stdout.fnmatch_lines([f"steps_conformance/numpy::{ONE} PASSED*"])
    assert result.parseoutcomes() == {"passed": 1}


def test_an_id_that_names_its_backend_runs_on_no_other(project):
    named = f"steps_conformance/numpy-readonly::{ONE}"

    assert outcomes(project, named, "--backend", "numpy", "--backend", "numpy-readonly") == {"passed": 1}
    assert outcomes(project, ONE, "--backend", "numpy", "--backend", "numpy-readonly") == {"passed": 2}


def test_a_requirement_stands_for_its_cases_and_k_chooses_among_them(project):
    cases = [case for case in load_cases().values() if case.requirement == RULE]

    assert len(cases) > 1
    assert outcomes(project, RULE, "--backend", "numpy") == {"passed": len(cases)}
    chosen = outcomes(project, RULE, "--backend", "numpy", "-k", ONE)
    assert chosen == {"passed": 1, "deselected": len(cases) - 1}


def test_level_and_topic_are_markers(project):
    both = run(project, RULE, "--backend", "numpy", "--strict-markers", "-m", "must and clipping")
    neither = run(project, RULE, "--backend", "numpy", "--strict-markers", "-m", "should or adam")

    assert "deselected" not in both.parseoutcomes()
    assert "passed" not in neither.parseoutcomes()


def test_a_failure_shows_what_came_and_nothing_of_the_suite(project):
    result = run(project, ONE, "--backend", "numpy", "--target", "faulty:doubling")

    result.stdout.fnmatch_lines(
        [
            "FAIL: result[[]0[]]: expected *, got *",
            f"{RULE} (MUST): *",
            f"FAILED steps_conformance/numpy::{ONE} - FAIL: *",
        ]
    )
    assert "execution.py" not in result.stdout.str()
    assert (result.ret, result.parseoutcomes()) == (1, {"failed": 1})


def test_an_exception_of_the_target_is_a_failure_and_says_error(project):
    result = run(project, ONE, "--backend", "numpy", "--target", "faulty:raising")

    result.stdout.fnmatch_lines(["ERROR: ZeroDivisionError: planted*"])
    assert result.ret == 1


def test_x_stops_at_the_first_failure(project):
    arguments = ("--topic", "clipping", "--backend", "numpy", "--target", "faulty:doubling", "-x")

    assert outcomes(project, *SUITE, *arguments)["failed"] == 1


def test_lf_runs_every_failure_again_also_those_with_brackets_in_their_ids(project):
    call = (*SUITE, "--topic", "scaling", "--backend", "numpy", "--target", "faulty:doubling")
    cached = [one for one in QUICK if one != "no:cacheprovider"][1:]

    first = project.runpytest_inprocess(*PLUGIN, *cached, *call).parseoutcomes()
    again = project.runpytest_inprocess(*PLUGIN, *cached, *call, "--lf").parseoutcomes()

    assert first["failed"] > 1
    assert (again["failed"], again.get("passed")) == (first["failed"], None)


def test_a_copy_is_a_target_too(project, tmp_path):
    shutil.copytree(Path(target.path), tmp_path / "any_name", ignore=shutil.ignore_patterns("__pycache__"))

    result = run(project, ONE, "--backend", "numpy", "--target", f"path:{tmp_path / 'any_name'}")

    result.stdout.fnmatch_lines(["conformance suite: any_name *"])
    assert result.parseoutcomes() == {"passed": 1}


def test_a_command_is_a_target_on_a_row_of_its_own(project):
    command = (
        f"{sys.executable} -m steps_conformance.targets.serve steps_conformance.targets.steps_core:target"
    )

    result = run(project, ONE, "--target", f"{command} --backend numpy", "-v")

    result.stdout.fnmatch_lines([f"steps_conformance/host::{ONE} PASSED*"])
    assert result.parseoutcomes() == {"passed": 1}


def test_what_is_not_supported_is_skipped_with_the_reason(project):
    cases = [case for case in load_cases().values() if case.needs == {"negates"}]
    result = run(project, cases[0].id, ONE, "--backend", "numpy", "--target", "faulty:limited", "-rs")

    result.stdout.fnmatch_lines(["SKIPPED * not supported: the target does not claim negates"])
    assert (result.ret, result.parseoutcomes()) == (0, {"passed": 1, "skipped": 1})


def test_a_run_in_which_nothing_passes_is_no_success(project):
    cases = [case for case in load_cases().values() if case.needs == {"negates"}]
    result = run(project, cases[0].id, "--backend", "numpy", "--target", "faulty:limited")

    result.stdout.fnmatch_lines(["no case passed: this run shows nothing"])
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_declared_failure_is_an_expected_one(project):
    file = written(project, expected(ONE))
    result = run(
        project, ONE, "CLIP-OPTION-011", "--backend", "numpy", "--target", "faulty:doubling",
        "--expectations", str(file), "-rx",
    )  # fmt: skip

    result.stdout.fnmatch_lines([f"XFAIL steps_conformance/numpy::{ONE} - declared: known"])
    assert result.parseoutcomes()["xfailed"] == 1


def test_a_declared_failure_of_another_kind_fails(project):
    file = written(project, expected(ONE, "ERROR"))
    result = run(
        project, ONE, "--backend", "numpy", "--target", "faulty:doubling", "--expectations", str(file)
    )

    assert result.parseoutcomes() == {"failed": 1}


def test_a_declared_failure_that_passes_fails(project):
    result = run(project, ONE, "--backend", "numpy", "--expectations", str(written(project, expected(ONE))))

    result.stdout.fnmatch_lines(["XPASS: declared as FAIL (known), but it passes; remove the entry *"])
    assert (result.ret, result.parseoutcomes()) == (1, {"failed": 1})


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["in-one-process", "in-two"])
def test_a_requirement_that_was_declared_and_passes_whole_fails_the_run(project, workers):
    if workers:
        pytest.importorskip("xdist")
    file = written(project, expected(RULE))
    result = run(project, RULE, "--backend", "numpy", "--expectations", str(file), *workers)

    result.stdout.fnmatch_lines(
        [f"XPASS: {RULE} on numpy: declared as FAIL (known), but no case of {RULE} ends so here; remove *"]
    )
    assert result.ret == 1
    assert "failed" not in result.parseoutcomes()
    # of a part of its cases nothing can be said
    part = run(project, ONE, "--backend", "numpy", "--expectations", str(file), *workers)
    assert (part.ret, part.parseoutcomes()) == (0, {"passed": 1})


def test_the_file_that_a_target_brings_along_counts(project):
    file = written(project, expected(ONE))
    project.makepyfile(
        bringing=f"from faulty import Doubling\ntarget = Doubling()\n"
        f"object.__setattr__(target, 'expectations', {str(file)!r})\n"
    )
    sys.modules.pop("bringing", None)

    result = run(project, ONE, "--backend", "numpy", "--target", "bringing:target")

    assert result.parseoutcomes() == {"xfailed": 1}


def test_a_case_that_is_declared_to_end_its_process_is_not_started(project):
    file = written(project, expected(ONE, "CRASH"))
    result = run(project, ONE, "--backend", "numpy", "--expectations", str(file), "-rs")

    result.stdout.fnmatch_lines(["SKIPPED * declared as CRASH (known); *"])
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize(
    ("option", "found", "status"),
    [((), "xfailed", 5), (("--steps-strict",), "failed", 1)],
    ids=["", "strict"],
)
def test_a_should_fails_the_run_only_if_asked_to(project, monkeypatch, option, found, status):
    rules = load_requirements()
    softened = {**rules, RULE: replace(rules[RULE], level="SHOULD")}
    monkeypatch.setattr(collecting, "load_requirements", lambda: softened)

    result = run(project, ONE, "--backend", "numpy", "--target", "faulty:doubling", *option)

    result.stdout.fnmatch_lines([f"SHOULD is not met: {ONE} on numpy"])
    assert (result.ret, result.parseoutcomes()) == (status, {found: 1})


def test_a_backend_that_was_named_and_cannot_run_is_an_error(project):
    imports = "import steps_backends, dataclasses\nfrom steps_backends.numpy import NumpyBackend\n"
    row = 'dataclasses.replace(steps_backends.get("numpy").declaration, name="absent", library="no_such")'
    project.makepyfile(absent=f"{imports}row = NumpyBackend({row})\n")
    result = run(project, ONE, "--backend", "absent:row", "--backend", "numpy")

    result.stdout.fnmatch_lines(["absent:row was asked for and does not run: *"])
    assert (result.ret, result.parseoutcomes()) == (pytest.ExitCode.INTERRUPTED, {"errors": 1})


def test_a_backend_that_nobody_named_and_that_cannot_run_is_skipped_with_the_reason(project, monkeypatch):
    monkeypatch.setattr(collecting.steps_backends, "names", lambda: ["numpy", "away"])
    numpy_row = collecting.load_backend("numpy")

    class Away:
        def probe(self):
            return replace(numpy_row.probe(), runs=False, reason="planted")

    monkeypatch.setattr(collecting, "load_backend", {"numpy": numpy_row, "away": Away()}.__getitem__)

    result = run(project, ONE, "-rs", "--backend", "all")

    result.stdout.fnmatch_lines(["SKIPPED * does not run here: planted"])
    assert (result.ret, result.parseoutcomes()) == (0, {"passed": 1, "skipped": 1})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*SUITE, "--backend", "nunpy"), "no backend is called 'nunpy'; there are numpy, *"),
        (("CLIP-OPTION-999", "--backend", "numpy"), "no case has the id 'CLIP-OPTION-999'; *"),
        ((*SUITE, "--topic", "cliping"), "no case has the topic 'cliping'; *clipping*"),
        ((ONE, "--target", "faulty:absent"), "target faulty:absent did not start: NotFoundError: *"),
        ((ONE, "--expectations", "absent.toml"), "*absent.toml: cannot be read: *"),
    ],
    ids=["backend", "id", "topic", "target", "expectations"],
)
def test_what_does_not_exist_is_an_error_in_one_line(project, arguments, message):
    result = run(project, *arguments)

    result.stdout.fnmatch_lines([message])
    assert "Traceback" not in result.stdout.str()
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_the_header_says_which_copy_is_tested(project):
    result = run(project, ONE, "--backend", "numpy")

    result.stdout.fnmatch_lines(
        [f"conformance suite: steps_core *  {target.path}  sha256 {target.hash[:12]}"]
    )


def test_junit_xml_has_the_id_the_rule_and_the_level(project):
    run(project, ONE, "--backend", "numpy", "--junitxml", "junit.xml")

    (case,) = ElementTree.parse(project.path / "junit.xml").iter("testcase")  # noqa: S314 - our own file
    properties = {one.get("name"): one.get("value") for one in case.iter("property")}
    assert (case.get("classname"), case.get("name")) == ("steps_conformance.numpy", ONE)
    assert (properties["requirement"], properties["level"]) == (RULE, "MUST")


def test_two_workers_collect_the_same_and_run_everything_once(project):
    pytest.importorskip("xdist")
    cases = [case.id for case in load_cases().values() if case.topic == "scaling"]
    result = run(project, *SUITE, "--backend", "numpy", "--topic", "scaling", "-n", "2", "-v")

    ran = sorted(line.split("::")[1].strip() for line in result.outlines if " PASSED " in line)
    assert ran == sorted(cases)
    assert result.ret == 0


# What follows is about the runs of other projects.


def foreign(project, *arguments, program=None):
    call = [sys.executable, *(program or ("-m", "pytest")), *PLUGIN, *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=False, cwd=project.path, timeout=120)


def test_a_run_that_does_not_ask_for_the_suite_is_as_it_was(pytester):
    pytester.makepyfile(
        test_theirs="""
        import sys

        def test_theirs(request):
            assert "steps_conformance.pytest_plugin" in sys.modules
            heavy = {"steps_conformance.case", "steps_backends", "steps_core", "numpy", "mpmath"}
            assert heavy & sys.modules.keys() == set()
            assert not any("conformance suite" in line for line in request.config.getini("markers"))
        """
    )
    result = foreign(pytester, "-W", "error", "--strict-markers", "--strict-config")

    assert "1 passed" in result.stdout, result.stdout
    assert result.returncode == 0


def test_another_project_may_have_options_of_the_same_names(project):
    project.makeconftest(
        """
        def pytest_addoption(parser):
            parser.addoption("--target", default="theirs")
            parser.addoption("--backend", action="store_true")

        def pytest_report_header(config):
            return f"theirs: {config.option.target} {config.option.backend}"
        """
    )
    project.makepyfile(test_theirs="def test_theirs():\n    pass\n")
    alone = run(project, "--target", "x")
    both = run(project, ONE, "--target", "y", "--backend", "--steps-backend", "numpy")

    alone.stdout.fnmatch_lines(["theirs: x False"])
    both.stdout.fnmatch_lines(["theirs: y True"])
    assert (alone.parseoutcomes(), both.parseoutcomes()) == ({"passed": 1}, {"passed": 1})


def test_a_word_of_ours_that_is_free_is_still_unknown_in_other_runs(project):
    project.makepyfile(test_theirs="def test_theirs():\n    pass\n")
    result = run(project, "--backend", "numpy")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unrecognized arguments: --backend*"])


def test_options_of_the_suite_without_the_suite_are_refused(project):
    """Such a run would be green whatever the target does."""
    project.makepyfile(test_theirs="def test_theirs():\n    pass\n")
    result = run(project, "--steps-target", "faulty:doubling")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*--steps-target is given, and the suite is not: add --pyargs steps_conformance"]
    )


def test_the_distribution_registers_the_plugin():
    root = os.fspath(collecting.__file__).split("/conformance/steps_conformance/")[0]
    with open(f"{root}/pyproject.toml", encoding="utf-8") as stream:  # noqa: PTH123
        text = stream.read()

    assert '[project.entry-points.pytest11]\nsteps_conformance = "steps_conformance.pytest_plugin"\n' in text
