"""Vertex AI's own lists agree with the rest of the catalogue."""

import pytest

from accel.catalog import vertex
from accel.catalog.gpu_attachments import vertex_counts
from accel.catalog.machines import machine
from accel.catalog.tpu import tpu_pool
from accel.rules.gcp import machines

# As the page of 2026 has them: by machine type, numbers of P4, P100, T4 and V100.
PUBLISHED = {
    "n1-standard-4": ((1, 2, 4), (1, 2, 4), (1, 2, 4), (1, 2, 4, 8)),
    "n1-standard-16": ((1, 2, 4), (1, 2, 4), (1, 2, 4), (2, 4, 8)),
    "n1-standard-32": ((2, 4), (2, 4), (2, 4), (4, 8)),
    "n1-standard-64": ((4,), (), (4,), (8,)),
    "n1-standard-96": ((4,), (), (4,), (8,)),
    "n1-highmem-2": ((1, 2, 4), (1, 2, 4), (1, 2, 4), (1, 2, 4, 8)),
    "n1-highmem-64": ((4,), (), (4,), (8,)),
    "n1-highcpu-16": ((1, 2, 4), (1, 2, 4), (1, 2, 4), (2, 4, 8)),
    "n1-highcpu-64": ((4,), (4,), (4,), (8,)),
    "n1-highcpu-96": ((4,), (), (4,), (8,)),
}
GPUS = ("nvidia-tesla-p4", "nvidia-tesla-p100", "nvidia-tesla-t4", "nvidia-tesla-v100")


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_numbers_of_gpus(name: str) -> None:
    found = [vertex_counts(name, gpu) for gpu in GPUS]
    assert tuple(each and each.values for each in found) == PUBLISHED[name]
    assert not any(each and each.derived for each in found)


def test_every_gpu_machine_has_gpus_that_vertex_names() -> None:
    names = [name for name, kind in vertex.machine_types().items() if kind == "gpu"]
    assert len(names) == 29
    for name in names:
        gpu = machine("gcp", name).accelerator
        assert gpu in vertex.accelerator_names(), name
        assert machines.machine(name, vertex.accelerator_names()[gpu]) == []


@pytest.mark.parametrize("name", vertex.TOPOLOGIES)
def test_topologies_are_made_of_their_machine(name: str) -> None:
    assert vertex.machine_types()[name] == "tpu"
    for topology in vertex.TOPOLOGIES[name]:
        assert tpu_pool(name, topology).topology == topology


def test_an_image_is_available_for_longer_than_it_is_patched() -> None:
    assert len(vertex.images()) == 91
    for image in vertex.images().values():
        assert image.patched_until < image.available_until, image
        assert image.device in ("cpu", "gpu", "tpu"), image


@pytest.mark.parametrize(
    "region, place", [("us-west1", "us"), ("europe-west4", "europe"), ("australia-southeast1", "asia")]
)
def test_the_nearest_registry(region: str, place: str) -> None:
    assert vertex.place(region) == place
