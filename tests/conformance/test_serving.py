"""Serving a target of this process over the pipe: the same outcomes as without a pipe."""

import io
import json
import os
import shlex
import subprocess
import sys
import warnings

import pytest
import steps_backends
from steps_backends import host_array
from steps_conformance.descriptions import description
from steps_conformance.reports.jsonl import read
from steps_conformance.targets.protocol import Refusal
from steps_conformance.targets.scope import Scope
from steps_conformance.targets.serve import Server
from steps_conformance.targets.steps_core import PackageTarget, target
from steps_conformance.targets.wire import encoded

SERVE = (
    *(sys.executable, "-m", "steps_conformance.targets.serve"),
    "steps_conformance.targets.steps_core:target",
)
IN_ANOTHER_PROCESS = "the target runs in another process"
NOT_CARRIED = "the protocol carries"


def outcomes(report, *arguments):
    call = [sys.executable, "-m", "steps_conformance", "run", "--report", str(report), *arguments]
    subprocess.run(call, capture_output=True, check=False, timeout=500)
    return {result.id: result for result in read(report / "report.jsonl").results}


def test_through_the_pipe_every_case_ends_as_in_process_or_is_declared(tmp_path):
    topics = [
        word for topic in ("clipping", "trees", "updates", "state_files") for word in ("--topic", topic)
    ]

    direct = outcomes(tmp_path / "direct", "--backend", "numpy", *topics)
    piped = outcomes(tmp_path / "piped", "--target", shlex.join(SERVE), *topics)

    assert direct.keys() == piped.keys()
    differing = {identity for identity in direct if direct[identity].outcome != piped[identity].outcome}
    assert {piped[identity].outcome for identity in differing} == {"UNSUPPORTED"}
    assert all(piped[i].message.startswith((IN_ANOTHER_PROCESS, NOT_CARRIED)) for i in differing)
    assert len(differing) < len(direct) / 10
    assert {direct[identity].outcome for identity in differing} == {"PASS"}


def test_the_report_names_the_served_package_and_not_the_server(tmp_path):
    outcomes(tmp_path, "--target", shlex.join(SERVE), "--id", "CLIP-GLOBAL-003")

    served = read(tmp_path / "report.jsonl").header.target
    assert (served.name, served.path, served.hash) == (target.name, target.path, target.hash)


@pytest.fixture
def asked():
    """Ask a server of a target one request after the other, and return the last answer."""

    def ask(*requests, of=target, backend="numpy"):
        lines = [json.dumps({"id": n, **request}).encode() for n, request in enumerate(requests, start=1)]
        answers = io.BytesIO()
        with warnings.catch_warnings():
            # whatever this process makes of warnings, the server takes them for errors
            warnings.simplefilter("ignore")
            Server(of, steps_backends.get(backend)).serve(lines, answers)
        answered = [json.loads(line) for line in answers.getvalue().splitlines()]
        assert [answer["id"] for answer in answered] == list(range(1, len(requests) + 1))
        return answered[-1]

    return ask


MOMENTUM = {"do": "make", "description": description("MomentumStep")}
TREE = encoded([host_array([1.0])])


def test_a_request_that_is_none_is_answered_with_what_there_is(asked):
    assert "do is one of hello, make, init" in asked({"do": "dance"})["error"]["message"]
    assert "do is one of hello, make, init" in asked({"do": "serve"})["error"]["message"]
    assert "'gradients'" in asked(MOMENTUM, {"do": "apply", "step": 0})["error"]["message"]
    assert "no step is called 7" in asked({"do": "init", "step": 7, "weights": None})["error"]["message"]
    assert "speaks protocol 9" in asked({"do": "hello", "protocol": 9})["error"]["message"]


def test_a_line_that_is_no_json_is_answered_too():
    answer = Server(target, steps_backends.get("numpy")).answer(b"{half")

    assert answer["id"] is None
    assert "JSONDecodeError" in answer["error"]["message"]


class Planted(PackageTarget):
    """The package with a step of its own."""

    def __init__(self, function, scope=None):
        super().__init__()
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "scope", scope)

    def make(self, description):
        return self

    def init(self, weights):
        return {}

    def apply(self, gradients, weights, state):
        return self.function(gradients), {}


CALL = {"do": "apply", "step": 0, "gradients": TREE, "weights": None, "state": None}


def warning(gradients):
    warnings.warn("look out", RuntimeWarning, stacklevel=1)
    return gradients


def refusing(gradients):
    raise Refusal("TypeError", "no")


FAULTS = {
    "exception": (
        lambda gradients: 1 / 0,
        "ZeroDivisionError: division by zero\n  conformance/test_serving.py",
    ),
    "warning": (warning, "RuntimeWarning: look out"),
    "number": (lambda gradients: [1.0], r"gradients[0] must be an array of numpy, got 1.0 (float)"),
    "set": (lambda gradients: {1}, "gradients must be an array of numpy, got {1} (set)"),
}


@pytest.mark.parametrize(("function", "text"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_of_the_target_is_an_error_that_shows_it(asked, function, text):
    answer = asked(MOMENTUM, CALL, of=Planted(function))

    assert text in answer["error"]["message"]


def test_a_refusal_of_the_target_is_a_refusal(asked):
    answer = asked(MOMENTUM, CALL, of=Planted(refusing))

    assert answer["refused"] == {"kind": "TypeError", "message": "no"}


def test_the_target_gets_arrays_of_the_backend(asked):
    seen = []

    def remembering(gradients):
        seen.extend(gradients)
        return gradients

    answer = asked(MOMENTUM, CALL, of=Planted(remembering), backend="numpy-readonly")

    assert answer["result"]["gradients"] == TREE
    assert [leaf.flags.writeable for leaf in seen] == [False]


def test_the_scope_of_the_target_is_told(asked):
    scope = Scope(("float32", "float64"), ("SGDStep",), {"SGDStep": {"nesterov": True}})

    hello = asked({"do": "hello", "protocol": 1}, of=Planted(None, scope))["result"]

    assert (hello["dtypes"], hello["steps"]) == (["float32", "float64"], ["SGDStep"])
    assert hello["lacks"] == {"SGDStep": {"nesterov": True}}


def test_what_the_target_prints_does_not_reach_the_pipe(planted, tmp_path):
    """From Python, and from below."""
    call = [sys.executable, "-m", "steps_conformance.targets.serve", "planted_suite.printing_target:target"]
    lines = [{"id": 1, "do": "hello", "protocol": 1}, {"id": 2, **MOMENTUM}, {"id": 3, **CALL}]
    text = "".join(json.dumps(line) + "\n" for line in lines)

    done = subprocess.run(call, input=text, capture_output=True, text=True, check=True, timeout=60)

    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2, 3]
    assert "printed by Python" in done.stderr
    assert "printed from below" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="forks")
def test_a_target_that_forks_is_answered_for_once_and_a_thread_it_leaves_does_not_hold_up_the_end(planted):
    call = [sys.executable, "-m", "steps_conformance.targets.serve", "planted_suite.violent_target:target"]
    ways = ("forks", "leaves-a-thread")
    makes = [{"do": "make", "description": description("ViolentStep", way=way)} for way in ways]
    calls = [{**CALL, "step": step} for step in range(len(ways))]
    text = "".join(json.dumps({"id": n, **line}) + "\n" for n, line in enumerate([*makes, *calls], start=1))

    done = subprocess.run(call, input=text, capture_output=True, text=True, check=True, timeout=60)

    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2, 3, 4]
