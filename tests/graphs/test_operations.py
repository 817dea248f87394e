"""The operations of graphs: on every library and dtype, against NumPy in doubles."""

import math
from typing import Any

import numpy as np
import pytest
from comparing import assert_same_bits, assert_within_ulps
from libraries import COMPLEX, NARROW, Library, numpy_array

from steps_core import CustomStep, Graph, LeafTypeError, StepsError, graph, graphs
from steps_core.graphs.arithmetic import ELEMENTWISE
from steps_core.graphs.operations import OPERATIONS

X = [[1.5, -2.0, 0.25], [-0.5, 3.0, 0.0]]
Y = [[2.0, 0.5, -4.0], [1.25, -3.0, 8.0]]

# (what the graph computes, the same in NumPy): x and y of one leaf.
RULES: dict[str, tuple[Any, Any]] = {
    "add": (lambda x, y: x + y, lambda x, y: x + y),
    "add a number": (lambda x, y: 2 + x, lambda x, y: 2 + x),
    "subtract": (lambda x, y: x - y, lambda x, y: x - y),
    "subtract from a number": (lambda x, y: 1 - x, lambda x, y: 1 - x),
    "multiply": (lambda x, y: x * y, lambda x, y: x * y),
    "multiply by a number": (lambda x, y: x * 0.3, lambda x, y: x * 0.3),
    "divide": (lambda x, y: x / y, lambda x, y: x / y),
    "divide by a number": (lambda x, y: x / 3, lambda x, y: x / 3),
    "divide a number": (lambda x, y: 3 / y, lambda x, y: 3 / y),
    "power": (lambda x, y: abs(x) ** 1.5, lambda x, y: np.abs(x) ** 1.5),
    "power of a number": (lambda x, y: 2**x, lambda x, y: 2**x),
    "negative": (lambda x, y: -x, lambda x, y: -x),
    "abs": (lambda x, y: abs(x), lambda x, y: np.abs(x)),
    "sign": (lambda x, y: graphs.sign(x), lambda x, y: np.sign(x)),
    "square": (lambda x, y: graphs.square(x), lambda x, y: x * x),
    "sqrt": (lambda x, y: graphs.sqrt(abs(x)), lambda x, y: np.sqrt(np.abs(x))),
    "exp": (lambda x, y: graphs.exp(x), lambda x, y: np.exp(x)),
    "log": (lambda x, y: graphs.log(abs(y)), lambda x, y: np.log(np.abs(y))),
    "minimum": (lambda x, y: graphs.minimum(x, y), lambda x, y: np.minimum(x, y)),
    "minimum with a number": (lambda x, y: graphs.minimum(0.5, x), lambda x, y: np.minimum(x, 0.5)),
    "maximum": (lambda x, y: graphs.maximum(x, y), lambda x, y: np.maximum(x, y)),
    "maximum with a number": (lambda x, y: graphs.maximum(x, 0.5), lambda x, y: np.maximum(x, 0.5)),
    "clip": (lambda x, y: graphs.clip(x, -1, 1.25), lambda x, y: np.clip(x, -1, 1.25)),
    "clip between trees": (
        lambda x, y: graphs.clip(x, -abs(y), abs(y)),
        lambda x, y: np.clip(x, -np.abs(y), np.abs(y)),
    ),
    "where less": (lambda x, y: graphs.where(x < y, x, y), lambda x, y: np.where(x < y, x, y)),
    "where less_equal": (lambda x, y: graphs.where(x <= 0.25, 1, x), lambda x, y: np.where(x <= 0.25, 1, x)),
    "where greater": (lambda x, y: graphs.where(x > 0, 1.0, -1.0), lambda x, y: np.where(x > 0, 1.0, -1.0)),
    "where greater_equal": (lambda x, y: graphs.where(x <= 0, x, 7), lambda x, y: np.where(x <= 0, x, 7)),
    "where isfinite": (
        lambda x, y: graphs.where(graphs.isfinite(1 / x), x, 9.0),
        lambda x, y: np.where(x != 0, x, 9.0),
    ),
    "where logical_and": (
        lambda x, y: graphs.where((x > 0) & (y > 0), x, y),
        lambda x, y: np.where((x > 0) & (y > 0), x, y),
    ),
    "where logical_or": (
        lambda x, y: graphs.where((x > 0) | (y > 0), x, y),
        lambda x, y: np.where((x > 0) | (y > 0), x, y),
    ),
    "where logical_not": (
        lambda x, y: graphs.where(~(x > 0), x, y),
        lambda x, y: np.where(x > 0, y, x),
    ),
    "where on a scalar": (
        lambda x, y: graphs.where(graphs.norm(x) > 1, x, y),
        lambda x, y: x if np.linalg.norm(x) > 1 else y,
    ),
    "norm": (lambda x, y: x * graphs.norm(x), lambda x, y: x * np.linalg.norm(x)),
    "norm 1": (lambda x, y: x * graphs.norm(x, order=1), lambda x, y: x * np.abs(x).sum()),
    "norm infinity": (lambda x, y: x * graphs.norm(x, order=math.inf), lambda x, y: x * np.abs(x).max()),
    "norm over leaf": (lambda x, y: x * graphs.norm(x, over="leaf"), lambda x, y: x * np.linalg.norm(x)),
    "norm over unit": (
        lambda x, y: x * graphs.norm(x, over="unit"),
        lambda x, y: x * np.linalg.norm(x, axis=0, keepdims=True),
    ),
    "norm over rows": (
        lambda x, y: x * graphs.norm(x, over="unit", order=1, unit_axis=0),
        lambda x, y: x * np.abs(x).sum(axis=1, keepdims=True),
    ),
    "largest over rows": (
        lambda x, y: x * graphs.norm(x, over="unit", order=math.inf, unit_axis=0),
        lambda x, y: x * np.abs(x).max(axis=1, keepdims=True),
    ),
    "sum over leaf": (lambda x, y: x * graphs.sum(x, over="leaf"), lambda x, y: x * x.sum()),
    "sum over unit": (lambda x, y: x - graphs.sum(x, over="unit"), lambda x, y: x - x.sum(axis=0)),
    "mean over leaf": (lambda x, y: x - graphs.mean(x, over="leaf"), lambda x, y: x - x.mean()),
    "mean over unit": (lambda x, y: x * graphs.mean(x, over="unit"), lambda x, y: x * x.mean(axis=0)),
    "sum": (lambda x, y: x * graphs.sum(abs(x)), lambda x, y: x * np.abs(x).sum()),
    "mean": (lambda x, y: x * graphs.mean(abs(x)), lambda x, y: x * np.abs(x).mean()),
    "scalars": (
        lambda x, y: x * (1 / (2 + graphs.norm(x)) - graphs.minimum(graphs.mean(abs(y)), 0.5)),
        lambda x, y: x * (1 / (2 + np.linalg.norm(x)) - min(np.abs(y).mean(), 0.5)),
    ),
}


