"""The cases, one module a topic; each case names the one requirement that it shows."""
