"""Trees, weights and states that must be refused when a step is called, each with its path."""

from typing import Any

import ml_dtypes
import numpy as np
from bad_arguments import Bad

from steps_core import (
    AdamStep,
    ArgumentError,
    CenteringStep,
    ChainedStep,
    ConstraintStep,
    CosineSchedule,
    GradientClippingStep,
    LeafTypeError,
    MaskedStep,
    MomentumStep,
    MonitorStep,
    RMSPropStep,
    ScalingStep,
    SGDStep,
    SkipNonFiniteStep,
    StateError,
    Step,
    TreeMismatchError,
    WeightDecayStep,
    apply_updates,
)

ONE = np.ones(3, "float32")
ADAM = AdamStep()


def tree(leaf: Any) -> Any:
    """Return a tree with a good leaf and this one."""
    return {"layer1": {"kernel": ONE, "bias": leaf}}


BIAS = "['layer1']['bias']"

WRONG_LEAVES: dict[str, Any] = {
    "int": (np.ones(2, int), "dtype int64 (ndarray)"),
    "bool": (np.ones(2, bool), "dtype bool (ndarray)"),
    "float8": (np.ones(2, ml_dtypes.float8_e4m3fn), "dtype float8_e4m3fn"),
    "long double": (np.ones(2, np.longdouble), "(ndarray)"),
    "objects": (np.asarray([None]), "dtype object"),
    "texts": (np.asarray(["a"]), "(ndarray)"),
    "dates": (np.asarray(["2020-01-01"], "datetime64[D]"), "datetime64"),
    "masked": (np.ma.ones(2), "(MaskedArray)"),
    "matrix": (np.ones((2, 2)).view(np.matrix), "(matrix)"),
    "Python float": (0.5, "0.5 (float)"),
    "Python int": (3, "3 (int)"),
    "Python bool": (True, "True (bool)"),
    "text": ("bias", "'bias' (str)"),
    "a function": (len, "(builtin_function_or_method)"),
    "a set": ({1.0}, "{1.0} (set)"),
    "a class": (dict, "(type)"),
}


def wrong_leaves() -> list[Bad]:
    """Return rows for leaves that are no floating or complex array, in each tree that is taken."""
    rows = []
    for what, (leaf, got) in WRONG_LEAVES.items():
        says = (
            "must be a dense array of dtype float16, bfloat16",
            got,
            "pass a dense array",
            "register_container",
        )
        calls = {
            "gradients": lambda x=leaf: ADAM(tree(x)),
            "weights": lambda x=leaf: ADAM(tree(ONE), tree(x)),
            "updates": lambda x=leaf: apply_updates(tree(ONE), tree(x)),
        }
        for name, call in calls.items():
            path = f"{name}{BIAS}"
            rows.append(Bad(f"{what} in {name}", call, LeafTypeError, name, (path, *says), path))
        rows.append(
            Bad(
                f"{what} for init",
                lambda x=leaf: ADAM.init(tree(x)),
                LeafTypeError,
                "weights",
                says,
                f"weights{BIAS}",
            )
        )
    return rows


def _mismatch(what: str, gradients: Any, weights: Any, error: type, path: str, *says: str) -> list[Bad]:
    return [
        Bad(what, lambda: ADAM(gradients, weights), error, "weights", (path, *says), path),
        Bad(
            f"{what}, for apply_updates",
            lambda: apply_updates(weights, gradients),
            error,
            "weights",
            (path, *says),
            path,
        ),
    ]


MISMATCHES: list[Bad] = [
    *_mismatch(
        "another shape",
        tree(np.ones(2)),
        tree(np.ones(3)),
        TreeMismatchError,
        f"weights{BIAS}",
        "must have the shape (2,)",
        "an array of shape (3,) and dtype float64 (ndarray)",
        "pass trees that were made for each other",
    ),
    *_mismatch(
        "a leaf missing",
        tree(ONE),
        {"layer1": {"kernel": ONE}},
        TreeMismatchError,
        f"weights{BIAS}",
        "a leaf",
        "nothing",
        "give both the same containers and keys",
    ),
    *_mismatch(
        "None in the weights",
        tree(ONE),
        tree(None),
        TreeMismatchError,
        f"weights{BIAS}",
        "must be an array",
        "None (NoneType)",
    ),
    *_mismatch(
        "complex against real",
        tree(np.ones(2, complex)),
        tree(np.ones(2)),
        LeafTypeError,
        f"weights{BIAS}",
        "must be complex as",
        "use one kind for both",
    ),
    *_mismatch(
        "real against complex",
        tree(np.ones(2)),
        tree(np.ones(2, complex)),
        LeafTypeError,
        f"weights{BIAS}",
        "must be real as",
        "use one kind for both",
    ),
]


