"""Conversion of AWS Batch compute environments, job queues and job definitions to ours."""

import re
from collections.abc import Mapping
from typing import Any

from accel.catalog.aws_partitions import partition_of
from accel.rules.aws.environments import launch_template
from accel.rules.aws.roles import SERVICE_LINKED_ROLE

from .documents import AwsResource, Json, block, entries
from .notes import Part

CAPACITY = {"EC2": "on-demand", "SPOT": "spot"}
_COMPUTE_FIELDS = {
    "instanceTypes": "instance_types",
    "maxvCpus": "max_vcpus",
    "minvCpus": "min_vcpus",
    "allocationStrategy": "allocation_strategy",
    "instanceRole": "instance_profile",
    "bidPercentage": "bid_percentage",
    "spotIamFleetRole": "spot_fleet_role",
}
"""Fields of `computeResources` that are copied unchanged."""

KEEPS = {"ec2KeyPair": "key_pair", "imageId": "image_id", "placementGroup": "placement_group"}
"""Fields without a counterpart. An existing environment keeps them: without them AWS would replace its instances."""

DISK_GIB = 30
"""Root volume of an ECS-optimised image without a launch template that says otherwise.
Source: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-optimized_AMI.html"""

_COMPUTE_HANDLED = {*_COMPUTE_FIELDS, *KEEPS, "type", "desiredvCpus", "subnets", "securityGroupIds", "ec2Configuration",
                    "tags", "launchTemplate"}  # fmt: skip
_ENVIRONMENT_HANDLED = {
    *("computeEnvironmentName", "computeEnvironmentArn", "ecsClusterArn", "type", "state", "status", "statusReason"),
    *("computeResources", "serviceRole", "updatePolicy", "containerOrchestrationType", "uuid", "tags"),
}


def unfit_environment(document: Json) -> str | None:
    kind = str(resources(document).get("type", ""))
    if document.get("type") == "UNMANAGED":
        return "is UNMANAGED: its instances are somebody else's"
    if document.get("eksConfiguration") or document.get("containerOrchestrationType") == "EKS":
        return "runs on EKS"
    if kind.startswith("FARGATE"):
        return f"is {kind}, which has no GPUs"
    return None if kind in CAPACITY else f"computeResources.type is {kind or 'missing'}; known: {', '.join(CAPACITY)}"


def resources(document: Json) -> Json:
    return block(document, "computeResources")


def environment(found: AwsResource, key: str) -> Part:
    """Keep name, image, launch template and instance tags of an existing environment."""
    part, inner = Part(key), resources(found.document)
    part.values["capacity"] = CAPACITY[str(inner["type"])]
    part.values |= {ours: inner[theirs] for theirs, ours in _COMPUTE_FIELDS.items() if theirs in inner}
    if (state := found.document.get("state")) not in (None, "ENABLED"):
        part.values["state"] = state
    role = str(found.document.get("serviceRole") or "")
    if role and not role.endswith(SERVICE_LINKED_ROLE):
        part.values["service_role"] = role
    _image(part, inner)
    if found.exists:
        _keep_environment(part, found, inner)
    else:
        _environment_notes(part, found, inner)
    part.rest(inner, _COMPUTE_HANDLED, "computeResources.")
    part.rest(found.document, _ENVIRONMENT_HANDLED)
    return part


def _image(part: Part, inner: Json) -> None:
    for index, image in enumerate(entries(inner, "ec2Configuration")):
        if index:
            part.note("lost", f"ec2Configuration[{index}]", f"is {image.get('imageType')}; one image type is carried")
            continue
        part.values["image_type"] = image.get("imageType")
        if image.get("imageIdOverride"):
            part.values["image_id_override"] = image["imageIdOverride"]


def _keep_environment(part: Part, found: AwsResource, inner: Json) -> None:
    role = str(inner.get("instanceRole") or "")
    if role and not role.startswith("arn:"):
        # The provider compares texts, and a difference makes AWS run an infrastructure update.
        part.note("set", "instance_profile", f"to the ARN of {role} in every update: the first one replaces instances")
    part.keeps += ["image", "instance_tags", "launch_template"]
    template = block(inner, "launchTemplate")
    if template:
        part.note("kept", "launchTemplate", _named(template))
        _moving(part, template)
    if tags := block(inner, "tags"):
        part.note("kept", "computeResources.tags", f"instances keep {', '.join(sorted(tags))}")
    part.values["instance"] = {"disk_gib": DISK_GIB}
    if template:
        part.note("set", "instance.disk_gib", f"to {DISK_GIB}, for jobs that ask for disk; what the template gives")
    for theirs, word in KEEPS.items():
        if theirs in inner:
            part.keep(word, f"computeResources.{theirs}", f"{inner[theirs]}, which has no counterpart here")
    if "allocationStrategy" not in inner:
        part.keeps.append("allocation_strategy")
        part.values["allocation_strategy"] = "BEST_FIT"  # AWS's own default
    policy = block(found.document, "updatePolicy")
    if "terminateJobsOnUpdate" in policy:
        part.values["terminate_jobs_on_update"] = policy["terminateJobsOnUpdate"]
    if "jobExecutionTimeoutMinutes" in policy:
        part.values["update_timeout_min"] = policy["jobExecutionTimeoutMinutes"]
    part.values["adopted"] = {"name": found.name, "tags": block(found.document, "tags"), "keeps": part.keeps}


