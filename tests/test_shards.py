"""Leaves that lie in parts in several processes; the tests themselves stand in the programs below."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROCESSES = {"two_ranks.py": 2, "four_ranks.py": 4}
TESTS = {
    node.name: program
    for program in PROCESSES
    for node in ast.parse(Path(__file__).with_name(program).read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("shows_")
}


@pytest.fixture(scope="module")
def problems_of(tmp_path_factory):
    """What went wrong in each process of a program, by name; each program runs once."""
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this build of torch has no gloo")
    found = {}

    def of(program):
        if program not in found:
            found[program] = problems(Path(__file__).with_name(program), tmp_path_factory.mktemp("ranks"))
        return found[program]

    return of


def problems(program, folder):
    path = os.pathsep.join([str(program.parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    processes = PROCESSES[program.name]
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program), str(rank), str(processes), str(folder)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(processes)
    ]
    try:
        said = [rank.communicate(timeout=240)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert [rank.returncode for rank in ranks] == [0] * processes, "\n".join(said)
    return [json.loads((folder / f"problems{rank}.json").read_text()) for rank in range(processes)]


@pytest.mark.xdist_group("processes")  # So that each program runs once.
@pytest.mark.parametrize("name", TESTS)
def test_several_processes(problems_of, name):
    for rank, found in enumerate(problems_of(TESTS[name])):
        assert found[name] == "", f"rank {rank}: {found[name]}"
