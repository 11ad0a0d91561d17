"""The data files agree with each other and with well-known figures."""

import math
import re
from itertools import chain

import pytest

from accel.catalog.tables import Row, parts, rows

ACCELERATORS = {row["accelerator"]: row for row in rows("accelerators.csv")}
MACHINES = {(row["cloud"], row["machine"]): row for row in rows("machines.csv")}
REGISTERED = {row["machine"]: row for row in rows("ecs_registered_memory.csv")}
WITH_ACCELERATOR = [row for row in MACHINES.values() if row["accelerator"]]
SLICES = [row for row in MACHINES.values() if row["kind"] == "tpu-slice"]


@pytest.mark.parametrize(
    "file, count, key",
    [
        ("accelerators.csv", 34, ["accelerator"]),
        ("machines.csv", 418, ["cloud", "machine"]),
        ("sources.csv", 22, ["source_id"]),
        ("accelerator_aliases.csv", None, ["alias"]),
        ("accelerator_uses.csv", None, ["accelerator"]),
        ("ecs_registered_memory.csv", None, ["machine"]),
    ],
)
def test_keys_are_unique_and_no_line_was_lost(file: str, count: int | None, key: list[str]) -> None:
    keys = [tuple(row[column] for column in key) for row in rows(file)]
    assert len(keys) == len(set(keys))
    assert count is None or len(keys) == count


def test_sources_are_listed_and_unverified_fields_exist() -> None:
    known = {row["source_id"] for row in rows("sources.csv")}
    for row in chain(ACCELERATORS.values(), MACHINES.values()):
        assert row["source"], row
        assert known.issuperset(parts(row["source"])), row
        assert row.keys() >= set(parts(row["unverified_fields"])), row


def test_machines_have_known_kinds_and_accelerators() -> None:
    for row in MACHINES.values():
        assert row["cloud"] in ("aws", "gcp")
        assert row["kind"] in ("accelerator", "n1-attach", "tpu-host", "tpu-slice", "cpu")
        assert (row["kind"] == "cpu") == (not row["accelerator"]), row
        assert not row["accelerator"] or row["accelerator"] in ACCELERATORS, row
        assert row["cpu_arch"] in ("x86_64", "arm64")
        assert row["gpudirect"] in ("", "tcpx", "tcpxo", "rdma", "efa-rdma"), row
        assert row["local_ssd_mode"] in ("bundled", "optional", "none", ""), row
        if row["local_ssd_mode"] == "bundled":
            assert float(row["local_ssd_gb"]) > 0, row
        if row["network_gbps"]:
            assert 0.5 <= float(row["network_gbps"]) <= 6400, row


def test_what_an_accelerator_is_best_for_has_a_source_and_few_words() -> None:
    words = {
        *("large training", "training", "small training", "fine-tuning", "large inference", "inference"),
        *("HPC", "graphics", "video"),
    }
    for row in rows("accelerator_uses.csv"):
        assert row["accelerator"] in ACCELERATORS, row
        assert row["source"].startswith("https://") and row["source_date"], row
        assert parts(row["best_for"]) and words.issuperset(parts(row["best_for"])), row


def test_every_accelerator_is_sold() -> None:
    assert {row["accelerator"] for row in WITH_ACCELERATOR} == ACCELERATORS.keys()


@pytest.mark.parametrize("row", ACCELERATORS.values(), ids=lambda row: row["accelerator"])
def test_accelerator_figures_are_plausible(row: Row) -> None:
    memory, nominal = float(row["memory_gib"]), float(row["nominal_memory_gb"])
    assert 0 < memory <= 300
    assert abs(memory - nominal) <= 0.1 * nominal
    for column, low, high in (
        ("bf16_dense_tflops", 10, 3000),
        ("fp16_dense_tflops", 1, 3000),
        ("memory_bandwidth_gb_s", 40, 9000),
    ):
        assert not row[column] or low <= float(row[column]) <= high, column
    if row["vendor"] == "NVIDIA":
        assert re.fullmatch(r"\d+\.\d", row["cuda_compute_capability"])
        before_ampere = float(row["cuda_compute_capability"]) < 8
        assert not (before_ampere and row["bf16_dense_tflops"]), "bf16 came with Ampere"


def test_machine_sizes_are_plausible() -> None:
    for row in MACHINES.values():
        if row["kind"] in ("accelerator", "cpu", "tpu-host"):
            vcpus, memory = int(row["vcpus"]), float(row["memory_gib"])
            assert 1 <= vcpus <= 512, row
            assert 1 <= memory <= 4200, row
            assert 0.9 <= memory / vcpus <= 24, row


def test_accelerator_memory_is_count_times_one() -> None:
    for row in WITH_ACCELERATOR:
        count, total = float(row["accelerator_count"]), float(row["accelerator_memory_gib_total"])
        assert count > 0, row
        assert count < 1 or count.is_integer(), row
        each = float(ACCELERATORS[row["accelerator"]]["memory_gib"])
        assert abs(total - count * each) <= 0.08 * total, row


def test_efa_is_of_aws_and_has_interfaces() -> None:
    for row in MACHINES.values():
        assert row["efa"] in ("yes", "no")
        assert (row["efa"] == "yes") == (int(row["efa_max_interfaces"]) > 0), row
        assert row["cloud"] == "aws" or row["efa"] == "no", row


