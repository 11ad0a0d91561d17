"""A custom job of Vertex AI as a job file of ours. It is written as config.yaml, a CustomJob, a pasted gcloud
command, or flags; flags win.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accel.diagnostics.errors import BadInput
from accel.rules.gcp import zones
from accel.rules.jobs import image_cuda, imports, placeholders

from . import gcloud, shell
from .fields import RequestFields
from .options import Options
from .outcome import ImportResult
from .reading import Json, file_bytes, read
from .vertex_values import job_values

KNOWN = (
    *("displayName", "jobSpec", "workerPoolSpecs", "machineSpec", "machineType", "acceleratorType", "acceleratorCount"),
    *("tpuTopology", "reservationAffinity", "replicaCount", "containerSpec", "imageUri", "command", "args", "env"),
    *("pythonPackageSpec", "executorImageUri", "packageUris", "pythonModule", "diskSpec", "bootDiskSizeGb"),
    *("bootDiskType", "nfsMounts", "scheduling", "timeout", "strategy", "restartJobOnWorkerRestart", "disableRetries"),
    *("maxWaitDuration", "serviceAccount", "network", "baseOutputDirectory", "outputUriPrefix", "tensorboard"),
    *("enableWebAccess", "enableDashboardAccess", "persistentResourceId", "labels", "encryptionSpec"),
)


def imported(name: str, data: bytes, flags: Sequence[str], options: Options) -> ImportResult:
    """The job of a file (config.yaml, a CustomJob, a pasted gcloud command) and of flags, which win.

    Raises BadInput where it cannot be read.
    """
    given, region = source(name, data, flags, options.variables)
    if not given.has("displayName"):
        given.values["displayName"] = name.rpartition("/")[2].partition(".")[0]
    for path, value in list(given.values.items()):
        if isinstance(value, str):
            given.report.findings(given.name(path), placeholders.value(path, value))
    values = job_values(given, options)
    if region:
        given.report.findings("--region", zones.region(region))
    accelerators = [str(value) for path, value in given.values.items() if path.endswith(".acceleratorType")]
    image = values.get("image")
    if isinstance(image, str):
        at = f"{SPEC}.workerPoolSpecs[0].containerSpec.imageUri"
        given.report.findings(given.name(at), image_cuda.image(image, accelerators))
    given.report.close(KNOWN)
    return ImportResult(given.report, {}, values, region)


VERB = "ai custom-jobs create"
SPEC = "jobSpec"
POOL = "--worker-pool-spec"
REST, WORDS = "after the command", "words of the command"
TIMEOUT = "--timeout"
FLAGS = {
    **dict.fromkeys(("--args", "--command", "--config", "--display-name", "--labels", "--network", "--region"), True),
    **dict.fromkeys(("--persistent-resource-id", "--python-package-uris", "--service-account", POOL), True),
    **dict.fromkeys(("--kms-key", "--kms-keyring", "--kms-location", "--kms-project"), True),
    **dict.fromkeys(("--enable-web-access", "--enable-dashboard-access"), False),
}
"""Source: gcloud's own flags of `ai custom-jobs create`."""

PLAIN = {
    "--network": f"{SPEC}.network",
    "--service-account": f"{SPEC}.serviceAccount",
    "--persistent-resource-id": f"{SPEC}.persistentResourceId",
    "--display-name": "displayName",
    "--kms-key": "encryptionSpec.kmsKeyName",
}
POOL_KEYS = {
    "machine-type": "machineSpec.machineType",
    "accelerator-type": "machineSpec.acceleratorType",
    "accelerator-count": "machineSpec.acceleratorCount",
    "replica-count": "replicaCount",
    "container-image-uri": "containerSpec.imageUri",
    "executor-image-uri": "pythonPackageSpec.executorImageUri",
    "python-module": "pythonPackageSpec.pythonModule",
}
LOCAL_KEYS = ("local-package-path", "script", "output-image-uri", "requirements", "extra-dirs", "extra-packages")
"""Of a pool whose image gcloud builds here."""

JOB_KEYS = ("displayName", "jobSpec", "labels", "encryptionSpec", "name", "state")
_AS_WRITTEN = ("labels", "env")
"""Below them names are the author's."""


