from importlib import import_module

import pytest

from accel.catalog import (
    AmbiguousName,
    UnavailableName,
    UnknownName,
    accelerator,
    accelerators,
    machine,
    machines_for,
)
from accel.catalog.accelerators import _names


@pytest.mark.parametrize(
    "name, key",
    [
        ("nvidia-tesla-t4", "nvidia-tesla-t4"),
        ("t4", "nvidia-tesla-t4"),
        ("T4", "nvidia-tesla-t4"),
        ("tesla-t4", "nvidia-tesla-t4"),
        ("NVIDIA_TESLA_T4", "nvidia-tesla-t4"),
        ("h100", "nvidia-h100-80gb"),
        ("H100-MEGA", "nvidia-h100-mega-80gb"),
        ("NVIDIA_H100_80GB", "nvidia-h100-80gb"),
        ("a10g", "nvidia-a10g"),
        ("l4", "nvidia-l4"),
        ("L40S", "nvidia-l40s"),
        ("A100-80GB", "nvidia-a100-80gb"),
        ("RTX PRO Server 6000", "nvidia-rtx-pro-6000"),
        ("Trainium2", "aws-trainium2"),
        ("v5e", "tpu-v5litepod"),
        ("v5litepod", "tpu-v5litepod"),
        ("tpu-v5-lite-podslice", "tpu-v5litepod"),
        ("TPU_V5_LITEPOD", "tpu-v5litepod"),
        ("trillium", "tpu-v6e"),
        ("tpu-v4", "tpu-v4"),
    ],
)
def test_every_name_leads_to_the_accelerator(name: str, key: str) -> None:
    assert accelerator(name).name == key


@pytest.mark.parametrize("name, gib", [("V100", 16), ("A100", 40)])
def test_aws_names_of_two_sizes_mean_the_smaller(name: str, gib: int) -> None:
    assert accelerator(name).memory_gib == gib


def test_a_name_that_nothing_settles_is_refused_with_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("accel.catalog.accelerators")  # the package has a function of that name
    monkeypatch.setattr(module, "_names", lambda: {"x1": ("nvidia-l4", "nvidia-l40s")})
    with pytest.raises(AmbiguousName, match="choose one of nvidia-l4, nvidia-l40s"):
        accelerator("x1")


def test_no_name_of_the_data_is_ambiguous_and_each_leads_to_its_line() -> None:
    assert not [name for name, keys in _names().items() if len(keys) > 1]
    for key, each in accelerators().items():
        for name in (each.name, each.gcp_type, each.gke_label, each.skypilot_name):
            assert not name or accelerator(name).name == key


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match='unknown accelerator "h1000"; nearest: h100'):
        accelerator("h1000")


def test_what_batch_counts_as_a_gpu() -> None:
    gpus = {key for key, each in accelerators().items() if each.is_nvidia_gpu}
    assert {"nvidia-l4", "nvidia-t4g"} <= gpus
    assert not gpus & {"amd-radeon-pro-v520", "aws-trainium", "tpu-v4", "habana-gaudi-hl205"}


VERTEX = """
NVIDIA_TESLA_P100     nvidia-tesla-p100
NVIDIA_TESLA_V100     nvidia-tesla-v100
NVIDIA_TESLA_P4       nvidia-tesla-p4
NVIDIA_TESLA_T4       nvidia-tesla-t4
NVIDIA_TESLA_A100     nvidia-tesla-a100
NVIDIA_A100_80GB      nvidia-a100-80gb
NVIDIA_L4             nvidia-l4
NVIDIA_H100_80GB      nvidia-h100-80gb
NVIDIA_H100_MEGA_80GB nvidia-h100-mega-80gb
NVIDIA_H200_141GB     nvidia-h200-141gb
NVIDIA_B200           nvidia-b200
NVIDIA_GB200          nvidia-gb200
NVIDIA_RTX_PRO_6000   nvidia-rtx-pro-6000
TPU_V2                tpu-v2
TPU_V3                tpu-v3
TPU_V4_POD            tpu-v4
TPU_V5_LITEPOD        tpu-v5litepod
"""


@pytest.mark.parametrize("line", VERTEX.split("\n")[1:-1])
def test_the_whole_enum_of_vertex_ai_but_the_k80(line: str) -> None:
    vertex, key = line.split()
    assert accelerator(vertex).name == key
    assert accelerators()[key].vertex_name == vertex


