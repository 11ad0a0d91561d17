"""Where a job of AI Platform Training is written: config.yaml, a pasted gcloud command, flags; the flags win."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accel.diagnostics.errors import BadInput
from accel.rules.jobs import imports
from accel.rules.vertex import ai_platform_programs

from . import gcloud, shell
from .ai_platform_fields import BARE, FLAGS, GENERAL, OF_GCLOUD, SETTINGS, TOP
from .fields import RequestFields
from .reading import Json, read

VERB = "jobs submit training"
_SERVICES = ("ai-platform", "ml-engine", "ml")
JOB, ARGS, REST, WORDS = "JOB", "args after --", "after the command", "words of the command"
"""Names, in the report, of what a command line has besides flags."""


def source(name: str, data: bytes, flags: Sequence[str], variables: Mapping[str, str]) -> RequestFields:
    """The fields of the job. Raises BadInput."""
    text = data.decode("utf-8-sig", errors="replace")
    lines: list[tuple[gcloud.CommandLine, shell.Pasted | None]] = []
    document: Json = {}
    if shell.is_command(text):
        pasted = shell.pasted(name, text, variables, VERB)
        command = gcloud.parsed(pasted.argv, FLAGS)
        _its_words(name, command)
        lines.append((command, pasted))
        if config := command.flags.get("--config"):
            document = _config(name, config[-1])
    elif text.strip():
        document = read(name, data)
    if flags:
        lines.append((gcloud.parsed(flags, FLAGS), None))
    given = _of(document, lines, text)
    for command, pasted in lines:
        _flags(given, command, pasted, name)
    return given


def _its_words(name: str, command: gcloud.CommandLine) -> None:
    """Leaves the job's name of the command's words."""
    words = [word for word in command.words if word not in ("gcloud", "alpha", "beta")]
    if words[:1] == [] or words[0] not in _SERVICES or words[1:4] != VERB.split():
        raise BadInput(f"{name}: is no command `gcloud ai-platform {VERB} JOB ...`")
    command.words = words[4:]


def _config(name: str, config: str) -> Json:
    """The file that a pasted command names, beside the command's own."""
    path = Path(name).parent / config if not name.startswith("stdin") else Path(config)
    try:
        return read(str(path), path.read_bytes())
    except OSError as error:
        raise BadInput(f"{name}: --config {config}: cannot be read: {error.strerror}") from None


def _of(document: Json, lines: list[tuple[gcloud.CommandLine, shell.Pasted | None]], text: str) -> RequestFields:
    """The document's fields; the report knows those of the command lines as well."""
    beside: dict[str, Any] = {}
    for command, pasted in lines:
        beside |= {flag: values[-1] for flag, values in command.flags.items()}
        beside |= dict.fromkeys(command.unknown, "")
        beside |= {JOB: command.words[0]} if command.words else {}
        beside |= {WORDS: command.words[1:]} if command.words[1:] else {}
        beside |= {ARGS: command.rest} if command.rest else {}
        beside |= {REST: pasted.rest} if pasted and pasted.rest else {}
    roles = shell.roles(text)
    beside |= {role: role for role in roles}
    given = RequestFields(document, beside=beside)
    for role in roles:
        given.report.findings(role, imports.role(role))
    whole = "trainingInput" in document
    for path in [path for path in given.values if re.split(r"[.\[]", path)[0] in TOP]:
        if whole:
            given.report.refuse(path, "stands beside trainingInput, and belongs below it")
        given.values[f"trainingInput.{path}"] = given.values.pop(path)
        given.names[f"trainingInput.{path}"] = given.names.pop(path)
    return given


def _flags(given: RequestFields, command: gcloud.CommandLine, pasted: shell.Pasted | None, name: str) -> None:
    """Puts what a command line says over what is there."""
    report = given.report
    for flag, why in command.unknown.items():
        report.refuse(flag, why)
    for flag, values in command.flags.items():
        if len(set(values)) > 1:
            report.note(flag, "is given several times; the last one wins")
        if flag in SETTINGS:
            _setting(given, flag, values[-1], name)
        elif flag in OF_GCLOUD:
            report.changed(flag, None, OF_GCLOUD[flag]) if OF_GCLOUD[flag] else None
        else:
            report.changed(flag, None, "is for gcloud itself; a target has its own project and account")
    if command.words:
        _put(given, "jobId", JOB, command.words[0])
    if command.words[1:]:
        report.refuse(WORDS, "must be one job's name; a value with spaces wants quotes, the program's arguments a --")
    _package(given, command)
    _key(given, command)
    if command.rest:
        _put(given, "trainingInput.args", ARGS, list(command.rest))
        for flag in gcloud.after(command.rest, FLAGS):
            report.findings(ARGS, imports.flag_after(flag, flag not in GENERAL, ARGS))
    if pasted:
        if pasted.rest:
            report.changed(REST, None, "is not the command's")
        for note in pasted.notes:
            report.note("the command", note)
        for fault in pasted.lost:
            report.refuse("the command", fault)
        for variable, written in pasted.unknown.items():
            plain = variable if re.fullmatch(r"\w+", variable) else ""
            for field in _holding(command, written):
                report.findings(field, imports.variable(written, plain, field))


