"""The machine's own limit: a loop by hand that moves just the bytes that must move, on two threads."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from measuring import Candidate


def candidates(step: str, gradients: list[Any], dtype: str) -> Iterator[tuple[str, Callable[[], Candidate]]]:
    """Yield the name of each candidate and what makes it."""
    if dtype != "float32":
        return
    size = sum(leaf.size for leaf in gradients)
    if step in ("chain", "adam", "clip"):
        yield "limit, all donated", partial(_limit, step, size)
    if step == "norm":
        yield "limit, plain sum of squares", partial(_sum_of_squares, size)


def _squares() -> Any:
    import numba
    import numpy as np

    @numba.njit(parallel=True, fastmath=True, error_model="numpy")
    def squares(g: Any) -> Any:
        total = np.float32(0)
        for i in numba.prange(g.size):
            total += g[i] * g[i]
        return total

    return squares


def _sum_of_squares(size: int) -> Candidate:
    import numpy as np

    return Candidate(partial(_squares(), np.full(size, 1e-3, np.float32)))


def _limit(step: str, size: int) -> Candidate:
    import numba
    import numpy as np

    one = np.float32(1)
    keep, new = np.float32(0.9), np.float32(0.1)
    keep2, new2, tiny, rate = np.float32(0.999), np.float32(0.001), np.float32(1e-8), np.float32(-1e-3)
    squares = _squares()

    @numba.njit(parallel=True, fastmath=True, error_model="numpy")
    def scale(g: Any, factor: Any) -> None:
        for i in numba.prange(g.size):
            g[i] *= factor

    @numba.njit(parallel=True, fastmath=True, error_model="numpy")
    def adam(g: Any, m: Any, v: Any, factor: Any) -> None:
        for i in numba.prange(g.size):
            x = g[i] * factor
            first = keep * m[i] + new * x
            second = keep2 * v[i] + new2 * x * x
            m[i], v[i] = first, second
            g[i] = rate * first / (np.sqrt(second) + tiny)

    arrays: list[Any] = [np.full(size, 1e-3, np.float32) for _ in range(3)]
    gradient, m, v = arrays

    def call() -> None:
        factor = one
        if step != "adam":
            # Of the sum's own format the loop would be one of float64.
            factor = np.float32(min(one, one / max(np.sqrt(squares(gradient)), tiny)))
        if step == "clip":
            scale(gradient, factor)
        else:
            adam(gradient, m, v, factor)

    return Candidate(call, lambda: gradient.fill(1e-3))
