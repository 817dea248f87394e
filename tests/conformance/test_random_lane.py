"""The random lane: finds nothing in the real steps, finds every planted fault, and keeps it as a vector."""

import json
import math
import re
from dataclasses import replace
from importlib import resources

import jsonschema
import numpy as np
import pytest
import steps_backends
from hypothesis import HealthCheck, Phase, given, seed, settings
from steps_backends import format_of, host_array
from steps_conformance.cli import app
from steps_conformance.compare import Mismatch
from steps_conformance.containers import leaves, mapped
from steps_conformance.outcomes import FAILURES, Outcome
from steps_conformance.random_lane.clips import arrays_of, clip_vector
from steps_conformance.random_lane.numbers import Range
from steps_conformance.random_lane.properties import PROPERTIES
from steps_conformance.random_lane.searching import SOURCE, file_of, search
from steps_conformance.run import Run
from steps_conformance.targets.protocol import NotExpressible, Refusal
from steps_conformance.targets.scope import Scope
from steps_conformance.targets.steps_core import PackageTarget, target
from steps_conformance.vectors.model import read_vectors
from steps_conformance.vectors.replaying import replayed
from typer.testing import CliRunner

NUMPY = steps_backends.get("numpy")
EXAMPLES = 40
LITTLE = 1 + 3e-6


class Around(PackageTarget):
    """The real steps with a fault around their calls."""

    def __init__(self, fault):
        super().__init__()
        object.__setattr__(self, "fault", fault)

    def make(self, description):
        made = super().make(description)
        return Wrapped(made, lambda *call: self.fault(description, made, *call))


class Wrapped:
    def __init__(self, step, apply):
        self.init, self.apply = step.init, apply


def each(change, tree):
    return mapped(lambda leaf, _: np.asarray(change(leaf), leaf.dtype), tree)


def threshold_of(description):
    return float.fromhex(description["options"]["threshold"]["float"])


def adds_to_the_norm(description, step, gradients, weights, state):
    """The joint norm is too large by 1e-6, as with an epsilon against the division by zero."""
    if description["options"].get("variant") != "global":
        return step.apply(gradients, weights, state)
    wide = [np.asarray(leaf, np.complex128) for _, leaf in leaves(gradients) if leaf is not None]
    with np.errstate(all="ignore"):
        length = math.sqrt(sum(np.sum(np.abs(leaf) ** 2) for leaf in wide))
        factor = min(1.0, threshold_of(description) / (length + 1e-6))
        return each(lambda leaf: leaf * factor, gradients), state


def sees_the_first_leaf_alone(description, step, gradients, weights, state):
    first = next((leaf for _, leaf in leaves(gradients) if leaf is not None), np.zeros(1))
    with np.errstate(all="ignore"):
        length = float(np.linalg.norm(np.asarray(first, np.complex128).ravel()))
        factor = min(1.0, threshold_of(description) / length) if length else 1.0
        return each(lambda leaf: leaf * factor, gradients), state


def is_off_by_little(_, step, gradients, weights, state):
    result, state = step.apply(gradients, weights, state)
    with np.errstate(all="ignore"):
        return each(lambda leaf: leaf * LITTLE, result), state


def clips_too_late(description, step, gradients, weights, state):
    result, state = step.apply(gradients, weights, state)
    with np.errstate(all="ignore"):
        return each(lambda leaf: leaf * 1.1, result), state


def shrinks_always(_, step, gradients, weights, state):
    result, state = step.apply(gradients, weights, state)
    with np.errstate(all="ignore"):
        return each(lambda leaf: leaf * 0.9, result), state


def writes_to_its_input(_, step, gradients, weights, state):
    for _, leaf in leaves(gradients):
        if leaf is not None:
            leaf[...] = 0
    return step.apply(gradients, weights, state)


def widens(_, step, gradients, weights, state):
    result, state = step.apply(gradients, weights, state)
    return mapped(lambda leaf, _: np.asarray(leaf, np.complex128), result), state


def depends_on_the_call(_, step, gradients, weights, state, calls=[0]):  # noqa: B006 - kept on purpose
    calls[0] += 1
    result, state = step.apply(gradients, weights, state)
    return each(lambda leaf: leaf + calls[0] % 2, result), state


def sees_none(_, step, gradients, weights, state):
    result, state = step.apply(gradients, weights, state)
    if any(leaf is None for _, leaf in leaves(gradients)):
        return each(lambda leaf: leaf * 0, result), state
    return result, state


