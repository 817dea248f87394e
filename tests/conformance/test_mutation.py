"""The mutation engine has teeth itself: it makes the mistakes that it promises, and judges them rightly."""

import ast
import re
import time
from itertools import chain
from pathlib import Path

import pytest
import steps_backends
from planted import covering, isolated, judges, killing, loading
from planted.equivalent import Elsewhere, Explained, ExplanationError, Reason, load_explained
from planted.fate import Fate
from planted.loading import forget, load_copy, source_of
from planted.mutants import mutants_of
from planted.operators import changes
from planted.scoring import SCOPE, scores
from steps_conformance.case import load_cases

SOURCE = source_of("steps_core")
CASES = {
    identity: case
    for identity, case in load_cases().items()
    if case.requirement in ("SGD-001", "CHAIN-010", "CLIP-GLOBAL-003") and case.dtypes <= {"float32"}
}
# they make inputs
UNJUDGED = {"oracle.extremes", "oracle.samples"}
# JAX warns of a fork in its process, where tests before these have loaded it. The children run NumPy alone.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork\\(\\) was called:RuntimeWarning")
needs_fork = pytest.mark.skipif(not isolated.is_available, reason="this system cannot fork")

MADE = {
    "a < b": ["a <= b", "a >= b"],
    "a == b": ["a != b"],
    "a is None": ["a is not None"],
    "a in b": ["a not in b"],
    "a + b": ["a - b"],
    "a ** b": ["a * b"],
    "-a": ["a"],
    "not a": ["a"],
    "a and b": ["a or b", "b", "a"],
    "True": ["False"],
    "3": ["4", "2"],
    "0.5": ["1.5", "0.0"],
    "'Sum'": ["'sUM'"],
    "f(a, b)": ["f(b, a)"],
    "f(xp, a, b)": ["f(xp, b, a)"],
    "f(xp, a)": ["a"],
    "minimum(a, b)": ["maximum(a, b)"],
    "f(a, k=b)": ["f(a)"],
    "where(a, b, c)": ["where(b, a, c)", "where(a, c, b)", "b", "c"],
    "(a, b)": ["(b, a)"],
    "{'x': a, 'y': b}": ["{'x': b, 'y': a}"],
    "a if b else c": ["a if True else c", "a if False else c", "a if not b else c"],
    "a[1:b]": [],
    "zip(a, b, strict=True)": ["zip(b, a, strict=True)"],
}


@pytest.mark.parametrize("text", MADE)
def test_an_expression_has_these_mutants(text):
    node = ast.parse(text, mode="eval").body

    made = [ast.unparse(ast.fix_missing_locations(c.replacement)) for c in changes(node, in_text=False)]

    assert made == MADE[text]


