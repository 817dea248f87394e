"""Implementations under test, each behind one small protocol."""
