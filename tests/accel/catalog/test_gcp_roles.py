"""The permissions that types and targets need, and the roles that have them."""

import pytest

from accel.catalog.gcp_permissions import gcp_permissions
from accel.catalog.gcp_roles import OPERATIONS, UncoveredPermissions, least, of_targets, of_types, roles


def tables() -> set[str]:
    types = {each for row in of_types().values() for operation in OPERATIONS for each in row[operation]}
    return types | {each for row in of_targets().values() for each in row}


def test_every_permission_exists() -> None:
    assert tables() <= gcp_permissions()
    assert set[str]().union(*(role.permissions for role in roles())) <= gcp_permissions()


@pytest.mark.parametrize("kind", sorted(of_types()))
def test_every_operation_of_a_type_has_roles(kind: str) -> None:
    for operation in OPERATIONS:
        needed = of_types()[kind][operation]
        chosen = least(needed)
        assert set(needed) <= set[str]().union(*(role.permissions for role in chosen))
    assert all(role.only_reads for role in least(of_types()[kind]["read"], reading=True))


WRITTEN = {
    "gke": {"roles/container.clusterViewer"},
    "google-batch": {"roles/batch.jobsEditor", "roles/iam.serviceAccountUser"},
    "vertex": {"roles/aiplatform.user", "roles/datastore.user", "roles/iam.serviceAccountUser"},
    "gce": {"roles/iap.tunnelResourceAccessor", "roles/iam.serviceAccountUser"},
    "tpu-vm": {"roles/iap.tunnelResourceAccessor", "roles/iam.serviceAccountUser"},
    "ledger": {"roles/datastore.user"},
}
"""What docs/gke.md, docs/google-jobs.md, docs/vms.md and docs/allowances.md say of each kind of target."""


@pytest.mark.parametrize("kind", sorted(of_targets()))
def test_who_submits_gets_the_roles_that_the_docs_name(kind: str) -> None:
    assert WRITTEN[kind] <= {role.name for role in least(of_targets()[kind])}


def test_no_basic_role_is_among_them() -> None:
    assert not {"roles/owner", "roles/editor", "roles/viewer"} & {role.name for role in roles()}


def test_a_permission_without_a_role_is_named() -> None:
    with pytest.raises(UncoveredPermissions, match=r"compute\.networks\.invent"):
        least(["compute.networks.invent"])
