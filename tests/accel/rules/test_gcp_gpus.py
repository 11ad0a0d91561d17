"""Which GPUs go with which machines of Google Cloud: every row of the tables, and its neighbours."""

import csv
from pathlib import Path

import pytest

from accel.catalog import Machine, UnknownName, legacy, machines, zones
from accel.catalog.gpu_attachments import GpuAttachment, gpu_attachments, n1, vertex_counts
from accel.catalog.machines import counts_of
from accel.rules import Finding
from accel.rules.gcp import gpus
from accel.rules.gcp import machines as gcp_machines
from accel.rules.gcp import zones as gcp_zones
from accel.rules.gke import pools
from accel.rules.vertex import legacy as gcp_legacy
from accel.rules.vertex import machines as vertex_machines

WITH_GPUS = [each for each in machines("gcp") if each.kind == "accelerator"]
ATTACHED = [each for counts in gpu_attachments().values() for each in counts.values()]
N1_TYPES = [f"n1-{series}-{vcpus}" for series in ("standard", "highmem", "highcpu") for vcpus in (2, 8, 16, 32, 64, 96)]
with (Path(__file__).parent / "legacy_gpu_counts.csv").open(newline="", encoding="utf-8") as lines:
    TABLE = list(csv.DictReader(lines))
CELLS = [
    (row["machine"], accelerator, row[accelerator], row["origin"])
    for row in TABLE
    for accelerator in row
    if accelerator.startswith("nvidia") and (row["origin"] == "derived" or accelerator != "nvidia-tesla-a100")
]


def ids(findings: list[Finding]) -> set[str]:
    return {finding.rule for finding in findings}


@pytest.mark.parametrize("machine", WITH_GPUS, ids=lambda each: each.name)
def test_built_in_gpus_named_again(machine: Machine) -> None:
    assert gcp_machines.machine(machine.name) == []
    if not machine.whole_accelerators:
        return
    assert gcp_machines.machine(machine.name, machine.accelerator, machine.whole_accelerators) == []
    for count in {0, 1, 2, 4, 8, 16} - {machine.whole_accelerators}:
        found = gcp_machines.machine(machine.name, machine.accelerator, count)
        assert ids(found) == {"gcp.machine.accelerator-count"}
    other = "nvidia-l4" if machine.accelerator != "nvidia-l4" else "nvidia-tesla-t4"
    assert "gcp.machine.accelerator-mismatch" in ids(gcp_machines.machine(machine.name, other))


@pytest.mark.parametrize("taken", ATTACHED, ids=lambda each: f"{each.accelerator}-{each.count}")
def test_n1_up_to_its_limits(taken: GpuAttachment) -> None:
    for name in N1_TYPES:
        size = n1(name)
        assert size is not None
        fits = size.vcpus <= taken.vcpus_max and size.memory_gib <= taken.memory_gib_max
        found = gcp_machines.machine(name, taken.accelerator, taken.count)
        assert ids(found) == (set() if fits else {"gcp.machine.n1-limit"}), name
    for count in {0, 3, 5, 16}:
        assert ids(gcp_machines.machine("n1-standard-2", taken.accelerator, count)) == {"gcp.machine.n1-count"}


def test_one_t4_goes_further_on_compute_engine_than_on_vertex() -> None:
    assert gcp_machines.machine("n1-standard-32", "nvidia-tesla-t4", 1) == []
    assert ids(vertex_machines.n1_gpus("n1-standard-32", "nvidia-tesla-t4", 1)) == {"gcp.vertex.gpu-count"}


def test_four_v100_are_the_least_for_32_vcpus() -> None:
    counts = [n for n in (1, 2, 3, 4, 8) if not gcp_machines.machine("n1-standard-32", "nvidia-tesla-v100", n)]
    assert counts == [4, 8]


@pytest.mark.parametrize(
    "accelerator, good, bad",
    [
        ("NVIDIA_H100_80GB", (1, 2, 4, 8), (3, 16)),
        ("NVIDIA_H100_MEGA_80GB", (8,), (1, 2, 4)),
        ("NVIDIA_TESLA_A100", (1, 2, 4, 8, 16), (3, 32)),
        ("NVIDIA_A100_80GB", (1, 2, 4, 8), (16,)),
        ("NVIDIA_L4", (1, 2, 4, 8), (3, 16)),
        ("NVIDIA_TESLA_T4", (1, 2, 4), (3, 8)),
        ("NVIDIA_TESLA_V100", (1, 2, 4, 8), (3, 16)),
        ("nvidia-b200", (8,), (1, 4)),
        ("nvidia-gb200", (4,), (8,)),
        ("nvidia-h200-141gb", (8,), (4,)),
        ("nvidia-rtx-pro-6000", (0.125, 1, 2, 4, 8), (3, 16)),
    ],
)
def test_numbers_that_exist(accelerator: str, good: tuple[float, ...], bad: tuple[float, ...]) -> None:
    assert not [count for count in good if gpus.accelerator_count(accelerator, count)]
    for count in bad:
        (finding,) = gpus.accelerator_count(accelerator, count)
        assert all(f"{each:g}" in finding.message for each in good)


