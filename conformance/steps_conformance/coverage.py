"""How far requirements and cases cover each other, topic by topic.

A case counts as *live* where some shipped backend declares all its dtypes and traits and some shipped target
claims all that it needs. A case that is not live can never fail, so it shows nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

import steps_backends
from steps_backends import Declaration

from .case import Case
from .requirements import Requirement

SHIPPED_TARGETS = ("steps_conformance.targets.steps_core:target",)
"""The targets of this package, as ``module:attribute``; looking at one imports no implementation."""


@dataclass(frozen=True)
class TopicCoverage:
    """The coverage of one topic, both ways.

    Attributes:
        topic: its name.
        requirements: how many requirements it has.
        covered: how many of them have a live case.
        cases: how many cases it has.
        ruled: how many of them show a requirement that is written down.
        live: how many of them can run somewhere.
    """

    topic: str
    requirements: int
    covered: int
    cases: int
    ruled: int
    live: int


@dataclass(frozen=True)
class Coverage:
    """What covers what, and what is missing.

    Attributes:
        topics: the numbers, topic by topic.
        requirements_without_case: ids of requirements without a live case, each with what is wrong.
        cases_without_requirement: ids of cases whose requirement is not written down.
        dead_cases: ids of cases that can never run, each with the reason.
    """

    topics: tuple[TopicCoverage, ...]
    requirements_without_case: Mapping[str, str]
    cases_without_requirement: tuple[str, ...]
    dead_cases: Mapping[str, str]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing on either side."""
        return not (self.requirements_without_case or self.cases_without_requirement or self.dead_cases)


def coverage(
    requirements: Mapping[str, Requirement],
    cases: Mapping[str, Case],
    declarations: Sequence[Declaration],
    capabilities: Sequence[frozenset[str]],
) -> Coverage:
    """Return how far requirements and cases cover each other.

    Args:
        requirements: all requirements by id.
        cases: all cases by id.
        declarations: of the backends on which a case may run.
        capabilities: for each target that may be tested, what it claims.
    """
    dead = {
        case.id: why
        for case in cases.values()
        if (why := why_it_never_runs(case, declarations, capabilities)) is not None
    }
    shown = {case.requirement for case in cases.values()}
    live = {case.requirement for case in cases.values() if case.id not in dead}
    uncovered = {
        identity: "has no live case: none of its cases can ever run" if identity in shown else "has no case"
        for identity in requirements
        if identity not in live
    }
    topics = dict.fromkeys(
        [rule.topic for rule in requirements.values()] + [case.topic for case in cases.values()]
    )
    return Coverage(
        tuple(
            _of_topic(
                topic,
                [rule.id for rule in requirements.values() if rule.topic == topic],
                [case for case in cases.values() if case.topic == topic],
                has_live_case=live.__contains__,
                is_written=requirements.__contains__,
                is_dead=dead.__contains__,
            )
            for topic in sorted(topics)
        ),
        uncovered,
        tuple(case.id for case in cases.values() if case.requirement not in requirements),
        dead,
    )


def why_it_never_runs(
    case: Case, declarations: Iterable[Declaration], capabilities: Iterable[frozenset[str]]
) -> str | None:
    """Return why a case runs on none of these backends with any of these targets, or None where it runs.

    Args:
        case: the case.
        declarations: of the backends.
        capabilities: for each target what it claims.
    """
    asked = case.dtypes | case.traits
    if not any(asked <= {*declared.dtypes, *declared.traits} for declared in declarations):
        return f"no backend declares {', '.join(sorted(asked))}" + (" together" if len(asked) > 1 else "")
    if not any(case.needs <= claimed for claimed in capabilities):
        return f"no target claims {', '.join(sorted(case.needs))}"
    return None


def shipped_declarations() -> list[Declaration]:
    """Return the declaration of every backend of this project."""
    return [steps_backends.get(name).declaration for name in steps_backends.names()]


def shipped_capabilities() -> list[frozenset[str]]:
    """Return for each target of this package what it claims."""
    found = []
    for reference in SHIPPED_TARGETS:
        module, _, attribute = reference.partition(":")
        claimed: frozenset[str] = getattr(import_module(module), attribute).capabilities
        found.append(claimed)
    return found


def _of_topic(
    topic: str,
    rules: Sequence[str],
    cases: Sequence[Case],
    *,
    has_live_case: Callable[[str], bool],
    is_written: Callable[[str], bool],
    is_dead: Callable[[str], bool],
) -> TopicCoverage:
    return TopicCoverage(
        topic,
        requirements=len(rules),
        covered=sum(map(has_live_case, rules)),
        cases=len(cases),
        ruled=sum(is_written(case.requirement) for case in cases),
        live=sum(not is_dead(case.id) for case in cases),
    )


def percent(part: int, whole: int) -> str:
    """Return a share in percent, rounded down so that only all of it is 100; of nothing it is a dash."""
    return f"{100 * part // whole} %" if whole else "\N{EN DASH}"