def test_n1_attachments() -> None:
    for row in MACHINES.values():
        if row["kind"] == "n1-attach":
            assert row["machine"] == f"n1+{row['accelerator']}x{row['accelerator_count']}"
            assert float(row["vcpus_min"]) < float(row["vcpus_max"]) <= 96
            assert float(row["memory_gib_min"]) < float(row["memory_gib_max"]) <= 624
            assert float(row["memory_gib_max"]) / float(row["vcpus_max"]) == pytest.approx(6.5, abs=0.01)


def test_tpu_chips_and_cores() -> None:
    for row in MACHINES.values():
        if row["kind"] in ("tpu-slice", "tpu-host"):
            cores_per_chip = int(ACCELERATORS[row["accelerator"]]["cores_per_chip"])
            assert int(row["tpu_cores"]) == int(row["tpu_chips"]) * cores_per_chip, row
            assert int(row["tpu_chips"]) == float(row["accelerator_count"]), row


def test_tpu_slices_have_the_chips_of_their_topology_hosts_and_name() -> None:
    for row in SLICES:
        chips, hosts = int(row["tpu_chips"]), int(row["tpu_hosts"])
        assert math.prod(int(side) for side in row["tpu_topology"].split("x")) == chips, row
        assert (chips % hosts, chips // hosts) in ((0, 1), (0, 4), (0, 8)), row
        if row["host_machine"]:
            host = MACHINES["gcp", row["host_machine"]]
            assert host["accelerator"] == row["accelerator"], row
            assert int(host["tpu_chips"]) == chips // hosts, row
        version, _, size = row["machine"].partition("-")
        if row["tpu_version"] != "tpu7x":
            in_cores = version in ("v2", "v3", "v4", "v5p")
            assert int(size) == int(row["tpu_cores"] if in_cores else row["tpu_chips"]), row
        assert row["tpu_api_type"] in ("", row["machine"]), row


ANCHORS = """
gcp a2-highgpu-1g          nvidia-tesla-a100 1 12 85
gcp a2-ultragpu-8g         nvidia-a100-80gb 8 96 1360
gcp a3-highgpu-8g          nvidia-h100-80gb 8 208 1872
gcp a3-megagpu-8g          nvidia-h100-mega-80gb 8 208 1872
gcp a3-ultragpu-8g         nvidia-h200-141gb 8 224 2952
gcp a4-highgpu-8g          nvidia-b200 8 224 3968
gcp g2-standard-4          nvidia-l4 1 4 16
gcp g4-standard-48         nvidia-rtx-pro-6000 1 48 180
aws p3.2xlarge             nvidia-tesla-v100 1 8 61
aws p3.16xlarge            nvidia-tesla-v100 8 64 488
aws p4d.24xlarge           nvidia-tesla-a100 8 96 1152
aws p4de.24xlarge          nvidia-a100-80gb 8 96 1152
aws p5.4xlarge             nvidia-h100-80gb 1 16 256
aws p5.48xlarge            nvidia-h100-80gb 8 192 2048
aws p6-b200.48xlarge       nvidia-b200 8 192 2048
aws g4dn.metal             nvidia-tesla-t4 8 96 384
aws g5.12xlarge            nvidia-a10g 4 48 192
aws g6.2xlarge             nvidia-l4 1 8 32
aws g6e.48xlarge           nvidia-l40s 8 192 1536
aws g6f.large              nvidia-l4 0.125 2 8
aws gr6.4xlarge            nvidia-l4 1 16 128
aws trn2.48xlarge          aws-trainium2 16 192 2048
aws inf2.48xlarge          aws-inferentia2 12 192 768
"""


@pytest.mark.parametrize("line", ANCHORS.split("\n")[1:-1])
def test_well_known_machines(line: str) -> None:
    cloud, machine, *want = line.split()
    row = MACHINES[cloud, machine]
    assert [row[column] for column in ("accelerator", "accelerator_count", "vcpus", "memory_gib")] == want


def test_well_known_slices() -> None:
    shape = {row["machine"]: (row["tpu_topology"], row["tpu_chips"], row["tpu_hosts"]) for row in SLICES}
    assert shape["v5litepod-16"] == ("4x4", "16", "4")
    assert shape["v4-8"] == ("2x2x1", "4", "1")
    assert shape["v6e-256"] == ("16x16", "256", "64")


def test_aws_gpu_families_are_there() -> None:
    families = {row["series"] for (cloud, _), row in MACHINES.items() if cloud == "aws"}
    wanted = {"p3", "p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "g4dn", "g5", "g6", "g6e", "gr6"}
    assert families >= wanted | {"g6f", "g5g", "trn1", "trn2", "inf2"}


def test_aliases_name_accelerators_and_hide_no_key() -> None:
    for row in rows("accelerator_aliases.csv"):
        assert row["accelerator"] in ACCELERATORS, row
        assert row["alias"] not in ACCELERATORS, row
        assert row["alias"] == row["alias"].lower(), row
        assert row["why"], row


@pytest.mark.parametrize("row", REGISTERED.values(), ids=lambda row: row["machine"])
def test_registered_memory_is_below_nominal_and_sourced(row: Row) -> None:
    nominal, registered = int(row["nominal_mib"]), int(row["registered_mib"])
    assert 0.87 < registered / nominal < 0.985
    assert row["source"]
    if ("aws", row["machine"]) in MACHINES:
        assert float(MACHINES["aws", row["machine"]]["memory_gib"]) * 1024 == nominal
