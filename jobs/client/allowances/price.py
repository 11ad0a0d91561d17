"""The amount to reserve for a job, and the highest cost of an ended one. Money is micro-USD, rounded up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from accel.contract.allowances import LABEL, Allowance, Allowances
from accel.diagnostics.errors import BadInput, OverLimit
from accel.diagnostics.messages import did_you_mean, printable_name

from ...backends.base import Status
from ...model.job import Job
from ..cost_parts import JobCost
from .reservation import MICRO, Hold, Terms

WHOLE = "counted whole: "


@dataclass(frozen=True)
class Price(Terms):
    """Price of one job."""

    warnings: tuple[str, ...] = ()


def team_of(job: Job, allowances: Allowances) -> str:
    """Raise BadInput where no team with an allowance pays for the job."""
    named = job.labels.get(LABEL)
    team = named if named is not None else allowances.default_team
    known = sorted(allowances.teams)
    if team is None:
        raise BadInput(
            f"labels.{LABEL}: is missing: who pays for {job.name}? teams with an allowance: {', '.join(known)}"
        )
    if team not in allowances.teams:
        raise BadInput(f"labels.{LABEL}: {printable_name(team)} has no allowance{did_you_mean(team, known)}")
    return team


def price(job: Job, cost: JobCost, team: str, allowance: Allowance) -> Price:
    """Raise OverLimit for a job that nothing bounds, or, unless `unpriced: warn`, whose price is not known."""
    under = f"{job.name}: team {team} has an allowance"
    if cost.timeout_s is None:
        raise OverLimit(
            f"{under}, and nothing bounds what a job without timeout_s costs",
            "timeout_s in the job file, or in the target's definition: what is held is price x timeout_s x attempts",
        )
    warnings: tuple[str, ...] = ()
    if cost.worst is None or cost.at_least:
        why = "; ".join(cost.notes) or "no price is known"
        if allowance.unpriced == "refuse":
            raise OverLimit(
                f"{under}, and what the job costs at most is not known: {why}",
                "change that in the job file; or `unpriced: warn` in the team's allowance, which holds what is known",
            )
        known = f"{usd(micro(cost.worst))} of it is held" if cost.worst else "nothing of it is held"
        warnings = (f"{job.name}: what it costs at most is not known, and {known}: {why}",)
    paid = [found[1] for each in cost.environments if (found := each.range(each.capacity))]
    most = [found for each in cost.environments if (found := each.most) is not None]
    return Price(
        usd=micro(cost.worst or 0.0),
        usd_hour=micro(max(paid or most, default=0.0)),
        machines=cost.tasks,
        tasks=job.tasks,
        attempts=cost.attempts,
        timeout_s=cost.timeout_s,
        warnings=warnings,
    )


def bill(hold: Hold, status: Status) -> tuple[int, str]:
    """Return the cost of an ended job, and why that is not by its times. It is never more than the reservation, and
    never less than the known run time. No platform reports the times of the attempts before the last, so each of these
    counts with its whole timeout, and all attempts together with no more than the time since the job was made."""
    if status.started is None and not status.attempts:
        return 0, "it never started"
    if status.started is None or status.stopped is None:
        return hold.usd, f"{WHOLE}its platform does not say when it ran"
    last = max(0.0, (status.stopped - status.started).total_seconds())
    earlier = hold.attempts if hold.tasks > 1 else max(status.attempts or 0, 1)
    bounds = [(earlier - 1) * hold.timeout_s + last]
    if status.created is not None:
        bounds.append(max(last, (status.stopped - status.created).total_seconds()))
    return min(hold.usd, accrued_cost(hold, min(bounds))), ""


def accrued_cost(hold: Hold, seconds: float) -> int:
    return math.ceil(hold.usd_hour * hold.machines * seconds / 3600)


def fitting(wanted: Sequence[Price], free: int) -> str:
    """Describe the part of a job that would fit into `free`; for several jobs, how many in their order."""
    if len(wanted) > 1:
        return f"{sum(total <= free for total in accumulate(each.usd for each in wanted))} of them would fit"
    (only,) = wanted
    seconds = only.timeout_s * free // only.usd if only.usd and free > 0 else 0
    if seconds < 1:
        return "nothing of it fits"
    tasks = only.tasks * free // only.usd
    fewer = f", or {tasks} of its {only.tasks} tasks" if only.tasks > 1 and tasks else ""
    return f"timeout_s of at most {seconds} would fit (it has {only.timeout_s}){fewer}"


def micro(dollars: float) -> int:
    return math.ceil(round(dollars * MICRO, 3))


def usd(amount: int) -> str:
    """Return text such as $1,234.50, a small amount with all its digits."""
    digits = 2 if amount % 10_000 == 0 or abs(amount) >= MICRO else 6
    return f"{'-' if amount < 0 else ''}${abs(amount) / MICRO:,.{digits}f}"
