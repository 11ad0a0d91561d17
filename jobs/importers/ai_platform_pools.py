"""Worker pools of Vertex AI for an AI Platform Training job: the program and the machines of each role. Legacy machine
types and retired GPUs are replaced."""

from dataclasses import dataclass, field
from datetime import date

from accel.catalog.gpu_attachments import n1
from accel.catalog.legacy import legacy_machines
from accel.rules.gcp.gpus import find_accelerator
from accel.rules.jobs import imports, placeholders
from accel.rules.vertex import ai_platform
from accel.rules.vertex import ai_platform_programs as rules
from accel.rules.vertex import legacy as gcp_legacy
from accel.rules.vertex import machines as vertex_machines

from .ai_platform_fields import ROLES
from .fields import RequestFields
from .images import image_of
from .reading import Json

K80 = "nvidia-tesla-k80"


@dataclass
class Machines:
    """Pools by role, each a WorkerPoolSpec without its program. `accelerators` holds keys of the catalogue."""

    pools: dict[str, Json] = field(default_factory=dict[str, Json])
    accelerators: list[str] = field(default_factory=list[str])

    @property
    def count(self) -> int:
        return sum(int(pool["replicaCount"]) for pool in self.pools.values())


def machines(given: RequestFields, k80: str) -> Machines:
    """Return the worker pools of `trainingInput`. `k80` is the accelerator that replaces a K80."""
    found = Machines()
    tier = _tier(given)
    if tier is None:
        return found
    types = {
        given.name(f"trainingInput.{role}Type"): kind
        for role in ROLES
        if (kind := given.text(f"trainingInput.{role}Type"))
    }
    for finding in ai_platform.kinds(types):
        given.report.findings(next(iter(types)), [finding])
    for role in ROLES:
        _role(given, role, tier, k80, found)
    return found


def _tier(given: RequestFields) -> str | None:
    """Return the scale tier, or None if the machines cannot be determined."""
    path = "trainingInput.scaleTier"
    tier = given.text(path)
    if tier is None:
        if path in given.values:
            return None
        tier = "BASIC"
    if not given.report.findings(given.name(path), ai_platform.scale_tier(tier)):
        for role in ROLES:
            for what in ("Type", "Count"):
                given.keep(f"trainingInput.{role}{what}", why="goes with another scale tier")
        return None
    given.keep(path)
    return tier


def _role(given: RequestFields, role: str, tier: str, k80: str, found: Machines) -> None:
    base = f"trainingInput.{role}"
    type_path, count_path = f"{base}Type", f"{base}Count"
    kind, count = given.text(type_path), given.whole(count_path)
    for path in (type_path, count_path):
        if path in given.values and not given.report.findings(given.name(path), ai_platform.custom_only(tier, path)):
            return
    if role == "master":
        if not given.report.findings(given.name(type_path), ai_platform.master(tier, kind)):
            return
        kind, count = kind or ai_platform.TIERS[tier], 1
    elif not count:
        if given.has(type_path) or given.has(f"{base}Config"):
            for path in (type_path, f"{base}Config"):
                given.left_out(path, f"there are no replicas: {role}Count is 0 or missing")
        given.keep(count_path)
        return
    given.keep(count_path, "replicaCount")
    if not given.report.findings(given.name(type_path), ai_platform.role_type(count or 0, kind, type_path)) or not kind:
        return
    spec = _machine(given, role, kind, k80, found)
    if spec is None:
        return
    pool: Json = {"machineSpec": spec, "replicaCount": str(count)}
    if disk := _disk(given, f"{base}Config.diskConfig", spec):
        pool["diskSpec"] = disk
    found.pools[role] = pool


def _machine(given: RequestFields, role: str, kind: str, k80: str, found: Machines) -> Json | None:
    """Return the MachineSpec of a role, or None if it is refused or left for the user to decide."""
    base = f"trainingInput.{role}"
    name = given.name(f"{base}Type" if given.has(f"{base}Type") else "trainingInput.scaleTier")
    config = f"{base}Config.acceleratorConfig"
    asked, count = given.text(f"{config}.type"), given.whole(f"{config}.count", 1)
    given.keep(f"{base}Type", "machineSpec.machineType")
    if (asked is None) != (count is None):
        for path in (f"{config}.type", f"{config}.count"):
            given.report.refuse(given.name(path), "accelerators have a type and a count")
        return None
    if asked:
        stands = given.report.findings(given.name(f"{config}.type"), ai_platform.accelerators(kind, asked, "type"))
        if not stands:
            given.keep(f"{config}.count")
            return None
    if kind in legacy_machines():
        return _legacy(given, name, kind, k80, found)
    if "-" not in kind:  # no name of Compute Engine's
        for each in ("type", "count"):
            given.keep(f"{config}.{each}")
        given.report.findings(name, gcp_legacy.machine_type(kind))
        return None
    accelerator = find_accelerator(asked) if asked else None
    if asked and "k80" in asked.lower():
        given.keep(f"{config}.count")
        return _k80(given, given.name(f"{config}.type"), name, kind, int(count or 1), k80, found)
    accelerator_name = (accelerator.vertex_name or accelerator.name) if accelerator else asked
    stands = True
    for finding in vertex_machines.pool(kind, accelerator_name, count):
        at = {"accelerator": f"{config}.type", "accelerator_count": f"{config}.count"}.get(finding.field)
        stands = given.report.findings(given.name(at) if at else name, [finding]) and stands
    for each in ("type", "count"):
        given.keep(f"{config}.{each}", "machineSpec")
    return _spec(kind, accelerator_name, count, found) if stands else None


