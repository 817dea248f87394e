"""Plots of the results: growth on logarithmic axes, and bars against the fastest peer and the limit."""

from pathlib import Path
from typing import Any

import growth
import matplotlib
from goals import GOALS, NUMBA, ON_JAX, ON_TORCH

matplotlib.use("svg")
import matplotlib.pyplot as plt

_FIXED = {"svg.hashsalt": "steps-core", "svg.fonttype": "path"}


def plot_growth(results: dict[str, Any], folder: Path) -> list[str]:
    """Write a plot for each axis along which growth was measured, and return the names of the files."""
    files = []
    for axis, points in results["growth"].items():
        with plt.rc_context(_FIXED):
            figure, axes = plt.subplots(figsize=(7.5, 4.5))
            for name, label in growth.NAMES.items():
                found = [(int(at), times[name]["median"]) for at, times in points.items() if name in times]
                style = {"color": "black", "linestyle": ":"} if name.startswith("limit") else {}
                dashes = {} if name.startswith(("ours", "limit")) else {"linestyle": "--"}
                axes.loglog(
                    *zip(*found, strict=True), marker="o", markersize=3, label=label, **style, **dashes
                )
            axes.set_xlabel("leaves of 100 elements" if axis == "leaves" else "elements of one leaf")
            axes.set_ylabel("milliseconds a call, median")
            axes.set_title("Global clip and Adam, all donated")
            axes.grid(visible=True, which="major", alpha=0.3)
            axes.legend()
            files.append(_saved(figure, folder, f"growth-{axis}.svg"))
    return files


def plot_bars(results: dict[str, Any], folder: Path) -> list[str]:
    """Write bars of the chain: ours, the fastest peers and the limit; return the name of the file, if any."""
    works = [work for work in ("16M", "60 leaves", "1,000 leaves") if _medians(results, work)]
    if not works:
        return []
    peers = {
        "torch": next(goal.against for goal in GOALS if goal.ours == ON_TORCH and len(goal.against) == 1),
        "optax": next(goal.against for goal in GOALS if goal.ours == ON_JAX and len(goal.against) > 1),
    }
    bars = {
        "limit": ("limit, all donated",),
        "ours, numpy + numba": (NUMBA,),
        "ours, torch": (ON_TORCH,),
        "torch, clip_grad_norm_ + fused Adam": ("torch, clip_grad_norm_ + fused Adam",),
        "ours, jax": (ON_JAX,),
        "optax, best donation": peers["optax"],
    }
    with plt.rc_context(_FIXED):
        figure, all_axes = plt.subplots(1, len(works), figsize=(4 * len(works), 3.6), squeeze=False)
        for axes, work in zip(all_axes[0], works, strict=True):
            medians = _medians(results, work)
            # One place for each label, so that the names at the left are those of all works.
            found = {
                label: min((medians[name] for name in names if name in medians), default=float("nan"))
                for label, names in bars.items()
            }
            colors = [
                "black" if one == "limit" else "C0" if one.startswith("ours") else "C7" for one in found
            ]
            axes.barh(list(found), list(found.values()), color=colors)
            axes.set_ylim(len(bars) - 0.5, -0.5)  # Also where the first or last has no bar.
            axes.set_title(work)
            axes.set_xlabel("milliseconds a call, median")
        for axes in all_axes[0][1:]:
            axes.set_yticklabels([])
        return [_saved(figure, folder, "chain.svg")]


def _medians(results: dict[str, Any], work: str) -> dict[str, float]:
    """Return the medians of the first run of the chain on a work."""
    for run in results["runs"]:
        if (run["work"], run["step"]) == (work, "chain"):
            return {name: times["median"] for name, times in run["milliseconds"].items()}
    return {}


def _saved(figure: Any, folder: Path, name: str) -> str:
    figure.tight_layout()
    figure.savefig(folder / name, metadata={"Date": None})
    plt.close(figure)
    return name
