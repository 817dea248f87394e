"""The curves of a training run: loss, gradient norm, and how far each backend is from the first."""

from pathlib import Path
from typing import Any

from digits_training import THRESHOLD, Training

DASHES = 12.0  # points in which each of the curves that lie on one another shows once


def draw(trainings: dict[str, Training], file: Path) -> None:
    """Write a picture; its form follows the file's ending.

    Args:
        trainings: what each backend reached, by name; the others are compared with the first.
        file: where to write, such as ``digits.png``.
    """
    import matplotlib as mpl

    mpl.use("Agg")  # draws into files, needs no screen
    from matplotlib import pyplot as plt

    figure, (above, middle, below) = plt.subplots(3, 1, sharex=True, figsize=(10, 9), layout="constrained")
    losses = {name: training.losses for name, training in trainings.items()}
    reference = next(iter(losses))
    _draw_together(above, losses)
    _draw_together(middle, {name: training.norms for name, training in trainings.items()})
    _draw_differences(below, losses, reference)
    above.set(title="Handwritten digits: the same run on every backend", ylabel="loss of the batch")
    above.legend(ncols=len(losses), handlelength=3)
    middle.axhline(THRESHOLD, color="black", linewidth=1, linestyle="dotted")
    middle.annotate(
        "clipping threshold", (0.99, THRESHOLD), xycoords=("axes fraction", "data"), ha="right", va="bottom"
    )
    middle.set(ylabel="gradient norm before clipping")
    below.set(ylabel=f"loss: difference from {reference}\n(share of the loss)", xlabel="step")
    figure.savefig(file, dpi=120)
    plt.close(figure)


def _draw_together(axes: Any, curves: dict[str, list[float]]) -> None:
    """Draw curves that should lie on one another as dashes in turn: each is seen, and a stray one too."""
    share = DASHES / len(curves)
    axes.set_yscale("log")
    axes.grid(visible=True, alpha=0.3)
    for index, (name, values) in enumerate(curves.items()):
        dashes = (index * share, (share, DASHES - share)) if len(curves) > 1 else "solid"
        axes.plot(values, label=name, color=f"C{index}", linewidth=1.4, linestyle=dashes)


def _draw_differences(axes: Any, curves: dict[str, list[float]], reference: str) -> None:
    expected = curves[reference]
    axes.set_yscale("log")
    axes.grid(visible=True, alpha=0.3)
    for index, (name, values) in enumerate(curves.items()):
        if name == reference:
            continue
        shares = [abs(value - right) / right for value, right in zip(values, expected, strict=True)]
        same = sum(share == 0 for share in shares)
        axes.plot(
            [share or float("nan") for share in shares],
            ".",
            color=f"C{index}",
            markersize=3,
            label=f"{name} (no difference at {same} of {len(shares)} steps)",
        )
    if len(curves) > 1:
        axes.legend(loc="upper left", markerscale=3)
