"""Why a job on GKE waits or failed: each cause from what a cluster really says, and nothing without evidence."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accel.contract.gke import ASKED_AGAIN, GIVEN_UP
from jobs.backends.base import Explanation
from jobs.backends.diagnosis.gke import explain
from jobs.backends.gke import labels as marks
from jobs.backends.gke.status import status
from jobs.backends.gke.submit import submit
from tests.jobs.backends.gke_cluster import SCOPE, Cluster
from tests.jobs.backends.gke_target import make_request, make_target

AFFINITY = "node(s) didn't match Pod's node affinity/selector"
TAINT = "node(s) had untolerated taint {nvidia.com/gpu: present}"


class Job:
    """A job in a cluster, to which things happen."""

    def __init__(self, cluster: Cluster, *, queue: bool = False, **fields: Any) -> None:
        self.cluster = cluster
        target = make_target() if queue else make_target(queue=None)
        values = {"cpus": 2, "memory_mib": 4000} if "accelerator" not in fields else {}
        self.ref = submit(make_request(target, **{**values, **fields}), cluster.api())
        self.body = cluster.objects[f"{SCOPE.jobs}/{self.ref.id}"]

    def workload(self, message: str = "", **status: Any) -> None:
        labels = {"kueue.x-k8s.io/job-uid": self.body["metadata"]["uid"]}
        made = self.cluster.put(SCOPE.workloads, {"metadata": {"name": "w", "labels": labels}, "spec": {}})
        conditions = [{"type": "QuotaReserved", "status": "False", "message": message}] if message else []
        made["status"] = {"conditions": conditions, **status}

    def pod(self, phase: str, name: str = "x", *, node: str = "", **status: Any) -> None:
        metadata = {"name": f"{self.ref.id}-{name}", "labels": {marks.OBJECT: self.ref.id}}
        spec = {"nodeName": node} if node else {}
        self.cluster.put(SCOPE.core("pods"), {"metadata": metadata, "spec": spec, "status": {"phase": phase, **status}})

    def unschedulable(self, message: str) -> None:
        told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        self.pod("Pending", conditions=[told])

    def waiting(self, reason: str, message: str = "") -> None:
        state = {"waiting": {"reason": reason, "message": message}}
        self.pod("Pending", containerStatuses=[{"name": "main", "state": state}])

    def event(self, reason: str, message: str, second: int = 0) -> None:
        at = f"2026-01-02T03:04:{second:02}Z"
        body = {"reason": reason, "message": message, "lastTimestamp": at}
        body["involvedObject"] = {"name": f"{self.ref.id}-x"}
        self.cluster.put(SCOPE.core("events"), {"metadata": {"name": f"{reason}-{second}"}, **body})

    def node(
        self, name: str, labels: dict[str, str], gpus: int = 0, ready_for: float = 3600, *, ready: str = "True"
    ) -> None:
        since = (datetime.now(UTC) - timedelta(seconds=ready_for)).isoformat()
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": since}
        status = {"allocatable": {"cpu": "4", "nvidia.com/gpu": str(gpus)}, "conditions": [condition]}
        self.cluster.put("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "status": status})

    def failed(self, code: int = 1, reason: str = "Error", lines: tuple[str, ...] = (), **status: Any) -> None:
        """`reason` is the container's; that of its pod is `reason_of_pod`."""
        status |= {"reason": status.pop("reason_of_pod")} if "reason_of_pod" in status else {}
        state = {"terminated": {"exitCode": code, "reason": reason}}
        self.pod("Failed", containerStatuses=[{"name": "main", "state": state}], **status)
        self.cluster.logs[f"{self.ref.id}-x"] = [f"2026-01-02T03:04:05Z {line}" for line in lines]
        self.body["status"] = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}

    def why(self) -> Explanation:
        return explain(self.cluster.api(), SCOPE, self.ref)


