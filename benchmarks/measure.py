"""Timing of commands, and what a measurement is reported as."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = sys.executable


@dataclass(frozen=True)
class Line:
    """One measured value beside what it is held against; `limit` is in the value's unit."""

    name: str
    value: float
    unit: str
    peer: str = ""
    peer_value: float | None = None
    limit: float | None = None

    @property
    def broken(self) -> bool:
        return self.limit is not None and self.value > self.limit

    def __str__(self) -> str:
        text = f"{self.name}: {self.value:.4g} {self.unit}".rstrip()
        if self.peer_value is not None:
            text += f"; {self.value / self.peer_value:.3g} x {self.peer} ({self.peer_value:.4g} {self.unit})"
        if self.limit is not None:
            text += f"; limit {self.limit:.4g}{' BROKEN' if self.broken else ''}"
        return text


class Failed(Exception):
    """A command that was to be timed did not succeed."""


def run(command: Sequence[str | Path], cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> str:
    """Return stdout. Raise Failed if the command ends with another code than 0."""
    values = {**os.environ, **(environment or {})}
    values.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed has its bytecode
    answer = subprocess.run(command, cwd=cwd, env=values, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if answer.returncode:
        said = (answer.stderr or answer.stdout).strip().splitlines()
        raise Failed(f"{' '.join(map(str, command))}: exit code {answer.returncode}: {said[-1] if said else ''}")
    return answer.stdout


def median_s(command: Sequence[str | Path], runs: int = 5, cwd: Path = ROOT) -> float:
    return medians_s([(command, cwd)], runs)[0]


def medians_s(commands: Sequence[tuple[Sequence[str | Path], Path]], runs: int = 5) -> list[float]:
    """Run the commands in turn, so that other load meets them alike, after one run of each that warms the caches."""
    for command, cwd in commands:
        run(command, cwd)
    rounds = [[once_s(command, cwd) for command, cwd in commands] for _ in range(runs)]
    return [statistics.median(values) for values in zip(*rounds, strict=True)]


def once_s(command: Sequence[str | Path], cwd: Path = ROOT) -> float:
    started = time.perf_counter()
    run(command, cwd)
    return time.perf_counter() - started
