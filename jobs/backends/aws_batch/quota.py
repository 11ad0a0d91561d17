"""EC2 quotas that may keep every instance for a job from starting, and free GPUs of a queue.

A quota of 0 is the usual limit, and a job above it waits in RUNNABLE without a word. Free are the GPUs that max_vcpus
leaves above `desiredvCpus`, the size to which Batch has scaled an environment. A GPU that idles on a running instance
counts as taken: no page says what ECS's `remainingResources` lists for GPUs. Source:
https://docs.aws.amazon.com/batch/latest/APIReference/API_ComputeResource.html
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from accel.catalog import Machine, holding, resolve_machines
from accel.catalog.memory import ecs_gpus
from accel.catalog.quotas import Quota, quota_for
from accel.clouds.aws.clients import Clients
from accel.clouds.aws.errors import asking
from accel.clouds.aws.quotas import limits
from accel.clouds.aws.responses import structure, structures
from accel.clouds.quota_cache import DOUBTED_S, MAX_AGE_S, Limit
from accel.contract.targets import AwsBatchEnvironment, AwsBatchTarget
from accel.diagnostics.errors import JobsError
from accel.rules.aws import types
from accel.rules.aws.fit import Size

from ..base import QuotaAnswer
from ..free_gpus import Free


@dataclass(frozen=True)
class _Option:
    """Smallest type of an environment that holds the job under one quota."""

    quota: Quota | None
    machine: Machine
    nodes: int

    @property
    def vcpus(self) -> int:
        return self.machine.vcpus * self.nodes


def check(size: Size, target: AwsBatchTarget, nodes: int = 1) -> QuotaAnswer:
    """Report an unreadable limit, and raise nothing: submission does not depend on it."""
    return of_environments(size, target.environments, target.region, nodes)


def of_environments(
    size: Size, environments: Iterable[AwsBatchEnvironment], region: str, nodes: int = 1
) -> QuotaAnswer:
    places = {each.name: _options(size, each, nodes) for each in environments if each.max_vcpus >= size.vcpus}
    codes = [option.quota.code for options, _ in places.values() for option in options if option.quota]
    answer = QuotaAnswer()
    for max_age_s in (MAX_AGE_S, DOUBTED_S):
        try:
            answer = _judged(places, limits(region, codes, max_age_s=max_age_s), region)
        except JobsError as error:
            return QuotaAnswer((), (error.message,))
        if answer == QuotaAnswer():
            break
    return answer


def _judged(
    places: Mapping[str, tuple[list[_Option], tuple[str, ...]]], known: Mapping[str, Limit], region: str
) -> QuotaAnswer:
    over: list[str] = []
    unknown: dict[str, None] = {}
    for name, (options, unsized) in places.items():
        values = [known[option.quota.code].value if option.quota else None for option in options]
        pairs = list(zip(options, values, strict=True))
        if any(value is not None and option.vcpus <= value for option, value in pairs):
            continue
        unread = [_unread(option, known) for option, value in pairs if value is None]
        unknown.update(dict.fromkeys([*unread, *(f"{each}: not in the catalogue" for each in unsized)]))
        if pairs and not unread and not unsized:
            over.append(f"{name}: {'; '.join(_over(option, value or 0, region) for option, value in pairs)}")
    return QuotaAnswer(tuple(over), tuple(unknown))


def _options(size: Size, environment: AwsBatchEnvironment, nodes: int) -> tuple[list[_Option], tuple[str, ...]]:
    """Return the smallest type that holds the task under each quota, and the names that are not in the catalogue."""
    machines, unsized = resolve_machines(tuple(environment.instance_types))
    held = holding(machines, size.vcpus, size.memory_mib, size.gpus)
    spot = environment.capacity == "spot"
    smallest: dict[Quota | None, Machine] = {}
    for machine in sorted((*held.fits, *held.tight), key=lambda machine: machine.vcpus):
        smallest.setdefault(quota_for("aws", machine.name, spot), machine)
    return [_Option(quota, machine, nodes) for quota, machine in smallest.items()], unsized


def _unread(option: _Option, known: Mapping[str, Limit]) -> str:
    if option.quota is None:
        return f"none is known that holds {option.machine.family} with this purchase option"
    return f"{option.quota}: {known[option.quota.code].why}"


def _over(option: _Option, limit: float, region: str) -> str:
    return (
        f"{option.machine.name} is the smallest type that holds the job and has {option.machine.vcpus} vCPUs"
        f"{f', {option.vcpus} for {option.nodes} nodes' if option.nodes > 1 else ''}; the "
        f"limit of {option.quota} in {region} is {limit:g}"
    )


def free(clients: Clients, target: AwsBatchTarget) -> Sequence[Free]:
    """Return the environments with GPUs, in the order in which Batch tries them."""
    arns = [each.arn for each in target.environments]
    with asking("DescribeComputeEnvironments"):
        answer = clients.batch.describe_compute_environments(computeEnvironments=arns)
    rows = {str(row["computeEnvironmentArn"]): row for row in structures(answer, "computeEnvironments")}
    found: list[Free] = []
    for each in target.environments:
        machines = [machine for _, machine in types.find_machines(each.instance_types) if ecs_gpus(machine)]
        row = rows.get(each.arn)
        if row is None or not machines:
            continue
        resources = structure(row, "computeResources")
        most = int(resources.get("maxvCpus") or each.max_vcpus)
        # A disabled environment runs its present jobs and starts nothing.
        left = most - int(resources.get("desiredvCpus") or 0) if row.get("state") == "ENABLED" else 0
        found.append(Free(each.name, _gpus(left, machines), _gpus(most, machines)))
    return found


def _gpus(vcpus: int, machines: Sequence[Machine]) -> int:
    return max(max(0, vcpus) // machine.vcpus * ecs_gpus(machine) for machine in machines)
