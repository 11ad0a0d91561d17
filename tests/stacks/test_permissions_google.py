"""`stacks permissions` on Google Cloud: permissions, and the roles that have them, by where they are granted."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings

from accel.catalog.gcp_permissions import gcp_permissions
from accel.catalog.gcp_roles import roles
from sandbox.environment import project
from stacks.cli.main import stacks
from stacks.environment.config import load_environment
from stacks.operations.permissions.google import document, plural
from tests.support.environments import ENVIRONMENTS
from tests.support.project import KEY, environment, put
from tests.support.soak import SOAK

FILES = [
    path for path in sorted(project().glob("Pulumi.*.yaml")) if "gcp" in yaml.safe_load(path.read_text())["config"][KEY]
]
READS = ("container.clusters.connect",)
"""Of those that only read, the one whose verb does not say so."""


def shown(values: dict[str, Any], purpose: str = "deploy") -> dict[str, Any]:
    return document(load_environment(values), "accel", "dev", purpose)


def granted(values: dict[str, Any], purpose: str = "deploy") -> dict[str, set[str]]:
    return {grant["on"]: set(grant["permissions"]) for grant in shown(values, purpose)["grants"]}


@pytest.mark.parametrize("purpose", ["deploy", "preview", "submit"])
@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name.split(".")[1])
def test_every_permission_is_in_a_role_that_is_printed(file: Path, purpose: str) -> None:
    values = yaml.safe_load(file.read_text())["config"][KEY]
    held = {role.name: role.permissions for role in roles()}
    grants = shown(values, purpose)["grants"]
    assert grants or "targets" not in str(values["gcp"])
    for grant in grants:
        permissions = set(grant["permissions"])
        assert permissions <= gcp_permissions()
        assert permissions <= set[str]().union(*(held[role] for role in grant["roles"]))
        for role in grant["roles"]:
            others = set[str]().union(*(held[other] for other in grant["roles"] if other != role))
            assert not permissions <= others, f"{role} is one too many"


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name.split(".")[1])
def test_a_preview_only_reads(file: Path) -> None:
    values = yaml.safe_load(file.read_text())["config"][KEY]
    for permissions in granted(values, "preview").values():
        verbs = {each.rpartition(".")[2] for each in permissions - set(READS)}
        assert verbs <= {"get", "list", "getIamPolicy", "getMetadata"}


@settings(max_examples=200 if SOAK else 8, deadline=None)
@given(values=ENVIRONMENTS.filter(lambda values: "gcp" in values))
def test_whatever_an_environment_has_is_known_and_in_a_role(values: dict[str, Any]) -> None:
    held = {role.name: role.permissions for role in roles()}
    for purpose in ("deploy", "preview", "submit"):
        for grant in shown(values, purpose)["grants"]:
            permissions = set(grant["permissions"])
            assert permissions <= gcp_permissions()
            assert permissions <= set[str]().union(*(held[role] for role in grant["roles"]))


def test_what_is_not_there_needs_nothing() -> None:
    (dev,) = granted(environment("gke-dev", "gcp")).values()
    assert not {each for each in dev if each.startswith(("tpu.", "batch.", "aiplatform.", "storage.", "billing."))}
    assert {"compute.networks.create", "container.clusters.create", "serviceusage.services.enable"} <= dev


def test_budgets_are_granted_on_the_billing_account() -> None:
    budgets = {
        "ml": {
            "billing_account": "012345-6789AB-CDEF01",
            "currency": "EUR",
            "amount": 1000,
            "recipients": {"emails": ["ml@mail.company.com"]},
        }
    }
    found = granted(put("gcp.budgets", budgets, environment("gke-dev", "gcp")))
    assert "billing.budgets.create" in found["billingAccounts/012345-6789AB-CDEF01"]
    assert not any(each.startswith("billing.") for each in found["projects/ml-dev-4821"])


@pytest.mark.parametrize(
    "kind, resource",
    [("NetworkPolicy", "networkPolicies"), ("StorageClass", "storageClasses"), ("APIService", "apiServices"),
     ("ConfigMap", "configMaps")],
)  # fmt: skip
def test_kinds_are_written_as_iam_writes_them(kind: str, resource: str) -> None:
    assert plural(kind) == resource
    assert f"container.{resource}.create" in gcp_permissions()


def test_the_text_names_roles_and_permissions(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: accel\nruntime: python\n")
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(yaml.safe_dump({"config": {KEY: environment("gke-dev", "gcp")}}))
    done = CliRunner().invoke(stacks, ["permissions", str(file)])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert "# dev: API compute.googleapis.com" in lines
    assert "roles/compute.networkAdmin" in lines
    assert "  compute.networks.create" in lines
