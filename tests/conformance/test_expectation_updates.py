"""Updating an expectation file from a report: what goes, what comes, and what of the text stays."""

import pytest
from steps_conformance.case import Case
from steps_conformance.expectations.files import ExpectationError, load_expectations
from steps_conformance.expectations.resolving import resolved
from steps_conformance.expectations.rewriting import updated
from steps_conformance.outcomes import Outcome
from steps_conformance.reports.model import (
    CaseResult,
    Header,
    Report,
    RequirementFacts,
    RowFacts,
    TargetFacts,
)

IDS = ("A-ONE-001/x", "A-ONE-001/y", "A-ONE-002/x", "A-ONE-002/y")
SUITE = {
    identity: Case(identity, identity.split("/")[0], "a", print, {}, frozenset(), frozenset())
    for identity in IDS
}


def report(numpy="PPPP", torch="PPPP", planned=IDS, expectations=()):
    """Return a report of two rows; each letter is the outcome of one case, - for UNSUPPORTED."""
    names = {"P": "PASS", "F": "FAIL", "C": "CRASH", "-": "UNSUPPORTED"}
    results = [
        CaseResult(row, identity, Outcome(names[letter]), f"why it fails on {row}\nin full")
        for row, letters in (("numpy", numpy), ("torch", torch))
        for identity, letter in zip(IDS, letters, strict=True)
        if identity in planned
    ]
    rules = {rule: RequirementFacts(rule, "MUST", "t", "a") for rule in ("A-ONE-001", "A-ONE-002")}
    header = Header(
        suite="1",
        python="3",
        platform="p",
        started="s",
        target=TargetFacts("t", "1", "path", "0"),
        rows=("numpy", "torch"),
        named=(),
        requirements=rules,
        planned={identity: identity.split("/")[0] for identity in planned},
        expectations=tuple(expectations),
    )
    rows = {"numpy": RowFacts("numpy", True), "torch": RowFacts("torch", True)}
    return Report(header, rows, results, complete=True)


FILE = """\
# The known deviations of a planted target.

# --- clipping ---

# x is rounded twice
[[expected]]
id = "A-ONE-001/x"  # the first
outcome = "FAIL"
# this comment is inside
reason = "it rounds"

# --- the rest ---

# all of the second rule
[[expected]]
id = "A-ONE-002"
outcome = "FAIL"
reason = "it does nothing"
report = "https://example.org/2"

# the end
"""


@pytest.fixture
def update(tmp_path):
    """Write a file, update it, and return the new text with what was done."""

    def run(found, text=FILE, others=()):
        for name, content in dict(others).items():
            (tmp_path / name).write_text(content)
        file = tmp_path / "expected.toml"
        file.write_text(text, newline="")
        return updated(file, found, SUITE)

    return run


def done(made):
    return {"removed": made.removed, "narrowed": made.narrowed, "added": made.added}


def test_a_file_that_fits_stays_byte_for_byte(update):
    made = update(report("FPFP", "FPPF"))

    assert made.text == FILE
    assert done(made) == {"removed": (), "narrowed": (), "added": ()}


def test_what_passes_now_goes_with_its_comments_and_the_others_stay(update):
    made = update(report("PPFP", "PPFP"))

    start, stop = FILE.index("# x is rounded"), FILE.index("\n# --- the rest")
    assert made.text == FILE[:start] + FILE[stop:]
    assert made.removed == ("A-ONE-001/x",)


def test_the_last_entry_goes_and_what_follows_it_stays(update):
    made = update(report("FPPP", "FPPP"))

    start, stop = FILE.index("# all of the second"), FILE.index("\n# the end")
    assert made.text == FILE[:start] + FILE[stop:]
    assert made.removed == ("A-ONE-002",)


def test_a_comment_at_the_top_of_the_file_is_about_the_file(update):
    text = '# About all.\n[[expected]]\nid = "A-ONE-001/x"\noutcome = "FAIL"\nreason = "r"\n'

    assert update(report(), text).text == "# About all.\n"


def test_an_entry_that_holds_on_one_backend_only_is_narrowed_to_it(update):
    made = update(report("FPFP", "PPFP"))

    assert made.narrowed == ("A-ONE-001/x",)
    assert 'reason = "it rounds"\nwhen = {backend = ["numpy"]}\n\n# --- the rest' in made.text
    for kept in ("# x is rounded twice\n[[expected]]", "# the first", "# this comment is inside"):
        assert kept in made.text


def test_a_backend_that_the_report_does_not_show_is_kept(update):
    text = FILE.replace(
        'reason = "it rounds"',
        'reason = "it rounds"\nwhen = { backend = ["torch", "jax"], trait = "x64" }',
        1,
    ).replace(', trait = "x64"', "")

    made = update(report("PPFP", "PPFP"), text)

    assert made.narrowed == ("A-ONE-001/x",)
    assert 'when = { backend = ["jax"] }' in made.text


def test_of_what_was_not_run_nothing_is_changed(update):
    made = update(report("PPPP", "PPPP", planned=("A-ONE-001/y", "A-ONE-002/y")))

    assert made.text == FILE


def test_what_no_backend_supports_stays(update):
    assert update(report("-PFP", "-PFP")).text == FILE


