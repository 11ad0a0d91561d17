"""Effects of a change on the jobs that use the resource, and on data and capacity in it, by its type. A place is one
thing that a job depends on, as text: queue:<arn>, cluster:<name> (of ECS), role:<arn>;
gke:<project>/<location>/<cluster>, pool:<the same>/<pool>, namespace:<name>, localqueue:<namespace>/<name>,
definition:jobsets.jobset.x-k8s.io; bucket:<name>, account:<email>, persistent:<id>. jobs/client/live gives every job
its places; a change threatens the jobs that have its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from accel.json_values import object_at
from components.aws.environment_hooks import drain_of, in_place
from jobs.client.live.job import JOBSETS, Live
from jobs.client.live.search import search

from .preview import Change

Fate = Literal["ends", "waits", "loses"]
"""ends: its machines are removed while it runs; waits: the deployment waits for it; loses: it goes on without."""


@dataclass(frozen=True)
class Threat:
    """The fate of the jobs that have the place."""

    change: Change
    place: str
    fate: Fate
    how: str
    queued: bool = False
    """It affects waiting jobs too."""
    region: str | None = None
    """AWS region whose queues have to be listed; jobs of other stacks may be on an environment too."""


def threats(change: Change) -> tuple[Threat, ...]:
    rule = _RULES.get(change.type)
    return tuple(rule(change)) if rule else ()


def _environment(change: Change) -> Iterator[Threat]:
    """Yield the threat to jobs on a compute environment. Source:
    https://docs.aws.amazon.com/batch/latest/APIReference/API_DeleteComputeEnvironment.html"""
    cluster = str(change.old_outputs.get("ecsClusterArn") or "").rpartition("/")[2]
    place, region = f"cluster:{cluster}", _region(change)
    if not cluster:
        return
    if change.removes:
        drain = drain_of(change.old_inputs)
        if drain.jobs == "terminate":
            yield Threat(change, place, "ends", "terminated before the environment goes", region=region)
        else:
            how = f"the deployment waits for it, at most {drain.timeout_min} min"
            yield Threat(change, place, "waits", how, region=region)
    elif change.op == "update" and (said := in_place(change.old_inputs, change.new_inputs)):
        yield Threat(change, place, "ends", said, region=region)


def _queue(change: Change) -> Iterator[Threat]:
    """Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_DeleteJobQueue.html"""
    arn = str(change.old_outputs.get("arn") or "")
    if change.removes and arn:
        how = "AWS terminates every job of a queue that is deleted"
        yield Threat(change, f"queue:{arn}", "ends", how, queued=True, region=_region(change))


IN_PLACE = (
    "autoscaling",
    "initialNodeCount",
    "management",
    "nodeConfig.labels",
    "nodeConfig.resourceLabels",
    "nodeConfig.tags",
    "nodeConfig.taints",
    "nodeCount",
    "upgradeSettings",
)
"""Properties of a node pool whose change affects no running node. Any other is assumed to bring new nodes. Sources:
https://cloud.google.com/kubernetes-engine/docs/how-to/update-existing-nodepools,
https://docs.cloud.google.com/kubernetes-engine/docs/concepts/managing-clusters#types-of-changes"""


def _pool(change: Change) -> Iterator[Threat]:
    found = {**change.old_inputs, **change.old_outputs}
    location, cluster, name = (str(found.get(key) or "") for key in ("location", "cluster", "name"))
    project = str(found.get("project") or "")
    if cluster.startswith("projects/"):  # the program gives the id of the cluster
        parts = cluster.split("/")
        project, location, cluster = parts[1], parts[3], parts[5]
    place = f"pool:{project}/{location}/{cluster}/{name or change.id.rpartition('/')[2]}"
    new_nodes = [path for path in change.diffs if not path.startswith(IN_PLACE)]
    if change.removes:
        yield Threat(change, place, "ends", "its pods are evicted with the node pool")
    elif change.op == "update" and new_nodes:
        how = f"GKE makes every node anew ({', '.join(new_nodes[:3])}), and evicts its pods"
        yield Threat(change, place, "ends", how)


def _cluster(change: Change) -> Iterator[Threat]:
    if change.removes:
        found = {**change.old_inputs, **change.old_outputs}
        place = "gke:" + "/".join(str(found.get(key) or "") for key in ("project", "location", "name"))
        yield Threat(change, place, "ends", "it goes with the cluster", queued=True)


def _namespace(change: Change) -> Iterator[Threat]:
    if change.removes:
        yield Threat(change, f"namespace:{_object(change)}", "ends", "it goes with the namespace", queued=True)


def _definition(change: Change) -> Iterator[Threat]:
    """Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#delete-a-customresourcedefinition"""
    if change.removes and (name := _object(change)) == JOBSETS:
        how = "Kubernetes deletes every JobSet with their definition"
        yield Threat(change, f"definition:{name}", "ends", how, queued=True)


def _local_queue(change: Change) -> Iterator[Threat]:
    if change.removes:
        how = "what waits there is not admitted any more, and what runs keeps the queue until it ends"
        yield Threat(change, f"localqueue:{_object(change)}", "loses", how, queued=True)


def _bucket(change: Change) -> Iterator[Threat]:
    if change.removes:
        place = f"bucket:{change.old_outputs.get('name') or change.id}"
        how = "its record, results and checkpoints go with the bucket"
        yield Threat(change, place, "loses", how, queued=True)


def _persistent(change: Change) -> Iterator[Threat]:
    """Source: https://docs.cloud.google.com/vertex-ai/docs/training/persistent-resource-overview"""
    if change.removes:
        name = str(change.old_outputs.get("name") or change.id).rpartition("/")[2]
        yield Threat(change, f"persistent:{name}", "ends", "it is cancelled with the persistent resource", queued=True)


