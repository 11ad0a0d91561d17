"""GPUs that a queue's environments may still start: what max_vcpus leaves above the vCPUs that Batch wants now.

`desiredvCpus` is what Batch has scaled an environment to, and a GPU that idles on an instance that runs counts as
taken: no page says of ECS's `remainingResources` what it lists of GPUs. Source:
https://docs.aws.amazon.com/batch/latest/APIReference/API_ComputeResource.html
"""

from collections.abc import Sequence

from accel.catalog import Machine
from accel.catalog.memory import ecs_gpus
from accel.clouds.aws.clients import Clients
from accel.clouds.aws.errors import asking
from accel.contract.targets import AwsBatchTarget
from accel.rules.aws import types

from ..free_gpus import Free
from .lookup import part, parts


def free(clients: Clients, target: AwsBatchTarget) -> Sequence[Free]:
    """One for each environment with GPUs, in the order in which Batch tries them."""
    arns = [each.arn for each in target.environments]
    with asking("DescribeComputeEnvironments"):
        answer = clients.batch.describe_compute_environments(computeEnvironments=arns)
    rows = {str(row["computeEnvironmentArn"]): row for row in parts(answer, "computeEnvironments")}
    found: list[Free] = []
    for each in target.environments:
        machines = [machine for _, machine in types.find_machines(each.instance_types) if ecs_gpus(machine)]
        row = rows.get(each.arn)
        if row is None or not machines:
            continue
        resources = part(row, "computeResources")
        most = int(resources.get("maxvCpus") or each.max_vcpus)
        # A disabled environment runs what it has and starts nothing.
        left = most - int(resources.get("desiredvCpus") or 0) if row.get("state") == "ENABLED" else 0
        found.append(Free(each.name, _gpus(left, machines), _gpus(most, machines)))
    return found


def _gpus(vcpus: int, machines: Sequence[Machine]) -> int:
    """The most GPUs that instances of so many vCPUs have."""
    return max(max(0, vcpus) // machine.vcpus * ecs_gpus(machine) for machine in machines)
