"""The end of what a process prints."""

import os

import pytest
from steps_conformance.output_tail import OutputTail


@pytest.fixture
def printed():
    """Return the tail of some bytes that went through a pipe."""

    def write(content):
        reading, writing = os.pipe()
        tail = OutputTail(os.fdopen(reading, "rb"))
        with os.fdopen(writing, "wb") as stream:
            stream.write(content)
        tail.wait()
        return tail

    return write


def test_the_last_lines_are_shown(printed):
    tail = printed("".join(f"line {number}\n" for number in range(100)).encode())

    assert tail.lines().splitlines() == [f"line {number}" for number in range(70, 100)]


def test_the_end_of_a_long_line_is_shown(printed):
    (line,) = printed(b"x" * 10_000 + b"the end").lines().splitlines()

    assert line.startswith("...x")
    assert line.endswith("the end")
    assert len(line) == 503


def test_what_is_printed_without_end_is_not_held(printed):
    assert len(printed(b"x" * 10_000_000)._kept) == 64 * 1024


def test_bytes_that_are_no_text_are_shown_all_the_same(printed):
    assert printed(b"before \xff after").lines() == "before \ufffd after"


def test_nothing_is_nothing(printed):
    assert printed(b"").lines() == ""
