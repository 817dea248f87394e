"""Options that are known later: in a graph a step may be made with hyper-parameters instead of numbers.

A step or schedule class called with such a value gives a template, which becomes the step when the
hyper-parameters have values.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from .descriptions import described


class Deferred:
    """What stands for a value that is not known yet."""

    def processed_by(self, step: Any, weights: Any, name: str | None) -> Any:
        """Add a step that is applied to this value; only a value of a graph can."""
        raise NotImplementedError


@dataclass(frozen=True)
class Reference(Deferred):
    """A hyper-parameter, or a number computed from some, by its name in the graph."""

    name: str

    def describe(self) -> dict[str, str]:
        """Return ``{"parameter": name}``."""
        return {"parameter": self.name}


@dataclass(frozen=True)
class Entries(Deferred):
    """A mapping of which some values are not known yet."""

    items: tuple[tuple[str, Any], ...]

    def describe(self) -> dict[str, Any]:
        """Return the mapping as JSON."""
        return {name: described(value) for name, value in self.items}


@dataclass(frozen=True)
class Template(Deferred):
    """A step or schedule class and its options, some of which are not known yet."""

    kind: type["Deferrable"]
    options: tuple[tuple[str, Any], ...]
    metadata: Any = field(default=None, compare=False)

    def __call__(self, gradients: Any, weights: Any = None, *, name: str | None = None) -> Any:
        """Add the step to the graph that is being traced; see `Step.__call__`."""
        return gradients.processed_by(self, weights, name)

    def made(self, value_of: Callable[[str], Any]) -> Any:
        """Return the step with every reference replaced by its value."""
        options = {option: _made(value, value_of) for option, value in self.options}
        return self.kind(**options, **({} if self.metadata is None else {"metadata": self.metadata}))

    def references(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Return where references stand, as the options that lead there, and what they name."""
        for option, value in self.options:
            yield from _references(value, (option,))

    def describe(self) -> dict[str, Any]:
        """Return the description that a step has, with ``{"parameter": name}`` for what is not known yet."""
        options = {option: described(value) for option, value in self.options}
        return {self.kind.described_as: self.kind.__name__, "options": options}


class Deferrable:
    """A class of steps or schedules that gives a `Template` where an option is not known yet."""

    described_as = "step"

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        """Return a new object, or a template."""
        if any(is_deferred(value) for value in (*arguments, *options.values())):
            settled = {name: _settled(value) for name, value in options.items()}
            named = cls.named_options(tuple(map(_settled, arguments)), settled)
            cls._check_named(named)
            metadata = named.pop("metadata", None)
            return Template(cls, tuple(named.items()), metadata)
        return super().__new__(cls)

    @classmethod
    def named_options(cls, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options by name, in the order of the fields, without those that are as by default."""
        listed = [f for f in fields(cls) if f.init]  # type: ignore[arg-type]
        positional = [f.name for f in listed if not f.kw_only]
        given = {**dict(zip(positional, arguments, strict=False)), **options}
        settled = {name: cls.settled_option(name, value) for name, value in given.items()}
        defaults = {f.name: f.default for f in listed if f.default is not MISSING}
        names = dict.fromkeys([*(f.name for f in listed if f.name in settled), *settled])
        return {
            name: settled[name]
            for name in names
            if name not in defaults or settled[name] != cls.settled_option(name, defaults[name])
        }

    @classmethod
    def _check_named(cls, named: Mapping[str, Any]) -> None:
        """Refuse names that the class does not have, as its constructor would, where they are written."""
        for name in named:
            if name not in [f.name for f in fields(cls)]:  # type: ignore[arg-type]
                raise TypeError(f"{cls.__name__}() got an unexpected keyword argument {name!r}")

    @classmethod
    def settled_option(cls, name: str, value: Any) -> Any:  # noqa: ARG003
        """Return an option in the one form that equal options have."""
        normal = getattr(cls, "normal_spellings", {})
        if isinstance(value, list):
            return tuple(value)
        return normal.get(value, value) if isinstance(value, str) else value


def is_deferred(value: Any) -> bool:
    """Return whether a value, or something in it, is not known yet."""
    if isinstance(value, (list, tuple)):
        return any(map(is_deferred, value))
    if type(value) is dict:
        return any(map(is_deferred, value.values()))
    return isinstance(value, Deferred)


def _settled(value: Any) -> Any:
    """Return an option with references for symbols; what is known stays as it is."""
    if isinstance(value, (list, tuple)) and is_deferred(value):
        return tuple(map(_settled, value))
    if type(value) is dict and is_deferred(value):
        return Entries(tuple((name, _settled(entry)) for name, entry in value.items()))
    reference = getattr(value, "as_reference", None)
    return value if reference is None else reference()


def _made(value: Any, value_of: Callable[[str], Any]) -> Any:
    if isinstance(value, Reference):
        return value_of(value.name)
    if isinstance(value, Template):
        return value.made(value_of)
    if isinstance(value, Entries):
        return {name: _made(entry, value_of) for name, entry in value.items}
    if isinstance(value, tuple):
        return tuple(_made(entry, value_of) for entry in value)
    return value


def _references(value: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Reference):
        yield place, value.name
    elif isinstance(value, Template):
        for inner, name in value.references():
            yield (*place, *inner), name
    elif isinstance(value, Entries):
        for name, entry in value.items:
            yield from _references(entry, (*place, name))
    elif isinstance(value, tuple):
        for entry in value:
            yield from _references(entry, place)