def test_a_new_failure_comes_with_a_reason_to_be_written(update, tmp_path):
    made = update(report("FFFP", "FPFP"))

    assert done(made) == {"removed": (), "narrowed": (), "added": ("A-ONE-001/y",)}
    assert made.text == FILE + (
        '\n# why it fails on numpy\n[[expected]]\nid = "A-ONE-001/y"\noutcome = "FAIL"\n'
        'reason = "TODO: say why"\nwhen = {backend = ["numpy"]}\n'
    )
    (tmp_path / "expected.toml").write_text(made.text)
    with pytest.raises(
        ExpectationError, match=r"expected.toml \(A-ONE-001/y\): reason must say why, got 'TODO"
    ):
        load_expectations([tmp_path / "expected.toml"])


def test_the_ends_of_lines_stay(update):
    windows = FILE.replace("\n", "\r\n")

    made = update(report("PFFP", "PPFP"), windows)

    assert made.removed == ("A-ONE-001/x",)
    assert made.added == ("A-ONE-001/y",)
    assert made.text.count("\n") == made.text.count("\r\n")


def test_a_failure_of_another_kind_takes_the_place_of_the_declared_one(update):
    made = update(report("CPFP", "CPFP"))

    assert done(made) == {"removed": ("A-ONE-001/x",), "narrowed": (), "added": ("A-ONE-001/x",)}
    assert 'outcome = "CRASH"\nreason = "TODO: say why"\nwhen = {backend = ["numpy", "torch"]}' in made.text


def test_after_an_update_the_same_report_is_as_declared(update, tmp_path):
    found = report("CFPP", "PPFP")
    made = update(found)
    (tmp_path / "expected.toml").write_text(made.text)
    entries = load_expectations([tmp_path / "expected.toml"], unfinished=True)

    again = report("CFPP", "PPFP", expectations=resolved(entries, SUITE, IDS))

    assert list(again.failures()) == []
    assert {result.outcome for result in again.judged()} == {"XFAIL", "PASS"}
    assert list(found.failures()) != []


def test_what_another_file_declares_is_not_added(update):
    base = '[[expected]]\nid = "A-ONE-001/y"\noutcome = "FAIL"\nreason = "known"\n'

    made = update(report("FFFP", "FFFP"), "extends = ['base.toml']\n" + FILE, {"base.toml": base})

    assert made.added == ()


def test_what_other_files_of_the_run_declare_is_not_added(update, tmp_path):
    (tmp_path / "other.toml").write_text('[[expected]]\nid = "A-ONE-001/y"\noutcome = "FAIL"\nreason = "r"\n')
    other = resolved(load_expectations([tmp_path / "other.toml"]), SUITE, IDS)

    assert update(report("FFFP", "FFFP", expectations=other)).added == ()


def test_what_this_file_declared_in_the_run_and_no_longer_does_is_added_again(update, tmp_path):
    (tmp_path / "expected.toml").write_text(FILE)
    before = resolved(load_expectations([tmp_path / "expected.toml"]), SUITE, IDS)

    made = update(report("FPFP", "FPFP", expectations=before), FILE[FILE.index("# --- the rest") :])

    assert made.added == ("A-ONE-001/x",)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "latin.toml").write_bytes(b"# \xe9\n")

    with pytest.raises(ExpectationError, match=r"latin\.toml: cannot be read: 'utf-8' codec"):
        updated(tmp_path / "latin.toml", report(), SUITE)


def test_a_file_that_does_not_exist_is_made(tmp_path):
    made = updated(tmp_path / "new.toml", report("FPPP"), SUITE)

    assert made.added == ("A-ONE-001/x",)
    assert made.text.startswith("# why it fails on numpy\n[[expected]]\n")


# the first entry stays, as the report shows nothing of jax, and the second goes
HIDDEN_HEADING = '''
[[expected]]
id = "A-ONE-001/y"
outcome = "FAIL"
when = { backend = "jax" }
reason = """
[[expected]]
"""
[["expected"]]
id = "A-ONE-001/x"
outcome = "FAIL"
reason = "r"
'''


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            'expected = [{ id = "A-ONE-001/x", outcome = "FAIL", reason = "r" }]',
            r"must be written as \[\[expected\]\] tables, .* there are 1 entries and 0 such headings",
        ),
        (
            '[[expected]]\nid = "A-ONE-001/x"\noutcome = "FAIL"\nreason = """\n[[expected]]\n"""\n',
            "there are 1 entries and 2 such headings",
        ),
        (
            HIDDEN_HEADING,
            "expected.toml is written in a way that cannot be rewritten with its comments; write each entry",
        ),
        ('[[expected]]\nid = "A-ONE-009"\noutcome = "FAIL"\nreason = "r"\n', "no requirement 'A-ONE-009'"),
    ],
)
def test_a_file_that_cannot_be_rewritten_is_refused(update, text, says):
    with pytest.raises(ExpectationError, match=says):
        update(report(), text)


def test_a_requirement_of_which_every_case_ends_in_the_same_way_is_added_as_one_entry(update):
    made = update(report("FFC-", "FFPC"), text="")

    assert made.added == ("A-ONE-001", "A-ONE-002", "A-ONE-002/y")
    assert 'id = "A-ONE-001"\noutcome = "FAIL"\n' in made.text
    assert 'when = {backend = ["numpy", "torch"]}' in made.text
    # what is not supported says nothing against it, and what passes does
    assert 'id = "A-ONE-002"\noutcome = "CRASH"\n' in made.text
    assert 'id = "A-ONE-002/y"\noutcome = "CRASH"\n' in made.text


def test_a_requirement_is_no_entry_where_only_some_of_its_cases_were_run(update):
    made = update(report("FFPP", "FFPP", planned=IDS[1:]), text="")

    assert made.added == ("A-ONE-001/y",)
