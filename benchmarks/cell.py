"""Measure some candidates in this process: `python cell.py ORDER.json ANSWER.json`; run.py starts it."""

import json
import sys
from pathlib import Path

from candidates import candidates
from measuring import measure
from works import WORKS, Work


def main(order_file: str, answer_file: str) -> None:
    """Measure what the order says."""
    order = json.loads(Path(order_file).read_text(encoding="utf-8"))
    _use_two_threads()
    work = WORKS[order["work"]] if "work" in order else Work(tuple(map(tuple, order["shapes"])))
    found = candidates(work, order["step"])
    wanted = order["names"] or list(found)
    times = measure({name: found[name] for name in wanted if name in found}, order["rounds"])
    answer = {name: each.as_json() for name, each in times.items()}
    Path(answer_file).write_text(json.dumps(answer), encoding="utf-8")


def _use_two_threads() -> None:
    try:
        import torch
    except ModuleNotFoundError:
        return
    torch.set_num_threads(2)


if __name__ == "__main__":
    main(*sys.argv[1:])
