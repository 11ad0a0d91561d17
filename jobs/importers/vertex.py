"""Importer of a custom job of Vertex AI: config.yaml, a CustomJob, a pasted gcloud command, or flags, which win."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from accel.rules.gcp import zones
from accel.rules.jobs import image_cuda, imports, placeholders

from . import gcloud, shell, vertex_schema, vertex_templates
from .fields import RequestFields
from .options import ImportOptions
from .outcome import ImportResult
from .reading import Json
from .redact import hide
from .vertex_values import NO_KEY, job_values
from .vertex_values import OF_TARGET as FIELDS_OF_TARGET

KNOWN = tuple(dict.fromkeys(vertex_schema.names(vertex_schema.CUSTOM_JOB)))


def import_job(name: str, data: bytes, options: ImportOptions) -> ImportResult:
    given, region, secrets = source(name, data, options)
    if not given.has("displayName"):
        given.values["displayName"] = name.rpartition("/")[2].partition(".")[0]
    vertex_templates.samples(given, _LEFT_OUT)
    values = job_values(given, options)
    if region:
        given.report.findings("--region", [*zones.region(region), *placeholders.value("--region", region)])
    accelerators = [str(value) for path, value in given.values.items() if path.endswith(".acceleratorType")]
    image = values.get("image")
    if isinstance(image, str):
        at = f"{SPEC}.workerPoolSpecs[0].containerSpec.imageUri"
        given.report.findings(given.name(at), image_cuda.image(image, accelerators))
    given.report.close(KNOWN)
    hide(given.report, secrets)
    return ImportResult(given.report, {}, values, region)


VERB = "ai custom-jobs create"
SPEC = "jobSpec"
POOL = "--worker-pool-spec"
WORDS = "words of the command"
TIMEOUT = "--timeout"
FLAGS = {
    **dict.fromkeys(("--args", "--command", "--config", "--display-name", "--labels", "--network", "--region"), True),
    **dict.fromkeys(("--persistent-resource-id", "--python-package-uris", "--service-account", POOL), True),
    **dict.fromkeys(("--kms-key", "--kms-keyring", "--kms-location", "--kms-project"), True),
    **dict.fromkeys(("--enable-web-access", "--enable-dashboard-access"), False),
}
"""Flags of the command, each with whether it takes a value. Source: gcloud's own flags of `ai custom-jobs create`."""

OF_TARGET = ("--network", "--service-account")
_LEFT_OUT = re.compile("|".join(rf"{re.escape(each)}$" for each in FIELDS_OF_TARGET))
"""Fields whose values are not in a job, so that a variable in one of them needs no value."""
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
"""Keys of a pool whose image gcloud builds from a local folder."""
PACKAGED_KEYS = ("executor-image-uri", "python-module")
"""Keys of an existing package. In a pool that gcloud builds, they name what the image is made of."""


def source(name: str, data: bytes, options: ImportOptions) -> tuple[RequestFields, str, list[str]]:
    """Return fields under the API's names, a flag's region, and secret values. Raise BadInput if unreadable."""
    text, variables = data.decode("utf-8-sig", errors="replace"), options.variables
    written = gcloud.source(
        *(name, data, options.flags, variables, VERB, FLAGS, _take_words),
        OF_TARGET,
        lambda command: command.flags.get("--display-name", []),
    )
    lines = written.lines
    vertex_templates.fill(written.document, variables)
    given = _of(written.document, lines, shell.roles(text), variables)
    gcloud.note_again(given.report, [command for command, _ in lines])
    for command, pasted in lines:
        _flags(given, command, pasted, options)
    gcloud.tell_moment(given.report, "--display-name", given.text("displayName") or "", written.moment)
    region = next((command.flags["--region"][-1] for command, _ in reversed(lines) if "--region" in command.flags), "")
    return given, region, written.secrets


def _take_words(command: gcloud.CommandLine) -> None:
    command.words = [word for word in command.words if word not in ("gcloud", "alpha", "beta")][3:]


