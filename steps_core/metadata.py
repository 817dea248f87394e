"""The ``metadata`` port: what a user attaches to a step, kept read-only."""

from collections.abc import Iterator, Mapping
from typing import Any

from .errors import ArgumentTypeError, refusal


class Metadata(Mapping[Any, Any]):
    """A read-only copy of a mapping; unlike `types.MappingProxyType` it can be copied and pickled."""

    def __init__(self, entries: Mapping[Any, Any] | None = None) -> None:
        if entries is not None and not isinstance(entries, Mapping):
            raise refusal(ArgumentTypeError, "metadata", "be a mapping", entries, 'pass {"name": value}')
        self._entries = dict(entries or {})

    def __getitem__(self, key: Any) -> Any:
        return self._entries[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return repr(self._entries)
