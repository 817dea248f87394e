"""Where an array lies, for rows whose arrays lie on one device and for those whose arrays lie in parts."""

from typing import Any


def place_of(backend: Any, array: Any) -> str:
    """Return the device of an array; of one that lies in parts also which part lies where."""
    place: str = (
        backend.parts_of(array) if "sharded" in backend.declaration.traits else backend.device_of(array)
    )
    return place
