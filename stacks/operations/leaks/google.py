"""Unused resources in a Google Cloud project that cost money or quota. Those of jobs: machines of ended jobs, requests
that cannot succeed, disks without a machine. Those of stacks: resources that their state lacks, unused addresses, pools
in error, idle machines that Vertex AI keeps."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from accel.catalog import UnknownName
from accel.catalog.node_prices import find_price, with_gpus
from accel.clouds.google.api import Google, object_path
from accel.clouds.google.rest import path_segment
from accel.contract import machine_labels
from accel.diagnostics.errors import NotFound
from accel.json_values import entries, object_at
from accel.rules.gcp.labels import to_gcp

from ..inventory.google import GoogleResource, labels_of, list_everywhere, lists_of_machines, parse_google_time
from .orphans import NOT_HELD, Orphan, Stacks, Unread, search_parts

_DEAD_REQUESTS = {"SUSPENDED": "was preempted and holds its quota", "FAILED": "failed and holds its quota"}
"""States of a queued resource that never end by themselves. Source:
https://docs.cloud.google.com/tpu/docs/queued-resources#queued-resource-states"""

_DEAD_NODES = {"PREEMPTED", "TERMINATED"}

MADE_BY_PULUMI = "goog-pulumi-provisioned"
"""Label that the provider sets. Source: https://github.com/pulumi/pulumi-gcp, the guide to version 8."""
_GKE = "goog-gke-"
"""Prefix of labels on what GKE creates for its nodes, which has the labels of the cluster too. Source:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/creating-managing-labels"""
_LIVE = ("JOB_STATE_QUEUED", "JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_CANCELLING", "JOB_STATE_UPDATING")
"""Source: https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/JobState"""


@dataclass(frozen=True)
class Leak:
    """A resource, and why it is unused."""

    found: GoogleResource
    why: str
    dollars_a_day: float | None


def of_project(
    google: Google, project: str, stacks: Stacks, regions: frozenset[str], now: datetime, unread: Unread
) -> Iterator[Orphan]:
    """Yield all unused resources of a project; machines of Vertex AI in `regions`. Without a named stack, include those
    of others, but do not delete them. Raise what google_api raises, except for refusals, which go to `unread`."""
    ours = _spelt(stacks)
    lists = {f"{name} of {project}": each for name, each in lists_of_machines(google, project).items()}
    found = list(search_parts(lists, unread))

    def of_jobs() -> Iterator[Orphan]:
        for leak in leaks(iter(found), _ended_by_record(google), now):
            lost = _lost_resource(google, project, leak.found, leak.why, leak.dollars_a_day)
            settled = replace(lost, settled=leak.found.used)
            yield settled if leak.found.of_jobs else replace(settled, delete=None, fix=_fix(leak.found, ours))

    orphans = [each for each in found if orphan(each, ours)]
    parts: dict[str, Callable[[], Iterable[Orphan]]] = {
        "records of jobs": of_jobs,
        "resources": lambda: [_lost_resource(google, project, each, NOT_HELD, dollars_a_day(each)) for each in orphans],
        "addresses": lambda: _addresses(google, project, ours),
        "node pools": lambda: _failed_pools(google, project, ours),
        **{
            f"persistent resources in {at}": lambda at=at: _idle_machines(google, project, at, ours)
            for at in sorted(regions)
        },
    }
    yield from search_parts({f"{name} of {project}": part for name, part in parts.items()}, unread)


def orphan(each: GoogleResource, stacks: Stacks) -> bool:
    """Return whether Pulumi created it for one of the stacks, and the state no longer has it."""
    if each.of_jobs or each.by_group or each.labels.get(MADE_BY_PULUMI) != "true" or not stacks.own(each.labels, "-"):
        return False
    if any(name.startswith(_GKE) for name in each.labels) or (each.kind == "disk" and each.used):
        return False
    return not stacks.holds(each.path.removeprefix("v2/"))


def leaks(found: Iterator[GoogleResource], ended: Callable[[str, str], str | None], now: datetime) -> list[Leak]:
    """Return the unused ones, the most expensive first. `ended`: how a job, by bucket and name, has ended, or None."""
    made = [Leak(each, why, dollars_a_day(each)) for each in found if (why := reason(each, ended, now))]
    return sorted(made, key=lambda leak: -(leak.dollars_a_day or 0))


