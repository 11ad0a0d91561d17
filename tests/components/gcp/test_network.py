"""What the network component sends."""

from typing import Any

import pytest

from accel.diagnostics.faults import find
from components.gcp.network import GcpNetwork, GcpNetworkSpec
from tests.support import gcp

from . import makers


def test_a_subnet_a_region_with_ranges_of_its_own() -> None:
    seen = gcp.run(lambda: makers.network("net"))
    assert seen.one("compute/network:Network").inputs["autoCreateSubnetworks"] is False
    subnets = {one.inputs["region"]: one.inputs for one in seen.of("compute/subnetwork:Subnetwork")}
    assert set(subnets) == {"us-central1", "us-east5"}
    for region, given in makers.SUBNETS.items():
        sent = subnets[region]
        assert sent["ipCidrRange"] == given["nodes"] and sent["privateIpGoogleAccess"] is True
        assert sent["secondaryIpRanges"] == [
            {"rangeName": "pods", "ipCidrRange": given["pods"]},
            {"rangeName": "services", "ipCidrRange": given["services"]},
        ]
        assert sent["logConfig"]["aggregationInterval"] == "INTERVAL_10_MIN"
    assert seen.of("compute/firewall:Firewall") == []


def test_nat_hands_out_ports_as_nodes_need_them() -> None:
    seen = gcp.run(lambda: makers.network("net", nat={"min_ports_per_node": 128, "max_ports_per_node": 8192}))
    nats = seen.of("compute/routerNat:RouterNat")
    assert {one.inputs["region"] for one in nats} == {"us-central1", "us-east5"}
    for one in nats:
        assert one.inputs["enableDynamicPortAllocation"] is True
        assert one.inputs["enableEndpointIndependentMapping"] is False
        assert (one.inputs["minPortsPerVm"], one.inputs["maxPortsPerVm"]) == (128, 8192)
        assert one.inputs["router"] == f"net-{one.inputs['region']}-0a1b2c3"


def test_without_nat_and_logs() -> None:
    seen = gcp.run(lambda: makers.network("net", nat=None, flow_logs=None))
    assert not seen.of("compute/router:Router") and not seen.of("compute/routerNat:RouterNat")
    assert all("logConfig" not in one.inputs for one in seen.of("compute/subnetwork:Subnetwork"))


def test_subnets_are_handed_over_by_region() -> None:
    made: list[GcpNetwork] = []
    seen = gcp.run(lambda: made.append(makers.network("net")))
    (component,) = [one.urn for one in seen.registrations if one.type == GcpNetwork.TYPE]
    assert seen.outputs[component]["subnetworks"] == {
        "us-central1": "net-us-central1-id",
        "us-east5": "net-us-east5-id",
    }
    with pytest.raises(KeyError):
        made[0].subnetwork("us-west1")


@pytest.mark.parametrize(
    "changed, fault",
    [
        ({"subnets": {}}, "subnets: "),
        (
            {"subnets": {**makers.SUBNETS, "us-east5": makers.SUBNETS["us-central1"]}},
            "subnets.us-east5.nodes: is 10.60.0.0/20, which overlaps subnets.us-central1.nodes (10.60.0.0/20)",
        ),
        ({"subnets": {"us-central1-a": makers.SUBNETS["us-central1"]}}, 'subnets.us-central1-a: is "us-central1-a"'),
        (
            {"subnets": {"us-central1": {**makers.SUBNETS["us-central1"], "services": "10.61.0.0/30"}}},
            "subnets.us-central1.services: is 10.61.0.0/30, smaller than /28",
        ),
        (
            {"subnets": {"us-central1": {**makers.SUBNETS["us-central1"], "max_pods_per_node": 300}}},
            "subnets.us-central1.max_pods_per_node: must be 8 to 256, is 300",
        ),
        ({"nat": {"min_ports_per_node": 4096}}, "nat.max_ports_per_node: is 4096, not more than"),
        ({"mtu": 9000}, "mtu: "),
        ({"subnet": {}}, "subnet: unknown key; did you mean subnets?"),
    ],
)
def test_what_google_would_refuse(changed: dict[str, Any], fault: str) -> None:
    found = find(GcpNetworkSpec, {"subnets": makers.SUBNETS, **changed})
    assert [str(one) for one in found if str(one).startswith(fault)], list(map(str, found))
