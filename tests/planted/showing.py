"""Where tables are printed."""

from rich.console import Console

_WIDTH = 140


def console() -> Console:
    """Return the terminal; where there is none, as in CI, one that is wide enough for the tables."""
    found = Console()
    return found if found.is_terminal else Console(width=_WIDTH)
