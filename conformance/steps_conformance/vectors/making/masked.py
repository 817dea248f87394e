"""Vectors of masks: chosen leaves go through the step inside, the others pass."""

from collections.abc import Sequence
from typing import Any

from steps_backends import host_array

from ...containers import mapped
from ...descriptions import description
from ...oracle import adam as oracle
from ...oracle.exact import exact, number
from ..model import Expected, Vector, VectorCall
from .every_kind import Subject, add_every_kind, same
from .limits import limited_as_one
from .optimizing import expected_state, steady
from .sheet import Sheet, expect

CLIP = description("GradientClippingStep", variant="global", threshold=0.5)
MASK = {"mask": {"dict": {"in": True, "out": False}}}


def vectors() -> list[Vector]:
    """Return the vectors of this file."""
    sheet = Sheet()
    add_every_kind(
        sheet,
        Subject(
            "masked", _masked(CLIP, MASK), _answers, "MASK-001", wrap=lambda tree: {"in": tree, "out": tree}
        ),
    )
    _frozen(sheet)
    _whole(sheet)
    _training(sheet)
    _from_a_state(sheet)
    return sheet.listed()


def _masked(inner: Any, mask: Any) -> Any:
    return {"step": "MaskedStep", "options": {"inner": inner, "mask": mask}}


def _twice(tree: Any) -> Any:
    return {"in": tree, "out": tree}


def _answers(gradients: Sequence[Any], _: Any) -> list[Any]:
    return [{"in": limited_as_one(tree["in"], 0.5), "out": mapped(same, tree["out"])} for tree in gradients]


def _frozen(sheet: Sheet) -> None:
    """A frozen leaf of 1e30 would clip the others to nothing."""
    tree = {"in": host_array([0.3, 0.4]), "out": host_array([1e30])}
    one = VectorCall(tree, None, mapped(same, tree))
    source = "AI-Hypercomputer/maxtext#5290"
    shows = "frozen leaves do not count in the norm"
    sheet.add("MASK-002", "frozen-1e30", shows, _masked(CLIP, MASK), [one], source=source)
    last = {"mask": {"list": [{"dict": {"kernel": True}}, False]}}
    layers = [{"kernel": host_array([3.0, 4.0])}, {"kernel": host_array([3.0, 4.0]), "bias": host_array(1.0)}]
    wanted = [{"kernel": Expected("float32", (2,), (number(0.3), number(0.4)), 4)}, mapped(same, layers[1])]
    one = VectorCall(layers, None, wanted)
    source = "vballoli/nfnets-pytorch#8"
    shows = "the last layer is left out by one boolean"
    sheet.add("MASK-003", "last-layer-passes", shows, _masked(CLIP, last), [one], source=source)


def _whole(sheet: Sheet) -> None:
    """One boolean for a tree that is one leaf."""
    leaf = host_array([3.0, -4.0])
    for label, chosen in (("chosen", True), ("left-out", False)):
        wanted = limited_as_one(leaf, 0.5) if chosen else same(leaf)
        one = VectorCall(leaf, None, wanted)
        step, shows = _masked(CLIP, {"mask": chosen}), "one boolean stands for the whole tree"
        sheet.add("MASK-003", f"bare-leaf-{label}", shows, step, [one])


def _training(sheet: Sheet) -> None:
    for dtype in ("float32", "bfloat16"):
        gradients = steady(50, dtype, seed=93)
        steps = oracle.adam([exact(gradient) for gradient in gradients])
        calls = []
        for count, (gradient, update) in enumerate(zip(gradients, steps.updates, strict=True), start=1):
            tree = {"in": gradient, "out": gradient}
            state = None
            if count in (1, 50):
                inner = _outside(expected_state(gradient, steps.states[count - 1], count, 16))
                state = {"inner": inner}
            expected = {"in": expect(gradient, update, wide=16), "out": same(gradient)}
            calls.append(VectorCall(tree, None, expected, state))
        step, shows = _masked(description("AdamStep"), MASK), "50 calls of Adam; no state outside of the mask"
        sheet.add("MASK-004", f"50-calls-{dtype}", shows, step, calls)


def _outside(state: Any) -> Any:
    """Return the state of one leaf with None for the leaf outside."""
    return {key: part if key == "count" else {"in": part, "out": None} for key, part in state.items()}


def _from_a_state(sheet: Sheet) -> None:
    momentum = description("MomentumStep", decay=0.5)
    tree = {"in": host_array([1.0, -1.0]), "out": host_array([3.0])}
    state = {"inner": {"trace": {"in": host_array([2.0, 4.0]), "out": None}}}
    sums = Expected("float32", (2,), (2.0, 1.0))
    expected = {"in": sums, "out": same(tree["out"])}
    one = VectorCall(tree, None, expected, {"inner": {"trace": {"in": sums, "out": None}}})
    shows = "a trace of chosen leaves goes on"
    sheet.add("MASK-004", "state-given", shows, _masked(momentum, MASK), [one], state=state)
