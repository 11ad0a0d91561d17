"""Every cause that can be named, and the words of Kueue, the scheduler, the autoscaler and the kubelet for them.

docs/explain-gke.md is made of the causes.
"""

import re
from typing import NamedTuple

from accel.diagnostics.findings import GKE

from ...causes import Cause

KUEUE = "https://kueue.sigs.k8s.io/docs/"
PODS = "https://kubernetes.io/docs/concepts/"
AUTOSCALER = f"{GKE}troubleshooting/cluster-autoscaler-scale-up"
EXIT_STATUS = "https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02"
_FLAVORS = "https://github.com/kubernetes-sigs/kueue/blob/v0.14.0/pkg/scheduler/flavorassigner/flavorassigner.go"
SECURITY = f"{PODS}security/pod-security-standards/"
_IMAGES = f"{PODS}containers/images/"


CAUSES = {
    # The job cannot be looked at
    "unknown-job": Cause("The cluster has no such job", f"{PODS}workloads/controllers/ttlafterfinished/"),
    # It waits in the queue
    "queue-missing": Cause("The queue is not there", f"{KUEUE}concepts/local_queue/"),
    "queue-stopped": Cause("The queue takes no jobs just now", f"{KUEUE}concepts/cluster_queue/#stoppolicy"),
    "queue-too-small": Cause("The queue could never give the job so much", f"{KUEUE}concepts/cluster_queue/"),
    "queue-resource": Cause("The queue has no quota of something that the job asks for", _FLAVORS),
    "queue-flavor": Cause("No flavor of the queue has nodes of the kind that the job asks for", _FLAVORS),
    "queue-full": Cause("Other jobs use the queue's quota", f"{KUEUE}concepts/cluster_queue/"),
    "nodes-requested": Cause(
        "Nodes have been asked for all at once, and are not there yet", f"{GKE}how-to/provisioningrequest"
    ),
    "nodes-refused": Cause(
        "The nodes that were asked for all at once are not given", f"{GKE}how-to/provisioningrequest"
    ),
    "nodes-given-up": Cause(
        "Nodes that were asked for all at once did not come, and the wait was ended",
        f"{KUEUE}concepts/workload/#active",
    ),
    "behind-others": Cause("It waits for its turn in the queue", f"{KUEUE}concepts/cluster_queue/#queueing-strategy"),
    "queue-silent": Cause("Kueue has not looked at the job", f"{KUEUE}tasks/troubleshooting/troubleshooting_jobs/"),
    # Its pods wait for a node
    "quota": Cause("A quota of the project has no room for another node", AUTOSCALER),
    "stockout": Cause("Google has no machine of that kind there just now", AUTOSCALER),
    "pool-full": Cause("The pool has as many nodes as it may have", AUTOSCALER),
    "nodes-starting": Cause("A node is on its way", f"{GKE}concepts/cluster-autoscaler"),
    "driver-not-ready": Cause("Nodes are there, and offer no GPUs: their driver is not installed", f"{GKE}how-to/gpus"),
    "no-such-node": Cause(
        "No node has the labels that the job asks for", f"{PODS}scheduling-eviction/assign-pod-node/"
    ),
    "taint": Cause(
        "Nodes have a taint that the job does not tolerate", f"{PODS}scheduling-eviction/taint-and-toleration/"
    ),
    "claim-missing": Cause(
        "A volume's claim is not there, or is bound to nothing", f"{PODS}storage/persistent-volumes/"
    ),
    "insufficient": Cause(
        "What nodes have is in use, and there is no other", f"{PODS}configuration/manage-resources-containers/"
    ),
    # A pod does not start
    "image-missing": Cause("The image or its tag is not there", _IMAGES),
    "image-forbidden": Cause("The image may not be read", f"{GKE}troubleshooting/image-pulls"),
    "image-unreachable": Cause("The registry cannot be reached", f"{GKE}troubleshooting/image-pulls"),
    "image-platform": Cause("The image is for another kind of CPU", _IMAGES),
    "image-pull": Cause("The image cannot be pulled, with another reason", _IMAGES),
    "runs-as-root": Cause("The image runs as root, which its namespace does not take", SECURITY),
    "pod-security": Cause("The namespace does not take such pods", SECURITY),
    "secrets": Cause("A Secret, or a key of one, is not there", f"{PODS}configuration/secret/"),
    "volume": Cause("A volume cannot be mounted", f"{PODS}storage/volumes/"),
    "not-started": Cause("The container was not started, with another reason", f"{PODS}workloads/pods/pod-lifecycle/"),
    "starting": Cause(
        "It has a node; the image is pulled and the container made", f"{PODS}workloads/pods/pod-lifecycle/"
    ),
    "new": Cause("It was made a moment ago, and nothing stands against it", f"{PODS}workloads/controllers/job/"),
    # It does not wait, and has not failed
    "parallelism": Cause(
        "It runs, and some of its tasks wait for their turn",
        f"{PODS}workloads/controllers/job/#parallel-jobs",
    ),
    "running": Cause("It runs", f"{PODS}workloads/controllers/job/"),
    "succeeded": Cause("It has succeeded", f"{PODS}workloads/controllers/job/"),
    # It failed
    "stopped": Cause("Someone cancelled it", f"{PODS}workloads/controllers/job/"),
    "spot-reclaim": Cause("Its node was taken away: Spot, a drain, or a preemption", f"{GKE}concepts/spot-vms"),
    "timeout": Cause("The attempt ran longer than its timeout", f"{PODS}workloads/pods/pod-lifecycle/"),
    "evicted-disk": Cause(
        "It wrote more to the node's disk than there was", f"{PODS}scheduling-eviction/node-pressure-eviction/"
    ),
    "evicted": Cause(
        "The node was short of something, and put it out", f"{PODS}scheduling-eviction/node-pressure-eviction/"
    ),
    "out-of-memory": Cause(
        "The container used more memory than it asked for", f"{PODS}configuration/manage-resources-containers/"
    ),
    "cuda-out-of-memory": Cause("The GPU's memory was full", "https://docs.pytorch.org/docs/stable/notes/faq.html"),
    "shared-memory": Cause("Shared memory was full", "https://docs.pytorch.org/docs/stable/multiprocessing.html"),
    "gpu-not-visible": Cause("The program sees no GPU, though one is reserved", f"{GKE}how-to/gpus"),
    "gpu-not-requested": Cause("The program wants a GPU, and the job asks for none", f"{GKE}how-to/gpus"),
    "disk-full": Cause("A disk was full", f"{PODS}scheduling-eviction/node-pressure-eviction/"),
    "killed": Cause("SIGKILL ended it, and nothing says why", EXIT_STATUS),
    "command-not-found": Cause("A command was not found (127)", EXIT_STATUS),
    "command-not-executable": Cause("A command cannot be run (126)", EXIT_STATUS),
    "exit-code": Cause("The command ended by itself with another exit code", EXIT_STATUS),
    "unknown": Cause("None of these fits; what was looked at is listed", f"{GKE}troubleshooting"),
}
"""By id; the order is the documentation's."""


