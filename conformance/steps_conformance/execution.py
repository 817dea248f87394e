"""Running one case in this process."""

import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from steps_backends import Backend

from .case import Case
from .compare import Mismatch
from .memory import memory_limit
from .one_process import ThisProcess
from .outcomes import Outcome
from .run import Run
from .targets.checking import WrongReturnError
from .targets.connection import NotStartedAgainError, ProtocolError, TargetEndedError, TargetFaultError
from .targets.declaring import DeclaringTarget, NotDeclaredError
from .targets.protocol import Refusal, Target
from .targets.scope import NotOfferedError, scope_of

_FRAMES = 4
_SUITE = Path(__file__).parent


@dataclass(frozen=True)
class Result:
    """What became of a case.

    Attributes:
        outcome: one of the closed set.
        message: why, empty for PASS.
        seconds: how long it took.
    """

    outcome: Outcome
    message: str = ""
    seconds: float = 0.0


def execute(case: Case, backend: Backend, target: Target) -> Result:
    """Run a case, every warning being an error, and return what became of it."""
    lacking = case.unsupported(backend.declaration, target.capabilities)
    lacking = lacking or scope_of(target).lacking(case.dtypes, in_process=case.in_process)
    if lacking:
        return Result(Outcome.UNSUPPORTED, lacking)
    process, started = ThisProcess(), time.perf_counter()
    outcome, message = _judged(case, Run(backend, DeclaringTarget(target, case.dtypes), case))
    process.end_if_forked()
    return Result(outcome, message, time.perf_counter() - started)


def _judged(case: Case, run: Run) -> tuple[Outcome, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            returned = case.function(run, **case.arguments)
    except Mismatch as mismatch:
        return Outcome.FAIL, str(mismatch)
    except NotDeclaredError as lack:
        return Outcome.UNSUPPORTED, str(lack)
    except Refusal as refusal:
        return Outcome.FAIL, f"the target refused: {refusal}"
    except NotOfferedError as lacking:
        return Outcome.UNSUPPORTED, str(lacking)
    except TargetEndedError as ended:
        return Outcome.CRASH, str(ended)
    except (TargetFaultError, ProtocolError, WrongReturnError) as fault:
        # our own frames say nothing about what the target did
        return Outcome.ERROR, f"{fault.kind}: {fault}"
    except NotStartedAgainError as given_up:
        return Outcome.NOTRUN, str(given_up)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit and skips of test tools are no pass either
        return _judged_error(case, error)
    if returned is not None:
        return Outcome.ERROR, f"the case returned {type(returned).__name__}; a case returns nothing"
    return Outcome.PASS, ""


def _judged_error(case: Case, error: BaseException) -> tuple[Outcome, str]:
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    # an assertion of the target or of a library says nothing about the requirement
    own_folders = (_SUITE, Path(case.function.__code__.co_filename).parent)
    if isinstance(error, AssertionError) and any(Path(last.filename).is_relative_to(f) for f in own_folders):
        return Outcome.FAIL, str(error) or f"does not hold: {last.line}"
    text = "".join(traceback.format_exception_only(error)).strip()
    limit = memory_limit()
    if isinstance(error, MemoryError) and limit is not None:
        text = f"{text}\nthe process may hold {limit} MiB, as --memory-limit says"
    inside = frames[1:][-_FRAMES:]  # the first is this module's
    places = [f"  {_place(frame)} line {frame.lineno}: {frame.line}" for frame in inside]
    return Outcome.ERROR, "\n".join([text, *places])


def _place(frame: traceback.FrameSummary) -> str:
    """Return the last two parts of a path: enough to find it, and nothing about the machine."""
    return "/".join(frame.filename.replace("\\", "/").split("/")[-2:])
