"""The page of collectives says what is sent, and that keeps what SHARD-004 promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def rows_of(text):
    """Return the lines of the table."""
    return [line for line in text.splitlines() if line.startswith(("| PyTorch", "| JAX"))]


@pytest.fixture(scope="module")
def page():
    return rows_of((ROOT / "docs/collectives.md").read_text(encoding="utf-8"))


def test_the_page_is_current(page):
    """Of the rows with few leaves; the others take minutes."""
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    call = [sys.executable, "-W", "error", str(ROOT / "tools/count_collectives.py"), "--few"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False, timeout=240)

    assert done.returncode == 0, done.stderr
    assert rows_of(done.stdout) == page[::2]


def test_no_leaf_is_gathered_and_more_leaves_take_no_more(page):
    """At most two all-reduces for a mesh of one or two axes; where JAX's compiler chooses, four."""
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in page]
    assert len(cells) == 26
    for few, many in zip(cells[::2], cells[1::2], strict=True):
        assert int(many[3]) == 5 * int(few[3])
        assert few[4:] == many[4:] and few[6:] == ["0", "0"]
    for library, mesh, _, _, clip, chain, _, _ in cells:
        axes = len(mesh.split(" x "))
        assert clip == chain
        assert 1 <= int(clip) <= (4 if library == "JAX" else axes)
