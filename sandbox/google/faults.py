"""Faults that a test plans: of calls by their method's name, drawn from a seed, and of machines that cannot be had."""

import random
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from .errors import ApiError


@dataclass
class Plan:
    """The next `count` calls of methods that match `method` ("container.*.create"), each with the probability `rate`.

    `code`: they are refused with this HTTP status, before they are carried out, or with `after` when they have been.
    `delay_s`: the operation that they start runs so much longer. `fails`: it ends with this message.
    """

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
        """Whether this call is to be faulted; counts it."""
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
