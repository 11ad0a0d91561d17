"""Reaction to a crossed budget: its levers, their order, and how they are undone. Plain values and the standard library
only, since the clouds' functions have these files in their archives; `stacks budget` uses the same levers."""
