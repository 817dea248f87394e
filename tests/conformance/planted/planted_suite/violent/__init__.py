"""Cases whose target misbehaves."""
