"""Clipping by element, by leaf and over the whole tree."""

import math
from typing import Any

from steps_backends import HostArray, format_of, host_array

from ..case import case
from ..compare import all_zero, same_bits
from ..oracle import clipping as oracle
from ..oracle.samples import sample
from ..run import Run
from .judging import (
    ALL_DTYPES,
    REAL_DTYPES,
    exacts,
    like_tree,
    made,
    near,
    refuses_a_name,
)

VARIANTS = ("per-weight", "per-layer", "global", "per-weight-relative")
NAN, INF = math.nan, math.inf


def clipped(run: Run, gradients: Any, weights: Any = None, **options: Any) -> Any:
    """Return the gradients that a clipping step gives for trees of HostArrays."""
    step = run.step("GradientClippingStep", **options)
    result, _ = step.apply(made(run, gradients), made(run, weights))
    return result


def limits_each_element(run: Run, threshold: float, gradients: Any, ulps: float) -> None:
    """Require what the rule per-weight gives for a tree of HostArrays."""
    expected = like_tree(gradients, oracle.per_weight(exacts(gradients), threshold))
    near(run, clipped(run, gradients, variant="per-weight", threshold=threshold), expected, ulps)


@case("CLIP-OPTION-001")
def default_is_per_weight_with_one(run: Run) -> None:
    """No options at all."""
    result = clipped(run, host_array([-3.0, -1.0, 0.5, 2.0]))
    same_bits(run.read(result), host_array([-1.0, -1.0, 0.5, 1.0]))


@case("CLIP-OPTION-001")
def whole_number_is_a_number(run: Run) -> None:
    """The threshold 2, not 2.0."""
    same_bits(run.read(clipped(run, host_array([-3.0, 1.5]), threshold=2)), host_array([-2.0, 1.5]))


@case("CLIP-OPTION-002", each={"variant": ("per-weight", "per-weight-relative"), "dtype": REAL_DTYPES})
def old_and_new_spelling(run: Run, variant: str, dtype: str) -> None:
    """The two spellings on the same input."""
    gradients, weights = {"a": sample((3, 4), dtype, scale=4.0)}, {"a": sample((3, 4), dtype, seed=1)}
    other = variant.replace("weight", "parameter", 1)
    first = clipped(run, gradients, weights, variant=variant, threshold=0.25)
    second = clipped(run, gradients, weights, variant=other, threshold=0.25)
    same_bits(run.read(second), run.read(first))


@case("CLIP-OPTION-003", each={"variant": VARIANTS, "threshold": {"none": None, "infinite": INF}})
def no_limit_passes_everything(run: Run, variant: str, threshold: float | None) -> None:
    """NaN, infinities, zeros and huge numbers, without weights."""
    gradients = {"a": host_array([NAN, INF, -INF, 3e38, 0.0, -0.0]), "b": host_array([[1e-30, -2.5]])}
    same_bits(run.read(clipped(run, gradients, variant=variant, threshold=threshold)), gradients)


@case("CLIP-OPTION-004", each={"threshold": (0.0, 0.5)})
def no_variant_passes_everything(run: Run, threshold: float) -> None:
    """variant None with a threshold that would clip."""
    gradients = [host_array([NAN, INF, 7.0, -0.0])]
    same_bits(run.read(clipped(run, gradients, variant=None, threshold=threshold)), gradients)


REFUSED_NUMBERS: dict[str, tuple[str, Any, tuple[str, ...]]] = {
    "negative": ("ValueError", -1.0, ("-1.0", "float")),
    "negative-whole": ("ValueError", -2, ("-2", "int")),
    "nan": ("ValueError", NAN, ("nan", "float")),
    "minus-infinity": ("ValueError", -INF, ("-inf", "float")),
    "bool": ("TypeError", True, ("True", "bool")),
    "text": ("TypeError", "1.0", ("1.0", "str")),
    "list": ("TypeError", [1.0], ("1.0",)),
}


@case("CLIP-OPTION-005", each={"variant": VARIANTS, "value": REFUSED_NUMBERS})
def bad_threshold(run: Run, variant: str, value: tuple[str, Any, tuple[str, ...]]) -> None:
    """Each bad value, in each variant."""
    kind, given, saying = value
    run.refused(kind, "GradientClippingStep", variant=variant, threshold=given, saying=("threshold", *saying))


