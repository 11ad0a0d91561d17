"""Creation, reading and removal of Compute Engine VMs. Every call may be repeated; its body is the same each time.

One machine is an instance with the attempt's name. Several are an instance template and a managed instance group with
that name, in which instances are created by name: <attempt>-0, -1, ... Source:
https://docs.cloud.google.com/compute/docs/instance-groups/creating-instances-with-specific-names

Their states, and Google's reasons for a refusal, are mapped to states of an attempt. Sources:
https://docs.cloud.google.com/compute/docs/instances/instance-lifecycle,
https://docs.cloud.google.com/compute/docs/resource-error
"""

import copy
import time
from collections.abc import Iterable, Mapping
from typing import Any

from accel.clouds.google.api import Conflict, Google
from accel.clouds.google.rest import line, path_segment, root_of
from accel.clouds.timeouts import pause
from accel.diagnostics.errors import CloudRefused, CloudSilent, JobsError, NotFound
from accel.json_values import object_at, objects_at

from .. import instance_metadata, labels
from ..cloud_messages import SERIAL_BYTES, MachineMessages, maintenance
from ..record import ENDED, MADE, PLANNED, Attempt, Record
from ..state_machine import ABSENT, BROKEN, LEAVING, RUNNING, STARTING, TAKEN, WAITING, MachineState, NoCapacity

API = "compute"
REFUSED_S = 60
"""Seconds in which a zone without capacity usually refuses; `look` reports a later refusal."""
LINKS = "https://www.googleapis.com/compute/v1"
"""Beginning of links to resources, whatever the API's root is."""


