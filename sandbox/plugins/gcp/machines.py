"""Virtual machines, as the provider creates and changes them: its resource_compute_instance.go."""

import re
from typing import Any

from ..mapping import UnmappedName
from ..resource import State
from .body import to_body
from .life import Kind, address, body, finish, format_template, observed_state, outputs
from .rest import Google, Json

_STOPPED = {
    "machineType": "setMachineType",
    "minCpuPlatform": "setMinCpuPlatform",
    "serviceAccount": "setServiceAccount",
    "enableDisplay": "updateDisplayDevice",
    "shieldedInstanceConfig": "updateShieldedInstanceConfig",
}
"""Properties that change on a stopped instance only, and their methods."""


def image_link(google: Google, text: str) -> str:
    """Return the image of a short form: "project/family", "project/image", or a link as it is."""
    if not (found := re.fullmatch(r"([^/]+)/([^/]+)", text)) or found[1] == "family":
        return text
    images = f"projects/{found[1]}/global/images"
    family = google.get("compute", f"{images}/family/{found[2]}") is not None
    return f"{images}/family/{found[2]}" if family else f"{images}/{found[2]}"


def _affinity(given: Json) -> Json:
    return {"consumeReservationType": given["type"], **given.get("specificReservation", {})}


def relabel(google: Google, kind: Kind, state: State) -> None:
    at = address(kind, state)
    found = google.call("GET", "compute", at)
    sent = {"labels": state["pulumiLabels"], "labelFingerprint": found.get("labelFingerprint")}
    google.done("compute", "POST", f"{at}/setLabels", sent, doing=f"Updating {kind.title}")


def _metadata(state: State) -> Json:
    every = dict(state.get("metadata", {}))
    if script := state.get("metadataStartupScript"):
        every["startup-script"] = script
    return {"items": [{"key": key, "value": str(value)} for key, value in sorted(every.items())]}


def machine_body(kind: Kind, inputs: State) -> Json:
    plain = {n: v for n, v in inputs.items() if n not in ("reservationAffinity", "metadata", "tags", "disks")}
    plain["networkInterfaces"] = [
        {n: v for n, v in nic.items() if n != "subnetworkProject"} for nic in inputs["networkInterfaces"]
    ]
    sent = body(kind, plain)
    sent["metadata"] = _metadata(inputs)
    if "tags" in inputs:
        sent["tags"] = {"items": inputs["tags"]}
    if "reservationAffinity" in inputs:
        sent["reservationAffinity"] = _affinity(inputs["reservationAffinity"])
    return sent


