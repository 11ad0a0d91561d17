"""What accounts may do, and who becomes them."""

from typing import Any

import pytest

from accel.diagnostics.faults import find
from components.gcp.service_accounts import NodeServiceAccountSpec, WorkloadServiceAccountSpec
from tests.support import gcp

from . import makers

NODES = "serviceAccount:nodes-0a1b2c3@ml-dev-1234.iam.gserviceaccount.com"
PODS = "serviceAccount:train-0a1b2c3@ml-dev-1234.iam.gserviceaccount.com"


def test_nodes_get_the_least_and_the_images() -> None:
    seen = gcp.run(lambda: makers.node_account("nodes"))
    role = seen.one("projects/iAMMember:IAMMember").inputs
    assert role == {"project": gcp.PROJECT, "role": "roles/container.defaultNodeServiceAccount", "member": NODES}
    reader = seen.one("artifactregistry/repositoryIamMember:RepositoryIamMember").inputs
    assert reader == {
        "project": gcp.PROJECT,
        "location": "us",
        "repository": "images",
        "role": "roles/artifactregistry.reader",
        "member": NODES,
    }
    assert "accountId" not in seen.one("serviceaccount/account:Account").inputs, "its name is made up"


def test_the_whole_registry_is_a_choice() -> None:
    seen = gcp.run(lambda: makers.node_account("nodes", read_project_registry=True, repositories=[]))
    roles = {one.inputs["role"] for one in seen.of("projects/iAMMember:IAMMember")}
    assert roles == {"roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader"}
    assert not seen.of("RepositoryIamMember")


def test_pods_become_the_account_by_their_own() -> None:
    seen = gcp.run(lambda: makers.workload_account("train"))
    bound = seen.one("serviceaccount/iAMMember:IAMMember").inputs
    assert bound["role"] == "roles/iam.workloadIdentityUser"
    assert bound["member"] == "serviceAccount:ml-dev-1234.svc.id.goog[training/trainer]"
    assert bound["serviceAccountId"] == "train-0a1b2c3"


def test_what_pods_may_reach_is_no_more_than_said() -> None:
    seen = gcp.run(lambda: makers.workload_account("train"))
    buckets = {(one.inputs["bucket"], one.inputs["role"]) for one in seen.of("storage/bucketIAMMember:BucketIAMMember")}
    # A bucket that is written is read by the same role.
    assert buckets == {("data", "roles/storage.objectViewer"), ("models", "roles/storage.objectUser")}
    secret = seen.one("secretmanager/secretIamMember:SecretIamMember").inputs
    assert (secret["secretId"], secret["role"]) == ("wandb", "roles/secretmanager.secretAccessor")
    assert {one.inputs["role"] for one in seen.of("projects/iAMMember:IAMMember")} == {"roles/bigquery.jobUser"}
    given = [one for one in seen.registrations if one.inputs.get("member")]
    assert {one.inputs["member"] for one in given if "workload-identity" not in one.name} == {PODS}


def test_an_account_without_anything_may_do_nothing() -> None:
    nothing: dict[str, Any] = {key: [] for key in ("read_buckets", "write_buckets", "secrets", "repositories", "roles")}
    seen = gcp.run(lambda: makers.workload_account("train", **nothing))
    assert [one.name for one in seen.registrations if one.inputs.get("member")] == ["train-workload-identity"]


@pytest.mark.parametrize("role", ["roles/owner", "roles/editor", "roles/viewer"])
def test_basic_roles_are_refused(role: str) -> None:
    (fault,) = find(NodeServiceAccountSpec, {"roles": ["roles/logging.logWriter", role]})
    assert str(fault).startswith(f"roles[1]: is {role}, of the whole project")
    (fault,) = find(WorkloadServiceAccountSpec, {"namespace": "a", "service_account": "b", "roles": [role]})
    assert str(fault).startswith(f"roles[0]: is {role}")


@pytest.mark.parametrize("wrong", [{"namespace": "Training"}, {"namespace": "-a"}, {"service_account": "a/b"}])
def test_names_are_those_of_kubernetes(wrong: dict[str, str]) -> None:
    found = find(WorkloadServiceAccountSpec, {"namespace": "a", "service_account": "b", **wrong})
    assert [one.path for one in found] == [tuple(wrong)]
