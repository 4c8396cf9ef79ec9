"""Boards that are not at hand: what the doctor says on them, and estimates of their speed.

`machines` stages each board as the doctor sees it; `chips` has the facts of GPUs that estimates are
made of, and `estimates` computes them with the delegate's cost model. `command` writes both into
docs/arm64.md.
"""
