"""Creation, reading and removal of TPU slices as queued resources. Every call may be repeated.

The queued resource has the attempt's name, and so has the node of a single slice; several nodes are named <attempt>-0,
<attempt>-1 and so on. Nodes of a declared queue keep their name (`node_id` of `machine`): one request is removed before
the next one is created. Source:
https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources

States of requests and of nodes, and Google's reasons for a refusal, are mapped to states of an attempt. Sources:
https://docs.cloud.google.com/tpu/docs/queued-resources,
https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes#State
"""

import uuid
from collections.abc import Mapping
from typing import Any

from accel.clouds.google.api import Conflict, Google
from accel.clouds.google.rest import line, path_segment, root_of
from accel.clouds.timeouts import pause
from accel.diagnostics.errors import CloudRefused, CloudSilent, JobsError, NotFound, Throttled
from accel.json_values import mapping, object_at, objects_at

from .. import instance_metadata
from .. import labels as marks
from ..cloud_messages import MachineMessages, maintenance
from ..record import Attempt, Record
from ..state_machine import ABSENT, BROKEN, LEAVING, RUNNING, STARTING, TAKEN, WAITING, MachineState, NoCapacity

API = "tpu"


class QueuedResources:
    """Client for the machines of TPU VMs."""

    def __init__(self, google: Google) -> None:
        self._google = google

    def make(self, record: Record, attempt: Attempt) -> None:
        """Request the attempt's slices, and wait until the request is visible. Raise NoCapacity if the zone refuses at
        once, CloudRefused for any other refusal, including another's queued resource of that name."""
        body = queued_resource(record, attempt)
        path = f"{_place(record, attempt)}/queuedResources"
        query = {"queuedResourceId": attempt.name, "requestId": instance_metadata.request_id()}
        try:
            operation = self._google.post(API, path, body, repeat=True, **query)
        except Conflict as conflict:
            if self._found(record, attempt) is None:
                raise CloudRefused(f"{conflict.message}, and it is not this job's") from conflict
            return
        except NotFound as missing:
            raise CloudRefused(missing.message) from missing
        except (CloudRefused, Throttled) as refused:
            raise request_refusal(refused) or refused from refused
        self._there(record, attempt, operation)

    def _there(self, record: Record, attempt: Attempt, operation: dict[str, Any]) -> None:
        """Wait until the request is visible. Raise its operation's error, or CloudSilent after the last attempt."""
        timing = self._google.timing
        for turn in range(timing.attempts):
            if operation.get("done") and (error := mapping(operation.get("error"))):
                raise operation_refusal(f"{attempt.name} in {attempt.zone}", error)
            if instance_metadata.under_way(lambda: self._found(record, attempt)) is not None:
                return
            pause(timing, turn)
            if name := operation.get("name"):
                operation = instance_metadata.under_way(lambda name=name: self._google.get(API, f"v2/{name}"))
        raise CloudSilent(f"{attempt.name} in {attempt.zone}: was asked for, and cannot be seen yet")

    def look(self, record: Record, attempt: Attempt) -> MachineState:
        found = self._found(record, attempt)
        if found is None:
            return MachineState(ABSENT, "")
        seen = of_request(object_at(found, "state"))
        return seen or of_nodes(self._nodes(record, attempt))

    def messages(self, record: Record, attempt: Attempt) -> MachineMessages:
        """Return the request's state, and its nodes' health, symptoms and maintenance. Source:
        https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes"""
        found = self._found(record, attempt)
        if found is None:
            return MachineMessages((f"there is no queued resource {attempt.name} in {attempt.zone}",))
        state = object_at(found, "state")
        lines = [f"queued resource {attempt.name} in {attempt.zone} is {state.get('state')}"]
        if message := object_at(state, "failedData", "error").get("message"):
            lines[0] += f": {line(message)}"
        ill: list[str] = []
        planned: list[str] = []
        if state.get("state") == "ACTIVE":
            for name, node in self._nodes(record, attempt).items():
                lines.append(f"node {name} is {node.get('state') if node else 'not there'}")
                ill += health_texts(name, node or {})
                planned += maintenance(f"node {name}", node or {})
        return MachineMessages(tuple(lines), tuple(ill), tuple(planned))

    def printed(self, record: Record, attempt: Attempt) -> tuple[str, ...]:
        """Return nothing: the Cloud TPU API has no method for it."""
        return ()

    def history(self, record: Record, attempt: Attempt) -> tuple[str, ...]:
        """Return nothing: the API's operations are not read, since their metadata names no user."""
        return ()

    def _nodes(self, record: Record, attempt: Attempt) -> dict[str, dict[str, Any] | None]:
        place, count = _place(record, attempt), int(record.body["machine"]["slices"])
        own = _node_id(record, attempt)
        if count == 1:
            return {own: self._google.find(API, f"{place}/nodes/{path_segment(own)}")}
        wanted = [f"{own}-{index}" for index in range(count)]
        listed = self._google.pages(API, f"{place}/nodes", "nodes")
        there = {str(node.get("name")).rpartition("/")[2]: node for node in listed}
        return {name: there.get(name) for name in wanted}

    def remove(self, record: Record, attempt: Attempt) -> None:
        """Remove the request with its nodes, in whatever state they are. Leave what is not this job's."""
        if self._found(record, attempt) is None:
            return
        try:
            # A new id each time: that of a deletion that failed would give its failure again.
            self._google.delete(API, _name(record, attempt), force=True, requestId=str(uuid.uuid4()))
        except CloudRefused:
            if self.look(record, attempt).state not in (ABSENT, LEAVING):
                raise

    def _found(self, record: Record, attempt: Attempt) -> dict[str, Any] | None:
        """Return the attempt's queued resource, None if there is none or it is not this job's."""
        found = self._google.find(API, _name(record, attempt))
        maker = marks.JOBS if record.standing is None else marks.QUEUES
        wanted = {marks.MAKER: maker, marks.JOB: record.name, marks.ATTEMPT: str(attempt.number)}
        specs = objects_at(object_at(found, "tpu"), "nodeSpec")
        labels = [object_at(spec, "node", "labels") for spec in specs]
        return found if labels and all(wanted.items() <= each.items() for each in labels) else None


