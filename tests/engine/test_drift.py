"""`stacks drift` and `stacks leaks` over a stack of the real engine: nothing while the clouds do what they do by
themselves, and a line for each thing that somebody has changed or left behind."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from accel.catalog.prices import price
from stacks.environment.images_lock import LOCK, ImageLock, LockedImage, write
from stacks.operations.images.recommendation import PARAMETERS
from tests.support import commands
from tests.support.drifted import (
    NVIDIA,
    OLD,
    REGION,
    change,
    control,
    described,
    left_behind,
    reclaimed,
    revisions,
    well,
)
from tests.support.engine import Sandbox
from tests.support.project import Stack, environment, put
from tests.support.soak import soak_only
from tests.support.waiting import until

Run = Callable[..., Any]


def runner(stack: Stack, folder: Path) -> Run:
    variables = {**stack.variables, "XDG_CACHE_HOME": str(folder / "cache"), "XDG_STATE_HOME": str(folder / "state")}

    def run(*arguments: str, code: int = 0) -> Any:
        """The JSON answer of `stacks`; its exit code must be `code`."""
        done = commands.run("stacks", *arguments, stack.stack, "-o", "json", cwd=stack.folder, env=variables)
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="module")
def reserved(sandbox: Sandbox) -> str:
    """A capacity reservation that ends in five days."""
    made = sandbox.client("ec2", REGION).create_capacity_reservation(
        InstanceType="p4d.24xlarge",
        InstancePlatform="Linux/UNIX",
        InstanceCount=1,
        EndDateType="limited",
        EndDate=datetime.now(UTC) + timedelta(days=5),
    )
    return made["CapacityReservation"]["CapacityReservationId"]


@pytest.fixture(scope="module")
def stack(sandbox: Sandbox, reserved: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    values = put("aws.region", REGION, environment("sandbox"))
    values = put("aws.network.zones", [f"{REGION}a", f"{REGION}b"], values)
    block = {
        "capacity": "on-demand",
        "instance_types": ["p4d.24xlarge"],
        "max_vcpus": 96,
        "zone": f"{REGION}a",
        "capacity_reservation": {"id": reserved},
    }
    values = put("aws.environments.reserved", block, values)
    values = put("aws.queues.big", {"environments": ["reserved"], "priority": 1}, values)
    made = Stack(tmp_path_factory.mktemp("drift"), sandbox, values, stack="drift")
    name = f"{PARAMETERS[NVIDIA]}/image_id"
    newest = sandbox.client("ssm", REGION).get_parameter(Name=name)["Parameter"]["Value"]
    write(made.folder, ImageLock().put({(NVIDIA, REGION): LockedImage(image_id=newest)}))
    made.up()
    yield made
    (made.folder / LOCK).unlink(missing_ok=True)
    control(sandbox, "faults", {}, "DELETE")
    made.destroy()


@pytest.fixture
def run(stack: Stack, tmp_path: Path) -> Run:
    return runner(stack, tmp_path)


@pytest.fixture
def drift(run: Run) -> Run:
    """The texts of `stacks drift` by what, name and weight."""
    return lambda *arguments, code=0: {
        (each["what"], each["name"], each["weight"]): each["text"] for each in run("drift", *arguments, code=code)
    }


@pytest.fixture
def leaks(run: Run) -> Run:
    """What `stacks leaks` shows, of whatever age, by its kind."""
    return lambda *arguments, code=0: {
        each["what"]: each for each in run("leaks", "--older-than", "0", *arguments, code=code)
    }


@pytest.fixture
def names(sandbox: Sandbox) -> dict[str, str]:
    """Physical names of the stack's environments by their keys."""
    found = sandbox.client("batch", REGION).describe_compute_environments()["computeEnvironments"]
    own = [one["computeEnvironmentName"] for one in found if one["tags"].get("accel:stack") == "drift"]
    return {name.rpartition("-")[0]: name for name in own}


def test_what_the_clouds_do_is_neither(
    drift: Run, leaks: Run, stack: Stack, sandbox: Sandbox, names: dict[str, str]
) -> None:
    batch = sandbox.client("batch", REGION)
    batch.update_compute_environment(computeEnvironment=names["spot"], computeResources={"desiredvCpus": 8})
    reclaimed(sandbox, stack.outputs()["targets"]["gpu"])
    assert drift("--strict", "--within", "2") == {}
    assert leaks("--expect-none") == {}


def test_a_reservation_that_ends_soon(drift: Run) -> None:
    quick = ("--no-properties", "--no-quota")
    found = drift(*quick)
    assert list(found) == [("reservation", "reserved", "soon")]
    assert drift(*quick, "--strict", code=7) == found


