"""Custom steps that people ask for, as graphs: copy the one you need.

Run it to see each graph drawn: python examples/custom_steps.py
"""

from typing import Any

from steps_core import (
    AdamStep,
    CenteringStep,
    ChainedStep,
    GradientClippingStep,
    MaskedStep,
    ScalingStep,
    SGDStep,
    WeightDecayStep,
    extract_streams,
    graph,
    graphs,
    merge_streams,
)


def is_matrix(path: tuple[Any, ...], leaf: Any) -> bool:
    """Return whether a leaf has two axes or more; biases and scales have one."""
    return bool(leaf.ndim >= 2)


def is_before_head(path: tuple[Any, ...], leaf: Any) -> bool:
    """Return whether a leaf stands in another layer than "head"."""
    return bool(path[0] != "head")


@graph
def adamw_on_matrices(gradients, weights, *, learning_rate=1e-3, weight_decay=1e-2):
    """AdamW, with decay on matrices only (Loshchilov and Hutter 2019)."""
    direction = -AdamStep(learning_rate=1.0)(gradients)
    decayed = MaskedStep(WeightDecayStep(weight_decay=weight_decay), is_matrix)(direction, weights)
    return -learning_rate * decayed


@graph
def adaptive_clipping_before_head(gradients, weights, *, threshold=0.01, learning_rate=0.1, momentum=0.9):
    """Adaptive gradient clipping on all but the last layer, then descent (Brock et al. 2021)."""
    adaptive = GradientClippingStep(variant="per-weight-relative", threshold=threshold)
    clipped = MaskedStep(adaptive, is_before_head)(gradients, weights)
    return SGDStep(learning_rate=learning_rate, momentum=momentum)(clipped)


@graph
def lars(gradients, weights, *, learning_rate=0.1, trust=1e-3, momentum=0.9, weight_decay=1e-4):
    """A rate for each layer, by the ratio of its norms (You, Gitman and Ginsburg 2017)."""
    decayed = gradients + weight_decay * weights
    weight_norm = graphs.norm(weights, over="leaf")
    gradient_norm = graphs.norm(decayed, over="leaf")
    has_direction = (weight_norm > 0) & (gradient_norm > 0)
    ratio = graphs.where(has_direction, trust * weight_norm / gradient_norm, 1.0)
    return -learning_rate * graphs.trace(ratio * decayed, decay=momentum)


@graph
def sign_descent(gradients, *, learning_rate=1e-2, momentum=0.9):
    """The sign of the momentum alone (Bernstein et al. 2018)."""
    return -learning_rate * graphs.sign(graphs.trace(gradients, decay=momentum))


@graph
def budget_per_layer(gradients, *, budget=1.0, layers=4, learning_rate=0.1):
    """Clip each leaf to its share of a budget, so that the whole stays within it; no noise is added.

    n leaves, each of norm at most budget / sqrt(n), have together at most the norm budget.
    """
    clipped = GradientClippingStep(variant="per-layer", threshold=budget / layers**0.5)(gradients)
    return -learning_rate * clipped


@graph
def centralised_adam(gradients, *, learning_rate=1e-3, unit_axis="auto"):
    """Gradient centralisation, then Adam (Yong et al. 2020)."""
    return ChainedStep(CenteringStep(unit_axis=unit_axis), AdamStep(learning_rate=learning_rate))(gradients)


@graph
def two_rates(gradients, weights, *, body_rate=1e-3, head_rate=1e-2, weight_decay=0.01):
    """Two streams of a packet, "body" and "head", treated differently and merged again."""
    body = extract_streams(gradients, ["body"])
    head = extract_streams(gradients, ["head"])
    body_weights = extract_streams(weights, ["body"])
    adam = AdamStep(learning_rate=body_rate, weight_decay=weight_decay)
    return merge_streams(adam(body, body_weights), ScalingStep(learning_rate=head_rate)(head))


GRAPHS = (
    adamw_on_matrices,
    adaptive_clipping_before_head,
    lars,
    sign_descent,
    budget_per_layer,
    centralised_adam,
    two_rates,
)


if __name__ == "__main__":
    for drawn in GRAPHS:
        print(drawn, end="\n\n")
        print(drawn.mermaid(), end="\n\n")
