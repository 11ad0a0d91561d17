"""Environments as hypothesis draws them: what each part of the model may say, put together. Most of them are valid."""

from typing import Any

from hypothesis import strategies as st

from tests.support.gcp import CA, PROJECT

Drawn = st.SearchStrategy[Any]

REGION, ZONE = "us-central1", "us-central1-a"
SECRET = "arn:aws:secretsmanager:us-east-1:210987654321:secret:wandb-AbCdEf"
BILLING = "012345-567890-ABCDEF"
EMAILS = {"emails": ["ml@mail.company.com"]}
STACKS = {"aws": "organization/accel/network", "gcp": "organization/accel/gke"}
"""Stacks that an environment may build on: tests/support/memory.py has the first, `GKE` makes the second."""


def one(*values: Any) -> Drawn:
    return st.sampled_from(values)


def some(values: dict[str, Any], *, least: int = 0) -> Drawn:
    """Some of the entries; each value is itself drawn where it is a strategy."""
    keys = st.lists(st.sampled_from(sorted(values)), min_size=least, unique=True)
    return keys.flatmap(lambda taken: part({key: values[key] for key in taken}))


def part(needed: dict[str, Any], **optional: Any) -> Drawn:
    """A section: what it needs, and what it may have besides."""

    def drawn(values: dict[str, Any]) -> dict[str, Drawn]:
        return {key: value if isinstance(value, st.SearchStrategy) else st.just(value) for key, value in values.items()}

    return st.fixed_dictionaries(drawn(needed), optional=drawn(optional))


AWS_NETWORK = one(
    {"kind": "existing", "vpc_id": "vpc-0a1b2c3d", "subnet_ids": ["subnet-0a1b2c3d"],
     "security_group_ids": ["sg-0a1b2c3d"]},
    {"kind": "stack", "stack": STACKS["aws"]},
    {"kind": "create", "zones": ["us-east-1a"], "egress": "nat", "flow_logs_days": 90},
    {"kind": "create", "zones": ["us-east-1a", "us-east-1b"], "egress": "nat-per-zone"},
    {"kind": "create", "zones": ["us-east-1a", "us-east-1b"], "egress": "endpoints"},
)  # fmt: skip
NEAR = {"capacity": "on-demand", "instance_types": ["p5.48xlarge"], "max_vcpus": 384, "placement": "cluster",
        "efa": True, "local_nvme": True}  # fmt: skip
SPOT = {"capacity": "spot", "instance_types": ["g5", "g6"], "max_vcpus": 128}
FIRST = part({**SPOT, "capacity": one("spot", "on-demand")}, buckets=one({"data": "read-only"}, {"out": "read-write"}))
TRAIN = {"image": "repo/train:1", "vcpus": 4, "memory_mib": 14_000, "gpus": 1}
AWS_BUDGET = part({"amount": 1000, "recipients": EMAILS}, stop=one({}, {"at": 1.2}), credits=st.booleans())


def _aws(others: dict[str, Any]) -> Drawn:
    keys = ["first", *sorted(others)]
    queues = {"gpu": {"environments": ["first"]}} | {
        key: part({"environments": [key]}, fair_share=one({"shares": {"research": 0.5}, "decay_s": 600}))
        for key in keys[1:]
    }
    return part(
        {"region": "us-east-1", "network": AWS_NETWORK, "environments": part({"first": FIRST, **others}),
         "queues": part(queues)},
        definitions=some({"train": part(TRAIN, secrets=one({"WANDB_KEY": SECRET})), "long": {**TRAIN, "attempts": 3}}),
        repositories=some({"training": {}, "base": {"force_delete": True}}),
        claims=one(None, {"protect": True}),
        logs=one({"retention_days": 365, "retain_on_delete": True}),
        roles=one({"read_buckets": ["data"], "write_buckets": ["models"]}),
        monitoring=part({}, gpu_metrics=st.booleans(), failed_jobs=one(None, {"jobs": 3}), waiting_jobs=one(None),
                        job_states=one([]), emails=one(["ml@company.com"])),
        budgets=some({"gpus": AWS_BUDGET}),
    )  # fmt: skip


