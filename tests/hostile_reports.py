"""A report in which everything that is not the suite's own tries to be markup, a control or a command."""

from dataclasses import replace

from made_reports import TARGET, made_report
from steps_conformance.accuracy.results import Unmeasured
from steps_conformance.expectations.model import Expectation
from steps_conformance.outcomes import Outcome
from steps_conformance.reports.model import Report

SCRIPT = "<script>alert(1)</script>"
ESCAPES = "\x1b[31mred\x1b[0m\x1b]8;;https://evil.example\x07link\x9b2J"
HOSTILE = (
    f"{SCRIPT} ]]> & \"double\" 'single' <!-- --> {{{{ 7 * 7 }}}} ${{x}} {ESCAPES}\r\n"
    "second | `tick` ```\n# heading\n| a | b |\n"
    "* [link](javascript:alert(1)) ![i](https://evil.example/i.png)\n"
    "::error file=a.py,line=1::boom\n   ::set-output name=x::y\n##[error]bad\n##vso[task.complete]\n"
    f"{'a' * 77} ::add-mask::secret\n{'a' * 80}::stop-commands::token\n"
    "nul \x00 back\x08space del \x7f line\u2028sep bidi \u202e zero\u200bwidth "
    "lone \ud800 not a sign \ufffe\rover"
)
ROWS = ("numpy", f"mod:{SCRIPT}")


def hostile_report() -> Report:
    """Return a report in which everything that is not the suite's own says the hostile text."""
    outcomes = {
        f"A-MUST-00{place}/x": [outcome, "PASS"]
        for place, outcome in enumerate(("FAIL", "ERROR", "UNSUPPORTED", "NOTRUN", "CRASH"))
    }
    declared = Expectation(
        "A-MUST-004/x", Outcome.CRASH, HOSTILE, HOSTILE, file=HOSTILE, cases=("A-MUST-004/x",)
    )
    report = made_report(
        outcomes,
        ROWS,
        message=HOSTILE,
        not_run={f"gone:{HOSTILE}": HOSTILE},
        named=(f"gone:{HOSTILE}",),
        target=replace(
            TARGET, name=SCRIPT, version=HOSTILE, path=HOSTILE, hash=HOSTILE, capabilities=(HOSTILE,)
        ),
        expectations=(declared,),
        target_option=HOSTILE,
    )
    report.rows["numpy"] = replace(
        report.rows["numpy"], version=HOSTILE, device=HOSTILE, deviations=(HOSTILE,)
    )
    report.unmeasured = [Unmeasured("numpy", HOSTILE)]
    return report
