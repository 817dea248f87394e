"""Where a trait that a backend declares loosens a requirement, as the requirement's own text says."""

from collections.abc import Iterable
from dataclasses import dataclass

from steps_backends.declaration import TRAITS

from .requirements import Requirement


@dataclass(frozen=True)
class Allowance:
    """What a declared trait allows.

    Attributes:
        trait: the trait; where a backend declares it, and nowhere else, the allowance holds.
        condition: what the backend says of itself by declaring it.
        allowed: what may happen there.
        reason: why no implementation could do better.
        requirements: ids of the requirements that it loosens.
    """

    trait: str
    condition: str
    allowed: str
    reason: str
    requirements: tuple[str, ...]


@dataclass(frozen=True)
class _Loosening:
    words: tuple[str, ...]
    allowed: str
    reason: str


_LOOSENINGS = {
    "flushes_subnormals": _Loosening(
        words=("subnormal", "flush"),
        allowed="a subnormal input may count as zero, and zero may stand for a subnormal result",
        reason="the library's own arithmetic does so before a step sees the number",
    )
}
_NO_VALUE = "does not apply"


def allowances(requirements: Iterable[Requirement]) -> tuple[Allowance, ...]:
    """Return what the declared traits allow under these requirements.

    A requirement counts where it names the trait or speaks of its subject, and says how exact a result has
    to be; one without an accuracy has nothing that could be loosened.
    """
    rules = tuple(requirements)
    found = []
    for trait, loosening in _LOOSENINGS.items():
        loosened = tuple(rule.id for rule in rules if _speaks_of(rule, (trait, *loosening.words)))
        if loosened:
            found.append(Allowance(trait, TRAITS[trait], loosening.allowed, loosening.reason, loosened))
    return tuple(found)


def _speaks_of(rule: Requirement, words: Iterable[str]) -> bool:
    said = f"{rule.title}\n{rule.text}\n{rule.accuracy}".lower()
    return not rule.accuracy.startswith(_NO_VALUE) and any(word in said for word in words)
