"""Another team's program. It builds on the outputs of the platform's stack, and checks their shape while it does.

It owns a queue, a job definition and a node pool of its own, and exports them in the platform's own form, so that
`accel-jobs submit --to team` and `--to team-gke` go there.
"""

import json
from typing import Any

import pulumi

from accel.contract.gke import POOL_LABEL, GkeTarget
from accel.contract.network import AwsNetwork
from accel.contract.stack import read, read_target, read_targets
from accel.contract.targets import AwsBatchDefinition, AwsBatchTarget, write

config = pulumi.Config()
platform = pulumi.StackReference(config.require("platform"))
LABELS = {"team": "vision"}


def queue(name: str) -> pulumi.Output[Any]:
    """Create a queue over the platform's environments, and a definition with its roles. Return their target."""
    import pulumi_aws as aws

    theirs = read_target(AwsBatchTarget, platform, name)
    own = aws.batch.JobQueue(
        "team",
        state="ENABLED",
        priority=5,
        compute_environment_orders=theirs.environments.apply(
            lambda found: [
                aws.batch.JobQueueComputeEnvironmentOrderArgs(order=order, compute_environment=each.arn)
                for order, each in enumerate(found)
            ]
        ),
        tags=LABELS,
    )
    definition = aws.batch.JobDefinition(
        "team",
        type="container",
        container_properties=theirs.apply(lambda found: json.dumps(container(found))),
        tags=LABELS,
    )

    def told(known: dict[str, Any]) -> dict[str, Any]:
        target: AwsBatchTarget = known["theirs"]
        mine = AwsBatchDefinition(arn=known["definition"], image=IMAGE, vcpus=1, memory_mib=1024, gpus=0)
        changed = {"queue_arn": known["queue"], "definitions": {"team": mine}, "definition_prefix": "team"}
        return write({"team": target.model_copy(update=changed)})

    return pulumi.Output.all(theirs=theirs, queue=own.arn, definition=definition.arn_prefix).apply(told)


IMAGE = "local/examples"


def container(platform_target: AwsBatchTarget) -> dict[str, Any]:
    """Return the container properties of the team's jobs, with the platform's roles and log."""
    log = {"awslogs-group": platform_target.log_group, "awslogs-region": platform_target.region}
    return {
        "image": IMAGE,
        "command": ["python", "train.py"],
        "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "1024"}],
        "jobRoleArn": platform_target.job_role_arn,
        "executionRoleArn": platform_target.execution_role_arn,
        "logConfiguration": {"logDriver": "awslogs", "options": log},
    }


def node_pool(name: str, like: str) -> pulumi.Output[Any]:
    """Create Spot nodes of the team's own in the platform's cluster, like those of one of its pools.

    Return their target. Jobs go there past the platform's queue, which does not know the pool.
    """
    import pulumi_gcp as gcp

    theirs = read_target(GkeTarget, platform, name)
    pool = theirs.apply(lambda found: found.pools[like])
    # Not the project's default one, which may do much more than a node needs.
    account = gcp.serviceaccount.Account("team-nodes", account_id="team-nodes", project=theirs.project)
    gcp.projects.IAMMember(
        "team-nodes",
        project=theirs.project,
        role="roles/container.defaultNodeServiceAccount",
        member=account.member,
    )
    made = gcp.container.NodePool(
        "team",
        project=theirs.project,
        cluster=theirs.cluster,
        location=theirs.location,
        node_locations=pool.zones,
        initial_node_count=0,
        autoscaling={"total_min_node_count": 0, "total_max_node_count": MOST_NODES, "location_policy": "ANY"},
        node_config={
            "machine_type": pool.machine_type,
            "spot": True,
            "service_account": account.email,
            "oauth_scopes": ["https://www.googleapis.com/auth/cloud-platform"],
            "labels": {POOL_LABEL: "team"},
            "resource_labels": LABELS,
            "guest_accelerators": [
                {
                    "type": pool.accelerator.apply(str),
                    "count": pool.gpus,
                    "gpu_driver_installation_config": {"gpu_driver_version": "LATEST"},
                }
            ],
            "workload_metadata_config": {"mode": "GKE_METADATA"},
            "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
        },
        # The autoscaler changes them.
        opts=pulumi.ResourceOptions(ignore_changes=["initialNodeCount", "nodeCount"]),
    )

    def told(known: dict[str, Any]) -> dict[str, Any]:
        target: GkeTarget = known["theirs"]
        labels = target.pools[like].labels | {"cloud.google.com/gke-nodepool": known["name"], POOL_LABEL: "team"}
        changed = {"name": known["name"], "key": "team", "labels": labels, "max_nodes": MOST_NODES, "capacity": "spot"}
        own = {"team": target.pools[like].model_copy(update=changed)}
        return write({"team-gke": target.model_copy(update={"pools": own, "queue": None, "priorities": []})})

    return pulumi.Output.all(theirs=theirs, name=made.name).apply(told)


MOST_NODES = 2

targets: list[pulumi.Output[Any]] = []
if config.get("queue"):
    network = read(AwsNetwork, platform, "network")
    pulumi.export("subnets", network.subnet_ids)
    targets.append(queue(config.require("queue")))
if config.get("gke"):
    targets.append(node_pool(config.require("gke"), config.require("like")))
names: list[str] = config.get_object("targets") or []
if names:
    targets.append(read_targets(platform).apply(lambda found: write({name: found[name] for name in names})))
pulumi.export(
    "targets", pulumi.Output.all(*targets).apply(lambda each: {k: v for part in each for k, v in part.items()})
)