def _legacy(given: RequestFields, name: str, kind: str, k80: str, found: Machines) -> Json | None:
    legacy = legacy_machines()[kind]
    if not legacy.base_vcpus:
        given.report.findings(name, ai_platform.accelerators(kind, "TPU", "type"))
        return None
    if legacy.legacy_accelerator == K80 and (k80 != ai_platform.REPLACEMENTS[0] or not legacy.machine):
        # Of the size of its host, as the types with other GPUs are.
        host = legacy.machine or f"n1-standard-{legacy.base_vcpus}"
        return _k80(given, name, name, host, legacy.legacy_count, k80, found)
    for finding in gcp_legacy.machine_type(kind):
        given.report.findings(name, [finding])
    # What is said of the new machine, such as that its GPU is old.
    given.report.findings(name, vertex_machines.pool(legacy.machine, legacy.accelerator or None, legacy.count or None))
    if legacy.legacy_accelerator == K80:
        given.report.note(name, "--k80-replacement chooses another GPU", ai_platform.K80.id)
    return _spec(legacy.machine, legacy.accelerator or None, legacy.count or None, found)


def _k80(
    given: RequestFields, at: str, machine_at: str, machine: str, count: int, by: str, found: Machines
) -> Json | None:
    old = vertex_machines.n1_gpus(machine, K80, count) if n1(machine) else vertex_machines.pool(machine, by, count)
    if n1(machine) is None or not given.report.findings(at, old):
        if not old:
            given.report.refuse(at, f"is a K80, which {machine} never had")
        return None
    if not given.report.findings(at, ai_platform.k80(machine, count, by)):
        return None
    new = ai_platform.replacement(machine, count, by)
    assert new, machine
    if new[0] != machine or at == machine_at:
        given.report.changed(machine_at, new[0], f"{new[1]} {by} are on it", ai_platform.K80.id)
    return _spec(new[0], by, new[1], found)


def _spec(machine: str, accelerator: str | None, count: int | None, found: Machines) -> Json:
    spec: Json = {"machineType": machine}
    if accelerator and count:
        kind = find_accelerator(accelerator)
        assert kind, accelerator
        found.accelerators.append(kind.name)
        spec |= {"acceleratorType": kind.vertex_name, "acceleratorCount": count}
    return spec


def _disk(given: RequestFields, path: str, spec: Json) -> Json:
    size, kind = given.whole(f"{path}.bootDiskSizeGb", 1), given.text(f"{path}.bootDiskType")
    for each in ("bootDiskSizeGb", "bootDiskType"):
        given.keep(f"{path}.{each}", "diskSpec")
    for finding in vertex_machines.disk(str(spec["machineType"]), size, kind):
        at = "bootDiskSizeGb" if finding.field == "disk_gib" else "bootDiskType"
        given.report.findings(given.name(f"{path}.{at}"), [finding])
    return {name: value for name, value in (("bootDiskSizeGb", size), ("bootDiskType", kind)) if value is not None}


_INPUT = "trainingInput"


@dataclass
class Program:
    """Program of each role: the containerSpec or pythonPackageSpec of its pool."""

    specs: dict[str, Json] = field(default_factory=dict[str, Json])
    container: bool = False


