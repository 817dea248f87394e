"""The page of results: goals first, then all tables."""

from typing import Any

from goals import GOALS, Goal
from memory import AT_MOST

MISSED = "**missed**"


def page(results: dict[str, Any], plots: list[str]) -> str:
    """Return the page as Markdown."""
    parts = [_head(results), _goals(results), *(f"![{name}]({name})" for name in plots)]
    if results.get("memory"):
        parts.append(_memory(results["memory"]))
    parts.append(_first_calls(results))
    seen = []
    for run in results["runs"]:
        cell = run["work"], run["step"]
        if cell not in seen:
            seen.append(cell)
            parts.append(table(*cell, [one for one in results["runs"] if (one["work"], one["step"]) == cell]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(results: dict[str, Any]) -> str:
    about = results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return f"""# Benchmarks

Made by `nox -s bench`. Milliseconds: median and minimum of {results["rounds"]} rounds. All candidates of a
table run in one process, in shuffled order, on two threads, each table in a process of its own. Where there
are several runs, a table shows the one in the middle. Ratios are of medians; compare within one table only.

Machine: {about["processor"]}, {about["processors"]} processors, load average before the run
{", ".join(map(str, about["load before"]))}. Python {about["python"]}, {versions}."""


def _goals(results: dict[str, Any]) -> str:
    lines = [
        "## Goals",
        "",
        "| step | work | ours | against | at most | ratio of each run | |",
        "|---|---|---|---|---|---|---|",
    ]
    for goal in GOALS:
        ratios = ratios_of(goal, results)
        if ratios:
            shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            verdict = "met" if goal.is_met(ratios) else MISSED
            against = goal.against[0] if len(goal.against) == 1 else f"{goal.against[0]} (best form)"
            ours = goal.ours.removeprefix("ours, ")
            cells = (goal.step, goal.work, ours, against, goal.at_most, shown, verdict)
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) if len(lines) > 4 else ""


def ratios_of(goal: Goal, results: dict[str, Any]) -> list[float]:
    """Return the ratio that each run found for a goal."""
    found = []
    for run in results["runs"]:
        medians = {name: times["median"] for name, times in run["milliseconds"].items()}
        if (run["work"], run["step"]) == (goal.work, goal.step) and goal.ours in medians:
            found.append(goal.ratio(medians))
    return found


def _memory(memory: list[dict[str, Any]]) -> str:
    lines = [
        "## Memory",
        "",
        "What calls of the compiled chain take at most beyond what they are given, with the buffers that a",
        "step keeps from call to call, as a share of the size of the gradients. Updates are as large as the",
        "gradients, the state is twice as large.",
        "",
        "| library | work | donated | highest | at most |",
        "|---|---|---|---|---|",
    ]
    for one in memory:
        within = "" if one["share"] <= AT_MOST[one["donated"]] else f" {MISSED}"
        lines.append(
            f"| {one['library']} | {one['work']} | {one['donated']} | {one['share']:.2f}{within} "
            f"| {AT_MOST[one['donated']]} |"
        )
    return "\n".join(lines)


def _first_calls(results: dict[str, Any]) -> str:
    lines = [
        "## First calls of the chain",
        "",
        "Milliseconds, tracing and compiling included; numba keeps what it compiled on disk.",
        "",
        "| candidate | work | first call |",
        "|---|---|---|",
    ]
    for run in results["runs"]:
        if run["step"] == "chain" and run.get("number", 0) == 0:
            lines += [
                f"| {name} | {run['work']} | {times['first']:.3g} |"
                for name, times in run["milliseconds"].items()
                if name.startswith(("ours", "optax"))
            ]
    return "\n".join(lines)


def table(work: str, step: str, runs: list[dict[str, Any]]) -> str:
    """Return the results of one step on one work."""
    names = list(dict.fromkeys(name for run in runs for name in run["milliseconds"]))
    middle = {
        name: sorted(
            (run["milliseconds"][name] for run in runs if name in run["milliseconds"]),
            key=lambda times: float(times["median"]),
        )
        for name in names
    }
    times = {name: each[(len(each) - 1) // 2] for name, each in middle.items()}
    others = [each["median"] for name, each in times.items() if not name.startswith(("ours", "limit"))]
    best = min(others, default=float("nan"))
    lines = [
        f"## {step}, {work}",
        "",
        "| candidate | median | minimum | first call | to the fastest peer |",
        "|---|---|---|---|---|",
    ]
    for name, each in sorted(times.items(), key=lambda entry: float(entry[1]["median"])):
        numbers = " | ".join(f"{each[field]:.3g}" for field in ("median", "least", "first"))
        ratio = f"{each['median'] / best:.2f}" if best == best else ""
        lines.append(f"| {name} | {numbers} | {ratio} |")
    return "\n".join(lines)
