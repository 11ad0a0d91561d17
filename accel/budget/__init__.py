"""Reaction to a crossed budget: which levers are pulled, in which order, and how they are undone.

Uses plain values and the standard library only: the clouds' functions include these files in their archives, next to
the one that calls their cloud. `stacks budget` uses the same levers.
"""
