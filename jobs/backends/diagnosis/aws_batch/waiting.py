"""Causes of a job that has not started. Those that keep an environment from having an instance apply to the job at the
front of the queue."""

from ...base import Explanation
from ..engine import Rule
from .environments import blocked_environments, max_vcpus, max_vcpus_likely, no_capacity, registers_less, too_large
from .facts import Ahead, AwsFacts, Queue

SHOWN = 5
NEW_S = 300
"""Age until which silence is no sign: a launch begins within a few minutes."""
FRONT = 100
"""Jobs in a snapshot. Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_FrontOfQueueDetail.html"""
# https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable_misconfiguration.html
ROLE = "MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS"
# Batch's words about an environment:
# https://docs.aws.amazon.com/batch/latest/userguide/invalid_compute_environment.html
PROFILE_WORDS = ("IamInstanceProfile", "instance profile", "Instance Profile", "iamInstanceProfile")
SERVICE_ROLE_WORDS = ("sts:AssumeRole", "service role", "is not authorized to perform")


def queued_job(facts: AwsFacts) -> Explanation | None:
    """Check for SUBMITTED, a state of a few seconds."""
    if facts.status != "SUBMITTED" or facts.now - facts.since >= NEW_S:
        return None
    age = f"made {facts.ago(facts.since)}"
    return facts.explanation("queued", "the scheduler has not looked at the job yet", (age,), "wait a few seconds")


def dependencies(facts: AwsFacts) -> Explanation | None:
    others = facts.depends_on()
    if facts.status != "PENDING" or not others:
        return None
    open_ = [one for one in others if one.status != "SUCCEEDED"]
    if not open_:
        return None
    rows = tuple(f"{facts.reference(one.id, one.name)}: {one.status or 'not known to Batch'}" for one in open_[:SHOWN])
    more = (f"and {len(open_) - SHOWN} more",) if len(open_) > SHOWN else ()
    return facts.explanation(
        "dependencies",
        f"the job waits for {len(open_)} of the {len(others)} jobs that it depends on",
        (*rows, *more),
        f"`accel-jobs explain {facts.reference(open_[0].id)}` says what the first of them waits for",
    )


def queue_invalid(facts: AwsFacts) -> Explanation | None:
    queue = facts.queue()
    if queue is None or queue.status not in ("INVALID", "DELETING", "DELETED"):
        return None
    evidence = (f"queue {queue.name}: {queue.status}, {queue.reason or 'without a reason'}",)
    return facts.explanation(
        "queue-invalid", f"the queue {queue.name} is {queue.status}", evidence, "submit to another queue"
    )


def no_environment(facts: AwsFacts) -> Explanation | None:
    every = facts.environments()
    if not every or facts.usable:
        return None
    rows = tuple(f"{each.name}: {each.state}, {each.status}, {each.reason or 'without a reason'}" for each in every)
    broken = [each for each in every if each.status in ("INVALID", "DELETING", "DELETED")]
    if not broken:
        return facts.explanation(
            "environment-disabled",
            "every environment of the queue is DISABLED",
            rows,
            "state: ENABLED in the environment and `pulumi up`, or submit to another queue",
        )
    first = broken[0]
    reason = f"{first.name} is {first.status}: {first.reason or 'Batch gives no reason'}"
    if any(word in first.reason for word in PROFILE_WORDS):
        return facts.explanation(
            "instance-role", reason, rows, "make the instance profile again, then disable and enable the environment"
        )
    if any(word in first.reason for word in SERVICE_ROLE_WORDS):
        return facts.explanation(
            "service-role", reason, rows, "make the role again or repair it: `stacks unwedge` shows the steps"
        )
    return facts.explanation(
        "environment-invalid",
        reason,
        rows,
        "repair what the reason names, then disable and enable the environment; `stacks unwedge` removes it",
    )


def service_role(facts: AwsFacts) -> Explanation | None:
    if not facts.reason.startswith(ROLE):
        return None
    return facts.explanation(
        "service-role",
        "Batch lacks a permission in its service role",
        (f"AWS says: {facts.reason}",),
        "leave service_role out (the service-linked role has them all), or attach AWSBatchServiceRole to it",
    )