def _of(
    document: Json,
    lines: gcloud.Lines,
    roles: Sequence[str],
    variables: Mapping[str, str],
) -> RequestFields:
    beside: dict[str, Any] = {}
    for command, pasted in lines:
        beside |= {flag: values[-1] for flag, values in command.flags.items() if flag != POOL}
        for index, value in enumerate(command.flags.get(POOL, ())):
            beside |= {_named(command, index, key): text for key, text in gcloud.pairs(value).items()}
        beside |= {flag: command.unknown_values.get(flag, "") if flag == TIMEOUT else "" for flag in command.unknown}
        beside |= {WORDS: command.words} if command.words else {}
        beside |= {shell.REST: pasted.rest} if pasted and pasted.rest else {}
        beside |= {"args after --": command.rest} if command.rest else {}
    beside |= {role: role for role in roles}
    given = RequestFields(document, beside=beside)
    for role in roles:
        given.report.findings(role, imports.role(role))
    mapping = any(re.match(r"(?:job_?[sS]pec\.)?worker_?[pP]ool_?[sS]pecs\.", path) for path in given.values)
    vertex_schema.canonical(given, vertex_schema.CUSTOM_JOB, SPEC)
    if mapping:
        given.report.findings("workerPoolSpecs", imports.pools_mapping(mapping))
    lacking: list[str] = []
    if "labels.accel-maker" not in given.values:
        written = [name for _, by in lines if by for name in by.written]
        lacking += vertex_templates.ask(given, variables, written, _LEFT_OUT)
    lacking += [name for _, pasted in lines if pasted for name in pasted.unknown]
    vertex_templates.ask_for_all(given.report, lacking)
    return given


def _named(command: gcloud.CommandLine, index: int, key: str) -> str:
    return f"{POOL}[{index}].{key}" if len(command.flags[POOL]) > 1 else f"{POOL}.{key}"


def _flags(
    given: RequestFields, command: gcloud.CommandLine, pasted: shell.PastedCommand | None, options: ImportOptions
) -> None:
    report = given.report
    for flag, values in command.flags.items():
        if flag != POOL and len(set(values)) > 1:
            report.note(flag, "is given several times; the last one wins")
    for flag, why in command.unknown.items():
        if flag == TIMEOUT:
            report.findings(flag, imports.timeout_flag(command.unknown_values.get(flag, ""), flag))
        else:
            report.refuse(flag, why)
    if POOL in command.flags:
        _pools(given, command, options)
    for flag, values in command.flags.items():
        if flag in PLAIN:
            _put(given, PLAIN[flag], flag, values[-1])
        elif flag in ("--enable-web-access", "--enable-dashboard-access"):
            first, *others = flag.removeprefix("--").split("-")
            _put(given, f"{SPEC}.{first}{''.join(each.capitalize() for each in others)}", flag, values[-1])
        elif flag == "--labels":
            for key, text in gcloud.pairs(values[-1]).items():
                _put(given, f"labels.{key}", flag, text)
        elif flag == "--region":
            report.keep(flag, "the region of the target")
        elif flag == "--config":
            report.keep(flag, why="is the file that was read")
        elif flag.startswith("--kms-"):
            report.decide(flag, NO_KEY, is_open=False)
        elif flag == "--flags-file":
            report.refuse(flag, gcloud.FLAGS_FILE)
        elif flag not in FLAGS:
            report.changed(flag, None, "is for gcloud itself; a target has its own project and account")
    _programs(given, command)
    if command.words:
        report.refuse(WORDS, "the command takes flags alone; a value with spaces wants quotes")
    if command.rest:
        report.refuse("args after --", "the command has no `--`; a program's arguments are --args=a,b")
    if pasted:
        _told(given, command, pasted)


def _told(given: RequestFields, command: gcloud.CommandLine, pasted: shell.PastedCommand) -> None:
    pasted.report_rest(given.report)
    for variable, written in pasted.unknown.items():
        plain = variable if re.fullmatch(r"\w+", variable) else ""
        for flag, values in command.flags.items():
            if flag in OF_TARGET or flag in gcloud.GLOBAL:
                continue
            held = [flag] if flag != POOL and written in values[-1] else []
            for index, value in enumerate(values if flag == POOL else ()):
                held += [_named(command, index, key) for key, text in gcloud.pairs(value).items() if written in text]
            for field in held:
                given.report.findings(field, imports.variable(written, plain, field))


