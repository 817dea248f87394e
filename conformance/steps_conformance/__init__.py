"""A numbered specification of gradient-processing steps and the suite that proves it."""
