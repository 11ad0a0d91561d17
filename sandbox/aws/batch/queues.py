"""Job queues, and the snapshot of their front."""

from typing import Any

from . import environments, policies
from .environments import instance_kinds
from .lifecycle import stop
from .state import Batch, BatchError, Document, Queue, page, require, short, valid_name


def _check(batch: Batch, document: Document) -> None:
    order = document["computeEnvironmentOrder"]
    require(1 <= len(order) <= 3, f"computeEnvironmentOrder takes one to three environments, has {len(order)}")
    require(len({entry["order"] for entry in order}) == len(order), "computeEnvironmentOrder repeats an order")
    arms: set[bool] = set()
    for entry in order:
        environment = environments.find(batch, entry["computeEnvironment"]).document
        require(environment["status"] == "VALID", f"{entry['computeEnvironment']} is not valid")
        # AWS answers with ARNs, whatever the request named.
        entry["computeEnvironment"] = environment["computeEnvironmentArn"]
        arms |= {kind.arm for kind in instance_kinds(environment["computeResources"])}
    require(len(arms) == 1, "all compute environments of a job queue must have the same architecture")
    for action in document["jobStateTimeLimitActions"]:
        require(
            action["action"] == "CANCEL",
            "jobStateTimeLimitActions: the only action of an ECS queue is CANCEL",
        )
        seconds = action["maxTimeSeconds"]
        require(600 <= seconds <= 86_400, f"maxTimeSeconds {seconds} must be between 600 and 86400")
    if policy := document.get("schedulingPolicyArn"):
        policies.find(batch, policy)
    require(document["priority"] >= 0, f"priority {document['priority']} must be at least 0")


def find(batch: Batch, name_or_arn: str) -> Queue:
    found = batch.queues.get(short(name_or_arn))
    if found is None:
        raise BatchError(f"JobQueue {name_or_arn} not found.")
    return found


def create(batch: Batch, request: Document) -> Document:
    name = valid_name(request, "jobQueueName")
    require(name not in batch.queues, "Object already exists")
    document: Document = {
        "state": "ENABLED",
        "jobStateTimeLimitActions": [],
        "computeEnvironmentOrder": [],
        "jobQueueType": "ECS",
        **request,
        "jobQueueArn": batch.arn("job-queue", name),
    }
    _check(batch, document)
    batch.tag_resource(document["jobQueueArn"], request.get("tags", {}))
    batch.queues[name] = Queue(document)
    batch.settle(document, "CREATING", lambda: _settled(document))
    return {"jobQueueName": name, "jobQueueArn": document["jobQueueArn"]}


def _settled(document: Document) -> None:
    if document["status"] in ("CREATING", "UPDATING"):
        document |= {"status": "VALID", "statusReason": "JobQueue Healthy"}


def update(batch: Batch, request: Document) -> Document:
    """Answer UpdateJobQueue. An environment that it unlinks stays in use for World.unlink_s."""
    document = find(batch, request["jobQueue"]).document
    require(document["status"] == "VALID", "Cannot update, resource is being modified")
    changed = {**document, **{key: value for key, value in request.items() if key != "jobQueue"}}
    fair = [bool(each.get("schedulingPolicyArn")) for each in (document, changed)]
    require(fair[0] == fair[1], "a job queue's scheduling policy can be replaced, not added or removed")
    if request.keys() & {"computeEnvironmentOrder", "jobStateTimeLimitActions", "schedulingPolicyArn"}:
        _check(batch, changed)
    before, after = (
        {entry["computeEnvironment"] for entry in each["computeEnvironmentOrder"]} for each in (document, changed)
    )
    for arn in before - after:
        held_s = max(batch.world.settle_s, batch.world.unlink_s)
        environments.find(batch, arn).linked_until = batch.world.now() + held_s
    document |= changed
    batch.settle(document, "UPDATING", lambda: _settled(document))
    return {key: document[key] for key in ("jobQueueName", "jobQueueArn")}


def delete(batch: Batch, request: Document) -> Document:
    """Answer DeleteJobQueue: only once the queue is DISABLED. Its jobs end FAILED."""
    if (queue := batch.queues.get(short(request["jobQueue"]))) is None:
        return {}
    document = queue.document
    require(document["status"] == "VALID", "Cannot delete, resource is being modified")
    require(document["state"] == "DISABLED", "Cannot delete, state must be DISABLED")
    batch.settle(document, "DELETING", lambda: _delete_once_empty(batch, queue))
    for job in list(queue.jobs.values()):
        stop(batch, job, "Job queue deleted", "isTerminated")
    return {}


def _delete_once_empty(batch: Batch, queue: Queue) -> None:
    if all(job.ended for job in queue.jobs.values()):
        del batch.queues[queue.document["jobQueueName"]]
    else:
        batch.world.after(batch.world.settle_s, lambda: _delete_once_empty(batch, queue))


def describe(batch: Batch, request: Document) -> Document:
    wanted = {short(entry) for entry in request.get("jobQueues", [])}
    rows = [
        {**queue.document, "tags": batch.list_tags_for_resource(queue.document["jobQueueArn"])}
        for name, queue in batch.queues.items()
        if not wanted or name in wanted
    ]
    found, token = page(rows, "jobQueueName", request, 100)
    return {"jobQueues": found, **token}


def snapshot(batch: Batch, request: Document) -> Document:
    """Answer GetJobQueueSnapshot: the first hundred RUNNABLE jobs, in the order of their turn."""
    waiting = policies.turn_order(batch, find(batch, request["jobQueue"]))[:100]
    jobs: list[dict[str, Any]] = [
        {"jobArn": job.document["jobArn"], "earliestTimeAtPosition": job.document["createdAt"]} for job in waiting
    ]
    return {"frontOfQueue": {"jobs": jobs, "lastUpdatedAt": batch.world.ms()}}


OPERATIONS = {
    "CreateJobQueue": create,
    "UpdateJobQueue": update,
    "DeleteJobQueue": delete,
    "DescribeJobQueues": describe,
    "GetJobQueueSnapshot": snapshot,
}
