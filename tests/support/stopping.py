"""A store of a stop in memory, which may end the process at a save."""

from dataclasses import dataclass

from accel.budget.state import State, StateConflict, of_json, to_json


class Killed(BaseException):
    """The process ended here."""


@dataclass
class Memory:
    """A store; killed at the save of that number."""

    text: str = to_json(State())
    version: int = 0
    killed_at: int | None = None

    def load(self) -> tuple[State, int]:
        return of_json(self.text), self.version

    def save(self, state: State, seen: int) -> int:
        if seen != self.version:
            raise StateConflict
        if self.killed_at == self.version:
            raise Killed
        self.text, self.version = to_json(state), self.version + 1
        return self.version