QUEUED = "couldn't assign flavors to pod set main: "
QUEUE = {
    "queue-missing": "LocalQueue team-a doesn't exist",
    "queue-stopped": "ClusterQueue gpus is inactive",
    "queue-too-small": "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a100, "
    "request > maximum capacity (8 > 4)",
    "queue-resource": "couldn't assign flavors to pod set main: resource memory unavailable in ClusterQueue",
    "queue-full": "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor any, 2 more",
    "queue-flavor": "couldn't assign flavors to pod set main: flavor a100 doesn't match node affinity",
}


@pytest.mark.parametrize("cause", QUEUE)
def test_what_kueue_says(cluster: Cluster, cause: str) -> None:
    job = Job(cluster, queue=True)
    job.workload(QUEUE[cause])
    told = job.why()
    assert (told.cause, told.evidence) == (cause, (QUEUE[cause],))


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        # Of flavorassigner.go in older versions of https://github.com/kubernetes-sigs/kueue
        (f"{QUEUED}insufficient unused quota in cohort for cpu in flavor one, 1 more needed", "queue-full"),
        (f"{QUEUED}borrowing limit for cpu in flavor one exceeded", "queue-full"),
        (f"{QUEUED}insufficient quota for nvidia.com/gpu in flavor a100 in ClusterQueue", "queue-too-small"),
        # https://github.com/kubernetes-sigs/kueue/pull/7232
        (
            f"{QUEUED}insufficient quota for nvidia.com/gpu in flavor a100, previously considered podsets requests "
            "(16) + current podset request (8) > maximum capacity (16)",
            "queue-too-small",
        ),
        # Of tas_flavor_snapshot.go
        (f'{QUEUED}topology "default" allows to fit only 4 out of 10 pod(s)', "insufficient"),
        (f'{QUEUED}topology "default" doesn\'t allow to fit any of 1 pod(s)', "insufficient"),
        # Of scheduler.go
        ("Workload namespace doesn't match ClusterQueue selector", "refused"),
        ("resources validation failed: requests must not exceed its limits", "refused"),
    ],
)
def test_what_kueue_says_in_other_words(cluster: Cluster, message: str, cause: str) -> None:
    job = Job(cluster, queue=True)
    job.workload(message)
    assert (job.why().cause, job.why().evidence) == (cause, (message,))


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        # https://github.com/kubernetes-sigs/kueue/pull/2255, https://github.com/kubernetes-sigs/kueue/issues/5129
        ("max cluster limit reached, nodepools out of resources: default-nodepool (cpu, memory)", "pool-full"),
        ("Max nodepool size reached, affected nodepools: dws", "pool-full"),
        ("No nodepool with QueuedProvisioning enabled is available for scale up", "no-such-node"),
        ("Provisioning Request cannot be scheduled in a single zone of a single nodepool", "no-such-node"),
        ("Quota 'NVIDIA_H100_GPUS' exceeded. Limit: 0.0 in region us-central1.", "quota"),
        ("IP space of 'projects/p/regions/r/subnetworks/s' is exhausted", "no-addresses"),
        (
            "Waiting for resources. Currently there are not enough resources available to fulfill the request.",
            "waiting-for-capacity",
        ),
    ],
)
def test_why_nodes_do_not_come_all_at_once(cluster: Cluster, message: str, cause: str) -> None:
    job = Job(cluster, queue=True)
    job.workload(admissionChecks=[{"name": "dws", "state": "Retry", "message": message}])
    assert job.why().cause == cause


def test_nodes_that_were_asked_for_all_at_once(cluster: Cluster) -> None:
    job = Job(cluster, queue=True)
    check = {"name": "dws", "state": "Pending", "message": "Waiting for provisioning"}
    job.workload(admissionChecks=[check])
    assert job.why().cause == "waiting-for-capacity"
    job.workload(admissionChecks=[{**check, "state": "Retry", "message": "Retrying: capacity is not available"}])
    assert job.why().cause == "nodes-refused"


