"""Cost and quota of Google machines that stay: VMs, groups, TPUs, reservations, commitments, Vertex AI's own."""

from pathlib import Path
from typing import Any

import pytest

from accel.catalog.disk_prices import disk_price
from accel.catalog.gcp_commitments import commitment_price
from accel.catalog.node_prices import find_price, with_gpus
from accel.catalog.prices import Price
from accel.cost import HOURS_A_MONTH, total
from stacks.environment.config import Environment, load_environment
from stacks.operations.cost.estimate import SCENARIOS, Estimate, estimate
from stacks.operations.cost.lines import BY_USE, FREE, PRICED, unlisted_types
from stacks.operations.quota.judgement import google_pools
from stacks.operations.report.document import VMS

from .test_gcp_capacity import KEPT, OUT_OF, PAID, VM, ZONE
from .test_gcp_capacity import environment as section

H100 = {"zone": "us-central1-a", "machine_type": "a3-highgpu-8g"}
REGION = "us-central1"
FUTURE = {**KEPT, "start_time": "2099-01-31T08:00:00Z", "end_time": "2099-03-31T08:00:00Z"}
BOUGHT = {"planning_status": "SUBMITTED", "i_understand_this_is_a_purchase": True}


def loaded(**vms: Any) -> Environment:
    return load_environment(section(**vms))


def priced(**vms: Any) -> Estimate:
    return estimate("it", loaded(**vms), 0.3)


def price(machine: str) -> Price:
    found = find_price("gcp", REGION, machine)
    assert found.on_demand, machine
    return found


def totals(found: Estimate) -> list[float | None]:
    """Of the machines, without their disks."""
    lines = [line.envelope for line in found.lines if not line.what.startswith("disks, ")]
    return [total([getattr(each, name) for each in lines]).usd for name in SCENARIOS]


def always(usd: float) -> Any:
    """The same, whatever runs."""
    return pytest.approx([usd] * 3, abs=1e-3)


def test_four_machines_with_eight_gpus_cost_what_four_cost() -> None:
    spec = {**H100, "capacity": "spot"}
    found = priced(gpus={f"vm-{index}": spec for index in range(4)})
    one = price("a3-highgpu-8g")
    assert one.spot and one.on_demand
    assert totals(found) == pytest.approx([4 * one.spot, 4 * one.spot, 4 * one.on_demand], abs=1e-3)
    assert not found.totals["worst"].at_least and found.unknown == ()


def test_a_group_costs_its_size_and_an_empty_one_nothing() -> None:
    one = price("a2-highgpu-8g").on_demand
    assert one
    assert totals(priced(gpu_groups={"many": {**VM, "size": 3}})) == always(3 * one)
    assert totals(priced(gpu_groups={"none": {**VM, "size": 0}})) == always(0)


def test_attached_gpus_are_priced_beside_their_host() -> None:
    spec = {"zone": ZONE, "machine_type": "n1-standard-8", "accelerator": "nvidia-tesla-t4", "accelerator_count": 2}
    one = with_gpus(REGION, "n1-standard-8", "nvidia-tesla-t4", 2).on_demand
    assert one
    assert totals(priced(gpus={"t4": spec})) == always(one)


@pytest.mark.parametrize(
    ("kind", "spec", "slices"),
    [
        ("tpus", {"zone": ZONE, "accelerator_type": "v5litepod-8"}, 1),
        ("tpu_queues", {"zone": ZONE, "accelerator_type": "v5litepod-8"}, 1),
        ("queued_tpus", {"zone": ZONE, "accelerator_type": "v5litepod-8", "slices": 3}, 3),
    ],
)
def test_slices(kind: str, spec: dict[str, Any], slices: int) -> None:
    one = price("v5litepod-8").on_demand
    assert one
    found = priced(jobs={}, **{kind: {"it": spec}})
    assert totals(found) == always(slices * one)
    (need,) = google_pools(loaded(jobs={}, **{kind: {"it": spec}}).gcp)  # pyright: ignore[reportArgumentType]
    assert (need.service, need.region, need.count * need.machines) == ("tpu", ZONE, 8 * slices)


def test_a_reservation_is_paid_once_whether_it_is_used_or_not() -> None:
    one = price("a2-highgpu-8g").on_demand
    assert one
    used = priced(reservations={"a100": KEPT}, gpus={"one": OUT_OF})
    assert totals(used) == totals(priced(reservations={"a100": KEPT})) == always(2 * one)
    (line,) = [line for line in used.lines if line.component == "gcp.vms.gpus.one"]
    assert line.notes == ("paid with gcp.vms.reservations.a100",)


def test_a_reservation_of_another_project_leaves_the_machine_to_be_paid() -> None:
    one = price("a2-highgpu-8g").on_demand
    assert one
    spec = {**OUT_OF, "reservation": {"name": "a100", "project": "theirs-4821"}}
    assert totals(priced(gpus={"one": spec})) == always(one)


def test_future_reservations_cost_once_they_are_bought() -> None:
    one = price("a2-highgpu-8g").on_demand
    assert one
    assert totals(priced(future_reservations={"later": FUTURE})) == always(0)
    found = priced(future_reservations={"later": {**FUTURE, **BOUGHT}})
    assert totals(found) == always(2 * one)
    assert "from 2099-01-31T08:00:00Z to 2099-03-31T08:00:00Z alone" in found.lines[0].notes