class Instances:
    """Client for the machines of jobs on Compute Engine."""

    def __init__(self, google: Google) -> None:
        self._google = google

    def make(self, record: Record, attempt: Attempt) -> None:
        """Create the attempt's machines, and wait for a zone's refusal for up to REFUSED_S seconds. Raise NoCapacity
        with the zones that Google names instead, and CloudRefused for any other refusal, including another's machine of
        that name."""
        if record.body["machine"]["group"]:
            self._make_group(record, attempt)
            return
        path = f"{_zone_path(record, attempt)}/instances"
        operation = self._insert(record, attempt, path, instance_body(record, attempt))
        if operation is None:
            if self._instance(record, attempt) is None:
                raise CloudRefused(f"{attempt.name} in {attempt.zone}: is there already, and is not this job's")
            return
        until, turn = time.monotonic() + REFUSED_S, 0
        while not self._done(record, attempt, operation) and time.monotonic() < until:
            found = instance_metadata.under_way(lambda: self._instance(record, attempt))
            if found and of_instance(found).state != STARTING:
                return
            pause(self._google.timing, turn)
            operation, turn = self._operation(record, attempt, operation), turn + 1

    def _make_group(self, record: Record, attempt: Attempt) -> None:
        zone = _zone_path(record, attempt)
        for path, body, own in (
            (_template_path(record), template_body(record, attempt), _template_path(record, attempt)),
            (f"{zone}/instanceGroupManagers", group_body(record, attempt), _group_path(record, attempt)),
        ):
            operation = self._insert(record, attempt, path, body)
            if operation is None:
                if self._own(own, record, attempt) is None:
                    raise CloudRefused(f"{own}: is there already, and is not this job's")
                continue
            until, turn = time.monotonic() + REFUSED_S, 0
            while not self._done(record, attempt, operation):
                if time.monotonic() >= until:
                    raise CloudSilent(f"{own}: was asked for, and is not there yet")
                pause(self._google.timing, turn)
                operation, turn = self._operation(record, attempt, operation), turn + 1
        managed = instance_metadata.under_way(lambda: self._managed(record, attempt))
        missing = sorted(set(_names(record, attempt)) - managed.keys())
        if missing:
            body = {"instances": [{"name": name} for name in missing]}
            path = f"{_group_path(record, attempt)}/createInstances"
            self._posted(path, body, instance_metadata.request_id())

    def _insert(self, record: Record, attempt: Attempt, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        try:
            return self._posted(path, body, instance_metadata.request_id())
        except Conflict:
            return None

    def _posted(self, path: str, body: dict[str, Any], asked: str) -> dict[str, Any]:
        """Send a request and return its operation. Google recognizes a repeated request by the id `asked`."""
        try:
            operation = self._google.post(API, path, body, repeat=True, requestId=asked)
        except Conflict:
            raise
        except (CloudRefused, CloudSilent) as refused:
            if lacks_capacity(refused.message):
                raise NoCapacity(refused.message) from refused
            raise
        except NotFound as missing:
            # Something that the body names: a network, an image, an account.
            raise CloudRefused(missing.message) from missing
        if not operation.get("name"):
            raise CloudSilent(f"{path}: the answer is no operation; whether anything was made is not known")
        return operation

    def _done(self, record: Record, attempt: Attempt, operation: dict[str, Any]) -> bool:
        if errors := objects_at(object_at(operation, "error"), "errors"):
            raise refusal(f"{attempt.name} in {attempt.zone}", errors)
        return operation.get("status") == "DONE"

    def _operation(self, record: Record, attempt: Attempt, operation: dict[str, Any]) -> dict[str, Any]:
        project, zone = f"projects/{path_segment(str(record.body['project']))}", _zone_path(record, attempt)
        place = zone if operation.get("zone") else f"{project}/global"
        path = f"{place}/operations/{path_segment(str(operation.get('name')))}"
        return instance_metadata.under_way(lambda: self._google.get(API, path))

    def look(self, record: Record, attempt: Attempt) -> MachineState:
        if record.body["machine"]["group"]:
            return self._look_group(record, attempt)
        found = self._instance(record, attempt)
        if found is None:
            return MachineState(ABSENT, "") if attempt.state != MADE else self._ended(record, attempt)
        seen = of_instance(found)
        if attempt.state == ENDED:
            return leaving(seen)
        if seen.state != TAKEN or attempt.state != MADE:
            return seen
        return MachineState(seen.state, seen.native, self._ended(record, attempt).reason or seen.reason)

    def _look_group(self, record: Record, attempt: Attempt) -> MachineState:
        group = self._own(_group_path(record, attempt), record, attempt)
        managed = self._managed(record, attempt) if group else {}
        if attempt.state == PLANNED and not managed:
            return MachineState(ABSENT, "")
        if group is None:
            left = self._own(_template_path(record, attempt), record, attempt)
            return (
                MachineState(ABSENT, "")
                if left is None
                else MachineState(TAKEN, "", "its machines are no longer there")
            )
        seen = of_group(_names(record, attempt), managed)
        return leaving(seen, managed) if attempt.state == ENDED else seen

    def messages(self, record: Record, attempt: Attempt) -> MachineMessages:
        if record.body["machine"]["group"]:
            managed = self._managed(record, attempt)
            return MachineMessages(tuple(instance_text(name, managed.get(name)) for name in _names(record, attempt)))
        found = self._instance(record, attempt)
        if found is None:
            return MachineMessages((f"there is no instance {attempt.name} in {attempt.zone}",))
        # `statusMessage` is optional, and for people. Source: the schema Instance of the API.
        more = f": {line(found['statusMessage'])}" if found.get("statusMessage") else ""
        now = (f"instance {attempt.name} in {attempt.zone} is {found.get('status')}{more}",)
        return MachineMessages(now, planned=maintenance(f"instance {attempt.name}", object_at(found, "resourceStatus")))

    def printed(self, record: Record, attempt: Attempt) -> tuple[str, ...]:
        """Return the end of the first machine's serial port output; empty if there is none to read. Source:
        https://docs.cloud.google.com/compute/docs/reference/rest/v1/instances/getSerialPortOutput"""
        path = instance_path(record, attempt, 0 if record.body["machine"]["group"] else None)
        try:
            answer = self._google.get(API, f"{path}/serialPort", start=-SERIAL_BYTES)
        except NotFound:
            return ()
        return tuple(text for each in str(answer.get("contents") or "").splitlines() if (text := each.strip()))

    def history(self, record: Record, attempt: Attempt) -> tuple[str, ...]:
        found = self._operations(record, attempt, 0 if record.body["machine"]["group"] else None)
        return tuple(map(operation_text, sorted(found, key=lambda each: str(each.get("insertTime")))))

    def _operations(self, record: Record, attempt: Attempt, number: int | None = None) -> list[dict[str, Any]]:
        """Return the operations on an instance that its zone still has: it keeps them for some weeks."""
        link = f"{LINKS}/{instance_path(record, attempt, number)}"
        path = f"{_zone_path(record, attempt)}/operations"
        return list(self._google.pages(API, path, "items", filter=f'targetLink="{link}"'))

    def _ended(self, record: Record, attempt: Attempt) -> MachineState:
        """Return what became of a missing instance, by its operations."""
        told = self._operations(record, attempt)
        for operation in told:
            if operation.get("operationType") == "insert" and (
                errors := objects_at(object_at(operation, "error"), "errors")
            ):
                return of_errors("FAILED", errors)
        kinds = {str(operation.get("operationType")) for operation in told}
        words = [words for kind, words in END_WORDS.items() if kind in kinds]
        return MachineState(ABSENT, "", words[0] if words else "")

    def remove(self, record: Record, attempt: Attempt) -> None:
        """Remove the instance, or the group with its instances, then the template, which a group holds: call it again
        until both are gone. Leave what is not this job's."""
        if not record.body["machine"]["group"]:
            if self._instance(record, attempt) is not None:
                self._delete(instance_path(record, attempt))
        elif self._own(_group_path(record, attempt), record, attempt) is not None:
            self._delete(_group_path(record, attempt))
        elif self._own(_template_path(record, attempt), record, attempt) is not None:
            self._delete(_template_path(record, attempt))

    def _delete(self, path: str) -> None:
        try:
            self._google.delete(API, path)
        except CloudRefused as refused:
            if not is_busy(refused.message):
                raise

    def _instance(self, record: Record, attempt: Attempt) -> dict[str, Any] | None:
        found = self._google.find(API, instance_path(record, attempt))
        wanted = {labels.MAKER: labels.JOBS, labels.JOB: record.name, labels.ATTEMPT: str(attempt.number)}
        return found if found and wanted.items() <= object_at(found, "labels").items() else None

    def _own(self, path: str, record: Record, attempt: Attempt) -> dict[str, Any] | None:
        """Return a group or a template, None if there is none or it is not this job's."""
        found = self._google.find(API, path)
        return found if found and found.get("description") == _note(record, attempt) else None

    def _managed(self, record: Record, attempt: Attempt) -> dict[str, dict[str, Any]]:
        """Return the group's instances by name, also those to be created; empty if the group was deleted meanwhile."""
        path = f"{_group_path(record, attempt)}/listManagedInstances"
        found: dict[str, dict[str, Any]] = {}
        token: str | None = None
        while True:
            try:
                page = self._google.post(API, path, {}, repeat=True, pageToken=token)
            except NotFound:
                return {}
            for each in objects_at(page, "managedInstances"):
                found[str(each.get("name") or str(each.get("instance")).rpartition("/")[2])] = each
            token = str(page.get("nextPageToken") or "") or None
            if token is None:
                return found


def instance_body(record: Record, attempt: Attempt) -> dict[str, Any]:
    """Return the request for the one machine of an attempt, with links in the places of a template's names."""
    made: dict[str, Any] = {"name": attempt.name, **_properties(record, attempt)}
    zone = _zone_path(record, attempt)
    made["machineType"] = f"{zone}/machineTypes/{made['machineType']}"
    for disk in made["disks"]:
        disk["initializeParams"]["diskType"] = f"{zone}/diskTypes/{disk['initializeParams']['diskType']}"
    for each in made.get("guestAccelerators", []):
        each["acceleratorType"] = f"{zone}/acceleratorTypes/{each['acceleratorType']}"
    if wait_s := record.body["machine"]["wait_s"]:
        made["params"] = {"requestValidForDuration": {"seconds": str(wait_s)}}
    return made


def template_body(record: Record, attempt: Attempt) -> dict[str, Any]:
    return {
        "name": attempt.name,
        "description": _note(record, attempt),
        "properties": _properties(record, attempt),
    }


def group_body(record: Record, attempt: Attempt) -> dict[str, Any]:
    """Return the request for an empty group; instances are created by name. Failed or lost ones stay as they are."""
    return {
        "name": attempt.name,
        "description": _note(record, attempt),
        "baseInstanceName": attempt.name,
        "instanceTemplate": _template_path(record, attempt),
        "targetSize": 0,
        "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"},
        "updatePolicy": {"type": "OPPORTUNISTIC"},
    }


