"""NAT gateways that let go: moto 5.2.1 leaves address and network interface of a deleted one as they were.

Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteNatGateway.html
"""

from typing import Any


def install() -> None:
    """Let moto's gateways disassociate their addresses, and take their interfaces with them."""
    from moto.ec2.models.nat_gateways import NatGatewayBackend

    delete = NatGatewayBackend.delete_nat_gateway

    def released(self: Any, nat_gateway_id: str) -> Any:
        gateway = delete(self, nat_gateway_id)
        for address in [each for each in self.addresses if each.eni is gateway._eni]:
            self.disassociate_address(address=address.public_ip)
        self.enis.pop(gateway._eni.id, None)
        return gateway

    NatGatewayBackend.delete_nat_gateway = released  # type: ignore[method-assign]
