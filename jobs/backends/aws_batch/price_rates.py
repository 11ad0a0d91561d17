"""Places on a queue where a job could run, and its number of attempts: the input of a cost estimate."""

from dataclasses import dataclass

from accel.catalog import Machine, resolve_machines
from accel.contract.targets import AwsBatchEnvironment, AwsBatchTarget
from accel.diagnostics.collector import Diagnostics
from accel.rules.aws.fit import Size, holding_of

from ...model.job import Job
from . import definition
from .retries import DEFAULT_ATTEMPTS


@dataclass(frozen=True)
class EnvironmentPlace:
    """Compute environment, in Batch's order of preference, and its instance types that hold one task."""

    environment: str
    capacity: str
    machines: tuple[Machine, ...]
    unknown: tuple[str, ...] = ()
    """Names in the environment that are not in the catalogue."""


@dataclass(frozen=True)
class Demand:
    """Size, attempts and timeout (seconds of one attempt, None: none) of a task. `assumed`: the attempts come from a
    definition of the stack, and the target, from an older stack, does not tell how many."""

    size: Size
    attempts: int
    timeout_s: int | None
    assumed: bool
    places: tuple[EnvironmentPlace, ...]


def demand(job: Job, target: AwsBatchTarget) -> Demand:
    """Raise BadInputs if the job fits no definition."""
    diagnostics = Diagnostics()
    choice = definition.choose(job, target, diagnostics)
    if choice is None:
        raise diagnostics.refusal()
    places = tuple(_place(each, choice.size) for each in target.environments)
    said = job.retries is not None or job.lost_retries is not None
    assumed = not said and choice.attempts is None
    attempts = (job.retries or 0) + (job.lost_retries or 0) + 1 if said else choice.attempts or DEFAULT_ATTEMPTS
    return Demand(choice.size, attempts, job.timeout_s or choice.timeout_s, assumed, places)


def _place(environment: AwsBatchEnvironment, size: Size) -> EnvironmentPlace:
    types = tuple(environment.instance_types) if environment.max_vcpus >= size.vcpus else ()
    held = holding_of(types, size)
    return EnvironmentPlace(environment.name, environment.capacity, held.fits or held.tight, resolve_machines(types)[1])
