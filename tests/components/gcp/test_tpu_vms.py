"""TPU VMs and queued resources as they are sent to the engine."""

from typing import Any

import pytest
from pydantic import ValidationError

from components.gcp.tpu_vm import node_id
from tests.support import gcp, memory

from . import vm_makers as makers

VM, QUEUE = "tpu/v2Vm:V2Vm", "tpu/v2QueuedResource:V2QueuedResource"


def registered(**values: object) -> memory.Registration:
    return gcp.run(lambda: makers.tpu_vm("vm", **values)).one(VM)


def faults(**values: object) -> str:
    with pytest.raises(ValidationError) as refused:
        makers.tpu_spec(**values)
    return str(refused.value)


def outputs(**values: object) -> dict[str, Any]:
    seen = gcp.run(lambda: makers.tpu_vm("vm", **values))
    return next(told for urn, told in seen.outputs.items() if urn.endswith("TpuVm::vm"))


def test_what_is_sent() -> None:
    sent = registered().inputs
    assert (sent["acceleratorType"], sent["runtimeVersion"]) == ("v5litepod-8", "v2-alpha-tpuv5-lite")
    assert sent["networkConfig"]["enableExternalIps"] is False
    assert sent["serviceAccount"]["email"] == makers.ACCOUNT
    assert sent["metadata"] == {"enable-oslogin": "TRUE", "block-project-ssh-keys": "TRUE"}
    assert sent["labels"] == {}
    assert not {"schedulingConfig", "acceleratorConfig", "name", "dataDisks"} & sent.keys()


def test_the_type_is_always_named() -> None:
    """The provider would make a v2-8."""
    with pytest.raises(ValidationError, match="accelerator_type"):
        makers.TpuVmSpec.model_validate({"zone": "us-central1-a"})
    for kind, topology, runtime in (
        ("v4-8", None, "tpu-ubuntu2204-base"),
        ("v5p-8", None, "v2-alpha-tpuv5"),
        ("v6e-8", None, "v2-alpha-tpuv6e"),
        ("v5p", "2x2x2", "v2-alpha-tpuv5"),
    ):
        zone = {"v4-8": "us-central2-b", "v5p": "us-east5-a"}.get(kind, "us-central1-a")
        sent = registered(accelerator_type=kind, topology=topology, zone=zone).inputs
        assert ("acceleratorType" in sent) != ("acceleratorConfig" in sent)
        assert sent["runtimeVersion"] == runtime
        if topology:
            assert sent["acceleratorConfig"] == {"type": "V5P", "topology": "2x2x2"}


def test_the_names_of_the_product_are_translated() -> None:
    assert registered(accelerator_type="v5e-4").inputs["acceleratorType"] == "v5litepod-4"
    assert [finding.rule for finding in makers.tpu_spec(accelerator_type="v5e-4").findings] == ["gcp.tpu.name"]


@pytest.mark.parametrize(
    "values, says",
    [
        ({"accelerator_type": "tpu7x-8"}, "tpu7x-standard-4t"),
        ({"accelerator_type": "v5litepod-5"}, "v5litepod-4 or v5litepod-8"),
        ({"accelerator_type": "v5p", "topology": "3x3x3"}, "no topology of TPU v5p"),
        ({"architecture": "node"}, "Google has removed"),
        ({"runtime_version": "v2-alpha-tpuv6e"}, "that of TPU v6e"),
        ({"accelerator_type": "v4-16", "zone": "us-central2-b", "runtime_version": "tpu-vm-tf-2.14.0"}, "2.14.0-pod"),
        ({"spot": True, "reserved": True}, "keep one of the two"),
        ({"data_disks": {"d": {"size_gib": 100, "source": "x"}}}, "a size and a source"),
        ({"accelerator_type": "v5litepod-16", "data_disks": {"d": {"size_gib": 100}}}, "v5litepod-16 has 4 hosts"),
        ({"data_disks": {"d": {"size_gib": 100, "type": "pd-ssd"}}}, "takes pd-balanced"),
        ({"metadata": {"startup-script": "x"}}, "use startup_script"),
        ({"labels": {"accel-owner": "me"}}, "the stack's own"),
    ],
)
def test_what_is_refused(values: dict[str, object], says: str) -> None:
    assert says in faults(**values)


