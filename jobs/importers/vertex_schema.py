"""Fields of Google's documents, in the spellings that the services accept. Protobuf's JSON has `machineType` and
`machine_type`, and a choice by its name or its number; people write one item where the service has a list. Unknown
fields are refused here, so that they are not carried over together with the object that holds them.
Source: googleapiclient's discovery documents aiplatform.v1 and ml.v1. Numbers: the client library, aiplatform_v1."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from accel.diagnostics import messages

from .fields import RequestFields, choice


@dataclass(frozen=True)
class Items:
    """List of objects, or of texts if `of` is None."""

    of: "Mapping[str, Schema] | None" = None


@dataclass(frozen=True)
class Own:
    """Object whose keys the author chooses."""


Schema = Mapping[str, Any] | Items | Own | None
"""Schema of a value; None for a text, a number or a flag."""


def _texts(*names: str) -> dict[str, Schema]:
    return dict.fromkeys(names)


_ENV = Items({"name": None, "value": None})
_AFFINITY: Mapping[str, Schema] = {"reservationAffinityType": None, "key": None, "values": Items()}
_MACHINE: Mapping[str, Schema] = {
    **_texts("machineType", "acceleratorType", "acceleratorCount", "tpuTopology", "gpuPartitionSize"),
    "reservationAffinity": _AFFINITY,
}
_POOL: Mapping[str, Schema] = {
    "machineSpec": _MACHINE,
    "replicaCount": None,
    "containerSpec": {"imageUri": None, "command": Items(), "args": Items(), "env": _ENV},
    "pythonPackageSpec": {
        **_texts("executorImageUri", "pythonModule"), "packageUris": Items(), "args": Items(), "env": _ENV,
    },
    "diskSpec": _texts("bootDiskType", "bootDiskSizeGb"),
    "nfsMounts": Items(_texts("server", "path", "mountPoint")),
    "lustreMounts": Items(_texts("instanceIp", "volumeHandle", "filesystem", "mountPoint")),
}  # fmt: skip
_PEERING = _texts("domain", "targetProject", "targetNetwork")
CUSTOM_JOB_SPEC: Mapping[str, Schema] = {
    "workerPoolSpecs": Items(_POOL),
    "scheduling": _texts("timeout", "strategy", "restartJobOnWorkerRestart", "disableRetries", "maxWaitDuration"),
    **_texts("serviceAccount", "network", "tensorboard", "enableWebAccess", "enableDashboardAccess"),
    **_texts("persistentResourceId", "experiment", "experimentRun", "protectedArtifactLocationId"),
    "baseOutputDirectory": {"outputUriPrefix": None},
    "pscInterfaceConfig": {"networkAttachment": None, "dnsPeeringConfigs": Items(_PEERING)},
    "reservedIpRanges": Items(),
    "models": Items(),
}
CUSTOM_JOB: Mapping[str, Schema] = {
    "displayName": None,
    "jobSpec": CUSTOM_JOB_SPEC,
    "labels": Own(),
    "encryptionSpec": {"kmsKeyName": None},
    **_texts("name", "state", "createTime", "startTime", "endTime", "updateTime"),
    **_texts("satisfiesPzi", "satisfiesPzs"),
    "error": Own(),
    "webAccessUris": Own(),
}

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "acceleratorType": (
        *("ACCELERATOR_TYPE_UNSPECIFIED", "NVIDIA_TESLA_K80", "NVIDIA_TESLA_P100", "NVIDIA_TESLA_V100"),
        *("NVIDIA_TESLA_P4", "NVIDIA_TESLA_T4", "TPU_V2", "TPU_V3", "NVIDIA_TESLA_A100", "NVIDIA_A100_80GB"),
        *("TPU_V4_POD", "NVIDIA_L4", "TPU_V5_LITEPOD", "NVIDIA_H100_80GB", "NVIDIA_H100_MEGA_80GB"),
        *("NVIDIA_H200_141GB", "NVIDIA_B200", "NVIDIA_GB200", "NVIDIA_RTX_PRO_6000"),
    ),
    "strategy": ("STRATEGY_UNSPECIFIED", "ON_DEMAND", "LOW_COST", "STANDARD", "SPOT", "", "FLEX_START"),
    "reservationAffinityType": ("TYPE_UNSPECIFIED", "NO_RESERVATION", "ANY_RESERVATION", "SPECIFIC_RESERVATION"),
}
"""Values of each choice, in the order of their numbers; empty for a number that none has."""

_REPLICA: Mapping[str, Schema] = {
    "acceleratorConfig": _texts("count", "type"),
    "diskConfig": _texts("bootDiskSizeGb", "bootDiskType"),
    **_texts("imageUri", "tpuTfVersion"),
    "containerCommand": Items(),
    "containerArgs": Items(),
}
_PARAMETER: Mapping[str, Schema] = {
    **_texts("parameterName", "type", "minValue", "maxValue", "scaleType"),
    "categoricalValues": Items(),
    "discreteValues": Items(),
}
_HYPERPARAMETERS: Mapping[str, Schema] = {
    **_texts("algorithm", "enableTrialEarlyStopping", "goal", "hyperparameterMetricTag", "maxFailedTrials"),
    **_texts("maxParallelTrials", "maxTrials", "resumePreviousJobId"),
    "params": Items(_PARAMETER),
}
TRAINING_INPUT: Mapping[str, Schema] = {
    **_texts("enableWebAccess", "jobDir", "network", "pythonModule", "pythonVersion", "region"),
    **_texts("runtimeVersion", "scaleTier", "serviceAccount", "useChiefInTfConfig"),
    **_texts(*(f"{role}Type" for role in ("master", "worker", "parameterServer", "evaluator"))),
    **_texts(*(f"{role}Count" for role in ("worker", "parameterServer", "evaluator"))),
    **{f"{role}Config": _REPLICA for role in ("master", "worker", "parameterServer", "evaluator")},
    "args": Items(),
    "packageUris": Items(),
    "encryptionConfig": {"kmsKeyName": None},
    "hyperparameters": _HYPERPARAMETERS,
    "scheduling": _texts("maxRunningTime", "maxWaitTime", "priority"),
}
LEGACY_JOB: Mapping[str, Schema] = {
    "jobId": None,
    "labels": Own(),
    "trainingInput": TRAINING_INPUT,
    **_texts("createTime", "startTime", "endTime", "state", "errorMessage", "jobPosition", "etag"),
    "trainingOutput": Own(),
}

_KEY = re.compile(r"([^.\[]+)((?:\[\d+\])*)(?:\.|$)")
_EMPTY: tuple[Any, ...] = (None, {}, [])
_ENV_MAPPING = re.compile(r"(.*\b(?:container_?[sS]pec|python_?[pP]ackage_?[sS]pec)\.env)\.")


def names(schema: Schema) -> Iterator[str]:
    fields = schema.of if isinstance(schema, Items) else schema
    if isinstance(fields, Mapping):
        for name, of in fields.items():
            yield name
            yield from names(of)


@dataclass
class FieldPlace:
    """Canonical path, and its value's schema. `unknown`: key without a place; `is_list`: the service has no list."""

    path: str
    of: Schema = None
    unknown: str = ""
    is_list: bool = False


