"""Differences between a deployed stack and its clouds, as far as they matter to jobs: all of them; the targets; and GKE
clusters, whose nodes may have lost their GPUs or their labels, and whose queues may be inactive."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from accel.clouds.aws.responses import structure
from accel.clouds.google.api import Google
from accel.clouds.kubernetes.clusters import ClusterName, Clusters
from accel.contract.gke import POOL_LABEL, GkeCluster, GkePool
from accel.contract.target_layout import SOURCE
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound
from accel.json_values import entries, object_at
from jobs.client import published_targets

from ...environment.images_lock import read
from ..inventory.google import parse_google_time
from ..quota.judgement import judge
from ..stack_files import ReadStack
from . import state as drift_state
from .aws import drift_of_aws
from .differences import Drift, attempt_check, in_order
from .google import When, drift_of_google
from .state import State

_TARGETS_FIX = "pulumi up --refresh publishes what the stack has"
_BUCKET_TARGETS = "accel:gcp:BucketTargets"
_SSM_TARGETS = "accel:aws:PublishedTargets"
_BORNE = (CloudRefused, CloudSilent, NotFound)
"""A private cluster does not answer callers outside it."""

_NODE_POOL = "cloud.google.com/gke-nodepool"
_GKE_PREFIXES = ("cloud.google.com/", "kubernetes.io/", "node.kubernetes.io/", "topology.kubernetes.io/")
"""Prefixes of labels that are not the author's own."""
_SELECTED = (
    *(f"cloud.google.com/gke-{of}" for of in ("accelerator", "tpu-accelerator", "tpu-topology")),
    *(f"cloud.google.com/gke-gpu-{of}" for of in ("driver-version", "partition-size", "sharing-strategy")),
)
"""GKE's labels by which device plugins, drivers and jobs select a node. Source:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus"""
GPU, TPU = "nvidia.com/gpu", "google.com/tpu"
SETTLING = timedelta(minutes=30)
"""Grace period of a new node: it has no GPUs for up to 15 minutes (utils/gpu/gpu.go of the cluster autoscaler), and a
driver may be built meanwhile."""
_KUEUE = "kueue.x-k8s.io"
_NEW_NODE = "kubectl drain and delete the node: GKE makes it anew"


def drift_of_stack(stack: ReadStack, within: timedelta, properties: bool = True, quota: bool = True) -> list[Drift]:
    """Raise NotFound where the stack was not deployed, and NoCredentials, CloudSilent."""
    now, folder = datetime.now(UTC), stack.path.parent
    state = drift_state.read_state(folder, stack.name)
    if not state.resources:
        raise NotFound(f"stack {stack.name} has no resources", "deploy it first: pulumi up")
    drifts = drift_of_targets(state)
    if properties:
        budgets = state.outputs.get("budgets") or state.outputs.get("gcp_budgets")
        fix = drift_state.AFTER_BUDGET if budgets else drift_state.SET_AGAIN
        drifts += drift_state.changed_properties(folder, stack.name, fix)
    if state.pending:
        text = "an update is under way, or was cut off"
        drifts.append(Drift("update", stack.name, "unknown", text, "wait for it; else stacks recover"))
    if quota:
        drifts += drift_of_quotas(stack)
    if stack.environment.aws:
        drifts += drift_of_aws(state, read(folder), now, within)
    if stack.environment.gcp:
        drifts += drift_of_google(state, Google(), When(now, within)) + drift_of_clusters(state, now)
    return in_order(drifts)


def drift_of_quotas(stack: ReadStack) -> list[Drift]:
    fixes = {"over": "stacks quota --request writes the request", "unknown": "stacks quota says what it needs"}
    return [
        Drift(
            "quota",
            f"{row.need.quota.code if row.need.quota else row.need.label} in {row.need.region}",
            "broken" if row.word == "over" else "unknown",
            row.reason,
            fixes[row.word],
        )
        for judgement in judge(stack)
        for row in judgement.verdicts
        if row.word in fixes
    ]


def drift_of_targets(state: State) -> list[Drift]:
    promised = structure(state.outputs, "targets")
    found: list[Drift] = []
    for source, names in sorted(_target_sources(state, promised).items()):
        wanted = {
            name: {key: value for key, value in structure(promised, name).items() if key != SOURCE} for name in names
        }
        found += attempt_check(source, lambda source=source, wanted=wanted: _compare_targets(source, wanted), _BORNE)
    return found


def drift_of_clusters(state: State, now: datetime) -> list[Drift]:
    """Report an unreadable or unreachable cluster as `unknown`. Raise NoCredentials."""
    found: list[Drift] = []
    for key, told in object_at(state.outputs, "clusters").items():
        cluster = GkeCluster.model_validate(told, extra="ignore")
        clusters = Clusters(ClusterName(cluster.project, cluster.location, cluster.name))
        pools = {pool.name: pool for pool in cluster.pools.values()}

        def nodes(clusters: Clusters = clusters, pools: Mapping[str, GkePool] = pools) -> Iterator[Drift]:
            for node in clusters.api.items("/api/v1/nodes"):
                labels = object_at(node, "metadata", "labels")
                if pool := pools.get(str(labels.get(_NODE_POOL))):
                    yield from judge_node(node, pool, now)

        found += attempt_check(f"nodes of cluster {key}", nodes, _BORNE)
        found += attempt_check(
            f"queues of cluster {key}", lambda clusters=clusters: _inactive_queues(clusters, state), _BORNE
        )
    return found


