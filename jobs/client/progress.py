"""Progress lines as checked values: whatever runs in the job writes the lines."""

import math
import re
from dataclasses import dataclass, field
from typing import Any

from accel.console.terminal_text import lasting, number, plain
from accel.json_values import entries, mapping, object_at

from ..runtime.lines import MARK, read

NUMBER_MAX = 1e15
"""Bound above which a number cannot be a count or a time."""
METRICS_MAX = 64
GPUS_MAX = 64
WORD_MAX = 80
TEXT_MAX = 300
MIB_A_GIB = 1024
_PLACE = re.compile(r"(?:^|\s)(?:task|node|host|worker|replica)\s(\d{1,9})(?:\s|$)")
_ATTEMPT = re.compile(r"(?:^|\s)attempt\s(\d{1,9})(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as the job last saw it; None for values that were not reported."""

    index: int
    use: float | None
    memory_use: float | None
    """Share of time with reads or writes of its memory, in %; not the share of memory in use."""
    memory_mib: float | None
    memory_total_mib: float | None
    temperature_c: float | None
    throttle: tuple[str, ...]
    xid: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """A progress line. `at` is in seconds since 1970."""

    at: float
    step: float | None = None
    steps: float | None = None
    metrics: dict[str, float] = field(default_factory=dict[str, float])
    gpus: tuple[Gpu, ...] = ()
    cpu: float | None = None
    event: str | None = None
    said: str | None = None

    @property
    def fraction(self) -> float | None:
        """Fraction done, 0 to 1; None where it was not reported."""
        if self.step is None or not self.steps:
            return None
        return min(max(self.step / self.steps, 0.0), 1.0)

    @property
    def use(self) -> float | None:
        """Average use of all its GPUs, in %."""
        return mean([gpu.use for gpu in self.gpus if gpu.use is not None])

    @property
    def memory_use(self) -> float | None:
        return mean([gpu.memory_use for gpu in self.gpus if gpu.memory_use is not None])


def parse(line: str) -> ProgressLine | None:
    """Return None for any other line, and raise nothing, whatever the line holds."""
    if MARK not in line:
        return None
    told = read(line)
    at = None if told is None else _number(told.get("at"))
    if told is None or at is None or at < 0:
        return None
    metrics = object_at(told, "metrics")
    gpus = map(mapping, entries(told.get("gpus"))[:GPUS_MAX])
    return ProgressLine(
        at=at,
        step=_number(told.get("step")),
        steps=_number(told.get("steps")),
        metrics={
            plain(name[:WORD_MAX]): value
            for name, each in list(metrics.items())[:METRICS_MAX]
            if (value := _value(each)) is not None
        },
        gpus=tuple(_gpu(place, each) for place, each in enumerate(gpus) if each),
        cpu=_number(object_at(told, "host").get("cpu")),
        event=_text(told.get("event"), WORD_MAX),
        said=_text(told.get("said"), TEXT_MAX),
    )


def place_of(source: str) -> tuple[int | None, int]:
    """Return task or node (None: the job has only one), and attempt, of a log line's source."""
    place, attempt = _PLACE.search(source), _ATTEMPT.search(source)
    return int(place[1]) if place else None, int(attempt[1]) if attempt else 1


def short(told: ProgressLine) -> str:
    """Return words such as `step 120/1000 (12%)  loss 0.31  gpu 97%`."""
    parts: list[str] = []
    if told.event:
        parts.append(f"{told.event}: {told.said}" if told.said else told.event)
    if told.step is not None:
        share = f" ({told.fraction:.0%})" if told.fraction is not None else ""
        parts.append(f"step {number(told.step)}{f'/{number(told.steps)}' if told.steps else ''}{share}")
    parts += [f"{name} {number(value)}" for name, value in told.metrics.items()]
    parts += gpu_words(told.gpus)
    if told.cpu is not None:
        parts.append(f"cpu {told.cpu:.0f}%")
    return "  ".join(parts) or "alive"


def gpu_words(gpus: tuple[Gpu, ...]) -> list[str]:
    words: list[str] = []
    used = mean([gpu.use for gpu in gpus if gpu.use is not None])
    if used is not None:
        words.append(f"gpu {used:.0f}%{f' of {len(gpus)}' if len(gpus) > 1 else ''}")
    busy = mean([gpu.memory_use for gpu in gpus if gpu.memory_use is not None])
    if busy is not None:
        words.append(f"memory busy {busy:.0f}%")
    memory = [gpu.memory_mib for gpu in gpus if gpu.memory_mib is not None]
    if memory:
        words.append(f"{sum(memory) / MIB_A_GIB:.1f} GiB")
    throttled = sorted({reason for gpu in gpus for reason in gpu.throttle})
    words += [f"throttled: {', '.join(throttled)}"] if throttled else []
    xids = sorted({error for gpu in gpus for error in gpu.xid})
    return words + ([f"XID {', '.join(map(str, xids))}"] if xids else [])


def ago(seconds: float) -> str:
    return f"{lasting(seconds)} ago"


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _gpu(place: int, each: dict[str, Any]) -> Gpu:
    index = _number(each.get("index"))
    return Gpu(
        index=place if index is None else int(index),
        use=_number(each.get("use")),
        memory_use=_number(each.get("memory_use")),
        memory_mib=_number(each.get("memory_mib")),
        memory_total_mib=_number(each.get("memory_total_mib")),
        temperature_c=_number(each.get("temperature_c")),
        throttle=tuple(text for item in _items(each.get("throttle")) if (text := _text(item, WORD_MAX))),
        xid=tuple(int(value) for item in _items(each.get("xid")) if (value := _number(item)) is not None),
    )


def _number(value: Any) -> float | None:
    """Return None for what is no count, share or time."""
    found = _value(value)
    return found if found is not None and 0 <= found <= NUMBER_MAX else None


def _value(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _text(value: Any, most: int) -> str | None:
    return plain(value[:most]) or None if isinstance(value, str) else None


def _items(value: Any) -> list[Any]:
    return entries(value)[:METRICS_MAX]
