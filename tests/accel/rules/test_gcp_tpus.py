"""Names, hosts and software versions of TPUs."""

import pytest

from accel.catalog import accelerators, zones
from accel.catalog.tpu import slice_names, tpu
from accel.catalog.tpu_generations import GENERATIONS, Generation
from accel.rules import Finding
from accel.rules.gcp import tpu as gcp_tpu
from accel.rules.gcp import tpu_runtimes
from accel.rules.gcp import zones as gcp_zones
from accel.rules.vertex import tpus


def ids(findings: list[Finding]) -> set[str]:
    return {finding.rule for finding in findings}


@pytest.mark.parametrize("generation", GENERATIONS, ids=lambda each: each.prefix)
def test_every_slice_is_taken_where_it_can_be_had(generation: Generation) -> None:
    for name in slice_names(generation):
        refused = {"gcp.tpu.gke-only"} if generation.api == "gke-only" else set()
        assert ids(gcp_tpu.accelerator_type(name)) - {"gcp.tpu.not-published"} == refused
        assert ids(gcp_tpu.resolve_slice(name, api="gke")[1]) <= {"gcp.tpu.not-published"}
        if generation.runtime:
            assert tpu_runtimes.runtime(generation.runtime.name, name) == []


@pytest.mark.parametrize(
    "name, topology, rule, field",
    [
        ("", None, "gcp.tpu.type-missing", "accelerator_type"),
        ("v4-7", None, "gcp.tpu.size", "accelerator_type"),
        ("v5p-32", "2x2x2", "gcp.tpu.size", "topology"),
        ("v5p", "3x3x3", "gcp.tpu.size", "topology"),
        ("gpu", None, "gcp.tpu.type-unknown", "accelerator_type"),
        ("v7x-8", None, "gcp.tpu.gke-only", "accelerator_type"),
        ("trillium-8", None, "gcp.tpu.name", "accelerator_type"),
        ("tpu-v4-8", None, "gcp.tpu.name", "accelerator_type"),
        ("v5p-17920", None, "gcp.tpu.not-published", "accelerator_type"),
    ],
)
def test_a_type_that_does_not_do(name: str, topology: str | None, rule: str, field: str) -> None:
    assert [(each.rule, each.field) for each in gcp_tpu.accelerator_type(name, topology)] == [(rule, field)]


@pytest.mark.parametrize(
    "name, topology, own", [("v5e-4", None, "v5litepod-4"), ("trillium-8", None, "v6e-8"), ("v5e", "2x2", "v5litepod")]
)
def test_a_translated_name(name: str, topology: str | None, own: str) -> None:
    (finding,) = gcp_tpu.accelerator_type(name, topology)
    assert finding.replacement == own
    assert gcp_tpu.accelerator_type(own, topology) == []


@pytest.mark.parametrize(
    "name, slice_name, rule",
    [
        ("tpu-vm-tf-2.14.0", "v4-8", None),
        ("tpu-vm-tf-2.14.0", "v4-32", "pod"),
        ("tpu-vm-tf-2.14.0-pod", "v4-32", None),
        ("tpu-vm-tf-2.14.0-pod", "v4-8", "pod"),
        ("tpu-vm-tf-2.10.0-v4", "v4-8", None),
        ("tpu-vm-tf-2.14.0", "v5e-4", "tensorflow"),
        ("tpu-vm-tf-2.16.1", "v4-8", "tensorflow"),
        ("tpu-vm-tf-2.16.1-se", "v4-8", None),
        ("tpu-vm-tf-2.16.1-se", "v6e-8", "tensorflow"),
        ("tpu-vm-tf-2.16.1-pjrt", "v6e-8", None),
        ("tpu-vm-tf-2.16.1-pjrt", "v6e-16", "pod"),
        ("tpu-vm-tf-2.16.1-pod-pjrt", "v6e-16", None),
        ("tpu-vm-pt-2.1", "v4-8", "old"),
        ("tpu-vm-pt-2.1", "v5e-4", "old"),
        ("tpu-vm-base", "v3-8", "old"),
        ("tpu-vm-v4-base", "v4-8", "old"),
        ("v2-alpha-tpuv5", "v5e-4", "generation"),
        ("v2-alpha-tpuv5-lite", "v5p-8", "generation"),
        ("v2-alpha-tpuv6e", "v4-8", "generation"),
        ("tpu-ubuntu2204-base", "v5e-4", "base"),
        ("made-up", "v5e-4", "unknown"),
        ("made-up", "v9-4", None),
        ("made-up", "tpu7x-8", None),
    ],
)
def test_software_versions(name: str, slice_name: str, rule: str | None) -> None:
    found = tpu_runtimes.runtime(name, slice_name)
    assert [each.rule for each in found] == ([f"gcp.tpu.runtime-{rule}"] if rule else [])
    for finding in found:
        named = [word.rstrip(",") for word in finding.fix.split() if word.startswith(("tpu-", "v2-"))]
        assert tpu_runtimes.runtime(named[0], slice_name) == [], "what is advised breaks a rule itself"


