"""Translation of an AI Platform Training job (config.yaml, a pasted gcloud command, or flags, which override the file)
into a Vertex AI custom job. A search over hyperparameters becomes a HyperparameterTuningJob."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from accel.catalog import UnknownName
from accel.catalog.gpu_attachments import gpu_attachments
from accel.catalog.places import zones
from accel.diagnostics.errors import BadInput
from accel.rules.gcp import zones as gcp_zones
from accel.rules.jobs import imports
from accel.rules.vertex import ai_platform_programs as rules
from accel.rules.vertex import legacy

from . import gcloud, shell, vertex_schema, vertex_templates
from .ai_platform_fields import BARE, FLAGS, GENERAL, KNOWN, OF_GCLOUD, OUTPUT_ONLY, ROLES, SETTINGS, UNNEEDED
from .ai_platform_pools import machines, program
from .fields import RequestFields
from .options import ImportOptions
from .outcome import ImportResult
from .reading import Json
from .redact import hide
from .report import Report
from .vertex_values import job_values


def import_job(name: str, data: bytes, options: ImportOptions) -> ImportResult:
    given, secrets = source(name, data, options)
    report = given.report
    for each in OUTPUT_ONLY:
        given.left_out(each, "is set by the service")
    display = given.text("jobId") or name.rpartition("/")[2].partition(".")[0]
    given.keep("jobId", "displayName")
    found = machines(given, options.k80)
    roles = [role for role in ROLES if role in found.pools]
    ran = program(
        given,
        roles or ["master"],
        options.image,
        gpu=bool(found.accelerators),
        today=options.today,
        args="trainingInput.args",
    )
    spec: Json = {"workerPoolSpecs": _pools(roles, found.pools, ran.specs)}
    _settings(given, spec, found.count)
    _places(given, found.accelerators)
    body: Json = {"displayName": display, "jobSpec": spec}
    if labels := given.mapping("labels"):
        body["labels"] = labels
    given.keep("labels", "labels")
    if key := given.text("trainingInput.encryptionConfig.kmsKeyName"):
        body["encryptionSpec"] = {"kmsKeyName": key}
    given.keep("trainingInput.encryptionConfig.kmsKeyName", "encryptionSpec")
    vertex_templates.samples(given)
    if options.form == "tuning":
        if not _is_search(given):
            report.refuse("trainingInput.hyperparameters", "is missing, and -o tuning is about it")
        else:
            body |= {**_tuning(given, container=ran.container), "trialJobSpec": body.pop("jobSpec")}
    elif _is_search(given):
        _leave_search(given)
    report.close(KNOWN)
    result = ImportResult(report, body, region=given.text("trainingInput.region") or "")
    if options.form == "job" and not report.stops:
        result.values = _job(body, given)
    hide(report, secrets)
    return result


def _pools(roles: list[str], pools: Mapping[str, Json], programs: Mapping[str, Json]) -> list[Json]:
    """Return pools in the order of roles, which their positions determine: an empty pool stands for a missing role."""
    last = max((ROLES.index(role) for role in roles), default=-1)
    return [{**pools[role], **programs[role]} if role in roles else {} for role in ROLES[: last + 1]]


def _settings(given: RequestFields, spec: Json, count: int) -> None:
    report = given.report
    base = "trainingInput"
    if job_dir := given.text(f"{base}.jobDir"):
        spec["baseOutputDirectory"] = {"outputUriPrefix": job_dir}
    for name, to in (("network", "network"), ("serviceAccount", "serviceAccount")):
        if value := given.text(f"{base}.{name}"):
            spec[to] = value
        given.keep(f"{base}.{name}", to)
    if given.flag(f"{base}.enableWebAccess"):
        spec["enableWebAccess"] = True
    given.keep(f"{base}.enableWebAccess", "enableWebAccess")
    schedule = f"{base}.scheduling"
    if seconds := given.seconds(f"{schedule}.maxRunningTime"):
        spec["scheduling"] = {"timeout": f"{seconds}s"}
    given.keep(f"{schedule}.maxRunningTime", "scheduling.timeout")
    if given.seconds(f"{schedule}.maxWaitTime"):
        report.findings(given.name(f"{schedule}.maxWaitTime"), rules.wait(False))
    priority = given.whole(f"{schedule}.priority")
    given.keep(f"{schedule}.priority")
    report.findings(given.name(f"{schedule}.priority"), rules.priority(priority or 0))
    chief = given.flag(f"{base}.useChiefInTfConfig")
    version = given.text(f"{base}.runtimeVersion")
    given.left_out(f"{base}.useChiefInTfConfig", "Vertex AI's TF_CONFIG knows chief alone")
    report.findings(given.name(f"{base}.useChiefInTfConfig"), rules.tf_config(version, chief, count))


def _places(given: RequestFields, accelerators: list[str]) -> None:
    """Read the region, and check that one of its zones has all the accelerators."""
    path = "trainingInput.region"
    region = given.text(path)
    given.keep(path, "the region of the target")
    if region is None:
        return
    name = given.name(path)
    if not given.report.findings(name, gcp_zones.region(region)) or not accelerators:
        return
    given.report.findings(name, legacy.region(region))
    given.report.findings(name, gcp_zones.common_zones(_zones(region, accelerators)))


def _zones(region: str, accelerators: list[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for each in dict.fromkeys(accelerators):
        if each in gpu_attachments():
            try:
                found[each] = zones("gcp", region, f"n1+{each}x1")
            except UnknownName:
                found[each] = ()
    return found


def _job(body: Json, given: RequestFields) -> Json:
    """Report fields of the custom job that a job file lacks: the target determines them, or they are refused."""
    inner = RequestFields(body)
    values = job_values(inner)
    targets = {"jobSpec.network": "network", "jobSpec.serviceAccount": "serviceAccount"}
    targets["encryptionSpec.kmsKeyName"] = "encryptionConfig.kmsKeyName"
    for entry in inner.report.entries:
        if entry.kind == "kept":
            continue
        at = targets.get(entry.field)
        name = given.name(f"trainingInput.{at}") if at else f"{entry.field} (of the custom job)"
        _copy(given.report, name, entry.kind, entry.new, entry.why, entry.rules)
    return values


def _copy(report: Report, name: str, kind: str, new: object, why: list[str], rule: list[str]) -> None:
    said, first = "; ".join(why), rule[0] if rule else ""
    if kind == "refused":
        report.refuse(name, said, first)
    else:
        report.changed(name, new, said, first)


VERB = "jobs submit training"
_SERVICES = ("ai-platform", "ml-engine", "ml")
JOB, ARGS, WORDS = "JOB", "args after --", "words of the command"
"""Names in the report for the parts of a command line other than flags."""


def source(name: str, data: bytes, options: ImportOptions) -> tuple[RequestFields, list[str]]:
    """Return the fields of the job, and its secret values. Raise BadInput for unreadable input or another command."""
    text, variables = data.decode("utf-8-sig", errors="replace"), options.variables
    written = gcloud.source(
        *(name, data, options.flags, variables, VERB, FLAGS, partial(_its_words, name)),
        UNNEEDED,
        lambda command: command.words if len(command.words) == 1 else [],
    )
    lines = written.lines
    vertex_templates.fill(written.document, variables)
    given = _of(written.document, lines, text, variables)
    gcloud.note_again(given.report, [command for command, _ in lines])
    for command, pasted in lines:
        _flags(given, command, pasted, name)
    for command, _ in lines:
        _package(given, command, lines[-1][0].flags if command is not lines[-1][0] else {})
    gcloud.tell_moment(given.report, JOB, given.text("jobId") or "", written.moment)
    return given, written.secrets


def _its_words(name: str, command: gcloud.CommandLine) -> None:
    """Strip the command's words down to the job's name. Raise BadInput if it is another command."""
    words = [word for word in command.words if word not in ("gcloud", "alpha", "beta")]
    if words[:1] == [] or words[0] not in _SERVICES or words[1:4] != VERB.split():
        raise BadInput(f"{name}: is no command `gcloud ai-platform {VERB} JOB ...`")
    command.words = words[4:]


def _of(
    document: Json,
    lines: gcloud.Lines,
    text: str,
    variables: Mapping[str, str],
) -> RequestFields:
    beside: dict[str, Any] = {}
    for command, pasted in lines:
        beside |= {flag: values[-1] for flag, values in command.flags.items()}
        beside |= dict.fromkeys(command.unknown, "")
        beside |= {JOB: command.words[0]} if command.words else {}
        beside |= {WORDS: command.words[1:]} if command.words[1:] else {}
        beside |= {ARGS: command.rest} if command.rest else {}
        beside |= {shell.REST: pasted.rest} if pasted and pasted.rest else {}
    roles = shell.roles(text)
    beside |= {role: role for role in roles}
    given = RequestFields(document, beside=beside)
    for role in roles:
        given.report.findings(role, imports.role(role))
    vertex_schema.canonical(given, vertex_schema.LEGACY_JOB, "trainingInput")
    lacking = vertex_templates.ask(given, variables, [name for _, by in lines if by for name in by.written])
    lacking += [name for _, pasted in lines if pasted for name in pasted.unknown]
    vertex_templates.ask_for_all(given.report, lacking)
    return given


def _flags(given: RequestFields, command: gcloud.CommandLine, pasted: shell.PastedCommand | None, name: str) -> None:
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
        elif flag == "--flags-file":
            report.refuse(flag, gcloud.FLAGS_FILE)
        else:
            report.changed(flag, None, "is for gcloud itself; a target has its own project and account")
    if command.words:
        _put(given, "jobId", JOB, command.words[0])
    if command.words[1:]:
        report.refuse(WORDS, "must be one job's name; a value with spaces wants quotes, the program's arguments a --")
    _key(given, command)
    if command.rest:
        _put(given, "trainingInput.args", ARGS, list(command.rest))
        for flag in gcloud.after(command.rest, FLAGS):
            own = flag not in GENERAL and flag not in command.flags  # else the program has one of that name too
            report.findings(ARGS, imports.flag_after(flag, own, ARGS))
    if pasted:
        pasted.report_rest(report)
        for variable, written in pasted.unknown.items():
            plain = variable if re.fullmatch(r"\w+", variable) else ""
            for field in _holding(command, written):
                report.findings(field, imports.variable(written, plain, field))


def _holding(command: gcloud.CommandLine, written: str) -> list[str]:
    left_out = (*UNNEEDED, *gcloud.GLOBAL)
    found = [flag for flag, values in command.flags.items() if written in values[-1] and flag not in left_out]
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
        for key in gcloud.twice(value):
            given.report.refuse(flag, f"has {key} twice")
        for key in asked:
            if key not in ("count", "type"):
                given.report.refuse(flag, f"has {key}, and takes count and type")
        for key in ("count", "type"):
            if asked.get(key, "").strip():
                _put(given, f"{base}.{key}", flag, gcloud.enum(asked[key]) if key == "type" else asked[key])
            else:
                given.report.refuse(flag, f"must have a {key}, such as count=1,type=nvidia-tesla-t4")
    elif flag == "--packages":
        _put(given, base, flag, gcloud.items(value))
    elif flag in BARE:
        _put(given, base, flag, value)
    else:
        _put(given, base, flag, gcloud.enum(value) if flag == "--scale-tier" else value)


def _put(given: RequestFields, path: str, flag: str, value: Any) -> None:
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


_HERE = re.compile(r"^(?:\$\{?PWD\}?|\$\(pwd\)|`pwd`)(?:/|$)")


def _package(given: RequestFields, command: gcloud.CommandLine, later: Mapping[str, Sequence[str]]) -> None:
    """Translate `--package-path`, a folder that gcloud built. `later` holds the flags given after the command."""
    if "--package-path" not in command.flags:
        return
    if later.get("--packages", [""])[-1]:
        given.report.changed("--package-path", None, "is named with --packages")
        return
    folder = _HERE.sub("", command.flags["--package-path"][-1]) or "."
    bucket = command.flags.get("--staging-bucket", [""])[-1] or given.values.get("trainingInput.jobDir") or ""
    package = re.sub(r"\W", "_", folder.rstrip("/").rpartition("/")[2])
    upload = ""
    if bucket and "$" not in f"{bucket}{folder}":
        whole = bucket if str(bucket).startswith("gs://") else f"gs://{bucket}"
        upload = f"{whole.rstrip('/')}/{given.values.get('jobId') or 'job'}/{package}-0.0.0.tar.gz"
    given.report.findings("--package-path", rules.local_package(folder, upload))
    if upload:
        path = "trainingInput.packageUris"
        given.put(path, given.names.get(path, "--package-path"), [upload, *given.texts(path)])


def _key(given: RequestFields, command: gcloud.CommandLine) -> None:
    """Complete the name of `--kms-key` with the flags that say where the key is."""
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


_HYPERPARAMETERS = "trainingInput.hyperparameters"
_METRIC = "training/hptuning/metric"
"""Tag that the service read if none was named. Source: discovery document ml.v1, hyperparameterMetricTag."""

_GOALS = ("MAXIMIZE", "MINIMIZE")
_ALGORITHMS = ("GRID_SEARCH", "RANDOM_SEARCH")
_SCALES = ("UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE")
_TYPES = ("DOUBLE", "INTEGER", "CATEGORICAL", "DISCRETE")


def _is_search(given: RequestFields) -> bool:
    return given.has(_HYPERPARAMETERS)


def _leave_search(given: RequestFields) -> None:
    """Leave the search for the user to decide, since a job file cannot express it."""
    count = len(given.items(f"{_HYPERPARAMETERS}.params"))
    for path in [path for path in given.values if path.startswith(f"{_HYPERPARAMETERS}.")]:
        given.report.findings(given.name(path), rules.tuning(count or 1))


def _tuning(given: RequestFields, *, container: bool) -> Json:
    """Return the fields of a HyperparameterTuningJob other than its trialJobSpec."""
    report = given.report
    metric: Json = {
        "metricId": given.text(f"{_HYPERPARAMETERS}.hyperparameterMetricTag") or _METRIC,
        "goal": _one_of(given, f"{_HYPERPARAMETERS}.goal", _GOALS) or "MAXIMIZE",
    }
    given.keep(f"{_HYPERPARAMETERS}.hyperparameterMetricTag", "studySpec.metrics[0].metricId")
    given.keep(f"{_HYPERPARAMETERS}.goal", "studySpec.metrics[0].goal")
    report.findings(given.name(f"{_HYPERPARAMETERS}.hyperparameterMetricTag"), rules.metric(container))
    study: Json = {
        "metrics": [metric],
        "parameters": [_parameter(given, path) for path in given.items(f"{_HYPERPARAMETERS}.params")],
    }
    if algorithm := _one_of(given, f"{_HYPERPARAMETERS}.algorithm", _ALGORITHMS, ("ALGORITHM_UNSPECIFIED",)):
        study["algorithm"] = algorithm
    given.keep(f"{_HYPERPARAMETERS}.algorithm", "studySpec.algorithm")
    stopping = f"{_HYPERPARAMETERS}.enableTrialEarlyStopping"
    if given.flag(stopping):
        study["medianAutomatedStoppingSpec"] = {}
    given.keep(stopping, "studySpec")
    report.findings(given.name(stopping), rules.early_stopping(given.flag(stopping) or False))
    resume = f"{_HYPERPARAMETERS}.resumePreviousJobId"
    if previous := given.text(resume):
        for finding in rules.resume(previous):
            report.decide(given.name(resume), finding.text, finding.rule, is_open=False)
    if not study["parameters"]:
        report.refuse(given.name(f"{_HYPERPARAMETERS}.params"), "is missing: a search has parameters")
    found: Json = {"studySpec": study}
    for name, to, default in (
        ("maxTrials", "maxTrialCount", 1),
        ("maxParallelTrials", "parallelTrialCount", 1),
        ("maxFailedTrials", "maxFailedTrialCount", None),
    ):
        value = given.whole(f"{_HYPERPARAMETERS}.{name}")
        given.keep(f"{_HYPERPARAMETERS}.{name}", to)
        if value is not None or default is not None:
            found[to] = value or default or 0
    if found["parallelTrialCount"] > found["maxTrialCount"]:
        report.refuse(given.name(f"{_HYPERPARAMETERS}.maxParallelTrials"), "is above maxTrials")
    return found


def _one_of(given: RequestFields, path: str, known: tuple[str, ...], unset: tuple[str, ...] = ()) -> str | None:
    value = given.text(path)
    if value is None or value in unset:
        return None
    if value not in known:
        given.report.refuse(given.name(path), f"must be one of {', '.join(known)}")
        return None
    return value


def _parameter(given: RequestFields, path: str) -> Json:
    """Return a ParameterSpec of a StudySpec. Source: discovery documents ml.v1 and aiplatform.v1."""
    name, kind = given.text(f"{path}.parameterName"), _one_of(given, f"{path}.type", _TYPES)
    spec: Json = {"parameterId": name}
    for lacking, there in (("parameterName", name), ("type", kind)):
        if there is None and f"{path}.{lacking}" not in given.values:
            given.report.refuse(given.name(f"{path}.{lacking}"), "is missing")
    given.keep(f"{path}.parameterName", "parameterId")
    given.keep(f"{path}.type", "studySpec.parameters")
    if scale := _one_of(given, f"{path}.scaleType", _SCALES, ("NONE", "SCALE_TYPE_UNSPECIFIED")):
        spec["scaleType"] = scale
    given.keep(f"{path}.scaleType", "scaleType")
    low, high = f"{path}.minValue", f"{path}.maxValue"
    if kind in ("DOUBLE", "INTEGER"):
        spec |= _parameter_range(given, low, high, kind)
    elif kind == "CATEGORICAL":
        spec["categoricalValueSpec"] = {"values": _categories(given, f"{path}.categoricalValues")}
    elif kind == "DISCRETE":
        spec["discreteValueSpec"] = {"values": _numbers(given, f"{path}.discreteValues")}
    for each in ("minValue", "maxValue", "categoricalValues", "discreteValues"):
        if f"{path}.{each}" in given.values and kind is not None:
            given.left_out(f"{path}.{each}", f"does not go with type {kind}") if not _fits(each, kind) else None
    return spec


def _fits(name: str, kind: str) -> bool:
    fits = {"CATEGORICAL": ("categoricalValues",), "DISCRETE": ("discreteValues",)}
    return name in fits.get(kind, ("minValue", "maxValue"))


def _parameter_range(given: RequestFields, low: str, high: str, kind: str) -> Json:
    ends = [given.number(low), given.number(high)]
    given.keep(low)
    given.keep(high)
    for path, value in zip((low, high), ends, strict=True):
        if value is None and path not in given.values:
            given.report.refuse(given.name(path), f"is missing, and the type is {kind}")
        elif value is not None and kind == "INTEGER" and value != int(value):
            given.report.refuse(given.name(path), "must be an integer, since the type is INTEGER")
    if None in ends:
        return {}
    first, last = float(ends[0] or 0), float(ends[1] or 0)
    if first > last:
        given.report.refuse(given.name(low), "is above maxValue")
    if kind == "INTEGER":
        return {"integerValueSpec": {"minValue": str(int(first)), "maxValue": str(int(last))}}
    return {"doubleValueSpec": {"minValue": first, "maxValue": last}}


def _categories(given: RequestFields, path: str) -> list[str]:
    found = given.texts(path)
    given.keep(path, "categoricalValueSpec.values")
    if not found and path not in given.values:
        given.report.refuse(given.name(path), "is missing, and the type is CATEGORICAL")
    return found


def _numbers(given: RequestFields, path: str) -> list[float]:
    found: list[float] = []
    given.keep(path, "discreteValueSpec.values")
    for text in given.texts(path):
        try:
            found.append(float(text))
        except ValueError:
            given.report.refuse(given.name(path), "must be numbers")
            return []
    if not found or sorted(set(found)) != found:
        given.report.refuse(given.name(path), "must be numbers, each above the one before")
    return found
