"""The worker pools of a job: its first machine, workers, parameter or reduction servers, evaluators.

Source: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/distributed-training
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from accel.catalog import vertex
from accel.contract.google_jobs import VertexTarget
from accel.diagnostics.collector import Diagnostics
from accel.rules.jobs import image_cuda
from accel.rules.vertex import jobs, pools
from accel.rules.vertex import machines as vertex_machines

from ...model.blocks_google import Pool, Vertex
from ...model.job import Job
from .containers import Program, checked
from .machines import VertexChoice, Wanted, choose

DISK_GB = 100
"""Of a boot disk that nobody asks for, which holds the image; a job's disk_gib come on top."""
OTHERS = ("workers", "parameter_servers", "reduction_servers", "evaluators")
PLACES = {"workers": 1, "parameter_servers": 2, "reduction_servers": 2, "evaluators": 3}


@dataclass(frozen=True)
class Planned:
    """A pool, ready to be written. `disk_type` is None where Vertex AI's own does."""

    replicas: int
    choice: VertexChoice
    program: Program
    disk_gb: int | None
    disk_type: str | None


def plan(job: Job, target: VertexTarget, today: date, diagnostics: Diagnostics) -> dict[int, Planned]:
    """The pools by their place, 0 to 3; none where the first has no machine."""
    block = job.vertex or Vertex()
    if job.image is None:
        diagnostics.error("image: is missing, and Vertex AI has none of its own")
    program = Program(job.image or "", job.command, block.args, block.package)
    first = choose(_wanted(job, block, None, ""), target, diagnostics)
    said, program = checked(program, "", today)
    diagnostics.add(said)
    if first is None:
        return {}
    found = {0: _planned(job, 1, first, program, job.disk_gib, "", diagnostics)}
    for name in OTHERS:
        pool: Pool | None = getattr(block, name)
        if pool is not None:
            added = _other(job, target, name, pool, first, program, today, diagnostics)
            if added:
                found[PLACES[name]] = added
    if job.nodes > 1 and block.workers:
        diagnostics.error(f"nodes: is {job.nodes}, beside vertex.workers; keep one of the two")
    elif job.nodes > 1 and not first.tpu:
        found[1] = _planned(job, job.nodes - 1, first, program, job.disk_gib, "", Diagnostics())
    if first.tpu:
        others = [f"vertex.{name}" for name in OTHERS if getattr(block, name)]
        diagnostics.add(pools.tpu(others, job.nodes, first.tpu.hosts))
    _reduction(block, found, diagnostics)
    return found


def _wanted(job: Job, block: Vertex, pool: Pool | None, field: str) -> Wanted:
    """What the first pool asks for (None), or another of its own."""
    names = names_of(field)
    if pool is None:
        return Wanted(block.machine_type, job.accelerator, block.topology, job.cpus, job.memory_mib, names)
    return Wanted(pool.machine_type, pool.accelerator, None, None, None, names)


def names_of(field: str) -> Mapping[str, str]:
    """The rules' names of fields, as the job file has them: those of the first pool, or of one below `field`."""
    block, own = (f"{field}.", f"{field}.") if field else ("vertex.", "")
    return {
        "machine_type": f"{block}machine_type",
        "accelerator": f"{own}accelerator.type",
        "accelerator_count": f"{own}accelerator.count",
        "topology": f"{block}topology",
        "disk_gib": f"{own}disk_gib",
        "disk_type": "vertex.disk_type",
    }


def _other(
    job: Job, target: VertexTarget, name: str, pool: Pool, first: VertexChoice, program: Program, today: date,
    diagnostics: Diagnostics,
) -> Planned | None:  # fmt: skip
    """A pool beside the first."""
    field = f"vertex.{name}"
    if name == "reduction_servers":
        return _reducers(job, target, pool, field, diagnostics)
    own = pool.machine_type is not None or pool.accelerator is not None
    choice = choose(_wanted(job, Vertex(), pool, field), target, diagnostics) if own else first
    runs = bool(pool.command or pool.args or pool.package)
    mine = Program(
        pool.image or program.image,
        pool.command if runs else program.command,
        pool.args if runs else program.args,
        pool.package if runs else program.package,
    )
    if runs or pool.image:
        said, mine = checked(mine, f"{field}.", today)
        diagnostics.add(said)
    if choice is None:
        return None
    return _planned(job, pool.replicas, choice, mine, pool.disk_gib or job.disk_gib, field, diagnostics)


def _reducers(job: Job, target: VertexTarget, pool: Pool, field: str, diagnostics: Diagnostics) -> Planned | None:
    """The machines that add gradients up: an image of Google's that needs no command."""
    if pool.command or pool.args or pool.package:
        diagnostics.error(f"{field}: has a command, args or a package, and its image brings its own")
    machine = pool.machine_type or vertex.REDUCTION_MACHINE
    image = pool.image or vertex.REDUCTION_SERVER.format(place=vertex.place(target.region))
    own = Wanted(machine, None, None, None, None, names_of(field))
    # The target's machine types are those for the work itself.
    choice = choose(own, target.model_copy(update={"machine_types": []}), diagnostics)
    if choice is None:
        return None
    return _planned(job, pool.replicas, choice, Program(image), pool.disk_gib, field, diagnostics)


def _planned(
    job: Job, replicas: int, choice: VertexChoice, program: Program, disk_gib: int | None, field: str,
    diagnostics: Diagnostics,
) -> Planned:  # fmt: skip
    asked = job.vertex.disk_type if job.vertex else None
    size = DISK_GB + disk_gib if disk_gib else None
    names = names_of(field)
    diagnostics.add(vertex_machines.disk(choice.machine, size, asked), names)
    diagnostics.add(jobs.visible_devices(job.env, choice.gpus) if not choice.tpu else [])
    if choice.gpu and not field:
        diagnostics.add(image_cuda.image(program.image, [choice.gpu]))
    return Planned(replicas, choice, program, size, asked or vertex_machines.disk_needed(choice.machine))


def _reduction(block: Vertex, found: Mapping[int, Planned], diagnostics: Diagnostics) -> None:
    servers = found.get(2)
    if block.reduction_servers is None or servers is None:
        return
    field = "vertex.reduction_servers"
    workers = [found[place] for place in (0, 1) if place in found]
    machines, gpus = sum(each.replicas for each in workers), min(each.choice.gpus for each in workers)
    has_gpus = bool(servers.choice.gpus or block.reduction_servers.accelerator)
    diagnostics.add(pools.reduction(machines, gpus, has_gpus, field))
    choice = workers[-1].choice
    said = pools.reduction_ratio(
        machines, choice.machine, choice.gpu, choice.gpus, servers.replicas, servers.choice.machine, f"{field}.replicas"
    )
    diagnostics.add(said if gpus else [])