def nests_otherwise(description, step, gradients, weights, state):
    result, state = step.apply(gradients, weights, state)
    if description["step"] == "ChainedStep" and "ChainedStep" in json.dumps(description["options"]):
        return each(lambda leaf: np.nextafter(leaf, 0) if leaf.dtype.kind == "f" else leaf, result), state
    return result, state


class Beta2InFloat16(PackageTarget):
    """Adam whose beta2 has gone through float16."""

    def make(self, description):
        if description["step"] == "AdamStep":
            options = dict(description["options"])
            beta2 = float(np.float16(float.fromhex(options["beta2"]["float"])))
            options["beta2"] = {"float": min(beta2, 0.9995).hex()}
            description = {**description, "options": options}
        return super().make(description)


FAULTS = {
    **{
        f"clip-{variant}": Around(is_off_by_little)
        for variant in ("per-weight", "per-layer", "per-weight-relative")
    },
    "clip-global": Around(adds_to_the_norm),
    "adam": Beta2InFloat16(),
    **{
        name: Around(is_off_by_little)
        for name in ("sgd", "momentum", "scaling", "decay-chain", "decay-graph", "clipped-descent")
    },
    "pure-clip": Around(writes_to_its_input),
    "pure-adam": Around(depends_on_the_call),
    "pure-chain": Around(widens),
    "none-passes": Around(sees_none),
    "nesting": Around(nests_otherwise),
    "power-of-two": Around(adds_to_the_norm),
    "leaf-order": Around(sees_the_first_leaf_alone),
    "clip-twice": Around(shrinks_always),
    "norm-at-most": Around(clips_too_late),
}
# what a vector cannot show: it gives each call fresh arrays, and one call
OF_SEVERAL_CALLS = {"pure-clip", "pure-adam", "none-passes", "nesting"}


@pytest.fixture(scope="module")
def found():
    return {
        name: search(PROPERTIES[name], NUMPY, faulty, number=0, examples=EXAMPLES).finding
        for name, faulty in FAULTS.items()
    }


@pytest.mark.parametrize("name", PROPERTIES)
def test_nothing_is_found_in_the_real_steps(name):
    """The part of the lane that the gate runs: the same examples every time."""
    made = search(PROPERTIES[name], NUMPY, target, number=20, examples=EXAMPLES)

    assert made.finding is None, f"{made.finding.result.message}\n{file_of(made.finding)[1]}"
    assert made.ran >= EXAMPLES


def test_every_property_has_a_planted_fault():
    assert FAULTS.keys() == PROPERTIES.keys()


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_planted_fault_is_found(found, name):
    assert found[name] is not None
    assert found[name].result.outcome in FAILURES


@pytest.mark.parametrize("name", PROPERTIES)
def test_what_is_found_is_a_file_that_fails_on_the_fault_and_passes_on_the_real_steps(found, name, tmp_path):
    file_name, text = file_of(found[name])
    (tmp_path / file_name).write_text(text)
    schema = json.loads((resources.files("steps_conformance.vectors") / "data/schema.json").read_text())
    jsonschema.validate(json.loads(text), schema)
    vectors = read_vectors(tmp_path / file_name)

    assert {vector.source for vector in vectors} == {SOURCE}
    assert {replayed(vector, NUMPY, target).outcome for vector in vectors} == {Outcome.PASS}
    outcomes = {replayed(vector, NUMPY, FAULTS[name]).outcome for vector in vectors}
    assert Outcome.FAIL in outcomes or name in OF_SEVERAL_CALLS


def test_what_is_found_is_made_small(found):
    call = found["clip-global"].vector.calls[0]

    assert [len(array.values) for array in arrays_of(call.gradients)] == [1]
    assert len(found["adam"].vector.calls) <= 2


def test_the_same_seed_finds_the_same(found):
    again = search(PROPERTIES["adam"], NUMPY, FAULTS["adam"], number=0, examples=EXAMPLES).finding

    assert file_of(again) == file_of(found["adam"])


class RefusingOne(PackageTarget):
    """Refuses what it should take: a beta2 of 0.9999."""

    def make(self, description):
        if description["options"].get("beta2") == {"float": (0.9999).hex()}:
            raise Refusal("ValueError", "planted")
        return super().make(description)


class RefusingAll(PackageTarget):
    def make(self, description):
        raise Refusal("KeyError", f"no step is called {description['step']}")


