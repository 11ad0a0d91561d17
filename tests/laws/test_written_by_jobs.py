"""A law: nothing that a job can write decides where credentials go, or what is made.

Held for every account that code of jobs runs as, over the shipped environments and richer ones: of each store that
clients and functions of the stack trust, it may read at most. Each kind of store is a row of docs/security.md.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from accel.catalog.gcp_roles import roles
from accel.contract import buckets
from components.aws.batch_roles import INSTANCE_POLICY
from sandbox.environment import project
from sandbox.google.storage_access import holds
from stacks.environment.config import load_environment
from stacks.environment.deployment import deploy
from tests.sandbox.test_google_storage_access import OWN
from tests.sandbox.test_google_storage_access import STACKS as TRUSTED
from tests.support import gcp, memory
from tests.support.environments import WATCHED
from tests.support.iam import Ask, allows
from tests.support.project import KEY, put

SHIPPED = {path.name.split(".")[1]: path for path in sorted(project().glob("Pulumi.*.yaml"))}
BUILT_ON = {"gke-prod-cluster": "gke-prod-network", "gke-prod-workloads": "gke-prod-cluster"}

JOBS = {"accel:gcp:VmAccount", "accel:gcp:WorkloadServiceAccount", "accel:gcp:NodeServiceAccount"}
STACKS_OWN = {"accel:gcp:ReconcileFunction", "accel:gcp:BudgetStop"}
"""Components that make service accounts: what jobs and their machines run as, and what runs no job."""
GROUNDS = {"accel:gcp:VmJobs", "accel:gcp:BatchJobs", "accel:gcp:VertexJobs"}
"""Components with a bucket that jobs write to; of every other bucket they write nothing."""
PLAIN = {
    "roles/logging.logWriter",
    "roles/monitoring.metricWriter",
    "roles/artifactregistry.reader",
    "roles/batch.agentReporter",
    "roles/container.defaultNodeServiceAccount",
    "roles/secretmanager.secretAccessor",
}
"""Roles beside the catalogue's, by which nothing trusted is written: lines, metrics, images, states, secrets."""
OBJECTS = ("create", "delete", "update", "setIamPolicy", "move", "restore")
BUCKETS = ("storage.buckets.update", "storage.buckets.setIamPolicy", "storage.buckets.delete")
NEVER = {
    *("iam.serviceAccounts.actAs", "iam.serviceAccounts.getAccessToken", "iam.serviceAccounts.setIamPolicy"),
    *("resourcemanager.projects.setIamPolicy", "iam.roles.update", "cloudfunctions.functions.update"),
    *("datastore.entities.create", "datastore.entities.update", "datastore.entities.delete"),
    *("compute.instances.create", "compute.instances.setMetadata", "tpu.nodes.create", "container.configMaps.update"),
    *("container.clusters.update", "secretmanager.versions.add", "pubsub.topics.setIamPolicy"),
}
"""What would write another store (claims, ledger, targets in a cluster), or become another account."""


def of_file(stack: str) -> dict[str, Any]:
    return yaml.safe_load(SHIPPED[stack].read_text())["config"][KEY]


def ran(values: dict[str, Any], on: str | None = None) -> memory.Recorder:
    """The program's registrations; `on` is a shipped environment that it builds on."""
    with pytest.MonkeyPatch.context() as patch:
        if on:
            outputs = ran(of_file(on), BUILT_ON.get(on)).exports
            patch.setitem(memory.STACKS, f"organization/accel/{on}", outputs)
            patch.setitem(memory.CALLS, "pulumi:pulumi:readStackOutputs", {"name": on, "outputs": outputs})
        return gcp.run(lambda: deploy(load_environment(values)))


