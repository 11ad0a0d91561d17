"""A job queue of AWS as one of ours."""

from collections.abc import Mapping
from typing import Any

from .documents import AwsResource, Json, block, entries
from .notes import Part

_HANDLED = {
    *("jobQueueName", "jobQueueArn", "state", "status", "statusReason", "priority", "computeEnvironmentOrder"),
    *("tags", "jobStateTimeLimitActions", "schedulingPolicyArn"),
}


def environment_names(found: AwsResource) -> list[str]:
    """The environments that a queue tries, in their order, each by its name."""
    ordered = sorted(entries(found.document, "computeEnvironmentOrder"), key=lambda one: str(one.get("order")).zfill(9))
    return [str(one.get("computeEnvironment")).rpartition("/")[2] for one in ordered]


def unfit(found: AwsResource, environments: Mapping[str, str], refused: Mapping[str, str]) -> str | None:
    """Why a queue cannot be one of ours. `environments`: keys by name; `refused`: why an environment is left out."""
    if found.document.get("serviceEnvironmentOrder") or found.document.get("jobQueueType") == "SAGEMAKER_TRAINING":
        return "is a queue of SageMaker training jobs"
    for name in environment_names(found):
        if name in refused:
            return f"uses {name}, which {refused[name]}"
        if name not in environments:
            return f"uses {name}, which is not in these files: give what AWS answers of it too"
    return None


def queue(found: AwsResource, key: str, environments: Mapping[str, str]) -> Part:
    """The values of one queue; one that exists keeps its name, and the time limits that it has."""
    part, document = Part(key), found.document
    part.values["environments"] = [environments[name] for name in environment_names(found)]
    if "priority" in document:
        part.values["priority"] = document["priority"]
    if document.get("state") not in (None, "ENABLED"):
        part.values["state"] = document["state"]
    limits = _limits(part, entries(document, "jobStateTimeLimitActions"))
    if limits or found.exists:
        part.values["time_limits"] = limits
    policy, tags = document.get("schedulingPolicyArn"), block(document, "tags")
    if not found.exists:
        if policy:
            part.note("lost", "schedulingPolicyArn", f"is {policy}; write `fair_share`")
        if tags:
            part.note("lost", "tags", f"{', '.join(sorted(tags))}; the stack tags by `labels`")
    else:
        if policy:
            part.keep(
                "scheduling_policy",
                "schedulingPolicyArn",
                f"{policy}; jobs name their share of it",
            )
        part.values["adopted"] = {"name": found.name, "tags": tags, "keeps": part.keeps}
    part.rest(document, {*_HANDLED, "jobQueueType"})
    return part


def _limits(part: Part, actions: list[Json]) -> list[dict[str, Any]]:
    limits: list[dict[str, Any]] = []
    for index, action in enumerate(actions):
        if action.get("state") == "RUNNABLE" and action.get("action") == "CANCEL":
            limits.append({"reason": action.get("reason"), "max_time_s": action.get("maxTimeSeconds")})
        else:
            does = f"{action.get('action')} of {action.get('state')} jobs"
            part.note("lost", f"jobStateTimeLimitActions[{index}]", f"{does}; CANCEL of RUNNABLE ones is carried")
    return limits