def _environment_notes(part: Part, found: AwsResource, inner: Json) -> None:
    template = block(inner, "launchTemplate")
    if template:
        part.note("lost", "launchTemplate", f"{_named(template)}; the stack makes its own: write `instance`")
        _moving(part, template)
    if image := inner.get("imageId"):
        part.values.setdefault("image_id_override", image)
    for theirs in ("ec2KeyPair", "placementGroup"):
        if theirs in inner:
            part.note("lost", f"computeResources.{theirs}", f"is {inner[theirs]}, and has no counterpart here")
    for field, tags in (("tags", block(found.document, "tags")), ("computeResources.tags", block(inner, "tags"))):
        if tags:
            part.note("lost", field, f"{', '.join(sorted(tags))}; the stack tags by `labels`")


def _named(template: Json) -> str:
    name = template.get("launchTemplateName") or template.get("launchTemplateId")
    return f"{name}, version {template.get('version') or '$Default'}"


def _moving(part: Part, template: Json) -> None:
    name = str(template.get("launchTemplateName") or template.get("launchTemplateId"))
    for finding in launch_template(name, template.get("version")):
        part.note("warning", finding.field, f"{finding.text} [{finding.rule}]")


_QUEUE_HANDLED = {
    *("jobQueueName", "jobQueueArn", "state", "status", "statusReason", "priority", "computeEnvironmentOrder"),
    *("tags", "jobStateTimeLimitActions", "schedulingPolicyArn"),
}


def environment_names(found: AwsResource) -> list[str]:
    ordered = sorted(entries(found.document, "computeEnvironmentOrder"), key=lambda one: str(one.get("order")).zfill(9))
    return [str(one.get("computeEnvironment")).rpartition("/")[2] for one in ordered]


def unfit_queue(found: AwsResource, environments: Mapping[str, str], refused: Mapping[str, str]) -> str | None:
    """Return why a queue cannot become one of ours. `environments`: keys by name; `refused`: why each is left out."""
    if found.document.get("serviceEnvironmentOrder") or found.document.get("jobQueueType") == "SAGEMAKER_TRAINING":
        return "is a queue of SageMaker training jobs"
    for name in environment_names(found):
        if name in refused:
            return f"uses {name}, which {refused[name]}"
        if name not in environments:
            return f"uses {name}, which is not in these files: give what AWS answers of it too"
    return None


def queue(found: AwsResource, key: str, environments: Mapping[str, str]) -> Part:
    """Keep name and time limits of an existing queue."""
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
    part.rest(document, {*_QUEUE_HANDLED, "jobQueueType"})
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


_CONTAINER_FIELDS = {
    "image": "image",
    "command": "command",
    "jobRoleArn": "job_role",
    "executionRoleArn": "execution_role",
}
"""Fields of `containerProperties` that are copied unchanged."""

REQUIREMENTS = {"VCPU": "vcpus", "MEMORY": "memory_mib", "GPU": "gpus"}
OLD_REQUIREMENTS = {"vcpus": "vcpus", "memory": "memory_mib"}
"""Fields of definitions from before `resourceRequirements`."""
EXIT = {"onStatusReason": "on_status_reason", "onReason": "on_reason", "onExitCode": "on_exit_code"}

_CONTAINER_HANDLED = {*_CONTAINER_FIELDS, *OLD_REQUIREMENTS, "environment", "secrets", "resourceRequirements",
                      "linuxParameters", "logConfiguration"}  # fmt: skip
_LOG_OPTIONS = {"awslogs-group", "awslogs-region", "awslogs-stream-prefix", "awslogs-create-group"}
_DEFINITION_HANDLED = {
    *("jobDefinitionName", "jobDefinitionArn", "revision", "status", "type", "containerProperties", "retryStrategy"),
    *("timeout", "tags", "propagateTags", "platformCapabilities", "containerOrchestrationType"),
    *("parameters", "schedulingPriority"),
}
_ECR = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.(?:com(?:\.cn)?|eu)/(?P<name>[^:@]+)"
)


def unfit_definition(document: Json) -> str | None:
    if document.get("type") == "multinode" or document.get("nodeProperties"):
        return "is a multi-node definition"
    if document.get("eksProperties"):
        return "runs on EKS"
    if document.get("ecsProperties"):
        return "has ecsProperties, for several containers; ours have containerProperties, for one"
    if "FARGATE" in (document.get("platformCapabilities") or []):
        return "is for Fargate, which has no GPUs"
    return None if document.get("containerProperties") else "has no containerProperties"


