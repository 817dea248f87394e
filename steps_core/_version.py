"""The version of this copy, one constant that the wheel and every report read."""

__version__ = "0.1.0"
