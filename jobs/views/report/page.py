"""The whole page, with its style sheet. It fetches nothing: fonts are those of the reader's system."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from accel.console.terminal_text import lasting

from ...backends.base import Attempt, Explanation, Phase, Status
from ...backends.tasks import TaskStatus
from ...client.observation import Rate, ran_s
from ...client.request_body import RequestSummary
from ...runtime.sweep import format_spans
from ..watch.draw import dollars
from .gather import ReportData
from .sweep import Sweep, sweep
from .text import NOT_KNOWN, bullets, facts, span, table, tag, text, utc_text
from .timeline import events, gpus, known_attempts, metrics, timeline, times

TASKS_SHOWN = 50
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
"""


class MachinePrice(Protocol):
    """Cost of a machine of the job, as far as it is known."""

    @property
    def rate(self) -> Rate | None: ...
    @property
    def free(self) -> bool: ...
    @property
    def why(self) -> str: ...
    @property
    def notes(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Facts:
    """Facts of one job. None: the platform does not report the value, or nobody asked."""

    status: Status
    gathered: ReportData | None
    price: MachinePrice
    made: datetime
    """Time at which the page is made."""
    attempts: Sequence[Attempt] | None = None
    tasks: Sequence[TaskStatus] | None = None
    why: Explanation | None = None
    warnings: tuple[str, ...] = ()
    """Errors of facts that could not be read."""
    sent: RequestSummary | None = None
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parameters of a job that is one task of a sweep."""
    sweep: Sweep | None = None


def page(found: Facts) -> str:
    status, gathered = found.status, found.gathered
    word = "task" if status.tasks else "node"
    between = times(known_attempts(status, found.attempts), found.made, gathered.times if gathered else None)
    sections = [
        ("Sweep", sweep(found.sweep)),
        ("Timeline", timeline(status, found.attempts, found.made, between, word, _saved(gathered))),
        ("How it ended" if status.phase.ended else "How it goes", _why(found)),
        ("Tasks", _tasks(found)),
        ("Metrics", metrics(gathered, between, word, [row.place for row in found.sweep.ranked] if found.sweep else ())),
        ("GPUs", gpus(gathered, between, word)),
        ("Events", events(gathered, word)),
        ("Cost", _cost(found)),
        ("Warnings", bullets(warnings(found)) if warnings(found) else tag("p", "None.")),
    ]
    body = "".join(tag("section", f"{tag('h2', text(title))}{inside}\n") for title, inside in sections if inside)
    head = f"{_HEAD}<title>{text(status.name)}</title>\n<style>{STYLE}</style>\n</head>\n"
    badge = tag("span", text(status.phase), {"class": f"phase {status.phase.lower()}"})
    foot = tag("footer", f"Made {text(utc_text(found.made))} by accel-jobs report.")
    top = tag("header", tag("h1", f"{text(status.name)} {badge}") + tag("p", text(status.ref)) + _tiles(found))
    return f"{head}<body>\n{top}\n{_facts(found)}\n{body}{foot}\n</body>\n</html>\n"


def _tiles(found: Facts) -> str:
    status = found.status
    tries, taken = status.attempts or _count(found), lost_attempts(found)
    use = found.gathered.mean_use if found.gathered else None
    rows = [
        ("took" if status.phase.ended else "so far", _took(found), ""),
        ("attempts", tries, f"{taken} lost" if taken else ""),
        ("exit code", NOT_KNOWN if status.exit_code is None else status.exit_code, ""),
        ("GPU use, mean", NOT_KNOWN if use is None else f"{use:.0f} %", ""),
        ("cost", _usd(found), ""),
    ]
    if not status.phase.ended:
        rows = [row for row in rows if row[0] != "exit code"]
    tiles = (
        tag("div", tag("dt", text(name)) + tag("dd", f"{text(value)}{tag('small', text(more)) if more else ''}"))
        for name, value, more in rows
    )
    return tag("dl", "".join(tiles), {"class": "tiles"})


def _took(found: Facts) -> str:
    status = found.status
    return span(status.created, status.stopped if status.phase.ended else found.made)


def lost_attempts(found: Facts) -> int:
    return max(found.status.lost or 0, sum(each.lost for each in found.attempts or ()))


def _facts(found: Facts) -> str:
    status = found.status
    rows = [
        ("target", status.target or NOT_KNOWN),
        ("state", status.native),
        ("created", utc_text(status.created)),
        ("started", utc_text(status.started) if status.started or status.phase.ended else "not yet"),
        ("ended", utc_text(status.stopped) if status.phase.ended else "not yet"),
        ("GPU hours lost", status.lost_gpu_hours),
        ("tasks", ", ".join(f"{count:,} {native}" for native, count in status.tasks.items())),
        ("parameters", " ".join(f"{name}={value}" for name, value in found.params.items())),
        *_sent(found.sent),
    ]
    return facts([(name, value) for name, value in rows if value not in (None, "")])


def _sent(sent: RequestSummary | None) -> list[tuple[str, object]]:
    if sent is None:
        return []
    code = sent.code and f"sent with it, {sent.code[:12]}"
    return [("image", sent.image), ("command", shlex.join(sent.command)), ("code", code)]


def _saved(gathered: ReportData | None) -> dict[int | None, list[float]]:
    """Return the times of checkpoints by task or node, over all attempts."""
    found: dict[int | None, list[float]] = {}
    for (place, _), told in gathered.saved.items() if gathered else ():
        found.setdefault(place, []).extend(at for at, _ in told)
    return found


def _count(found: Facts) -> object:
    return len(found.attempts) if found.attempts else NOT_KNOWN


def _why(found: Facts) -> str:
    status, why = found.status, found.why
    told = [("the platform says", status.reason)] if status.reason else []
    if why is not None:
        told += [("cause", f"{why.reason} ({why.cause})"), ("next", why.next_step.replace(" REF`", f" {status.ref}`"))]
    if status.phase is Phase.SUCCEEDED:
        return ""  # the tiles at the top have its exit code
    evidence = tag("h3", "Evidence") + bullets(why.evidence) if why and why.evidence else ""
    return facts((name, value) for name, value in told if value not in (None, "")) + evidence


def _tasks(found: Facts) -> str:
    """Return the table of tasks, with one row for all tasks of the same result."""
    folded: dict[tuple[Phase, str, int, int | None, str], list[int]] = {}
    for task in found.tasks or ():
        same = task.phase, task.native, task.attempts, task.exit_code, task.reason or ""
        folded.setdefault(same, []).append(task.index)
    if not folded:
        return ""
    order = {Phase.FAILED: 0, Phase.RUNNING: 1}
    groups = sorted(folded.items(), key=lambda each: (order.get(each[0][0], 2), each[1]))
    rows = [
        (format_spans(sorted(tasks)), f"{len(tasks):,}", phase, native, attempts or "", _code(code), reason)
        for (phase, native, attempts, code, reason), tasks in groups[:TASKS_SHOWN]
    ]
    left = sum(len(tasks) for _, tasks in groups[TASKS_SHOWN:])
    more = tag("p", f"{left:,} more tasks are not listed; those that failed come first.") if left else ""
    head = ("tasks", "count", "phase", "state", "attempts", "exit code", "reason")
    return table(head, rows, numbers=("count", "attempts", "exit code")) + more


def _code(code: int | None) -> str:
    return "" if code is None else str(code)


def _usd(found: Facts) -> str:
    if found.price.free:
        return "nothing: nobody bills this machine"
    seconds, rate = machine_s(found), found.price.rate
    if rate is None or seconds is None:
        return NOT_KNOWN
    low, high = seconds / 3600 * rate.low, seconds / 3600 * rate.high
    return "under $0.01" if 0 < high < 0.01 else dollars(low, high).replace("..", "–")


def machine_s(found: Facts) -> float | None:
    """Return the seconds that machines ran for the job; None where that is not known."""
    now, nodes = found.made.timestamp(), found.price.rate.nodes if found.price.rate else 1
    status = found.status
    if found.attempts and len(found.attempts) >= sum(status.tasks.values()):
        each = any(attempt.place is not None for attempt in found.attempts)
        return ran_s(found.attempts, now) * (1 if each else nodes)
    if status.tasks or (status.started is None and status.phase.ended):
        return None
    return ran_s([Attempt(1, started=status.started, stopped=status.stopped)], now) * nodes


def _cost(found: Facts) -> str:
    price, seconds = found.price, machine_s(found)
    if price.free:
        return tag("p", "Nothing: nobody bills this machine.")
    if price.rate is None:
        return tag("p", text(f"{NOT_KNOWN.capitalize()}: {price.why}."))
    rates = (f"{price.rate.low:.4f}", f"{price.rate.high:.4f}")
    rows = [
        ("so far", _usd(found)),
        ("machine time", NOT_KNOWN if seconds is None else lasting(seconds)),
        ("a machine and hour", f"{' to '.join(dict.fromkeys(rates))} USD, from the catalogue"),
    ]
    return facts(rows) + bullets([*price.notes, "Start-up and idle time of machines, volumes and data are left out."])


def warnings(found: Facts) -> list[str]:
    status, gathered = found.status, found.gathered
    told = [*found.warnings]
    if taken := lost_attempts(found):
        tries = max(status.attempts or 0, taken, len(found.attempts or ()))
        told.append(f"{taken} of {tries} attempts were lost: the platform took the machine away.")
    told += gathered.troubles if gathered else ()
    if gathered and gathered.left_out:
        told.append(f"{gathered.left_out:,} values of the log are not shown: there are more curves or events than fit.")
    if found.why is not None:
        told += [f"not read: {each}" for each in found.why.unread]
    return told


_CURVES = (
    *("#2f6fb5", "#d9730d", "#2e8555", "#9c4dcc", "#c0392b", "#0c8599", "#a67c00", "#667080"),
    *("#6ea8e5", "#f0a050", "#5cba85", "#c58be8", "#ee7a6d", "#4cc2d4", "#dcb53c", "#a0abbb"),
)
"""Colours of curves on light pages, then on dark ones."""
_LIGHT = (
    "--ink: #1b2430; --soft: #5b6675; --line: #dde2e9; --faint: #eef1f5; --back: #fff; --card: #f6f8fa; --on: #fff; "
    "--wait: #c5ccd6; --start: #8db9e2; --run: #2f6fb5; --good: #2e8555; --bad: #c0392b; --lost: #b45309; "
    "--over: #66727f; "
)
_DARK = (
    "--ink: #e4e8ee; --soft: #9aa6b6; --line: #323b48; --faint: #222a35; --back: #12171e; --card: #1a212b; "
    "--on: #10151c; "
    "--wait: #56616f; --start: #5b87b3; --run: #6ea8e5; --good: #5cba85; --bad: #ee7a6d; --lost: #f0a050; "
    "--over: #8b97a6; "
)


def _colours(first: int) -> str:
    return " ".join(f"--c{place}: {_CURVES[first + place]};" for place in range(8))


STYLE = (
    f"""
:root {{ color-scheme: light dark; {_LIGHT}{_colours(0)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK}{_colours(8)} }} }}
"""
    + """
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 66rem;
  margin: 0 auto; padding: 2rem 1.25rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0; } h2 { font-size: 1.15rem; margin: 0 0 .75rem; }
