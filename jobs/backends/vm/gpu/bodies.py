"""The bodies by which an attempt's machines are made: the same each time, as a request that is sent again has to be."""

import copy
from typing import Any

from accel.clouds.google.rest import part, root_of

from .. import instance_metadata, labels
from ..record import Attempt, Record

API = "compute"


def zone_path(record: Record, attempt: Attempt) -> str:
    """Of the attempt's zone, below the API's root."""
    return f"projects/{part(str(record.body['project']))}/zones/{part(attempt.zone)}"


def template_path(record: Record, attempt: Attempt | None = None) -> str:
    """Of instance templates, or of the attempt's."""
    place = f"projects/{part(str(record.body['project']))}/global/instanceTemplates"
    return f"{place}/{part(attempt.name)}" if attempt else place


def group_path(record: Record, attempt: Attempt) -> str:
    """Of the attempt's managed instance group."""
    return f"{zone_path(record, attempt)}/instanceGroupManagers/{part(attempt.name)}"


def instance_path(record: Record, attempt: Attempt, number: int | None = None) -> str:
    """Of the attempt's one instance, or of one in its group."""
    name = attempt.name if number is None else f"{attempt.name}-{number}"
    return f"{zone_path(record, attempt)}/instances/{part(name)}"


def names(record: Record, attempt: Attempt) -> list[str]:
    """Of the instances of a group: the index is in the name."""
    return [f"{attempt.name}-{index}" for index in range(record.hosts)]


def note(record: Record, attempt: Attempt) -> str:
    """The description of what has no labels, by which a job knows its own."""
    return f"{labels.MAKER}={labels.JOBS} {labels.JOB}={record.name} {labels.ATTEMPT}={attempt.number}"


def instance(record: Record, attempt: Attempt) -> dict[str, Any]:
    """Of the one machine of an attempt, with links in the places of a template's names."""
    made: dict[str, Any] = {"name": attempt.name, **_properties(record, attempt)}
    zone = zone_path(record, attempt)
    made["machineType"] = f"{zone}/machineTypes/{made['machineType']}"
    for disk in made["disks"]:
        disk["initializeParams"]["diskType"] = f"{zone}/diskTypes/{disk['initializeParams']['diskType']}"
    for each in made.get("guestAccelerators", []):
        each["acceleratorType"] = f"{zone}/acceleratorTypes/{each['acceleratorType']}"
    if wait_s := record.body["machine"]["wait_s"]:
        made["params"] = {"requestValidForDuration": {"seconds": str(wait_s)}}
    return made


def template(record: Record, attempt: Attempt) -> dict[str, Any]:
    """Of the machines of an attempt that has several."""
    return {
        "name": attempt.name,
        "description": note(record, attempt),
        "properties": _properties(record, attempt),
    }


def group(record: Record, attempt: Attempt) -> dict[str, Any]:
    """Empty: its instances are made by name. What fails is left as it is, and so is a lost one."""
    return {
        "name": attempt.name,
        "description": note(record, attempt),
        "baseInstanceName": attempt.name,
        "instanceTemplate": template_path(record, attempt),
        "targetSize": 0,
        "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"},
        "updatePolicy": {"type": "OPPORTUNISTIC"},
    }


def _properties(record: Record, attempt: Attempt) -> dict[str, Any]:
    machine: dict[str, Any] = record.body["machine"]
    made: dict[str, Any] = copy.deepcopy(machine["properties"])
    own = instance_metadata.labels(record, attempt)
    made["labels"] |= own
    for disk in made["disks"]:
        disk["initializeParams"]["labels"] = own
    made["networkInterfaces"][0]["subnetwork"] = machine["subnetworks"][attempt.zone.rpartition("-")[0]]
    made["metadata"]["items"] += [{"key": key, "value": text} for key, text in _metadata(record, attempt).items()]
    return made


def _metadata(record: Record, attempt: Attempt) -> dict[str, str]:
    """With the group, or the one instance, as what ends the machines."""
    own = group_path(record, attempt) if record.body["machine"]["group"] else instance_path(record, attempt)
    return instance_metadata.metadata(record, attempt, f"{root_of(API)}/{own}")
