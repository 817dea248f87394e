"""Targets and backends in this very process, for the commands that need no isolation."""

from collections.abc import Iterator, Sequence

from steps_backends import Backend

from ..loading import load_backend, load_target
from ..targets.protocol import Target
from .choosing import rows_for
from .terminal import output, stop


def target_here(reference: str) -> Target:
    """Return the target; the command ends where there is none."""
    try:
        found = load_target(reference)
        output.print(f"target: {found.name} {found.version}", markup=False, soft_wrap=True)
    except Exception as error:  # noqa: BLE001 - whatever a foreign module raises is a finding
        raise stop(f"target {reference}: {type(error).__name__}: {error}") from None
    return found


def backends_here(reference: str, names: Sequence[str]) -> Iterator[tuple[str, Backend]]:
    """Yield the backends that can run here for a target; the command ends at a named one that cannot."""
    for name in rows_for(reference, names):
        try:
            backend = load_backend(name)
            probe = backend.probe()
        except Exception as error:  # noqa: BLE001 - likewise
            raise stop(f"backend {name}: {type(error).__name__}: {error}") from None
        if probe.runs:
            yield name, backend
        elif name in names:
            raise stop(f"{name} was asked for and does not run: {probe.reason}")
        else:
            output.print(f"{name}: not run: {probe.reason}", markup=False, soft_wrap=True)
