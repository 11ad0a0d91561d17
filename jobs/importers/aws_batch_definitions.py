"""Translation of a job definition of AWS Batch into a job file: the input of `aws batch register-job-definition` or an
answer of describe-job-definitions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .aws_batch_fields import REFERENCE, attempts_of, environment, needs, timeout_and_labels
from .fields import RequestFields, job_name
from .images import image_of
from .outcome import ImportResult
from .reading import Json
from .recognition import DEFINITION_KEYS

KNOWN = (
    *("jobDefinitionName", "type", "parameters", "schedulingPriority", "containerProperties", "nodeProperties"),
    *("retryStrategy", "attempts", "evaluateOnExit", "onStatusReason", "onReason", "onExitCode", "action", "timeout"),
    *("attemptDurationSeconds", "tags", "propagateTags", "platformCapabilities", "eksProperties", "ecsProperties"),
    *("consumableResourceProperties", "image", "vcpus", "memory", "command", "jobRoleArn", "executionRoleArn"),
    *("volumes", "host", "sourcePath", "name", "efsVolumeConfiguration", "fileSystemId", "rootDirectory"),
    *("transitEncryption", "transitEncryptionPort", "authorizationConfig", "accessPointId", "iam", "environment"),
    *("value", "mountPoints", "containerPath", "readOnly", "sourceVolume", "readonlyRootFilesystem", "privileged"),
    *("ulimits", "user", "instanceType", "resourceRequirements", "linuxParameters", "devices", "sharedMemorySize"),
    *("initProcessEnabled", "tmpfs", "maxSwap", "swappiness", "logConfiguration", "logDriver", "options"),
    *("secretOptions", "valueFrom", "secrets", "networkConfiguration", "assignPublicIp", "ephemeralStorage"),
    *("fargatePlatformConfiguration", "platformVersion", "enableExecuteCommand", "sizeInGiB", "runtimePlatform"),
    *("operatingSystemFamily", "cpuArchitecture", "repositoryCredentials", "credentialsParameter", "numNodes"),
    *("mainNode", "nodeRangeProperties", "targetNodes", "container", "instanceTypes", "s3filesVolumeConfiguration"),
    *("taskProperties", "containers", "taskRoleArn", "ipcMode", "pidMode", "networkMode", "essential", "dependsOn"),
    *("containerName", "condition", "firelensConfiguration", "startTimeout", "stopTimeout", "jobDefinitions"),
)
"""Fields of a job definition. Source: botocore's model of RegisterJobDefinition."""
BY_SERVICE = ("jobDefinitionArn", "revision", "status", "containerOrchestrationType", "ResponseMetadata")
REFUSED = {
    "eksProperties": "is for a queue on EKS, and targets of kind aws-batch run containers on ECS; the kind gke runs "
    "jobs on Kubernetes",
    "consumableResourceProperties": "is a consumable resource, which a job file has no field for",
}
OF_TARGET = {
    "jobRoleArn": "the target's jobs have a role of their own",
    "executionRoleArn": "the target's jobs have a role of their own",
    "logConfiguration": "the target's jobs log to its own group",
    "networkConfiguration": "the target's environments have their network",
    "instanceType": "the target's environments have their machines",
    "instanceTypes": "the target's environments have their machines",
    "fargatePlatformConfiguration": "the target's environments are of EC2",
    "enableExecuteCommand": "`accel-jobs exec` opens a shell in a job that runs, where the target lets it",
    "runtimePlatform": "the target's machines have one system and one architecture",
    "linuxParameters.initProcessEnabled": "the target's own definitions say it",
}
OF_ECS_TASK = {
    **{name: OF_TARGET[name] for name in ("executionRoleArn", "networkConfiguration", "runtimePlatform")},
    "enableExecuteCommand": OF_TARGET["enableExecuteCommand"],
    "taskRoleArn": OF_TARGET["jobRoleArn"],
    "networkMode": OF_TARGET["networkConfiguration"],
    "platformVersion": OF_TARGET["fargatePlatformConfiguration"],
}
OF_ECS_CONTAINER = {
    "name": "a job's container has no name of its own",
    "firelensConfiguration": OF_TARGET["logConfiguration"],
    "startTimeout": "is for containers that others wait for, and there is one",
}
DECIDED = {
    **dict.fromkeys(("readonlyRootFilesystem", "privileged", "user", "ulimits"), "has no place in a job file"),
    **dict.fromkeys(
        ("linuxParameters.devices", "linuxParameters.tmpfs", "linuxParameters.maxSwap", "linuxParameters.swappiness"),
        "has no place in a job file",
    ),
    "repositoryCredentials": "has no place in a job file; let the target's machines pull the image",
}
DECIDED_OF_ECS_TASK = {"ipcMode": "has no place in a job file", "pidMode": "has no place in a job file"}
DECIDED_OF_ECS_CONTAINER = {"stopTimeout": "has no place in a job file"}
ADOPT = "a definition that `stacks adopt` takes keeps it (docs/adopt.md): name it as aws_batch.definition"
ADOPT_ECS = "a definition with containerProperties keeps it, if `stacks adopt` takes that (docs/adopt.md)"


