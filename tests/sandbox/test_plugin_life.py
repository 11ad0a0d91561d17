"""The life of every type in the tables, through the real engine."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.plugins.aws.plugin import KINDS
from tests.support.engine import Engine, Result, Sandbox
from tests.support.soak import soak_only

pytest_plugins = ["tests.support.engine"]
pytestmark = pytest.mark.engine
PROGRAMS = Path(__file__).with_name("programs")


class Life:
    """A program of two versions, taken from nothing to its second version and back."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine, self.text = engine, (PROGRAMS / f"{name}.py").read_text()
        self.engine.write(self.text)

    def begin(self, left: Callable[[], list[Any]]) -> Result:
        self.left, self.before = left, len(left())
        planned = self.engine.preview()
        assert set(planned.ops()) == {"create"}
        assert len(left()) == self.before, "a preview made something"
        made = self.engine.up()
        assert made.ops() == planned.ops()
        self.count = made.ops()["create"]
        self.still()
        return made

    def change(self, replaced: set[str], same: set[str]) -> Result:
        self.engine.write(self.text.replace("VERSION = 1", "VERSION = 2"))
        planned, done = self.engine.preview(), self.engine.up()
        assert {s.name for s in planned.steps if s.op == "replace"} == replaced
        assert {s.name for s in planned.steps if s.op == "same" and ":providers:" not in s.type} == same
        assert planned.ops() == done.ops()
        self.still()
        return planned

    def still(self) -> None:
        again = self.engine.up("--refresh")
        assert (again.ops(), again.drift) == ({"same": self.count}, {})

    def drift(self, drifted: dict[str, str]) -> None:
        """`drifted`: what changed behind Pulumi's back: seen by a refresh, put back by the next update."""
        seen = self.engine.refresh()
        assert {step.name: step.op for step in seen.steps if step.op in ("update", "delete")} == drifted
        back = {"update": "update", "delete": "create"}
        repaired = self.engine.up()
        for name, op in drifted.items():
            repaired.step(name, back[op])

    def end(self) -> None:
        assert self.engine.destroy().ops()["delete"] == self.count
        assert len(self.left()) == self.before


