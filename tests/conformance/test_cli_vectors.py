"""The command `vectors`: what it plays."""

import json
import subprocess
import sys

from steps_conformance.cli import app
from steps_conformance.vectors.model import FORMAT, dumped, load_vectors
from typer.testing import CliRunner

ONE = {"dtype": "float32", "shape": [1], "values": ["0x1p+0"]}


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_folder_of_vectors_is_played_whole(tmp_path):
    """Also files that an editor has marked as UTF-8; the description of the form is no vector."""
    listed = load_vectors()
    for topic in ("scaling", "centering"):
        text = dumped(topic, listed[topic][:2])
        (tmp_path / f"{topic}.json").write_text(text, encoding="utf-8-sig")
    (tmp_path / "schema.json").write_text("{}")

    done = invoke("vectors", "--play", tmp_path, "--backend", "numpy")

    assert done.exit_code == 0, done.output
    assert [line.split(": ")[1] for line in done.output.splitlines() if "PASS" in line] == [
        vector.id for topic in ("centering", "scaling") for vector in listed[topic][:2]
    ]


def test_a_folder_without_vectors_cannot_be_played(tmp_path):
    empty = invoke("vectors", "--play", tmp_path, "--backend", "numpy")
    absent = invoke("vectors", "--play", tmp_path / "absent.json", "--backend", "numpy")

    assert (empty.exit_code, absent.exit_code) == (2, 2)
    assert "--play must name a file of vectors or a folder with some, and" in empty.output
    assert "absent.json cannot be read: No such file or directory" in absent.output


def test_a_thread_that_a_target_leaves_does_not_hold_up_the_end(planted, tmp_path):
    vector = {
        "id": "CLIP-GLOBAL-001/v-left",
        "requirement": "CLIP-GLOBAL-001",
        "shows": "a thread is left",
        "step": {"step": "ViolentStep", "options": {"way": "leaves-a-thread"}},
        "calls": [{"gradients": ONE, "expected": ONE}],
    }
    (tmp_path / "left.json").write_text(json.dumps({"format": FORMAT, "topic": "left", "vectors": [vector]}))
    command = [sys.executable, "-m", "steps_conformance", "vectors", "--play", str(tmp_path / "left.json")]
    options = ["--backend", "numpy", "--target", "planted_suite.violent_target:target"]

    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, "CLIP-GLOBAL-001/v-left: PASS" in done.stdout) == (0, True), done.stderr
