"""Job definitions and their revisions."""

import re

from . import nodes
from .containers import complete
from .state import Batch, BatchError, Document, page, require, short, valid_name

GLOBS = {
    "onExitCode": r"[0-9]{0,511}\*?",
    "onReason": r"[\w.:\s]{0,511}\*?",
    "onStatusReason": r"[\w.:\s]{0,511}\*?",
}


def check_limits(request: Document) -> None:
    """Refuse a retry strategy or a timeout outside the documented limits."""
    retry = request.get("retryStrategy", {})
    attempts, rules = retry.get("attempts"), retry.get("evaluateOnExit", [])
    require(attempts is None or 1 <= attempts <= 10, f"retryStrategy.attempts {attempts} must be 1 to 10")
    require(not rules or attempts is not None, "retryStrategy.attempts must be given with evaluateOnExit")
    require(len(rules) <= 5, f"evaluateOnExit takes up to 5 conditions, has {len(rules)}")
    for rule in rules:
        for key, pattern in GLOBS.items():
            text = rule.get(key, "")
            require(re.fullmatch(pattern, text), f"evaluateOnExit.{key} {text!r} is not a valid pattern")
    seconds = request.get("timeout", {}).get("attemptDurationSeconds", 60)
    require(seconds >= 60, f"attemptDurationSeconds {seconds} must be at least 60")


def register(batch: Batch, request: Document) -> Document:
    """Count deregistered revisions too."""
    name = valid_name(request, "jobDefinitionName")
    check_limits(request)
    document = dict(request)
    if request["type"] == "container":
        require(
            "containerProperties" in request,
            "containerProperties must be provided: the sandbox runs no other",
        )
        document["containerProperties"] = complete(request["containerProperties"])
    else:
        require("nodeProperties" in request, "nodeProperties must be provided for a multinode job definition")
        nodes.check(request["nodeProperties"])
    revisions = batch.definitions.setdefault(name, [])
    revision = len(revisions) + 1
    document |= {
        "jobDefinitionArn": batch.arn("job-definition", f"{name}:{revision}"),
        "revision": revision,
        "status": "ACTIVE",
        "containerOrchestrationType": "ECS",
    }
    batch.tag_resource(document["jobDefinitionArn"], request.get("tags", {}))
    revisions.append(document)
    return {key: document[key] for key in ("jobDefinitionName", "jobDefinitionArn", "revision")}


def find(batch: Batch, reference: str) -> Document:
    """Return the ACTIVE definition of a name, name:revision or ARN; without a revision, the latest."""
    name, _, revision = short(reference).partition(":")
    active = [row for row in batch.definitions.get(name, []) if row["status"] == "ACTIVE"]
    if revision:
        require(
            revision.isdigit(),
            f"Provided name {short(reference)} is not supported pattern[a-zA-Z_0-9-]{{1,128}}",
        )
        active = [row for row in active if row["revision"] == int(revision)]
    if not active:
        raise BatchError(f"JobDefinition name {reference} does not exist or is not in ACTIVE status.")
    return active[-1]


def deregister(batch: Batch, request: Document) -> Document:
    """Make a revision INACTIVE; it keeps its number."""
    name, _, revision = short(request["jobDefinition"]).partition(":")
    require(revision.isdigit(), f"{request['jobDefinition']}: a revision is required")
    for row in batch.definitions.get(name, []):
        if row["revision"] == int(revision):
            row["status"] = "INACTIVE"
    return {}


def describe(batch: Batch, request: Document) -> Document:
    wanted = {short(entry) for entry in request.get("jobDefinitions", [])}
    name, status = short(request.get("jobDefinitionName", "")), request.get("status")
    rows = [
        {**row, "tags": batch.list_tags_for_resource(row["jobDefinitionArn"])}
        for revisions in batch.definitions.values()
        for row in reversed(revisions)
        if (not name or row["jobDefinitionName"] == name)
        and (not wanted or short(row["jobDefinitionArn"]) in wanted or row["jobDefinitionName"] in wanted)
        and (not status or row["status"] == status)
    ]
    found, token = page(rows, "jobDefinitionArn", request, 100)
    return {"jobDefinitions": found, **token}


OPERATIONS = {
    "RegisterJobDefinition": register,
    "DeregisterJobDefinition": deregister,
    "DescribeJobDefinitions": describe,
}
