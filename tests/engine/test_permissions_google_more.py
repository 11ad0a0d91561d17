"""The permissions of sections that the shipped environments lack, held against what a deployment calls."""

from typing import Any

import pytest

from stacks.environment.config import load_environment
from stacks.operations.permissions.google import document
from tests.support.engine import Engine
from tests.support.google_fake import Fake
from tests.support.project import environment

from .test_google_budget import ACCOUNT

pytestmark = pytest.mark.engine
ZONE = "us-central1-a"
LARGE: dict[str, Any] = {
    "project": "accel-sandbox",
    "region": "us-central1",
    "network": environment("sandbox", "gcp")["gcp"]["network"],
    "vms": {
        "jobs": {"force_delete": True},
        "reservations": {"a100": {"zone": ZONE, "machine_type": "a2-highgpu-1g", "count": 2}},
        "placements": {"near": {"kind": "compact", "region": "us-central1"}},
        "gpus": {"one": {"zone": ZONE, "machine_type": "g2-standard-8"}},
        "gpu_groups": {"two": {"zone": ZONE, "machine_type": "g2-standard-8", "size": 2}},
        "tpus": {"tpu": {"zone": ZONE, "accelerator_type": "v5litepod-8"}},
        "tpu_queues": {"asked": {"zone": ZONE, "accelerator_type": "v5litepod-4"}},
        "queued_tpus": {"spot": {"zone": ZONE, "accelerator_type": "v5litepod-4", "capacity": "spot"}},
        "reconcile": {},
        "targets": {"tpu-vm": {"kind": "tpu-vm", "zones": [ZONE]}, "vm": {"kind": "gce", "zones": [ZONE]}},
    },
    "batch": {
        "bucket": {"force_delete": True},
        "notifications": {},
        "template": {"zone": ZONE, "machine_type": "g2-standard-8"},
        "targets": {"batch": {"zones": [ZONE], "template": True}},
    },
    "vertex": {
        "bucket": {"force_delete": True},
        "tensorboard": {"kind": "create"},
        "persistent_resources": {"kept": {"pools": {"gpu": {"machine_type": "g2-standard-8"}}}},
        "targets": {"vertex": {}},
    },
    "images": {"training": {"location": "us"}},
    "budgets": {
        "ml": {
            "billing_account": ACCOUNT,
            "amount": 1000,
            "recipients": {"emails": ["ml@mail.company.com"]},
            "stop": {"at": 0.9},
        }
    },
}
"""What the shipped environments lack, and makes further types."""


@pytest.fixture
def engine(engine_on_fresh: Engine) -> Engine:
    return engine_on_fresh


def printed(values: dict[str, Any], purpose: str = "deploy") -> set[str]:
    grants = document(load_environment(values), "accel", "test", purpose)["grants"]
    return {permission for grant in grants for permission in grant["permissions"]}


def control(fake: Fake, verb: str, **body: Any) -> set[str]:
    return set(fake.call(verb, "sandbox-api/permissions", body)["recorded"])


def program(values: dict[str, Any]) -> str:
    text = "from stacks.environment.config import load_environment\nfrom stacks.environment.deployment import deploy\n"
    return f"{text}deploy(load_environment({values!r}))\n"


def test_the_printed_permissions_are_enough_for_every_section(engine: Engine, fresh: Fake) -> None:
    values = {"owner": "ml", "gcp": LARGE}
    allowed = printed(values)
    control(fresh, "POST", permissions=sorted(allowed))
    engine.write(program(values))
    engine.up()
    assert engine.up("--refresh").ops("same", "refresh") == {}
    engine.write(program({**values, "labels": {"team": "vision"}}))
    engine.up()
    assert control(fresh, "GET") <= allowed
    control(fresh, "POST", permissions=sorted(printed(values, "preview")))
    engine.preview("--refresh")
    control(fresh, "POST", permissions=sorted(allowed))
    engine.destroy("--run-program")
    assert control(fresh, "GET") <= allowed
    control(fresh, "DELETE")
