"""Graphs that people use, in JSON form: for cases and vectors."""

from .descriptions import description
from .graph_documents import Document, both, described, graph, node, parameter, step_node

CLIP = description("GradientClippingStep", variant="global", threshold=0.5)
ADAM = description("AdamStep", learning_rate=0.125)

DECAYED = both(
    step_node(
        "clipped",
        described("GradientClippingStep", variant="global", threshold=parameter("limit")),
        "gradients",
    ),
    node("decay", "multiply", "share", "weights"),
    node("sum", "add", "clipped", "decay"),
    node("out", "negative", "sum"),
    parameters={"share": 0.25, "limit": 1.0},
)
LARS = both(
    node("decay", "multiply", "share", "weights"),
    node("d", "add", "gradients", "decay"),
    node("w", "norm", "weights", over="leaf"),
    node("g", "norm", "d", over="leaf"),
    node("w_moves", "greater", "w", 0.0),
    node("g_moves", "greater", "g", 0.0),
    node("moves", "logical_and", "w_moves", "g_moves"),
    node("trusted", "multiply", "trust", "w"),
    node("ratio", "divide", "trusted", "g"),
    node("factor", "where", "moves", "ratio", 1.0),
    node("scaled", "multiply", "factor", "d"),
    node("m", "trace", "scaled", decay=parameter("momentum")),
    node("minus", "negative", "rate"),
    node("out", "multiply", "minus", "m"),
    parameters={"rate": 0.125, "trust": 0.5, "momentum": 0.75, "share": 0.0625},
)
SIGN_DESCENT = graph(
    node("m", "trace", "gradients", decay=0.5),
    node("s", "sign", "m"),
    node("out", "multiply", "s", -0.25),
)
TRAINED: dict[str, Document] = {
    "decayed": DECAYED,
    "lars": LARS,
    "sign-descent": SIGN_DESCENT,
    "adam-on-clipped": both(
        step_node("clipped", CLIP, "gradients"),
        step_node(
            "out", description("AdamStep", learning_rate=0.125, weight_decay=0.25), "clipped", "weights"
        ),
    ),
    "two-optimizers": graph(
        step_node("first", ADAM, "gradients"),
        step_node("second", description("SGDStep", momentum=0.5), "gradients"),
        node("out", "add", "first", "second"),
    ),
}
PARTED = both(
    node("body", "extract_streams", "gradients", names=["conv", "norm"]),
    node("head", "extract_streams", "gradients", names=["head"]),
    node("body_weights", "extract_streams", "weights", names=["norm", "conv"]),
    step_node("clipped", CLIP, "body"),
    step_node(
        "adam", described("AdamStep", learning_rate=0.125, weight_decay=0.25), "clipped", "body_weights"
    ),
    node("descended", "multiply", "rate", "head"),
    node("out", "merge_streams", "descended", "adam"),
    parameters={"rate": -0.5},
)
