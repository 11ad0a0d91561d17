"""The engine, the program or a provider is killed at any moment of any run: nothing is lost, left or made twice.

The state alone does not tell: deletes under way are not in it, and what a provider made that died is not either.
"""

import json
import random
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from sandbox.aws.__main__ import ACCOUNT_ID
from sandbox.environment import environment
from tests.engine import test_recover, test_recover_google
from tests.support import killed, services
from tests.support.cloud import listing
from tests.support.engine import WITHOUT_KUBERNETES, Engine, Sandbox, started
from tests.support.soak import SOAK, soak_only

Listing = dict[str, list[str]]
AWS = """
        if not pulumi.Config().get_bool("less"):
            text = json.dumps({"Version": "2012-10-17", "Statement": [
                {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]})
            aws.iam.Policy(name, policy=text, opts=own)
            for at in range(3):
                aws.ssm.Parameter(
                    f"{name}-{at}", name=f"/accel/killed/{at}", type="String", value="any", opts=own)
                aws.iam.RolePolicy(f"{name}-{at}", role=role.name, policy=text, opts=own)
"""
GOOGLE = """
        if not pulumi.Config().get_bool("less"):
            for at in range(3):
                gcp.pubsub.Topic(f"{name}-{at}", opts=own)
                gcp.compute.Address(f"{name}-{at}", opts=own)
"""
"""What `change` takes away again: deletes in the middle of an update."""
END = "        self.register_outputs("


@dataclass(frozen=True)
class Cloud:
    """A program of one cloud, and what is in that cloud."""

    program: str
    listing: Callable[[Sandbox], Listing]
    config: dict[str, str] | None
    events: int
    """Of a whole run, about."""


CLOUDS = {
    "aws": Cloud(test_recover.PROGRAM.replace(END, AWS + END), lambda own: listing(own, test_recover.REGION), None, 53),
    "google": Cloud(test_recover_google.PROGRAM.replace(END, GOOGLE + END), test_recover_google.listing, {}, 45),
}
VICTIMS = ("engine", "program", "provider")
VERBS = ("up", "change", "destroy")
POINTS = [(cloud, victim, at) for cloud in CLOUDS for victim in VICTIMS for at in range(30)]
SAMPLE = [("google", "provider", 9)]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    for made in started(tmp_path_factory.mktemp("own"), WITHOUT_KUBERNETES):
        services.enable(*test_recover_google.signed_in(made), *test_recover_google.SERVICES)
        yield made


@pytest.mark.parametrize(("cloud", "victim", "point"), POINTS if SOAK else SAMPLE)
def test_killed_at_any_moment(cloud: str, victim: str, point: int, tmp_path: Path, own: Sandbox) -> None:
    chance, of = random.Random(f"{cloud} {victim} {point}"), CLOUDS[cloud]
    before = of.listing(own)
    engine = Engine(tmp_path / "killed", own, of.program, config=of.config, environ=environment(own.home))
    verb = VERBS[point % len(VERBS)]
    if verb != "up":
        engine.up()
    if verb == "change":
        engine.run("config", "set", "less", "true", "--stack", engine.stack)
    after = 1 + of.events * (point // len(VERBS)) // (30 // len(VERBS))
    struck = "destroy" if verb == "destroy" else "up"
    left = killed.strike(engine, struck, victim, after=after, delay_s=chance.choice((0, 0, 0.02, 0.05, 0.1)))
    killed.restart_providers(engine)

    said: list[str] = []
    while (done := killed.recover(engine, "--yes", "--finish", "up", *said)).returncode == 4 and len(said) < 8:
        # An account of Google has neither labels nor a time: a person says that the run made it.
        asked = re.search(r"Account account: nothing proves that this [\w' ]*run made ([^\s;]+)", done.stderr)
        assert asked, done.stdout + done.stderr
        said += ["--adopt", f"account={asked[1]}"]
    told = f"{verb} {after}\n{done.stdout}{done.stderr}"
    assert done.returncode == 0, told
    assert killed.pending(engine) == [], told
    assert psutil.wait_procs(left, timeout=60)[1] == [], "a language host is still there"
    assert not list(killed.state_of(engine).parent.glob("*.tmp")), told
    assert engine.preview("--refresh", "--expect-no-changes", check=False).exit_code == 0, told
    clean = killed.recover(engine, "--check")
    assert (clean.returncode, clean.stdout) == (0, "test: nothing is left of a killed run\n"), told + clean.stdout
    held = {each["id"] for each in engine.export() if each.get("id")}
    more = {name for kind, names in of.listing(own).items() for name in names if name not in before[kind]}
    engine.destroy()
    assert of.listing(own) == before, f"{told}\nthe state had {held}, the cloud {more}"


@soak_only
def test_a_delete_that_is_in_no_state_is_seen(tmp_path: Path, own: Sandbox) -> None:
    """As of an engine that was killed between the cloud's answer and its own note of it."""
    of = CLOUDS["aws"]
    before = of.listing(own)
    engine = Engine(tmp_path / "killed", own, of.program, environ=environment(own.home))
    engine.up()
    whole = of.listing(own)
    ssm, iam = own.client("ssm", test_recover.REGION), own.client("iam")
    ssm.delete_parameter(Name="/accel/killed/1")
    (policy,) = {*whole["policies"]} - {*before["policies"]}
    iam.delete_policy(PolicyArn=f"arn:aws:iam::{ACCOUNT_ID}:policy/{policy}")
    lock = own.home / "backend/.pulumi/locks/organization" / engine.project / engine.stack / "dead.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    gone = subprocess.Popen(["true"])
    gone.wait()
    told = {"pid": gone.pid, "username": "ana", "hostname": socket.gethostname(), "timestamp": f"{datetime.now(UTC)}"}
    lock.write_text(json.dumps(told))

    left = killed.recover(engine, "--check")
    assert left.returncode == 4 and left.stdout.count("its cloud does not have it any more") == 2, left.stdout
    done = killed.recover(engine, "--yes", "--finish", "up")
    assert done.returncode == 0 and "every resource of the state was read again" in done.stdout, done.stdout
    now = of.listing(own)
    assert {kind: len(names) for kind, names in now.items()} == {kind: len(names) for kind, names in whole.items()}
    assert ssm.get_parameter(Name="/accel/killed/1")["Parameter"]["Value"] == "any"
    engine.destroy()
    assert of.listing(own) == before


@soak_only
def test_a_policy_that_only_a_dead_provider_knew_is_adopted(tmp_path: Path, own: Sandbox) -> None:
    """Nothing tells whose it is but its role and its name, and the role could not be deleted as long as it is there."""
    of = CLOUDS["aws"]
    before = of.listing(own)
    engine = Engine(tmp_path / "killed", own, of.program, environ=environment(own.home))
    engine.run("config", "set", "less", "true", "--stack", engine.stack)
    engine.up()
    iam = own.client("iam", test_recover.REGION)
    (role,) = {*of.listing(own)["roles"]} - {*before["roles"]}
    allowed = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
    text = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.put_role_policy(RoleName=role, PolicyName="ground-0-0a1b2c3", PolicyDocument=text)
    engine.run("config", "set", "less", "neither", "--stack", engine.stack)
    assert engine.up(check=False).exit_code != 0, "the last run is in doubt"
    engine.run("config", "set", "less", "false", "--stack", engine.stack)

    done = killed.recover(engine, "--yes", "--finish", "up")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"adopt {role}:ground-0-0a1b2c3" in done.stdout, done.stdout
    assert len(iam.list_role_policies(RoleName=role)["PolicyNames"]) == 3
    engine.destroy()
    assert of.listing(own) == before
