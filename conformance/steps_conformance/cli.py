"""Run the conformance suite of gradient-processing steps, and look at what it is made of."""

import signal

import typer

from .commands.accuracy import accuracy_command
from .commands.comparing import diff_command
from .commands.expectations import update_command
from .commands.listing import backends_command, list_command
from .commands.merging import merge_command
from .commands.random_lane import random_command
from .commands.rendering import render_command
from .commands.running import run_command
from .commands.vectors import vectors_command
from .one_process import leave_threads_behind

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help=__doc__,
)
expectations_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Files of known deviations.")
expectations_app.command("update")(update_command)
report_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Reports that there are.")
report_app.command("merge")(merge_command)
report_app.command("diff")(diff_command)
report_app.command("render")(render_command)

app.command("run")(run_command)
app.command("list")(list_command)
app.command("backends")(backends_command)
app.command("vectors")(vectors_command)
app.command("random")(random_command)
app.command("accuracy")(accuracy_command)
app.add_typer(expectations_app, name="expectations")
app.add_typer(report_app, name="report")


def main() -> None:
    """Run the command; a request to terminate is an interruption like one from the keyboard."""
    # SIGINT too: a shell starts what runs in the background with SIGINT ignored, and Python keeps that
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.default_int_handler)
    try:
        app()
    except SystemExit as ended:
        # some commands use a target in this very process
        leave_threads_behind(ended.code if isinstance(ended.code, int) else 1)
        raise
