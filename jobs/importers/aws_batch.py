"""What `aws batch submit-job --cli-input-json` takes, as a job of ours.

The opposite of backends/aws_batch/render.py.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from accel.contract.targets import AwsBatchTarget
from accel.contract.variables import RESERVED_PREFIXES
from accel.diagnostics.errors import BadInput

from ..backends.aws_batch import labels as tags
from ..backends.aws_batch import retries
from ..model.fields import INT_MAX
from .fields import RequestFields
from .names import job_name
from .outcome import ImportResult
from .reading import Json, read
from .recognition import resource_text

KNOWN = (
    *("jobName", "jobQueue", "jobDefinition", "shareIdentifier", "schedulingPriorityOverride", "arrayProperties"),
    *("size", "dependsOn", "jobId", "type", "parameters", "containerOverrides", "vcpus", "memory", "command"),
    *("instanceType", "environment", "name", "value", "resourceRequirements", "nodeOverrides", "numNodes"),
    *("nodePropertyOverrides", "targetNodes", "retryStrategy", "attempts", "evaluateOnExit", "onStatusReason"),
    *("onReason", "onExitCode", "action", "propagateTags", "timeout", "attemptDurationSeconds", "tags"),
    *("eksPropertiesOverride", "ecsPropertiesOverride", "consumableResourcePropertiesOverride"),
)
"""Source: botocore's model of SubmitJob."""

REFUSED = {
    "nodeOverrides": "is for a definition of several nodes, which no target has; write `nodes`, `image` and `command` "
    "into a job file (docs/nodes.md)",
    "eksPropertiesOverride": "is for a queue on EKS, and targets of kind aws-batch run containers on ECS; the kind gke "
    "runs jobs on Kubernetes",
    "ecsPropertiesOverride": "is for a definition of several containers, and a job file has one",
    "consumableResourcePropertiesOverride": "is a consumable resource, which a job file has no field for",
}
NEEDS = {"VCPU": "cpus", "MEMORY": "memory_mib", "GPU": "accelerator.count"}
OLD_NEEDS = {"vcpus": "VCPU", "memory": "MEMORY"}
"""Of requests from before `resourceRequirements`."""
DEPENDENCIES = ("N_TO_N", "SEQUENTIAL")
OVERRIDES = "containerOverrides"
_REFERENCE = re.compile(r"Ref::([A-Za-z0-9_-]+)")


def imported(name: str, data: bytes) -> ImportResult:
    """The job of a SubmitJob request, in JSON or YAML. Raises BadInput where it cannot be read, or is none."""
    document = read(name, data)
    if not {"jobName", "jobQueue", "jobDefinition"} & set(document):
        said = "is no SubmitJob request: it has no jobName, no jobQueue and no jobDefinition"
        raise BadInput(f"{name}: {resource_text(document) or said}")
    given = RequestFields(document)
    values: Json = {"name": job_name(given, "jobName")} if given.values.get("jobName") else {}
    block: Json = {}
    for each in ("jobName", "jobQueue", "jobDefinition"):
        if given.values.get(each, "") == "":
            given.report.refuse(each, "must be a name, is empty")
    found = ImportResult(given.report, {}, values)
    found.queue = given.text("jobQueue") or ""
    _keep(given, "jobQueue", "the queue of the target")
    found.definition = given.text("jobDefinition") or ""
    _definition(given, found.definition, block)
    _container(given, values)
    _array(given, values)
    _depends_on(given, block)
    _retries(given, values)
    _fair_share(given, block)
    if seconds := given.whole("timeout.attemptDurationSeconds", 1):
        values["timeout_s"] = seconds
    _keep(given, "timeout.attemptDurationSeconds", "timeout_s")
    _labels(given, values)
    given.flag("propagateTags")
    given.left_out("propagateTags", "the definition says whether tags are propagated")
    for each, why in REFUSED.items():
        for path in given.paths(each):
            if given.values[path] == "":  # of a skeleton
                given.report.keep(given.name(path), why="is empty")
            else:
                given.report.refuse(given.name(path), why)
    given.report.close(KNOWN)
    if block:
        values["aws_batch"] = block
    return found


def fitted(found: ImportResult, targets: Mapping[str, AwsBatchTarget]) -> list[str]:
    """The targets that have the queue; the first one's own name for the definition is put into the job."""
    names = [name for name, target in targets.items() if _same(found.queue, target.queue_arn)]
    if names:
        asked = _revision(found.definition)[0]
        definitions = targets[names[0]].definitions
        keys = [key for key, each in definitions.items() if _same(asked, _revision(each.arn)[0])]
        if keys:
            found.values["aws_batch"]["definition"] = keys[0]
    return names


def _keep(given: RequestFields, path: str, to: str) -> None:
    """As Report.keep, of the value at a path: what is below one that should be no object was not read."""
    if path in given.values:
        given.report.keep(given.name(path), to)


def _last(name: str) -> str:
    """The name in a name or an ARN."""
    return name.rpartition("/")[2]