def test_a_refusal_of_some_valid_steps_is_a_finding_and_one_of_all_is_none():
    some = search(PROPERTIES["adam"], NUMPY, RefusingOne(), number=0, examples=200)
    every = search(PROPERTIES["adam"], NUMPY, RefusingAll(), number=0, examples=EXAMPLES)

    assert some.ran
    assert "the target refused: ValueError: planted" in some.finding.result.message
    assert (every.ran, every.finding) == (0, None)
    assert "KeyError: no step is called AdamStep" in every.lacking


class WithoutAdam(PackageTarget):
    scope = Scope(steps=("GradientClippingStep",))


class WithoutWordsForAdam(PackageTarget):
    def make(self, description):
        if description["step"] == "AdamStep":
            raise NotExpressible("it has no AdamStep")
        return super().make(description)


@pytest.mark.parametrize(
    ("lacking", "text"),
    [
        (WithoutAdam(), "the target does not offer AdamStep"),
        (WithoutWordsForAdam(), "it has no AdamStep"),
    ],
)
def test_a_step_that_the_target_declares_not_to_offer_is_not_searched(lacking, text):
    adam = search(PROPERTIES["pure-adam"], NUMPY, lacking, number=0, examples=EXAMPLES)
    clip = search(PROPERTIES["pure-clip"], NUMPY, lacking, number=0, examples=EXAMPLES)

    assert (adam.ran, adam.finding) == (0, None)
    assert text in adam.lacking
    assert clip.ran >= EXAMPLES


def examples_of(name, within, count=200):
    drawn = []

    @seed(1)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(PROPERTIES[name].vectors(within))
    def collect(vector):
        drawn.append(vector)

    collect()
    return drawn


def test_the_examples_have_every_kind_of_input():
    drawn = examples_of("clip-global", Range.of(NUMPY.declaration), count=400)
    trees = [vector.calls[0].gradients for vector in drawn]
    arrays = [array for tree in trees for array in arrays_of(tree)]
    reals = [array for array in arrays if not array.dtype.startswith("complex")]
    values = [(value, format_of(array.dtype)) for array in reals for value in array.values]

    assert {array.dtype for array in arrays} == set(steps_backends.LEAF_DTYPES)
    assert {len(array.shape) for array in arrays} == {0, 1, 2, 3}
    assert any(0 in array.shape for array in arrays)
    assert {dict, list, tuple} <= {type(tree) for tree in trees}
    assert any(leaf is None for tree in trees for _, leaf in leaves(tree))
    assert any(len({array.dtype for array in arrays_of(tree)}) > 1 for tree in trees)
    assert any(0 < abs(value) < form.smallest_normal for value, form in values)
    assert any(abs(value) == form.largest for value, form in values)
    assert {"nan", "inf", "-inf", "0.0", "-0.0"} <= {str(value) for value, _ in values}


@pytest.mark.parametrize(
    "name", ["clip-per-weight", "clip-per-layer", "clip-global", "clip-per-weight-relative"]
)
def test_some_examples_are_clipped_and_some_are_not(name):
    kept = [
        expected.values is None
        for vector in examples_of(name, Range.of(NUMPY.declaration))
        for expected in arrays_of(vector.calls[0].expected)
        if expected.shape and all(expected.shape)
    ]

    assert 0.1 < sum(kept) / len(kept) < 0.9


def test_a_backend_that_flushes_gets_no_subnormal_numbers():
    flushing = replace(NUMPY.declaration, traits=NUMPY.declaration.traits | {"flushes_subnormals"})
    drawn = examples_of("clip-global", Range.of(flushing))
    values = [
        (abs(part), format_of(array.dtype))
        for vector in drawn
        for array in arrays_of(vector.calls[0].gradients)
        for value in array.values
        for part in ((value.real, value.imag) if isinstance(value, complex) else (value,))
    ]

    assert not any(0 < size < form.smallest_normal for size, form in values)
    assert any(size == form.smallest_normal for size, form in values)


def invoke(*arguments):
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done