AWS = one({}, {"spot": SPOT}, {"near": NEAR}, {"near": NEAR, "spot": SPOT}).flatmap(_aws)

SUBNET = {"nodes": "10.60.0.0/22", "pods": "10.64.0.0/14", "services": "10.68.0.0/20"}
EAST = {"nodes": "10.72.0.0/22", "pods": "10.76.0.0/14", "services": "10.80.0.0/20"}
GCP_NETWORK = one(
    {"kind": "create", "subnets": {REGION: SUBNET}},
    {"kind": "create", "subnets": {REGION: SUBNET, "us-east1": EAST}},
    {"kind": "existing", "network": "projects/host-1234/global/networks/shared",
     "subnets": {REGION: {"subnetwork": f"projects/host-1234/regions/{REGION}/subnetworks/gke",
                          "pods_range": "pods", "services_range": "services"}}},
    {"kind": "stack", "stack": STACKS["gcp"]},
)  # fmt: skip
CLUSTER = one(
    {"kind": "create", "location": REGION, "node_locations": [ZONE], "authorized_networks": {"here": "203.0.113.0/24"}},
    {"kind": "existing", "name": "ml", "location": REGION, "endpoint": "203.0.113.7", "ca_certificate": CA},
    {"kind": "stack", "stack": STACKS["gcp"]},
)
GPU_POOL = {"kind": "gpu", "machine_type": "g2-standard-8", "max_nodes": 4, "zones": [ZONE]}
POOLS = {
    "l4": part({**GPU_POOL, "driver": one("latest", "default")}, capacity=one("spot")),
    "own": {**GPU_POOL, "driver": "daemonset", "secure_boot": False},
    "v5e": {"kind": "tpu", "machine_type": "ct5lp-hightpu-4t", "topology": "4x4", "zones": [ZONE]},
}
SYSTEM = {"kind": "cpu", "machine_type": "e2-standard-4", "min_nodes": 1, "max_nodes": 3, "zones": [ZONE]}
INSTALLED = [{"release": name, "install": False, "installed_by": "tests"} for name in ("kueue", "jobset")]
QUEUES = {
    "queues": {"training": {"pools": [{"pool": "system"}]}},
    "local_queues": {"jobs": {"namespace": "jobs", "queue": "training"}},
}
WORKLOADS = part(
    {"namespaces": one({"jobs": {"namespace": "jobs"}}, {"jobs": {"namespace": "jobs", "account": "training"}})},
    releases=one(INSTALLED), queueing=one(QUEUES, {**QUEUES, "priorities": {"urgent": 1000}}),
    targets=one({"gke": {"namespace": "jobs"}}, {"gke": {"namespace": "jobs", "queue": "jobs"}}),
    health=one({}), verify=one({}), volumes=one(
        {"data": {"namespace": "jobs", "volume": {"kind": "bucket", "bucket": "data"}}}),
)  # fmt: skip
ACCOUNTS = {"training": {"namespace": "jobs", "service_account": "trainer", "read_buckets": ["data"]}}
KEPT = {"zone": ZONE, "machine_type": "a2-highgpu-8g", "count": 2}
VM = {"zone": ZONE, "machine_type": "a2-highgpu-8g"}
VMS = part(
    {"jobs": {}},
    reservations=one({"a100": KEPT}), placements=one({"near": {"kind": "compact", "region": REGION}}),
    gpus=one({"one": VM}, {"one": {**VM, "capacity": "reservation", "reservation": {"name": "a100"}}}),
    gpu_groups=one({"two": {**VM, "size": 2}}), tpus=one({"tpu": {"zone": ZONE, "accelerator_type": "v5litepod-8"}}),
    tpu_queues=one({"asked": {"zone": ZONE, "accelerator_type": "v5litepod-4"}}), reconcile=one({}, {"every_min": 30}),
    queued_tpus=one({"spot": {"zone": ZONE, "accelerator_type": "v5litepod-4", "capacity": "spot", "slices": 2}}),
    targets=some({"tpu-vm": {"kind": "tpu-vm", "zones": [ZONE]}, "vm": {"kind": "gce", "zones": [ZONE]}}),
)  # fmt: skip
BATCH = part(
    {}, notifications=one({}), template=one({"zone": ZONE, "machine_type": "g2-standard-8"}),
    targets=one({"batch": {}}, {"batch": {"zones": [ZONE]}}, {"batch": {"template": True}}),
)  # fmt: skip
VERTEX = part(
    {"targets": one({"vertex": {}}, {"vertex": {"persistent_resource": "kept"}}),
     "persistent_resources": {"kept": {"pools": {"gpu": {"machine_type": "g2-standard-8"}}}}},
    claims=one(None, {"kind": "existing", "database": "(default)"}), tensorboard=one({"kind": "create"}),
)  # fmt: skip
GCP_BUDGET = part({"billing_account": BILLING, "amount": 1000, "recipients": EMAILS}, stop=one({}, {"at": 0.9}))
BASE = {"project": PROJECT, "region": REGION}


