import dataclasses

import pytest

from accel.catalog import (
    expand,
    fits,
    gke_allocatable,
    holding,
    machine,
    machines,
    machines_for,
    suggested_memory_mib,
    usable_memory_mib,
)
from accel.catalog.memory import USABLE_RATIO, ceiling_memory_mib, ecs_gpus
from accel.catalog.tables import rows

GPU_FAMILIES = ["g4dn", "g5", "g6"]


def test_four_gpus_32_vcpus_131072_mib() -> None:
    held = holding(expand(GPU_FAMILIES), 32, 131072, 4)
    assert {each.name for each in held.fits if ecs_gpus(each) == 4} == {
        "g4dn.12xlarge", "g5.12xlarge", "g5.24xlarge", "g6.12xlarge", "g6.24xlarge",
    }  # fmt: skip
    assert {each.name for each in held.fits if ecs_gpus(each) > 4} == {
        "g4dn.metal",
        "g5.48xlarge",
        "g6.48xlarge",
    }
    assert held.tight == ()
    assert fits(machine("aws", "p3.8xlarge"), 32, 131072, 4).verdict == "fits"


def test_a_full_size_request_misses_every_2xlarge() -> None:
    held = holding(expand(GPU_FAMILIES), 8, 32768, 1)
    fitting = {each.name for each in held.fits}
    assert not {name for name in fitting if name.endswith(".2xlarge")}
    assert {"g4dn.4xlarge", "g5.4xlarge", "g6.4xlarge"} <= fitting
    missed = {fit.machine.name: fit for fit in held.refused if fit.head_room}
    assert missed.keys() == {"g4dn.2xlarge", "g5.2xlarge", "g6.2xlarge"}
    assert missed["g5.2xlarge"].reason == "g5.2xlarge has 32768 MiB, of which ECS registers about 30146"


def test_30000_mib_fit_a_2xlarge() -> None:
    g5 = machine("aws", "g5.2xlarge")
    assert suggested_memory_mib(g5) == 30000
    assert fits(g5, 8, 30000, 1).verdict == "fits"


@pytest.mark.parametrize(
    "memory_mib, verdict", [(30146, "fits"), (30147, "tight"), (32276, "tight"), (32277, "no"), (32768, "no")]
)
def test_the_borders_of_a_type_without_a_seen_figure(memory_mib: int, verdict: str) -> None:
    assert fits(machine("aws", "g6.2xlarge"), 8, memory_mib, 1).verdict == verdict


@pytest.mark.parametrize("memory_mib, verdict", [(15573, "fits"), (15731, "tight"), (15732, "no")])
def test_the_borders_of_a_type_with_a_seen_figure(memory_mib: int, verdict: str) -> None:
    assert fits(machine("aws", "g4dn.xlarge"), 4, memory_mib, 1).verdict == verdict


@pytest.mark.parametrize(
    "name, size, reason",
    [
        ("g5.xlarge", (8, 8000, 1), "g5.xlarge has 4 vCPUs of the 8 asked for"),
        ("g5.xlarge", (4, 20000, 1), "g5.xlarge has 16384 MiB of the 20000 asked for"),
        ("g5.12xlarge", (4, 8000, 8), "g5.12xlarge has 4 of the 8 GPUs asked for"),
        ("g6f.4xlarge", (4, 8000, 1), "g6f.4xlarge has 0.5 of a GPU; a job reserves whole ones"),
        ("m6i.xlarge", (4, 8000, 1), "m6i.xlarge has no GPU"),
        (
            "g4ad.xlarge",
            (4, 8000, 1),
            "g4ad.xlarge has amd-radeon-pro-v520, which ECS does not count as a GPU",
        ),
    ],
)
def test_why_not(name: str, size: tuple[int, int, int], reason: str) -> None:
    fit = fits(machine("aws", name), *size)
    assert (fit.verdict, fit.reason, fit.head_room) == ("no", reason, False)


def test_spare_gpus_are_said() -> None:
    assert fits(machine("aws", "p4d.24xlarge"), 8, 60000, 1).reason.endswith("7 of its 8 GPUs stay free")


def test_the_default_ratio_is_below_every_figure_seen_from_8_gib_up() -> None:
    seen = [(int(row["nominal_mib"]), int(row["registered_mib"])) for row in rows("ecs_registered_memory.csv")]
    assert all(registered / nominal > USABLE_RATIO for nominal, registered in seen if nominal >= 8192)


def test_usable_is_below_the_ceiling_and_the_ceiling_below_nominal() -> None:
    for each in expand(["g4dn", "g5", "g6", "p4d", "p5", "trn1"]):
        assert usable_memory_mib(each) < ceiling_memory_mib(each) < each.memory_mib


@pytest.mark.parametrize(
    "name, cpu_millis, memory_mib",
    [
        ("n1-standard-1", 940, 3840 - 960 - 100),
        ("n1-standard-2", 1930, 5839),
        ("e2-standard-4", 3920, 13621),
        ("n1-standard-8", 7910, 30720 - 3523 - 100),
        ("g2-standard-4", 3920, 13621),
        ("a2-highgpu-1g", 11900, 80038),
        ("a3-highgpu-8g", 207410, 1871567),
    ],
)
def test_what_gke_leaves_to_pods(name: str, cpu_millis: int, memory_mib: int) -> None:
    assert gke_allocatable(machine("gcp", name)) == (cpu_millis, memory_mib)


def test_gke_leaves_most_of_every_machine_and_never_all() -> None:
    for each in machines("gcp"):
        cpu_millis, memory_mib = gke_allocatable(each)
        assert 0.9 * each.vcpus * 1000 < cpu_millis < each.vcpus * 1000
        assert 0.7 * each.memory_mib < memory_mib < each.memory_mib


def test_a_small_node_keeps_255_mib_and_the_eviction_threshold() -> None:
    small = dataclasses.replace(machine("gcp", "n1-standard-1"), memory_mib=614)
    assert gke_allocatable(small)[1] == 614 - 255 - 100


def test_gpus_to_attach_are_no_node() -> None:
    with pytest.raises(ValueError, match="ask for the N1 machine"):
        gke_allocatable(machines_for("t4", 1, "gcp")[0])
