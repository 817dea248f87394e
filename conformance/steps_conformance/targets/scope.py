"""What a target declares that it offers, so that the rest is UNSUPPORTED instead of a failure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from steps_backends import LEAF_DTYPES

from .protocol import Description, Target
from .specified import CHOICES, OPTIONS, is_option

SPECIFIED_STEPS = tuple(OPTIONS)
"""The steps that requirements speak of. A name outside is a mistake that the target has to refuse."""


class NotOfferedError(Exception):
    """A case needs what the target, or the way in which it is reached, declares not to offer.

    Only the suite raises it, from what was declared before the first case.
    """


@dataclass(frozen=True)
class Scope:
    """What a target offers.

    Attributes:
        dtypes: the leaf dtypes; float32 is always among them.
        steps: names of the steps that it makes; None for all that are specified.
        lacks: by step, the options that it does not know: True for an option whatever its value, or the
            values of it that are lacking.
        in_process: whether it computes on the very arrays that it is given; else values go to and fro, and a
            case that looks at memory, warnings or the debugger of this process shows nothing about it.
    """

    dtypes: tuple[str, ...] = LEAF_DTYPES
    steps: tuple[str, ...] | None = None
    lacks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    in_process: bool = True

    def __post_init__(self) -> None:
        _check_names("dtypes", self.dtypes, LEAF_DTYPES)
        _check_names("steps", self.steps or (), SPECIFIED_STEPS)
        if not isinstance(self.lacks, Mapping):
            raise TypeError(
                f"lacks must be a dict of steps, got {self.lacks!r} ({type(self.lacks).__name__})"
            )
        _check_names("lacks", self.lacks, self.steps or SPECIFIED_STEPS)
        if "float32" not in self.dtypes:
            raise ValueError(f"dtypes must contain float32, got {', '.join(self.dtypes) or 'none'}")
        for step, options in self.lacks.items():
            if not isinstance(options, Mapping):
                raise TypeError(
                    f"lacks.{step} must be a dict of options, such as {{'variant': ['global'], "
                    f"'unit_axis': True}}, got {options!r} ({type(options).__name__})"
                )
            for option, values in options.items():
                _check_lacking(step, option, values)

    def lacking(self, dtypes: Iterable[str], *, in_process: bool) -> str | None:
        """Return what the target does not offer of what a case declares to need, in words, or None."""
        missing = sorted(set(dtypes) - set(self.dtypes))
        if missing:
            return f"the target does not offer {', '.join(missing)}"
        if in_process and not self.in_process:
            return "the target runs in another process, and this case looks at what one process shares"
        return None

    def check(self, described: Description) -> None:
        """Raise NotOfferedError where a description needs a step or option that the target does not offer."""
        for name, options in _steps_in(described):
            if self.steps is not None and name in SPECIFIED_STEPS and name not in self.steps:
                raise NotOfferedError(f"the target does not offer {name}")
            for option, lacking in self.lacks.get(name, {}).items():
                if option not in options:
                    continue
                if lacking is True:
                    raise NotOfferedError(f"the target does not offer the option {option} of {name}")
                if options[option] in lacking:
                    raise NotOfferedError(f"the target does not offer {option}={options[option]!r} of {name}")


def scope_of(target: Target) -> Scope:
    """Return what a target offers: everything, where it does not say."""
    scope: Scope = getattr(target, "scope", None) or Scope()
    return scope


def _steps_in(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every step in a description, with its options; steps stand in options, lists and graphs."""
    # no recursion: cases also make descriptions that are too deep, to have them refused
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("step"), str):
                options = part.get("options")
                yield part["step"], options if isinstance(options, dict) else {}
            waiting.extend(part.values())
        elif isinstance(part, (list, tuple)):
            waiting.extend(part)


def _check_names(field_name: str, given: Iterable[str], known: Iterable[str]) -> None:
    names = tuple(known)
    unknown = [str(name) for name in given if name not in names]
    if unknown:
        raise ValueError(
            f"{field_name} must come from {', '.join(names)}, got {', '.join(unknown)}"
            f"{_meant(unknown[0], names)}"
        )


def _check_lacking(step: str, option: Any, values: Any) -> None:
    place = f"lacks.{step}"
    if not isinstance(option, str) or not is_option(step, option):
        slots = " and the slots step1, step2 and so on" if step == "ChainedStep" else ""
        raise ValueError(
            f"{place}: there is no option {option!r} ({type(option).__name__}) of {step}; "
            f"its options are {', '.join(OPTIONS[step])}{slots}{_meant(str(option), OPTIONS[step])}"
        )
    if values is True:
        return
    if not (isinstance(values, (list, tuple)) and values):
        raise ValueError(
            f"{place}.{option} must be true or a list of the values that are lacking, "
            f"got {values!r} ({type(values).__name__})"
        )
    choices = CHOICES.get((step, option), ())
    for value in values if choices else ():
        if value not in choices:
            texts = [choice for choice in choices if choice is not None]
            raise ValueError(
                f"{place}.{option}: there is no value {value!r} ({type(value).__name__}); "
                f"there are {', '.join(texts)}{_meant(str(value), texts)}"
            )


def _meant(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""
