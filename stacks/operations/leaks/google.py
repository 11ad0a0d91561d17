"""What costs money or quota at Google Cloud and serves nobody: machines of jobs that have ended, requests that cannot
come to anything, disks that no machine has."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from accel.catalog import UnknownName
from accel.catalog.node_prices import find_price, with_gpus
from accel.clouds.google.api import Google, object_path
from accel.clouds.google.rest import entries, mapping, part
from accel.contract import buckets
from accel.diagnostics.errors import NotFound
from jobs.backends.vm import labels as vm_labels

from .orphans import Unread, search_parts

DEAD_REQUESTS = {"SUSPENDED": "was taken away and holds its quota", "FAILED": "failed and holds its quota"}
"""States of a queued resource that never end by themselves. Source:
https://docs.cloud.google.com/tpu/docs/queued-resources#queued-resource-states"""

DEAD_NODES = {"PREEMPTED", "TERMINATED"}


@dataclass(frozen=True)
class GoogleResource:
    """A resource: how it is deleted, whose it is, and what it is made of."""

    kind: str
    name: str
    zone: str
    state: str
    labels: Mapping[str, str]
    created: datetime | None
    machine: str | None
    """Catalogue's name of what it runs; None: nothing that has a price here."""
    spot: bool
    api: str
    path: str
    query: Mapping[str, object]
    job: tuple[str, str] | None = None
    """Bucket and folder of the record of its job, or of its declared queue."""
    used: bool = True
    gpus: tuple[str, int] | None = None
    """Attached to an N1 machine: their type and number."""
    by_group: bool = False
    """A managed instance group made it, and would make it again."""

    @property
    def of_jobs(self) -> bool:
        """Whether a job made it, or a declared queue."""
        return self.labels.get(vm_labels.MAKER) in (vm_labels.JOBS, vm_labels.QUEUES)


@dataclass(frozen=True)
class Leak:
    """A resource, and why nobody needs it."""

    found: GoogleResource
    why: str
    dollars_a_day: float | None


def leaks(found: Iterator[GoogleResource], ended: Callable[[str, str], str | None], now: datetime) -> list[Leak]:
    """Those that serve nobody. `ended` tells of a job, by bucket and name, how it has ended, or None."""
    made = [Leak(each, why, dollars_a_day(each)) for each in found if (why := reason(each, ended, now))]
    return sorted(made, key=lambda leak: -(leak.dollars_a_day or 0))


def reason(each: GoogleResource, ended: Callable[[str, str], str | None], now: datetime) -> str | None:
    """Why nobody needs it; None where somebody may."""
    if each.kind == "queued resource" and each.state in DEAD_REQUESTS:
        return DEAD_REQUESTS[each.state]
    if not each.of_jobs:
        return None
    if each.kind == "tpu" and each.state in DEAD_NODES:
        return f"is {each.state}"
    if each.job and (how := ended(*each.job)):
        return f"its {'queue' if each.labels.get(vm_labels.MAKER) == vm_labels.QUEUES else 'job'} {how}"
    expires = each.labels.get(vm_labels.EXPIRES, "")
    if expires.isdigit() and int(expires) < now.timestamp():
        return f"was needed until {datetime.fromtimestamp(int(expires), UTC):%Y-%m-%d %H:%M} UTC at the latest"
    return None if each.used else "no machine has it"


def dollars_a_day(each: GoogleResource) -> float | None:
    """What it costs in a day, by the catalogue; None where no price is known, 0 for what is not billed."""
    if each.machine is None:
        return None if each.kind == "disk" else 0.0
    if each.state in DEAD_REQUESTS or each.state in DEAD_NODES | {"STOPPED", "SUSPENDED"}:
        return 0.0
    region = each.zone.rpartition("-")[0]
    try:
        found = with_gpus(region, each.machine, *each.gpus) if each.gpus else find_price("gcp", region, each.machine)
    except (UnknownName, LookupError):
        return None
    hour = found.spot if each.spot else found.on_demand
    return None if hour is None else hour * 24


def look(google: Google, project: str, unread: Unread) -> Iterator[GoogleResource]:
    """Everything of the kinds that jobs make, in every zone of a project."""

    def everywhere(kind: str, collection: str) -> Iterator[GoogleResource]:
        for place, item in aggregated(google, project, collection):
            yield _compute(kind, collection, project, place, item)

    parts = {
        "queued resources": lambda: _queued(google, project),
        "TPUs": lambda: _nodes(google, project),
        "instances": lambda: everywhere("instance", "instances"),
        "groups": lambda: everywhere("group", "instanceGroupManagers"),
        "disks": lambda: everywhere("disk", "disks"),
        "templates": lambda: _templates(google, project),
    }
    yield from search_parts({f"{name} of {project}": part for name, part in parts.items()}, unread)


def _queued(google: Google, project: str) -> Iterator[GoogleResource]:
    for item in google.pages("tpu", f"v2/projects/{project}/locations/-/queuedResources", "queuedResources"):
        name = str(item.get("name"))
        specs = entries((mapping(item.get("tpu")) or {}).get("nodeSpec"))
        node = mapping((mapping(specs[0]) or {}).get("node")) or {} if specs else {}
        yield GoogleResource(
            kind="queued resource",
            name=name.rpartition("/")[2],
            zone=_zone(name),
            state=str((mapping(item.get("state")) or {}).get("state")),
            labels=labels_of(node),
            created=moment(item.get("createTime")),
            machine=None,  # its nodes are listed, and billed, by themselves
            spot="spot" in item,
            api="tpu",
            path=f"v2/{name}",
            query={"force": True},
            job=_job(mapping(node.get("metadata")) or {}),
        )


