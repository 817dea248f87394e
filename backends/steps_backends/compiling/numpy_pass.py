"""One pass over the leaves on NumPy: blocks that stay in the cache, on two threads where that pays."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

from .kernels import Kernel, fact_function, specialised
from .numba_source import fused_function
from .numpy_source import BlockFunction, block_function
from .numpy_sums import FUSED, SquareSummer, most_at_once
from .numpy_tasks import Task

# Elements of a block. Two threads hand the interpreter's lock to each other at each operation, so that
# theirs must be larger.
BLOCK, THREADED_BLOCK = 1 << 14, 1 << 16
# Passes over fewer elements are done before a second thread has started.
THREADED = 1 << 19


_FLAT: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Work:
    """What a task computes on in one call.

    Attributes:
        arrays, outputs, parts, scalars: as the kernel takes them.
        aliases: for each output, the array that lies there, or None.
        sums: for each sum of squares, the list that its triples go to.
    """

    arrays: list[Any]
    outputs: list[Any]
    aliases: tuple[int | None, ...]
    parts: list[Any]
    scalars: list[Any]
    sums: list[list[Any]]


@dataclass(frozen=True, eq=False)
class _Job:
    """A work with its function: rows of the first axis, which may be shared out among threads."""

    function: BlockFunction
    work: Work
    length: int
    tail: tuple[int, ...]
    row: int
    add_squares: Callable[[int, Any], None]


class Pass:
    """The tasks of a stage, run together."""

    def __init__(self, tasks: Sequence[Task], summer: SquareSummer) -> None:
        self._tasks, self._summer = tasks, summer
        self._sizes = [task.size for task in tasks]
        self._elements = sum(self._sizes)
        self._facts_of = [tuple(map(fact_function, task.kernel.scalars)) for task in tasks]
        self._functions: dict[Any, BlockFunction] = {}
        self._registers = [_Registers(), _Registers()]

    def __call__(self, works: Sequence[Work]) -> None:
        """Compute the outputs and sums of all works."""
        jobs = [self._job(number, work) for number, work in enumerate(works) if self._sizes[number]]
        if self._elements < THREADED or _processors() < 2:
            _run([(job, 0, job.length) for job in jobs], BLOCK, self._registers[0])
            return
        mine, other = _halves(jobs, self._elements // 2)
        done = _second_thread().submit(_run_quietly, other, THREADED_BLOCK, self._registers[1])
        _run(mine, THREADED_BLOCK, self._registers[0])
        done.result()

    def _job(self, number: int, work: Work) -> _Job:
        task = self._tasks[number]
        facts = tuple(
            fact_of(scalar) for fact_of, scalar in zip(self._facts_of[number], work.scalars, strict=True)
        )
        key = (number, facts, work.aliases)
        function = self._functions.get(key)
        if function is None:
            function = _function(task, specialised(task.kernel, facts), work.aliases)
            self._functions[key] = function
        if task.kernel.is_flat:
            work.arrays[:] = [array.reshape(-1) for array in work.arrays]
            work.outputs[:] = [array.reshape(-1) for array in work.outputs]
            length, tail = self._sizes[number], _FLAT
        else:
            length, tail = task.shape[0], task.shape[1:]
        of_block, sums = self._summer.of_block, work.sums

        def add_squares(index: int, block: Any) -> None:
            sums[index].append(of_block(block))

        return _Job(function, work, length, tail, prod(tail), add_squares)


def _function(task: Task, kernel: Kernel, aliases: tuple[int | None, ...]) -> BlockFunction:
    fused = fused_function(kernel, aliases) if task.size >= FUSED else None
    return block_function(kernel, aliases) if fused is None else fused


class _Registers:
    """One thread's registers, made when they are first needed."""

    def __init__(self) -> None:
        self._arrays: dict[Any, list[Any]] = {}

    def shaped(self, dtypes: tuple[str, ...], rows: int, tail: tuple[int, ...]) -> list[Any]:
        """Return a register of each dtype."""
        import numpy as np

        key = dtypes, rows, tail
        if key not in self._arrays:
            self._arrays[key] = [np.empty((rows, *tail), dtype) for dtype in dtypes]
        return self._arrays[key]


Share = tuple[_Job, int, int]


def _halves(jobs: Sequence[_Job], half: int) -> tuple[list[Share], list[Share]]:
    """Return two shares of about equal size; jobs are cut between blocks."""
    first: list[Share] = []
    second: list[Share] = []
    before = 0
    for job in jobs:
        rows = max(1, THREADED_BLOCK // job.row)
        cut = max(0, min(job.length, (half - before) // job.row // rows * rows))
        if cut:
            first.append((job, 0, cut))
        if cut < job.length:
            second.append((job, cut, job.length))
        before += job.length * job.row
    return first, second


def _run(shares: Sequence[Share], block: int, registers: _Registers) -> None:
    for job, start, stop in shares:
        work = job.work
        # What is only summed goes through the cache once in any case.
        elements = block if work.outputs else most_at_once(work.arrays)
        rows = min(max(1, elements // job.row), stop - start)
        job.function.run(
            start,
            stop,
            rows,
            work.arrays,
            work.outputs,
            work.parts,
            work.scalars,
            registers.shaped(job.function.registers, rows, job.tail),
            job.add_squares,
        )


def _run_quietly(shares: Sequence[Share], block: int, registers: _Registers) -> None:
    """Run in another thread, which has a floating-point error state of its own."""
    import numpy as np

    with np.errstate(all="ignore"):
        _run(shares, block, registers)


@cache
def _second_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="steps")


if hasattr(os, "register_at_fork"):
    # A child of fork has none of its parent's threads.
    os.register_at_fork(after_in_child=_second_thread.cache_clear)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
