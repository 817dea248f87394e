"""The arithmetic of the steps: pure functions of (xp, arrays, scalars), without trees or options."""
