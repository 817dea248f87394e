"""The vectors of clipping, played from the files alone.

Nothing of this project is imported: this is what a reader of the vectors' README would write, in fractions.
"""

import json
import math
import struct
from fractions import Fraction
from pathlib import Path

FILES = Path(__file__).parents[2] / "conformance" / "steps_conformance" / "vectors" / "data"
DIGITS = 2**240  # of square roots: beyond what the vectors hold


def number(text):
    """Read a number of the vectors."""
    named = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "+0": 0.0, "-0": -0.0}
    if text in named:
        return named[text]
    digits, exponent = text.split("p")
    return Fraction(int(digits, 16)) * Fraction(2) ** int(exponent)


def leaves(tree):
    """Return the arrays of a tree in order; null is no array."""
    if tree is None or "dtype" in tree:
        return [] if tree is None else [tree]
    (parts,) = tree.values()
    return [leaf for part in (parts.values() if "dict" in tree else parts) for leaf in leaves(part)]


def root(square):
    """Return the square root of a fraction, rounded down at 240 bits."""
    whole = math.isqrt(square.numerator * square.denominator * DIGITS**2)
    return Fraction(whole, square.denominator * DIGITS)


def scaled(values, norm, threshold):
    """Return the values scaled to a norm of at most threshold; the rules for NaN, infinity and 0 first."""
    if threshold == 0:
        return [0.0] * len(values)
    if norm != norm:
        return [math.nan] * len(values)
    if norm == math.inf:
        return [math.nan if abs(value) == math.inf else 0.0 for value in values]
    return values if norm <= threshold else [value * threshold / norm for value in values]


def norm_of(values):
    """Return the norm: NaN if any value is, else infinite if any value is, else exact."""
    if any(value != value for value in values):
        return math.nan
    if any(abs(value) == math.inf for value in values):
        return math.inf
    return root(sum((Fraction(value) ** 2 for value in values), Fraction(0)))


def clipped(variant, threshold, arrays):
    """Return the values of each array after clipping."""
    if threshold is None or threshold == math.inf or variant is None:
        return arrays
    if variant in ("per-weight", "per-parameter"):
        return [[limited(value, threshold) for value in values] for values in arrays]
    if variant == "per-layer":
        return [scaled(values, norm_of(values), threshold) for values in arrays]
    norm = norm_of([value for values in arrays for value in values])
    return [scaled(values, norm, threshold) for values in arrays]


def limited(value, threshold):
    """Return the value limited to [-threshold, threshold]; NaN stays, but for threshold 0."""
    if threshold == 0:
        return 0.0
    return value if value != value else max(-threshold, min(threshold, value))


def float32(value):
    """Return a number rounded to float32."""
    return struct.unpack("f", struct.pack("f", float(value)))[0]


def ulp(value):
    """Return the distance between neighbouring float32 numbers around a finite number."""
    exponent = math.frexp(min(abs(float(value)), 3.4028234663852886e38))[1]
    return Fraction(2) ** max(exponent - 24, -149)


def problem(got, expected, given):
    """Return what is wrong with an array, or None."""
    if expected.get("unchanged"):
        same = all(struct.pack("f", a) == struct.pack("f", b) for a, b in zip(got, given, strict=True))
        return None if same else "the bits changed"
    wanted = [number(text) for text in expected["values"]]
    sizes = [number(text) for text in expected.get("of", expected["values"])]
    for value, want, size in zip(got, wanted, sizes, strict=True):
        if want != want or abs(want) == math.inf:
            right = value != value if want != want else value == want
        else:
            right = math.isfinite(value) and abs(value - want) <= expected.get("ulps", 0) * ulp(size)
        if not right:
            return f"expected {float(want)}, got {value}"
    return None


def decoded(option):
    """Return an option's value; a finite float as a fraction."""
    value = float.fromhex(option["float"]) if isinstance(option, dict) else option
    return value if value in (None, math.inf) else Fraction(value)


def calls():
    """Yield id, variant, threshold and call of each vector that clips leaves of float32 without weights."""
    files = [json.loads((FILES / name).read_text()) for name in ("clipping.json", "reports.json")]
    for vector in [vector for file in files for vector in file["vectors"]]:
        options = vector["step"].get("options", {})
        variant = options.get("variant", "per-weight")
        dtypes = {array["dtype"] for call in vector["calls"] for array in leaves(call["gradients"])}
        plain = vector["step"]["step"] == "GradientClippingStep" and "relative" not in str(variant)
        if plain and dtypes <= {"float32"}:
            for call in vector["calls"]:
                yield vector["id"], variant, decoded(options.get("threshold", 1)), call


def outcomes(change=lambda value: value):
    """Return the id of each vector that can be played here, and what is wrong with the results of a call."""
    played = []
    for identity, variant, threshold, call in calls():
        given = [[number(text) for text in array["values"]] for array in leaves(call["gradients"])]
        results = [[change(float32(value)) for value in row] for row in clipped(variant, threshold, given)]
        rows = zip(results, leaves(call["expected"]), given, strict=True)
        problems = [problem(result, want, [float(value) for value in row]) for result, want, row in rows]
        played.append((identity, next(filter(None, problems), None)))
    return played


def test_a_plain_reader_agrees_with_every_vector_of_float32():
    """Results of exact fractions, rounded once to float32, are right for all of them."""
    played = outcomes()

    assert len({identity for identity, _ in played}) > 100
    assert [row for row in played if row[1]] == []


def test_a_reader_whose_results_are_a_millionth_off_disagrees():
    """So that the comparison is one; only what must be zero, NaN or infinite can agree."""
    played = outcomes(lambda value: float32(value * (1 + 1e-6)))

    assert sum(wrong is not None for _, wrong in played) > len(played) / 2