def everything() -> dict[str, Any]:
    """The sandbox's environment with all that keeps something in a store."""
    values = of_file("sandbox")
    for path, value in {
        "gcp.vms.reconcile": {},
        "gcp.vms.queued_tpus": {"trainer": {"zone": "us-central1-a", "accelerator_type": "v5litepod-8"}},
        "gcp.vertex.tensorboard": {"kind": "create"},
        "gcp.vertex.claims": {"kind": "create"},
        "gcp.budgets": {
            "all": {
                "billing_account": "012345-567890-ABCDEF", "amount": 9, "recipients": {"emails": ["a@b.co"]}, "stop": {}
            }
        },
        "aws.roles": {"read_buckets": ["data"], "write_buckets": ["models"]},
    }.items():  # fmt: skip
        values = put(path, value, values)
    return values


RUNS = {
    **{stack: (of_file(stack), BUILT_ON.get(stack)) for stack in SHIPPED},
    "everything": (everything(), None),
    "watched": (WATCHED, None),
}


@pytest.fixture(scope="module", params=RUNS)
def seen(request: pytest.FixtureRequest) -> memory.Recorder:
    return ran(*RUNS[request.param])


def maker_of(seen: memory.Recorder, one: memory.Registration) -> str:
    """The type of the component that a resource is a child of."""
    return next(each.type for each in seen.registrations if each.urn == one.parent)


def members(seen: memory.Recorder) -> set[str]:
    """The accounts that code of jobs may become."""
    found: set[str] = set()
    for account in seen.of("gcp:serviceaccount/account:Account"):
        maker = maker_of(seen, account)
        assert maker in JOBS | STACKS_OWN, f"{maker} makes an account: is it one of jobs?"
        if maker in JOBS:
            found.add(gcp.computed_email(account.name))
    return {f"serviceAccount:{email}" for email in found}


def permissions(seen: memory.Recorder, role: str) -> frozenset[str]:
    own = {f"{one.name}-0a1b2c3": one.inputs["permissions"] for one in seen.of("projects/iAMCustomRole:IAMCustomRole")}
    if role in own or role in PLAIN:
        return frozenset(own.get(role, ()))
    known = {each.name: each.permissions for each in roles()}
    assert role in known, f"{role}: what may jobs write with it?"
    return known[role]


def may(seen: memory.Recorder, member: str, permission: str, bucket: str, name: str = "") -> bool:
    kind = "storage.googleapis.com/" + ("Object" if name else "Bucket")
    resource = f"projects/_/buckets/{bucket}" + (f"/objects/{name}" if name else "")
    grants = [(one.inputs, bucket) for one in seen.of("projects/iAMMember:IAMMember")]
    grants += [(one.inputs, one.inputs["bucket"]) for one in seen.of("storage/bucketIAMMember:BucketIAMMember")]
    return any(
        (given["member"], of) == (member, bucket)
        and permission in permissions(seen, given["role"])
        and holds(given.get("condition", {}).get("expression", ""), kind, resource)
        for given, of in grants
    )


def test_jobs_on_google_write_nothing_that_is_trusted(seen: memory.Recorder) -> None:
    for bucket in seen.of("gcp:storage/bucket:Bucket"):
        ground = maker_of(seen, bucket) in GROUNDS
        named = f"{bucket.name}-0a1b2c3"
        for member in members(seen):
            for name in TRUSTED if ground else [*TRUSTED, *OWN]:
                for verb in OBJECTS:
                    assert not may(seen, member, f"storage.objects.{verb}", named, name), (member, verb, name)
            assert not [each for each in BUCKETS if may(seen, member, each, named)], member
        if ground:
            assert bucket.inputs["uniformBucketLevelAccess"], "conditions need it"


def test_jobs_on_google_write_results_and_read_their_records(seen: memory.Recorder) -> None:
    for bucket in seen.of("gcp:storage/bucket:Bucket"):
        if maker_of(seen, bucket) in GROUNDS:
            member = f"serviceAccount:{gcp.computed_email(bucket.name)}"
            named = f"{bucket.name}-0a1b2c3"
            assert all(may(seen, member, "storage.objects.create", named, name) for name in OWN)
            assert all(may(seen, member, "storage.objects.get", named, name) for name in TRUSTED)
            assert may(seen, member, "storage.objects.list", named)


