"""Why a job has not started: it waits for others, for its turn, or for a place.

A place is an environment; what keeps one from having an instance counts for the job at the front of the queue.
"""

import re

from accel.catalog.memory import ecs_gpus
from accel.rules.aws import images

from ...base import Explanation
from .facts import Ahead, Environment, Facts, Instance, Queue
from .size import max_vcpus, max_vcpus_likely, registers_less, too_large
from .table import ago, because

SHOWN = 5
NEW_S = 300
"""A launch begins within a few minutes; until then silence is no sign."""
FRONT = 100
"""Jobs in a snapshot. https://docs.aws.amazon.com/batch/latest/APIReference/API_FrontOfQueueDetail.html"""
# https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable_misconfiguration.html
ROLE = "MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS"
# What Batch says of an environment: https://docs.aws.amazon.com/batch/latest/userguide/invalid_compute_environment.html
PROFILE_WORDS = ("IamInstanceProfile", "instance profile", "Instance Profile", "iamInstanceProfile")
SERVICE_ROLE_WORDS = ("sts:AssumeRole", "service role", "is not authorized to perform")


def submitted(facts: Facts) -> Explanation | None:
    """SUBMITTED: for seconds."""
    if facts.status != "SUBMITTED" or facts.now - facts.since >= NEW_S:
        return None
    told = f"made {ago(facts.now, facts.since)}"
    return because("submitted", "the scheduler has not looked at the job yet", (told,), "wait a few seconds")


def dependencies(facts: Facts) -> Explanation | None:
    """PENDING: jobs that it depends on have not ended."""
    others = facts.depends_on()
    if facts.status != "PENDING" or not others:
        return None
    open_ = [one for one in others if one.status != "SUCCEEDED"]
    if not open_:
        return None
    rows = tuple(f"{facts.called(one.id, one.name)}: {one.status or 'not known to Batch'}" for one in open_[:SHOWN])
    more = (f"and {len(open_) - SHOWN} more",) if len(open_) > SHOWN else ()
    return because(
        "dependencies",
        f"the job waits for {len(open_)} of the {len(others)} jobs that it depends on",
        (*rows, *more),
        f"`accel-jobs explain {facts.called(open_[0].id)}` says what the first of them waits for",
    )


def queue_invalid(facts: Facts) -> Explanation | None:
    """The queue itself does not work."""
    queue = facts.queue()
    if queue is None or queue.status not in ("INVALID", "DELETING", "DELETED"):
        return None
    evidence = (f"queue {queue.name}: {queue.status}, {queue.reason or 'without a reason'}",)
    return because("queue-invalid", f"the queue {queue.name} is {queue.status}", evidence, "submit to another queue")


def no_environment(facts: Facts) -> Explanation | None:
    """Batch may use none of the queue's environments."""
    every = facts.environments()
    if not every or facts.usable:
        return None
    rows = tuple(f"{each.name}: {each.state}, {each.status}, {each.reason or 'without a reason'}" for each in every)
    broken = [each for each in every if each.status in ("INVALID", "DELETING", "DELETED")]
    if not broken:
        return because(
            "environment-disabled",
            "every environment of the queue is DISABLED",
            rows,
            "state: ENABLED in the environment and `pulumi up`, or submit to another queue",
        )
    first = broken[0]
    told = f"{first.name} is {first.status}: {first.reason or 'Batch gives no reason'}"
    if any(word in first.reason for word in PROFILE_WORDS):
        return because(
            "instance-role", told, rows, "make the instance profile again, then disable and enable the environment"
        )
    if any(word in first.reason for word in SERVICE_ROLE_WORDS):
        return because("service-role", told, rows, "make the role again or repair it: `stacks unwedge` shows the steps")
    return because(
        "environment-invalid",
        told,
        rows,
        "repair what the reason names, then disable and enable the environment; `stacks unwedge` removes it",
    )


def service_role(facts: Facts) -> Explanation | None:
    """AWS's own verdict."""
    if not facts.reason.startswith(ROLE):
        return None
    return because(
        "service-role",
        "Batch lacks a permission in its service role",
        (f"AWS says: {facts.reason}",),
        "leave service_role out (the service-linked role has them all), or attach AWSBatchServiceRole to it",
    )


