"""What `aws batch submit-job --cli-input-json` takes, as a job of ours. Pure; the opposite of render.py."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from accel.contract.targets import AwsBatchTarget
from accel.contract.variables import RESERVED_PREFIXES
from accel.diagnostics import messages
from accel.diagnostics.errors import BadInput

from ..backends.aws_batch import labels as tags
from ..backends.aws_batch import retries
from ..model.fields import INT_MAX
from ..model.job import NAME_MAX

Json = dict[str, Any]

NEEDS = {"VCPU": "cpus", "MEMORY": "memory_mib"}
OLD_NEEDS = {"vcpus": "cpus", "memory": "memory_mib"}
"""Of requests from before `resourceRequirements`."""


@dataclass
class Imported:
    """The values of a job file, the queue and the definition that were asked for, and what could not be carried."""

    values: Json = field(default_factory=dict[str, Any])
    queue: str = ""
    definition: str = ""
    notes: list[str] = field(default_factory=list[str])

    def lost(self, name: str, text: str) -> None:
        """Notes a field of the request, and how it could not be carried."""
        self.notes.append(f"{name}: {text}")

    def own(self, name: str, value: Any) -> None:
        """Puts a value into the job's `aws_batch` block."""
        self.values.setdefault("aws_batch", {})[name] = value


def imported(request: Json) -> Imported:
    """The job of a SubmitJob request. Raises BadInput where the request is none."""
    job = Imported()
    for name in ("jobName", "jobQueue", "jobDefinition"):
        if not isinstance(request.get(name), str) or not request[name]:
            raise BadInput(f"{name}: must be a name, is {messages.display(request.get(name))}")
    name = str(request["jobName"])
    if len(name) > NAME_MAX:
        job.lost("jobName", f"cut to {NAME_MAX} characters, since a submission's key is appended")
    job.values["name"] = name[:NAME_MAX]
    job.queue, job.definition = _last(request["jobQueue"]), _last(request["jobDefinition"])
    for field_name, value in request.items():
        if value in (None, "", [], {}) or field_name in ("jobName", "jobQueue", "jobDefinition"):
            continue
        if field_name in _FIELDS:
            _FIELDS[field_name](job, value)
        else:
            job.lost(field_name, "has no counterpart in a job file")
    bare, _, revision = job.definition.partition(":")
    job.own("definition", bare)
    if revision:
        job.lost("jobDefinition", f"revision {revision} is not carried: a target names the latest one of {bare}")
    return job


def fitted(job: Imported, targets: Mapping[str, AwsBatchTarget]) -> str | None:
    """The target whose queue was asked for, if there is one; its own name for the definition is put into the job."""
    named = next((name for name, target in targets.items() if _last(target.queue_arn) == job.queue), None)
    if named:
        bare = job.definition.partition(":")[0]
        keys = [key for key, each in targets[named].definitions.items() if _last(each.arn).partition(":")[0] == bare]
        if keys:
            job.own("definition", keys[0])
    return named


def _last(name: Any) -> str:
    """The name in a name or an ARN."""
    return str(name).rpartition("/")[2]


def _overrides(job: Imported, value: Any) -> None:
    overrides = _object("containerOverrides", value)
    for name, inner in overrides.items():
        if inner in (None, "", [], {}):
            continue
        if name == "command":
            job.values["command"] = inner
        elif name == "environment":
            _environment(job, _objects("containerOverrides.environment", inner))
        elif name == "resourceRequirements":
            for need in _objects("containerOverrides.resourceRequirements", inner):
                _need(job, str(need.get("type")), need.get("value"))
        elif name in OLD_NEEDS:
            job.values[OLD_NEEDS[name]] = inner
        else:
            job.lost(f"containerOverrides.{name}", f"is {messages.display(inner)}; a job file has no counterpart")


def _environment(job: Imported, variables: list[Json]) -> None:
    env: dict[str, Any] = {}
    for one in variables:
        name = str(one.get("name"))
        if name.startswith(RESERVED_PREFIXES):
            job.lost(f"containerOverrides.environment.{name}", "is set by the platform")
        else:
            env[name] = one.get("value") or ""
    if env:
        job.values["env"] = env


def _need(job: Imported, kind: str, value: Any) -> None:
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if kind == "GPU":
        job.values |= {"accelerator": {"count": number}} if number else {}
    elif kind in NEEDS:
        job.values[NEEDS[kind]] = number
    else:
        job.lost("containerOverrides.resourceRequirements", f"type {messages.name_shown(kind)} is none that is known")