STATEMENTS = {
    "f()": ["pass"],
    "raise E": ["pass"],
    "a = g(a)": ["pass"],
    "a = g(b)": [],
    "a += b": ["a -= b", "pass"],
    "if a:\n    b": ["if True:\n    b", "if False:\n    b", "if not a:\n    b"],
    "while a < b:\n    c": ["while False:\n    c"],
    "with a:\n    b": ["if True:\n    b"],
    "with a as c:\n    b": [],
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_has_these_mutants(text):
    (node,) = ast.parse(text).body

    made = [ast.unparse(ast.fix_missing_locations(c.replacement)) for c in changes(node, in_text=False)]

    assert made == STATEMENTS[text]


def test_words_of_an_error_are_free():
    node = ast.parse("'be a number'", mode="eval").body

    assert list(changes(node, in_text=True)) == []


def test_every_mutant_has_an_identity_of_its_own():
    for module in SCOPE:
        identities = [mutant.identity for mutant in mutants_of(SOURCE, module)]
        assert len(set(identities)) == len(identities) > 10


def test_making_a_mutant_leaves_the_source_as_it_was():
    before = ast.dump(SOURCE.tree("numerics.moments"))
    codes = {mutant.code(SOURCE).co_code for mutant in mutants_of(SOURCE, "numerics.moments")}

    assert codes
    assert ast.dump(SOURCE.tree("numerics.moments")) == before


def mutant_called(module, start):
    return next(one for one in mutants_of(SOURCE, module) if one.identity.startswith(start))


def test_a_copy_differs_in_the_mutated_module_alone():
    mutant = mutant_called("numerics.moments", "numerics.moments.next_count: arithmetic")
    copies = [load_copy(SOURCE, {"numerics.moments": mutant.code(SOURCE)}), load_copy(SOURCE)]
    codes = [
        {name: getattr(copy.numerics.moments, name).__code__.co_code for name in ("next_count", "next_trace")}
        for copy in copies
    ]
    for copy in copies:
        forget(copy)

    assert copies[0].__name__ != copies[1].__name__
    assert codes[0]["next_count"] != codes[1]["next_count"]
    assert codes[0]["next_trace"] == codes[1]["next_trace"]


def test_no_package_is_told():
    with pytest.raises(ModuleNotFoundError, match="no package is called 'no_such_package'"):
        loading.Source("no_such_package")


def test_marks_tell_what_a_case_executes():
    found = covering.footprints(CASES.values(), steps_backends.get("numpy"), SOURCE)
    modules = {module for one in found.values() for module, _ in one.statements}

    assert {one.problem for one in found.values()} == {None}
    assert {"steps.sgd", "steps.chain"} <= modules
    assert "steps.rmsprop" not in modules


@needs_fork
def test_a_process_gives_its_answer_or_tells_how_it_ended():
    def loop():
        isolated.allow_seconds(0.2)
        while True:
            time.sleep(0.01)

    def hoard():
        return [bytearray(2**30) for _ in range(64)]

    assert isolated.isolated(lambda: 6 * 7) == 42
    assert isolated.isolated(loop) == isolated.Ended("SIGALRM", -14)
    with pytest.raises(isolated.ChildFailedError, match="ZeroDivisionError"):
        isolated.isolated(lambda: 1 / 0)
    with pytest.raises(isolated.ChildFailedError, match="MemoryError"):
        isolated.isolated(hoard)


@pytest.fixture(scope="module")
def row():
    return killing.Row(steps_backends.get("numpy"), CASES, SOURCE)


@needs_fork
def test_a_wrong_sign_is_noticed_by_a_case(row):
    fate = row.try_out(mutant_called("steps.sgd", "steps.sgd.sgd_kernel: dropped sign"))

    assert fate.by.startswith("SGD-001/")
    assert not fate.survives


@needs_fork
def test_what_changes_nothing_survives_all_cases_that_execute_it(row):
    mutant = mutant_called("steps.clipping", "steps.clipping._clip_global: dropped call: per_kind")
    fate = row.try_out(mutant)

    assert fate.survives
    assert fate.tried == len(row.that_execute(mutant)) > 0


@needs_fork
def test_an_endless_loop_counts_as_noticed(row):
    impatient = killing.Row(
        steps_backends.get("numpy"), CASES, SOURCE, row.footprints, killing.Patience(least=0.5)
    )
    start = "numerics.norms.add_square_sums: comparison: len(sums) > 1 -> len(sums) >= 1"
    fate = impatient.try_out(mutant_called("numerics.norms", start))

    assert fate.by == "time"


@needs_fork
def test_what_cannot_be_imported_counts_as_noticed(row):
    broken = {"steps.sgd": compile("1 / 0", "sgd.py", "exec")}
    answer = isolated.isolated(lambda: row._first_to_notice(broken, [], None))

    assert answer == ("loading", "ZeroDivisionError: division by zero")


@needs_fork
def test_a_mutant_that_nothing_executes_survives(row):
    fate = row.try_out(mutant_called("steps.rmsprop", "steps.rmsprop.rmsprop_kernel: dropped sign"))

    assert fate.survives
    assert fate.tried == 0


@needs_fork
def test_a_case_that_fails_anyway_is_refused():
    broken = next(iter(CASES.values()))
    footprint = covering.Footprint(0.1, frozenset(), "FAIL: 3 expected, got 4", runs=False)

    with pytest.raises(killing.BaselineError, match="3 expected, got 4"):
        killing.Row(steps_backends.get("numpy"), CASES, SOURCE, {broken.id: footprint})


@needs_fork
def test_a_score_counts_survivors_and_reasons(row):
    """Of one small module, with and without a list of reasons."""
    listed = mutants_of(SOURCE, "steps.end_to_end")
    (bare,) = scores(SOURCE, ["steps.end_to_end"], [row], Explained())
    reasons = Explained({one.identity: Reason("equivalent", "nothing") for one in bare.survivors})
    (explained,) = scores(SOURCE, ["steps.end_to_end"], [row], reasons)

    assert bare.mutants == len(listed) == bare.noticed + len(bare.survivors)
    assert bare.survivors
    assert explained.survivors == []
    assert explained.explained == {"equivalent": len(bare.survivors)}
    assert (explained.noticed, explained.percent) == (bare.noticed, 100.0)


@needs_fork
def test_what_a_case_elsewhere_is_said_to_notice_is_tried_on_it_alone(row):
    first, second, *rest = mutants_of(SOURCE, "steps.end_to_end")
    where = Elsewhere("torch", ("CHAIN-001/x",))
    reasons = {one.identity: Reason("equivalent", "nothing") for one in rest}
    listed = Explained(reasons, elsewhere={first.identity: where, second.identity: where})
    asked = []

    def confirm(place, mutants):
        asked.append((place, mutants))
        return [Fate("CHAIN-001/x", 1, 0.0), Fate("", 1, 0.0)]

    (score,) = scores(SOURCE, ["steps.end_to_end"], [row], listed, confirm=confirm)

    assert asked == [(where, [first, second])]
    assert (score.noticed, score.survivors) == (1, [second])


@needs_fork
def test_arrays_in_two_processes_notice_what_one_process_cannot():
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this build of torch has no gloo")
    identity = "SHARD-003/norm-of-whole-arrays[small]"
    two = killing.Row(
        steps_backends.get("torch-dtensor"),
        {identity: load_cases()[identity]},
        SOURCE,
        patience=killing.Patience(least=60.0),
    )
    one_leaf_alone = (
        "numerics.joint._over_mesh: settled condition: 0 if mesh is None else mesh.ndim -> 0 if True"
    )

    assert two.try_out(mutant_called("numerics.joint", one_leaf_alone)).by == identity


@needs_fork
def test_a_reason_for_what_a_case_notices_is_told(row):
    listed = mutants_of(SOURCE, "steps.end_to_end")
    noticed = next(one for one in listed if not row.try_out(one).survives)
    wrong = Explained({noticed.identity: Reason("equivalent", "nothing")})
    (score,) = scores(SOURCE, ["steps.end_to_end"], [row], wrong, try_explained=True)

    assert [mutant for mutant, _ in score.listed_but_noticed] == [noticed]


def test_the_list_speaks_of_mutants_that_there_are():
    listed = [one for module in SCOPE for one in mutants_of(SOURCE, module)]

    explained = load_explained()
    places = [*explained.elsewhere.values(), *chain(*explained.unexecuted_elsewhere.values())]
    cases = load_cases()

    explained.check_known(listed, SCOPE)
    assert {case for where in places for case in where.cases} <= cases.keys()
    assert {where.row for where in places} <= {*steps_backends.names()}


def test_a_stale_entry_is_refused():
    stale = Explained({"numerics.sums.sum_over: constant: 7 -> 8": Reason("equivalent", "gone")})
    text = "numerics.sums.sum_over: constant: 7 -> 8"

    with pytest.raises(ExplanationError, match=f"mutants are gone; remove or renew in .*\n{re.escape(text)}"):
        stale.check_known(mutants_of(SOURCE, "numerics.sums"), ["numerics.sums"])
    stale.check_known([], ["numerics.norms"])


def test_the_judges_are_modules_of_the_suite_with_tests_and_their_list_is_current():
    source = source_of("steps_conformance")
    listed = [mutant for module in judges.CHECKED_BY for mutant in mutants_of(source, module)]
    tests = {file for files in judges.CHECKED_BY.values() for file in files if file.endswith(".py")}

    assert {
        name for name in source.files if name.startswith("oracle.")
    } - UNJUDGED <= judges.CHECKED_BY.keys()
    assert {file for file in tests if not Path(__file__).with_name(file).is_file()} == set()
    load_explained(judges.LIST).check_known(listed, judges.CHECKED_BY)


ENTRY = '[[because]]\nkind = "{kind}"\nreason = "{reason}"\n{rest}\n'
LONG = "a reason that says something"
WRONG = {
    "unknown kind": (ENTRY.format(kind="lazy", reason=LONG, rest='mutants = ["a: b"]'), "got 'lazy'"),
    "no reason": (ENTRY.format(kind="equivalent", reason="", rest='mutants = ["a: b"]'), "and a reason"),
    "nothing named": (ENTRY.format(kind="equivalent", reason=LONG, rest=""), "names nothing"),
    "named twice": (
        ENTRY.format(kind="equivalent", reason=LONG, rest='mutants = ["a: b", "a: b"]'),
        "'a: b' is listed twice",
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_malformed_list_is_refused(text, tmp_path):
    content, message = WRONG[text]
    (tmp_path / "list.toml").write_text(content)

    with pytest.raises(ExplanationError, match=re.escape(message)):
        load_explained(tmp_path / "list.toml")
