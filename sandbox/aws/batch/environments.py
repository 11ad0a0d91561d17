"""Compute environments: what Batch refuses at once, and the faults that it finds when they settle."""

import uuid
from collections.abc import Callable
from functools import partial

from .capacity import terminate
from .health import LINKED_ROLE, look, paralysis
from .instances import Kind, families, kinds
from .lifecycle import lose
from .state import Batch, BatchError, Document, Environment, page, require, short, valid_name

SPOT_ONLY = (
    "SPOT_CAPACITY_OPTIMIZED",
    "SPOT_PRICE_CAPACITY_OPTIMIZED",
    "SPOT_CAPACITY_OPTIMIZED_PRIORITIZED",
)
IMAGE_TYPES = ("ECS_AL2023", "ECS_AL2023_NVIDIA")
BLOCKED_IMAGE_TYPES = ("ECS_AL1", "ECS_AL2", "ECS_AL2_NVIDIA")
SCALING = {"minvCpus", "maxvCpus", "desiredvCpus"}
TEMPLATE_KEYS = {"launchTemplateId", "launchTemplateName"}
EXECUTING = "Error executing request, Exception : "


def instance_kinds(resources: Document) -> list[Kind]:
    found = {kind for entry in resources["instanceTypes"] for kind in kinds(entry)}
    return sorted(found, key=lambda kind: (kind.vcpus, kind.memory_mib, kind.name))


def _strategy(resources: Document) -> str:
    return resources.get("allocationStrategy", "BEST_FIT")


def _unsupported(resources: Document) -> list[str]:
    """Return the instance types that Batch's image for NVIDIA does not run on."""
    images = [row["imageType"] for row in resources["ec2Configuration"] if "imageIdOverride" not in row]
    names = resources["instanceTypes"] if "ECS_AL2023_NVIDIA" in images else []
    old = ("p3", "p3dn", "g3", "g3s")
    return [name for name in names if name.partition(".")[0] in old or any(kind.arm for kind in kinds(name))]


# Faults of computeResources, and what Batch says of them. Sources: departures.py.
FAULTS: tuple[tuple[Callable[[Document], object], str], ...] = (
    (lambda r: r["type"] not in ("EC2", "SPOT"), "type {type}: the sandbox runs EC2 and SPOT only"),
    (lambda r: not r.get("instanceRole"), "instanceRole must be specified"),
    (lambda r: not r.get("instanceTypes"), "instanceTypes must be specified"),
    (lambda r: not r.get("subnets"), "subnets must be specified"),
    (
        lambda r: not 0 <= r["minvCpus"] <= r["maxvCpus"],
        "minvCpus {minvCpus} must be 0 to maxvCpus {maxvCpus}",
    ),
    (
        lambda r: not r["minvCpus"] <= r["desiredvCpus"] <= r["maxvCpus"],
        "desiredvCpus {desiredvCpus} must be between minvCpus {minvCpus} and maxvCpus {maxvCpus}",
    ),
    (
        lambda r: not all(kinds(entry) for entry in r["instanceTypes"]),
        "Instance type can only be one of [" + ", ".join(families()) + "] or a size of them: {instanceTypes}",
    ),
    (lambda r: len({kind.arm for kind in instance_kinds(r)}) > 1, "{instanceTypes} mixes x86_64 and arm64"),
    (
        lambda r: r["type"] == "EC2" and _strategy(r) in SPOT_ONLY,
        "allocationStrategy {allocationStrategy} requires type SPOT",
    ),
    (
        lambda r: r["type"] == "SPOT" and _strategy(r) == "BEST_FIT" and "spotIamFleetRole" not in r,
        "spotIamFleetRole is required for type SPOT with allocationStrategy BEST_FIT",
    ),
    (lambda r: ":role/" in r["instanceRole"], "The ECS Instance Role should be an ECS Instance Profile ARN."),
    (lambda r: not 1 <= len(r["ec2Configuration"]) <= 2, "ec2Configuration takes one or two values"),
    (
        lambda r: any(
            row["imageType"] not in IMAGE_TYPES + BLOCKED_IMAGE_TYPES and "imageIdOverride" not in row
            for row in r["ec2Configuration"]
        ),
        "{ec2Configuration}: imageType must be one of " + ", ".join(IMAGE_TYPES),
    ),
    (
        _unsupported,
        "ECS_AL2023_NVIDIA doesn't support p3, g3 and Graviton-based instance types: {instanceTypes}",
    ),
    (
        lambda r: not r.get("securityGroupIds") and not r.get("launchTemplate"),
        "securityGroupIds must be specified, there or in a launch template",
    ),
    (
        lambda r: "launchTemplate" in r and len(r["launchTemplate"].keys() & TEMPLATE_KEYS) != 1,
        "launchTemplate takes exactly one of launchTemplateId and launchTemplateName: {launchTemplate}",
    ),
)