@dataclass(frozen=True)
class Place:
    """Paths of a job's one container, and of the object that has its volumes: the same one, or a task of ECS."""

    container: str
    task: str

    @property
    def is_ecs(self) -> bool:
        return self.container != self.task

    @property
    def advice(self) -> str:
        return ADOPT_ECS if self.is_ecs else ADOPT


def is_definition(document: Json) -> bool:
    return bool(DEFINITION_KEYS & set(document)) and not {"jobQueue", "jobName"} & set(document)


def import_definition(given: RequestFields, chosen: Mapping[str, str]) -> ImportResult:
    """Translate a definition into a job. `chosen` holds the values of its parameters."""
    values: Json = {"name": job_name(given, "jobDefinitionName")}
    kind = given.text("type")
    if kind not in (None, "container", "multinode"):
        given.report.refuse(given.name("type"), "must be container or multinode")
    given.keep_value("type", "nodes" if kind == "multinode" else "")
    place = import_properties(given, chosen, values, "containerProperties")
    if (priority := given.whole("schedulingPriority")) is not None:
        values["aws_batch"] = {"scheduling_priority": priority}
    given.keep_value("schedulingPriority", "aws_batch.scheduling_priority")
    for path in BY_SERVICE:
        given.left_out(path, "is set by the service")
    if place and not place.is_ecs:
        why = "`stacks adopt` makes it a definition of a stack instead (docs/adopt.md)"
        given.report.note(given.name("jobDefinitionName"), why)
    given.report.close(KNOWN)
    return ImportResult(given.report, {}, values)


def import_properties(given: RequestFields, chosen: Mapping[str, str], values: Json, single: str) -> Place | None:
    """Translate what a definition and a described job have in common, and return the place of the one container.
    `single`: its path where there are no nodes."""
    place = _place(given, values, single)
    given.refuse_all(REFUSED)
    if place:
        _image(given, place.container, values)
        _command(given, place.container, chosen, values)
        environment(given, place.container, values)
        needs(given, place.container, values, fractions=True)
        _secrets(given, place.container, values)
        _mounts(given, place, values)
        _linux(given, place, values)
        _leave_and_decide(given, place.container, place, OF_TARGET, DECIDED)
    if place and place.is_ecs:
        _leave_and_decide(given, place.task, place, OF_ECS_TASK, DECIDED_OF_ECS_TASK)
        _leave_and_decide(given, place.container, place, OF_ECS_CONTAINER, DECIDED_OF_ECS_CONTAINER)
        _only_container(given, place.container)
    attempts_of(given, values)
    if not given.has("retryStrategy"):
        values["retries"] = 0
        given.report.keep("retryStrategy.attempts", "retries: 0", "Batch makes one attempt where nothing is said")
    timeout_and_labels(given, values, "the target's own definitions say whether tags are propagated")
    _platforms(given)
    return place


def _leave_and_decide(
    given: RequestFields, base: str, place: Place, left: Mapping[str, str], decided: Mapping[str, str]
) -> None:
    for table, why in left.items():
        given.left_out(f"{base}.{table}", why)
    for table, why in decided.items():
        given.decide_unless_off(f"{base}.{table}", f"{why}; {place.advice}")


def _only_container(given: RequestFields, base: str) -> None:
    if given.flag(f"{base}.essential") is False:
        given.report.refuse(given.name(f"{base}.essential"), "must be true: it is the only container")
    given.keep_value(f"{base}.essential", why="is so for the only container")
    for path in given.paths(f"{base}.dependsOn"):
        given.report.refuse(given.name(path), "is for several containers, and there is one")


