"""What Google Cloud fills in, for the engine in memory."""

import base64
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from pulumi.runtime.mocks import MockResourceArgs

from . import memory

CA = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n").decode()
PROJECT = "ml-dev-1234"


def computed_email(name: str) -> str:
    """Of a service account that was registered under a name."""
    return f"{name}-0a1b2c3@{PROJECT}.iam.gserviceaccount.com"


def computed(args: MockResourceArgs) -> dict[str, Any]:
    """Attributes of a resource that Google makes up, or a provider that reads them."""
    email = computed_email(args.name)
    return {
        "gcp:container/cluster:Cluster": {"endpoint": "203.0.113.7", "masterAuth": {"clusterCaCertificate": CA}},
        "gcp:serviceaccount/account:Account": {"email": email, "member": f"serviceAccount:{email}"},
    }.get(args.typ, {})


def run(program: Callable[[], Any], *, preview: bool = False, kept: dict[str, Any] | None = None) -> memory.Recorder:
    """As memory.run. `kept`: what a preview knows of resources that an update would leave as they are."""
    made = memory._Provider.new_resource

    def with_computed(self: Any, args: MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        known, state = made(self, args)
        return known, {**state, **(kept or {})} if preview else {**state, **computed(args)}

    with patch.object(memory._Provider, "new_resource", with_computed):
        return memory.run(program, preview=preview)
