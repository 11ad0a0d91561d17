"""What a queue covers, and what a share of a pool comes to."""

from accel.rules.gke import kueue
from accel.rules.gke.kueue import PoolFacts, Share

GPU = PoolFacts("spot", False, 4, {"cpu_m": 95_000, "memory_mib": 1_000_000, "disk_gib": 300, "gpus": 8})
CPU = PoolFacts("on-demand", False, 10, {"cpu_m": 15_000, "memory_mib": 60_000, "disk_gib": 90})
NO_DISK = PoolFacts("on-demand", False, 10, {"cpu_m": 15_000, "memory_mib": 60_000})
TPU = PoolFacts("spot", False, 2, {"cpu_m": 100_000, "memory_mib": 400_000, "tpu_chips": 4})
POOLS = {"gpu": GPU, "cpu": CPU, "plain": NO_DISK, "tpu": TPU}


def test_cores_and_memory_are_always_covered_and_accelerators_where_there_are_any() -> None:
    assert kueue.covered_resources([Share("plain")], POOLS) == ["cpu_m", "memory_mib"]
    assert kueue.covered_resources([Share("gpu"), Share("cpu")], POOLS) == ["cpu_m", "memory_mib", "disk_gib", "gpus"]
    assert kueue.covered_resources([Share("gpu"), Share("tpu")], POOLS) == ["cpu_m", "memory_mib", "gpus", "tpu_chips"]


def test_ephemeral_storage_is_covered_only_where_every_pool_tells_it() -> None:
    assert "disk_gib" not in kueue.covered_resources([Share("gpu"), Share("plain")], POOLS)


def test_without_nominal_a_queue_has_all_that_the_pool_grows_to() -> None:
    resources = ["cpu_m", "memory_mib", "gpus"]
    assert kueue.nominal(Share("gpu"), GPU, resources) == {"cpu_m": 380_000, "memory_mib": 4_000_000, "gpus": 32}
    assert kueue.nominal(Share("cpu"), CPU, resources)["gpus"] == 0


def test_a_cpu_pool_beside_a_gpu_pool_needs_no_gpu_quota() -> None:
    shares = [Share("gpu"), Share("cpu", {"cpu_m": 1000, "memory_mib": 1000, "disk_gib": 1})]
    assert kueue.queue(shares, POOLS) == []


def test_an_order_is_judged_between_pools_of_one_gpu_only() -> None:
    steady = PoolFacts("on-demand", False, 1, GPU.node, accelerator="nvidia-l4")
    spot = PoolFacts("spot", False, 1, GPU.node, accelerator="nvidia-h100-80gb")
    assert kueue.queue([Share("l4"), Share("h100")], {"l4": steady, "h100": spot}) == []
