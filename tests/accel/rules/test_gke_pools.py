"""Node pools of GKE: the guides' own values, tables held against each other, and what is refused together."""

from fnmatch import fnmatch

import pytest

from accel.catalog import UnknownName, machines
from accel.catalog.gke import gpu_partitions
from accel.catalog.gke_machines import included_local_ssds, local_ssd_counts, node_machine
from accel.catalog.tables import rows
from accel.rules import Finding, Rule
from accel.rules.gke import capacity, drivers, drivers_daemonset, labels, nodes, pools, sharing, tpus


def ids(findings: list[Finding]) -> list[str]:
    return [finding.rule for finding in findings]


@pytest.mark.parametrize(
    "machine", [each for each in machines("gcp") if each.kind == "cpu"], ids=lambda each: each.name
)
def test_shapes_agree_with_the_catalogue(machine: object) -> None:
    from accel.catalog import gke_machines

    name = machine.name  # type: ignore[attr-defined]
    series, vcpus, memory_mib = gke_machines._shapes()[name]
    assert (series, vcpus, memory_mib) == (machine.family, machine.vcpus, machine.memory_mib)  # type: ignore[attr-defined]


def test_local_ssds_agree_with_the_catalogue() -> None:
    bundled = [each for each in machines("gcp") if each.local_ssd_mode == "bundled" and each.family != "a4x"]
    assert len(bundled) > 10
    for machine in bundled:
        assert included_local_ssds(machine.name) * 375 == machine.local_ssd_gb
        assert local_ssd_counts(machine.name) == (included_local_ssds(machine.name),)


def test_a_cpu_machine_beside_the_catalogue() -> None:
    assert (node_machine("c3-standard-22").vcpus, node_machine("n1-highcpu-16").memory_mib) == (22, 14746)
    with pytest.raises(UnknownName) as unknown:
        node_machine("n2-standard-12")
    assert all(near.startswith("n2-") for near in unknown.value.nearest)


def test_the_guides_pool() -> None:
    """G-56 to G-58: a2-highgpu-4g, 0 to 4 nodes, begun with 2."""
    assert nodes.machine("a2-highgpu-4g", "gpu") == []
    assert pools.bounds(0, 4, 2) == nodes.initial(2, 4, 1) == []
    assert ids(pools.bounds(0, 1, 2)) == ["gcp.pool.bounds"]


def test_one_driver_owner() -> None:
    """G-59 to G-61: what is not GKE's is switched off, and nothing is left to a default that changed."""
    assert drivers.VERSIONS == {
        "default": "DEFAULT",
        "latest": "LATEST",
        "daemonset": "INSTALLATION_DISABLED",
        "operator": "INSTALLATION_DISABLED",
    }
    assert drivers.driver("latest", "COS_CONTAINERD", secure_boot=True) == []
    assert ids(drivers.driver("operator", "COS_CONTAINERD", sharing="mps")) == [
        "gke.driver.operator-cos",
        "gke.driver.operator-sharing",
    ]


@pytest.mark.parametrize("accelerator", ["nvidia-tesla-a100", "nvidia-a100-80gb", "nvidia-h100-80gb", "nvidia-b200"])
def test_every_profile_of_a_gpu_is_its_own(accelerator: str) -> None:
    for profile in gpu_partitions(accelerator):
        assert "gke.mig.profile" not in ids(sharing.partition(profile, accelerator, 1))
    other = next(name for name in gpu_partitions("nvidia-h200-141gb") if name not in gpu_partitions(accelerator))
    assert ids(sharing.partition(other, accelerator, 1)) == ["gke.mig.profile"]


@pytest.mark.parametrize("clients, refused", [(0, True), (1, True), (2, False), (48, False), (49, True)])
def test_clients(clients: int, refused: bool) -> None:
    assert ("gke.sharing.clients" in ids(sharing.sharing("time-sharing", clients, units=1))) == refused


