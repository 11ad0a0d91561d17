"""A cluster with EFA through the real engine, and a job of two nodes on it: deployed, run, read, stopped, gone."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.environment import project
from tests.support import commands
from tests.support.cloud import listing
from tests.support.engine import Sandbox
from tests.support.project import Stack, environment, put
from tests.support.soak import soak_only

REGION = "eu-north-1"
ZONES = [f"{REGION}a", f"{REGION}b"]
SHOW = """
import os
named = {name: os.environ.get(os.environ[name]) for name in ("ACCEL_NODE_INDEX_FROM", "ACCEL_MAIN_ADDRESS_FROM")}
index, main = named.values()
print("node", index, "of", os.environ["ACCEL_NODE_COUNT"], "main", main or "here", flush=True)
"""


def cluster(**changed: Any) -> dict[str, Any]:
    values = put("aws.region", REGION, environment("sandbox"))
    values = put("aws.network.zones", ZONES, values)
    near = {
        "capacity": "on-demand",
        "instance_types": ["p4d.24xlarge"],
        "max_vcpus": 192,
        "placement": "cluster",
        "efa": True,
        "zone": ZONES[1],
        "local_nvme": True,
        "capacity_reservation": {"id": "cr-0a1b2c3d4e5f60718"},
        **changed,
    }
    values = put("aws.environments", {"near": near}, values)
    return put("aws.queues", {"gpu": {"environments": ["near"]}}, values)


@pytest.fixture
def stack(tmp_path: Path, sandbox: Sandbox) -> Stack:
    return Stack(tmp_path / "shapes", sandbox, cluster(), stack="shapes")


def jobs(stack: Stack, sandbox: Sandbox, *arguments: str, code: int = 0) -> str:
    """What a `jobs` command printed; its exit code must be `code`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PULUMI_", "ACCEL_"))}
    here = {"ACCEL_TARGETS": str(stack.folder / "targets.json"), "XDG_STATE_HOME": str(stack.folder / "state")}
    environ = {**kept, **sandbox.variables, **here, "XDG_CACHE_HOME": str(stack.folder / "cache")}
    done = commands.run("jobs", *arguments, cwd=project(), env=environ)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout.strip() + (done.stderr if code else "")


def job_file(stack: Stack, name: str, *command: str, **fields: Any) -> str:
    path = stack.folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"name": name, "image": "local/examples", "command": list(command), **fields}))
    return str(path)


SMALL: dict[str, Any] = {"nodes": 2, "cpus": 4, "memory_mib": 4000, "accelerator": {"count": 8}}


@soak_only
def test_from_nothing_to_nothing(stack: Stack, sandbox: Sandbox) -> None:
    before = listing(sandbox, REGION)
    made = stack.up()
    assert stack.up("--refresh", "--expect-no-changes").ops("same", "refresh") == {}

    ec2, batch = sandbox.client("ec2", REGION), sandbox.client("batch", REGION)
    (group,) = ec2.describe_placement_groups()["PlacementGroups"]
    assert group["Strategy"] == "cluster"
    assert {"Key": "accel:stack", "Value": "shapes"} in group["Tags"]
    (deployed,) = batch.describe_compute_environments()["computeEnvironments"]
    resources = deployed["computeResources"]
    assert deployed["status"] == "VALID"
    assert resources["placementGroup"] == group["GroupName"]
    assert "securityGroupIds" not in resources, "Batch refuses groups beside a template's interfaces"
    (subnet,) = ec2.describe_subnets(SubnetIds=resources["subnets"])["Subnets"]
    assert subnet["AvailabilityZone"] == ZONES[1]

    template = resources["launchTemplate"]
    (version,) = ec2.describe_launch_template_versions(
        LaunchTemplateId=template["launchTemplateId"], Versions=[template["version"]]
    )["LaunchTemplateVersions"]
    data = version["LaunchTemplateData"]
    interfaces = data["NetworkInterfaces"]
    assert [one["NetworkCardIndex"] for one in interfaces] == [0, 1, 2, 3]
    assert [one["InterfaceType"] for one in interfaces] == ["efa", "efa-only", "efa-only", "efa-only"]
    target = data["CapacityReservationSpecification"]["CapacityReservationTarget"]
    assert target["CapacityReservationId"] == "cr-0a1b2c3d4e5f60718" and "InstanceMarketOptions" not in data
    among = {one["GroupId"] for one in ec2.describe_security_groups()["SecurityGroups"] if "nodes" in one["GroupName"]}
    assert among <= set(interfaces[3]["Groups"]) and len(among) == 1
    (rules,) = ec2.describe_security_groups(GroupIds=list(among))["SecurityGroups"]
    for direction in ("IpPermissions", "IpPermissionsEgress"):
        pairs = [(one["IpProtocol"], pair["GroupId"]) for one in rules[direction] for pair in one["UserIdGroupPairs"]]
        assert pairs == [("-1", *among)]

    # In place: without the reservation and the disks, which the template alone knows.
    stack.write_environment(cluster(capacity_reservation=None, local_nvme=False))
    changed = {(step.op, step.name) for step in stack.up().steps if step.type.startswith("aws:") and step.op != "same"}
    assert ("update", "near") in changed and {op for op, _ in changed} == {"update"}
    assert stack.up("--refresh", "--expect-no-changes").ops("same", "refresh") == {}

    (stack.folder / "targets.json").write_text(json.dumps(made.outputs["targets"]))
    run_two_nodes(stack, sandbox)

    assert set(stack.destroy().ops("same")) == {"delete"}
    for one in batch.describe_job_definitions(status="ACTIVE")["jobDefinitions"]:
        assert one["type"] == "multinode" and one["tags"] == {"accel:owner": "jobs"}, "what jobs registered is theirs"
        batch.deregister_job_definition(jobDefinition=one["jobDefinitionArn"])
    assert listing(sandbox, REGION) == before