def instance_path(record: Record, attempt: Attempt, number: int | None = None) -> str:
    name = attempt.name if number is None else f"{attempt.name}-{number}"
    return f"{_zone_path(record, attempt)}/instances/{path_segment(name)}"


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
    """Name the group, or the one instance, as what to delete to remove the machines."""
    own = _group_path(record, attempt) if record.body["machine"]["group"] else instance_path(record, attempt)
    return instance_metadata.metadata(record, attempt, f"{root_of(API)}/{own}")


def _names(record: Record, attempt: Attempt) -> list[str]:
    return [f"{attempt.name}-{index}" for index in range(record.hosts)]


def _note(record: Record, attempt: Attempt) -> str:
    """Return the description by which a job recognizes its resources that have no labels."""
    return f"{labels.MAKER}={labels.JOBS} {labels.JOB}={record.name} {labels.ATTEMPT}={attempt.number}"


def _zone_path(record: Record, attempt: Attempt) -> str:
    return f"projects/{path_segment(str(record.body['project']))}/zones/{path_segment(attempt.zone)}"


def _template_path(record: Record, attempt: Attempt | None = None) -> str:
    place = f"projects/{path_segment(str(record.body['project']))}/global/instanceTemplates"
    return f"{place}/{path_segment(attempt.name)}" if attempt else place


