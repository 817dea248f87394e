"""The end of what a process prints, whatever it prints before."""

import threading
from typing import IO

_KEPT_BYTES = 64 * 1024
_LINES = 30
_LONGEST_LINE = 500
_WAIT_SECONDS = 2.0


class OutputTail:
    """Reads a pipe until its end and keeps the last bytes.

    A process that prints without end fills neither a disk nor the memory, and never waits for a reader.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = b""
        # a daemon: a grandchild that keeps the pipe open must not keep this process
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            # read1 returns what is there; read would wait for all of the bytes
            while added := self._stream.read1(_KEPT_BYTES):  # type: ignore[attr-defined]
                self._kept = (self._kept + added)[-_KEPT_BYTES:]

    def wait(self) -> None:
        """Wait for the end of the pipe, for a moment: the process that writes to it has ended."""
        self._thread.join(_WAIT_SECONDS)

    def lines(self) -> str:
        """Return the last lines, long ones cut."""
        lines = self._kept.decode("utf-8", errors="replace").splitlines()[-_LINES:]
        return "\n".join(
            line if len(line) <= _LONGEST_LINE else f"...{line[-_LONGEST_LINE:]}" for line in lines
        )
