"""Causes in the queue's environments: none can hold the job, or something keeps one from having an instance for it."""

import re

from accel.catalog import holding
from accel.catalog.memory import ecs_gpus
from accel.rules.aws import fit, images

from ...aws_batch.capacity import FIELDS
from ...base import Explanation
from .. import words
from ..engine import row
from .facts import AwsFacts, Environment, Instance

# https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable_misconfiguration.html
TOO_BIG = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"
OVER_MAX = "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE"


def too_large(facts: AwsFacts) -> Explanation | None:
    usable, size = facts.usable, facts.size
    verdict = facts.reason.startswith(TOO_BIG)
    if not usable or (any(each.unknown for each in usable) and not verdict):
        return None
    types = [name for each in usable for name in each.instance_types]
    aws = (f"AWS says: {facts.reason}",) if verdict else ()
    for finding in fit.fit(size.vcpus, size.memory_mib, size.gpus, types, facts.region):
        tight = finding.rule == fit.TIGHT.id
        if finding.severity != "reject" and not (tight and verdict):
            continue
        cause = {"gpus": "too-many-gpus", "vcpus": "too-many-vcpus"}.get(finding.field, "too-much-memory")
        text = finding.message if finding.rule == fit.NO_FIT.id else f"{_named(finding.field)} {finding.message}"
        reason = {
            "too-many-gpus": f"the job asks for {size.gpus} GPUs, and no instance type of its queue has so many",
            "too-many-vcpus": f"the job asks for {size.vcpus} vCPUs, and no instance type of its queue has so many",
            "too-much-memory": f"the job asks for {size.memory_mib} MiB, and no instance type of its queue that it "
            "could use registers so much with ECS",
        }[cause]
        return facts.explanation(cause, reason, (text, *aws, *_idle(facts)), finding.fix)
    if verdict:
        offered = tuple(f"{each.name}: {', '.join(each.instance_types)}" for each in usable)
        return facts.explanation(
            "too-large",
            f"AWS finds no instance type in the queue that holds {size}",
            (*aws, *offered, *_idle(facts)),
            "ask for less, or allow larger instance types",
        )
    return None


def max_vcpus(facts: AwsFacts) -> Explanation | None:
    """Name only what is sure: max_vcpus of every environment is below the job itself, or AWS says so."""
    usable, size = facts.usable, facts.size
    if not usable:
        return None
    if not (facts.reason.startswith(OVER_MAX) or all(each.max_vcpus < size.vcpus for each in usable)):
        return None
    return _over_max(facts)


def max_vcpus_likely(facts: AwsFacts) -> Explanation | None:
    """Check last: Batch may exceed max_vcpus by one instance, so this cause is named only if no other is."""
    usable = facts.usable
    if not usable or facts.candidates or not any(each.smallest(facts.size) for each in usable):
        return None
    return _over_max(facts)


def _over_max(facts: AwsFacts) -> Explanation:
    size, rows = facts.size, list[str]()
    for each in facts.usable:
        smallest = each.smallest(size)
        needs = f"; {smallest.name}, the smallest that holds the job, has {smallest.vcpus}" if smallest else ""
        rows.append(f"{each.name}: max_vcpus is {each.max_vcpus}{needs}")
    aws = (f"AWS says: {facts.reason}",) if facts.reason else ()
    return facts.explanation(
        "max-vcpus",
        f"max_vcpus has no room for an instance that holds {size}",
        (*rows, *aws, *_idle(facts)),
        "raise max_vcpus of an environment and run `pulumi up`, or ask for less",
    )


def _idle(facts: AwsFacts) -> tuple[str, ...]:
    """Return the environments that would hold the job and that Batch may not use."""
    return tuple(
        f"{each.name} has {held.name}, which holds it, and is {_state(each)}"
        for each in facts.environments() or ()
        if not each.usable and (held := each.smallest(facts.size))
    )


def _state(environment: Environment) -> str:
    return environment.state if environment.state == "DISABLED" else environment.status


def _named(field: str) -> str:
    return FIELDS.get(field, field)


