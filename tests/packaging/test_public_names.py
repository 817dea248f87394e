"""What the package shows to its users: names, docstrings, and examples that are run."""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import steps_core

PUBLIC = [name for name in steps_core.__all__ if not name.startswith("__")]
# Errors are caught, and these three are read or written by hand: none is called by a user.
NOT_CALLED = {"Step", "StepLike", "StepResult"}
CALLED = [
    name
    for name in PUBLIC
    if name not in NOT_CALLED
    and not (inspect.isclass(value := getattr(steps_core, name)) and issubclass(value, Exception))
]


def own_docstring(value) -> str:
    return (vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__) or ""


def modules():
    found = pkgutil.walk_packages(steps_core.__path__, "steps_core.")
    return ["steps_core", *(module.name for module in found)]


def examples():
    """Return the docstrings of the whole package that hold an example, each found once."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = {
        test.name: test for name in modules() for test in finder.find(importlib.import_module(name), name)
    }
    return [test for test in tests.values() if test.examples]


def test_all_lists_what_the_package_imports_in_order():
    defined = {
        name
        for name, value in vars(steps_core).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }

    assert set(PUBLIC) == defined
    assert list(steps_core.__all__) == sorted(steps_core.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_its_own_docstring(name):
    docstring = own_docstring(getattr(steps_core, name))

    assert len(docstring.split()) >= 5, f"{name} says {docstring!r}"


@pytest.mark.parametrize("name", CALLED)
def test_a_name_that_users_call_is_shown_in_an_example(name):
    shown = {word for test in examples() for example in test.examples for word in _words(example.source)}

    assert name in shown


def _words(source: str) -> set[str]:
    return set(re.findall(r"\w+", source))


@pytest.mark.parametrize("test", examples(), ids=lambda test: test.name)
def test_the_example_of_a_docstring_gives_what_it_says(test):
    said: list[str] = []

    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)

    assert result.attempted > 0
    assert result.failed == 0, "".join(said)
