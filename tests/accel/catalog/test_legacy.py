"""Legacy machine types and the sizes of N1."""

import pytest

from accel.catalog import UnknownName, accelerators, machine, machines
from accel.catalog.gpu_attachments import gpu_attachments, n1
from accel.catalog.legacy import LegacyMachine, legacy_machine, legacy_machines
from accel.catalog.machines import Machine

N1_TYPES = [each for each in machines("gcp") if each.family == "n1"]


@pytest.mark.parametrize(
    "name, had, machine_type, accelerator, count",
    [
        ("standard", ("", 0), "n1-standard-4", "", 0),
        ("large_model", ("", 0), "n1-highmem-8", "", 0),
        ("complex_model_s", ("", 0), "n1-standard-8", "", 0),
        ("complex_model_m", ("", 0), "n1-highcpu-16", "", 0),
        ("complex_model_l", ("", 0), "n1-highcpu-32", "", 0),
        ("standard_gpu", ("nvidia-tesla-k80", 1), "n1-standard-4", "nvidia-tesla-t4", 1),
        ("complex_model_m_gpu", ("nvidia-tesla-k80", 4), "n1-standard-16", "nvidia-tesla-t4", 4),
        ("complex_model_l_gpu", ("nvidia-tesla-k80", 8), "", "", 0),
        ("standard_p100", ("nvidia-tesla-p100", 1), "n1-standard-4", "nvidia-tesla-p100", 1),
        ("complex_model_m_p100", ("nvidia-tesla-p100", 4), "n1-standard-16", "nvidia-tesla-p100", 4),
        ("standard_v100", ("nvidia-tesla-v100", 1), "n1-standard-4", "nvidia-tesla-v100", 1),
        ("large_model_v100", ("nvidia-tesla-v100", 1), "n1-highmem-8", "nvidia-tesla-v100", 1),
        ("complex_model_m_v100", ("nvidia-tesla-v100", 4), "n1-standard-16", "nvidia-tesla-v100", 4),
        ("complex_model_l_v100", ("nvidia-tesla-v100", 8), "n1-standard-32", "nvidia-tesla-v100", 8),
        ("cloud_tpu", ("", 0), "", "", 0),
    ],
)
def test_what_replaces_a_legacy_type(
    name: str, had: tuple[str, int], machine_type: str, accelerator: str, count: int
) -> None:
    got = legacy_machine(name)
    assert (got.legacy_accelerator, got.legacy_count) == had
    assert (got.machine, got.accelerator, got.count) == (machine_type, accelerator, count)


@pytest.mark.parametrize(
    "name, base, vcpus, gb",
    [
        ("standard_gpu", "standard", 4, 15),
        ("complex_model_m_gpu", "complex_model_m", 16, 14.4),
        ("complex_model_l_gpu", "complex_model_l", 32, 28.8),
        ("standard_p100", "standard", 4, 15),
        ("complex_model_m_p100", "complex_model_m", 16, 14.4),
        ("standard_v100", "standard", 4, 15),
        ("large_model_v100", "large_model", 8, 52),
        ("complex_model_m_v100", "complex_model_m", 16, 14.4),
        ("complex_model_l_v100", "complex_model_l", 32, 28.8),
    ],
)
def test_the_host_of_a_legacy_type(name: str, base: str, vcpus: int, gb: float) -> None:
    got = legacy_machine(name)
    assert (got.base_type, got.base_vcpus, got.base_memory_gb) == (base, vcpus, gb)
    assert (legacy_machine(base).base_vcpus, legacy_machine(base).base_memory_gb) == (vcpus, gb)


@pytest.mark.parametrize("each", legacy_machines().values(), ids=lambda each: each.name)
def test_every_row_holds_together(each: LegacyMachine) -> None:
    assert bool(each.machine) != bool(each.decision)
    assert bool(each.accelerator) == bool(each.count)
    assert each.source.startswith("https://")
    assert each.size_confidence == "low"
    if each.accelerator:
        assert each.accelerator in accelerators()
        assert each.count in gpu_attachments()[each.accelerator]
    if each.machine:
        size = n1(each.machine)
        assert size is not None
        assert each.base_vcpus is not None and size.vcpus >= each.base_vcpus
        assert each.base_memory_gb is not None and size.memory_gib >= each.base_memory_gb


def test_a_legacy_type_that_does_not_exist() -> None:
    with pytest.raises(UnknownName, match="complex_model_m_gpu"):
        legacy_machine("complex_model_m_gpus")


@pytest.mark.parametrize("known", N1_TYPES, ids=lambda each: each.name)
def test_sizes_of_n1_are_those_of_the_catalogue(known: Machine) -> None:
    size = n1(known.name)
    assert size is not None
    assert (size.vcpus, size.memory_gib * 1024) == (known.vcpus, known.memory_mib)


@pytest.mark.parametrize(
    "name, vcpus, memory_gib",
    [
        ("n1-highcpu-16", 16, 14.4),
        ("n1-highcpu-32", 32, 28.8),
        ("custom-6-20480", 6, 20),
        ("n1-custom-2-2048-ext", 2, 2),
    ],
)
def test_sizes_that_the_catalogue_has_no_row_for(name: str, vcpus: int, memory_gib: float) -> None:
    size = n1(name)
    assert size is not None
    assert (size.vcpus, size.memory_gib) == (vcpus, memory_gib)


@pytest.mark.parametrize(
    "name", ["", "n1-standard-3", "n1-highmem-1", "n2-standard-4", "custom-0-1", "custom-6", "n1-"]
)
def test_what_is_no_n1(name: str) -> None:
    assert n1(name) is None


def test_attached_gpus() -> None:
    assert {name: tuple(counts) for name, counts in gpu_attachments().items()} == {
        "nvidia-tesla-v100": (1, 2, 4, 8),
        "nvidia-tesla-t4": (1, 2, 4),
        "nvidia-tesla-p4": (1, 2, 4),
        "nvidia-tesla-p100": (1, 2, 4),
    }
    for counts in gpu_attachments().values():
        for each in counts.values():
            assert each.vcpus_min <= each.vcpus_max
            assert each.memory_gib_min <= each.memory_gib_max


def test_a_bundled_machine_is_no_attached_one() -> None:
    assert machine("gcp", "g2-standard-4").accelerator not in gpu_attachments()