class Row(NamedTuple):
    """Words that name a cause: where they stand (see Facts.texts), what they are, what they mean and what to do."""

    where: str
    pattern: re.Pattern[str]
    cause: str
    reason: str
    next_step: str


def _row(where: str, pattern: str, cause: str, reason: str, next_step: str) -> Row:
    return Row(where, re.compile(pattern, re.IGNORECASE), cause, reason, next_step)


_TARGET = "`accel-jobs offers` shows which targets can run it"
_ASK_QUEUE = "whoever deployed the queue must raise its quota, or the job must ask for less"

WAITING = (
    _row(
        "given-up",
        r"pool \S+ is gone",
        "nodes-given-up",
        "the pool whose nodes the job waited for is gone, and the stack ended its wait",
        f"`accel-jobs retry REF` submits it again, to the pools of now; {_TARGET}",
    ),
    _row(
        "given-up",
        r"",
        "nodes-given-up",
        "the nodes did not come in the time that the stack allows, and it ended the wait",
        f"`accel-jobs retry REF` asks for them again; {_TARGET}",
    ),
    _row(
        "queue",
        r"(Local|Cluster)Queue \S+ (doesn't|does not) exist",
        "queue-missing",
        "the queue that the job was submitted to is not there",
        "has the stack been deployed? then submit to a target of now",
    ),
    _row(
        "queue",
        r"Queue \S+ is (inactive|stopped)|Queue is stopped",
        "queue-stopped",
        "the queue is stopped, or something that it needs is missing",
        "`kubectl describe clusterqueue` says what; whoever deployed it must start it again",
    ),
    _row(
        "queue",
        r"insufficient quota for (\S+) in flavor \S+, (request|previously considered)",
        "queue-too-small",
        "the job asks for more than the queue has in all, so it waits for ever",
        _ASK_QUEUE,
    ),
    _row(
        "queue",
        r"resource \S+ unavailable in ClusterQueue",
        "queue-resource",
        "the queue gives no quota of something that the job asks for, so it waits for ever",
        "a ClusterQueue must cover cpu, memory and pods as well as GPUs",
    ),
    _row(
        "queue",
        r"insufficient unused quota for",
        "queue-full",
        "other jobs use the quota that the job needs",
        "wait, cancel one of them, or give the job a higher gke.priority",
    ),
    _row(
        "queue",
        r"doesn't match node affinity|untolerated taint \S+.* in flavor|flavor \S+ not found",
        "queue-flavor",
        "no flavor of the queue is for the nodes that the job asks for",
        _TARGET,
    ),
    _row(
        "check",
        r"fail|reject|capacity|quota|exceed|expired",
        "nodes-refused",
        "Google does not give the nodes that were asked for all at once",
        "Kueue asks again by itself; another zone or capacity may be quicker: `accel-jobs offers`",
    ),
    _row(
        "check",
        r"",
        "nodes-requested",
        "nodes have been asked for all at once, and Google has not given them yet",
        "wait; for flex-start that can take hours",
    ),
    _row(
        "refused",
        r"violates PodSecurity",
        "pod-security",
        "the namespace does not take such pods",
        "submit it again with this version, whose pods it takes; or have `pod_security: baseline` written for the "
        "namespace in its environment",
    ),
    _row(
        "failed-scale",
        r"quota",
        "quota",
        "a quota of the project has no room for another node",
        "`stacks quota` shows which, and writes the request for more",
    ),
    _row(
        "failed-scale",
        r"",
        "stockout",
        "Google has no machine of that kind there just now",
        "the autoscaler tries again; more zones, another capacity or another GPU is quicker: `accel-jobs offers`",
    ),
    _row(
        "no-scale",
        r"max node group size reached|max limit reached|max cluster (cpu|memory|\S+) limit",
        "pool-full",
        "every pool that could hold the pod has as many nodes as it may have",
        "wait until one is free, or have max_nodes of the pool raised",
    ),
    _row(
        "no-scale",
        r"in backoff after failed scale-up",
        "stockout",
        "a node could not be made a moment ago",
        "the autoscaler tries again in a few minutes",
    ),
    _row(
        "scheduler",
        r"persistentvolumeclaim \S+ not found|unbound immediate PersistentVolumeClaims|pvc\(s\) bound to",
        "claim-missing",
        "a volume that the job mounts is not there",
        "whoever deployed the target must make its claim",
    ),
    _row(
        "waiting",
        r"(no match for platform|exec format error|no matching manifest)",
        "image-platform",
        "the image has no version for the node's CPU",
        "build it for linux/amd64, or for arm64 where the machine is one",
    ),
    _row(
        "waiting",
        r"(ErrImagePull|ImagePullBackOff|InvalidImageName).*(not found|no such|does not exist|manifest unknown)",
        "image-missing",
        "the image or its tag is not there",
        "check its name and tag; `docker manifest inspect` asks the registry",
    ),
    _row(
        "waiting",
        r"(ErrImagePull|ImagePullBackOff).*(forbidden|denied|unauthorized|401|403)",
        "image-forbidden",
        "the nodes may not read the image",
        "the nodes' service account needs roles/artifactregistry.reader on the repository",
    ),
    _row(
        "waiting",
        r"(ErrImagePull|ImagePullBackOff).*(timeout|timed out|no such host|connection refused|unreachable)",
        "image-unreachable",
        "the nodes cannot reach the registry",
        "private nodes need Cloud NAT for registries outside Google, and Private Google Access for Google's",
    ),
    _row(
        "waiting",
        r"ErrImagePull|ImagePullBackOff|InvalidImageName|ImageInspectError|RegistryUnavailable",
        "image-pull",
        "the image cannot be pulled",
        "the evidence has the registry's words",
    ),
    _row(
        "waiting",
        r"CreateContainerConfigError.*runAsNonRoot",
        "runs-as-root",
        "the image runs as root, or as a user by name, and its namespace takes neither",
        "write `gke: {user: 1000}` in the job, or USER 1000 in the image; where it must be root, have "
        "`pod_security: baseline` written for the namespace in its environment",
    ),
    _row(
        "waiting",
        r"CreateContainerConfigError.*(secret|key)",
        "secrets",
        "a Secret that the job names is not there",
        "make it in the job's namespace: `kubectl create secret generic NAME --from-literal=KEY=...`",
    ),
    _row(
        "waiting",
        r"CreateContainer(Config)?Error|RunContainerError|StartError",
        "not-started",
        "the container was not started",
        "the evidence has the node's words",
    ),
    _row(
        "mount",
        r"",
        "volume",
        "a volume cannot be mounted",
        "of a bucket: the service account needs roles/storage.objectUser; of a claim: is it in use elsewhere?",
    ),
)

