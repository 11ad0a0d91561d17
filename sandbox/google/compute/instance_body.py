"""Body of a virtual machine, for instances and templates: checked as Compute Engine does, and completed."""

import ipaddress
import json
import re
import secrets
from typing import Any

from accel.catalog.gpu_attachments import gpu_attachments, n1
from accel.catalog.machines import Machine, machines
from accel.catalog.places import where
from accel.rules.gcp import machines as gcp_machines

from .. import PROJECT_NUMBER
from ..errors import ApiError
from ..world import Call, Json
from .api import offered_machines, zones

_CPUS = re.compile(
    r"(?:e2|n1|n2d?|n4|t2[ad]|c2d?|c3d?|c4[ad]?|m1|m2|m3)-(?:micro|small|medium|(?:standard|high[a-z]+|custom)-[\w-]+)"
)
"""CPU machine types, of which the catalogue has a few."""
_LINKS = re.compile(r"(?:https://(?:www|compute)\.googleapis\.com/(?:compute/v1/)?)?(projects/[^/]+/.+)")


def link_key(call: Call, value: str, folder: str) -> str:
    """Return the key of a link, a part of one, or a bare name in `folder` ("regions/r/subnetworks")."""
    found = _LINKS.fullmatch(value)
    return found[1] if found else f"projects/{call.path['project']}/{value if '/' in value else f'{folder}/{value}'}"


def existing(call: Call, value: str, folder: str) -> Json:
    """Raise ApiError where the resource of `link_key` does not exist."""
    key = link_key(call, value, folder)
    found = call.find(key)
    if found is None:
        raise ApiError(404, f"The resource '{key}' was not found")
    return found


def machine_of(name: str) -> Machine | None:
    return next((machine for machine in machines("gcp") if machine.name == name), None)


def check_machine_type(given: str, zone: str, at: str) -> str:
    """Return the bare name of an existing machine type. Source of the wording:
    https://github.com/GoogleCloudPlatform/bank-of-anthos/issues/1234."""
    name = given.rpartition("/")[2]
    known = {machine.name for machine in offered_machines(zone) if machine.kind not in ("n1-attach", "tpu-slice")}
    if name in known or n1(name) or (machine_of(name) is None and _CPUS.fullmatch(name)):
        return name
    said = f"Invalid value for field '{at}.machineType': '{given}'. Machine type with name '{name}' does not exist in"
    raise ApiError(400, f"{said} zone '{zone}'.", "invalid")


def accelerator_types(zone: str) -> dict[str, int]:
    """Return the maximum of each accelerator that a machine of the zone has."""
    found: dict[str, int] = {}
    for machine in offered_machines(zone):
        if machine.kind == "accelerator":
            found[machine.accelerator] = max(found.get(machine.accelerator, 1), machine.whole_accelerators)
    for name, numbers in gpu_attachments().items():
        for count in numbers:
            places = where("gcp", f"n1+{name}x{count}")
            if zone in places.get(zones().get(zone, ""), ()):
                found[name] = max(found.get(name, 1), count)
    return found


def accelerators(given: list[Json], machine_type: str, zone: str, project: str) -> list[Json]:
    """Return bare names and numbers of the machine's accelerators: built in, or attached. Source of the wording for a
    machine that does not take them: https://github.com/skypilot-org/skypilot/issues/212. Google's own words for a wrong
    number are not known."""
    machine = machine_of(machine_type)
    built_in = machine and machine.kind == "accelerator" and machine.whole_accelerators
    made: list[Json] = []
    for each in given:
        name, count = each.get("acceleratorType", "").rpartition("/")[2], int(each.get("acceleratorCount", 1))
        if name not in accelerator_types(zone):
            raise ApiError(404, f"The resource 'projects/{project}/zones/{zone}/acceleratorTypes/{name}' was not found")
        if gcp_machines.machine(machine_type, name, count, zone):
            raise ApiError(400, f"[{name}, {machine_type}] features are not compatible for creating instance.")
        made.append({"acceleratorType": name, "acceleratorCount": count})
    if machine and built_in and not made:
        made.append({"acceleratorType": machine.accelerator, "acceleratorCount": machine.whole_accelerators})
    return made


def has_accelerators(machine_type: str, given: list[Json]) -> bool:
    machine = machine_of(machine_type)
    return bool(given or (machine and machine.accelerator))


