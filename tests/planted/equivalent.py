"""Mutants that no case can notice, each with the reason: they are the same program, or nothing shows them."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("equivalent.toml")

KINDS = {
    "equivalent": "every result, state and error is the same",
    "unspecified": "what it changes is free under the requirements",
    "unreachable": "a target has no way to show it: a repr, a hash, an argument of Python alone",
}


class EquivalentError(ValueError):
    """The list of equivalent mutants is wrong; the text names the entry and what to do."""


@dataclass(frozen=True)
class Equivalent:
    """Why a mutant need not be noticed."""

    mutant: str
    kind: str
    reason: str


def load_equivalent(file: Path = FILE) -> dict[str, Equivalent]:
    """Return the entries by the identity of their mutant.

    Raises:
        EquivalentError: an entry stands twice, has no reason, or is of no known kind.
    """
    found: dict[str, Equivalent] = {}
    for group in tomllib.loads(file.read_text(encoding="utf-8")).get("because", []):
        kind, reason = group.get("kind"), group.get("reason", "")
        if kind not in KINDS or len(reason) < 20:
            raise EquivalentError(
                f"each entry needs a kind out of {', '.join(KINDS)} and a reason, got {kind!r}: {reason!r}"
            )
        for mutant in group["mutants"]:
            if mutant in found:
                raise EquivalentError(f"{mutant!r} is listed twice; remove one")
            found[mutant] = Equivalent(mutant, kind, reason)
    return found


def check_known(entries: dict[str, Equivalent], identities: set[str], modules: set[str]) -> None:
    """Refuse an entry for a mutant of these modules that does not exist any more."""
    stale = [name for name in entries if _module(name, modules) is not None and name not in identities]
    if stale:
        raise EquivalentError(
            "no such mutant exists now, because the source has changed; remove or renew the entry of\n"
            + "\n".join(stale)
        )


def _module(identity: str, modules: set[str]) -> str | None:
    scope = identity.split(": ", 1)[0]
    return next((one for one in modules if scope == one or scope.startswith(f"{one}.")), None)
