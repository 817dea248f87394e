"""Other libraries as targets: each adapter calls the public interface of its library, and nothing else.

What a library cannot express it declares by NotExpressible. Where it deviates stands in the expectation file
beside its module, with the reason.
"""
