"""Options that are known later: in a graph a step may be made with hyper-parameters instead of numbers.

A step or schedule class called with such a value gives a template, which becomes the step when the
hyper-parameters have values.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any


class Deferred:
    """What stands for a value that is not known yet."""


@dataclass(frozen=True)
class Reference(Deferred):
    """A hyper-parameter, or a number computed from some, by its name in the graph."""

    name: str

    def describe(self) -> dict[str, str]:
        """Return ``{"parameter": name}``."""
        return {"parameter": self.name}


@dataclass(frozen=True)
class Template(Deferred):
    """A step or schedule class and its options, some of which are not known yet."""

    kind: type["Deferrable"]
    options: tuple[tuple[str, Any], ...]

    def __call__(self, gradients: Any, weights: Any = None, *, name: str | None = None) -> Any:
        """Add the step to the graph that is being traced; see `Step.__call__`."""
        return gradients.processed_by(self, weights, name)

    def made(self, value_of: Callable[[str], Any]) -> Any:
        """Return the step with every reference replaced by its value."""
        return self.kind(**{option: _made(value, value_of) for option, value in self.options})

    def references(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Return where references stand, as the options that lead there, and what they name."""
        for option, value in self.options:
            yield from _references(value, (option,))

    def describe(self) -> dict[str, Any]:
        """Return the description that a step has, with ``{"parameter": name}`` for what is not known yet."""
        from .descriptions import described

        options = {option: described(value) for option, value in self.options}
        return {self.kind.described_as: self.kind.__name__, "options": options}

    def __repr__(self) -> str:
        listed = ", ".join(f"{option}={_shown(value)}" for option, value in self.options)
        return f"{self.kind.__name__}({listed})"


class Deferrable:
    """A class of steps or schedules that gives a `Template` where an option is not known yet."""

    described_as = "step"

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        """Return a new object, or a template."""
        if any(_is_deferred(value) for value in (*arguments, *options.values())):
            named = cls.named_options(arguments, options)
            return Template(cls, tuple(named.items()))
        return super().__new__(cls)

    @classmethod
    def named_options(cls, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options by name, in the order of the fields, without those that are as by default."""
        listed = [f for f in fields(cls) if f.init]  # type: ignore[arg-type]
        positional = [f.name for f in listed if not f.kw_only]
        given = {**dict(zip(positional, arguments, strict=False)), **options}
        settled = {name: cls.settled_option(name, _settled(value)) for name, value in given.items()}
        defaults = {f.name: f.default for f in listed if f.default is not MISSING}
        names = dict.fromkeys([*(f.name for f in listed if f.name in settled), *settled])
        return {
            name: settled[name]
            for name in names
            if name not in defaults or settled[name] != cls.settled_option(name, defaults[name])
        }

    @classmethod
    def settled_option(cls, name: str, value: Any) -> Any:
        """Return an option in the one form that equal options have."""
        normal = getattr(cls, "normal_spellings", {})
        return normal.get(value, value) if isinstance(value, str) else value


def _is_deferred(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_deferred, value))
    return isinstance(value, Deferred)


def _settled(value: Any) -> Any:
    """Return an option as a template keeps it: references for symbols, tuples for lists."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_settled, value))
    reference = getattr(value, "as_reference", None)
    return value if reference is None else reference()


def _made(value: Any, value_of: Callable[[str], Any]) -> Any:
    if isinstance(value, Reference):
        return value_of(value.name)
    if isinstance(value, Template):
        return value.made(value_of)
    if isinstance(value, tuple):
        return tuple(_made(entry, value_of) for entry in value)
    return value


def _references(value: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Reference):
        yield place, value.name
    elif isinstance(value, Template):
        for inner, name in value.references():
            yield (*place, *inner), name
    elif isinstance(value, tuple):
        for entry in value:
            yield from _references(entry, place)


def _shown(value: Any) -> str:
    return value.name if isinstance(value, Reference) else repr(value)