def _on_cluster(network: Any) -> Drawn:
    pools = some(POOLS).map(lambda more: {"system": SYSTEM, **more})
    return part(
        {**BASE, "network": network, "cluster": CLUSTER, "pools": pools},
        workloads=WORKLOADS, accounts=one({"workloads": ACCOUNTS}), budgets=some({"ml": GCP_BUDGET}),
    )  # fmt: skip


GCP = st.one_of(
    GCP_NETWORK.flatmap(_on_cluster),
    part({**BASE, "network": GCP_NETWORK}, vms=VMS, batch=BATCH, budgets=some({"ml": GCP_BUDGET})),
    part({**BASE, "vertex": VERTEX}, images=some({"training": {"location": "us"}}), budgets=some({"ml": GCP_BUDGET})),
)
ALLOWANCES = part({"teams": one({"ml": {"usd": 20}}, {"ml": {"usd": 20}, "vision": {"usd": 0.5, "unpriced": "warn"}})})
HEAD = {"owner": "ml", "labels": one({}, {"environment": "dev"})}
ENVIRONMENTS = st.one_of(
    part({**HEAD, "aws": AWS}, allowances=ALLOWANCES),
    part({**HEAD, "gcp": GCP}, allowances=ALLOWANCES),
    part({**HEAD, "aws": AWS, "gcp": GCP}),
)
"""Documents as `accel:environment` has them; of AWS, of Google Cloud, of both."""
GKE: dict[str, Any] = {
    "owner": "ml",
    "gcp": {
        **BASE,
        "network": {"kind": "create", "subnets": {REGION: SUBNET}},
        "cluster": {"kind": "create", "location": REGION, "node_locations": [ZONE]},
        "pools": {"system": SYSTEM},
    },
}
"""The stack that others build on."""
WORKING: dict[str, Any] = {
    "owner": "ml",
    "gcp": {
        **GKE["gcp"],
        "pools": {"system": SYSTEM, "l4": {**GPU_POOL, "driver": "latest"}},
        "workloads": {
            "namespaces": {"jobs": {"namespace": "jobs"}},
            "releases": INSTALLED,
            "queueing": QUEUES,
            "targets": {"gke": {"namespace": "jobs", "queue": "jobs"}},
        },
        "budgets": {
            key: {"billing_account": BILLING, "amount": 1000, "recipients": EMAILS, "stop": {}} for key in ("ml", "all")
        },
    },
}
"""Where jobs run on GKE, with budgets that stop them."""
WATCHED: dict[str, Any] = {
    "owner": "ml",
    "aws": {
        "region": "us-east-1",
        "network": {"kind": "stack", "stack": STACKS["aws"]},
        "environments": {"spot": SPOT, "other": SPOT},
        "queues": {"gpu": {"environments": ["spot"]}, "other": {"environments": ["other"]}},
        "definitions": {"train": TRAIN},
        "monitoring": {"gpu_metrics": True, "emails": ["ml@company.com"]},
        "budgets": {key: {"amount": 1000, "recipients": EMAILS, "stop": {}} for key in ("gpus", "all")},
    },
}
"""Where jobs run on AWS Batch, with all that looks after them."""
