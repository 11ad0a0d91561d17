"""Where a job can run now, and what AWS says where it can't."""

from . import policies
from .capacity import launch, refusal, register
from .environments import instance_kinds
from .health import unpermitted
from .instances import Instance, Kind
from .state import Batch, Document, Environment, Job, Queue

# https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html
TOO_BIG = (
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - The job resource requirement (vCPU/memory/GPU) is higher "
    "than that can be met by the CE(s) attached to the job queue."
)
OVER_MAX = (
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE - CE(s) associated with the job queue cannot meet the "
    "CPU requirement of the job."
)
UNPERMITTED = "MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS – Batch service role has a permission issue."
STOCKOUT = (
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Service cannot fulfill the capacity requested for instance type [{}]"
)
NO_ENVIRONMENT = "ACTION_REQUIRED - CE(s) associated with the job queue are {}."
UNDETERMINED = "UNDETERMINED - Batch job is blocked, root cause is undetermined."
WAIT = ""
# Where environments differ, the reason nearest to a place counts: each of AWS's is about all of them.
NEAREST = (WAIT, STOCKOUT[:8], UNDETERMINED, UNPERMITTED, OVER_MAX, TOO_BIG)


def place(batch: Batch, queue: Queue, job: Job) -> tuple[Environment, list[Instance]] | str:
    """An environment and an instance for the job, or for each of its nodes; else the statusReason, "" for none."""
    order = sorted(queue.document["computeEnvironmentOrder"], key=lambda entry: entry["order"])
    named = {row.document["computeEnvironmentArn"]: row for row in batch.environments.values()}
    attached = [named[entry["computeEnvironment"]] for entry in order]
    usable = [environment for environment in attached if environment.usable]
    if not usable:
        # No page says which of two reasons counts where an environment is disabled and too small besides. The one on
        # which a time limit can act is the one to be prepared for.
        if all(_over_max(environment, job) for environment in attached):
            return OVER_MAX
        disabled = all(environment.document["state"] == "DISABLED" for environment in attached)
        return NO_ENVIRONMENT.format("disabled" if disabled else "invalid")
    reasons: list[str] = []
    for environment in usable:
        found = _within(batch, queue, job, environment)
        if not isinstance(found, str):
            return environment, found
        reasons.append(found)
        # job_stuck_in_runnable_capacity.html: a multi-node job does not go on to the next environment.
        if job.nodes and found.startswith(STOCKOUT[:8]):
            break
    return min(reasons, key=lambda reason: next(at for at, start in enumerate(NEAREST) if _is(reason, start)))


def _is(reason: str, start: str) -> bool:
    return reason.startswith(start) if start else not reason


def _within(batch: Batch, queue: Queue, job: Job, environment: Environment) -> list[Instance] | str:
    """The instances of one environment, launched where none has room; or the reason."""
    resources = environment.document["computeResources"]
    # Not supported, yet taken: https://github.com/aws/aws-parallelcluster/issues/2098
    if job.nodes and resources["type"] == "SPOT":
        return UNDETERMINED
    choices = _choices(resources, job)
    if not all(choices):
        return TOO_BIG
    if _over_max(environment, job):
        return OVER_MAX
    room = policies.limit(batch, queue, resources["maxvCpus"]) - environment.vcpus
    register(batch, environment)
    there = list(environment.instances.values())
    if not job.nodes and (fitting := [each for each in there if each.arn and each.has_room(job.needs)]):
        return fitting[:1]
    if not all(each.arn for each in there):
        return WAIT
    if unpermitted(batch, environment):
        return UNPERMITTED
    short_of, full = WAIT, False
    for at in range(max(map(len, choices))):
        kinds = [found[min(at, len(found) - 1)] for found in choices]
        vcpus = sum(kind.vcpus for kind in kinds)
        if vcpus > resources["maxvCpus"]:
            continue
        if vcpus > room:
            full = True
        elif text := refusal(batch, environment, kinds):
            short = next((kind.name for kind in kinds if kind.name in text), "")
            short_of = short_of or (STOCKOUT.format(short) if short else UNDETERMINED)
        else:
            made = [launch(batch, environment, kind) for kind in kinds]
            return made if all(instance.arn for instance in made) else WAIT
    return WAIT if full else short_of


def _choices(resources: Document, job: Job) -> list[list[Kind]]:
    """The types that hold the job, or each of its nodes, smallest first."""
    kinds = instance_kinds(resources)
    return [[kind for kind in kinds if kind.holds(one.needs) and _allowed(kind, one)] for one in job.nodes or [job]]


def _over_max(environment: Environment, job: Job) -> bool:
    resources = environment.document["computeResources"]
    choices = _choices(resources, job)
    return all(choices) and sum(kinds[0].vcpus for kinds in choices) > resources["maxvCpus"]


def _allowed(kind: Kind, job: Job) -> bool:
    return not job.types or any(kind.name == name or kind.name.startswith(f"{name}.") for name in job.types)
