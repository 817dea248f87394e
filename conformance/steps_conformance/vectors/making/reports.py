"""Vectors from public reports about other libraries: the input of the report, and the right result."""

import math
from typing import Any

from steps_backends import HostArray, host_array

from ...containers import mapped
from ...descriptions import chain, description, schedule
from ...oracle import adam as adam_oracle
from ...oracle import clipping as clipping_oracle
from ...oracle import schedules
from ...oracle.exact import exact, number
from ...oracle.samples import graded, sample
from ..model import Expected, Vector, VectorCall
from .clipping import call, clip
from .every_kind import same
from .limits import limited_as_one
from .optimizing import expected_state, run_of, steady
from .sheet import Sheet, expect, whole

NAN, INF = math.nan, math.inf

# Requirement, name, the gradients, the threshold, what it shows, where it comes from.
_JOINT: tuple[tuple[str, str, Any, float, str, str], ...] = (
    (
        "CLIP-GLOBAL-004", "fp16-300", host_array([300.0], "float16"), 1.0,
        "300 becomes 1", "tracel-ai/burn#5699",
    ),
    (
        "CLIP-GLOBAL-004", "fp16-norm-5000", host_array([3000.0, 4000.0], "float16"), 1.0,
        "a norm whose square leaves float16", "facebookresearch/fairscale#263",
    ),
    (
        "CLIP-GLOBAL-011", "bf16-1000-in-one-leaf", host_array([1.0] * 1000, "bfloat16"), 1.0,
        "as a thousand leaves of one element", "pytorch/pytorch#194033",
    ),
    (
        "CLIP-GLOBAL-011", "bf16-5120-ones", host_array([1.0] * 5120, "bfloat16"), 1.0,
        "a sum that stalls at 256 in bfloat16", "pytorch/pytorch#92164",
    ),
    (
        "CLIP-GLOBAL-001", "two-groups",
        {"group1": [host_array([3.0, 4.0])], "group2": [host_array([6.0, 8.0])]}, 1.0,
        "one norm over all groups", "huggingface/transformers#614",
    ),
    (
        "CLIP-GLOBAL-002", "probe-2x1e-30", host_array([1e-30, 1e-30]), 1.0,
        "a norm that is not 0, and below the limit", "five libraries compared",
    ),
    (
        "CLIP-GLOBAL-008", "probe-nan", [host_array([NAN, 1.0]), host_array([3.0, 4.0])], 1.0,
        "a NaN is seen everywhere", "facebookresearch/habitat-lab#2229",
    ),
    (
        "CLIP-GLOBAL-009", "probe-inf", [host_array([INF, 1.0]), host_array([3.0, 4.0])], 1.0,
        "an infinity leaves no finite element", "pytorch/pytorch#46849",
    ),
    (
        "CLIP-OPTION-010", "probe-zero-threshold", host_array([3.0, 4.0]), 0.0,
        "threshold 0 gives zeros", "tensorflow/tensorflow#33929",
    ),
    (
        "CLIP-OPTION-011", "probe-only-empty", [HostArray("float32", (0,), ())], 1.0,
        "nothing but an empty leaf", "five libraries compared",
    ),
    (
        "CLIP-GLOBAL-003", "probe-norm-is-threshold", host_array([3.0, 4.0]), 5.0,
        "a norm equal to the threshold changes nothing", "ml-explore/mlx, pytorch: plus 1e-6",
    ),
)  # fmt: skip


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    for requirement, name, tree, threshold, shows, source in _JOINT:
        one = VectorCall(tree, None, limited_as_one(tree, threshold))
        sheet.add(requirement, name, shows, clip("global", threshold), [one], source=source)
    _by_layer(sheet)
    _elements_and_units(sheet)
    _orders(sheet)
    _moments(sheet)
    _skipping(sheet)
    _exclusion(sheet)
    return sheet.listed()


