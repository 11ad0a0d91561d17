"""Access to and from the API server of a GKE cluster."""

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network

from accel.diagnostics.findings import Finding
from accel.rules.gcp.network import block, internal
from accel.rules.table import rule

CONTROL_PLANE = rule("gcp.cluster.control-plane-range")
PRIVATE_ENDPOINT = rule("gcp.cluster.private-endpoint")
AUTHORIZED_RANGE = rule("gcp.cluster.authorized-range")
AUTHORIZED_INTERNAL = rule("gcp.cluster.authorized-internal")
AUTHORIZED_NONE = rule("gcp.cluster.authorized-none")
AUTHORIZED_COUNT = rule("gcp.cluster.authorized-count")
OPEN = rule("gcp.cluster.open")
PORT = rule("gcp.cluster.port")
ENDPOINT = rule("gcp.cluster.endpoint")
CERTIFICATE = rule("gcp.cluster.certificate")
SNAT = rule("gcp.cluster.snat")


def access(
    *, private_nodes: bool, private_endpoint: bool, dns_endpoint: bool, authorized: Mapping[str, str] | None
) -> list[Finding]:
    """Check who reaches the API server. `authorized`: ranges by name; None: no restriction by address."""
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
    known = block(cidr)
    if known is not None and known.prefixlen == 28 and internal(cidr):
        return []
    return [CONTROL_PLANE.finding(field, f'is "{cidr}"', "write a private /28, such as 172.16.0.0/28")]


def cluster_access(endpoint: str, ca_certificate: str) -> list[Finding]:
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
    return [
        PORT.finding(f"{field}[{i}]", f"must be 1 to 65535, is {port}", "write one such as 9443")
        for i, port in enumerate(given)
        if not 1 <= port <= 65535
    ]


def snat(*, default_snat: bool, private_nodes: bool, pods: str | None = None) -> list[Finding]:
    """Check whether nodes replace the source address of what pods send out of the cluster."""
    if not default_snat and not private_nodes:
        message = "is false, and private_nodes is false"
        return [SNAT.finding("default_snat", message, "leave it true, or make the nodes private")]
    if default_snat and pods is not None and block(pods) is not None and not internal(pods):
        message = f"is true, and pods have public addresses ({pods})"
        return [SNAT.finding("default_snat", message, "write false, or give pods a private range")]
    return []