def registers_less(facts: AwsFacts) -> Explanation | None:
    """Judge by the memory that instances of the only fitting types registered with ECS, which depends on the AMI."""
    size, rows = facts.size, list[str]()
    for each in facts.candidates:
        held = holding(each.machines, size.vcpus, size.memory_mib, size.gpus)
        if held.fits or each.unknown or not held.tight:
            return None
        tight = {machine.name for machine in held.tight}
        seen = [one for one in each.instances() or () if one.kind in tight and one.registered_mib]
        if not seen or any(one.registered_mib >= size.memory_mib for one in seen):
            return None
        rows += [f"{each.name}: {one.id}, a {one.kind}, registered {one.registered_mib} MiB" for one in seen]
    if not rows:
        return None
    return facts.explanation(
        "too-much-memory",
        f"the job asks for {size.memory_mib} MiB, and the instances that could hold it registered less with ECS",
        tuple(rows),
        "ask for no more memory_mib than is registered",
    )


JOINS_WITHIN_S = 600
"""Time for an instance to boot and its agent to register; after this it is assumed not to register."""
LAUNCHES_KEPT_S = 3600
"""Age, before the job, until which a failed launch still counts: Auto Scaling retries at growing intervals."""

# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html, as Auto Scaling's messages quote them
OVER_QUOTA = re.compile(
    r"(Vcpu|Instance|Volume)LimitExceeded|MaxSpotInstanceCountExceeded|Max spot instance count exceeded"
    r"|than your current (vCPU|instance) limit|exceeded your maximum .*limit"
)
STOCKOUT = re.compile(
    r"InsufficientInstanceCapacity|InsufficientHostCapacity|UnfulfillableCapacity|sufficient \S+ capacity"
    r"|no Spot capacity available"
)
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html
REFUSALS = (
    row("reservation", r"ReservationCapacityExceeded|InsufficientReservedInstanceCapacity|capacity reservation"),
    words.NO_ADDRESSES,
    row("not-offered", r"is not supported in your requested Availability Zone"),
    row(
        "instance-role",
        r"instance ?profile",
        "EC2 does not take the instance profile",
        "make the instance profile again, then disable and enable the environment",
    ),
    row("boot-image-missing", r"image id .*does not exist|InvalidAMIID"),
    row(
        "launch-failed",
        r"",
        "EC2 refuses to launch an instance",
        "the message is EC2's own; what it names is in the environment's launch template or in the account",
    ),
)
"""Words of EC2 about a launch that neither a quota nor a lack of capacity has kept from it."""
# Without the first three an agent cannot register:
# https://docs.aws.amazon.com/AmazonECS/latest/developerguide/vpc-endpoints.html
ENDPOINTS = ("ecs", "ecs-agent", "ecs-telemetry")


def image_without_driver(facts: AwsFacts, place: Environment) -> Explanation | None:
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
    return facts.explanation(
        "image-without-driver",
        f"the instances of {place.name} start from {kinds}, which has no NVIDIA driver: they have no GPUs for jobs",
        (f"{place.name}: image type {kinds}, no image of its own", f"the job asks for {facts.size.gpus} GPUs"),
        "image_type: ECS_AL2023_NVIDIA in the environment, and `pulumi up`",
    )


def failed_launch(facts: AwsFacts, place: Environment) -> Explanation | None:
    activities = place.activities()
    if not activities or not activities[0].failed or activities[0].at < facts.since - LAUNCHES_KEPT_S:
        return None
    last = activities[0]
    evidence = (f"{place.name}, {facts.ago(last.at)}: {last.message}",)
    if OVER_QUOTA.search(last.message):
        reason = f"an EC2 quota of the account lets {place.name} start no more instances"
        return facts.explanation("quota", reason, (*evidence, place.over_quota() or ""))
    refusal = next(each for each in REFUSALS if each.fits(last.message))
    if STOCKOUT.search(last.message) and refusal.cause != "reservation":
        return _no_capacity(facts, place.name, place.spot, evidence)
    return refusal.explanation(facts, evidence[0])


def _no_capacity(facts: AwsFacts, name: str, spot: bool, evidence: tuple[str, ...]) -> Explanation:
    kind = "Spot capacity" if spot else "on-demand capacity"
    also = "an on-demand environment behind it" if spot else "a capacity reservation"
    return facts.explanation(
        "no-capacity",
        f"EC2 has no {kind} of the instance types of {name} just now",
        evidence,
        f"wait, or give the queue more instance types, more zones or {also}",
    )


def no_capacity(facts: AwsFacts) -> Explanation | None:
    """Return AWS's own verdict, if no activity was seen."""
    if not facts.reason.startswith("CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"):
        return None
    names = ", ".join(each.name for each in facts.usable) or "the queue's environments"
    spot = bool(facts.usable) and all(each.spot for each in facts.usable)
    return _no_capacity(facts, names, spot, (f"AWS says: {facts.reason}",))


