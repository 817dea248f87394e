"""Running steps fast: tracing, fusing, and an executor for each library."""
