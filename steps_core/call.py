"""One call of a step: its inputs checked and widened once on entry, its result cast once on exit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import ArgumentError, refusal
from .leaves import Leaves, open_tree, require_partner
from .namespaces import Array, Namespace, as_array, astype, detached, dtype_name
from .numerics.formats import format_of, wide_name
from .numerics.joint import joint_norm
from .numerics.moments import in_real_dtype
from .numerics.norms import ScaledNorm
from .placing import on_device_of, scalar_kind
from .trees import Tree

Values = list[Array | None]
Scalar = Any  # a Python float, or a 0-d array


@dataclass
class Call:
    """What the steps of one call share.

    Attributes:
        gradients: as given; the steps pass their own wide lists on.
        weights: wide and detached, or None where no weights were given.
        norms: the joint norms taken so far, with the lists that they are of.
    """

    gradients: Leaves
    given_weights: Leaves | None
    weights: Values | None
    norms: list[tuple[Values, ScaledNorm | None]] = field(default_factory=list)

    @property
    def xp(self) -> Namespace:
        """The namespace of the gradients; unused where there is no array."""
        return self.gradients.xp

    def path(self, index: int) -> str:
        """Return where a gradient stands."""
        return self.gradients.path(index)

    def tree(self, values: Sequence[Any]) -> Tree:
        """Return a tree like the gradients."""
        return self.gradients.rebuild(list(values))

    def weight(self, index: int) -> Array | None:
        """Return the wide weight that belongs to a gradient."""
        return None if self.weights is None else self.weights[index]

    def global_norm(self, values: Values) -> ScaledNorm | None:
        """Return the joint norm of a list of wide gradients; None where it holds no array.

        Neighbouring steps that see the same list share one reduction.
        """
        for seen, norm in self.norms:
            if seen is values:
                return norm
        arrays = [value for value in values if value is not None]
        norm = joint_norm(self.xp, arrays) if arrays else None
        self.norms.append((values, norm))
        return norm

    def close(self, values: Values) -> Tree:
        """Return the result: a tree like the gradients, in their dtypes."""
        return self.tree(
            [
                None
                if value is None or given is None
                else as_array(self.xp, astype(self.xp, value, given.dtype))
                for value, given in zip(values, self.gradients.values, strict=True)
            ]
        )


def open_call(gradients: Tree, weights: Tree | None) -> tuple[Call, Values]:
    """Return the call and the wide gradients.

    A leaf is computed in the wider of its own dtype and its weight's, in float32 at least.
    """
    opened = open_tree(gradients, "gradients")
    if weights is None:
        return Call(opened, None, None), [widened(opened.xp, leaf) for leaf in opened.values]
    partner = open_tree(weights, "weights")
    require_partner(opened, partner)
    pairs = list(zip(opened.values, partner.values, strict=True))
    wide = [widened(opened.xp, leaf, weight) for leaf, weight in pairs]
    wide_weights = [
        None if leaf is None or weight is None else widened(opened.xp, detached(weight), leaf)
        for leaf, weight in pairs
    ]
    return Call(opened, partner, wide_weights), wide


def widened(xp: Namespace, leaf: Array | None, partner: Array | None = None) -> Array | None:
    """Return a leaf as it is computed: in the wider of its own dtype and its partner's, float32 at least."""
    if leaf is None:
        return None
    other = None if partner is None else dtype_name(partner.dtype)
    return astype(xp, leaf, getattr(xp, wide_name(dtype_name(leaf.dtype), other)))


def per_kind(make: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """Return make with its results kept for each dtype and place of the leaf it is asked for."""
    made: dict[tuple[str, Any], Any] = {}

    def made_for(leaf: Array) -> Any:
        kind = (dtype_name(leaf.dtype), scalar_kind(leaf))
        if kind not in made:
            made[kind] = make(leaf)
        return made[kind]

    return made_for


def scalar_for(xp: Namespace, value: Scalar, leaf: Array) -> Scalar:
    """Return a number or a 0-d array as a leaf's arithmetic takes it: in its format, on its device."""
    if isinstance(value, float):
        form = format_of(leaf)
        if abs(value) > form.largest:
            rule, way_out = f"fit {form.name}, which the leaf is computed in", "use float64 gradients"
            raise refusal(ArgumentError, "a rate, scale, decay or epsilon", rule, value, way_out)
        return value
    return cast_for(xp, value, leaf)


def cast_for(xp: Namespace, value: Scalar, leaf: Array) -> Scalar:
    """Return a number as it is, a 0-d array in the format of a leaf's magnitude, on its device."""
    return value if isinstance(value, float) else in_real_dtype(xp, on_device_of(leaf, value), leaf)
