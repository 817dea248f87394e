"""Targets that are commands: what goes through the pipe, and every way in which a command can go wrong."""

import json
import re
import shlex
import sys
from collections import OrderedDict
from importlib import resources

import jsonschema
import pytest
from steps_backends import HostArray, host_array
from steps_conformance.descriptions import description
from steps_conformance.journal import JournalReader, JournalWriter
from steps_conformance.loading import NotFoundError, load_target
from steps_conformance.targets.command import CommandTarget
from steps_conformance.targets.connection import (
    Connection,
    NotStartedAgainError,
    ProtocolError,
    TargetEndedError,
    TargetFaultError,
)
from steps_conformance.targets.protocol import CAPABILITIES, REFUSAL_KINDS, Refusal
from steps_conformance.targets.scope import NotOfferedError
from steps_conformance.targets.wire import METHODS, PROTOCOL, MalformedTreeError, decoded, encoded
from steps_conformance.worker import Order, carry_out

SCHEMA = json.loads((resources.files("steps_conformance") / "targets/protocol.schema.json").read_text())
CLIP = description("GradientClippingStep")

PROGRAM = """
import json, os, sys, time
HELLO = {"protocol": 1, "name": "planted", "version": "1.0"}
HALF = {"dtype": "float32", "shape": [1], "values": [0.5]}
def answer(request, **kind):
    print(json.dumps({"id": request["id"], **kind}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "hello":
        answer(request, result=HELLO)
    elif request["do"] == "make":
        answer(request, result={"step": "s"})
    else:
        BEHAVIOUR
"""


@pytest.fixture
def planted_command(tmp_path):
    """Make a target of a command that greets and makes steps, and then behaves as planted."""
    made = []

    def make(behaviour, *, hello="", restarts=10, longest_line=10_000):
        file = tmp_path / "planted.py"
        program = PROGRAM.replace("BEHAVIOUR", behaviour).replace("for line", f"{hello}\nfor line", 1)
        file.write_text(program)
        words = [sys.executable, str(file)]
        connection = Connection(words, restarts=restarts, longest_line=longest_line)
        made.append(CommandTarget(shlex.join(words), connection))
        return made[-1]

    yield make
    for target in made:
        target.close()


def applied(target):
    return target.make(CLIP).apply(host_array([1.0]), None, None)


WAYS_TO_END = {
    "between-two-lines": ("os._exit(3)", "the target's process ended with status 3 without an answer"),
    "with-success": ("os._exit(0)", "the target's process ended with status 0 without an answer"),
    "by-a-signal": (
        "os.kill(os.getpid(), 9)",
        "the target's process was ended by signal 9 without an answer",
    ),
    "in-half-a-line": (
        'sys.stdout.write(\'{"id": 3, "resu\'); sys.stdout.flush(); os._exit(0)',
        'ended with status 0 in the middle of a line: \'{"id": 3, "resu\'',
    ),
    "by-closing-its-output": (
        "os.close(1); time.sleep(60)",
        "closed its standard output and went on without an answer",
    ),
}


@pytest.mark.parametrize(("behaviour", "text"), WAYS_TO_END.values(), ids=WAYS_TO_END.keys())
def test_a_command_that_ends_says_how(planted_command, behaviour, text):
    with pytest.raises(TargetEndedError, match="asked to apply, ") as caught:
        applied(planted_command(behaviour))

    assert text in str(caught.value)


def test_the_last_words_of_a_command_that_ends_are_shown(planted_command):
    target = planted_command("print('out of cheese', file=sys.stderr, flush=True); os._exit(1)")

    with pytest.raises(TargetEndedError, match=r"(?s)ended with status 1 .*out of cheese"):
        applied(target)


def test_what_a_command_floods_to_standard_error_is_read_and_cut(planted_command):
    flood = "for n in range(30_000): print('flood', n, 'x' * 100, file=sys.stderr)"
    target = planted_command(f'exec("{flood}"); sys.stderr.flush(); os._exit(1)')

    with pytest.raises(TargetEndedError, match="flood 29999 x") as caught:
        applied(target)

    assert len(str(caught.value)) < 20_000


