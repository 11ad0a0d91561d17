"""Compute Engine v1: networks, addresses, disks, reservations, and what the catalogue knows of zones and machines."""

import ipaddress
import json
import re
import secrets
from functools import cache
from typing import Any

from accel.catalog.machines import machines
from accel.catalog.places import regions, where

from ..errors import ApiError
from ..world import Call, Collection, Json, stamp

_LINKS = re.compile(r"(?:https://(?:www|compute)\.googleapis\.com/(?:compute/v1/)?)?(projects/[^/]+/.+)")
_SHORT = {"network": "global/networks", "subnetwork": "regions/{region}/subnetworks", "type": "zones/{zone}/diskTypes"}
"""Targets of a bare name, or one without project; gcloud and the provider expand them before they send."""


@cache
def zones() -> dict[str, str]:
    """Return the region of each zone that the catalogue knows."""
    found: dict[str, str] = {}
    for machine in machines("gcp"):
        for region, inside in where("gcp", machine.name).items():
            found |= dict.fromkeys(inside, region)
    return found


@cache
def offered_machines(zone: str) -> tuple[Any, ...]:
    """Return the machines and accelerators that a zone is known to offer, or its region where no zone is known."""
    region = zones().get(zone, zone.rpartition("-")[0])
    return tuple(
        machine
        for machine in machines("gcp")
        if zone in (found := where("gcp", machine.name)).get(region, ()) or (region in found and not found[region])
    )


def check_place(call: Call) -> None:
    """Refuse a zone or region that does not exist. Source of the wording:
    https://github.com/hashicorp/terraform-provider-google/issues/5860."""
    kind, _, name = "/".join(call.key.split("/")[2:4]).partition("/")
    if (kind == "zones" and name not in zones()) or (kind == "regions" and name not in regions("gcp")):
        project = call.path.get("project", "")
        raise ApiError(400, f"Invalid value for field '{kind[:-1]}': '{name}'. Unknown {kind[:-1]}.", "invalid") from (
            LookupError(f"projects/{project}/{kind}/{name}")
        )


def complete_links(call: Call, item: Json) -> None:
    """Replace partial links by full ones. A network or subnetwork that they name has to exist."""
    project = call.path["project"]
    place = {"region": call.path.get("region", ""), "zone": call.path.get("zone", "")}
    for name, value in item.items():
        if not isinstance(value, str) or name not in (*_SHORT, "resourcePolicies"):
            continue
        if name == "type" and not call.method.collection.endswith("isks"):
            continue  # for example, of a commitment it is a word
        found = _LINKS.fullmatch(value)
        within = value if "/" in value else f"{_SHORT[name].format(**place)}/{value}"
        item[name] = f"{call.link}{found[1] if found else f'projects/{project}/{within}'}"
        target = item[name].removeprefix(call.link)
        if name != "type" and call.find(target) is None:
            raise ApiError(404, f"The resource '{target}' was not found")