_NOT_FOUND = r"executable file not found|no such file or directory"
_START_ERROR = r"^(StartError|ContainerCannotRun): "

FAILED = (
    # Reason and words: https://github.com/vdesabou/kafka-docker-playground/issues/8515; the exit code, 128, is the
    # kubelet's: https://github.com/kubernetes/kube-state-metrics/issues/1861
    _row(
        "ended",
        rf"{_START_ERROR}.*({_NOT_FOUND})",
        "command-not-found",
        "its command was not found, so the container was not started",
        "check the command's name, and that the image has it on its PATH",
    ),
    _row(
        "ended",
        rf"{_START_ERROR}.*(permission denied|exec format error)",
        "command-not-executable",
        "its command cannot be run, so the container was not started",
        "give it execute permission in the image, or name its interpreter; a binary must be for the node's CPU",
    ),
    _row(
        "ended",
        _START_ERROR,
        "not-started",
        "the container was not started",
        "the evidence has the node's words",
    ),
    _row(
        "pod",
        r"^DeadlineExceeded",
        "timeout",
        "the attempt ran longer than timeout_s",
        "raise timeout_s, or save and resume",
    ),
    _row(
        "pod",
        r"^Evicted.*(ephemeral|disk|storage)",
        "evicted-disk",
        "the job wrote more to the node's disk than there was",
        "give disk_gib, write to a bucket or a volume, or use a pool with larger disks",
    ),
    _row(
        "pod",
        r"^Evicted",
        "evicted",
        "the node was short of something, and put the pod out",
        "the evidence says of what",
    ),
    _row(
        "ended",
        r"^OOMKilled",
        "out-of-memory",
        "the container used more memory than memory_mib, and was killed",
        "raise memory_mib; shared memory (/dev/shm) counts too",
    ),
)

OF_GKE = {
    "gpu-not-visible": "the image's CUDA must not be newer than the driver of the pool's nodes, and LD_LIBRARY_PATH "
    "must keep /usr/local/nvidia/lib64, where GKE puts the driver",
    "disk-full": "write to a bucket or a volume, give disk_gib, or use a pool with larger disks",
}
"""What to do where the words of outcome.py are of another platform."""