def test_every_operation_has_a_rule_here() -> None:
    """Those on packets have their own file."""
    named = {word for name in RULES for word in name.split()}
    assert {name for name in OPERATIONS if "streams" not in name} <= named
    assert set(ELEMENTWISE) <= named


@pytest.mark.parametrize("name", RULES)
def test_an_operation_is_right(kind: tuple[Library, str], name: str) -> None:
    """Within a few ulps of the working precision; a narrow result is rounded once."""
    library, dtype = kind
    traced, rule = RULES[name]
    parts = [np.asarray(X), np.asarray(Y)]
    if dtype in COMPLEX:
        parts = [parts[0] * (1 + 0.5j), parts[1] * (0.5 - 1j)]
    x, y = (numpy_array(part, dtype) for part in parts)
    with_both = graph(negates=False)(lambda x, y: traced(x, y) + 0.0 * (x + y))
    step = CustomStep(with_both)
    arguments = library.array(x, dtype), library.array(y, dtype)
    if dtype in COMPLEX and not _takes_complex(name):
        with pytest.raises(LeafTypeError, match=r"must be real in .*, because complex numbers have no order"):
            step(*arguments)
        return
    wide = np.complex128 if dtype in COMPLEX else np.float64
    with np.errstate(all="ignore"):
        expected = np.broadcast_to(rule(x.astype(wide), y.astype(wide)), x.shape)
    # A reciprocal, a product, a sum: each rounds; cancellation is measured against what cancels.
    result = library.read(step(*arguments).gradients)
    if dtype in NARROW:
        assert_within_ulps(result, expected, 0.51)
    else:
        unit = np.finfo(dtype).eps
        np.testing.assert_allclose(result, expected, rtol=8 * unit, atol=16 * unit)