def place(path: str, schema: Schema, before: str = "") -> FieldPlace:
    """Return the place of a path below a schema. `before`: the beginning of its canonical path."""
    found, at = FieldPlace(before, schema), 0
    while at < len(path):
        if isinstance(found.of, Own):
            return FieldPlace(_below(found.path, path[at:]))
        key = _KEY.match(path, at)
        fields = found.of.of if isinstance(found.of, Items) else found.of
        name = _spelt(key[1], fields) if key and isinstance(fields, Mapping) else None
        if key is None or name is None:
            return FieldPlace(_below(found.path, path[at:]), None, path[at:])
        if isinstance(found.of, Items) and not found.path.endswith("]"):
            found.path += "[0]"  # one object, where the service has a list of them
        of = cast("Mapping[str, Schema]", fields)[name]
        numbers = key[2]
        if numbers and not (isinstance(of, Items) and of.of is not None and numbers.count("[") == 1):
            return FieldPlace(
                _below(found.path, f"{name}{path[key.end(1) :]}"), None, f"{key[1]}{numbers}", is_list=True
            )
        found, at = FieldPlace(f"{_below(found.path, name)}{numbers}", of), key.end()
    return found


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _spelt(key: str, fields: Mapping[str, Any]) -> str | None:
    if key in fields:
        return key
    camel = re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), key)
    return camel if camel in fields else None


