"""The page docs/teeth.md and the data behind it: what the last complete run of the catalogue found."""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import steps_conformance
from steps_conformance.teeth import FILE

from .catalogue import Fault, catalogue_hash
from .equivalent import KINDS, Explained, Reason
from .fate import Score
from .judging import Judgement

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/teeth.md"


def data_file() -> Path:
    """Return where the suite keeps the figures."""
    return Path(steps_conformance.__file__).with_name(FILE)


def data_of(
    judgements: Sequence[Judgement], scores: Sequence[Score], before: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a run found, as it is kept; other modules keep what was found before."""
    modules = _with_scores(before["modules"], scores)
    have_to_be = sum(row["mutants"] - sum(row[kind] for kind in KINDS) for row in modules.values())
    return {
        "figures": {
            "faults": len(judgements),
            "caught": sum(one.is_caught for one in judgements),
            "mutants": have_to_be,
            "noticed": sum(row["noticed"] for row in modules.values()),
            "catalogue": catalogue_hash(),
        },
        "faults": {one.fault.name: dict(one.noticed_by) for one in judgements},
        "modules": modules,
        "judges": before.get("judges", {}),
    }


def with_judges(scores: Sequence[Score], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data with what was found of the oracle and the comparers."""
    return {**before, "judges": _with_scores(before.get("judges", {}), scores)}


def _with_scores(before: Mapping[str, Any], scores: Sequence[Score]) -> dict[str, Any]:
    found = {
        score.module: {
            "mutants": score.mutants,
            "noticed": score.noticed,
            **{kind: score.explained[kind] for kind in KINDS},
            "survivors": len(score.survivors),
        }
        for score in scores
    }
    return dict(sorted({**before, **found}.items()))


def read_data() -> dict[str, Any]:
    """Return what the last complete run found."""
    data: dict[str, Any] = json.loads(data_file().read_text(encoding="utf-8"))
    return data


def write(data: Mapping[str, Any], faults: Sequence[Fault], explained: Explained) -> None:
    """Write the data and the page."""
    data_file().write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8", newline="\n")
    PAGE.write_text(page(data, faults, explained), encoding="utf-8", newline="\n")


def page(data: Mapping[str, Any], faults: Sequence[Fault], explained: Explained) -> str:
    """Return the page."""
    figures = data["figures"]
    opening = (
        "A conformance suite that passes wrong code is worse than none. So this one is tried on wrong code: "
        f"on **{figures['faults']} faults written by hand**, of which it catches **{figures['caught']}**, "
        f"and on **{figures['mutants']:,} mutants** of the reference implementation, small changes made one "
        f"at a time in the modules that are listed below, of which it notices **{figures['noticed']:,}**. "
        "Only the suite's own deterministic "
        "cases count; unit tests and the random lane have no part in it. Every report says the figures. "
        "This page is made by `nox -s teeth -- --write`; each module has the figures of when it was last "
        "tried."
    )
    heading = "# Teeth: does the suite catch what is wrong?"
    parts = [heading, opening, _faults(data, faults), _modules(data), _reasons(explained), _judges(data)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _faults(data: Mapping[str, Any], faults: Sequence[Fault]) -> str:
    opening = (
        "Each is the reference implementation with one function replaced, loaded as a copy. It names the "
        "requirements that it breaks, and a case of every one of them must notice."
    )
    parts = ["## Faults written by hand", opening]
    for topic, listed in groupby(faults, key=lambda fault: fault.topic):
        parts.append(f"### {topic.capitalize()}")
        lines = ["| It | Seen in, or likely because | Caught by |", "| --- | --- | --- |"]
        for fault in listed:
            cases = "<br>".join(f"`{case}`" for case in data["faults"].get(fault.name, {}).values())
            where = "" if fault.row == "numpy" else f" (on {fault.row})"
            lines.append(f"| {fault.name}{where} | {_cell(fault.source)} | {_cell(cases)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _modules(data: Mapping[str, Any]) -> str:
    meanings = "\n".join(f"- *{kind}*: {meaning}." for kind, meaning in KINDS.items())
    opening = (
        "Comparisons, arithmetic, constants, signs, conditions, boolean operators, the order of arguments "
        "and entries, and dropped statements, arguments, calls and filters. A mutant that is not noticed is "
        "either a hole, and the build fails, or stands in `tests/planted/equivalent.toml` with a reason:"
    )
    heading = "## Mutants of the reference implementation"
    return "\n\n".join([heading, opening, meanings, _scores(data["modules"])])


def _judges(data: Mapping[str, Any]) -> str:
    if not data.get("judges"):
        return ""
    opening = (
        "A case is worth what its expected values and comparisons are worth. So the oracle and the comparers "
        "are mutated too, and each mutant must fail a test: an identity, a number worked out by hand, or a "
        "second derivation. What need not be noticed stands in `tests/planted/judges.toml`, with its reason. "
        "This table is made by `nox -s judges -- --write`."
    )
    heading = "## Mutants of the oracle and of the comparers"
    return "\n\n".join([heading, opening, _scores(data["judges"])])


def _scores(modules: Mapping[str, Any]) -> str:
    head = ["module", "mutants", "noticed", *KINDS, "survivors", "score"]
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    for module, row in modules.items():
        have_to_be = row["mutants"] - sum(row[kind] for kind in KINDS)
        score = f"{100 * row['noticed'] / have_to_be:.1f} %" if have_to_be else ""
        kinds = [row[kind] for kind in KINDS]
        cells = [module, row["mutants"], row["noticed"], *kinds, row["survivors"], score]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _reasons(explained: Explained) -> str:
    groups: dict[Reason, list[str]] = {}
    for name, reason in explained.mutants.items():
        groups.setdefault(reason, []).append(name)
    for name, reason in explained.functions.items():
        groups.setdefault(reason, []).append(f"all of {name}")
    for name, reason in explained.unexecuted.items():
        groups.setdefault(reason, []).append(f"what no case executes of {name}")
    lines = ["| Entries | Kind | Reason |", "| ---: | --- | --- |"]
    lines += [f"| {len(names)} | {reason.kind} | {_cell(reason.text)} |" for reason, names in groups.items()]
    return "\n\n".join(["## Why some mutants need not be noticed", "\n".join(lines)])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
