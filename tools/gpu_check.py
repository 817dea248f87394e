"""The conformance suite on the rows of a device, then a chain's speed beside the bandwidth of a copy.

See gpu_check.sh. The report of the suite, `speed.json` and `speed.md` are written to one folder. The exit
code is that of the suite, or 2 where something was not run or not measured; the last lines say what and why.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chain_speed import table

ROWS = {"cuda": ("torch-cuda", "cupy", "jax-cuda"), "cpu": ("torch", "numpy", "jax")}

TOPICS = ("devices", "tracing", "clipping_norms", "clipping_relative", "adam", "precision", "updates")
"""What differs on a GPU, as far as four minutes go; `--all` runs every topic, for as long as it takes."""

VERDICTS = {0: "conformant in these topics", 1: "not conformant", 2: "no verdict"}

SUITE_SECONDS = 140.0
ROW_SECONDS = 25.0


def main(arguments: Sequence[str]) -> int:
    """Run both parts, and return the exit code."""
    options = _options(arguments)
    options.report.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    code = run_suite(options)
    measured = {row: measure(row, options) for row in ROWS[options.device]}
    facts = {"device": options.device, "scale": options.scale, "rows": measured}
    (options.report / "speed.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    text = table(measured)
    (options.report / "speed.md").write_text(text, encoding="utf-8")
    print(text)
    not_run = {row: result["not_run"] for row, result in measured.items() if "not_run" in result}
    for row, reason in not_run.items():
        print(f"not run: {row}: {reason}")
    print(f"suite: {VERDICTS.get(code, 'it ended')} ({code}); {len(not_run)} of {len(measured)} rows not run")
    print(f"{time.monotonic() - started:.0f} s; everything is in {options.report}")
    return code or (2 if not_run else 0)


def _options(arguments: Sequence[str]) -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--report", type=Path, required=True, help="folder for all that is found")
    parser.add_argument("--device", choices=sorted(ROWS), default="cuda")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the elements that are measured")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--id", action="append", help="cases to run instead of those of the topics")
    chosen.add_argument("--all", action="store_true", help="every topic, without a limit of time")
    return parser.parse_args(arguments)


def run_suite(options: Any) -> int:
    """Return the exit code of the suite; 2 where its time is up: the report is resumable, and says so."""
    command = [sys.executable, "-m", "steps_conformance", "run", "--report", str(options.report)]
    for row in ROWS[options.device]:
        command += ["--backend", row]
    if not options.all:
        picked = [("--id", one) for one in options.id or ()] or [("--topic", one) for one in TOPICS]
        command += [argument for pair in picked for argument in pair]
    try:
        limit = None if options.all else SUITE_SECONDS
        return subprocess.run(command, check=False, timeout=limit).returncode  # noqa: S603 - our own command
    except subprocess.TimeoutExpired:
        print(f"the suite was broken off after {SUITE_SECONDS:g} s: the report is of a part; go on with")
        print(f"  steps-conformance run --resume {options.report}")
        command = [sys.executable, "-m", "steps_conformance", "report", "render", str(options.report)]
        subprocess.run(command, check=False)  # noqa: S603 - our own command
        return 2


def measure(row: str, options: Any) -> dict[str, Any]:
    """Return what one row gives in a process of its own, or why it was not run."""
    worker = str(Path(__file__).with_name("chain_speed.py"))
    command = [sys.executable, worker, row, str(options.scale)]
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            command, capture_output=True, text=True, check=False, timeout=ROW_SECONDS
        )
    except subprocess.TimeoutExpired:
        return {"not_run": f"took longer than {ROW_SECONDS:g} s"}
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        return {"not_run": said[-1] if said else f"ended with {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
