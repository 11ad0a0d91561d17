"""Several providers in one program, what is refused, and what a failed creation leaves."""

import pytest

from tests.support.engine import Engine, Sandbox
from tests.support.soak import soak_only

pytest_plugins = ["tests.support.engine"]
pytestmark = pytest.mark.engine

PROVIDERS = """
import pulumi
import pulumi_aws as aws

def provider(name, region, **tags):
    return aws.Provider(name, region=region, default_tags=aws.ProviderDefaultTagsArgs(tags=tags))

a = provider("a", "us-west-2", team="one", {more})
b = provider("b", "{region}", team="two")
aws.cloudwatch.LogGroup("here")
aws.cloudwatch.LogGroup("a", tags={{"own": "1"}}, opts=pulumi.ResourceOptions(provider=a))
aws.cloudwatch.LogGroup("b", opts=pulumi.ResourceOptions(provider=b))
aws.cloudwatch.LogGroup("c", region="ap-south-1", opts=pulumi.ResourceOptions(provider=b))
zones = aws.get_availability_zones(opts=pulumi.InvokeOptions(provider=b))
pulumi.export("zone", zones.names[0])
"""


@soak_only
def test_two_providers_keep_their_regions(engine: Engine, sandbox: Sandbox) -> None:
    def groups(region: str) -> dict[str, dict[str, str]]:
        logs = sandbox.client("logs", region)
        found = logs.describe_log_groups()["logGroups"]
        return {
            g["logGroupName"].partition("-")[0]: logs.list_tags_for_resource(resourceArn=g["arn"].removesuffix(":*"))[
                "tags"
            ]
            for g in found
            if g["logGroupName"].partition("-")[0] in ("here", "a", "b", "c")
        }

    assert engine.write(PROVIDERS.format(region="eu-west-1", more="")).up().outputs["zone"] == "eu-west-1a"
    assert groups("us-east-1") == {"here": {}}
    assert groups("us-west-2") == {"a": {"team": "one", "own": "1"}}
    assert groups("eu-west-1") == {"b": {"team": "two"}}
    assert groups("ap-south-1") == {"c": {"team": "two"}}
    assert engine.refresh().ops() == {"same": 6}

    # The region of a provider replaces its resources, a default tag changes them in place.
    moved = engine.write(PROVIDERS.format(region="eu-north-1", more="stage='x'")).up()
    assert moved.step("b", "replace").replaces == ("region",)
    assert moved.step("a", "update").type == "pulumi:providers:aws"
    assert {s.diffs for s in moved.steps if s.op == "update" and s.type.endswith("LogGroup")} == {("tagsAll.stage",)}
    assert groups("us-west-2") == {"a": {"team": "one", "own": "1", "stage": "x"}}
    assert groups("eu-west-1") == {} and groups("eu-north-1") == {"b": {"team": "two"}}
    engine.destroy()


REFUSED = """
import pulumi_aws as aws
aws.sqs.Queue("queue")
"""
UNMAPPED = """
import pulumi_aws as aws
aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", ipv6_netmask_length=56, tags={"a": "b"})
aws.ec2.Subnet("subnet", vpc_id="vpc-1", cidr_block="10.0.0.0/24", enable_dns64=True)
aws.batch.JobDefinition("job", type="container", container_properties='{"imagge": "x"}')
"""
INVALID = """
import pulumi_aws as aws
vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
subnet = aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.1.0/24")
group = aws.ec2.SecurityGroup("group", vpc_id=vpc.id)
aws.batch.ComputeEnvironment(
    "gpu",
    type="MANAGED",
    compute_resources=aws.batch.ComputeEnvironmentComputeResourcesArgs(
        type="EC2",
        allocation_strategy="BEST_FIT_PROGRESSIVE",
        instance_types=["g6.xlarge"],
        instance_role="arn:aws:iam::210020003000:instance-profile/absent",
        max_vcpus=16,
        min_vcpus=0,
        subnets=[subnet.id],
        security_group_ids=[group.id],
    ),
)
"""


def test_an_arn_is_checked_as_the_provider_checks_it(engine: Engine) -> None:
    """Batch takes the name of an instance profile; pulumi-aws does not."""
    named = INVALID.replace("arn:aws:iam::210020003000:instance-profile/absent", "ecsInstanceRole")
    refused = engine.write(named).preview(check=False)
    assert refused.exit_code != 0
    assert (
        '"compute_resources.0.instance_role" (ecsInstanceRole) is an invalid ARN: arn: invalid prefix' in refused.text
    )


