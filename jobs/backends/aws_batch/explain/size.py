"""Whether any environment of the queue can hold the job at all."""

from accel.catalog import holding
from accel.rules.aws import fit

from ...base import Explanation
from ..capacity import FIELDS
from .facts import Environment, Facts
from .table import because

# https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable_misconfiguration.html
TOO_BIG = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"
OVER_MAX = "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE"


def too_large(facts: Facts) -> Explanation | None:
    """No instance type of the environments that Batch may use holds the job."""
    usable, size = facts.usable, facts.size
    verdict = facts.reason.startswith(TOO_BIG)
    if not usable or (any(each.unknown for each in usable) and not verdict):
        return None
    types = [name for each in usable for name in each.instance_types]
    aws = (f"AWS says: {facts.reason}",) if verdict else ()
    for finding in fit.fit(size.vcpus, size.memory_mib, size.gpus, types, facts.region):
        tight = finding.rule == fit.TIGHT.id
        if finding.severity != "reject" and not (tight and verdict):
            continue
        cause = {"gpus": "too-many-gpus", "vcpus": "too-many-vcpus"}.get(finding.field, "too-much-memory")
        told = finding.message if finding.rule == fit.NO_FIT.id else f"{_named(finding.field)} {finding.message}"
        reason = {
            "too-many-gpus": f"the job asks for {size.gpus} GPUs, and no instance type of its queue has so many",
            "too-many-vcpus": f"the job asks for {size.vcpus} vCPUs, and no instance type of its queue has so many",
            "too-much-memory": f"the job asks for {size.memory_mib} MiB, and no instance type of its queue that it "
            "could use registers so much with ECS",
        }[cause]
        return because(cause, reason, (told, *aws, *_idle(facts)), finding.fix)
    if verdict:
        offered = tuple(f"{each.name}: {', '.join(each.instance_types)}" for each in usable)
        return because(
            "too-large",
            f"AWS finds no instance type in the queue that holds {size}",
            (*aws, *offered, *_idle(facts)),
            "ask for less, or allow larger instance types",
        )
    return None


def max_vcpus(facts: Facts) -> Explanation | None:
    """Some type would hold the job, and max_vcpus of every environment is surely too small: for the job itself, or
    AWS says so."""
    usable, size = facts.usable, facts.size
    if not usable:
        return None
    if not (facts.reason.startswith(OVER_MAX) or all(each.max_vcpus < size.vcpus for each in usable)):
        return None
    return _over_max(facts)


def max_vcpus_likely(facts: Facts) -> Explanation | None:
    """The smallest type that holds the job has more vCPUs than max_vcpus. Batch may go above it by one instance, so
    that this is named only where nothing else is."""
    usable = facts.usable
    if not usable or facts.candidates or not any(each.smallest(facts.size) for each in usable):
        return None
    return _over_max(facts)


def _over_max(facts: Facts) -> Explanation:
    size, rows = facts.size, list[str]()
    for each in facts.usable:
        smallest = each.smallest(size)
        needs = f"; {smallest.name}, the smallest that holds the job, has {smallest.vcpus}" if smallest else ""
        rows.append(f"{each.name}: max_vcpus is {each.max_vcpus}{needs}")
    aws = (f"AWS says: {facts.reason}",) if facts.reason else ()
    return because(
        "max-vcpus",
        f"max_vcpus has no room for an instance that holds {size}",
        (*rows, *aws, *_idle(facts)),
        "raise max_vcpus of an environment and run `pulumi up`, or ask for less",
    )


def _idle(facts: Facts) -> tuple[str, ...]:
    """Environments that would hold the job and that Batch may not use."""
    return tuple(
        f"{each.name} has {held.name}, which holds it, and is {_state(each)}"
        for each in facts.environments() or ()
        if not each.usable and (held := each.smallest(facts.size))
    )


def _state(environment: Environment) -> str:
    return environment.state if environment.state == "DISABLED" else environment.status


def _named(field: str) -> str:
    return FIELDS.get(field, field)


def registers_less(facts: Facts) -> Explanation | None:
    """What ECS registers depends on the AMI, and instances of the only types that might do have registered less."""
    size, rows = facts.size, list[str]()
    for each in facts.candidates:
        held = holding(each.machines, size.vcpus, size.memory_mib, size.gpus)
        if held.fits or each.unknown or not held.tight:
            return None
        tight = {machine.name for machine in held.tight}
        seen = [one for one in each.instances() or () if one.kind in tight and one.registered_mib]
        if not seen or any(one.registered_mib >= size.memory_mib for one in seen):
            return None
        rows += [f"{each.name}: {one.id}, a {one.kind}, registered {one.registered_mib} MiB" for one in seen]
    if not rows:
        return None
    return because(
        "too-much-memory",
        f"the job asks for {size.memory_mib} MiB, and the instances that could hold it registered less with ECS",
        tuple(rows),
        "ask for no more memory_mib than is registered",
    )