def create_instance(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    if inputs.get("desiredStatus", "RUNNING") != "RUNNING":
        raise UnmappedName("When creating an instance, desired_status can only accept RUNNING value")
    zone = f"projects/{inputs['project']}/zones/{inputs['zone']}"
    sent = machine_body(kind, inputs)
    sent["machineType"] = f"{zone}/machineTypes/{inputs['machineType'].rpartition('/')[2]}"
    for each in sent.get("guestAccelerators", []):
        each["acceleratorType"] = f"{zone}/acceleratorTypes/{each['acceleratorType'].rpartition('/')[2]}"
    scratch = [
        {"type": "SCRATCH", "autoDelete": True, "interface": each["interface"],
         "initializeParams": {"diskType": f"{zone}/diskTypes/local-ssd"}}
        for each in inputs.get("scratchDisks", [])
    ]  # fmt: skip
    sent["disks"] = [
        _boot(google, inputs["bootDisk"], zone),
        *scratch,
        *map(_attached, inputs.get("attachedDisks", [])),
    ]
    google.done("compute", "POST", format_template(kind.path, inputs), sent, doing="instance to create")
    return finish(google, kind, inputs)


def _boot(google: Google, disk: Json, zone: str) -> Json:
    made = {name: disk[name] for name in ("deviceName", "interface", "source") if name in disk}
    made |= {"boot": True, "autoDelete": disk.get("autoDelete", True), "mode": disk.get("mode", "READ_WRITE")}
    if asked := disk.get("initializeParams"):
        made["initializeParams"] = disk_params(google, asked, {"size": "diskSizeGb", "type": "diskType"}, zone)
    return made


def disk_params(google: Google, asked: Json, names: dict[str, str], zone: str = "") -> Json:
    names = {"image": "sourceImage", "snapshot": "sourceSnapshot", **names}
    made: Json = {names.get(name, name): value for name, value in asked.items()}
    if "sourceImage" in made:
        made["sourceImage"] = image_link(google, made["sourceImage"])
    if "diskType" in made and zone:
        made["diskType"] = f"{zone}/diskTypes/{made['diskType'].rpartition('/')[2]}"
    for name in ("diskSizeGb", "provisionedIops", "provisionedThroughput"):
        if name in made:
            made[name] = str(made[name])
    if isinstance(made.get("resourcePolicies"), str):
        made["resourcePolicies"] = [made["resourcePolicies"]]
    return made


def _attached(disk: Json) -> Json:
    names = ("source", "deviceName")
    return {**{name: disk[name] for name in names if name in disk}, "mode": disk.get("mode", "READ_WRITE")}


def finish_instance(google: Google, kind: Kind, state: State) -> tuple[str, State]:
    found = google.get("compute", address(kind, state)) or {}
    id = format_template(kind.id, state)
    return id, {**outputs(kind, {**state, "id": id}, found), **_told(state, found)}


def _access(access: Json) -> Json:
    return {"natIp": access["natIP"], "networkTier": access["networkTier"]}


def _told(state: State, found: Json) -> State:
    """Return the blocks that Google completes: addresses, accelerators, the boot disk's name."""
    nics = [
        {"name": nic["name"], "network": nic["network"], "networkIp": nic["networkIP"],
         **({"subnetwork": nic["subnetwork"]} if "subnetwork" in nic else {}),
         **({"nicType": nic["nicType"]} if "nicType" in nic else {}),
         "accessConfigs": [_access(each) for each in nic.get("accessConfigs", [])]}
        for nic in found.get("networkInterfaces", [])
    ]  # fmt: skip
    gpus = [{"type": g["acceleratorType"], "count": g["acceleratorCount"]} for g in found.get("guestAccelerators", [])]
    boot = next((disk for disk in found.get("disks", []) if disk["boot"]), {})
    disk = {**state.get("bootDisk", {}), "deviceName": boot.get("deviceName"), "source": boot.get("source")}
    return {"networkInterfaces": nics, "guestAccelerators": gpus, "bootDisk": disk}


def read_instance(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    _, project, _, zone, _, name = id.split("/")
    found = google.get("compute", id)
    if found is None:
        return None
    known = inputs or {"project": project, "zone": zone, "name": name}
    shown = {**found, "tags": found.get("tags", {}).get("items", [])}
    shown["resourcePolicies"] = next(iter(found.get("resourcePolicies", [])), None)
    shown["attachedDisks"] = [disk for disk in found["disks"] if not disk["boot"] and disk["type"] == "PERSISTENT"]
    now, made = observed_state(kind, {**outs, **known, "id": id}, known, shown)
    metadata = {row["key"]: row["value"] for row in found["metadata"].get("items", [])}
    if "metadataStartupScript" in known:
        now["metadataStartupScript"] = metadata.pop("startup-script", "")
    if metadata or "metadata" in known:
        now["metadata"] = metadata
    if "desiredStatus" in known:
        now["desiredStatus"] = found["status"]
    return now, {**made, **outputs(kind, {**made, **now}, found), **_told(known, found)}


def update_instance(google: Google, kind: Kind, state: State, olds: State, changed: set[str]) -> None:
    at, doing = address(kind, state), "updating instance"
    found = google.call("GET", "compute", at)
    if kind.labels in changed:
        relabel(google, kind, state)
    if changed & {"metadata", "metadataStartupScript"}:
        sent = {**_metadata(state), "fingerprint": found["metadata"]["fingerprint"]}
        google.done("compute", "POST", f"{at}/setMetadata", sent, doing=doing)
    if "tags" in changed:
        sent = {"items": state.get("tags", []), "fingerprint": found["tags"]["fingerprint"]}
        google.done("compute", "POST", f"{at}/setTags", sent, doing=doing)
    if "deletionProtection" in changed:
        wanted = str(bool(state.get("deletionProtection"))).lower()
        google.done("compute", "POST", f"{at}/setDeletionProtection", doing=doing, deletionProtection=wanted)
    if "resourcePolicies" in changed:
        for verb, side in (("removeResourcePolicies", olds), ("addResourcePolicies", state)):
            if given := side.get("resourcePolicies"):
                google.done("compute", "POST", f"{at}/{verb}", {"resourcePolicies": [given]}, doing=doing)
    if "attachedDisks" in changed:
        _disks(google, at, state, found)
    if "scheduling" in changed and not _limit_changed(state, olds):
        google.done("compute", "POST", f"{at}/setScheduling", _changed(kind, state, "scheduling"), doing=doing)
    _restarting(google, kind, at, state, olds, changed, found["status"])
    mapped = {"metadata", "metadataStartupScript", "tags", "deletionProtection", "resourcePolicies", "attachedDisks"}
    if rest := changed - mapped - {*_STOPPED, kind.labels, "scheduling", "desiredStatus"}:
        raise UnmappedName(f"a change of {', '.join(sorted(rest))} is not mapped for an instance")


def _limit_changed(state: State, olds: State) -> bool:
    before, after = (side.get("scheduling", {}).get("maxRunDuration") for side in (olds, state))
    return before != after


def _changed(kind: Kind, state: State, name: str) -> Any:
    value = to_body(kind.document, kind.schema, {name: state[name]} if name in state else {name: {}}, kind.names)
    return next(iter(value.values()))


def _disks(google: Google, at: str, state: State, found: Json) -> None:
    wanted = {disk["source"].rpartition("/")[2]: disk for disk in state.get("attachedDisks", [])}
    there = {d["source"].rpartition("/")[2]: d for d in found["disks"] if not d["boot"] and "source" in d}
    for name in there.keys() - wanted.keys():
        device = there[name]["deviceName"]
        google.done("compute", "POST", f"{at}/detachDisk", doing="detaching disk", deviceName=device)
    for name in wanted.keys() - there.keys():
        google.done("compute", "POST", f"{at}/attachDisk", _attached(wanted[name]), doing="attaching disk")


def _restarting(google: Google, kind: Kind, at: str, state: State, olds: State, changed: set[str], status: str) -> None:
    """Start or stop the instance as desired, and change what changes only while it is stopped."""
    desired = state.get("desiredStatus", "")
    names = sorted(changed & _STOPPED.keys())
    limit = "scheduling" in changed and _limit_changed(state, olds)
    if names or limit:
        if status == "RUNNING" and desired != "TERMINATED" and not state.get("allowStoppingForUpdate"):
            raise UnmappedName(
                "Changing the machine_type, min_cpu_platform, service_account, enable_display,"
                " shielded_instance_config, scheduling.node_affinities, scheduling.max_run_duration or"
                " network_interface.[#d].(network/subnetwork/subnetwork_project) or advanced_machine_features on a"
                " started instance requires stopping it. To acknowledge this, please set allow_stopping_for_update ="
                ' true in your config. You can also stop it by setting desired_status = "TERMINATED", but the instance'
                " will not be restarted after the update."
            )
        if status != "TERMINATED":
            google.done("compute", "POST", f"{at}/stop", doing="stopping instance")
        for name in names:
            http = "PATCH" if _STOPPED[name].startswith("update") else "POST"
            google.done("compute", http, f"{at}/{_STOPPED[name]}", _alone(kind, state, name), doing="updating instance")
        if limit:
            google.done("compute", "POST", f"{at}/setScheduling", _changed(kind, state, "scheduling"), doing="updating")
        if desired != "TERMINATED" and status == "RUNNING":
            google.done("compute", "POST", f"{at}/start", doing="starting instance")
    elif desired and desired != status:
        verb = "start" if desired == "RUNNING" else "stop"
        google.done("compute", "POST", f"{at}/{verb}", doing="updating status")


def _alone(kind: Kind, state: State, name: str) -> Json:
    if name == "machineType":
        kinds = f"projects/{state['project']}/zones/{state['zone']}/machineTypes"
        return {name: f"{kinds}/{state[name].rpartition('/')[2]}"}
    if name == "serviceAccount":
        return state.get(name, {})
    if name in ("enableDisplay", "minCpuPlatform"):
        return {name: state.get(name, False if name == "enableDisplay" else "")}
    return _changed(kind, state, name)


def delete_instance(google: Google, kind: Kind, id: str, outs: State) -> None:
    if outs.get("deletionProtection"):
        said = (
            f"Cannot delete instance {outs['name']}: instance Deletion Protection is enabled. Set deletion_protection"
        )
        raise UnmappedName(
            f'{said} to false for this resource and run "terraform apply" before attempting to delete it.'
        )
    if google.get("compute", id) is not None:
        google.done("compute", "DELETE", id, doing="instance to delete")
