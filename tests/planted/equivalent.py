"""Mutants that need not be noticed, each with the reason why no case could."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .mutants import Mutant

FILE = Path(__file__).with_name("equivalent.toml")

KINDS = {
    "equivalent": "every result, state and error is the same",
    "unspecified": "what changes is free under the requirements",
    "unreachable": "no case can show it, because a target is asked by descriptions, on one device, without "
    "derivatives; unit tests do",
}

# What an entry may name: mutants by identity; all of a function; those of statements that no case executes.
_LISTS = ("mutants", "functions", "unexecuted")


class ExplanationError(ValueError):
    """The list is wrong; the text names the entry and what to do."""


@dataclass(frozen=True)
class Reason:
    """Why some mutants need not be noticed."""

    kind: str
    text: str


@dataclass(frozen=True)
class Elsewhere:
    """Which cases notice mutants on another backend than NumPy, where none does."""

    row: str
    cases: tuple[str, ...]


@dataclass(frozen=True)
class Explained:
    """All entries of the list.

    Attributes:
        mutants: reasons by the identity of a mutant.
        functions: reasons by function.
        unexecuted: likewise, for the statements in it that no case executes.
        elsewhere: by the identity of a mutant, what notices it; this is tried, and nothing else.
        unexecuted_elsewhere: by function, what executes the statements in it that NumPy does not.
    """

    mutants: dict[str, Reason] = field(default_factory=dict)
    functions: dict[str, Reason] = field(default_factory=dict)
    unexecuted: dict[str, Reason] = field(default_factory=dict)
    elsewhere: dict[str, Elsewhere] = field(default_factory=dict)
    unexecuted_elsewhere: dict[str, list[Elsewhere]] = field(default_factory=dict)

    def reason_for(self, mutant: Mutant, *, is_executed: bool) -> Reason | None:
        """Return why a mutant need not be noticed; None where it has to be."""
        found = self.mutants.get(mutant.identity) or self.functions.get(mutant.scope)
        return found if found or is_executed else self.unexecuted.get(mutant.scope)

    def places_of(self, mutant: Mutant, *, is_executed: bool) -> list[Elsewhere]:
        """Return where else a mutant is tried, given whether NumPy executes it."""
        if mutant.identity in self.elsewhere:
            return [self.elsewhere[mutant.identity]]
        return [] if is_executed else self.unexecuted_elsewhere.get(mutant.scope, [])

    def check_known(self, mutants: Iterable[Mutant], modules: Iterable[str]) -> None:
        """Refuse an entry about one of these modules whose mutants do not exist any more."""
        known, identities, scopes = set(modules), set(), set()
        for mutant in mutants:
            identities.add(mutant.identity)
            scopes.add(mutant.scope)
        listed = [*self.mutants, *self.elsewhere]
        stale = [name for name in listed if _in(name, known) and name not in identities]
        functions = {**self.functions, **self.unexecuted, **self.unexecuted_elsewhere}
        stale += [name for name in functions if _in(name, known) and name not in scopes]
        if stale:
            gone = "\n".join(stale)
            raise ExplanationError(
                f"the source has changed, and mutants are gone; remove or renew in {FILE.name}:\n{gone}"
            )


def _in(name: str, modules: set[str]) -> bool:
    scope = name.split(": ", 1)[0]
    return any(scope == module or scope.startswith(f"{module}.") for module in modules)


def load_explained(file: Path = FILE) -> Explained:
    """Return the list.

    Raises:
        ExplanationError: an entry is of no known kind, has no reason, or names nothing or another's.
    """
    found = Explained()
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    for group in content.get("elsewhere", []):
        where = Elsewhere(group["row"], tuple(group["cases"]))
        found.elsewhere.update(dict.fromkeys(group.get("mutants", []), where))
        for scope in group.get("unexecuted", []):
            found.unexecuted_elsewhere.setdefault(scope, []).append(where)
    for group in content.get("because", []):
        kind, text = group.get("kind"), " ".join(group.get("reason", "").split())
        if kind not in KINDS or len(text) < 20:
            raise ExplanationError(
                f"an entry needs a kind out of {', '.join(KINDS)} and a reason, got {kind!r} and {text!r}"
            )
        if not any(group.get(name) for name in _LISTS):
            raise ExplanationError(f"the entry {text!r} names nothing; give it {' or '.join(_LISTS)}")
        for name in _LISTS:
            entries = getattr(found, name)
            for entry in group.get(name, []):
                if entry in entries:
                    raise ExplanationError(f"{entry!r} is listed twice; remove one")
                entries[entry] = Reason(kind, text)
    return found
