"""The command as a module: `python -m steps_conformance`."""

from .cli import main

main()
