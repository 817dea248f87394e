"""The pipe to a target in another process: one JSON line asked, one JSON line answered."""

import contextlib
import json
import subprocess
from collections.abc import Sequence
from typing import Any

from ..output_tail import OutputTail
from ..received import received
from .protocol import REFUSAL_KINDS, Refusal

LONGEST_LINE = 2**28
"""Bytes of the longest answer that is read: ten million numbers as text."""

_SHOWN = 120


class TargetEndedError(Exception):
    """The target's process ended while it was asked; the text says how, with its last words."""


class NotStartedAgainError(Exception):
    """The target's process ended too often."""


class ProtocolError(Exception):
    """The target answered what is no answer; the text shows it.

    Its process is ended then, since nobody knows to what request its next line would belong.
    """

    kind = "the target broke the protocol"


class TargetFaultError(Exception):
    """The target says that something went wrong in it; the text is what it says."""

    kind = "the target failed"


class Connection:
    """A command that answers requests; it is started when it is first asked, and again after it ended.

    Args:
        command: program and arguments.
        restarts: how often it may be started again.
        longest_line: bytes of the longest answer that is read.

    Attributes:
        generation: how often it was started; what an earlier process made is unknown to a later one.
    """

    def __init__(
        self, command: Sequence[str], *, restarts: int = 10, longest_line: int = LONGEST_LINE
    ) -> None:
        self.generation = 0
        self._command = tuple(command)
        self._restarts = restarts
        self._longest_line = longest_line
        self._process: subprocess.Popen[bytes] | None = None
        self._said: OutputTail | None = None
        self._asked = 0

    def ask(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Return what the target answers to one request.

        Raises:
            Refusal: the target refuses.
            TargetFaultError: the target says that it failed.
            ProtocolError: the answer is malformed.
            TargetEndedError: the process ended before it had answered.
            NotStartedAgainError: the process ended too often.
        """
        process = self._running()
        self._asked += 1
        request = {"id": self._asked, "do": method, **arguments}
        line = self._exchanged(process, json.dumps(request, allow_nan=False).encode() + b"\n", method)
        try:
            return _result(_parsed(line, self._longest_line), self._asked)
        except ProtocolError as error:
            said = self._end(process)
            raise ProtocolError(f"asked to {method}: {error}{said}") from None

    @property
    def is_open(self) -> bool:
        """Whether the process of this generation still runs, as far as is known."""
        return self._process is not None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._end(self._process)

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is not None:
            return self._process
        if self.generation > self._restarts:
            raise NotStartedAgainError(
                f"given up: the target's process may be started again {self._restarts} times, see --restarts"
            )
        self.generation += 1
        self._process = subprocess.Popen(  # noqa: S603 - the command that the user wants tested
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self._process.stderr is not None
        self._said = OutputTail(self._process.stderr)
        return self._process

    def _exchanged(self, process: "subprocess.Popen[bytes]", request: bytes, method: str) -> bytes:
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
            line = process.stdout.readline(self._longest_line + 1)
        except (BrokenPipeError, ConnectionResetError):
            line = b""
        if line.endswith(b"\n") or len(line) > self._longest_line:
            return line
        broken = f"in the middle of a line: {_shown(line)}" if line else "without an answer"
        # it has closed its output, so it has ended or is about to
        try:
            status = process.wait(timeout=5)
            how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        except subprocess.TimeoutExpired:
            how = "closed its standard output and went on"
        raise TargetEndedError(f"asked to {method}, the target's process {how} {broken}{self._end(process)}")

    def _end(self, process: "subprocess.Popen[bytes]") -> str:
        """End the process, and return its last words."""
        assert process.stdin is not None and process.stdout is not None and self._said is not None
        process.kill()
        process.wait()
        self._said.wait()
        process.stdout.close()
        # what was not yet written is of no use any more
        with contextlib.suppress(OSError):
            process.stdin.close()
        self._process = None
        said = self._said.lines()
        return f"\n{said}" if said else ""


def _parsed(line: bytes, longest: int) -> Any:
    if not line.endswith(b"\n"):
        raise ProtocolError(f"answered a line of more than {longest} bytes, which starts {_shown(line)}")
    try:
        return json.loads(line)
    except ValueError as error:
        raise ProtocolError(f"answered what is no JSON ({error}): {_shown(line)}") from None
    except RecursionError:
        raise ProtocolError(f"answered JSON that is nested too deep to be read: {_shown(line)}") from None


def _result(answer: Any, asked: int) -> dict[str, Any]:
    """Return the result that an answer holds, or raise what it says instead."""
    if not isinstance(answer, dict):
        raise ProtocolError(f"must answer an object, got {received(answer)}")
    if answer.get("id") != asked or isinstance(answer.get("id"), bool):
        again = type(answer.get("id")) is int and 0 < answer["id"] < asked
        why = "; a request has one answer, and this one has had its own" if again else ""
        raise ProtocolError(
            f"must answer request {asked}, answered with the id {received(answer.get('id'))}{why}"
        )
    (kind, *more) = [key for key in answer if key != "id"] or [""]
    content = answer.get(kind)
    if more or kind not in ("result", "refused", "error") or not isinstance(content, dict):
        keys = ", ".join(key for key in answer if key != "id") or "none"
        raise ProtocolError(
            f"an answer has, besides id, one of result, refused and error, an object; got {keys}"
        )
    if kind == "result":
        return content
    message = content.get("message")
    if not isinstance(message, str):
        raise ProtocolError(f"{kind}.message must be a text, got {received(message)}")
    if kind == "error":
        raise TargetFaultError(message)
    if content.get("kind") not in REFUSAL_KINDS:
        known = ", ".join(REFUSAL_KINDS)
        raise ProtocolError(f"refused.kind must be one of {known}, got {received(content.get('kind'))}")
    raise Refusal(content["kind"], message)


def _shown(line: bytes) -> str:
    text = repr(line[:_SHOWN].decode("utf-8", errors="replace"))
    return text if len(line) <= _SHOWN else f"{text} ..."
