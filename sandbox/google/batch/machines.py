"""VMs of a Batch job: their type and zone, how many tasks each has room for, and how many can be had."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from accel.catalog.gpu_attachments import n1

from .. import PROJECT, PROJECT_NUMBER
from ..capacity import metrics
from ..compute.api import zones
from ..compute.instance_body import accelerator_types, accelerators, check_machine_type, machine_of
from ..errors import ApiError
from ..world import Json, World

SPOT = ("SPOT", "PREEMPTIBLE")
_MOST_ON_ONE = 20  # https://docs.cloud.google.com/batch/docs/create-run-job#job-resources
_CPU_GIB = 4  # per vCPU of e2-standard, which the sandbox chooses where the job names no machine


@dataclass(slots=True)
class Vm:
    name: str
    zone: str
    id: str
    slot: int
    tasks: set[int] = field(default_factory=set[int])


def locations(policy: Json, region: str, invalid: Callable[[str, str], ApiError]) -> list[str]:
    """Return allowedLocations, or the whole region without any. Raises ApiError. Wording for several regions:
    https://github.com/broadinstitute/cromwell/issues/7708; that they have to be the job's: the field's description."""
    at = "job.allocation_policy"
    asked: list[str] = policy.get("location", {}).get("allowedLocations", []) or [f"regions/{region}"]
    found: set[str] = set()
    for each in asked:
        kind, _, name = each.partition("/")
        if kind not in ("regions", "zones") or not name:
            raise invalid(f"{at}.location.allowed_locations", f"{each!r} is neither a region nor a zone.")
        where = name if kind == "regions" else zones().get(name, name.rpartition("-")[0])
        if kind == "zones" and name not in zones():
            raise invalid(f"{at}.location.allowed_locations", f"{each!r} does not exist.")
        found.add(where)
    if len(found) > 1:
        raise invalid(at, f"all specified locations end up in more than one regions [{' '.join(sorted(found))}].")
    if found != {region}:
        raise invalid(at, f"specified locations are in {found.pop()}, the job is in {region}.")
    return asked