def _place(given: RequestFields, values: Json, single: str) -> Place | None:
    """Return the place of the one container, or None. Put the number of nodes into the job."""
    if given.has("nodeProperties"):
        _one_form(given, single, "nodeProperties")
        _one_form(given, "ecsProperties", "nodeProperties")
        return _place_in_nodes(given, values)
    if given.has("eksProperties") and not given.has(single) and not given.has("ecsProperties"):
        return None
    return _place_in(given, single, "ecsProperties")


def _one_form(given: RequestFields, other: str, form: str) -> None:
    for path in given.paths(other):
        given.report.refuse(given.name(path), f"stands beside {form}; keep one of the two")


def _place_in(given: RequestFields, single: str, ecs: str) -> Place | None:
    """Return the one container at the path `single` or in the ecsProperties at `ecs`."""
    if not given.has(ecs):
        return Place(single, single)
    _one_form(given, single, ecs.rpartition(".")[2])
    tasks = given.items(f"{ecs}.taskProperties")
    containers = [path for task in tasks for path in given.items(f"{task}.containers")]
    if len(tasks) == len(containers) == 1:
        return Place(containers[0], tasks[0])
    several = f"{len(tasks)} ECS tasks" if len(tasks) > 1 else f"{len(containers)} containers"
    for path in given.paths(ecs):
        given.report.refuse(given.name(path), f"is of {several}, and a job file has one container")
    return None


def _place_in_nodes(given: RequestFields, values: Json) -> Place | None:
    ranges = given.items("nodeProperties.nodeRangeProperties")
    count = given.whole("nodeProperties.numNodes", 1)
    if count and count > 1:
        values["nodes"] = count
    given.keep_value("nodeProperties.numNodes", "nodes")
    if given.whole("nodeProperties.mainNode"):
        given.report.refuse(given.name("nodeProperties.mainNode"), "must be 0: the first node is a job's main node")
    else:
        given.keep_value("nodeProperties.mainNode", "nodes")
    for each in ranges[1:]:
        for path in given.paths(each):
            given.report.refuse(given.name(path), "is of other nodes, and all nodes of a job file are alike")
    if not ranges:
        given.report.refuse("nodeProperties.nodeRangeProperties", "is missing")
        return None
    target, last = f"{ranges[0]}.targetNodes", (count or 1) - 1
    text = given.text(target)
    if text in (None, ":", "0:", f"0:{last}", str(last) if last == 0 else "0:"):
        given.keep_value(target, "nodes")
    else:
        given.report.refuse(given.name(target), "must be all nodes (0:), which are alike in a job file")
    for each in ("eksProperties", "consumableResourceProperties"):
        for path in given.paths(f"{ranges[0]}.{each}"):
            given.report.refuse(given.name(path), REFUSED[each])
    given.left_out(f"{ranges[0]}.instanceTypes", OF_TARGET["instanceTypes"])
    return _place_in(given, f"{ranges[0]}.container", f"{ranges[0]}.ecsProperties")


def _image(given: RequestFields, base: str, values: Json) -> None:
    path = f"{base}.image"
    if text := given.text(path):
        values["image"] = image_of(given, path, text, to="image")
    else:
        given.report.refuse(given.name(path), "is missing")


def _command(given: RequestFields, base: str, chosen: Mapping[str, str], values: Json) -> None:
    """Translate the command, with values in place of its `Ref::name`, which a job file does not have."""
    path, report = f"{base}.command", given.report
    parameters = {**given.mapping("parameters"), **chosen}
    command = given.texts(path)
    given.keep_value(path, "command")
    used: set[str] = set()
    lacking: dict[str, None] = {}

    def value(found: re.Match[str]) -> str:
        if found[1] not in parameters:
            lacking[found[1]] = None
            return found[0]
        used.add(found[1])
        return parameters[found[1]]

    words = [REFERENCE.sub(value, word) if REFERENCE.fullmatch(word) else word for word in command]
    inside = {found for word in words for found in REFERENCE.findall(word)} - {*lacking}
    for name in lacking:
        why = f"Ref::{name} has no value: give --var {name}=<value>" if name not in inside else ""
        report.decide(given.name(path), why)
    for name in given.mapping("parameters"):
        at = f"parameters.{name}"
        if name in used and name not in chosen:
            given.keep_value(at, "command")
        elif name in used:
            report.changed(given.name(at), chosen[name], "is given with --var")
        elif name in inside:
            report.decide(given.name(at), f"stands inside of a word; write the value there in place of Ref::{name}")
        else:
            given.left_out(at, f"the command has no word Ref::{name}, and a job file has no parameters")
    if used:
        report.changed(
            given.name(path), words, f"has the values of {', '.join(f'Ref::{name}' for name in sorted(used))}"
        )
    if words:
        values["command"] = words


