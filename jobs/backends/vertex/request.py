"""A job as a custom job of Vertex AI, with its capacity and its end. Pure. The body is {"parent": ..., "customJob":
CustomJob}. Source: https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs

Checks find what Vertex AI cannot honour of a job, or does in another way than the job says. Each reads the job and its
target, the later ones also the pools with their machines. The order of the checks is the order of the messages.
"""

from datetime import date
from typing import Any

from accel.contract import buckets
from accel.contract.google_jobs import VertexTarget
from accel.diagnostics.collector import Diagnostics
from accel.diagnostics.errors import BadInputs
from accel.rules.gcp import gpu_vm_jobs, vms
from accel.rules.gcp import labels as gcp_labels
from accel.rules.jobs import containers, image_cuda, launchers, placeholders
from accel.rules.vertex import jobs, machines, scheduling
from accel.rules.vertex import pools as pool_rules

from ...model import sweep_tasks
from ...model.job import Job, prefers, unused_blocks
from ..base import Request
from ..checks import run_checks
from . import capacity, labels, pools
from .containers import Node, task
from .labels import KIND, Scope
from .nodes import PORT
from .pools import REDUCTION, Draft, Plan


def render(
    job: Job, name: str, key: str, target_name: str, target: VertexTarget, *, today: date | None = None
) -> Request:
    """Raise BadInputs for every field that cannot be honoured. `today` decides whether an image is still available."""
    diagnostics = Diagnostics()
    draft = Draft(job, target, today or date.today())
    plan = pools.plan(draft, diagnostics)
    run_checks(_JOB_CHECKS, _PLANNED_CHECKS, draft, plan, diagnostics)
    if plan is None or diagnostics.errors:
        raise BadInputs(list(dict.fromkeys(diagnostics.errors)))
    custom_job = {
        "displayName": name,
        "labels": {**target.labels, **gcp_labels.to_gcp(job.labels)},
        "jobSpec": _spec(draft, plan, name),
    }
    body = {
        "parent": Scope(target.project, target.region).parent,
        "customJob": labels.add_labels(custom_job, job.name, key, target_name),
    }
    return Request(KIND, target_name, name, key, body, tuple(dict.fromkeys(diagnostics.warnings)))


def _spec(draft: Draft, plan: Plan, name: str) -> dict[str, Any]:
    block, target = draft.block, draft.target
    spec: dict[str, Any] = {
        # A place without a pool is empty: a pool's place defines its purpose.
        "workerPoolSpecs": [
            _pool(draft, plan, place, name) if place in plan.pools else {} for place in range(max(plan.pools) + 1)
        ],
        "scheduling": capacity.scheduling(draft.job, plan.capacity, several=1 in plan.pools),
        "serviceAccount": target.service_account,
        "baseOutputDirectory": {"outputUriPrefix": block.output or f"gs://{target.bucket}/{buckets.JOBS}/{name}"},
    }
    if plan.capacity.persistent:
        spec["persistentResourceId"] = plan.capacity.persistent
    if target.network_attachment:
        spec["pscInterfaceConfig"] = {"networkAttachment": target.network_attachment}
    elif target.network:
        spec["network"] = target.network
    if board := block.tensorboard or target.tensorboard:
        spec["tensorboard"] = board
    if block.web_access:
        spec["enableWebAccess"] = True
    if block.dashboard_access:
        spec["enableDashboardAccess"] = True
    return spec


def _pool(draft: Draft, plan: Plan, place: int, name: str) -> dict[str, Any]:
    job, pool = draft.job, plan.pools[place]
    machine = pool.choice.spec()
    if pool.choice == plan.first.choice:
        machine |= capacity.affinity(plan.capacity)  # other machines are not of the reservation
    spec: dict[str, Any] = {"machineSpec": machine, "replicaCount": str(pool.replicas)}
    disk = {"bootDiskType": pool.disk_type, "bootDiskSizeGb": pool.disk_gb}
    if disk := {field: value for field, value in disk.items() if value}:
        spec["diskSpec"] = disk
    if shares := _shares(job):
        spec["nfsMounts"] = shares
    node = None
    if place < 2 and 1 in plan.pools:
        count = plan.pools[0].replicas + plan.pools[1].replicas
        node = Node(count, pool.choice.gpus, job.env.get("MASTER_PORT", str(PORT)))
    return spec | task(pool.program, job, name, node)


