"""One known deviation, when it applies, and what it makes of the outcomes of a run.

An expectation is always strict. One for a case means: on every backend where its condition holds, exactly
this outcome. One for a requirement means: on every such backend at least one of its cases has this outcome,
and the others may pass. So a case that was declared alone and passes is XPASS; of a requirement that was
declared, all cases of a backend are XPASS together, and only where every one that the backend supports was
run and passed. A failure of another kind than the declared one stays what it is.
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


def declared(found: Mapping[str, Outcome], expectations: Iterable[Expectation]) -> dict[str, Declared]:
    """Return the results of one backend that are XFAIL or XPASS, by case id.

    Args:
        found: the outcome of each case, by id.
        expectations: those that apply on the backend; one for a case goes before one for its requirement.
    """
    of_cases: dict[str, list[Expectation]] = {}
    of_requirements = []
    for one in expectations:
        if one.is_of_a_requirement:
            of_requirements.append(one)
        for identity in () if one.is_of_a_requirement else one.cases:
            of_cases.setdefault(identity, []).append(one)
    made = {
        identity: result
        for identity, listed in of_cases.items()
        if (result := _of_case(found.get(identity, Outcome.NOTRUN), listed)) is not None
    }
    for one in of_requirements:
        for identity, result in _of_requirement(found, one, of_cases.keys()).items():
            made.setdefault(identity, result)
    return made


def _of_case(found: Outcome, listed: list[Expectation]) -> Declared | None:
    for one in listed:
        if one.outcome is found:
            return Declared(Outcome.XFAIL, found, one)
    return Declared(Outcome.XPASS, found, listed[0]) if found is Outcome.PASS else None


def _of_requirement(
    found: Mapping[str, Outcome], expectation: Expectation, elsewhere: Collection[str]
) -> dict[str, Declared]:
    outcomes = {
        identity: found.get(identity, Outcome.NOTRUN)
        for identity in expectation.cases
        if identity not in elsewhere
    }
    failed = [identity for identity, outcome in outcomes.items() if outcome is expectation.outcome]
    if failed:
        return {identity: Declared(Outcome.XFAIL, expectation.outcome, expectation) for identity in failed}
    supported = {
        identity: outcome for identity, outcome in outcomes.items() if outcome is not Outcome.UNSUPPORTED
    }
    if expectation.whole and all(outcome is Outcome.PASS for outcome in supported.values()):
        return {identity: Declared(Outcome.XPASS, Outcome.PASS, expectation) for identity in supported}
    return {}
