"""The quota of every machine, and that no look-up guesses."""

import re

import pytest

from accel.catalog import UnknownName, families
from accel.catalog.quotas import quota_for, quotas, standard_of
from accel.catalog.tables import rows


def test_rows_are_whole() -> None:
    assert len(quotas()) >= 88
    keys = [(quota.service, quota.key) for quota in quotas()]
    assert len(keys) == len(set(keys))
    for quota in quotas():
        assert quota.source.startswith("https://"), quota
        assert quota.confidence in ("high", "medium", "low"), quota
        assert quota.purchase in ("on-demand", "spot", "committed", ""), quota
        assert quota.scope in ("region", "zone", "global"), quota
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", quota.checked), quota
        assert quota.applies_to, quota
        assert quota.cloud == "gcp" or re.fullmatch(r"L-[0-9A-F]{8}", quota.code), quota


def test_one_name_is_under_one_quota() -> None:
    claimed = [(q.cloud, q.service, q.purchase, name) for q in quotas() for name in q.applies_to]
    assert len(claimed) == len(set(claimed))


def test_accelerators_of_google_rows_are_in_the_catalogue() -> None:
    known = {row["accelerator"] for row in rows("accelerators.csv")} | {"cpus", "ssd", "gpus-all-regions"}
    assert {name for quota in quotas() if quota.cloud == "gcp" for name in quota.applies_to} <= known


@pytest.mark.parametrize(
    ("name", "on_demand", "spot"),
    [
        ("p4d.24xlarge", "L-417A185B", "L-7212CCBC"),
        ("p3", "L-417A185B", "L-7212CCBC"),
        ("p5.48xlarge", "L-417A185B", "L-C4BD4855"),
        ("p5en", "L-417A185B", "L-C4BD4855"),
        ("g5", "L-DB2E81BA", "L-3819A6DF"),
        ("gr6.4xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("g7e.2xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("vt1", "L-DB2E81BA", "L-3819A6DF"),
        ("trn1.32xlarge", "L-2C3B7624", "L-6B0D517C"),
        ("inf2", "L-1945791B", "L-B5D1601B"),
        ("dl1", "L-6E869C2A", "L-85EED4F7"),
        ("m6i.large", "L-1216C47A", "L-34B43A08"),
        ("t3", "L-1216C47A", "L-34B43A08"),
        ("x2idn", "L-7295265B", "L-E3A00192"),
        # P6 is in no name of a Spot quota, and HPC has none.
        ("p6-b200.48xlarge", "L-417A185B", None),
        ("hpc7g", "L-F7808C92", None),
        ("u7in-16tb.224xlarge", "L-43DA4232", None),
        ("quantum9", None, None),
    ],
)
def test_instance_types_and_families(name: str, on_demand: str | None, spot: str | None) -> None:
    found = [quota_for("aws", name, spot) for spot in (False, True)]
    assert [quota and quota.code for quota in found] == [on_demand, spot]


def test_every_family_of_the_catalogue_has_an_on_demand_quota() -> None:
    assert [family for family in families("aws") if quota_for("aws", family) is None] == []


@pytest.mark.parametrize(
    ("accelerator", "spot", "key"),
    [
        ("nvidia-tesla-t4", False, "NVIDIA_T4_GPUS"),
        ("nvidia-tesla-t4", True, "PREEMPTIBLE_NVIDIA_T4_GPUS"),
        ("nvidia-l4", True, "PREEMPTIBLE_NVIDIA_L4_GPUS"),
        ("nvidia-a100-80gb", False, "NVIDIA_A100_80GB_GPUS"),
        ("nvidia-h100-80gb", False, "GPUS_PER_GPU_FAMILY[gpu_family=NVIDIA_H100]"),
        ("nvidia-h100-80gb", True, "PREEMPTIBLE_NVIDIA_H100_GPUS"),
        ("tpu-v6e", False, "TPUS_PER_TPU_FAMILY[tpu_family=CT6E]"),
        ("gpus-all-regions", False, "GPUS_ALL_REGIONS"),
        ("gpus-all-regions", True, "GPUS_ALL_REGIONS"),
        ("ssd", True, "SSD_TOTAL_GB"),
        ("cpus", False, "CPUS"),
    ],
)
def test_metrics_of_google(accelerator: str, spot: bool, key: str) -> None:
    quota = quota_for("gcp", accelerator, spot)
    assert quota is not None and quota.key == key


def test_services_count_apart() -> None:
    vertex = quota_for("gcp", "nvidia-l4", service="aiplatform")
    api = quota_for("gcp", "tpu-v6e", True, service="tpu")
    assert vertex and vertex.code == "custom_model_training_nvidia_l4_gpus"
    assert api and (api.code, api.scope) == ("TPUV6EPreemptiblePerProjectPerZoneForTPUAPI", "zone")
    assert quota_for("gcp", "nvidia-gb300") is None


def test_spot_has_a_standard_quota_beside_it() -> None:
    spot = quota_for("gcp", "nvidia-l4", True)
    assert spot is not None and str(standard_of(spot)) == "NVIDIA L4 GPUs (NVIDIA_L4_GPUS)"
    on_demand = quota_for("gcp", "nvidia-l4")
    aws = quota_for("aws", "g5", True)
    assert on_demand and standard_of(on_demand) is None
    assert aws and standard_of(aws) is None


def test_unknown_clouds_and_services() -> None:
    with pytest.raises(UnknownName, match="unknown cloud"):
        quota_for("azure", "g5")
    with pytest.raises(UnknownName, match="unknown service with quotas"):
        quota_for("gcp", "nvidia-l4", service="vertex")