def _shares(job: Job) -> list[dict[str, str]]:
    """Return the NfsMounts. Buckets are available without one."""
    shares: list[dict[str, str]] = []
    for mount in job.mounts:
        if mount.source.startswith("nfs://"):
            server, _, path = mount.source.removeprefix("nfs://").partition("/")
            folder = mount.path.removeprefix(jobs.NFS_ROOT).rstrip("/")
            shares.append({"server": server, "path": f"/{path}", "mountPoint": folder})
    return shares


OWN_VARIABLES = 17
"""Most variables that a container gets besides the job's."""
OWN_LABELS = 5
"""Labels of a job besides the target's and the job's own."""


def _unsupported(draft: Draft, diagnostics: Diagnostics) -> None:
    job = draft.job
    diagnostics.errors += [*prefers(job), *sweep_tasks.together(job)]
    diagnostics.warnings += unused_blocks(job, KIND)
    diagnostics.add(jobs.tasks(job.tasks) + jobs.shm(job.shm_mib))


def _environment(draft: Draft, diagnostics: Diagnostics) -> None:
    job = draft.job
    variables = {**job.env, **job.secrets}
    diagnostics.add(containers.environment(job.env))
    diagnostics.add(gpu_vm_jobs.environment(variables))
    diagnostics.add(jobs.environment(variables, own=OWN_VARIABLES))
    for name, text in job.env.items():
        diagnostics.add(placeholders.addresses(f"env.{name}", [text]))


def _secrets(draft: Draft, diagnostics: Diagnostics) -> None:
    for name in sorted(draft.job.secrets):
        diagnostics.add(jobs.secret(name, draft.target.project))


def _launcher(draft: Draft, diagnostics: Diagnostics) -> None:
    job = draft.job
    shape = launchers.Shape(job.nodes, job.accelerator.count if job.accelerator else None)
    diagnostics.add(launchers.check([*job.command, *draft.block.args], job.env, shape))


def _program(draft: Draft, diagnostics: Diagnostics) -> None:
    if draft.job.image is None:
        diagnostics.error("image: is missing, and Vertex AI has none of its own")
    diagnostics.add(draft.programs[""].findings)


def _outputs(draft: Draft, diagnostics: Diagnostics) -> None:
    job = draft.job
    shares = [mount.path for mount in job.mounts if mount.source.startswith("nfs://")]
    diagnostics.add(jobs.local_output([*job.command, *draft.block.args], job.env, shares))
    diagnostics.add(placeholders.addresses("vertex.output", [draft.block.output or ""]))


def _mounts(draft: Draft, diagnostics: Diagnostics) -> None:
    networked = bool(draft.target.network_attachment or draft.target.network)
    for i, mount in enumerate(draft.job.mounts):
        at = f"mounts[{i}]"
        diagnostics.add(jobs.mount(mount.source, mount.path, read_only=mount.read_only, networked=networked, at=at))


def _tensorboard(draft: Draft, diagnostics: Diagnostics) -> None:
    target = draft.target
    board = draft.block.tensorboard or target.tensorboard
    diagnostics.add(jobs.tensorboard(board, target.service_account, target.region, "vertex.tensorboard"))


def _labels(draft: Draft, diagnostics: Diagnostics) -> None:
    diagnostics.add(vms.own_keys(draft.job.labels, ()))
    diagnostics.add(gcp_labels.labels(draft.job.labels, own=OWN_LABELS + len(draft.target.labels)))


def _programs(draft: Draft, plan: Plan, diagnostics: Diagnostics) -> None:
    for name, field, block in draft.others():
        runs = pools.runs(block)
        if name == REDUCTION and runs:
            diagnostics.error(f"{field}: has a command, args or a package, and its image brings its own")
        elif name != REDUCTION and (runs or block.image):
            diagnostics.add(draft.programs[field].findings)