def _pools(given: RequestFields, command: gcloud.CommandLine, options: ImportOptions) -> None:
    """Replace the file's pools with those of `--worker-pool-spec`, which are all pools of the job."""
    again = {
        _named(command, index, key) for index, value in enumerate(command.flags[POOL]) for key in gcloud.pairs(value)
    }
    for path in [path for path in given.values if path.startswith(f"{SPEC}.workerPoolSpecs")]:
        name = given.name(path)
        if name not in again:
            given.report.findings(name, imports.flag_wins(POOL, False, None, name))
        elif name.startswith(POOL):
            given.report.note(name, gcloud.AGAIN)
        del given.values[path]
    for index, value in enumerate(command.flags[POOL]):
        path = f"{SPEC}.workerPoolSpecs[{index}]"
        pool = gcloud.pairs(value)
        is_local = any(key in pool for key in ("local-package-path", "script"))
        for key in gcloud.twice(value):
            given.report.refuse(_named(command, index, key), "is set twice")
        for key, text in pool.items():
            name = _named(command, index, key)
            if key in POOL_KEYS or key in LOCAL_KEYS:
                if not text.strip():
                    given.report.refuse(name, "has no value")
                elif key in POOL_KEYS and not (is_local and key in PACKAGED_KEYS):
                    given.put(f"{path}.{POOL_KEYS[key]}", name, _enum(key, text))
            else:
                given.report.refuse(name, f"has {key}, and takes {', '.join(POOL_KEYS)}")
        if any(key in pool for key in LOCAL_KEYS):
            _local(given, command, index, pool, options)
        elif not any(given.has(f"{path}.{spec}") for spec in ("containerSpec", "pythonPackageSpec")):
            _as_built(given, path)


def _as_built(given: RequestFields, path: str) -> None:
    """Give a pool that names no program the image that gcloud builds for the first one, as gcloud does."""
    for each in ("imageUri", "command"):
        of_first = f"{SPEC}.workerPoolSpecs[0].containerSpec.{each}"
        if of_first in given.values and given.name(of_first) != f"{POOL}[0].container-image-uri":
            given.put(f"{path}.containerSpec.{each}", given.name(of_first), given.values[of_first])


def _local(
    given: RequestFields, command: gcloud.CommandLine, index: int, pool: Mapping[str, str], options: ImportOptions
) -> None:
    """Translate a pool whose image gcloud builds from a local folder: the folder goes with `submit --code` instead."""
    report, path = given.report, f"{SPEC}.workerPoolSpecs[{index}].containerSpec"
    folder = pool.get("local-package-path") or "."
    base, script, module = (pool.get(key) for key in ("executor-image-uri", "script", "python-module"))
    base_at, runs_at = _named(command, index, "executor-image-uri"), _named(command, index, "script")
    code = f"gcloud builds an image of it; `submit --code {folder}` sends the folder, and the command runs in it"
    for key in ("local-package-path", "script", "extra-dirs"):
        if key in pool:
            report.decide(_named(command, index, key), code, new=f"--code {folder}", is_open=False)
    if base:
        given.put(f"{path}.imageUri", base_at, base)
    elif options.image:
        given.put(f"{path}.imageUri", base_at, options.image)
    elif "container-image-uri" not in pool:
        report.decide(
            base_at,
            f"is missing: gcloud builds an image on it; choose one with --image, for `submit --code {folder}`",
        )
    if script:
        given.put(f"{path}.command", runs_at, ["bash" if script.endswith(".sh") else "python3", script])
    elif module:
        given.put(f"{path}.command", _named(command, index, "python-module"), ["python3", "-m", module])
    elif "--command" not in command.flags:
        report.decide(runs_at, f"is missing: which file of {folder} is run? name script or python-module")
    for key in ("requirements", "extra-packages"):
        for each in pool.get(key, "").split(";") if key in pool else ():
            report.findings(_named(command, index, key), imports.requirement(each.strip(), key))
        if key in pool:
            said = "are packages that gcloud installs when it builds an image; use one that has them, with --image"
            new = options.image or None
            report.decide(_named(command, index, key), said, new=new, is_open=not new)
    if "output-image-uri" in pool:
        report.changed(_named(command, index, "output-image-uri"), None, "no image is built")


def _enum(key: str, text: str) -> str:
    return gcloud.enum(text) if key == "accelerator-type" else text


def _programs(given: RequestFields, command: gcloud.CommandLine) -> None:
    """Set the values that flags give once for all pools: command, arguments, packages."""
    pools = given.items(f"{SPEC}.workerPoolSpecs")
    for flag, to, specs in (
        ("--args", "args", ("containerSpec", "pythonPackageSpec")),
        ("--command", "command", ("containerSpec",)),
        ("--python-package-uris", "packageUris", ("pythonPackageSpec",)),
    ):
        if flag not in command.flags:
            continue
        if gcloud.is_json(command.flags[flag][-1]):
            given.report.refuse(flag, "is a list in JSON, which gcloud would split at its commas; write a,b")
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
