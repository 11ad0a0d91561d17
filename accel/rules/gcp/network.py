"""Address ranges of a VPC network for GKE: nodes, pods and services of one subnet per region."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Network

from accel.catalog.places import nearest_places, regions
from accel.diagnostics.findings import Finding
from accel.rules.ranges import range_fix
from accel.rules.table import rule

RANGE = rule("gcp.network.range")
PROHIBITED = rule("gcp.network.prohibited")
OVERLAP = rule("gcp.network.overlap")
NODES_SIZE = rule("gcp.network.nodes-size")
PODS_SIZE = rule("gcp.network.pods-size")
SERVICES_SIZE = rule("gcp.network.services-size")
PUBLIC = rule("gcp.network.public")
PODS_FEW = rule("gcp.network.pods-few")
NODES_FEW = rule("gcp.network.nodes-few")
PODS_PER_NODE = rule("gcp.network.pods-per-node")
REGION = rule("gcp.network.region")
REGION_UNKNOWN = rule("gcp.region.unknown")
PATH = rule("gcp.network.path")
NAT_PORTS = rule("gcp.network.nat-ports")

PODS_PER_NODE_DEFAULT = 110
"""Default of a Standard cluster. Source:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr"""

_PROJECT, _NAME = r"[a-z0-9.:-]+", r"[a-z]([a-z0-9-]*[a-z0-9])?"
_PROHIBITED = {
    "0.0.0.0/8": "the local network",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link-local",
    "199.36.153.4/30": "restricted.googleapis.com",
    "199.36.153.8/30": "private.googleapis.com",
    "224.0.0.0/4": "multicast",
    "255.255.255.255/32": "broadcast",
}
_INTERNAL = tuple(
    IPv4Network(block)
    for block in (
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24",
        "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
    )
)  # fmt: skip


def block(cidr: str) -> IPv4Network | None:
    """Return None for an invalid range, which `ranges` reports."""
    try:
        return IPv4Network(cidr)
    except ValueError:
        return None


def internal(cidr: str) -> bool:
    """Return whether Google treats the range as internal; False for an invalid one."""
    known = block(cidr)
    return known is not None and any(known.subnet_of(private) for private in _INTERNAL)


def node_block(pods_per_node: int) -> int:
    """Return the prefix length of a node's block: 31 - ceil(log2(pods)). It has at least twice as many addresses as
    pods, so that they are not reused immediately. 110 pods take a /24."""
    return 31 - (pods_per_node - 1).bit_length()


def _by_primary(nodes: IPv4Network) -> int:
    """Return the nodes that a subnet's primary range has addresses for. Source, also of _by_pods():
    https://docs.cloud.google.com/kubernetes-engine/docs/concepts/alias-ips#cluster_sizing"""
    return 2 ** (32 - nodes.prefixlen) - 4


def _by_pods(pods: IPv4Network, pods_per_node: int) -> int:
    """Return the nodes that the range for pods has a block for."""
    return int(2 ** (node_block(pods_per_node) - pods.prefixlen))


def ranges(named: Mapping[str, str]) -> list[Finding]:
    found = [finding for field, cidr in named.items() for finding in _range(field, cidr)]
    known = [(field, cidr, parsed) for field, cidr in named.items() if (parsed := block(cidr))]
    for index, (field, cidr, parsed) in enumerate(known):
        for other, other_cidr, other_parsed in known[:index]:
            if parsed.overlaps(other_parsed):
                message = f"is {cidr}, which overlaps {other} ({other_cidr})"
                found.append(OVERLAP.finding(field, message, "give each range addresses of its own"))
                break
    return found


def subnet(nodes: str, pods: str, services: str, pods_per_node: int = PODS_PER_NODE_DEFAULT) -> list[Finding]:
    found: list[Finding] = []
    primary, of_pods, of_services = block(nodes), block(pods), block(services)
    if primary and not 8 <= primary.prefixlen <= 29:
        found.append(NODES_SIZE.finding("nodes", f"is {nodes}, neither /8 nor /29 nor between", "write a /20"))
    if of_services and of_services.prefixlen > 28:
        found.append(SERVICES_SIZE.finding("services", f"is {services}, smaller than /28", "write a /20"))
    if of_pods and of_pods.prefixlen > node_block(pods_per_node):
        message = f"is {pods}, and each node takes a /{node_block(pods_per_node)} of it"
        found.append(PODS_SIZE.finding("pods", message, "write a larger range, such as a /14"))
    elif primary and of_pods and 8 <= primary.prefixlen <= 29:
        few, many = _by_pods(of_pods, pods_per_node), _by_primary(primary)
        if few < many:
            message = f"is {pods}, which holds {few} nodes of {pods_per_node} pods; the range for nodes holds {many}"
            fix = "write a larger range, or a smaller one for nodes, or lower the pods of a node"
            found.append(PODS_FEW.finding("pods", message, fix))
    return found


