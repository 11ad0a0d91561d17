"""The arithmetic agrees with every slice of the catalogue, and what does not exist is refused with what does."""

import pytest

from accel.catalog import UnknownName, accelerators
from accel.catalog.machines import machines
from accel.catalog.tables import Row, rows
from accel.catalog.tpu import NoSuchSlice, Slice, chips_of, default_topology, sizes, slice_names, tpu, tpu_pool
from accel.catalog.tpu_generations import GENERATIONS, Generation

SLICES = [row for row in rows("machines.csv") if row["kind"] == "tpu-slice"]
BY_PREFIX = {generation.prefix: generation for generation in GENERATIONS}

generations = pytest.mark.parametrize("generation", GENERATIONS, ids=lambda each: each.prefix)


@pytest.mark.parametrize("row", SLICES, ids=lambda row: row["machine"])
def test_every_slice_of_the_catalogue(row: Row) -> None:
    got = tpu(row["machine"])
    assert (got.name, got.topology) == (row["machine"], row["tpu_topology"])
    assert (got.api_type or "") == row["tpu_api_type"] or "tpu_api_type" in row["unverified_fields"]
    figures = (got.chips, got.cores, got.hosts)
    assert figures == (int(row["tpu_chips"]), int(row["tpu_cores"]), int(row["tpu_hosts"]))
    assert got.generation.accelerator == row["accelerator"]
    assert got.gke_label == row["gke_accelerator_label"]
    assert not row["host_machine"] or got.machine_type == row["host_machine"]


@generations
def test_every_name_gives_a_whole_slice(generation: Generation) -> None:
    for name, chips in zip(slice_names(generation), sizes(generation), strict=True):
        got = tpu(name)
        assert got.name == name
        assert got.chips == chips == chips_of(got.topology, generation) == got.hosts * got.chips_per_host
        assert got.cores == chips * generation.cores_per_chip
        assert got.topology == default_topology(generation, chips)
        assert tpu(generation.prefix, got.topology) == tpu(generation.prefix, got.topology.upper())
        assert got.multi_host == (got.hosts > 1)


@generations
def test_a_generation_is_an_accelerator_of_the_catalogue(generation: Generation) -> None:
    assert generation.accelerator in accelerators()
    assert (generation.api == "tpu") == bool(generation.version) == bool(generation.runtime)
    hosts = {machine.name: machine for machine in machines("gcp") if machine.kind == "tpu-host"}
    for name, host in generation.machine_types.items():
        if name == "ct4p-hightpu-4t":  # not in the public listing of machine types
            continue
        assert hosts[name].accelerator == generation.accelerator
        assert hosts[name].accelerator_count == host.chips
        assert hosts[name].gke_label == host.gke_label


@pytest.mark.parametrize(
    "name, own, chips, cores, hosts, topology",
    [
        ("v2-8", "v2-8", 4, 8, 1, "2x2"),
        ("v3-32", "v3-32", 16, 32, 4, "4x4"),
        ("v4-8", "v4-8", 4, 8, 1, "2x2x1"),
        ("v4-32", "v4-32", 16, 32, 4, "2x2x4"),
        ("v4-384", "v4-384", 192, 384, 48, "4x4x12"),
        ("v4-8192", "v4-8192", 4096, 8192, 1024, "16x16x16"),
        ("v5e-4", "v5litepod-4", 4, 4, 1, "2x2"),
        ("v5e-8", "v5litepod-8", 8, 8, 1, "2x4"),
        ("V5litepod-16", "v5litepod-16", 16, 16, 4, "4x4"),
        ("v5p-8", "v5p-8", 4, 8, 1, "2x2x1"),
        ("v6e-8", "v6e-8", 8, 8, 1, "2x4"),
        ("trillium-256", "v6e-256", 256, 256, 64, "16x16"),
        ("tpu-v4-8", "v4-8", 4, 8, 1, "2x2x1"),
        ("tpu7x-8", "tpu7x-2x2x1", 4, 8, 1, "2x2x1"),
        ("ironwood-4x4x4", "tpu7x-4x4x4", 64, 128, 16, "4x4x4"),
    ],
)
def test_names(name: str, own: str, chips: int, cores: int, hosts: int, topology: str) -> None:
    got = tpu(name)
    assert (got.name, got.written) == (own, name)
    assert (got.chips, got.cores, got.hosts, got.topology) == (chips, cores, hosts, topology)


@pytest.mark.parametrize(
    "name, nearest",
    [
        ("v5e-5", ("v5litepod-4", "v5litepod-8")),
        ("v5litepod-0", ("v5litepod-1",)),
        ("v5litepod-512", ("v5litepod-256",)),
        ("v4-7", ("v4-8",)),
        ("v4-33", ("v4-32", "v4-64")),
        ("v2-64", ("v2-32", "v2-128")),
        ("v5p-8576", ("v5p-8448", "v5p-8704")),
        ("v6e-2", ("v6e-1", "v6e-4")),
        ("v5p", ("v5p-8", "v5p-16", "v5p-32")),
    ],
)
def test_a_size_that_does_not_exist(name: str, nearest: tuple[str, ...]) -> None:
    with pytest.raises(NoSuchSlice) as refused:
        tpu(name)
    assert refused.value.choices == nearest


