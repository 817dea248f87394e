"""The reports about other libraries: each is answered, and the answers would notice the fault again."""

import ast
from pathlib import Path

import numpy as np
import pytest
import steps_backends
from steps_conformance.case import load_cases
from steps_conformance.compare import Mismatch
from steps_conformance.run import Run
from steps_conformance.vectors import reports
from steps_conformance.vectors.model import load_vectors
from steps_conformance.vectors.pages import PAGES
from steps_conformance.vectors.playing import play
from steps_conformance.vectors.reports import NUMBERS, PROBES, load_probes, load_reports

ROOT = Path(__file__).parents[2]
ANSWERED = [*load_reports(), *load_probes()]


def test_every_report_of_the_survey_is_there_once():
    assert [report.label for report in load_reports()] == [str(number) for number in NUMBERS]
    assert len(load_probes()) == len({probe.label for probe in load_probes()}) == PROBES


@pytest.mark.parametrize("answered", ANSWERED, ids=lambda answered: answered.label)
def test_what_answers_a_report_exists(answered):
    missing = [identity for identity in answered.shown if identity not in load_cases()]
    missing += [name for name in answered.tests if not _is_a_test(name)]

    assert missing == []
    assert answered.about and (answered.right or answered.label not in map(str, NUMBERS))


def _is_a_test(name):
    file, function = name.split("::")
    found = [node for node in ast.parse((ROOT / file).read_text()).body if isinstance(node, ast.FunctionDef)]
    return function in {node.name for node in found}


def test_vectors_and_reports_name_each_other():
    """No vector names a thread that is not in the list, and what shows a report says so."""
    vectors = {vector.id: vector for listed in load_vectors().values() for vector in listed}
    listed = {thread for report in load_reports() for thread in report.threads}
    named = {source for vector in vectors.values() for source in vector.source.split(", ") if "#" in source}
    silent = [
        identity
        for report in load_reports()
        for identity in report.shown
        if identity in vectors and report.threads[0] not in vectors[identity].source
    ]

    assert len(named) > 40
    assert named <= listed
    assert silent == []


def test_a_report_without_an_answer_is_refused(monkeypatch):
    monkeypatch.setattr(reports, "_content", lambda: {"probe": [{"input": "x", "went": "y"}]})

    with pytest.raises(ValueError, match=r"report x needs either shown or tests, or else outside"):
        load_probes()


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_are_made_from_what_is_there_now(name):
    """`python -m steps_conformance.vectors.pages docs` writes them."""
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PAGES[name]()


class PlainClip:
    """Clips as several libraries do: squares in the dtype of the leaf, a small number added to the norm."""

    name, version, path, hash = "plain", "1", "here", "0"
    capabilities = frozenset({"state_form", "trees", "error_form"})

    def make(self, description):
        options = description["options"]
        made = PlainClip()
        made.threshold = float.fromhex(options["threshold"]["float"])
        return made

    def init(self, _):
        return {}

    def apply(self, gradients, _, state):
        leaves = gradients if isinstance(gradients, list) else [gradients]
        with np.errstate(all="ignore"):
            norm = np.sqrt(sum(np.sum(leaf * leaf, dtype=leaf.dtype) for leaf in leaves))
            factor = np.minimum(self.threshold / (norm + 1e-6), 1)
            clipped = [leaf * leaf.dtype.type(factor) for leaf in leaves]
        return (clipped if isinstance(gradients, list) else clipped[0]), state


@pytest.mark.parametrize(
    "identity",
    [
        "CLIP-GLOBAL-004/v-fp16-300",
        "CLIP-GLOBAL-004/v-fp16-norm-5000",
        "CLIP-GLOBAL-004/v-report-fp16-100x300",
        "CLIP-GLOBAL-004/v-report-fp16-30000",
        "CLIP-GLOBAL-004/v-report-128x1e19",
        "CLIP-GLOBAL-004/v-0-1e30",
        "CLIP-GLOBAL-005/v-report-fp16-4x1e-4",
        "CLIP-GLOBAL-005/v-1-1e-30",
        "CLIP-GLOBAL-012/v-report-1e-7-to-2e-7",
        "CLIP-GLOBAL-012/v-report-1e-8-to-1e-9",
        "CLIP-GLOBAL-011/v-bf16-5120-ones",
        "CLIP-GLOBAL-003/v-probe-norm-is-threshold",
        "CLIP-GLOBAL-001/v-report-complex-3-4",
        "CLIP-OPTION-003/v-global-inf",
    ],
)
def test_a_clip_like_those_of_the_reports_is_caught(identity):
    (vector,) = [one for listed in load_vectors().values() for one in listed if one.id == identity]

    with pytest.raises(Mismatch, match=r"call 1 of 1: gradients"):
        play(Run(steps_backends.get("numpy"), PlainClip()), vector)
