"""What a job of AI Platform Training ran: an image or Python packages, arguments, and where it wrote."""

from dataclasses import dataclass, field
from datetime import date

from accel.rules.jobs import imports, placeholders
from accel.rules.vertex import ai_platform_programs as rules

from .ai_platform_fields import ROLES
from .fields import RequestFields
from .images import image_of
from .reading import Json

_INPUT = "trainingInput"


@dataclass
class Program:
    """The program of each role: containerSpec or pythonPackageSpec of its pool."""

    specs: dict[str, Json] = field(default_factory=dict[str, Json])
    container: bool = False


def program(given: RequestFields, roles: list[str], image: str | None, *, gpu: bool, today: date, args: str) -> Program:
    """The program of each of the roles. `image`: the one that the user chose; `args`: the path of the arguments."""
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
    for finding in rules.program(own or (image if not module else None), version, bool(packages), module):
        if image and not own and finding.rule == rules.PROGRAM.id and packages and module:
            continue
        report.findings(given.name(f"{_INPUT}.{finding.field}"), [finding])
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
    spec: Json = {"executorImageUri": executor, "packageUris": packages, "pythonModule": module}
    if arguments:
        spec["args"] = arguments
    return Program({role: {"pythonPackageSpec": spec} for role in roles})


def _executor(given: RequestFields, version: str | None, image: str | None, *, gpu: bool, today: date) -> str:
    """The image that runs the packages."""
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
    """Each role's container: its own image, or the master's."""
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
    for role in ROLES:
        given.left_out(f"{_INPUT}.{role}Config.tpuTfVersion", "is for TPUs alone")
    return found
