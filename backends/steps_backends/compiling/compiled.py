"""`compile`: a step that is traced once and then run in the fastest way its library has."""

import warnings
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any

from .cupy_runner import cupy_runner
from .jax_runner import JaxRunner
from .numpy_runner import numpy_runner
from .packages import module_of, package_of
from .packing import PackedState
from .shared_memory import NumpySharing
from .torch_buffers import in_large_pages
from .torch_runner import TorchRunner

DONATABLE = ("gradients", "state")

Runner = Callable[[Any, Any, Any, Any], Any]  # of gradients, the same opened, weights and state


class CompiledStep:
    """A step with the same contract and the same state as the one it runs.

    Attributes:
        step: the step that it runs.
        donate: the arguments whose memory a call may write to.
    """

    def __init__(self, step: Any, donate: frozenset[str]) -> None:
        self.step = step
        self.donate = donate
        # Looked up now: a compiler of the library that sees a call cannot import.
        self._package = package_of(step)
        self._trees = None if self._package is None else module_of(self._package, "trees")
        self._namespaces: Any = None if self._package is None else module_of(self._package, "namespaces")
        self._runners: dict[str, Runner | None] = {"": None}
        self._by_kind: dict[type, Runner | None] = {}
        self._on_jax: JaxRunner | None = None
        self._told: set[str] = set()

    def __repr__(self) -> str:
        donate = f", donate={tuple(sorted(self.donate))}" if self.donate else ""
        return f"compile({self.step!r}{donate})"

    @property
    def negates(self) -> bool:
        """As the step."""
        return bool(self.step.negates)

    @property
    def needs_weights(self) -> bool:
        """As the step."""
        return bool(getattr(self.step, "needs_weights", False))

    @property
    def constrains(self) -> bool:
        """As the step."""
        return bool(getattr(self.step, "constrains", False))

    def init(self, weights: Any) -> Any:
        """Return the step's first state for these weights."""
        state = self.step.init(weights)
        if self._trees is None or self._namespaces.is_compiled_by_torch():
            return state
        leaves, structure = self._trees.flatten(state)
        first = next((leaf for leaf in leaves if leaf is not None), None)
        runner = None if first is None else self._runner(first)
        if not isinstance(runner, TorchRunner):
            return state
        return self._trees.unflatten(structure, in_large_pages(leaves))

    def pack(self, state: Any) -> Any:
        """Return a state in the form that costs the least to go from call to call.

        On JAX a step of many small leaves spends its time on the leaves. There the moments of all small ones
        are put into one array each, and the compiled step gives back a packed state for one. Gradients,
        weights and updates stay trees. On NumPy and PyTorch a compiled step gives its state as views of
        packed arrays anyway, so there the state itself comes back.

        A packed state is for the compiled step alone: unpack it before saving it or calling the step itself.

        Args:
            state: what ``init`` or a call of the step returned.

        Returns:
            `PackedState`, or the state.

        Raises:
            StateError: it is no state of this step, or packed already.

        Example:
            >>> import jax.numpy as jnp
            >>> from steps_backends import compile
            >>> from steps_core import AdamStep
            >>> step = compile(AdamStep(learning_rate=0.5), donate=("state",))
            >>> weights = {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}
            >>> packed = step.pack(step.init(weights))
            >>> updates, packed = step(weights, weights, packed)
            >>> int(step.unpack(packed)["count"])
            1
        """
        if isinstance(state, PackedState):
            raise self._refused("state", "be a state that is not packed yet", state, "leave this call out")
        if self._trees is None:
            return state
        try:
            leaves, _ = self._trees.flatten(state)
            first = next((leaf for leaf in leaves if leaf is not None), None)
            runner = None if first is None else self._runner(first)
            return runner.pack(state) if isinstance(runner, JaxRunner) else state
        except Exception:  # noqa: BLE001  # Whatever it is, such a state is none of this step.
            raise self._refused(
                "state", "be a state of this step", state, "pass step.init(weights), or what a call returned"
            ) from None

    def unpack(self, packed: Any) -> Any:
        """Return the state that a packed one holds, bit for bit.

        Args:
            packed: what ``pack`` or a call with a packed state returned.

        Raises:
            StateError: it is no packed state of this step.
        """
        if isinstance(packed, PackedState):
            if self._on_jax is None or packed.layout.frame != self._on_jax.frame:
                way_out = "unpack it with the step that packed it"
                raise self._refused("packed", "be a packed state of this step", packed, way_out)
            return packed.layout.unpacked(packed.arrays)
        if self.pack(packed) is not packed:
            way_out = "pass what pack returned; a state that is a tree needs no unpacking"
            raise self._refused("packed", "be a packed state", packed, way_out)
        return packed

    def _refused(self, argument: str, rule: str, value: Any, way_out: str) -> Exception:
        errors = module_of(self._package or "steps_core", "errors")
        refused: Exception = errors.refusal(errors.StateError, argument, rule, value, way_out)
        return refused

    def describe(self) -> Any:
        """Return the description of the step: how it is run is no part of it."""
        return self.step.describe()

    def __call__(self, gradients: Any, weights: Any = None, state: Any = None, **options: Any) -> Any:
        """Return the processed gradients and the new state, as the step does.

        Args:
            gradients, weights, state: as the step takes them.
            options: what else it takes; then the step itself is called.
        """
        if self._trees is None:
            self._tell("it is a step by protocol, which may keep values of its own")
        if options or self._trees is None or self._namespaces.is_compiled_by_torch():
            return self.step(gradients, weights, state, **options)
        if self._on_jax is not None and state is not None:
            result = self._on_jax.again(gradients, weights, state)
            if result is not None:
                return result
        try:
            opened = self._trees.flatten(gradients)
            runner = self._runner(next(leaf for leaf in opened[0] if leaf is not None))
        except Exception:  # noqa: BLE001  # The plain call tells what is wrong, if anything is.
            runner = None
        if runner is None:
            return self.step(gradients, weights, state)
        return runner(gradients, opened, weights, state)

    def _runner(self, leaf: Any) -> Runner | None:
        kind = type(leaf)
        if kind not in self._by_kind:
            xp = self._namespaces.namespace_of(leaf)
            library = "" if xp is None else self._namespaces.library_name(xp)
            if library not in self._runners:
                self._runners[library] = self._made_runner(library)
            self._by_kind[kind] = self._runners[library]
        return self._by_kind[kind]

    def _made_runner(self, library: str) -> Runner | None:
        assert self._package is not None
        given = self.step, self._package, self.donate
        if library == "numpy":
            return numpy_runner(*given, NumpySharing(self._namespaces), self._tell)
        if library == "torch" and find_spec("numpy") is not None:
            return TorchRunner(*given, self._tell)
        if library == "cupy":
            return cupy_runner(*given, self._tell)
        if library == "jax":
            self._on_jax = JaxRunner(*given, self._tell)
            return self._on_jax
        self._tell(f"there is no compiled form for {library}")
        return None

    def _tell(self, reason: str, how: str = "as it is, not compiled") -> None:
        """Warn, once for each reason, that the step runs plainly, or how else."""
        if reason not in self._told:
            self._told.add(reason)
            warnings.warn(
                f"{type(self.step).__name__} runs {how}, because {reason}; its results are the same",
                RuntimeWarning,
                stacklevel=4,
            )


