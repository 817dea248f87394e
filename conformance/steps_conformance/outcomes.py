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
    XFAIL = "XFAIL"
    XPASS = "XPASS"


MEANINGS = {
    Outcome.PASS: "the requirement was seen to hold",
    Outcome.FAIL: "the result is not what the requirement says, or valid input was refused",
    Outcome.ERROR: "an exception that is no refusal, or a warning",
    Outcome.CRASH: "the process ended in the middle of the case",
    Outcome.TIMEOUT: "the case took longer than its time limit, and its process was killed",
    Outcome.UNSUPPORTED: "the backend or the target declares that it lacks what the case needs",
    Outcome.NOTRUN: "planned, and never started",
    Outcome.XFAIL: "a failure that an expectation file declares, with its reason",
    Outcome.XPASS: "a pass where an expectation file declares a failure; counts as a failure",
}

FAILURES = frozenset({Outcome.FAIL, Outcome.ERROR, Outcome.CRASH, Outcome.TIMEOUT})
"""The outcomes that show that a requirement does not hold."""

COMPUTED = frozenset({Outcome.XFAIL, Outcome.XPASS})
"""The outcomes that a report computes from expectations; no case ends with one of them."""

COUNTED_AGAINST = FAILURES | {Outcome.XPASS}
"""The outcomes that a person has to do something about."""
