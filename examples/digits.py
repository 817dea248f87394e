"""Train the same network on scikit-learn's handwritten digits with every array library that runs here.

    python examples/digits.py                           every backend
    python examples/digits.py --backend torch           this one, beside NumPy
    python examples/digits.py --plot digits.png         also draw the curves

Exit code: 0; 1 where a backend stays below the accuracy asked for; 2 where one asked for by name does
not run.
"""

import argparse
from pathlib import Path

import numpy as np
import steps_backends
from digits_network import Weights
from digits_plot import draw
from digits_training import STEP, THRESHOLD, Training, load, train

from steps_core import check_end_to_end

REFERENCE = "numpy"
BACKENDS = (REFERENCE, "torch", "jax-jit", "array-api-strict", "cupy")
WANTED_ACCURACY = 0.95
HEADER = (
    f"{'backend':<17} {'accuracy':>8} {'final loss':>11} {'clipped':>8}   {'weights off NumPy by':<25} "
    f"{'steps/s':>8} {'first step':>11}"
)


def difference(weights: Weights, reference: Weights) -> tuple[float, float]:
    """Return the largest difference, as a share of its leaf's largest weight, and in ulps of the weight."""
    shares, ulps = [], []
    for name, layer in reference.items():
        for part, expected in layer.items():
            off = np.abs(weights[name][part].astype(np.float64) - expected)
            shares.append(float(np.max(off) / np.max(np.abs(expected))))
            ulps.append(float(np.max(off / np.spacing(np.abs(expected)))))
    return max(shares), max(ulps)


def line(name: str, training: Training, reference: Weights) -> str:
    """Return one row of the table."""
    share, ulps = difference(training.weights, reference)
    clipped = sum(norm > THRESHOLD for norm in training.norms)
    off = "-" if name == REFERENCE else f"{share:.1e} ({ulps:,.0f} ulps)"
    return (
        f"{name:<17} {training.accuracy:>8.4f} {training.loss:>11.7f} {clipped:>8}   {off:<25} "
        f"{training.steps_per_second:>8,.0f} {training.first_step:>9.2f} s"
    )


def run(names: list[str], *, asked: bool) -> tuple[dict[str, Training], int]:
    """Train on each backend, printing a row at a time; return what was reached and the exit code."""
    check_end_to_end(STEP)
    data = load()
    print(f"{len(data.images)} images to learn, {len(data.test_images)} to test, {len(data.batches)} steps")
    print(STEP)
    print(HEADER)
    done: dict[str, Training] = {}
    code = 0
    for name in names:
        backend = steps_backends.get(name)
        probe = backend.probe()
        if not probe.runs:
            print(f"{name:<17} not run: {probe.reason}")
            code = 2 if asked else code
            continue
        done[name] = train(backend, data)
        print(line(name, done[name], done[REFERENCE].weights), flush=True)
    low = [name for name, training in done.items() if training.accuracy < WANTED_ACCURACY]
    if low:
        print(f"below the accuracy of {WANTED_ACCURACY}: {', '.join(low)}")
    return done, 1 if low else code


def main() -> int:
    """Read the command line, train, draw."""
    parser = argparse.ArgumentParser(description="Train on handwritten digits with every array library.")
    parser.add_argument("--backend", action="append", choices=steps_backends.names(), help="may be repeated")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the curves (png, svg, pdf)")
    options = parser.parse_args()
    # NumPy is the measure of the others, so it always runs, and first.
    names = list(dict.fromkeys([REFERENCE, *(options.backend or BACKENDS)]))
    done, code = run(names, asked=bool(options.backend))
    if options.plot:
        draw(done, options.plot)
        print(f"drawn: {options.plot}")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
