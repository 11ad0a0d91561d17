"""One worker pool of a CustomJob in the terms of a job file."""

from dataclasses import dataclass, field
from datetime import date
from typing import cast

from accel.contract.variables import RESERVED_PREFIXES
from accel.rules.gcp.gpus import find_accelerator
from accel.rules.vertex import jobs, machines

from ..backends.vertex import nodes
from .fields import RequestFields
from .images import image_of
from .reading import Json

RESERVATION_KEY = "compute.googleapis.com/reservation-name"


@dataclass
class Pool:
    """One worker pool, in the terms of a job file."""

    replicas: int = 1
    machine: str | None = None
    accelerator: tuple[str, int] | None = None
    topology: str | None = None
    reservation: str | None = None
    image: str | None = None
    command: list[str] = field(default_factory=list[str])
    args: list[str] = field(default_factory=list[str])
    package: Json | None = None
    disk_gib: int | None = None
    disk_type: str | None = None
    env: dict[str, str] = field(default_factory=dict[str, str])
    mounts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def pool_of(given: RequestFields, path: str, image: str | None, today: date | None) -> Pool:
    """The pool at a path. `image`: the one that the user chose."""
    machine = f"{path}.machineSpec"
    replicas = given.whole(f"{path}.replicaCount")
    pool = Pool(
        replicas=1 if replicas is None else replicas,
        machine=given.text(f"{machine}.machineType"),
        topology=given.text(f"{machine}.tpuTopology"),
        disk_gib=given.whole(f"{path}.diskSpec.bootDiskSizeGb", 1),
        disk_type=given.text(f"{path}.diskSpec.bootDiskType"),
    )
    for each in (f"{path}.replicaCount", f"{machine}.machineType", f"{machine}.tpuTopology", f"{path}.diskSpec"):
        given.keep(each)
    _accelerator(given, path, pool)
    _reservation(given, f"{machine}.reservationAffinity", pool)
    container, package = f"{path}.containerSpec", f"{path}.pythonPackageSpec"
    for each in (container, package):
        if given.has(each):
            _program(given, each, pool, image, today)
    if given.has(container) and given.has(package):
        given.report.refuse(path, "has both a container and a Python package")
    for share in given.items(f"{path}.nfsMounts"):
        server, remote = given.text(f"{share}.server"), given.text(f"{share}.path")
        at = given.text(f"{share}.mountPoint")
        given.keep(share, "mounts")
        pool.mounts.append((f"nfs://{server}{remote}", f"{jobs.NFS_ROOT}{at}"))
    return pool


def _accelerator(given: RequestFields, path: str, pool: Pool) -> None:
    machine = f"{path}.machineSpec"
    kind_path, count_path = f"{machine}.acceleratorType", f"{machine}.acceleratorCount"
    kind, count = given.text(kind_path), given.whole(count_path, 1)
    given.keep(kind_path, "accelerator.type")
    given.keep(count_path, "accelerator.count")
    is_tpu = (kind or "").upper().startswith("TPU") or (pool.machine or "").startswith(("cloud-tpu", "ct", "tpu"))
    if count and not kind and not is_tpu:
        given.report.refuse(given.name(count_path), "stands without acceleratorType")
        return
    found = (
        machines.tpu(pool.machine or "", kind, count, pool.topology)
        if is_tpu
        else machines.pool(pool.machine, kind, count)
        if pool.machine
        else []
    )
    at = {"accelerator": kind_path, "accelerator_count": count_path, "topology": f"{machine}.tpuTopology"}
    for finding in found:
        given.report.findings(given.name(at.get(finding.field, f"{machine}.machineType")), [finding])
    disk = machines.disk(pool.machine or "", pool.disk_gib, pool.disk_type)
    for finding in disk:
        name = "bootDiskSizeGb" if finding.field == "disk_gib" else "bootDiskType"
        given.report.findings(given.name(f"{path}.diskSpec.{name}"), [finding])
    if kind:
        named = find_accelerator(kind)
        pool.accelerator = (named.name if named and not named.is_tpu else kind, count or 1)


def _reservation(given: RequestFields, path: str, pool: Pool) -> None:
    kind = given.text(f"{path}.reservationAffinityType")
    names = given.texts(f"{path}.values")
    if kind == "SPECIFIC_RESERVATION" and len(names) == 1:
        pool.reservation = names[0]
        given.keep(path, "vertex.reservation")
        if given.text(f"{path}.key") not in (None, RESERVATION_KEY):
            given.report.refuse(given.name(f"{path}.key"), f"must be {RESERVATION_KEY}")
    elif kind in ("NO_RESERVATION", "ANY_RESERVATION"):
        given.left_out(path, "is the target's: a job file names one reservation, or the target's stands")
    elif given.has(path):
        given.report.refuse(given.name(f"{path}.reservationAffinityType"), "must name one SPECIFIC_RESERVATION")


def _program(given: RequestFields, path: str, pool: Pool, image: str | None, today: date | None) -> None:
    """A containerSpec or a pythonPackageSpec."""
    is_package = path.endswith("pythonPackageSpec")
    image_path = f"{path}.{'executorImageUri' if is_package else 'imageUri'}"
    own = given.text(image_path)
    if image and "reductionserver" not in (own or ""):
        given.report.changed(given.name(image_path), image, "was chosen with --image")
        pool.image = image
    elif own:
        pool.image = image_of(given, image_path, own, today=today, to="image")
    pool.args = given.texts(f"{path}.args")
    given.keep(f"{path}.args", "vertex.args")
    if is_package:
        pool.package = {"uris": given.texts(f"{path}.packageUris"), "module": given.text(f"{path}.pythonModule")}
        given.keep(f"{path}.packageUris", "vertex.package.uris")
        given.keep(f"{path}.pythonModule", "vertex.package.module")
        if not pool.package["uris"] or not pool.package["module"]:
            given.report.refuse(given.name(f"{path}.packageUris"), "a package has packageUris and a pythonModule")
    else:
        pool.command = _command(given, f"{path}.command")
        if pool.command:
            pool.command, pool.args = [*pool.command, *pool.args], []
    told = _told(given, path, pool)
    for variable in given.items(f"{path}.env"):
        name, value = given.text(f"{variable}.name"), given.values.get(f"{variable}.value", "")
        if name and (name.startswith(RESERVED_PREFIXES) or (told and name in told)):
            given.left_out(variable, "is set by the platform")
            continue
        given.keep(variable, "env")
        if not isinstance(value, str):
            given.report.refuse(given.name(f"{variable}.value"), "must be text; put it in quotes")
        elif name:
            pool.env[name] = value.replace("$$", "$")
    for finding in jobs.environment(pool.env):
        given.report.findings(given.name(f"{path}.env"), [finding])


def _command(given: RequestFields, path: str) -> list[str]:
    given.keep(path, "command")
    words = given.texts(path)
    for finding in jobs.command(words):
        given.report.findings(given.name(path), [finding])
        if finding.severity == "translate":
            words = cast("list[str]", finding.replacement)
    return words


def _told(given: RequestFields, path: str, pool: Pool) -> frozenset[str]:
    """The variables that tell a node of the others, where backends/vertex wrote the pool; its command is unwrapped."""
    if "labels.accel-maker" not in given.values:
        return frozenset()
    wrapper = nodes.command([], str(nodes.PORT))
    if pool.command[: len(wrapper)] == wrapper:
        pool.command = pool.command[len(wrapper) :]
        given.report.changed(given.name(f"{path}.command"), pool.command, "a job of nodes is told of the others anyway")
    return frozenset(nodes.environment("", 1, 1)) | frozenset(nodes.expanded(""))
