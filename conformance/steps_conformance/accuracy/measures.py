"""The list of measures."""

from collections.abc import Collection

from .element_measures import element_measures
from .measuring import Measure
from .norm_measures import norm_measures


def all_measures(largest: int) -> list[Measure]:
    """Return every measure up to a size of inputs."""
    return [*norm_measures(largest), *element_measures(largest)]


def measures_of(requirements: Collection[str], largest: int) -> list[Measure]:
    """Return the measures that back these requirements, up to a size of inputs."""
    return [one for one in all_measures(largest) if one.requirement in requirements]