def instance_role(facts: AwsFacts, place: Environment) -> Explanation | None:
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
    return facts.explanation(
        "instance-role",
        f"instances of {place.name} start and cannot join its cluster: {wrong}",
        (f"{place.name}: instance profile {role.profile}", *_shown(facts, waiting)),
        "a role with AmazonEC2ContainerServiceforEC2Role in the profile; without instance_profile accel makes one",
    )


def no_egress(facts: AwsFacts, place: Environment) -> Explanation | None:
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
    return facts.explanation(
        "no-egress",
        f"instances of {place.name} start and cannot reach ECS from their subnet",
        (*dict.fromkeys(rows), *_shown(facts, waiting)),
        "a NAT gateway, or public addresses where the route is an internet gateway, or VPC endpoints for ecs, "
        "ecs-agent, ecs-telemetry, ecr.api, ecr.dkr, logs and S3",
    )


def machine_starting(facts: AwsFacts, place: Environment) -> Explanation | None:
    young = [one for one in _not_joined(place) if facts.now - one.launched < JOINS_WITHIN_S]
    if not young:
        return None
    return facts.explanation(
        "machine-starting",
        f"an instance of {place.name} is starting; it has not joined the cluster yet",
        _shown(facts, young),
        f"wait: this takes a few minutes; after {JOINS_WITHIN_S // 60} minutes something is wrong",
    )


def agent_silent(facts: AwsFacts, place: Environment) -> Explanation | None:
    waiting = _not_joined(place)
    if not waiting:
        return None
    return facts.explanation(
        "agent-silent",
        f"instances of {place.name} run and do not join its cluster; their role and network were not found wrong",
        (*_shown(facts, waiting), f"{place.name}: cluster {place.cluster}"),
        "its console output (`aws ec2 get-console-output`) and /var/log/ecs/ecs-agent.log say why: an AMI without the "
        "ECS agent, user data that fails, a full disk, a network ACL or a proxy",
    )


def full(facts: AwsFacts, place: Environment) -> Explanation | None:
    smallest, running = place.smallest(facts.size), place.instances()
    if smallest is None or not running or place.desired_vcpus + smallest.vcpus <= place.max_vcpus:
        return None
    return facts.explanation(
        "environment-full",
        f"the jobs that run use all of {place.name}",
        (
            f"{place.name}: {place.desired_vcpus} of max_vcpus {place.max_vcpus} in use on {len(running)} instances; "
            f"{smallest.name}, the smallest that holds the job, needs {smallest.vcpus}",
        ),
        "wait for a job to end, or raise max_vcpus and run `pulumi up`",
    )


def quota_too_small(facts: AwsFacts, place: Environment) -> Explanation | None:
    over = place.over_quota()
    if not over:
        return None
    return facts.explanation(
        "quota",
        f"an EC2 quota of the account lets {place.name} start no instance that holds the job",
        (over,),
    )


def _not_joined(place: Environment) -> list[Instance]:
    return [one for one in place.instances() or () if one.joined is False]


def _shown(facts: AwsFacts, instances: list[Instance]) -> tuple[str, ...]:
    return tuple(
        f"{one.id} ({one.kind}) started {facts.ago(one.launched)} and is not in the ECS cluster"
        for one in instances[:3]
    )


_PLACE_CAUSES = (
    image_without_driver, failed_launch, instance_role, no_egress, machine_starting, agent_silent, full,
    quota_too_small,
)  # fmt: skip
"""Checks in their order: those with fewer calls and surer results first."""


def blocked_environments(facts: AwsFacts) -> Explanation | None:
    """Prefer a launch in progress, then the cause that AWS names, then the first environment's; others are evidence."""
    found: list[tuple[Environment, Explanation]] = []
    free: list[str] = []
    for place in facts.candidates:
        reason = next((one for cause in _PLACE_CAUSES if (one := cause(facts, place))), None)
        if reason and reason.cause == "machine-starting":
            return reason
        if reason:
            found.append((place, reason))
        else:
            free.append(f"{place.name}: nothing found that keeps the job from it")
    if not found:
        return None
    out = facts.reason.startswith("CAPACITY:")
    chosen = next((one for one in found if out and one[1].cause == "no-capacity"), found[0])
    rest = tuple(row for place, one in found if (place, one) != chosen for row in one.evidence)
    aws = (f"AWS says: {facts.reason}",) if facts.reason else ()
    first = chosen[1]
    return Explanation(first.cause, first.reason, (*first.evidence, *rest, *free, *aws), first.next_step)