@soak_only
def test_types_of_network_and_batch(engine: Engine, sandbox: Sandbox) -> None:
    ec2, batch, iam, logs = map(sandbox.client, ("ec2", "batch", "iam", "logs"))
    mine = [{"Name": "is-default", "Values": ["false"]}]

    def left() -> list[Any]:
        definitions = batch.describe_job_definitions(status="ACTIVE")["jobDefinitions"]
        gateways = [g for g in ec2.describe_nat_gateways()["NatGateways"] if g["State"] != "deleted"]
        endpoints = [e for e in ec2.describe_vpc_endpoints()["VpcEndpoints"] if e["State"] != "deleted"]
        return [
            *ec2.describe_vpcs(Filters=mine)["Vpcs"],
            *ec2.describe_addresses()["Addresses"],
            *ec2.describe_internet_gateways()["InternetGateways"],
            *ec2.describe_launch_templates()["LaunchTemplates"],
            *ec2.describe_placement_groups()["PlacementGroups"],
            *ec2.describe_flow_logs()["FlowLogs"],
            *gateways,
            *endpoints,
            *batch.describe_compute_environments()["computeEnvironments"],
            *batch.describe_job_queues()["jobQueues"],
            *definitions,
            *iam.list_roles()["Roles"],
            *iam.list_instance_profiles()["InstanceProfiles"],
            *iam.list_policies(Scope="Local")["Policies"],
            *logs.describe_log_groups()["logGroups"],
        ]

    life = Life(engine, "compute")
    made = life.begin(left)
    assert made.outputs["zones"][0] == "us-east-1a"
    assert made.outputs["train"].endswith(":1")

    same = {"subnet", "gateway", "address", "other", "out", "ruled", "efa", "default", "ecr", "attached"}
    changed = life.change({"moved", "empty", "job", "fixed", "apart"}, same | {"profile", "kept"})
    assert changed.step("fixed", "replace").diffs == ("computeResources.instanceTypes",)
    assert changed.step("scaled", "update").diffs == ("computeResources.maxVcpus",)
    assert changed.step("vpc", "update").diffs == ("enableDnsHostnames", "tags.stage", "tagsAll.stage")

    states = {(r["type"].rpartition(":")[2], r["urn"].rpartition("::")[2]): r for r in engine.export()}
    train = states["JobDefinition", "train"]["outputs"]
    assert train["arn"].endswith(":2") and train["revision"] == 2
    (revision,) = batch.describe_job_definitions(jobDefinitionName=train["name"], status="ACTIVE")["jobDefinitions"]
    assert revision["containerProperties"]["image"] == "local/b"
    (scaled,) = batch.describe_compute_environments(computeEnvironments=[states["ComputeEnvironment", "scaled"]["id"]])[
        "computeEnvironments"
    ]
    assert scaled["computeResources"]["maxvCpus"] == 128 and scaled["tags"] == {"team": "ml"}
    queue, template = states["JobQueue", "queue"]["id"], states["LaunchTemplate", "template"]
    assert batch.describe_job_queues(jobQueues=[queue])["jobQueues"][0]["priority"] == 5
    (latest,) = ec2.describe_launch_template_versions(LaunchTemplateId=template["id"], Versions=["$Default"])[
        "LaunchTemplateVersions"
    ]
    (fair,) = batch.describe_scheduling_policies(arns=[states["SchedulingPolicy", "fair"]["id"]])["schedulingPolicies"]
    assert fair["fairsharePolicy"]["shareDistribution"] == [{"shareIdentifier": "a", "weightFactor": 2.0}]
    data = latest["LaunchTemplateData"]
    assert template["outputs"]["latestVersion"] == 2 and latest["VersionNumber"] == 2
    assert data["BlockDeviceMappings"][0]["Ebs"] | {"VolumeSize": 0} == {
        "VolumeSize": 0, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True,
    }  # fmt: skip
    assert [n["InterfaceType"] for n in data["NetworkInterfaces"]] == ["efa", "efa"]
    group = ec2.describe_security_groups(GroupIds=[states["SecurityGroup", "group"]["id"]])["SecurityGroups"][0]
    assert not group["IpPermissionsEgress"]
    assert {r["CidrIp"] for p in group["IpPermissions"] for r in p["IpRanges"]} == {"10.1.0.0/16"}
    assert iam.get_role(RoleName=states["Role", "host"]["id"])["Role"]["MaxSessionDuration"] == 7200

    batch.update_job_queue(jobQueue=queue, priority=99)
    batch.update_scheduling_policy(arn=fair["arn"], fairsharePolicy={"shareDecaySeconds": 60})
    logs.put_retention_policy(logGroupName=states["LogGroup", "logs"]["id"], retentionInDays=1)
    ec2.create_tags(Resources=[states["Vpc", "vpc"]["id"]], Tags=[{"Key": "by", "Value": "hand"}])
    ec2.authorize_security_group_ingress(
        GroupId=group["GroupId"], IpProtocol="tcp", FromPort=1, ToPort=1, CidrIp="0.0.0.0/0"
    )
    iam.delete_role_policy(
        RoleName=states["Role", "host"]["id"], PolicyName=states["RolePolicy", "inline"]["outputs"]["name"]
    )
    batch.deregister_job_definition(jobDefinition=train["arn"])
    drifted = dict.fromkeys(("queue", "fair", "logs", "vpc", "group"), "update")
    life.drift({**drifted, "inline": "delete", "train": "delete"})
    assert batch.describe_job_queues(jobQueues=[queue])["jobQueues"][0]["priority"] == 5
    life.end()


@soak_only
def test_types_that_hold_data(engine: Engine, sandbox: Sandbox) -> None:
    ecr, dynamodb, ssm, secrets, s3 = map(sandbox.client, ("ecr", "dynamodb", "ssm", "secretsmanager", "s3"))

    def mine() -> list[Any]:
        by_type = [{"Key": "Name", "Option": "BeginsWith", "Values": ["targets", "token"]}]
        return ssm.describe_parameters(ParameterFilters=by_type)["Parameters"]

    def left() -> list[Any]:
        return [
            *ecr.describe_repositories()["repositories"],
            *dynamodb.list_tables()["TableNames"],
            *mine(),
            *secrets.list_secrets()["SecretList"],
            *s3.list_buckets()["Buckets"],
        ]

    life = Life(engine, "storage")
    made = life.begin(left)
    bucket, table = made.outputs["bucket"], made.outputs["table"]
    assert bucket.startswith("data-") and made.outputs["parameter"].startswith("ami-")

    # The same name stands for several types: `data` of S3's parts, `secret` of a secret and its version.
    changed = life.change({"indexed", "secret"}, {"token"})
    assert changed.step("indexed", "replace").replaces == ("hashKey",)
    assert dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]["AttributeName"] == "expires"
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Suspended"
    rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    old = {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 60}}
    assert rules == [{**old, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 3}}]
    assert s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]["BlockPublicPolicy"]
    assert "hidden" not in json.dumps(json.loads(engine.run("stack", "export").stdout))
    assert "hidden" not in (sandbox.home / "logs" / "plugins.log").read_text()

    s3.put_object(Bucket=bucket, Key="kept", Body=b"1")  # forceDestroy takes it along
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": "stage", "Value": "hand"}]})
    ssm.put_parameter(Name=next(p["Name"] for p in mine() if p["Type"] == "String"), Value="{}", Overwrite=True)
    ecr.put_image_tag_mutability(
        repositoryName=next(r["outputs"]["name"] for r in engine.export() if r["urn"].endswith("::Images")),
        imageTagMutability="MUTABLE",
    )
    dynamodb.delete_table(TableName=table)
    life.drift({"Data": "update", "targets": "update", "Images": "update", "claims": "delete"})
    life.end()


