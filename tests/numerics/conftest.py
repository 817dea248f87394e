"""The functions of the arithmetic run as a step runs them: where NumPy does not warn."""

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def quiet_numpy() -> Iterator[None]:
    """The call of a step silences NumPy for all of its arithmetic."""
    with np.errstate(all="ignore"):
        yield
