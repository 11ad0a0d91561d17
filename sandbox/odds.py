"""Odds of a planned fault, drawn from a seed: of the next `count` calls, each fails with the probability `rate`."""

import random
from dataclasses import dataclass, field
from typing import Any


@dataclass(kw_only=True)
class Odds:
    """What the faults of both clouds have in common. `fired` counts the calls that failed."""

    count: int = 1
    rate: float = 1.0
    seed: int = 0
    fired: int = 0
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def draw(self) -> bool:
        """Count a call that the plan is for, and return whether it fails."""
        self.count -= 1
        hit = self._random.random() < self.rate
        self.fired += hit
        return hit

    def as_json(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if not key.startswith("_")}
