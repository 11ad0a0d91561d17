"""Offers are narrowed by one requirement after the other, and chosen by wishes and rank."""

from typing import Any

import pytest

from accel.diagnostics.collector import Diagnostics
from accel.diagnostics.errors import BadInputs
from jobs.backends import google_machines
from jobs.backends.chooser import Requirement, choose, narrow
from jobs.backends.google_machines import Need, Offer
from tests.jobs.backends import gce_target, google_batch_target, vertex_jobs

SMALL, MIDDLE, LARGE = Offer("small", 2, 4096), Offer("middle", 4, 8192), Offer("large", 8, 8192)


def at_least(vcpus: int) -> Requirement[Offer]:
    return Requirement("cpus", lambda offer: offer.vcpus >= vcpus, lambda left: f"{[each.name for each in left]}")


def test_the_first_requirement_that_rules_all_out_is_told() -> None:
    diagnostics = Diagnostics()
    assert narrow([SMALL, MIDDLE, LARGE], [at_least(4), at_least(9), at_least(99)], diagnostics) == []
    assert diagnostics.errors == ["cpus: ['middle', 'large']"]


def test_a_wish_that_no_offer_meets_is_none() -> None:
    wishes = (lambda offer: offer.vcpus > 99, lambda offer: offer.memory_mib > 5000)
    found = choose([SMALL, LARGE, MIDDLE], [at_least(2)], wishes, lambda offer: offer.vcpus, Diagnostics())
    assert found == MIDDLE


@pytest.mark.parametrize(
    "cpus, memory_mib, errors",
    [
        (8, 8192, []),
        (9, 9000, ["cpus", "memory_mib"]),
        (9, 1, ["cpus"]),
    ],
)
def test_all_that_is_too_much_is_told(cpus: int, memory_mib: int, errors: list[str]) -> None:
    diagnostics = Diagnostics()
    need = Need(None, None, cpus, memory_mib)
    narrow([SMALL, MIDDLE, LARGE], [google_machines.large_enough(need)], diagnostics)
    assert [each.partition(":")[0] for each in diagnostics.errors] == errors


@pytest.mark.parametrize("backend", [gce_target, google_batch_target, vertex_jobs])
def test_what_machines_have_apart_is_refused_with_the_largest(backend: Any) -> None:
    target = backend.make_target(machine_types=["a2-highgpu-1g", "g2-standard-16"])
    with pytest.raises(BadInputs, match=r"cpus: is 16, and a2-highgpu-1g|memory_mib: is 70000, and the largest"):
        backend.make_request(target, accelerator=None, cpus=16, memory_mib=70_000)


@pytest.mark.parametrize("backend", [gce_target, google_batch_target])
def test_a_small_host_of_gpus_is_taken_where_the_target_has_no_larger_one(backend: Any) -> None:
    target = backend.make_target(machine_types=["n1-standard-2"])
    assert "n1-standard-2" in str(backend.make_request(target, accelerator={"type": "t4"}).body)


def test_attached_gpus_are_part_of_an_offers_key_and_its_places() -> None:
    offer = google_machines.n1_offer("n1-standard-8", "t4", 2)
    assert offer and offer.key == "n1-standard-8+nvidia-tesla-t4x2"
    assert "us-central1" in offer.places
    assert google_machines.n1_offer("n2-standard-8", None, 0) is None
