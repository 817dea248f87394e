"""The guide "test your own implementation": a stranger who types it sees what it says."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
from steps_conformance.targets.protocol import CAPABILITIES

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/test-your-implementation.md").read_text()
PROTOCOL = (ROOT / "docs/target-protocol.md").read_text()
BLOCK = re.compile(r"((?:^<!-- [^\n]* -->\n)*)^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCHEMA = json.loads((resources.files("steps_conformance") / "targets/protocol.schema.json").read_text())


def blocks():
    """Yield the marks, the language and the text of each block, in the order of the page."""
    for marks, language, text in BLOCK.findall(GUIDE):
        yield dict(re.findall(r"<!-- ([\w ]+): (.*) -->", marks)), language, text


def run(text, folder):
    # what a reader's PATH has: the environment in which the suite is installed, first
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [shutil.which("bash") or "bash", "-c", text],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.skipif(shutil.which("bash") is None, reason="types the commands into Bash")
def test_a_stranger_who_types_the_guide_sees_what_it_says(tmp_path):
    """Files are written and commands run in order; each ends as announced and prints what is shown."""
    printed, seen = "", []
    for marks, language, text in blocks():
        if "file" in marks:
            (tmp_path / marks["file"]).write_text(text)
        elif marks.get("command") == "install":
            continue
        elif language == "sh":
            if "folder" in marks:
                copied, original = marks["folder"].split(" is a copy of ")
                shutil.copytree(ROOT / original, tmp_path / copied)
            done = run(text, tmp_path)
            printed = " ".join(done.stdout.split())
            assert done.returncode == int(marks["exit code"]), done.stdout + done.stderr
        elif language == "text":
            missing = [line for line in text.splitlines() if " ".join(line.split()) not in printed]
            assert missing == []
        else:
            pytest.fail(f"nobody runs this block: {text}")
        seen.append(language)

    assert (seen.count("sh"), seen.count("text")) == (5, 5)


def test_the_command_that_installs_is_the_one_of_the_readme():
    (install,) = (text.strip() for marks, _, text in blocks() if marks.get("command") == "install")

    assert f"{install} && " in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", ["target-protocol.md", "test-your-implementation.md"])
def test_every_link_leads_somewhere(page):
    targets = [t for t in re.findall(r"\]\(([^)]+)\)", (ROOT / "docs" / page).read_text()) if "://" not in t]

    assert targets
    assert [t for t in targets if not (ROOT / "docs" / t.split("#")[0]).exists()] == []


@pytest.mark.parametrize("name", ["hello", "apply"])
def test_the_messages_on_the_page_of_the_protocol_follow_its_schema(name):
    (text,) = re.findall(
        rf"<!-- message: {name} -->\n```json\n(.*?)^```$", PROTOCOL, re.MULTILINE | re.DOTALL
    )
    message = json.loads(text)

    jsonschema.Draft202012Validator(SCHEMA).validate(message)
    if "result" in message:
        definition = {**SCHEMA, "oneOf": [{"$ref": f"#/$defs/results/{name}"}]}
        jsonschema.Draft202012Validator(definition).validate(message["result"])


def test_the_page_of_the_protocol_has_every_capability_in_the_words_of_the_suite():
    section = PROTOCOL.split("### Capabilities\n")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE))

    assert rows == CAPABILITIES


def test_the_page_of_the_protocol_has_every_method_and_every_key():
    rows = {
        name
        for line in PROTOCOL.splitlines()
        if line.startswith("|")
        for name in re.findall(r"`(\w+)`", line)
    }
    hello = set(SCHEMA["$defs"]["results"]["hello"]["properties"])

    assert set(SCHEMA["$defs"]["results"]) <= rows
    assert hello <= rows