def _needs_weights(step: Step, name: str, slot: str | None = None) -> Bad:
    says = (
        f"weights must be given, because {name} needs them",
        "None (NoneType)",
        "step(gradients, weights, state)",
    )
    return Bad(f"no weights for {step!r}", lambda: step(tree(ONE)), ArgumentError, "weights", says, slot=slot)


RELATIVE = GradientClippingStep(variant="per-weight-relative")
NEED_WEIGHTS: list[Bad] = [
    _needs_weights(RELATIVE, "GradientClippingStep"),
    _needs_weights(WeightDecayStep(), "WeightDecayStep"),
    _needs_weights(ConstraintStep("nonnegative"), "ConstraintStep"),
    _needs_weights(AdamStep(weight_decay=0.1), "AdamStep"),
    _needs_weights(RMSPropStep(weight_decay=0.1), "RMSPropStep"),
    _needs_weights(SGDStep(weight_decay=0.1), "SGDStep"),
    _needs_weights(ChainedStep(ADAM, RELATIVE), "GradientClippingStep", "step2"),
    _needs_weights(ChainedStep(step3=ChainedStep(step0=WeightDecayStep())), "WeightDecayStep", "step3.step0"),
]

MATRIX = {"w": np.ones((2, 3), "float32")}
HALF = {"w": np.ones(2, "float16")}
OTHERS: list[Bad] = [
    *(
        Bad(
            f"an axis that is missing, {step!r}",
            lambda s=step: s(MATRIX, MATRIX),
            TreeMismatchError,
            "unit_axis",
            (
                "gradients['w'] must have the axis 2 that unit_axis names",
                "rank 2 (shape (2, 3))",
                "choose an axis",
            ),
            "gradients['w']",
        )
        for step in (
            GradientClippingStep(variant="per-weight-relative", unit_axis=2),
            CenteringStep(unit_axis=2),
            ConstraintStep("unit-norm", unit_axis=2),
        )
    ),
    Bad(
        "a constraint on a narrower gradient",
        lambda: ConstraintStep("nonnegative")(HALF, {"w": np.ones(2, "float32")}),
        LeafTypeError,
        "gradients",
        ("gradients['w'] must be of a dtype that holds every float32", "dtype float16", "cast the gradient"),
        "gradients['w']",
    ),
    Bad(
        "a constraint in a chain on a narrower gradient",
        lambda: ChainedStep(ADAM, ConstraintStep("nonnegative"))(HALF, {"w": np.ones(2, "bfloat16")}),
        LeafTypeError,
        "gradients",
        ("gradients['w'] must be of a dtype that holds every bfloat16", "dtype float16"),
        "gradients['w']",
        "step2",
    ),
    *(
        Bad(
            f"{step.constraint} of complex numbers",
            lambda s=step: s({"w": np.ones(2, complex)}, {"w": np.ones(2, complex)}),
            LeafTypeError,
            "gradients",
            ("gradients['w'] must be real under", "no order", "complex128", 'use "norm-ball" or "unit-norm"'),
            "gradients['w']",
        )
        for step in (ConstraintStep("nonnegative"), ConstraintStep("box", lower=0.0))
    ),
]


def _bad_state(what: str, step: Step, state: Any, path: str, *says: str, slot: str | None = None) -> Bad:
    return Bad(what, lambda: step(tree(ONE), tree(ONE), state), StateError, "state", says, path, slot)


def _changed(step: Step, changes: dict[str, Any], *, drop: str | None = None) -> dict[str, Any]:
    state = {**step.init(tree(ONE)), **changes}
    state.pop(drop, None)
    return state


