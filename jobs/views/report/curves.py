"""What a job's log told, as pictures and a table."""

from collections.abc import Sequence
from datetime import UTC, datetime

from .axis import around
from .chart import Series, Times, chart
from .gather import CHECKPOINT, EVENTS_MAX, Curve, Gathered, GpuKey, Key, Point
from .text import NOT_KNOWN, clock, moment, table, tag, text


def metrics(gathered: Gathered | None, between: Times | None, word: str, first: Sequence[int] = ()) -> str:
    """A chart for each metric; `word`: what the job has several of, `between`: the times of the timeline. `first`:
    tasks whose curves come before the others."""
    if gathered is None:
        return tag("p", f"{NOT_KNOWN.capitalize()}: the log could not be read.")
    if not gathered.metrics:
        return tag("p", f"None: of {gathered.lines:,} lines of the log none tells of a metric.")
    charts = (
        chart(name, series, _times(between, series) if name in gathered.by_time else None)
        for name, curves in gathered.metrics.items()
        for series in [_series(curves, word, first)]
    )
    return tag("div", "".join(charts), {"class": "charts"})


def gpus(gathered: Gathered | None, between: Times | None, word: str) -> str:
    """What GPUs did, below each other and below the timeline."""
    if gathered is None or not (gathered.use or gathered.memory):
        return tag("p", f"{NOT_KNOWN.capitalize()}: the job's log tells nothing of GPUs.")
    use, memory = _of_gpus(gathered.use, word), _of_gpus(gathered.memory, word)
    charts = chart("use, %", use, _times(between, use), y=(0.0, 100.0))
    if gathered.memory_use:
        busy = _of_gpus(gathered.memory_use, word)
        charts += chart("memory busy, %", busy, _times(between, busy), y=(0.0, 100.0))
    most = max((gib for each in memory for _, gib in each.points), default=0.0)
    return charts + chart("memory, GiB", memory, _times(between, memory), y=(0.0, around(0.0, most).high))


def events(gathered: Gathered | None, word: str) -> str:
    """What happened, by the job's own words."""
    told = _happened(gathered) if gathered else []
    if not told:
        return ""
    moments = [datetime.fromtimestamp(min(at, 2e11), UTC) for at, _, _ in told]
    several = len({attempt for _, (_, attempt), _ in told}) > 1
    names = [_named(key, word, True, several) for _, key, _ in told]
    rows = [
        (clock(at, moments[0]), *([name] if any(names) else []), words)
        for at, name, (_, _, words) in zip(moments, names, told, strict=True)
    ]
    head = ("at", "of", "what") if any(names) else ("at", "what")
    return table(head, rows, numbers=("at",)) + tag("p", f"Since {text(moment(moments[0]))}.", {"class": "note"})


def _happened(gathered: Gathered) -> list[tuple[float, Key, str]]:
    """The events, and of each attempt's checkpoints the last, in the order in which they were told."""
    saved = [
        (at, key, f"{CHECKPOINT}: {said}" if count == 1 else f"{count} checkpoints, the last: {said}")
        for key, times in list(gathered.saved.items())[:EVENTS_MAX]
        for count, (at, said) in [(len(times), times[-1])]
    ]
    return sorted([*gathered.events, *saved], key=lambda each: each[0]) if saved else gathered.events


def _series(curves: dict[Key, Curve], word: str, first: Sequence[int]) -> list[Series]:
    before = {place: rank for rank, place in enumerate(first)}
    places = len({place for place, _ in curves}) > 1
    attempts = len({attempt for _, attempt in curves}) > 1
    order = sorted(curves, key=lambda key: (before.get(_place(key), len(before)), _place(key), key[1]))
    return [Series(_named(key, word, places, attempts), [curves[key].drawn]) for key in order]


def _place(key: Key | GpuKey) -> int:
    return -1 if key[0] is None else key[0]


def _named(key: Key, word: str, places: bool, attempts: bool) -> str:
    place = [] if key[0] is None or not places else [f"{word} {key[0]}"]
    return ", ".join([*place, *([f"attempt {key[1]}"] if attempts else [])])


def _of_gpus(curves: dict[GpuKey, Curve], word: str) -> list[Series]:
    """One a GPU, broken between attempts."""
    order = sorted(curves, key=lambda key: (_place(key), *key[1:]))
    found: dict[str, list[list[Point]]] = {}
    for place, gpu, attempt in order:
        name = f"{'' if place is None else f'{word} {place}, '}GPU {gpu}"
        found.setdefault(name, []).append(curves[place, gpu, attempt].drawn)
    return [Series(name, parts) for name, parts in found.items()]


def _times(between: Times | None, series: Sequence[Series]) -> Times:
    """Those of the timeline; those of the curves where a wrong clock told them."""
    told = [x for each in series for x, _ in each.points] or [0.0]
    if between is None or min(told) < between.first or max(told) > between.last:
        return Times(min(told), max(told))
    return between
