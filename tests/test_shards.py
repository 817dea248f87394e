"""Leaves that lie in parts in two processes; the tests themselves stand in two_ranks.py."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("two_ranks.py")
NAMES = [
    node.name
    for node in ast.parse(PROGRAM.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("shows_")
]


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    """What went wrong in each of the two processes, by name."""
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this build of torch has no gloo")
    folder = tmp_path_factory.mktemp("ranks")
    path = os.pathsep.join([str(PROGRAM.parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(rank), str(folder)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        said = [rank.communicate(timeout=240)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(said)
    return [json.loads((folder / f"problems{rank}.json").read_text()) for rank in (0, 1)]


@pytest.mark.parametrize("name", NAMES)
def test_two_processes(problems, name):
    for rank, found in enumerate(problems):
        assert found[name] == "", f"rank {rank}: {found[name]}"
