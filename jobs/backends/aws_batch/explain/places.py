"""What keeps one environment from having an instance for the job that is at the front of the queue."""

import re

from accel.catalog.memory import ecs_gpus
from accel.rules.aws import images

from ...base import Explanation
from .facts import Environment, Facts, Instance
from .table import because
from .times import ago

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


def starting(facts: Facts, place: Environment) -> Explanation | None:
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


CAUSES = (
    image_without_driver, failed_launch, instance_role, no_egress, starting, not_registered, full, quota_too_small,
)  # fmt: skip
"""In the order in which they are looked for: what costs fewer calls and what is surer first."""


def blocked(facts: Facts) -> Explanation | None:
    """What keeps the environments that could hold the job from running it. What goes on is told first, then what AWS
    itself names, then the first environment's; the others' are evidence."""
    found: list[tuple[Environment, Explanation]] = []
    free: list[str] = []
    for place in facts.candidates:
        told = next((one for cause in CAUSES if (one := cause(facts, place))), None)
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