@case("CLIP-OPTION-007", each={"value": REFUSED_NUMBERS})
def bad_epsilon(run: Run, value: tuple[str, Any, tuple[str, ...]]) -> None:
    """Each bad value of epsilon."""
    kind, given, saying = value
    options = {"variant": "per-weight-relative", "epsilon": given}
    run.refused(kind, "GradientClippingStep", saying=("epsilon", *saying), **options)


@case("CLIP-OPTION-006", each={"option": ("variant", "treshold")})
def unknown_name(run: Run, option: str) -> None:
    """A variant that does not exist, and a misspelt option."""
    refuses_a_name(
        lambda: run.step("GradientClippingStep", **{option: "per-galaxy"}),
        "per-galaxy" if option == "variant" else option,
    )


@case(
    "CLIP-OPTION-008",
    each={
        "value": {
            "text": ("ValueError", "first"),
            "float": ("TypeError", 1.0),
            "bool": ("TypeError", True),
            "none": ("TypeError", None),
            "tuple-with-float": ("TypeError", (0, 1.5)),
        }
    },
)
def bad_unit_axis(run: Run, value: tuple[str, Any]) -> None:
    """Everything but auto, whole numbers and tuples of them."""
    kind, given = value
    options = {"variant": "per-weight-relative", "unit_axis": given}
    run.refused(kind, "GradientClippingStep", saying=("unit_axis",), **options)


@case("CLIP-OPTION-009", each={"variant": VARIANTS})
def state_is_an_empty_dict(run: Run, variant: str) -> None:
    """At the start and after a call."""
    tree = {"a": run.array([[3.0, 4.0], [1.0, 2.0]])}
    step = run.step("GradientClippingStep", variant=variant, threshold=0.5)
    first = step.init(tree)
    _, second = step.apply(tree, tree, first)
    assert first == {}, f"init gave {first!r}"
    assert second == {}, f"a call gave {second!r}"


@case("CLIP-OPTION-010", each={"variant": VARIANTS, "dtype": ALL_DTYPES})
def zero_threshold_gives_zeros(run: Run, variant: str, dtype: str) -> None:
    """Finite numbers, zeros, NaN and infinities."""
    gradients = {
        "finite": host_array([3.0, -4.0, 1e-5], dtype),
        "zero": host_array([0.0, -0.0], dtype),
        "bad": host_array([NAN, INF, -INF, 1.0], dtype),
    }
    weights = {name: host_array([1.0] * len(leaf.values), dtype) for name, leaf in gradients.items()}
    all_zero(run.read(clipped(run, gradients, weights, variant=variant, threshold=0.0)))


@case("CLIP-OPTION-010", each={"variant": VARIANTS})
def zero_threshold_on_zeros_alone(run: Run, variant: str) -> None:
    """A norm of 0 over a limit of 0."""
    gradients = [host_array([0.0, -0.0]), host_array(0.0)]
    result = clipped(run, gradients, gradients, variant=variant, threshold=0.0)
    all_zero(run.read(result))


@case("CLIP-OPTION-010", each={"variant": VARIANTS})
def zero_threshold_beside_none(run: Run, variant: str) -> None:
    """None passes."""
    gradients = {"none": None, "some": host_array([3.0, -4.0])}
    weights = {"none": host_array([1.0]), "some": host_array([1.0, 1.0])}
    result = run.read(clipped(run, gradients, weights, variant=variant, threshold=0.0))
    assert result["none"] is None, f"expected None, got {result['none']}"
    all_zero(result["some"])


@case("CLIP-OPTION-011", each={"variant": VARIANTS, "shape": ((0,), (0, 3), (2, 0, 3))})
def empty_leaf(run: Run, variant: str, shape: tuple[int, ...]) -> None:
    """Beside a leaf that is clipped as if alone."""
    gradients = {"empty": HostArray("float32", shape, ()), "full": host_array([3.0, 4.0])}
    options = {"variant": variant, "threshold": 0.5}
    alone = clipped(run, gradients["full"], gradients["full"], **options)
    both = clipped(run, gradients, gradients, **options)
    same_bits(run.read(both), {"empty": gradients["empty"], "full": run.read(alone)})


@case("CLIP-OPTION-011", each={"unit_axis": (0, 1, -1), "shape": ((0, 3), (2, 0, 3), (2, 3, 0, 2))})
def empty_units(run: Run, unit_axis: int, shape: tuple[int, ...]) -> None:
    """Units that have no elements, and no units at all."""
    gradients = [HostArray("float32", shape, ())]
    result = clipped(run, gradients, gradients, variant="per-weight-relative", unit_axis=unit_axis)
    same_bits(run.read(result), gradients)