def test_numbers_of_what_is_not_known_or_not_counted() -> None:
    assert gpus.accelerator_count("rtx-4090", 3) == []
    assert gpus.accelerator_count("v5litepod", 3) == []
    assert counts_of("nvidia-l5", "gcp") == ()


@pytest.mark.parametrize("name", ["rtx-4090", "NVIDIA_RTX_4090", "RTX4090", "rtx 3090 ti", "GeForce RTX 5090"])
@pytest.mark.parametrize("cloud", ["aws", "gcp"])
def test_consumer_gpus(name: str, cloud: str) -> None:
    (finding,) = gpus.accelerator_name(name, cloud=cloud)
    assert (finding.rule, finding.fix) == ("gpu.consumer", "use nvidia-l4 or nvidia-rtx-pro-6000")


@pytest.mark.parametrize(
    "name", ["v5litepod", "tpu-v6e", "nvidia-l4", "T4", "H100", "nvidia-gb200", "NVIDIA_A100_80GB"]
)
def test_accelerators_of_google_cloud(name: str) -> None:
    assert gpus.accelerator_name(name) == []


@pytest.mark.parametrize("name", ["P4", "NVIDIA_TESLA_P100", "V100"])
def test_old_generations_are_taken_with_a_warning(name: str) -> None:
    assert ids(gpus.accelerator_name(name)) == {"gcp.gpu.old"}
    assert gpus.accelerator_name(name)[0].severity == "warn"


@pytest.mark.parametrize("machine", ["a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g"])
def test_small_a3(machine: str) -> None:
    for allowed in ("spot", "SPOT", "flex-start", "FLEX_START"):
        assert gpus.small_a3(machine, allowed) == []
    for refused in (None, "on-demand", "ON_DEMAND", "STANDARD", "LOW_COST", "reserved"):
        assert ids(gpus.small_a3(machine, refused)) == {"gcp.gpu.small-a3"}
    for other in ("a3-highgpu-8g", "a3-edgegpu-8g", "a3-megagpu-8g", "a2-ultragpu-2g", "g2-standard-24"):
        assert gpus.small_a3(other, None) == []


@pytest.mark.parametrize("machine", ["a3-ultragpu-8g", "a4-highgpu-8g", "a4x-highgpu-4g", "a4x-maxgpu-4g-metal"])
def test_machines_that_are_had_by_reservation(machine: str) -> None:
    for doubted in (None, "on-demand", "ON_DEMAND", "STANDARD"):
        (finding,) = gpus.scarce(machine, doubted)
        assert (finding.rule, finding.severity) == ("gcp.gpu.scarce", "warn")
        assert ("flex-start" in finding.fix) != machine.startswith("a4x")
    for right in ("reserved", "spot", "FLEX_START"):
        assert gpus.scarce(machine, right) == []
    assert gpus.scarce("a3-megagpu-8g", None) == []


@pytest.mark.parametrize("name", ["NVIDIA_TESLA_K80", "nvidia-tesla-k80", "K80"])
def test_a_k80_is_refused(name: str) -> None:
    for cloud in ("aws", "gcp"):
        (finding,) = gpus.accelerator_name(name, cloud=cloud)
        assert (finding.rule, finding.severity) == ("gcp.gpu.k80", "reject")
        assert finding.fix == "use nvidia-tesla-t4 or nvidia-l4"


@pytest.mark.parametrize("name", ["nvidia-tesla-t5", "A200", "zzz", ""])
def test_an_unknown_gpu_is_refused_and_never_a_default(name: str) -> None:
    (finding,) = gpus.accelerator_name(name)
    assert (finding.rule, finding.severity) == ("gcp.gpu.unknown", "reject")
    assert " or " in finding.fix or finding.fix.startswith("use one of p4, p100, v100, ")


