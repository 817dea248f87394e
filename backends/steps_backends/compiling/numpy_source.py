"""A kernel as a function of NumPy: block by block, each operation into a register that stays in the cache."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .kernels import Kernel, Literal, Operand, Operation, Ref
from .tracing import CAST, COPY

_AT_ONCE = ("minimum", "maximum")  # with a number, they change nothing of most blocks
_END = 1 << 30


@dataclass(frozen=True)
class BlockFunction:
    """A kernel that runs on rows of its arrays.

    Attributes:
        block: ``block(arrays, outputs, parts, scalars, registers, add_squares)``, on all rows at once.
        registers: the dtypes of the registers that it needs, each of as many rows.
        whole_parts: which parts have one row for all.
        source: its text.
    """

    block: Callable[..., None]
    registers: tuple[str, ...]
    whole_parts: tuple[bool, ...]
    source: str

    def run(
        self,
        start: int,
        stop: int,
        rows: int,
        arrays: Sequence[Any],
        outputs: Sequence[Any],
        parts: Sequence[Any],
        scalars: Sequence[Any],
        registers: Sequence[Any],
        add_squares: Callable[[int, Any], None],
    ) -> None:
        """Run on the rows from start to stop, so many at once."""
        for i in range(start, stop, rows):
            j = min(i + rows, stop)
            self.block(
                [array[i:j] for array in arrays],
                [output[i:j] for output in outputs],
                [
                    part if is_whole else part[i:j]
                    for part, is_whole in zip(parts, self.whole_parts, strict=True)
                ],
                scalars,
                [register[: j - i] for register in registers],
                add_squares,
            )


@lru_cache(maxsize=1024)
def block_function(kernel: Kernel, aliases: tuple[int | None, ...]) -> BlockFunction:
    """Return the function of a kernel.

    Args:
        kernel: specialised, so that no choice depends on a scalar.
        aliases: for each stored result, the array whose memory it is written to, or None.
    """
    import numpy as np

    writer = _Writer(kernel, aliases)
    source = writer.source()
    names: dict[str, Any] = {
        "copyto": np.copyto,
        "any_of": np.logical_or.reduce,
        "largest_of": np.maximum.reduce,
        "least_of": np.minimum.reduce,
        **{operation.name: getattr(np, operation.name, None) for operation in kernel.operations},
        **writer.constants,
    }
    exec(source, names)  # noqa: S102  # Only words of this module and of NumPy.
    return BlockFunction(names["block"], tuple(writer.registers), whole_parts(kernel), source)


def whole_parts(kernel: Kernel) -> tuple[bool, ...]:
    """Return which parts of a kernel have one row for all."""
    return tuple(is_one[0] for _, is_one in kernel.parts)


class _Writer:
    """Chooses where each result is kept, and writes the code."""

    def __init__(self, kernel: Kernel, aliases: tuple[int | None, ...]) -> None:
        self._kernel = kernel
        self._aliases = aliases
        self._last_use = _last_uses(kernel)
        self._place: dict[int, str] = {}
        self._free: list[str] = []
        self._lines: list[str] = []
        self.registers: list[str] = []
        self.constants: dict[str, Any] = {}
        self._output_of: dict[int, int] = {}
        for number, (operand, _) in enumerate(kernel.stored):
            if isinstance(operand, Ref) and operand.kind == "result":
                self._output_of.setdefault(operand.index, number)

    def source(self) -> str:
        """Return the text of the function."""
        kernel = self._kernel
        self._sum_up([Ref("array", index) for index in range(len(kernel.arrays))])
        for index, operation in enumerate(kernel.operations):
            self._write(index, operation)
            self._sum_up([Ref("result", index)])
            self._release(index, operation)
        self._copy_rest()
        heads = [
            f"{', '.join(f'{name[0]}{index}' for index in range(count))}, = {name}"
            for name, count in (
                ("arrays", len(kernel.arrays)),
                ("outputs", len(kernel.stored)),
                ("parts", len(kernel.parts)),
                ("scalars", len(kernel.scalars)),
                ("registers", len(self.registers)),
            )
            if count
        ]
        return "\n".join(
            [
                "def block(arrays, outputs, parts, scalars, registers, add_squares):",
                *(f"    {line}" for line in [*heads, *self._lines] or ["pass"]),
            ]
        )

    def _text(self, operand: Operand) -> str:
        if isinstance(operand, Literal):
            return self._constant(operand)
        if operand.kind == "result":
            return self._place[operand.index]
        return f"{operand.kind[0]}{operand.index}"

    def _constant(self, literal: Literal) -> str:
        import numpy as np

        value = literal.value if literal.dtype is None else np.dtype(literal.dtype).type(literal.value)
        for name, known in self.constants.items():
            if type(known) is type(value) and repr(known) == repr(value):
                return name
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def _write(self, index: int, operation: Operation) -> None:
        name, operands = operation.name, operation.operands
        base = _base(operation)
        place = self._chosen_place(index, operation, base)
        given = [self._text(operand) for operand in operands]
        if name == "where":
            condition, chosen, other = given
            if other != place:
                self._lines.append(f"copyto({place}, {other})")
            # Most blocks hold no such element, and copying under a mask is slow.
            self._lines.append(f"if any_of({condition}, None): copyto({place}, {chosen}, where={condition})")
        elif name in _AT_ONCE and base is not None and given[0] == place:
            # NaN is not within the bound either; which of two zeros is smaller is left to NumPy.
            test = "largest_of({}, None) < {}" if name == "minimum" else "least_of({}, None) > {}"
            self._lines.append(
                f"if not {test.format(given[0], given[1])}: {name}({', '.join(given)}, out={place})"
            )
        elif name in (CAST, COPY):
            self._lines.append(f"copyto({place}, {given[0]}, casting='unsafe')")
        elif name in ("real", "imag"):
            self._lines.append(f"copyto({place}, {given[0]}.{name})")
        else:
            self._lines.append(f"{name}({', '.join(given)}, out={place})")
        self._place[index] = place

    def _chosen_place(self, index: int, operation: Operation, base: int | None) -> str:
        output = self._output_of.get(index)
        if output is not None and self._may_overwrite(output, index, operation):
            return f"o{output}"
        if output is None:
            following = self._only_base_of(index)
            output = None if following is None else self._output_of.get(following)
            if output is not None and self._may_overwrite(output, index, operation):
                return f"o{output}"
        dying = [
            operand.index
            for operand in operation.operands
            if isinstance(operand, Ref) and operand.kind == "result"
            if self._last_use[operand] == index and self._place[operand.index].startswith("r")
        ]
        if operation.name == "where":
            dying = [given for given in dying if given == base]
        for given in dying:
            place = self._place[given]
            if self.registers[int(place[1:])] == operation.dtype:
                return place
        for place in self._free:
            if self.registers[int(place[1:])] == operation.dtype:
                self._free.remove(place)
                return place
        self.registers.append(operation.dtype)
        return f"r{len(self.registers) - 1}"

    def _may_overwrite(self, output: int, index: int, operation: Operation) -> bool:
        """Return whether an output may be written at an operation: what lies there is not needed any more."""
        dtype = self._kernel.stored[output][1]
        if dtype != operation.dtype:
            return False
        array = self._aliases[output]
        if array is None:
            return True
        last = self._last_use.get(Ref("array", array), -1)
        # A choice is written in two steps, so that it must not overwrite what it chooses from.
        return last < index or (last == index and operation.name != "where")

    def _only_base_of(self, index: int) -> int | None:
        """Return the operation that may go on where this result lies, if nothing else uses it."""
        ref = Ref("result", index)
        users = [i for i, operation in enumerate(self._kernel.operations) if ref in operation.operands]
        if len(users) != 1 or ref in [operand for operand, _ in self._kernel.summed]:
            return None
        user = self._kernel.operations[users[0]]
        return (
            users[0] if _base(user) == index and user.dtype == self._kernel.operations[index].dtype else None
        )

    def _release(self, index: int, operation: Operation) -> None:
        for operand in {operand for operand in operation.operands if isinstance(operand, Ref)}:
            if operand.kind == "result" and self._last_use[operand] == index:
                place = self._place[operand.index]
                if place.startswith("r") and place != self._place[index] and place not in self._free:
                    self._free.append(place)

    def _sum_up(self, refs: list[Ref]) -> None:
        for number, (operand, _) in enumerate(self._kernel.summed):
            if operand in refs:
                self._lines.append(f"add_squares({number}, {self._text(operand)})")

    def _copy_rest(self) -> None:
        for number, (operand, _) in enumerate(self._kernel.stored):
            place = self._text(operand)
            array = self._aliases[number]
            if place != f"o{number}" and (array is None or operand != Ref("array", array)):
                self._lines.append(f"copyto(o{number}, {place}, casting='unsafe')")


def _base(operation: Operation) -> int | None:
    """Return the result that an operation may be done in place of, and then often leaves as it is."""
    if operation.name == "where":
        operand = operation.operands[2]
    elif operation.name in _AT_ONCE and isinstance(operation.operands[1], Literal):
        operand = operation.operands[0]
    else:
        return None
    return operand.index if isinstance(operand, Ref) and operand.kind == "result" else None


def _last_uses(kernel: Kernel) -> dict[Ref, int]:
    """Return the last operation that reads each operand; those copied at the end are read after all."""
    last: dict[Ref, int] = {}
    for operand, _ in kernel.summed:
        if isinstance(operand, Ref):
            last[operand] = -1
    for index, operation in enumerate(kernel.operations):
        for operand in operation.operands:
            if isinstance(operand, Ref):
                last[operand] = index
    for operand, _ in kernel.stored:
        if isinstance(operand, Ref):
            last[operand] = _END
    return last