def scheduling(item: Json, has_gpus: bool, at: str) -> None:
    """Check and complete the scheduling. Sources of the wordings: https://github.com/iterative/cml/issues/1398,
    https://github.com/percona/mongo_terraform_ansible/issues/34, https://github.com/skypilot-org/skypilot/issues/3235,
    and for OnHostMaintenance comments of public code that works around it."""
    asked: Json = item.setdefault("scheduling", {})
    preemptible, model = asked.get("preemptible", False), asked.get("provisioningModel")
    spot = preemptible or model == "SPOT"
    if preemptible and model == "STANDARD":
        said = f"Invalid value for field '{at}.scheduling.provisioningModel': 'STANDARD'. For preemptible, only allowed"
        raise ApiError(400, f"{said} provisioning_model value is SPOT", "invalid")
    if spot:
        said = f"Invalid value for field '{at}.scheduling.preemptible': 'true'."
        said = f"{said} Scheduling must have preemptible be false"
        if asked.get("automaticRestart"):
            raise ApiError(400, f"{said} when AutomaticRestart is true.", "invalid")
        if asked.get("onHostMaintenance") == "MIGRATE":
            raise ApiError(400, f"{said} when OnHostMaintenance isn't TERMINATE.", "invalid")
    defaults = {
        "onHostMaintenance": "TERMINATE" if spot else "MIGRATE",
        "automaticRestart": not spot,
        "preemptible": spot,
        "provisioningModel": "SPOT" if spot else "STANDARD",
    }
    if spot or "maxRunDuration" in asked or "terminationTime" in asked:
        defaults["instanceTerminationAction"] = "STOP"
    for name, value in defaults.items():
        asked.setdefault(name, value)
    if has_gpus and asked["onHostMaintenance"] == "MIGRATE":
        raise ApiError(400, "Instances with guest accelerators do not support live migration.")


def interfaces(call: Call, item: Json, region: str, at: str, *, addresses: bool = True) -> None:
    """Check networks and subnetworks, and complete their links; an instance gets addresses too. The message for no
    interface at all is known; its beginning is from memory."""
    if not item.get("networkInterfaces"):
        said = f"Invalid value for field '{at}.networkInterfaces': ''. At least one network interface is required."
        raise ApiError(400, said, "invalid")
    for index, nic in enumerate(item["networkInterfaces"]):
        subnetwork: Json | None = None
        if given := nic.get("subnetwork"):
            subnetwork = existing(call, given, f"regions/{region}/subnetworks")
            nic.setdefault("network", subnetwork["network"])
        network = existing(call, nic.get("network") or "default", "global/networks")
        subnetwork = subnetwork or _subnetwork(call, network, region, nic, f"{at}.networkInterfaces[{index}]")
        nic |= {"network": network["selfLink"]} | ({"subnetwork": subnetwork["selfLink"]} if subnetwork else {})
        if not addresses:
            continue
        nic |= {"kind": "compute#networkInterface", "name": f"nic{index}", "fingerprint": secrets.token_urlsafe(9)}
        nic.setdefault("stackType", "IPV4_ONLY")
        inside = ipaddress.ip_network(subnetwork["ipCidrRange"] if subnetwork else "10.128.0.0/20")
        nic.setdefault("networkIP", str(inside[call.world.number() % (inside.num_addresses - 4) + 2]))
        for access in nic.get("accessConfigs", []):
            access |= {"kind": "compute#accessConfig", "name": access.get("name", "external-nat")}
            access.setdefault("type", "ONE_TO_ONE_NAT")
            access.setdefault("networkTier", "PREMIUM")
            access.setdefault("natIP", f"203.0.113.{call.world.number() % 250 + 2}")  # TEST-NET-3: nobody's


def _subnetwork(call: Call, network: Json, region: str, nic: Json, at: str) -> Json | None:
    """Return the region's subnetwork of an automatic network, if it is kept here. Wording:
    https://cloud.google.com/dataflow/docs/guides/common-errors (custom subnetmode)."""
    if not region:
        return None
    if not network.get("autoCreateSubnetworks"):
        said = f"Invalid value for field '{at}': '{json.dumps(nic)[:76]}...'."
        raise ApiError(400, f"{said} Subnetwork should be specified for custom subnetmode network", "invalid")
    known = call.world.below("compute", f"projects/{call.path['project']}/regions/{region}/subnetworks")
    return next((each for each in known if each["network"] == network["selfLink"]), None)


def accounts(call: Call, item: Json) -> None:
    """Check that service accounts of this project exist. Source of the wording:
    https://github.com/GoogleCloudPlatform/terraform-google-managed-instance-group/issues/40."""
    for account in item.get("serviceAccounts", []):
        email = account.get("email", "default")
        if email == "default":
            account["email"] = email = f"{PROJECT_NUMBER}-compute@developer.gserviceaccount.com"
        project = call.path["project"]
        own = email.endswith(f"@{project}.iam.gserviceaccount.com")
        if own and f"iam/projects/{project}/serviceAccounts/{email}" not in call.world.items:
            raise ApiError(400, f"The resource 'One of [{email}]' of type 'serviceAccount' was not found.")


def policies(call: Call, item: Json, region: str) -> None:
    if given := item.get("resourcePolicies"):
        item["resourcePolicies"] = [
            existing(call, each, f"regions/{region}/resourcePolicies")["selfLink"] for each in given
        ]


def fingerprints(item: Json) -> None:
    """Set the fingerprints of the fields that only somebody who has read them may change."""
    for name in ("metadata", "tags"):
        item.setdefault(name, {})["fingerprint"] = secrets.token_urlsafe(9)
    item["metadata"]["kind"] = "compute#metadata"
    item["labelFingerprint"] = secrets.token_urlsafe(9)


def metadata_of(item: Json) -> dict[str, str]:
    rows: list[Any] = item.get("metadata", {}).get("items", [])
    return {row["key"]: row.get("value", "") for row in rows}
