"""Translation of a CustomJob of Vertex AI into a job, with its worker pools. Inverse of backends/vertex/render.py."""

import re
from dataclasses import dataclass, field
from datetime import date
from typing import cast

from accel.contract.variables import RESERVED_PREFIXES
from accel.rules.gcp.gpus import find_accelerator
from accel.rules.vertex import jobs, machines, scheduling, tpus
from accel.rules.vertex import pools as vertex_pools

from ..backends.vertex import nodes
from ..backends.vertex.pools import DISK_GB
from .fields import RequestFields, job_name
from .images import image_of
from .options import Capacity, ImportOptions
from .reading import Json

RESERVATION_KEY = "compute.googleapis.com/reservation-name"
UNSET = ("ACCELERATOR_TYPE_UNSPECIFIED", "STRATEGY_UNSPECIFIED", "TYPE_UNSPECIFIED")
"""Values of the API's choices that stand for none, as client libraries write them."""
NO_KEY = "is not the job file's, and a target has none: Google's keys encrypt the disks, the bucket's own its objects"


@dataclass
class Pool:
    """Worker pool in the terms of a job file."""

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
    """Return the pool at a path. `image`: the user's choice; `today`: the date for which images are checked."""
    machine, disk = f"{path}.machineSpec", f"{path}.diskSpec"
    replicas = given.whole(f"{path}.replicaCount")
    given.keep(f"{path}.replicaCount")
    if replicas == 0:
        given.left_out(path, "there are no replicas")
        return Pool(replicas=0)
    pool = Pool(
        replicas=1 if replicas is None else replicas,
        machine=given.text(f"{machine}.machineType"),
        topology=given.text(f"{machine}.tpuTopology"),
        disk_gib=given.whole(f"{disk}.bootDiskSizeGb", 1),
        disk_type=given.text(f"{disk}.bootDiskType"),
    )
    for each in (f"{machine}.machineType", f"{machine}.tpuTopology", f"{disk}.bootDiskSizeGb", f"{disk}.bootDiskType"):
        given.keep(each)
    if pool.machine is None:
        given.report.refuse(given.name(f"{machine}.machineType"), "is missing: a pool has a machine type")
    for each in (f"{machine}.gpuPartitionSize", f"{path}.lustreMounts"):
        _refused(given, each, NOT_CARRIED[each.rpartition(".")[2]])
    _accelerator(given, path, pool)
    _reservation(given, f"{machine}.reservationAffinity", pool)
    container, package = f"{path}.containerSpec", f"{path}.pythonPackageSpec"
    for each in (container, package):
        if given.has(each):
            _program(given, each, pool, image, today)
    if given.has(container) and given.has(package):
        given.report.refuse(path, "has both a container and a Python package")
    if not given.has(container) and not given.has(package):
        given.report.refuse(f"{path}.containerSpec", "is missing: a pool runs an image, or a pythonPackageSpec")
    for share in given.items(f"{path}.nfsMounts"):
        _share(given, share, pool)
    return pool


NOT_CARRIED = {
    "gpuPartitionSize": "is a part of a GPU, which a job file does not ask Vertex AI for; leave it out for a whole one",
    "lustreMounts": "is a Lustre file system, which no job file mounts; use a bucket (/gcs/<bucket>) or nfsMounts",
    "experiment": "is not set by accel; leave it out, and call aiplatform.init(experiment=...) in the program",
    "experimentRun": "is not set by accel; leave it out, and call aiplatform.start_run() in the program",
    "models": "is for jobs of Google's own containers; leave it out",
    "protectedArtifactLocationId": "is not set by accel; leave it out",
    "reservedIpRanges": "is neither the job file's nor the target's; leave it out for any range of the network",
    "pscInterfaceConfig.dnsPeeringConfigs": "is neither the job file's nor the target's; leave it out",
}


def _refused(given: RequestFields, path: str, why: str) -> None:
    for each in [each for each in given.values if each == path or each.startswith((f"{path}.", f"{path}["))]:
        if given.values[each] == "":
            given.report.keep(given.name(each), why="is empty")
        else:
            given.report.refuse(given.name(each), why)


