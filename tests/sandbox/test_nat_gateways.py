"""A NAT gateway that is deleted lets go of its address and of its network interface."""

from typing import Any


def test_a_deleted_gateway_lets_go_of_its_address(aws: Any) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24")["Subnet"]["SubnetId"]
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]

    def shown() -> Any:
        return ec2.describe_addresses(AllocationIds=[address])["Addresses"][0]

    def interfaces() -> list[Any]:
        found = ec2.describe_network_interfaces(Filters=[{"Name": "subnet-id", "Values": [subnet]}])
        return found["NetworkInterfaces"]

    gateway = ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
    assert shown()["AssociationId"] and shown()["NetworkInterfaceId"] == interfaces()[0]["NetworkInterfaceId"]
    ec2.delete_nat_gateway(NatGatewayId=gateway)
    assert not shown().get("AssociationId") and not shown().get("NetworkInterfaceId") and interfaces() == []
    again = ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
    assert shown()["AssociationId"]
    ec2.delete_nat_gateway(NatGatewayId=again)
    ec2.release_address(AllocationId=address)
    ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_vpc(VpcId=vpc)
