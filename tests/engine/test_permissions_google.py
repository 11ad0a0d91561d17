"""The Google permissions that `stacks permissions` prints, held against what a deployment calls."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from sandbox.keys import bearer
from sandbox.processes import PARTS
from stacks.environment.config import load_environment
from stacks.operations.permissions.google import document
from tests.support.engine import Sandbox, started
from tests.support.project import Stack, environment, put
from tests.support.soak import SOAK, sampled

from .test_google_budget import ACCOUNT

pytestmark = pytest.mark.slow
ZONE = "us-central1-a"
MORE: dict[str, Any] = {
    "gcp.vms.reservations": {"a100": {"zone": ZONE, "machine_type": "a2-highgpu-1g", "count": 2}},
    "gcp.vms.placements": {"near": {"kind": "compact", "region": "us-central1"}},
    "gcp.vms.gpus": {"one": {"zone": ZONE, "machine_type": "g2-standard-8"}},
    "gcp.vms.gpu_groups": {"two": {"zone": ZONE, "machine_type": "g2-standard-8", "size": 2}},
    "gcp.vms.tpus": {"tpu": {"zone": ZONE, "accelerator_type": "v5litepod-8"}},
    "gcp.vms.tpu_queues": {"asked": {"zone": ZONE, "accelerator_type": "v5litepod-4"}},
    "gcp.vms.queued_tpus": {"spot": {"zone": ZONE, "accelerator_type": "v5litepod-4", "capacity": "spot"}},
    "gcp.vms.reconcile": {},
    "gcp.batch.template": {"zone": ZONE, "machine_type": "g2-standard-8"},
    "gcp.batch.targets.batch": {"zones": [ZONE], "template": True},
    "gcp.vertex.tensorboard": {"kind": "create"},
    "gcp.vertex.persistent_resources": {"kept": {"pools": {"gpu": {"machine_type": "g2-standard-8"}}}},
    "gcp.budgets.ml": {
        "billing_account": ACCOUNT,
        "amount": 1000,
        "recipients": {"emails": ["ml@mail.company.com"]},
        "stop": {"at": 0.9},
    },
}
"""What the shipped environments lack, and makes further types."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A project in which nothing is enabled."""
    yield from started(tmp_path_factory.mktemp("google-permissions"), PARTS)


def section(name: str) -> dict[str, Any]:
    values = put("gcp.project", "accel-sandbox", environment(name, "gcp"))
    for path, value in MORE.items() if name == "sandbox" else ():
        values = put(path, value, values)
    return values


def printed(values: dict[str, Any], purpose: str = "deploy") -> set[str]:
    grants = document(load_environment(values), "accel", "test", purpose)["grants"]
    return {permission for grant in grants for permission in grant["permissions"]}


def control(sandbox: Sandbox, verb: str, **body: Any) -> Any:
    root = sandbox.variables["CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER"].partition("/container.")[0]
    head = bearer(sandbox.home)
    answer = requests.request(verb, f"{root}/sandbox-api/permissions", json=body, headers=head, timeout=120)
    answer.raise_for_status()
    return answer.json()


def allow(sandbox: Sandbox, permissions: set[str]) -> None:
    """The deployer may do this and nothing else."""
    control(sandbox, "POST", permissions=sorted(permissions))


LACKING = (
    # What can be made side by side is refused side by side, and what depends on it comes with the next update.
    ("serviceusage.services.enable",),
    ("compute.networks.create", "iam.serviceAccounts.create", "storage.buckets.create", "pubsub.topics.create",
     "artifactregistry.repositories.create", "datastore.databases.create", "iam.roles.create"),
    ("compute.subnetworks.create", "resourcemanager.projects.setIamPolicy", "storage.buckets.setIamPolicy",
     "datastore.schemas.update"),
    ("container.clusters.create",),
    ("container.clusters.update",),
)  # fmt: skip
RUNGS = LACKING if SOAK else LACKING[1:2]


@pytest.mark.parametrize("name", sampled(["gke-dev", "sandbox"], ["sandbox"]))
def test_the_printed_permissions_are_enough(tmp_path: Path, sandbox: Sandbox, name: str) -> None:
    """A permission that is missing is named, and the next update goes on."""
    values = section(name)
    allowed = printed(values)
    stack = Stack(tmp_path / name, sandbox, values, stack=name)
    try:
        for lacking in RUNGS if name == "sandbox" else ():
            assert allowed.issuperset(lacking)
            allow(sandbox, allowed - set(lacking))
            refused = stack.up("--continue-on-error", check=False)
            assert refused.exit_code != 0
            for permission in lacking:
                assert permission in refused.text, refused.text[-6000:]
        allow(sandbox, allowed)
        stack.up()
        assert stack.up("--refresh", "--expect-no-changes").ops("same", "refresh") == {}
        stack.write_environment(put("labels.team", "vision", values))
        stack.up()
        needed = set(control(sandbox, "GET")["recorded"])
        assert needed and needed <= allowed
        stack.write_environment(put("labels.team", "language", values))
        allow(sandbox, printed(values, "preview"))
        stack.preview("--refresh")
        assert set(control(sandbox, "GET")["recorded"]) <= printed(values, "preview")
    finally:
        allow(sandbox, allowed)
        stack.destroy()
        control(sandbox, "DELETE")