def _share(given: RequestFields, path: str, pool: Pool) -> None:
    fields = {name: given.text(f"{path}.{name}") for name in ("server", "path", "mountPoint")}
    for name, value in fields.items():
        given.keep(f"{path}.{name}", "mounts")
        if not value:
            given.report.refuse(given.name(f"{path}.{name}"), "is missing: a share has a server, a path, a mountPoint")
    server, remote, at = (fields[name] or "" for name in fields)
    if not remote.startswith("/"):
        given.report.refuse(given.name(f"{path}.path"), "must begin with /")
    pool.mounts.append((f"nfs://{server}{remote}", f"{jobs.NFS_ROOT}{at.removeprefix(jobs.NFS_ROOT)}"))


def _accelerator(given: RequestFields, path: str, pool: Pool) -> None:
    machine = f"{path}.machineSpec"
    kind_path, count_path = f"{machine}.acceleratorType", f"{machine}.acceleratorCount"
    kind, count = given.text(kind_path), given.whole(count_path)
    if kind in UNSET or (kind is None and count == 0):
        given.keep(kind_path, why="means none")
        if count:
            given.report.refuse(given.name(count_path), "stands without acceleratorType")
        given.keep(count_path, why="means none")
        kind = count = None
    elif count == 0:
        given.report.refuse(given.name(count_path), "must be an integer from 1, is '0'")
    given.keep(kind_path, "accelerator.type")
    given.keep(count_path, "accelerator.count")
    is_tpu = (kind or "").upper().startswith("TPU") or (pool.machine or "").startswith(("cloud-tpu", "ct", "tpu"))
    if count and not kind and not is_tpu:
        given.report.refuse(given.name(count_path), "stands without acceleratorType")
        return
    if kind and count is None and not is_tpu and not given.report.fields.get(count_path):
        given.report.note(given.name(kind_path), "acceleratorCount is not given, and is 1")
    found = (
        tpus.spec(pool.machine or "", kind, count, pool.topology)
        if is_tpu
        else machines.pool(pool.machine, kind, count)
        if pool.machine
        else []
    )
    at = {"accelerator": kind_path, "accelerator_count": count_path, "topology": f"{machine}.tpuTopology"}
    for finding in found:
        given.report.findings(given.name(at.get(finding.field, f"{machine}.machineType")), [finding])
    if pool.topology and not is_tpu:
        given.report.refuse(given.name(f"{machine}.tpuTopology"), "is for TPUs, and the machine has none")
    disk = machines.disk(pool.machine or "", pool.disk_gib, pool.disk_type)
    for finding in disk:
        name = "bootDiskSizeGb" if finding.field == "disk_gib" else "bootDiskType"
        given.report.findings(given.name(f"{path}.diskSpec.{name}"), [finding])
    if kind:
        named = find_accelerator(kind)
        pool.accelerator = (named.name if named and not named.is_tpu else kind, count or 1)


def _reservation(given: RequestFields, path: str, pool: Pool) -> None:
    kind_path, values_path, key_path = (f"{path}.{name}" for name in ("reservationAffinityType", "values", "key"))
    kind, names = given.text(kind_path), given.texts(values_path)
    if kind == "SPECIFIC_RESERVATION" and len(names) == 1:
        pool.reservation = names[0]
        given.keep(values_path, "vertex.reservation")
        given.keep(kind_path, "vertex.reservation")
        if given.text(key_path) not in (None, RESERVATION_KEY):
            given.report.refuse(given.name(key_path), f"must be {RESERVATION_KEY}")
        given.keep(key_path)
    elif kind in ("NO_RESERVATION", "ANY_RESERVATION", *UNSET):
        given.left_out(kind_path, "is the target's: a job file names one reservation, or the target's stands")
        for each, is_given in ((values_path, given.has(values_path)), (key_path, given.text(key_path))):
            if is_given:
                given.report.refuse(given.name(each), f"goes with SPECIFIC_RESERVATION, and the type is {kind}")
    elif given.has(path):
        given.report.refuse(given.name(kind_path), "must name one SPECIFIC_RESERVATION")
        for each in (values_path, key_path):
            given.keep(each)


def _program(given: RequestFields, path: str, pool: Pool, image: str | None, today: date | None) -> None:
    is_package = path.endswith("pythonPackageSpec")
    image_path = f"{path}.{'executorImageUri' if is_package else 'imageUri'}"
    own = given.text(image_path)
    if image and "reductionserver" not in (own or ""):
        given.report.changed(given.name(image_path), image, "was chosen with --image")
        pool.image = image
    elif own:
        pool.image = image_of(given, image_path, own, today=today, to="image")
        if given.report.stopped_by(given.name(image_path)) and "reductionserver" not in own:
            given.report.note(given.name(image_path), "--image names another")
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
        _variable(given, variable, pool, told)
    for finding in jobs.environment(pool.env):
        given.report.findings(given.name(f"{path}.env"), [finding])


