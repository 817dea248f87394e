"""Measuring how far results lie from exact ones, in ulps, on inputs of growing size."""
