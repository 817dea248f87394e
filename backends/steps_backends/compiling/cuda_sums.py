"""Sums of squares as CUDA: the pieces that passes collect are added up, and units are summed by themselves.

Pieces are added in one order, so that equal calls give equal bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from .cuda_source import THREADS, TYPES, Limits, limits_text

# Elements along the summed axes that one block of threads takes of each of its units.
DEPTH = 4096
# Neighbouring units of one block, so that neighbouring threads read neighbouring elements.
WIDTH = 32

TOTAL_SOURCE = f"""\
extern "C" __global__ void add_pieces(const i64* rows, const i64* blocks, const double* slots) {{
    // A row: the first slot, how many, where the three sums go, whether they are double.
    const i64* row = rows + 4 * blocks[blockIdx.x];
    __shared__ double scratch[{THREADS}];
    for (int range = 0; range < 3; range++) {{
        exact_sum sum;
        for (i64 i = threadIdx.x; i < row[1]; i += blockDim.x) sum.keep(slots[3 * (row[0] + i) + range]);
        double total = block_sum(sum.value(), scratch);
        if (threadIdx.x == 0) {{
            if (row[3]) ((double*)row[2])[range] = total;
            else ((float*)row[2])[range] = (float)total;
        }}
    }}
}}
"""

UNITS_TOTAL_SOURCE = """\
extern "C" __global__ void add_unit_pieces(const i64* rows, const i64* blocks, const double* slots) {
    // A row: units, pieces, the first slot, where each of the three sums goes, whether they are double.
    const i64* block = blocks + 2 * (i64)blockIdx.x;
    const i64* row = rows + 7 * block[0];
    const i64 end = block[1] + UNITS_AT_ONCE, stop = end < row[0] ? end : row[0];
    for (i64 unit = block[1] + threadIdx.x; unit < stop; unit += blockDim.x) {
        for (int range = 0; range < 3; range++) {
            exact_sum sum;
            for (i64 i = 0; i < row[1]; i++) sum.keep(slots[3 * (row[2] + unit * row[1] + i) + range]);
            if (row[6]) ((double*)row[3 + range])[unit] = sum.value();
            else ((float*)row[3 + range])[unit] = (float)sum.value();
        }
    }
}
""".replace("UNITS_AT_ONCE", str(THREADS))


@dataclass(frozen=True)
class UnitShape:
    """An array seen as (outer depth, outer units, inner depth, inner units); the depths are summed."""

    outer_depth: int
    outer_units: int
    inner_depth: int
    inner_units: int

    @property
    def units(self) -> int:
        """How many sums there are."""
        return self.outer_units * self.inner_units

    @property
    def depth(self) -> int:
        """How many elements each is of."""
        return self.outer_depth * self.inner_depth

    @property
    def pieces(self) -> int:
        """In how many pieces each is summed."""
        return max(1, -(-self.depth // DEPTH))

    @property
    def at_once(self) -> int:
        """How many units one block of threads takes."""
        return 1 if self.inner_units == 1 else WIDTH


def unit_shape(shape: Sequence[int], axes: Sequence[int]) -> UnitShape | None:
    """Return how an array of this shape is seen; None where the summed axes lie in more than two groups."""
    groups: list[list[int]] = [[], [], [], []]
    place = 0
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        is_summed = axis in axes
        while place < len(groups) and (place % 2 == 0) != is_summed:
            place += 1
        if place == len(groups):
            return None
        groups[place].append(length)
    outer_depth, outer_units, inner_depth, inner_units = map(prod, groups)
    if inner_depth == 1 and inner_units == 1:
        # What is summed comes first, so that the units lie side by side.
        return UnitShape(1, 1, outer_depth, outer_units)
    return UnitShape(outer_depth, outer_units, inner_depth, inner_units)


@lru_cache(maxsize=16)
def unit_source(dtype: str, limits: Limits) -> tuple[str, str]:
    """Return the name and the text of the kernel that sums the units of arrays of a dtype.

    Its arguments: the rows; for each block its row, its first unit and its piece; the slots.
    """
    name = f"unit_pieces_{TYPES[dtype]}"
    return (
        name,
        f"""\
extern "C" __global__ void {name}(const i64* rows, const i64* blocks, double* slots) {{
    // A row: the four lengths, units at once, pieces, the first slot, the array.
    const i64* block = blocks + 3 * (i64)blockIdx.x;
    const i64* row = rows + 8 * block[0];
    const i64 outer_units = row[1], inner_depth = row[2], inner_units = row[3];
    const unsigned width = blockDim.x < row[4] ? 1 : (unsigned)row[4], lines = blockDim.x / width;
    const {TYPES[dtype]}* array = (const {TYPES[dtype]}*)row[7];
    const range_limits limits = {limits_text(dtype, limits)};
    __shared__ double scratch[{THREADS}];
    for (i64 side = threadIdx.x % width; side < row[4]; side += width) {{
        const i64 unit = block[1] + side;
        const bool is_in = unit < outer_units * inner_units;
        range_sums sums;
        if (is_in) {{
            const i64 first = unit / inner_units * inner_depth * inner_units + unit % inner_units;
            const i64 end = (block[2] + 1) * {DEPTH}, depth = row[0] * inner_depth;
            const i64 stop = end < depth ? end : depth;
            for (i64 i = block[2] * {DEPTH} + threadIdx.x / width; i < stop; i += lines) {{
                const i64 outer = i / inner_depth * outer_units * inner_depth * inner_units;
                sums.add(array[first + outer + i % inner_depth * inner_units], limits);
            }}
        }}
        double* place = slots + 3 * (row[6] + unit * row[5] + block[2]);
        const double found[3] = {{sums.big.value(), sums.middle.value(), sums.small.value()}};
        for (int range = 0; range < 3; range++) {{
            const double total = line_sum(found[range], width, scratch);
            if (is_in && threadIdx.x < width) place[range] = total;
        }}
    }}
}}
""",
    )
