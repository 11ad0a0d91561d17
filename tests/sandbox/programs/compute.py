"""Every type of a network and of Batch on it. The second version changes what can change."""

import json

import pulumi
import pulumi_aws as aws

VERSION = 1


def pick(first, second):
    return first if VERSION == 1 else second


def trust(service):
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


zones = aws.get_availability_zones(state="available")
vpc = aws.ec2.Vpc(
    "vpc", cidr_block="10.0.0.0/16", enable_dns_hostnames=pick(False, True), tags={"stage": pick("a", "b")}
)
subnet = aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.1.0/24", availability_zone=zones.names[0])
moved = aws.ec2.Subnet("moved", vpc_id=vpc.id, cidr_block=pick("10.0.2.0/24", "10.0.3.0/24"))
gateway = aws.ec2.InternetGateway("gateway", vpc_id=vpc.id)
address = aws.ec2.Eip("address", domain="vpc")
nat = aws.ec2.NatGateway("nat", allocation_id=address.id, subnet_id=subnet.id, tags={"stage": pick("a", "b")})
routed = aws.ec2.RouteTableRouteArgs(cidr_block=pick("10.8.0.0/16", "10.9.0.0/16"), gateway_id=gateway.id)
table = aws.ec2.RouteTable("table", vpc_id=vpc.id, routes=[routed])
other = aws.ec2.RouteTable("other", vpc_id=vpc.id)
aws.ec2.Route("out", route_table_id=other.id, destination_cidr_block="0.0.0.0/0", nat_gateway_id=nat.id)
aws.ec2.RouteTableAssociation("joined", subnet_id=subnet.id, route_table_id=pick(table.id, other.id))
group = aws.ec2.SecurityGroup(
    "group",
    vpc_id=vpc.id,
    ingress=[
        aws.ec2.SecurityGroupIngressArgs(
            protocol="tcp", from_port=22, to_port=22, cidr_blocks=[pick("10.0.0.0/8", "10.1.0.0/16")]
        ),
        aws.ec2.SecurityGroupIngressArgs(protocol="-1", from_port=0, to_port=0, self=True),
    ],
)
empty = aws.ec2.SecurityGroup("empty", vpc_id=vpc.id, description=pick("one", "two"))
ruled = aws.ec2.SecurityGroup("ruled", vpc_id=vpc.id)
aws.vpc.SecurityGroupEgressRule(
    "efa", security_group_id=ruled.id, ip_protocol="-1", referenced_security_group_id=ruled.id
)
aws.vpc.SecurityGroupIngressRule(
    "ssh",
    security_group_id=ruled.id,
    ip_protocol="tcp",
    from_port=pick(80, 81),
    to_port=90,
    cidr_ipv4="10.0.0.0/8",
)
aws.ec2.DefaultSecurityGroup("default", vpc_id=vpc.id)
aws.ec2.VpcEndpoint(
    "s3",
    vpc_id=vpc.id,
    service_name="com.amazonaws.us-east-1.s3",
    route_table_ids=pick([table.id], [table.id, other.id]),
)
aws.ec2.VpcEndpoint(
    "ecr",
    vpc_id=vpc.id,
    service_name="com.amazonaws.us-east-1.ecr.api",
    vpc_endpoint_type="Interface",
    subnet_ids=[subnet.id],
    security_group_ids=[group.id],
    private_dns_enabled=True,
)

host = aws.iam.Role("host", assume_role_policy=trust("ec2.amazonaws.com"), max_session_duration=pick(3600, 7200))
job = aws.iam.Role(
    "job",
    assume_role_policy=trust("ecs-tasks.amazonaws.com"),
    path=pick("/", "/jobs/"),
    managed_policy_arns=["arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"],
    inline_policies=[
        aws.iam.RoleInlinePolicyArgs(
            name="in",
            policy=json.dumps(
                {
                    "Version": "2012-10-17",
                    "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
                }
            ),
        )
    ],
)
read = {"Effect": "Allow", "Action": [pick("s3:Get*", "s3:List*")], "Resource": "*"}
document = json.dumps({"Version": "2012-10-17", "Statement": [read]})
aws.iam.RolePolicy("inline", role=host.name, policy=document)
policy = aws.iam.Policy("policy", policy=document)
aws.iam.RolePolicyAttachment("attached", role=host.name, policy_arn=policy.arn)
profile = aws.iam.InstanceProfile("profile", role=host.name)