def test_a_wait_that_was_ended(cluster: Cluster) -> None:
    job = Job(cluster, queue=True)
    job.workload("The workload is deactivated")
    workload = cluster.objects[f"{SCOPE.workloads}/w"]
    workload["spec"]["active"] = False
    assert job.why().cause == "behind-others", "somebody else made it inactive"
    workload["metadata"]["annotations"] = {GIVEN_UP: "no nodes came in 168 h"}
    told = job.why()
    assert (told.cause, told.evidence) == ("nodes-given-up", ("no nodes came in 168 h",))
    assert "allows" in told.reason and "retry" in told.next_step
    workload["metadata"]["annotations"] = {GIVEN_UP: "pool flux is gone; nodes were asked for anew 3 times before"}
    assert (job.why().cause, "pool" in job.why().reason) == ("nodes-given-up", True)
    assert status(cluster.api(), SCOPE, job.ref).reason == f"given up: {job.why().evidence[0]}"
    workload["spec"]["active"] = True
    assert job.why().cause == "behind-others", "somebody has started it again"


def test_nodes_that_were_asked_for_anew(cluster: Cluster) -> None:
    job = Job(cluster, queue=True)
    job.workload(admissionChecks=[{"name": "dws", "state": "Pending", "message": "Waiting for provisioning"}])
    cluster.objects[f"{SCOPE.workloads}/w"]["metadata"]["annotations"] = {ASKED_AGAIN: "2; pool flux is gone"}
    told = job.why()
    assert told.cause == "waiting-for-capacity"
    assert told.evidence == ("dws: Waiting for provisioning", "nodes were asked for anew, time 2; pool flux is gone")


def test_a_turn_in_the_queue_and_a_queue_that_nobody_serves(cluster: Cluster) -> None:
    job = Job(cluster, queue=True)
    job.workload()
    assert job.why().cause == "behind-others"
    cluster.forbidden.add("workloads")
    assert job.why().cause == "queue-silent"


def test_an_image_that_runs_as_root(cluster: Cluster) -> None:
    job = Job(cluster)
    words = 'container has runAsNonRoot and image will run as root (pod: "p_ml(1)", container: main)'
    job.waiting("CreateContainerConfigError", words)
    told = job.why()
    assert told.cause == "runs-as-root" and words in told.evidence[0]
    assert "gke: {user: 1000}" in told.next_step and "pod_security: baseline" in told.next_step


def test_a_pod_that_its_namespace_does_not_take(cluster: Cluster) -> None:
    job = Job(cluster)
    words = (
        f'Error creating: pods "{job.ref.id}-x" is forbidden: violates PodSecurity "restricted:latest": '
        "runAsNonRoot != true"
    )
    job.event("FailedCreate", words)
    told = job.why()
    assert (told.cause, told.evidence) == ("pod-security", (words,))
    assert "pod_security: baseline" in told.next_step


PENDING = {
    "quota": [("FailedScaleUp", "Node scale up in zones a failed: GCE quota exceeded. Pod is at risk")],
    "no-capacity": [("FailedScaleUp", "Node scale up in zones a failed: GCE out of resources. Pod is at risk")],
    "pool-full": [("NotTriggerScaleUp", f"pod didn't trigger scale-up: 1 {AFFINITY}, 1 max node group size reached")],
    "no-addresses": [
        ("FailedScaleUp", "Node scale up in zones a associated with this pod failed: IP space exhausted.")
    ],
    "refused": [("FailedScaleUp", "Node scale up in zones a associated with this pod failed: Internal error.")],
    "machine-starting": [
        ("NotTriggerScaleUp", "x"),
        ("TriggeredScaleUp", "pod triggered scale-up: [{pool 0->1 (max: 4)}]"),
    ],
}


@pytest.mark.parametrize("cause", PENDING)
def test_what_the_autoscaler_says(cluster: Cluster, cause: str) -> None:
    job = Job(cluster, accelerator={"type": "a100"})
    job.unschedulable(f"0/3 nodes are available: 3 {AFFINITY}.")
    for second, (reason, message) in enumerate(PENDING[cause]):
        job.event(reason, message, second)
    told = job.why()
    assert told.cause == cause
    assert any(PENDING[cause][-1][1][:30] in line for line in told.evidence)


