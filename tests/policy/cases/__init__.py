"""For each policy: resources that pass, that fail with these words, and of which it cannot be told yet."""

from . import identity, keeping, machines, money, reach
from .shapes import AWS, Case, one

__all__ = ["AWS", "CASES", "one"]

CASES: dict[str, Case] = reach.CASES | identity.CASES | machines.CASES | keeping.CASES | money.CASES
