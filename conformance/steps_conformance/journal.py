"""The journal of a worker process: JSON lines on disk, written before and after each case."""

import json
from pathlib import Path
from typing import Any

from .one_process import ThisProcess

Event = dict[str, Any]


class JournalWriter:
    """Appends events; each is in the file when ``write`` returns, whatever happens to the process then.

    It writes for the process that made it; a process that a target has forked ends when it comes here.
    """

    def __init__(self, file: Path) -> None:
        self._stream = file.open("ab", buffering=0)
        self._process = ThisProcess()

    def write(self, event: str, **fields: Any) -> None:
        """Append one event."""
        self._process.end_if_forked()
        self._stream.write(json.dumps({"event": event, **fields}).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class JournalReader:
    """Reads the events that were added since the last look; a line that is not yet whole is left."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0

    def new_events(self) -> list[Event]:
        """Return the events added since the last call."""
        if not self._file.exists():
            return []
        with self._file.open("rb") as stream:
            stream.seek(self._offset)
            added = stream.read()
        whole = added[: added.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [json.loads(line) for line in whole.splitlines()]
