"""The commands of `steps-conformance`, one module each, and what they share."""