@pytest.mark.parametrize("machine, accelerator, counts, origin", CELLS, ids=lambda value: value or "none")
def test_the_legacy_table(machine: str, accelerator: str, counts: str, origin: str) -> None:
    got = vertex_counts(machine, accelerator)
    values = tuple(int(each) for each in counts.split())
    if machine.startswith("a2") != (accelerator == "nvidia-tesla-a100"):
        assert got is None and not values
        return
    assert got is not None
    assert got.values == values
    assert got.derived == (origin == "derived" and (accelerator == "nvidia-tesla-k80" or machine.startswith("a2")))


@pytest.mark.parametrize("machine, accelerator, counts, origin", CELLS, ids=lambda value: value or "none")
def test_every_number_of_the_legacy_table_and_its_neighbours(
    machine: str, accelerator: str, counts: str, origin: str
) -> None:
    values = {int(each) for each in counts.split()}
    if machine.startswith("a2") or accelerator == "nvidia-tesla-a100":
        return  # built in, so the machine's own rules speak of it
    severity = "warn" if origin == "derived" and accelerator == "nvidia-tesla-k80" else "reject"
    for name in (accelerator, accelerator.upper().replace("-", "_")):
        for count in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16):
            found = [finding.severity for finding in vertex_machines.n1_gpus(machine, name, count)]
            assert found == ([] if count in values else [severity]), count


def test_the_legacy_table_is_whole() -> None:
    assert len([cell for cell in CELLS if cell[3] == "published"]) == 55


def test_the_legacy_table_is_not_about_other_machines() -> None:
    for machine in ("custom-4-8192", "n2-standard-4", "g2-standard-4"):
        assert vertex_counts(machine, "nvidia-tesla-t4") is None
        assert vertex_machines.n1_gpus(machine, "nvidia-tesla-t4", 3) == []
    assert vertex_counts("n1-standard-4", "nvidia-l4") is None


@pytest.mark.parametrize("name", legacy.legacy_machines())
def test_what_replaces_a_legacy_type_breaks_no_rule(name: str) -> None:
    (finding,) = gcp_legacy.machine_type(name)
    found = legacy.legacy_machine(name)
    assert finding.severity == ("reject" if found.decision else "translate")
    if found.machine and found.count:
        assert gcp_machines.machine(found.machine, found.accelerator, found.count) == []
        assert vertex_machines.n1_gpus(found.machine, found.accelerator, found.count) == []


def test_three_types_that_a_region_has_and_no_zone() -> None:
    us_central1 = {
        "nvidia-tesla-t4": ["us-central1-a", "us-central1-b", "us-central1-f"],
        "nvidia-tesla-k80": ["us-central1-a", "us-central1-c"],
        "nvidia-tesla-p100": ["us-central1-c", "us-central1-f"],
    }
    (finding,) = gcp_zones.common_zones(us_central1)
    assert finding.rule == "gcp.zones.none-common"
    for accelerator, offered in us_central1.items():
        assert f"{accelerator} in {', '.join(offered)}" in finding.message
    pair = {name: us_central1[name] for name in ("nvidia-tesla-t4", "nvidia-tesla-k80")}
    assert gcp_zones.common_zones(pair) == []
    assert gcp_zones.intersect_zones(pair) == ["us-central1-a"]


def test_zones_of_the_catalogue() -> None:
    wanted = ("n1+nvidia-tesla-t4x1", "a2-highgpu-1g")
    offered = {name: zones("gcp", "us-central1", name) for name in wanted}
    assert gcp_zones.common_zones(offered) == []
    assert gcp_zones.intersect_zones({}) == []


def test_an_unknown_place_is_doubted_and_the_rest_still_compared() -> None:
    found = gcp_zones.common_zones({"a": ["x"], "b": ["y"], "c": []})
    assert [finding.rule for finding in found] == ["gcp.zones.unknown", "gcp.zones.none-common"]
    assert gcp_zones.zone("anywhere", "a", []) == []
    assert gcp_zones.region("nowhere") == []


@pytest.mark.parametrize(
    "sizes, fields",
    [
        ((0, 0, None), ["max_nodes"]),
        ((-1, 2, 0), ["min_nodes"]),
        ((3, 2, None), ["min_nodes"]),
        ((1, 4, 0), ["initial_nodes"]),
    ],
)
def test_bounds_of_a_pool(sizes: tuple[int, int, int | None], fields: list[str]) -> None:
    assert [finding.field for finding in pools.bounds(*sizes)] == fields


def test_the_catalogue_does_not_know_a_legacy_type() -> None:
    with pytest.raises(UnknownName):
        legacy.legacy_machine("n1-standard-4")