def test_what_is_not_in_the_tables_is_named(engine: Engine) -> None:
    refused = engine.write(REFUSED).preview(check=False)
    assert refused.exit_code == 255 or refused.exit_code == 1
    assert "the sandbox's aws provider has no resource type aws:sqs/queue:Queue" in refused.text
    # Else the first of the two ends the update.
    unmapped = engine.write(UNMAPPED).up("--continue-on-error", check=False)
    assert "creating EC2 Subnet (no name): property enableDns64 is not mapped to create_subnet" in unmapped.text
    assert "property containerProperties.imagge is not mapped to ContainerProperties" in unmapped.text
    engine.destroy()


@soak_only
def test_failed_creation_is_kept_and_named(engine: Engine, sandbox: Sandbox) -> None:
    failed = engine.write(INVALID).up(check=False)
    assert failed.exit_code != 0
    (told,) = (d for d in failed.diagnostics if "Compute Environment" in d)
    assert "unexpected state 'INVALID', wanted target 'VALID'. last error: " in told
    assert "\n" not in told.strip().replace("1 error occurred:\n", "")
    (kept,) = (r for r in engine.export() if r["type"].endswith("ComputeEnvironment"))
    assert kept["initErrors"]
    batch, mine = sandbox.client("batch"), {"computeEnvironments": [kept["id"]]}
    assert batch.describe_compute_environments(**mine)["computeEnvironments"][0]["status"] == "INVALID"
    assert "INVALID" in engine.up(check=False).text  # still wrong, and said so
    engine.destroy()
    assert not batch.describe_compute_environments(**mine)["computeEnvironments"]


ADOPTED = """
import pulumi
import pulumi_aws as aws
by_hand = pulumi.ResourceOptions(import_="/made/by/hand")
group = aws.cloudwatch.LogGroup("kept", name="/made/by/hand", retention_in_days=7, opts=by_hand)
vpc = aws.ec2.Vpc("vpc", cidr_block="10.7.0.0/16", opts=pulumi.ResourceOptions(import_="{vpc}"))
there = aws.ec2.Vpc.get("there", "{vpc}")
found = aws.ec2.get_vpc(id="{vpc}")
pulumi.export("arn", there.arn)
pulumi.export("cidr", found.cidr_block)
"""


def test_adopting_and_reading(engine: Engine, sandbox: Sandbox) -> None:
    ec2, logs = sandbox.client("ec2"), sandbox.client("logs")
    logs.create_log_group(logGroupName="/made/by/hand")
    logs.put_retention_policy(logGroupName="/made/by/hand", retentionInDays=7)
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    taken = engine.write(ADOPTED.format(vpc=vpc)).up()
    assert taken.ops()["import"] == 2
    assert taken.outputs["arn"].endswith(f"vpc/{vpc}") and taken.outputs["cidr"] == "10.7.0.0/16"
    assert set(engine.up().ops()) == {"same"}
    engine.destroy()
    assert not logs.describe_log_groups(logGroupNamePrefix="/made/by/hand")["logGroups"]


@soak_only
def test_an_environment_outlives_a_service_role_that_was_lost(engine: Engine, sandbox: Sandbox) -> None:
    batch, iam = sandbox.client("batch"), sandbox.client("iam")

    def make_role() -> str:
        trust = '{"Statement": [{"Principal": {"Service": "batch.amazonaws.com"}}]}'
        return iam.create_role(RoleName="lost", AssumeRolePolicyDocument=trust)["Role"]["Arn"]

    iam.create_instance_profile(InstanceProfileName="lost")
    text = INVALID.replace("instance-profile/absent", "instance-profile/lost")
    engine.write(text.replace('type="MANAGED",', f'type="MANAGED", service_role="{make_role()}",')).up()
    (made,) = (r["id"] for r in engine.export() if r["type"].endswith("ComputeEnvironment"))
    iam.delete_role(RoleName="lost")
    failed = engine.destroy(check=False)
    (told,) = (d for d in failed.diagnostics if "Compute Environment" in d)
    assert "delete: unexpected state 'INVALID', wanted target ''. last error: CLIENT_ERROR - User: batch" in told
    (shown,) = batch.describe_compute_environments(computeEnvironments=[made])["computeEnvironments"]
    assert (shown["state"], shown["status"]) == ("DISABLED", "INVALID")
    make_role()
    engine.destroy()
    assert not batch.describe_compute_environments(computeEnvironments=[made])["computeEnvironments"]
    iam.delete_role(RoleName="lost")
    iam.delete_instance_profile(InstanceProfileName="lost")