def _holding(command: gcloud.CommandLine, written: str) -> list[str]:
    """The fields of a command line that hold a variable."""
    found = [flag for flag, values in command.flags.items() if written in values[-1]]
    found += [JOB] if command.words and written in command.words[0] else []
    found += [ARGS] if any(written in word for word in command.rest or []) else []
    return found


def _setting(given: RequestFields, flag: str, value: str, name: str) -> None:
    base = f"trainingInput.{SETTINGS[flag]}"
    if flag == "--config":
        given.report.keep(flag, why="is the file that was read")
    elif flag == "--labels":
        for key, text in gcloud.pairs(value).items():
            _put(given, f"labels.{key}", flag, text)
    elif flag.endswith("-accelerator"):
        asked = gcloud.pairs(value)
        for key in asked:
            if key not in ("count", "type"):
                given.report.refuse(flag, f"has {key}, and takes count and type")
        for key in ("count", "type"):
            if key in asked:
                _put(given, f"{base}.{key}", flag, gcloud.enum(asked[key]) if key == "type" else asked[key])
            else:
                given.report.refuse(flag, f"must have a {key}, such as count=1,type=nvidia-tesla-t4")
    elif flag == "--packages":
        _put(given, base, flag, gcloud.items(value))
    elif flag in BARE:
        _put(given, base, flag, True)
    else:
        _put(given, base, flag, gcloud.enum(value) if flag == "--scale-tier" else value)


def _put(given: RequestFields, path: str, flag: str, value: Any) -> None:
    """A flag's value over the document's, which is told."""
    below = [each for each in given.values if each == path or each.startswith(f"{path}.")]
    for each in below:
        name = given.name(each)
        if name == flag:
            continue
        same = given.values[each] == value
        given.report.keep(name, why=f"is the same as {flag}") if same else None
        given.report.findings(name, imports.flag_wins(flag, same, value, name))
        del given.values[each]
    given.put(path, flag, value)
    if isinstance(value, str) and not value:
        given.report.refuse(flag, "has no value")


def _package(given: RequestFields, command: gcloud.CommandLine) -> None:
    """`--package-path`: a folder that gcloud built and uploaded."""
    if "--package-path" not in command.flags:
        return
    folder = command.flags["--package-path"][-1]
    bucket = command.flags.get("--staging-bucket", [""])[-1] or given.values.get("trainingInput.jobDir") or ""
    package = re.sub(r"\W", "_", folder.rstrip("/").rpartition("/")[2])
    upload = ""
    if bucket and "$" not in f"{bucket}{folder}":
        whole = bucket if str(bucket).startswith("gs://") else f"gs://{bucket}"
        upload = f"{whole.rstrip('/')}/{given.values.get('jobId') or 'job'}/{package}-0.0.0.tar.gz"
    given.report.findings("--package-path", ai_platform_programs.local_package(folder, upload))
    if upload:
        path = "trainingInput.packageUris"
        given.put(path, given.names.get(path, "--package-path"), [upload, *given.texts(path)])


def _key(given: RequestFields, command: gcloud.CommandLine) -> None:
    """`--kms-key` with the flags that say where it is."""
    where = {
        name: command.flags[f"--kms-{name}"][-1]
        for name in ("keyring", "location", "project")
        if f"--kms-{name}" in command.flags
    }
    for name in where:
        given.report.keep(f"--kms-{name}", "encryptionSpec.kmsKeyName")
    key = given.values.get("trainingInput.encryptionConfig.kmsKeyName")
    if where and key and not str(key).startswith("projects/"):
        lacking = [name for name in ("keyring", "location", "project") if name not in where]
        for name in lacking:
            given.report.refuse("--kms-key", f"needs --kms-{name}, or the key's whole name projects/...")
        ring = f"projects/{where.get('project')}/locations/{where.get('location')}/keyRings/{where.get('keyring')}"
        given.values["trainingInput.encryptionConfig.kmsKeyName"] = f"{ring}/cryptoKeys/{key}"
