"""GPU VMs and groups of them as they are sent to the engine."""

from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from accel.catalog import machines
from accel.catalog.gcp_images import CURRENT, families
from tests.support import gcp, memory

from . import vm_makers as makers

VM, TEMPLATE = "compute/instance:Instance", "compute/instanceTemplate:InstanceTemplate"
GROUP = "compute/instanceGroupManager:InstanceGroupManager"
ARM = "ubuntu-accelerator-2404-arm64-with-nvidia-580"
OLD = "pytorch-2-7-cu128-ubuntu-2204-nvidia-570"


def registered(**values: object) -> memory.Registration:
    return gcp.run(lambda: makers.gpu_vm("vm", **values)).one(VM)


def faults(**values: object) -> str:
    with pytest.raises(ValidationError) as refused:
        makers.gpu_spec(**values)
    return str(refused.value)


def rules(**values: object) -> list[str]:
    return [finding.rule for finding in makers.gpu_spec(**values).findings]


def test_the_guides_vm() -> None:
    sent = registered(accelerator="nvidia-tesla-a100", accelerator_count=4, image_family="pytorch-latest-gpu").inputs
    assert sent["machineType"] == "a2-highgpu-4g"
    assert "guestAccelerators" not in sent
    assert sent["bootDisk"]["initializeParams"] == {
        "image": f"projects/deeplearning-platform-release/global/images/family/{CURRENT}",
        "size": 200,
        "type": "pd-balanced",
    }
    assert sent["scheduling"] == {
        "onHostMaintenance": "TERMINATE",
        "automaticRestart": True,
        "preemptible": False,
        "provisioningModel": "STANDARD",
    }
    assert sent["metadata"]["install-nvidia-driver"] == "True"
    assert sent["metadata"]["enable-oslogin"] == "TRUE"
    assert "accessConfigs" not in sent["networkInterfaces"][0]
    assert sent["serviceAccount"]["email"] == makers.ACCOUNT


@pytest.mark.parametrize("machine", [each.name for each in machines("gcp") if each.kind == "accelerator"])
def test_every_gpu_machine(machine: str) -> None:
    arm = machine.startswith("a4x")
    image = {"image_family": ARM, "image_project": "ubuntu-os-accelerator-images"} if arm else {}
    spec: dict[str, object] = {"machine_type": machine, "capacity": "spot", **image}
    built = makers.gpu_spec(**spec)
    assert built.gpus >= 1
    assert built.accelerator_type
    assert "guestAccelerators" not in registered(**spec).inputs


@pytest.mark.parametrize(
    "accelerator, count, machine",
    [("l4", 1, "g2-standard-4"), ("l4", 8, "g2-standard-96"), ("nvidia-tesla-a100", 8, "a2-highgpu-8g")],
)
def test_the_machine_of_an_accelerator(accelerator: str, count: int, machine: str) -> None:
    sent = registered(machine_type=None, accelerator=accelerator, accelerator_count=count).inputs
    assert sent["machineType"] == machine


def test_gpus_on_n1() -> None:
    sent = registered(machine_type="n1-standard-8", accelerator="t4", accelerator_count=2).inputs
    assert sent["guestAccelerators"] == [{"type": "nvidia-tesla-t4", "count": 2}]


@pytest.mark.parametrize(
    "values, says",
    [
        ({"accelerator_count": 2}, "a2-highgpu-4g has 4 nvidia-tesla-a100; write 4, or use a2-highgpu-2g"),
        ({"machine_type": None}, "is missing"),
        ({"machine_type": None, "accelerator": "t4"}, "name one such as n1-standard-8"),
        ({"machine_type": "n1-standard-8"}, "no GPU by itself"),
        ({"machine_type": "e2-standard-4"}, "which has no GPU"),
        ({"machine_type": "ct5lp-hightpu-4t"}, "which has no GPU"),
        ({"on_host_maintenance": "MIGRATE"}, "which Google refuses with GPUs"),
        ({"capacity": "spot", "automatic_restart": True}, "is true, and capacity is spot"),
        ({"capacity": "spot", "reservation": {"name": "r"}}, "capacity: reservation"),
        ({"capacity": "reservation"}, "is missing beside reservation"),
        ({"reservation_bound": True}, "is true, and capacity is on-demand"),
        ({"capacity": "flex-start"}, "is missing, and capacity is flex-start"),
        ({"termination_action": "DELETE"}, "nothing ends the VM by itself"),
        ({"preemption_notice_s": 120}, "Spot VMs alone are preempted"),
        ({"machine_type": "a3-highgpu-1g", "zone": "us-central1-a"}, "Spot or flex-start only"),
        ({"machine_type": "a4x-highgpu-4g"}, "is an Arm machine"),
        ({"machine_type": "a4-highgpu-8g", "disk": {"type": "pd-ssd"}}, "takes hyperdisk-balanced"),
    ],
)
def test_what_is_refused(values: dict[str, object], says: str) -> None:
    assert says in faults(**values)


