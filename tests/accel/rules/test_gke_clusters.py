"""Places, versions and access of clusters, beyond one case a rule."""

from typing import Any

import pytest

from accel.diagnostics.findings import Finding
from accel.rules.gke import access, clusters, maintenance


def ids(found: list[Finding]) -> list[str]:
    return [one.rule.rpartition(".")[2] for one in found]


@pytest.mark.parametrize(
    "place, node_locations, told",
    [
        ("us-central1", [], []),
        ("us-central1", ["us-central1-a", "us-central1-c"], []),
        ("us-central1-a", [], ["zonal"]),
        ("us-central1-a", ["us-central1-a"], ["zonal", "node-locations"]),
        ("us-central1", ["us-central1"], ["node-locations"]),
        ("us-central1", ["us-central1-a", "us-central1-a"], ["node-locations"]),
        ("us-central1-", [], ["location"]),
        ("", [], ["location"]),
    ],
)
def test_where_clusters_are(place: str, node_locations: list[str], told: list[str]) -> None:
    assert ids(clusters.location(place, node_locations)) == told


@pytest.mark.parametrize("place", ["us-central1", "us-central1-a", "us-central1-ai1a"])
def test_a_location_has_a_region(place: str) -> None:
    assert clusters.region_of(place) == "us-central1"
    assert clusters.is_zone(place) is (place != "us-central1")


@pytest.mark.parametrize(
    "wanted, refused",
    [
        ("1.32", False),
        ("1.32.1", False),
        ("1.32.0", True),
        ("1.32.1-gke.1357001", False),
        ("1.32.1-gke.1357000", True),
        ("1.33", False),
        ("1.31.9-gke.9999999", True),
    ],
)
def test_a_package_of_metrics_needs_its_version(wanted: str, refused: bool) -> None:
    assert bool(clusters.version("REGULAR", wanted, ["JOBSET"])) is refused
    assert clusters.version("REGULAR", None, ["JOBSET"]) == []


@pytest.mark.parametrize(
    "changed, told",
    [
        ({}, ["open"]),
        ({"authorized": {}}, []),
        ({"authorized": {"office": "203.0.113.0/24"}}, []),
        ({"private_endpoint": True}, ["authorized-none"]),
        ({"private_endpoint": True, "authorized": {}}, ["authorized-none"]),
        ({"private_endpoint": True, "authorized": {"vpn": "10.9.0.0/24"}}, []),
        ({"private_endpoint": True, "private_nodes": False, "dns_endpoint": True}, ["private-endpoint"]),
    ],
)
def test_who_reaches_the_api(changed: dict[str, Any], told: list[str]) -> None:
    given = {"private_nodes": True, "private_endpoint": False, "dns_endpoint": False, "authorized": None, **changed}
    assert ids(access.access(**given)) == told


@pytest.mark.parametrize(
    "default_snat, private_nodes, pods, refused",
    [
        (True, True, "10.64.0.0/14", False),
        (False, True, "8.0.0.0/14", False),
        (True, True, "8.0.0.0/14", True),
        (False, False, "10.64.0.0/14", True),
        (False, True, None, False),
    ],
)
def test_source_addresses(default_snat: bool, private_nodes: bool, pods: str | None, refused: bool) -> None:
    assert bool(access.snat(default_snat=default_snat, private_nodes=private_nodes, pods=pods)) is refused


@pytest.mark.parametrize(
    "days, hours, least", [(["SU"], 12, None), (["SU"], 11, "12"), (["SA", "SU"], 5, "6"), (["MO"] * 3, 4, "12")]
)
def test_a_window_is_long_enough_for_48_hours_in_32_days(days: list[str], hours: int, least: str | None) -> None:
    found = maintenance.window(days, hours)
    assert [one.fix for one in found] == ([f"write {least} hours or more"] if least else [])


def test_a_misspelt_region_of_the_section_is_what_is_told() -> None:
    """And not the cluster's, which is right: it would be corrected to what no region is."""
    (finding,) = clusters.in_region("us-central1-b", "us-centrall1")
    assert "the section's region is us-centrall1, which the catalogue does not know" in finding.message
    assert finding.fix == "write us-central1 as the section's region"
    (other,) = clusters.in_region("us-centrall1", "us-central1")
    assert other.fix == "write us-central1"
