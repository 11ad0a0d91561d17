"""What a second `up` after the killed one has made twice is there once again; and recover itself may be cut short."""

from pathlib import Path

import pytest

from stacks.operations.recover.plan import Decisions
from stacks.operations.recover.recovery import Recovery
from tests.support import killed
from tests.support.cloud import listing
from tests.support.engine import Engine, Sandbox
from tests.support.soak import soak_only

REGION = "eu-west-1"
PROGRAM = """
import pulumi
import pulumi_aws as aws

on = aws.Provider(
    "on", region="eu-west-1",
    default_tags=aws.ProviderDefaultTagsArgs(tags={"accel:project": "again", "accel:stack": pulumi.get_stack()}),
)
own = pulumi.ResourceOptions(provider=on)
vpc = aws.ec2.Vpc("jobs", cidr_block="10.9.0.0/16", opts=own)
aws.cloudwatch.LogGroup("jobs", retention_in_days=30, opts=own)
"""
VPC, LOGS = "aws:ec2/vpc:Vpc", "aws:cloudwatch/logGroup:LogGroup"


@soak_only
def test_what_was_made_twice(tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    before = listing(sandbox, REGION)
    engine = Engine(tmp_path / "again", sandbox, PROGRAM)

    def more() -> tuple[int, int]:
        now = listing(sandbox, REGION)
        vpcs, groups = (len(now[kind]) - len(before[kind]) for kind in ("vpcs", "log groups"))
        return vpcs, groups

    engine.up()
    killed.forget(engine, VPC, LOGS)
    repeated = engine.up()
    assert "pending CREATE operations" in repeated.text and more() == (2, 2), "this is what recover is for"
    killed.forget(engine, LOGS)

    for name, value in engine.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(engine.folder)

    class Cut(Exception):
        pass

    def cut(urns: object) -> None:
        raise Cut

    recovery = Recovery("test", Decisions(), break_lock=False, settle_s=0, wait_s=60)
    monkeypatch.setattr(type(recovery.engine), "refresh", lambda self, urns: cut(urns))
    with pytest.raises(Cut):
        list(recovery.run())
    monkeypatch.undo()
    left = killed.recover(engine, "--check")
    assert left.returncode == 4 and left.stdout.count("adopting ") == 2, left.stdout + left.stderr
    done = killed.recover(engine, "--yes", "--finish", "up")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (killed.pending(engine), more()) == ([], (1, 1)), left.stdout + done.stdout
    engine.destroy()
    assert listing(sandbox, REGION) == before


@soak_only
def test_a_state_that_was_cut_off_is_the_one_before_it(tmp_path: Path, sandbox: Sandbox) -> None:
    before = listing(sandbox, REGION)
    engine = Engine(tmp_path / "cut", sandbox, PROGRAM)
    engine.up()
    state = killed.state_of(engine)
    state.write_bytes(state.read_bytes()[:100])
    left = killed.recover(engine, "--check")
    assert (left.returncode, "test.json: no state, but cut off; test." in left.stdout) == (4, True), left.stdout
    done = killed.recover(engine, "--yes", "--finish", "up")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(state.parent.glob("test.json.corrupt-*"))) == 1, "what was there is kept"
    engine.destroy()
    assert listing(sandbox, REGION) == before


@soak_only
def test_a_creation_that_was_cut_short_within_the_provider(tmp_path: Path, sandbox: Sandbox) -> None:
    """The group is there, and the rule with which EC2 makes it, which its provider had still to take back."""
    more = """
group = aws.ec2.SecurityGroup("jobs", vpc_id=vpc.id, description="jobs", opts=own)
aws.vpc.SecurityGroupEgressRule(
    "jobs", security_group_id=group.id, ip_protocol="-1", cidr_ipv4="0.0.0.0/0", opts=own)
"""
    before = listing(sandbox, REGION)
    engine = Engine(tmp_path / "short", sandbox, PROGRAM + more)
    engine.up()
    killed.forget(
        engine, "aws:ec2/securityGroup:SecurityGroup", never="aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    )
    done = killed.recover(engine, "--yes", "--finish", "up")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "was made up for it; then revoke_security_group_egress, as its creation does\n" in done.stdout
    assert killed.pending(engine) == []
    engine.destroy()
    assert listing(sandbox, REGION) == before