def _nodes(google: Google, project: str) -> Iterator[GoogleResource]:
    for item in google.pages("tpu", f"v2/projects/{project}/locations/-/nodes", "nodes"):
        name = str(item.get("name"))
        yield GoogleResource(
            kind="tpu",
            name=name.rpartition("/")[2],
            zone=_zone(name),
            state=str(item.get("state")),
            labels=labels_of(item),
            created=moment(item.get("createTime")),
            machine=str(item.get("acceleratorType") or "") or None,
            spot=bool((mapping(item.get("schedulingConfig")) or {}).get("spot")),
            api="tpu",
            path=f"v2/{name}",
            query={},
            job=_job(mapping(item.get("metadata")) or {}),
        )


def _compute(kind: str, collection: str, project: str, place: str, item: dict[str, Any]) -> GoogleResource:
    scheduling = mapping(item.get("scheduling")) or {}
    labels = labels_of(item) or labels_of(mapping(item.get("allInstancesConfig")) or {})
    return GoogleResource(
        kind=kind,
        name=str(item.get("name")),
        zone=place.rpartition("/")[2],
        state=str(item.get("status") or ""),
        labels=labels,
        created=moment(item.get("creationTimestamp")),
        machine=_machine(item) if kind == "instance" else None,
        spot=scheduling.get("provisioningModel") == "SPOT",
        api="compute",
        path=f"projects/{project}/{place}/{collection}/{part(str(item.get('name')))}",
        query={},
        job=_job(_pairs(item)),
        used=kind != "disk" or bool(item.get("users")),
        gpus=_attached(item),
        by_group="created-by" in _pairs(item),
    )


def _templates(google: Google, project: str) -> Iterator[GoogleResource]:
    for item in google.pages("compute", f"projects/{project}/global/instanceTemplates", "items"):
        properties = mapping(item.get("properties")) or {}
        yield GoogleResource(
            kind="template",
            name=str(item.get("name")),
            zone="global",
            state="",
            labels=labels_of(properties),
            created=moment(item.get("creationTimestamp")),
            machine=None,
            spot=False,
            api="compute",
            path=f"projects/{project}/global/instanceTemplates/{part(str(item.get('name')))}",
            query={},
            job=_job(_pairs(properties)),
        )


def aggregated(google: Google, project: str, collection: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The items of a collection with the places that they are in: zones/us-central1-a."""
    token: object = None
    while True:
        page = google.get("compute", f"projects/{project}/aggregated/{collection}", pageToken=token)
        for place, inside in (mapping(page.get("items")) or {}).items():
            for item in entries((mapping(inside) or {}).get(collection)):
                yield place, mapping(item) or {}
        token = page.get("nextPageToken")
        if not token:
            return


def _pairs(item: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata, which Compute Engine has as a list of keys and values."""
    pairs = [mapping(each) or {} for each in entries((mapping(item.get("metadata")) or {}).get("items"))]
    return {str(each.get("key")): each.get("value") for each in pairs}


def _machine(item: Mapping[str, Any]) -> str:
    return str(item.get("machineType", "")).rpartition("/")[2]


def _attached(item: Mapping[str, Any]) -> tuple[str, int] | None:
    """Machines with GPUs built in have them listed too, and are priced with them."""
    listed = [mapping(each) or {} for each in entries(item.get("guestAccelerators"))]
    if not listed or not _machine(item).startswith("n1-"):
        return None
    return str(listed[0].get("acceleratorType", "")).rpartition("/")[2], int(listed[0].get("acceleratorCount") or 0)


def _zone(name: str) -> str:
    found = re.search(r"/locations/([^/]+)/", name)
    return found[1] if found else ""


def labels_of(item: Mapping[str, Any]) -> dict[str, str]:
    """Those of a resource."""
    return {str(key): str(value) for key, value in (mapping(item.get("labels")) or {}).items()}


def moment(text: object) -> datetime | None:
    """A time as Google writes it."""
    return datetime.fromisoformat(str(text)) if text else None


def _job(metadata: Mapping[str, Any]) -> tuple[str, str] | None:
    """The record that a machine's own metadata names."""
    try:
        kind, of = ("accel-job", buckets.JOBS) if "accel-job" in metadata else (vm_labels.QUEUE, buckets.QUEUES)
        told = json.loads(metadata[kind])
        return str(told["bucket"]), f"{of}/{told['name']}"
    except (KeyError, TypeError, ValueError):
        return None


def ended_by_record(google: Google) -> Callable[[str, str], str | None]:
    """How a job has ended, by its record's bucket and folder; each is read once."""
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
    """Whose it is, as far as it says so."""
    if each.labels.get(vm_labels.MAKER) == vm_labels.QUEUES:
        return f"queue {each.labels.get(vm_labels.QUEUE, '?')} ({each.labels.get('accel-stack', '?')})"
    if each.of_jobs:
        return f"job {each.labels.get(vm_labels.JOB, '?')} ({each.labels.get(vm_labels.TARGET, '?')})"
    return each.labels.get("accel-stack") or each.labels.get("accel-owner") or ""
