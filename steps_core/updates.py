"""Adding updates to weights."""

from typing import Any

from .errors import ArgumentError
from .leaves import Leaves, open_tree, require_partner
from .namespaces import Array, as_array, astype, dtype_name, quiet, requires_grad
from .numerics.formats import wide_name
from .trees import Tree


def apply_updates(weights: Tree, updates: Tree) -> Tree:
    """Return weights + updates: the Add node, for the result of an end-to-end step.

    w' = w + u, computed in the wider of both dtypes (float32 at least) and cast to the weight's

    Args:
        weights: tree of arrays.
        updates: tree of the same structure and shapes; where it holds None the weight stays.

    Returns:
        A new tree like the weights; nothing given is written to.

    Raises:
        LeafTypeError, TreeMismatchError: the two do not go together.
        ArgumentError: a PyTorch weight requires grad and recording is on: the new weight would hang on the
            graph of the old one.

    Example:
        >>> import numpy as np
        >>> apply_updates(np.asarray([1.0, 2.0]), np.asarray([-0.5, 0.5]))
        array([0.5, 2.5])
    """
    opened, partner = open_tree(weights, "weights"), open_tree(updates, "updates")
    require_partner(partner, opened)
    with quiet(opened.xp):
        return opened.rebuild(
            [_updated(opened, index, update) for index, update in enumerate(partner.values)]
        )


def _updated(weights: Leaves, index: int, update: Array | None) -> Any:
    weight = weights.values[index]
    if update is None or weight is None:
        return weight
    if requires_grad(weight):
        way_out = "call apply_updates under torch.no_grad()"
        raise ArgumentError(
            f"{weights.path(index)} must not record gradients here, got a weight with requires_grad=True; "
            f"{way_out}",
            argument="weights",
            rule="not record gradients",
            value=weight,
            way_out=way_out,
            path=weights.path(index),
        )
    xp = weights.xp
    wide = getattr(xp, wide_name(dtype_name(weight.dtype), dtype_name(update.dtype)))
    total = astype(xp, weight, wide) + astype(xp, update, wide)
    return as_array(xp, astype(xp, total, weight.dtype))
