"""The nox sessions cover every backend that there is."""

import ast
from pathlib import Path

import steps_backends

ROOT = Path(__file__).parents[2]


def test_the_conformance_sessions_run_every_backend_once():
    module = ast.parse((ROOT / "noxfile.py").read_text())
    (table,) = [
        ast.literal_eval(node.value)
        for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "BACKENDS"
    ]
    rows = [row for _, rows in table.values() for row in rows]

    assert sorted(rows) == sorted(steps_backends.names())
