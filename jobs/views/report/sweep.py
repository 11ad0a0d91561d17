"""A sweep on the page: its best task, a chart of the metric by each parameter, and the ranked tasks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accel.console.terminal_text import number

from ...backends.base import JobRef
from ...backends.tasks import TaskStatus
from ...client.results import Row, rank
from ...model.sweep_tasks import SweepPart
from .axis import Axis, around, between
from .chart import beside, frame, lines, percent
from .text import attrs, table, tag, text

PICTURES_MAX = 6
PLACES_MAX = 8
"""Number of values up to which they are evenly spaced; of more, only numbers are drawn."""
WIDE = 30.0
"""Ratio of the largest to the smallest positive number from which the axis is logarithmic."""
ROWS_MAX = 50
METRICS_MAX = 4
_LABEL = 12


@dataclass(frozen=True)
class Sweep:
    """The tasks of a sweep with their results. `metric` ranks them; None where no task has reported one. `best` is max
    or min; None where nobody said which, and nothing is ranked."""

    rows: Sequence[Row]
    metric: str | None
    best: str | None

    @property
    def ranked(self) -> list[Row]:
        """Return the tasks, the best first; by number where nothing says which is better."""
        return rank(self.rows, self.metric if self.best else None, self.best)

    @property
    def first(self) -> Row | None:
        found = self.ranked[0] if self.rows and self.best else None
        return found if found and self.metric in found.metrics else None

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row.params))


def of(
    ref: JobRef, swept: SweepPart, tasks: Sequence[TaskStatus], told: Mapping[int | None, Mapping[str, float]]
) -> Sweep:
    """Return the tasks of one job, with the last reported value of each metric."""
    rows = [
        Row(ref, state.index, index, swept.params(index), state, dict(told.get(state.index, {})))
        for state in tasks
        if state.index < len(swept.places)
        for index in [swept.places[state.index]]
    ]
    objective: dict[str, str] = swept.spec.get("objective") or {}
    metric = objective.get("metric") or next((name for row in rows for name in row.metrics), None)
    return Sweep(rows, metric, objective.get("best"))


def sweep(found: Sweep | None) -> str:
    if found is None or not found.rows:
        return ""
    return _best(found) + _pictures(found) + _ranking(found)


def _best(found: Sweep) -> str:
    first, metric = found.first, found.metric
    if first is None or metric is None:
        return tag("p", text(f"{len(found.rows):,} tasks; none has told {metric or 'a metric'} yet."))
    params = " ".join(f"{name}={value}" for name, value in first.params.items())
    told = sum(metric in row.metrics for row in found.rows)
    words = f"Best by {metric} ({found.best}): task {first.index} with "
    counted = f" ({told:,} of {len(found.rows):,} tasks have told it)" if told < len(found.rows) else ""
    value = tag("b", text(number(first.metrics[metric])))
    return tag("p", f"{text(words)}{value}: {tag('code', text(params))}{text(counted)}")


def _pictures(found: Sweep) -> str:
    if found.metric is None:
        return ""
    shown = "".join([picture for name in found.names if (picture := scatter(found, name))][:PICTURES_MAX])
    return tag("div", shown, {"class": "charts"}) if shown else ""


def scatter(found: Sweep, name: str) -> str:
    """Return a chart with a point for each task: the parameter across, the metric up. Empty with nothing to compare."""
    metric = found.metric or ""
    told = [row for row in found.rows if metric in row.metrics and name in row.params]
    across = _across([row.params[name] for row in told])
    if across is None:
        return ""
    axis, places = across
    up = around(min(row.metrics[metric] for row in told), max(row.metrics[metric] for row in told))
    first = found.first

    def dot(row: Row) -> str:
        at = {"cx": percent(axis.part(places[row.params[name]])), "cy": percent(1 - up.part(row.metrics[metric]))}
        mark = {"class": "dot c1", "r": 5} if row is first else {"class": "dot c0", "r": 4}
        return f"<circle{attrs({**mark, **at})}/>"

    # The best task is drawn last, above the others.
    dots = [dot(row) for row in sorted(told, key=lambda row: row is first)]
    key = tag("span", f"{tag('i', '', {'class': 'c1'})}the best task") if first else ""
    title = f"{metric} by {name}"
    caption = tag("figcaption", tag("h3", text(title)) + tag("p", key, {"class": "key"}))
    return tag("figure", caption + frame(title, beside(up), "".join([*lines(axis, up), *dots]), axis, ""))


def _across(values: Sequence[str]) -> tuple[Axis, dict[str, float]] | None:
    """Return the axis of a parameter, and the position of each value; None with one value, or too many words."""
    kinds = list(dict.fromkeys(values))
    numbers = {value: each for value in kinds if (each := _number(value)) is not None}
    numeric = len(numbers) == len(kinds)
    if len(kinds) < 2 or (not numeric and len(kinds) > PLACES_MAX):
        return None
    if len(kinds) > PLACES_MAX:
        low, high = min(numbers.values()), max(numbers.values())
        if low > 0 and high / low >= WIDE:
            logs = {value: math.log10(each) for value, each in numbers.items()}
            axis = between(min(logs.values()), max(logs.values()))
            return Axis(axis.low, axis.high, max(axis.step, 1.0), lambda at: number(10**at)), logs
        return between(low, high), numbers
    order = sorted(kinds, key=lambda value: (numbers[value], value)) if numeric else kinds
    words = [value if len(value) <= _LABEL else f"{value[: _LABEL - 1]}…" for value in order]
    axis = Axis(-0.5, len(order) - 0.5, 1.0, lambda at: words[round(at)])
    return axis, {value: float(place) for place, value in enumerate(order)}


def _number(value: str) -> float | None:
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) and abs(found) < 1e300 else None


def _ranking(found: Sweep) -> str:
    order, names = found.ranked, found.names
    others = list(dict.fromkeys(name for row in order for name in row.metrics if name != found.metric))
    metrics = ([found.metric] if found.metric else []) + others[: METRICS_MAX - 1]
    head = (*(["place"] if found.best else []), "task", *names, *metrics, "phase")
    rows = [
        (
            *([str(place)] if found.best else []),
            row.index,
            *(row.params.get(name, "") for name in names),
            *(number(row.metrics[name]) if name in row.metrics else "" for name in metrics),
            row.state.phase,
        )
        for place, row in enumerate(order[:ROWS_MAX], 1)
    ]
    left = len(order) - len(rows)
    more = tag("p", f"{left:,} more tasks are not listed; accel-jobs results lists all.") if left else ""
    return table(head, rows, numbers=("place", "task", *metrics)) + more
