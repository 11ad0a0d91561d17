"""Unused resources in a region of AWS: leftovers of Batch, resources that no environment uses, stuck environments. Only
resources with the tags of the given stacks are considered."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from accel.catalog.network_prices import GP3_IOPS, GP3_MIB_S, part_price
from accel.catalog.node_prices import find_price
from accel.clouds.aws.errors import asking
from accel.clouds.aws.responses import structure
from accel.contract.targets import AwsBatchTarget
from accel.cost import HOURS_A_MONTH
from accel.diagnostics.errors import CloudRefused, NotFound

from ..images.definitions import LATEST, revisions
from ..inventory.aws import Region, tags_of
from .orphans import NOT_HELD, Orphan, Stacks, Unread, search_parts

RUNNING = ("pending", "running", "stopping", "stopped")
"""States in which an instance, or its disk, exists. Source:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html"""


@dataclass(frozen=True)
class Search:
    """A region, and the stacks whose resources are searched there."""

    region: Region
    stacks: Stacks

    @property
    def name(self) -> str:
        return self.region.name

    @cached_property
    def environments(self) -> list[dict[str, Any]]:
        """Return every compute environment, whoever owns it: a template is in use wherever it is named."""
        return self.region.environments()

    @cached_property
    def instances(self) -> list[dict[str, Any]]:
        return self.region.instances(RUNNING, self._tags)

    def tagged(self, operation: str, key: str, *filters: Mapping[str, Any]) -> list[dict[str, Any]]:
        return self.region.tagged(operation, key, self._tags, filters)

    @property
    def _tags(self) -> dict[str, list[str]]:
        return {"accel:project": [self.stacks.project or ""], "accel:stack": sorted(self.stacks.names)}

    def call(self, operation: str, **given: Any) -> Callable[[], object]:
        """Return a deletion to run later. It raises NotFound for what is gone already."""

        def act() -> None:
            try:
                with asking(f"{operation} {', '.join(map(str, given.values()))}"):
                    getattr(self.region.ec2, operation)(**given)
            except CloudRefused as refused:
                if ".NotFound" in refused.message:
                    raise NotFound(refused.message) from None
                raise

        return act

    def lost(self, what: str, name: str, tags: Mapping[str, str], why: str, **more: Any) -> Orphan:
        who = f" ({tags['accel:owner']})" if "accel:owner" in tags else ""
        given: dict[str, Any] = {"zone": self.name, "state": "", "created": None, "usd_a_day": 0.0} | more
        return Orphan("aws", self.name, what, name, owner=f"stack {tags.get('accel:stack')}{who}", why=why, **given)


def look(search: Search, unread: Unread) -> Iterator[Orphan]:
    """Raise as accel.clouds.aws.errors does, except for refusals, which go to `unread`."""
    checks: dict[str, Callable[[Search], Iterator[Orphan]]] = {
        "environments": _environments,
        "queues": _queues,
        "instances": _instances,
        "volumes": _volumes,
        "addresses": _addresses,
        "interfaces": _interfaces,
        "launch templates": _templates,
        "job definitions": _revisions,
    }
    yield from search_parts(
        {f"{name} in {search.name}": partial(check, search) for name, check in checks.items()}, unread
    )


def _environments(search: Search) -> Iterator[Orphan]:
    """Yield stuck environments. Source:
    https://docs.aws.amazon.com/batch/latest/userguide/invalid_compute_environment.html"""
    for each in search.environments:
        tags, name, status = structure(each, "tags"), each["computeEnvironmentName"], each["status"]
        if not search.stacks.own(tags):
            continue
        why = None
        if status == "INVALID" or (status == "DELETING" and each.get("statusReason")):
            why = f"takes no job: {each.get('statusReason') or 'no reason given'}"
        elif status == "VALID" and not search.stacks.holds(name, each["computeEnvironmentArn"]):
            why = NOT_HELD
        if why:
            force = " --force" if status == "VALID" else ""
            usd, fix = _all_a_day(search, each), f"stacks unwedge {name}{force}"
            yield search.lost("environment", name, tags, why, state=status, usd_a_day=usd, fix=fix)


def _all_a_day(search: Search, environment: Mapping[str, Any]) -> float | None:
    """Return USD per day of an environment's instances; None where one has no known price."""
    whose = _whose(structure(structure(environment, "computeResources"), "tags"))
    own = [_instance_a_day(search, each) for each in search.instances if _whose(tags_of(each)) == whose]
    return None if None in own else sum(filter(None, own))


def _queues(search: Search) -> Iterator[Orphan]:
    for each in search.region.queues():
        tags, arn = structure(each, "tags"), each["jobQueueArn"]
        if not search.stacks.own(tags):
            continue
        invalid = each["status"] == "INVALID"
        if invalid or not search.stacks.holds(arn, each["jobQueueName"]):
            why = f"takes no job: {each.get('statusReason') or 'no reason given'}" if invalid else NOT_HELD
            fix = f"aws batch update-job-queue --state DISABLED, then delete-job-queue, of {each['jobQueueName']}"
            yield search.lost("queue", each["jobQueueName"], tags, why, state=each["status"], fix=fix)