def _secrets(given: RequestFields, base: str, values: Json) -> None:
    for path in given.items(f"{base}.secrets"):
        name, source = given.text(f"{path}.name"), given.text(f"{path}.valueFrom")
        at = f"{path}.name" if given.has(f"{path}.name") else f"{path}.valueFrom"
        if not name or not source:
            if given.has(path):
                given.report.refuse(given.name(at), "must have name and valueFrom")
        elif name in values.get("env", {}) or name in values.get("secrets", {}):
            given.report.refuse(given.name(at), f"{name[:80]} is set twice; keep one of the two")
        else:
            values.setdefault("secrets", {})[name] = source
        for each in ("name", "valueFrom"):
            given.keep_value(f"{path}.{each}", "secrets")


def _mounts(given: RequestFields, place: Place, values: Json) -> None:
    sources: dict[str, str] = {}
    names: set[str] = set()
    for path in given.items(f"{place.task}.volumes"):
        name = given.text(f"{path}.name") or ""
        names.add(name)
        host, files = f"{path}.host.sourcePath", f"{path}.efsVolumeConfiguration"
        given.keep_value(f"{path}.name", "mounts")
        if system := given.text(f"{files}.fileSystemId"):
            folder = (given.text(f"{files}.rootDirectory") or "").strip("/")
            sources[name] = f"efs://{system}" + (f"/{folder}" if folder else "")
            for each in ("fileSystemId", "rootDirectory"):
                given.keep_value(f"{files}.{each}", "mounts")
            for each in given.paths(files):
                if each.partition(f"{files}.")[2] not in ("fileSystemId", "rootDirectory"):
                    given.report.changed(given.name(each), None, "the target mounts with encryption and its own role")
        elif folder := given.text(host):
            sources[name] = f"host://{folder}" if folder.startswith("/") else f"host:///{folder}"
            given.keep_value(host, "mounts")
        else:
            for each in given.paths(path):
                given.report.refuse(given.name(each), f"has no source that a job file mounts; {place.advice}")
    used: set[str] = set()
    for path in given.items(f"{place.container}.mountPoints"):
        at, name = given.text(f"{path}.containerPath"), given.text(f"{path}.sourceVolume") or ""
        shown = f"{path}.containerPath" if given.has(f"{path}.containerPath") else f"{path}.sourceVolume"
        if not at or name not in sources:
            if given.has(path):
                why = "must have a containerPath and the name of one of the volumes"
                why = f"is of {name}, which has no source that a job file mounts" if at and name in names else why
                given.report.refuse(given.name(shown), why)
        else:
            used.add(name)
            read_only = given.flag(f"{path}.readOnly")
            mount = {"source": sources[name], "path": at, **({"read_only": True} if read_only else {})}
            values.setdefault("mounts", []).append(mount)
        for each in ("containerPath", "sourceVolume", "readOnly"):
            given.keep_value(f"{path}.{each}", "mounts")
    for path in given.items(f"{place.task}.volumes"):
        if (given.text(f"{path}.name") or "") in sources and given.text(f"{path}.name") not in used:
            given.left_out(path, "is mounted nowhere")


def _linux(given: RequestFields, place: Place, values: Json) -> None:
    path = f"{place.container}.linuxParameters.sharedMemorySize"
    if size := given.whole(path, 1):
        values["shm_mib"] = min(size, values.get("memory_mib", size))
        if size > values["shm_mib"]:
            given.report.changed(
                given.name(path), values["shm_mib"], "is a part of the memory, and more than all of it"
            )
    given.keep_value(path, "shm_mib")
    path = f"{place.task}.ephemeralStorage.sizeInGiB"
    if size := given.whole(path, 1):
        values["disk_gib"] = size
    given.keep_value(path, "disk_gib")


def _platforms(given: RequestFields) -> None:
    platforms = given.texts("platformCapabilities")
    if "FARGATE" in platforms:
        why = "is of Fargate, and the target's environments are of EC2, where vCPUs and memory are free to choose"
        given.report.changed(given.name("platformCapabilities"), "EC2", why)
    else:
        given.keep_value("platformCapabilities", "the target's environments")