def _check(resources: Document, images: list[Document]) -> None:
    """Refuse faulty resources. `images` are those of this request only, since an old environment keeps its own."""
    for wrong, text in FAULTS:
        if wrong(resources):
            raise BatchError(EXECUTING + text.format(**resources))
    for row in images:
        require(
            row["imageType"] not in BLOCKED_IMAGE_TYPES or "imageIdOverride" in row,
            f"{EXECUTING}{row['imageType']} is blocked: support for Amazon Linux 2 ended on June 30, 2026",
        )


def _default_images(resources: Document) -> list[Document]:
    gpu = {kind.gpus > 0 for entry in resources.get("instanceTypes", []) for kind in kinds(entry)}
    return [{"imageType": IMAGE_TYPES[has_gpu]} for has_gpu in sorted(gpu)]


def find(batch: Batch, name_or_arn: str) -> Environment:
    found = batch.environments.get(short(name_or_arn))
    if found is None:
        raise BatchError(f"{name_or_arn} does not exist")
    return found


def create(batch: Batch, request: Document) -> Document:
    name = valid_name(request, "computeEnvironmentName")
    require(name not in batch.environments, "Object already exists")
    managed = request["type"] == "MANAGED" and "eksConfiguration" not in request
    require(managed, "the sandbox runs MANAGED compute environments on ECS only")
    require("computeResources" in request, f"{EXECUTING}computeResources must be provided")
    given = {"minvCpus": 0, **request["computeResources"]}
    resources = {"desiredvCpus": given["minvCpus"], "ec2Configuration": _default_images(given), **given}
    _check(resources, resources["ec2Configuration"])
    account = f"{batch.partition}:iam::{batch.account_id}"
    cluster = f"{batch.partition}:ecs:{batch.region_name}:{batch.account_id}:cluster/AWSBatch-{name}"
    document: Document = {
        "serviceRole": f"arn:{account}:role{LINKED_ROLE}batch.amazonaws.com/AWSServiceRoleForBatch",
        "state": "ENABLED",
        **request,
        "computeEnvironmentArn": batch.arn("compute-environment", name),
        "ecsClusterArn": f"arn:{cluster}-{uuid.uuid4()}",
        "computeResources": resources,
        "containerOrchestrationType": "ECS",
        "uuid": str(uuid.uuid4()),
    }
    batch.tag_resource(document["computeEnvironmentArn"], request.get("tags", {}))
    environment = batch.environments[name] = Environment(document)
    batch.ecs_backend.create_cluster(document["ecsClusterArn"].rpartition("/")[2])
    batch.settle(document, "CREATING", partial(look, batch, environment))
    return {"computeEnvironmentName": name, "computeEnvironmentArn": document["computeEnvironmentArn"]}


def _changed(environment: Environment, changes: Document) -> Document:
    """Return the environment's resources after `changes`. Refuses changes for which AWS requires a new environment."""
    old = environment.document["computeResources"]
    if infrastructure := ", ".join(sorted(set(changes) - SCALING)):
        text = f"{EXECUTING}{infrastructure}: infrastructure updates aren't supported with "
        require(_strategy(old) != "BEST_FIT", f"{text}allocationStrategy BEST_FIT")
        require(
            LINKED_ROLE in environment.document["serviceRole"],
            f"{text}a service role other than the service-linked role",
        )
    require(
        changes.get("desiredvCpus", 1 << 31) >= max(environment.vcpus, old["desiredvCpus"]),
        "Manually scaling down compute environment is not supported. Disconnecting job queues from compute "
        "environment will cause it to scale-down to minvCpus.",
    )
    new = {**old, **{key: value for key, value in changes.items() if key != "updateToLatestImageVersion"}}
    # An empty string removes the setting; in a launch template, that of its id or name.
    if "" in changes.get("launchTemplate", {}).values():
        new.pop("launchTemplate")
    new = {key: value for key, value in new.items() if value != ""}
    new["ec2Configuration"] = new["ec2Configuration"] or _default_images(new)
    if "desiredvCpus" not in changes:
        new["desiredvCpus"] = max(new["minvCpus"], min(old["desiredvCpus"], new["maxvCpus"]))
    _check(new, changes.get("ec2Configuration", []))
    return new


