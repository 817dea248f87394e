"""Measure, and write the numbers as JSON and as tables: `python benchmarks/run.py --out docs/benchmarks`."""

import argparse
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import limit
import ours
import peers
from measuring import Times, measure
from works import STEPS, WORKS, gradients_of

LIBRARIES = ("numpy", "torch", "jax")


def main() -> None:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", action="append", choices=list(WORKS), help="default: all")
    parser.add_argument("--step", action="append", choices=list(STEPS), help="default: all")
    parser.add_argument("--library", action="append", choices=LIBRARIES, help="default: all")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, required=True, help="folder for results.json and README.md")
    chosen = parser.parse_args()
    _use_two_threads()
    results: dict[str, Any] = {"machine": machine(), "rounds": chosen.rounds, "runs": []}
    for work in chosen.work or WORKS:
        for step in chosen.step or STEPS:
            times = measure(_candidates(work, step, chosen.library or list(LIBRARIES)), chosen.rounds)
            run = {name: each.as_json() for name, each in times.items()}
            results["runs"].append({"work": work, "step": step, "milliseconds": run})
            print(table(work, step, times), flush=True)
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (chosen.out / "README.md").write_text(page(results))


def _use_two_threads() -> None:
    try:
        import torch
    except ModuleNotFoundError:
        return
    torch.set_num_threads(2)


def _candidates(work: str, step: str, libraries: list[str]) -> dict[str, Any]:
    gradients = gradients_of(work)
    found = dict(ours.candidates(step, gradients, libraries))
    found |= dict(peers.candidates(step, gradients, libraries))
    return found | dict(limit.candidates(step, gradients))


def machine() -> dict[str, Any]:
    """Return what the numbers depend on."""
    model = platform.processor()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        names = [
            line.split(":", 1)[1] for line in information.read_text().splitlines() if "model name" in line
        ]
        model = names[0].strip() if names else model
    versions = {}
    for name in ("numpy", "numba", "torch", "jax", "optax", "scikit-learn"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    loads = [round(load, 1) for load in os.getloadavg()] if hasattr(os, "getloadavg") else []
    return {
        "processor": model,
        "processors": os.cpu_count(),
        "load before": loads,
        "python": platform.python_version(),
        "versions": versions,
    }


def page(results: dict[str, Any]) -> str:
    """Return all tables as one page."""
    about = results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    head = f"""# Benchmarks

Made by `nox -s bench`. Milliseconds: median and minimum of {results["rounds"]} rounds, all candidates of a
table in one process, in shuffled order; the first call with tracing and compiling. The ratio is that of the
medians to the fastest candidate that is not ours, limit aside. Compare within one table only.

Machine: {about["processor"]}, {about["processors"]} processors, load average before the run
{", ".join(map(str, about["load before"]))}. Python {about["python"]}, {versions}.
"""
    tables = [
        table(run["work"], run["step"], {name: Times(**times) for name, times in run["milliseconds"].items()})
        for run in results["runs"]
    ]
    return "\n".join([head, *tables])


def table(work: str, step: str, times: dict[str, Times]) -> str:
    """Return one work and step as Markdown."""
    others = [each.median for name, each in times.items() if not name.startswith(("ours", "limit"))]
    best = min(others, default=float("nan"))
    lines = [
        f"## {step}, {work}",
        "",
        "| candidate | median | minimum | first call | ratio |",
        "|---|---|---|---|---|",
    ]
    for name, each in sorted(times.items(), key=lambda entry: entry[1].median):
        numbers = " | ".join(f"{value:.3g}" for value in (each.median, each.least, each.first))
        lines.append(f"| {name} | {numbers} | {each.median / best:.2f} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
