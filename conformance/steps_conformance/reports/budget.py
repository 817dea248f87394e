"""Lists that have to fit: as many entries as there is room for, and a count of the rest."""

from collections.abc import Iterable


def fitting(parts: Iterable[str], limit: int) -> tuple[list[str], int]:
    """Return the first parts that need no more than limit bytes of UTF-8 together, and how many are left.

    A part that is too long ends the list, so that what is shown is the beginning and not a choice.
    """
    kept: list[str] = []
    left, room = 0, limit
    for part in parts:
        room -= len(part.encode()) + 2  # and what stands between two
        if left or room < 0:
            left += 1
        else:
            kept.append(part)
    return kept, left
