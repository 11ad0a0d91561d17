"""Cases of the policies of what reaches the outside."""

from policy.resource import UNSEEN

from .shapes import DECLARED, EC2, GCE, QUEUED, TEMPLATE, TPU, Case, each, one

FIREWALL = "gcp:compute/firewall:Firewall"


CASES: dict[str, Case] = {
    "no-public-address": each(
        [
            one(TEMPLATE, networkInterfaces=[{"associatePublicIpAddress": "false"}]),
            one("aws:ec2/subnet:Subnet", mapPublicIpOnLaunch=False),
            one(GCE, networkInterfaces=[{"subnetwork": "s"}]),
            one(TPU, networkConfig={"enableExternalIps": False}),
        ],
        [
            (one(TEMPLATE, networkInterfaces=[{"associatePublicIpAddress": "true"}]), "networkInterfaces[0]"),
            (one(EC2, associatePublicIpAddress=True), "associatePublicIpAddress is true"),
            (one("aws:ec2/subnet:Subnet", mapPublicIpOnLaunch=True), "mapPublicIpOnLaunch"),
            (
                one(GCE, networkInterfaces=[{}, {"accessConfigs": [{"natIp": ""}]}]),
                "networkInterfaces[1].accessConfigs",
            ),
            (one(TPU, networkConfigs=[{"enableExternalIps": True}]), "networkConfigs[0].enableExternalIps"),
            (
                one(QUEUED, tpu={"nodeSpecs": [{"node": {"networkConfig": {"enableExternalIps": True}}}]}),
                "tpu.nodeSpecs[0].node.networkConfig[0].enableExternalIps",
            ),
            (one(DECLARED, spec={"external_address": True}), "spec.external_address is true"),
        ],
        [
            (one(TEMPLATE, networkInterfaces=UNSEEN), "networkInterfaces"),
            (one(TPU, networkConfig={"enableExternalIps": UNSEEN}), "networkConfig[0].enableExternalIps"),
        ],
    ),
    "no-open-ingress": each(
        [
            one("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", cidrIpv4="10.0.0.0/16"),
            one("aws:ec2/securityGroupRule:SecurityGroupRule", type="egress", cidrBlocks=["0.0.0.0/0"]),
            one(FIREWALL, direction="INGRESS", sourceRanges=["35.235.240.0/20"], allows=[{"protocol": "tcp"}]),
            one(FIREWALL, direction="INGRESS", sourceRanges=["0.0.0.0/0"], denies=[{"protocol": "all"}]),
            one(FIREWALL, direction="EGRESS", destinationRanges=["0.0.0.0/0"], allows=[{"protocol": "all"}]),
        ],
        [
            (one("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", cidrIpv6="::/0"), "cidrIpv6 has ::/0"),
            (one("aws:ec2/securityGroup:SecurityGroup", ingress=[{"cidrBlocks": ["0.0.0.0/0"]}]), "ingress[0]"),
            (
                one("aws:ec2/securityGroupRule:SecurityGroupRule", type="ingress", cidrBlocks=["0.0.0.0/0"]),
                "cidrBlocks",
            ),
            (one(FIREWALL, sourceRanges=["10.0.0.0/8", "0.0.0.0/0"], allows=[{"protocol": "tcp"}]), "sourceRanges has"),
        ],
        [
            (one("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", cidrIpv4=UNSEEN), "cidrIpv4"),
            (one(FIREWALL, sourceRanges=[UNSEEN], allows=[{}]), "sourceRanges"),
        ],
    ),
}