BROKEN = {
    "garbage": ("print('Loading...', flush=True)", "answered what is no JSON (.*): 'Loading...\\n'"),
    "huge-line": ("print('x' * 100_000, flush=True)", "a line of more than 10000 bytes, which starts 'xxx"),
    "another-id": ("answer({'id': 99}, result={})", "must answer request 3, answered with the id 99"),
    "no-id": ("print('{\"result\": {}}', flush=True)", "must answer request 3, answered with the id None"),
    "a-list": ("print('[]', flush=True)", "must answer an object, got [] (list)"),
    "nothing": ("answer(request)", "one of result, refused and error, an object; got none"),
    "two-at-once": ("answer(request, result={}, error={})", "got result, error"),
    "unknown": ("answer(request, outcome={})", "got outcome"),
    "no-object": ("answer(request, result=[])", "an object; got result"),
    "without-a-part": (
        "answer(request, result={'gradients': None})",
        "the result lacks state, it has gradients",
    ),
    "odd-refusal": (
        "answer(request, refused={'kind': 'OSError', 'message': ''})",
        "refused.kind must be one of ValueError, TypeError, KeyError, got 'OSError'",
    ),
    "refusal-without-a-text": (
        "answer(request, refused={'kind': 'ValueError'})",
        "refused.message must be a text, got None (NoneType)",
    ),
    "no-number": (
        "answer(request, result={'gradients': {'list': [HALF]}, 'state': None})",
        'gradients[0]: values[0]: a number must be a text such as "0x1p-1", got 0.5 (float); write 0x1p-1',
    ),
    "nested-too-deep": (
        "print('{\"id\": 3, \"result\": ' + '[' * 2_000 + ']' * 2_000 + '}', flush=True)",
        'answered JSON that is nested too deep to be read: \'{"id": 3, "result": [[[',
    ),
    "no-tree": (
        "answer(request, result={'gradients': 1.0, 'state': None})",
        "gradients must be null or an object, got 1.0 (float)",
    ),
}


@pytest.mark.parametrize(("behaviour", "text"), BROKEN.values(), ids=BROKEN.keys())
def test_an_answer_against_the_protocol_is_shown(planted_command, behaviour, text):
    text = re.escape(text).replace(r"\.\*", ".*")

    with pytest.raises(ProtocolError, match=text):
        applied(planted_command(behaviour))


ECHO = "answer(request, result={'gradients': request['gradients'], 'state': None})"


def test_a_second_answer_is_found_with_the_next_request(planted_command):
    target = planted_command(f"{ECHO}; {ECHO}")
    applied(target)

    with pytest.raises(ProtocolError, match=r"answered with the id 3 \(int\); a request has one answer, and"):
        target.make(CLIP)


LAST = {
    "none": ("pass", "PASS", ""),
    "a-second-answer": (
        ECHO,
        "ERROR",
        "after the last case, asked to hello: must answer request 10, answered with the id 9 (int)",
    ),
    "an-end": ("os._exit(0)", "PASS", ""),
}


@pytest.mark.parametrize(("more", "outcome", "message"), LAST.values(), ids=LAST.keys())
def test_what_follows_the_last_answer_is_found_too(planted_command, tmp_path, more, outcome, message):
    """The case sends the requests 2 to 9; a target that ends after its last answer harms nobody."""
    planted_command(f"{ECHO}\n        if request['id'] == 9: {more}")
    command = shlex.join([sys.executable, str(tmp_path / "planted.py")])
    journal = JournalWriter(tmp_path / "journal.jsonl")

    case = "CLIP-GLOBAL-003/equal-to-threshold-is-kept[global-float32]"
    carry_out(Order(command, "host", ids=(case,)), journal)

    journal.close()
    *_, end = JournalReader(tmp_path / "journal.jsonl").new_events()
    assert (end["outcome"], message in end["message"]) == (outcome, True)


def test_after_a_broken_answer_a_new_process_answers(planted_command):
    """The line that was left over belongs to nobody."""
    target = planted_command("print('a'); print('b', flush=True)")

    for _ in range(2):
        with pytest.raises(ProtocolError, match=r"no JSON .*: 'a"):
            applied(target)


