"""Expectations: what they make of outcomes, and what of a file is refused."""

from dataclasses import replace

import pytest
from steps_conformance.case import Case
from steps_conformance.expectations.files import ExpectationError, load_expectations
from steps_conformance.expectations.model import Condition, Expectation, declared
from steps_conformance.expectations.resolving import resolved
from steps_conformance.outcomes import Outcome

RULE = ("A-ONE-001/x", "A-ONE-001/y", "A-ONE-001/z")


def of_case(identity="A-ONE-001/x", outcome="FAIL", **changes):
    return Expectation(identity, Outcome(outcome), "because", cases=(identity,), **changes)


def of_rule(outcome="FAIL", **changes):
    return Expectation("A-ONE-001", Outcome(outcome), "because", cases=RULE, **changes)


def made(expectations, *outcomes):
    """Return what becomes of the outcomes of the three cases; None for one that there is not."""
    found = {case: Outcome(one) for case, one in zip(RULE, outcomes, strict=False) if one}
    results = declared(found, expectations)
    return [str(results[case].outcome) if case in results else str(found.get(case, "-")) for case in RULE]


@pytest.mark.parametrize("outcome", ["FAIL", "ERROR", "CRASH", "TIMEOUT"])
def test_a_declared_failure_that_happens_is_xfail(outcome):
    assert made([of_case(outcome=outcome)], outcome, "PASS", "PASS") == ["XFAIL", "PASS", "PASS"]


def test_a_declared_failure_that_passes_is_xpass():
    assert made([of_case()], "PASS", "PASS", "PASS") == ["XPASS", "PASS", "PASS"]


@pytest.mark.parametrize("outcome", ["ERROR", "CRASH", "TIMEOUT", "UNSUPPORTED", "NOTRUN"])
def test_another_outcome_than_the_declared_one_stays_what_it_is(outcome):
    assert made([of_case()], outcome, "PASS", "PASS") == [outcome, "PASS", "PASS"]
    assert made([of_rule()], outcome, "PASS", "FAIL") == [outcome, "PASS", "XFAIL"]


def test_a_requirement_may_fail_in_some_of_its_cases():
    assert made([of_rule()], "FAIL", "PASS", "FAIL") == ["XFAIL", "PASS", "XFAIL"]


def test_a_requirement_is_xpass_where_all_its_cases_pass():
    assert made([of_rule()], "PASS", "PASS", "PASS") == ["XPASS"] * 3
    assert made([of_rule()], "PASS", "UNSUPPORTED", "PASS") == ["XPASS", "UNSUPPORTED", "XPASS"]


@pytest.mark.parametrize("other", ["NOTRUN", "CRASH", None])
def test_a_requirement_is_not_xpass_where_a_case_did_not_pass(other):
    assert made([of_rule()], "PASS", "PASS", other) == ["PASS", "PASS", other or "-"]


def test_a_requirement_is_not_xpass_where_only_some_of_its_cases_were_planned():
    assert made([of_rule(whole=False)], "PASS", "PASS", "PASS") == ["PASS"] * 3


def test_an_entry_for_a_case_goes_before_one_for_its_requirement():
    assert made([of_rule(), of_case(outcome="CRASH")], "CRASH", "FAIL", "PASS") == ["XFAIL", "XFAIL", "PASS"]
    assert made([of_rule(), of_case()], "PASS", "FAIL", "PASS") == ["XPASS", "XFAIL", "PASS"]
    # the failure of x says nothing for the requirement's entry: the others all pass
    assert made([of_rule(), of_case()], "FAIL", "PASS", "PASS") == ["XFAIL", "XPASS", "XPASS"]


def test_an_entry_that_never_comes_true_beside_one_that_explains_the_failure_is_xpass():
    both = [of_rule("ERROR"), of_rule("TIMEOUT")]

    assert made(both, "ERROR", "PASS", "PASS") == ["XFAIL", "XPASS", "XPASS"]
    assert made(both, "ERROR", "TIMEOUT", "PASS") == ["XFAIL", "XFAIL", "PASS"]
    assert made(both, "ERROR", "FAIL", "PASS") == ["XFAIL", "FAIL", "PASS"]


