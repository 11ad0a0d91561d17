"""A managed AWS Batch compute environment of GPU instances."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from accel.catalog import Machine, nearest
from accel.catalog.memory import ecs_gpus
from accel.diagnostics.findings import Finding, did_you_mean
from accel.rules.aws import images, names, roles, types
from accel.rules.jobs import placeholders
from accel.rules.table import rule

KIND = rule("aws.environment.kind")
CREATED_DISABLED = rule("aws.environment.created-disabled")
BOUNDS = rule("aws.capacity.bounds")
MIN_BILLS = rule("aws.capacity.min-bills")
MAX_TOO_SMALL = rule("aws.capacity.max-too-small")
STRATEGY_UNKNOWN = rule("aws.strategy.unknown")
SPOT_ON_EC2 = rule("aws.strategy.spot-on-ec2")
ORDERED_ON_SPOT = rule("aws.strategy.ordered-on-spot")
PROGRESSIVE_ON_SPOT = rule("aws.strategy.progressive-on-spot")
CAPACITY_OPTIMIZED = rule("aws.strategy.capacity-optimized")
BEST_FIT = rule("aws.strategy.best-fit")
ORDER_LOST = rule("aws.strategy.order-lost")
UPDATE_WAIT = rule("aws.environment.update-wait")
MOVING_VERSION = rule("aws.template.moving-version")
BID_ON_EC2 = rule("aws.spot.bid-on-ec2")
BID_RANGE = rule("aws.spot.bid-range")
BID_SET = rule("aws.spot.bid-set")

KINDS = ("EC2", "SPOT")
EC2_STRATEGIES = ("BEST_FIT_PROGRESSIVE", "BEST_FIT_PROGRESSIVE_ORDERED", "BEST_FIT")
SPOT_STRATEGIES = (
    "SPOT_PRICE_CAPACITY_OPTIMIZED", "SPOT_CAPACITY_OPTIMIZED", "SPOT_CAPACITY_OPTIMIZED_PRIORITIZED",
)  # fmt: skip
ORDERED_STRATEGIES = ("BEST_FIT_PROGRESSIVE_ORDERED", "SPOT_CAPACITY_OPTIMIZED_PRIORITIZED")
PROVIDER_WAIT_MIN = 20
"""Default of Terraform's SDK: aws_batch_compute_environment declares no timeouts, so that Pulumi's customTimeouts are
ignored. Its `instance_type` is a set, which has no order. Source:
https://github.com/hashicorp/terraform-provider-aws/blob/main/internal/service/batch/compute_environment.go"""
LAUNCH_MIN = 5
"""Our own allowance for an update, in minutes, in addition to the time of its jobs. No page documents it."""
UPDATE_MIN = PROVIDER_WAIT_MIN - LAUNCH_MIN
RECOMMENDED = {"EC2": "BEST_FIT_PROGRESSIVE", "SPOT": "SPOT_PRICE_CAPACITY_OPTIMIZED"}


@dataclass(frozen=True, kw_only=True)
class EnvironmentValues:
    """The values of an environment known before any call, without ids or ARNs that another resource will provide.
    `imported`: the environment already exists."""

    kind: str
    instance_types: Sequence[str]
    max_vcpus: int
    min_vcpus: int = 0
    allocation_strategy: str | None = None
    name: str | None = None
    state: str = "ENABLED"
    image_type: str = "ECS_AL2023_NVIDIA"
    image_id_override: str | None = None
    subnet_ids: Sequence[str] = ()
    security_group_ids: Sequence[str] = ()
    instance_profile: str | None = None
    service_role: str | None = None
    spot_fleet_role: str | None = None
    bid_percentage: int | None = None
    update_timeout_min: int | None = None
    imported: bool = False
    allowed_accounts: Collection[str] = ()