def queued_resource(record: Record, attempt: Attempt) -> dict[str, Any]:
    """Return a body that is the same each time, so that Google recognizes the request by its id."""
    machine: dict[str, Any] = record.body["machine"]
    region = attempt.zone.rpartition("-")[0]
    release = f"{root_of(API)}/{_name(record, attempt)}?force=true"
    node = dict(machine["node"])
    node["networkConfig"] = {**node["networkConfig"], "subnetwork": machine["subnetworks"][region]}
    node["labels"] = {**node["labels"], **instance_metadata.labels(record, attempt)}
    node["metadata"] = {**node["metadata"], **instance_metadata.metadata(record, attempt, release)}
    spec: dict[str, Any] = {"parent": _place(record, attempt).removeprefix("v2/"), "node": node}
    if machine["slices"] == 1:
        spec["nodeId"] = _node_id(record, attempt)
    else:
        spec["multisliceParams"] = {"nodeCount": machine["slices"], "nodeIdPrefix": _node_id(record, attempt)}
    made: dict[str, Any] = {"tpu": {"nodeSpec": [spec]}}
    if record.body["spot"]:
        made["spot"] = {}
    if machine.get("guaranteed"):
        made["guaranteed"] = {}
    if reservation := machine["reservation"]:
        # A name alone, as gcloud sends it; the tier `guaranteed` is another matter.
        place = f"projects/{record.body['project']}/locations/{attempt.zone}/reservations"
        made["reservationName"] = reservation if "/" in reservation else f"{place}/{reservation}"
    if machine["valid_s"]:
        made["queueingPolicy"] = {"validUntilDuration": f"{machine['valid_s']}s"}
    elif until := (record.standing or {}).get("until"):
        made["queueingPolicy"] = {"validUntilTime": until}
    return made


def _node_id(record: Record, attempt: Attempt) -> str:
    return str(record.body["machine"].get("node_id") or attempt.name)


def _place(record: Record, attempt: Attempt) -> str:
    return f"v2/projects/{path_segment(str(record.body['project']))}/locations/{path_segment(attempt.zone)}"


def _name(record: Record, attempt: Attempt) -> str:
    return f"{_place(record, attempt)}/queuedResources/{path_segment(attempt.name)}"


REQUEST = {
    "CREATING": WAITING,
    "ACCEPTED": WAITING,
    "WAITING_FOR_RESOURCES": WAITING,
    "PROVISIONING": STARTING,
    "FAILED": BROKEN,
    "DELETING": LEAVING,
    "SUSPENDING": TAKEN,
    "SUSPENDED": TAKEN,
}
"""States of requests, except ACTIVE, for which the nodes' states count. A suspended request gets no TPUs again."""

NODE = {
    "CREATING": STARTING,
    "STARTING": STARTING,
    "RESTARTING": STARTING,
    "REIMAGING": STARTING,
    "REPAIRING": STARTING,
    "UNHIDING": STARTING,
    "READY": RUNNING,
    "STOPPING": TAKEN,
    "STOPPED": TAKEN,
    "DELETING": TAKEN,
    "PREEMPTED": TAKEN,
    "TERMINATED": TAKEN,
    "HIDING": TAKEN,
    "HIDDEN": TAKEN,
    "UNKNOWN": TAKEN,
}

_WHO = {"SERVICE": "Google", "USER": "a user"}

DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE = 4, 13, 14
"""Source: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto"""