def test_a_step_of_a_process_that_has_ended_is_not_asked_for_again(planted_command):
    target = planted_command("os._exit(3)")
    step = target.make(CLIP)
    for _ in range(2):
        with pytest.raises(TargetEndedError, match="ended"):
            step.apply(host_array([1.0]), None, None)

    target.make(CLIP)
    with pytest.raises(TargetEndedError, match="the step was made in a process of the target that has ended"):
        step.init(None)


def test_a_command_is_started_again_so_often_and_no_more(planted_command):
    target = planted_command("os._exit(3)", restarts=2)

    for _ in range(3):
        with pytest.raises(TargetEndedError, match="status 3"):
            applied(target)
    with pytest.raises(NotStartedAgainError, match="may be started again 2 times, see --restarts"):
        applied(target)


def test_a_refusal_and_a_fault_come_through(planted_command):
    refusing = planted_command("answer(request, refused={'kind': 'KeyError', 'message': 'no such thing'})")
    with pytest.raises(Refusal, match="KeyError: no such thing"):
        applied(refusing)

    failing = planted_command("answer(request, error={'message': 'division by zero'})")
    with pytest.raises(TargetFaultError, match="division by zero"):
        applied(failing)


GREETINGS = {
    "protocol": ("HELLO['protocol'] = 2", "the target speaks protocol 2, this suite speaks 1"),
    "name": ("del HELLO['name']", "the result lacks name, it has protocol, version"),
    "version": ("HELLO['version'] = 1.0", r"version must be a text, got 1.0 \(float\)"),
}


@pytest.mark.parametrize(("hello", "text"), GREETINGS.values(), ids=GREETINGS.keys())
def test_a_greeting_against_the_protocol_is_shown(planted_command, hello, text):
    target = planted_command("pass", hello=hello)

    with pytest.raises(ProtocolError, match=text):
        assert target.name and target.version


@pytest.mark.parametrize(
    ("hello", "text"),
    [
        ("HELLO['dtypes'] = ['float8']", "dtypes must come from float16, .*, got float8"),
        ("HELLO['dtypes'] = ['float64']", "dtypes must contain float32, got float64"),
        ("HELLO['steps'] = ['ClipStep']", "steps must come from AdamStep, .*, got ClipStep"),
        ("HELLO['steps'] = 'AdamStep'", "steps must be a list of texts, got 'AdamStep'"),
        ("HELLO['lacks'] = {'AdamStep': ['amsgrad']}", "lacks must be an object of objects"),
        (
            "HELLO['lacks'] = {'AdamStep': {'amsgard': True}}",
            "asked to hello: lacks.AdamStep: there is no option 'amsgard' .*did you mean amsgrad?",
        ),
        (
            "HELLO['lacks'] = {'AdamStep': {'amsgrad': False}}",
            "lacks.AdamStep.amsgrad must be true or a list",
        ),
    ],
)
def test_a_scope_that_means_nothing_is_shown(planted_command, hello, text):
    with pytest.raises(ProtocolError, match=text):
        planted_command("pass", hello=hello).scope  # noqa: B018 - reading it checks it


def test_the_tested_file_is_the_first_that_the_command_names(planted_command, tmp_path):
    target = planted_command("pass")
    before = target.hash

    assert target.path == str(tmp_path / "planted.py")
    (tmp_path / "planted.py").write_text("another program")
    assert target.hash != before


def test_a_command_may_say_itself_what_is_tested(planted_command):
    target = planted_command("pass", hello="HELLO.update(path='/opt/clip.so', hash='abc')")

    assert (target.path, target.hash) == ("/opt/clip.so", "abc")


def nested(levels):
    return {"list": [nested(levels - 1)]} if levels else None