DEPENDENCIES = ("N_TO_N", "SEQUENTIAL")


def _array(job: Imported, value: Any) -> None:
    job.values["tasks"] = _object("arrayProperties", value).get("size")


def _depends_on(job: Imported, value: Any) -> None:
    entries: list[Any] = []
    for index, one in enumerate(_objects("dependsOn", value)):
        job_id, kind = one.get("jobId"), one.get("type")
        if kind not in (None, *DEPENDENCIES) or not (job_id or kind == "SEQUENTIAL"):
            job.lost(
                f"dependsOn[{index}]", f"is {messages.display(one)}; Batch takes a jobId, and N_TO_N or SEQUENTIAL"
            )
        elif kind:
            entries.append({"type": kind, **({"job": job_id} if job_id else {})})
        else:
            entries.append(job_id)
    if entries:
        job.own("depends_on", entries)


def _retry(job: Imported, value: Any) -> None:
    strategy = _object("retryStrategy", value)
    attempts = strategy.get("attempts")
    rules = _objects("retryStrategy.evaluateOnExit", strategy.get("evaluateOnExit") or [])
    if not isinstance(attempts, int) or not 1 <= attempts <= INT_MAX:
        raise BadInput(f"retryStrategy.attempts: must be an integer from 1, is {messages.display(attempts)}")
    said = {"attempts": attempts, **({"evaluateOnExit": rules} if rules else {})}
    again = attempts - 1
    for own, lost in ((again, None), (None, again), (again, 0)):
        if said == retries.of_job(own, lost):
            job.values |= {name: n for name, n in (("retries", own), ("lost_retries", lost)) if n is not None}
            return
    if rules and _only_lost(rules):
        job.values["lost_retries"] = again
        job.lost("retryStrategy.evaluateOnExit", "lost_retries: whatever the cloud takes away is tried again")
        return
    job.values["retries"] = again
    if rules:
        text = f"retries: {again}, after any failure, and lost_retries are what a job file has of it"
        job.lost("retryStrategy.evaluateOnExit", text)


def _only_lost(rules: list[Json]) -> bool:
    """Whether some of what the cloud takes away is tried again, and nothing else."""
    ours = [retries.NOT_PULLED, *retries.infrastructure_only()["evaluateOnExit"]]
    known = [{**rule, "action": rule["action"].lower()} for rule in ours]
    given = [{**rule, "action": str(rule.get("action")).lower()} for rule in rules]
    return given[-1] == known[-1] and all(rule in known[:-1] for rule in given[:-1])


def _timeout(job: Imported, value: Any) -> None:
    job.values["timeout_s"] = _object("timeout", value).get("attemptDurationSeconds")


def _tags(job: Imported, value: Any) -> None:
    labels: dict[str, Any] = {}
    for name, text in _object("tags", value).items():
        if name.lower().startswith(tags.RESERVED):
            job.lost(f"tags.{name}", "is kept for AWS and accel")
        else:
            labels[name] = text
    if labels:
        job.values["labels"] = labels


def _propagate(job: Imported, value: Any) -> None:
    job.lost("propagateTags", f"is {messages.display(value)}; the definition says whether tags are propagated")


def _parameters(job: Imported, value: Any) -> None:
    shown = ", ".join(f"Ref::{name}" for name in _object("parameters", value))
    job.lost("parameters", f"write their values where the definition's command says {shown}")


_FIELDS: Mapping[str, Callable[[Imported, Any], None]] = {
    "containerOverrides": _overrides,
    "arrayProperties": _array,
    "dependsOn": _depends_on,
    "parameters": _parameters,
    "propagateTags": _propagate,
    "retryStrategy": _retry,
    "schedulingPriorityOverride": lambda job, value: job.own("scheduling_priority", value),
    "shareIdentifier": lambda job, value: job.own("share_identifier", value),
    "tags": _tags,
    "timeout": _timeout,
}


def _object(name: str, value: Any) -> Json:
    if not isinstance(value, dict):
        raise BadInput(f"{name}: must be an object, is {messages.display(value)}")
    return cast(Json, value)


def _objects(name: str, value: Any) -> list[Json]:
    if not isinstance(value, list):
        raise BadInput(f"{name}: must be a list, is {messages.display(value)}")
    return [_object(f"{name}[{index}]", one) for index, one in enumerate(cast(list[Any], value))]