COUNT = np.zeros((), "int32")
CHAIN = ChainedStep(ADAM, MonitorStep())
COUNTED = SGDStep(learning_rate=CosineSchedule(1.0, 5))
WAY_OUT = "pass the state that this step returned, or step.init(weights)"
STATES: list[Bad] = [
    *(
        _bad_state(
            f"{what} instead of a dict",
            ADAM,
            state,
            "state",
            "state must be a dict with the entries ['count'",
            WAY_OUT,
        )
        for what, state in (("a tuple", (1, 2)), ("an array", ONE), ("a list", []), ("text", "state"))
    ),
    _bad_state(
        "no moment",
        ADAM,
        _changed(ADAM, {}, drop="second_moment"),
        "state['second_moment']",
        "state must have exactly the entries ['count', 'first_moment', 'second_moment']",
        "missing: state['second_moment']",
        "(dict)",
        WAY_OUT,
    ),
    _bad_state(
        "an unknown entry", ADAM, _changed(ADAM, {"step": 1}), "state['step']", "not known: state['step']"
    ),
    _bad_state("a key that is no text", ADAM, _changed(ADAM, {1: 1}), "state[1]", "not known: state[1]"),
    _bad_state(
        "amsgrad's state for Adam",
        ADAM,
        AdamStep(amsgrad=True).init(tree(ONE)),
        "state['second_moment_max']",
        "not known",
    ),
    _bad_state(
        "Adam's state for amsgrad",
        AdamStep(amsgrad=True),
        ADAM.init(tree(ONE)),
        "state['second_moment_max']",
        "missing",
    ),
    _bad_state(
        "a state for a stateless step", WeightDecayStep(), ADAM.init(tree(ONE)), "state['count']", "not known"
    ),
    _bad_state("{} for a step with one", MomentumStep(), {}, "state['trace']", "missing: state['trace']"),
    *(
        _bad_state(
            f"a count that is {what}",
            ADAM,
            _changed(ADAM, {"count": count}),
            "state['count']",
            "state['count'] must be a 0-d array",
            says,
        )
        for what, count, says in (
            ("a number", 3, "got 3 (int)"),
            ("None", None, "None (NoneType)"),
            ("int64", np.zeros((), "int64"), "int32"),
            ("a vector", np.zeros(1, "int32"), "shape (1,)"),
            ("a float", np.zeros((), "float32"), "dtype float32"),
        )
    ),
    _bad_state(
        "a schedule's count of int64",
        COUNTED,
        {"count": np.zeros((), "int64")},
        "state['count']",
        "must be a 0-d array of dtype int32",
    ),
    *(
        _bad_state(
            f"a moment {what}",
            ADAM,
            _changed(ADAM, {"first_moment": tree(moment)}),
            f"state['first_moment']{BIAS}",
            *says,
        )
        for what, moment, says in (
            (
                "of another shape",
                np.zeros(4, "float32"),
                ("must be an array like gradients", "shape (3,)", "got an array of shape (4,)"),
            ),
            ("of another dtype", np.zeros(3, "float64"), ("dtype float32", "float64 (ndarray)")),
            ("of float16", np.zeros(3, "float16"), ("dtype float32", "float16 (ndarray)")),
            ("that is complex", np.zeros(3, "complex64"), ("dtype float32", "complex64 (ndarray)")),
            ("that is None", None, ("None (NoneType)",)),
            ("that is a number", 0.0, ("0.0 (float)",)),
        )
    ),
    _bad_state(
        "a moment of another structure",
        ADAM,
        _changed(ADAM, {"first_moment": {"layer1": {"kernel": ONE}}}),
        f"state['first_moment']{BIAS}",
        "must have the same tree structure",
        "nothing at state['first_moment']['layer1']['bias']",
    ),
    _bad_state(
        "a complex second moment",
        ADAM,
        _changed(ADAM, {"second_moment": tree(np.zeros(3, "complex64"))}),
        f"state['second_moment']{BIAS}",
        "dtype float32",
    ),
    _bad_state(
        "a norm that is a number",
        MonitorStep(),
        {"norm": 0.0, "finite": np.asarray(True)},
        "state['norm']",
        "0-d array of dtype float32 or float64",
        "0.0 (float)",
    ),
    _bad_state(
        "a norm of int32",
        MonitorStep(),
        {"norm": COUNT, "finite": np.asarray(True)},
        "state['norm']",
        "float32 or float64",
    ),
    _bad_state(
        "a flag of int32",
        MonitorStep(),
        {"norm": np.zeros((), "float32"), "finite": COUNT},
        "state['finite']",
        "0-d array of dtype bool",
    ),
    _bad_state(
        "a flag that is a bool",
        MonitorStep(),
        {"norm": np.zeros((), "float32"), "finite": True},
        "state['finite']",
        "True (bool)",
    ),
    _bad_state(
        "a counter of skips of int64",
        SkipNonFiniteStep(ADAM),
        {"inner": ADAM.init(tree(ONE)), "skipped": np.asarray(0)},
        "state['skipped']",
        "int32",
    ),
    _bad_state(
        "a bad inner state",
        SkipNonFiniteStep(ADAM),
        {"inner": {}, "skipped": COUNT},
        "state['inner']['count']",
        "state['inner'] must have exactly",
        "missing",
    ),
    _bad_state(
        "a bad masked state",
        MaskedStep(ADAM, True),
        {"inner": {}},
        "state['inner']['count']",
        "missing: state['inner']['count']",
    ),
    _bad_state(
        "a chain's missing slot",
        CHAIN,
        {"step1": ADAM.init(tree(ONE))},
        "state['step2']",
        "missing: state['step2']",
    ),
    _bad_state(
        "a chain's extra slot",
        ChainedStep(ADAM),
        CHAIN.init(tree(ONE)),
        "state['step2']",
        "not known: state['step2']",
    ),
    _bad_state(
        "a bare state for a chain",
        ChainedStep(ADAM),
        ADAM.init(tree(ONE)),
        "state['step1']",
        "missing: state['step1']",
    ),
    _bad_state(
        "a bad count inside a chain",
        CHAIN,
        {**CHAIN.init(tree(ONE)), "step1": _changed(ADAM, {"count": 3})},
        "state['step1']['count']",
        "state['step1']['count'] must be a 0-d array of dtype int32",
        slot="step1",
    ),
    _bad_state(
        "a bad moment deep inside",
        ChainedStep(step2=ChainedStep(step0=ADAM)),
        {"step2": {"step0": _changed(ADAM, {"first_moment": tree(np.zeros(4, "float32"))})}},
        f"state['step2']['step0']['first_moment']{BIAS}",
        "shape (3,)",
        slot="step2.step0",
    ),
]


