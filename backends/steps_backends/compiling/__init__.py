"""Running steps fast: a step is traced once, what it computes is fused, and an executor runs that."""

from .compiled import CompiledStep, compile  # noqa: A004  # The field's word.

__all__ = ["CompiledStep", "compile"]
