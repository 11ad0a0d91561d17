"""For each policy: resources that pass, that fail with these words, and of which it cannot be told yet."""

import json
from dataclasses import dataclass, field
from typing import Any

from policy.resource import UNSEEN, Resource

OWN = {"accel:owner": "ml", "accel:project": "accel", "accel:stack": "dev"}
OURS = {"accel-owner": "ml", "accel-project": "accel", "accel-stack": "dev"}
AWS = {"region": "us-east-1", "defaultTags": json.dumps({"tags": OWN})}
GOOGLE = {"region": "us-central1", "defaultLabels": json.dumps(OURS)}

TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
EC2 = "aws:ec2/instance:Instance"
GCE = "gcp:compute/instance:Instance"
POOL = "gcp:container/nodePool:NodePool"
CLUSTER = "gcp:container/cluster:Cluster"
TPU = "gcp:tpu/v2Vm:V2Vm"
QUEUED = "gcp:tpu/v2QueuedResource:V2QueuedResource"
POLICY = "aws:iam/policy:Policy"
DEFINITION = "aws:batch/jobDefinition:JobDefinition"
COMPUTE = "aws:batch/computeEnvironment:ComputeEnvironment"
GROUP = "aws:cloudwatch/logGroup:LogGroup"
BUCKET = "gcp:storage/bucket:Bucket"
FIREWALL = "gcp:compute/firewall:Firewall"
DAEMONS = "kubernetes:apps/v1:DaemonSet"
ROLE = "arn:aws:iam::111122223333:role/job"
MANAGED = "arn:aws:iam::aws:policy"
DIGEST = "repo/train@sha256:" + "0" * 64


def one(kind: str, name: str = "one", /, *, protect: bool = False, **properties: Any) -> Resource:
    provider = {"aws": AWS, "gcp": GOOGLE}.get(kind.partition(":")[0])
    return Resource(kind, name, f"urn:pulumi:dev::accel::{kind}::{name}", properties, protect, None, provider)


def allows(actions: Any, resources: Any, **more: Any) -> Resource:
    statement = {"Effect": "Allow", "Action": actions, "Resource": resources, **more}
    return one(POLICY, policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


def trusts(principal: Any, **more: Any) -> Resource:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal, **more}
    return one("aws:iam/role:Role", assumeRolePolicy=json.dumps({"Statement": [statement]}))


def node(**config: Any) -> Resource:
    return one(POOL, nodeConfig=config)


def containers(*images: str, **more: Any) -> Resource:
    return one(DAEMONS, spec={"template": {"spec": {"containers": [{"image": each, **more} for each in images]}}})


def batch(kind: str, types: list[Any], most: Any, name: str = "pool") -> Resource:
    return one(COMPUTE, name, computeResources={"type": kind, "instanceTypes": types, "maxVcpus": most})


def pool(machine: str, most: Any, name: str = "pool", **more: Any) -> Resource:
    config = {"machineType": machine, **more.pop("config", {})}
    scale = {"totalMaxNodeCount": most}
    return one(POOL, name, location="us-central1", nodeConfig=config, autoscaling=scale, **more)


@dataclass(frozen=True)
class Case:
    """`passes` and `fails` are stacks, of one resource for most policies."""

    passes: list[list[Resource]]
    fails: list[tuple[list[Resource], str]]
    unknown: list[tuple[list[Resource], str]]
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


def each(
    passes: list[Resource],
    fails: list[tuple[Resource, str]],
    unknown: list[tuple[Resource, str]],
    **settings: Any,
) -> Case:
    return Case(
        [[ok] for ok in passes], [([bad], said) for bad, said in fails], [([n], p) for n, p in unknown], settings
    )


