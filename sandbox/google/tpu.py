"""Cloud TPU API v2: nodes, queued resources, and what the catalogue knows of zones, types and software versions."""

from collections.abc import Callable
from typing import Any

from accel.catalog.tpu import tpu

from . import tpu_nodes, tpu_queue, tpu_requests
from .tpu_checks import located, runtimes, zones
from .world import Call, Collection, Json

_LOCATIONS = "tpu.projects.locations"


def _place(call: Call) -> str:
    located(call.location)
    return "/".join(call.key.split("/")[:4])


def _locations(call: Call) -> list[Json]:
    project = "/".join(call.key.split("/")[:2])
    return [{"name": f"{project}/locations/{zone}", "locationId": zone} for zone in zones()]


def _types(call: Call) -> list[Json]:
    place = _place(call)
    rows: list[Json] = []
    for found in map(tpu, zones()[call.location]):
        configs = [{"type": found.version, "topology": found.topology}]
        rows.append(
            {"name": f"{place}/acceleratorTypes/{found.name}", "type": found.name, "acceleratorConfigs": configs}
        )
    return rows


def _versions(call: Call) -> list[Json]:
    place = _place(call)
    return [{"name": f"{place}/runtimeVersions/{name}", "version": name} for name in runtimes()]


COLLECTIONS = (
    Collection(
        id=f"{_LOCATIONS}.nodes", schema="Node", name="?nodeId", style="longrunning", kind="NODE", full_name=True,
        state=("state", "CREATING", "READY", "DELETING"), made=tpu_nodes.create_node, settled=tpu_nodes.settled,
        failed=tpu_nodes.dropped, changed=tpu_nodes.changed, leaving=tpu_nodes.leaving, ending=tpu_nodes.off,
        gone=tpu_queue.node_gone,
    ),
    Collection(
        id=f"{_LOCATIONS}.queuedResources", schema="QueuedResource", name="?queuedResourceId", style="longrunning",
        kind="QUEUED_RESOURCE", full_name=True, made=tpu_requests.create_request, leaving=tpu_requests.leaving,
        ending=tpu_requests.off, gone=tpu_requests.delete_request,
    ),
    Collection(id=_LOCATIONS, schema="Location", listed=_locations),
    Collection(id=f"{_LOCATIONS}.acceleratorTypes", schema="AcceleratorType", listed=_types),
    Collection(id=f"{_LOCATIONS}.runtimeVersions", schema="RuntimeVersion", listed=_versions),
    Collection(id=f"{_LOCATIONS}.operations", schema="Operation"),
)  # fmt: skip
OWN: dict[str, Callable[[Call, Collection], Any]] = {
    f"{_LOCATIONS}.nodes.start": tpu_nodes.start,
    f"{_LOCATIONS}.nodes.stop": tpu_nodes.stop,
    f"{_LOCATIONS}.nodes.getGuestAttributes": tpu_nodes.attributes,
    f"{_LOCATIONS}.queuedResources.create": tpu_requests.create,
    f"{_LOCATIONS}.queuedResources.delete": tpu_requests.delete,
}
preempt = tpu_queue.preempt