def reason(each: GoogleResource, ended: Callable[[str, str], str | None], now: datetime) -> str | None:
    """Return why it is unused; None where it may be in use."""
    if each.kind == "queued resource" and each.state in _DEAD_REQUESTS:
        return _DEAD_REQUESTS[each.state]
    if not each.of_jobs:
        return None
    if each.kind == "tpu" and each.state in _DEAD_NODES:
        return f"is {each.state}"
    if each.job and (how := ended(*each.job)):
        return f"its {'queue' if each.labels.get(machine_labels.MAKER) == machine_labels.QUEUES else 'job'} {how}"
    expires = each.labels.get(machine_labels.EXPIRES, "")
    if expires.isdigit() and int(expires) < now.timestamp():
        return f"was needed until {datetime.fromtimestamp(int(expires), UTC):%Y-%m-%d %H:%M} UTC at the latest"
    return None if each.used else "no machine has it"


def dollars_a_day(each: GoogleResource) -> float | None:
    """Return None where no price is known, 0 if it is not billed."""
    if each.machine is None:
        return None if each.kind == "disk" else 0.0
    if each.state in _DEAD_REQUESTS or each.state in _DEAD_NODES | {"STOPPED", "SUSPENDED"}:
        return 0.0
    region = each.zone.rpartition("-")[0]
    try:
        found = with_gpus(region, each.machine, *each.gpus) if each.gpus else find_price("gcp", region, each.machine)
    except (UnknownName, LookupError):
        return None
    hour = found.spot if each.spot else found.on_demand
    return None if hour is None else hour * 24


def _ended_by_record(google: Google) -> Callable[[str, str], str | None]:
    """Return a function for how a job has ended, by its record's bucket and folder; each is read once."""
    known: dict[tuple[str, str], str | None] = {}

    def ended(bucket: str, folder: str) -> str | None:
        if (bucket, folder) not in known:
            try:
                record = json.loads(google.read("storage", object_path(bucket, f"{folder}/record.json"))[0])
                known[bucket, folder] = f"has ended: {record['outcome']}" if record.get("ended") else None
            except NotFound:
                known[bucket, folder] = "has no record any more"
        return known[bucket, folder]

    return ended


def owner(each: GoogleResource) -> str:
    if each.labels.get(machine_labels.MAKER) == machine_labels.QUEUES:
        return f"queue {each.labels.get(machine_labels.QUEUE, '?')} ({each.labels.get('accel-stack', '?')})"
    if each.of_jobs:
        return f"job {each.labels.get(machine_labels.JOB, '?')} ({each.labels.get(machine_labels.TARGET, '?')})"
    return each.labels.get("accel-stack") or each.labels.get("accel-owner") or ""


def _spelt(stacks: Stacks) -> Stacks:
    """Convert names to Google Cloud's spelling of labels."""
    names = frozenset(to_gcp({"stack": name})["stack"] for name in stacks.names)
    return replace(stacks, project=to_gcp({"project": stacks.project or ""})["project"], names=names)


def _concern(stacks: Stacks, labels: Mapping[str, str]) -> bool:
    """Return whether to report it: the stacks' own resources, and everything if a whole project was named."""
    return not stacks.names or stacks.own(labels, "-")


def _fix(request: GoogleResource, stacks: Stacks) -> str:
    if stacks.held and request.path.removeprefix("v2/") in stacks.held:
        return "the stack has it: pulumi up --replace its URN"
    at = f"{request.name} --zone {request.zone} --force"
    return f"gcloud compute tpus queued-resources delete {at}, unless another stack has it"


def _lost_resource(google: Google, project: str, each: GoogleResource, why: str, dollars: float | None) -> Orphan:
    return Orphan(
        cloud="gcp",
        place=project,
        what=each.kind,
        name=each.name,
        zone=each.zone,
        state=each.state,
        created=each.created,
        usd_a_day=dollars,
        owner=owner(each),
        why=why,
        delete=lambda: google.delete(each.api, each.path, **each.query),
    )


