"""Requirement files: what is read, and what is refused."""

import pytest
from steps_conformance.requirements import MalformedRequirementError, load_requirements, parse

GOOD = """# Topic

Some prose.

### TOPIC-ONE-001 (MUST): one is one
The rule, with a formula: `1 = 1`.

A second paragraph.

Accuracy: exact bits,
on every row.
Source: design decision, because it is so.

### TOPIC-ONE-002 (SHOULD): two (or more) is nice
Rule.
Accuracy: does not apply.
Source: paper.

## Retired
Retired: TOPIC-ONE-003 (said the same as TOPIC-ONE-001)
"""


def test_all_parts_are_read():
    (first, second), retired = parse(GOOD, "topic")

    assert (first.id, first.level, first.title) == ("TOPIC-ONE-001", "MUST", "one is one")
    assert first.text == "The rule, with a formula: `1 = 1`.\n\nA second paragraph."
    assert first.accuracy == "exact bits,\non every row."
    assert first.source == "design decision, because it is so."
    assert first.topic == "topic"
    assert (second.level, second.title) == ("SHOULD", "two (or more) is nice")
    assert retired == ["TOPIC-ONE-003"]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (
            "(MUST): one",
            "(MAY): one",
            r"topic.md, line 5: '### TOPIC-ONE-001 \(MAY\): one is one' must look like",
        ),
        ("### TOPIC-ONE-001 (MUST):", "### TOPIC-ONE-1 (MUST):", "must look like"),
        (": one is one", ":", "must look like"),
        ("Accuracy: exact bits,\non every row.\n", "", "TOPIC-ONE-001 has no accuracy; write the rule, then"),
        ("Source: paper.\n", "", "TOPIC-ONE-002 has no source"),
        ("Source: paper.\n", "Source:\n", "TOPIC-ONE-002 has no source"),
        ("Rule.\n", "", "TOPIC-ONE-002 has no text"),
        ("Source: paper.\n", "Source: paper.\nSource: seed.\n", "TOPIC-ONE-002 has two lines of Source"),
        ("TOPIC-ONE-002", "TOPIC-ONE-001", "TOPIC-ONE-001 stands twice in topic.md"),
        (
            "Retired: TOPIC-ONE-003",
            "Retired: TOPIC-ONE-3",
            r"topic.md, line 20: 'Retired: TOPIC-ONE-3 .*' must look like 'Retired: CLIP-GLOBAL-003 \(why\)'",
        ),
    ],
)
def test_a_broken_form_is_refused(old, new, text):
    assert old in GOOD

    with pytest.raises(MalformedRequirementError, match=text):
        parse(GOOD.replace(old, new, 1), "topic")


def test_a_folder_is_read_in_order(tmp_path):
    (tmp_path / "b.md").write_text(GOOD)
    (tmp_path / "a.md").write_text(GOOD.replace("TOPIC", "OTHER"))

    assert list(load_requirements(tmp_path)) == [
        "OTHER-ONE-001",
        "OTHER-ONE-002",
        "TOPIC-ONE-001",
        "TOPIC-ONE-002",
    ]


def test_an_id_in_two_files_is_refused(tmp_path):
    (tmp_path / "a.md").write_text(GOOD)
    (tmp_path / "b.md").write_text(GOOD)

    with pytest.raises(MalformedRequirementError, match=r"TOPIC-ONE-001 stands in a.md and again in b.md"):
        load_requirements(tmp_path)


def test_a_retired_id_is_not_used_again(tmp_path):
    (tmp_path / "a.md").write_text(GOOD)
    (tmp_path / "b.md").write_text("Retired: TOPIC-ONE-002\n")

    with pytest.raises(
        MalformedRequirementError, match=r"TOPIC-ONE-002 is retired in b.md, and used in a.md"
    ):
        load_requirements(tmp_path)


def test_the_requirements_of_the_suite_are_read():
    found = load_requirements()

    assert "CLIP-GLOBAL-003" in found
    assert {rule.level for rule in found.values()} <= {"MUST", "SHOULD"}