def _instances(search: Search) -> Iterator[Orphan]:
    """Yield instances of a deleted environment: those of Batch carry its tags, the stack and its key as `Name`."""
    keys = {
        _whose(tags)
        for each in search.environments
        if each["status"] != "DELETED" and (tags := structure(structure(each, "computeResources"), "tags"))
    }
    for each in search.instances:
        tags, id_ = tags_of(each), each["InstanceId"]
        if _whose(tags) in keys or not search.stacks.own(tags) or id_ in (search.stacks.held or ()):
            continue
        yield search.lost(
            "instance",
            id_,
            tags,
            f"its environment {tags.get('Name') or '(not named)'} is gone",
            zone=structure(each, "Placement").get("AvailabilityZone") or search.name,
            state=each["State"]["Name"],
            created=each.get("LaunchTime"),
            usd_a_day=_instance_a_day(search, each),
            delete=search.call("terminate_instances", InstanceIds=[id_]),
        )


def _whose(tags: Mapping[str, str]) -> tuple[str | None, ...]:
    return tuple(tags.get(key) for key in ("accel:project", "accel:stack", "Name"))


def _instance_a_day(search: Search, instance: Mapping[str, Any]) -> float | None:
    if instance["State"]["Name"] == "stopped":
        return 0.0
    return machine_a_day(search.name, instance["InstanceType"], instance.get("InstanceLifecycle") == "spot")


def machine_a_day(region: str, machine: str, spot: bool) -> float | None:
    """Return USD per day; None where the catalogue has no price."""
    price = find_price("aws", region, machine)
    hour = price.spot if spot else price.on_demand
    return None if hour is None else hour * 24


def _volumes(search: Search) -> Iterator[Orphan]:
    unattached = [{"Name": "status", "Values": ["available"]}]
    for each in search.tagged("describe_volumes", "Volumes", *unattached):
        tags, id_ = tags_of(each), each["VolumeId"]
        if each["State"] == "available" and search.stacks.own(tags) and not search.stacks.holds(id_):
            yield search.lost(
                "volume",
                id_,
                tags,
                f"{each['Size']} GiB that no instance has",
                zone=each["AvailabilityZone"],
                state=each["State"],
                created=each.get("CreateTime"),
                usd_a_day=volume_a_day(search.name, each),
                delete=search.call("delete_volume", VolumeId=id_),
            )


def volume_a_day(region: str, volume: Mapping[str, Any]) -> float | None:
    """Return USD per day of a gp3 volume; None for another kind, or a region without figures."""
    amounts = {
        "gp3-gib": float(volume["Size"]),
        "gp3-iops": max(0.0, float(volume.get("Iops") or 0) - GP3_IOPS),
        "gp3-mib-s": max(0.0, float(volume.get("Throughput") or 0) - GP3_MIB_S),
    }
    prices = {item: part_price(region, item) for item, amount in amounts.items() if amount}
    if volume.get("VolumeType") != "gp3" or None in prices.values():
        return None
    return sum(amounts[item] * price.usd for item, price in prices.items() if price) * 24 / HOURS_A_MONTH


def _addresses(search: Search) -> Iterator[Orphan]:
    price = part_price(search.name, "public-ipv4")
    for each in search.tagged("describe_addresses", "Addresses"):
        tags, id_ = tags_of(each), each["AllocationId"]
        if not each.get("AssociationId") and search.stacks.own(tags) and not search.stacks.holds(id_):
            yield search.lost(
                "address",
                id_,
                tags,
                f"{each['PublicIp']} is of nothing",
                state="unassociated",
                usd_a_day=price.usd * 24 if price else None,
                delete=search.call("release_address", AllocationId=id_),
            )


def _interfaces(search: Search) -> Iterator[Orphan]:
    unattached = [{"Name": "status", "Values": ["available"]}]
    for each in search.tagged("describe_network_interfaces", "NetworkInterfaces", *unattached):
        tags, id_ = tags_of(each, "TagSet"), each["NetworkInterfaceId"]
        if not each.get("RequesterManaged") and search.stacks.own(tags) and not search.stacks.holds(id_):
            delete = search.call("delete_network_interface", NetworkInterfaceId=id_)
            zone = each.get("AvailabilityZone") or search.name
            why = "no instance has it, and its subnet cannot be deleted"
            yield search.lost("interface", id_, tags, why, zone=zone, state=each["Status"], delete=delete)


def _templates(search: Search) -> Iterator[Orphan]:
    used = {
        structure(structure(each, "computeResources"), "launchTemplate").get("launchTemplateId")
        for each in search.environments
    }
    for each in search.tagged("describe_launch_templates", "LaunchTemplates"):
        tags, id_ = tags_of(each), each["LaunchTemplateId"]
        if id_ not in used and search.stacks.own(tags) and not search.stacks.holds(id_):
            delete = search.call("delete_launch_template", LaunchTemplateId=id_)
            why, created = "no environment starts instances from it", each.get("CreateTime")
            yield search.lost("launch template", id_, tags, why, created=_moment(created), delete=delete)


def _revisions(search: Search) -> Iterator[Orphan]:
    """Yield revisions of the definitions of the stacks' targets; jobs that have not ended keep theirs."""
    targets = [
        AwsBatchTarget.model_validate(each, extra="ignore")
        for each in search.stacks.targets
        if (each.get("kind"), each.get("region")) == ("aws-batch", search.name)
    ]
    old = Counter(each.name for each in revisions(targets, LATEST, unused=False) if each.goes)
    for name, count in sorted(old.items()):
        why = f"{count} revisions before the latest {LATEST}, and no job that has not ended names them"
        tags = {"accel:stack": ", ".join(sorted(search.stacks.names))}
        yield search.lost("revisions", name, tags, why, state="ACTIVE", fix="stacks images prune-definitions --yes")


def _moment(value: object) -> datetime | None:
    return value if isinstance(value, datetime) else None
