"""Wrong clipping: what libraries do, and what a rewrite could do."""

import math

from ..catalogue import fault
from .wrong_numbers import through_bfloat16, through_float16

PEERS = "peers.md, 1a"
AGC = "peers.md, 1d"


@fault(
    "steps.clipping:limit_norm",
    breaks=("CLIP-GLOBAL-003", "CLIP-LAYER-003"),
    source=f"{PEERS}: torch and mlx divide by norm + 1e-6",
)
def adds_a_millionth_to_the_norm(limit_norm, core):
    def wrong(xp, norm, threshold, reference=None):
        return limit_norm(xp, norm._replace(root=norm.root + 1e-6), threshold, reference)

    return wrong


@fault(
    "numerics.norms:leaf_square_sums",
    breaks=("CLIP-GLOBAL-004", "CLIP-GLOBAL-005", "CLIP-GLOBAL-006", "MONITOR-003"),
    source=f"{PEERS}: every peer squares float32 as it is, so 1e30 gives infinity and 1e-30 gives 0",
)
def squares_without_scaling_over_the_tree(leaf_square_sums, core):
    norms = core["numerics.norms"]

    def wrong(xp, x):
        total = xp.sum(norms.squared_magnitude(xp, x))
        return norms.SquareSums(xp.zeros_like(total), total, xp.zeros_like(total))

    return wrong


@fault(
    "numerics.norms:square_sums",
    breaks=("CLIP-LAYER-004", "CLIP-REL-014"),
    source=f"{PEERS}, shared defects",
)
def squares_without_scaling_in_a_leaf(square_sums, core):
    return plain_square_sums(core)


@fault(
    "steps.clipping:square_sums",
    breaks=("CLIP-WEIGHT-005",),
    source=f"{PEERS}, shared defects",
)
def squares_complex_elements_without_scaling(square_sums, core):
    return plain_square_sums(core)


def plain_square_sums(core):
    """Return what adds up squares as they are."""
    norms = core["numerics.norms"]

    def wrong(xp, x, axes):
        total = core["numerics.sums"].sum_over(xp, norms.squared_magnitude(xp, x), axes)
        return norms.SquareSums(xp.zeros_like(total), total, xp.zeros_like(total))

    return wrong


@fault(
    "steps.clipping:apply_limit",
    breaks=("CLIP-GLOBAL-001", "CLIP-GLOBAL-012"),
    source="unsloth-zoo#1261: the norm is right, but the factor is cast to float16 and becomes 0",
)
def casts_the_factor_to_float16(apply_limit, core):
    def wrong(xp, x, limit):
        form = core["numerics.formats"].format_of(limit.ratio)
        tiny = 2.0**form.smallest_normal_exponent
        return apply_limit(xp, x, limit._replace(ratio=through_float16(xp, limit.ratio * tiny) / tiny))

    return wrong


@fault(
    "call:Call.global_norm",
    breaks=("CLIP-GLOBAL-001", "CLIP-GLOBAL-007"),
    source="optax: n.astype(g.dtype); a float16 leaf beside 1e5 becomes 0",
)
def rounds_the_norm_to_a_narrow_leaf(global_norm, core):
    def wrong(self, values):
        norm = global_norm(self, values)
        kinds = {str(leaf.dtype) for leaf in self.gradients.values if leaf is not None}
        if norm is None or "float16" not in kinds:
            return norm
        return norm._replace(root=through_float16(self.xp, norm.root))

    return wrong


@fault(
    "numerics.norms:add_square_sums",
    breaks=("CLIP-GLOBAL-001", "CLIP-GLOBAL-011", "MONITOR-002"),
    source="pytorch#194033, pytorch#92164: sums in bfloat16; 5,000 leaves of 1 give 16 instead of 70.7",
)
def adds_up_in_bfloat16(add_square_sums, core):
    def wrong(xp, sums):
        total = sums[0]
        for one in sums[1:]:
            total = type(total)(*(through_bfloat16(a + b) for a, b in zip(total, one, strict=True)))
        return total

    return wrong


@fault(
    "numerics.norms:add_square_sums",
    breaks=("CLIP-GLOBAL-011",),
    source=f"{PEERS}: optax adds leaf after leaf; at many leaves the small ones are lost",
)
def adds_one_leaf_after_the_other(add_square_sums, core):
    def wrong(xp, sums):
        total = sums[0]
        for one in sums[1:]:
            total = type(total)(*(a + b for a, b in zip(total, one, strict=True)))
        return total

    return wrong