def mixed_libraries() -> list[Bad]:
    """Return rows that bring NumPy and PyTorch together, and what only PyTorch has."""
    import torch

    there = tree(torch.ones(3))
    sparse = torch.eye(3).to_sparse()
    return [
        Bad(
            "two libraries in one tree",
            lambda: ADAM({"a": ONE, "b": torch.ones(3)}),
            TreeMismatchError,
            "gradients",
            ("gradients['b'] must be an array of numpy", "got one of torch", "convert one of the two"),
            "gradients['b']",
        ),
        Bad(
            "weights of another library",
            lambda: ADAM(tree(ONE), {"layer1": {"kernel": torch.ones(3), "bias": torch.ones(3)}}),
            TreeMismatchError,
            "weights",
            ("must be an array of numpy", "leaves of gradients", "got one of torch"),
            "weights['layer1']['bias']",
        ),
        Bad(
            "a state of another library",
            lambda: ADAM({"a": torch.ones(3)}, state=ADAM.init({"a": ONE})),
            StateError,
            "state",
            ("state['count'] must be a 0-d array of the gradients' library", "(ndarray)"),
            "state['count']",
        ),
        Bad(
            "a moment of another library",
            lambda: MomentumStep()({"a": torch.ones(3)}, state={"trace": {"a": ONE}}),
            StateError,
            "state",
            ("state['trace']['a'] must be an array like gradients['a']", "(ndarray)"),
            "state['trace']['a']",
        ),
        Bad(
            "a sparse leaf",
            lambda: ADAM({"a": sparse}),
            LeafTypeError,
            "gradients",
            ("gradients['a'] must be a dense array", "(Tensor)"),
            "gradients['a']",
        ),
        Bad(
            "a torch leaf of int",
            lambda: ADAM({"a": torch.ones(3, dtype=torch.int32)}),
            LeafTypeError,
            "gradients",
            ("gradients['a'] must be a dense array", "dtype torch.int32"),
            "gradients['a']",
        ),
        Bad(
            "torch weights that record",
            lambda: apply_updates(
                tree(torch.ones(3, requires_grad=True)) | {"layer1": torch.ones(1, requires_grad=True)},
                there | {"layer1": torch.ones(1)},
            ),
            ArgumentError,
            "weights",
            ("weights['layer1'] must not record gradients", "requires_grad=True", "under torch.no_grad()"),
            "weights['layer1']",
        ),
    ]


ROWS: list[Bad] = [*wrong_leaves(), *MISMATCHES, *NEED_WEIGHTS, *OTHERS, *STATES]
NEVER_USED = ScalingStep(scale=1.0)
