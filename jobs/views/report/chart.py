"""Curves as SVG as wide as the page: labels keep their size, and only the curves are stretched."""

from collections.abc import Sequence
from dataclasses import dataclass

from accel.console.terminal_text import number

from .axis import Axis, around, between, since
from .gather import Point
from .text import attrs, tag, text

FIELD = 1000
"""Width and height of the field, in the units of the curves' points."""
DRAWN_MAX = 8


@dataclass(frozen=True)
class Series:
    """One curve, in the parts between its breaks, with the points in the order of the log."""

    name: str
    parts: Sequence[Sequence[Point]]

    @property
    def points(self) -> list[Point]:
        return [point for part in self.parts for point in part]


@dataclass(frozen=True)
class Times:
    """X axis that all charts of times share: seconds since 1970, with the times of preemptions as marks."""

    first: float
    last: float
    marks: Sequence[float] = ()


def chart(
    title: str, series: Sequence[Series], times: Times | None = None, *, y: tuple[float, float] | None = None
) -> str:
    """Return a figure by step, or by time with `times`; empty without points. `y`: the ends of the vertical axis."""
    shown = [each for each in series if each.points][:DRAWN_MAX]
    if not shown:
        return ""
    xs = [x for each in shown for x, _ in each.points]
    ys = [value for each in shown for _, value in each.points]
    across, left = (since(times.first, times.last), times.first) if times else (between(min(xs), max(xs)), 0.0)
    up = between(*y) if y else around(min(ys), max(ys))
    field = [*lines(across, up), *(mark(across.part(at - left)) for at in (times.marks if times else ()))]
    curves = [
        drawn
        for place, each in enumerate(shown)
        for part in each.parts
        for drawn in _curve(across, left, up, place, part)
    ]
    more = tag("span", f"{len(series) - len(shown)} more are not drawn") if len(series) > len(shown) else ""
    legend = "".join(_named(place, each) for place, each in enumerate(shown))
    stretched = {"viewBox": f"0 0 {FIELD} {FIELD}", "preserveAspectRatio": "none", "class": "stretched"}
    field.append(tag("svg", "".join(each for each in curves if "<polyline" in each), stretched))
    field += [each for each in curves if "<polyline" not in each]
    caption = tag("figcaption", tag("h3", text(title)) + tag("p", legend + more, {"class": "key"}))
    return tag("figure", caption + frame(title, beside(up), "".join(field), across, "" if times else "step"))


def frame(title: str, side: str, field: str, across: Axis, unit: str, height: int | None = None) -> str:
    """Return what every chart has: labels at its left, the field, and the x axis's labels. `height` is in pixels."""
    tall: dict[str, object] = {} if height is None else {"height": height}
    below = "".join(tag("text", text(words), {"x": percent(at), "y": 17, **_held(at)}) for at, words in across.ticks())
    return tag(
        "div",
        tag("svg", side, {"class": "side", "aria_hidden": "true", **tall})
        + tag("svg", field, {"class": "field", "role": "img", "aria_label": title, **tall})
        + tag("span", text(unit), {"class": "unit"})
        + tag("svg", below, {"class": "below", "aria_hidden": "true"}),
        {"class": "plot"},
    )


def lines(across: Axis, up: Axis | None = None) -> list[str]:
    """Return the grid of a field."""
    upright = [
        {"class": "tick", "x1": percent(at), "x2": percent(at), "y1": 0, "y2": "100%"} for at, _ in across.ticks()
    ]
    level = [
        {"class": "grid", "x1": 0, "x2": "100%", "y1": percent(1 - at), "y2": percent(1 - at)}
        for at, _ in (up.ticks() if up else ())
    ]
    return [f"<line{attrs(each)}/>" for each in (*upright, *level)]


def mark(at: float) -> str:
    """Return the vertical line of a preemption."""
    return f"<line{attrs({'class': 'lost', 'x1': percent(at), 'x2': percent(at), 'y1': 0, 'y2': '100%'})}/>"


def percent(part: float) -> str:
    return f"{100 * part:.2f}%"


def _held(at: float) -> dict[str, object]:
    return {"text_anchor": "start" if at < 0.02 else "end" if at > 0.98 else "middle"}


def beside(up: Axis) -> str:
    """Return the labels of a vertical axis."""
    return "".join(
        tag("text", text(words), {"x": "100%", "y": percent(1 - at), "dy": "0.35em", "text_anchor": "end"})
        for at, words in up.ticks()
    )


def _named(place: int, series: Series) -> str:
    words = f"{series.name}, last" if series.name else "last"
    last = tag("b", text(number(series.points[-1][1])))
    return tag("span", f"{tag('i', '', {'class': f'c{place}'})}{text(words)} {last}")


def _curve(across: Axis, left: float, up: Axis, place: int, part: Sequence[Point]) -> list[str]:
    where = [(across.part(x - left), 1 - up.part(value)) for x, value in part]
    if len(where) == 1:
        ((x, y),) = where
        return [f"<circle{attrs({'class': f'dot c{place}', 'cx': percent(x), 'cy': percent(y), 'r': 3})}/>"]
    points = " ".join(f"{x * FIELD:.1f},{y * FIELD:.1f}" for x, y in where)
    return [f'<polyline class="curve c{place}" points="{points}"/>'] if where else []
