"""Policies on access from outside."""

from collections.abc import Iterator

from ..guard import ResourcePolicy, Settings
from ..resource import Resource, View

ANYWHERE = ("0.0.0.0/0", "::/0")

_INSTANCES = (
    "gcp:compute/instance:Instance",
    "gcp:compute/instanceTemplate:InstanceTemplate",
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
)


def _public_address(resource: Resource, _: Settings) -> Iterator[str]:
    view = resource.view
    match resource.type:
        case "aws:ec2/launchTemplate:LaunchTemplate":
            for interface in view.each("networkInterfaces"):
                if interface.true("associatePublicIpAddress"):
                    yield f"{interface.where}.associatePublicIpAddress is true"
        case "aws:ec2/instance:Instance" if view.true("associatePublicIpAddress"):
            yield "associatePublicIpAddress is true"
        case "aws:ec2/subnet:Subnet" if view.true("mapPublicIpOnLaunch"):
            yield "mapPublicIpOnLaunch is true: whatever starts there is on the internet"
        case "gcp:tpu/v2Vm:V2Vm":
            yield from _tpu(view)
        case "gcp:tpu/v2QueuedResource:V2QueuedResource":
            for spec in view.each("tpu.nodeSpecs"):
                yield from _tpu(spec.inside("node"))
        case "accel:gcp:QueuedTpu" if view.true("spec.external_address"):
            yield "spec.external_address is true"
        case _ if resource.type in _INSTANCES:
            for interface in view.each("networkInterfaces"):
                for given in ("accessConfigs", "ipv6AccessConfigs"):
                    if interface.at(given):
                        yield f"{interface.where}.{given} gives it an external address"
        case _:
            pass


def _tpu(view: View) -> Iterator[str]:
    for network in (*view.each("networkConfig"), *view.each("networkConfigs")):
        if network.true("enableExternalIps"):
            yield f"{network.where}.enableExternalIps is true"


PUBLIC_ADDRESS = ResourcePolicy(
    id="no-public-address",
    severity="high",
    summary="Machines have no address of their own on the internet",
    fix="leave the address out, and let NAT or private access to the clouds' services lead outwards",
    source="https://docs.aws.amazon.com/config/latest/developerguide/ec2-launch-template-public-ip-disabled.html",
    also=("CKV_AWS_88", "CKV_AWS_130", "CKV_GCP_40"),
    types=(
        "aws:ec2/launchTemplate:LaunchTemplate",
        "aws:ec2/instance:Instance",
        "aws:ec2/subnet:Subnet",
        *_INSTANCES,
        "gcp:tpu/v2Vm:V2Vm",
        "gcp:tpu/v2QueuedResource:V2QueuedResource",
        "accel:gcp:QueuedTpu",
    ),
    check=_public_address,
)


def _open_ingress(resource: Resource, _: Settings) -> Iterator[str]:
    view = resource.view
    match resource.type:
        case "aws:ec2/securityGroup:SecurityGroup":
            for rule in view.each("ingress"):
                yield from _open(rule, "cidrBlocks", "ipv6CidrBlocks")
        case "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule":
            yield from _open(view, "cidrIpv4", "cidrIpv6")
        case "aws:ec2/securityGroupRule:SecurityGroupRule" if view.text("type") == "ingress":
            yield from _open(view, "cidrBlocks", "ipv6CidrBlocks")
        case "gcp:compute/firewall:Firewall" if view.text("direction") != "EGRESS" and view.at("allows"):
            yield from _open(view, "sourceRanges")
        case _:
            pass


def _open(view: View, *fields: str) -> Iterator[str]:
    for field in fields:
        yield from (f"{view.path(field)} has {cidr}" for cidr in view.texts(field) if cidr in ANYWHERE)


OPEN_INGRESS = ResourcePolicy(
    id="no-open-ingress",
    severity="critical",
    summary="Nothing is let in from everywhere",
    fix="name the ranges that may connect, or the group or tag of the machines that may",
    source="https://docs.aws.amazon.com/controltower/latest/controlreference/ec2-rules.html",
    also=(
        "CKV_AWS_24",
        "CKV_AWS_25",
        "CKV_AWS_260",
        "CKV_AWS_277",
        "CKV_GCP_2",
        "CKV_GCP_3",
        "CKV_GCP_75",
        "CKV_GCP_77",
        "CKV_GCP_88",
        "CKV_GCP_106",
    ),
    types=(
        "aws:ec2/securityGroup:SecurityGroup",
        "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
        "aws:ec2/securityGroupRule:SecurityGroupRule",
        "gcp:compute/firewall:Firewall",
    ),
    check=_open_ingress,
)

POLICIES = (PUBLIC_ADDRESS, OPEN_INGRESS)
