"""The vectors as cases: each is played on the target as it stands in its file."""

from ..case import Case, register_cases
from ..needs import needs_of
from ..requirements import load_requirements
from ..run import Run
from ..vectors.model import Vector, load_vectors
from ..vectors.playing import play


def play_vector(run: Run, vector: Vector) -> None:
    """Run the calls of a vector and compare each result."""
    play(run, vector)


def _case_of(vector: Vector, topics: dict[str, str]) -> Case:
    return Case(
        id=vector.id,
        requirement=vector.requirement,
        topic=topics.get(vector.requirement, "vectors"),
        function=play_vector,
        arguments={"vector": vector},
        dtypes=vector.dtypes(),
        needs=needs_of(vector.requirement) | _needs_of_form(vector),
    )


def _needs_of_form(vector: Vector) -> frozenset[str]:
    """Return what is needed to start from a state that is written down."""
    return frozenset() if vector.state is None else frozenset({"state_form"})


_TOPICS = {identity: rule.topic for identity, rule in load_requirements().items()}
register_cases([_case_of(vector, _TOPICS) for listed in load_vectors().values() for vector in listed])
