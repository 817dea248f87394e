"""The catalogue of planted faults: the suite notices every one, by every requirement that it breaks."""

import importlib
import re

import pytest
from planted.catalogue import Fault, catalogue_hash, load_faults
from planted.equivalent import load_explained
from planted.judging import Judge
from planted.page import PAGE, page, read_data
from steps_conformance.case import load_cases
from steps_conformance.requirements import load_requirements

FAULTS = load_faults()


@pytest.fixture(scope="module")
def judge():
    return Judge(load_cases())


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: f"{fault.row}-{fault.name}")
def test_a_fault_is_noticed_by_every_requirement_that_it_breaks(judge, fault):
    judgement = judge.judge(fault)

    assert judgement.missed == []


def test_there_are_faults_of_every_kind():
    topics = {fault.topic for fault in FAULTS.values()}

    assert len(FAULTS) >= 60
    assert topics == {"chains", "clipping", "contract", "files", "graphs", "optimizers", "schedules"}
    assert {fault.row for fault in FAULTS.values()} >= {"numpy", "array-api-strict-device1", "jax-jit"}


def test_a_fault_names_requirements_that_there_are():
    known = load_requirements()
    unknown = {identity for fault in FAULTS.values() for identity in fault.breaks} - known.keys()

    assert unknown == set()


def test_a_fault_that_names_what_it_does_not_break_is_told(judge):
    (climbs,) = [fault for fault in FAULTS.values() if fault.name == "climbs"]
    wrong = Fault("climbs elsewhere", ("SGD-001", "CLIP-LAYER-001"), "", climbs.replaces, climbs.make)

    judgement = judge.judge(wrong)

    assert not judgement.is_caught
    assert judgement.missed == ["CLIP-LAYER-001"]
    assert judgement.noticed_by["SGD-001"].startswith("SGD-001/")


def test_a_copy_without_a_fault_is_not_noticed(judge):
    intact = Fault(
        "nothing", ("SGD-001", "CLIP-WEIGHT-001"), "", "steps.sgd:sgd_kernel", lambda right, _: right
    )

    assert judge.judge(intact).missed == ["SGD-001", "CLIP-WEIGHT-001"]


def test_a_fault_leaves_the_installed_package_alone(judge):
    (climbs,) = [fault for fault in FAULTS.values() if fault.name == "climbs"]
    installed = importlib.import_module("steps_core.steps.sgd")
    kernel = installed.sgd_kernel

    planted = climbs.plant()

    assert planted["steps.sgd"].sgd_kernel is not kernel
    assert installed.sgd_kernel is kernel
    assert installed.SGDStep is not planted["steps.sgd"].SGDStep


def test_a_fault_that_replaces_nothing_is_refused():
    gone = Fault("gone", ("SGD-001",), "", "steps.sgd:no_such_kernel", lambda right, _: right)

    with pytest.raises(LookupError, match=re.escape("steps.sgd:no_such_kernel replaces nothing")):
        gone.plant()


def test_a_requirement_without_cases_is_refused(judge):
    wrong = Fault("nothing", ("CLIP-LAYER-999",), "", "steps.sgd:sgd_kernel", lambda right, _: right)

    with pytest.raises(LookupError, match=re.escape("no case shows the requirement CLIP-LAYER-999")):
        judge.judge(wrong)


def test_the_figures_are_of_this_catalogue():
    """They go stale with every fault that is added or changed; `nox -s teeth -- --write` renews them."""
    data = read_data()

    assert data["figures"]["catalogue"] == catalogue_hash()
    assert data["figures"]["faults"] == data["figures"]["caught"] == len(FAULTS)
    assert {name: list(noticed) for name, noticed in data["faults"].items()} == {
        name: list(fault.breaks) for name, fault in FAULTS.items()
    }
    assert sum(row["survivors"] for row in data["modules"].values()) == 0


def test_the_page_is_current():
    expected = page(read_data(), list(FAULTS.values()), load_explained())

    assert PAGE.read_text(encoding="utf-8") == expected
