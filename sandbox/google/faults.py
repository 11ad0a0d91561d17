"""Faults that a test plans: of calls by their method's name, drawn from a seed, and of machines that cannot be had."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..odds import Odds
from .errors import ApiError


@dataclass
class Plan(Odds):
    """Fault of the next `count` calls of methods that match `method` ("container.*.create"), each with probability
    `rate`. `code`: HTTP status of the refusal, before the call is carried out, or with `after` afterwards. `delay_s`:
    additional time of the operation that the call starts. `fails`: message with which the operation ends."""

    method: str
    code: int = 0
    message: str = "planned by the sandbox"
    after: bool = False
    delay_s: float = 0
    fails: str = ""

    def __post_init__(self) -> None:
        if not (self.code or self.delay_s or self.fails):
            raise ValueError("a plan has one of code, delay_s, fails")
        super().__post_init__()

    def take(self, method: str) -> bool:
        """Count a call, and return whether it fails."""
        return self.count > 0 and fnmatchcase(method, self.method) and self.draw()

    def refusal(self) -> ApiError:
        return ApiError(self.code, self.message)
