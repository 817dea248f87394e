"""The page that compares other libraries: ``python -m steps_conformance.targets.peers.page REPORTS docs``.

REPORTS holds ``optax/report.jsonl`` and so on, as the nox session ``peers`` leaves them. Without REPORTS the
page is made again from the ``peers.json`` that is kept beside it.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ...markdown_text import plain
from ...requirements import Requirement, load_requirements
from .summary import KINDS, PEERS, Counts, Deviation, PeerSummary, collect, from_json, to_json

DATA, PAGE = "peers.json", "peers.md"

_INTRO = """# Other libraries under this suite

Made by `nox -s peers` from runs of the suite on other libraries, each behind an adapter that calls its public
interface (`conformance/steps_conformance/targets/peers/`). Do not edit: a test compares it with `peers.json`.

How to read it. The requirements are those of *this* project, written after the public reports about all of
these libraries were known. So a deviation is a difference, and not by itself a fault of theirs: the kind says
which differences a user of that library would call wrong.

- *holds*: every case that can be expressed passes; the numbers say how many of all cases these are.
- *deviates*: so many of the cases that can be expressed fail; each is declared below, with its reason. The
  word after it is the gravest kind among them.
- *not expressible* (-): the library has no such step, option, dtype or form of state, and its adapter says so
  when the step is made. That says nothing against the library. Rules about the form of states, errors and
  descriptions are of that kind, and so is weight decay where a library hands out weights and not updates: the
  rounding of the weights would hide the update.

Cases that make several claims at once count as deviating where one of them does not hold.
"""


def peers_page(summaries: Sequence[PeerSummary], rules: Mapping[str, Requirement]) -> str:
    """Return the text of the page."""
    parts = [
        _INTRO,
        "## Headline\n",
        _headline(summaries),
        "Requirements by the gravest kind of deviation in them:\n",
        _by_kind(summaries),
        "\n".join(f"- *{kind}*: {meaning}." for kind, meaning in KINDS.items()) + "\n",
        "## Requirement by library\n",
        *(_of_level(summaries, rules, level) for level in ("MUST", "SHOULD")),
        _untouched(summaries, rules),
        "## Deviations by library\n",
        *(_of_library(one, rules) for one in summaries),
    ]
    return "\n".join(parts)


def standing(counts: Counts) -> str:
    """Return what the counts of a requirement amount to: holds, deviates, undeclared or not expressible."""
    if counts.undeclared:
        return "undeclared"
    if counts.deviates:
        return "deviates"
    return "holds" if counts.holds else "not expressible"


def _headline(summaries: Iterable[PeerSummary]) -> str:
    heads = [
        "library",
        "arrays",
        "date",
        "holds",
        "deviates",
        "not expressible",
        "cases that pass",
        "deviate",
    ]
    rows = []
    for one in summaries:
        found = Counter(standing(counts) for counts in one.requirements.values())
        passed = sum(counts.holds for counts in one.requirements.values())
        failed = sum(counts.deviates + counts.undeclared for counts in one.requirements.values())
        numbers = [found["holds"], found["deviates"] + found["undeclared"], found["not expressible"]]
        row = [f"{one.name} {one.version}", f"{one.row} ({one.row_version})", one.date]
        rows.append([*row, *map(str, [*numbers, passed, failed])])
    return _table(heads, rows)


def _by_kind(summaries: Iterable[PeerSummary]) -> str:
    rows = []
    for one in summaries:
        found = Counter(gravest_kinds(one).values())
        rows.append([one.name, *(str(found[kind]) for kind in KINDS)])
    return _table(["library", *KINDS], rows)


def gravest_kinds(one: PeerSummary) -> dict[str, str]:
    """Return the gravest kind of deviation of each requirement that has one, by requirement id."""
    worst: dict[str, str] = {}
    for deviation in sorted(one.deviations, key=lambda deviation: list(KINDS).index(deviation.kind)):
        worst.setdefault(deviation.id.partition("/")[0], deviation.kind)
    return worst


def _of_level(summaries: Sequence[PeerSummary], rules: Mapping[str, Requirement], level: str) -> str:
    rows = [
        [identity, plain(rule.title), *(_cell(one, identity) for one in summaries)]
        for identity, rule in rules.items()
        if rule.level == level and _is_touched(summaries, identity)
    ]
    if not rows:
        return f"### {level}\n\nNo requirement of this level can be expressed with any of them.\n"
    return f"### {level}\n\n" + _table(["id", "requirement", *(one.name for one in summaries)], rows)


def _is_touched(summaries: Iterable[PeerSummary], identity: str) -> bool:
    return any(standing(one.requirements.get(identity, Counts())) != "not expressible" for one in summaries)


def _cell(one: PeerSummary, identity: str) -> str:
    counts = one.requirements.get(identity, Counts())
    expressed = counts.holds + counts.deviates + counts.undeclared
    what = standing(counts)
    if what == "not expressible":
        return "-"
    if what == "holds":
        return f"holds ({counts.holds} of {expressed + counts.not_expressible})"
    kind = gravest_kinds(one).get(identity, "")
    word = f"{what}: {kind}" if kind else what
    return f"**{word}** ({counts.deviates + counts.undeclared} of {expressed})"


def _untouched(summaries: Sequence[PeerSummary], rules: Mapping[str, Requirement]) -> str:
    missing = [rule for rule in rules.values() if not _is_touched(summaries, rule.id)]
    topics = Counter(rule.topic for rule in missing)
    listed = ", ".join(f"{topic} ({number})" for topic, number in topics.items())
    return f"{len(missing)} more requirements none of them can express, by topic: {listed}.\n"


def _of_library(one: PeerSummary, rules: Mapping[str, Requirement]) -> str:
    places = {identity: place for place, identity in enumerate(rules)}
    listed = sorted(
        one.deviations,
        key=lambda deviation: (
            list(KINDS).index(deviation.kind),
            places.get(deviation.id.partition("/")[0], 0),
        ),
    )
    parts = [f"### {one.name} {one.version}\n"]
    for kind in KINDS:
        rows = [_deviation(deviation) for deviation in listed if deviation.kind == kind]
        if rows:
            parts += [f"*{kind}*\n", _table(["id", "cases", "why", "report"], rows)]
    return "\n".join(parts)


def _deviation(one: Deviation) -> list[str]:
    where = f" ({plain(one.when)})" if one.when else ""
    kind = "" if one.outcome == "FAIL" else f" {one.outcome}"
    return [f"`{one.id}`{where}{kind}", str(one.cases), plain(one.reason), _link(one.report)]


def _link(address: str) -> str:
    if not address:
        return ""
    owner, name, _, number = address.removeprefix("https://github.com/").split("/")
    return f"[{owner}/{name}#{number}]({address})"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Write data and page into the last folder; the data is read there where no reports are given."""
    *reports, folder = map(Path, arguments)
    data = folder / DATA
    if reports:
        # a library that was not run again keeps what was found before
        earlier = from_json(data.read_text(encoding="utf-8")) if data.exists() else []
        found = {one.name: one for one in [*earlier, *collect(reports[0])]}
        kept = [found[name] for name in PEERS if name in found]
        data.write_text(to_json(kept), encoding="utf-8", newline="\n")
    page = peers_page(from_json(data.read_text(encoding="utf-8")), load_requirements())
    (folder / PAGE).write_text(page, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit("python -m steps_conformance.targets.peers.page [REPORTS] docs")
    main(sys.argv[1:])
