"""Worker pools of a job: its first machine, workers, parameter or reduction servers, evaluators. Source:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/distributed-training"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

from accel.catalog import vertex
from accel.contract.google_jobs import VertexTarget
from accel.diagnostics.collector import Diagnostics

from ...model.blocks_google import Pool, Vertex
from ...model.job import Job
from ..google_machines import Need
from . import capacity, machines
from .capacity import Capacity
from .containers import CheckedProgram, Program, check_program
from .machines import VertexChoice

DISK_GB = 100
"""Size of a boot disk if the job asks for none, which holds the image. A job's disk_gib are added to it."""
REDUCTION = "reduction_servers"
PLACES = {"workers": 1, "parameter_servers": 2, REDUCTION: 2, "evaluators": 3}
"""Places of the pools beside the first."""


@dataclass(frozen=True)
class Draft:
    """Job during rendering. The date decides whether an image is still available."""

    job: Job
    target: VertexTarget
    today: date

    @property
    def block(self) -> Vertex:
        return self.job.vertex or Vertex()

    @cached_property
    def programs(self) -> Mapping[str, CheckedProgram]:
        """Programs by their pool's place in the job file, empty for the first, which gives others missing values."""
        own = Program(self.job.image or "", self.job.command, self.block.args, self.block.package)
        first = check_program(own, "", self.today)
        others = {
            field: check_program(self._program(name, block, first.program), f"{field}.", self.today)
            for name, field, block in self.others()
        }
        return {"": first, **others}

    def _program(self, name: str, block: Pool, first: Program) -> Program:
        """Give reduction servers, which add gradients up, an image of Google's that needs no command."""
        if name == REDUCTION:
            return Program(block.image or vertex.REDUCTION_SERVER.format(place=vertex.place(self.target.region)))
        if runs(block):
            return Program(block.image or first.image, block.command, block.args, block.package)
        return replace(first, image=block.image or first.image)

    def others(self) -> Iterator[tuple[str, str, Pool]]:
        """Yield name, field and block of each pool beside the first."""
        for name in PLACES:
            pool: Pool | None = getattr(self.block, name)
            if pool is not None:
                yield name, f"vertex.{name}", pool


@dataclass(frozen=True)
class WorkerPool:
    """Pool with its machines. `field` is its place in the job file, empty for the first and for a pool that `nodes`
    creates; `disk_type` is None for Vertex AI's own."""

    field: str
    replicas: int
    choice: VertexChoice
    program: Program
    disk_gb: int | None
    disk_type: str | None


@dataclass(frozen=True)
class Plan:
    """Pools of a job by their place, 0 to 3, and the capacity for their machines."""

    pools: Mapping[int, WorkerPool]
    capacity: Capacity

    @property
    def first(self) -> WorkerPool:
        return self.pools[0]

    @property
    def choices(self) -> list[VertexChoice]:
        return [each.choice for each in self.pools.values()]


def plan(draft: Draft, diagnostics: Diagnostics) -> Plan | None:
    """Add what rules a machine out; return None if the first pool has no machine."""
    job, target = draft.job, draft.target
    first = _choose(draft, None, "", diagnostics)
    if first is None:
        return None
    pools = {0: _pool(draft, "", 1, first, job.disk_gib)}
    for name, field, block in draft.others():
        if pool := _other(draft, name, field, block, first, diagnostics):
            pools[PLACES[name]] = pool
    if job.nodes > 1 and not draft.block.workers and not first.tpu:
        pools[1] = replace(pools[0], replicas=job.nodes - 1)
    choices = [each.choice for each in pools.values()]
    disks = any(each.disk_gb for each in pools.values()) or bool(draft.block.disk_type)
    return Plan(pools, capacity.choose(job, target, choices, disks=disks))


def _choose(draft: Draft, block: Pool | None, field: str, diagnostics: Diagnostics) -> VertexChoice | None:
    """Return the machine of the first pool (None), or of a pool with its own machine."""
    job, types, topology = draft.job, draft.target.machine_types, None
    if block is None:
        machine, accelerator, topology = draft.block.machine_type, job.accelerator, draft.block.topology
    elif field == f"vertex.{REDUCTION}":
        # The target's machine types are those for the work itself.
        machine, accelerator, types = block.machine_type or vertex.REDUCTION_MACHINE, None, []
    else:
        machine, accelerator = block.machine_type, block.accelerator
    cpus, memory_mib = (job.cpus, job.memory_mib) if block is None else (None, None)
    need = Need(machine, accelerator, cpus, memory_mib, types)
    return machines.choose(need, topology, names_of(field), diagnostics)


def names_of(field: str) -> Mapping[str, str]:
    """Return the job file's names for the rules' fields: those of the first pool, or of one below `field`."""
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
    draft: Draft, name: str, field: str, block: Pool, first: VertexChoice, diagnostics: Diagnostics
) -> WorkerPool | None:
    reduces = name == REDUCTION
    own = reduces or block.machine_type is not None or block.accelerator is not None
    choice = _choose(draft, block, field, diagnostics) if own else first
    if choice is None:
        return None
    disk_gib = block.disk_gib if reduces else block.disk_gib or draft.job.disk_gib
    return _pool(draft, field, block.replicas, choice, disk_gib)


def runs(block: Pool) -> bool:
    return bool(block.command or block.args or block.package)


def _pool(draft: Draft, field: str, replicas: int, choice: VertexChoice, disk_gib: int | None) -> WorkerPool:
    disk_gb = DISK_GB + disk_gib if disk_gib else None
    disk_type = draft.block.disk_type or choice.boot_disk_type
    return WorkerPool(field, replicas, choice, draft.programs[field].program, disk_gb, disk_type)
