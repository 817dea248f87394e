"""A target in another process, in any language, that speaks the protocol of docs/target-protocol.md."""

import json
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steps_backends import LEAF_DTYPES

from ..received import received
from .connection import Connection, ProtocolError, TargetEndedError
from .protocol import Description
from .provenance import source_hash
from .scope import NotOfferedError, Scope
from .wire import PROTOCOL, MalformedTreeError, decoded, encoded


class CommandTarget:
    """A command as a target. Arrays are HostArrays: values travel, no array of a library does.

    The command is started when something is first asked of it.

    Args:
        command: program and arguments as one text, as a shell takes it apart.
        connection: speaks with the process; made from the command where it is not given.

    Attributes:
        capabilities: what the command claims.
        scope: what it offers.
    """

    def __init__(self, command: str, connection: Connection | None = None) -> None:
        self._words = tuple(shlex.split(command))
        self._connection = connection or Connection(self._words)
        self._greeting: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """What the command calls itself."""
        return self._text("name")

    @property
    def version(self) -> str:
        """Its version."""
        return self._text("version")

    @property
    def path(self) -> str:
        """The file or folder that it says was tested, or the first that its command names, or the program."""
        return self._text("path") if "path" in self._hello() else str(self._file())

    @property
    def hash(self) -> str:
        """SHA-256 of what lies there."""
        return self._text("hash") if "hash" in self._hello() else source_hash(self.path)

    @property
    def capabilities(self) -> frozenset[str]:
        """What the command claims."""
        return frozenset(self._names("capabilities", ()))

    @property
    def scope(self) -> Scope:
        """What the command offers."""
        hello = self._hello()
        lacks = hello.get("lacks", {})
        if not isinstance(lacks, dict) or not all(isinstance(options, dict) for options in lacks.values()):
            raise ProtocolError(f"asked to hello: lacks must be an object of objects, got {received(lacks)}")
        steps = tuple(self._names("steps", ())) if "steps" in hello else None
        try:
            return Scope(tuple(self._names("dtypes", LEAF_DTYPES)), steps, lacks, in_process=False)
        except ValueError as error:
            raise ProtocolError(f"asked to hello: {error}") from None

    @property
    def expectations(self) -> str | None:
        """The absolute path of its expectation file, where it has one."""
        return self._text("expectations") if "expectations" in self._hello() else None

    def make(self, description: Description) -> "CommandStep":
        """Return the step of that description."""
        handle = self._asked("make", "step", description=_described(description))
        if not isinstance(handle, int | str) or isinstance(handle, bool):
            raise ProtocolError(f"asked to make: step must be a number or a text, got {received(handle)}")
        return CommandStep(self, handle, self._connection.generation)

    def init(self, step: "CommandStep", weights: Any) -> Any:
        """Return the state of a step for weights."""
        self._check_alive(step)
        return self._tree(self._asked("init", "state", step=step.handle, weights=encoded(weights)), "state")

    def apply(self, step: "CommandStep", gradients: Any, weights: Any, state: Any) -> tuple[Any, Any]:
        """Return what a step makes of gradients, and its next state."""
        self._check_alive(step)
        answer = self._ask(
            "apply",
            step=step.handle,
            gradients=encoded(gradients),
            weights=encoded(weights),
            state=encoded(state),
        )
        processed, following = (self._field("apply", answer, key) for key in ("gradients", "state"))
        return self._tree(processed, "gradients"), self._tree(following, "state")

    def apply_updates(self, weights: Any, updates: Any) -> Any:
        """Return the weights with the updates added."""
        arguments = {"weights": encoded(weights), "updates": encoded(updates)}
        return self._tree(self._asked("apply_updates", "weights", **arguments), "weights")

    def save_state(self, state: Any, file: str) -> None:
        """Have a state written to a file."""
        self._ask("save_state", state=encoded(state), file=file)

    def load_state(self, file: str, like: Any) -> Any:
        """Return the state that is read from a file."""
        return self._tree(self._asked("load_state", "state", file=file, like=encoded(like)), "state")

    def negates(self, description: Description) -> bool:
        """Return whether the step of that description negates."""
        answer = self._asked("negates", "negates", description=_described(description))
        if not isinstance(answer, bool):
            raise ProtocolError(f"asked to negates: negates must be true or false, got {received(answer)}")
        return answer

    def check_end_to_end(self, description: Description) -> None:
        """Have a step refused that is not end-to-end."""
        self._ask("check_end_to_end", description=_described(description))

    def describe(self, description: Description) -> Description:
        """Return what the step of that description says of itself."""
        answer: Description = self._asked("describe", "description", description=_described(description))
        return answer

    def check_nothing_is_left(self) -> None:
        """Greet a process that runs once more: a line that nobody asked for comes in place of its answer.

        Raises:
            ProtocolError: there is such a line.
        """
        if self._connection.is_open:
            self._connection.ask("hello", protocol=PROTOCOL)

    def close(self) -> None:
        """End the process."""
        self._connection.close()

    def _hello(self) -> dict[str, Any]:
        if self._greeting is None:
            self._greeting = self._greeted()
        return self._greeting

    def _greeted(self) -> dict[str, Any]:
        greeting = self._connection.ask("hello", protocol=PROTOCOL)
        if greeting.get("protocol") != PROTOCOL:
            raise ProtocolError(
                f"the target speaks protocol {greeting.get('protocol')!r}, this suite speaks {PROTOCOL}"
            )
        return greeting

    def _ask(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Ask a process that has been greeted."""
        if not self._connection.is_open:
            self._greeted()
        return self._connection.ask(method, **arguments)

    def _text(self, key: str) -> str:
        value = self._field("hello", self._hello(), key)
        if not isinstance(value, str) or not value:
            raise ProtocolError(f"asked to hello: {key} must be a text, got {received(value)}")
        return value

    def _names(self, key: str, otherwise: tuple[str, ...]) -> list[str]:
        value = self._hello().get(key, list(otherwise))
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise ProtocolError(f"asked to hello: {key} must be a list of texts, got {received(value)}")
        return value

    def _file(self) -> Path:
        named = [Path(word) for word in self._words[1:] if Path(word).exists()]
        return (named[0] if named else Path(shutil.which(self._words[0]) or self._words[0])).resolve()

    def _asked(self, method: str, key: str, **arguments: Any) -> Any:
        return self._field(method, self._ask(method, **arguments), key)

    def _field(self, method: str, result: dict[str, Any], key: str) -> Any:
        if key not in result:
            raise ProtocolError(
                f"asked to {method}: the result lacks {key}, it has {', '.join(result) or 'nothing'}"
            )
        return result[key]

    def _tree(self, data: Any, path: str) -> Any:
        try:
            return decoded(data, path)
        except MalformedTreeError as error:
            raise ProtocolError(str(error)) from None

    def _check_alive(self, step: "CommandStep") -> None:
        if not self._connection.is_open or step.generation != self._connection.generation:
            raise TargetEndedError("the step was made in a process of the target that has ended")


@dataclass(frozen=True)
class CommandStep:
    """A step that the command has made, known by what it calls it."""

    target: CommandTarget
    handle: Any
    generation: int

    def init(self, weights: Any) -> Any:
        """Return the state for weights."""
        return self.target.init(self, weights)

    def apply(self, gradients: Any, weights: Any, state: Any) -> tuple[Any, Any]:
        """Return the processed gradients and the next state."""
        return self.target.apply(self, gradients, weights, state)


def _described(description: Description) -> Description:
    """Return a description that JSON can carry.

    Raises:
        NotOfferedError: it holds what has no form in JSON.
    """
    try:
        json.dumps(description, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotOfferedError(
            f"the protocol carries descriptions in JSON; this one is none: {error}"
        ) from None
    return description