def _takes_complex(name: str) -> bool:
    order = ("minimum", "maximum", "clip", "where less", "where greater", "logical")
    return not any(word in name for word in order) or name in ("scalars", "where on a scalar")


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_a_sum_over_a_tree_of_complex_leaves_is_refused(name: str) -> None:
    """It says which leaf."""
    rule = getattr(graphs, name)
    step = CustomStep(graph(lambda g: g * rule(g)))
    with pytest.raises(LeafTypeError, match=rf"gradients\['a'\] must be real in {name} over the tree"):
        step({"a": np.asarray([1j])})


def divided_by(name: str, over: str = "tree") -> Graph:
    """Return the graph of g / reduction(g)."""
    return graph(lambda g: g / getattr(graphs, name)(g, over=over))


def with_reduction(name: str, over: str) -> Graph:
    """Return the graph of g + reduction(g)."""
    return graph(lambda g: g + getattr(graphs, name)(g, over=over))


def rule_of_two(rule: Any) -> Any:
    """Return a function to trace that applies a rule to gradients and weights."""
    return lambda g, w: rule(g, w)


def rule_with_two(rule: Any) -> Any:
    """Return a function to trace that applies a rule to 2 and gradients."""
    return lambda g: rule(2.0, g)


def test_a_tree_of_many_kinds_is_reduced_once(library: Library) -> None:
    """Dtypes and shapes mix; None and empty leaves count nothing."""
    leaves = [library.array([3.0], "float32"), None, library.array([[4.0], [12.0]]), library.array([])]
    if "float64" in library.dtypes:
        leaves.append(library.array(84.0, "float64"))
    values = np.asarray([3.0, 4.0, 12.0, 84.0])[: 4 if "float64" in library.dtypes else 3]
    expected = {"norm": np.sqrt((values**2).sum()), "sum": values.sum(), "mean": values.mean()}
    for name, size in expected.items():
        step = CustomStep(divided_by(name))
        result = step(leaves).gradients
        assert result[1] is None
        assert library.read(result[0]).dtype == "float32"
        np.testing.assert_allclose(library.read(result[0]), [3 / size], rtol=3e-7)
        assert result[3].shape == (0,)


def test_reductions_over_nothing_are_zero(library: Library) -> None:
    """A tree without arrays, one of None, and an empty leaf."""
    step = CustomStep(graph(lambda g: g + graphs.norm(g) + graphs.sum(g) + graphs.mean(g)))
    assert step({}).gradients == {}
    assert step([None]).gradients == [None]
    empty = library.array(np.zeros((0, 3)))
    for name in ("norm", "sum", "mean"):
        for over in ("tree", "leaf", "unit"):
            step = CustomStep(with_reduction(name, over))
            assert step(empty).gradients.shape == (0, 3)
    other = graph(lambda g: g + graphs.norm(g, over="leaf", order=math.inf))
    assert CustomStep(other)(empty).gradients.shape == (0, 3)