def test_no_other_accelerator_has_a_name_at_vertex_ai() -> None:
    assert {each.vertex_name for each in accelerators().values()} - {None} == set(VERTEX.split()[::2])


GOOGLE_NAMES = """
t4        nvidia-tesla-t4       NVIDIA_TESLA_T4       NVIDIA_T4_GPUS        16
l4        nvidia-l4             NVIDIA_L4             NVIDIA_L4_GPUS        24
v100      nvidia-tesla-v100     NVIDIA_TESLA_V100     NVIDIA_V100_GPUS      16
p100      nvidia-tesla-p100     NVIDIA_TESLA_P100     NVIDIA_P100_GPUS      16
p4        nvidia-tesla-p4       NVIDIA_TESLA_P4       NVIDIA_P4_GPUS        8
a100      nvidia-tesla-a100     NVIDIA_TESLA_A100     NVIDIA_A100_GPUS      40
a100-80gb nvidia-a100-80gb      NVIDIA_A100_80GB      NVIDIA_A100_80GB_GPUS 80
h100      nvidia-h100-80gb      NVIDIA_H100_80GB      -                     80
h100-mega nvidia-h100-mega-80gb NVIDIA_H100_MEGA_80GB -                     80
h200      nvidia-h200-141gb     NVIDIA_H200_141GB     -                     141
b200      nvidia-b200           NVIDIA_B200           -                     180
gb200     nvidia-gb200          NVIDIA_GB200          -                     186
"""


@pytest.mark.parametrize("line", GOOGLE_NAMES.split("\n")[1:-1])
def test_google_has_four_names_for_one_gpu(line: str) -> None:
    short, gce, vertex, quota, gb = line.split()
    each = accelerator(short)
    assert each is accelerator(gce) is accelerator(vertex) is accelerator(gce.upper())
    assert (each.gcp_type, each.vertex_name, each.gce_quota_metric or "-") == (gce, vertex, quota)
    assert each.nominal_memory_gb == float(gb)


@pytest.mark.parametrize("name", ["k80", "nvidia-tesla-k80", "NVIDIA_TESLA_K80", "Tesla K80"])
def test_the_k80_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(UnavailableName) as error:
        accelerator(name)
    assert str(error.value).startswith(f'accelerator "{name}" has reached its end of support (https://')
    assert error.value.nearest == ("nvidia-tesla-t4", "nvidia-l4")


@pytest.mark.parametrize(
    "name",
    ["rtx-4090", "NVIDIA_RTX_4090", "RTX4090", "rtx 3090 ti", "GeForce RTX 2080 Ti", "gtx-1080ti", "rtx5090", "4090",
     "rtx-4080-super", "titan-v", "nvidia-titan-rtx", "gtx-1660"],
)  # fmt: skip
def test_consumer_gpus_are_refused_with_the_nearest(name: str) -> None:
    with pytest.raises(UnavailableName) as error:
        accelerator(name)
    assert str(error.value) == (
        f'accelerator "{name}" is not offered on AWS or Google Cloud; '
        "nearest: nvidia-l4 (24 GB), nvidia-rtx-pro-6000 (96 GB)"
    )


@pytest.mark.parametrize("name", ["rtx-6000", "rtx-pro-600", "l40", "n1-standard-8", "gpu", "", "x" * 100000])
def test_other_unknown_names_are_just_unknown(name: str) -> None:
    with pytest.raises(UnknownName) as error:
        accelerator(name)
    assert type(error.value) is UnknownName
    with pytest.raises(UnknownName):
        machines_for(name, 1)


def test_a_name_like_no_other_gets_the_list_of_all() -> None:
    with pytest.raises(UnknownName) as error:
        accelerator("zzz")
    listed = str(error.value).removeprefix('unknown accelerator "zzz"; known: ').split(", ")
    assert [accelerator(name).name for name in listed] == list(accelerators())


def test_figures_that_nobody_compared_are_named() -> None:
    t4 = accelerator("t4").unverified
    assert "memory_gib" not in t4 and {"memory_bandwidth_gb_s", "cuda_compute_capability"} <= set(t4)
    a4x = machine("gcp", "a4x-highgpu-4g").unverified
    assert "intra_node" in a4x and not {"vcpus", "accelerator_memory_gib_total"} & set(a4x)
