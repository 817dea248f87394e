"""One known deviation, when it applies, and what it makes of the outcomes of a run.

An expectation is always strict. One for a case means: on every backend where its condition holds, exactly
this outcome. One for a requirement means: on every such backend at least one of its cases has this outcome,
and the others may pass. An expectation that did not come true is XPASS, on the cases that pass: where
every case that it speaks of, and that the backend supports, was run, and passed or is declared by another
one. Where none of them passes, two expectations contradict each other, and all are XPASS. A failure of a kind
that is not declared stays what it is.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ..outcomes import Outcome


@dataclass(frozen=True)
class Condition:
    """When an expectation applies; each field that is given must match, by any one of its values.

    Attributes:
        backends: names of rows.
        versions: version specifiers of libraries, such as ``jax<0.11``.
        dtypes: leaf dtypes of the case.
        traits: traits that the backend declares.
    """

    backends: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()

    def holds_on(self, *, row: str, library: str, version: str | None, traits: Collection[str]) -> bool:
        """Return whether it holds on a backend; which dtypes a case has is asked before."""
        return (
            (not self.backends or row in self.backends)
            and (not self.traits or not set(self.traits).isdisjoint(traits))
            and (not self.versions or any(_is_version(one, library, version) for one in self.versions))
        )

    def __str__(self) -> str:
        """Return it in words; nothing where it always holds."""
        parts = (
            ("on", self.backends),
            ("with", self.versions),
            ("for", self.dtypes),
            ("where the backend declares", self.traits),
        )
        return ", ".join(f"{word} {' or '.join(values)}" for word, values in parts if values)


def _is_version(specifier: str, library: str, version: str | None) -> bool:
    wanted = Requirement(specifier)
    if version is None or canonicalize_name(library) != canonicalize_name(wanted.name):
        return False
    try:
        return wanted.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        # a version that cannot be compared excuses nothing
        return False


@dataclass(frozen=True)
class Expectation:
    """One known deviation.

    Attributes:
        id: of a case, or of a requirement, which stands for all its cases.
        outcome: what becomes of them: FAIL, ERROR, CRASH or TIMEOUT.
        reason: why.
        report: where it was reported in public.
        when: when it applies.
        file: the file that says so.
        cases: the planned cases that it speaks of.
        whole: whether all the cases that it speaks of are planned.
    """

    id: str
    outcome: Outcome
    reason: str
    report: str = ""
    when: Condition = field(default_factory=Condition)
    file: str = ""
    cases: tuple[str, ...] = ()
    whole: bool = True

    @property
    def is_of_a_requirement(self) -> bool:
        """Whether it stands for all cases of a requirement."""
        return "/" not in self.id


@dataclass(frozen=True)
class Declared:
    """What an expectation makes of one result.

    Attributes:
        outcome: XFAIL or XPASS.
        found: the outcome of the case itself.
        expectation: the one that says so.
    """

    outcome: Outcome
    found: Outcome
    expectation: Expectation

    def why(self) -> str:
        """Return, of an XPASS, what did not come true, and the way out."""
        one = self.expectation
        if one.is_of_a_requirement:
            which = f"no case of {one.id} ends so here"
        else:
            which = "it passes" if self.found is Outcome.PASS else f"it ends as {self.found}"
        entry = f"remove the entry {one.id} from {one.file}, or narrow its condition"
        return f"declared as {one.outcome} ({one.reason}), but {which}; {entry}"


def declared(found: Mapping[str, Outcome], expectations: Iterable[Expectation]) -> dict[str, Declared]:
    """Return the results of one backend that are XFAIL or XPASS, by case id.

    Args:
        found: the outcome of each case, by id.
        expectations: those that apply on the backend; one for a case goes before one for its requirement.
    """
    listed = sorted(expectations, key=lambda one: one.is_of_a_requirement)
    own = {one.id for one in listed if not one.is_of_a_requirement}
    made: dict[str, Declared] = {}
    untrue = []
    for one in listed:
        meant = [identity for identity in one.cases if not one.is_of_a_requirement or identity not in own]
        true = [identity for identity in meant if found.get(identity) is one.outcome]
        for identity in true:
            made.setdefault(identity, Declared(Outcome.XFAIL, one.outcome, one))
        if not true:
            untrue.append(one)
    for one in untrue:
        for identity in _refuted_by(found, one, made):
            made[identity] = Declared(Outcome.XPASS, found[identity], one)
    return made


def _refuted_by(
    found: Mapping[str, Outcome], expectation: Expectation, made: Mapping[str, Declared]
) -> list[str]:
    """Return the cases that show that an expectation did not come true; none where that is not settled."""
    if not expectation.whole or any(identity not in found for identity in expectation.cases):
        return []
    supported = [one for one in expectation.cases if found[one] is not Outcome.UNSUPPORTED]
    passing = [one for one in supported if found[one] is Outcome.PASS]
    if any(one not in made for one in supported if one not in passing):
        return []
    return [one for one in passing if one not in made] or ([] if passing else supported)
