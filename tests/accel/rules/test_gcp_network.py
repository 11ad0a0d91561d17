"""Address arithmetic of GKE, and labels, against figures that Google's pages print."""

from ipaddress import IPv4Network

import pytest

from accel.rules.gcp import labels, network

# Of https://docs.cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr: pods of a node, and its block.
BLOCKS = [(8, 28), (9, 27), (16, 27), (17, 26), (32, 26), (33, 25), (64, 25), (65, 24), (110, 24), (128, 24), (256, 23)]


@pytest.mark.parametrize("pods, prefix", BLOCKS)
def test_the_block_of_a_node(pods: int, prefix: int) -> None:
    assert network.node_block(pods) == prefix
    assert 2 ** (32 - prefix) >= 2 * pods


# Of https://docs.cloud.google.com/kubernetes-engine/docs/concepts/alias-ips#cluster_sizing.
@pytest.mark.parametrize(
    "nodes, pods, per_node, most",
    [
        ("10.0.0.0/29", "10.64.0.0/14", 110, 4),
        ("10.0.0.0/24", "10.64.0.0/14", 110, 252),
        ("10.0.0.0/20", "10.64.0.0/21", 110, 8),
        ("10.0.0.0/20", "10.64.0.0/14", 110, 1024),
        ("10.0.0.0/20", "10.64.0.0/14", 32, 4092),
        ("10.0.0.0/20", "10.64.0.0/24", 110, 1),
    ],
)
def test_how_many_nodes_a_subnet_holds(nodes: str, pods: str, per_node: int, most: int) -> None:
    assert min(network._by_primary(IPv4Network(nodes)), network._by_pods(IPv4Network(pods), per_node)) == most


def test_growth_counts_each_pools_own_blocks() -> None:
    # A /21 has 2048 addresses: 8 nodes of 110 pods, or 32 of 32.
    fits = network.growth({"a": (4, 110), "b": (16, 32)}, "10.0.0.0/20", "10.64.0.0/21")
    assert fits == []
    (over,) = network.growth({"a": (4, 110), "b": (17, 32)}, "10.0.0.0/20", "10.64.0.0/21")
    assert "2112 addresses" in over.message and "2048" in over.message


def test_what_is_no_range_is_told_once() -> None:
    found = network.ranges({"nodes": "10.0.0/20", "pods": "10.0.0.0/14"})
    assert [(one.rule, one.field) for one in found] == [("gcp.network.range", "nodes")]
    assert network.subnet("10.0.0/20", "10.64.0.0/14", "10.1.0.0/20") == []


@pytest.mark.parametrize(
    "text, key, value",
    [
        ("Team", "team", "team"),
        ("accel:owner", "accel-owner", "accel-owner"),
        ("42", "x42", "42"),
        ("ü b", "x--b", "--b"),
        ("", "x", ""),
        ("a" * 80, "a" * 63, "a" * 63),
    ],
)
def test_labels_become_what_google_takes(text: str, key: str, value: str) -> None:
    assert (labels.key(text), labels.value(text)) == (key, value)
    assert labels.key(key) == key and labels.value(value) == value


def test_owners_labels_survive_translation() -> None:
    assert labels.to_gcp({"Cost Centre": "R&D"}) == {"cost-centre": "r-d"}
