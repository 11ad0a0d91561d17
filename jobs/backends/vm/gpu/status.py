"""States of instances, and Google's words for why there is none, as those of an attempt.

Sources: https://docs.cloud.google.com/compute/docs/instances/instance-lifecycle,
https://docs.cloud.google.com/compute/docs/resource-error
"""

from collections.abc import Iterable, Mapping
from typing import Any

from accel.clouds.google.rest import line, mapping
from accel.clouds.kubernetes.responses import part as inside
from accel.clouds.kubernetes.responses import parts
from accel.diagnostics.errors import CloudRefused, JobsError

from ..state_machine import BROKEN, LEAVING, RUNNING, STARTING, TAKEN, WAITING, MachineState, NoCapacity

INSTANCE = {
    "PENDING": WAITING,
    "PROVISIONING": STARTING,
    "STAGING": STARTING,
    "RUNNING": RUNNING,
    "REPAIRING": TAKEN,
    "PENDING_STOP": TAKEN,
    "STOPPING": TAKEN,
    "STOPPED": TAKEN,
    "SUSPENDING": TAKEN,
    "SUSPENDED": TAKEN,
    "TERMINATED": TAKEN,
    "DEPROVISIONING": TAKEN,
}
"""A machine of a job runs once: whatever stops it has taken it away."""

GOING = frozenset({"PENDING_STOP", "STOPPING", "DEPROVISIONING"})
"""Of machines that nobody needs any more: on their way. One that is only stopped gets to TERMINATED."""

PREEMPTED = "compute.instances.preempted"
"""Type of the operation by which Google takes a Spot VM back. Source:
https://docs.cloud.google.com/compute/docs/instances/create-use-spot#detect-preemption"""
ENDED = {PREEMPTED: "Google took it back", "delete": "it was deleted", "stop": "it was stopped"}
"""Operations that end an instance, in words."""

STOCKOUT = ("ZONE_RESOURCE_POOL_EXHAUSTED", "RESOURCE_POOL_EXHAUSTED", "STOCKOUT", "VM_MIN_COUNT_NOT_REACHED")
"""Codes begin so: there is ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS too. The first two are the page's, the others
those of https://github.com/skypilot-org/skypilot (its handler of GCP's errors)."""
QUOTA = "QUOTA_EXCEEDED"
_ORDER = (TAKEN, BROKEN, WAITING, STARTING, RUNNING)


def of_instance(instance: Mapping[str, Any], name: str = "") -> MachineState:
    """By its status. `name` is said of one among several."""
    native = str(instance.get("status") or instance.get("instanceStatus") or "")
    found = INSTANCE.get(native, STARTING)
    which = f"{name} " if name else ""
    return MachineState(found, native, f"{which}is {native}" if found == TAKEN else "")


def of_group(names: Iterable[str], managed: Mapping[str, Mapping[str, Any]]) -> MachineState:
    """The instances of a group, by their names: all have to run, and one that is lost loses all."""
    seen = [_managed(name, managed.get(name)) for name in names]
    return min(seen, key=lambda each: _ORDER.index(each.state))


def _managed(name: str, found: Mapping[str, Any] | None) -> MachineState:
    if found is None:
        return MachineState(TAKEN, "", f"{name} is no longer there")
    action = str(found.get("currentAction") or "NONE")
    errors = parts(inside(found, "lastAttempt", "errors"), "errors")
    if errors and action != "NONE":
        # A group tries for ever; a job has other zones to try.
        return of_errors(action, errors)
    if found.get("instanceStatus"):
        return of_instance(found, name)
    return (
        MachineState(STARTING, action)
        if action == "CREATING"
        else MachineState(TAKEN, action, f"{name} is no longer there")
    )


def going(seen: MachineState, managed: Mapping[str, Mapping[str, Any]] | None = None) -> MachineState:
    """The same for an attempt that is over, whose machines have been asked to go."""
    actions = {str(each.get("currentAction")) for each in (managed or {}).values()}
    return MachineState(LEAVING, seen.native) if seen.native in GOING or actions == {"DELETING"} else seen


def of_errors(native: str, errors: list[dict[str, Any]]) -> MachineState:
    """What an operation ended in."""
    refused = refusal("", errors)
    return MachineState(BROKEN, native, refused.message, stockout=isinstance(refused, NoCapacity))


def refusal(doing: str, errors: list[dict[str, Any]]) -> JobsError:
    """Why Google made nothing: NoCapacity with the zones that it names instead, or CloudRefused."""
    first = errors[0]
    code, message = str(first.get("code") or ""), line(first.get("message") or first.get("code") or "no reason is told")
    message = f"{doing}: {message}" if doing else message
    details = [mapping(each) or {} for each in parts(first, "errorDetails")]
    if code.startswith(STOCKOUT):
        named = [str(inside(each, "errorInfo", "metadatas").get("zonesAvailable") or "") for each in details]
        zones = tuple(zone.strip() for text in named for zone in text.split(",") if zone.strip())
        return NoCapacity(f"{message} ({code})", zones)
    if code == QUOTA:
        numbers = [_quota(inside(each, "quotaInfo")) for each in details if inside(each, "quotaInfo")]
        hint = "raise the quota, or wait until other machines of the project are gone"
        return CloudRefused(" ".join([message, *(f"({each})" for each in numbers)]), hint)
    return CloudRefused(f"{message} ({code})" if code else message)


def _quota(info: Mapping[str, Any]) -> str:
    where = ", ".join(f"{name} {value}" for name, value in (mapping(info.get("dimensions")) or {}).items())
    limit = f"{info.get('limit'):g}" if isinstance(info.get("limit"), int | float) else "unknown"
    return f"{info.get('metricName')}: limit {limit}{f', {where}' if where else ''}"


def instance_text(name: str, found: Mapping[str, Any] | None) -> str:
    """An instance of a group, in words."""
    if found is None:
        return f"instance {name} is not there"
    errors = parts(inside(found, "lastAttempt", "errors"), "errors")
    why = f": {refusal('', errors).message}" if errors else ""
    return f"instance {name} is {found.get('instanceStatus') or found.get('currentAction')}{why}"


def done(operation: Mapping[str, Any]) -> str:
    """An operation, in words. Fields: the schema Operation of the API."""
    errors = parts(mapping(operation.get("error")) or {}, "errors")
    why = f": {refusal('', errors).message}" if errors else ""
    who = f" by {operation['user']}" if operation.get("user") else ""
    return f"{operation.get('insertTime')} {operation.get('operationType')}{who}{why}"


def busy(message: str) -> bool:
    """Whether an error's words are those of a resource that is being changed, or used by one that is."""
    said = message.lower()
    return "is not ready" in said or "already being used by" in said


def lacks(message: str) -> bool:
    """Whether an error's words are those of a zone that has none."""
    said = message.lower()
    return "does not have enough resources" in said or "resource_pool_exhausted" in said
