"""Google Cloud drift that no property shows: unhealthy pools, clusters and machines, reservations that end."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from accel.clouds.google.api import Google
from accel.contract import buckets
from accel.diagnostics.errors import CloudRefused, NotFound
from accel.json_values import entries, object_at
from jobs.client import declared_tpus

from ..inventory.google import parse_google_time
from .differences import Drift, ending
from .state import Resource, State

AGAIN = "pulumi up --refresh"
OBJECT = "gcp:storage/bucketObject:BucketObject"
TEND = "accel-jobs tend --to TARGET asks for them, and so does gcp.vms.reconcile"
RENEW = "make another before it ends, or take it out of the stack"


@dataclass(frozen=True)
class When:
    """The current time, and the time in which an end counts as near."""

    now: datetime
    within: timedelta


Check = Callable[[str, Mapping[str, Any], When], Iterator[Drift]]


def drift_of_google(state: State, google: Google, when: When) -> list[Drift]:
    """Leave what is deleted to the comparison of properties; refusals: `unknown`. Raise NoCredentials, CloudSilent."""
    found = [drift for each in state.of(*KINDS) for drift in _of(each, google, when)]
    return found + [drift for each in state.of(OBJECT) for drift in _declared(each, google)]


def _of(each: Resource, google: Google, when: When) -> Iterator[Drift]:
    api, version, check = KINDS[each.type]
    try:
        found = google.get(api, f"{version}{each.id}")
    except NotFound:
        return
    except CloudRefused as refused:
        yield Drift("not readable", each.name, "unknown", refused.message, refused.hint or "ask the project's owner")
        return
    yield from check(each.name, found, when)


def _pool(name: str, found: Mapping[str, Any], when: When) -> Iterator[Drift]:
    if (status := found.get("status")) in ("ERROR", "RUNNING_WITH_ERROR"):
        weight = "broken" if status == "ERROR" else "changed"
        yield Drift("pool", name, weight, f"is {status}: {_why(found)}", "make it anew: pulumi up --replace its URN")


def _cluster(name: str, found: Mapping[str, Any], when: When) -> Iterator[Drift]:
    if (status := found.get("status")) in ("ERROR", "DEGRADED"):
        yield Drift("cluster", name, "broken", f"is {status}: {_why(found)}", "the console's page of the cluster")


def _why(found: Mapping[str, Any]) -> str:
    """Read both `statusMessage`, which is deprecated, and `conditions`; GKE fills in both."""
    told = [str(object_at(each).get("message") or "") for each in entries(found.get("conditions"))]
    return "; ".join(filter(None, told)) or str(found.get("statusMessage") or "no reason given")


def _reservation(name: str, found: Mapping[str, Any], when: When) -> Iterator[Drift]:
    if (status := found.get("status")) == "INVALID":
        yield Drift("reservation", name, "broken", f"is {status}", AGAIN)
    yield from ending("reservation", name, parse_google_time(found.get("deleteAtTime")), when.now, when.within, RENEW)


def _future(name: str, found: Mapping[str, Any], when: When) -> Iterator[Drift]:
    """Map states: https://docs.cloud.google.com/compute/docs/reference/rest/v1/futureReservations"""
    how = str(object_at(found, "status").get("procurementStatus") or "")
    if how in ("FAILED", "DECLINED", "CANCELLED", "FAILED_PARTIALLY_FULFILLED"):
        yield Drift("future reservation", name, "broken", f"is {how}", RENEW)
    end = object_at(found, "timeWindow").get("endTime")
    yield from ending("future reservation", name, parse_google_time(end), when.now, when.within, RENEW)


def _commitment(name: str, found: Mapping[str, Any], when: When) -> Iterator[Drift]:
    if not found.get("autoRenew"):
        end = parse_google_time(found.get("endTimestamp"))
        yield from ending("commitment", name, end, when.now, when.within, RENEW)


def _request(name: str, found: Mapping[str, Any], when: When) -> Iterator[Drift]:
    """Map states: https://docs.cloud.google.com/tpu/docs/queued-resources#queued-resource-states"""
    how = str(object_at(found, "state").get("state"))
    if how in ("SUSPENDING", "SUSPENDED", "FAILED"):
        yield Drift("queued resource", name, "broken", f"is {how}, and stays so", "make it anew: pulumi up --replace")


