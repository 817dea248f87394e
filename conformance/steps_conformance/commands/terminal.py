"""What the commands print to, and how they end."""

import typer
from rich.console import Console

from ..reports.showing import shown_text

output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

NO_VERDICT = 2
INTERRUPTED = 130


def stop(message: str, exit_code: int = NO_VERDICT) -> typer.Exit:
    """Print what is wrong, and return the exception that ends the command."""
    errors.print(shown_text(message), style="red", markup=False, soft_wrap=True)
    return typer.Exit(exit_code)
