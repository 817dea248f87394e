"""What a vector is: a step, calls of it, and what each must give."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from steps_backends import LEAF_DTYPES, HostArray

from ..received import received
from ..targets.protocol import Description
from .encoding import Json, decoded_array, decoded_tree, encoded_array, encoded_tree
from .numbers import number_of, text_of

FORMAT = "steps-vectors 1"


@dataclass(frozen=True)
class Expected:
    """What one result array must be.

    Attributes:
        dtype, shape: of the result.
        values: exact numbers in C order, a pair for a complex one; None where the input comes back unchanged.
        ulps: how far a result may lie from them, in ulps of the dtype.
        of: magnitudes whose ulps count; those of the values where it is None.
        or_zero: per value whether zero is right too where subnormal numbers are flushed, because a number
            on the way to it is subnormal; None: nowhere.
    """

    dtype: str
    shape: tuple[int, ...]
    values: tuple[Any, ...] | None
    ulps: float = 0
    of: tuple[Any, ...] | None = None
    or_zero: tuple[bool, ...] | None = None


@dataclass(frozen=True)
class VectorCall:
    """One call and what it must give: trees of HostArrays, and of Expected; None: not compared."""

    gradients: Any
    weights: Any
    expected: Any
    expected_state: Any = None


@dataclass(frozen=True)
class Vector:
    """A step run over some calls.

    Attributes:
        id: the requirement's id, ``/v-`` and a name.
        requirement: the id of the requirement that it shows.
        shows: one sentence.
        source: where the input comes from, such as a public report; may be empty.
        step: the description.
        init: the weights that the first state is made for; None: the gradients of the first call.
        state: a first state to start from, in place of init; None: no such state.
        calls: in order.
    """

    id: str
    requirement: str
    shows: str
    source: str
    step: Description
    init: Any
    state: Any
    calls: tuple[VectorCall, ...]

    def dtypes(self) -> frozenset[str]:
        """Return the leaf dtypes among gradients, weights and the arrays of a state that is given."""
        found: set[str] = set()
        trees = [tree for call in self.calls for tree in (call.gradients, call.weights)]
        for tree in (self.init, self.state, *trees):
            encoded_tree(tree, lambda leaf: found.add(leaf.dtype))
        return frozenset(found & set(LEAF_DTYPES))


def dumped(topic: str, vectors: Iterable[Vector]) -> str:
    """Return the text of a file: one vector a line, so that a change shows where it is."""
    lines = ",\n".join(json.dumps(_encoded(vector), separators=(",", ":")) for vector in vectors)
    head = json.dumps({"format": FORMAT, "topic": topic})[:-1]
    return f'{head}, "vectors": [\n{lines}\n]}}\n'


@cache
def load_vectors() -> dict[str, list[Vector]]:
    """Return the shipped vectors by topic."""
    folder = resources.files(__package__) / "data"
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".json"))
    contents = [
        json.loads((folder / name).read_text(encoding="utf-8")) for name in files if name != "schema.json"
    ]
    return {content["topic"]: [_decoded(data) for data in content["vectors"]] for content in contents}


class MalformedVectorsError(ValueError):
    """A file holds no vectors of this format; the text names the file, what is wrong, and the way out."""


def read_vectors(file: Path) -> list[Vector]:
    """Return the vectors of one file.

    Raises:
        MalformedVectorsError: it cannot be read, is of another format, or breaks its form.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise MalformedVectorsError(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise MalformedVectorsError(f"{file} cannot be read as JSON: {error}") from None
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        raise MalformedVectorsError(
            f'{file} must have "format": "{FORMAT}", got {received(found)}; '
            "vectors/data/schema.json describes the form"
        )
    listed = content.get("vectors")
    if not isinstance(listed, list):
        raise MalformedVectorsError(f"{file}: vectors must be a list, got {received(listed)}")
    return [_decoded_of(file, place, data) for place, data in enumerate(listed, start=1)]


def _decoded_of(file: Path, place: int, data: Json) -> Vector:
    try:
        return _decoded(data)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        name = f" ({data['id']})" if isinstance(data, dict) and "id" in data else ""
        raise MalformedVectorsError(
            f"{file}, vector {place}{name} breaks the form of vectors: {type(error).__name__}: {error}; "
            "vectors/data/schema.json describes it"
        ) from None


def _encoded(vector: Vector) -> Json:
    data = {
        "id": vector.id,
        "requirement": vector.requirement,
        "shows": vector.shows,
        "source": vector.source,
        "step": vector.step,
        "init": encoded_tree(vector.init, encoded_array),
        "state": encoded_tree(vector.state, encoded_array),
        "calls": [_encoded_call(call) for call in vector.calls],
    }
    return {key: value for key, value in data.items() if value not in (None, "")}


def _encoded_call(call: VectorCall) -> Json:
    data = {
        "gradients": encoded_tree(call.gradients, encoded_array),
        "weights": encoded_tree(call.weights, encoded_array),
        "expected": encoded_tree(call.expected, _encoded_expected),
    }
    if call.weights is None:
        del data["weights"]
    if call.expected_state is not None:
        data["expected_state"] = encoded_tree(call.expected_state, _encoded_expected)
    return data


def _encoded_expected(expected: Expected) -> Json:
    data: dict[str, Any] = {"dtype": expected.dtype, "shape": list(expected.shape)}
    if expected.values is None:
        return {**data, "unchanged": True}
    data["values"] = [_exact_text(value) for value in expected.values]
    if expected.ulps:
        data["ulps"] = expected.ulps
    if expected.of is not None:
        data["of"] = [_exact_text(value) for value in expected.of]
    if expected.or_zero is not None:
        data["or_zero"] = list(expected.or_zero)
    return data


def _exact_text(value: Any) -> Json:
    if isinstance(value, bool):
        return value
    if isinstance(value, tuple):
        return [text_of(part) for part in value]
    if isinstance(value, complex) or type(value).__name__ == "mpc":
        return [text_of(value.real), text_of(value.imag)]
    return text_of(value)


def _decoded(data: Json) -> Vector:
    return Vector(
        data["id"],
        data["requirement"],
        data["shows"],
        data.get("source", ""),
        data["step"],
        decoded_tree(data.get("init"), decoded_array),
        decoded_tree(data.get("state"), decoded_array),
        tuple(_decoded_call(call) for call in data["calls"]),
    )


def _decoded_call(data: Json) -> VectorCall:
    return VectorCall(
        decoded_tree(data["gradients"], decoded_array),
        decoded_tree(data.get("weights"), decoded_array),
        decoded_tree(data["expected"], _decoded_expected),
        decoded_tree(data.get("expected_state"), _decoded_expected),
    )


def _decoded_expected(data: Json) -> Expected:
    def values(key: str) -> tuple[Any, ...] | None:
        return tuple(_exact_value(entry) for entry in data[key]) if key in data else None

    return Expected(
        data["dtype"],
        tuple(data["shape"]),
        values("values"),
        data.get("ulps", 0),
        values("of"),
        values("or_zero"),
    )


def _exact_value(data: Json) -> Any:
    if isinstance(data, bool):
        return data
    if isinstance(data, list):
        real, imaginary = map(number_of, data)
        return real, imaginary
    return number_of(data)


def unchanged(array: HostArray) -> Expected:
    """Return the expectation that an array comes back bit for bit."""
    return Expected(array.dtype, array.shape, None)