@fault(
    "numerics.norms:sum_over",
    breaks=("CLIP-REL-016",),
    source="design.md, Precision: a plain sum over axis 0 of a million rows is 3,772 ulps off",
)
def adds_one_row_after_the_other(sum_over, core):
    def wrong(xp, x, axes):
        return xp.sum(x, axis=axes, keepdims=True) if axes else x

    return wrong


@fault(
    "steps.clipping:zeroed",
    breaks=("CLIP-OPTION-010",),
    source="optax#1752: zero gradients under threshold 0 become NaN",
)
def divides_zero_by_zero_at_threshold_0(zeroed, core):
    return lambda xp, leaf: leaf * 0.0 / leaf


@fault(
    "steps.clipping:zeroed",
    breaks=("CLIP-OPTION-010",),
    source="tensorflow#33929: keras takes 0 for off",
)
def takes_threshold_0_for_off(zeroed, core):
    return lambda xp, leaf: leaf


@fault(
    "checks:non_negative",
    breaks=("CLIP-OPTION-005",),
    source="mlx#4058: a negative threshold reverses the gradients, in torch and optax to this day",
)
def accepts_a_negative_threshold(non_negative, core):
    return lambda argument, value, way_out="": core["checks"].number(argument, value)


@fault(
    "steps.clipping:GradientClippingStep._is_identity",
    breaks=("CLIP-OPTION-003",),
    source=f"{PEERS}: keras gives NaN for an infinite threshold",
)
def multiplies_by_an_infinite_threshold(_is_identity, core):
    return property(lambda self: self.variant is None or self.threshold is None)


@fault(
    "steps.clipping:_clip_global",
    breaks=("CLIP-GLOBAL-001", "CLIP-GLOBAL-008"),
    source="transformers#614, optax.partition: the global norm is taken of parts",
)
def takes_the_global_norm_leaf_by_leaf(_clip_global, core):
    def wrong(call, gradients, threshold):
        places = range(len(gradients))
        alone = [[gradients[place] if place == index else None for place in places] for index in places]
        return [_clip_global(call, leaves, threshold)[index] for index, leaves in enumerate(alone)]

    return wrong


@fault(
    "steps.clipping:of_unit_norms",
    breaks=("CLIP-LAYER-001",),
    source="peers.md, 1b: optax clips by the root mean square of a block, under a like name",
)
def takes_the_root_mean_square_for_the_norm(of_unit_norms, core):
    def wrong(xp, arrays, axes, function):
        counts = [math.prod(x.shape[axis] for axis in own) or 1 for x, own in zip(arrays, axes, strict=True)]

        def of_means(norms):
            pairs = zip(norms, counts, strict=True)
            return function([norm._replace(root=norm.root / count**0.5) for norm, count in pairs])

        return of_unit_norms(xp, arrays, axes, of_means)

    return wrong


@fault(
    "steps.clipping:_clip_global",
    breaks=("CLIP-GLOBAL-009",),
    source=f"{PEERS}: keras makes the whole tree NaN where a norm is infinite",
)
def poisons_the_tree_at_infinity(_clip_global, core):
    def wrong(call, gradients, threshold):
        clipped = _clip_global(call, gradients, threshold)
        norm = call.global_norm(gradients)
        if norm is None:
            return clipped
        poison = norm.root - norm.root
        return [None if leaf is None else leaf + call.xp.astype(poison, leaf.dtype) for leaf in clipped]

    return wrong


@fault(
    "steps.clipping:apply_limit",
    breaks=("CLIP-GLOBAL-008", "CLIP-LAYER-005", "CLIP-REL-012"),
    source=f"{AGC}: smartclip lets what has no finite norm pass unclipped",
)
def lets_nan_pass_unclipped(apply_limit, core):
    def wrong(xp, x, limit):
        return apply_limit(xp, x, limit._replace(is_kept=xp.logical_or(limit.is_kept, xp.isnan(limit.ratio))))

    return wrong


@fault(
    "steps.clipping:apply_limit",
    breaks=("CLIP-GLOBAL-010", "CLIP-GLOBAL-001"),
    source=f"{PEERS}, shared defects: the clipped tree's norm exceeds the threshold",
)
def leaves_the_norm_a_little_too_large(apply_limit, core):
    return lambda xp, x, limit: apply_limit(xp, x, limit._replace(ratio=limit.ratio * (1 + 2e-6)))


