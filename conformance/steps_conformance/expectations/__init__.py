"""Expectation files: the known deviations of a target, each with its reason, held to strictly."""
