"""Serving a target of this process over the protocol: ``python -m steps_conformance.targets.serve TARGET``.

It reads requests from standard input and answers on standard output, as docs/target-protocol.md says, until
the input ends. What the target itself prints goes to standard error, so that it cannot spoil an answer.
"""

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer
from steps_backends import Backend, HostArray

from ..containers import mapped
from ..loading import load_backend, load_target
from ..one_process import ThisProcess, work_and_leave
from .checking import checked_result, checked_step
from .protocol import Refusal, Target, TargetStep
from .scope import scope_of
from .wire import METHODS, PROTOCOL, decoded, encoded

Answer = dict[str, Any]
Request = dict[str, Any]


class MalformedRequestError(ValueError):
    """A request is not as the protocol says; the text names what is wrong."""


@dataclass
class Server:
    """Answers requests with a target, on the arrays of a backend.

    Args:
        target: the implementation.
        backend: makes its arrays, reads them and runs its calls.
    """

    target: Target
    backend: Backend
    _steps: list["_Served"] = field(default_factory=list)

    def serve(self, requests: Iterable[bytes], answers: BinaryIO) -> None:
        """Answer one request after the other, until there is none."""
        process = ThisProcess()
        for line in requests:
            answer = self.answer(line)
            process.end_if_forked()
            answers.write(json.dumps(answer, allow_nan=False).encode() + b"\n")
            answers.flush()

    def answer(self, line: bytes) -> Answer:
        """Return the answer to a line; whatever goes wrong is an answer too."""
        identity: Any = None
        try:
            request = json.loads(line)
            identity = request.get("id") if isinstance(request, dict) else None
            _check(request)
            method: Callable[[Request], Answer] = getattr(self, f"_{request['do']}")
            with warnings.catch_warnings():
                # as in a run in one process, where a warning is no pass
                warnings.simplefilter("error")
                return {"id": identity, "result": method(request)}
        except Refusal as refusal:
            return {"id": identity, "refused": {"kind": refusal.kind, "message": refusal.message}}
        except Exception as error:  # noqa: BLE001 - a fault of the target is for the suite to judge
            return {"id": identity, "error": {"message": _fault(error)}}

    def _hello(self, request: Request) -> Answer:
        if request.get("protocol") != PROTOCOL:
            raise MalformedRequestError(
                f"the suite speaks protocol {request.get('protocol')!r}, this server speaks {PROTOCOL}"
            )
        scope, declared = scope_of(self.target), self.backend.declaration.dtypes
        greeting: Answer = {
            "protocol": PROTOCOL,
            "name": self.target.name,
            "version": self.target.version,
            "path": self.target.path,
            "hash": self.target.hash,
            "capabilities": sorted(self.target.capabilities),
            "dtypes": [dtype for dtype in declared if dtype in scope.dtypes],
            "lacks": {step: dict(options) for step, options in scope.lacks.items()},
        }
        if scope.steps is not None:
            greeting["steps"] = list(scope.steps)
        expectations = getattr(self.target, "expectations", None)
        return greeting if expectations is None else {**greeting, "expectations": os.fspath(expectations)}

    def _make(self, request: Request) -> Answer:
        step = checked_step(self.target.make(request["description"]))
        self._steps.append(_Served(step.init, step.apply, step))
        return {"step": len(self._steps) - 1}

    def _init(self, request: Request) -> Answer:
        weights = self._made(request, "weights")
        return {"state": self._read(self._step(request).init(weights), "state")}

    def _apply(self, request: Request) -> Answer:
        trees = [self._made(request, key) for key in ("gradients", "weights", "state")]
        processed, state = checked_result(self.backend.call(self._step(request).apply, *trees))
        return {"gradients": self._read(processed, "gradients"), "state": self._read(state, "state")}

    def _apply_updates(self, request: Request) -> Answer:
        weights = self._optional("apply_updates")(
            self._made(request, "weights"), self._made(request, "updates")
        )
        return {"weights": self._read(weights, "weights")}

    def _save_state(self, request: Request) -> Answer:
        self._optional("save_state")(self._made(request, "state"), request["file"])
        return {}

    def _load_state(self, request: Request) -> Answer:
        state = self._optional("load_state")(request["file"], self._made(request, "like"))
        return {"state": self._read(state, "state")}

    def _negates(self, request: Request) -> Answer:
        return {"negates": self._optional("negates")(request["description"])}

    def _check_end_to_end(self, request: Request) -> Answer:
        self._optional("check_end_to_end")(request["description"])
        return {}

    def _describe(self, request: Request) -> Answer:
        return {"description": self._optional("describe")(request["description"])}

    def _optional(self, method: str) -> Callable[..., Any]:
        function: Callable[..., Any] | None = getattr(self.target, method, None)
        if function is None:
            raise MalformedRequestError(f"{self.target.name} has no method {method}, and claims none")
        return function

    def _step(self, request: Request) -> "_Served":
        handle = request["step"]
        if not isinstance(handle, int) or not 0 <= handle < len(self._steps):
            raise MalformedRequestError(f"no step is called {handle!r}; make it first")
        return self._steps[handle]

    def _made(self, request: Request, key: str) -> Any:
        return mapped(lambda host, _: self.backend.array(host), decoded(request[key], key))

    def _read(self, tree: Any, name: str) -> Any:
        return encoded(mapped(lambda leaf, path: self._read_leaf(leaf, name + path), tree))

    def _read_leaf(self, leaf: Any, path: str) -> HostArray:
        if not self.backend.holds(leaf):
            library = self.backend.declaration.library
            raise TypeError(f"{path} must be an array of {library}, got {leaf!r} ({type(leaf).__name__})")
        return self.backend.read(leaf)


@dataclass(frozen=True)
class _Served:
    """A step with its methods bound once: a compiling backend finds its compiled function by the method."""

    init: Callable[[Any], Any]
    apply: Callable[[Any, Any, Any], tuple[Any, Any]]
    step: TargetStep


def _check(request: Any) -> None:
    if not isinstance(request, dict) or "id" not in request or request.get("do") not in METHODS:
        raise MalformedRequestError(f"a request has an id, and do is one of {', '.join(METHODS)}")


def _fault(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = "".join(traceback.format_exception_only(error)).strip()
    return f"{text}\n  {'/'.join(Path(last.filename).parts[-2:])} line {last.lineno}: {last.line}"


def main(
    target: Annotated[str, typer.Argument(help="module:attribute, or path:DIR for a copy of the package.")],
    backend: Annotated[str, typer.Option(help="The library whose arrays the target gets.")] = "numpy",
) -> None:
    """Serve a target over standard input and output."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # neither the target nor a library that it loads may read requests or write answers
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(sys.stderr.fileno(), 1)
    work_and_leave(lambda: Server(load_target(target), load_backend(backend)).serve(requests, answers))


if __name__ == "__main__":
    typer.run(main)
