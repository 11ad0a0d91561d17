"""Scheduling policies, and whose turn it is in a queue that has one. Usage is vCPU seconds times the share's weight,
and the share with the lowest goes first: https://docs.aws.amazon.com/batch/latest/userguide/share-identifiers.html"""

import re
from itertools import combinations

from .state import Batch, BatchError, Document, Job, Queue, page, require, valid_name

# FairsharePolicy of botocore's batch model: 0 stands for the shortest window.
SHORTEST_DECAY_S = 600
SHARE = re.compile(r"[A-Za-z0-9]{1,255}\*?")


def find(batch: Batch, arn: str) -> Document:
    if arn not in batch.policies:
        raise BatchError(f"{arn} does not exist")
    return batch.policies[arn]


def _check(policy: Document) -> Document:
    shares = policy.get("shareDistribution", [])
    for row in shares:
        name, weight = row["shareIdentifier"], row.get("weightFactor", 1.0)
        require(SHARE.fullmatch(name), f"shareIdentifier {name!r} must be up to 255 letters and digits, then maybe *")
        require(0.0001 <= weight <= 999.9999, f"weightFactor {weight} must be between 0.0001 and 999.9999")
    for one, other in combinations((row["shareIdentifier"] for row in shares), 2):
        require(not (_covers(one, other) or _covers(other, one)), f"shareIdentifiers {one} and {other} overlap")
    for name, most in (("shareDecaySeconds", 604_800), ("computeReservation", 99)):
        require(0 <= policy.get(name, 0) <= most, f"{name} {policy.get(name)} must be between 0 and {most}")
    return {"shareDecaySeconds": 0, "computeReservation": 0, "shareDistribution": [], **policy}


def create(batch: Batch, request: Document) -> Document:
    name = valid_name(request, "name")
    require("quotaSharePolicy" not in request, "the sandbox has no quota shares")
    arn = batch.arn("scheduling-policy", name)
    require(arn not in batch.policies, "Object already exists")
    batch.policies[arn] = {"name": name, "arn": arn, "fairsharePolicy": _check(request.get("fairsharePolicy", {}))}
    batch.tag_resource(arn, request.get("tags", {}))
    return {"name": name, "arn": arn}


def update(batch: Batch, request: Document) -> Document:
    """Answer UpdateSchedulingPolicy, which replaces the whole fair-share policy."""
    policy = find(batch, request["arn"])
    if "fairsharePolicy" in request:
        policy["fairsharePolicy"] = _check(request["fairsharePolicy"])
    return {}


def delete(batch: Batch, request: Document) -> Document:
    arn = request["arn"]
    used = [name for name, queue in batch.queues.items() if queue.document.get("schedulingPolicyArn") == arn]
    require(not used, f"Cannot delete, {arn} is used by job queue {', '.join(used)}")
    batch.policies.pop(arn, None)
    return {}


def describe(batch: Batch, request: Document) -> Document:
    found = [batch.policies[arn] for arn in request["arns"] if arn in batch.policies]
    return {"schedulingPolicies": [{**row, "tags": batch.list_tags_for_resource(row["arn"])} for row in found]}


def list_policies(batch: Batch, request: Document) -> Document:
    found, token = page([{"arn": arn} for arn in batch.policies], "arn", request, 100)
    return {"schedulingPolicies": found, **token}


def check_job(queue: Queue, request: Document, definition: Document) -> Document:
    """Return what SubmitJob keeps of a job's share and priority. Refuses those that do not suit the queue."""
    share = request.get("shareIdentifier")
    if not queue.document.get("schedulingPolicyArn"):
        require(share is None, "shareIdentifier can't be specified: the job queue has no fair-share scheduling policy")
        return {}
    # https://github.com/boto/boto3/issues/3158, https://github.com/nextflow-io/nextflow/pull/3505
    require(share, "shareIdentifier must be specified.")
    require(SHARE.fullmatch(share or ""), f"shareIdentifier {share!r} must be up to 255 letters and digits")
    priority = request.get("schedulingPriorityOverride", definition.get("schedulingPriority"))
    if priority is None:
        raise BatchError(
            "Either schedulingPriority in job definition or schedulingPriorityOverride should be specified."
        )
    require(0 <= priority <= 9999, f"schedulingPriority {priority} must be between 0 and 9999")
    return {"shareIdentifier": share, "schedulingPriority": priority}


def _covers(entry: str, share: str) -> bool:
    return share.startswith(entry[:-1]) if entry.endswith("*") else entry == share


def _policy(batch: Batch, queue: Queue) -> Document:
    arn = queue.document.get("schedulingPolicyArn")
    return batch.policies[arn]["fairsharePolicy"] if arn else {}


def _usage(batch: Batch, queue: Queue, policy: Document) -> dict[str, float]:
    """Return weighted vCPU seconds by share. Running jobs count in full, ended ones decay with time."""
    now, window = batch.world.now(), max(policy["shareDecaySeconds"], SHORTEST_DECAY_S)
    while queue.used and queue.used[0][3] <= now - window:
        queue.used.popleft()
    rows = [(share, vcpus * (end - start) * (1 - (now - end) / window)) for share, vcpus, start, end in queue.used]
    for job in batch.running.values():
        if job.queue is queue and job.run:
            # A second at least: jobs that start in the same moment would all be the first share's.
            rows.append((job.document["shareIdentifier"], job.needs.vcpus * max(1.0, now - job.run.placed_at)))
    found: dict[str, float] = {}
    for share, spent in rows:
        weights = [row for row in policy["shareDistribution"] if _covers(row["shareIdentifier"], share)]
        found[share] = found.get(share, 0.0) + spent * (weights[0].get("weightFactor", 1.0) if weights else 1.0)
    return found


def turn_order(batch: Batch, queue: Queue) -> list[Job]:
    """Return the RUNNABLE jobs in the order of submission; with a policy, in that of their share's usage so far, and
    within a share in that of priority."""
    policy = _policy(batch, queue)
    jobs = list(queue.runnable.values())
    if not policy:
        return jobs
    usage = _usage(batch, queue, policy)
    shares = list(dict.fromkeys(job.document["shareIdentifier"] for job in jobs))
    turn = {share: at for at, share in enumerate(sorted(shares, key=lambda share: usage.get(share, 0.0)))}
    return sorted(jobs, key=lambda job: (turn[job.document["shareIdentifier"]], -job.document["schedulingPriority"]))


def limit(batch: Batch, queue: Queue, vcpus: int) -> float:
    """Return how much of maxvCpus the active shares may use: a policy can reserve some for future shares."""
    policy = _policy(batch, queue)
    if not policy.get("computeReservation"):
        return vcpus
    active = {job.document["shareIdentifier"] for job in queue.jobs.values() if not job.ended}
    active |= _usage(batch, queue, policy).keys()
    return vcpus * (1 - (policy["computeReservation"] / 100) ** len(active))


OPERATIONS = {
    "CreateSchedulingPolicy": create,
    "UpdateSchedulingPolicy": update,
    "DeleteSchedulingPolicy": delete,
    "DescribeSchedulingPolicies": describe,
    "ListSchedulingPolicies": list_policies,
}