def judge_node(node: Mapping[str, Any], pool: GkePool, now: datetime) -> Iterator[Drift]:
    """Yield what a node of a pool lacks, unless it is not ready, being deleted, or new."""
    metadata, status = (object_at(node, part) for part in ("metadata", "status"))
    if metadata.get("deletionTimestamp") or not _ready(status):
        return
    name, labels = str(metadata.get("name")), object_at(metadata, "labels")
    own = {POOL_LABEL: pool.key} | {key: value for key, value in pool.labels.items() if _selects_nodes(key)}
    lost = [f"{key}={value}" for key, value in sorted(own.items()) if labels.get(key) != value]
    if lost:
        text = f"has lost {', '.join(lost)}: jobs, the device plugin or the driver do not find it"
        yield Drift("node label", name, "broken", text, f"kubectl label node {name} {' '.join(lost)} --overwrite")
    wanted = {GPU: pool.gpus, TPU: pool.tpu_chips}
    there, whole = (object_at(status, part) for part in ("allocatable", "capacity"))
    created = parse_google_time(metadata.get("creationTimestamp"))
    settled = created is not None and now - created > SETTLING
    for resource, count in wanted.items():
        has = _count(there.get(resource))
        # A dead device plugin leaves the capacity, and removes the allocatable amount.
        if has < count and (settled or has < _count(whole.get(resource))):
            text = f"offers {has} of {count} {resource}: its device plugin or its driver does not run"
            yield Drift("device plugin", name, "broken", text, _NEW_NODE)


def _target_sources(state: State, promised: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the names of targets by where they are published, as `jobs --targets` takes it."""
    paths = [str(each.outputs.get("path")) for each in state.of(_SSM_TARGETS)]
    buckets = {
        each.name.removeprefix(f"{parent.name}-"): str(parent.outputs.get("source"))
        for parent in state.of(_BUCKET_TARGETS)
        for each in state.of("gcp:storage/bucketObject:BucketObject")
        if each.parent == parent.name
    }
    found: dict[str, list[str]] = {}
    for name in promised:
        target = structure(promised, name)
        match target.get("kind"):
            case "aws-batch":
                source = f"ssm:{target['region']}{paths[0]}" if paths else None
            case "gke":
                source = "configmap:{project}/{location}/{cluster}/{namespace}".format_map(target)
            case _:
                source = buckets.get(name)
        if source:
            found.setdefault(source, []).append(name)
    return found


def _compare_targets(source: str, wanted: Mapping[str, Any]) -> Iterator[Drift]:
    try:
        documents = published_targets.load(source, refresh=True)
    except NotFound:
        published: Mapping[str, Any] = {}
    else:
        if documents.age_s:  # an older copy: nobody answered
            raise CloudSilent("; ".join(documents.warnings))
        published = documents.by_name
    for name, target in wanted.items():
        if name not in published:
            yield Drift("target", name, "broken", f"is not published in {source}", _TARGETS_FIX)
        elif published[name] != target:
            fields = _differing(target, published[name])
            yield Drift("target", name, "changed", f"is published otherwise in {source}: {fields}", _TARGETS_FIX)
    for name in sorted(published.keys() - wanted.keys()):
        text = f"is published in {source}, and the stack has no such target"
        yield Drift("target", name, "changed", text, "remove it there: jobs would still be sent to it")


def _differing(wanted: Any, published: Any) -> str:
    if not (isinstance(wanted, dict) and isinstance(published, dict)):
        return "it is no target"
    names: set[str] = {*wanted, *published}  # pyright: ignore[reportUnknownVariableType]
    return ", ".join(sorted(name for name in names if wanted.get(name) != published.get(name)))  # pyright: ignore


def _inactive_queues(clusters: Clusters, state: State) -> Iterator[Drift]:
    """Yield ClusterQueues of the stack that admit nothing. Source:
    https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/"""
    own = {
        (str(each.type).split("/")[1].partition(":")[0], str(object_at(each.inputs, "metadata").get("name")))
        for each in state.resources
        if each.type.startswith(f"kubernetes:{_KUEUE}/") and each.type.endswith(":ClusterQueue")
    }
    for version, name in sorted(own):
        try:
            found = clusters.api.get(f"/apis/{_KUEUE}/{version}/clusterqueues/{name}")
        except NotFound:  # a property's business
            continue
        for each in entries(object_at(found, "status").get("conditions")):
            condition = object_at(each)
            if condition.get("type") == "Active" and condition.get("status") == "False":
                text = f"admits no job: {condition.get('reason')}: {condition.get('message')}"
                yield Drift("queue", name, "broken", text, "pulumi up --refresh; stopPolicy: stacks budget resume")


def _selects_nodes(label: str) -> bool:
    """Return whether something selects nodes by it: true for the author's labels, and some of GKE's."""
    return label in _SELECTED or not label.startswith(_GKE_PREFIXES)


def _ready(status: Mapping[str, Any]) -> bool:
    conditions = [object_at(each) for each in entries(status.get("conditions"))]
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _count(value: object) -> int:
    return int(str(value)) if str(value).isdigit() else 0