logs = aws.cloudwatch.LogGroup("logs", retention_in_days=pick(7, 14))
aws.ec2.FlowLog(
    "flow",
    vpc_id=vpc.id,
    traffic_type="REJECT",
    tags={"stage": pick("a", "b")},
    log_destination=logs.arn,
    iam_role_arn=host.arn,
)

template = aws.ec2.LaunchTemplate(
    "template",
    update_default_version=True,
    tags={"stage": pick("a", "b")},
    block_device_mappings=[
        aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
            device_name="/dev/xvda",
            ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                volume_size=pick(100, 200), volume_type="gp3", encrypted="true", delete_on_termination="true"
            ),
        )
    ],
    metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(http_tokens="required", http_put_response_hop_limit=2),
    network_interfaces=[
        aws.ec2.LaunchTemplateNetworkInterfaceArgs(
            device_index=index,
            network_card_index=index,
            interface_type="efa",
            security_groups=[group.id],
            delete_on_termination="true",
        )
        for index in (0, 1)
    ],
    tag_specifications=[aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type="instance", tags={"owner": "ml"})],
    user_data="IyEvYmluL2Jhc2gK",
)


close = aws.ec2.PlacementGroup("close", strategy="cluster", tags={"stage": pick("a", "b")})
apart = aws.ec2.PlacementGroup("apart", strategy=pick("spread", "partition"))


def environment(name, **resources):
    return aws.batch.ComputeEnvironment(
        name,
        type="MANAGED",
        compute_resources=aws.batch.ComputeEnvironmentComputeResourcesArgs(
            **{
                "type": "EC2",
                "allocation_strategy": "BEST_FIT_PROGRESSIVE",
                "instance_types": ["p5.48xlarge", "g6.xlarge"],
                "instance_role": profile.arn,
                "min_vcpus": 0,
                "subnets": [subnet.id],
                "security_group_ids": [group.id],
                **resources,
            }
        ),
        tags={"team": "ml"},
    )


scaled = environment(
    "scaled",
    max_vcpus=pick(64, 128),
    launch_template=aws.batch.ComputeEnvironmentComputeResourcesLaunchTemplateArgs(
        launch_template_id=template.id, version="$Latest"
    ),
)
# In no queue: AWS refuses to delete an environment for a while after a queue has let go of it.
fixed = environment(
    "fixed", max_vcpus=8, allocation_strategy="BEST_FIT", instance_types=pick(["g6.xlarge"], ["g6.2xlarge"])
)
kept = environment("kept", max_vcpus=8, placement_group=close.name)
share = aws.batch.SchedulingPolicyFairSharePolicyShareDistributionArgs(share_identifier="a", weight_factor=pick(1, 2))
fair = aws.batch.SchedulingPolicy(
    "fair", fair_share_policy=aws.batch.SchedulingPolicyFairSharePolicyArgs(share_distributions=[share])
)
queue = aws.batch.JobQueue(
    "queue",
    priority=pick(1, 5),
    state="ENABLED",
    scheduling_policy_arn=fair.arn,
    compute_environment_orders=[
        aws.batch.JobQueueComputeEnvironmentOrderArgs(order=1, compute_environment=scaled.arn),
        aws.batch.JobQueueComputeEnvironmentOrderArgs(order=2, compute_environment=kept.arn),
    ],
)
needs = [{"type": "VCPU", "value": "4"}, {"type": "MEMORY", "value": "1024"}, {"type": "GPU", "value": "1"}]
container = {"image": pick("local/a", "local/b"), "command": ["true"], "resourceRequirements": needs}
train = aws.batch.JobDefinition(
    "train",
    type="container",
    container_properties=json.dumps(container),
    retry_strategy=aws.batch.JobDefinitionRetryStrategyArgs(attempts=2),
    timeout=aws.batch.JobDefinitionTimeoutArgs(attempt_duration_seconds=600),
)
pulumi.export("queue", queue.arn)
pulumi.export("train", train.arn)
pulumi.export("zones", zones.names)
pulumi.export("moved", moved.availability_zone)
