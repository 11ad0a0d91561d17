"""Capacity of the instances behind a queue: a job that fits none of them would wait forever."""

from collections.abc import Iterable

from accel.catalog import AmbiguousName, Holding, Machine, UnknownName, accelerator, holding, resolve_machines
from accel.contract.targets import AwsBatchEnvironment, AwsBatchTarget
from accel.diagnostics.collector import Diagnostics
from accel.diagnostics.messages import first_of
from accel.rules.aws import fit
from accel.rules.aws.fit import Size

from ...model.job import Job

FIELDS = {
    "gpus": "accelerator.count",
    "vcpus": "cpus",
    "array_size": "tasks",
    "depends_on": "aws_batch.depends_on",
}
"""The job file's names for the rules' fields."""

SHOWN = 6


def field_name(field: str) -> str:
    head, bracket, rest = field.partition("[")
    return f"{FIELDS.get(head, head)}{bracket}{rest}"


def check(job: Job, size: Size, target: AwsBatchTarget, diagnostics: Diagnostics) -> None:
    _spot(job, target, diagnostics)
    _disk(job, target, diagnostics)
    machines, unknown = resolve_machines(_types(target.environments))
    wide = [each for each in target.environments if each.max_vcpus >= size.vcpus]
    held = fit.holding_of(_types(wide), size)
    _size(target, size, unknown, diagnostics)
    _accelerator(job, target, held, machines, unknown, diagnostics)


def _types(environments: Iterable[AwsBatchEnvironment]) -> tuple[str, ...]:
    return tuple(name for environment in environments for name in environment.instance_types)


def _spot(job: Job, target: AwsBatchTarget, diagnostics: Diagnostics) -> None:
    if job.spot is None:
        return
    wanted = "spot" if job.spot else "on-demand"
    others = [f"{each.name} ({each.capacity})" for each in target.environments if each.capacity != wanted]
    if others:
        diagnostics.error(
            f"spot: {str(job.spot).lower()} asks for {wanted} only, and the queue also has "
            f"{', '.join(others)}; Batch chooses the environment: use a target with one kind of "
            "capacity, or leave spot out"
        )


def _disk(job: Job, target: AwsBatchTarget, diagnostics: Diagnostics) -> None:
    if job.disk_gib is None:
        return
    small = [f"{each.name} has {each.disk_gib}" for each in target.environments if each.disk_gib < job.disk_gib]
    if len(small) == len(target.environments):
        diagnostics.error(f"disk_gib: {job.disk_gib} is above the disk of every instance: {', '.join(small)} GiB")
    elif small:
        diagnostics.warning(f"disk_gib: Batch may place the job where there is less: {', '.join(small)} GiB")


def _size(target: AwsBatchTarget, size: Size, unknown: tuple[str, ...], diagnostics: Diagnostics) -> None:
    region = target.region
    places = [
        fit.QueueEnvironment(each.name, each.instance_types, each.max_vcpus, region) for each in target.environments
    ]
    diagnostics.with_names(FIELDS).add(fit.placement(size, places))
    if unknown and not holding(fit.startable(places), *size).fits:
        diagnostics.warning(f"{first_of(unknown, SHOWN)}: not in the catalogue; whether it holds the job is not known")


def _accelerator(
    job: Job,
    target: AwsBatchTarget,
    held: Holding,
    machines: tuple[Machine, ...],
    unknown: tuple[str, ...],
    diagnostics: Diagnostics,
) -> None:
    if job.accelerator is None or job.accelerator.type is None:
        return
    try:
        wanted = accelerator(job.accelerator.type).name
    except (UnknownName, AmbiguousName) as error:
        offered = ", ".join(sorted({machine.accelerator for machine in machines if machine.accelerator}))
        diagnostics.error(f"accelerator.type: {error}; this queue has {offered or 'none'}")
        return
    places = (*held.fits, *held.tight)
    others = [machine for machine in places if machine.accelerator != wanted]
    if not places and unknown:
        return  # the size check has warned
    if not any(machine.accelerator == wanted for machine in machines) and not unknown:
        shown = first_of(sorted({f"{machine.name} ({machine.accelerator})" for machine in places or machines}), SHOWN)
        diagnostics.error(f"accelerator.type: {job.accelerator.type} is on no instance of the queue: {shown}")
    elif others:
        shown = first_of([f"{machine.name} ({machine.accelerator})" for machine in others], SHOWN)
        diagnostics.error(
            f"accelerator.type: Batch chooses the instance, and could place the job without "
            f"{job.accelerator.type} on {shown}; {_one_type(wanted, target)}, or leave type out"
        )


def _one_type(wanted: str, target: AwsBatchTarget) -> str:
    """Return the lines to write into the stack for a queue of one accelerator only."""
    short = wanted.removeprefix("nvidia-")
    environments: list[str] = []
    for each in target.environments:
        types = [name for name in each.instance_types if _has_only(wanted, name)]
        if types:
            listed = f"instance_types: [{', '.join(types)}], max_vcpus: {each.max_vcpus}"
            environments.append(f"{each.name}-{short}: {{capacity: {each.capacity}, {listed}}}")
    if not environments:
        return "use a queue with one accelerator type"
    names = ", ".join(each.partition(":")[0] for each in environments)
    return (
        f"submit it --to {short} after `pulumi up` with these in the stack's aws section: "
        f"`environments: {{{', '.join(environments)}}}` and `queues: {{{short}: {{environments: [{names}]}}}}`"
    )


def _has_only(wanted: str, name: str) -> bool:
    return {machine.accelerator for machine in resolve_machines((name,))[0]} == {wanted}