def test_leaks(leaks: Run, stack: Stack, sandbox: Sandbox, names: dict[str, str]) -> None:
    batch = sandbox.client("batch", REGION)
    made = left_behind(sandbox, stack)
    control(sandbox, "faults", {"kind": "invalid", "environments": {names["spot"]: "CLIENT_ERROR - no role"}})
    until(lambda: described(batch, names["spot"])["status"] == "INVALID")
    definition, registered = revisions(batch, stack, 6)
    found = leaks("--expect-none", code=7)
    assert {what: each["name"] for what, each in found.items()} == {
        **made, "environment": names["spot"], "revisions": definition,
    }  # fmt: skip
    assert {each["owner"] for what, each in found.items() if what != "revisions"} == {"stack drift (you)"}
    assert found["revisions"]["why"].startswith("2 revisions before the latest 5")
    known, spot = price("aws", REGION, "g6.xlarge"), found["environment"]
    assert known.on_demand and found["instance"]["usd_a_day"] == spot["usd_a_day"] == round(known.on_demand * 24, 2)
    assert spot["why"] == "takes no job: CLIENT_ERROR - no role" and spot["fix"] == f"stacks unwedge {names['spot']}"
    assert found["volume"]["usd_a_day"] == round(100 * 0.08 * 24 / 730, 2) and found["address"]["usd_a_day"] == 0.12
    assert found["volume"]["age_h"] < 1

    assert set(leaks("--yes")) == set(found)
    assert set(leaks()) == {"queue", "environment", "revisions"}, "what has a command of its own is only shown"
    ec2 = sandbox.client("ec2", REGION)
    running = ec2.describe_instances(Filters=[{"Name": "instance-state-name", "Values": ["running"]}])["Reservations"]
    assert len(running) == 2, "an environment's own, and another stack's, are left alone"

    ec2.terminate_instances(InstanceIds=[each["Instances"][0]["InstanceId"] for each in running])
    control(sandbox, "faults", {}, "DELETE")
    for arn in registered:
        batch.deregister_job_definition(jobDefinition=arn)
    batch.update_job_queue(jobQueue="forgotten", state="DISABLED")
    until(lambda: batch.describe_job_queues(jobQueues=["forgotten"])["jobQueues"][0]["status"] == "VALID")
    batch.delete_job_queue(jobQueue="forgotten")
    well(batch, names["spot"])


def test_what_was_changed_by_hand(
    drift: Run, stack: Stack, sandbox: Sandbox, names: dict[str, str], reserved: str
) -> None:
    batch = sandbox.client("batch", REGION)
    change(sandbox, stack, names, reserved)
    control(sandbox, "quotas", {"L-DB2E81BA": 8})
    control(sandbox, "faults", {"kind": "invalid", "environments": {names["reserved"]: "CLIENT_ERROR - no role"}})
    until(lambda: described(batch, names["reserved"])["status"] == "INVALID")
    try:
        told = drift("--within", "2", code=7)
    finally:
        control(sandbox, "quotas", {"L-DB2E81BA": 1024})
        control(sandbox, "faults", {}, "DELETE")
    spot = told.pop(("property", "spot", "changed"))
    assert "computeResources.maxVcpus 256 -> 64" in spot and "ec2Configurations" in spot
    assert "ec2Configurations" in told.pop(("property", "on-demand", "changed"))
    assert "ingress" in told.pop(("property", "network-default", "changed"))
    assert told.pop(("launch template", "on-demand", "changed")).endswith("1 of its launch template, the latest is 2")
    assert told.pop(("image", "on-demand", "broken")).startswith(f"image {OLD} is not there any more")
    for key in ("spot", "on-demand"):
        assert "images.lock.yaml pins" in told.pop(("image", key, "changed"))
        assert told.pop(("newer image", key, "soon")).startswith("AWS recommends")
    assert told.pop(("gone", "examples", "broken")).startswith("aws:batch/jobDefinition:JobDefinition is not there")
    assert told.pop(("property", "targets-gpu", "changed")) == "aws:ssm/parameter:Parameter: value"
    assert told.pop(("target", "gpu", "changed")).endswith(": log_group")
    assert "has no such target" in told.pop(("target", "old", "changed"))
    assert told.pop(("invalid environment", "reserved", "broken")) == "INVALID: CLIENT_ERROR - no role"
    assert told.pop(("reservation", "reserved", "broken")) == f"{reserved} is cancelled"
    assert told.pop(("quota", f"L-DB2E81BA in {REGION}", "broken")) and told == {}


@soak_only
def test_the_fix_ends_it(drift: Run, stack: Stack, sandbox: Sandbox, names: dict[str, str]) -> None:
    """All but the reservation, which is not the stack's."""
    sandbox.client("ssm", REGION).delete_parameter(Name=f"/accel/{stack.stack}/targets/old")
    well(sandbox.client("batch", REGION), names["reserved"])
    stack.up("--refresh")
    assert list(drift("--within", "2", code=7)) == [("reservation", "reserved", "broken")]


@soak_only
def test_a_stack_that_was_never_deployed(stack: Stack, tmp_path: Path) -> None:
    (stack.folder / "Pulumi.none.yaml").write_text(stack.config_file.read_text())
    done = commands.run("stacks", "drift", "none", cwd=stack.folder, env=stack.variables)
    assert done.returncode == 6 and done.stderr.startswith("error: pulumi stack: no stack named 'none'"), done.stderr
    # Without a state nothing that a stack may have is taken for lost.
    done = commands.run("stacks", "leaks", "none", "-o", "json", cwd=stack.folder, env=stack.variables)
    assert (done.returncode, json.loads(done.stdout)) == (0, []), done.stderr
    assert "only what no stack can have is looked for" in done.stderr
