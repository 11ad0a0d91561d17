"""A job over time: a bar for each attempt (waiting, starting, running, preempted), curves of its log, and tables."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from accel.console.terminal_text import lasting

from ...backends.base import Attempt, Status
from .axis import Axis, around, since
from .chart import Series, Times, chart, frame, lines, mark, percent
from .gather import CHECKPOINT, EVENTS_MAX, Curve, GpuKey, Key, Point, ReportData
from .text import NOT_KNOWN, attrs, clock, span, table, tag, text, utc_text

ROW, BAR = 30, 18
"""Heights in pixels."""
ROWS_MAX = 24
SKEW_S = 2.0
"""Seconds by which a machine's clock may differ from the platform's; of a long job, more."""
LABELLED = 0.16
"""Share of the width from which a bar has room for its length, also on a telephone."""
COLUMNS = ("attempt", "asked for", "machine found", "started", "ended", "waited", "ran", "exit code", "how it ended")
_NUMBERS = COLUMNS[1:-1]
_KEY = {"wait": "waiting", "start": "starting, pulling", "run": "running", "good": "succeeded", "bad": "failed",
        "over": "ended, it is not known how", "lost": "machine taken away", "saved": "checkpoint"}  # fmt: skip


def known_attempts(status: Status, attempts: Sequence[Attempt] | None) -> Sequence[Attempt]:
    """Return the known attempts; without any, the last one as the status has it."""
    return attempts or [
        Attempt(
            max(status.attempts or 0, 1),
            None,
            status.created,
            None,
            status.started,
            status.stopped,
            status.exit_code,
            status.reason,
            lost=bool(status.lost) and status.taken is not None,
        )
    ]


def times(attempts: Sequence[Attempt], until: datetime, told: tuple[float, float] | None) -> Times | None:
    """Return the axis from the first to the last known moment; None without any. `until`, when the page was made, is
    the end of what still runs. `told` has the ends by the job's own clock, which count where they differ little."""
    known = [at for each in attempts for at in (each.created, each.placed, each.started, each.stopped) if at]
    if not known:
        return None
    last = until if any(each.stopped is None for each in attempts) else max(known)
    lost = [each.stopped.timestamp() for each in attempts if each.lost and each.stopped]
    begin, end = min(known).timestamp(), max(last, min(known)).timestamp()
    margin = SKEW_S + 0.02 * (end - begin)
    if told and begin - margin <= told[0] and told[1] <= end + margin:
        begin, end = min(begin, told[0]), max(end, told[1])
    return Times(begin, end, lost)


def timeline(
    status: Status,
    attempts: Sequence[Attempt] | None,
    until: datetime,
    between: Times | None,
    word: str,
    saved: Mapping[int | None, Sequence[float]] = MappingProxyType({}),
) -> str:
    """Return the section. `word` names the parts of the job, task or node; `saved` has the checkpoint times of each."""
    note = "Attempts before the last are not known: this platform does not tell of them here."
    shown = known_attempts(status, attempts)
    bars = _bars(shown, between, until, word, saved) if between else ""
    return f"{tag('p', note) if attempts is None else ''}{bars}{_table(shown, word)}{_gaps(shown)}"


def name_of(attempt: Attempt, word: str) -> str:
    place = "" if attempt.place is None else f"{word} {attempt.place}, "
    return f"{place}attempt {attempt.number}"


def _bars(
    attempts: Sequence[Attempt],
    between: Times,
    until: datetime,
    word: str,
    saved: Mapping[int | None, Sequence[float]],
) -> str:
    rows = attempts[:ROWS_MAX]
    across = since(between.first, between.last)
    field, side, kinds = lines(across), "", dict[str, None]()
    for place, each in enumerate(rows):
        middle = place * ROW + ROW / 2
        side += tag("text", text(name_of(each, word)), {"x": "100%", "y": middle, "dy": "0.35em", "text_anchor": "end"})
        for kind, start, end in _phases(each, until):
            begin, stop = (across.part(at.timestamp() - between.first) for at in (start, end))
            field += _bar(kind, begin, stop, middle, lasting((end - start).total_seconds()))
            kinds[kind] = None
        ticks = [at - between.first for at in saved.get(each.place, ()) if _during(each, at, until)]
        field += [_tick(across.part(at), middle) for at in ticks]
        kinds |= dict.fromkeys(["saved"] if ticks else [])
        field += _end(each, across, between, middle)
    field += [mark(across.part(at - between.first)) for at in between.marks]
    key = "".join(
        tag("span", f"{tag('i', '', {'class': kind})}{text(words)}") for kind, words in _KEY.items() if kind in kinds
    )
    left = f", {len(attempts) - len(rows)} more rows are in the table" if len(attempts) > len(rows) else ""
    begun = datetime.fromtimestamp(between.first, until.tzinfo)
    caption = tag(
        "figcaption", tag("p", f"Since {text(utc_text(begun))}{text(left)}") + tag("p", key, {"class": "key"})
    )
    return tag("figure", caption + frame("timeline", side, "".join(field), across, "", len(rows) * ROW))


def _bar(kind: str, begin: float, stop: float, middle: float, words: str) -> list[str]:
    box = {"class": kind, "x": percent(begin), "y": middle - BAR / 2, "height": BAR, "rx": 2}
    found = [f"<rect{attrs({**box, 'width': percent(max(stop - begin, 0.002))})}/>"]
    if stop - begin >= LABELLED:
        at = {"class": f"on {kind}", "x": percent((begin + stop) / 2), "y": middle, "dy": "0.35em"}
        found.append(tag("text", text(words), {**at, "text_anchor": "middle"}))
    return found


