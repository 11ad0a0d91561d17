"""A report as one Markdown comment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .plain import markdown

LIMIT = 60_000
"""Maximum characters. GitHub takes 65,536 in a comment (https://github.com/orgs/community/discussions/41331)."""
CELL = 300
MOST = 200
"""Maximum rows of a table."""

WORDS = {
    "replace": "replaced",
    "delete": "deleted",
    "forget": "forgotten",
    "update": "updated",
    "create": "created",
    "import": "imported",
}
FATES = {
    "ends": "Jobs that end",
    "loses": "Jobs that lose what they stand on",
    "waits": "Jobs that the deployment waits for",
}


@dataclass(frozen=True)
class Section:
    """A heading, lines, and a table; the table may be cut."""

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = ()
    folded: bool = False


def render(report: Mapping[str, Any], limit: int = LIMIT) -> str:
    """Return the comment, never longer than `limit` characters: tables are cut, the least important most. Names and
    messages are shown as plain text. The comment ends with a mark by which the next report finds it."""
    mark = f"<!-- accel-report:{report['project']}/{report['stack']} -->"
    if report["empty"] and not (report["fails"] or report["policy"] or report["drift"]):
        return f"**{markdown(report['stack'])}**: nothing changes. {mark}\n"
    most, head, sections = MOST, [*_head(report)], _sections(report)
    while True:
        text = "\n".join([*head, *_body(sections, most), mark, ""])
        if len(text) <= limit:
            return text
        if most == 0:
            note = "\n\n*The rest is in the JSON report.*\n" + mark + "\n"
            return text[: limit - len(note)].rpartition("\n")[0] + note
        most = most * 2 // 3


def _head(report: Mapping[str, Any]) -> Iterator[str]:
    counts = ", ".join(f"{count} {WORDS[op]}" for op, count in report["summary"].items()) or (
        "the preview failed" if report["failed"] else "nothing changes"
    )
    yield f"### {markdown(report['stack'])}: {counts}"
    yield ""
    if report["failed"]:
        yield "**The preview failed. What follows is what it came to, and not the whole change.**"
        yield ""
        yield from (f"- {markdown(each)}" for each in report["errors"][:20])
        yield ""
    for each in report["fails"]:
        yield f"- refused by `{each['limit']}`: {markdown(each['why'])}"
    if report["fails"]:
        yield ""


def _body(sections: Sequence[Section], most: int) -> Iterator[str]:
    for place, section in enumerate(sections):
        if not section.rows and not section.lines:
            continue
        shown = section.rows[: most if place < 2 else most * 2 // 3]
        if section.folded:
            yield f"<details><summary>{section.title}</summary>"
        else:
            yield f"#### {section.title}"
        yield ""
        yield from section.lines
        if section.lines and shown:
            yield ""
        if shown:
            yield "| " + " | ".join(section.columns) + " |"
            yield "|" + " --- |" * len(section.columns)
            yield from ("| " + " | ".join(row) + " |" for row in shown)
        if len(shown) < len(section.rows):
            yield ""
            yield f"*and {len(section.rows) - len(shown)} more, in the JSON report*"
        yield ""
        if section.folded:
            yield "</details>"
            yield ""


def _sections(report: Mapping[str, Any]) -> list[Section]:
    return [
        _stateful(report),
        *_jobs(report["jobs"]),
        _cost(report["cost"]),
        _quota(report["quota"]),
        Section("Policy", ("rule", "level", "resource", ""), [
            _cells(each["rule"], each["level"], each["resource"], each["text"]) for each in report["policy"]
        ]),
        Section("Drift", ("resource", "", ""), [
            _cells(each["resource"], each["weight"], each["text"]) for each in report["drift"]
        ]),
        Section("Images, drivers and versions", ("resource", "what", "before", "after"), [
            _cells(each["resource"], each["what"], each["before"] or "none", each["after"] or "none")
            for each in report["images"]
        ]),
        Section("Warnings", lines=[f"- {_cell(each)}" for each in report["warnings"][:20]], folded=True),
        _changes(report["changes"]),
    ]  # fmt: skip


def _stateful(report: Mapping[str, Any]) -> Section:
    rows = [_cells(WORDS[each["op"]], each["name"], each["type"], each["loses"]) for each in report["stateful"]]
    return Section("Lost for good", ("", "resource", "type", "what goes with it"), rows)


def _jobs(jobs: Mapping[str, Any]) -> list[Section]:
    found: list[Section] = []
    for fate, title in FATES.items():
        rows = [each for each in jobs["hit"] if each["fate"] == fate]
        if not rows:
            continue
        running = sum(each["phase"] != "QUEUED" for each in rows)
        at_least = "at least " if any(each["hours"] is None for each in rows) else ""
        spent = ", ".join(
            f"{at_least}{sum(each['hours'] or 0.0 for each in rows if each['unit'] == unit):,.1f} {unit}-hours"
            for unit in dict.fromkeys(each["unit"] for each in rows)
        )
        lines = [f"{running} running, {len(rows) - running} waiting; {spent} of work until now."]
        columns = ("job", "state", "GPUs or chips", "hours", "because of", "what becomes of it")
        found.append(Section(title, columns, [_job(each) for each in rows], lines))
    if jobs["unread"]:
        found.append(Section("Jobs that nobody could look for", lines=[f"- {_cell(each)}" for each in jobs["unread"]]))
    elif jobs["at_stake"] and not jobs["hit"]:
        found.append(Section("Jobs", lines=["No job waits or runs on what changes."]))
    return found


def _job(each: Mapping[str, Any]) -> list[str]:
    hours = "unknown" if each["hours"] is None else f"{each['hours']:,.1f}"
    because = f"{', '.join(each['resources'])} ({WORDS[each['op']]})"
    named = f"{each['name']} ({each['ref']})"
    return _cells(named, each["phase"], str(each["accelerators"]), hours, because, each["how"])


def _cost(cost: Mapping[str, Any] | None) -> Section:
    if cost is None:
        return Section("Cost", lines=["Not known: there is no valid environment."])
    rows = [
        _cells(
            {"floor": "floor", "expected": f"expected at {cost['utilisation']:.0%}", "worst": "worst case"}[name],
            _usd(cost["before"][name]) if cost["before"] else "unknown",
            _usd(cost["after"][name]),
            _usd(cost["rise"][name], sign="+") if cost["rise"][name] else "unknown",
        )
        for name in ("floor", "expected", "worst")
    ]
    lines = [f"- {_cell(each)}" for each in [cost["why"], *cost["unknown"][:10]] if each]
    return Section("Cost, USD an hour", ("", "before", "after", "change"), rows, lines)


def _usd(amount: Mapping[str, Any], sign: str = "") -> str:
    if amount["usd_hour"] is None:
        return "unknown"
    at_least = "at least " if amount["at_least"] and not sign else "about " if amount["at_least"] else ""
    return f"{at_least}{amount['usd_hour']:{sign},.2f}"


def _quota(quota: Mapping[str, Any]) -> Section:
    rows = [row for row in quota["rows"] if row["verdict"] != "ok"]
    lines = [f"- could not be judged: {_cell(quota['unread'])}"] if quota["unread"] else []
    fine = len(quota["rows"]) - len(rows)
    lines += [f"{fine} of {len(quota['rows'])} quotas hold the environment at its largest."] if quota["rows"] else []
    cells = [_cells(row["verdict"], row["quota"] or row["name"], row["region"], row["reason"]) for row in rows]
    return Section("Quotas", ("", "quota", "region", ""), cells, lines)


def _changes(changes: Sequence[Mapping[str, Any]]) -> Section:
    order = list(WORDS)
    rows = [
        _cells(WORDS[each["op"]], each["name"], each["type"], ", ".join(each["forced_by"] or each["properties"]))
        for each in sorted(changes, key=lambda each: order.index(each["op"]))
    ]
    return Section(f"All {len(rows)} changes", ("", "resource", "type", "properties"), rows, folded=True)


def _cells(*texts: str) -> list[str]:
    return [_cell(text) for text in texts]


def _cell(text: str) -> str:
    return markdown(text if len(text) <= CELL else text[: CELL - 3] + "...")
