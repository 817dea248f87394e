"""Backends with planted faults, made of the NumPy row."""

from dataclasses import dataclass, replace

import steps_backends
from steps_backends import Backend, Declaration
from steps_backends.numpy import NumpyBackend
from steps_backends.protocol import Probe

_NUMPY: Declaration = steps_backends.get("numpy").declaration


def declared(name: str, **changes: object) -> Backend:
    return NumpyBackend(replace(_NUMPY, name=name, **changes))  # type: ignore[arg-type]


honest = declared("honest")
absent = declared("absent", library="no_such_library", requirement="no-such-library")
without_float16 = declared("without-float16", dtypes=("float32",))
boastful = declared("boastful", traits=_NUMPY.traits | {"flushes_subnormals"})


@dataclass(frozen=True)
class RaisingProbe(NumpyBackend):
    def probe(self) -> Probe:
        raise RuntimeError("planted: the probe fails")


raising = RaisingProbe(replace(_NUMPY, name="raising"))
