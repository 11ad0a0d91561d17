"""TPUs through the real engine and the gcp stand-in."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine import Engine
from tests.support.google_fake import Fake, P, engine_on
from tests.support.google_tpus import TPU, ZONE, reach
from tests.support.soak import soak_only
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_tpus"]
pytestmark = pytest.mark.engine
CONFIG = {"gcp:project": "accel-sandbox", "gcp:region": "us-central1", "gcp:zone": "us-central1-a",
          "gcp:defaultLabels": json.dumps({"team": "ml"})}  # fmt: skip
HEAD = "import pulumi\nimport pulumi_gcp as gcp\n"
QUEUED = """gcp.tpu.V2QueuedResource("q", name="q", tpu=gcp.tpu.V2QueuedResourceTpuArgs(node_specs=[
    gcp.tpu.V2QueuedResourceTpuNodeSpecArgs(parent="projects/accel-sandbox/locations/us-central1-a", node_id="one",
        node=gcp.tpu.V2QueuedResourceTpuNodeSpecNodeArgs(
            runtime_version="v2-alpha-tpuv5-lite", accelerator_type="v5litepod-16", description="of a test"))]))
"""


@pytest.fixture
def engine(tmp_path: Path, fake: Fake, provider: dict[str, str], tpus: Fake) -> Iterator[Engine]:
    yield from engine_on(tmp_path, fake, provider, CONFIG)


def still(engine: Engine) -> None:
    """Nothing differs, neither from the program nor from what Google has."""
    result = engine.up("--refresh")
    assert {step.name: step.diffs for step in result.steps if step.op not in ("same", "refresh")} == {}


def nodes(fake: Fake) -> dict[str, Any]:
    return {each["name"].rpartition("/")[2]: each for each in fake.call("GET", f"{TPU}/nodes")["nodes"]}


@soak_only
def test_a_vm_from_its_creation_to_its_end(engine: Engine, fake: Fake) -> None:
    program = f"""{HEAD}
net = gcp.compute.Network("net", auto_create_subnetworks=False)
sub = gcp.compute.Subnetwork("sub", network=net.id, ip_cidr_range="10.0.0.0/20", private_ip_google_access=True)
account = gcp.serviceaccount.Account("tpus", account_id="ml-tpus")
vm = gcp.tpu.V2Vm("vm", name="vm", runtime_version="v2-alpha-tpuv5-lite", labels={{"stage": "a"}}, tags=["t"],
    metadata={{"a": "b"}}, description="of a test", accelerator_config=gcp.tpu.V2VmAcceleratorConfigArgs(
        type="V5LITE_POD", topology="4x4"),
    network_config=gcp.tpu.V2VmNetworkConfigArgs(network=net.id, subnetwork=sub.id, enable_external_ips=False),
    service_account=gcp.tpu.V2VmServiceAccountArgs(
        email=account.email, scopes=["https://www.googleapis.com/auth/cloud-platform"]))
other = gcp.tpu.V2Vm("other", accelerator_type="v5litepod-8", runtime_version="v2-alpha-tpuv5-lite",
    scheduling_config=gcp.tpu.V2VmSchedulingConfigArgs(spot=True))