PASSED = {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
SHIELD = {"enableSecureBoot": True, "enableIntegrityMonitoring": True}
OTHERS_DRIVER = [{"type": "nvidia-l4", "gpuDriverInstallationConfig": {"gpuDriverVersion": "INSTALLATION_DISABLED"}}]
DISK = {"deviceName": "/dev/xvda", "ebs": {"encrypted": "true"}}
TAGGED = [{"resourceType": kind, "tags": OWN} for kind in ("instance", "volume")]
PERSISTENT = "gcp:vertex/aiPersistentResource:AiPersistentResource"

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
    "no-wildcard-iam": each(
        [
            allows(["batch:SubmitJob"], "arn:aws:batch:us-east-1:1:job-queue/gpu"),
            allows(["batch:DescribeJobs", "ecr:GetAuthorizationToken"], "*"),
            allows("cloudwatch:PutMetricData", "*", Condition={"StringEquals": {"cloudwatch:namespace": "accel"}}),
            one("aws:iam/rolePolicyAttachment:RolePolicyAttachment", policyArn=f"{MANAGED}/ReadOnlyAccess"),
            one(POLICY, policy=json.dumps({"Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}})),
            one("aws:iam/role:Role", assumeRolePolicy="{}"),
        ],
        [
            (allows("*", "*"), "policy.Statement[0].Action has *"),
            (allows(["s3:*"], "arn:aws:s3:::data"), "s3:*"),
            (allows("s3:?*", "arn:aws:s3:::data"), "s3:?*"),
            (allows("s3:GetObject", "*"), '"*" for s3:GetObject'),
            (allows(["batch:DescribeJobs", "batch:SubmitJob"], "arn:aws:*"), '"*" for batch:SubmitJob'),
            (allows("cloudwatch:PutMetricData", "*"), '"*" for cloudwatch:PutMetricData'),
            (
                allows("cloudwatch:PutMetricData", "*", Condition={"StringNotLike": {"cloudwatch:namespace": "a"}}),
                '"*" for cloudwatch:PutMetricData',
            ),
            (
                one("aws:iam/rolePolicyAttachment:RolePolicyAttachment", policyArn=f"{MANAGED}/AdministratorAccess"),
                "policyArn has",
            ),
            (one("aws:iam/role:Role", managedPolicyArns=[f"{MANAGED}/IAMFullAccess"]), "managedPolicyArns has"),
            (allows(["batch:DescribeJobs", "batch:TerminateJob"], "*"), '"*" for batch:TerminateJob'),
            (
                one(POLICY, policy=json.dumps({"Statement": [{"Effect": "Allow", "NotAction": "iam:*"}]})),
                "NotAction allows all but",
            ),
            (
                one("aws:iam/role:Role", inlinePolicies=[{"policy": allows("*", "*").properties["policy"]}]),
                "inlinePolicies[0].policy.Statement[0].Action has *",
            ),
            (one(POLICY, policy="{"), "policy is not JSON"),
        ],
        [(one(POLICY, policy=UNSEEN), "policy")],
    ),
    "pass-role-by-arn": each(
        [
            allows("iam:PassRole", [ROLE], Condition=PASSED),
            allows("iam:GetRole", "*"),
            allows("iam:PassRole", "arn:aws-cn:iam::111122223333:role/path/job", Condition=PASSED),
        ],
        [
            (allows("iam:PassRole", "*", Condition=PASSED), "lets * be passed"),
            (allows("iam:Pass*", ["arn:aws:iam::111122223333:role/*"], Condition=PASSED), "role/* be passed"),
            (allows("*", [ROLE]), "names no service"),
            (
                allows("iam:PassRole", [ROLE], Condition={"StringNotEquals": {**PASSED["StringEquals"]}}),
                "names no service",
            ),
            (
                allows("iam:PassRole", [ROLE], Condition={"StringLike": {"iam:PassedToService": "*"}}),
                "names no service",
            ),
        ],
        [(one("aws:iam/rolePolicy:RolePolicy", policy=UNSEEN), "policy")],
    ),
    "no-open-trust": each(
        [
            trusts({"Service": "ec2.amazonaws.com"}),
            trusts({"AWS": ["arn:aws:iam::111122223333:root"]}),
            trusts("*", Condition={"StringEquals": {"aws:PrincipalOrgID": "o-1"}}),
            one("aws:iam/role:Role", assumeRolePolicy="{}"),
        ],
        [
            (trusts("*"), "assumeRolePolicy.Statement[0].Principal is *"),
            (trusts({"AWS": ["arn:aws:iam::111122223333:root", "*"]}), "every account may take the role"),
        ],
        [(one("aws:iam/role:Role", assumeRolePolicy=UNSEEN), "assumeRolePolicy")],
    ),
    "no-basic-roles": each(
        [
            one("gcp:projects/iAMMember:IAMMember", role="roles/logging.logWriter"),
            one("gcp:projects/iAMMember:IAMMember", role="projects/p/roles/editor"),
        ],
        [
            (one("gcp:projects/iAMMember:IAMMember", role="roles/editor"), "role is roles/editor"),
            (one("gcp:folder/iAMBinding:IAMBinding", role="roles/owner"), "role is roles/owner"),
        ],
        [(one("gcp:projects/iAMMember:IAMMember", role=UNSEEN), "role")],
    ),
    "no-default-service-account": each(
        [node(serviceAccount="nodes@p.iam.gserviceaccount.com"), one(TPU, serviceAccount={"email": "tpu@p.iam"})],
        [
            (node(machineType="e2-standard-4"), "nodeConfig.serviceAccount is not set"),
            (one(GCE, serviceAccount={"email": "12345-compute@developer.gserviceaccount.com"}), "default account"),
            (one(TPU), "serviceAccount.email is not set"),
        ],
        [(node(serviceAccount=UNSEEN), "nodeConfig.serviceAccount")],
    ),
    "imdsv2": each(
        [
            one(TEMPLATE, metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 1.0}),
            one(TEMPLATE, metadataOptions={"httpEndpoint": "disabled"}),
        ],
        [
            (one(TEMPLATE), "httpTokens is not required"),
            (one(EC2, metadataOptions={"httpTokens": "optional"}), "httpTokens is not required"),
            (
                one(TEMPLATE, metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 2}),
                "httpPutResponseHopLimit is 2, more than 1",
            ),
        ],
        [(one(TEMPLATE, metadataOptions=UNSEEN), "metadataOptions.httpEndpoint")],
    ),
    "no-privileged-jobs": each(
        [
            one(DEFINITION, containerProperties=json.dumps({"image": DIGEST})),
            one(DEFINITION, containerProperties=json.dumps({"privileged": False})),
        ],
        [
            (one(DEFINITION, containerProperties=json.dumps({"privileged": True})), "containerProperties.privileged"),
            (
                one(
                    DEFINITION,
                    nodeProperties=json.dumps({"nodeRangeProperties": [{"container": {"privileged": True}}]}),
                ),
                "nodeProperties.nodeRangeProperties[0].container[0].privileged",
            ),
        ],
        [(one(DEFINITION, containerProperties=UNSEEN), "containerProperties")],
    ),
    "shielded-nodes": each(
        [
            one(CLUSTER, enableShieldedNodes=True),
            node(shieldedInstanceConfig=SHIELD),
            node(shieldedInstanceConfig={"enableSecureBoot": False}, guestAccelerators=OTHERS_DRIVER),
        ],
        [
            (one(CLUSTER, enableShieldedNodes=False), "enableShieldedNodes is false"),
            (node(machineType="g2-standard-8"), "enableSecureBoot is not true"),
            (
                node(shieldedInstanceConfig={"enableSecureBoot": True, "enableIntegrityMonitoring": False}),
                "enableIntegrityMonitoring is false",
            ),
        ],
        [(node(shieldedInstanceConfig=UNSEEN), "nodeConfig.shieldedInstanceConfig.enableIntegrityMonitoring")],
    ),
    "workload-identity": each(
        [
            one(CLUSTER, workloadIdentityConfig={"workloadPool": "p.svc.id.goog"}),
            one(CLUSTER, enableAutopilot=True),
            node(workloadMetadataConfig={"mode": "GKE_METADATA"}),
        ],
        [
            (one(CLUSTER, location="us-central1"), "workloadPool is not set"),
            (node(workloadMetadataConfig={"mode": "GCE_METADATA"}), "pods get the node's credentials"),
            (node(), "is not GKE_METADATA"),
        ],
        [(one(CLUSTER, workloadIdentityConfig={"workloadPool": UNSEEN}), "workloadIdentityConfig.workloadPool")],
    ),
    "private-nodes": each(
        [
            one(CLUSTER, privateClusterConfig={"enablePrivateNodes": True}),
            one(POOL, networkConfig={"enablePrivateNodes": True}),
            one(POOL, location="us-central1"),
        ],
        [
            (one(CLUSTER, location="us-central1"), "enablePrivateNodes is not true"),
            (one(POOL, networkConfig={"enablePrivateNodes": False}), "enablePrivateNodes is false"),
        ],
        [(one(CLUSTER, privateClusterConfig=UNSEEN), "privateClusterConfig.enablePrivateNodes")],
    ),
    "disks-encrypted": each(
        [
            one(TEMPLATE, blockDeviceMappings=[DISK, {"deviceName": "/dev/sdb", "virtualName": "ephemeral0"}]),
            one(EC2, rootBlockDevice={"encrypted": True}),
            one("aws:efs/fileSystem:FileSystem", encrypted=True),
        ],
        [
            (one(TEMPLATE), "blockDeviceMappings are not given"),
            (
                one(TEMPLATE, blockDeviceMappings=[DISK, {"ebs": {"volumeSize": 1}}]),
                "blockDeviceMappings[1].ebs.encrypted",
            ),
            (one(EC2, ebsBlockDevices=[{"volumeSize": 9}]), "ebsBlockDevices[0].encrypted"),
            (one("aws:ebs/volume:Volume", size=10), "encrypted is not true"),
        ],
        [(one("aws:ebs/volume:Volume", encrypted=UNSEEN), "encrypted")],
    ),
    "protected-state": each(
        [
            one("aws:ecr/repository:Repository", protect=True),
            one(CLUSTER, deletionProtection=True),
            one("gcp:firestore/database:Database", deleteProtectionState="DELETE_PROTECTION_ENABLED"),
        ],
        [
            (one("aws:ecr/repository:Repository"), "neither protected nor kept"),
            (one("aws:dynamodb/table:Table", hashKey="k"), "deletionProtectionEnabled is not True"),
            (one(CLUSTER, deletionProtection=False), "deletionProtection is not True"),
        ],
        [(one(CLUSTER, deletionProtection=UNSEEN), "deletionProtection")],
    ),
    "log-retention": each(
        [one(GROUP, retentionInDays=30.0), one(GROUP, retentionInDays=7)],
        [
            (one(GROUP, name="x"), "retentionInDays is not set"),
            (one(GROUP, retentionInDays=0), "retentionInDays is not set"),
            (one(GROUP, retentionInDays=3), "retentionInDays is 3, less than 7"),
        ],
        [(one(GROUP, retentionInDays=UNSEEN), "retentionInDays")],
    ),
    "images-by-digest": each(
        [
            one(DEFINITION, containerProperties=json.dumps({"image": DIGEST})),
            one(DEFINITION, containerProperties=json.dumps({"image": "local/examples"})),
            containers(DIGEST),
            containers("installer:fixed", imagePullPolicy="Never"),
        ],
        [
            (one(DEFINITION, containerProperties=json.dumps({"image": "repo/train:1"})), "image is repo/train:1"),
            (containers(DIGEST, "repo/sidecar"), "spec.template.spec.containers[1].image is repo/sidecar"),
        ],
        [
            (one(DEFINITION, containerProperties=UNSEEN), "containerProperties"),
            (containers(UNSEEN), "spec.template.spec.containers[0].image"),  # type: ignore[arg-type]
        ],
    ),
    "cost-labels": each(
        [
            one("aws:ec2/natGateway:NatGateway"),
            one(TEMPLATE, tagSpecifications=TAGGED),
            one(COMPUTE, computeResources={"tags": OWN}),
            one(POOL, nodeConfig={"resourceLabels": OURS}),
            one(BUCKET, labels={"more": "x"}),
        ],
        [
            (one(TEMPLATE), "tagSpecifications of instance lacks accel:owner, accel:project, accel:stack"),
            (one(TEMPLATE, tagSpecifications=TAGGED[:1]), "tagSpecifications of volume lacks"),
            (one(COMPUTE, computeResources={"tags": {"accel:owner": "ml"}}), "lacks accel:project, accel:stack"),
            (node(machineType="e2-standard-4"), "nodeConfig.resourceLabels lacks accel-owner"),
        ],
        [
            (one(BUCKET, labels=UNSEEN), "labels"),
            (Resource("aws:s3/bucket:Bucket", "b", "urn::b", {}), "provider"),
        ],
    ),
    "no-public-buckets": each(
        [one(BUCKET, publicAccessPrevention="enforced", uniformBucketLevelAccess=True)],
        [
            (one(BUCKET, uniformBucketLevelAccess=True), "publicAccessPrevention is not enforced"),
            (one(BUCKET, publicAccessPrevention="enforced"), "single objects can be made public"),
        ],
        [(one(BUCKET, publicAccessPrevention=UNSEEN), "publicAccessPrevention")],
    ),
}

L4S = {"config": {"guestAccelerators": [{"type": "nvidia-l4", "count": 1}]}}
SLICE = {"placementPolicy": {"tpuTopology": "4x4"}}
T4S = {"type": "nvidia-tesla-t4", "count": 2}
KEPT = one(
    PERSISTENT,
    "kept",
    location="us-central1",
    resourcePools=[
        {"machineSpec": {"machineType": "a2-highgpu-1g"}, "autoscalingSpec": {"maxReplicaCount": "8"}},
        {"machineSpec": {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}},
    ],
)
GPU_GROUP = one(
    "accel:gcp:GpuVmGroup", "group", spec={"machine_type": "a2-highgpu-8g", "zone": "us-central1-a", "size": 2}
)
ATTACHED = one(GCE, "n1", zone="us-central1-a", machineType="n1-standard-8", guestAccelerators=[T4S])

CASES["accelerators-maximum"] = Case(
    passes=[
        [batch("SPOT", ["g5.xlarge"], 32), pool("g2-standard-8", 8, **L4S)],
        [batch("FARGATE", [], 4000), pool("ct5lp-hightpu-4t", 4, **SLICE)],
        [one(TPU, zone="us-central1-a", acceleratorType="v5litepod-16")],
        [GPU_GROUP],
        [one(COMPUTE, state="DISABLED", computeResources={"type": "EC2", "instanceTypes": ["p5"], "maxVcpus": 9999})],
        [batch("EC2", ["optimal"], 4000), one(EC2, instanceType="p5.48xlarge")],
    ],
    fails=[
        ([batch("EC2", ["g5.xlarge", "g5.48xlarge"], 68)], "can come to 17 GPUs and TPU chips, more than 16: pool 17"),
        ([pool("g2-standard-8", 17, **L4S)], "can come to 17"),
        (
            [pool("ct5lp-hightpu-4t", 4, **SLICE), ATTACHED],
            "can come to 18 GPUs and TPU chips, more than 16: pool 16, n1 2",
        ),
        ([one(QUEUED, zone="us-central1-a", tpu={"nodeSpecs": [{"node": {"acceleratorType": "v5litepod-32"}}]})], "32"),
        ([GPU_GROUP, KEPT], "can come to 25"),
        ([one(POOL, location="us-central1", nodeConfig={"machineType": "a2-highgpu-1g"}, initialNodeCount=6)], "to 18"),
        ([one(EC2, instanceType="p5.48xlarge"), one(EC2, "b", instanceType="p4d.24xlarge"), KEPT], "can come to 25"),
        ([batch("SPOT", ["z99"], 8, "odd")], "cannot be told, since the catalogue does not have the machines of odd"),
        (
            [batch("EC2", ["g5.xlarge"], 80), batch("SPOT", ["z99"], 8, "odd")],
            "not counted: odd (unknown instance type",
        ),
    ],
    unknown=[
        ([batch("EC2", [UNSEEN], 8)], "pool: computeResources.instanceTypes"),
        ([batch("EC2", ["g5"], UNSEEN)], "pool: computeResources.maxVcpus"),
    ],
    settings={"most": 16},
)
CASES["hourly-cost-maximum"] = Case(
    passes=[[batch("SPOT", ["g5.xlarge"], 8)], [pool("e2-standard-4", 3)]],
    fails=[
        ([batch("SPOT", ["p5.48xlarge"], 768)], "USD an hour on demand, more than 20.00: pool"),
        ([GPU_GROUP, batch("EC2", ["g5.xlarge"], 8)], "more than 20.00: group"),
        ([batch("EC2", ["optimal"], 8, "any")], "no price is known for all machines of any"),
    ],
    unknown=[([batch("EC2", ["g5"], UNSEEN)], "pool: computeResources.maxVcpus")],
    settings={"usd_hour": 20},
)
CASES["spot-first"] = Case(
    passes=[
        [batch("SPOT", ["g5.xlarge"], 64), batch("EC2", ["g5.xlarge"], 64, "rest")],
        [pool("g2-standard-8", 4, config={"spot": True}), pool("e2-standard-4", 9, "cpus")],
    ],
    fails=[
        (
            [batch("EC2", ["g5.xlarge"], 64)],
            "16 of 16 GPUs and TPU chips are on demand, more than a share of 0.5: pool 16",
        ),
        ([pool("g2-standard-8", 4), pool("g2-standard-8", 3, "spot", config={"spot": True})], "4 of 7"),
    ],
    unknown=[([pool("g2-standard-8", 4, config={"spot": UNSEEN})], "pool: nodeConfig.spot")],
    settings={"on_demand_share": 0.5},
)