@pytest.mark.parametrize("size", [1e-30, 1e30, 3e38, 1e-38])
def test_a_norm_is_right_over_the_whole_range(library: Library, size: float) -> None:
    """Where squares overflow or underflow; a division by a huge norm does not lose the quotient."""
    if library.name == "jax" and size < 1e-37:
        pytest.skip("jax flushes what is near the smallest normal number")
    x = library.array([size, 0.0, 0.0])
    for over in ("tree", "leaf", "unit"):
        step = CustomStep(divided_by("norm", over))
        assert_within_ulps(library.read(step(x).gradients), [1.0, 0.0, 0.0], 4)
    assert library.read(CustomStep(graph(lambda g: g / size))(x).gradients)[0] == pytest.approx(1.0, 1e-6)
    mean = library.read(CustomStep(graph(lambda g: g * 0.0 + graphs.mean(g)))(x).gradients)
    np.testing.assert_allclose(mean, [size / 3] * 3, rtol=1e-6)


def test_nan_goes_through_minimum_maximum_sign_and_clip(library: Library) -> None:
    """On either side."""
    x = library.array([np.nan, 1.0, np.nan])
    y = library.array([1.0, np.nan, np.nan])
    for name in ("minimum", "maximum"):
        rule = getattr(graphs, name)
        step = CustomStep(graph(rule_of_two(rule)))
        assert np.isnan(library.read(step(x, y).gradients)).all()
        step = CustomStep(graph(rule_with_two(rule)))
        assert np.isnan(library.read(step(x).gradients)).tolist() == [True, False, True]
    signs = CustomStep(graph(lambda g: graphs.sign(graphs.clip(g, -2, 2))))(x).gradients
    assert_same_bits(library.read(signs), np.asarray([np.nan, 1.0, np.nan], "float32"))


def test_signs_of_zeros_stay(library: Library) -> None:
    """sign(-0.0) is -0.0."""
    signs = CustomStep(graph(lambda g: graphs.sign(g)))(library.array([0.0, -0.0])).gradients
    assert_same_bits(library.read(signs), np.asarray([0.0, -0.0], "float32"))


def test_numbers_are_computed_as_doubles(library: Library) -> None:
    """1 - (1 - 2^-40) is 2^-40, which float32 would lose."""
    step = CustomStep(graph(lambda g, *, decay=1 - 2.0**-40: g * (1 - decay)))
    assert library.read(step(library.array([2.0**20])).gradients).tolist() == [2.0**-20]


NUMBERS = {
    "divide": (lambda a: 1 / a, 0.0, "division by zero"),
    "sqrt": (lambda a: graphs.sqrt(a), -1.0, "math domain error"),
    "log": (lambda a: graphs.log(a), 0.0, "math domain error"),
    "exp": (lambda a: graphs.exp(a), 1e6, "math range error"),
    "power": (lambda a: a**0.5, -2.0, "math domain error"),
    "subtract": (lambda a: a - a, math.inf, None),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_cannot_be_computed_is_refused(name: str) -> None:
    """Naming the node, when the hyper-parameter gets its value."""
    traced, bad, reason = NUMBERS[name]
    good = graph(lambda g, *, a=1.0: g * traced(a))
    rule = "be a number other than NaN" if reason is None else rf"have a finite result \(.*{reason}"
    message = rf"node '{name}': {name}\(.*\) must {rule}"
    with pytest.raises(StepsError, match=message):
        CustomStep(good, a=bad)


def test_derivatives_are_finite_at_zero() -> None:
    """Of a square root and of norms."""
    torch = pytest.importorskip("torch")
    step = CustomStep(
        graph(lambda g: graphs.sqrt(g) + graphs.norm(g) * g + graphs.norm(g, over="unit") + abs(g))
    )
    gradients = torch.zeros((2, 3), requires_grad=True)
    step(gradients).gradients.sum().backward()
    assert torch.isfinite(gradients.grad).all()


def test_weights_are_constants_for_derivatives() -> None:
    """And gradients are not."""
    torch = pytest.importorskip("torch")
    gradients, weights = (torch.asarray([2.0], requires_grad=True) for _ in range(2))
    CustomStep(graph(lambda g, w: g * w))(gradients, weights).gradients.sum().backward()
    assert gradients.grad.tolist() == [2.0]
    assert weights.grad is None