def environment(given: EnvironmentValues) -> list[Finding]:
    kind, instance_types, name = given.kind, given.instance_types, given.name
    recommended = RECOMMENDED.get(kind, "BEST_FIT_PROGRESSIVE")
    strategy_now = recommended if given.allocation_strategy is None else given.allocation_strategy
    found = names.environment(name) if name is not None else []
    found += environment_kind(kind) + strategy(kind, strategy_now) + order(strategy_now, instance_types, kind)
    found += update_wait(given.update_timeout_min)
    found += capacity(given.min_vcpus, given.max_vcpus, instance_types, usable_old=bool(given.image_id_override))
    found += initial_state(given.state, imported=given.imported)
    found += types.instance_types(instance_types)
    found += images.image(
        given.image_type, instance_types, image_id_override=given.image_id_override, imported=given.imported
    )
    arns = {
        "instance_profile": given.instance_profile,
        "service_role": given.service_role,
        "spot_fleet_role": given.spot_fleet_role,
    }
    found += roles.roles(kind=kind, allocation_strategy=strategy_now, **arns)
    found += bid(kind, given.bid_percentage)
    found += placeholders.resource_ids("subnet_ids", given.subnet_ids, "subnet")
    found += placeholders.resource_ids("security_group_ids", given.security_group_ids, "sg")
    if given.image_id_override:
        found += placeholders.resource_id("image_id_override", given.image_id_override, "ami")
    for field, arn in arns.items():
        found += placeholders.account(field, arn, allowed=given.allowed_accounts) if arn else []
    return found


def environment_kind(kind: str) -> list[Finding]:
    if kind in KINDS:
        return []
    message = f'is "{kind}"' + (", which has no GPUs" if kind.startswith("FARGATE") else "")
    return [KIND.finding("kind", message, did_you_mean(nearest(kind, KINDS, 1), KINDS))]


def initial_state(state: str, *, imported: bool = False) -> list[Finding]:
    if state != "DISABLED" or imported:
        return []
    message = "is DISABLED, which AWS refuses for an environment that does not exist yet"
    return [CREATED_DISABLED.finding("state", message, "create it ENABLED, disable it afterwards")]


def strategy(kind: str, allocation_strategy: str) -> list[Finding]:
    field, has = "allocation_strategy", f"is {allocation_strategy}"
    recommended = RECOMMENDED.get(kind, "BEST_FIT_PROGRESSIVE")
    if allocation_strategy not in EC2_STRATEGIES + SPOT_STRATEGIES:
        strategies = EC2_STRATEGIES + (SPOT_STRATEGIES if kind == "SPOT" else ())
        near = nearest(allocation_strategy, strategies, 1)
        return [STRATEGY_UNKNOWN.finding(field, f'is "{allocation_strategy}"', did_you_mean(near, strategies))]
    if allocation_strategy in SPOT_STRATEGIES and kind == "EC2":
        message = f"{has}, which is for SPOT environments only; this one is EC2"
        return [SPOT_ON_EC2.finding(field, message, f"use {recommended}, or kind SPOT")]
    if allocation_strategy == "BEST_FIT_PROGRESSIVE_ORDERED" and kind == "SPOT":
        message = f"{has}, which is for EC2 environments only; this one is SPOT"
        return [ORDERED_ON_SPOT.finding(field, message, f"use {recommended}")]
    if allocation_strategy == "BEST_FIT_PROGRESSIVE" and kind == "SPOT":
        message = f"{has}, which does not look at the risk of interruption"
        return [PROGRESSIVE_ON_SPOT.finding(field, message, f"use {recommended}")]
    if allocation_strategy == "SPOT_CAPACITY_OPTIMIZED":
        return [CAPACITY_OPTIMIZED.finding(field, f"{has}, which looks at no price", f"use {recommended}")]
    if allocation_strategy == "BEST_FIT":
        message = f"{has}: such an environment cannot be updated in place, and waits while its one type is sold out"
        return [BEST_FIT.finding(field, message, f"use {recommended}")]
    return []


def order(allocation_strategy: str, instance_types: Sequence[str], kind: str) -> list[Finding]:
    if allocation_strategy not in ORDERED_STRATEGIES or len(set(instance_types)) < 2:
        return []
    message = f"is {allocation_strategy}, and the order of instance_types does not reach AWS: they are sent as a set"
    recommended = RECOMMENDED.get(kind, "BEST_FIT_PROGRESSIVE")
    fix = f"use {recommended}, or an environment for each type: a queue tries them in order"
    return [ORDER_LOST.finding("allocation_strategy", message, fix)]


