"""Templates and groups of virtual machines, attached disks and commitments, as the provider makes and changes them: its
resource_compute_instance_template.go, resource_compute_instance_group_manager.go, resource_compute_attached_disk.go."""

import time
from typing import Any

from ..resource import State
from .life import Kind, address, body, finished, formatted, outputs
from .machines import disk_params, machine_body
from .rest import Google, Json, OperationFailed

_WAIT_S = 120


def create_template(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    inner = {n: v for n, v in inputs.items() if n not in ("name", "namePrefix", "description", "instanceDescription")}
    properties = machine_body(kind, inner)
    if "instanceDescription" in inputs:
        properties["description"] = inputs["instanceDescription"]
    properties["disks"] = [_template_disk(google, index, disk) for index, disk in enumerate(inputs["disks"])]
    sent = {"name": inputs["name"], "properties": properties}
    sent |= {"description": inputs["description"]} if "description" in inputs else {}
    google.done("compute", "POST", formatted(kind.path, inputs), sent, doing="Creating Instance Template")
    return finish_template(google, kind, inputs)


_OF_DISK = ("source", "deviceName", "mode", "interface", "type")


def _template_disk(google: Google, index: int, disk: Json) -> Json:
    made = {name: disk[name] for name in _OF_DISK if name in disk}
    made |= {"boot": disk.get("boot", index == 0), "autoDelete": disk.get("autoDelete", True)}
    if "source" not in disk:
        asked = {n: v for n, v in disk.items() if n not in (*_OF_DISK, "boot", "autoDelete", "guestOsFeatures")}
        made["initializeParams"] = disk_params(google, asked, {})
    return made


def finish_template(google: Google, kind: Kind, state: State) -> tuple[str, State]:
    found = google.get("compute", address(kind, state)) or {}
    id, labels = formatted(kind.id, state), found.get("properties", {}).get("labels", {})
    return id, outputs(kind, {**state, "id": id}, {**found, "labels": labels})


def read_template(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    """A template never changes."""
    return (inputs, {**outs, **inputs}) if google.get("compute", id) is not None else None


def _group_body(kind: Kind, state: State) -> Json:
    plain = {n: v for n, v in state.items() if n not in ("distributionPolicyZones", "updatePolicy")}
    sent = body(kind, plain)
    if given := state.get("updatePolicy"):
        policy = dict(given)
        for name in ("maxSurge", "maxUnavailable"):
            for unit in ("Fixed", "Percent"):
                if (value := policy.pop(f"{name}{unit}", None)) is not None:
                    policy[name] = {unit.lower(): value}
        sent["updatePolicy"] = policy
    if given := state.get("distributionPolicyZones"):
        sent.setdefault("distributionPolicy", {})["zones"] = [{"zone": f"zones/{zone}"} for zone in given]
    return sent


def create_group(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    sent = {"targetSize": 0, **_group_body(kind, inputs)}
    google.done("compute", "POST", formatted(kind.path, inputs), sent, doing="Creating InstanceGroupManager")
    return _stable(google, kind, inputs)


def _is_stable(google: Google, kind: Kind, inputs: State) -> bool:
    return google.call("GET", "compute", address(kind, inputs))["status"]["isStable"]


def _stable(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    until = time.monotonic() + _WAIT_S
    while inputs.get("waitForInstances") and not _is_stable(google, kind, inputs):
        if time.monotonic() > until:
            raise OperationFailed("timeout while waiting for state to become 'created'")
        time.sleep(0.05)
    return finished(google, kind, inputs)


def update_group(google: Google, kind: Kind, state: State, olds: State, changed: set[str]) -> None:
    at = address(kind, state)
    new, old = _group_body(kind, state), _group_body(kind, olds)
    sent = {name: new.get(name) for name in new.keys() | old.keys() if new.get(name) != old.get(name)}
    size = sent.pop("targetSize", None)
    if sent:
        google.done("compute", "PATCH", at, sent, doing="Updating managed group instances")
    if size is not None:
        google.done("compute", "POST", f"{at}/resize", doing="Updating InstanceGroupManager", size=str(size))
    if state.get("waitForInstances"):
        _stable(google, kind, state)


def keep_commitment(google: Google, kind: Kind, id: str, outs: State) -> None:
    """A commitment is paid to its end: the provider only forgets it."""


def _disk_on(google: Google, state: State) -> tuple[str, Json | None]:
    name = str(state["instance"]).rpartition("/")[2]
    at = f"projects/{state['project']}/zones/{state['zone']}/instances/{name}"
    found = google.get("compute", at)
    disk = str(state["disk"]).rpartition("/")[2]
    here = (each for each in (found or {}).get("disks", []) if each.get("source", "").rpartition("/")[2] == disk)
    return at, next(here, None)


def create_attached(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    at, _ = _disk_on(google, inputs)
    sent = {n: inputs[n] for n in ("deviceName", "mode", "interface") if n in inputs} | {"source": inputs["disk"]}
    google.done("compute", "POST", f"{at}/attachDisk", sent, doing="disk to attach")
    return finish_attached(google, kind, inputs)


def finish_attached(google: Google, kind: Kind, state: State) -> tuple[str, State]:
    at, disk = _disk_on(google, state)
    id = f"{at}/{str(state['disk']).rpartition('/')[2]}"
    return id, outputs(kind, {**state, "id": id}, disk or {})


def read_attached(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    return (inputs, {**outs, **inputs}) if _disk_on(google, {**outs, **inputs})[1] else None


def delete_attached(google: Google, kind: Kind, id: str, outs: State) -> None:
    at, disk = _disk_on(google, outs)
    if disk is not None:
        google.done("compute", "POST", f"{at}/detachDisk", doing="disk to detach", deviceName=disk["deviceName"])