def _account(change: Change) -> Iterator[Threat]:
    if change.removes and (email := change.old_outputs.get("email")):
        yield Threat(change, f"account:{email}", "loses", "the account that it runs as goes", queued=True)


def _role(change: Change) -> Iterator[Threat]:
    if change.removes and (arn := change.old_outputs.get("arn")):
        yield Threat(change, f"role:{arn}", "loses", "the role that it runs as goes", queued=True)


_RULES: Mapping[str, Callable[[Change], Iterator[Threat]]] = {
    "aws:batch/computeEnvironment:ComputeEnvironment": _environment,
    "aws:batch/jobQueue:JobQueue": _queue,
    "aws:iam/role:Role": _role,
    "gcp:container/cluster:Cluster": _cluster,
    "gcp:container/nodePool:NodePool": _pool,
    "gcp:serviceaccount/account:Account": _account,
    "gcp:storage/bucket:Bucket": _bucket,
    "gcp:vertex/aiPersistentResource:AiPersistentResource": _persistent,
    "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition": _definition,
    "kubernetes:core/v1:Namespace": _namespace,
    "kubernetes:kueue.x-k8s.io/v1beta1:LocalQueue": _local_queue,
}


def _region(change: Change) -> str | None:
    found = change.old_outputs.get("region") or change.old_inputs.get("region")
    arn = str(change.old_outputs.get("arn") or "")
    return str(found) if found else (arn.split(":")[3] if arn.count(":") > 3 else None)


def _object(change: Change) -> str:
    """Return namespace and name of a Kubernetes object, or the name alone. Its state does not contain its cluster."""
    metadata: Mapping[str, Any] = object_at(change.old_inputs, "metadata")
    names = [metadata.get("namespace"), metadata.get("name") or change.id.rpartition("/")[2]]
    return "/".join(str(name) for name in names if name)


LOSSES: Mapping[str, str] = {
    "aws:cloudwatch/logGroup:LogGroup": "what jobs printed",
    "aws:dynamodb/table:Table": "its items; of a claim table: which keys were submitted, so that a repeat runs twice",
    "aws:ebs/volume:Volume": "the volume's data",
    "aws:ec2/capacityReservation:CapacityReservation": "reserved capacity, which may not be had again",
    "aws:ec2/eip:Eip": "the address, which others may have allowed",
    "aws:ec2/instance:Instance": "the instance's disks",
    "aws:ecr/repository:Repository": "every image in it",
    "aws:efs/fileSystem:FileSystem": "every file in it",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "every file in it",
    "aws:kms/key:Key": "whatever was encrypted with it",
    "aws:rds/instance:Instance": "the database",
    "aws:s3/bucket:Bucket": "every object in it",
    "aws:s3/bucketV2:BucketV2": "every object in it",
    "aws:secretsmanager/secret:Secret": "its versions",
    "accel:gcp:QueuedTpu": "its TPUs, their boot disks, and what runs on them",
    "gcp:artifactregistry/repository:Repository": "every image in it",
    "gcp:compute/disk:Disk": "the disk's data",
    "gcp:compute/futureReservation:FutureReservation": "capacity that was asked for, which may not be had again",
    "gcp:compute/instance:Instance": "the machine, its boot disk, and what runs on it",
    "gcp:compute/instanceGroupManager:InstanceGroupManager": "its machines, their boot disks, and what runs on them",
    "gcp:compute/reservation:Reservation": "reserved capacity, which may not be had again",
    "gcp:container/cluster:Cluster": "every object in the cluster, and volumes that go with their claims",
    "gcp:filestore/instance:Instance": "every file in it",
    "gcp:firestore/database:Database": "its documents; of a claim database: which keys were submitted",
    "gcp:kms/cryptoKey:CryptoKey": "whatever was encrypted with it",
    "gcp:secretmanager/secret:Secret": "its versions",
    "gcp:storage/bucket:Bucket": "every object in it: records, results and checkpoints of jobs",
    "gcp:tpu/v2QueuedResource:V2QueuedResource": "the place in the queue, or the TPU and what runs on it",
    "gcp:tpu/v2Vm:V2Vm": "the TPU VM, its boot disk, and what runs on it",
    "gcp:vertex/aiTensorboard:AiTensorboard": "its experiments",
    "kubernetes:core/v1:Namespace": "every object in the namespace",
    "kubernetes:core/v1:PersistentVolume": "the volume, where its reclaim policy is Delete",
    "kubernetes:core/v1:PersistentVolumeClaim": "the volume, where its reclaim policy is Delete",
}


def loss(change: Change) -> str | None:
    return LOSSES.get(change.type) if change.removes else None


@dataclass(frozen=True)
class Hit:
    """A job and its fate."""

    threat: Threat
    job: Live


@dataclass(frozen=True)
class Hits:
    """Effects of the changes on jobs. `unread`: what could not be read, and why."""

    hits: tuple[Hit, ...] = ()
    unread: tuple[str, ...] = ()


def hits(threats: Iterable[Threat], outputs: Mapping[str, Any], now: datetime | None = None) -> Hits:
    """Ask for the jobs that the threats can affect, and no others. Nothing is raised for what cannot be asked."""
    wanted = tuple(threats)
    if not wanted:
        return Hits()
    documents = object_at(outputs, "targets")
    jobs, unread = search([(threat.place, threat.region) for threat in wanted], documents, now)
    return Hits(tuple(Hit(threat, job) for threat in wanted for job in jobs if _is_hit(threat, job)), tuple(unread))


def _is_hit(threat: Threat, job: Live) -> bool:
    return threat.place in job.places and (threat.queued or not job.waits)