def _by_layer(sheet: Sheet) -> None:
    groups = {"group1": [host_array([3.0, 4.0])], "group2": [host_array([6.0, 8.0])]}
    one = call("per-layer", 1.0, groups)
    shows = "each leaf by its own norm: the other meaning of clipnorm"
    source = "tensorflow/tensorflow#29108"
    sheet.add("CLIP-LAYER-001", "two-groups", shows, clip("per-layer", 1.0), [one], source=source)
    for label, bad in (("nan", NAN), ("inf", INF)):
        leaf, other = host_array([bad, 1.0]), host_array([3.0, 4.0])
        wanted = [limited_as_one(leaf, 1.0), limited_as_one(other, 1.0)]
        one = VectorCall([leaf, other], None, wanted)
        shows, source = "the other leaf is clipped as if alone", "facebookresearch/habitat-lab#2229"
        sheet.add("CLIP-LAYER-005", f"probe-{label}", shows, clip("per-layer", 1.0), [one], source=source)
    unseen = host_array([1e30, 1e30])
    one = call("per-layer", 1.0, unseen)
    shows, source = "finite elements whose norm overflows are not zeroed", "keras-team/keras#14075"
    sheet.add("CLIP-LAYER-004", "2x1e30", shows, clip("per-layer", 1.0), [one], source=source)


def _elements_and_units(sheet: Sheet) -> None:
    half = host_array([60000.0, -1.0], "float16")
    one = VectorCall(half, None, same(half))
    source = "pytorch/pytorch: clip_grad_value_"
    shows = "a limit of 1e6 is no number of float16"
    sheet.add("CLIP-WEIGHT-006", "fp16-to-1e6", shows, clip("per-weight", 1e6), [one], source=source)
    empty = VectorCall([], None, [])
    shows, source = "a model without gradients", "pytorch/pytorch#35753"
    sheet.add("TREE-006", "value-clip-of-nothing", shows, clip("per-weight", 1.0), [empty], source=source)
    shape = (1, 2, 1, 2, 1, 3)
    one = call("per-weight-relative", 0.01, graded(shape), graded(shape, seed=5))
    shows, source = "rank 6 has units of its last axis, like rank 5", "google-deepmind/optax#1576"
    step = clip("per-weight-relative", 0.01)
    sheet.add("CLIP-REL-004", "rank-6", shows, step, [one], source=source)


def _orders(sheet: Sheet) -> None:
    """Steps run in the order in which they are written, and each does one thing."""
    scaled = host_array([3.0 * 1024, -4.0 * 1024])
    unscale = description("ScalingStep", scale=2.0**-10)
    wanted = exact(scaled).map(lambda g: g / number(5 * 1024))
    one = VectorCall(scaled, None, expect(scaled, wanted, wide=6))
    step = chain(unscale, clip("global", 1.0))
    shows, source = "the loss scale goes before the clip", "Lightning-AI/pytorch-lightning#9606"
    sheet.add("CHAIN-001", "unscale-then-clip", shows, step, [one], source=source)
    leaf = host_array([3.0, 0.5])
    limited = clipping_oracle.per_weight([exact(leaf)], 1.0)
    (joint,) = clipping_oracle.global_norm(limited, 0.5)
    one = VectorCall(leaf, None, expect(leaf, joint, wide=4))
    step = chain(clip("per-weight", 1.0), clip("global", 0.5))
    shows, source = "two clips are two steps, and both are asked for", "unslothai/unsloth-zoo#662"
    sheet.add("CHAIN-001", "value-then-norm", shows, step, [one], source=source)
    zero, weight = host_array([0.0, 0.0]), host_array([2.0, -4.0])
    decayed = exact(weight).map(lambda w: -number(0.125) * number(0.25) * w)
    one = VectorCall(zero, weight, expect(zero, decayed, wide=8))
    step = chain(clip("global", 1e-6), description("AdamStep", learning_rate=0.125, weight_decay=0.25))
    shows, source = "decoupled decay is outside of the clip", "google-deepmind/optax#364"
    sheet.add("CHAIN-001", "decay-outside-the-clip", shows, step, [one], source=source)


