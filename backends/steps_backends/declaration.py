"""What a backend says about itself before it runs."""

from dataclasses import dataclass

from .formats import LEAF_DTYPES

TRAITS = {
    "eager": "each operation runs at once, outside any compiler",
    "jit": "every step call is traced and compiled",
    "mutable": "an array can be written to in place",
    "read_only": "arrays are of a mutable kind, and made without the right to write",
    "fake_device": "the device is a pretended one on the CPU, and arrays on it do not mix with others",
    "flushes_subnormals": "arithmetic in float32 takes subnormal inputs for zero, and gives zero for them",
    "optional_features_off": "boolean indexing, data-dependent shapes and all extensions are switched off",
    "x64": "64-bit types are switched on for the whole process",
    "sees_reads": "it can run a function so that reading a value on the host, and waiting for it, is seen",
    "two_devices": "it has a second device, and can count what moves between the two",
    "sharded": "arrays lie in parts on several devices or in processes, and what these send is counted",
    "two_processes": "each case runs in two processes at once, which hold parts of the arrays",
    "compiles": "it can compile a function as one graph",
    "batches": "it can make a function of one tree into one of a batch of trees",
    "differentiates": "it can give the derivative of a function of a tree",
    "scans": "it can run a loop, with the state as its carry, as one operation",
}
"""The closed set of traits, each with its meaning."""

DEVICES = ("cpu", "cuda", "device1")


@dataclass(frozen=True)
class Declaration:
    """One row of the conformance table: a library, in one configuration, on one device.

    Attributes:
        name: the name of the row, such as ``jax-jit``.
        library: the name that is imported.
        requirement: what pip is asked for.
        device: ``cpu``, ``cuda`` or ``device1``.
        dtypes: the floating and complex leaf dtypes that the row supports.
        traits: names out of TRAITS.
    """

    name: str
    library: str
    requirement: str
    device: str
    dtypes: tuple[str, ...]
    traits: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        _only_known("device", (self.device,), DEVICES)
        _only_known("dtypes", self.dtypes, LEAF_DTYPES)
        _only_known("traits", tuple(self.traits), tuple(TRAITS))
        if "float32" not in self.dtypes:
            raise ValueError(
                f"dtypes of {self.name} must contain float32, got {self.dtypes}; every row has it"
            )


def _only_known(field: str, given: tuple[str, ...], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{field} must come from {', '.join(known)}, got {name!r}")
