"""What the end-to-end steps share: a rate that negates, decoupled weight decay, moments and a counter."""

from abc import abstractmethod
from dataclasses import dataclass

from ..contract import Step
from ..leaves import Leaves
from ..state import State, zeros_like
from ..tunable import Number, is_always
from .rates import Rate, initial_rate_state, rate_keys, rate_negates


@dataclass(frozen=True, kw_only=True)
class EndToEndStep(Step):
    """An optimizer whose result is added to the weights."""

    learning_rate: Rate
    weight_decay: Number

    @property
    @abstractmethod
    def moments(self) -> dict[str, bool]:
        """The names of the moments in the state, and whether each is real also for complex leaves."""

    @property
    def negates(self) -> bool:
        """True unless the rate is a number below 0."""
        return rate_negates(self.learning_rate)

    @property
    def needs_weights(self) -> bool:
        """Whether weights decay."""
        return not is_always(self.weight_decay, 0)

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The moments that the options ask for, and the counter of a schedule."""
        return (*self.moments, *rate_keys(self.learning_rate))

    def own_state(self, weights: Leaves) -> State:
        """Return moments of zeros, and a counter at 0 where there is one."""
        moments = {key: zeros_like(weights, real=real) for key, real in self.moments.items()}
        return {**moments, **initial_rate_state(self.learning_rate, weights)}
