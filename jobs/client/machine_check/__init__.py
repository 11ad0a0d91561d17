"""Check of a job's machine or container: what it has, and whether that is what the job was promised."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accel.diagnostics.errors import CloudSilent

from ...backends.base import Streams

_HERE = Path(__file__).parent
_SAID_MAX = 1 << 20


def command() -> list[str]:
    """Return the command to run on the machine. It reads one line."""
    return ["sh", "-c", (_HERE / "probe.sh").read_text(), "sh", (_HERE / "probe.py").read_text()]


@dataclass(frozen=True)
class Skew:
    """Bounds of how far a clock is ahead of ours, in seconds."""

    least: float
    most: float

    @property
    def estimate_s(self) -> float:
        """Middle of the bounds, or 0 where the clocks may well agree."""
        return 0.0 if self.least <= 0 <= self.most else round((self.least + self.most) / 2, 3)


@dataclass(frozen=True)
class MachineReport:
    """The facts and clock of one machine."""

    facts: Mapping[str, Any]
    skew: Skew


@dataclass
class _Talk:
    """Conversation with the machine: receive the facts, send the line that asks for the time, and receive that."""

    clock: Callable[[], float]
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    heard: threading.Event = field(default_factory=threading.Event)
    asked: float | None = None
    told: float | None = None

    def write(self, is_error: bool, data: bytes) -> None:
        into = self.err if is_error else self.out
        if len(into) < _SAID_MAX:
            into += data
        lines = self.out.count(b"\n")
        if lines:
            self.heard.set()
        if lines > 1 and self.told is None:
            self.told = self.clock()

    def read(self, most: int) -> bytes:
        self.heard.wait()
        if self.asked is not None or self.told is not None:
            return b""
        self.asked = self.clock()
        return b"\n"


def ask(run: Callable[[Streams], int], clock: Callable[[], float] = time.time) -> MachineReport:
    """Report on the machine where `run` runs command(). Raises CloudSilent without an answer, and errors of `run`."""
    talk = _Talk(clock)
    try:
        code = run(Streams(talk.write, talk.read))
    finally:
        talk.heard.set()
    try:
        facts, now = (json.loads(line) for line in talk.out.splitlines()[:2])
        if talk.asked is None or talk.told is None:
            raise ValueError("it told the time unasked")
        return MachineReport(facts, Skew(now["now"] - talk.told, now["now"] + bool(now.get("whole")) - talk.asked))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        said = talk.err.decode(errors="replace").strip().rpartition("\n")[2][:200]
        raise CloudSilent(f"the check told nothing, exit code {code}: {said or error}") from error