def test_jobs_on_google_become_nobody_else(seen: memory.Recorder) -> None:
    own = members(seen)
    for grant in seen.of("projects/iAMMember:IAMMember"):
        if grant.inputs["member"] in own:
            assert not permissions(seen, grant.inputs["role"]) & NEVER, grant.urn
    acting = [one.inputs["member"] for one in seen.of("gcp:serviceaccount/iAMMember:IAMMember")]
    assert not own & set(acting)


def policies(seen: memory.Recorder) -> Iterator[dict[str, Any]]:
    """What code of jobs may do on AWS: its own role's, that of what starts it, and that of its instance."""
    for policy in seen.of("iam/rolePolicy:RolePolicy"):
        if maker_of(seen, policy) == "accel:aws:BatchRoles":
            yield json.loads(policy.inputs["policy"])
    for attached in seen.of("iam/rolePolicyAttachment:RolePolicyAttachment"):
        if maker_of(seen, attached) == "accel:aws:BatchRoles":
            assert attached.inputs["policyArn"].endswith(INSTANCE_POLICY), "it has nothing of SSM, DynamoDB and S3"


def stores(seen: memory.Recorder) -> Iterator[tuple[str, str]]:
    """Each action that would write a trusted store, and the resource."""
    for kind, service, actions in (
        ("ssm/parameter:Parameter", "ssm", ("PutParameter", "DeleteParameter")),
        ("dynamodb/table:Table", "dynamodb", ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")),
        ("s3/bucket:Bucket", "s3", ("PutBucketPolicy", "DeleteBucket")),
    ):
        for store in seen.of(kind):
            yield from ((f"{service}:{action}", f"arn:{store.type}:{store.name}") for action in actions)
    for bucket in seen.of("s3/bucket:Bucket"):
        code = f"arn:{bucket.type}:{bucket.name}/{buckets.CODE}/0123.tar.gz"
        yield from ((f"s3:{action}", code) for action in ("PutObject", "DeleteObject"))
    yield from (("iam:PassRole", "arn:role"), ("batch:SubmitJob", "arn:queue"), ("lambda:UpdateFunctionCode", "arn:f"))


def test_jobs_on_aws_write_nothing_that_is_trusted(seen: memory.Recorder) -> None:
    documents = list(policies(seen))
    allowed = [need for need in stores(seen) if documents and allows(documents, Ask(*need))]
    assert not allowed


def test_pods_of_jobs_have_no_right_in_their_cluster(seen: memory.Recorder) -> None:
    """Targets of a cluster are a ConfigMap in a namespace of jobs."""
    made = [one for one in seen.registrations if one.type.startswith("kubernetes:rbac.authorization.k8s.io/v1:")]
    spaces = {
        one.inputs["metadata"]["name"]
        for one in seen.of("kubernetes:core/v1:Namespace")
        if maker_of(seen, one) == "accel:kubernetes:JobNamespace"
    }
    for one in made:
        assert not spaces & {subject.get("namespace") for subject in one.inputs.get("subjects", [])}, one.urn
        for rule in one.inputs.get("rules", []):
            assert not {"*", "configmaps"} & set(rule.get("resources", [])), one.urn


def test_the_law_sees_every_store(seen: memory.Recorder, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["seen"] != "everything":
        return
    kinds = {maker_of(seen, one) for one in seen.of("gcp:storage/bucket:Bucket")}
    assert kinds == {*GROUNDS, "accel:gcp:CodeBucket", "accel:gcp:BudgetStop"}
    assert {maker_of(seen, one) for one in seen.of("gcp:serviceaccount/account:Account")} == JOBS | STACKS_OWN
    assert len({resource for _, resource in stores(seen)}) > 5 and len(list(policies(seen))) == 2
