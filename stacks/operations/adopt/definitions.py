"""A job definition of AWS as one of ours."""

import re

from accel.catalog.aws_partitions import partition_of

from .documents import AwsResource, Json, block, entries
from .notes import Part

FIELDS = {"image": "image", "command": "command", "jobRoleArn": "job_role", "executionRoleArn": "execution_role"}
"""What is carried as it is, from `containerProperties`."""

REQUIREMENTS = {"VCPU": "vcpus", "MEMORY": "memory_mib", "GPU": "gpus"}
OLD_REQUIREMENTS = {"vcpus": "vcpus", "memory": "memory_mib"}
"""Of definitions from before `resourceRequirements`."""
EXIT = {"onStatusReason": "on_status_reason", "onReason": "on_reason", "onExitCode": "on_exit_code"}

_HANDLED = {*FIELDS, *OLD_REQUIREMENTS, "environment", "secrets", "resourceRequirements", "linuxParameters",
            "logConfiguration"}  # fmt: skip
_LOG_OPTIONS = {"awslogs-group", "awslogs-region", "awslogs-stream-prefix", "awslogs-create-group"}
_OUTER = {
    *("jobDefinitionName", "jobDefinitionArn", "revision", "status", "type", "containerProperties", "retryStrategy"),
    *("timeout", "tags", "propagateTags", "platformCapabilities", "containerOrchestrationType"),
    *("parameters", "schedulingPriority"),
}
_ECR = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.(?:com(?:\.cn)?|eu)/(?P<name>[^:@]+)"
)


def unfit(document: Json) -> str | None:
    """Why a definition cannot be one of ours."""
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
    """The values of one definition. What has no counterpart keeps the whole container of one that exists."""
    part, document = Part(key), found.document
    inner = block(document, "containerProperties")
    part.values |= {ours: inner[theirs] for theirs, ours in FIELDS.items() if theirs in inner}
    _size(part, inner, found.exists)
    part.values["env"] = {str(one.get("name")): one.get("value", "") for one in entries(inner, "environment")}
    part.values["secrets"] = {str(one.get("name")): one.get("valueFrom") for one in entries(inner, "secrets")}
    part.values = {name: value for name, value in part.values.items() if value != {}}
    _attempts(part, document, found.exists)
    lost = part.rest(inner, _HANDLED, "containerProperties.")
    lost += part.rest(block(inner, "linuxParameters"), {"sharedMemorySize", "initProcessEnabled"}, "linuxParameters.")
    log = block(inner, "logConfiguration")
    lost += ["logConfiguration"] if log.get("logDriver", "awslogs") != "awslogs" else []
    _log(part, log, found)
    if found.exists:
        _kept(part, found, lost)
    else:
        for field in ("parameters", "schedulingPriority"):
            if document.get(field):
                part.note("lost", field, f"is {document[field]}, and has no counterpart here")
        if tags := block(document, "tags"):
            part.note("lost", "tags", f"{', '.join(sorted(tags))}; the stack tags by `labels`")
    part.rest(document, _OUTER)
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
    # AWS answers with the action in lower case, whatever it was given.
    return {"action": str(rule.get("action")).upper()} | {
        ours: str(rule[key]) for key, ours in EXIT.items() if key in rule
    }


def _log(part: Part, log: Json, found: AwsResource) -> None:
    """Carry log group and stream prefix: what reads them by their names, an alarm or an export, goes on to do so."""
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


def _kept(part: Part, found: AwsResource, lost: list[str]) -> None:
    document = found.document
    if lost:
        part.keep("container", "containerProperties", f"whole, for the sake of {', '.join(lost)}: image, env, logs too")
    for field, word in (("parameters", "parameters"), ("schedulingPriority", "scheduling_priority")):
        if document.get(field):
            part.keep(word, field, f"{document[field]}, which has no counterpart here")
    part.values["adopted"] = {"name": found.name, "tags": block(document, "tags"), "keeps": part.keeps}


def repository(image: str) -> str | None:
    """The ARN of the ECR repository of an image."""
    ecr = _ECR.match(image)
    if not ecr:
        return None
    partition = partition_of(ecr["region"]).name
    return f"arn:{partition}:ecr:{ecr['region']}:{ecr['account']}:repository/{ecr['name']}"
