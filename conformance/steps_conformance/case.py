"""Cases: functions that show one requirement on one backend and one target."""

import inspect
import itertools
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from steps_backends import LEAF_DTYPES, TRAITS, Declaration

from .needs import needs_of
from .targets.protocol import CAPABILITIES

_LABEL = re.compile(r"[A-Za-z0-9.+_-]+")
_ID = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z][A-Z0-9]*)*-\d{3}")
_REGISTRY: dict[str, "Case"] = {}

CaseFunction = Callable[..., Any]
"""It returns None; that is checked when it runs, as a generator or coroutine would not run at all."""


class DoubleCaseError(ValueError):
    """Two cases have one id; the text names it."""


@dataclass(frozen=True)
class Case:
    """One case with its arguments filled in.

    Attributes:
        id: requirement, function and arguments, such as ``CLIP-GLOBAL-003/equal-is-kept[float16]``.
        requirement: the id of the requirement that it shows.
        topic: the name of its module.
        function: called with a Run and the arguments.
        arguments: the values of this case's parameters.
        dtypes: the leaf dtypes that it makes arrays of.
        needs: the target's capabilities that it uses.
        in_process: whether it looks at what only code in the same process shares: memory, warnings, debugger.
        traits: traits of the backend that it uses.
    """

    id: str
    requirement: str
    topic: str
    function: CaseFunction
    arguments: Mapping[str, Any]
    dtypes: frozenset[str]
    needs: frozenset[str]
    in_process: bool = False
    traits: frozenset[str] = frozenset()

    def unsupported(self, declaration: Declaration, capabilities: Iterable[str]) -> str | None:
        """Return what the backend or the target does not claim and this case needs, or None."""
        lacking = sorted(self.dtypes - set(declaration.dtypes))
        if lacking:
            return f"{declaration.name} does not declare {', '.join(lacking)}"
        lacking = sorted(self.traits - declaration.traits)
        if lacking:
            return f"{declaration.name} does not declare the trait {', '.join(lacking)}"
        lacking = sorted(self.needs - set(capabilities))
        return f"the target does not claim {', '.join(lacking)}" if lacking else None


def case(
    requirement: str,
    *,
    each: Mapping[str, Iterable[Any] | Mapping[str, Any]] | None = None,
    dtypes: Iterable[str] = (),
    needs: Iterable[str] = (),
    in_process: bool = False,
    traits: Iterable[str] = (),
) -> Callable[[CaseFunction], CaseFunction]:
    """Register a function as the case, or cases, of one requirement.

    Args:
        requirement: the requirement's id.
        each: per parameter its values, or a mapping of labels to values; one case for each combination.
            A parameter called ``dtype``, or ending in ``_dtype``, also counts as a dtype that the case needs.
        dtypes: further leaf dtypes that the case makes arrays of; float32 is always there.
        needs: capabilities of the target.
        in_process: whether it looks at what a target in another process does not share with the suite.
        traits: traits of the backend without which it cannot run.
    """
    if not _ID.fullmatch(requirement):
        raise ValueError(f"a requirement id looks like CLIP-GLOBAL-003, got {requirement!r}")
    needed, fixed = _known("needs", needs, CAPABILITIES), _known("dtypes", dtypes, LEAF_DTYPES)
    used = _known("traits", traits, TRAITS)

    def register(function: CaseFunction) -> CaseFunction:
        _check_parameters(function, tuple(each or ()))
        made = [
            Case(
                id=_identity(requirement, function, labels),
                requirement=requirement,
                topic=function.__module__.rsplit(".", 1)[-1],
                function=function,
                arguments=arguments,
                dtypes=fixed | _dtypes_among(arguments),
                needs=needed | needs_of(requirement),
                in_process=in_process,
                traits=used,
            )
            for labels, arguments in _combinations(each or {})
        ]
        register_cases(made)
        return function

    return register


def _identity(requirement: str, function: CaseFunction, labels: list[str]) -> str:
    name = function.__name__.replace("_", "-")
    return f"{requirement}/{name}[{'-'.join(labels)}]" if labels else f"{requirement}/{name}"


def register_cases(made: list[Case]) -> None:
    """Register cases that were made one by one; an id may stand for one case only."""
    identities = [one.id for one in made]
    for one in made:
        earlier = _REGISTRY.get(one.id)
        # the same source may be imported again, in a reload
        again = earlier is not None and earlier.function.__code__ == one.function.__code__
        if identities.count(one.id) > 1 or (earlier is not None and not again):
            raise DoubleCaseError(f"two cases are called {one.id}; rename one function or label")
    _REGISTRY.update(zip(identities, made, strict=True))


def load_cases(package: str = "steps_conformance.cases") -> dict[str, Case]:
    """Import a package with all its modules, and return its cases by id, in order of topic and definition."""
    root = import_module(package)
    for module in sorted(m.name for m in pkgutil.iter_modules(getattr(root, "__path__", ()))):
        import_module(f"{package}.{module}")
    inside = (package, f"{package}.")
    return {
        identity: found
        for identity, found in sorted(_REGISTRY.items(), key=lambda item: item[1].topic)
        if found.function.__module__ == inside[0] or found.function.__module__.startswith(inside[1])
    }


def _combinations(
    each: Mapping[str, Iterable[Any] | Mapping[str, Any]],
) -> Iterator[tuple[list[str], dict[str, Any]]]:
    columns = [
        list(values.items()) if isinstance(values, Mapping) else [(_label(v), v) for v in values]
        for values in each.values()
    ]
    for combination in itertools.product(*columns):
        labels = [label for label, _ in combination]
        _check_labels(labels)
        yield labels, dict(zip(each, (value for _, value in combination), strict=True))


def _label(value: Any) -> str:
    if isinstance(value, tuple):
        return "x".join(_label(item) for item in value) or "scalar"
    return str(value)


def _check_labels(labels: list[str]) -> None:
    for label in labels:
        if not _LABEL.fullmatch(label):
            raise ValueError(
                f"{label!r} does not read well in an id; give a mapping of short labels to values in each"
            )


def _dtypes_among(arguments: Mapping[str, Any]) -> frozenset[str]:
    named = (value for key, value in arguments.items() if key == "dtype" or key.endswith("_dtype"))
    return frozenset(value for value in named if value in LEAF_DTYPES)


def _check_parameters(function: CaseFunction, names: tuple[str, ...]) -> None:
    parameters = tuple(inspect.signature(function).parameters)
    if parameters[:1] != ("run",) or set(parameters[1:]) != set(names):
        raise TypeError(
            f"{function.__name__} must take run and what each names, ({', '.join(('run', *names))}), "
            f"got ({', '.join(parameters)})"
        )


def _known(argument: str, given: Iterable[str], known: Iterable[str]) -> frozenset[str]:
    if isinstance(given, str):
        raise TypeError(f"{argument} must be a set or tuple of names, got the text {given!r}")
    names = frozenset(given)
    unknown = sorted(names - set(known))
    if unknown:
        raise ValueError(f"{argument} must come from {', '.join(known)}, got {', '.join(unknown)}")
    return names
