"""Faults that a test plans: of calls by their method's name, drawn from a seed, and of machines that cannot be had."""

import random
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from .errors import ApiError


@dataclass
class Plan:
    """Fault of the next `count` calls of methods that match `method` ("container.*.create"), each with probability
    `rate`. `code`: HTTP status of the refusal, before the call is carried out, or with `after` afterwards. `delay_s`:
    additional time of the operation that the call starts. `fails`: message with which the operation ends."""

    method: str
    code: int = 0
    message: str = "planned by the sandbox"
    after: bool = False
    delay_s: float = 0
    fails: str = ""
    count: int = 1
    rate: float = 1
    seed: int = 0
    fired: int = 0
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not (self.code or self.delay_s or self.fails):
            raise ValueError("a plan has one of code, delay_s, fails")
        self._random = random.Random(self.seed)

    def take(self, method: str) -> bool:
        """Count a call, and return whether it fails."""
        if self.count <= 0 or not fnmatchcase(method, self.method):
            return False
        self.count -= 1
        hit = self._random.random() < self.rate
        self.fired += hit
        return hit

    def refusal(self) -> ApiError:
        return ApiError(self.code, self.message)

    def as_json(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if not key.startswith("_")}
