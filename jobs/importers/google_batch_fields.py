"""Fields of a Job of Google Batch under the API's own names and places, however a document spells them. The JSON form
of protocol buffers accepts a field's lowerCamelCase name and its original one (taskGroups, task_groups), and a choice
by its number, and does not tell a zero or an empty text from no value: https://protobuf.dev/programming-guides/json/.
Source of the fields: the discovery document of batch.v1; of the numbers: its client library, google-cloud-batch."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from accel.diagnostics import messages
from accel.diagnostics.errors import BadInput
from accel.diagnostics.findings import Finding
from accel.rules.jobs import imports, placeholders

from .fields import RequestFields, choice
from .names import suggestion
from .reading import Json, leaves
from .report import name_text

GROUP = "taskGroups[0]"
SPEC = f"{GROUP}.taskSpec"
ALLOCATION = "allocationPolicy"
INSTANCE = f"{ALLOCATION}.instances[0]"
POLICY = f"{INSTANCE}.policy"

TEXT, TEXTS, MAP, ANY = "a scalar", "a list of scalars", "a mapping of texts", "anything"
Schema = str | Mapping[str, Any] | tuple[Any]


def _scalars(names: str) -> dict[str, Schema]:
    return dict.fromkeys(names.split(), TEXT)


_ENVIRONMENT = {"variables": MAP, "secretVariables": MAP, "encryptedVariables": _scalars("keyName cipherText")}
_RUNNABLE = {
    "container": {
        **_scalars("imageUri entrypoint options username password blockExternalNetwork enableImageStreaming"),
        **{"commands": TEXTS, "volumes": TEXTS},
    },
    "script": _scalars("text path"),
    "barrier": _scalars("name"),
    **_scalars("background alwaysRun ignoreExitStatus timeout displayName"),
    "environment": _ENVIRONMENT,
    "labels": MAP,
}
_VOLUME = {
    "gcs": _scalars("remotePath"),
    "nfs": _scalars("server remotePath"),
    **_scalars("deviceName mountPath"),
    "mountOptions": TEXTS,
}
_TASK_SPEC = {
    "runnables": (_RUNNABLE,),
    "volumes": (_VOLUME,),
    "computeResource": _scalars("cpuMilli memoryMib bootDiskMib"),
    "environment": _ENVIRONMENT,
    "environments": MAP,
    "lifecyclePolicies": ({"action": TEXT, "actionCondition": {"exitCodes": TEXTS}},),
    **_scalars("maxRetryCount maxRunDuration"),
}
_TASK_GROUP = {
    **_scalars("name parallelism permissiveSsh requireHostsFile runAsNonRoot schedulingPolicy taskCount"),
    **{"taskCountPerNode": TEXT, "taskEnvironments": (_ENVIRONMENT,), "taskSpec": _TASK_SPEC},
}
_DISK = _scalars("diskInterface image sizeGb snapshot type")
_POLICY = {
    "accelerators": (_scalars("count driverVersion installGpuDrivers type"),),
    "bootDisk": _DISK,
    "disks": ({**_scalars("deviceName existingDisk"), "newDisk": _DISK},),
    **_scalars("machineType minCpuPlatform provisioningModel reservation"),
}
_ALLOCATION = {
    "instanceFlexibilityPolicy": ANY,
    "instances": (
        {**_scalars("blockProjectSshKeys installGpuDrivers installOpsAgent instanceTemplate"), "policy": _POLICY},
    ),
    "labels": MAP,
    "location": {"allowedLocations": TEXTS},
    "network": {"networkInterfaces": (_scalars("network nicType noExternalIpAddress subnetwork"),)},
    "placement": _scalars("collocation maxDistance"),
    "serviceAccount": {"email": TEXT, "scopes": TEXTS},
    "tags": TEXTS,
}
JOB: dict[str, Schema] = {
    **_scalars("name displayName uid createTime updateTime priority"),
    "status": ANY,
    "taskGroups": (_TASK_GROUP,),
    "allocationPolicy": _ALLOCATION,
    "labels": MAP,
    "logsPolicy": {
        **_scalars("destination logsPath"),
        "cloudLoggingOption": _scalars("useGenericTaskMonitoredResource"),
    },
    "notifications": ({"message": _scalars("newJobState newTaskState type"), "pubsubTopic": TEXT},),
}

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "schedulingPolicy": ("SCHEDULING_POLICY_UNSPECIFIED", "AS_SOON_AS_POSSIBLE", "IN_ORDER"),
    "action": ("ACTION_UNSPECIFIED", "RETRY_TASK", "FAIL_TASK"),
    "destination": ("DESTINATION_UNSPECIFIED", "CLOUD_LOGGING", "PATH"),
    "provisioningModel": (
        *("PROVISIONING_MODEL_UNSPECIFIED", "STANDARD", "SPOT", "PREEMPTIBLE", "RESERVATION_BOUND", "FLEX_START"),
    ),
}
"""Values of each choice, in the order of their numbers."""
_COUNTS = (
    *("taskCount", "parallelism", "taskCountPerNode", "cpuMilli", "memoryMib", "bootDiskMib", "sizeGb"),
    *_CHOICES,
)
"""Fields whose zero stands for no value."""


class BatchFields(RequestFields):
    """Values by the API's path, each with the name that its author wrote. Fields that the API does not have are refused
    and are no values here, nor are those that stand for no value. `single`: paths of lists that were written as their
    one item."""

    def __init__(self, file: str, document: Json, beside: Mapping[str, Any] | None = None) -> None:
        """Raise BadInput if two fields have the same name. `beside` holds values outside the document."""
        seen: set[str] = set()
        for name, _ in leaves(document) if document else ():
            if name in seen:
                raise BadInput(f"{file}: {messages.printable_name(name)}: is set twice")
            seen.add(name)
        super().__init__(document, beside=beside)
        self.values, self.names = {}, {}
        self.single: set[str] = set()
        self._leaves_below: dict[str, list[str]] = {}
        self._lengths: dict[str, int] = {}
        self._notes: list[tuple[str, str]] = []
        self._unset: set[str] = set()
        if document:
            self._walk(document, JOB, "", "", ())

    def has(self, path: str) -> bool:
        return path in self.values or path in self._leaves_below

    def is_written(self, path: str) -> bool:
        """Return whether a path is given, even if it is empty."""
        return self.has(path) or (path in self.names and path not in self._unset)

    def items(self, path: str) -> list[str]:
        return [f"{path}[{index}]" for index in range(self._lengths.get(path, 0))]

    def mapping(self, path: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in self._leaves_below.get(path, ()):
            if each not in self.values:
                continue
            if isinstance(self.values[each], str):
                found[each[len(path) + 1 :]] = self.values[each]
            else:
                self._wrong(each, "text")
        if path in self.values:
            self._wrong(path, "a mapping of texts")
        return found

    def below(self, path: str) -> list[str]:
        return [each for each in (path, *self._leaves_below.get(path, ())) if each in self.values]

    def keep(self, path: str, to: str = "", why: str = "") -> None:
        """Keep the one value at a path. Those below it are not included, since a job file may carry none of them."""
        if path in self.values:
            self.report.keep(self.name(path), to, why)

    def left_out(self, path: str, why: str, rule: str = "") -> None:
        for each in self.below(path):
            self.report.changed(self.name(each), None, why, rule)

    def refuse(self, path: str, why: str, rule: str = "") -> None:
        """Call Report.refuse for every value at a path and below it, or for the path itself if there is none."""
        for each in self.below(path) or [path]:
            self.report.refuse(self.name(each), why, rule)

    def settle(self, path: str, why: str) -> None:
        """Leave out every value at a path and below it. The author decides whether that is acceptable."""
        for each in self.below(path):
            self.report.decide(self.name(each), why, is_open=False)

    def is_on(self, path: str) -> bool:
        """Return whether a flag without a place is on. Keep one that is off, since that is the same as leaving it
        out."""
        on = bool(self.flag(path))
        if not on:
            self.keep(path, why="is so without it")
        return on

    def close(self) -> None:
        self.report.close()
        for name, why in self._notes:
            self.report.note(name, why)

    def _walk(self, value: Any, schema: Schema, path: str, name: str, above: tuple[str, ...]) -> None:
        if isinstance(schema, tuple):
            self._list(value, schema, path, name, above)
        elif schema == ANY:
            for inner, leaf in leaves(value):
                tail = f".{inner}" if inner and not inner.startswith("[") else inner
                self._add(f"{path}{tail}", f"{name}{tail}", leaf, (*above, path) if inner else above)
        elif not isinstance(schema, str):
            self._object(value, schema, path, name, above)
        elif isinstance(value, dict) and value and schema == MAP:
            for key, inner in cast(Json, value).items():
                if _is_leaf(inner):
                    self._add(f"{path}.{key}", f"{name}.{key}", inner, (*above, path))
                else:
                    self._unknown(inner, f"{name}.{key}", f"must be text, as all of {name}")
        elif not _is_leaf(value):
            self._unknown(value, name, f"{name} must be {schema if schema != TEXT else 'text, a number or a flag'}")
        elif schema == TEXT:
            self._scalar(value, path, name, above)
        else:
            if schema == TEXTS and value is not None and not isinstance(value, list):
                value = [value]
                self.single.add(path)
                self._notes.append((name, "is taken for a list of one"))
            self._add(path, name, value, above)

    def _scalar(self, value: Any, path: str, name: str, above: tuple[str, ...]) -> None:
        """Add a scalar: a choice by its name, and nothing for what stands for no value."""
        field = path.rpartition(".")[2]
        if value == "" or (value == "0" and field in _COUNTS):
            self.names[path] = name
            self._unset.add(path)
            for each in above:
                self._leaves_below.setdefault(each, [])
            self.report.keep(name, why="is empty" if value == "" else "stands for no value")
            return
        self._add(path, name, choice(value, _CHOICES.get(field, ())), above)

    def _list(self, value: Any, schema: tuple[Any], path: str, name: str, above: tuple[str, ...]) -> None:
        inside = (*above, path)
        if isinstance(value, dict) and value:
            first = next(leaves(cast(Json, value)))[0]
            self._notes.append((f"{name}.{first}", f"{name} is taken for a list of one"))
            self.single.add(path)
            self._lengths[path] = 1
            self._walk(value, schema[0], f"{path}[0]", name, inside)
        elif not _is_leaf(value):
            inner_values = cast(list[Any], value)
            self._lengths[path] = len(inner_values)
            for index, inner in enumerate(inner_values):
                self._walk(inner, schema[0], f"{path}[{index}]", f"{name}[{index}]", inside)
        elif value is None or value in ([], {}):
            self._add(path, name, value, above)
        else:
            self._unknown(value, name, "must be a list of mappings of fields")

    def _object(self, value: Any, schema: Mapping[str, Any], path: str, name: str, above: tuple[str, ...]) -> None:
        if not isinstance(value, dict) or not value:
            if value is None or value in ([], {}):
                self._add(path, name, value, above)
            else:
                self._unknown(value, name, f"{name or 'the job'} must be a mapping of fields")
            return
        inside = (*above, path) if path else above
        first: dict[str, str] = {}
        for key, inner in cast(Json, value).items():
            its_name = f"{name}.{key}" if name else key
            field = _field(key, schema)
            if field is None:
                part = "" if name == "" and _is_leaf(inner) else f"{name_text(key)} "
                self._unknown(inner, its_name, f"{part}is no field that is known here{_near(key, schema)}")
            elif field in first:
                self._unknown(inner, its_name, f"is {first[field]} in another spelling; keep one of the two")
            else:
                first[field] = key
                self._walk(inner, schema[field], f"{path}.{field}" if path else field, its_name, inside)

    def _add(self, path: str, name: str, value: Any, above: tuple[str, ...]) -> None:
        self.names[path] = name
        if value is None or value in ([], {}):
            return
        self.values[path] = value
        for each in above:
            self._leaves_below.setdefault(each, []).append(path)

    def _unknown(self, value: Any, name: str, why: str) -> None:
        for inner, _ in leaves(value):
            self.report.refuse(f"{name}{'.' if inner and not inner.startswith('[') else ''}{inner}", why)


def _is_leaf(value: Any) -> bool:
    """Return whether reading.leaves treats a value as a leaf."""
    if isinstance(value, list):
        return not any(isinstance(each, dict | list) for each in cast(list[Any], value))
    return not (isinstance(value, dict) and value)


def _field(key: str, schema: Mapping[str, Any]) -> str | None:
    if key in schema:
        return key
    camel = re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), key)
    return camel if camel in schema and key == re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", camel) else None


def _near(key: str, schema: Mapping[str, Any]) -> str:
    parents = _PARENTS.get(key) or _PARENTS.get(_field(key, _PARENTS) or "")
    if parents:
        return f": indent it below {' or '.join(parents)}"
    here = suggestion(key, list(schema))
    return here if "did you mean" in here else suggestion(key, list(_PARENTS)) or here


def _parents(schema: Schema, of: str = "the job") -> Iterable[tuple[str, str]]:
    if isinstance(schema, tuple):
        yield from _parents(schema[0], f"{of}[0]")
    elif not isinstance(schema, str):
        for key, inner in schema.items():
            yield key, of
            yield from _parents(inner, key)


_PARENTS: dict[str, list[str]] = {}
for _key, _of in _parents(JOB):
    if _of not in _PARENTS.setdefault(_key, []):
        _PARENTS[_key].append(_of)

_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?|\{\{-?\s*([A-Za-z_][\w.]*)\s*-?\}\}|\{\{.*?\}\}")
_WHOLE = re.compile(r"\$\{?((?!BATCH_)[A-Za-z_]\w*)\}?|\{\{-?\s*([A-Za-z_][\w.]*)\s*-?\}\}")
"""Value of a variable that is another variable, which nothing replaces: a template to be filled in."""
_BRACKETS = re.compile(r"\[[A-Z][A-Z0-9_ -]*\]")
_ADDRESS = re.compile(r"(?:gs://|projects/|[\w.-]+\.pkg\.dev/|(?<![\w.-])(?:\w+\.)?gcr\.io/)[^\s\"']*")


def placeholder_findings(path: str, text: str) -> list[Finding]:
    """Return findings for a value that somebody was to replace: MY_PROJECT, $PROJECT, [PROJECT]."""
    if found := _VARIABLE.search(text):
        return imports.variable(found[0], found[1] or found[2] or "", path)
    if found := _BRACKETS.search(text):
        message, fix = f'is "{text}"; "{found[0]}" is a placeholder', "write the value that it stands for"
        return [placeholders.VALUE.finding(path, message, fix)]
    return placeholders.value(path, text)


def variable_names(text: str) -> list[str]:
    return [found[1] or found[2] for found in _VARIABLE.finditer(text) if found[1] or found[2]]


def placeholders_of(path: str, text: str) -> list[Finding]:
    """Return placeholder_findings() by a field's path. Text for a program is checked only for names of cloud resources,
    without the variables that a shell replaces, and for being a variable as a whole."""
    is_variable = ".variables." in path or ".environments." in path
    if (is_variable or path.endswith(FILLED_IN)) and (found := _WHOLE.fullmatch(text.strip())):
        return imports.variable(text.strip(), found[1] or found[2], path)
    if path.endswith(_PROGRAM) or is_variable:
        addresses = (_VARIABLE.sub("", found) for found in _ADDRESS.findall(text))
        return [finding for each in addresses for finding in placeholders.value(path, each)]
    if path.endswith(_SECRET):
        return []
    found = placeholder_findings(path, text)
    if path.endswith(_OWN_NAMES):
        return [finding for finding in found if finding.rule != placeholders.VALUE.id or _BRACKETS.search(text)]
    return found


FILLED_IN = (".text", ".commands")
_PROGRAM = (*FILLED_IN, ".entrypoint", ".displayName")
_SECRET = (".password", ".cipherText")
_OWN_NAMES = (".mountPath", ".deviceName", "container.volumes", ".logsPath")
"""Fields that name a folder or disk of the VM, which may well be called my-bucket."""


@dataclass
class Step:
    """Runnable of the kind container, script or barrier."""

    path: str
    kind: str
    image: str | None = None
    entrypoint: str | None = None
    command: list[str] = field(default_factory=list[str])
    options: str | None = None
    shm_mib: int | None = None
    volumes: list[str] = field(default_factory=list[str])
    text: str = ""
    more: Json = field(default_factory=dict[str, Any])

    @property
    def words(self) -> list[str]:
        """Complete argv, or an empty list if it is not known."""
        return [self.entrypoint, *self.command] if self.entrypoint else []
