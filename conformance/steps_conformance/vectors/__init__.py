"""Vectors: exact inputs and expected results as JSON, for any implementation in any language."""
