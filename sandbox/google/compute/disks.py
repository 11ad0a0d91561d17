"""Disks of virtual machines: created with them, attached, freed, and deleted with them."""

from typing import Any

from ..errors import ApiError
from ..world import Call, Json
from .api import compute_collection
from .images import resolve_image
from .instance_body import existing

TYPES = {
    "pd-standard": ("500", "10GB-65536GB"),
    "pd-balanced": ("100", "10GB-65536GB"),
    "pd-ssd": ("100", "10GB-65536GB"),
    "pd-extreme": ("1000", "500GB-65536GB"),
    "hyperdisk-balanced": ("100", "4GB-65536GB"),
    "hyperdisk-extreme": ("1000", "64GB-65536GB"),
    "hyperdisk-throughput": ("2048", "2048GB-32768GB"),
    "hyperdisk-ml": ("100", "4GB-65536GB"),
    "local-ssd": ("375", "375GB-375GB"),
}
"""Default and valid sizes. Source: https://cloud.google.com/compute/docs/disks, from memory of `gcloud compute
disk-types list`; which types a zone lacks is not known here."""
_new_disk: Any = compute_collection("disks", "Disk").made


def list_types(call: Call) -> list[Json]:
    place = "/".join(call.key.split("/")[:4])
    return [
        {"kind": "compute#diskType", "name": name, "defaultDiskSizeGb": size, "validDiskSize": sizes,
         "zone": f"{call.link}{place}", "selfLink": f"{call.link}{place}/diskTypes/{name}"}
        for name, (size, sizes) in TYPES.items()
    ]  # fmt: skip


def attach(call: Call, key: str, item: Json) -> None:
    """Attach existing disks, and create those that come with the instance. Creates nothing if one is refused."""
    if not item.get("disks"):
        raise ApiError(400, "Invalid value for field 'resource.disks': ''. No disks are specified.", "invalid")
    new: dict[str, Json] = {}
    for index, disk in enumerate(item["disks"]):
        disk |= {"kind": "compute#attachedDisk", "index": index, "boot": bool(disk.get("boot"))}
        disk.setdefault("mode", "READ_WRITE")
        disk.setdefault("interface", "SCSI")
        disk.setdefault("deviceName", f"persistent-disk-{index}")
        if disk.setdefault("type", "PERSISTENT") == "SCRATCH":
            continue
        if source := disk.get("source"):
            take(call, disk, source)
        else:
            name, made = _made(call, item["name"], index, disk)
            new[name] = made
    place = f"projects/{call.path['project']}/zones/{call.path['zone']}"
    for name, made in new.items():
        call.world.items[f"compute/{place}/disks/{name}"] = made
    _use(call, key, item)


def take(call: Call, disk: Json, source: str) -> None:
    """Attach an existing disk that nobody else writes to. Source of the wording:
    https://github.com/GoogleCloudPlatform/terraform-google-three-tier-web-app/issues/167."""
    found = existing(call, source, f"zones/{call.path['zone']}/disks")
    if found.get("users") and disk["mode"] == "READ_WRITE":
        at, user = (link.partition("/compute/v1/")[2] for link in (found["selfLink"], found["users"][0]))
        said = f"The disk resource '{at}' is already being used by '{user}'"
        raise ApiError(400, said, "resourceInUseByAnotherResource")
    disk |= {"source": found["selfLink"], "diskSizeGb": found["sizeGb"]}


def _made(call: Call, instance: str, index: int, disk: Json) -> tuple[str, Json]:
    params: Json = disk.pop("initializeParams", {})
    name = params.get("diskName") or (instance if disk["boot"] else f"{instance}-{index}")
    zone = f"projects/{call.path['project']}/zones/{call.path['zone']}"
    made: Json = {"name": name, "labels": params.get("labels", {})}
    least = 10
    if source := params.get("sourceImage"):
        image = resolve_image(call, source)
        least = int(image["diskSizeGb"])
        made |= {"sourceImage": image["selfLink"], "sourceImageId": image["id"]}
        made["architecture"] = image.get("architecture", "X86_64")
    size = int(params.get("diskSizeGb") or disk.get("diskSizeGb") or least)
    if size < least:
        said = f"Invalid value for field 'resource.disks[{index}].initializeParams.diskSizeGb': '{size}'."
        raise ApiError(400, f"{said} Requested disk size cannot be smaller than the image size ({least} GB)", "invalid")
    kind = params.get("diskType", "pd-standard").rpartition("/")[2]
    if kind not in TYPES:
        raise ApiError(404, f"The resource '{zone}/diskTypes/{kind}' was not found")
    made |= {"sizeGb": str(size), "type": f"{zone}/diskTypes/{kind}"}
    for field in ("provisionedIops", "provisionedThroughput", "resourcePolicies", "description"):
        if field in params:
            made[field] = params[field]
    key = f"{zone}/disks/{name}"
    if call.find(key) is not None:
        raise ApiError(409, f"The resource '{key}' already exists")
    _complete(call, key, made)
    disk |= {"source": made["selfLink"], "diskSizeGb": str(size)}
    return name, made


def _complete(call: Call, key: str, made: Json) -> None:
    inner = Call(**{**vars(call), "key": key, "method": next(
        method for method in call.document.methods if method.id == "compute.disks.insert"
    )})  # fmt: skip
    _new_disk(inner, key, made)


def _use(call: Call, key: str, item: Json) -> None:
    for disk in item["disks"]:
        if found := source_of(call, disk):
            users: list[str] = found.setdefault("users", [])
            if f"{call.link}{key}" not in users:
                users.append(f"{call.link}{key}")


def source_of(call: Call, disk: Json) -> Json | None:
    return call.find(disk["source"].partition("/compute/v1/")[2]) if "source" in disk else None


def free(call: Call, key: str, item: Json) -> None:
    for disk in item.get("disks", []):
        leave(call, key, disk)
        if disk.get("autoDelete") and "source" in disk:
            call.world.items.pop(f"compute/{disk['source'].partition('/compute/v1/')[2]}", None)


def leave(call: Call, key: str, disk: Json) -> None:
    if found := source_of(call, disk):
        found["users"] = [user for user in found.get("users", []) if user != f"{call.link}{key}"]


def add_disk(call: Call, key: str, item: Json, disk: Json) -> None:
    disk.setdefault("mode", "READ_WRITE")
    take(call, disk, disk.get("source", ""))
    index = 1 + max((each["index"] for each in item["disks"]), default=-1)
    disk |= {"kind": "compute#attachedDisk", "index": index, "boot": False, "type": "PERSISTENT"}
    disk.setdefault("deviceName", f"persistent-disk-{index}")
    disk.setdefault("autoDelete", False)
    item["disks"].append(disk)
    _use(call, key, item)
