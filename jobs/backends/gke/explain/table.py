"""Every cause that can be named. docs/explain-gke.md is made of this."""

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
