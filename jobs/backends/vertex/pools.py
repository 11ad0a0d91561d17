"""The worker pools of a job: its first machine, workers, parameter or reduction servers, evaluators.

Source: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/distributed-training
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from accel.catalog import vertex
from accel.contract.google_jobs import VertexTarget
from accel.rules.jobs import image_cuda
from accel.rules.vertex import jobs, pools
from accel.rules.vertex import machines as vertex_machines

from ...model.blocks_google import Pool, Vertex
from ...model.job import Job
from ..vm.agent_spec import tell
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


def plan(job: Job, target: VertexTarget, today: date, faults: list[str], warnings: list[str]) -> dict[int, Planned]:
    """The pools by their place, 0 to 3; none where the first has no machine."""
    block = job.vertex or Vertex()
    if job.image is None:
        faults.append("image: is missing, and Vertex AI has none of its own")
    program = Program(job.image or "", job.command, block.args, block.package)
    first = choose(_wanted(job, block, None, ""), target, faults, warnings)
    said, program = checked(program, "", today)
    tell(said, {}, faults, warnings)
    if first is None:
        return {}
    found = {0: _planned(job, 1, first, program, job.disk_gib, "", faults, warnings)}
    for name in OTHERS:
        pool: Pool | None = getattr(block, name)
        if pool is not None:
            added = _other(job, target, name, pool, first, program, today, faults, warnings)
            if added:
                found[PLACES[name]] = added
    if job.nodes > 1 and block.workers:
        faults.append(f"nodes: is {job.nodes}, beside vertex.workers; keep one of the two")
    elif job.nodes > 1 and not first.tpu:
        found[1] = _planned(job, job.nodes - 1, first, program, job.disk_gib, "", [], [])
    if first.tpu:
        others = [f"vertex.{name}" for name in OTHERS if getattr(block, name)]
        tell(pools.tpu(others, job.nodes, first.tpu.hosts), {}, faults, warnings)
    _reduction(block, found, faults, warnings)
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
    faults: list[str], warnings: list[str],
) -> Planned | None:  # fmt: skip
    """A pool beside the first."""
    field = f"vertex.{name}"
    if name == "reduction_servers":
        return _reducers(job, target, pool, field, faults, warnings)
    own = pool.machine_type is not None or pool.accelerator is not None
    choice = choose(_wanted(job, Vertex(), pool, field), target, faults, warnings) if own else first
    runs = bool(pool.command or pool.args or pool.package)
    mine = Program(
        pool.image or program.image,
        pool.command if runs else program.command,
        pool.args if runs else program.args,
        pool.package if runs else program.package,
    )
    if runs or pool.image:
        said, mine = checked(mine, f"{field}.", today)
        tell(said, {}, faults, warnings)
    if choice is None:
        return None
    return _planned(job, pool.replicas, choice, mine, pool.disk_gib or job.disk_gib, field, faults, warnings)


def _reducers(
    job: Job, target: VertexTarget, pool: Pool, field: str, faults: list[str], warnings: list[str]
) -> Planned | None:
    """The machines that add gradients up: an image of Google's that needs no command."""
    if pool.command or pool.args or pool.package:
        faults.append(f"{field}: has a command, args or a package, and its image brings its own")
    machine = pool.machine_type or vertex.REDUCTION_MACHINE
    image = pool.image or vertex.REDUCTION_SERVER.format(place=vertex.place(target.region))
    own = Wanted(machine, None, None, None, None, names_of(field))
    # The target's machine types are those for the work itself.
    choice = choose(own, target.model_copy(update={"machine_types": []}), faults, warnings)
    if choice is None:
        return None
    return _planned(job, pool.replicas, choice, Program(image), pool.disk_gib, field, faults, warnings)


def _planned(
    job: Job, replicas: int, choice: VertexChoice, program: Program, disk_gib: int | None, field: str,
    faults: list[str], warnings: list[str],
) -> Planned:  # fmt: skip
    asked = job.vertex.disk_type if job.vertex else None
    size = DISK_GB + disk_gib if disk_gib else None
    names = names_of(field)
    tell(vertex_machines.disk(choice.machine, size, asked), names, faults, warnings)
    tell(jobs.visible_devices(job.env, choice.gpus) if not choice.tpu else [], {}, faults, warnings)
    if choice.gpu and not field:
        tell(image_cuda.image(program.image, [choice.gpu]), {}, faults, warnings)
    return Planned(replicas, choice, program, size, asked or vertex_machines.disk_needed(choice.machine))


def _reduction(block: Vertex, found: Mapping[int, Planned], faults: list[str], warnings: list[str]) -> None:
    servers = found.get(2)
    if block.reduction_servers is None or servers is None:
        return
    field = "vertex.reduction_servers"
    workers = [found[place] for place in (0, 1) if place in found]
    machines, gpus = sum(each.replicas for each in workers), min(each.choice.gpus for each in workers)
    has_gpus = bool(servers.choice.gpus or block.reduction_servers.accelerator)
    tell(pools.reduction(machines, gpus, has_gpus, field), {}, faults, warnings)
    choice = workers[-1].choice
    said = pools.reduction_ratio(
        machines, choice.machine, choice.gpu, choice.gpus, servers.replicas, servers.choice.machine, f"{field}.replicas"
    )
    tell(said if gpus else [], {}, faults, warnings)