pulumi.export("endpoints", vm.network_endpoints)
pulumi.export("state", vm.state)
pulumi.export("type", vm.accelerator_type)
"""
    planned = engine.write(program).preview()
    assert nodes(fake) == {}
    made = engine.up()
    assert made.ops() == planned.ops()
    assert len({each["ip_address"] for each in made.outputs["endpoints"]}) == 4
    assert (made.outputs["state"], made.outputs["type"]) == ("READY", "v5litepod-16")
    (state,) = [row for row in engine.export() if row["urn"].endswith("::vm")]
    assert state["id"] == f"{ZONE}/nodes/vm"
    found = nodes(fake)["vm"]
    assert found["labels"] == {"stage": "a", "team": "ml", "goog-pulumi-provisioned": "true"}
    assert found["serviceAccount"]["email"] == "ml-tpus@accel-sandbox.iam.gserviceaccount.com"
    assert found["networkConfig"]["subnetwork"].startswith(f"{P}/regions/us-central1/subnetworks/sub-")
    assert len(nodes(fake)) == 2
    still(engine)

    changed = (
        program.replace('"stage": "a"', '"stage": "b"')
        .replace('"a": "b"', '"a": "c"')
        .replace("v5litepod-8", "v5litepod-4")
    )
    result = engine.write(changed).up()
    changes = {path.partition(".")[0] for path in result.step("vm", "update").diffs}
    assert changes == {"labels", "metadata", "pulumiLabels"}
    assert result.step("other", "replace").replaces == ("acceleratorType",)
    assert (nodes(fake)["vm"]["labels"]["stage"], nodes(fake)["vm"]["metadata"]) == ("b", {"a": "c"})
    still(engine)
    fake.call("PATCH", f"{TPU}/nodes/vm", {"labels": {"stage": "b", "team": "other"}}, updateMask="labels")
    until(lambda: nodes(fake)["vm"]["labels"]["team"] == "other")
    assert engine.refresh().step("vm", "update")
    engine.up()
    assert nodes(fake)["vm"]["labels"]["team"] == "ml"
    engine.destroy()
    assert nodes(fake) == {}


@soak_only
def test_a_vm_without_room_is_not_there(engine: Engine, fake: Fake) -> None:
    engine.write(f"""{HEAD}
gcp.tpu.V2Vm("vm", name="vm", accelerator_type="v5litepod-16", runtime_version="v2-alpha-tpuv5-lite")
""")
    fake.fault(stockout=["v5litepod-16"])
    failed = engine.up(check=False)
    assert any("There is no more capacity in the zone" in line for line in failed.diagnostics), failed.text
    assert nodes(fake) == {}
    fake.fault(stockout=[])
    assert engine.up().exit_code == 0
    assert nodes(fake)["vm"]["state"] == "READY"


def test_a_request_is_made_and_goes_while_it_has_no_nodes(engine: Engine, fake: Fake) -> None:
    fake.fault(stockout=["v5litepod-16"])
    engine.write(HEAD + QUEUED).up()
    reach(fake, "WAITING_FOR_RESOURCES")
    still(engine)
    replaced = engine.write(HEAD + QUEUED.replace('"one"', '"two"')).up()
    assert replaced.step("q", "replace").replaces == ("tpu",)
    engine.destroy()
    assert fake.ask("GET", f"{TPU}/queuedResources/q").status_code == 404


@soak_only
def test_a_request_with_nodes_cannot_be_destroyed(engine: Engine, fake: Fake) -> None:
    """The provider does not force it: the nodes go first."""
    engine.write(HEAD + QUEUED).up()
    reach(fake, "ACTIVE")
    refused = engine.destroy(check=False)
    assert any("is ACTIVE and has nodes" in line for line in refused.diagnostics), refused.text
    fake.call("DELETE", f"{TPU}/nodes/one")
    reach(fake, "SUSPENDED")
    engine.destroy()
    assert fake.ask("GET", f"{TPU}/queuedResources/q").status_code == 404


@pytest.mark.parametrize(
    "line, said",
    [
        (
            'accelerator_type="v4-8", runtime_version="tpu-ubuntu2204-base"',
            "the accelerator v4-8 was not found in zone",
        ),
        ('accelerator_type="v5litepod-4", runtime_version="v9"', 'The field "RuntimeVersion" cannot be "v9"'),
    ],
)
def test_what_is_refused_says_why(engine: Engine, line: str, said: str) -> None:
    refused = engine.write(f'{HEAD}gcp.tpu.V2Vm("vm", {line})\n').up(check=False)
    assert any(said in each for each in refused.diagnostics), refused.text
