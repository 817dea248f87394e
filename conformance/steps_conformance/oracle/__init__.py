"""What each step must give, worked out in 50 digits from the formulas of the requirements.

The oracle knows nothing of any implementation. It takes inputs as exact numbers (a float is the double it
is) and works with finite numbers only: what NaN and infinity give is written down in the cases themselves.
One module a topic; ``exact`` holds the numbers, ``units`` says which elements share a norm.
"""
