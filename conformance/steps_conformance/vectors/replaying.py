"""Playing a vector outside a run of the suite, as what became of it."""

from steps_backends import Backend

from ..case import Case
from ..execution import Result, execute
from ..targets.protocol import Target
from .model import Vector
from .playing import play


def replayed(vector: Vector, backend: Backend, target: Target) -> Result:
    """Return what becomes of a vector on a backend and a target, every warning being an error."""
    case = Case(
        id=vector.id,
        requirement=vector.requirement,
        topic="vectors",
        function=play,
        arguments={"vector": vector},
        dtypes=vector.dtypes(),
        needs=frozenset(),
    )
    return execute(case, backend, target)
