"""Adding updates to weights."""

import math
from functools import partial
from typing import Any

from steps_backends import HostArray, host_array

from ..case import case
from ..compare import same_bits, same_kind
from ..oracle.exact import exact
from ..oracle.samples import sample
from ..run import Run
from .judging import ALL_DTYPES, REAL_DTYPES, made, near

NEEDS = ("apply_updates",)


def adds(run: Run, weight: HostArray, update: HostArray) -> None:
    """Require the exact sum, rounded once."""
    result = run.apply_updates(made(run, [weight]), made(run, [update]))
    near(run, result, [exact(weight).map(lambda w, u: w + u, exact(update))], 0.502, narrow=0.502)
    got = run.read(result)[0].dtype
    assert got == weight.dtype, f"expected {weight.dtype}, got {got}"


@case("UPDATE-001", each={"dtype": ALL_DTYPES}, needs=NEEDS)
def sums_of_one_dtype(run: Run, dtype: str) -> None:
    """Updates of several sizes."""
    for scale in (1.0, 1e-3):
        adds(run, sample((40,), dtype), sample((40,), dtype, seed=1, scale=scale))


@case("UPDATE-001", each={"weights_dtype": REAL_DTYPES, "update_dtype": REAL_DTYPES}, needs=NEEDS)
def sums_of_two_dtypes(run: Run, weights_dtype: str, update_dtype: str) -> None:
    """An update that is not rounded to the weight's dtype before it is added."""
    adds(run, sample((40,), weights_dtype), sample((40,), update_dtype, seed=1))


@case("UPDATE-001", needs=NEEDS, dtypes=("float16",))
def half_an_ulp_and_a_little(run: Run) -> None:
    """1 + 2^-11 is a tie in float16; a little more in float32 decides it."""
    little = 2.0**-11 * (1 + 2.0**-10)
    result = run.apply_updates(run.array([1.0, 1.0], "float16"), run.array([little, 2.0**-11]))
    same_bits(run.read(result), host_array([1 + 2.0**-10, 1.0], "float16"))


@case("UPDATE-001", needs=NEEDS)
def not_finite(run: Run) -> None:
    """NaN and infinities add as they are, and the largest sum overflows."""
    weights, updates = [1.0, 1.0, -math.inf, 3e38], [math.nan, math.inf, math.inf, 3e38]
    result = run.read(run.apply_updates(run.array(weights), run.array(updates)))
    same_bits(result, host_array([math.nan, math.inf, math.nan, math.inf]))


@case("UPDATE-002", each={"dtype": ALL_DTYPES}, needs=NEEDS)
def kind_of_the_weights(run: Run, dtype: str) -> None:
    """Several ranks and containers."""
    tree = {"a": sample((2, 3), dtype), "b": [sample((), dtype), (HostArray(dtype, (0,), ()),)]}
    weights = made(run, tree)
    same_kind(run.backend, run.apply_updates(weights, made(run, tree)), weights)


@case("UPDATE-003", each={"dtype": ALL_DTYPES}, needs=NEEDS)
def no_update(run: Run, dtype: str) -> None:
    """Beside a weight that moves."""
    frozen = host_array([math.nan, -0.0, 0.1], dtype)
    weights, updates = (
        {"a": host_array([1.0], dtype), "b": frozen},
        {"a": host_array([2.0], dtype), "b": None},
    )
    result = run.read(run.apply_updates(made(run, weights), made(run, updates)))
    same_bits(result, {"a": host_array([3.0], dtype), "b": frozen})


@case("UPDATE-003", each={"tree": {"dict": {}, "list": [], "none-inside": {"a": None}}}, needs=NEEDS)
def no_arrays(run: Run, tree: Any) -> None:
    """Nothing to add."""
    result = run.apply_updates(tree, tree)
    assert result == tree, f"expected {tree}, got {result}"


@case("UPDATE-004", each={"dtype": ALL_DTYPES}, needs=NEEDS, in_process=True)
def inputs_stay(run: Run, dtype: str) -> None:
    """Read before and after."""
    weights, updates = [sample((5,), dtype)], [sample((5,), dtype, seed=1)]
    given, added = made(run, weights), made(run, updates)
    run.apply_updates(given, added)
    same_bits(run.read(given), weights, path="weights")
    same_bits(run.read(added), updates, path="updates")


@case("UPDATE-005", each={"shape": ((2,), (), (1,), (3, 1))}, needs=NEEDS)
def other_shape(run: Run, shape: tuple[int, ...]) -> None:
    """Shapes that could be broadcast, and one that could not."""
    weights = made(run, {"layer1": {"bias": sample((3,))}})
    updates = made(run, {"layer1": {"bias": sample(shape)}})
    saying = ("['layer1']['bias']", "(3,)", str(shape))
    run.refuses(lambda: run.apply_updates(weights, updates), kind="ValueError", saying=saying)


@case("UPDATE-005", needs=NEEDS)
def other_structure(run: Run) -> None:
    """An entry too few, and None for a subtree."""
    leaf = run.array([1.0])
    for updates in ({"layer1": {"kernel": leaf}}, {"layer1": None}):
        weights = {"layer1": {"kernel": leaf, "bias": leaf}}
        run.refuses(
            partial(run.apply_updates, weights, updates),
            kind="ValueError",
            saying=("['layer1']",),
        )


@case("UPDATE-005", each={"where": ("weights", "updates")}, needs=NEEDS)
def other_leaves(run: Run, where: str) -> None:
    """Whole numbers, and no array at all."""
    for bad in (run.array([1], "int32"), 1.0, "0.1"):
        trees = {"weights": {"a": run.array([1.0])}, "updates": {"a": run.array([1.0])}} | {where: {"a": bad}}
        run.refuses(
            partial(run.apply_updates, trees["weights"], trees["updates"]),
            kind="TypeError",
            saying=(f"{where}['a']",),
        )


@case("UPDATE-005", needs=NEEDS, dtypes=("complex64",))
def complex_update_of_a_real_weight(run: Run) -> None:
    """The imaginary part has no place."""
    weights, updates = {"a": run.array([1.0])}, {"a": run.array([1j], "complex64")}
    run.refuses(lambda: run.apply_updates(weights, updates), kind="TypeError", saying=("['a']",))