def test_spot() -> None:
    sent = registered(capacity="spot", termination_action="DELETE", preemption_notice_s=120).inputs["scheduling"]
    assert sent == {
        "onHostMaintenance": "TERMINATE",
        "automaticRestart": False,
        "preemptible": True,
        "provisioningModel": "SPOT",
        "instanceTerminationAction": "DELETE",
        "preemptionNoticeDuration": {"seconds": 120},
    }
    assert registered(capacity="spot").inputs["scheduling"]["instanceTerminationAction"] == "STOP"


def test_flex_start() -> None:
    sent = registered(capacity="flex-start", max_run_duration_s=86_400).inputs
    assert sent["scheduling"] == {
        "onHostMaintenance": "TERMINATE",
        "automaticRestart": False,
        "preemptible": False,
        "provisioningModel": "FLEX_START",
        "instanceTerminationAction": "DELETE",
        "maxRunDuration": {"seconds": 86_400},
    }
    assert sent["reservationAffinity"] == {"type": "NO_RESERVATION"}


def test_a_reservation() -> None:
    sent = registered(capacity="reservation", reservation={"name": "r", "project": "other"}, reservation_bound=True)
    assert sent.inputs["reservationAffinity"] == {
        "type": "SPECIFIC_RESERVATION",
        "specificReservation": {
            "key": "compute.googleapis.com/reservation-name",
            "values": ["projects/other/reservations/r"],
        },
    }
    assert sent.inputs["scheduling"]["provisioningModel"] == "RESERVATION_BOUND"


def test_local_ssds_are_given_up_where_a_vm_stops_by_itself() -> None:
    built_in: dict[str, Any] = {"machine_type": "a3-highgpu-8g", "max_run_duration_s": 3600}
    assert registered(**built_in).inputs["scheduling"]["onInstanceStopAction"] == {"discardLocalSsd": True}
    assert "onInstanceStopAction" not in registered(max_run_duration_s=3600).inputs["scheduling"]


@pytest.mark.parametrize(
    "project, family, install, rule, metadata, script",
    [
        ("deeplearning-platform-release", CURRENT, True, [], "True", False),
        ("deeplearning-platform-release", CURRENT, False, [], None, False),
        ("ubuntu-os-cloud", "ubuntu-2404-lts-amd64", True, ["gcp.image.driver"], None, True),
        ("ubuntu-os-cloud", "ubuntu-2404-lts-amd64", False, [], None, False),
        ("my-project-1", "mine", True, ["gcp.image.driver"], None, False),
    ],
)
def test_who_brings_the_driver(
    project: str, family: str, install: bool, rule: list[str], metadata: str | None, script: bool
) -> None:
    values = {"image_project": project, "image_family": family, "install_driver": install}
    assert rules(**values) == rule
    sent = registered(**values).inputs["metadata"]
    assert sent.get("install-nvidia-driver") == metadata
    assert ("cuda_installer.pyz" in sent["startup-script"]) == script


def test_images_age(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for day in (date(2026, 4, 13), date(2026, 4, 14), date(2027, 4, 13)):
        monkeypatch.setattr("components.gcp.gpu_vm_spec.today", lambda day=day: day)
        found[day.isoformat()] = rules(image_family=OLD)
    assert found == {
        "2026-04-13": [],
        "2026-04-14": ["gcp.image.patched"],
        "2027-04-13": ["gcp.image.patched"],
    }
    monkeypatch.setattr("components.gcp.gpu_vm_spec.today", lambda: date(2027, 4, 14))
    assert "available until 2027-04-13" in faults(image_family=OLD)


def test_the_default_image_is_in_the_table() -> None:
    assert CURRENT in families()


def test_a_group() -> None:
    seen = gcp.run(lambda: makers.gpu_vm_group("group", compact_placement=True, size=3))
    template, group = seen.one(TEMPLATE).inputs, seen.one(GROUP).inputs
    policy = seen.one("compute/resourcePolicy:ResourcePolicy")
    assert policy.inputs["groupPlacementPolicy"] == {"collocation": "COLLOCATED"}
    assert policy.inputs["region"] == "us-central1"
    assert template["resourcePolicies"] == "group-placement-id"
    assert template["scheduling"]["onHostMaintenance"] == "TERMINATE"
    (disk,) = template["disks"]
    assert (disk["boot"], disk["autoDelete"], disk["diskSizeGb"]) == (True, True, 200)
    assert (group["targetSize"], group["updatePolicy"]["maxSurgeFixed"]) == (3, 0)


def test_what_a_group_cannot_be() -> None:
    for values, says in (
        ({"capacity": "flex-start", "max_run_duration_s": 3600}, "is flex-start, in a group"),
        ({"machine_type": "n1-standard-8", "accelerator": "t4", "compact_placement": True}, "cannot be placed so"),
    ):
        with pytest.raises(ValidationError, match=says):
            makers.group_spec(**values)
