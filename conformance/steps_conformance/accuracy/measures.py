"""The list of measures."""

from .element_measures import element_measures
from .measuring import Measure
from .norm_measures import norm_measures


def all_measures(largest: int) -> list[Measure]:
    """Return every measure up to a size of inputs."""
    return [*norm_measures(largest), *element_measures(largest)]