def _revision(name: str) -> tuple[str, str]:
    """A definition's name or ARN, and the revision."""
    found = re.fullmatch(r"(.*[^:]):(\d+)", name, re.DOTALL)
    return (found[1], found[2]) if found else (name, "")


def _same(asked: str, arn: str) -> bool:
    """Whether a name or an ARN means this resource; a name has no region and no account."""
    return asked == arn if asked.startswith("arn:") else bool(asked) and asked == _last(arn)


def _definition(given: RequestFields, asked: str, block: Json) -> None:
    whole, revision = _revision(asked)
    bare = _last(whole)
    _keep(given, "jobDefinition", "aws_batch.definition")
    if bare:
        block["definition"] = bare
    if revision:
        why = f"revision {revision} is not carried: a target names the latest one of {bare}"
        given.report.changed(given.name("jobDefinition"), bare, why)
    elif bare != asked:
        given.report.changed(given.name("jobDefinition"), bare, "a job file has the name alone")


def _container(given: RequestFields, values: Json) -> None:
    command = given.texts(f"{OVERRIDES}.command")
    _keep(given, f"{OVERRIDES}.command", "command")
    if command[:1] == [""]:
        given.report.refuse(given.name(f"{OVERRIDES}.command"), "has no program; leave it out for the definition's own")
    if command := _with_parameters(given, command):
        values["command"] = command
    _environment(given, values)
    asked: dict[str, str] = {}
    for path in given.items(f"{OVERRIDES}.resourceRequirements"):
        kind = given.text(f"{path}.type")
        if kind in NEEDS:
            _keep(given, f"{path}.type", NEEDS[kind])
            _need(given, kind, f"{path}.value", asked, values)
        elif given.has(path):
            at = f"{path}.type" if given.has(f"{path}.type") else f"{path}.value"
            given.report.refuse(given.name(at), f"must have a type, one of {', '.join(NEEDS)}")
    for old, kind in OLD_NEEDS.items():
        if given.has(f"{OVERRIDES}.{old}"):
            _need(given, kind, f"{OVERRIDES}.{old}", asked, values)
    why = "Batch takes it for jobs of several nodes alone; a target's environments have its machines"
    given.left_out(f"{OVERRIDES}.instanceType", why)


def _need(given: RequestFields, kind: str, path: str, asked: dict[str, str], values: Json) -> None:
    """A number of vCPUs, MiB or GPUs, of each one."""
    name = given.name(path)
    number = given.whole(path, 0 if kind == "GPU" else 1)
    if kind in asked:
        given.report.refuse(name, f"is a second {kind}, after {asked[kind]}; write one")
        return
    asked[kind] = name
    if number is None:
        if given.values.get(path, "") == "":
            given.report.refuse(name, f"must be a number, which {kind} needs")
        return
    _keep(given, path, NEEDS[kind])
    if kind != "GPU":
        values[NEEDS[kind]] = number
    elif number:
        values["accelerator"] = {"count": number}
    else:
        given.left_out(path, "is no GPU")


def _environment(given: RequestFields, values: Json) -> None:
    env: dict[str, str] = {}
    at: dict[str, str] = {}
    for path in given.items(f"{OVERRIDES}.environment"):
        name, value = given.text(f"{path}.name"), given.values.get(f"{path}.value", "")
        if not name:
            if given.text(f"{path}.value"):
                given.report.refuse(given.name(f"{path}.value"), "is of a variable without a name")
            continue
        if name.startswith(RESERVED_PREFIXES):
            for each in ("name", "value"):
                given.left_out(f"{path}.{each}", "is set by the platform")
            continue
        if not isinstance(value, str):
            given.report.refuse(given.name(f"{path}.value"), "must be text; put it in quotes")
        elif name in env:
            given.report.refuse(given.name(f"{path}.name"), f"is set twice, here and in {at[name]}")
        else:
            env[name], at[name] = value, path
        for each in ("name", "value"):
            _keep(given, f"{path}.{each}", "env")
    if env:
        values["env"] = env


def _with_parameters(given: RequestFields, command: list[str]) -> list[str]:
    """The command with the values of `parameters` for the words `Ref::<name>`, which a job file does not have."""
    parameters = given.mapping("parameters")
    used: set[str] = set()

    def value(word: str) -> str:
        found = _REFERENCE.fullmatch(word)
        if not found or found[1] not in parameters:
            return word
        used.add(found[1])
        return parameters[found[1]]

    words = [value(word) for word in command]
    inside = {found for word in words for found in _REFERENCE.findall(word)}
    for name in parameters:
        path = f"parameters.{name}"
        if name in used:
            _keep(given, path, "command")
        elif name in inside:
            why = f"stands inside of a word of the command; write the value there in place of Ref::{name}"
            given.report.decide(given.name(path), why)
        elif command:
            given.left_out(path, f"the command has no word Ref::{name}, and a job file has no parameters")
        else:
            why = (
                "is for the definition's own command, and a job file has no parameters; "
                f"write that command into containerOverrides.command, with the value in place of Ref::{name}"
            )
            given.report.decide(given.name(path), why)
    if used:
        names = ", ".join(f"Ref::{name}" for name in sorted(used))
        given.report.changed(given.name(f"{OVERRIDES}.command"), words, f"has the value of {names}")
    return words


