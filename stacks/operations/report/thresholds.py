"""Conditions of `--fail-on`, and the quotas' verdicts for a report."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel.diagnostics.errors import BadInput, JobsError
from accel.diagnostics.messages import did_you_mean, first_of, printable_name

from ...environment.config import Environment
from ..quota.judgement import judge, row_of
from ..stack_files import ReadStack

WORDS: Mapping[str, str] = {
    "replace-stateful": "something that lasts is replaced or deleted",
    "kills-jobs": "a job ends or loses what it stands on, or nobody could look",
    "waits-for-jobs": "the deployment waits for jobs",
    "quota": "a quota is too small, or none could be read",
    "policy": "a mandatory policy is violated",
    "drift": "something is broken or changed outside",
}
AMOUNTS: Mapping[str, str] = {
    "cost": "the worst case afterwards, USD an hour, is above the number or not known",
    "rise": "the worst case rises by more than the number, USD an hour, or that is not known",
}
COUNTED = ("broken", "changed")
"""Weights of drift that `stacks drift` itself counts; the others announce something, or could not be read."""
_AMOUNT = re.compile(r"(?P<name>[a-z-]+)\s*>\s*(?P<number>\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Limit:
    """One condition of --fail-on; comparisons have a `number`."""

    name: str
    number: float | None = None

    def __str__(self) -> str:
        return self.name if self.number is None else f"{self.name}>{self.number:g}"


def limits(text: str) -> tuple[Limit, ...]:
    """Parse `kills-jobs,cost>12.5`. Raise BadInput."""
    found: list[Limit] = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        compared = _AMOUNT.fullmatch(each)
        if compared and compared["name"] in AMOUNTS:
            found.append(Limit(compared["name"], float(compared["number"])))
        elif each in WORDS:
            found.append(Limit(each))
        elif re.split(r"[><=]", each)[0].strip() in AMOUNTS:
            raise BadInput(f"--fail-on: {printable_name(each)}: expected {re.split('[><=]', each)[0].strip()}>NUMBER")
        else:
            known = [*WORDS, *(f"{name}>NUMBER" for name in AMOUNTS)]
            near = did_you_mean(each, known) or f"; known: {', '.join(known)}"
            raise BadInput(f"--fail-on: unknown condition {printable_name(each)}{near}")
    return tuple(found)


@dataclass(frozen=True)
class Quotas:
    """Rows as in `stacks quota -o json`; `unread` is why there are none."""

    rows: tuple[Mapping[str, Any], ...] = ()
    unread: str | None = None


def quotas(stack: ReadStack) -> Quotas:
    """Ask the clouds for limits and use. Nothing is raised for what cannot be asked."""
    try:
        return Quotas(tuple(row_of(each.stack, row) for each in judge(stack) for row in each.verdicts))
    except JobsError as error:
        return Quotas(unread=error.message)


def breach_reason(limit: Limit, report: Mapping[str, Any], *, strict: bool = False) -> str | None:
    """Return why the condition holds, None where it does not. `strict`: partial knowledge does not suffice to pass."""
    jobs, cost = report["jobs"], report["cost"]
    match limit.name:
        case "replace-stateful":
            return _named("loses", [each["name"] for each in report["stateful"]])
        case "kills-jobs":
            ended = [each["name"] for each in jobs["hit"] if each["fate"] != "waits"]
            unread = [f"nobody could look: {why}" for why in jobs["unread"]]
            return _named("jobs", ended) or (unread[0] if unread else None)
        case "waits-for-jobs":
            return _named("waits for", [each["name"] for each in jobs["hit"] if each["fate"] == "waits"])
        case "quota":
            over = [f"{row['quota'] or row['name']} in {row['region']}" for row in report["quota"]["rows"]
                    if row["verdict"] == "over"]  # fmt: skip
            unknown = [row["reason"] for row in report["quota"]["rows"] if strict and row["verdict"] == "unknown"]
            return _named("too small", over) or report["quota"]["unread"] or _named("not known", unknown)
        case "policy":
            return _named("violates", [each["rule"] for each in report["policy"] if each["level"] == "mandatory"])
        case "drift":
            return _named("differs", [each["resource"] for each in report["drift"] if each["weight"] in COUNTED])
        case _:
            return _above(limit, cost, strict)


def _named(word: str, names: Sequence[str]) -> str | None:
    return f"{word}: {first_of(names, 5)}" if names else None


def _above(limit: Limit, cost: Mapping[str, Any] | None, strict: bool) -> str | None:
    if cost is None:
        return "the cost is not known"
    assert limit.number is not None
    found: Any = cost["after"]["worst"] if limit.name == "cost" else cost["rise"]["worst"]
    said = "the worst case" if limit.name == "cost" else "the rise of the worst case"
    if found is None or found["usd_hour"] is None:
        return f"{said} is not known"
    if found["usd_hour"] > limit.number:
        return f"{said} is {found['usd_hour']:,.2f} USD an hour"
    unsure = f"{said} is {found['usd_hour']:,.2f} USD an hour and what has no known price"
    return unsure if strict and found["at_least"] else None


def read_stack(stack: str, environment: Environment) -> ReadStack:
    """Return the previewed environment in the form that other commands take; Pulumi.yaml is that of this folder."""
    return ReadStack(Path(f"Pulumi.{stack}.yaml"), stack, environment, [], str)
