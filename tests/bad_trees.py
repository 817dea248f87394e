"""Trees that must be refused when a step is called, each with its path."""

from typing import Any

import ml_dtypes
import numpy as np
from bad_input import Bad

from steps_core import (
    AdamStep,
    ArgumentError,
    CenteringStep,
    ChainedStep,
    ConstraintStep,
    GradientClippingStep,
    LeafTypeError,
    MomentumStep,
    RMSPropStep,
    SGDStep,
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


ROWS: list[Bad] = [*wrong_leaves(), *MISMATCHES, *NEED_WEIGHTS, *OTHERS]