def compile(step: Any, donate: Iterable[str] = ()) -> CompiledStep:  # noqa: A001  # The field's word.
    """Return a step that does the same as another one, in the fastest way that the library of its arrays has.

    The first call with gradients of some form (structure, shapes, dtypes) traces the step and makes a plan of
    it; later calls run the plan. Contract, state, results and errors are the step's own, so that compiled and
    plain calls may take turns on one state: element-wise results have the same bits, norms may differ in the
    last one. What cannot be traced runs as it is, and one warning says why.

    Args:
        step: any step; a chain is traced as a whole.
        donate: "gradients", "state", or both: arrays of theirs may be written to by a call and must not be
            used after it. Without it nothing given is written to. Default none.

    Returns:
        A step with ``init``, ``negates``, ``needs_weights`` and ``describe`` of the given one.

    Raises:
        ArgumentTypeError: step is no step.
        ArgumentError: donate names something else.

    Example:
        >>> import numpy as np
        >>> from steps_backends import compile
        >>> from steps_core import SGDStep
        >>> step = compile(SGDStep(learning_rate=0.5))
        >>> updates, state = step(np.asarray([1.0, -2.0]))
        >>> updates
        array([-0.5,  1. ])
    """
    from steps_core.contract import checked_step
    from steps_core.errors import ArgumentError, refusal

    named = (donate,) if isinstance(donate, str) else tuple(donate)
    for name in named:
        if name not in DONATABLE:
            rule = f"name {' or '.join(DONATABLE)}"
            raise refusal(ArgumentError, "donate", rule, name, 'pass donate=("gradients", "state")')
    return CompiledStep(checked_step("step", step), frozenset(named))