def _array(given: RequestFields, values: Json) -> None:
    if size := given.whole("arrayProperties.size", 2):
        values["tasks"] = size
    _keep(given, "arrayProperties.size", "tasks")


def _depends_on(given: RequestFields, block: Json) -> None:
    entries: list[Any] = []
    for path in given.items("dependsOn"):
        job_id, kind = given.text(f"{path}.jobId"), given.text(f"{path}.type")
        for each in ("jobId", "type"):
            _keep(given, f"{path}.{each}", "aws_batch.depends_on")
        if kind not in (None, *DEPENDENCIES):
            given.report.refuse(given.name(f"{path}.type"), f"must be one of {', '.join(DEPENDENCIES)}")
        elif not job_id and kind != "SEQUENTIAL":
            at = next((each for each in ("type", "jobId") if given.has(f"{path}.{each}")), "")
            if at:
                given.report.refuse(given.name(f"{path}.{at}"), "must have a jobId")
        elif kind:
            entries.append({"type": kind, **({"job": job_id} if job_id else {})})
        else:
            entries.append(job_id)
    if entries:
        block["depends_on"] = entries


def _retries(given: RequestFields, values: Json) -> None:
    base = "retryStrategy"
    attempts = given.whole(f"{base}.attempts", 1)
    _keep(given, f"{base}.attempts", "retries")
    paths = given.items(f"{base}.evaluateOnExit")
    if attempts is None:
        if given.has(base) and given.values.get(f"{base}.attempts", "") == "":
            given.report.refuse(f"{base}.attempts", f"must be an integer from 1 to {INT_MAX}, is empty")
        return
    fields = ("onStatusReason", "onReason", "onExitCode", "action")
    rules: list[dict[str, str]] = []
    for path in paths:
        rule = {each: given.text(f"{path}.{each}") for each in fields}
        rules.append({each: text for each, text in rule.items() if text is not None})
        for each in fields:
            _keep(given, f"{path}.{each}", "retries")
        action = str(rule["action"])
        if action.upper() not in ("RETRY", "EXIT"):
            given.report.refuse(given.name(f"{path}.action"), "must be RETRY or EXIT")
    asked = {"attempts": attempts, **({"evaluateOnExit": rules} if rules else {})}
    again = attempts - 1
    for own, lost in ((again, None), (None, again), (again, 0)):
        if _alike(asked, retries.of_job(own, lost)):
            values |= {name: n for name, n in (("retries", own), ("lost_retries", lost)) if n is not None}
            return
    if rules and _only_lost(rules):
        values["lost_retries"] = again
        new, why = "lost_retries", "whatever the cloud takes away is tried again"
    else:
        values["retries"] = again
        new = f"retries: {again}"
        why = "a job file has no rules, but retries (after any failure) and lost_retries (after what the cloud takes)"
    for path in paths:
        for each in given.paths(path):
            if each.rpartition(".")[2] in fields:
                given.report.decide(given.name(each), why, new=new, is_open=False)


def _alike(asked: Json, ours: Json | None) -> bool:
    """Whether two strategies are the same; Batch does not tell RETRY from retry."""

    def plain(strategy: Json) -> Json:
        rules = cast("list[dict[str, str]]", strategy.get("evaluateOnExit", []))
        return {**strategy, "evaluateOnExit": [{**rule, "action": rule.get("action", "").upper()} for rule in rules]}

    return ours is not None and plain(asked) == plain(ours)


def _only_lost(rules: list[dict[str, str]]) -> bool:
    """Whether some of what the cloud takes away is tried again, and nothing else."""
    ours = [retries.NOT_PULLED, *retries.infrastructure_only()["evaluateOnExit"]]
    known = [{**rule, "action": rule["action"].upper()} for rule in ours]
    asked = [{**rule, "action": rule.get("action", "").upper()} for rule in rules]
    return asked[-1] == known[-1] and all(rule in known[:-1] for rule in asked[:-1])


def _fair_share(given: RequestFields, block: Json) -> None:
    if share := given.text("shareIdentifier"):
        block["share_identifier"] = share
    _keep(given, "shareIdentifier", "aws_batch.share_identifier")
    if (priority := given.whole("schedulingPriorityOverride")) is not None:
        block["scheduling_priority"] = priority
    _keep(given, "schedulingPriorityOverride", "aws_batch.scheduling_priority")


def _labels(given: RequestFields, values: Json) -> None:
    labels: dict[str, str] = {}
    for name, text in given.mapping("tags").items():
        if name.lower().startswith(tags.RESERVED):
            given.left_out(f"tags.{name}", "is kept for AWS and accel")
        else:
            labels[name] = text
            _keep(given, f"tags.{name}", "labels")
    if labels:
        values["labels"] = labels