def test_a_limit_of_the_whole_cluster(cluster: Cluster) -> None:
    # https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/core/scaleup/orchestrator/skippedreasons.go
    job = Job(cluster, accelerator={"type": "a100"})
    job.unschedulable("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    job.event("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max cluster cpu, memory limit reached")
    assert job.why().cause == "pool-full"


def test_what_the_scheduler_says(cluster: Cluster) -> None:
    job = Job(cluster, accelerator={"type": "a100"})
    for message, cause in (
        ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "insufficient"),
        (f"0/3 nodes are available: 3 {TAINT}.", "taint"),
        (f"0/3 nodes are available: 1 {TAINT}, 2 Insufficient cpu.", "insufficient"),
        ('0/3 nodes are available: persistentvolumeclaim "d" not found.', "claim-missing"),
        (f"0/3 nodes are available: 3 {AFFINITY}.", "no-such-node"),
        ("0/3 nodes are available: 3 Too many pods.", "insufficient"),
        ("0/3 nodes are available: 3 node(s) had volume node affinity conflict.", "mount"),
        ("0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind.", "claim-missing"),
        # https://kubernetes.io/docs/reference/labels-annotations-taints/
        (
            "0/2 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, 1 node(s) had "
            "untolerated taint {node.cloudprovider.kubernetes.io/uninitialized: true}.",
            "machine-starting",
        ),
        (
            "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unschedulable: }.",
            "no-such-node",
        ),
        (
            f"0/2 nodes are available: 1 {TAINT}, 1 node(s) had untolerated taint {{node.kubernetes.io/not-ready: }}.",
            "taint",
        ),
    ):
        job.unschedulable(message)
        assert (job.why().cause, job.why().evidence[0]) == (cause, message)


@pytest.mark.parametrize("reason", ["Evicted", ""])
def test_a_pod_that_its_node_put_out_was_not_preempted(cluster: Cluster, reason: str) -> None:
    """The condition of a lost pod is there, too: https://github.com/kubernetes/kubernetes/issues/105467"""
    job = Job(cluster)
    for resource, cause in (("ephemeral-storage", "evicted-disk"), ("memory", "evicted")):
        message = f"The node was low on resource: {resource}. Threshold quantity: 1Gi, available: 898240Ki."
        lost = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": message}
        job.failed(137, conditions=[lost], reason_of_pod=reason, message=message)
        assert job.why().cause == cause


def test_why_a_pod_was_put_off_its_node(cluster: Cluster) -> None:
    job = Job(cluster)
    for reason, words in (
        ("PreemptionByScheduler", "higher priority"),
        ("EvictionByEvictionAPI", "drained"),
        ("DeletionByTaintManager", "its node was preempted"),
    ):
        job.failed(137, conditions=[{"type": "DisruptionTarget", "status": "True", "reason": reason}])
        told = job.why()
        assert told.cause == "preempted" and words in told.reason and "lost_retries" in told.next_step


def test_a_container_that_nobody_saw_end(cluster: Cluster) -> None:
    # https://github.com/kubernetes/kubernetes/issues/104107
    job = Job(cluster)
    job.failed(137, reason="ContainerStatusUnknown")
    assert job.why().cause == "host-lost"


def test_words_of_tpus(cluster: Cluster) -> None:
    job = Job(cluster)
    line = "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 1.50G. That was not possible."
    job.failed(1, lines=(line,))
    assert job.why().cause == "exit-code"
    spec = job.body["spec"]["template"]["spec"]["containers"][0]["resources"]
    spec["limits"] = {**spec.get("limits", {}), "google.com/tpu": "4"}
    assert job.why().cause == "tpu-out-of-memory"


def test_a_label_that_no_node_has_is_told_with_the_nearest(cluster: Cluster) -> None:
    job = Job(cluster, accelerator={"type": "a100"})
    job.unschedulable(f"0/1 nodes are available: 1 {AFFINITY}.")
    job.event("NotTriggerScaleUp", f"pod didn't trigger scale-up: 2 {AFFINITY}")
    job.node(
        "a",
        {"cloud.google.com/gke-accelerator": "nvidia-tesla-a100", "cloud.google.com/gke-nodepool": "a100-9z9z9z9"},
        gpus=4,
    )
    told = job.why()
    assert told.cause == "no-such-node" and "gke-nodepool=a100-1a2b3c4" in told.reason
    assert "a100-9z9z9z9" in told.next_step
    cluster.forbidden.add("nodes")
    assert job.why().cause == "no-such-node" and "list nodes" in job.why().unread[0]


