"""Access to and from the API server of a GKE cluster."""

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network

from accel.diagnostics.findings import GKE, Finding, Rule
from accel.rules.gcp.network import block, internal

_ISOLATION = f"{GKE}concepts/network-isolation"
_AUTHORIZED = f"{GKE}how-to/authorized-networks"

CONTROL_PLANE = Rule(
    "gcp.cluster.control-plane-range",
    "reject",
    "The range of a control plane is a /28 of private addresses",
    "https://registry.terraform.io/providers/hashicorp/google/latest/docs/resources/container_cluster",
)
PRIVATE_ENDPOINT = Rule(
    "gcp.cluster.private-endpoint",
    "reject",
    "A cluster whose nodes are public has no private endpoint alone",
    "https://registry.terraform.io/providers/hashicorp/google/latest/docs/resources/container_cluster",
)
AUTHORIZED_RANGE = Rule("gcp.cluster.authorized-range", "reject", "An authorized network is an IPv4 range", _AUTHORIZED)
AUTHORIZED_INTERNAL = Rule(
    "gcp.cluster.authorized-internal",
    "reject",
    "A private endpoint takes authorized networks of internal addresses only",
    "https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/153",
)
AUTHORIZED_NONE = Rule(
    "gcp.cluster.authorized-none",
    "warn",
    "Without authorized networks a private endpoint answers to the cluster's own subnet only",
    _AUTHORIZED,
)
AUTHORIZED_COUNT = Rule(
    "gcp.cluster.authorized-count",
    "warn",
    "The API's reference allows 50 authorized networks",
    "https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters",
)
OPEN = Rule("gcp.cluster.open", "warn", "A public endpoint without limits answers to the whole internet", _ISOLATION)
PORT = Rule(
    "gcp.cluster.port", "reject", "A port is 1 to 65535", "https://docs.cloud.google.com/firewall/docs/firewalls"
)
ENDPOINT = Rule(
    "gcp.cluster.endpoint",
    "reject",
    "An endpoint is a host, or host:port, without a scheme",
    "https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters",
)
CERTIFICATE = Rule(
    "gcp.cluster.certificate",
    "reject",
    "The authority of a cluster is a PEM certificate in base64",
    "https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters",
)
SNAT = Rule(
    "gcp.cluster.snat",
    "reject",
    "Default SNAT can be turned off where nodes are private, and must be where pods have public addresses",
    f"{GKE}how-to/ip-masquerade-agent",
)

RULES = (
    CONTROL_PLANE, PRIVATE_ENDPOINT, AUTHORIZED_RANGE, AUTHORIZED_INTERNAL, AUTHORIZED_NONE, AUTHORIZED_COUNT, OPEN,
    PORT, ENDPOINT, CERTIFICATE, SNAT,
)  # fmt: skip


def access(
    *, private_nodes: bool, private_endpoint: bool, dns_endpoint: bool, authorized: Mapping[str, str] | None
) -> list[Finding]:
    """Check who reaches the API server. `authorized`: ranges, each with a name; None: no restriction by address."""
    found: list[Finding] = []
    if private_endpoint and not private_nodes:
        message = "is true, and private_nodes is false"
        found.append(PRIVATE_ENDPOINT.finding("private_endpoint", message, "make the nodes private too"))
    for label, cidr in (authorized or {}).items():
        at = f"authorized_networks.{label}"
        if block(cidr) is None:
            message = f'is "{cidr}"'
            found.append(AUTHORIZED_RANGE.finding(at, message, "write an IPv4 range, such as 203.0.113.7/32"))
        elif private_endpoint and not internal(cidr):
            message = f"is {cidr}, which holds public addresses, and the endpoint is private"
            found.append(AUTHORIZED_INTERNAL.finding(at, message, "name internal ranges only"))
        elif not private_endpoint and block(cidr) == IPv4Network("0.0.0.0/0"):
            found.append(OPEN.finding(at, "is 0.0.0.0/0", "name the ranges that people and CI come from"))
    if authorized is None and not private_endpoint:
        message = "is absent, and the endpoint is public"
        found.append(OPEN.finding("authorized_networks", message, "name the ranges that people and CI come from"))
    if private_endpoint and not authorized and not dns_endpoint:
        message = "names none, and the endpoint is private"
        fix = "name the ranges of your VPN and of CI, or set dns_endpoint"
        found.append(AUTHORIZED_NONE.finding("authorized_networks", message, fix))
    if authorized and len(authorized) > 50:
        message = f"names {len(authorized)} ranges"
        found.append(AUTHORIZED_COUNT.finding("authorized_networks", message, "join neighbouring ranges"))
    return found


def control_plane(cidr: str, field: str = "control_plane_cidr") -> list[Finding]:
    """Check the range of the control plane."""
    known = block(cidr)
    if known is not None and known.prefixlen == 28 and internal(cidr):
        return []
    return [CONTROL_PLANE.finding(field, f'is "{cidr}"', "write a private /28, such as 172.16.0.0/28")]


def cluster_access(endpoint: str, ca_certificate: str) -> list[Finding]:
    """Check the endpoint and certificate of an existing cluster."""
    found: list[Finding] = []
    if not re.fullmatch(r"[A-Za-z0-9.-]+(:\d{1,5})?", endpoint):
        fix = "write what `gcloud container clusters describe` calls endpoint"
        found.append(ENDPOINT.finding("endpoint", f'is "{endpoint}"', fix))
    try:
        pem = b64decode(ca_certificate, validate=True)
    except ValueError:
        pem = b""
    if not pem.startswith(b"-----BEGIN CERTIFICATE-----"):
        fix = "write what `gcloud container clusters describe` calls masterAuth.clusterCaCertificate"
        found.append(CERTIFICATE.finding("ca_certificate", "is no PEM certificate in base64", fix))
    return found


def ports(given: Sequence[int], field: str = "webhook_ports") -> list[Finding]:
    """Check the node ports that the control plane calls."""
    return [
        PORT.finding(f"{field}[{i}]", f"must be 1 to 65535, is {port}", "write one such as 9443")
        for i, port in enumerate(given)
        if not 1 <= port <= 65535
    ]


def snat(*, default_snat: bool, private_nodes: bool, pods: str | None = None) -> list[Finding]:
    """Check whether nodes replace the source address of packets that pods send out of the cluster."""
    if not default_snat and not private_nodes:
        message = "is false, and private_nodes is false"
        return [SNAT.finding("default_snat", message, "leave it true, or make the nodes private")]
    if default_snat and pods is not None and block(pods) is not None and not internal(pods):
        message = f"is true, and pods have public addresses ({pods})"
        return [SNAT.finding("default_snat", message, "write false, or give pods a private range")]
    return []