@case("CLIP-WEIGHT-001", each={"dtype": REAL_DTYPES})
def elements_stop_at_the_limit(run: Run, dtype: str) -> None:
    """Inside, on the border and outside, with a threshold that every dtype holds."""
    gradients = {
        "a": host_array([[-8.0, -1.5, -1.25], [0.5, 1.5, 1.75]], dtype),
        "b": host_array(-2.0, dtype),
    }
    expected = {"a": host_array([[-1.5, -1.5, -1.25], [0.5, 1.5, 1.5]], dtype), "b": host_array(-1.5, dtype)}
    same_bits(run.read(clipped(run, gradients, variant="per-weight", threshold=1.5)), expected)


@case("CLIP-WEIGHT-001", each={"dtype": REAL_DTYPES, "threshold": (0.1, 1e-3, 300.7)})
def threshold_between_numbers_of_the_dtype(run: Run, dtype: str, threshold: float) -> None:
    """A threshold that must be rounded."""
    gradients = {"a": sample((6,), dtype, seed=3, scale=1000.0), "b": host_array([0.0], dtype)}
    limits_each_element(run, threshold, gradients, 1)


@case("CLIP-WEIGHT-002", each={"dtype": ("complex64", "complex128")})
def complex_elements_stop_at_the_modulus(run: Run, dtype: str) -> None:
    """Moduli on both sides of the threshold."""
    gradients = {"a": sample((40,), dtype, seed=5, scale=4.0), "b": host_array([[3 + 4j, 0j, -1j]], dtype)}
    limits_each_element(run, 1.5, gradients, 4)


@case("CLIP-WEIGHT-002", each={"dtype": ("complex64", "complex128")})
def complex_elements_inside_are_kept(run: Run, dtype: str) -> None:
    """3 + 4j has modulus 5: inside of 5, as are smaller ones."""
    gradients = host_array([3 + 4j, -3 - 4j, 0.25 + 1j, complex(-0.0, 0.0), 5j], dtype)
    same_bits(run.read(clipped(run, gradients, variant="per-weight", threshold=5.0)), gradients)


@case("CLIP-WEIGHT-003", each={"dtype": REAL_DTYPES})
def nan_and_infinity_by_element(run: Run, dtype: str) -> None:
    """In one leaf with finite neighbours."""
    gradients = host_array([NAN, INF, -INF, 3.0, 0.25], dtype)
    expected = host_array([NAN, 0.5, -0.5, 0.5, 0.25], dtype)
    same_bits(run.read(clipped(run, gradients, variant="per-weight", threshold=0.5)), expected)


@case("CLIP-WEIGHT-004", each={"dtype": REAL_DTYPES})
def signed_zeros(run: Run, dtype: str) -> None:
    """Both zeros."""
    gradients = host_array([0.0, -0.0], dtype)
    same_bits(run.read(clipped(run, gradients, variant="per-weight", threshold=0.5)), gradients)


COMPLEX_EXTREMES = {
    "large": ([1e30 + 1e30j, -3e25 + 4e25j], 1.0),
    "small": ([1e-30 - 1e-30j, 3e-28j], 1e-31),
    "modulus-overflows": ([3e38 + 3e38j, -3e38 - 1e38j], 2.0),
    "huge-threshold": ([3e38 + 3e38j], 3e38),
    "mixed": ([1e30 + 1e-5j, 1e-30 + 1e10j], 1e3),
}


@case("CLIP-WEIGHT-005", each={"values": COMPLEX_EXTREMES}, dtypes=("complex64",))
def extreme_moduli(run: Run, values: tuple[list[complex], float]) -> None:
    """Parts whose squares leave the range of float32."""
    parts, threshold = values
    limits_each_element(run, threshold, host_array(parts, "complex64"), 4)


BEYOND = {"float16": 1e6, "bfloat16": 1e39, "float32": 1e39}


@case("CLIP-WEIGHT-006", each={"dtype": BEYOND.keys()})
def threshold_beyond_the_range(run: Run, dtype: str) -> None:
    """The largest number of the dtype is still inside."""
    gradients = host_array([format_of(dtype).largest, -format_of(dtype).largest, 1.0], dtype)
    same_bits(run.read(clipped(run, gradients, variant="per-weight", threshold=BEYOND[dtype])), gradients)
