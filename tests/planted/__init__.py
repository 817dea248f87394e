"""Planted faults: wrong copies of the implementation, each of which the suite must catch."""