def _group_path(record: Record, attempt: Attempt) -> str:
    return f"{_zone_path(record, attempt)}/instanceGroupManagers/{path_segment(attempt.name)}"


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
"""States by an instance's status. A machine of a job runs once: whatever stops it, the machine is lost."""

LEAVING_STATES = frozenset({"PENDING_STOP", "STOPPING", "DEPROVISIONING"})
"""Statuses of machines of an ended attempt that are being removed. One that is only stopped gets to TERMINATED."""

PREEMPTED = "compute.instances.preempted"
"""Type of the operation by which Google preempts a Spot VM. Source:
https://docs.cloud.google.com/compute/docs/instances/create-use-spot#detect-preemption"""
END_WORDS = {PREEMPTED: "Google took it back", "delete": "it was deleted", "stop": "it was stopped"}

STOCKOUT = ("ZONE_RESOURCE_POOL_EXHAUSTED", "RESOURCE_POOL_EXHAUSTED", "STOCKOUT", "VM_MIN_COUNT_NOT_REACHED")
"""Beginnings of codes: there is ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS too. The first two are from the page, the
others from https://github.com/skypilot-org/skypilot (its handler of GCP's errors)."""
QUOTA = "QUOTA_EXCEEDED"
_ORDER = (TAKEN, BROKEN, WAITING, STARTING, RUNNING)


def of_instance(instance: Mapping[str, Any], name: str = "") -> MachineState:
    native = str(instance.get("status") or instance.get("instanceStatus") or "")
    found = INSTANCE.get(native, STARTING)
    which = f"{name} " if name else ""
    return MachineState(found, native, f"{which}is {native}" if found == TAKEN else "")