TREES = {
    "none": None,
    "array": host_array([[1.0, -0.0], [float("inf"), 1e-45]]),
    "whole-numbers": HostArray("int32", (), (2147483646,)),
    "bools": HostArray("bool", (2,), (True, False)),
    "complex": host_array([1 + 2j, complex(-0.0, 5e-324)], "complex128"),
    "nested": {"a": [host_array(1.0), (None, {})], "": (), "größe": []},
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
def test_a_tree_that_travels_there_and_back_is_the_same(tree):
    there = json.loads(json.dumps(encoded(tree)))

    assert decoded(there, "tree") == tree
    validator("tree").validate(there)


def test_a_tree_travels_that_is_as_deep_as_may_be():
    assert encoded(decoded(nested(100), "tree")) == nested(100)


def test_nan_and_the_sign_of_zero_travel():
    nan, zero = decoded(encoded(host_array([float("nan"), -0.0])), "tree").values

    assert nan != nan
    assert str(zero) == "-0.0"


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (1.0, "passes a float"),
        (OrderedDict(a=None), "passes a OrderedDict"),
        ({1: None}, r"a dict with the keys \[1\]"),
        ([{1.0}], "passes a set"),
    ],
)
def test_what_the_protocol_does_not_carry_is_not_offered(tree, text):
    with pytest.raises(NotOfferedError, match=f"the protocol carries dicts .*; this case .*{text}"):
        encoded(tree)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([], r"state must be null or an object, got \[\] \(list\)"),
        ({"dict": {}, "list": []}, "state must have the one key .*, got dict, list"),
        ({}, "got none"),
        ({"dict": {"a": {"set": []}}}, r"state\['a'\] must have the one key"),
        ({"list": [None, 3]}, r"state\[1\] must be null or an object, got 3"),
        ({"dtype": "float32", "shape": [2], "values": ["+0"]}, "state: shape .2,. needs 2 values, got 1"),
        ({"dtype": "float32", "shape": [], "values": ["0.1"]}, "a number must look like 0x1p-3"),
        (
            {"dtype": "float32", "shape": [], "values": [0.5]},
            r'state: values\[0\]: a number must be a text such as "0x1p-1", got 0.5 \(float\); write 0x1p-1',
        ),
        (
            {"dtype": "float32", "shape": [], "values": "+0"},
            r"state: values must be a list, .*, got '\+0' \(str\)",
        ),
        (
            {"dtype": "float32", "shape": "2", "values": ["+0", "+0"]},
            r"state: shape must be a list of whole numbers from 0 on, such as \[2, 3\], got '2' \(str\)",
        ),
        ({"dtype": "float32", "shape": [-1], "values": []}, r"shape must .*, got \[-1\] \(list\)"),
        ({"dtype": "float32", "shape": [True], "values": ["+0"]}, r"shape must .*, got \[True\] \(list\)"),
        (
            {"dtype": "float8", "shape": [0], "values": []},
            r"dtype must be one of float16, .*got 'float8' \(str\)",
        ),
        (
            {"dtype": ["f"], "shape": [0], "values": []},
            r"dtype must be one of float16, .*got \['f'\] \(list\)",
        ),
        (
            {"dtype": "bool", "shape": [1], "values": ["+0"]},
            r"of a bool array must be true or false, got '\+0'",
        ),
        (
            {"dtype": "float32", "shape": [1], "values": [True]},
            r"must be a text such as .*, got True \(bool\)$",
        ),
        ({"dtype": "float32", "shape": [1], "values": [["+0", "+0"]]}, r"must be a text such as .* \(list\)"),
        (
            {"dtype": "complex64", "shape": [1], "values": ["+0"]},
            "of a complex64 array must be a pair of texts",
        ),
        ({"dtype": "int32", "shape": [1], "values": ["0x3p-1"]}, r"'0x3p-1' \(str\) is no number of int32"),
        ({"dtype": "uint8", "shape": [1], "values": ["0x1p+8"]}, "is no number of uint8"),
        ({"dtype": "int32", "shape": [1], "values": ["nan"]}, "'nan' .* is no number of int32"),
        ({"dtype": "float64", "shape": [], "values": ["0x1p-1075"]}, "is no number of float64; round before"),
        ({"dtype": "float64", "shape": [], "values": ["0x1p+1024"]}, "is no number of float64; round before"),
        (nested(101), r"state\[0\]\[0\].* must be nested at most 100 levels deep; flatten it"),
        (
            {"dtype": "float32", "shape": [], "values": ["0x1000001p+0"]},
            r"state: values\[0\]: 16777217.0 is no number of float32",
        ),
    ],
)
def test_what_is_no_tree_says_where_and_why(data, text):
    with pytest.raises(MalformedTreeError, match=text):
        decoded(data, "state")