def _during(each: Attempt, at: float, until: datetime) -> bool:
    return each.started is not None and each.started.timestamp() <= at <= (each.stopped or until).timestamp() + SKEW_S


def _tick(at: float, middle: float) -> str:
    high = BAR / 2 + 3
    place = {"x1": percent(at), "x2": percent(at), "y1": middle - high, "y2": middle + high}
    return f"<line{attrs({'class': 'saved', **place})}/>"


def _end(each: Attempt, across: Axis, between: Times, middle: float) -> list[str]:
    """Return the attempt's end in words, behind its bar where there is room."""
    words = "taken away" if each.lost else f"exit code {each.exit_code}" if each.exit_code else ""
    at = across.part(each.stopped.timestamp() - between.first) if each.stopped else 1.0
    if not words or at > 1 - LABELLED * 1.5:
        return []
    return [tag("text", text(words), {"x": percent(at), "y": middle, "dx": 8, "dy": "0.35em"})]


def _phases(each: Attempt, until: datetime) -> list[tuple[str, datetime, datetime]]:
    """Return the known phases of an attempt: kind, start, end. Time between two known moments counts as waiting."""
    end = each.stopped or until
    found: list[tuple[str, datetime, datetime]] = []
    if each.created:
        found.append(("wait", each.created, each.placed or each.started or end))
    if each.placed:
        found.append(("start", each.placed, each.started or end))
    if each.started:
        found.append((_kind(each), each.started, end))
    return [(kind, start, stop) for kind, start, stop in found if stop >= start]


def _kind(each: Attempt) -> str:
    if each.stopped is None:
        return "run"
    return "lost" if each.lost else "over" if each.exit_code is None else "bad" if each.exit_code else "good"


def _table(attempts: Sequence[Attempt], word: str) -> str:
    day = next((each.created for each in attempts if each.created), None)
    return table(COLUMNS, [_row(each, day, word) for each in attempts], numbers=_NUMBERS)


def _row(each: Attempt, day: datetime | None, word: str) -> list[str]:
    over = each.stopped is not None
    ended = "its machine was taken away" if each.lost else ""
    words = ": ".join(part for part in (ended, each.reason or "") if part)
    waiting = "has not started" if not over and each.started is None else NOT_KNOWN
    return [
        name_of(each, word),
        clock(each.created, day),
        clock(each.placed, day),
        clock(each.started, day) if each.started else waiting,
        clock(each.stopped, day) if over else "goes on",
        span(each.created, each.placed or each.started),
        span(each.started, each.stopped) if over else "goes on",
        str(each.exit_code) if each.exit_code is not None else NOT_KNOWN if over else "",
        words or (("succeeded" if each.exit_code == 0 else NOT_KNOWN) if over else ""),
    ]


def _gaps(attempts: Sequence[Attempt]) -> str:
    found = "Times are in UTC."
    if not all(each.placed for each in attempts):
        found += (
            " Where it is not known when a machine was found, waiting for it, its start and the pull of the image are "
            "one bar."
        )
    return tag("p", text(found), {"class": "note"})


def metrics(gathered: ReportData | None, between: Times | None, word: str, first: Sequence[int] = ()) -> str:
    """Return a chart for each metric; curves of the tasks in `first` come before the others."""
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


def gpus(gathered: ReportData | None, between: Times | None, word: str) -> str:
    if gathered is None or not (gathered.use or gathered.memory):
        return tag("p", f"{NOT_KNOWN.capitalize()}: the job's log tells nothing of GPUs.")
    use, memory = _of_gpus(gathered.use, word), _of_gpus(gathered.memory, word)
    charts = chart("use, %", use, _times(between, use), y=(0.0, 100.0))
    if gathered.memory_use:
        busy = _of_gpus(gathered.memory_use, word)
        charts += chart("memory busy, %", busy, _times(between, busy), y=(0.0, 100.0))
    most = max((gib for each in memory for _, gib in each.points), default=0.0)
    return charts + chart("memory, GiB", memory, _times(between, memory), y=(0.0, around(0.0, most).high))


def events(gathered: ReportData | None, word: str) -> str:
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
    return table(head, rows, numbers=("at",)) + tag("p", f"Since {text(utc_text(moments[0]))}.", {"class": "note"})


def _happened(gathered: ReportData) -> list[tuple[float, Key, str]]:
    """Return the events, and the last checkpoint of each attempt, in order of time."""
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
    """Return one curve per GPU, broken between attempts."""
    order = sorted(curves, key=lambda key: (_place(key), *key[1:]))
    found: dict[str, list[list[Point]]] = {}
    for place, gpu, attempt in order:
        name = f"{'' if place is None else f'{word} {place}, '}GPU {gpu}"
        found.setdefault(name, []).append(curves[place, gpu, attempt].drawn)
    return [Series(name, parts) for name, parts in found.items()]


def _times(between: Times | None, series: Sequence[Series]) -> Times:
    """Return the times of the timeline; those of the curves where a wrong clock put them outside."""
    told = [x for each in series for x, _ in each.points] or [0.0]
    if between is None or min(told) < between.first or max(told) > between.last:
        return Times(min(told), max(told))
    return between
