"""What the lane searches: each property with its vectors, and what must hold for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hypothesis.strategies import SearchStrategy

from ..run import Run
from ..vectors.model import Vector
from ..vectors.playing import play
from . import relations
from .clips import RULES, clip_vectors
from .numbers import Range
from .runs import (
    adam_vectors,
    clipped_descent_vectors,
    decay_vectors,
    momentum_vectors,
    scaling_vectors,
    sgd_vectors,
)

_FINITE_GLOBAL = partial(clip_vectors, variant="global", finite=True)


def _nothing(_: Vector) -> Sequence[Vector]:
    return ()


@dataclass(frozen=True)
class Property:
    """One thing that holds for all inputs.

    Attributes:
        name: as it is named on the command line.
        vectors: what a backend may be given -> examples.
        holds: raises Mismatch where an example shows that it does not.
        applies: whether it says something about an example.
        related: the further inputs that it looks at.
    """

    name: str
    vectors: Callable[[Range], SearchStrategy[Vector]]
    holds: Callable[[Run, Vector], None] = play
    applies: Callable[[Vector], bool] = lambda _: True
    related: Callable[[Vector], Sequence[Vector]] = _nothing


PROPERTIES = {
    one.name: one
    for one in (
        *(Property(f"clip-{variant}", partial(clip_vectors, variant=variant)) for variant in RULES),
        Property("adam", adam_vectors),
        Property("sgd", sgd_vectors),
        Property("momentum", momentum_vectors),
        Property("scaling", scaling_vectors),
        Property("decay-chain", partial(decay_vectors, as_graph=False)),
        Property("decay-graph", partial(decay_vectors, as_graph=True)),
        Property("clipped-descent", clipped_descent_vectors),
        *(
            Property(f"pure-{name}", vectors, relations.keeps_inputs_and_form)
            for name, vectors in (
                ("clip", _FINITE_GLOBAL),
                ("adam", adam_vectors),
                ("chain", clipped_descent_vectors),
            )
        ),
        Property("none-passes", _FINITE_GLOBAL, relations.passes_none),
        Property("nesting", _FINITE_GLOBAL, relations.nests),
        Property(
            "power-of-two",
            _FINITE_GLOBAL,
            relations.scales_with_its_threshold,
            relations.may_be_turned,
            relations.turned,
        ),
        Property(
            "leaf-order", _FINITE_GLOBAL, relations.ignores_the_order_of_leaves, related=relations.reordered
        ),
        Property("clip-twice", _FINITE_GLOBAL, relations.clips_once),
        Property("norm-at-most", _FINITE_GLOBAL, relations.ends_within_the_threshold),
    )
}
"""All properties by name: first those that the oracle answers, then the relations."""