def test_a_driver_that_does_not_come(cluster: Cluster) -> None:
    job = Job(cluster, accelerator={"type": "a100"})
    job.unschedulable("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    labels = {"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}
    job.node("young", labels, ready_for=300)
    assert job.why().cause == "insufficient"
    job.node("old", labels, ready_for=700)
    told = job.why()
    assert told.cause == "driver-not-ready" and "old" in told.evidence[0] and "young" not in told.evidence[0]
    job.node("good", labels, gpus=4)
    assert job.why().cause == "insufficient"


WAITING = {
    "image-missing": ("ErrImagePull", 'rpc error: failed to resolve reference "x:1": x:1: not found'),
    "image-forbidden": ("ImagePullBackOff", "failed to authorize: 403 Forbidden"),
    "image-unreachable": ("ErrImagePull", "dial tcp 1.2.3.4:443: i/o timeout"),
    "image-platform": ("ErrImagePull", "no match for platform in manifest"),
    "image-pull": ("ErrImagePull", "something else"),
    "secret-unreadable": ("CreateContainerConfigError", 'secret "hf" not found'),
    "not-started": ("CreateContainerError", "context deadline exceeded"),
    "command-not-found": (
        "RunContainerError",
        'failed to create containerd task: exec: "x": executable file not found',
    ),
    "container-gpu": (
        "RunContainerError",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6",
    ),
    "disk-full": ("CreateContainerError", "mkdir /var/lib/containerd/x: no space left on device"),
}


@pytest.mark.parametrize("cause", WAITING)
def test_what_the_kubelet_says(cluster: Cluster, cause: str) -> None:
    job = Job(cluster)
    job.waiting(*WAITING[cause])
    assert job.why().cause == cause


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("couldn't find key API_KEY in Secret team-a/hf", "secret-unreadable"),
        ('configmap "keycloak" not found', "not-started"),
        ("couldn't find key mode in ConfigMap team-a/settings", "not-started"),
    ],
)
def test_a_secret_that_is_missing_is_not_a_config_map(cluster: Cluster, message: str, cause: str) -> None:
    job = Job(cluster)
    job.waiting("CreateContainerConfigError", message)
    assert job.why().cause == cause


def test_while_a_pull_backs_off_its_event_tells_why(cluster: Cluster) -> None:
    job = Job(cluster)
    job.waiting("ImagePullBackOff", 'Back-off pulling image "x:1"')
    job.event("Failed", 'Failed to pull image "x:1": failed to resolve reference: x:1: not found')
    assert job.why().cause == "image-missing"


def test_a_volume_and_a_pod_that_just_starts(cluster: Cluster) -> None:
    job = Job(cluster)
    job.waiting("ContainerCreating")
    cluster.objects[f"{SCOPE.core('pods')}/{job.ref.id}-x"]["spec"] = {"nodeName": "n-1"}
    assert job.why().cause == "starting" and job.why().evidence[0] == "node n-1"
    job.event("FailedMount", "MountVolume.SetUp failed for volume mount-0: permission denied")
    assert job.why().cause == "mount"
    job.event("Pulling", 'Pulling image "x:1"', 9)
    assert job.why().cause == "starting", "its volumes are mounted by then"


