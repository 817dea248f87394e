"""Gradient-processing steps for any array library."""

from ._version import __version__