def behind(facts: Facts) -> Explanation | None:
    """The job is not the first of the queue."""
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
        f"first is {facts.called(head.id, head.name)}: {head.reason or 'no reason given'}",
    )
    share = str(facts.job.get("shareIdentifier") or "")
    if queue.shares is not None and any(one.share != share for one in ahead):
        return _shared(facts, queue, ahead, share, rows)
    return because(
        "behind-others",
        f"{len(ahead)} jobs are before it in the queue" if len(ahead) > 1 else "one job is before it in the queue",
        rows,
        f"`accel-jobs explain {facts.called(head.id)}` says what the first one waits for",
    )


def _shared(facts: Facts, queue: Queue, ahead: tuple[Ahead, ...], share: str, rows: tuple[str, ...]) -> Explanation:
    counts: dict[str, int] = {}
    for one in ahead:
        counts[one.share] = counts.get(one.share, 0) + 1
    before = ", ".join(f"{count} of {name or 'no share'}" for name, count in counts.items())
    policy = queue.shares or {}
    weights = ", ".join(
        f"{row['shareIdentifier']} {row.get('weightFactor', 1):g}" for row in policy.get("shareDistribution") or ()
    )
    shown = (f"before it: {before}; its own share is {share}", *([f"weights: {weights}"] if weights else []))
    return because(
        "fair-share",
        f"the queue's scheduling policy puts jobs of other shares before those of {share}",
        (*rows, *shown),
        "a share's turn comes as the others' usage grows or decays; a lower weightFactor gives it more",
    )


def share_reserve(facts: Facts) -> Explanation | None:
    """The policy keeps a part of max_vcpus for shares that have no jobs: (computeReservation / 100) ^ active shares."""
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
            continue  # it is full without any reserve
        usable = int(each.max_vcpus * left)
        rows.append(
            f"{each.name}: {each.desired_vcpus} of {usable} vCPUs in use, {smallest.name} needs {smallest.vcpus}"
        )
    if not rows:
        return None
    return because(
        "share-reserve",
        f"the queue's scheduling policy reserves {100 - 100 * left:.0f} % of max_vcpus for shares without jobs",
        (*rows, f"computeReservation {percent}, {active} active shares"),
        "wait for a job to end, lower computeReservation, or raise max_vcpus",
    )


def new(facts: Facts) -> Explanation | None:
    """RUNNABLE for a moment only."""
    if facts.status != "RUNNABLE" or facts.now - facts.since >= NEW_S:
        return None
    told = f"made, or tried last, {ago(facts.now, facts.since)}"
    return because(
        "new", "the job became ready a moment ago, and nothing was found against it", (told,), "wait a little"
    )


def starting(facts: Facts) -> Explanation | None:
    """STARTING: an instance is there, the container is not."""
    if facts.status != "STARTING":
        return None
    began = facts.pull_began()
    pulling = (f"its image has been pulled since {ago(facts.now, began)}",) if began else ()
    image = str(facts.container.get("image") or "?")
    return because(
        "starting",
        "the job has an instance; its image is pulled and its container made",
        (f"image {image}", *pulling),
        "wait; an image of many GiB takes minutes on each new instance",
    )


JOINS_WITHIN_S = 600
"""An instance boots and its agent registers in a few minutes; after this it is taken for one that does not."""
LAUNCHES_KEPT_S = 3600
"""Auto Scaling tries again at growing intervals: a failure from this long before the job still says how things are."""

# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html, as Auto Scaling's messages quote them
OVER_QUOTA = re.compile(r"VcpuLimitExceeded|MaxSpotInstanceCountExceeded|Max spot instance count exceeded")
STOCKOUT = re.compile(
    r"InsufficientInstanceCapacity|InsufficientHostCapacity|UnfulfillableCapacity|sufficient \S+ capacity"
    r"|no Spot capacity available"
)
# Without the first three an agent cannot register:
# https://docs.aws.amazon.com/AmazonECS/latest/developerguide/vpc-endpoints.html
ENDPOINTS = ("ecs", "ecs-agent", "ecs-telemetry")


