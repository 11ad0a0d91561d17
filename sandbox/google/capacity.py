"""Capacity of machines: quotas, stock, current and future reservations, commitments, and the types of each zone."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from accel.catalog.quotas import quota_for

from .compute.api import check_place, compute_collection, zones
from .compute.disks import list_types as disk_types
from .compute.instance_body import accelerator_types, check_machine_type
from .errors import ApiError, Failure
from .world import Call, Json, Pending, World, stamp

_SERVICE_UNAVAILABLE = (503, "SERVICE UNAVAILABLE")
_HELP = {
    "help": {
        "links": [
            {
                "description": "Troubleshooting documentation",
                "url": "https://cloud.google.com/compute/docs/resource-error",
            }
        ]
    }
}


def stockout_failure(call: Call, item: Json) -> Failure | None:
    """Return the failure of a zone that is out of the machine. It names the region's other zones that have it. Form:
    https://github.com/kubernetes/k8s.io/issues/9834; status:
    https://github.com/scylladb/scylla-cluster-tests/issues/12477."""
    zone, kind = call.path["zone"], item["machineType"].rpartition("/")[2]
    if not _out(call.world, zone, kind):
        return None
    gpus = {each["acceleratorType"].rpartition("/")[2]: each["acceleratorCount"] for each in item["guestAccelerators"]}
    region = zones().get(zone)
    others = [
        other
        for other, of in sorted(zones().items())
        if of == region and other != zone and not _out(call.world, other, kind) and _has(other, kind, gpus)
    ]
    what = f"A {kind} VM instance" + "".join(f" with {n} {name} accelerator(s)" for name, n in gpus.items())
    said = f"{what} is currently unavailable in the {zone} zone."
    if others:
        said += f" Consider trying your request in the {', '.join(others)} zone(s), which currently has capacity to"
        said += " accommodate your request."
    said += " Alternatively, you can try your request again with a different VM hardware configuration or at a later"
    said += " time. For more information, see the troubleshooting documentation."
    told = {"zone": zone, "vmType": kind, "zonesAvailable": ",".join(others)}
    told |= {"attachment": ",".join(f"{name}:{n}" for name, n in gpus.items())} if gpus else {}
    info = {"reason": "resource_availability", "domain": "compute.googleapis.com", "metadatas": told}
    return Failure(
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        f"The zone 'projects/{call.path['project']}/zones/{zone}' does not have enough resources available to fulfill"
        " the request.  '(resource type:compute)'.",
        _SERVICE_UNAVAILABLE,
        (_HELP, {"localizedMessage": {"locale": "en-US", "message": said}}, {"errorInfo": info}),
    )


def _out(world: World, zone: str, kind: str) -> bool:
    return bool({kind, f"{zone}/{kind}"} & world.stockouts)


def _has(zone: str, kind: str, gpus: dict[str, Any]) -> bool:
    try:
        check_machine_type(kind, zone, "resource")
    except ApiError:
        return False
    return gpus.keys() <= accelerator_types(zone).keys()


def quota_failure(call: Call, item: Json) -> Failure | None:
    """Return the failure for the first quota, among those set by a test, that the instance would exceed. Wording:
    https://github.com/skypilot-org/skypilot (its comments on QUOTA_EXCEEDED); details: QuotaExceededInfo."""
    region = zones().get(call.path["zone"], "")
    used = _usage(call, region, item)
    for (place, metric), (count, limit_name) in used.items():
        limit = call.world.quota.get(f"compute/{place}/{metric}")
        if limit is None or count <= limit:
            continue
        where = f"in region {place}." if place != "global" else "globally."
        info = {
            "metricName": f"compute.googleapis.com/{metric.lower()}",
            "limitName": limit_name,
            "limit": float(limit),
            "dimensions": {"region": place},
        }
        said = f"Quota '{metric}' exceeded.  Limit: {float(limit)} {where}"
        return Failure("QUOTA_EXCEEDED", said, (403, "FORBIDDEN"), ({"quotaInfo": info},))
    return None