@soak_only
def test_types_that_watch(engine: Engine, sandbox: Sandbox) -> None:
    events, sns, watch, logs, budgets = map(sandbox.client, ("events", "sns", "cloudwatch", "logs", "budgets"))

    def left() -> list[Any]:
        return [
            *events.list_rules()["Rules"],
            *sns.list_topics()["Topics"],
            *sns.list_subscriptions()["Subscriptions"],
            *watch.describe_alarms()["MetricAlarms"],
            *watch.list_dashboards()["DashboardEntries"],
            *logs.describe_metric_filters()["metricFilters"],
            *logs.describe_resource_policies()["resourcePolicies"],
            *sandbox.client("lambda").list_functions()["Functions"],
            *budgets.describe_budgets(AccountId="210020003000")["Budgets"],
        ]

    life = Life(engine, "monitoring")
    topic = life.begin(left).outputs["topic"]
    (first,) = sandbox.client("lambda").list_functions()["Functions"]
    changed = life.change({"queue"}, {"watched", "person", "logged", "every", "runs"})
    assert changed.step("failed", "update").diffs == ("description", "eventPattern", "tags.stage", "tagsAll.stage")
    assert changed.step("many", "update").diffs == ("tags.stage", "tagsAll.stage", "threshold")

    rule, every = sorted(events.list_rules()["Rules"], key=lambda one: "ScheduleExpression" in one)
    assert every["ScheduleExpression"] == "rate(10 minutes)"
    functions = sandbox.client("lambda")
    (function,) = functions.list_functions()["Functions"]
    assert (function["Timeout"], function["Environment"]["Variables"]) == (60, {"QUEUES": "[1]"})
    assert function["CodeSha256"] != first["CodeSha256"]
    pattern = json.loads(events.describe_rule(Name=rule["Name"])["EventPattern"])
    assert pattern["detail"]["status"] == ["FAILED", "RUNNING"]
    targets = {one["Id"]: one for one in events.list_targets_by_rule(Rule=rule["Name"])["Targets"]}
    assert set(targets) == {"log", "topic"} and "become" in targets["topic"]["InputTransformer"]["InputTemplate"]
    (alarm,) = watch.describe_alarms()["MetricAlarms"]
    assert alarm["Threshold"] == 2.5 and {one["Name"] for one in alarm["Dimensions"]} == {"Queue", "Status"}
    assert watch.list_tags_for_resource(ResourceARN=alarm["AlarmArn"])["Tags"] == [{"Key": "stage", "Value": "b"}]
    (counted,) = logs.describe_metric_filters()["metricFilters"]
    assert counted["metricTransformations"][0]["dimensions"] == {"Queue": "$.detail.jobQueue"}
    about = sns.get_topic_attributes(TopicArn=topic)["Attributes"]
    assert about["DisplayName"] == "two" and json.loads(about["Policy"])["Statement"][0]["Sid"] == "Two"
    assert "two" in watch.get_dashboard(DashboardName="accel-test")["DashboardBody"]

    watch.delete_alarms(AlarmNames=[alarm["AlarmName"]])
    events.put_rule(Name=rule["Name"], EventPattern=json.dumps({"source": ["aws.ec2"]}))
    events.remove_targets(Rule=rule["Name"], Ids=["log"])
    sns.set_topic_attributes(TopicArn=topic, AttributeName="DisplayName", AttributeValue="by hand")
    watch.put_dashboard(DashboardName="accel-test", DashboardBody=json.dumps({"widgets": []}))
    logs.delete_resource_policy(policyName="accel-test-events")
    functions.update_function_configuration(FunctionName=function["FunctionName"], Timeout=5)
    drifted = {"looks": "update", "failed": "update", "told": "update", "board": "update"}
    life.drift({**drifted, "many": "delete", "logged": "delete", "events": "delete"})
    life.end()


def test_tables_are_covered() -> None:
    """Every type of the tables is in a program above: one that is not would be untested."""
    text = "".join(path.read_text() for path in PROGRAMS.glob("*.py")).replace("aws.lambda_.", "aws.lambda.")
    used = {f"aws:{type_.partition(':')[2].partition('/')[0]}:{type_.rpartition(':')[2]}" for type_ in KINDS}
    missing = {name for name in used if f"aws.{name.split(':')[1]}.{name.split(':')[2]}(" not in text}
    assert not missing
