"""Leaves that lie in parts on several devices or in several processes."""

from typing import Any

from ..case import case
from ..compare import Mismatch
from ..containers import leaves, mapped
from ..descriptions import description
from ..oracle.exact import Exact, norm
from ..oracle.samples import sample, steady
from ..run import Run
from ..targets.protocol import Description
from .battery import ADAM, STEPS, Entry
from .devices import near_each_other, places, same_places
from .judging import exacts, made, near

ULPS = 8
GLOBAL = description("GradientClippingStep", variant="global", threshold=0.5)
SHAPES = {
    "four": (8, 3),
    "two": (3, 6),
    "second": (5, 4),
    "odd": (5, 3),
    "one": (1, 3),
    "copied": (4, 2),
    "plain": (5, 2),
    "scalar": (),
}
"""Divided by four, by two, along the second axis, by nothing; with parts that are empty; without an axis.

The rows place a leaf by its shape, and these meet every way that they know.
"""

LARGE = {
    "rows": (256, 3),
    "columns": (3, 1000),
    "vector": (2000,),
    "cube": (2, 3, 260),
    "width": (768,),
    "table": (24, 384),
    "prime": (1004,),
}
"""Long enough to be added up in blocks; the lengths have many factors of two, few, or a large prime."""

MOST_REDUCTIONS = 2
"""One for each of the sets of axes of a mesh along which these leaves are split."""


def trees(calls: int, *, seed: int = 0) -> list[Any]:
    """Return trees for several calls, each element of one sign."""
    drawn = {name: steady(shape, calls, seed=seed + len(name)) for name, shape in SHAPES.items()}
    return [{name: arrays[call] for name, arrays in drawn.items()} for call in range(calls)]


def unsharded(run: Run, tree: Any) -> Any:
    """Return a tree of HostArrays as arrays that do not lie in parts."""
    backend: Any = run.backend
    return mapped(lambda leaf, _: backend.unsharded(leaf), made(run, tree))


@case("SHARD-001", each={"entry": STEPS}, needs={"transforms"}, traits={"sharded"}, in_process=True)
def same_as_unsharded(run: Run, entry: Entry) -> None:
    """Results of two calls, and the state after them where it can be looked at."""
    weights = trees(1, seed=7)[0]
    step, plain = run.make(entry.described), run.make(entry.described)
    state, other = step.init(made(run, weights)), plain.init(unsharded(run, weights))
    # A constraint gives where the weights must be, less where they are.
    minuends = dict(leaves(weights)) if entry.described["step"] == "ConstraintStep" else None
    for gradients in trees(2):
        result, state = step.apply(made(run, gradients), made(run, weights), state)
        expected, other = plain.apply(unsharded(run, gradients), unsharded(run, weights), other)
        near_each_other(run, result, expected, ULPS, minuends=minuends)
    if run.shows_state:
        near_each_other(run, state, other, ULPS)


@case("SHARD-002", each={"entry": STEPS}, needs={"transforms"}, traits={"sharded"}, in_process=True)
def results_lie_as_gradients_do(run: Run, entry: Entry) -> None:
    """Two calls; how the state lies does not change from the initial state on."""
    gradients, weights = made(run, trees(1)[0]), made(run, trees(1, seed=7)[0])
    step = run.make(entry.described)
    state = step.init(weights)
    first = places(run, state) if run.shows_state else None
    for number in (1, 2):
        result, state = step.apply(gradients, weights, state)
        same_places(places(run, result), places(run, gradients), f"result of call {number}")
        if run.shows_state:
            same_places(places(run, state), first, f"state after call {number}")


@case("SHARD-002", needs={"transforms", "state_form"}, traits={"sharded"}, in_process=True)
def moments_lie_as_weights_do(run: Run) -> None:
    """All moments of Adam, from the start and after a call."""
    weights = made(run, trees(1)[0])
    step = run.make(description("AdamStep", amsgrad=True, **ADAM))
    state = step.init(weights)
    for each in (state, step.apply(weights, weights, state)[1]):
        for name in ("first_moment", "second_moment", "second_moment_max"):
            same_places(places(run, each[name]), places(run, weights), name)


@case("SHARD-002", needs={"transforms", "apply_updates"}, traits={"sharded"}, in_process=True)
def new_weights_lie_as_weights_do(run: Run) -> None:
    """Updates that lie so are added."""
    weights = made(run, trees(1)[0])
    same_places(places(run, run.apply_updates(weights, weights)), places(run, weights), "weights")


@case(
    "SHARD-003",
    each={"shapes": {"small": SHAPES, "large": LARGE}},
    needs={"transforms", "state_form"},
    traits={"sharded"},
    in_process=True,
)
def norm_of_whole_arrays(run: Run, shapes: dict[str, tuple[int, ...]]) -> None:
    """The exact norm of all elements, each counted once."""
    tree = {name: sample(shape, seed=len(name)) for name, shape in shapes.items()}
    _, state = run.step("MonitorStep").apply(made(run, tree))
    near(run, state["norm"], exact_norm(tree), 4)


def exact_norm(tree: Any) -> Exact:
    """Return the norm of all elements of a tree of HostArrays."""
    return Exact((), (norm([value for leaf in exacts(tree) for value in leaf.values]),))


@case("SHARD-004", each={"entry": STEPS}, needs={"transforms"}, traits={"sharded"}, in_process=True)
def nothing_is_gathered(run: Run, entry: Entry) -> None:
    """Of leaves of all sizes."""
    gradients = made(run, {name: sample(shape, seed=1) for name, shape in {**SHAPES, **LARGE}.items()})
    step = run.made_by_the_target(entry.described)
    only_reductions(run, entry.described, gradients, step.init(gradients))


@case("SHARD-004", needs={"transforms"}, traits={"sharded"}, in_process=True)
def reductions_do_not_grow_with_the_leaves(run: Run) -> None:
    """A global clip of thirteen leaves and of six times as many."""
    leaves_ = made(run, {name: sample(shape, seed=1) for name, shape in {**SHAPES, **LARGE}.items()})
    few = only_reductions(run, GLOBAL, leaves_, {})
    many = only_reductions(run, GLOBAL, [leaves_] * 6, {})
    if not 1 <= few <= MOST_REDUCTIONS or many > few:
        raise Mismatch(f"the norm took {few} all-reduces, that of six times as many leaves {many}")


def only_reductions(run: Run, described: Description, gradients: Any, state: Any) -> int:
    """Require a call to have no collectives but all-reduces; return how many it has."""
    step = run.made_by_the_target(described)
    backend: Any = run.backend
    found = backend.collectives(step.apply, gradients, gradients, state)
    others = {name: count for name, count in found.items() if name != "all-reduce"}
    if others:
        raise Mismatch(f"a call sent leaves: {others}")
    return sum(found.values())