def update_wait(update_timeout_min: int | None) -> list[Finding]:
    """Check against the provider's timeout. None: the update does not wait for jobs."""
    if update_timeout_min is None or update_timeout_min <= UPDATE_MIN:
        return []
    message = (
        f"is {update_timeout_min}; the provider waits {PROVIDER_WAIT_MIN} minutes for an update, so `pulumi up` fails "
        "where jobs hold it up longer, while AWS goes on with it"
    )
    fix = f"write {UPDATE_MIN} or less, or run `pulumi up` again once the environment is VALID"
    return [UPDATE_WAIT.finding("update_timeout_min", message, fix)]


def capacity(
    min_vcpus: int, max_vcpus: int, instance_types: Sequence[str], *, usable_old: bool = False
) -> list[Finding]:
    """Check the vCPU limits. `usable_old`: p3 and g3 have an image."""
    found: list[Finding] = []
    if max_vcpus < 1:
        found.append(BOUNDS.finding("max_vcpus", f"must be at least 1, is {max_vcpus}", "write at least 1"))
    if min_vcpus < 0:
        found.append(BOUNDS.finding("min_vcpus", f"must be at least 0, is {min_vcpus}", "write 0"))
    if min_vcpus > max_vcpus >= 1:
        message = f"is {min_vcpus}, above max_vcpus {max_vcpus}"
        found.append(BOUNDS.finding("min_vcpus", message, f"write at most {max_vcpus}"))
    if min_vcpus > 0:
        message = f"is {min_vcpus}: it runs and bills without jobs, even while the environment is DISABLED"
        found.append(MIN_BILLS.finding("min_vcpus", message, "write 0 to scale to nothing"))
    usable = _usable(instance_types, usable_old)
    if not usable or max_vcpus < 1:
        return found
    smallest = min(usable, key=lambda machine: machine.vcpus)
    if max_vcpus < smallest.vcpus:
        message = f"is {max_vcpus}; the smallest usable instance, {smallest.name}, has {smallest.vcpus} vCPUs"
        fix = f"write {smallest.vcpus} for one of them, {2 * smallest.vcpus} for two"
        found.append(MAX_TOO_SMALL.finding("max_vcpus", message, fix))
    return found


def instances_within(max_vcpus: int, instance_types: Sequence[str]) -> dict[str, int]:
    """Return instances by type, as {"p4d.24xlarge": 2, "p5.48xlarge": 1} for 256. AWS may exceed it by one."""
    return {machine.name: max_vcpus // machine.vcpus for machine in _usable(instance_types, usable_old=True)}


def _usable(instance_types: Sequence[str], usable_old: bool) -> list[Machine]:
    machines = [machine for _, machine in types.find_machines(instance_types) if ecs_gpus(machine)]
    return [machine for machine in machines if usable_old or machine.family not in types.NEEDS_OWN_AMI]


def bid(kind: str, bid_percentage: int | None) -> list[Finding]:
    field = "bid_percentage"
    if bid_percentage is None:
        return []
    if kind == "EC2":
        return [
            BID_ON_EC2.finding(field, f"is {bid_percentage} in an EC2 environment", "leave it out, or use kind SPOT")
        ]
    if not 1 <= bid_percentage <= 100:
        return [BID_RANGE.finding(field, f"must be 1 to 100, is {bid_percentage}", "leave it out: the default is 100")]
    message = f"is {bid_percentage}; a job waits while Spot costs more than {bid_percentage} % of on-demand"
    return [BID_SET.finding(field, message, "leave it out: you pay the market price, never above on-demand")]


def launch_template(name: str, version: str | None, field: str = "launch_template") -> list[Finding]:
    meant = version or "$Default"
    if meant not in ("$Latest", "$Default"):
        return []
    message = f"is {name} at {meant}, which AWS reads when it updates the instances and not when the template changes"
    return [MOVING_VERSION.finding(field, message, "name a version by its number")]
