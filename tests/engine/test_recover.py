"""A run that is killed anywhere is put right: an empty preview, nothing pending, nothing made twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.environment import environment
from tests.support import killed
from tests.support.cloud import listing
from tests.support.engine import Engine, Sandbox, started
from tests.support.soak import SOAK, soak_only

REGION = "eu-west-1"
PROGRAM = """
import json
import pulumi
import pulumi_aws as aws

on = aws.Provider(
    "on", region="eu-west-1",
    default_tags=aws.ProviderDefaultTagsArgs(tags={"accel:project": "killed", "accel:stack": pulumi.get_stack()}),
)


class Ground(pulumi.ComponentResource):
    def __init__(self, name):
        super().__init__("test:Ground", name, opts=pulumi.ResourceOptions(providers=[on]))
        own = pulumi.ResourceOptions(parent=self)
        vpc = aws.ec2.Vpc(name, cidr_block="10.9.0.0/16", opts=own)
        gateway = aws.ec2.InternetGateway(name, vpc_id=vpc.id, opts=own)
        table = aws.ec2.RouteTable(name, vpc_id=vpc.id, opts=own)
        aws.ec2.Route(
            name, route_table_id=table.id, destination_cidr_block="0.0.0.0/0", gateway_id=gateway.id, opts=own)
        for at, zone in enumerate("ab"):
            subnet = aws.ec2.Subnet(
                f"{name}-{zone}", vpc_id=vpc.id, cidr_block=f"10.9.{at}.0/24", availability_zone=f"eu-west-1{zone}",
                opts=own,
            )
            aws.ec2.RouteTableAssociation(f"{name}-{zone}", route_table_id=table.id, subnet_id=subnet.id, opts=own)
        group = aws.ec2.SecurityGroup(name, vpc_id=vpc.id, description="jobs", opts=own)
        aws.vpc.SecurityGroupEgressRule(
            name, security_group_id=group.id, ip_protocol="-1", cidr_ipv4="0.0.0.0/0", opts=own)
        trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        role = aws.iam.Role(name, assume_role_policy=policy, opts=own)
        aws.iam.RolePolicyAttachment(
            name, role=role.name, opts=own,
            policy_arn="arn:aws:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role",
        )
        profile = aws.iam.InstanceProfile(name, role=role.name, opts=own)
        template = aws.ec2.LaunchTemplate(name, ebs_optimized="true", opts=own)
        aws.cloudwatch.LogGroup(name, retention_in_days=30, opts=own)
        self.register_outputs({"profile": profile.arn, "template": template.id})


Ground("ground")
"""
EVENTS = {"up": 39, "destroy": 39}
"""Of whole runs."""
POINTS = [(verb, at) for verb in EVENTS for at in range(1, 21)]
SAMPLE = [("up", 14)]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    yield from started(tmp_path_factory.mktemp("own"))


@pytest.mark.parametrize(("verb", "point"), POINTS if SOAK else SAMPLE)
def test_killed_at(verb: str, point: int, tmp_path: Path, own: Sandbox) -> None:
    before = listing(own, REGION)
    engine = Engine(tmp_path / "killed", own, PROGRAM, environ=environment(own.home))
    if verb == "destroy":
        engine.up()
    left = killed.run_and_check(engine, verb, after=max(1, EVENTS[verb] * point // 21))
    assert "is gone" in left.stdout, "the lock's holder is told"
    done = killed.recover(engine, "--yes", "--finish", "up")
    assert done.returncode == 0, left.stdout + done.stdout + done.stderr
    assert done.stdout.endswith("test: up has ended, and a preview is empty\n")
    assert killed.pending(engine) == []
    engine.destroy()
    assert listing(own, REGION) == before, left.stdout + done.stdout


@soak_only
@pytest.mark.parametrize(("verb", "point"), [("up", 9), ("destroy", 5), ("destroy", 15)])
def test_a_destroy_ends_what_was_killed(verb: str, point: int, tmp_path: Path, own: Sandbox) -> None:
    before = listing(own, REGION)
    engine = Engine(tmp_path / "killed", own, PROGRAM, environ=environment(own.home))
    if verb == "destroy":
        engine.up()
    killed.run(engine, verb, after=EVENTS[verb] * point // 21)
    killed.restart_providers(engine)
    done = killed.recover(engine, "--yes", "--finish", "destroy")
    assert (done.returncode, done.stdout.endswith("test: destroyed\n")) == (0, True), done.stdout + done.stderr
    assert (engine.export(), listing(own, REGION)) == ([], before), done.stdout


@soak_only
def test_a_run_at_work_is_left_alone(tmp_path: Path, own: Sandbox) -> None:
    engine = Engine(tmp_path / "two", own, PROGRAM, environ=environment(own.home))
    with killed.stopped(engine, "up", after=10):
        second = engine.up(check=False)
        assert second.exit_code != 0 and "the stack is currently locked by 1 lock(s)" in second.text
        looked = killed.recover(engine, "--check")
        assert (looked.returncode, looked.stdout) == (4, "")
        assert "is at work" in looked.stderr and "hint: wait until it has ended" in looked.stderr
        refused = killed.recover(engine, "--yes", "--break-lock")
        assert refused.returncode == 4, refused.stdout
        assert refused.stderr.startswith("error: locked ") and "is at work" in refused.stderr
    assert engine.preview("--expect-no-changes").exit_code == 0, "the first has ended as if nobody had asked"
    clean = killed.recover(engine, "--check")
    assert (clean.returncode, clean.stdout) == (0, "test: nothing is left of a killed run\n"), clean.stderr
