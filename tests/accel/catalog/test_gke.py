"""What a GKE node has for pods, against figures that pages and nodes show."""

import pytest

from accel.catalog.accelerators import accelerators
from accel.catalog.gke import gpu_partitions, node_allocatable, node_capacity, offered_gpus
from accel.catalog.machines import machine
from accel.catalog.memory import gke_allocatable
from accel.catalog.nearest import UnknownName
from accel.catalog.tables import rows


def test_a_node_reports_less_memory_than_its_machine_has() -> None:
    """7629484 KiB were seen on an n1-standard-2 of GKE (issue tracker of a public tutorial), of 7680 MiB."""
    node = machine("gcp", "n1-standard-2")
    assert abs(node_capacity(node).memory_mib - 7629484 // 1024) < 40
    assert node_allocatable(node).memory_mib < gke_allocatable(node)[1]


def test_cores_and_pods() -> None:
    node = machine("gcp", "e2-standard-4")
    assert node_capacity(node).cpu_m == 4000
    assert node_allocatable(node).cpu_m == gke_allocatable(node)[0]
    assert node_allocatable(node, max_pods=256).cpu_m == gke_allocatable(node)[0] - 400
    assert node_allocatable(node, max_pods=32).pods == 32


@pytest.mark.parametrize(
    ("disk_gib", "local_ssds", "lent_gib"),
    [
        (20, 0, 18 - 10),  # half
        (100, 0, 90 - 41),  # 6 GiB and 35 %
        (1000, 0, 900 - 100),
        (100, 1, 337.5 - 50),
        (100, 2, 675 - 75),
        (100, 16, 5400 - 100),
    ],
)
def test_ephemeral_storage(disk_gib: int, local_ssds: int, lent_gib: float) -> None:
    found = node_allocatable(machine("gcp", "a2-highgpu-1g"), disk_gib, local_ssds)
    assert found.ephemeral_mib == int(lent_gib * 1024)


def test_partitions_and_clients_multiply() -> None:
    assert offered_gpus("nvidia-l4", 2) == 2
    assert offered_gpus("nvidia-tesla-a100", 2, "1g.5gb") == 14
    assert offered_gpus("nvidia-h100-80gb", 8, "3g.40gb", 2) == 32
    assert gpu_partitions("nvidia-l4") == {}
    with pytest.raises(UnknownName, match=r'nvidia-tesla-a100 "1g.6gb"; nearest: 1g.5gb'):
        offered_gpus("nvidia-tesla-a100", 1, "1g.6gb")


def test_partitions_are_of_known_gpus_and_fit_into_one() -> None:
    for row in rows("gke_gpu_partitions.csv"):
        gpu = accelerators()[row["accelerator"]]
        _, _, memory = row["profile"].removesuffix("gb").partition("g.")
        assert gpu.is_nvidia_gpu
        # A profile's name is rounded up.
        assert int(memory) * row.integer("per_gpu") <= gpu.nominal_memory_gb * 1.05, row
