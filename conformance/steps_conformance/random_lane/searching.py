"""Searching for an example on which a property does not hold, and making it small."""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, Phase, Verbosity, assume, given, seed, settings
from steps_backends import Backend

from ..case import Case
from ..execution import Result, execute
from ..outcomes import FAILURES, Outcome
from ..targets.protocol import Refusal, Target
from ..vectors.model import Vector, dumped
from .numbers import Range
from .properties import Property

EXAMPLES = 100
"""How many examples a property is tried on in one round."""

SOURCE = "found by the random lane"


@dataclass(frozen=True)
class Finding:
    """An example on which a property does not hold, made as small as it could be.

    Attributes:
        name: of the property.
        vector: the example, under an id of its own.
        related: the further inputs that the property looks at.
        result: what became of it.
    """

    name: str
    vector: Vector
    related: tuple[Vector, ...]
    result: Result


@dataclass(frozen=True)
class Search:
    """What became of the examples of a property.

    Attributes:
        ran: how many the target took.
        lacking: why it took none: the step that it refuses to make, or declares not to offer; else empty.
        finding: where the property does not hold; None where nothing was found.
    """

    ran: int
    lacking: str = ""
    finding: Finding | None = None


class _Found(AssertionError):  # noqa: N818 - tells Hypothesis that the example is one
    pass


def search(
    one: Property, backend: Backend, target: Target, *, number: int, examples: int = EXAMPLES
) -> Search:
    """Look for the smallest example against a property.

    Args:
        one: the property.
        backend: the backend.
        target: the implementation under test.
        number: the seed; the same one finds the same.
        examples: how many examples are tried.
    """
    failed: list[tuple[Vector, Result]] = []
    ran = 0
    lacking = ""

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        print_blob=False,
    )
    @given(one.vectors(Range.of(backend.declaration)))
    def tried(vector: Vector) -> None:
        nonlocal ran, lacking
        assume(one.applies(vector))
        result = tried_once(one, vector, backend, target)
        if result.outcome is Outcome.UNSUPPORTED or _is_refused(vector, target):
            lacking = result.message
        else:
            ran += 1
        if result.outcome in FAILURES:
            failed[:] = [(vector, result)]
            raise _Found

    try:
        tried()
    except _Found:
        vector, result = failed[0]
        if not ran:
            # one that refuses every example has no such step; one that refuses some has a fault
            return Search(0, lacking)
        related = tuple(named(other, one.name) for other in one.related(vector))
        return Search(ran, finding=Finding(one.name, named(vector, one.name), related, result))
    return Search(ran, "" if ran else lacking)


def _is_refused(vector: Vector, target: Target) -> bool:
    try:
        target.make(vector.step)
    except Refusal:
        return True
    except Exception:  # noqa: BLE001 - a fault of the target, which running the example tells
        return False
    return False


def tried_once(one: Property, vector: Vector, backend: Backend, target: Target) -> Result:
    """Return what becomes of one example, run in the way of a case."""
    case = Case(
        id=vector.id,
        requirement=vector.requirement,
        topic=one.name,
        function=one.holds,
        arguments={"vector": vector},
        dtypes=vector.dtypes(),
        needs=frozenset(),
    )
    return execute(case, backend, target)


def named(vector: Vector, name: str) -> Vector:
    """Return a vector under an id that follows from its content."""
    digest = hashlib.sha256(dumped(_topic(name), [vector]).encode()).hexdigest()[:12]
    return replace(vector, id=f"{vector.requirement}/v-random-{name}-{digest}", source=SOURCE)


def file_of(finding: Finding) -> tuple[str, str]:
    """Return name and text of the file of a finding."""
    text = dumped(_topic(finding.name), [finding.vector, *finding.related])
    return f"{finding.vector.id.rpartition('/v-')[2]}.json", text


def _topic(name: str) -> str:
    return f"random_{name.replace('-', '_')}"


def rounds(number: int, seconds: float) -> Iterator[int]:
    """Yield seed after seed, at least one, until the time is up."""
    end = time.monotonic() + seconds
    yield number
    while time.monotonic() < end:
        number += 1
        yield number