@pytest.fixture
def faulty(tmp_path, monkeypatch):
    """A module with a faulty target, found by the command."""
    (tmp_path / "faulty_clip.py").write_text(
        "from steps_conformance.targets.protocol import Refusal\n"
        "from steps_conformance.targets.steps_core import PackageTarget\n"
        "class Bent(PackageTarget):\n"
        "    def make(self, description):\n"
        "        if description['step'] == 'GradientClippingStep':\n"
        "            options = {**description['options'], 'variant': 'per-layer'}\n"
        "            description = {**description, 'options': options}\n"
        "        return super().make(description)\n"
        "class Nothing(PackageTarget):\n"
        "    def make(self, description):\n"
        "        raise Refusal('KeyError', 'no such step')\n"
        "bent, nothing = Bent(), Nothing()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return "faulty_clip"


def test_the_command_ends_with_0_where_nothing_is_found():
    done = invoke("random", "--backend", "numpy", "--property", "scaling", "--seed", "3")

    assert done.exit_code == 0, done.output
    assert "numpy: scaling: nothing found, 100 examples, seed 3" in done.output


def test_the_command_ends_with_1_keeps_what_is_found_and_says_how_to_replay_it(faulty, tmp_path):
    folder = tmp_path / "found"
    done = invoke(
        "random",
        "--backend",
        "numpy",
        "--property",
        "clip-global",
        "--target",
        f"{faulty}:bent",
        "--save",
        folder,
    )

    assert done.exit_code == 1, done.output
    assert "numpy: clip-global: FOUND with seed 0, CLIP-GLOBAL-001" in done.output
    (file,) = folder.iterdir()
    replay = done.output.partition("replay: steps-conformance ")[2].splitlines()[0]
    assert replay == f"vectors --play {file} --backend numpy --target {faulty}:bent"
    played = invoke(*replay.split())
    real = invoke("vectors", "--play", file, "--backend", "numpy")
    assert (played.exit_code, real.exit_code) == (1, 0), played.output + real.output
    assert re.search(
        r"numpy: CLIP-GLOBAL-001/v-random-clip-global-\w{12}: FAIL  call 1 of 1: ", played.output
    )
    assert re.search(r"numpy: CLIP-GLOBAL-001/v-random-clip-global-\w{12}: PASS$", real.output.strip())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "faulty_clip:nothing", "--property", "adam"), "nothing was searched"),
        (("--target", "faulty_clip:absent"), "target faulty_clip:absent: NotFoundError: "),
        (("--backend", "nunpy"), "no backend is called 'nunpy'"),
        (("--property", "clip-globul"), "no property is called 'clip-globul'; there are clip-global"),
    ],
    ids=["no-step", "target", "backend", "property"],
)
def test_the_command_ends_with_2_where_nothing_can_be_searched(faulty, arguments, message):
    given = arguments if "--backend" in arguments else (*arguments, "--backend", "numpy")
    done = invoke("random", *given)

    assert done.exit_code == 2, done.output
    assert message in done.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read as JSON: "),
        ("[]", """must have "format": "steps-vectors 1", got None (NoneType)"""),
        (
            '{"format": "steps-vectors 2"}',
            """must have "format": "steps-vectors 1", got 'steps-vectors 2' (str)""",
        ),
        ('{"format": "steps-vectors 1"}', "vectors must be a list, got None (NoneType)"),
        (
            '{"format": "steps-vectors 1", "vectors": [{}]}',
            "wrong.json, vector 1 breaks the form of vectors: KeyError: 'id'",
        ),
    ],
    ids=["no-json", "a-list", "another-format", "no-vectors", "an-empty-vector"],
)
def test_a_file_that_holds_no_vectors_cannot_be_played(tmp_path, text, message):
    (tmp_path / "wrong.json").write_text(text)
    done = invoke("vectors", "--play", tmp_path / "wrong.json", "--backend", "numpy")

    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--play", "x.json", "--check"), "--check, --write and --play exclude each other"),
        (("--backend", "numpy"), "--backend and --target go with --play FILE"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments, message):
    done = invoke("vectors", *arguments)

    assert done.exit_code == 2
    assert message in done.output


def test_a_norm_that_rounding_to_a_narrow_dtype_lifts_above_the_threshold_is_clipped_again():
    """A subnormal float16 is rounded by up to a half of itself, and that is not a fault of the step."""
    tree = [host_array([2.0**-21], "float32"), host_array([0x7B5 / 4096], "float16")]
    vector = clip_vector("global", float.fromhex("0x1.02199780bb311p-18"), tree)

    PROPERTIES["clip-twice"].holds(Run(NUMPY, target), vector)
    with pytest.raises(Mismatch, match="clipped again: leaf 0"):
        PROPERTIES["clip-twice"].holds(Run(NUMPY, Around(shrinks_always)), vector)