def test_a_commitment_costs_its_term_and_pays_for_machines_of_its_kind() -> None:
    fee = commitment_price("a2-highgpu-8g", REGION, "TWELVE_MONTH")
    one = price("a2-highgpu-8g").on_demand
    assert fee and one
    both = {"reservations": {"a100": KEPT}, "commitments": {"year": PAID}}
    assert totals(priced(**both)) == always(2 * fee.committed)
    more = priced(**both, gpus={"beside": VM, "spot": {**VM, "capacity": "spot"}})
    lines = {line.component: line for line in more.lines}
    assert lines["gcp.vms.reservations.a100"].notes == ("2 of 2 paid with gcp.vms.commitments",)
    assert lines["gcp.vms.gpus.beside"].envelope.worst.usd == pytest.approx(one), "the commitment is used up"
    assert lines["gcp.vms.gpus.spot"].envelope.floor.usd, "Spot gets no discount"


def test_a_commitment_without_a_known_price_is_named() -> None:
    spec = {
        **{key: PAID[key] for key in ("region", "plan", "i_understand_this_is_a_purchase")},
        "type": "GENERAL_PURPOSE",
        "resources": {"vcpus": 8, "memory_mib": 32768},
    }
    found = priced(commitments={"cpus": spec})
    assert any(text.startswith("gcp.vms.commitments.cpus: no price") for text in found.unknown)
    assert found.totals["floor"].at_least and totals(found) == [None] * 3


def test_a_machine_without_a_price_makes_the_total_at_least() -> None:
    b200 = {"zone": "us-central1-b", "machine_type": "a4-highgpu-8g", "capacity": "spot"}
    assert find_price("gcp", REGION, "a4-highgpu-8g").on_demand is None, "seen on Spot alone"
    found = priced(gpus={"one": VM, "new": b200})
    assert found.totals["worst"].at_least and found.totals["worst"].usd
    assert any(text.startswith("gcp.vms.gpus.new: ") for text in found.unknown)


def vertex(**pool: Any) -> dict[str, Any]:
    values = section()
    values["gcp"]["vertex"] = {"persistent_resources": {"warm": {"pools": {"a": pool}}}}
    del values["gcp"]["vms"]
    return values


def test_machines_that_vertex_keeps() -> None:
    one = price("a2-highgpu-1g").on_demand
    assert one
    ranged = {"machine_type": "a2-highgpu-1g", "replicas": 2, "min_replicas": 2, "max_replicas": 10}
    values = vertex(**ranged)
    found = estimate("it", load_environment(values), 0.3)
    assert totals(found) == pytest.approx([2 * one, 3 * one, 10 * one], abs=1e-3)
    assert all(found.totals[name].at_least for name in SCENARIOS), "Vertex AI's own charge is not known"
    (need,) = google_pools(load_environment(values).gcp)  # pyright: ignore[reportArgumentType]
    assert (need.service, need.accelerator, need.count * need.machines) == ("aiplatform", "nvidia-tesla-a100", 10)


def test_quotas_count_what_stays() -> None:
    found = loaded(
        reservations={"a100": KEPT},
        gpus={"inside": OUT_OF, "spot": {**H100, "capacity": "spot"}},
        gpu_groups={"many": {**VM, "size": 3}},
    ).gcp
    assert found
    counted = {need.name: (need.accelerator, need.count * need.machines, need.spot) for need in google_pools(found)}
    assert counted == {
        "vms.reservations.a100": ("nvidia-tesla-a100", 16, False),
        "vms.gpus.spot": ("nvidia-h100-80gb", 8, True),
        "vms.gpu_groups.many": ("nvidia-tesla-a100", 24, False),
    }


def test_every_component_is_priced_or_has_a_reason() -> None:
    tokens = set((Path(__file__).parents[1] / "golden" / "tokens.txt").read_text().split())
    assert unlisted_types(tokens) == []
    listed = [*PRICED, *BY_USE, *FREE]
    assert sorted(listed) == sorted(tokens), "each once, and none that is gone"
    assert set(VMS) <= PRICED


def test_what_nothing_prices_is_named_and_makes_the_total_at_least() -> None:
    environment = loaded(gpus={"one": VM})
    plain = estimate("it", environment, 0.3, ["accel:gcp:GpuVm", "accel:gcp:VmAccount"])
    assert not plain.totals["floor"].at_least
    beside = estimate("it", environment, 0.3, ["accel:gcp:GpuVm", "gcp:sql/databaseInstance:DatabaseInstance"])
    assert "gcp:sql/databaseInstance:DatabaseInstance: it has no price here" in beside.not_included
    assert all(beside.totals[name].at_least for name in SCENARIOS)


def test_disks_have_lines_of_their_own() -> None:
    gib = disk_price(REGION, "pd-balanced")
    local = disk_price(REGION, "local-ssd")
    assert gib and local
    n1 = {"zone": ZONE, "machine_type": "n1-standard-8", "accelerator": "nvidia-tesla-t4", "count": 2, "local_ssds": 2}
    found = priced(gpu_groups={"many": {**VM, "size": 3}}, reservations={"t4": n1})
    disks = {line.component: line.envelope.floor.usd for line in found.lines if line.what.startswith("disks, ")}
    assert disks == pytest.approx({
        "gcp.vms.gpu_groups.many.disk": 3 * 200 * gib.usd / HOURS_A_MONTH,
        "gcp.vms.reservations.t4.disk": 2 * 2 * 375 * local.usd / HOURS_A_MONTH,
    })  # fmt: skip


def test_a_disk_without_a_price_is_named() -> None:
    b200 = {"zone": "us-central1-b", "machine_type": "a4-highgpu-8g", "capacity": "spot"}
    found = priced(gpus={"new": b200})
    assert any("gcp.vms.gpus.new.disk: no price of hyperdisk-balanced" in text for text in found.unknown)
    assert found.totals["floor"].at_least