def of_group(names: Iterable[str], managed: Mapping[str, Mapping[str, Any]]) -> MachineState:
    """Return the state of a group by its instances: all must run, and one lost instance loses all."""
    seen = [_managed(name, managed.get(name)) for name in names]
    return min(seen, key=lambda each: _ORDER.index(each.state))


def _managed(name: str, found: Mapping[str, Any] | None) -> MachineState:
    if found is None:
        return MachineState(TAKEN, "", f"{name} is no longer there")
    action = str(found.get("currentAction") or "NONE")
    errors = objects_at(object_at(found, "lastAttempt", "errors"), "errors")
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


def leaving(seen: MachineState, managed: Mapping[str, Mapping[str, Any]] | None = None) -> MachineState:
    """Return the state for an attempt that has ended, and whose machines are being removed."""
    actions = {str(each.get("currentAction")) for each in (managed or {}).values()}
    return MachineState(LEAVING, seen.native) if seen.native in LEAVING_STATES or actions == {"DELETING"} else seen


def of_errors(native: str, errors: list[dict[str, Any]]) -> MachineState:
    refused = refusal("", errors)
    return MachineState(BROKEN, native, refused.message, stockout=isinstance(refused, NoCapacity))


def refusal(doing: str, errors: list[dict[str, Any]]) -> JobsError:
    """Return the error for a refused request: NoCapacity with the zones that Google names instead, or CloudRefused."""
    first = errors[0]
    code, message = str(first.get("code") or ""), line(first.get("message") or first.get("code") or "no reason is told")
    message = f"{doing}: {message}" if doing else message
    details = [object_at(each) for each in objects_at(first, "errorDetails")]
    if code.startswith(STOCKOUT):
        named = [str(object_at(each, "errorInfo", "metadatas").get("zonesAvailable") or "") for each in details]
        zones = tuple(zone.strip() for text in named for zone in text.split(",") if zone.strip())
        return NoCapacity(f"{message} ({code})", zones)
    if code == QUOTA:
        numbers = [_quota(object_at(each, "quotaInfo")) for each in details if object_at(each, "quotaInfo")]
        hint = "raise the quota, or wait until other machines of the project are gone"
        return CloudRefused(" ".join([message, *(f"({each})" for each in numbers)]), hint)
    return CloudRefused(f"{message} ({code})" if code else message)


def _quota(info: Mapping[str, Any]) -> str:
    where = ", ".join(f"{name} {value}" for name, value in object_at(info, "dimensions").items())
    limit = f"{info.get('limit'):g}" if isinstance(info.get("limit"), int | float) else "unknown"
    return f"{info.get('metricName')}: limit {limit}{f', {where}' if where else ''}"


def instance_text(name: str, found: Mapping[str, Any] | None) -> str:
    if found is None:
        return f"instance {name} is not there"
    errors = objects_at(object_at(found, "lastAttempt", "errors"), "errors")
    why = f": {refusal('', errors).message}" if errors else ""
    return f"instance {name} is {found.get('instanceStatus') or found.get('currentAction')}{why}"


def operation_text(operation: Mapping[str, Any]) -> str:
    """Describe an operation. Fields: the schema Operation of the API."""
    errors = objects_at(object_at(operation, "error"), "errors")
    why = f": {refusal('', errors).message}" if errors else ""
    who = f" by {operation['user']}" if operation.get("user") else ""
    return f"{operation.get('insertTime')} {operation.get('operationType')}{who}{why}"


def is_busy(message: str) -> bool:
    """Return whether the message is that of a resource that is being changed, or used by one that is."""
    said = message.lower()
    return "is not ready" in said or "already being used by" in said


def lacks_capacity(message: str) -> bool:
    said = message.lower()
    return "does not have enough resources" in said or "resource_pool_exhausted" in said