def run_two_nodes(stack: Stack, sandbox: Sandbox) -> None:
    shown = job_file(stack, "two", "python", "-c", SHOW + "import time; time.sleep(0.5)", **SMALL)
    ref = jobs(stack, sandbox, "submit", shown, "--to", "gpu", "--key", "both", "--wait", "-o", "id")
    assert jobs(stack, sandbox, "submit", shown, "--to", "gpu", "--key", "both", "-o", "id") == ref
    lines = sorted(jobs(stack, sandbox, "logs", ref).splitlines())
    assert lines == ["[node 0] node 0 of 2 main here", "[node 1] node 1 of 2 main 127.0.0.1"]
    assert jobs(stack, sandbox, "logs", ref, "--node", "1") == "node 1 of 2 main 127.0.0.1"
    assert "nodes 0 to 1, not 2" in jobs(stack, sandbox, "logs", ref, "--node", "2", code=2)
    status = json.loads(jobs(stack, sandbox, "get", ref, "-o", "jsonl"))
    assert (status["phase"], status["attempts"], status["exit_code"]) == ("SUCCEEDED", 1, 0)
    again = jobs(stack, sandbox, "retry", ref, "-o", "id")
    jobs(stack, sandbox, "wait", again)
    assert sorted(jobs(stack, sandbox, "logs", again).splitlines()) == lines

    # The main node decides, and a failed one is tried again as a whole.
    fails = f"{SHOW}import sys, time; time.sleep(0.5); sys.exit(3 if not main else 0)"
    lost = job_file(stack, "fails", "python", "-c", fails, **SMALL, retries=1)
    jobs(stack, sandbox, "submit", lost, "--to", "gpu", "--key", "fails", "--wait", code=125)
    failed = jobs(stack, sandbox, "submit", lost, "--to", "gpu", "--key", "fails", "-o", "id")
    status = json.loads(jobs(stack, sandbox, "get", failed, "-o", "jsonl"))
    assert (status["phase"], status["attempts"], status["exit_code"]) == ("FAILED", 2, 3)
    attempts = [line.partition("]")[0] for line in jobs(stack, sandbox, "logs", failed).splitlines()]
    assert sorted(attempts)[:2] == ["[node 0 attempt 1", "[node 0 attempt 2"]

    long = job_file(stack, "long", "python", "-c", "print('up', flush=True); import time; time.sleep(60)", **SMALL)
    ref = jobs(stack, sandbox, "submit", long, "--to", "gpu", "-o", "id")
    deadline = time.monotonic() + 180
    while jobs(stack, sandbox, "logs", ref).count("up") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.3)
    jobs(stack, sandbox, "cancel", ref, "--yes")
    assert "cancelled" in jobs(stack, sandbox, "wait", ref, code=125)
    parent = ref.rpartition("/")[2]
    nodes = sandbox.client("batch", REGION).describe_jobs(jobs=[f"{parent}#0", f"{parent}#1"])["jobs"]
    assert {one["status"] for one in nodes} == {"FAILED"}
    assert "3, an instance each" in jobs(stack, sandbox, "submit", long, "--to", "gpu", "--set", "nodes=3", code=2)