def validator(definition):
    return jsonschema.Draft202012Validator({**SCHEMA, "oneOf": [{"$ref": f"#/$defs/{definition}"}]})


class Listening(Connection):
    """A connection that keeps what goes over it."""

    def __init__(self, command):
        super().__init__(command)
        self.requests, self.answers = [], []

    def _exchanged(self, process, request, method):
        line = super()._exchanged(process, request, method)
        self.requests.append(json.loads(request))
        self.answers.append(json.loads(line))
        return line


SERVE = [
    *(sys.executable, "-m", "steps_conformance.targets.serve"),
    "steps_conformance.targets.steps_core:target",
]


def test_everything_that_is_said_follows_the_schema(tmp_path):
    """A conversation with every method, a refusal and a fault."""
    listening = Listening(SERVE)
    target = CommandTarget(shlex.join(SERVE), listening)
    assert target.capabilities == set(CAPABILITIES)
    momentum = target.make(description("MomentumStep"))
    weights = {"a": [host_array([1.0, 2.0]), None]}
    state = momentum.init(weights)
    result, state = momentum.apply(weights, weights, state)
    assert target.apply_updates(weights, result) == {"a": [host_array([2.0, 4.0]), None]}
    target.save_state(state, str(tmp_path / "state.safetensors"))
    assert target.load_state(str(tmp_path / "state.safetensors"), momentum.init(weights)) == state
    assert target.negates(description("AdamStep")) is True
    target.check_end_to_end(description("AdamStep"))
    assert target.describe(description("AdamStep")) == description("AdamStep")
    with pytest.raises(Refusal, match="nonsense"):
        target.make(description("GradientClippingStep", variant="nonsense"))
    with pytest.raises(TargetFaultError, match="no step is called -1; make it first"):
        listening.ask("init", step=-1, weights=None)
    target.close()

    assert {request["do"] for request in listening.requests} == set(METHODS)
    assert {key for answer in listening.answers for key in answer} == {"id", "result", "refused", "error"}
    for request, answer in zip(listening.requests, listening.answers, strict=True):
        validator("request").validate(request)
        validator("answer").validate(answer)
        if "result" in answer:
            validator(f"results/{request['do']}").validate(answer["result"])


def test_the_schema_names_what_the_code_knows():
    results = SCHEMA["$defs"]["results"]
    hello = results["hello"]["properties"]
    refused = SCHEMA["$defs"]["answer"]["oneOf"][1]["properties"]["refused"]

    assert tuple(results) == METHODS
    assert hello["protocol"]["const"] == PROTOCOL
    assert set(hello["capabilities"]["items"]["enum"]) == set(CAPABILITIES)
    assert tuple(refused["properties"]["kind"]["enum"]) == REFUSAL_KINDS


@pytest.mark.parametrize(
    "message",
    [
        {"id": 1, "do": "dance"},
        {"id": 1, "do": "make"},
        {"id": 1, "do": "init", "step": 0, "weights": {"set": []}},
        {"id": 1, "result": {}, "error": {"message": ""}},
        {"id": 1, "refused": {"kind": "OSError", "message": ""}},
        {"result": {}},
    ],
)
def test_the_schema_refuses_what_is_no_message(message):
    with pytest.raises(
        jsonschema.ValidationError, match=r"is not valid under any|is a required|valid under each"
    ):
        jsonschema.Draft202012Validator(SCHEMA).validate(message)


@pytest.mark.parametrize("reference", ["no-such-program --serve", "module", ":attribute", ""])
def test_a_target_that_is_nothing_says_what_can_be_written(reference):
    with pytest.raises(
        NotFoundError, match=r"write module:attribute, .* or path:DIR .* or a command"
    ) as caught:
        load_target(reference)

    assert repr(reference) in str(caught.value)


def test_a_command_with_an_open_quote_is_shown():
    with pytest.raises(NotFoundError, match=r'"node \'clip.js" cannot be taken apart: No closing quotation'):
        load_target("node 'clip.js")