def _usage(call: Call, region: str, new: Json) -> dict[tuple[str, str], tuple[int, str]]:
    """Return the usage, with the new instance, of each quota that it counts towards, and the limit's name."""
    mine = metrics(new, region)
    found: dict[tuple[str, str], tuple[int, str]] = {}
    for at, (_, limit_name) in mine.items():
        total = 0
        for other in call.world.below("compute", f"projects/{call.path['project']}/zones/-/instances"):
            if other is new or other["status"] not in ("TERMINATED", "PROVISIONING", "STAGING"):
                where = zones().get(other["zone"].rpartition("/")[2], "")
                total += metrics(other, where).get(at, (0, ""))[0]
        found[at] = total, limit_name
    return found


def metrics(item: Json, region: str) -> dict[tuple[str, str], tuple[int, str]]:
    """Return what an instance counts towards: amount and limit's name, by place and metric."""
    spot = item["scheduling"]["preemptible"]
    found: dict[tuple[str, str], tuple[int, str]] = {}
    for each in item["guestAccelerators"]:
        count = int(each["acceleratorCount"])
        quota = quota_for("gcp", each["acceleratorType"].rpartition("/")[2], spot)
        if quota:
            found[region, quota.code] = count, quota.quota_id
        found["global", "GPUS_ALL_REGIONS"] = count, "GPUS-ALL-REGIONS-per-project"
    return found


def count_consumption(call: Call) -> None:
    for reservation in call.world.below("compute", f"projects/{call.path['project']}/zones/-/reservations"):
        if "specificReservation" in reservation:
            reservation["specificReservation"]["inUseCount"] = str(count_instances(call, reservation))


def count_instances(call: Call, reservation: Json) -> int:
    every = call.world.below("compute", f"projects/{call.path['project']}/zones/-/instances")
    used = (item.get("resourceStatus", {}).get("reservationConsumptionInfo", {}) for item in every)
    return sum(info.get("consumedReservation") == reservation["selfLink"] for info in used)


def _accelerator_types(call: Call) -> list[Json]:
    check_place(call)
    place = "/".join(call.key.split("/")[:4])
    return [
        {"kind": "compute#acceleratorType", "name": name, "maximumCardsPerInstance": most,
         "zone": f"{call.link}{place}", "selfLink": f"{call.link}{place}/acceleratorTypes/{name}"}
        for name, most in sorted(accelerator_types(call.path["zone"]).items())
    ]  # fmt: skip


_new_commitment: Any = compute_collection("regionCommitments", "Commitment").made
_MONTHS = {"TWELVE_MONTH": 12, "THIRTY_SIX_MONTH": 36}