def source(name: str, data: bytes, flags: Sequence[str], variables: Mapping[str, str]) -> tuple[RequestFields, str]:
    """The fields of a CustomJob, in the API's names, and the region if a flag says it. Raises BadInput."""
    text = data.decode("utf-8-sig", errors="replace")
    lines: list[tuple[gcloud.CommandLine, shell.Pasted | None]] = []
    document: Json = {}
    if shell.is_command(text):
        pasted = shell.pasted(name, text, variables, VERB)
        command = gcloud.parsed(pasted.argv, FLAGS)
        command.words = [word for word in command.words if word not in ("gcloud", "alpha", "beta")][3:]
        lines.append((command, pasted))
        if config := command.flags.get("--config"):
            path = Path(name).parent / config[-1]
            try:
                document = read(str(path), file_bytes(path))
            except OSError as error:
                raise BadInput(f"{name}: --config {config[-1]}: cannot be read: {error.strerror}") from None
    elif text.strip():
        document = read(name, data)
    if flags:
        lines.append((gcloud.parsed(flags, FLAGS), None))
    given = _of(document, lines, shell.roles(text))
    for command, pasted in lines:
        _flags(given, command, pasted)
    region = next((command.flags["--region"][-1] for command, _ in reversed(lines) if "--region" in command.flags), "")
    return given, region


def _of(
    document: Json, lines: Sequence[tuple[gcloud.CommandLine, shell.Pasted | None]], roles: Sequence[str]
) -> RequestFields:
    beside: dict[str, Any] = {}
    for command, pasted in lines:
        beside |= {flag: values[-1] for flag, values in command.flags.items() if flag != POOL}
        for index, value in enumerate(command.flags.get(POOL, ())):
            beside |= {_named(command, index, key): text for key, text in gcloud.pairs(value).items()}
        beside |= {flag: command.unknown_values.get(flag, "") if flag == TIMEOUT else "" for flag in command.unknown}
        beside |= {WORDS: command.words} if command.words else {}
        beside |= {REST: pasted.rest} if pasted and pasted.rest else {}
        beside |= {"args after --": command.rest} if command.rest else {}
    beside |= {role: role for role in roles}
    given = RequestFields(document, beside=beside)
    for role in roles:
        given.report.findings(role, imports.role(role))
    keys = {_camel(key) for key in document}
    whole = "jobSpec" in keys
    mapping = False
    for path in list(given.values):
        new = ".".join(_renamed(path.split(".")))
        if not whole and new.partition(".")[0] not in JOB_KEYS:
            new = f"{SPEC}.{new}"
        for each in (f"{SPEC}.workerPoolSpecs.",):
            if new.startswith(each):
                new = f"{SPEC}.workerPoolSpecs[0].{new.removeprefix(each)}"
                mapping = True
        given.values[new], given.names[new] = given.values.pop(path), given.names.pop(path)
    for finding in imports.pools_mapping(mapping):
        given.report.findings("workerPoolSpecs", [finding])
    return given


def _renamed(parts: list[str]) -> list[str]:
    """Each part in the API's spelling, but for what is below labels and variables."""
    found: list[str] = []
    for index, part in enumerate(parts):
        own = any(re.split(r"\[", before)[0] in _AS_WRITTEN[:1] for before in parts[:index])
        found.append(part if own else _camel(part))
    return found


