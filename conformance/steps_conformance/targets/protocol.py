"""What the suite asks of an implementation under test."""

from typing import Any, Protocol

Description = dict[str, Any]
"""A step as JSON: ``{"step": "AdamStep", "options": {"learning_rate": {"float": "0x1p-3"}}}``.

An option that the state holds, so that it can be replaced, is ``{"tunable": {"float": "0x1p-3"}}``.
"""

CAPABILITIES = {
    "apply_updates": "adds updates to weights",
    "state_files": "saves a state to a file and loads it again",
    "negates": "tells whether a step negates, without running it",
    "check_end_to_end": "refuses a step that is not end-to-end",
    "describe": "gives back the description of a step that it made",
    "tunable": "takes tunable options, which the state holds under their names",
    "state_form": "keeps its state in dicts, under the names that the requirements give",
    "trees": "takes nested containers with None in them itself, without help from its adapter",
    "transforms": "computes with the array library itself, which can so compile and differentiate it",
    "error_form": "refuses with the class of error and the words that the requirements give",
}
"""The closed set of optional capabilities, each with its meaning."""

OPTIONAL_METHODS = {
    "apply_updates": ("apply_updates",),
    "state_files": ("save_state", "load_state"),
    "negates": ("negates",),
    "check_end_to_end": ("check_end_to_end",),
    "describe": ("describe",),
}
"""By capability, the methods that a target has which claims it; OptionalMethods says what they do."""

REFUSAL_KINDS = ("ValueError", "TypeError", "KeyError")


class Refusal(Exception):  # noqa: N818 - an answer of the target, no error of the suite
    """The target's own error, said on purpose: this input is not allowed.

    Attributes:
        kind: the class that a caller would catch: ValueError, TypeError or KeyError.
        message: the whole text, notes included.
    """

    def __init__(self, kind: str, message: str) -> None:
        if kind not in REFUSAL_KINDS:
            raise ValueError(f"kind must be one of {', '.join(REFUSAL_KINDS)}, got {kind!r}")
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class NotExpressible(Exception):  # noqa: N818 - a declaration of the target, no error of the suite
    """The target's declaration that it has no such step, or that its step has no such option.

    Only `Target.make` may raise it, and only for what the description says: which step, which options, or a
    value that the target's own documentation rules out. The case is then UNSUPPORTED, with this reason. From
    anywhere else, such as `TargetStep.apply`, it is an ERROR: a step that was made has to be right.
    """


class TargetStep(Protocol):
    """One step made by the target."""

    def init(self, weights: Any) -> Any:
        """Return the state for weights."""
        ...

    def apply(self, gradients: Any, weights: Any, state: Any) -> tuple[Any, Any]:
        """Return the processed gradients and the next state; weights and state may be None."""
        ...


class Target(Protocol):
    """An implementation under test.

    It gets inputs only, never an expected value. Its own errors leave it as Refusal; any other exception
    counts as a fault. What it has no step or option for it declares by NotExpressible. It may also have what
    DeclaresDeviations says, and its steps what DeclaresDtypes says.
    """

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    @property
    def version(self) -> str:
        """Its version."""
        ...

    @property
    def path(self) -> str:
        """The file or folder that was tested."""
        ...

    @property
    def hash(self) -> str:
        """SHA-256 of the sources there."""
        ...

    @property
    def capabilities(self) -> frozenset[str]:
        """Names out of CAPABILITIES; most have methods in OptionalMethods."""
        ...

    def make(self, description: Description) -> TargetStep:
        """Return the step of that description, or raise Refusal, or NotExpressible where there is none."""
        ...


class DeclaresDeviations(Protocol):
    """A target that knows where it does not hold, and says so in an expectation file of its own."""

    @property
    def expectations(self) -> str:
        """The absolute path of the file, such as ``str(Path(__file__).with_name("expectations.toml"))``."""
        ...


class DeclaresDtypes(Protocol):
    """A TargetStep that takes fewer leaf dtypes than the backend has."""

    @property
    def dtypes(self) -> frozenset[str]:
        """The leaf dtypes that it takes; a case that makes arrays of others as well is UNSUPPORTED."""
        ...


class OptionalMethods(Protocol):
    """The methods that a target has for the capabilities it claims."""

    def apply_updates(self, weights: Any, updates: Any) -> Any:
        """Return the weights with the updates added."""
        ...

    def save_state(self, state: Any, file: str) -> None:
        """Write a state to a file."""
        ...

    def load_state(self, file: str, like: Any) -> Any:
        """Return the state from a file, in the form and on the library of like."""
        ...

    def negates(self, description: Description) -> bool:
        """Return whether the step of that description negates."""
        ...

    def check_end_to_end(self, description: Description) -> None:
        """Raise Refusal unless the step of that description is end-to-end."""
        ...

    def describe(self, description: Description) -> Description:
        """Make the step of that description, and return what it says of itself."""
        ...