_EXPANDED = re.compile(r"(?<!\$)(?:\$\$)*\$\([A-Za-z_]\w*\)")
"""Reference that Vertex AI replaces with a variable's value:
https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar"""


def _variable(given: RequestFields, path: str, pool: Pool, told: frozenset[str]) -> None:
    name, value = given.text(f"{path}.name"), given.values.get(f"{path}.value", "")
    if name and (name.startswith(RESERVED_PREFIXES) or name in told):
        given.left_out(path, "is set by the platform")
        return
    for each in ("name", "value"):
        given.keep(f"{path}.{each}", "env")
    value_name = given.name(f"{path}.value")
    if not name:
        given.report.refuse(given.name(f"{path}.name"), "is missing: a variable has a name")
    elif not isinstance(value, str):
        given.report.refuse(value_name, "must be text; put it in quotes")
    elif name in pool.env:
        given.report.refuse(given.name(f"{path}.name"), "is there twice; leave one of the two out")
    else:
        if _EXPANDED.search(value):
            said = "holds $(NAME), which Vertex AI fills in and a job file's env does not; read NAME in the program"
            given.report.refuse(value_name, said)
        pool.env[name] = value.replace("$$", "$")


def _command(given: RequestFields, path: str) -> list[str]:
    given.keep(path, "command")
    words = given.texts(path)
    for finding in jobs.command(words):
        given.report.findings(given.name(path), [finding])
        if finding.severity == "translate":
            words = cast("list[str]", finding.replacement)
    return words


def _told(given: RequestFields, path: str, pool: Pool) -> frozenset[str]:
    """Return the variables that tell a node of the others if backends/vertex wrote the pool, and unwrap its command."""
    if "labels.accel-maker" not in given.values:
        return frozenset()
    wrapper = nodes.command([], str(nodes.PORT))
    if pool.command[: len(wrapper)] == wrapper:
        pool.command = pool.command[len(wrapper) :]
        given.report.changed(given.name(f"{path}.command"), pool.command, "a job of nodes is told of the others anyway")
    return frozenset(nodes.environment("", 1, 1)) | frozenset(nodes.rank_variables(""))


SPEC = "jobSpec"
POOLS = ("", "workers", "parameter_servers", "evaluators")
REDUCERS = "reduction_servers"
"""Field of each pool in the job's block, by the pool's place; the third may be reduction servers."""

OF_TARGET = (f"{SPEC}.network", f"{SPEC}.serviceAccount", f"{SPEC}.pscInterfaceConfig.networkAttachment")
BY_SERVICE = ("name", "state", "createTime", "startTime", "endTime", "updateTime", "error", "webAccessUris",
              "satisfiesPzi", "satisfiesPzs")  # fmt: skip
KEY = "encryptionSpec.kmsKeyName"
STRATEGIES = {"spot": "SPOT", "flex-start": "FLEX_START"}
PLAIN = {"enableWebAccess": "web_access", "enableDashboardAccess": "dashboard_access"}
NAMED = {
    "tensorboard": "tensorboard",
    "persistentResourceId": "persistent_resource",
    "baseOutputDirectory.outputUriPrefix": "output",
}


def job_values(given: RequestFields, options: ImportOptions | None = None) -> Json:
    """Report what a job file cannot carry over. Without options, the end dates of prebuilt images are not checked."""
    image, today, capacity = (options.image, options.today, options.capacity) if options else (None, None, None)
    values: Json = {"name": job_name(given, "displayName")}
    block: Json = {}
    paths = given.items(f"{SPEC}.workerPoolSpecs")
    given.report.findings(f"{SPEC}.workerPoolSpecs", vertex_pools.most(len(paths)))
    pools = {int(path.rpartition("[")[2][:-1]): pool_of(given, path, image, today) for path in paths}
    if first := pools.get(0):
        given.report.findings(f"{SPEC}.workerPoolSpecs[0].replicaCount", vertex_pools.chief(first.replicas))
        _first(first, values, block)
        _others(given, pools, values, block)
    else:
        given.report.refuse(f"{SPEC}.workerPoolSpecs", "has no first pool")
    _scheduling(given, values, block, capacity)
    for name, to in PLAIN.items():
        if given.flag(f"{SPEC}.{name}"):
            block[to] = True
        given.keep(f"{SPEC}.{name}", f"vertex.{to}")
    for name, to in NAMED.items():
        if text := given.text(f"{SPEC}.{name}"):
            stands = to != "output" or given.report.findings(given.name(f"{SPEC}.{name}"), jobs.output(text))
            block |= {to: text} if stands else {}
        given.keep(f"{SPEC}.{name}", f"vertex.{to}")
    labels = given.mapping("labels")
    if own := {name: text for name, text in labels.items() if not name.startswith("accel-")}:
        values["labels"] = own
    for name in labels:
        given.keep(f"labels.{name}") if name in own else given.left_out(f"labels.{name}", "is the platform's own")
    for path in OF_TARGET:
        given.left_out(path, "is the target's")
    for name, why in NOT_CARRIED.items():
        _refused(given, f"{SPEC}.{name}", why)
    if given.text(KEY):
        given.report.decide(given.name(KEY), NO_KEY, is_open=False)
    for path in BY_SERVICE:
        given.left_out(path, "is set by the service")
    if block:
        values["vertex"] = block
    return values


