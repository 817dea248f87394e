"""Running an element-wise kernel leaf by leaf: the plain way, and the reference for every faster one."""

from collections.abc import Callable, Mapping
from typing import Any

from .call import Call, Values
from .namespaces import Array, as_array, astype, copied, dtype_name
from .numerics.formats import is_complex_name, real_name
from .state import stored
from .trees import Tree

# (gradient, weight, *moments) -> (update, *new moments)
Kernel = Callable[..., tuple[Array, ...]]


def advance_leaves(
    call: Call,
    gradients: Values,
    moments: Mapping[str, Values],
    kernel: Kernel,
) -> tuple[Values, dict[str, Tree]]:
    """Return the updates and the new trees of moments.

    Moments enter the kernel in the leaf's format and leave it in their own. Where a gradient is None,
    nothing moves.
    """
    updates: Values = []
    advanced: dict[str, list[Any]] = {key: [] for key in moments}
    for index, gradient in enumerate(gradients):
        old = [values[index] for values in moments.values()]
        if gradient is None:
            update, new = None, old
        else:
            update, *results = kernel(
                gradient, call.weight(index), *(_in_format(call, moment, gradient) for moment in old)
            )
            # Results of NumPy on 0-d arrays are scalars; a moment given out is never the moment kept.
            update = as_array(call.xp, update)
            new = [
                stored(before, copied(call.xp, after) if after is update else after)
                for before, after in zip(old, results, strict=True)
            ]
        updates.append(update)
        for values, moment in zip(advanced.values(), new, strict=True):
            values.append(moment)
    return updates, {key: call.tree(values) for key, values in advanced.items()}


def _in_format(call: Call, moment: Array, gradient: Array) -> Array:
    if moment.dtype == gradient.dtype:
        return moment
    name = dtype_name(gradient.dtype)
    if not is_complex_name(dtype_name(moment.dtype)):
        name = real_name(name)
    return astype(call.xp, moment, getattr(call.xp, name))
