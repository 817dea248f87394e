"""Cases that end in every possible way."""