def _made(call: Call, key: str, item: Json) -> None:
    check_place(call)
    if not re.fullmatch(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?", item["name"]):
        said = f"Invalid value for field 'resource.name': '{item['name']}'."
        raise ApiError(400, f"{said} Must be a match of regex '(?:[a-z](?:[-a-z0-9]{{0,61}}[a-z0-9])?)'", "invalid")
    complete_links(call, item)
    kind = call.method.collection.rpartition(".")[2]
    singular = _SINGULAR.get(kind, kind.removesuffix("s"))
    for place in ("region", "zone"):
        if place in call.path:
            item[place] = f"{call.link}projects/{call.path['project']}/{place}s/{call.path[place]}"
    item |= {
        "kind": f"compute#{singular}",
        "id": str(call.world.number()),
        "creationTimestamp": stamp(),
        "selfLink": f"{call.link}{key}",
    }
    _MORE.get(kind, lambda call, item: None)(call, item)


_SINGULAR = {
    **{"addresses": "address", "globalAddresses": "address", "resourcePolicies": "resourcePolicy"},
    **{"regionInstanceTemplates": "instanceTemplate", "regionInstanceGroupManagers": "instanceGroupManager"},
    "regionCommitments": "commitment",
}


def _network(call: Call, item: Json) -> None:
    item.setdefault("autoCreateSubnetworks", True)
    item.setdefault("routingConfig", {}).setdefault("routingMode", "REGIONAL")
    item.setdefault("networkFirewallPolicyEnforcementOrder", "AFTER_CLASSIC_FIREWALL")
    item["selfLinkWithId"] = f"{call.link}projects/{call.path['project']}/global/networks/{item['id']}"


def _subnetwork(call: Call, item: Json) -> None:
    for required in ("network", "ipCidrRange"):
        if required not in item:
            raise ApiError(400, f"Required field 'resource.{required}' not specified", "required")
    try:
        own = ipaddress.ip_network(item["ipCidrRange"])
    except ValueError:
        said = f"Invalid value for field 'resource.ipCidrRange': '{item['ipCidrRange']}'."
        raise ApiError(400, f"{said} Invalid IPCidrRange: {item['ipCidrRange']}", "invalid") from None
    item["gatewayAddress"] = str(own[1])
    item["fingerprint"] = secrets.token_urlsafe(9)
    for name, value in (("privateIpGoogleAccess", False), ("purpose", "PRIVATE"), ("stackType", "IPV4_ONLY")):
        item.setdefault(name, value)
    for other in call.world.below("compute", f"projects/{call.path['project']}/regions/-/subnetworks"):
        ranges = [other["ipCidrRange"], *(r["ipCidrRange"] for r in other.get("secondaryIpRanges", []))]
        mine = [item["ipCidrRange"], *(r["ipCidrRange"] for r in item.get("secondaryIpRanges", []))]
        for a in (r for r in mine if other["network"] == item["network"]):
            if any(ipaddress.ip_network(a).overlaps(ipaddress.ip_network(b)) for b in ranges):
                where = f"existing subnetwork '{other['name']}' in region '{other['region'].rpartition('/')[2]}'"
                said = f"Invalid value for field 'resource.ipCidrRange': '{a}'."
                raise ApiError(400, f"{said} Invalid IPCidrRange: {a} conflicts with {where}.", "invalid")


def _firewall(call: Call, item: Json) -> None:
    item |= {"direction": item.get("direction", "INGRESS"), "priority": item.get("priority", 1000)}
    item |= {"disabled": item.get("disabled", False), "logConfig": item.get("logConfig", {"enable": False})}
    if item["direction"] == "INGRESS" and not {"sourceRanges", "sourceTags", "sourceServiceAccounts"} & item.keys():
        item["sourceRanges"] = ["0.0.0.0/0"]


def _address(call: Call, item: Json) -> None:
    item.setdefault("addressType", "EXTERNAL")
    item["status"] = "RESERVED"
    item.setdefault("address", f"203.0.113.{call.world.number() % 250 + 2}")  # TEST-NET-3: nobody's
    if item["addressType"] == "EXTERNAL":
        item.setdefault("networkTier", "PREMIUM")


def _disk(call: Call, item: Json) -> None:
    item.setdefault("sizeGb", "500")  # https://cloud.google.com/compute/docs/disks: the default of a standard disk
    item.setdefault("type", f"{item['zone']}/diskTypes/pd-standard")
    item |= {"status": "READY", "labelFingerprint": secrets.token_urlsafe(9), "physicalBlockSizeBytes": "4096"}


def _reservation(call: Call, item: Json) -> None:
    item["status"] = "READY"
    sku = item.get("specificReservation", {})
    sku.setdefault("inUseCount", "0")
    kind = sku.get("instanceProperties", {}).get("machineType", "")
    if {kind, f"{call.path['zone']}/{kind}"} & call.world.stockouts:
        zone = f"projects/{call.path['project']}/zones/{call.path['zone']}"
        said = f"The zone '{zone}' does not have enough resources available to fulfill the request."
        raise ApiError(503, f"{said} Try a different zone, or try again later.", "ZONE_RESOURCE_POOL_EXHAUSTED")


_MORE = {
    "networks": _network,
    "subnetworks": _subnetwork,
    "firewalls": _firewall,
    "addresses": _address,
    "globalAddresses": _address,
    "disks": _disk,
    "reservations": _reservation,
    "resourcePolicies": lambda call, item: item.update(status="READY"),
}


def find_user(call: Call, key: str) -> str:
    """Return what still refers to a resource, or ""."""
    wanted = re.compile(rf'"[^"]*{re.escape(key)}"')
    for name, item in sorted(call.world.items.items()):
        if "/operations/" not in name and name != f"{call.api}/{key}" and wanted.search(json.dumps(item)):
            return name.partition("/")[2]
    return ""


def _used(call: Call, key: str) -> str:
    # Wording: https://github.com/GoogleCloudPlatform/terraform-google-three-tier-web-app/issues/167 and, where the
    # call itself is refused, https://github.com/genevieve/leftovers/issues/6.
    kind = key.split("/")[-2].removesuffix("s").replace("Policie", "Policy").replace("eTemp", "e_temp")
    user = find_user(call, key)
    return f"The {kind} resource '{key}' is already being used by '{user}'" if user else ""


def _network_gone(call: Call, key: str) -> str:
    said = _used(call, key)
    return f"RESOURCE_IN_USE_BY_ANOTHER_RESOURCE: {said}" if said else ""


def refuse_if_in_use(call: Call, key: str) -> None:
    if said := _used(call, key):
        raise ApiError(400, said, "resourceInUseByAnotherResource")


def _machine_types(call: Call) -> list[Json]:
    check_place(call)
    place = "/".join(call.key.split("/")[:4])
    return [
        {
            "kind": "compute#machineType",
            "name": machine.name,
            "guestCpus": machine.vcpus,
            "memoryMb": machine.memory_mib,
            "zone": call.path["zone"],
            "selfLink": f"{call.link}{place}/machineTypes/{machine.name}",
        }
        for machine in offered_machines(call.path["zone"])
        if machine.kind not in ("n1-attach", "tpu-slice")
    ]


def _places(call: Call) -> list[Json]:
    kind = call.key.split("/")[2]
    link = f"{call.link}projects/{call.path['project']}"
    rows: list[Json] = []
    for name in regions("gcp") if kind == "regions" else sorted(zones()):
        row: Json = {"kind": f"compute#{kind[:-1]}", "name": name, "status": "UP", "selfLink": f"{link}/{kind}/{name}"}
        inside = sorted(zone for zone, region in zones().items() if region == name)
        more = {"region": f"{link}/regions/{zones()[name]}"} if kind == "zones" else {}
        rows.append(row | more | ({"zones": [f"{link}/zones/{zone}" for zone in inside]} if inside else {}))
    return rows


def compute_collection(name: str, schema: str, **more: Any) -> Collection:
    words = {"exists": "The resource '{key}' already exists", "missing": "The resource '{key}' was not found"}
    return Collection(id=f"compute.{name}", schema=schema, style="compute", **{"made": _made, **words, **more})


COLLECTIONS = (
    compute_collection("networks", "Network", gone=_network_gone),
    compute_collection("subnetworks", "Subnetwork", leaving=refuse_if_in_use),
    compute_collection("routers", "Router"),
    compute_collection("firewalls", "Firewall"),
    compute_collection("addresses", "Address", leaving=refuse_if_in_use),
    compute_collection("globalAddresses", "Address", leaving=refuse_if_in_use),
    compute_collection("disks", "Disk", leaving=refuse_if_in_use),
    compute_collection("reservations", "Reservation", leaving=refuse_if_in_use),
    compute_collection("resourcePolicies", "ResourcePolicy", leaving=refuse_if_in_use),
    compute_collection("zones", "Zone", listed=_places),
    compute_collection("regions", "Region", listed=_places),
    compute_collection("machineTypes", "MachineType", listed=_machine_types),
    compute_collection("globalOperations", "Operation"),
    compute_collection("regionOperations", "Operation"),
    compute_collection("zoneOperations", "Operation"),
)


def _grown(call: Call, item: Json) -> Json:
    body = call.body
    if int(body["sizeGb"]) <= int(item["sizeGb"]):
        said = f"Invalid value for field 'sizeGb': '{body['sizeGb']}'. New disk size '{body['sizeGb']}' GiB must be"
        raise ApiError(400, f"{said} larger than existing size '{item['sizeGb']}' GiB.", "invalid")
    return {"sizeGb": str(body["sizeGb"])}


def set_labels(call: Call, item: Json) -> Json:
    if call.body.get("labelFingerprint") != item.get("labelFingerprint"):
        raise ApiError(412, "Labels fingerprint either invalid or resource labels have changed", "conditionNotMet")
    return {"labels": call.body.get("labels", {}), "labelFingerprint": secrets.token_urlsafe(9)}


CHANGES = {
    "compute.disks.resize": _grown,
    "compute.disks.setLabels": set_labels,
    "compute.addresses.setLabels": set_labels,
    "compute.globalAddresses.setLabels": set_labels,
    "compute.reservations.resize": lambda call, item: {
        "specificReservation": {**item["specificReservation"], "count": str(call.body["specificSkuCount"])}
    },
    "compute.subnetworks.setPrivateIpGoogleAccess": lambda call, item: {
        "privateIpGoogleAccess": call.body["privateIpGoogleAccess"]
    },
    "compute.subnetworks.expandIpCidrRange": lambda call, item: {"ipCidrRange": call.body["ipCidrRange"]},
    "compute.networks.switchToCustomMode": lambda call, item: {"autoCreateSubnetworks": False},
}
"""Changes that methods of their own make, from the call and the resource."""