def program(given: RequestFields, roles: list[str], image: str | None, *, gpu: bool, today: date, args: str) -> Program:
    """Return the program of each role. `image` is the user's choice; `args` is the path of the arguments."""
    report = given.report
    job_dir = given.text(f"{_INPUT}.jobDir")
    arguments = given.texts(args)
    given.keep(args, "args")
    if job_dir:
        given.keep(f"{_INPUT}.jobDir", "baseOutputDirectory and --job-dir")
        report.findings(given.name(f"{_INPUT}.jobDir"), rules.job_dir(job_dir))
        report.findings(given.name(f"{_INPUT}.jobDir"), placeholders.value("jobDir", job_dir))
        report.note(
            given.name(f"{_INPUT}.jobDir"), "AIP_MODEL_DIR, AIP_CHECKPOINT_DIR and AIP_TENSORBOARD_LOG_DIR are below it"
        )
        arguments = [*arguments, f"--job-dir={job_dir}"]
    path = f"{_INPUT}.masterConfig.imageUri"
    own = given.text(path)
    version, module = given.text(f"{_INPUT}.runtimeVersion"), given.text(f"{_INPUT}.pythonModule")
    packages = given.texts(f"{_INPUT}.packageUris")
    by = None if image else version  # where an image was chosen, a runtime version has no say
    for finding in rules.program(own or (image if not module else None), by, bool(packages), module):
        if image and not own and finding.rule == rules.PROGRAM.id and packages and module:
            continue
        if finding.field == "packageUris" and given.report.stopped_by("--package-path"):
            continue  # where the package is to be named
        report.findings(given.name(f"{_INPUT}.{finding.field}"), [finding])
        if finding.rule == rules.PROGRAM.id:
            why = "the command that names this file has it: import that, or give its flags after -- (--module-name)"
            report.note(given.name(f"{_INPUT}.{finding.field}"), why)
    if own or not module:
        return _containers(given, roles, path, image, arguments)
    executor = _executor(given, version, image, gpu=gpu, today=today)
    for uri in packages:
        report.findings(given.name(f"{_INPUT}.packageUris"), imports.requirement(uri, "packageUris"))
        if not uri.startswith("gs://"):
            found = rules.local_package(uri, "", given.name(f"{_INPUT}.packageUris"))
            report.findings(given.name(f"{_INPUT}.packageUris"), found)
    given.keep(f"{_INPUT}.packageUris", "pythonPackageSpec.packageUris")
    given.keep(f"{_INPUT}.pythonModule", "pythonPackageSpec.pythonModule")
    for role in roles:
        for each in ("containerCommand", "containerArgs"):
            at = f"{_INPUT}.{role}Config.{each}"
            if given.has(at):
                report.findings(given.name(at), rules.container_command(None, bool(arguments), each))
    _tpu_versions(given)
    spec: Json = {"executorImageUri": executor, "packageUris": packages, "pythonModule": module}
    if arguments:
        spec["args"] = arguments
    return Program({role: {"pythonPackageSpec": spec} for role in roles})


def _executor(given: RequestFields, version: str | None, image: str | None, *, gpu: bool, today: date) -> str:
    """Return the image that runs the packages, or an empty string if none is known."""
    at, python_at = f"{_INPUT}.runtimeVersion", f"{_INPUT}.pythonVersion"
    python = given.text(python_at)
    if image:
        given.left_out(python_at, "the image that was chosen has its own Python")
        if given.has(at):
            given.report.changed(given.name(at), image, "was chosen with --image")
        return image_of(given, "--image", image, today=today)
    given.keep(python_at)
    if version is None:
        return ""
    found = rules.runtime_version(version, today=today, gpu=gpu, region=given.text(f"{_INPUT}.region") or "")
    given.report.findings(given.name(at), found)
    if python:
        given.report.findings(given.name(python_at), rules.python_version(python, version))
    return str(found[0].replacement or "")


def _containers(given: RequestFields, roles: list[str], path: str, image: str | None, arguments: list[str]) -> Program:
    master = given.text(path)
    if image:
        if master:
            given.report.changed(given.name(path), image, "was chosen with --image")
        master = image
    elif master:
        master = image_of(given, path, master)
    found = Program(container=True)
    for role in roles:
        config = f"{_INPUT}.{role}Config"
        own_path = f"{config}.imageUri"
        own = given.text(own_path) if role != "master" else None
        if own and image:
            given.report.changed(given.name(own_path), image, "was chosen with --image")
            own = image
        elif own:
            own = image_of(given, own_path, own)
        spec: Json = {"imageUri": own or master or ""}
        for each, to in (("containerCommand", "command"), ("containerArgs", "args")):
            at = f"{config}.{each}"
            if not given.has(at):
                continue
            beside = given.has(f"{_INPUT}.args")
            given.report.findings(given.name(at), rules.container_command(own or master, beside, each))
            spec[to] = given.texts(at)
            given.keep(at, f"containerSpec.{to}")
        if arguments:
            spec["args"] = [*spec.get("args", []), *arguments]
        found.specs[role] = {"containerSpec": spec}
    for each in ("packageUris", "pythonModule", "runtimeVersion", "pythonVersion"):
        given.left_out(f"{_INPUT}.{each}", "the image has its own program")
    _tpu_versions(given)
    return found


def _tpu_versions(given: RequestFields) -> None:
    for role in ROLES:
        given.left_out(f"{_INPUT}.{role}Config.tpuTfVersion", "is for TPUs alone")
