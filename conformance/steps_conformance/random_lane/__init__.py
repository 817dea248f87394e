"""The random lane: searches for inputs on which a target is wrong, beside the lane that gives the verdict.

Every example is a vector, made by the oracle. So what is found is a file that replays on any target.
"""
