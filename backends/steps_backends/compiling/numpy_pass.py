"""One pass over the leaves on NumPy: blocks that stay in the cache, on two threads where that pays."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

from .kernels import fact_function, specialised
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
    """The tasks of a stage, run together.

    Attributes:
        runners: of each task.
        is_threaded: whether it is so large that two threads share it.
    """

    def __init__(self, tasks: Sequence[Task], summer: SquareSummer) -> None:
        self._registers = [_Registers(), _Registers()]
        self.runners = [TaskRunner(task, summer, self._registers[0]) for task in tasks]
        self._elements = sum(runner.size for runner in self.runners)
        self.is_threaded = self._elements >= THREADED

    def __call__(self, works: Sequence[Work]) -> None:
        """Compute the outputs and sums of all works."""
        pairs = zip(self.runners, works, strict=True)
        jobs = [runner.job(work) for runner, work in pairs if runner.size]
        if _processors() < 2:
            _run([(job, 0, job.length) for job in jobs], BLOCK, self._registers[0])
            return
        mine, other = _halves(jobs, self._elements // 2)
        done = _second_thread().submit(_run_quietly, other, THREADED_BLOCK, self._registers[1])
        _run(mine, THREADED_BLOCK, self._registers[0])
        done.result()


class TaskRunner:
    """Runs one task, by a function for each set of facts that it meets.

    Attributes:
        size: the number of elements.
    """

    def __init__(self, task: Task, summer: SquareSummer, registers: "_Registers") -> None:
        self._task, self._of_block, self._registers = task, summer.of_block, registers
        self.size = task.size
        self._facts_of = [fact_function(dtype) for dtype in task.kernel.scalars]
        self._functions: dict[Any, BlockFunction] = {}
        self._is_flat = task.kernel.is_flat
        self._length, self._tail = (self.size, _FLAT) if self._is_flat else (task.shape[0], task.shape[1:])
        self._row = prod(self._tail)

    def __call__(
        self,
        arrays: list[Any],
        outputs: list[Any],
        aliases: tuple[int | None, ...],
        parts: list[Any],
        scalars: list[Any],
        sums: list[list[Any]],
    ) -> None:
        """Compute outputs and sums in this thread; the arguments are those of `Work`."""
        if self.size > BLOCK:
            job = self.job(Work(arrays, outputs, aliases, parts, scalars, sums))
            _run([(job, 0, self._length)], BLOCK, self._registers)
            return
        function = self._function(scalars, aliases)
        if self._is_flat and not self._task.is_packed:
            arrays = [array.reshape(-1) for array in arrays]
            outputs = [array.reshape(-1) for array in outputs]
        registers = self._registers.shaped(function.registers, self._length, self._tail)
        function.block(arrays, outputs, parts, scalars, registers, self._adding(sums))

    def job(self, work: Work) -> _Job:
        """Return a work with its function."""
        function = self._function(work.scalars, work.aliases)
        if self._is_flat:
            work.arrays[:] = [array.reshape(-1) for array in work.arrays]
            work.outputs[:] = [array.reshape(-1) for array in work.outputs]
        return _Job(function, work, self._length, self._tail, self._row, self._adding(work.sums))

    def _function(self, scalars: list[Any], aliases: tuple[int | None, ...]) -> BlockFunction:
        facts = tuple([fact_of(each) for fact_of, each in zip(self._facts_of, scalars, strict=True)])
        function = self._functions.get((facts, aliases))
        if function is None:
            kernel = specialised(self._task.kernel, facts)
            fused = fused_function(kernel, aliases) if self.size >= FUSED else None
            function = self._functions[facts, aliases] = fused or block_function(kernel, aliases)
        return function

    def _adding(self, sums: list[list[Any]]) -> Callable[[int, Any], None]:
        of_block = self._of_block

        def add_squares(index: int, block: Any) -> None:
            sums[index].append(of_block(block))

        return add_squares


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
