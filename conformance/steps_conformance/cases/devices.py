"""Where arrays lie: nothing is read on the host, nothing large moves between devices."""

from collections.abc import Callable, Mapping
from typing import Any

from steps_backends import HostArray, HostReadError

from ..case import case
from ..compare import Mismatch, within_ulps
from ..containers import leaves, mapped
from ..descriptions import chain, description
from ..oracle.samples import sample
from ..places import place_of
from ..run import Run
from .battery import ADAM, STEPS, Entry
from .judging import made

GLOBAL = description("GradientClippingStep", variant="global", threshold=0.5)
ACROSS = {
    "clip-global": GLOBAL,
    "monitor": description("MonitorStep"),
    "chain": chain(description("MonitorStep"), GLOBAL, description("AdamStep")),
    "skip-non-finite": description("SkipNonFiniteStep", inner=description("AdamStep")),
}
"""Steps that bring leaves together."""

MOST_MOVES = 24
"""Numbers that a call may move between two devices: there and back for a norm, a flag, a count and a rate."""


def tree(*, seed: int = 0) -> Any:
    """Return a tree of four leaves, every second of which is meant for the second device."""
    shapes = ((3, 2), (4,), (2, 2), (5,))
    return {f"leaf{n}": sample(shape, seed=seed + n) for n, shape in enumerate(shapes)}


def spread(run: Run, tree_: Any) -> Any:
    """Return the tree with every second leaf on the second device."""
    here = made(run, tree_)
    backend: Any = run.backend
    return {key: backend.elsewhere(leaf) if n % 2 else leaf for n, (key, leaf) in enumerate(here.items())}


def places(run: Run, tree_: Any) -> Any:
    """Return the tree with a text in the place of each leaf that tells where it lies."""
    return mapped(lambda leaf, _: place_of(run.backend, leaf), tree_)


@case("DEVICE-001", each={"entry": STEPS}, needs={"transforms"}, traits={"sees_reads"}, in_process=True)
def nothing_is_read(run: Run, entry: Entry) -> None:
    """The initial state, a first call and a second one."""
    step = run.made_by_the_target(entry.described)

    def two_calls(gradients: Any, weights: Any) -> Any:
        _, state = step.apply(gradients, weights, step.init(weights))
        return step.apply(gradients, weights, state)

    reads_nothing(run, two_calls, made(run, tree()), made(run, tree(seed=7)))


@case("DEVICE-001", needs={"transforms", "apply_updates"}, traits={"sees_reads"}, in_process=True)
def nothing_is_read_of_updates(run: Run) -> None:
    """Adding them to the weights."""
    reads_nothing(run, run.apply_updates, made(run, tree(seed=7)), made(run, tree()))


def reads_nothing(run: Run, function: Callable[..., Any], *args: Any) -> None:
    """Require that a function reads no value of these arrays."""
    backend: Any = run.backend
    try:
        backend.unread(function, *args)
    except HostReadError as error:
        raise Mismatch(f"a value was read on the host: {error}") from error


@case("DEVICE-002", each={"entry": STEPS}, needs={"transforms"}, traits={"two_devices"}, in_process=True)
def results_stay(run: Run, entry: Entry) -> None:
    """Over three calls; the state's devices do not change from the initial state on."""
    gradients, weights = spread(run, tree()), spread(run, tree(seed=7))
    step = run.make(entry.described)
    state = step.init(weights)
    first = places(run, state)
    for number in (1, 2, 3):
        result, state = step.apply(gradients, weights, state)
        same_places(places(run, result), places(run, gradients), f"result of call {number}")
        same_places(places(run, state), first, f"state after call {number}")


@case("DEVICE-002", needs={"transforms", "state_form"}, traits={"two_devices"}, in_process=True)
def moments_lie_with_their_weights(run: Run) -> None:
    """Both moments of Adam, from the start and after a call."""
    weights = spread(run, tree())
    step = run.make(description("AdamStep", amsgrad=True, **ADAM))
    state = step.init(weights)
    for each in (state, step.apply(weights, weights, state)[1]):
        for name in ("first_moment", "second_moment", "second_moment_max"):
            same_places(places(run, each[name]), places(run, weights), name)


@case("DEVICE-002", needs={"transforms", "apply_updates"}, traits={"two_devices"}, in_process=True)
def new_weights_stay(run: Run) -> None:
    """Weights with updates added."""
    weights = spread(run, tree())
    same_places(places(run, run.apply_updates(weights, weights)), places(run, weights), "weights")