def definition(found: AwsResource, key: str) -> Part:
    """Keep the whole container of an existing definition if a field of it has no counterpart."""
    part, document = Part(key), found.document
    inner = block(document, "containerProperties")
    part.values |= {ours: inner[theirs] for theirs, ours in _CONTAINER_FIELDS.items() if theirs in inner}
    _size(part, inner, found.exists)
    part.values["env"] = {str(one.get("name")): one.get("value", "") for one in entries(inner, "environment")}
    part.values["secrets"] = {str(one.get("name")): one.get("valueFrom") for one in entries(inner, "secrets")}
    part.values = {name: value for name, value in part.values.items() if value != {}}
    _attempts(part, document, found.exists)
    lost = part.rest(inner, _CONTAINER_HANDLED, "containerProperties.")
    lost += part.rest(block(inner, "linuxParameters"), {"sharedMemorySize", "initProcessEnabled"}, "linuxParameters.")
    log = block(inner, "logConfiguration")
    lost += ["logConfiguration"] if log.get("logDriver", "awslogs") != "awslogs" else []
    _log(part, log, found)
    if found.exists:
        _keep_definition(part, found, lost)
    else:
        for field in ("parameters", "schedulingPriority"):
            if document.get(field):
                part.note("lost", field, f"is {document[field]}, and has no counterpart here")
        if tags := block(document, "tags"):
            part.note("lost", "tags", f"{', '.join(sorted(tags))}; the stack tags by `labels`")
    part.rest(document, _DEFINITION_HANDLED)
    return part


def _size(part: Part, inner: Json, exists: bool) -> None:
    for old, ours in OLD_REQUIREMENTS.items():
        if old in inner:
            part.values[ours] = inner[old]
    part.values["gpus"] = 0
    for need in entries(inner, "resourceRequirements"):
        kind, value = str(need.get("type")), str(need.get("value"))
        if kind in REQUIREMENTS:
            part.values[REQUIREMENTS[kind]] = int(value) if value.isdecimal() else value
    shared = block(inner, "linuxParameters").get("sharedMemorySize")
    if shared or exists:
        part.values["shm_mib"] = shared


def _attempts(part: Part, document: Json, exists: bool) -> None:
    retry = block(document, "retryStrategy")
    if retry or exists:
        part.values["attempts"] = retry.get("attempts") or 1
        part.values["evaluate_on_exit"] = [_exit(rule) for rule in entries(retry, "evaluateOnExit")]
    timeout = block(document, "timeout").get("attemptDurationSeconds")
    if timeout or exists:
        part.values["timeout_s"] = timeout
    if exists or "propagateTags" in document:
        part.values["propagate_tags"] = bool(document.get("propagateTags"))


def _exit(rule: Json) -> Json:
    # AWS returns the action in lower case, whatever the input.
    return {"action": str(rule.get("action")).upper()} | {
        ours: str(rule[key]) for key, ours in EXIT.items() if key in rule
    }


def _log(part: Part, log: Json, found: AwsResource) -> None:
    """Keep log group and stream prefix: alarms and exports that read them by name go on to do so."""
    driver = log.get("logDriver", "awslogs")
    if driver != "awslogs":
        if not found.exists:
            part.note("lost", "logConfiguration", f"{driver}; jobs log to the stack's own log group from now on")
        return
    options = block(log, "options")
    # Without a configuration Batch writes there, to streams that begin with the definition's name. Source:
    # https://docs.aws.amazon.com/batch/latest/userguide/using_awslogs.html
    group = str(options.get("awslogs-group") or "/aws/batch/job")
    prefix = str(options.get("awslogs-stream-prefix") or found.name)
    here = found.arn.split(":")[3] if found.exists else ""
    elsewhere = options.get("awslogs-region")
    if here and elsewhere and elsewhere != here:
        text = f"log group {group} of {elsewhere}; jobs log to the stack's own log group from now on"
        part.note("lost", "logConfiguration", text)
        return
    part.values |= {"log_group": group, "log_prefix": prefix}
    part.note("kept", "logConfiguration", f"log group {group}, streams {prefix}/")
    part.rest(options, _LOG_OPTIONS, "logConfiguration.options.")


def _keep_definition(part: Part, found: AwsResource, lost: list[str]) -> None:
    document = found.document
    if lost:
        part.keep("container", "containerProperties", f"whole, for the sake of {', '.join(lost)}: image, env, logs too")
    for field, word in (("parameters", "parameters"), ("schedulingPriority", "scheduling_priority")):
        if document.get(field):
            part.keep(word, field, f"{document[field]}, which has no counterpart here")
    part.values["adopted"] = {"name": found.name, "tags": block(document, "tags"), "keeps": part.keeps}


def repository(image: str) -> str | None:
    ecr = _ECR.match(image)
    if not ecr:
        return None
    partition = partition_of(ecr["region"]).name
    return f"arn:{partition}:ecr:{ecr['region']}:{ecr['account']}:repository/{ecr['name']}"
