"""What jobs cost on Google Batch and Vertex AI, against the prices of the catalogue."""

from typing import Any

import pytest

from accel.catalog.node_prices import find_price, with_gpus
from jobs.client import cost
from jobs.client.cost_parts import JobCost
from jobs.model.job import Job

from .backends import google_batch_target, vertex_jobs

REGION = "us-central1"
TARGETS = {"batch": google_batch_target.make_target(), "vertex": vertex_jobs.make_target()}


def priced(on: str, **fields: Any) -> JobCost:
    values = {"name": "one", "image": "us-docker.pkg.dev/acme/ml/train:1", "command": ["true"], **fields}
    return cost.of(Job(**values), on, TARGETS[on])


def hour(name: str) -> float:
    found = find_price("gcp", REGION, name).on_demand
    assert found
    return found


L4 = {"accelerator": {"type": "l4", "count": 1}, "timeout_s": 3600}


@pytest.mark.parametrize("on", TARGETS)
def test_a_machine_with_its_gpus_inside(on: str) -> None:
    found = priced(on, **L4, retries=0, lost_retries=0)
    (environment,) = found.environments
    assert (environment.name, environment.capacity) == (REGION, "on-demand")
    assert environment.rates[0].machine == "g2-standard-4"
    assert environment.most == found.worst == hour("g2-standard-4")


@pytest.mark.parametrize("on", TARGETS)
def test_gpus_that_are_attached_have_prices_of_their_own(on: str) -> None:
    found = priced(on, accelerator={"type": "nvidia-tesla-t4", "count": 2}, timeout_s="2h", retries=0, lost_retries=0)
    (rate,) = found.environments[0].rates
    machine, _, gpus = rate.machine.partition("+")
    expected = with_gpus(REGION, machine, "nvidia-tesla-t4", 2).on_demand
    assert gpus == "nvidia-tesla-t4x2"
    assert expected and expected > hour(machine) and rate.on_demand == expected
    assert found.worst == pytest.approx(2 * expected)


def test_every_task_and_every_attempt_is_counted() -> None:
    found = priced("batch", **L4, tasks=10, parallelism=2, retries=2, lost_retries=0)
    assert (found.tasks, found.attempts) == (10, 3)
    assert found.worst == pytest.approx(30 * hour("g2-standard-4"))


def test_tasks_that_share_a_vm_share_its_price() -> None:
    found = priced("batch", accelerator={"type": "l4", "count": 1}, tasks=9, timeout_s="1h",
                   retries=0, lost_retries=0, google_batch={"tasks_per_vm": 2})  # fmt: skip
    assert found.tasks == 5 and found.environments[0].rates[0].machine == "g2-standard-24"


def test_spot_costs_what_spot_costs() -> None:
    found = priced("batch", **L4, spot=True)
    assert found.environments[0].capacity == "spot"
    assert found.environments[0].range("spot") == (find_price("gcp", REGION, "g2-standard-4").spot,) * 2


def test_all_worker_pools_are_counted() -> None:
    pools = {"parameter_servers": {"replicas": 2, "machine_type": "n1-highmem-8"}}
    found = priced("vertex", **L4, nodes=3, vertex=pools, retries=0, lost_retries=0)
    assert found.worst == pytest.approx(3 * hour("g2-standard-4") + 2 * hour("n1-highmem-8"))
    assert any("own charge" in note for note in found.notes)


def test_machines_that_are_kept_are_paid_anyway() -> None:
    found = priced("vertex", **L4, vertex={"persistent_resource": "kept"})
    assert any("persistent resource" in note for note in found.notes)


def test_without_a_timeout_nothing_bounds_it() -> None:
    found = priced("vertex", accelerator={"type": "l4", "count": 1})
    assert found.worst is None and any(note.startswith("unbounded") for note in found.notes)
