"""A job of AI Platform Training (config.yaml, gcloud's flags, or both) as a custom job of Vertex AI."""

from collections.abc import Mapping, Sequence

from accel.catalog import UnknownName
from accel.catalog.attached import attached
from accel.catalog.places import zones
from accel.rules.gcp import zones as gcp_zones
from accel.rules.jobs import placeholders
from accel.rules.vertex import ai_platform_programs as rules
from accel.rules.vertex import legacy

from .ai_platform_fields import KNOWN, OUTPUT_ONLY, ROLES
from .ai_platform_machines import machines
from .ai_platform_program import program
from .ai_platform_source import source
from .ai_platform_tuning import is_search, left_to_decide, tuning
from .fields import RequestFields
from .options import Options
from .outcome import ImportResult
from .reading import Json
from .report import Report
from .vertex_values import job_values


def imported(name: str, data: bytes, flags: Sequence[str], options: Options) -> ImportResult:
    """The job of a file (config.yaml, JSON, or a pasted gcloud command) and of flags, which win.

    Raises BadInput where it cannot be read.
    """
    given = source(name, data, flags, options.variables)
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
    spec: Json = {"workerPoolSpecs": [{**found.pools.get(role, {}), **ran.specs[role]} for role in roles]}
    _pools(spec, roles, found.pools, ran.specs)
    _settings(given, spec, found.count)
    _places(given, found.accelerators)
    body: Json = {"displayName": display, "jobSpec": spec}
    if labels := given.mapping("labels"):
        body["labels"] = labels
    given.keep("labels", "labels")
    if key := given.text("trainingInput.encryptionConfig.kmsKeyName"):
        body["encryptionSpec"] = {"kmsKeyName": key}
    given.keep("trainingInput.encryptionConfig.kmsKeyName", "encryptionSpec")
    for path in [path for path, value in given.values.items() if isinstance(value, str)]:
        report.findings(given.name(path), placeholders.value(path, str(given.values[path])))
    if options.form == "tuning":
        if not is_search(given):
            report.refuse("trainingInput.hyperparameters", "is missing, and -o tuning is about it")
        else:
            body |= {**tuning(given, container=ran.container), "trialJobSpec": body.pop("jobSpec")}
    elif is_search(given):
        left_to_decide(given)
    report.close(KNOWN)
    result = ImportResult(report, body, region=given.text("trainingInput.region") or "")
    if options.form == "job" and not report.stops:
        result.values = _job(body, given)
    return result


def _pools(spec: Json, roles: list[str], pools: Mapping[str, Json], programs: Mapping[str, Json]) -> None:
    """A pool's place says what it is, so that an empty one stands for a role that a job does not have."""
    last = max((ROLES.index(role) for role in roles), default=-1)
    spec["workerPoolSpecs"] = [{**pools[role], **programs[role]} if role in roles else {} for role in ROLES[: last + 1]]


def _settings(given: RequestFields, spec: Json, count: int) -> None:
    """What is of the whole job."""
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
    """The region, and whether one zone of it has all the accelerators."""
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
    """The zones of each kind of attached GPU; none where nothing is known."""
    found: dict[str, tuple[str, ...]] = {}
    for each in dict.fromkeys(accelerators):
        if each in attached():
            try:
                found[each] = zones("gcp", region, f"n1+{each}x1")
            except UnknownName:
                found[each] = ()
    return found


def _job(body: Json, given: RequestFields) -> Json:
    """The values of a job file. What the custom job says beyond it is of the target, or refused."""
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
