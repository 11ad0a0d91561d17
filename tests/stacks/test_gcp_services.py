"""Which APIs of Google Cloud an environment needs."""

from typing import Any

import pytest

from stacks.environment.config import load_environment
from stacks.environment.gcp.services import BASE, needed_services
from tests.support.project import environment

from .test_gcp_config import PROJECT, put

CLAIM = {"kind": "filestore", "size_gib": 1024}


def services(document: dict[str, Any]) -> set[str]:
    return set(needed_services(load_environment(document)))


def test_every_shipped_environment_has_an_answer() -> None:
    """Also for AWS alone, which needs none."""
    assert services(environment("dev")) == set()
    for stack in ("sandbox", "gke-dev", "gke-prod-network", "gke-prod-cluster", "gke-prod-workloads"):
        assert services(environment(stack, "gcp")) >= {*BASE, "compute"}, stack


def test_each_service_names_the_parts_that_need_it() -> None:
    found = needed_services(load_environment(environment("sandbox", "gcp")))
    assert found["compute"] == ["gcp.network", "gcp.cluster", "gcp.vms", "gcp.batch", "gcp.vertex"]
    assert (found["tpu"], found["firestore"]) == (["gcp.vms"], ["gcp.vertex.claims"])
    assert {"billingbudgets", "file", "secretmanager"}.isdisjoint(found)


ACCOUNT = {"namespace": "jobs", "service_account": "jobs"}


@pytest.mark.parametrize(
    ("path", "value", "service"),
    [
        ("gcp.accounts.workloads.one", {**ACCOUNT, "secrets": ["wandb"]}, "secretmanager"),
        ("gcp.accounts.workloads.one", {**ACCOUNT, "read_buckets": ["data"]}, "storage"),
        ("gcp.vertex", {"targets": {"vertex": {}}}, "firestore"),
        ("gcp.workloads", {
            "namespaces": {"jobs": {"namespace": "jobs"}},
            "volumes": {"data": {"namespace": "jobs", "volume": CLAIM}},
        }, "file"),
    ],
)  # fmt: skip
def test_what_a_part_adds(path: str, value: Any, service: str) -> None:
    bare = put("gcp.accounts.workloads", {})
    assert service not in services(bare) and service in services(put(path, value))


def test_a_budget_that_stops_needs_its_function() -> None:
    spec = {"billing_account": "012345-567890-ABCDEF", "amount": 10, "recipients": {"emails": ["a@company.com"]}}
    section: dict[str, Any] = {"project": PROJECT, "region": "us-central1", "budgets": {"ml": spec}}
    told = services({"owner": "ml", "gcp": section})
    assert told == {*BASE, "billingbudgets", "cloudbilling", "monitoring"}
    section["budgets"] = {"ml": {**spec, "stop": {}}}
    assert services({"owner": "ml", "gcp": section}) - told >= {"cloudfunctions", "eventarc", "run", "storage"}