def canonical(given: RequestFields, schema: Mapping[str, Schema], inner: str) -> None:
    """Put a document's values under the service's own names, each list as a list, and refuse values without a place.
    `inner`: the object that a document may leave out (`jobSpec`), so that its fields are at the top."""
    report, below = given.report, cast("Mapping[str, Schema]", schema[inner])
    whole = any(_spelt(re.split(r"[.\[]", path)[0], {inner: None}) for path in given.values)
    values, names = dict(given.values), dict(given.names)
    for path in values:
        del given.values[path], given.names[path]
    lists = _variables(values, names)
    for path, value in values.items():
        name = names[path]
        top = re.split(r"[.\[]", path)[0]
        is_inner = _spelt(top, schema) is None and _spelt(top, below) is not None
        at = place(path, below, inner) if is_inner and not whole else place(path, schema)
        if is_inner and whole:
            report.refuse(name, f"stands beside {inner}, and belongs below it")
        elif at.unknown or isinstance(at.of, Mapping | Own) or (isinstance(at.of, Items) and at.of.of is not None):
            _refuse(given, name, at, value)
        elif at.path in given.values:
            report.refuse(name, f"is the same field as {given.name(at.path)}; leave one of the two out")
        else:
            given.put(at.path, name, _listed(given, name, at, value))
    for path, (name, value) in lists.items():
        at = place(path, schema) if whole else place(path, below, inner)
        if at.unknown:
            _refuse(given, name, at, value)
        else:
            given.put(at.path, name, value)
    for name, value in report.fields.items():
        if value in _EMPTY and name not in values and not isinstance(value, bool):
            _nothing(given, name, schema if whole else {**schema, **below})


def _variables(values: dict[str, Any], names: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    """Move mappings `env: {NAME: value}` out of `values`, and return them as the service's list of variables."""
    found: dict[str, tuple[str, Any]] = {}
    count: dict[str, int] = {}
    below: dict[str, list[str]] = {}
    for path in values:
        if env := _ENV_MAPPING.match(path):
            below.setdefault(env[1], []).append(path)
    for env, paths in below.items():
        keys = [path.removeprefix(f"{env}.") for path in paths]
        if set(keys) <= {"name", "value"} or any(re.search(r"[.\[]", key) for key in keys):
            continue
        for path in paths:
            index = count[env] = count.get(env, -1) + 1
            found[f"{env}[{index}].name"] = (names[path], path.removeprefix(f"{env}."))
            found[f"{env}[{index}].value"] = (names[path], values.pop(path))
    return found


_REASONS = {
    "valueFrom": "is Kubernetes': Vertex AI has no variables out of secrets; read Secret Manager in the program",
    "value_from": "is Kubernetes': Vertex AI has no variables out of secrets; read Secret Manager in the program",
}


def _refuse(given: RequestFields, name: str, at: FieldPlace, value: Any) -> None:
    """Refuse a value that a schema has no place for. Names that are no field at all are left to Report.close."""
    key = re.split(r"[.\[]", at.unknown)[0]
    if not at.unknown:
        kind = "a list of mappings" if isinstance(at.of, Items) else "a mapping of fields"
        given.report.refuse(name, f"must be {kind}, is {messages.display(value)}")
    elif key in _REASONS:
        given.report.refuse(name, _REASONS[key])
    elif at.is_list:
        given.report.refuse(name, f"is below a list, and {key} is none in the service")


_WORDS = ("command", "args", "containerCommand", "containerArgs")


def _listed(given: RequestFields, name: str, at: FieldPlace, value: Any) -> Any:
    """Return a list for a list of texts, a command line split as by a shell, a choice by its name, others as is."""
    value = choice(value, _CHOICES.get(at.path.rpartition(".")[2], ()))
    if not isinstance(at.of, Items) or at.of.of is not None or not isinstance(value, str) or not value:
        return value
    words = [value]
    if at.path.rpartition(".")[2] in _WORDS:
        try:
            words = shlex.split(value)
        except ValueError:
            given.report.refuse(name, "is one text with a quote that is not closed, where the service has a list")
    if words == [value]:
        given.report.note(name, "is a list in the service; taken for a list of one")
    else:
        given.report.changed(name, words, "is one text with spaces, where the service has a list")
    return words


def _nothing(given: RequestFields, name: str, schema: Mapping[str, Schema]) -> None:
    """Refuse a machine or an accelerator that has no value, since what it was meant to be is lost."""
    parts = re.split(r"[.\[]", name)
    last = _spelt(parts[-1], {"machineSpec": None, "acceleratorConfig": None, "machineType": None})
    of_accelerator = parts[-1] in ("type", "count") and _spelt("".join(parts[-2:-1]), {"acceleratorConfig": None})
    if (last or of_accelerator) and not place(name, schema).unknown:
        said = "type and count" if of_accelerator or last == "acceleratorConfig" else "a machine type"
        given.report.refuse(name, f"has no value: write {said}, or leave it out")