def _first(pool: Pool, values: Json, block: Json) -> None:
    for name, value in (("image", pool.image), ("command", pool.command), ("env", pool.env)):
        if value:
            values[name] = value
    if pool.accelerator:
        values["accelerator"] = {"type": pool.accelerator[0], "count": pool.accelerator[1]}
    if own := _disk_gib(pool):
        values["disk_gib"] = own
    if pool.mounts:
        values["mounts"] = [{"source": source, "path": path} for source, path in pool.mounts]
    asked = {
        "machine_type": pool.machine,
        "topology": pool.topology,
        "args": pool.args,
        "package": pool.package,
        "disk_type": pool.disk_type,
        "reservation": pool.reservation,
    }
    block.update({name: value for name, value in asked.items() if value})


def _others(given: RequestFields, pools: dict[int, Pool], values: Json, block: Json) -> None:
    first = pools[0]
    for place, name in enumerate(POOLS[1:], 1):
        pool = pools.get(place)
        if pool is None or not pool.replicas:
            continue
        path = f"{SPEC}.workerPoolSpecs[{place}]"
        reducer = place == 2 and "reductionserver" in (pool.image or "")
        if reducer and first.env and not pool.env:
            why = "reduction servers get the first pool's variables, and do not read them"
            given.report.changed(f"{path}.containerSpec.env", sorted(first.env), why)
        elif pool.env != first.env:
            given.report.refuse(f"{path}.env", "differs from the first pool's, and a job file has one for all")
        if pool.mounts != first.mounts:
            given.report.refuse(f"{path}.nfsMounts", "differs from the first pool's, and a job file has one for all")
        _as_the_first(given, path, pool, first, reducer=reducer)
        own = _own(given, path, pool, first)
        if place == 1 and not own:
            values["nodes"] = 1 + pool.replicas
            continue
        block[REDUCERS if reducer else name] = {"replicas": pool.replicas, **own}


def _as_the_first(given: RequestFields, path: str, pool: Pool, first: Pool, *, reducer: bool) -> None:
    """Report what a pool cannot have of its own: another disk type, a smaller disk, another topology or reservation."""
    report, machine, disk = given.report, f"{path}.machineSpec", f"{path}.diskSpec"
    type_at, size_at = given.name(f"{disk}.bootDiskType"), given.name(f"{disk}.bootDiskSizeGb")
    if pool.disk_type != first.disk_type:
        if pool.disk_type is None:
            report.changed(type_at, first.disk_type, "is not given, and a job file has one for all pools")
        else:
            report.refuse(type_at, "differs from the first pool's, and a job file has one for all")
    if not reducer and _disk_gib(first) and not _disk_gib(pool):
        report.changed(size_at, first.disk_gib, "a pool has the first's disk, unless its own has more than 100 GB")
    alike = (pool.machine, pool.accelerator) == (first.machine, first.accelerator)
    if pool.topology and (pool.topology != first.topology or not alike):
        report.refuse(given.name(f"{machine}.tpuTopology"), "differs from the first pool's, and a job file has one")
    expected = first.reservation if alike else None
    if pool.reservation != expected:
        at = f"{machine}.reservationAffinity.values"
        if pool.reservation:
            said = "is not the first pool's; a job file names one, for all pools of the first's machine"
        else:
            said = f"is missing, and pools of the same machine have the first's ({expected}); write it here too"
        report.refuse(given.name(at), said)