h3 { font-size: .9rem; margin: 0; }
header > p { margin: .15rem 0 0; color: var(--soft); font: .85rem ui-monospace, monospace; }
section { margin-top: 2rem; padding-top: 1.25rem; border-top: 1px solid var(--line); }
p { margin: .5rem 0; } ul { margin: .5rem 0; padding-left: 1.2rem; }
code { font: .92em ui-monospace, monospace; background: var(--card); border-radius: 3px; padding: .1em .3em; }
.phase { font-size: .75rem; font-weight: 600; letter-spacing: .03em; padding: .25em .7em; border-radius: 1em;
  vertical-align: .25em; background: var(--wait); color: var(--ink); }
.phase.running { background: var(--run); color: var(--on); } .phase.failed { background: var(--bad); color: var(--on); }
.phase.succeeded { background: var(--good); color: var(--on); }
dl { margin: 1rem 0 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr));
  gap: .15rem 2rem; }
dl > div { display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: .75rem; }
dt { color: var(--soft); } dd { margin: 0; font-variant-numeric: tabular-nums; }
section > dl { grid-template-columns: minmax(0, 1fr); margin: 0; }
section > dl > div { grid-template-columns: 9.5rem minmax(0, 1fr); } section > h3 { margin-top: 1rem; }
dl.tiles { grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; margin: 1.25rem 0; }
.tiles > div { display: block; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .6rem .9rem; }
.tiles dt { font-size: .8rem; } .tiles dd { font-size: 1.25rem; font-weight: 600; }
.tiles small { font-size: .8rem; font-weight: 400; color: var(--lost); margin-left: .6em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; white-space: nowrap; padding: .35rem 1.1rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { color: var(--soft); font-weight: 600; } th.n, td.n { text-align: right; width: 1%; }
th.long, td.long { padding-right: 0; } td.long { white-space: normal; min-width: 14rem; }
figure { margin: 0 0 1.25rem; } figcaption { margin-bottom: .4rem; }
figcaption p { margin: 0; color: var(--soft); font-size: .85rem; }
figcaption, .key { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; align-items: baseline; }
.key span { display: inline-flex; align-items: center; gap: .4em; } .key b { color: var(--ink); font-weight: 600;
  font-variant-numeric: tabular-nums; }
.key i { width: .75em; height: .75em; border-radius: 2px; }
.note, footer { color: var(--soft); font-size: .85rem; } footer { margin-top: 2.5rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.25rem 2rem; }
.charts > figure:last-child:nth-child(odd) { grid-column: 1 / -1; }
.charts figure, section > :last-child { margin-bottom: 0; }
.plot { display: grid; grid-template-columns: 7.5rem minmax(0, 1fr); gap: 0 .6rem; }
.charts .plot { grid-template-columns: 3rem minmax(0, 1fr); }
svg { display: block; width: 100%; overflow: visible; } svg:not([height]) { height: 11rem; }
svg.below:not([height]) { height: 1.6rem; } svg.stretched:not([height]) { width: 100%; height: 100%; overflow: hidden; }
svg text { font-size: 12px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.unit { font-size: 12px; line-height: 24px; color: var(--soft); text-align: right; }
line { stroke: var(--line); shape-rendering: crispEdges; } line.tick { stroke: var(--faint); }
line.lost { stroke: var(--lost); stroke-dasharray: 4 3; }
.curve { fill: none; stroke-width: 1.75; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.saved { stroke: var(--ink); stroke-width: 1.5; } i.saved { background: var(--ink); width: 2px; height: 1em; }
svg text.on { fill: var(--on); font-weight: 600; } svg text.on.wait { fill: var(--ink); }
"""
    + "".join(
        f".{kind} {{ fill: var(--{kind}); }} i.{kind} {{ background: var(--{kind}); }}\n"
        for kind in ("wait", "start", "run", "good", "bad", "lost", "over")
    )
    + "".join(
        f".curve.c{place} {{ stroke: var(--c{place}); }} .dot.c{place} {{ fill: var(--c{place}); }} "
        f"i.c{place} {{ background: var(--c{place}); }}\n"
        for place in range(8)
    )
)