@pytest.mark.parametrize(
    "name", ["", "v9-8", "v5-8", "tpu", "v4-eight", "v4-8x", "v4--8", "v4-1x2x3x4", "v4-٨", "x" * 99]
)
def test_a_name_that_is_none(name: str) -> None:
    with pytest.raises((UnknownName, NoSuchSlice)):
        tpu(name)


@pytest.mark.parametrize(
    "name, topology, own",
    [
        ("v5p", "2x2x4", "v5p-32"),
        ("v5p-128", "4x4x4", "v5p-128"),
        ("v4", "12x12x24", "v4-6912"),
        ("v4-512", "4x4x16", "v4-512"),
        ("v6e", "4X8", "v6e-32"),
        ("tpu7x", "1x1x1", "tpu7x-1x1x1"),
    ],
)
def test_a_topology(name: str, topology: str, own: str) -> None:
    got = tpu(name, topology)
    assert (got.name, got.topology) == (own, topology.lower())


@pytest.mark.parametrize(
    "name, topology, nearest",
    [
        ("v5p-32", "2x2x2", ("2x2x4",)),
        ("v6e", "3x3", ("2x4", "4x4")),
        ("v6e", "2x2x2", ("2x4", "4x4")),
        ("v4", "4x4x6", ("4x4x4", "4x4x8")),
        ("v4", "8x4x4", ("4x4x8", "4x4x12")),
        ("v4", "1x1x1", ("2x2x1",)),
        ("v5litepod-16", "banana", ("1x1", "2x2")),
        ("tpu7x-2x2x1", "2x2x2", ("2x2x1",)),
    ],
)
def test_a_topology_that_does_not_go(name: str, topology: str, nearest: tuple[str, ...]) -> None:
    with pytest.raises(NoSuchSlice) as refused:
        tpu(name, topology)
    assert refused.value.choices == nearest


@pytest.mark.parametrize(
    "machine, topology, hosts",
    [
        ("ct5lp-hightpu-8t", "2x4", 1),
        ("ct5lp-hightpu-4t", "2x4", 2),
        ("ct5l-hightpu-8t", "2x4", 1),
        ("ct6e-standard-1t", "1x1", 1),
        ("ct5p-hightpu-4t", "2x2x4", 4),
        ("ct3-hightpu-4t", "2x2", 1),
        ("ct3p-hightpu-4t", "2x2", 1),
        ("tpu7x-standard-4t", "2x2x2", 2),
    ],
)
def test_a_node_pool(machine: str, topology: str, hosts: int) -> None:
    got = tpu_pool(machine, topology)
    assert (got.machine_type, got.hosts) == (machine, hosts)


@pytest.mark.parametrize(
    "machine, topology",
    [
        ("ct5lp-hightpu-8t", "4x4"),
        ("ct5l-hightpu-4t", "2x4"),
        ("ct5lp-hightpu-1t", "2x2"),
        ("ct6e-standard-4t", "1x1"),
        ("ct3-hightpu-4t", "4x4"),
        ("ct5p-hightpu-4t", "2x2"),
        ("n1-standard-4", "2x2"),
    ],
)
def test_a_node_pool_that_cannot_be(machine: str, topology: str) -> None:
    with pytest.raises(LookupError):
        tpu_pool(machine, topology)


@pytest.mark.parametrize(
    "name, runtime",
    [
        ("v6e-8", "v2-alpha-tpuv6e"),
        ("v5p-8", "v2-alpha-tpuv5"),
        ("v5e-4", "v2-alpha-tpuv5-lite"),
        ("v4-8", "tpu-ubuntu2204-base"),
        ("v3-8", "tpu-ubuntu2204-base"),
        ("v2-8", "tpu-ubuntu2204-base"),
    ],
)
def test_the_runtime_of_a_generation(name: str, runtime: str) -> None:
    assert tpu(name).runtime_versions == {runtime: ("jax", "pytorch")}


def test_what_only_gke_has() -> None:
    got = tpu("tpu7x-8")
    assert (got.api, got.api_type, got.version, got.runtime_versions) == ("gke-only", None, "", {})
    assert got.machine_type == "tpu7x-standard-4t"


def test_above_the_published_sizes() -> None:
    assert [tpu(name).published for name in ("v4-4096", "v4-4224", "v5p-12288", "v5p-13824")] == [True, False] * 2
    assert all(tpu(name).published for prefix in ("v2", "v3", "v6e") for name in slice_names(BY_PREFIX[prefix]))


def test_places() -> None:
    assert tpu("v4-8").places == {"us-central2": ("us-central2-b",)}
    assert "us-east5" in tpu("v5e-4").places
    assert tpu("v4-384").places == {}


def test_zones_that_google_publishes_are_among_the_places() -> None:
    """AI zones and TPU7x's are in no other table."""
    for row in rows("tpu_zones.csv"):
        of = [each for each in sizes_with_places() if each.generation.prefix == row["generation"]]
        assert of, row["generation"]
        for each in of:
            assert row["zone"] in each.places[row["zone"].rpartition("-")[0]], (each.name, row["zone"])
    assert tpu("tpu7x-2x2x1").places["us-central1"] == ("us-central1-ai1a", "us-central1-c")


def sizes_with_places() -> list[Slice]:
    named = [tpu(name) for generation in GENERATIONS for name in slice_names(generation)]
    return [each for each in named if each.places]
