"""Reports of a conformance run: one model, and its forms."""