def _camel(name: str) -> str:
    """worker_pool_specs[0] as workerPoolSpecs[0]; names of the client libraries have underscores."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def _named(command: gcloud.CommandLine, index: int, key: str) -> str:
    """A key of a --worker-pool-spec, with the number of the pool where there are several."""
    return f"{POOL}[{index}].{key}" if len(command.flags[POOL]) > 1 else f"{POOL}.{key}"


def _flags(given: RequestFields, command: gcloud.CommandLine, pasted: shell.Pasted | None) -> None:
    report = given.report
    for flag, why in command.unknown.items():
        if flag == TIMEOUT:
            report.findings(flag, imports.timeout_flag(command.unknown_values.get(flag, ""), flag))
        else:
            report.refuse(flag, why)
    if POOL in command.flags:
        _pools(given, command)
    for flag, values in command.flags.items():
        if flag in PLAIN:
            _put(given, PLAIN[flag], flag, values[-1])
        elif flag in ("--enable-web-access", "--enable-dashboard-access"):
            _put(given, f"{SPEC}.{_camel(flag.removeprefix('--').replace('-', '_'))}", flag, True)
        elif flag == "--labels":
            for key, text in gcloud.pairs(values[-1]).items():
                _put(given, f"labels.{key}", flag, text)
        elif flag == "--region":
            report.keep(flag, "the region of the target")
        elif flag == "--config":
            report.keep(flag, why="is the file that was read")
        elif flag.startswith("--kms-"):
            report.changed(flag, None, "is the target's")
        elif flag not in FLAGS:
            report.changed(flag, None, "is for gcloud itself; a target has its own project and account")
    _programs(given, command)
    if command.words:
        report.refuse(WORDS, "the command takes flags alone; a value with spaces wants quotes")
    if command.rest:
        report.refuse("args after --", "the command has no `--`; a program's arguments are --args=a,b")
    if pasted:
        _told(given, command, pasted)


def _told(given: RequestFields, command: gcloud.CommandLine, pasted: shell.Pasted) -> None:
    if pasted.rest:
        given.report.changed(REST, None, "is not the command's")
    for note in pasted.notes:
        given.report.note("the command", note)
    for fault in pasted.lost:
        given.report.refuse("the command", fault)
    for variable, written in pasted.unknown.items():
        plain = variable if re.fullmatch(r"\w+", variable) else ""
        for flag, values in command.flags.items():
            held = [flag] if flag != POOL and written in values[-1] else []
            for index, value in enumerate(values if flag == POOL else ()):
                held += [_named(command, index, key) for key, text in gcloud.pairs(value).items() if written in text]
            for field in held:
                given.report.findings(field, imports.variable(written, plain, field))


def _pools(given: RequestFields, command: gcloud.CommandLine) -> None:
    """`--worker-pool-spec`: all pools of the job, in place of the file's."""
    for path in [path for path in given.values if path.startswith(f"{SPEC}.workerPoolSpecs")]:
        given.report.findings(given.name(path), imports.flag_wins(POOL, False, None, given.name(path)))
        del given.values[path]
    values = command.flags[POOL]
    for index, value in enumerate(values):
        for key, text in gcloud.pairs(value).items():
            name = _named(command, index, key)
            path = f"{SPEC}.workerPoolSpecs[{index}]"
            if key in POOL_KEYS:
                given.put(f"{path}.{POOL_KEYS[key]}", name, _enum(key, text))
            elif key in LOCAL_KEYS:
                for each in text.split(";") if key == "requirements" else ():
                    given.report.findings(name, imports.requirement(each.strip(), name))
                why = (
                    f"has {key}, of which gcloud builds an image here; build it, push it, and name container-image-uri"
                )
                given.report.refuse(name, why)
            else:
                given.report.refuse(name, f"has {key}, and takes {', '.join(POOL_KEYS)}")


def _enum(key: str, text: str) -> str:
    return gcloud.enum(text) if key == "accelerator-type" else text


def _programs(given: RequestFields, command: gcloud.CommandLine) -> None:
    """What is given once for all pools: command, arguments, packages."""
    pools = given.items(f"{SPEC}.workerPoolSpecs")
    for flag, to, specs in (
        ("--args", "args", ("containerSpec", "pythonPackageSpec")),
        ("--command", "command", ("containerSpec",)),
        ("--python-package-uris", "packageUris", ("pythonPackageSpec",)),
    ):
        if flag not in command.flags:
            continue
        used = False
        for pool in pools:
            for spec in specs:
                if given.has(f"{pool}.{spec}"):
                    _put(given, f"{pool}.{spec}.{to}", flag, gcloud.items(command.flags[flag][-1]))
                    used = True
        if not used:
            given.report.refuse(flag, f"is for a pool with a {' or '.join(specs)}, and there is none")


def _put(given: RequestFields, path: str, flag: str, value: Any) -> None:
    for each in [each for each in given.values if each == path or each.startswith(f"{path}.")]:
        name = given.name(each)
        if name != flag:
            same = given.values[each] == value
            given.report.keep(name, why=f"is the same as {flag}") if same else None
            given.report.findings(name, imports.flag_wins(flag, same, value, name))
        del given.values[each]
    given.put(path, flag, value)