def _commitment(call: Call, key: str, item: Json) -> None:
    """Complete a commitment. It cannot be deleted: the API has no method for that. Google's begins on the next day
    (from memory), the sandbox's at once."""
    _new_commitment(call, key, item)
    if item.get("plan") not in _MONTHS:
        raise ApiError(400, "Required field 'resource.plan' not specified", "required")
    now = datetime.now(UTC)
    end = now.replace(year=now.year + _MONTHS[item["plan"]] // 12, day=min(now.day, 28))
    item |= {"status": "NOT_YET_ACTIVE", "startTimestamp": stamp(), "endTimestamp": end.isoformat()}
    item.setdefault("category", "MACHINE")
    item.setdefault("type", "GENERAL_PURPOSE")
    item.setdefault("autoRenew", False)


def _active(call: Call, key: str) -> str:
    (call.find(key) or {})["status"] = "ACTIVE"
    return ""


_new_future: Any = compute_collection("futureReservations", "FutureReservation").made


def _future(call: Call, key: str, item: Json) -> None:
    """Complete a future reservation. States:
    https://cloud.google.com/compute/docs/instances/future-reservations-overview. Google approves after days, the
    sandbox at once, unless the machine is out of stock. The reservation is created when the window begins."""
    _new_future(call, key, item)
    if "startTime" not in item.get("timeWindow", {}):
        raise ApiError(400, "Required field 'resource.timeWindow.startTime' not specified", "required")
    item.setdefault("planningStatus", "DRAFT")
    item["selfLinkWithId"] = f"{call.link}{key.rpartition('/')[0]}/{item['id']}"
    _procure(call, key, item)


def _procure(call: Call, key: str, item: Json) -> None:
    draft = item["planningStatus"] == "DRAFT"
    item["status"] = {"procurementStatus": "DRAFTING" if draft else "PENDING_APPROVAL", "fulfilledCount": "0"}
    if not draft:
        call.world.pending.append(
            Pending("", time.monotonic() + 2 * call.world.settle_s, lambda: _approved(call, key, item))
        )


def _approved(call: Call, key: str, item: Json) -> None:
    if call.find(key) is not item or item["status"]["procurementStatus"] != "PENDING_APPROVAL":
        return
    sku = item.get("specificSkuProperties", {})
    kind = sku.get("instanceProperties", {}).get("machineType", "")
    out = _out(call.world, call.path["zone"], kind)
    item["status"]["procurementStatus"] = "DECLINED" if out else "APPROVED"
    begins = datetime.fromisoformat(item["timeWindow"]["startTime"]) - datetime.now(UTC)
    if not out:
        due = time.monotonic() + max(begins, timedelta()).total_seconds()
        call.world.pending.append(Pending("", due, lambda: _fulfilled(call, key, item, sku)))


def _fulfilled(call: Call, key: str, item: Json, sku: Json) -> None:
    if call.find(key) is not item or item["status"]["procurementStatus"] != "APPROVED":
        return
    zone, name = key.partition("/futureReservations/")[0], item.get("namePrefix") or item["name"]
    made: Json = {
        "kind": "compute#reservation",
        "id": str(call.world.number()),
        "name": item.get("reservationName") or f"{name}-{call.world.number() % 10**6}",
        "zone": f"{call.link}{zone}",
        "status": "READY",
        "creationTimestamp": stamp(),
        "specificReservationRequired": item.get("specificReservationRequired", True),
        "specificReservation": {
            "count": sku.get("totalCount", "0"),
            "inUseCount": "0",
            "instanceProperties": sku.get("instanceProperties", {}),
        },
    }
    made["selfLink"] = f"{call.link}{zone}/reservations/{made['name']}"
    call.world.items[f"compute/{zone}/reservations/{made['name']}"] = made
    done = {"procurementStatus": "FULFILLED", "autoCreatedReservations": [made["selfLink"]]}
    item["status"] |= {**done, "fulfilledCount": sku.get("totalCount", "0")}


def _resubmitted(call: Call, item: Json, news: Json) -> None:
    if item["status"]["procurementStatus"] not in ("DRAFTING", "PENDING_APPROVAL"):
        said = f"Future reservation {item['name']} is {item['status']['procurementStatus']}: it cannot be changed."
        raise ApiError(400, said, "invalid")
    if news.get("planningStatus") == "SUBMITTED":
        call.world.pending.append(
            Pending("", time.monotonic() + 2 * call.world.settle_s, lambda: _procure(call, call.key, item))
        )


COLLECTIONS = (
    compute_collection("acceleratorTypes", "AcceleratorType", listed=_accelerator_types),
    compute_collection("diskTypes", "DiskType", listed=disk_types),
    compute_collection("regionCommitments", "Commitment", made=_commitment, settled=_active),
    compute_collection("futureReservations", "FutureReservation", made=_future, changed=_resubmitted),
)
CHANGES = {
    "compute.futureReservations.cancel": lambda call, item: {
        "status": {**item["status"], "procurementStatus": "CANCELLED"}
    },
}