def test_entries_that_contradict_each_other_are_xpass_where_nothing_passes():
    assert made([of_rule("ERROR"), of_rule("TIMEOUT")], "ERROR", "ERROR", "ERROR") == ["XPASS"] * 3
    assert made([of_case(), of_case(outcome="CRASH")], "FAIL", "PASS", "PASS") == ["XPASS", "PASS", "PASS"]


def test_two_entries_of_one_outcome_that_share_a_failure_both_come_true():
    narrow = replace(of_rule(), cases=RULE[:1])

    assert made([of_rule(), narrow], "FAIL", "PASS", "FAIL") == ["XFAIL", "PASS", "XFAIL"]
    assert made([narrow, of_rule()], "FAIL", "PASS", "PASS") == ["XFAIL", "PASS", "PASS"]


@pytest.mark.parametrize(
    ("expectations", "found", "text"),
    [
        ([of_case(file="e.toml")], "PASS", "declared as FAIL (because), but it passes; "),
        (
            [of_case(file="e.toml"), of_case(outcome="CRASH")],
            "CRASH",
            "declared as FAIL (because), but it ends as CRASH; ",
        ),
    ],
)
def test_an_xpass_says_what_came_instead_and_where_the_entry_stands(expectations, found, text):
    (result,) = declared({"A-ONE-001/x": Outcome(found)}, expectations).values()

    assert result.why() == f"{text}remove the entry A-ONE-001/x from e.toml, or narrow its condition"


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        (Condition(), True),
        (Condition(backends=("numpy", "jax-jit")), True),
        (Condition(backends=("jax",)), False),
        (Condition(versions=("jax<0.11",)), True),
        (Condition(versions=("jax<0.10",)), False),
        (Condition(versions=("numpy>=1", "jax>=0.5,<0.11")), True),
        (Condition(versions=("jaxlib>=0",)), False),
        (Condition(traits=("flushes_subnormals", "x64")), True),
        (Condition(traits=("x64",)), False),
        (Condition(backends=("jax-jit",), versions=("jax<0.10",)), False),
        (Condition(dtypes=("float16",)), True),
    ],
)
def test_a_condition_holds_where_each_of_its_fields_matches(when, holds):
    facts = {"row": "jax-jit", "library": "jax", "version": "0.10.2.dev1", "traits": ("flushes_subnormals",)}

    assert when.holds_on(**facts) is holds


@pytest.mark.parametrize("version", [None, "a build of today"])
def test_a_library_without_a_version_that_can_be_compared_matches_none(version):
    assert not Condition(versions=("jax>=0",)).holds_on(row="jax", library="jax", version=version, traits=())


def test_a_library_is_found_under_either_spelling():
    when = Condition(versions=("array-api-strict>=2",))

    assert when.holds_on(row="strict", library="array_api_strict", version="2.6", traits=())


