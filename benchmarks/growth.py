"""How the cost of a compiled chain grows: with leaves of 100 elements, and with the elements of one leaf."""

LEAVES = (1, 10, 100, 1_000, 10_000, 100_000)
ELEMENTS = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
NAMES = {
    "ours, numpy + numba, all donated": "numpy + numba",
    "ours, numpy blocks, all donated": "numpy",
    "ours, torch compiled, all donated": "torch",
    "ours, jax compiled, all donated": "jax",
    "torch, clip_grad_norm_ + fused Adam": "torch, fused Adam",
    "optax under jit, all donated": "optax",
    "limit, all donated": "limit",
}
# JAX compiles a program of its own for every leaf, for minutes beyond these.
MOST_LEAVES_ON_JAX = 1_000


# Arrays of all candidates at a time would not fit into memory beyond this; they are measured one by one.
MOST_ELEMENTS_TOGETHER = 10_000_000


def orders() -> list[tuple[str, int, list[list[int]], list[str]]]:
    """Return what is measured: along which axis, where on it, the shapes of the leaves and the candidates."""
    found = []
    for leaves in LEAVES:
        wanted = [name for name in NAMES if leaves <= MOST_LEAVES_ON_JAX or not _is_jax(name)]
        found.append(("leaves", leaves, [[100]] * leaves, wanted))
    for elements in ELEMENTS:
        groups = [list(NAMES)] if elements <= MOST_ELEMENTS_TOGETHER else [[name] for name in NAMES]
        found += [("elements", elements, [[elements]], wanted) for wanted in groups]
    return found


def _is_jax(name: str) -> bool:
    return "jax" in name or "optax" in name
