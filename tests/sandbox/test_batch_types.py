"""Every instance type that the catalogue offers to an environment is one that the sandbox's Batch runs, with the same
vCPUs and GPUs."""

import pytest

from accel.catalog import Machine, machines
from accel.catalog.memory import ecs_gpus
from sandbox.aws.batch.instances import families, kinds


@pytest.mark.parametrize("machine", machines("aws"), ids=lambda machine: machine.name)
def test_a_type_of_the_catalogue_is_one_of_the_sandbox(machine: Machine) -> None:
    (kind,) = kinds(machine.name)
    assert (kind.vcpus, kind.gpus, kind.arm) == (machine.vcpus, ecs_gpus(machine), machine.cpu_arch == "arm64")
    assert kind.memory_mib < machine.memory_mib
    assert machine.family in families() and kind in kinds(machine.family)
