"""How a graph is cut into passes, and that each way of running them gives the same bits."""

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from steps_backends.compiling import numba_source
from steps_backends.compiling.graph import simplified
from steps_backends.compiling.kernels import (
    Kernel,
    Literal,
    Operation,
    Ref,
    fact_function,
    kernel_of,
    specialised,
)
from steps_backends.compiling.numba_source import fused_function, loop_source
from steps_backends.compiling.numpy_source import block_function
from steps_backends.compiling.numpy_sums import FUSED, SquareSummer
from steps_backends.compiling.passes import stages
from steps_backends.compiling.tracing import INPUT, TracedArray, TracingError

from steps_core import AdamStep, ChainedStep, GradientClippingStep, MomentumStep, Step
from steps_core.namespaces import namespace_of
from steps_core.numerics import norms

HARD = np.asarray(
    [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-45, 1e-38, 3e38, -3e38, 1.0, -1.0, 0.1, 7.0], "float32"
)


@pytest.fixture(autouse=True)
def quiet_numpy() -> Iterator[None]:
    """A compiled step silences NumPy for all that it runs."""
    with np.errstate(all="ignore"):
        yield


def symbol(tree: str, number: int, shape: tuple[int, ...] = (8,), dtype: str = "float32") -> TracedArray:
    """Return an array that records."""
    return TracedArray(INPUT, (), ((tree, number), None), shape, np.dtype(dtype))


