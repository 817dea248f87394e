"""Measure, and write numbers, tables and plots: `python benchmarks/run.py --out docs/benchmarks`."""

import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import goals
import growth
import typer
from memory import DONATIONS, LIBRARIES, SEEN
from pages import page, table
from plots import plot_bars, plot_growth
from rich.console import Console
from works import STEPS, WORKS

HERE = Path(__file__).parent
output = Console(highlight=False)


def main(
    out: Annotated[Path, typer.Option(help="Folder for results.json, README.md and the plots.")],
    work: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(WORKS)}; default all.")] = None,
    step: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(STEPS)}; default all.")] = None,
    rounds: Annotated[int, typer.Option(help="Rounds of each run.")] = 9,
    runs: Annotated[int, typer.Option(help="How often everything is measured.")] = 1,
    only_goals: Annotated[bool, typer.Option("--goals", help="Measure just what the goals name.")] = False,
    grow: Annotated[bool, typer.Option("--growth", help="Measure growth too.")] = False,
    weigh: Annotated[bool, typer.Option("--memory", help="Measure memory too.")] = False,
) -> None:
    """Measure steps beside other libraries and the machine's limit."""
    results: dict[str, Any] = {"machine": machine(), "rounds": rounds, "runs": [], "growth": {}, "memory": []}
    cells = goals.cells() if only_goals else {cell: [] for cell in product(WORKS, STEPS)}
    for number in range(runs):
        for (of_work, of_step), wanted in cells.items():
            if (work and of_work not in work) or (step and of_step not in step):
                continue
            measured = _measured({"work": of_work, "step": of_step, "names": wanted, "rounds": rounds})
            if measured:
                run = {"work": of_work, "step": of_step, "number": number, "milliseconds": measured}
                results["runs"].append(run)
                output.print(table(of_work, of_step, [run]), markup=False, soft_wrap=True)
                _write(results, out)
    if grow:
        for axis, at, shapes, wanted in growth.orders():
            order = {"shapes": shapes, "step": "chain", "names": wanted, "rounds": min(rounds, 5)}
            results["growth"].setdefault(axis, {}).setdefault(str(at), {}).update(_measured(order))
            output.print(f"growth: {at:,} {axis}", markup=False)
            _write(results, out)
    if weigh:
        for library, of_work, donated in product(LIBRARIES, ("16M", "60 leaves", "1,000 leaves"), DONATIONS):
            share = round(_answer("memory.py", library, of_work, donated, environment=SEEN), 3)
            of_one = {"library": library, "work": of_work, "donated": donated, "share": share}
            results["memory"].append(of_one)
            output.print(f"memory: {of_one}", markup=False)
            _write(results, out)
    _write(results, out)


def _measured(order: dict[str, Any]) -> dict[str, Any]:
    """Measure in a process of its own, so that no table has the memory and the threads of another."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(order, file)
        file.flush()
        measured: dict[str, Any] = _answer("cell.py", file.name)
        return measured


def _answer(script: str, *arguments: str, environment: dict[str, str] | None = None) -> Any:
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        command = [sys.executable, str(HERE / script), *arguments, file.name]
        subprocess.run(command, check=True, env={**os.environ, **(environment or {})})  # noqa: S603
        return json.load(file)


def _write(results: dict[str, Any], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    plots = [*plot_bars(results, out), *plot_growth(results, out)]
    (out / "README.md").write_text(page(results, plots), encoding="utf-8")


def machine() -> dict[str, Any]:
    """Return what the numbers depend on."""
    model = platform.processor()
    information = Path("/proc/cpuinfo")
    if information.is_file():
        lines = information.read_text().splitlines()
        found = [line.split(":", 1)[1] for line in lines if "model name" in line]
        model = found[0].strip() if found else model
    versions = {}
    for name in ("numpy", "numba", "torch", "jax", "optax", "keras", "scikit-learn"):
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


if __name__ == "__main__":
    typer.run(main)