@pytest.mark.parametrize("accelerator", [None, "NVIDIA_L4", "TPU_V2", "TPU_V3", "nonsense"])
def test_what_vertex_takes_with_cloud_tpu(accelerator: str | None) -> None:
    assert tpus.spec("cloud-tpu", accelerator, 8, None) == []


def test_hosts_on_vertex() -> None:
    assert tpus.spec("ct6e-standard-4t", None, None, "2x2") == []
    assert ids(tpus.spec("ct6e-standard-8t", None, None, "4x4")) == {"vertex.tpu.topology"}
    assert ids(gcp_tpu.pool("n1-standard-4", "2x2")) == {"gcp.tpu.pool-type"}


@pytest.mark.parametrize(
    "name, translated, cores, chips, hosts, gib_a_chip",
    [
        ("v2-8", None, 8, 4, 1, 16),
        ("v3-8", None, 8, 4, 1, 32),
        ("v4-8", None, 8, 4, 1, 32),
        ("v5e-4", "v5litepod-4", 4, 4, 1, 16),
        ("v5p-8", None, 8, 4, 1, 95),
        ("v4-32", None, 32, 16, 4, 32),
        ("v4-4096", None, 4096, 2048, 512, 32),
        ("v6e-1", None, 1, 1, 1, 32),
        ("v6e-256", None, 256, 256, 64, 32),
    ],
)
def test_slices_that_are_taken(
    name: str, translated: str | None, cores: int, chips: int, hosts: int, gib_a_chip: int
) -> None:
    assert [each.replacement for each in gcp_tpu.accelerator_type(name)] == ([translated] if translated else [])
    found = tpu(name)
    assert (found.cores, found.chips, found.hosts) == (cores, chips, hosts)
    assert accelerators()[found.generation.accelerator].memory_gib == gib_a_chip


@pytest.mark.parametrize(
    "name, severity, part",
    [
        ("v4-8192", "warn", "above v4-4096"),
        ("v7x-8", "reject", "tpu7x-standard-4t"),
        ("tpu7x-64", "reject", "tpu7x-standard-4t"),
        ("v4-16384", "reject", "no size of TPU v4"),
        ("v5e-512", "reject", "v5litepod-256"),
    ],
)
def test_slices_that_are_doubted_or_refused(name: str, severity: str, part: str) -> None:
    (finding,) = gcp_tpu.accelerator_type(name)
    assert finding.severity == severity and part in finding.text


@pytest.mark.parametrize(
    "chips, topology, machine, nodes",
    [
        (1, "1x1", "ct5lp-hightpu-1t", 1),
        (4, "2x2", "ct5lp-hightpu-4t", 1),
        (8, "2x4", "ct5lp-hightpu-8t", 1),
        (16, "4x4", "ct5lp-hightpu-4t", 4),
        (32, "4x8", "ct5lp-hightpu-4t", 8),
        (64, "8x8", "ct5lp-hightpu-4t", 16),
        (128, "8x16", "ct5lp-hightpu-4t", 32),
        (256, "16x16", "ct5lp-hightpu-4t", 64),
    ],
)
def test_pools_of_v5e(chips: int, topology: str, machine: str, nodes: int) -> None:
    found = tpu(f"v5litepod-{chips}")
    assert (found.topology, found.machine_type, found.hosts) == (topology, machine, nodes)
    assert gcp_tpu.pool(machine, topology, nodes) == []
    wrong = gcp_tpu.pool(machine, topology, nodes + 1)
    assert ids(wrong) == ({"gcp.tpu.pool-nodes"} if nodes > 1 else set())


@pytest.mark.parametrize("accelerator", ["TPU_V2", "TPU_V3", "TPU_V4_POD", "TPU_V5_LITEPOD", "v5p", "tpu7x"])
def test_which_tpus_vertex_trains_on(accelerator: str) -> None:
    refused = {"gcp.tpu.vertex"} if accelerator in ("TPU_V4_POD", "v5p") else set[str]()
    doubted = {"gcp.tpu.vertex-machine"} if accelerator in ("TPU_V5_LITEPOD", "tpu7x") else set[str]()
    assert ids(tpus.spec("cloud-tpu", accelerator, 8, None)) == refused | doubted


@pytest.mark.parametrize("zone, found", [("us-central2-b", set()), ("us-central1-a", {"gcp.zones.not-listed"})])
def test_v4_is_in_one_zone(zone: str, found: set[str]) -> None:
    assert ids(gcp_zones.zone(zone, "v4-8", zones("gcp", "us-central2", "v4-8"))) == found


@pytest.mark.parametrize("name", ["node", "NODE", "tpu-node"])
def test_the_node_architecture_is_refused(name: str) -> None:
    assert ids(gcp_tpu.architecture(name)) == {"gcp.tpu.node-architecture"}
