"""Runs the suite from a bare checkout: `python conformance run`, with nothing of this project installed."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = [str(ROOT), str(ROOT / "backends"), str(ROOT / "conformance")]

# import name: what pip calls it
NEEDED = {
    "array_api_compat": "array-api-compat",
    "jinja2": "jinja2",
    "mpmath": "mpmath",
    "ml_dtypes": "ml_dtypes",
    "numpy": "numpy",
    "optree": "optree",
    "packaging": "packaging",
    "rich": "rich",
    "safetensors": "safetensors",
    "tomlkit": "tomlkit",
    "typer": "typer",
}


def main() -> None:
    """Put this checkout first on the path, here and for child processes, and run the command."""
    missing = [name for module, name in NEEDED.items() if find_spec(module) is None]
    if missing:
        print(f"not installed: {', '.join(missing)}; pip install {' '.join(missing)}", file=sys.stderr)
        sys.exit(2)
    sys.path[:0] = FOLDERS
    # each backend runs in a process of its own, and must find the same copy
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*FOLDERS, *([inherited] if inherited else [])])
    from steps_conformance.cli import main as command

    command()


if __name__ == "__main__":
    main()
