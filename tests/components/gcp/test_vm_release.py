"""What a job's machine may delete: itself, and as little else as Google can tell apart."""

from datetime import UTC, datetime
from typing import Any

import pytest

from jobs.backends.vm.backend import new_record
from jobs.backends.vm.gpu.instances import instance_path
from jobs.backends.vm.state_machine import plan_attempt
from tests.components.gcp import vm_makers as make
from tests.jobs.backends.gce_target import make_request, make_target
from tests.support import memory
from tests.support.gcp import PROJECT
from tests.support.google_iam import may

NOW = datetime(2026, 11, 23, tzinfo=UTC)
ZONE = f"projects/{PROJECT}/zones/us-central1-a"
TPU = f"projects/{PROJECT}/locations/us-central1-a/nodes/theirs"
DELETE, GROUPS, TPUS = "compute.instances.delete", "compute.instanceGroupManagers.delete", "tpu.nodes.delete"


def given(**values: Any) -> list[tuple[Any, Any]]:
    """Every binding to a role of the ground's own, with that role."""
    seen = memory.run(lambda: make.vm_jobs("jobs", **values))
    roles = {one.name: one.inputs for one in seen.of("projects/iAMCustomRole:IAMCustomRole")}
    members = seen.of("projects/iAMMember:IAMMember")
    return [(one.inputs, roles[one.name]) for one in members if one.name in roles]


def prefix() -> str:
    made: list[str] = []
    memory.run(lambda: make.vm_jobs("jobs").machine_prefix.apply(made.append))
    return made[0]


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_job_s_machines_are_what_the_condition_names(nodes: int) -> None:
    target = make_target(machine_prefix=prefix(), project=PROJECT)
    fields: dict[str, Any] = {"accelerator": {"type": "a100-80gb", "count": 8}} if nodes > 1 else {}
    first = new_record(make_request(target, nodes=nodes, name="x" * 60, **fields))
    for record in (first, plan_attempt(first, "us-central1-b", NOW)):
        for number in range(nodes) if nodes > 1 else [None]:
            name = instance_path(record, record.last, number)
            assert may(given(kinds=["gce"]), DELETE, name), name
            assert len(name.rpartition("/")[2]) <= 63


@pytest.mark.parametrize("kinds", [["gce"], ["tpu-vm"], ["gce", "tpu-vm"]])
def test_no_other_machine_is_deleted(kinds: list[str]) -> None:
    bindings = given(kinds=kinds)
    for name in (f"{ZONE}/instances/web", f"{ZONE}/instances/train-0123456789ab", f"{ZONE}/instances/x{prefix()}a"):
        assert not may(bindings, DELETE, name), name
    template = f"projects/{PROJECT}/global/instanceTemplates/theirs"
    assert not may(bindings, "compute.instanceTemplates.delete", template)


def test_what_no_condition_can_narrow_is_given_where_it_is_needed_alone() -> None:
    group = f"{ZONE}/instanceGroupManagers/theirs"
    assert not may(given(kinds=["tpu-vm"]), GROUPS, group) and may(given(kinds=["gce"]), GROUPS, group)
    assert not may(given(kinds=["gce"]), TPUS, TPU) and may(given(kinds=["tpu-vm"]), TPUS, TPU)
    assert given(kinds=[]) == [] and given(release=False) == []


def test_the_mark_is_no_part_of_what_a_key_is_for() -> None:
    """A job that was sent before its stack had one is the same job."""
    plain, marked = (new_record(make_request(make_target(machine_prefix=each))) for each in ("", "j0a1b2-"))
    assert plain.spec_hash == marked.spec_hash and plain.name == marked.name
    assert (plain.last.name, marked.last.name) == ("digits-" + plain.key[:12], "j0a1b2-digits-" + plain.key[:12])