def update(batch: Batch, request: Document) -> Document:
    """Answer UpdateComputeEnvironment: a scaling update, or one that replaces the instances.

    Jobs on replaced instances go on for as long as the policy allows, and the environment is UPDATING until the last
    has ended. Source: https://docs.aws.amazon.com/batch/latest/userguide/infrastructure-updates.html
    """
    environment = find(batch, request["computeEnvironment"])
    document = environment.document
    require(document["status"] in ("VALID", "INVALID"), "Cannot update, resource is being modified")
    linked = LINKED_ROLE in document["serviceRole"]
    require(
        (LINKED_ROLE in request.get("serviceRole", document["serviceRole"])) == linked,
        f"{EXECUTING}serviceRole can't change between the service-linked role and a regular IAM role",
    )
    old = document["computeResources"]
    changes = {key: row for key, row in request.get("computeResources", {}).items() if old.get(key) != row}
    resources = _changed(environment, changes)
    if policy := request.get("updatePolicy"):
        defaults = {"terminateJobsOnUpdate": False, "jobExecutionTimeoutMinutes": 30}
        document["updatePolicy"] = {**defaults, **document.get("updatePolicy", {}), **policy}
    document |= {key: request[key] for key in ("state", "serviceRole") if key in request}
    document["computeResources"] = resources
    instances = list(environment.instances.values()) if set(changes) - SCALING else []
    jobs = {job for instance in instances for job in instance.jobs}
    ends = document.get("updatePolicy") or {"terminateJobsOnUpdate": False, "jobExecutionTimeoutMinutes": 30}
    wait_s = 0 if ends["terminateJobsOnUpdate"] else 60 * ends["jobExecutionTimeoutMinutes"]
    until = batch.world.now() + wait_s

    def step() -> None:
        if jobs & batch.running.keys():
            if batch.world.now() < until:
                batch.settle(document, "UPDATING", step)
                return
            for instance in instances:
                lose(batch, instance)
        look(batch, environment)

    batch.settle(document, "UPDATING", step)
    return {key: document[key] for key in ("computeEnvironmentName", "computeEnvironmentArn")}


def delete(batch: Batch, request: Document) -> Document:
    """Answer DeleteComputeEnvironment: only once it is DISABLED, and no queue names it or named it a while ago.

    A service role that Batch can't assume makes it INVALID again. What still runs ends with its instances: AWS
    documents that for Fargate only, where the environment becomes INVALID instead.
    """
    if (environment := batch.environments.get(short(request["computeEnvironment"]))) is None:
        return {}
    document = environment.document
    require(document["status"] in ("VALID", "INVALID"), "Cannot delete, resource is being modified")
    require(document["state"] == "DISABLED", "Cannot delete, state must be DISABLED")
    orders = [entry for queue in batch.queues.values() for entry in queue.document["computeEnvironmentOrder"]]
    named = any(entry["computeEnvironment"] == document["computeEnvironmentArn"] for entry in orders)
    held = named or batch.world.now() < environment.linked_until
    require(not held, "Cannot delete, found existing JobQueue relationship")
    batch.settle(document, "DELETING", partial(_delete_once_empty, batch, environment))
    return {}


def _delete_once_empty(batch: Batch, environment: Environment) -> None:
    if reason := paralysis(batch, environment):
        environment.document |= {"status": "INVALID", "statusReason": reason}
        return
    for instance in list(environment.instances.values()):
        lose(batch, instance)
        if not instance.jobs:
            terminate(batch, environment, instance)
    if environment.instances:
        batch.world.after(batch.world.settle_s, partial(_delete_once_empty, batch, environment))
        return
    batch.ecs_backend.delete_cluster(environment.document["ecsClusterArn"])
    del batch.environments[environment.name]


def describe(batch: Batch, request: Document) -> Document:
    wanted = {short(entry) for entry in request.get("computeEnvironments", [])}
    rows: list[Document] = []
    for name, environment in batch.environments.items():
        if not wanted or name in wanted:
            row = {**environment.document, "computeResources": {**environment.document["computeResources"]}}
            desired = row["computeResources"]["desiredvCpus"]
            row["computeResources"]["desiredvCpus"] = max(environment.vcpus, desired)
            rows.append({**row, "tags": batch.list_tags_for_resource(row["computeEnvironmentArn"])})
    found, token = page(rows, "computeEnvironmentName", request, 100)
    return {"computeEnvironments": found, **token}


OPERATIONS = {
    "CreateComputeEnvironment": create,
    "UpdateComputeEnvironment": update,
    "DeleteComputeEnvironment": delete,
    "DescribeComputeEnvironments": describe,
}