def test_flex_start_as_google_writes_it() -> None:
    """--flex-start --num-nodes=0 --location-policy=ANY --reservation-affinity=none --no-enable-autorepair."""
    assert capacity.capacity("flex-start", machine_type="a2-highgpu-4g", location_policy="ANY") == []
    assert (
        capacity.flex_start(min_nodes=0, initial_nodes=0, auto_repair=False, location_policy="ANY", upgrade=None) == []
    )
    wrong = capacity.flex_start(
        min_nodes=1, initial_nodes=1, auto_repair=True, location_policy="BALANCED", upgrade="surge"
    )
    assert [finding.field for finding in wrong] == [
        "min_nodes", "initial_nodes", "auto_repair", "location_policy", "upgrade",
    ]  # fmt: skip


@pytest.mark.parametrize("key", ["gpu", "a", "l4-spot", "x" * 32])
def test_a_key_with_what_is_made_up_fits_googles_pattern(key: str) -> None:
    import re

    assert labels.pool_name(key) == []
    assert re.fullmatch(r"(?:[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?)", f"{key}-0a1b2c3")


@pytest.mark.parametrize("key", ["Gpu", "1gpu", "gpu-", "gpu_pool", ""])
def test_a_key_that_google_refuses(key: str) -> None:
    assert ids(labels.pool_name(key)) == ["gke.pool.name"]


def test_a_long_label_set() -> None:
    assert ids(labels.labels({f"k{i}": "v" * 60 for i in range(20)})) == ["gke.label.size"]


@pytest.mark.parametrize("zone, known", [("us-central1-a", True), ("us-central1-z", False), ("europe-north9-a", False)])
def test_where_gpus_are(zone: str, known: bool) -> None:
    assert (nodes.zone_offers("a2-highgpu-4g", [zone]) == []) == known
    assert (nodes.zone_offers("n1+nvidia-tesla-t4x2", [zone]) == []) == known


def test_a_slice_of_one_host_scales_freely() -> None:
    free = tpus.slice_pool("ct6e-standard-4t", "2x2", min_nodes=3, initial_nodes=2, zone_count=3, policy=None)
    assert free == []


def test_messages_are_one_line_with_a_page() -> None:
    for module in (capacity, drivers, labels, nodes, sharing, tpus):
        own = [each for each in vars(module).values() if isinstance(each, Rule)]
        assert own
        for rule in own:
            assert fnmatch(rule.id, "gke.*.*") and rule.source.startswith("https://") and "\n" not in rule.summary


@pytest.mark.parametrize(
    "begins, least, most, zones, said",
    [
        (1, 0, 2, 3, "1 in each of 3 zones, 3 together"),
        (1, 3, 6, 3, None),
        (1, 4, 6, 3, "3 together, and min_nodes is 4; write 2,"),
        (0, 4, 6, 3, None),
        (7, 0, 6, 1, None),
    ],
)
def test_initial_nodes_of_all_zones_are_within_the_limits(
    begins: int, least: int, most: int, zones: int, said: str | None
) -> None:
    found = nodes.initial(begins, most, zones, min_nodes=least)
    assert [said in each.text for each in found if said] == ([True] if said else []), found


def test_the_daemonsets_partitioner_is_newer_than_every_profile_that_it_is_given() -> None:
    """H200 came into its source in August 2024, B200 and GB200 in March 2025, RTX PRO 6000 in June 2025."""
    for row in rows("gke_gpu_partitions.csv"):
        accelerator, profile = row["accelerator"], row["profile"]
        refused = ids(drivers_daemonset.partition(profile, accelerator))
        assert (refused == []) == (row["partitioner_since"] <= drivers_daemonset.PARTITIONER_DAY)
        assert (refused == []) == (accelerator != "nvidia-rtx-pro-6000"), (accelerator, profile)
    assert drivers_daemonset.partition("1g.5gb", "nvidia-l4") == [], "gke.mig.gpu speaks of it"