@pytest.mark.parametrize(
    ("reason", "message", "cause"),
    [
        # https://github.com/kubebb/core/pull/130
        (
            "FailedMount",
            'MountVolume.SetUp failed for volume "kube-api-access-p" : failed to sync configmap cache: timed out',
            "starting",
        ),
        (
            "FailedMount",
            'MountVolume.SetUp failed for volume "creds" : secret "gcs-key" not found',
            "secret-unreadable",
        ),
        ("FailedAttachVolume", 'Multi-Attach error for volume "pvc-1" Volume is already exclusively attached', "mount"),
        (
            "FailedCreatePodSandBox",
            "Failed to create pod sandbox: failed to setup network for sandbox: failed to allocate for range 0: no IP "
            "addresses available in range set: 10.4.0.1-10.4.0.126",
            "no-addresses",
        ),
    ],
)
def test_events_of_a_pod_that_is_made_ready(cluster: Cluster, reason: str, message: str, cause: str) -> None:
    job = Job(cluster)
    job.waiting("ContainerCreating")
    cluster.objects[f"{SCOPE.core('pods')}/{job.ref.id}-x"]["spec"] = {"nodeName": "n-1"}
    job.event(reason, message)
    assert job.why().cause == cause


def test_how_an_attempt_ended(cluster: Cluster) -> None:
    for told, cause in (
        ({"code": 137, "reason": "OOMKilled"}, "out-of-memory"),
        ({"code": 137, "reason": "Error"}, "killed"),
        ({"code": 127}, "command-not-found"),
        (
            {"code": 1, "lines": ("Traceback (most recent call last):", "torch.cuda.OutOfMemoryError: x")},
            "cuda-out-of-memory",
        ),
        ({"code": 3, "lines": ("bye",)}, "exit-code"),
    ):
        job = Job(cluster)
        job.failed(**told)
        assert job.why().cause == cause, told
    job.failed(137, reason="Error")
    pod = cluster.objects[f"{SCOPE.core('pods')}/{job.ref.id}-x"]
    for reason, message, cause in (
        ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", "timeout"),
        ("Evicted", "Pod ephemeral local storage usage exceeds the total limit", "evicted-disk"),
        ("Evicted", "The node was low on resource: memory", "evicted"),
        ("Evicted", 'Usage of EmptyDir volume "shm" exceeds the limit "64Mi".', "shared-memory"),
        ("Evicted", 'Usage of EmptyDir volume "mount-0" exceeds the limit "10Gi".', "evicted-disk"),
        # https://github.com/kubernetes/kubernetes/issues/130145, https://github.com/kubernetes/kubernetes/issues/97131
        (
            "UnexpectedAdmissionError",
            "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
            "Requested: 1, Available: 0, which is unexpected",
            "not-started",
        ),
        (
            "UnexpectedAdmissionError",
            "Pod Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: nvml: GPU is lost",
            "gpu-failed",
        ),
        ("OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu, requested: 4000", "not-started"),
        # https://github.com/capactio/capact/pull/679
        ("Preempting", "Preempted in order to admit critical pod", "preempted"),
        ("NodeShutdown", "Pod was rejected as the node is shutting down.", "preempted"),
        ("Terminated", "Pod was terminated in response to imminent node shutdown.", "preempted"),
    ):
        pod["status"] |= {"reason": reason, "message": message}
        assert job.why().cause == cause, (reason, message)
    pod["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}]
    assert job.why().cause == "preempted"
    job.body["metadata"]["annotations"][marks.CANCELLED] = "enough"
    assert (job.why().cause, job.why().evidence) == ("stopped", ("reason: enough",))


START = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
EXEC = 'unable to start container process: error during container init: exec: "tarin.py"'


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        # https://github.com/vdesabou/kafka-docker-playground/issues/8515
        (f"{START}{EXEC}: executable file not found in $PATH", "command-not-found"),
        (f"{START}{EXEC}: stat ./tarin.py: no such file or directory: unknown", "command-not-found"),
        ("failed to create containerd task: [Errno 2] No such file or directory: 'tarin.py'", "command-not-found"),
        (f"{START}{EXEC}: permission denied: unknown", "command-not-executable"),
        (f"{START}{EXEC}: exec format error: unknown", "image-platform"),
        (f"{START}error running hook #0: nvidia-container-cli: requirement error", "container-gpu"),
        (f'{START}error mounting "/a" to rootfs at "/b": not a directory', "mount"),
        # https://github.com/kubernetes/kube-state-metrics/issues/1861
        (f'{START}container init caused: mounting "cgroup" to rootfs caused: stat ..', "not-started"),
    ],
)
def test_a_command_that_cannot_be_started(cluster: Cluster, message: str, cause: str) -> None:
    job = Job(cluster)
    job.failed(128)
    state = {"terminated": {"exitCode": 128, "reason": "StartError", "message": message}}
    job.pod("Failed", containerStatuses=[{"name": "main", "state": state}])
    told = job.why()
    assert told.cause == cause and message[:60] in told.evidence[0] and "exit code" not in told.reason


