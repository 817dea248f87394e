"""A run whose only case hangs, in a process that a test kills."""

import os
import tempfile
import threading
from pathlib import Path

from steps_conformance.runner import RowRun
from steps_conformance.worker import Order
from steps_conformance.worker_process import Limits


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        RowRun(
            Order(
                os.environ["VIOLENT_COMMAND"],
                "host",
                "planted_suite.violent",
                ("VIOLENT-WAY-001/misbehaves[hangs]",),
            ),
            Path(folder) / "row",
            Limits(),
            found_row=lambda row: None,
            found_result=lambda result: None,
            found_warning=lambda warning: None,
            stop=threading.Event(),
        ).run()