GOOD = """
# what jax does not do
[[expected]]
id = "A-ONE-001/x"
outcome = "FAIL"
reason = "it rounds"  # everywhere
report = "https://example.org/1"

[[expected]]
id = "A-ONE-002"
outcome = "CRASH"
reason = "it dies"
when = { backend = "jax", version = "jax<0.11", dtype = ["float16", "float64"], trait = "flushes-subnormals" }
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="expected.toml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_all_parts_of_a_file_are_read(written):
    first, second = load_expectations([written(GOOD)])

    assert (first.id, first.outcome, first.reason) == ("A-ONE-001/x", "FAIL", "it rounds")
    assert (first.report, first.when) == ("https://example.org/1", Condition())
    assert second.when == Condition(("jax",), ("jax<0.11",), ("float16", "float64"), ("flushes_subnormals",))
    assert (
        str(second.when)
        == "on jax, with jax<0.11, for float16 or float64, where the backend declares flushes_subnormals"
    )


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (
            "[[expected]]\nid",
            "[[expect]]\nid",
            "top level: there is no field 'expect'; did you mean expected?",
        ),
        ('id = "A-ONE-001/x"', "", r"entry 1: id is missing; write \[\[expected\]\] with id = "),
        ('id = "A-ONE-001/x"', "id = 7", r"entry 1: id must be a text that says something, got 7 \(int\)"),
        (
            '"A-ONE-001/x"',
            '"A-ONE-*"',
            r"id must be one exact id, got 'A-ONE-\*' \(str\); name a requirement",
        ),
        ('"FAIL"', '"XFAIL"', r"outcome must be one of FAIL, ERROR, CRASH, TIMEOUT, got 'XFAIL' \(str\)"),
        ('"FAIL"', '"PASS"', r"outcome must be one of FAIL, ERROR, CRASH, TIMEOUT, got 'PASS' \(str\)"),
        (
            '"it rounds"',
            '"  "',
            r"\(A-ONE-001/x\): reason must be a text that says something, got '  ' \(str\)",
        ),
        ('reason = "it rounds"', "", r"entry 1 \(A-ONE-001/x\): reason is missing"),
        ('"it rounds"', '"TODO: say why"', "reason must say why, got 'TODO: say why'"),
        ('"https://example.org/1"', '""', "report must be a text that says something"),
        ("reason = ", "resaon = ", "entry 1: there is no field 'resaon'; did you mean reason?"),
        ('backend = "jax"', 'backend = "jaxx"', "when.backend: there is no 'jaxx'; did you mean jax"),
        ('backend = "jax"', 'backends = "jax"', "when: there is no field 'backends'; did you mean backend?"),
        (
            'backend = "jax"',
            "backend = []",
            r"when.backend must be a text or a list of texts, got \[\] \(list\)",
        ),
        ('"jax<0.11"', '"jax 0.11"', "when.version must be a library and its versions, such as 'jax<0.11'"),
        ('"jax<0.11"', '"jax"', "when.version must be a library and its versions and nothing else"),
        ('"float16", ', '"float8", ', "when.dtype: there is no 'float8'; did you mean float"),
        (
            "flushes-sub",
            "flushes-super",
            "when.trait: there is no 'flushes_supernormals'; did you mean flushes_",
        ),
        (
            "when = { backend",
            "when = {}\n# {",
            r"entry 2 \(A-ONE-002\): when must hold some of backend, version",
        ),
        ('id = "A-ONE-001/x"', "id = ", "expected.toml is no TOML: "),
        (
            "\n# what",
            "extends = 'other.toml'\n# what",
            "extends must be a list of file names; got 'other.toml'",
        ),
        (
            "\n# what",
            "extends = ['other.toml']\n#",
            "other.toml, which expected.toml extends: cannot be read: ",
        ),
    ],
)
def test_a_malformed_file_is_refused(written, old, new, text):
    assert old in GOOD

    with pytest.raises(ExpectationError, match=text):
        load_expectations([written(GOOD.replace(old, new, 1))])


def test_a_file_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ExpectationError, match=r"none\.toml: cannot be read: .*No such file"):
        load_expectations([tmp_path / "none.toml"])


def test_a_file_that_an_editor_has_marked_as_utf_8_is_read(written):
    """Notepad puts the mark first."""
    marked = written("\ufeff" + GOOD, "marked.toml")

    assert marked.read_bytes().startswith(b"\xef\xbb\xbf")
    assert [one.id for one in load_expectations([marked])] == [
        one.id for one in load_expectations([written(GOOD)])
    ]


def test_a_folder_is_no_expectation_file(tmp_path):
    with pytest.raises(ExpectationError, match=r": cannot be read: Is a directory$"):
        load_expectations([tmp_path])


def test_an_unfinished_reason_can_be_read_where_that_is_asked(written):
    (first, _) = load_expectations([written(GOOD.replace("it rounds", "TODO: say why"))], unfinished=True)

    assert first.reason == "TODO: say why"


def test_a_file_brings_those_that_it_extends_and_one_that_comes_twice_counts_once(written):
    base = written(GOOD, "base.toml")
    more = GOOD.replace("A-ONE-001/x", "B-ONE-001").replace("A-ONE-002", "B-ONE-002")
    top = written("extends = ['base.toml']\n" + more, "top.toml")

    found = load_expectations([top, base])

    assert [one.id for one in found] == ["A-ONE-001/x", "A-ONE-002", "B-ONE-001", "B-ONE-002"]


def test_files_that_extend_each_other_are_refused(written):
    written("extends = ['b.toml']", "a.toml")

    with pytest.raises(
        ExpectationError, match=r"b.toml extends a.toml extends b.toml: a file extends itself"
    ):
        load_expectations([written("extends = ['a.toml']", "b.toml")])


def test_an_entry_that_stands_twice_is_refused(written):
    files = [written(GOOD, "a.toml"), written(GOOD, "b.toml")]

    with pytest.raises(
        ExpectationError,
        match=r"A-ONE-001/x with the outcome FAIL stands twice .* in a.toml and b.toml; remove one",
    ):
        load_expectations(files)


def test_one_id_may_have_entries_under_different_conditions(written):
    other = GOOD.replace("reason", "when = { backend = 'torch' }\nreason", 1)
    other = other[: other.rindex("[[expected]]")]

    assert len(load_expectations([written(GOOD, "a.toml"), written(other, "b.toml")])) == 3


SUITE = {
    case.id: case
    for case in (
        Case("A-ONE-001/x[float16]", "A-ONE-001", "a", print, {}, frozenset({"float16"}), frozenset()),
        Case("A-ONE-001/y", "A-ONE-001", "a", print, {}, frozenset(), frozenset()),
        Case("A-ONE-002/x", "A-ONE-002", "a", print, {}, frozenset(), frozenset()),
    )
}


def resolve(identity, planned=SUITE, rows=(), **when):
    entry = replace(of_case(identity), when=Condition(**when), cases=(), file="/f/expected.toml")
    return resolved([entry], SUITE, planned, rows)


def test_a_requirement_stands_for_all_its_cases():
    (found,) = resolve("A-ONE-001")

    assert (found.cases, found.whole) == (("A-ONE-001/x[float16]", "A-ONE-001/y"), True)


def test_a_dtype_leaves_the_cases_that_have_it():
    (half,), (single,) = resolve("A-ONE-001", dtypes=("float16",)), resolve("A-ONE-001", dtypes=("float32",))

    assert (half.cases, half.whole) == (("A-ONE-001/x[float16]",), True)
    # a case that names no dtype makes arrays of float32
    assert single.cases == ("A-ONE-001/y",)


def test_only_planned_cases_are_kept():
    (part,) = resolve("A-ONE-001", planned=["A-ONE-001/y"])

    assert (part.cases, part.whole) == (("A-ONE-001/y",), False)
    assert resolve("A-ONE-002", planned=["A-ONE-001/y"]) == ()


@pytest.mark.parametrize(
    ("identity", "when", "text"),
    [
        ("A-ONE-003", {}, "there is no case and no requirement 'A-ONE-003'; did you mean A-ONE-00"),
        ("A-ONE-001/xx[float16]", {}, r"did you mean A-ONE-001/x\[float16\]"),
        ("A-ONE", {}, r"expected.toml \(A-ONE\): there is no case and no requirement"),
        ("Q", {}, "'Q'; `steps-conformance list --cases` shows all ids"),
        (
            "A-ONE-002",
            {"dtypes": ("float64",)},
            "no case of A-ONE-002 has the dtype float64; correct when.dtype",
        ),
        (
            "A-ONE-002",
            {"versions": ("jx<1",)},
            "when.version: no backend is of the library 'jx'; there are array",
        ),
    ],
)
def test_what_does_not_exist_is_refused(identity, when, text):
    with pytest.raises(ExpectationError, match=text):
        resolve(identity, **when)


def test_a_backend_of_the_users_own_may_bring_a_library_of_its_own():
    (found,) = resolve("A-ONE-002", rows=("my_backends:row",), versions=("mylib<2",))

    assert found.when.versions == ("mylib<2",)