@fault(
    "steps.clipping:apply_limit",
    breaks=("CLIP-GLOBAL-012", "CLIP-LAYER-004"),
    source="keras clip_by_norm: one factor that falls below the smallest normal number",
)
def multiplies_by_one_rounded_factor(apply_limit, core):
    def wrong(xp, x, limit):
        limit = core["numerics.limits"].in_format(xp, limit, core["numerics.formats"].format_of(x))
        tiny = 2.0 ** core["numerics.formats"].format_of(x).smallest_normal_exponent
        return xp.where(limit.is_kept, x, x * (limit.ratio * tiny))

    return wrong


@fault(
    "steps.clipping:clip_elements",
    breaks=("CLIP-WEIGHT-002", "CLIP-WEIGHT-005"),
    source="peers.md, 52: NumPy's clip of complex numbers looks at their parts",
)
def clips_real_and_imaginary_parts_apart(clip_elements, core):
    def wrong(xp, leaf, threshold):
        if not xp.isdtype(leaf.dtype, "complex floating"):
            return clip_elements(xp, leaf, threshold)
        real, imag = (clip_elements(xp, part, threshold) for part in (xp.real(leaf), xp.imag(leaf)))
        return real + imag * 1j

    return wrong


@fault(
    "numerics.norms:real_parts",
    breaks=("CLIP-REL-017", "CLIP-LAYER-001", "CLIP-GLOBAL-001"),
    source="peers.md, 58: keras and mlx take a complex norm of complex leaves",
)
def forgets_imaginary_parts_in_norms(real_parts, core):
    return lambda xp, x: real_parts(xp, x)[:1]


@fault(
    "steps.clipping:clip_elements",
    breaks=("CLIP-WEIGHT-003",),
    source="cupy#9031: clip ignores NaN",
)
def limits_nan_to_the_threshold(clip_elements, core):
    def wrong(xp, leaf, threshold):
        clipped = clip_elements(xp, leaf, threshold)
        return xp.where(clipped != clipped, xp.ones_like(leaf) * threshold, clipped)

    return wrong


@fault(
    "steps.clipping:clip_elements",
    breaks=("CLIP-WEIGHT-001", "CLIP-OPTION-001"),
    source="a rewrite that thinks of one side",
)
def limits_the_upper_side_only(clip_elements, core):
    def wrong(xp, leaf, threshold):
        clipped = clip_elements(xp, leaf, threshold)
        return clipped if xp.isdtype(leaf.dtype, "complex floating") else xp.where(leaf < 0, leaf, clipped)

    return wrong


@fault(
    "steps.clipping:clip_elements",
    breaks=("CLIP-WEIGHT-004",),
    source="a clip written as maximum(minimum(x, t), -t) + 0",
)
def loses_the_sign_of_zero(clip_elements, core):
    return lambda xp, leaf, threshold: clip_elements(xp, leaf, threshold) + 0.0


@fault(
    "steps.clipping:clip_elements",
    breaks=("CLIP-WEIGHT-006",),
    source="torch.nn.utils.clip_grad_value_: a threshold beyond the dtype cannot be converted",
)
def refuses_a_threshold_beyond_the_dtype(clip_elements, core):
    def wrong(xp, leaf, threshold):
        if threshold > core["numerics.formats"].format_of(leaf).largest:
            raise OverflowError("value cannot be converted without overflow")
        return clip_elements(xp, leaf, threshold)

    return wrong


@fault(
    "steps.clipping:unit_axes_of",
    breaks=("CLIP-REL-001", "CLIP-REL-002"),
    source="SlopDotCash/asi#439, timm: the output axis is taken to be first",
)
def takes_the_first_axis_for_the_output(unit_axes_of, core):
    def wrong(places, index, leaf, unit_axis):
        if unit_axis == "auto" and leaf.ndim > 1:
            return tuple(range(1, leaf.ndim))
        return unit_axes_of(places, index, leaf, unit_axis)

    return wrong


@fault(
    "steps.clipping:unit_axes_of",
    breaks=("CLIP-REL-002",),
    source=f"{AGC}: optax's docstring says (0, 1) of rank 3, the paper and its code say 0",
)
def reduces_two_axes_of_rank_3(unit_axes_of, core):
    def wrong(places, index, leaf, unit_axis):
        axes = unit_axes_of(places, index, leaf, unit_axis)
        return (0, 1) if unit_axis == "auto" and leaf.ndim == 3 and axes == (0,) else axes

    return wrong


@fault(
    "steps.clipping:unit_axes_of",
    breaks=("CLIP-REL-004",),
    source="optax#906: rank 5 and up is not thought of",
)
def treats_rank_5_as_a_matrix(unit_axes_of, core):
    def wrong(places, index, leaf, unit_axis):
        return (0,) if unit_axis == "auto" and leaf.ndim > 4 else unit_axes_of(places, index, leaf, unit_axis)

    return wrong