def _disk_gib(pool: Pool) -> int | None:
    """Return the disk size that a job file asks for, which comes on top of the space for the image, or None."""
    return pool.disk_gib - DISK_GB if pool.disk_gib and pool.disk_gib > DISK_GB else None


def _own(given: RequestFields, path: str, pool: Pool, first: Pool) -> Json:
    """Return what differs from the first pool's; machine and GPUs go together, and so do all parts of the program."""
    own: Json = {}
    if (pool.machine, pool.accelerator) != (first.machine, first.accelerator):
        own["machine_type"] = pool.machine
        if pool.accelerator:
            own["accelerator"] = {"type": pool.accelerator[0], "count": pool.accelerator[1]}
    if pool.image != first.image:
        own["image"] = pool.image
    if (pool.command, pool.args, pool.package) != (first.command, first.args, first.package):
        runs = {"command": pool.command, "args": pool.args, "package": pool.package}
        own |= {name: value for name, value in runs.items() if value}
        if not any(runs.values()) and "reductionserver" not in (pool.image or ""):
            given.report.refuse(f"{path}.containerSpec", "has no command and no args, and a pool then has the first's")
    if _disk_gib(pool) and _disk_gib(pool) != _disk_gib(first):
        own["disk_gib"] = _disk_gib(pool)
    return {name: value for name, value in own.items() if value}


def _scheduling(given: RequestFields, values: Json, block: Json, capacity: Capacity | None) -> None:
    base = f"{SPEC}.scheduling"
    if seconds := given.seconds(f"{base}.timeout"):
        values["timeout_s"] = seconds
    once = given.flag(f"{base}.disableRetries")
    _restart(given, values, block, once=bool(once))
    if once:
        values |= {"retries": 0, "lost_retries": 0}
    for each in ("timeout", "maxWaitDuration", "disableRetries", "restartJobOnWorkerRestart", "strategy"):
        given.keep(f"{base}.{each}")
    strategy = given.text(f"{base}.strategy")
    name = given.name(f"{base}.strategy")
    if strategy in UNSET:
        strategy = None
    for finding in scheduling.strategy(strategy) if strategy else ():
        given.report.findings(name, [finding])
        strategy = str(finding.replacement)
    machine = given.text(f"{SPEC}.workerPoolSpecs[0].machineSpec.machineType")
    if machine and not block.get("reservation"):
        at = name if strategy else given.name(f"{SPEC}.workerPoolSpecs[0].machineSpec.machineType")
        found = machines.had(machine, strategy, None)
        if found and capacity:
            strategy = STRATEGIES[capacity]
            given.report.changed(name, strategy, f"was chosen with --capacity: {found[0].text}", found[0].rule)
            found = machines.had(machine, strategy, None)
        if not given.report.findings(at, found):
            given.report.note(at, "--capacity says which")
    _wait(given, block, flex_start=strategy == "FLEX_START")
    if strategy == "FLEX_START":
        block["provisioning"] = "flex-start"
    elif strategy in ("SPOT", "STANDARD"):
        values["spot"] = strategy == "SPOT"


def _restart(given: RequestFields, values: Json, block: Json, *, once: bool) -> None:
    """Translate whether all machines start again if one is lost. `once` means that nothing does."""
    path = f"{SPEC}.scheduling.restartJobOnWorkerRestart"
    restart, several = given.flag(path), values.get("nodes") or any(block.get(name) for name in (*POOLS[1:], REDUCERS))
    if restart and once:
        given.left_out(path, "is turned off by disableRetries")
    elif restart is not None:
        block["restart"] = restart
    elif several and not once and "labels.accel-maker" in given.values:
        block["restart"] = False  # of what backends/vertex wrote, a field that is not there is a false one
    elif several and not once:
        why = "all machines of a job start again if one is lost; vertex.restart: false keeps the others"
        given.report.changed(given.name(path), True, why)


def _wait(given: RequestFields, block: Json, *, flex_start: bool) -> None:
    """Translate the longest wait for machines, which flex-start alone has."""
    path = f"{SPEC}.scheduling.maxWaitDuration"
    if not flex_start:
        given.left_out(path, "is for flex-start; other jobs wait for as long as it takes")
    elif given.values.get(path) in ("0", "0s"):
        why = "is a wait without an end, which a job file does not say; write the longest, such as 604800s"
        given.report.refuse(given.name(path), why)
    elif (wait := given.seconds(path)) is not None:
        block["wait_s"] = wait
