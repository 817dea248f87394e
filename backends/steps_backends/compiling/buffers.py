"""Arrays that are used again once nobody else refers to them."""

import sys
from collections.abc import Hashable, Iterable
from typing import Any

# A chain of calls needs what it reads and what it writes; one more is for the caller to keep.
_MOST = 3


class Pool:
    """Arrays by purpose. Whoever gets one refers to it, itself or through views, as long as it is in use."""

    def __init__(self) -> None:
        self._arrays: dict[Hashable, list[Any]] = {}

    def take(self, purpose: Hashable, size: int, dtype: Any) -> Any:
        """Return an array of one axis that nobody else refers to, with any values."""
        import numpy as np

        kept = self._arrays.setdefault(purpose, [])
        for array in kept:
            # The list, the loop, and the argument.
            if sys.getrefcount(array) == 3:
                return array
        array = np.empty(size, dtype)
        kept.append(array)
        if len(kept) > _MOST:
            del kept[0]
        return array


def crossing(spans: Iterable[tuple[int, int, int]]) -> set[int]:
    """Return the ids of spans, each with its start and end before it, that share a part with another one."""
    shared: set[int] = set()
    reached, owner = 0, 0
    for start, stop, key in sorted(spans):
        if start < reached:
            shared |= {key, owner}
        if stop > reached:
            reached, owner = stop, key
    return shared