def _moments(sheet: Sheet) -> None:
    complex_one = host_array([3 + 4j], "complex64")
    wanted = exact(complex_one).map(lambda g: -g / abs(g))
    one = VectorCall(complex_one, None, expect(complex_one, wanted, wide=12))
    step = description("AdamStep", learning_rate=1.0, epsilon=0.0)
    shows, source = "the phase of the gradient, not of its parts", "pytorch/pytorch#59998"
    sheet.add("ADAM-007", "3-4", shows, step, [one], source=source)
    gradients = steady(3, "float32", seed=111)
    steps = adam_oracle.adam([exact(g) for g in gradients])
    calls = [
        VectorCall(
            gradient,
            None,
            expect(gradient, steps.updates[count], wide=8),
            expected_state(gradient, steps.states[count], count + 1, 8),
        )
        for count, gradient in enumerate(gradients)
    ]
    weights = sample((4,), "bfloat16", seed=112)
    shows, source = "moments of bfloat16 weights are float32 in each call", "google-deepmind/optax#1038"
    sheet.add(
        "ADAM-013",
        "bf16-weights-f32-gradients",
        shows,
        description("AdamStep"),
        calls,
        source=source,
        init=weights,
    )
    for beta2 in (0.999, 0.9999):
        narrow = steady(3, "bfloat16", seed=113)
        steps = adam_oracle.adam([exact(g) for g in narrow], beta2=beta2)
        calls = run_of(narrow, None, steps, ulps=8, counts=True)
        shows, source = "beta2 is no bfloat16, which would make it 1", "google-deepmind/optax#1414"
        step = description("AdamStep", beta2=beta2)
        sheet.add("PREC-004", f"bf16-beta2-{beta2}", shows, step, calls, source=source)
    rate = schedules.linear(1.0, 0.0, 4)
    leaf = host_array([1.0])
    calls = [
        VectorCall(leaf, None, Expected("float32", (1,), (-rate(count),), 2), {"count": whole(count + 1)})
        for count in range(6)
    ]
    step = description("SGDStep", learning_rate=schedule("LinearSchedule", initial=1.0, final=0.0, steps=4))
    shows, source = "the rate is 1 at the first call and 0 after four", "google-deepmind/optax#415"
    sheet.add("SCHED-009", "first-and-last-rate", shows, step, calls, source=source)


def _skipping(sheet: Sheet) -> None:
    """NaN again and again: it is never let through, and the counter says how often."""
    bad = host_array([NAN, 1.0])
    zeros = Expected("float32", (2,), (0.0, 0.0))
    untouched = {"trace": zeros}
    calls = [
        VectorCall(bad, None, zeros, {"skipped": whole(count), "inner": untouched}) for count in range(1, 6)
    ]
    good = host_array([1.0, -2.0])
    same_again = Expected("float32", (2,), (1.0, -2.0))
    calls.append(VectorCall(good, None, same_again, {"skipped": whole(5), "inner": {"trace": same_again}}))
    step = description("SkipNonFiniteStep", inner=description("MomentumStep", decay=0.5))
    shows, source = "five NaN in a row, each skipped", "google-deepmind/optax#1746"
    sheet.add("SKIP-003", "five-in-a-row", shows, step, calls, source=source)
    large = host_array([1e30, -1e30])
    one = VectorCall(large, None, Expected("float32", (2,), exact(large).values), None)
    shows, source = "a norm that overflows is no reason to skip", "deepmodeling/deepmd-kit#5519"
    sheet.add("SKIP-006", "2x1e30", shows, step, [one], source=source)


def _exclusion(sheet: Sheet) -> None:
    """A layer that must not be clipped, within a chain that is for all."""
    tree = {"clipped": host_array([3.0, 4.0]), "free": host_array([30.0])}
    mask = {"mask": {"dict": {"clipped": True, "free": False}}}
    masked = {"step": "MaskedStep", "options": {"inner": clip("global", 1.0), "mask": mask}}
    (limited,) = clipping_oracle.global_norm([exact(tree["clipped"])], 1.0)
    wanted = {
        "clipped": expect(tree["clipped"], limited.map(lambda g: g * number(-0.5)), wide=6),
        "free": Expected("float32", (1,), (-15.0,)),
    }
    one = VectorCall(tree, None, wanted)
    step = chain(masked, description("ScalingStep", scale=-0.5))
    shows, source = "one step of a chain leaves a layer out", "NVIDIA/Megatron-LM#5394"
    sheet.add("MASK-001", "out-of-one-step", shows, step, [one], source=source)
    layers = {"hidden": graded((4, 3)), "last": graded((3, 2), seed=3)}
    weights = mapped(lambda host, _: graded(host.shape, seed=9), layers)
    chosen = {"mask": {"dict": {"hidden": True, "last": False}}}
    relative = clip("per-weight-relative", 0.01)
    hidden = call("per-weight-relative", 0.01, layers["hidden"], weights["hidden"]).expected
    one = VectorCall(layers, weights, {"hidden": hidden, "last": same(layers["last"])})
    step = {"step": "MaskedStep", "options": {"inner": relative, "mask": chosen}}
    shows, source = "adaptive clipping leaves the classifier alone", "vballoli/nfnets-pytorch#8"
    sheet.add("MASK-001", "all-but-the-last", shows, step, [one], source=source)
