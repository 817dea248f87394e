"""States of which each tree of moments lies in a few long arrays, instead of one array for each leaf."""

from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from math import prod
from typing import Any

Shape = tuple[int, ...]

# A leaf of so many elements is fast by itself; to put it beside others would copy it.
LARGE = 1 << 16


class Part:
    """Leaves of a tree that lie behind one another in one array.

    Attributes:
        numbers: which leaves.
        shapes: their shapes.
    """

    __slots__ = ("numbers", "shapes", "sizes")

    def __init__(self, numbers: Iterable[int], shapes: Iterable[Shape]) -> None:
        self.numbers, self.shapes = tuple(numbers), tuple(shapes)
        self.sizes = tuple(map(prod, self.shapes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and (self.numbers, self.shapes) == (other.numbers, other.shapes)

    def __hash__(self) -> int:
        return hash((self.numbers, self.shapes))

    def joined(self, leaves: list[Any]) -> Any:
        """Return the array that holds its leaves of a list."""
        import jax

        flat = [leaves[number].reshape(-1) for number in self.numbers]
        return flat[0] if len(flat) == 1 else jax.numpy.concatenate(flat)

    def split(self, flat: Any) -> Iterator[tuple[int, Any]]:
        """Yield the number of each leaf and the leaf."""
        ends = pairwise(accumulate(self.sizes, initial=0))
        for number, shape, (start, end) in zip(self.numbers, self.shapes, ends, strict=True):
            yield number, (flat if len(self.shapes) == 1 else flat[start:end]).reshape(shape)


def parts_of(leaves: list[Any]) -> tuple[Part, ...]:
    """Return how leaves lie: large ones by themselves, the others by dtype; None lies nowhere."""
    together: dict[Any, list[int]] = {}
    for number, leaf in enumerate(leaves):
        if leaf is not None:
            is_large = prod(leaf.shape) >= LARGE
            together.setdefault((str(leaf.dtype), number if is_large else None), []).append(number)
    return tuple(Part(numbers, [leaves[number].shape for number in numbers]) for numbers in together.values())


class Layout:
    """Where the leaves of a state lie in the arrays of a packed one.

    Attributes:
        frame: the structure of the state down to its entries, which are scalars or trees of moments.
        structures: of each entry that is a tree of moments; None for a scalar, which stays as it is.
        parts: how the leaves of each such entry lie.

    Args:
        trees: the module of trees of the step's package.
        frame: as above.
        are_scalars: of each entry.
        state: a state that is to lie so.
    """

    def __init__(self, trees: Any, frame: Any, are_scalars: list[bool], state: Any) -> None:
        self._trees, self.frame = trees, frame
        entries = frame.flatten_up_to(state)
        opened = [
            None if is_scalar else trees.flatten(entry)
            for entry, is_scalar in zip(entries, are_scalars, strict=True)
        ]
        self.structures = tuple(None if each is None else each[1] for each in opened)
        self.parts = tuple(() if each is None else parts_of(each[0]) for each in opened)
        self._form = (frame, self.structures, self.parts)
        # JAX asks at each call.
        self._hash = hash(self._form)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Layout) and self._form == other._form)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Layout({len(self.structures)} entries, {sum(map(len, self.parts))} parts)"

    def packed(self, state: Any) -> list[Any]:
        """Return the arrays that hold a state."""
        arrays = []
        entries = self.frame.flatten_up_to(state)
        for entry, structure, parts in zip(entries, self.structures, self.parts, strict=True):
            if structure is None:
                arrays.append(entry)
            else:
                leaves, found = self._trees.flatten(entry)
                assert found == structure
                arrays += [part.joined(leaves) for part in parts]
        return arrays

    def unpacked(self, arrays: Iterable[Any]) -> Any:
        """Return the state that such arrays hold."""
        given, entries = iter(arrays), []
        for structure, parts in zip(self.structures, self.parts, strict=True):
            if structure is None:
                entries.append(next(given))
                continue
            leaves = [None] * structure.num_leaves
            for part in parts:
                for number, leaf in part.split(next(given)):
                    leaves[number] = leaf
            entries.append(self._trees.unflatten(structure, leaves))
        return self._trees.unflatten(self.frame, entries)

    def common_parts(self) -> tuple[Part, ...] | None:
        """Return how all trees of moments lie; None where there is none, or they lie differently."""
        found = {parts for parts, structure in zip(self.parts, self.structures, strict=True) if structure}
        return found.pop() if len(found) == 1 else None

    def as_parts(self, arrays: Iterable[Any]) -> Any:
        """Return a state whose trees of moments are the lists of such arrays."""
        given = iter(arrays)
        entries = [
            next(given) if structure is None else [next(given) for _ in parts]
            for structure, parts in zip(self.structures, self.parts, strict=True)
        ]
        return self._trees.unflatten(self.frame, entries)

    def of_parts(self, state: Any) -> list[Any]:
        """Return the arrays of a state whose trees of moments are lists of them."""
        arrays: list[Any] = []
        for entry, structure in zip(self.frame.flatten_up_to(state), self.structures, strict=True):
            arrays += [entry] if structure is None else entry
        return arrays


class PackedState:
    """A state in the packed form that a compiled step takes and gives back; JAX knows it as a tree.

    Attributes:
        arrays: what holds it.
        layout: where its leaves lie in them.
    """

    __slots__ = ("arrays", "layout")

    def __init__(self, arrays: Iterable[Any], layout: Layout) -> None:
        self.arrays, self.layout = tuple(arrays), layout

    def __repr__(self) -> str:
        return f"PackedState({len(self.arrays)} arrays)"


def frame_of(step: Any, trees: Any) -> tuple[Any, list[bool]]:
    """Return the structure of a step's state down to its entries, and which of them are scalars.

    An entry is a scalar or a tree of moments; or all of the state is one, where the entries are unknown.
    """
    import numpy as np

    try:
        # What it holds for one array: there each tree of moments is one array of that shape.
        entries, frame = trees.flatten(step.init(np.zeros(1, "float32")))
    except Exception:  # noqa: BLE001  # Such as a mask, which goes with one tree only.
        entries, frame = trees.flatten(np.zeros(1))
    return frame, [entry is None or entry.ndim == 0 for entry in entries]
