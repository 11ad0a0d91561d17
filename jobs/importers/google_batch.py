"""A Job of Google Batch's API (JSON, or YAML) as a job of ours. The opposite of backends/google_batch/render.py."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from accel.contract.variables import RESERVED_PREFIXES
from accel.rules.batch import jobs
from accel.rules.jobs import placeholders

from ..backends.google_batch import nodes, retries
from ..model.blocks_google import ExitCodes, GoogleBatch
from ..model.job import Job
from .fields import RequestFields
from .google_batch_steps import steps
from .google_batch_vms import vms
from .names import job_name
from .outcome import ImportResult
from .reading import Json, read

GROUP = "taskGroups[0]"
SPEC = f"{GROUP}.taskSpec"
BY_SERVICE = ("uid", "createTime", "updateTime", "status", f"{GROUP}.name")
OF_TARGET = ("notifications",)
FIELDS = (
    *("taskGroups", "taskSpec", "runnables", "container", "imageUri", "commands", "entrypoint", "options", "volumes"),
    *("script", "text", "path", "barrier", "computeResource", "cpuMilli", "memoryMib", "bootDiskMib", "maxRetryCount"),
    *("maxRunDuration", "lifecyclePolicies", "environment", "variables", "secretVariables", "taskCount", "parallelism"),
    *("taskCountPerNode", "requireHostsFile", "permissiveSsh", "schedulingPolicy", "allocationPolicy", "instances"),
    *("policy", "machineType", "accelerators", "type", "count", "installGpuDrivers", "provisioningModel", "location"),
    *("allowedLocations", "network", "serviceAccount", "labels", "logsPolicy", "destination", "priority"),
    *("gcs", "nfs", "remotePath", "server", "deviceName", "mountPath", "mountOptions", "bootDisk", "disks"),
)


@dataclass(frozen=True)
class Options:
    """What the user chose. `mounts`: what is to be mounted for a folder of the VM, by its path there."""

    image: str | None = None
    mounts: Mapping[str, str] = field(default_factory=dict[str, str])


def imported(name: str, data: bytes, options: Options) -> ImportResult:
    """The job of a document. Raises BadInput where it cannot be read."""
    given = RequestFields(read(name, data))
    report = given.report
    for path, value in list(given.values.items()):
        for text in cast(list[Any], value) if isinstance(value, list) else [value]:
            # The image is looked at where it is chosen: --image may replace it.
            if isinstance(text, str) and not path.endswith("imageUri"):
                report.findings(given.name(path), placeholders.value(path, text))
    path = "name" if given.has("name") else "displayName"
    if full := given.text("name"):
        given.values["name"] = full.rpartition("/")[2]
    elif not given.has(path):
        given.values[path] = name.rpartition("/")[2].partition(".")[0]
    values: Json = {"name": job_name(given, path)}
    block: Json = {}
    for list_ in ("taskGroups", "allocationPolicy.instances"):
        if count := len(given.items(list_)):
            report.findings(list_, jobs.one(count, list_))
        for path in given.values if count > 1 else ():
            if path.startswith(f"{list_}[") and not path.startswith(f"{list_}[0]"):
                report.refuse(given.name(path), "is of a second entry", jobs.GROUPS.id)
    several = steps(given, values, block, options.image, options.mounts)
    _group(given, values, block, several=several)
    _resources(given, values)
    _environment(given, values)
    region = vms(given, values, block)
    _retries(given, values, block)
    _job(given, values, block)
    report.close(FIELDS)
    if block:
        values["google_batch"] = block
    return ImportResult(report, {}, values, region)


def _group(given: RequestFields, values: Json, block: Json, *, several: bool) -> None:
    """How many tasks, and how they run. `several`: they are the nodes of one job."""
    count, at_once = given.whole(f"{GROUP}.taskCount", 1) or 1, given.whole(f"{GROUP}.parallelism", 1)
    for name in (
        "taskCount",
        "parallelism",
        "taskCountPerNode",
        "schedulingPolicy",
        "requireHostsFile",
        "permissiveSsh",
    ):
        given.keep(f"{GROUP}.{name}")
    in_order = given.text(f"{GROUP}.schedulingPolicy") == "IN_ORDER"
    for finding in jobs.tasks(count, at_once, in_order=in_order):
        at = "taskCount" if finding.field == "tasks" else "parallelism"
        given.report.findings(given.name(f"{GROUP}.{at}"), [finding])
    if several:
        values["nodes"] = count
    else:
        values |= {"tasks": count} if count > 1 else {}
        if at_once and at_once > count:
            given.report.changed(given.name(f"{GROUP}.parallelism"), None, f"is above the number of tasks, {count}")
        elif at_once and at_once < count:
            values["parallelism"] = at_once
        if per_vm := given.whole(f"{GROUP}.taskCountPerNode", 1):
            block["tasks_per_vm"] = per_vm
        if given.flag(f"{GROUP}.requireHostsFile"):
            block["hosts_file"] = True
    if in_order:
        block["in_order"] = True
    if given.flag(f"{GROUP}.permissiveSsh"):
        block["permissive_ssh"] = True


def _resources(given: RequestFields, values: Json) -> None:
    base = f"{SPEC}.computeResource"
    cpu, memory = given.whole(f"{base}.cpuMilli", 1), given.whole(f"{base}.memoryMib", 1)
    disk = given.whole(f"{base}.bootDiskMib", 1)
    given.keep(f"{base}.cpuMilli", "cpus")
    given.keep(f"{base}.memoryMib", "memory_mib")
    given.keep(f"{base}.bootDiskMib", "disk_gib")
    if cpu:
        values["cpus"] = -(-cpu // 1000)
        if cpu % 1000:
            given.report.changed(given.name(f"{base}.cpuMilli"), values["cpus"], "a job file has whole vCPUs")
    if memory:
        values["memory_mib"] = memory
    if disk:
        values["disk_gib"] = -(-disk // 1024)
        if disk % 1024:
            given.report.changed(given.name(f"{base}.bootDiskMib"), values["disk_gib"], "a job file has whole GiB")


def _environment(given: RequestFields, values: Json) -> None:
    ours = nodes.environment("", 1, 1) if values.get("nodes", 1) > 1 else {}
    env: dict[str, str] = {}
    for base in (f"{SPEC}.environments", f"{SPEC}.environment.variables"):
        for name, text in given.mapping(base).items():
            if name.startswith(RESERVED_PREFIXES) or name in ours:
                given.left_out(f"{base}.{name}", "is set by the platform")
            else:
                env[name] = text
                given.keep(f"{base}.{name}", "env")
    for finding in jobs.environment(env):
        path = f"{SPEC}.environment.variables.{finding.field.partition('.')[2]}"
        given.report.findings(given.name(path), [finding])
    if env:
        values["env"] = env
    if secrets := given.mapping(f"{SPEC}.environment.secretVariables"):
        values["secrets"] = secrets
    given.keep(f"{SPEC}.environment.secretVariables", "secrets")


def _retries(given: RequestFields, values: Json, block: Json) -> None:
    path = f"{SPEC}.maxRetryCount"
    count = given.whole(path)
    given.keep(path)
    given.report.findings(given.name(path), jobs.retries(count, None))
    policies = [
        (given.text(f"{each}.action"), [int(code) for code in given.texts(f"{each}.actionCondition.exitCodes")])
        for each in given.items(f"{SPEC}.lifecyclePolicies")
    ]
    given.keep(f"{SPEC}.lifecyclePolicies")
    if count is None and not policies:
        # What Batch does without a word of it: no attempt after the first.
        values |= {"retries": 0, "lost_retries": 0}
        return
    asked: Json = {"maxRetryCount": count or 0}
    if policies:
        asked["lifecyclePolicies"] = [
            {"action": action, "actionCondition": {"exitCodes": codes}} for action, codes in policies
        ]
    number = count or 0
    for own, lost in _candidates(number):
        like = Job(name="x", nodes=values.get("nodes", 1), retries=own, lost_retries=lost)
        if retries.of_job(like, GoogleBatch()) == asked:
            values |= {name: n for name, n in (("retries", own), ("lost_retries", lost)) if n is not None}
            return
    _by_codes(given, number, policies, values, block)


def _candidates(count: int) -> Iterable[tuple[int | None, int | None]]:
    yield from ((None, None), (None, count), (0, count), (count, None), (count, 0))


def _by_codes(
    given: RequestFields, count: int, policies: list[tuple[str | None, list[int]]], values: Json, block: Json
) -> None:
    """Retries that no two numbers say."""
    retried = {code for action, codes in policies if action == "RETRY_TASK" for code in codes}
    failed = {code for action, codes in policies if action == "FAIL_TASK" for code in codes}
    name = given.name(f"{SPEC}.lifecyclePolicies[0].actionCondition.exitCodes")
    given.report.findings(name, jobs.exit_codes(retried, failed, count))
    lost = set(jobs.LOST_VM)
    if retried and retried <= lost:
        values |= {"retries": 0, "lost_retries": count}
        given.report.changed(name, sorted(lost), "lost_retries: whatever the cloud takes away is tried again")
        return
    values["retries"] = count
    if (retried and not retried & lost) or lost <= failed:
        values["lost_retries"] = 0
    codes = [
        {"codes": sorted(those), "action": action}
        for those, action in ((retried - lost, "retry"), (failed - lost - {jobs.OUT_OF_TIME, 126, 127}, "fail"))
        if those
    ]
    if codes:
        block["exit_codes"] = codes
        for each in codes:
            ExitCodes.model_validate(each)


def _job(given: RequestFields, values: Json, block: Json) -> None:
    if seconds := given.seconds(f"{SPEC}.maxRunDuration"):
        values["timeout_s"] = seconds
        given.report.findings(given.name(f"{SPEC}.maxRunDuration"), jobs.run_time(seconds))
    given.keep(f"{SPEC}.maxRunDuration", "timeout_s")
    priority = given.whole("priority")
    if priority is not None:
        given.report.findings(given.name("priority"), jobs.priority(priority))
        block["priority"] = priority
    given.keep("priority", "google_batch.priority")
    labels = given.mapping("labels")
    if own := {name: text for name, text in labels.items() if not name.startswith("accel-")}:
        values["labels"] = own
    for name in labels:
        given.keep(f"labels.{name}") if name in own else given.left_out(f"labels.{name}", "is the platform's own")
    for path in OF_TARGET:
        given.left_out(path, "is the target's")
    for path in BY_SERVICE:
        given.left_out(path, "is set by the service")