def test_an_array_that_runs_with_tasks_that_wait(cluster: Cluster) -> None:
    """What holds those tasks is told, and how many they are."""
    job = Job(cluster, tasks=4, parallelism=3)
    job.body["status"] = {"active": 3, "ready": 1}
    job.pod("Running", "0")
    job.pod("Pending", "1", conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                                         "message": "0/3 nodes are available: 3 Insufficient cpu."}])  # fmt: skip
    told = job.why()
    assert (told.cause, told.evidence[0]) == ("insufficient", "of 4 tasks 1 runs, 3 wait")
    assert told.reason.startswith("the job runs, and some of its tasks wait: what the nodes have is in use")
    assert "0/3 nodes are available" in told.evidence[1]
    job.pod("Pending", "1", containerStatuses=[{"name": "main", "state": {"waiting": {"reason": "ErrImagePull"}}}])
    assert job.why().cause == "image-pull"
    del cluster.objects[f"{SCOPE.core('pods')}/{job.ref.id}-1"]
    job.body["status"] = {"active": 3, "ready": 3}
    turns = job.why()
    assert (
        turns.cause == "parallelism" and "3 run, 1 waits" in turns.evidence[0] and "parallelism is 3" in turns.evidence
    )
    job.body["status"] = {"active": 1, "ready": 1, "succeeded": 3}
    assert job.why().cause == "running"


@pytest.mark.parametrize("ready", ["False", "Unknown"])
@pytest.mark.parametrize("tasks", [1, 4])
def test_a_job_on_a_node_that_no_longer_reports(cluster: Cluster, ready: str, tasks: int) -> None:
    job = Job(cluster, **({"tasks": tasks} if tasks > 1 else {}))
    job.node("well", {})
    job.node("silent", {}, ready=ready)
    job.body["status"] = {"active": tasks, "ready": tasks}
    job.pod("Running", "0", node="well")
    assert job.why().cause == "running"
    job.body["status"] = {"active": tasks, "ready": tasks - 1}
    job.pod("Running", "0", node="silent")
    told = job.why()
    assert told.cause == "vm-silent" and "node silent is not ready" in told.reason
    assert "kubectl describe node silent" in told.next_step
    cluster.forbidden.add("nodes")
    assert job.why().cause != "vm-silent" and "list nodes" in job.why().unread[0]
    job.pod("Running", "0")
    assert job.why().unread == ()


def test_words_of_another_platform_are_not_used(cluster: Cluster) -> None:
    job = Job(cluster, accelerator={"type": "a100"})
    job.failed(1, lines=("RuntimeError: Found no NVIDIA driver on your system",))
    told = job.why()
    assert told.cause == "gpu-not-visible" and "ECS" not in told.next_step and "/usr/local/nvidia" in told.next_step


def test_a_job_that_is_gone_and_one_that_is_well(cluster: Cluster) -> None:
    job = Job(cluster)
    job.pod("Running")
    assert job.why().cause == "running"
    assert explain(cluster.api(), SCOPE, SCOPE.ref("none")).cause == "unknown-job"
    job.body["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert job.why().cause == "succeeded"


def test_a_failure_without_a_pod_is_unknown(cluster: Cluster) -> None:
    job = Job(cluster)
    job.body["status"] = {"conditions": [{"type": "Failed", "status": "True", "reason": "Odd", "message": "why"}]}
    told = job.why()
    assert told.cause == "unknown" and "Odd: why" in told.evidence[0]
