"""What a target must claim for whole requirements to speak of it.

A rule about the form of a state, of trees or of error texts is a rule of our contract: another library
that does not claim that form does not break it. What a single case needs stands at the case.
"""

_NEEDS: dict[str, tuple[str, ...]] = {
    "state_form": (
        "ADAM-013",
        "CHAIN-011",
        "CHAIN-012",
        "CLIP-OPTION-009",
        "CONTRACT-004",
        "CONTRACT-009",
        "CONTRACT-013",
        "CONTRACT-015",
        "CUSTOM-007",
        "CUSTOM-020",
        "MASK-004",
        "MOMENTUM-003",
        "MONITOR-002",
        "MONITOR-003",
        "MONITOR-004",
        "MONITOR-005",
        "MONITOR-007",
        "PREC-003",
        "PREC-006",
        "RMSPROP-010",
        "SGD-005",
        "SKIP-003",
        "SKIP-005",
        "TREE-004",
        "TUNE-001",
        "TUNE-002",
        "TUNE-007",
    ),
    "trees": tuple(f"TREE-{number:03}" for number in range(1, 14)),
    "describe": ("DESCRIBE-008",),
    "error_form": ("CONTRACT-013", "CHAIN-009", "CUSTOM-019"),
}
"""Requirement ids by capability."""


def needs_of(requirement: str) -> frozenset[str]:
    """Return the capabilities that every case of a requirement needs."""
    return frozenset(name for name, listed in _NEEDS.items() if requirement in listed)
