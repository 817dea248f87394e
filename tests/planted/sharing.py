"""Work on many things shared among forked processes, as many as there are processors."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from .isolated import started

Item = TypeVar("Item")
Answer = TypeVar("Answer")

# A process works on some items before it ends, and what came of them can be heeded for the next.
_IN_A_ROW = 8


def shared(work: Callable[[Item], Answer], items: Sequence[Item]) -> Iterator[Answer]:
    """Yield what work gives for each item, in order; it is done in forked processes.

    Raises:
        ChildFailedError: work raised.
    """
    at_once = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    for start in range(0, len(items), at_once * _IN_A_ROW):
        together = items[start : start + at_once * _IN_A_ROW]
        shares = [together[first::at_once] for first in range(at_once)]
        running = [started(lambda share=share: [work(item) for item in share]) for share in shares]
        answers = [iter(one.answer()) for one in running]
        for place in range(len(together)):
            yield next(answers[place % at_once])
