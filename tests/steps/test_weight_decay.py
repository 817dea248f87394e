"""WeightDecayStep: a multiple of the weights is added."""

import numpy as np
from comparing import assert_within_ulps
from libraries import Library

from steps_core import ChainedStep, ScalingStep, WeightDecayStep


def test_a_multiple_of_the_weights_is_added(kind: tuple[Library, str]) -> None:
    """1 + 0.5 * 4 and -1 + 0.5 * -8, in every dtype."""
    library, dtype = kind
    gradients, weights = library.array([1.0, -1.0], dtype), library.array([4.0, -8.0], dtype)
    result = WeightDecayStep(weight_decay=0.5)(gradients, weights).gradients
    assert library.read(result).tolist() == [3.0, -5.0]


def test_narrow_leaves_are_added_in_float32(library: Library) -> None:
    """The small product is not rounded before it is added: a chain keeps it."""
    if "float16" not in library.dtypes:
        return
    chain = ChainedStep(WeightDecayStep(weight_decay=1e-4), ScalingStep(scale=2.0**14))
    result = chain(library.array([0.0], "float16"), library.array([0.01], "float16")).gradients
    expected = 2.0**14 * 1e-4 * float(np.float16(0.01))
    assert_within_ulps(library.read(result), [expected], 0.51)


def test_decay_zero_changes_nothing(library: Library) -> None:
    """It still needs weights."""
    result = WeightDecayStep(weight_decay=0)(library.array([1.5]), library.array([4.0])).gradients
    assert library.read(result) == [1.5]


def test_the_default_is_one_in_ten_thousand() -> None:
    """As the design says."""
    assert WeightDecayStep().weight_decay == 1e-4
