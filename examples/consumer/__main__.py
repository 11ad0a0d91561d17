"""Another team's program: builds on what the platform's stack exports, and checks the shape while it does."""

import pulumi

from accel.contract.network import AwsNetwork
from accel.contract.stack import read, read_targets

platform = pulumi.StackReference(pulumi.Config().require("platform"))

pulumi.export("subnets", read(AwsNetwork, platform, "network").apply(lambda network: network.subnet_ids))
pulumi.export("queue", read_targets(platform).apply(lambda targets: targets["gpu"].queue_arn))
