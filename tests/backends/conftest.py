"""Some rows set switches of the whole process; the other tests must not meet them."""

import sys

import pytest


@pytest.fixture(autouse=True)
def switches_as_they_were():
    """Set back the switches of JAX and array-api-strict after each test."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", False)
    if "array_api_strict" in sys.modules:
        sys.modules["array_api_strict"].reset_array_api_strict_flags()