def pods_per_node(most: int, field: str = "max_pods_per_node") -> list[Finding]:
    if 8 <= most <= 256:
        return []
    return [PODS_PER_NODE.finding(field, f"must be 8 to 256, is {most}", f"write {PODS_PER_NODE_DEFAULT}")]


def region(name: str, field: str) -> list[Finding]:
    """Warn of unknown but well-formed regions: the catalogue may be behind."""
    if name in regions("gcp"):
        return []
    near = " or ".join(nearest_places(name, regions("gcp"), 1))
    if re.fullmatch(r"[a-z]+-[a-z]+\d+", name):
        message = f'is "{name}", which the catalogue does not know'
        return [REGION_UNKNOWN.finding(field, message, f"use {near}, or make sure that it exists")]
    return [REGION.finding(field, f'is "{name}", which is no region', f"write one such as {near}")]


def network_path(path: str, field: str = "network") -> list[Finding]:
    if re.fullmatch(rf"projects/{_PROJECT}/global/networks/{_NAME}", path):
        return []
    return [PATH.finding(field, f'is "{path}"', "write projects/<project>/global/networks/<name>")]


def subnet_path(path: str, region: str, field: str = "subnetwork") -> list[Finding]:
    if re.fullmatch(rf"projects/{_PROJECT}/regions/{re.escape(region)}/subnetworks/{_NAME}", path):
        return []
    return [PATH.finding(field, f'is "{path}"', f"write projects/<project>/regions/{region}/subnetworks/<name>")]


def nat_ports(least: int, most: int) -> list[Finding]:
    for field, count in (("min_ports_per_node", least), ("max_ports_per_node", most)):
        if not 32 <= count <= 65536 or count & (count - 1):
            return [
                NAT_PORTS.finding(field, f"must be a power of two from 32 to 65536, is {count}", "write 64 or 4096")
            ]
    if most <= least:
        message = f"is {most}, not more than min_ports_per_node ({least})"
        return [NAT_PORTS.finding("max_ports_per_node", message, f"write {least * 2} or more")]
    return []


def growth(pools: Mapping[str, tuple[int, int]], nodes: str, pods: str, field: str = "pools") -> list[Finding]:
    """Check that all pools fit their subnet at their maximum. `pools`: most nodes of each, and the pods per node."""
    primary, of_pods = block(nodes), block(pods)
    if primary is None or of_pods is None:
        return []
    count = sum(most for most, _ in pools.values())
    if count > (room := _by_primary(primary)):
        message = f"may come to {count} nodes, and the range for nodes, {nodes}, holds {room}"
        return [NODES_FEW.finding(field, message, "lower max_nodes, or widen the range")]
    addresses = sum(most * 2 ** (32 - node_block(per_node)) for most, per_node in pools.values())
    if addresses > of_pods.num_addresses:
        message = f"may come to {count} nodes, whose blocks for pods need {addresses} addresses; {pods} has "
        message += f"{of_pods.num_addresses}"
        return [NODES_FEW.finding(field, message, "lower max_nodes or max_pods_per_node, or give pods a wider range")]
    return []


def _range(field: str, cidr: str) -> list[Finding]:
    known = block(cidr)
    if known is None:
        return [RANGE.finding(field, f'is "{cidr}"', range_fix(cidr))]
    for prohibited, what in _PROHIBITED.items():
        if known.overlaps(IPv4Network(prohibited)):
            message = f"is {cidr}, which holds {prohibited} ({what})"
            return [PROHIBITED.finding(field, message, "use a private range, such as 10.0.0.0/16")]
    if not internal(cidr):
        message = f"is {cidr}, which holds public addresses"
        return [PUBLIC.finding(field, message, "use a private range, such as 10.0.0.0/16, or turn default SNAT off")]
    return []
