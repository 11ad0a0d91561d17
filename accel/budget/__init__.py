"""What happens when a budget is crossed: which levers are pulled, in which order, and what takes it back.

Plain values and the standard library alone: the clouds' functions carry these files in their archives, beside the one
that has the calls of its cloud. `stacks budget` uses the same levers.
"""
