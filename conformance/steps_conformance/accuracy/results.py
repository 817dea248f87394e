"""What measuring gives: a number for each measure on each backend, or the reason why there is none."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """The outcome of one measure on one backend.

    Attributes:
        backend: the row's name.
        requirement: the requirement whose tolerance it backs.
        name: what was measured, in words.
        dtype: of the gradients.
        size: how many elements, or leaves, or calls.
        ulps: the largest error; None where it was not measured.
        reason: why it was not.
    """

    backend: str
    requirement: str
    name: str
    dtype: str
    size: int
    ulps: float | None
    reason: str = ""


@dataclass(frozen=True)
class Unmeasured:
    """A backend on which measuring broke off.

    Attributes:
        backend: the row's name.
        reason: the last words of its process.
    """

    backend: str
    reason: str