def same_places(found: Any, expected: Any, name: str) -> None:
    """Require equal places leaf by leaf."""
    wanted = dict(leaves(expected))
    for path, place in leaves(found):
        if place != wanted.get(path):
            raise Mismatch(f"{name}{path}: expected device {wanted.get(path)}, got {place}")


@case("DEVICE-003", each={"described": ACROSS}, needs={"transforms"}, traits={"two_devices"}, in_process=True)
def one_norm_over_two_devices(run: Run, described: Any) -> None:
    """Two calls, against the same tree on one device; the state too where it can be looked at."""
    together, apart = run.make(described), run.make(described)
    state: Any = None
    other: Any = None
    for seed in (0, 10):
        expected, state = together.apply(made(run, tree(seed=seed)), made(run, tree(seed=7)), state)
        result, other = apart.apply(spread(run, tree(seed=seed)), spread(run, tree(seed=7)), other)
        near_each_other(run, result, expected, 4)
    if run.shows_state:
        near_each_other(run, other, state, 4)


def near_each_other(
    run: Run, actual: Any, expected: Any, ulps: float, *, minuends: Mapping[str, HostArray] | None = None
) -> None:
    """Require floats within some ulps, and counts and flags as they are.

    Args:
        run: the run.
        actual: arrays of the backend.
        expected: others.
        ulps: the tolerance.
        minuends: arrays by path, where each float is a difference from one of theirs: what is larger of the
            two tells the ulp.
    """
    wanted = dict(leaves(run.read(expected)))
    for path, got in leaves(run.read(actual)):
        if got is not None and got.dtype not in ("bool", "int32"):
            want = wanted[path]
            of = minuends and [
                max(map(abs, pair)) for pair in zip(want.values, minuends[path].values, strict=True)
            ]
            within_ulps(got, want, ulps, of=of, path=path)
        elif got != wanted[path]:
            raise Mismatch(f"{path}: expected {wanted[path]}, got {got}")


@case("DEVICE-004", each={"entry": STEPS}, needs={"transforms"}, traits={"two_devices"}, in_process=True)
def only_numbers_move(run: Run, entry: Entry) -> None:
    """What moves in a call is counted, by shape."""
    gradients, weights = spread(run, tree()), spread(run, tree(seed=7))
    step = run.made_by_the_target(entry.described)
    state = step.init(weights)
    backend: Any = run.backend
    moved = backend.moves(step.apply, gradients, weights, state)
    large = [shape for shape in moved if shape != ()]
    if large:
        raise Mismatch(f"arrays of the shapes {large} moved between devices; only 0-d ones may")
    if len(moved) > MOST_MOVES:
        raise Mismatch(f"{len(moved)} numbers moved between devices; at most {MOST_MOVES} may")


@case("DEVICE-004", needs={"transforms"}, traits={"two_devices"}, in_process=True)
def moves_do_not_grow_with_the_leaves(run: Run) -> None:
    """A global clip of four leaves and of forty."""
    step = run.made_by_the_target(GLOBAL)
    backend: Any = run.backend
    few = spread(run, tree())
    many = {f"part{n}": spread(run, tree(seed=n)) for n in range(10)}
    one, other = (len(backend.moves(step.apply, each, None, {})) for each in (few, many))
    if not 0 < other == one:
        raise Mismatch(f"4 leaves moved {one} numbers between devices, 40 leaves {other}")


@case("DEVICE-005", each={"entry": STEPS}, needs={"transforms"}, traits={"two_devices"}, in_process=True)
def weights_elsewhere(run: Run, entry: Entry) -> None:
    """One leaf of the weights lies on the other device."""
    gradients, weights = spread(run, tree()), made(run, tree(seed=7))
    step = run.make(entry.described)
    run.refuses(lambda: step.apply(gradients, weights), kind="ValueError", saying=("weights['leaf1']",))


@case("DEVICE-005", needs={"transforms", "state_form"}, traits={"two_devices"}, in_process=True)
def moments_elsewhere(run: Run) -> None:
    """The state was made for the same weights on one device."""
    step = run.step("AdamStep")
    state = step.init(made(run, tree(seed=7)))
    gradients = spread(run, tree())
    saying = ("state['first_moment']['leaf1']",)
    run.refuses(lambda: step.apply(gradients, None, state), kind="ValueError", saying=saying)
