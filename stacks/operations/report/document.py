"""The whole report as JSON values: what the Markdown shows, and what --fail-on judges."""

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from accel.cost import Amount

from ...environment.config import ConfigFaults, Environment, load_environment
from ..cost.estimate import SCENARIOS, usd
from .costs import Costs, costs
from .live import Hit, Hits, hits
from .plain import hidden, message_line
from .preview import Preview, moved
from .threats import loss, threats
from .thresholds import Limit, Quotas, exceeded, quotas, read_stack

SCHEMA = 1
FATES = ("ends", "loses", "waits")
"""The worst first."""
OFFLINE = "not asked: --offline"


@dataclass(frozen=True)
class Wanted:
    """What besides the preview goes into a report."""

    limits: Sequence[Limit] = ()
    policy: Sequence[Mapping[str, str]] = ()
    drift: Sequence[Mapping[str, str]] = ()
    offline: bool = False
    utilisation: float = 0.3
    strict: bool = False


def document(preview: Preview, wanted: Wanted) -> dict[str, Any]:
    """Asks the clouds for jobs and quotas at once, unless offline."""
    environment = _environment(preview)
    at_stake = [threat for change in preview.changes for threat in threats(change)]
    with ThreadPoolExecutor(2) as pool:
        asked = pool.submit(_hits, preview, at_stake, wanted)
        judged = pool.submit(_quotas, preview, environment, wanted)
        priced = costs(preview, environment, wanted.utilisation) if environment else None
        found, verdicts = asked.result(), judged.result()
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "stack": preview.stack,
        "project": preview.project,
        "failed": preview.failed,
        "empty": preview.empty,
        "summary": _summary(preview),
        "errors": [message_line(each) for each in preview.errors],
        "warnings": [message_line(each) for each in preview.warnings],
        "stateful": [
            {"name": each.name, "type": each.type, "op": each.op, "loses": lost}
            for each in preview.changes
            if (lost := loss(each))
        ],
        "jobs": {**_jobs(found), "at_stake": len(at_stake)},
        "cost": _cost(priced),
        "quota": {"rows": list(verdicts.rows), "unread": verdicts.unread and message_line(verdicts.unread)},
        "policy": list(wanted.policy),
        "drift": [*_refreshed(preview), *wanted.drift],
        "images": [
            {"resource": each.resource, "what": each.what, "before": hidden(each.before), "after": hidden(each.after)}
            for each in moved(preview)
        ],
        "changes": [
            {
                "op": each.op,
                "type": each.type,
                "name": each.name,
                "properties": list(each.diffs),
                "forced_by": list(each.replaces),
            }
            for each in preview.changes
            if not each.is_component and each.op not in ("read", "refresh")
        ],
    }
    reasons = [(limit, exceeded(limit, report, strict=wanted.strict)) for limit in wanted.limits]
    report["fails"] = [{"limit": str(limit), "why": why} for limit, why in reasons if why]
    return report


def _environment(preview: Preview) -> Environment | None:
    """The environment that was previewed; None where there is none, or a preview has said what is wrong with it."""
    if preview.environment is None:
        return None
    try:
        return load_environment(preview.environment)
    except ConfigFaults:
        return None


def _hits(preview: Preview, at_stake: Sequence[Any], wanted: Wanted) -> Hits:
    if wanted.offline:
        return Hits(unread=(OFFLINE,) if at_stake else ())
    return hits(at_stake, preview.outputs)


def _quotas(preview: Preview, environment: Environment | None, wanted: Wanted) -> Quotas:
    if preview.empty and all(limit.name != "quota" for limit in wanted.limits):
        return Quotas()
    if wanted.offline:
        return Quotas(unread=OFFLINE)
    if environment is None:
        return Quotas(unread="the environment was not valid, or the program has none")
    return quotas(read_stack(preview.stack, environment))


def _summary(preview: Preview) -> dict[str, int]:
    counted = Counter(each.op for each in preview.changes if not each.is_component)
    return {op: counted[op] for op in ("replace", "delete", "forget", "update", "create", "import") if counted[op]}


def _jobs(found: Hits) -> dict[str, Any]:
    """Each job once, with the worst that becomes of it."""
    by_job: dict[str, list[Hit]] = {}
    for hit in found.hits:
        by_job.setdefault(hit.job.ref, []).append(hit)
    rows = [_row(sorted(each, key=lambda hit: FATES.index(hit.threat.fate))) for each in by_job.values()]
    rows.sort(key=lambda row: (FATES.index(row["fate"]), -(row["hours"] or 0.0)))
    hours = {
        fate: round(sum(row["hours"] or 0.0 for row in rows if row["fate"] == fate), 3)
        for fate in FATES
        if any(row["fate"] == fate for row in rows)
    }
    return {"hit": rows, "accelerator_hours": hours, "unread": [message_line(why) for why in found.unread]}


def _row(hits: Sequence[Hit]) -> dict[str, Any]:
    worst, job = hits[0].threat, hits[0].job
    return {
        "ref": job.ref,
        "name": job.name,
        "phase": job.phase,
        "target": job.target,
        "accelerators": job.accelerators,
        "unit": job.unit,
        "hours": None if job.hours is None else round(job.hours, 3),
        "fate": worst.fate,
        "how": worst.how,
        "op": worst.change.op,
        "resources": list(dict.fromkeys(hit.threat.change.name for hit in hits)),
    }


def _cost(priced: Costs | None) -> dict[str, Any] | None:
    if priced is None:
        return None
    before, after = priced.before.totals if priced.before else None, priced.after.totals
    return {
        "utilisation": priced.after.utilisation,
        "before": {name: usd(before[name]) for name in SCENARIOS} if before else None,
        "after": {name: usd(after[name]) for name in SCENARIOS},
        "rise": {name: usd(_rise(before[name], after[name])) if before else None for name in SCENARIOS},
        "why": priced.why,
        "unknown": list(priced.after.unknown),
    }


def _rise(before: Amount, after: Amount) -> Amount:
    if before.usd is None or after.usd is None:
        return Amount(None, at_least=True)
    return Amount(after.usd - before.usd, before.at_least or after.at_least)


def _refreshed(preview: Preview) -> list[dict[str, str]]:
    """What the refresh before the preview found to differ from the state."""
    return [
        {"resource": each.name, "weight": "changed", "text": f"changed outside: {', '.join(each.diffs)}"}
        for each in preview.changes
        if each.op == "refresh" and each.diffs
    ]
