"""A small suite of its own with planted faults, for the tests of runner and reports."""