def image_without_driver(facts: Facts, place: Environment) -> Explanation | None:
    """Instances of such an image register no GPU with ECS, so that a job that wants one is never placed."""
    if not facts.size.gpus or not place.images or any(own for _, own in place.images):
        return None
    gpu = [machine.name for machine in place.machines if ecs_gpus(machine)]
    for kind, _ in place.images:
        found = images.image(kind, gpu, imported=True)
        if not any(each.rule == images.NO_DRIVER.id for each in found):
            return None
    if place.own_image() != "":
        return None
    kinds = ", ".join(kind for kind, _ in place.images)
    return because(
        "image-without-driver",
        f"the instances of {place.name} start from {kinds}, which has no NVIDIA driver: they have no GPUs for jobs",
        (f"{place.name}: image type {kinds}, no image of its own", f"the job asks for {facts.size.gpus} GPUs"),
        "image_type: ECS_AL2023_NVIDIA in the environment, and `pulumi up`",
    )


def failed_launch(facts: Facts, place: Environment) -> Explanation | None:
    """The last thing that Auto Scaling tried for the environment failed."""
    activities = place.activities()
    if not activities or not activities[0].failed or activities[0].at < facts.since - LAUNCHES_KEPT_S:
        return None
    last = activities[0]
    evidence = (f"{place.name}, {ago(facts.now, last.at)}: {last.message}",)
    if OVER_QUOTA.search(last.message):
        more = place.over_quota() or ""
        return because(
            "quota",
            f"an EC2 quota of the account lets {place.name} start no more instances",
            (*evidence, *([more] if more else [])),
            "`stacks quota` shows limits and use, `stacks quota --request` writes the request for more",
        )
    if STOCKOUT.search(last.message):
        return _stockout(place.name, place.spot, evidence)
    return because(
        "launch-failed",
        f"EC2 refuses to launch an instance for {place.name}",
        evidence,
        "the message is EC2's own; what it names is in the environment's launch template or in the account",
    )


def _stockout(name: str, spot: bool, evidence: tuple[str, ...]) -> Explanation:
    kind = "Spot capacity" if spot else "on-demand capacity"
    also = "an on-demand environment behind it" if spot else "a capacity reservation"
    return because(
        "stockout",
        f"EC2 has no {kind} of the instance types of {name} just now",
        evidence,
        f"wait, or give the queue more instance types, more zones or {also}",
    )


def stockout_told(facts: Facts) -> Explanation | None:
    """AWS's own verdict, where no activity was seen."""
    if not facts.reason.startswith("CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"):
        return None
    names = ", ".join(each.name for each in facts.usable) or "the queue's environments"
    spot = bool(facts.usable) and all(each.spot for each in facts.usable)
    return _stockout(names, spot, (f"AWS says: {facts.reason}",))


def instance_role(facts: Facts, place: Environment) -> Explanation | None:
    """An instance runs, has not joined, and its role cannot let it."""
    waiting, role = _not_joined(place), place.role() if _not_joined(place) else None
    if not waiting or role is None:
        return None
    wrong = (
        "there is no such instance profile"
        if not role.exists
        else "the instance profile has no role"
        if not role.role
        else f"EC2 may not assume {role.role}: its trust policy does not name ec2.amazonaws.com"
        if not role.trusted
        else f"no policy of {role.role} allows ecs:RegisterContainerInstance"
        if not role.registers
        else ""
    )
    if not wrong:
        return None
    return because(
        "instance-role",
        f"instances of {place.name} start and cannot join its cluster: {wrong}",
        (f"{place.name}: instance profile {role.profile}", *_shown(facts, waiting)),
        "a role with AmazonEC2ContainerServiceforEC2Role in the profile; without instance_profile accel makes one",
    )


def no_egress(facts: Facts, place: Environment) -> Explanation | None:
    """An instance runs, has not joined, and nothing leads from its subnet to ECS."""
    waiting, network = _not_joined(place), place.network() if _not_joined(place) else None
    if not waiting or network is None:
        return None
    rows: list[str] = []
    for one in waiting:
        missing = [name for name in ENDPOINTS if name not in network.endpoints.get(one.subnet, frozenset())]
        route = network.routes.get(one.subnet)
        if not network.egress_allowed:
            rows.append(f"{place.name}: no security group of the instances allows outgoing traffic")
        elif one.subnet not in network.routes or not missing:
            return None
        elif not route:
            rows.append(f"{one.subnet}: no default route, and no VPC endpoint for {', '.join(missing)}")
        elif route.startswith("igw-") and not one.public_ip:
            rows.append(f"{one.subnet}: its default route is {route}, and {one.id} has no public address")
        else:
            return None
    return because(
        "no-egress",
        f"instances of {place.name} start and cannot reach ECS from their subnet",
        (*dict.fromkeys(rows), *_shown(facts, waiting)),
        "a NAT gateway, or public addresses where the route is an internet gateway, or VPC endpoints for ecs, "
        "ecs-agent, ecs-telemetry, ecr.api, ecr.dkr, logs and S3",
    )


