"""Data of a log's progress lines, of bounded size however long the log is."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from ...backends.base import LogLine
from ...client.observation import Places
from ...client.progress import GPUS_MAX, ProgressLine, gpu_words, mean, parse

POINTS_MAX = 600
"""Points of a curve: more cannot be seen. At twice as many, every second one is dropped."""
SERIES_MAX = 64
METRICS_MAX = 24
EVENTS_MAX = 100
SAVED_MAX = 200
"""Checkpoints of one attempt; further ones replace the last."""
CHECKPOINT = "checkpoint"
"""Event with which a program reports a checkpoint: jobs/runtime/checkpoints.py."""
Point = tuple[float, float]
K = TypeVar("K", bound=tuple[int | None, ...])


@dataclass
class Curve:
    """Points in the order of the log, thinned out evenly."""

    points: list[Point] = field(default_factory=list[Point])
    _every: int = 1
    _seen: int = 0
    _last: Point | None = None

    def add(self, x: float, y: float) -> None:
        self._last = (x, y)
        if self._seen % self._every == 0:
            self.points.append(self._last)
            if len(self.points) >= 2 * POINTS_MAX:
                del self.points[1::2]
                self._every *= 2
        self._seen += 1

    @property
    def drawn(self) -> list[Point]:
        """Points, always with the last one."""
        return self.points if self._last is None or self._last == self.points[-1] else [*self.points, self._last]


Key = tuple[int | None, int]
"""Task or node, and attempt."""
GpuKey = tuple[int | None, int, int]
"""Task or node, GPU, and attempt."""


@dataclass
class ReportData:
    """Data of one job's log."""

    lines: int = 0
    metrics: dict[str, dict[Key, Curve]] = field(default_factory=dict[str, dict[Key, Curve]])
    """Curves by step; by seconds since 1970 for metrics without one."""
    by_time: set[str] = field(default_factory=set[str])
    """Metrics that came without a step."""
    use: dict[GpuKey, Curve] = field(default_factory=dict[GpuKey, Curve])
    """GPU use in %, by seconds since 1970."""
    memory_use: dict[GpuKey, Curve] = field(default_factory=dict[GpuKey, Curve])
    """Share of time in which the GPU's memory was read or written, in %, by seconds since 1970."""
    memory: dict[GpuKey, Curve] = field(default_factory=dict[GpuKey, Curve])
    """GPU memory in use, in GiB, by seconds since 1970."""
    events: list[tuple[float, Key, str]] = field(default_factory=list[tuple[float, Key, str]])
    saved: dict[Key, list[tuple[float, str]]] = field(default_factory=dict[Key, list[tuple[float, str]]])
    """Time and text of each checkpoint."""
    last: dict[int | None, dict[str, float]] = field(default_factory=dict[int | None, dict[str, float]])
    """Last reported value of every metric, by task or node."""
    troubles: dict[str, None] = field(default_factory=dict[str, None])
    """Faults of GPUs, each once, as the keys."""
    left_out: int = 0
    """Number of values of curves and events beyond what is kept."""
    _resumed: dict[Key, int] = field(default_factory=dict[Key, int])
    """Number of resumes in lines that name this attempt."""
    _begun: set[Key] = field(default_factory=set[Key])
    """Keys that have reported a step."""

    @property
    def mean_use(self) -> float | None:
        """Average use of all GPUs over all reports, in %; None without reports."""
        return mean([use for curve in self.use.values() for _, use in curve.points])

    @property
    def times(self) -> tuple[float, float] | None:
        told = [at for curve in (*self.use.values(), *self.memory.values()) for at, _ in curve.drawn]
        return (min(told), max(told)) if told else None

    def take(self, lines: Iterable[LogLine]) -> "ReportData":
        places = Places()
        for line in lines:
            self.lines += 1
            if (told := parse(line.text)) is not None:
                self._take(self._key(*places.of(line.source), told), told)
        return self

    def _key(self, place: int | None, attempt: int, told: ProgressLine) -> Key:
        """Begin another attempt at a resume after steps, since not every platform names attempts."""
        key = place, attempt + self._resumed.get((place, attempt), 0)
        if told.event == "resume" and key in self._begun:
            self._resumed[place, attempt] = self._resumed.get((place, attempt), 0) + 1
            key = place, key[1] + 1
        return key

    def _take(self, key: Key, told: ProgressLine) -> None:
        if told.event is None and told.step is not None:
            self._begun.add(key)
        if told.metrics:
            self.last.setdefault(key[0], {}).update(told.metrics)
        for name, value in told.metrics.items():
            curves = self.metrics.get(name)
            if curves is None:
                if len(self.metrics) >= METRICS_MAX:
                    self.left_out += 1
                    continue
                curves = self.metrics[name] = {}
                if told.step is None:
                    self.by_time.add(name)
            x = told.at if name in self.by_time else told.step
            if x is not None and (curve := self._curve(curves, key)):
                curve.add(x, value)
        for gpu in told.gpus:
            where = (key[0], gpu.index % GPUS_MAX, key[1])
            if gpu.use is not None and (curve := self._curve(self.use, where)):
                curve.add(told.at, min(gpu.use, 100.0))
            if gpu.memory_use is not None and (curve := self._curve(self.memory_use, where)):
                curve.add(told.at, min(gpu.memory_use, 100.0))
            if gpu.memory_mib is not None and (curve := self._curve(self.memory, where)):
                curve.add(told.at, gpu.memory_mib / 1024)
            for trouble in gpu_words((gpu,)):
                if trouble.startswith(("throttled", "XID")) and len(self.troubles) < EVENTS_MAX:
                    self.troubles[f"GPU {gpu.index}{_of(key[0])}: {trouble}"] = None
        if told.event == CHECKPOINT:
            times = self.saved.setdefault(key, [])
            if len(times) < SAVED_MAX:
                times.append((told.at, told.said or ""))
            else:
                times[-1] = told.at, told.said or ""
        elif told.event:
            if len(self.events) < EVENTS_MAX:
                self.events.append((told.at, key, f"{told.event}: {told.said}" if told.said else told.event))
            else:
                self.left_out += 1

    def _curve(self, curves: "dict[K, Curve]", key: K) -> Curve | None:
        if key not in curves:
            if len(curves) >= SERIES_MAX:
                self.left_out += 1
                return None
            curves[key] = Curve()
        return curves[key]


def _of(place: int | None) -> str:
    return "" if place is None else f" of {place}"
