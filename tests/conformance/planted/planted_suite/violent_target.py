"""A target that misbehaves in the way that an option names."""

import ctypes
import os
import sys
import threading
import time
import warnings
from dataclasses import dataclass
from typing import Any

from steps_conformance.targets.protocol import Description

MIB = 2**20


def _exits() -> None:
    os._exit(0)


def _segfaults() -> None:
    ctypes.string_at(0)


def _hangs() -> None:
    time.sleep(600)


def _eats_memory() -> None:
    held = []
    while len(held) < 4096:  # an end that a working limit never reaches
        held.append(b"x" * (4 * MIB))
    raise AssertionError("nothing stopped it at 16 GiB")


def _floods() -> None:
    for _ in range(50):
        os.write(1, b"out " * 50_000 + b"\n")
        os.write(2, b"err " * 50_000 + b"\n")


def _floods_and_exits() -> None:
    _floods()
    os.write(2, b"last words\n")
    os._exit(1)


def _half_a_line() -> None:
    os.write(1, b'{"id": 3, "res')
    os._exit(0)


def _forks() -> None:
    with warnings.catch_warnings():
        # newer Pythons warn of a fork where there are threads
        warnings.simplefilter("ignore")
        os.fork()


def _leaves_a_thread() -> None:
    threading.Thread(target=time.sleep, args=(600,)).start()


def _garbage() -> None:
    sys.stdout.write("progress: 50 %\n")
    sys.stdout.flush()


WAYS = {
    "exits": _exits,
    "segfaults": _segfaults,
    "hangs": _hangs,
    "eats-memory": _eats_memory,
    "floods": _floods,
    "floods-and-exits": _floods_and_exits,
    "half-a-line": _half_a_line,
    "forks": _forks,
    "leaves-a-thread": _leaves_a_thread,
    "garbage": _garbage,
    "none": lambda: None,
}


@dataclass(frozen=True)
class ViolentStep:
    way: str

    def init(self, weights: Any) -> Any:
        return {}

    def apply(self, gradients: Any, weights: Any, state: Any) -> tuple[Any, Any]:
        WAYS[self.way]()
        return gradients, {}


class ViolentTarget:
    name, version, path, hash = "violent", "1.0", "planted/violent_target.py", "0" * 64
    capabilities: frozenset[str] = frozenset()

    def make(self, description: Description) -> ViolentStep:
        return ViolentStep(description["options"]["way"])


target = ViolentTarget()