@fault(
    "steps.clipping:unit_axes_of",
    breaks=("CLIP-REL-001", "CLIP-REL-002", "CLIP-REL-004", "CLIP-REL-012"),
    source=f"{AGC}: smartclip takes the whole tensor",
)
def takes_the_whole_leaf_for_a_unit(unit_axes_of, core):
    return lambda places, index, leaf, unit_axis: tuple(range(leaf.ndim))


@fault(
    "steps.clipping:unit_axes_of",
    breaks=("CLIP-REL-003",),
    source=f"{AGC}: a shape of (1, 3) differs from (3,) where axes of length 1 are not squeezed",
)
def counts_axes_of_length_1(unit_axes_of, core):
    def wrong(places, index, leaf, unit_axis):
        if unit_axis == "auto" and leaf.ndim > 1:
            return (0,) if leaf.ndim <= 3 else tuple(range(leaf.ndim - 1))
        return unit_axes_of(places, index, leaf, unit_axis)

    return wrong


@fault(
    "steps.clipping:unit_axes_of",
    breaks=("CLIP-REL-005",),
    source="an option that is accepted and then not read",
)
def ignores_unit_axis(unit_axes_of, core):
    return lambda places, index, leaf, unit_axis: unit_axes_of(places, index, leaf, "auto")


@fault(
    "steps.clipping:at_least",
    breaks=("CLIP-REL-001", "CLIP-REL-008"),
    source=f"{AGC}: smartclip adds epsilon instead of taking the maximum",
)
def adds_epsilon_to_the_weights_norm(at_least, core):
    norms = core["numerics.norms"]

    def wrong(xp, norm, floor):
        return norms.as_norm(xp, norms.plain_norm(xp, norm) + floor)

    return wrong


@fault(
    "steps.clipping:GradientClippingStep.needs_weights",
    breaks=("CLIP-REL-010",),
    source="a step that leaves out what it cannot compute",
)
def fails_without_weights_instead_of_refusing(needs_weights, core):
    return property(lambda self: False)


@fault(
    "steps.clipping:of_unit_norms",
    breaks=("CLIP-REL-015",),
    source="the norm of the weights is taken in the gradient's dtype",
)
def rounds_weights_to_bfloat16(of_unit_norms, core):
    def wrong(xp, arrays, axes, function):
        half = len(arrays) // 2  # The weights follow the gradients.
        rounded = [*arrays[:half], *map(through_bfloat16, arrays[half:])]
        return of_unit_norms(xp, rounded, axes, function)

    return wrong


@fault(
    "numerics.norms:leaf_square_sums",
    breaks=("CLIP-OPTION-011",),
    source="torchrec#3891: a norm of a leaf without elements raises",
)
def takes_the_largest_element_of_nothing(leaf_square_sums, core):
    def wrong(xp, x):
        xp.max(xp.abs(x))
        return leaf_square_sums(xp, x)

    return wrong


@fault(
    "steps.clipping:VARIANTS",
    breaks=("CLIP-OPTION-001", "CLIP-OPTION-002"),
    source="keras#13575: which norm a name means changed between releases",
)
def means_per_layer_by_per_parameter(variants, core):
    return {**variants, "per-parameter": "per-layer"}


@fault(
    "steps.clipping:GradientClippingStep.own_keys",
    breaks=("CLIP-OPTION-009",),
    source="a step that counts its calls although it needs no count",
)
def keeps_a_state_that_it_does_not_need(own_keys, core):
    return property(lambda self: ("count",))


@fault(
    "call:joint_norm",
    breaks=("CLIP-GLOBAL-007",),
    source="deepmd-kit#5519: float64 leaves are summed in float32",
)
def sums_float64_leaves_in_float32(joint_norm, core):
    def wrong(xp, leaves):
        narrow = {"float64": "float32", "complex128": "complex64"}
        names = [core["namespaces"].dtype_name(leaf.dtype) for leaf in leaves]
        cast = [
            core["namespaces"].astype(xp, leaf, getattr(xp, narrow.get(name, name)))
            for name, leaf in zip(names, leaves, strict=True)
        ]
        norm = joint_norm(xp, cast)
        if not set(names) & narrow.keys():
            return norm
        plain = core["numerics.norms"].plain_norm(xp, norm)
        return core["numerics.norms"].as_norm(xp, core["namespaces"].astype(xp, plain, xp.float64))

    return wrong