def _machines(draft: Draft, plan: Plan, diagnostics: Diagnostics) -> None:
    for pool in {each.field: each for each in plan.pools.values()}.values():
        choice, own = pool.choice, diagnostics.with_names(pools.names_of(pool.field))
        if not pool.field or choice is not plan.first.choice:
            own.add(machines.region(choice.key, draft.target.region, choice.places))
        own.add(machines.disk(choice.machine, pool.disk_gb, draft.block.disk_type))
        if not choice.tpu:
            diagnostics.add(jobs.visible_devices(draft.job.env, choice.gpus))
    first = plan.first
    if first.choice.gpu:
        diagnostics.add(image_cuda.image(first.program.image, [first.choice.gpu]))


def _nodes(draft: Draft, plan: Plan, diagnostics: Diagnostics) -> None:
    job, tpu = draft.job, plan.first.choice.tpu
    if job.nodes > 1 and draft.block.workers:
        diagnostics.error(f"nodes: is {job.nodes}, beside vertex.workers; keep one of the two")
    if tpu:
        diagnostics.add(pool_rules.tpu([field for _, field, _ in draft.others()], job.nodes, tpu.hosts))


def _reduction(draft: Draft, plan: Plan, diagnostics: Diagnostics) -> None:
    block, servers = draft.block.reduction_servers, plan.pools.get(2)
    if block is None or servers is None:
        return
    workers = [plan.pools[place] for place in (0, 1) if place in plan.pools]
    count, gpus = sum(each.replicas for each in workers), min(each.choice.gpus for each in workers)
    has_gpus = bool(servers.choice.gpus or block.accelerator)
    diagnostics.add(pool_rules.reduction(count, gpus, has_gpus, servers.field))
    choice, field = workers[-1].choice, f"{servers.field}.replicas"
    worker = choice.machine, choice.gpu, choice.gpus
    ratio = pool_rules.reduction_ratio(count, *worker, servers.replicas, servers.choice.machine, field)
    diagnostics.add(ratio if gpus else [])


def _capacity(draft: Draft, plan: Plan, diagnostics: Diagnostics) -> None:
    job, block, how = draft.job, draft.block, plan.capacity
    if how.flex and job.spot:
        diagnostics.add(scheduling.flex_with_spot("vertex.provisioning"))
    if how.flex:
        kinds = [(each.machine, each.gpu, each.gpus) for each in plan.choices]
        diagnostics.add(scheduling.flex_start(kinds, job.timeout_s, "vertex.provisioning"))
    diagnostics.add(scheduling.wait(block.wait_s, how.flex, "vertex.wait_s"))


def _reservation(draft: Draft, plan: Plan, diagnostics: Diagnostics) -> None:
    how = plan.capacity
    if how.reservation:
        field, persistent = "vertex.reservation", bool(how.persistent)
        diagnostics.add(scheduling.reservation(how.reservation, draft.target.region, field))
        diagnostics.add(scheduling.reservation_with(spot=how.spot, flex=how.flex, persistent=persistent, field=field))
    if how.persistent:
        field = "vertex.persistent_resource"
        diagnostics.add(scheduling.persistent(how.persistent, spot=how.spot, flex=how.flex, field=field))


def _availability(draft: Draft, plan: Plan, diagnostics: Diagnostics) -> None:
    how = plan.capacity
    for each in plan.choices:
        if each.tpu:
            diagnostics.add(scheduling.spot_tpu(each.tpu.name, each.tpu.hosts, how.spot))
        elif not how.persistent:
            diagnostics.add(machines.had(each.machine, how.strategy, how.reservation, "spot"))


def _retries(draft: Draft, plan: Plan, diagnostics: Diagnostics) -> None:
    job = draft.job
    diagnostics.add(scheduling.retries(job.retries, job.lost_retries))
    diagnostics.add(scheduling.restart(draft.block.restart, capacity.tries_once(job), "vertex.restart"))


_JOB_CHECKS = (_unsupported, _environment, _secrets, _launcher, _program, _outputs, _mounts, _tensorboard, _labels)

_PLANNED_CHECKS = (_programs, _machines, _nodes, _reduction, _capacity, _reservation, _availability, _retries)
"""Checks of a job whose first pool has a machine."""