def _tpu(name: str, found: Mapping[str, Any], when: When) -> Iterator[Drift]:
    if (how := found.get("state")) in ("PREEMPTED", "TERMINATED", "STOPPED", "STOPPING", "UNKNOWN"):
        yield Drift("tpu", name, "broken", f"is {how}", "make it anew: pulumi up --replace, or start it")


def _instance(name: str, found: Mapping[str, Any], when: When) -> Iterator[Drift]:
    """Source: https://docs.cloud.google.com/compute/docs/instances/instance-lifecycle"""
    if (how := found.get("status")) in ("TERMINATED", "STOPPED", "SUSPENDED"):
        spot = object_at(found, "scheduling").get("provisioningModel") == "SPOT"
        text = f"is {how}{': Spot, so perhaps preempted' if spot else ''}"
        yield Drift("instance", name, "broken", text, f"gcloud compute instances start {found.get('name')}")


def _kept(name: str, found: Mapping[str, Any], when: When) -> Iterator[Drift]:
    if (how := found.get("state")) == "ERROR":
        why = object_at(found, "error").get("message") or "no reason given"
        yield Drift("persistent resource", name, "broken", f"is {how}: {why}", "make it anew: pulumi up --replace")


def _schedule(name: str, found: Mapping[str, Any], when: When) -> Iterator[Drift]:
    if (how := found.get("state")) != "ENABLED":
        yield Drift("schedule", name, "broken", f"is {how}, and calls nothing", "gcloud scheduler jobs resume")
    elif code := object_at(found, "status").get("code"):
        text = f"its last call failed with code {code}"
        yield Drift(
            "schedule", name, "broken", text, "the log of the function; accel-jobs tend does its work meanwhile"
        )


def _function(name: str, found: Mapping[str, Any], when: When) -> Iterator[Drift]:
    if (how := found.get("state")) not in ("ACTIVE", "DEPLOYING", "DELETING"):
        yield Drift("function", name, "broken", f"is {how}", AGAIN)


def _declared(each: Resource, google: Google) -> Iterator[Drift]:
    """Check TPUs that the stack declares, by the record of their request and by the cloud's state."""
    path = str(each.outputs.get("name"))
    if not path.startswith(f"{buckets.QUEUES}/"):
        return
    try:
        found = declared_tpus.look(google, str(each.outputs.get("bucket")), path)
    except (CloudRefused, NotFound) as refused:
        yield Drift("not readable", each.name, "unknown", refused.message, refused.hint or "ask the project's owner")
        return
    if found is None:
        yield Drift("declared TPUs", each.name, "broken", "nobody has asked for them", TEND)
    elif found.ended:
        text = f"are asked for no more: {found.why}".rstrip()
        yield Drift("declared TPUs", each.name, "broken", text, "pulumi up --replace the URN of the declaration")
    elif not found.present:
        yield Drift("declared TPUs", each.name, "broken", f"are not there: {found.why}", TEND)


KINDS: Mapping[str, tuple[str, str, Check]] = {
    "gcp:container/nodePool:NodePool": ("container", "v1/", _pool),
    "gcp:container/cluster:Cluster": ("container", "v1/", _cluster),
    "gcp:compute/reservation:Reservation": ("compute", "", _reservation),
    "gcp:compute/futureReservation:FutureReservation": ("compute", "", _future),
    "gcp:compute/regionCommitment:RegionCommitment": ("compute", "", _commitment),
    "gcp:compute/instance:Instance": ("compute", "", _instance),
    "gcp:tpu/v2QueuedResource:V2QueuedResource": ("tpu", "v2/", _request),
    "gcp:tpu/v2Vm:V2Vm": ("tpu", "v2/", _tpu),
    "gcp:vertex/aiPersistentResource:AiPersistentResource": ("aiplatform", "v1/", _kept),
    "gcp:cloudscheduler/job:Job": ("cloudscheduler", "v1/", _schedule),
    "gcp:cloudfunctionsv2/function:Function": ("cloudfunctions", "v2/", _function),
}
"""Checks by Pulumi type: the API, the prefix of the resource's id in its path, and the check for faults."""