def instance_starting(facts: Facts, place: Environment) -> Explanation | None:
    """An instance has been launched a moment ago."""
    young = [one for one in _not_joined(place) if facts.now - one.launched < JOINS_WITHIN_S]
    if not young:
        return None
    return because(
        "instance-starting",
        f"an instance of {place.name} is starting; it has not joined the cluster yet",
        _shown(facts, young),
        f"wait: this takes a few minutes; after {JOINS_WITHIN_S // 60} minutes something is wrong",
    )


def not_registered(facts: Facts, place: Environment) -> Explanation | None:
    """An instance has been running for long and has not joined."""
    waiting = _not_joined(place)
    if not waiting:
        return None
    return because(
        "not-registered",
        f"instances of {place.name} run and do not join its cluster; their role and network were not found wrong",
        (*_shown(facts, waiting), f"{place.name}: cluster {place.cluster}"),
        "its console output (`aws ec2 get-console-output`) and /var/log/ecs/ecs-agent.log say why: an AMI without the "
        "ECS agent, user data that fails, a full disk, a network ACL or a proxy",
    )


def full(facts: Facts, place: Environment) -> Explanation | None:
    """max_vcpus has room for no more instance, and those that run have work."""
    smallest, running = place.smallest(facts.size), place.instances()
    if smallest is None or not running or place.desired_vcpus + smallest.vcpus <= place.max_vcpus:
        return None
    return because(
        "environment-full",
        f"the jobs that run use all of {place.name}",
        (
            f"{place.name}: {place.desired_vcpus} of max_vcpus {place.max_vcpus} in use on {len(running)} instances; "
            f"{smallest.name}, the smallest that holds the job, needs {smallest.vcpus}",
        ),
        "wait for a job to end, or raise max_vcpus and run `pulumi up`",
    )


def quota_too_small(facts: Facts, place: Environment) -> Explanation | None:
    """The quotas let no instance start that holds the job, whatever else runs."""
    over = place.over_quota()
    if not over:
        return None
    return because(
        "quota",
        f"an EC2 quota of the account lets {place.name} start no instance that holds the job",
        (over,),
        "`stacks quota --request` writes the request for more",
    )


def _not_joined(place: Environment) -> list[Instance]:
    return [one for one in place.instances() or () if one.joined is False]


def _shown(facts: Facts, instances: list[Instance]) -> tuple[str, ...]:
    return tuple(
        f"{one.id} ({one.kind}) started {ago(facts.now, one.launched)} and is not in the ECS cluster"
        for one in instances[:3]
    )


_PLACE_CAUSES = (
    image_without_driver, failed_launch, instance_role, no_egress, instance_starting, not_registered, full,
    quota_too_small,
)  # fmt: skip
"""In the order in which they are looked for: what costs fewer calls and what is surer first."""


def blocked(facts: Facts) -> Explanation | None:
    """What keeps the environments that could hold the job from running it. What goes on is told first, then what AWS
    itself names, then the first environment's; the others' are evidence."""
    found: list[tuple[Environment, Explanation]] = []
    free: list[str] = []
    for place in facts.candidates:
        told = next((one for cause in _PLACE_CAUSES if (one := cause(facts, place))), None)
        if told and told.cause == "instance-starting":
            return told
        if told:
            found.append((place, told))
        else:
            free.append(f"{place.name}: nothing found that keeps the job from it")
    if not found:
        return None
    out = facts.reason.startswith("CAPACITY:")
    chosen = next((one for one in found if out and one[1].cause == "stockout"), found[0])
    rest = tuple(row for place, one in found if (place, one) != chosen for row in one.evidence)
    aws = (f"AWS says: {facts.reason}",) if facts.reason else ()
    first = chosen[1]
    return Explanation(first.cause, first.reason, (*first.evidence, *rest, *free, *aws), first.next_step)


CAUSES = (
    submitted, dependencies, starting, queue_invalid, no_environment, too_large, max_vcpus, behind, service_role,
    registers_less, share_reserve, blocked, stockout_told, max_vcpus_likely, new,
)  # fmt: skip
"""In the order in which they are looked for; the first that fits is told."""
STATES = ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING")