def behind(facts: AwsFacts) -> Explanation | None:
    front, queue = facts.front(), facts.queue()
    if not front or queue is None:
        return None
    job_id = str(facts.job["jobId"])
    at = next((number for number, one in enumerate(front) if one.id == job_id), None)
    if at == 0 or (at is None and len(front) < FRONT):
        return None
    ahead = front if at is None else front[:at]
    place = f"number {at + 1}" if at is not None else f"not among the first {FRONT}"
    head = ahead[0]
    rows = (
        f"queue {queue.name}: the job is {place}",
        f"first is {facts.reference(head.id, head.name)}: {head.reason or 'no reason given'}",
    )
    share = str(facts.job.get("shareIdentifier") or "")
    if queue.shares is not None and any(one.share != share for one in ahead):
        return _shared(facts, queue, ahead, share, rows)
    return facts.explanation(
        "behind-others",
        f"{len(ahead)} jobs are before it in the queue" if len(ahead) > 1 else "one job is before it in the queue",
        rows,
        f"`accel-jobs explain {facts.reference(head.id)}` says what the first one waits for",
    )


def _shared(facts: AwsFacts, queue: Queue, ahead: tuple[Ahead, ...], share: str, rows: tuple[str, ...]) -> Explanation:
    counts: dict[str, int] = {}
    for one in ahead:
        counts[one.share] = counts.get(one.share, 0) + 1
    before = ", ".join(f"{count} of {name or 'no share'}" for name, count in counts.items())
    policy = queue.shares or {}
    weights = ", ".join(
        f"{row['shareIdentifier']} {row.get('weightFactor', 1):g}" for row in policy.get("shareDistribution") or ()
    )
    shown = (f"before it: {before}; its own share is {share}", *([f"weights: {weights}"] if weights else []))
    return facts.explanation(
        "fair-share",
        f"the queue's scheduling policy puts jobs of other shares before those of {share}",
        (*rows, *shown),
        "a share's turn comes as the others' usage grows or decays; a lower weightFactor gives it more",
    )


def share_reserve(facts: AwsFacts) -> Explanation | None:
    """Check the reserve for shares without jobs: (computeReservation / 100) ^ active shares of max_vcpus."""
    queue = facts.queue()
    percent = int((queue.shares or {}).get("computeReservation") or 0) if queue else 0
    active = facts.active_shares() if percent else None
    if not queue or not active or not facts.candidates:
        return None
    left = 1 - (percent / 100) ** active
    rows: list[str] = []
    for each in facts.candidates:
        smallest = each.smallest(facts.size)
        wanted = each.desired_vcpus + (smallest.vcpus if smallest else 0)
        if smallest is None or wanted <= each.max_vcpus * left:
            return None
        if wanted > each.max_vcpus:
            continue  # it is full even without a reserve
        usable = int(each.max_vcpus * left)
        rows.append(
            f"{each.name}: {each.desired_vcpus} of {usable} vCPUs in use, {smallest.name} needs {smallest.vcpus}"
        )
    if not rows:
        return None
    return facts.explanation(
        "share-reserve",
        f"the queue's scheduling policy reserves {100 - 100 * left:.0f} % of max_vcpus for shares without jobs",
        (*rows, f"computeReservation {percent}, {active} active shares"),
        "wait for a job to end, lower computeReservation, or raise max_vcpus",
    )


def new(facts: AwsFacts) -> Explanation | None:
    if facts.status != "RUNNABLE" or facts.now - facts.since >= NEW_S:
        return None
    age = f"made, or tried last, {facts.ago(facts.since)}"
    return facts.explanation(
        "new", "the job became ready a moment ago, and nothing was found against it", (age,), "wait a little"
    )


def starting(facts: AwsFacts) -> Explanation | None:
    if facts.status != "STARTING":
        return None
    began = facts.pull_began()
    pulling = (f"its image has been pulled since {facts.ago(began)}",) if began else ()
    image = str(facts.container.get("image") or "?")
    return facts.explanation(
        "starting",
        "the job has an instance; its image is pulled and its container made",
        (f"image {image}", *pulling),
        "wait; an image of many GiB takes minutes on each new instance",
    )


RULES: tuple[Rule[AwsFacts], ...] = (
    queued_job, dependencies, starting, queue_invalid, no_environment, too_large, max_vcpus, behind, service_role,
    registers_less, share_reserve, blocked_environments, no_capacity, max_vcpus_likely, new,
)  # fmt: skip