STOCKOUT = (
    "no more capacity",
    "stockout",
    "resource_pool_exhausted",
    "not enough resources",
    "insufficient reserved capacity",
    "allocation interval",
    "valid until",
    "valid_until",
    "valid-until",
)
"""Parts of messages from a zone that has no capacity, or had none in time. The first is in many logs, for example
https://github.com/hashicorp/terraform-provider-google/issues/21243; "reserved" is said without a reservation, too:
https://github.com/skypilot-org/skypilot/issues/4579; "allocation interval" is from the page; the others are those of
Compute Engine's VMs, or recalled."""
NOT_THERE = ("invalid acceleratortype", "could not be found in the zonal accelerator", "was not found in zone")
"""Parts of messages from a zone that does not offer the type. Source: https://github.com/skypilot-org/skypilot/issues/3840"""
QUOTA = ("quota limit", "quota '")
"""Parts of messages about an exhausted quota, which has the same status as too many calls. Source:
https://github.com/marin-community/marin/issues/87"""


def of_request(state: Mapping[str, Any]) -> MachineState | None:
    """Return the state of a queued resource; None: its nodes decide."""
    native = str(state.get("state") or "STATE_UNSPECIFIED")
    if native == "ACTIVE":
        return None
    found = REQUEST.get(native, WAITING)
    if found == BROKEN:
        return _failed(native, object_at(state, "failedData", "error"))
    return MachineState(found, native, _suspended(native, state) if found == TAKEN else "")


def _suspended(native: str, state: Mapping[str, Any]) -> str:
    who = _WHO.get(str(state.get("stateInitiator")), "the platform")
    return f"{who} took its TPUs away ({native}); the request is no longer eligible for others"


def _failed(native: str, error: Mapping[str, Any]) -> MachineState:
    message, code = line(error.get("message") or ""), error.get("code")
    if lacks_capacity(message) or code == DEADLINE_EXCEEDED:
        return MachineState(BROKEN, native, message or "its time ran out", stockout=True)
    # A zone that has no room has been seen to say no more than INTERNAL.
    if code in (INTERNAL, UNAVAILABLE) or "preempted" in message.lower():
        return MachineState(TAKEN, native, message or f"the platform failed (code {code})")
    return MachineState(BROKEN, native, message or "Google says no reason")


def of_nodes(nodes: Mapping[str, Mapping[str, Any] | None]) -> MachineState:
    """Return the state of an ACTIVE request by its nodes: one lost node loses all, and all must be ready."""
    seen = [_node(name, node) for name, node in nodes.items()]
    worst = min(seen, key=lambda each: (TAKEN, STARTING, RUNNING).index(each.state))
    return worst if worst.state != RUNNING else MachineState(RUNNING, "ACTIVE")


def _node(name: str, node: Mapping[str, Any] | None) -> MachineState:
    if node is None:
        return MachineState(TAKEN, "ACTIVE", f"node {name} is no longer there")
    native = str(node.get("state") or "STATE_UNSPECIFIED")
    state = NODE.get(native, STARTING)
    if state == RUNNING:
        return MachineState(state, native)
    more = f": {line(node['healthDescription'])}" if node.get("healthDescription") else ""
    return MachineState(state, native, f"node {name} is {native}{more}")


def health_texts(name: str, node: Mapping[str, Any]) -> list[str]:
    """Return the faults that a node reports. Enums: the schemas Node.health and Symptom.symptomType of
    https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes"""
    found: list[str] = []
    if str(node.get("health") or "HEALTHY") not in ("HEALTHY", "HEALTH_UNSPECIFIED"):
        more = f": {line(node['healthDescription'])}" if node.get("healthDescription") else ""
        found.append(f"node {name} is {node['health']}{more}")
    for symptom in objects_at(node, "symptoms"):
        worker = f" of worker {symptom['workerId']}" if symptom.get("workerId") else ""
        details = f": {line(symptom['details'])}" if symptom.get("details") else ""
        found.append(f"node {name}: {symptom.get('symptomType')}{worker} at {symptom.get('createTime')}{details}")
    return found


def lacks_capacity(message: str) -> bool:
    said = message.lower()
    return any(words in said for words in STOCKOUT)


def request_refusal(refused: CloudRefused | Throttled) -> JobsError | None:
    """Return the error for a message that says more than its status: no capacity, or an exhausted quota; else None."""
    said = refused.message.lower()
    if lacks_capacity(said) or any(words in said for words in NOT_THERE):
        return NoCapacity(refused.message)
    if isinstance(refused, Throttled) and any(words in said for words in QUOTA):
        return CloudRefused(refused.message, "raise the quota, or wait until other TPUs of the project are gone")
    return None


def operation_refusal(doing: str, error: Mapping[str, Any]) -> JobsError:
    message = f"{doing}: {line(error.get('message') or error)}"
    if error.get("code") in (INTERNAL, UNAVAILABLE) and not lacks_capacity(message):
        return CloudSilent(message)
    plain = CloudRefused(message)
    return request_refusal(plain) or plain
