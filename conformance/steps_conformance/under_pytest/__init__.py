"""The suite as pytest sees it: what was typed, the items, and the judgement on the whole run."""