def _addresses(google: Google, project: str, stacks: Stacks) -> Iterator[Orphan]:
    """Check states: https://docs.cloud.google.com/compute/docs/reference/rest/v1/addresses"""
    for place, item in list_everywhere(google, project, "addresses"):
        name, labels = str(item.get("name")), labels_of(item)
        path = f"projects/{project}/{place}/addresses/{name}"
        free = item.get("status") == "RESERVED" and not item.get("users")
        if not free or not stacks.own(labels, "-") or stacks.holds(path):
            continue
        yield Orphan(
            cloud="gcp",
            place=project,
            what="address",
            name=name,
            zone=place.rpartition("/")[2],
            state=str(item.get("status")),
            created=parse_google_time(item.get("creationTimestamp")),
            usd_a_day=None if item.get("addressType") != "INTERNAL" else 0.0,
            owner=labels.get("accel-stack", ""),
            why=f"{item.get('address')} is of nothing, and {NOT_HELD}",
            delete=lambda path=path: google.delete("compute", path),
        )


def _failed_pools(google: Google, project: str, stacks: Stacks) -> Iterator[Orphan]:
    """Yield pools in ERROR, which keep their nodes and are billed for them."""
    answer = google.get("container", f"v1/projects/{path_segment(project)}/locations/-/clusters")
    for cluster in [object_at(each) for each in entries(answer.get("clusters"))]:
        labels = {str(key): str(value) for key, value in object_at(cluster, "resourceLabels").items()}
        for pool in [object_at(each) for each in entries(cluster.get("nodePools"))]:
            if pool.get("status") != "ERROR" or not _concern(stacks, labels):
                continue
            conditions = [object_at(each) for each in entries(pool.get("conditions"))]
            told = "; ".join(str(each.get("message") or "") for each in conditions) or pool.get("statusMessage")
            yield Orphan(
                cloud="gcp",
                place=project,
                what="pool",
                name=f"{cluster.get('name')}/{pool.get('name')}",
                zone=str(cluster.get("location")),
                state="ERROR",
                created=None,
                usd_a_day=None,
                owner=labels.get("accel-stack", ""),
                why=str(told or "no reason given"),
                fix="pulumi up --refresh, or gcloud container node-pools delete",
            )


def _idle_machines(google: Google, project: str, region: str, stacks: Stacks) -> Iterator[Orphan]:
    """Yield persistent resources without a running job: they are billed all the same. Source:
    https://docs.cloud.google.com/vertex-ai/docs/training/persistent-resource-overview"""
    api, place = f"{region}-aiplatform", f"v1/projects/{path_segment(project)}/locations/{path_segment(region)}"
    every = google.pages(api, f"{place}/persistentResources", "persistentResources")
    kept = [each for each in every if _concern(stacks, labels_of(each))]
    busy = {
        str(object_at(job, "jobSpec").get("persistentResourceId"))
        for job in (google.pages(api, f"{place}/customJobs", "customJobs") if kept else ())
        if job.get("state") in _LIVE
    }
    for each in kept:
        name, pools = str(each.get("name")).rpartition("/")[2], _pools_of(each)
        used = any(int(pool.get("usedReplicaCount") or 0) for pool in pools)
        if each.get("state") != "RUNNING" or used or name in busy:
            continue
        yield Orphan(
            cloud="gcp",
            place=project,
            what="persistent resource",
            name=name,
            zone=region,
            state="RUNNING",
            created=parse_google_time(each.get("createTime")),
            usd_a_day=_pools_a_day(region, pools),
            owner=labels_of(each).get("accel-stack", ""),
            why="no job runs on its machines (Compute Engine's prices, without Vertex AI's own charge)",
            fix="take it out of vertex.persistent_resources, then pulumi up",
        )


def _pools_of(resource: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [object_at(each) for each in entries(resource.get("resourcePools"))]


def _pools_a_day(region: str, pools: list[dict[str, Any]]) -> float | None:
    """Return USD per day of the machines of every pool; None where one has no price."""
    total = 0.0
    for pool in pools:
        spec = object_at(pool, "machineSpec")
        machine, gpus = str(spec.get("machineType")), str(spec.get("acceleratorType") or "")
        attached = gpus and machine.startswith("n1-")
        count = int(spec.get("acceleratorCount") or 1)
        name = gpus.lower().replace("_", "-")
        price = with_gpus(region, machine, name, count) if attached else find_price("gcp", region, machine)
        if price.on_demand is None:
            return None
        total += price.on_demand * 24 * int(pool.get("replicaCount") or 1)
    return total
