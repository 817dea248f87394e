"""The closed set of outcomes of a case. Nothing but PASS is a pass."""

from enum import StrEnum


class Outcome(StrEnum):
    """What became of one case on one backend."""

    PASS = "PASS"  # noqa: S105 - an outcome, no password
    FAIL = "FAIL"
    ERROR = "ERROR"
    CRASH = "CRASH"
    TIMEOUT = "TIMEOUT"
    UNSUPPORTED = "UNSUPPORTED"
    NOTRUN = "NOTRUN"


MEANINGS = {
    Outcome.PASS: "the requirement was seen to hold",
    Outcome.FAIL: "the result is not what the requirement says, or valid input was refused",
    Outcome.ERROR: "an exception that is no refusal, or a warning",
    Outcome.CRASH: "the process ended in the middle of the case",
    Outcome.TIMEOUT: "the case took longer than its time limit, and its process was killed",
    Outcome.UNSUPPORTED: "the backend or the target declares that it lacks what the case needs",
    Outcome.NOTRUN: "planned, and never started",
}

FAILURES = frozenset({Outcome.FAIL, Outcome.ERROR, Outcome.CRASH, Outcome.TIMEOUT})
"""The outcomes that show that a requirement does not hold."""
