"""What was received, as an error shows it: the value, cut where it is long, and its type."""

from typing import Any

_LONGEST = 60


def received(value: Any) -> str:
    """Return the value and its type."""
    text = repr(value)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"{shown} ({type(value).__name__})"
