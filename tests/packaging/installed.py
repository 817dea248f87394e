"""Check an installed distribution from the outside: run it where the wheel is installed, not the checkout.

It looks at the packages that the distribution owns, and trains one step with them.
"""

from importlib.metadata import files
from pathlib import Path

import numpy as np
import steps_backends
import steps_conformance

import steps_core

PACKAGES = {"steps_core", "steps_backends", "steps_conformance"}
CHECKOUT = Path(__file__).resolve().parents[2]


def owned() -> set[str]:
    """Return the top-level names that the distribution installed as packages or modules."""
    tops = {file.parts[0] for file in files("steps-core") or []}
    return {top for top in tops if top != ".." and not top.endswith(".dist-info")}


def main() -> None:
    """Fail with an AssertionError where anything is not as it should be."""
    assert owned() == PACKAGES, owned()
    for package in (steps_core, steps_backends, steps_conformance):
        place = Path(str(package.__file__)).resolve()
        assert not place.is_relative_to(CHECKOUT) or "site-packages" in place.parts, place

    clip = steps_core.GradientClippingStep(variant="global", threshold=1.0)
    step = steps_core.ChainedStep(clip, steps_core.AdamStep(learning_rate=0.5))
    weights = {"layer": np.ones(2, np.float32)}
    updates, state = step({"layer": np.asarray([3e30, 4e30], np.float32)}, weights, step.init(weights))
    weights = steps_core.apply_updates(weights, updates)
    np.testing.assert_allclose(weights["layer"], [0.5, 0.5], rtol=1e-6)
    assert state["step2"]["count"] == 1
    assert steps_backends.get("numpy").probe().runs


if __name__ == "__main__":
    main()