def test_a_zone_that_no_list_has_is_a_warning() -> None:
    (found,) = makers.tpu_spec(accelerator_type="v4-8").findings
    assert (found.rule, found.severity, found.field) == ("gcp.tpu.zone", "warn", "zone")
    assert "v4-8 is in us-central2-b" in found.message and "make sure that it is there" in found.fix


def test_an_old_runtime_is_translated() -> None:
    spec = {"accelerator_type": "v4-8", "zone": "us-central2-b", "runtime_version": "tpu-vm-pt-2.1"}
    assert registered(**spec).inputs["runtimeVersion"] == "tpu-ubuntu2204-base"


@pytest.mark.parametrize("how", ["spot", "reserved"])
def test_how_it_is_had(how: str) -> None:
    assert registered(**{how: True}).inputs["schedulingConfig"] == {how: True}


def test_data_disks() -> None:
    source = "projects/p/zones/us-central1-a/disks/corpus"
    disks = {"scratch": {"size_gib": 100}, "corpus": {"source": source, "mode": "read-only"}}
    seen = gcp.run(lambda: makers.tpu_vm("vm", data_disks=disks))
    made = seen.one("compute/disk:Disk")
    assert (made.name, made.inputs["type"], made.inputs["size"]) == ("vm-scratch", "pd-balanced", 100)
    assert seen.one(VM).inputs["dataDisks"] == [
        {"sourceDisk": "vm-scratch-id", "mode": "READ_WRITE"},
        {"sourceDisk": source, "mode": "READ_ONLY"},
    ]
    six = gcp.run(lambda: makers.tpu_vm("vm", accelerator_type="v6e-8", data_disks={"d": {"size_gib": 100}}))
    assert six.one("compute/disk:Disk").inputs["type"] == "hyperdisk-balanced"


def test_outputs() -> None:
    told = outputs(accelerator_type="v5litepod-16", startup_script="#!/bin/sh\ndate\n")
    assert {name: told[name] for name in ("accelerator_type", "topology", "worker_count", "chips")} == {
        "accelerator_type": "v5litepod-16",
        "topology": "4x4",
        "worker_count": 4,
        "chips": 16,
    }
    assert [command.rpartition("=")[2] for command in told["ssh_commands"]] == ["0", "1", "2", "3"]
    assert all("--tunnel-through-iap" in command for command in told["ssh_commands"])


def test_a_queued_resource_says_what_the_provider_can() -> None:
    (node,) = gcp.run(lambda: makers.tpu_queue("queue")).one(QUEUE).inputs["tpu"]["nodeSpecs"]
    assert node["parent"].endswith("/locations/us-central1-a")
    assert node["nodeId"].endswith("-queue")
    assert node["node"]["acceleratorType"] == "v5litepod-16"
    assert node["node"]["runtimeVersion"] == "v2-alpha-tpuv5-lite"


@pytest.mark.parametrize("key", ["spot", "reservation", "slices", "valid_for_s", "startup_script", "service_account"])
def test_a_queued_resource_names_the_way_for_the_rest(key: str) -> None:
    with pytest.raises(ValidationError, match=rf"{key}: .*`accel-jobs submit` to a target of kind tpu-vm"):
        makers.queue_spec(**{key: 1})


@pytest.mark.parametrize(("text", "id"), [("accel-my.stack-v5e", "accel-my-stack-v5e"), ("1.2-Dev", "dev")])
def test_the_id_of_a_tpu_has_no_dots(text: str, id: str) -> None:
    assert node_id(text, 63) == id