def traced(step: Step, leaves: int = 2) -> list[TracedArray]:
    """Return what a step makes of some leaves."""
    state = step.init([np.ones(8, "float32")] * leaves)
    numbers = itertools.count()

    def recording(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: recording(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [recording(entry) for entry in value]
        return symbol("state", next(numbers), value.shape, value.dtype.name)

    result = step([symbol("gradients", number) for number in range(leaves)], None, recording(state))
    return simplified(result.gradients)


def test_clip_and_adam_are_one_pass_for_the_norm_and_one_for_the_rest() -> None:
    """And every leaf has the same kernel in both."""
    chain = ChainedStep(GradientClippingStep(variant="global"), AdamStep())
    norm, rest = stages(traced(chain))
    assert [len(stage.components) for stage in (norm, rest)] == [2, 2]
    assert all(not component.nodes and len(component.summed) == 1 for component in norm.components)
    assert len({kernel_of(component) for component in (*norm.components,)}) == 1
    assert len({kernel_of(component) for component in rest.components}) == 1


def test_what_a_later_pass_needs_is_computed_again_where_that_is_cheap() -> None:
    """A momentum is stored for the state anyway; nothing else crosses from pass to pass."""
    norm, rest = stages(traced(ChainedStep(MomentumStep(), GradientClippingStep(variant="global"))))
    assert all(len(component.summed) == 1 for component in norm.components)
    assert all(len(component.arrays) == 2 for component in (*norm.components, *rest.components))


ROOT = Operation("sqrt", (Ref("result", 0),), "<f4")
QUOTIENT = Kernel(
    operations=(
        Operation("add", (Ref("array", 1), Ref("scalar", 0)), "<f4"),
        ROOT,
        Operation("add", (Ref("result", 1), Literal(0.0)), "<f4"),
        Operation("add", (Ref("result", 2), Ref("scalar", 1)), "<f4"),
        Operation("equal", (Ref("result", 3), Literal(0)), "|b1"),
        Operation("where", (Ref("result", 4), Literal(1.0), Ref("result", 3)), "<f4"),
        Operation("divide", (Ref("array", 0), Ref("result", 5)), "<f4"),
        Operation("multiply", (Ref("result", 6), Ref("scalar", 2)), "<f4"),
        Operation("minimum", (Ref("result", 7), Literal(3.0, "<f4")), "<f4"),
        Operation("where", (Ref("scalar", 3), Ref("array", 0), Ref("result", 8)), "<f4"),
    ),
    arrays=("<f4", "<f4"),
    scalars=("<f4", "<f4", "<f4", "|b1"),
    parts=(),
    stored=((Ref("result", 9), "<f4"), (Ref("result", 3), "<f4")),
    summed=(),
)


def run(function: Any, arrays: list[Any], outputs: list[Any], scalars: Any) -> list[bytes]:
    """Run a function of blocks, in blocks of five elements, and return the bytes of its results."""
    registers = [np.empty(5, dtype) for dtype in function.registers]
    function.run(0, len(arrays[0]), 5, arrays, outputs, [], scalars, registers, None)
    return [np.where(array == array, array, np.float32("nan")).tobytes() for array in outputs]


@pytest.mark.parametrize("aliases", [(None, None), (0, None), (1, 0), (None, 1)])
def test_every_way_of_running_a_kernel_gives_the_same_bits(aliases: Any) -> None:
    """Specialised or not, in blocks or in a loop, into new memory or over what it reads."""
    given = [np.repeat(HARD, len(HARD)), np.tile(HARD, len(HARD))]
    for numbers in itertools.product((0.0, -0.0, 1e-8), (0.0, -0.0, 1e-8), (1.0, 2.5, -0.5), (True, False)):
        scalars = [np.float32(number) for number in numbers[:3]] + [np.bool_(numbers[3])]
        # The choice must be known; all else is optional.
        plain = specialised(QUOTIENT, (None, None, None, bool(numbers[3])))
        expected = run(
            block_function(plain, (None, None)), given, [np.empty_like(given[0]) for _ in "uv"], scalars
        )
        facts = tuple(
            fact_function(dtype)(scalar) for dtype, scalar in zip(QUOTIENT.scalars, scalars, strict=True)
        )
        kernel = specialised(QUOTIENT, facts)
        for function in (block_function(kernel, aliases), fused_function(kernel, aliases)):
            if function is not None:
                arrays = [array.copy() for array in given]
                outputs = [np.empty_like(given[0]) if i is None else arrays[i] for i in aliases]
                assert run(function, arrays, outputs, scalars) == expected, (numbers, function.source)


def test_a_known_number_saves_operations() -> None:
    """A factor of 1, and a divisor that cannot be 0."""
    names = [operation.name for operation in specialised(QUOTIENT, (0, "+", 1, False)).operations]
    assert names == ["sqrt", "add", "divide", "minimum"]


def test_a_loop_computes_as_the_kernel_says() -> None:
    """Nothing lets the compiler round otherwise, and what is read is written in place."""
    source = loop_source(specialised(QUOTIENT, (0, "+", 1, False)), (0, None))
    assert '@numba.njit(nogil=True, error_model="numpy", cache=True)' in source
    assert "fastmath" not in source
    assert "a0[i] = " in source and "o1[i] = " in source and "o0" not in source


def test_a_missing_numba_is_told_once(monkeypatch: Any, capsys: Any) -> None:
    """With the way to get it."""
    monkeypatch.setattr(numba_source, "find_spec", lambda name: None)
    numba_source.has_numba.cache_clear()
    kernel = specialised(QUOTIENT, (0, "+", 1, False))
    assert [fused_function(kernel, (None, None)) for _ in range(2)] == [None, None]
    numba_source.has_numba.cache_clear()
    assert capsys.readouterr().err.count("pip install 'steps-core[numba]'") == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("size", [0, 1, 255, 256, 1000, FUSED + 3])
def test_sums_of_squares_are_right_at_any_size_of_number(dtype: str, size: int) -> None:
    """In every range, and mixed; NaN and infinity as in the plain sums."""
    xp = namespace_of(np.ones(1))
    summer = SquareSummer(norms, xp)
    far = 300 if dtype == "float64" else 35
    for exponents in ((0, 0), (far, far), (-far, -far), (-far, far), (0, far), (-far, 0)):
        powers = np.linspace(*exponents, size) if size else np.ones(0)
        array = (10.0**powers).astype(dtype)
        sums = norms.SquareSums(*summer.total([summer.of_block(array)], array.real.dtype))
        norm = norms.scaled_norm(xp, sums)
        exact = norms.scaled_norm(xp, norms.leaf_square_sums(xp, array))
        value, expected = (norms.plain_norm(xp, each) for each in (norm, exact))
        assert abs(value - expected) <= 4 * np.spacing(expected)
    for bad in (np.nan, np.inf):
        array = np.full(max(size, 300), bad, dtype)
        total = summer.total([summer.of_block(array)], array.real.dtype)
        assert str(norms.scaled_norm(xp, norms.SquareSums(*total)).root) == str(bad)


def test_both_threads_of_a_pass_may_be_the_first_to_need_a_loop(monkeypatch: Any, tmp_path: Path) -> None:
    """It is written once, and each gets it whole."""
    pytest.importorskip("numba")
    monkeypatch.setattr(numba_source, "_cache_folder", lambda: tmp_path)
    monkeypatch.setattr(numba_source, "_made", {})
    module_of, written = numba_source._module_of, []

    def slowly(source: str) -> Any:
        written.append(source)
        time.sleep(0.05)
        return module_of(source)

    monkeypatch.setattr(numba_source, "_module_of", slowly)
    array = np.full(100, 2.0, "float32")
    with ThreadPoolExecutor(8) as threads:
        sums = threads.map(lambda _: numba_source.square_sum()(array, 1e-9, 1e9), range(8))
    assert list(sums) == [400.0] * 8
    assert len(written) == len(list(tmp_path.glob("*.py"))) == 1


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_sums_of_units_are_right(axes: tuple[int, ...], scale: float) -> None:
    """Over leading, trailing and other axes."""
    xp = namespace_of(np.ones(1))
    array = (np.random.default_rng(0).normal(size=(5, 300, 3)) * scale).astype("float32")
    ours, plain = (
        norms.plain_norm(xp, norms.scaled_norm(xp, norms.SquareSums(*sums)))
        for sums in (SquareSummer(norms, xp).of_units(array, axes), norms.square_sums(xp, array, axes))
    )
    assert ours.shape == plain.shape
    assert np.all(np.abs(ours - plain) <= 4 * np.spacing(plain))


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (bool, "asks for the values"),
        (lambda x: x[x > 0], "asks for the values|indexes an array by values"),
        (lambda x: x + np.ones(8), "computes with a ndarray that is no array of this call"),
        (
            lambda x: x.__array_namespace__().cumulative_sum(x),
            "uses cumulative_sum, which cannot be",
        ),
    ],
    ids=["bool", "index", "foreign", "function"],
)
def test_what_cannot_be_recorded_is_refused(use: Any, says: str) -> None:
    """The text tells what it was."""
    with pytest.raises(TracingError, match=says):
        use(symbol("gradients", 0))
