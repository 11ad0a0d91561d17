"""Resources of a Google Cloud project that jobs or stacks create, and that cost money or quota."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from accel.clouds.google.api import Google
from accel.clouds.google.rest import path_segment
from accel.contract import buckets, machine_labels
from accel.json_values import entries, object_at


@dataclass(frozen=True)
class GoogleResource:
    """A resource: its deletion, its owner, and its parts."""

    kind: str
    name: str
    zone: str
    state: str
    labels: Mapping[str, str]
    created: datetime | None
    machine: str | None
    """The catalogue's name of its machine; None if nothing has a price here."""
    spot: bool
    api: str
    path: str
    query: Mapping[str, object]
    job: tuple[str, str] | None = None
    """Bucket and folder of the record of its job, or of its declared queue."""
    used: bool = True
    gpus: tuple[str, int] | None = None
    """Type and number of GPUs attached to an N1 machine."""
    by_group: bool = False
    """Created by a managed instance group, which would recreate it."""

    @property
    def of_jobs(self) -> bool:
        """Return whether a job created it, or a declared queue."""
        return self.labels.get(machine_labels.MAKER) in (machine_labels.JOBS, machine_labels.QUEUES)


def lists_of_machines(google: Google, project: str) -> Mapping[str, Callable[[], Iterable[GoogleResource]]]:
    """Return functions that list the kinds that jobs create, in every zone of a project, by what each lists."""

    def everywhere(kind: str, collection: str) -> Iterator[GoogleResource]:
        for place, item in list_everywhere(google, project, collection):
            yield _compute(kind, collection, project, place, item)

    return {
        "queued resources": lambda: _queued(google, project),
        "TPUs": lambda: _nodes(google, project),
        "instances": lambda: everywhere("instance", "instances"),
        "groups": lambda: everywhere("group", "instanceGroupManagers"),
        "disks": lambda: everywhere("disk", "disks"),
        "templates": lambda: _templates(google, project),
    }


def _queued(google: Google, project: str) -> Iterator[GoogleResource]:
    for item in google.pages("tpu", f"v2/projects/{project}/locations/-/queuedResources", "queuedResources"):
        name = str(item.get("name"))
        specs = entries(object_at(item, "tpu").get("nodeSpec"))
        node = object_at(specs[0], "node") if specs else {}
        yield GoogleResource(
            kind="queued resource",
            name=name.rpartition("/")[2],
            zone=_zone(name),
            state=str(object_at(item, "state").get("state")),
            labels=labels_of(node),
            created=parse_google_time(item.get("createTime")),
            machine=None,  # its nodes are listed, and billed, by themselves
            spot="spot" in item,
            api="tpu",
            path=f"v2/{name}",
            query={"force": True},
            job=_job(object_at(node, "metadata")),
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
            created=parse_google_time(item.get("createTime")),
            machine=str(item.get("acceleratorType") or "") or None,
            spot=bool(object_at(item, "schedulingConfig").get("spot")),
            api="tpu",
            path=f"v2/{name}",
            query={},
            job=_job(object_at(item, "metadata")),
        )


def _compute(kind: str, collection: str, project: str, place: str, item: dict[str, Any]) -> GoogleResource:
    scheduling = object_at(item, "scheduling")
    labels = labels_of(item) or labels_of(object_at(item, "allInstancesConfig"))
    return GoogleResource(
        kind=kind,
        name=str(item.get("name")),
        zone=place.rpartition("/")[2],
        state=str(item.get("status") or ""),
        labels=labels,
        created=parse_google_time(item.get("creationTimestamp")),
        machine=_machine(item) if kind == "instance" else None,
        spot=scheduling.get("provisioningModel") == "SPOT",
        api="compute",
        path=f"projects/{project}/{place}/{collection}/{path_segment(str(item.get('name')))}",
        query={},
        job=_job(_pairs(item)),
        used=kind != "disk" or bool(item.get("users")),
        gpus=_attached(item),
        by_group="created-by" in _pairs(item),
    )


def _templates(google: Google, project: str) -> Iterator[GoogleResource]:
    for item in google.pages("compute", f"projects/{project}/global/instanceTemplates", "items"):
        properties = object_at(item, "properties")
        yield GoogleResource(
            kind="template",
            name=str(item.get("name")),
            zone="global",
            state="",
            labels=labels_of(properties),
            created=parse_google_time(item.get("creationTimestamp")),
            machine=None,
            spot=False,
            api="compute",
            path=f"projects/{project}/global/instanceTemplates/{path_segment(str(item.get('name')))}",
            query={},
            job=_job(_pairs(properties)),
        )


def list_everywhere(google: Google, project: str, collection: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the items of a collection with their places: zones/us-central1-a."""
    token: object = None
    while True:
        page = google.get("compute", f"projects/{project}/aggregated/{collection}", pageToken=token)
        for place, inside in object_at(page, "items").items():
            for item in entries(object_at(inside).get(collection)):
                yield place, object_at(item)
        token = page.get("nextPageToken")
        if not token:
            return


def _pairs(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata, which Compute Engine has as a list of keys and values."""
    pairs = [object_at(each) for each in entries(object_at(item, "metadata").get("items"))]
    return {str(each.get("key")): each.get("value") for each in pairs}


def _machine(item: Mapping[str, Any]) -> str:
    return str(item.get("machineType", "")).rpartition("/")[2]


def _attached(item: Mapping[str, Any]) -> tuple[str, int] | None:
    """Ignore built-in GPUs, which are listed too: machines are priced with them."""
    listed = [object_at(each) for each in entries(item.get("guestAccelerators"))]
    if not listed or not _machine(item).startswith("n1-"):
        return None
    return str(listed[0].get("acceleratorType", "")).rpartition("/")[2], int(listed[0].get("acceleratorCount") or 0)


def _zone(name: str) -> str:
    found = re.search(r"/locations/([^/]+)/", name)
    return found[1] if found else ""


def labels_of(item: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in object_at(item, "labels").items()}


def parse_google_time(text: object) -> datetime | None:
    if not text:
        return None
    found = datetime.fromisoformat(str(text))
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _job(metadata: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return bucket and folder of the record that a machine's own metadata names."""
    try:
        of_job = machine_labels.JOB in metadata
        kind, of = (machine_labels.JOB, buckets.JOBS) if of_job else (machine_labels.QUEUE, buckets.QUEUES)
        told = json.loads(metadata[kind])
        return str(told["bucket"]), f"{of}/{told['name']}"
    except (KeyError, TypeError, ValueError):
        return None
