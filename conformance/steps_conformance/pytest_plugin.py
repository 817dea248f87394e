"""The plugin of pytest: `pytest --pyargs steps_conformance --backend numpy --target module:attribute`.

pytest imports this module in every run where the distribution is installed. So it imports nothing of the
suite before it is asked for, changes no run that does not ask, and registers options of its own prefix.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .under_pytest.arguments import SUITE, asks_for_suite, id_in, translated

if TYPE_CHECKING:
    from .under_pytest.ending import Ending

_PACKAGE = Path(__file__).parent.resolve()
_TARGET = "steps_conformance.targets.steps_core:target"

_LISTS = (
    ("backend", "NAME", "A row of `steps-conformance backends`, or module:attribute (short: --backend)."),
    ("topic", "TOPIC", "Only the cases of this topic (short: --topic)."),
    ("id", "ID", "Only this case or requirement, or CLIP-* for all that start so; also without the option."),
    ("expectations", "FILE", "A TOML file of known deviations (short: --expectations)."),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options; where the suite is asked for, the names without `steps-` do too, if free."""
    group = parser.getgroup("steps-conformance", "conformance suite of gradient-processing steps")
    group.addoption(
        "--steps-target",
        default=_TARGET,
        metavar="TARGET",
        help="What to test: module:attribute, path:DIR for a copy, or a command (short: --target).",
    )
    for name, metavar, text in _LISTS:
        group.addoption(f"--steps-{name}", action="append", default=[], metavar=metavar, help=text)
    group.addoption("--steps-strict", action="store_true", help="A SHOULD counts like a MUST.")


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: list[str]) -> Any:
    """Put what the user typed into the options above; conftest files have registered theirs by then."""
    result = yield
    if asks_for_suite(early_config.known_args_namespace.file_or_dir):
        args[:] = translated(args, parser)
    return result


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers and the judge of the whole run, where the suite is asked for."""
    if not asks_for_suite(config.args):
        _refuse_lone_options(config)
        return
    _take_ids(config)
    from .requirements import load_requirements
    from .under_pytest.ending import Ending

    for level in ("must", "should"):
        config.addinivalue_line("markers", f"{level}: cases of a {level.upper()} of the conformance suite")
    for topic in dict.fromkeys(rule.topic for rule in load_requirements().values()):
        config.addinivalue_line("markers", f"{topic}: cases of this topic of the conformance suite")
    if not hasattr(config, "workerinput"):
        ending: Ending = Ending()
        config.pluginmanager.register(ending, "steps-conformance-ending")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what the run has started."""
    if _asked(config):
        from .under_pytest.collecting import close_targets

        close_targets()


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which copy of which implementation is tested."""
    if not _asked(config):
        return None
    from .under_pytest.collecting import provenance

    return f"conformance suite: {provenance(config.option.steps_target)}"


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the suite where it was asked for by name."""
    if path.resolve() != _PACKAGE or not _asked(parent.config):
        return None
    from .under_pytest.collecting import Suite

    suite: Suite = Suite.from_parent(parent, name=SUITE, path=path, nodeid=SUITE)
    return suite


def _asked(config: pytest.Config) -> bool:
    return bool(config.option.pyargs) and SUITE in config.args


def _take_ids(config: pytest.Config) -> None:
    """Turn ids among the arguments, which pytest would look for as files, into options."""
    ids = [identity for arg in config.args if (identity := id_in(arg))]
    config.option.steps_id = [*config.option.steps_id, *ids]
    config.args[:] = [*(arg for arg in config.args if arg != SUITE and not id_in(arg)), SUITE]
    config.option.pyargs = True


def _refuse_lone_options(config: pytest.Config) -> None:
    """Refuse a run that names a target and would not test it: nothing would fail in it."""
    given = [
        name
        for name, value in sorted(vars(config.option).items())
        if name.startswith("steps_") and value not in (None, False, [], _TARGET)
    ]
    if given:
        option = f"--{given[0].replace('_', '-')}"
        raise pytest.UsageError(f"{option} is given, and the suite is not: add --pyargs {SUITE}")