class Shape:
    """Shape of a job's VMs, by its allocation policy and its tasks' resources."""

    def __init__(self, job: Json, region: str, world: World) -> None:
        policy: Json = job["allocationPolicy"]
        group = job["taskGroups"][0]
        self.region, self.group = region, group
        asked = (policy.get("instances") or [{}])[0]
        machine = asked.get("policy") or _of_template(world, asked.get("instanceTemplate", ""))
        resource = group["taskSpec"]["computeResource"]
        self.cpus, self.memory_mib = int(resource["cpuMilli"]) / 1000, int(resource["memoryMib"])
        self.named = bool(machine.get("machineType"))
        self.machine_type: str = machine.get("machineType") or self._chosen()
        self.model: str = machine.get("provisioningModel") or "STANDARD"
        self.gpus = [
            {"acceleratorType": each["type"], "acceleratorCount": int(each.get("count", 1))}
            for each in machine.get("accelerators", [])
        ]
        self.disk: Json = machine.get("bootDisk", {})
        places = [each.partition("/")[2] for each in policy["location"]["allowedLocations"]]
        known = zones()
        self.zones = sorted({zone for zone, of in known.items() if zone in places or of in places})

    def _chosen(self) -> str:
        """Return the machine type that the sandbox chooses, from memory: Batch does not document its choice."""
        need = max(self.cpus, self.memory_mib / 1024 / _CPU_GIB)
        return f"e2-standard-{next((size for size in (2, 4, 8, 16) if size >= need), 32)}"

    @cached_property
    def size(self) -> tuple[int, int] | None:
        """vCPUs and MiB of a known machine type."""
        if size := n1(self.machine_type):
            return size.vcpus, int(size.memory_gib * 1024)
        found = machine_of(self.machine_type)
        return (found.vcpus, found.memory_mib) if found else None

    @property
    def fits(self) -> bool:
        return self.size is None or (self.cpus <= self.size[0] and self.memory_mib <= self.size[1])

    @property
    def pack(self) -> int:
        """Tasks of a VM at a time. Source: https://docs.cloud.google.com/batch/docs/create-run-job#job-resources"""
        if given := self.group.get("taskCountPerNode"):
            return int(given)
        last = re.search(r"-(\d+)$", self.machine_type)
        vcpus = self.size[0] if self.size else int(last[1]) if last else 2
        return max(1, min(_MOST_ON_ONE, int(self.group["parallelism"]), int(vcpus // self.cpus)))

    @property
    def spot(self) -> bool:
        return self.model in SPOT

    def as_json(self) -> Json:
        disk = {"type": self.disk.get("type", "pd-balanced"), "sizeGb": self.disk.get("sizeGb", "30")}
        pack = {"taskPack": str(self.pack), "bootDisk": disk}
        return {"machineType": self.machine_type, "provisioningModel": self.model, **pack}

    def nowhere(self) -> str:
        """Return why no allowed zone can have such a VM, or "" if one can. The service accepts such a job, which fails
        when it is scheduled: https://github.com/nextflow-io/nextflow/issues/5550, the source of the wording."""
        said = [why for zone in self.zones if (why := self._not_in(zone))]
        if len(said) < len(self.zones):
            return ""
        head = "Invalid value for field 'operation': ''. No zone supports all of the provided instance templates. The"
        return f"{head} following errors detail the failure. {' '.join(said)}"

    def _not_in(self, zone: str) -> str:
        try:
            check_machine_type(self.machine_type, zone, "resource")
            for each in self.gpus:
                if each["acceleratorType"] not in accelerator_types(zone):
                    kind = f"acceleratorTypes/{each['acceleratorType']}"
                    return f"The resource 'projects/{PROJECT_NUMBER}/zones/{zone}/{kind}' was not found"
            accelerators(self.gpus, self.machine_type, zone, PROJECT)
        except ApiError as refused:
            return str(refused)
        return ""

    @cached_property
    def possible(self) -> list[str]:
        return [zone for zone in self.zones if not self._not_in(zone)]

    def in_stock(self, world: World) -> list[str]:
        out = world.stockouts
        kind = self.machine_type
        return [zone for zone in self.possible if not {kind, f"{zone}/{kind}"} & out]

    def room(self, world: World, held: Iterable[tuple["Shape", int]]) -> tuple[float, str]:
        """Return how many more VMs World.quota allows, and Compute Engine's words for the first quota that is full.
        `held`: the VMs of all jobs."""
        limits = {at: world.quota.get(f"compute/{at[0]}/{at[1]}") for at in self.needs}
        if all(limit is None for limit in limits.values()):
            return float("inf"), ""
        used: dict[tuple[str, str], int] = {}
        for other, count in held:
            for at, each in other.needs.items():
                used[at] = used.get(at, 0) + each * count
        for item in world.below("compute", f"projects/{PROJECT}/zones/-/instances"):
            if item["status"] != "TERMINATED":
                for at, (each, _) in metrics(item, zones().get(item["zone"].rpartition("/")[2], "")).items():
                    used[at] = used.get(at, 0) + each
        most, said = float("inf"), ""
        for (place, metric), each in self.needs.items():
            limit = limits[place, metric]
            if limit is not None and (left := (limit - used.get((place, metric), 0)) // each) < most:
                where = "globally" if place == "global" else f"in region {place}"
                most, said = left, f"Quota '{metric}' exceeded.  Limit: {float(limit)} {where}"
        return most, said

    @cached_property
    def needs(self) -> dict[tuple[str, str], int]:
        """Quotas that a VM counts towards, by place and metric."""
        machine = machine_of(self.machine_type)
        gpus: list[Any] = self.gpus
        if not gpus and machine and machine.accelerator:
            gpus = [{"acceleratorType": machine.accelerator, "acceleratorCount": machine.whole_accelerators}]
        item: Json = {"scheduling": {"preemptible": self.spot}, "guestAccelerators": gpus}
        return {at: count for at, (count, _) in metrics(item, self.region).items()}


def _of_template(world: World, given: str) -> Json:
    """Return the machine of an instance template, in the terms of a policy."""
    name = given.rpartition("/")[2]
    found = world.items.get(f"compute/projects/{PROJECT}/global/instanceTemplates/{name}", {})
    made: Json = found.get("properties", {})
    if not made:
        return {}
    gpus = [
        {"type": each["acceleratorType"].rpartition("/")[2], "count": each.get("acceleratorCount", 1)}
        for each in made.get("guestAccelerators", [])
    ]
    model = made.get("scheduling", {}).get("provisioningModel", "STANDARD")
    return {"machineType": made.get("machineType", ""), "provisioningModel": model, "accelerators": gpus}
