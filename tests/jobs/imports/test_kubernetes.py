"""Kubernetes manifests as job files: kinds of jobs, fields of pods, other objects, and no leaf that is lost."""

import copy
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from accel.diagnostics.errors import BadInput
from accel.diagnostics.yaml_positions import Tree
from jobs.importers import kubernetes
from jobs.importers.kubernetes_values import quantity
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from jobs.importers.reading import leaves
from jobs.importers.report import Entry
from jobs.model.document import Document
from jobs.model.job import Job
from tests.jobs.backends import gke_target

Json = dict[str, Any]
IMAGE = "registry.example/train:1.0"
GPU = {"limits": {"nvidia.com/gpu": 1}}


def container(**fields: Any) -> Json:
    return {"name": "main", "image": IMAGE, "command": ["python", "train.py"], **fields}


def pod(first: Json | None = None, **fields: Any) -> Json:
    return {"restartPolicy": "Never", "containers": [first or container()], **fields}


def job(spec: Json | None = None, /, **fields: Any) -> Json:
    """A Job of a pod's spec."""
    made = {"backoffLimit": 0, "template": {"spec": spec or pod()}, **fields}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": made}


def with_container(**fields: Any) -> Json:
    return job(pod(container(**fields)))


def of_kubeflow(kind: str, key: str, **replicas: Any) -> Json:
    specs = {name: {"template": {"spec": pod()}, **each} for name, each in replicas.items()}
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": "train"}, "spec": {key: specs}}


def job_set(*jobs: Json, **fields: Any) -> Json:
    spec = {"replicatedJobs": list(jobs), **fields}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train"}, "spec": spec}


def replicated(
    spec: Json | None = None, replicas: int = 1, template_annotations: Json | None = None, **fields: Any
) -> Json:
    metadata = {"metadata": {"annotations": template_annotations}} if template_annotations else {}
    made = {"backoffLimit": 0, "template": {**metadata, "spec": spec or pod()}, **fields}
    return {"name": "w", "replicas": replicas, "template": {"spec": made}}


def mounted(volume: Json, path: str = "/data", **mount: Any) -> Json:
    return job(
        pod(container(volumeMounts=[{"name": "v", "mountPath": path, **mount}]), volumes=[{"name": "v", **volume}])
    )


def at_paths(volume: Json, *mounts: Json) -> Json:
    return job(
        pod(container(volumeMounts=[{"name": "v", **each} for each in mounts]), volumes=[{"name": "v", **volume}])
    )


def in_disk(storage: str) -> Json:
    """A job with a limit of its disk, and a folder of 20 GiB in it."""
    document = mounted({"emptyDir": {"sizeLimit": "20Gi"}})
    document["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"ephemeral-storage": storage}}
    return document


def tpu(topology: str, chips: int, label: str = "tpu-v5-lite-podslice", **fields: Any) -> Json:
    labels = {"cloud.google.com/gke-tpu-accelerator": label, "cloud.google.com/gke-tpu-topology": topology}
    return pod(container(resources={"limits": {"google.com/tpu": chips}}), nodeSelector=labels, **fields)


def selected(**labels: str) -> Json:
    return job(
        pod(container(resources=GPU), nodeSelector={key.replace("__", "/"): text for key, text in labels.items()})
    )


def chosen(key: str, operator: str, *values: str) -> Json:
    expression: Json = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return job(
        pod(
            container(resources=GPU),
            affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        )
    )


def dumped(*documents: Json) -> bytes:
    return yaml.safe_dump_all(documents).encode()


def found_in(*documents: Json, **options: Any) -> ImportResult:
    return kubernetes.import_job("job.yaml", dumped(*documents), ImportOptions(**options))


def values_of(*documents: Json, **options: Any) -> Json:
    found = found_in(*documents, **options)
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    Document("job.yaml", Tree(found.values), Job).job()
    return found.values


RETRIES_OF_A_POD = {"retries": 0}
SHM = {"emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}
GCS = {"csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "acme"}}}
T4 = {"accelerator": {"type": "nvidia-tesla-t4", "count": 1}}
ELASTIC = of_kubeflow("PyTorchJob", "pytorchReplicaSpecs", Worker={"replicas": 2})
SHAPES: dict[str, tuple[Json, Json]] = {
    "a job": (job(), {"name": "train", "image": IMAGE, "command": ["python", "train.py"], "retries": 0}),
    "generateName": ({**job(), "metadata": {"generateName": "train-"}}, {"name": "train"}),
    "a job without backoffLimit": (job(backoffLimit=None), {"retries": 6}),
    "backoffLimit": (job(backoffLimit=3), {"retries": 3}),
    "a deadline": (job(activeDeadlineSeconds=3600), {"timeout_s": 3600}),
    "a deadline of pods": (job(pod(activeDeadlineSeconds=60)), {"timeout_s": 60}),
    "ttl": (job(ttlSecondsAfterFinished=600), {"gke": {"keep_s": 600}}),
    "suspended": (job(suspend=True), {}),
    "indexed": (job(completions=8, parallelism=2, completionMode="Indexed"), {"tasks": 8, "parallelism": 2}),
    "indexed at once": (job(completions=8, parallelism=8, completionMode="Indexed"), {"tasks": 8}),
    "completions alone": (job(completions=4), {"tasks": 4, "parallelism": 1}),
    "a work queue": (job(parallelism=4), {"tasks": 4}),
    "nodes": (job(pod(subdomain="s"), completions=4, parallelism=4, completionMode="Indexed"), {"nodes": 4}),
    "one of one": (job(completions=1, parallelism=1), {}),
    "a limit per index": (
        job(completions=2, completionMode="Indexed", backoffLimitPerIndex=2, maxFailedIndexes=1, backoffLimit=None),
        {"retries": 2},
    ),
    "lost pods": (
        job(
            backoffLimit=2,
            podFailurePolicy={"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
        ),
        {"retries": 2},
    ),
    "exit codes": (
        job(podFailurePolicy={"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}),
        {"retries": 0},
    ),
    "a cron job": (
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "nightly"},
            "spec": {"schedule": "0 1 * * *", "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job()["spec"]}},
        },
        {"name": "nightly"},
    ),
    "a deadline of tasks": (job(completions=6, activeDeadlineSeconds=900), {"tasks": 6, "timeout_s": 900}),
    "a pod": ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod()}, RETRIES_OF_A_POD),
    "a pod that starts again": (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod(restartPolicy="OnFailure")},
        RETRIES_OF_A_POD,
    ),
    "a job set": (
        job_set(replicated(parallelism=4, completions=4), failurePolicy={"maxRestarts": 2}),
        {"nodes": 4, "retries": 2},
    ),
    "a job set of replicas": (job_set(replicated(replicas=2, parallelism=2, completions=2)), {"nodes": 4}),
    "a job set of two alike": (job_set(replicated(), {**replicated(), "name": "x"}), {"nodes": 2}),
    "a job set of one": (job_set(replicated(), network={"enableDNSHostnames": True}), {"retries": 0}),
    "a job set of one pod that is tried again": (job_set(replicated(backoffLimit=2)), {"retries": 2}),
    "a job set of one pod that starts again": (
        job_set(replicated(backoffLimit=2), failurePolicy={"maxRestarts": 1}),
        {"retries": 5},
    ),
    "a job set without backoffLimit": (job_set(replicated(backoffLimit=None, completions=2)), {"retries": 0}),
    "a job set of two alike with fields of jobs": (
        job_set(*(replicated(activeDeadlineSeconds=60, podReplacementPolicy="Failed") for _ in range(2))),
        {"nodes": 2, "timeout_s": 60},
    ),
    "an elastic PyTorchJob": (
        {
            **ELASTIC,
            "spec": {**ELASTIC["spec"], "elasticPolicy": {"rdzvBackend": "c10d", "maxRestarts": 5, "minReplicas": 1}},
        },
        {"nodes": 2, "env": {"PET_MAX_RESTARTS": "5"}},
    ),
    "a PyTorchJob": (
        of_kubeflow("PyTorchJob", "pytorchReplicaSpecs", Master={"replicas": 1}, Worker={"replicas": 3}),
        {"nodes": 4},
    ),
    "a PyTorchJob of workers": (of_kubeflow("PyTorchJob", "pytorchReplicaSpecs", Worker={"replicas": 2}), {"nodes": 2}),
    "a TFJob": (of_kubeflow("TFJob", "tfReplicaSpecs", Worker={"replicas": 2, "restartPolicy": "Never"}), {"nodes": 2}),
    "a TFJob with a chief": (of_kubeflow("TFJob", "tfReplicaSpecs", Chief={}, Worker={"replicas": 2}), {"nodes": 3}),
    "an XGBoostJob": (of_kubeflow("XGBoostJob", "xgbReplicaSpecs", Master={}, Worker={"replicas": 2}), {"nodes": 3}),
    "a PaddleJob": (of_kubeflow("PaddleJob", "paddleReplicaSpecs", Worker={"replicas": 2}), {"nodes": 2}),
    "a JAXJob": (of_kubeflow("JAXJob", "jaxReplicaSpecs", Worker={"replicas": 2}), {"nodes": 2}),
    "an MPIJob of one worker": (
        of_kubeflow(
            "MPIJob",
            "mpiReplicaSpecs",
            Launcher={"template": {"spec": pod(container(command=["mpirun", "-np", "4", "train"]))}},
            Worker={"replicas": 1, "template": {"spec": pod(container(resources=GPU))}},
        ),
        {"command": ["mpirun", "-np", "4", "train"], "accelerator": {"count": 1}},
    ),
    "args": (with_container(args=["--epochs", "3"]), {"command": ["python", "train.py", "--epochs", "3"]}),
    "a shell": (with_container(command=["sh", "-c"], args=["a; b"]), {"command": ["sh", "-c", "a; b"]}),
    "no command": (with_container(command=None), {"image": IMAGE}),
    "a folder to work in": (
        with_container(workingDir="/src"),
        {"command": ["sh", "-c", 'mkdir -p /src\ncd /src\nexec "$0" "$@"', "python", "train.py"]},
    ),
    "$(NAME)": (
        with_container(env=[{"name": "LR", "value": "0.1"}], args=["--lr=$(LR)", "$$(LR)", "$(NONE)"]),
        {"command": ["python", "train.py", "--lr=0.1", "$(LR)", "$(NONE)"], "env": {"LR": "0.1"}},
    ),
    "$(INDEX)": (
        with_container(args=["--shard=$(JOB_COMPLETION_INDEX)"]),
        {"command": ["sh", "-c", 'exec python train.py --shard="${JOB_COMPLETION_INDEX}"']},
    ),
    "env": (with_container(env=[{"name": "A", "value": "x $(B)"}, {"name": "C"}]), {"env": {"A": "x $(B)", "C": ""}}),
    "a secret": (
        with_container(env=[{"name": "T", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}]),
        {"secrets": {"T": "hf/token"}},
    ),
    "a bucket in a variable of the shell": (
        with_container(
            command=["sh", "-c", "ls gs://${MY_BUCKET}/$YOUR_RUN"], env=[{"name": "MY_BUCKET", "value": "acme"}]
        ),
        {"env": {"MY_BUCKET": "acme"}},
    ),
    "a field": (
        with_container(
            command=["sh", "-c", "echo $I"],
            env=[
                {
                    "name": "I",
                    "valueFrom": {
                        "fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}
                    },
                }
            ],
        ),
        {"command": ["sh", "-c", 'export I="${JOB_COMPLETION_INDEX:-0}"\necho $I']},
    ),
    "a GPU": (with_container(resources=GPU), {"accelerator": {"count": 1}}),
    "no GPU": (with_container(resources={"limits": {"nvidia.com/gpu": 0}}), {}),
    "CPUs and memory": (
        with_container(resources={"requests": {"cpu": "3500m", "memory": "10G"}, "limits": {"memory": "16Gi"}}),
        {"cpus": 4, "memory_mib": 16384},
    ),
    "requests alone": (
        with_container(resources={"requests": {"cpu": 2, "memory": "1Gi"}}),
        {"cpus": 2, "memory_mib": 1024},
    ),
    "bytes": (with_container(resources={"limits": {"memory": "1073741825"}}), {"memory_mib": 1025}),
    "a disk": (with_container(resources={"limits": {"ephemeral-storage": "50Gi"}}), {"disk_gib": 50}),
    "a partition": (
        with_container(resources={"limits": {"nvidia.com/mig-1g.5gb": 1}}),
        {"gke": {"gpu_partition": "1g.5gb"}, "accelerator": {"count": 1}},
    ),
    "gke-accelerator": (selected(**{"cloud.google.com__gke-accelerator": "nvidia-tesla-t4"}), T4),
    "gpu.product": (
        selected(**{"nvidia.com__gpu.product": "Tesla-T4"}),
        {"accelerator": {"type": "Tesla-T4", "count": 1}},
    ),
    "Karpenter's GPU": (
        selected(**{"karpenter.k8s.aws__instance-gpu-name": "t4"}),
        {"accelerator": {"type": "t4", "count": 1}},
    ),
    "a machine of AWS": (selected(**{"node.kubernetes.io__instance-type": "g4dn.xlarge"}), T4),
    "a machine of Azure": (
        selected(**{"node.kubernetes.io__instance-type": "Standard_NC6"}),
        {"accelerator": {"count": 1}},
    ),
    "Spot": (selected(**{"cloud.google.com__gke-spot": "true"}), {"spot": True}),
    "Spot of Karpenter": (selected(**{"karpenter.sh__capacity-type": "spot"}), {"spot": True}),
    "on demand of EKS": (selected(**{"eks.amazonaws.com__capacityType": "ON_DEMAND"}), {"spot": False}),
    "provisioning": (selected(**{"cloud.google.com__gke-provisioning": "standard"}), {"spot": False}),
    "a label of one's own for an accelerator": (
        selected(accelerator="nvidia-tesla-t4"),
        {"accelerator": {"type": "nvidia-tesla-t4", "count": 1}},
    ),
    "a label of any accelerator": (selected(accelerator="nvidia"), {"accelerator": {"count": 1}}),
    "labels of a cluster": (selected(gpu="a", kubernetes__os="linux"), {"accelerator": {"count": 1}}),
    "affinity": (chosen("cloud.google.com/gke-accelerator", "In", "nvidia-tesla-t4"), T4),
    "affinity to several": (chosen("zone", "In", "a", "b"), {"accelerator": {"count": 1}}),
    "affinity to Spot": (chosen("cloud.google.com/gke-spot", "Exists"), {"spot": True}),
    "affinity to any capacity": (chosen("karpenter.sh/capacity-type", "Exists"), {"spot": None}),
    "affinity to no Spot": (chosen("cloud.google.com/gke-spot", "DoesNotExist"), {"spot": False}),
    "a TPU": (job(tpu("2x2", 4)), {"accelerator": {"type": "v5litepod-4"}}),
    "a TPU of hosts": (
        job(tpu("4x4", 4), completions=4, parallelism=4, completionMode="Indexed"),
        {"accelerator": {"type": "v5litepod-16"}},
    ),
    "a TPU of eight on two": (job(tpu("2x4", 4)), {"accelerator": {"type": "v5litepod-8", "count": 4}, "nodes": 2}),
    "a TPU in a job set": (
        job_set(replicated(tpu("2x2x4", 4, "tpu-v4-podslice"), completions=4, parallelism=4)),
        {"accelerator": {"type": "v4-32"}},
    ),
    "shared memory": (mounted(SHM, "/dev/shm"), {"shm_mib": 8192}),
    "a TPU that is made of others": (
        job_set(
            replicated(
                {
                    **tpu("4x4x8", 4, "tpu7x"),
                    "nodeSelector": {"cloud.google.com/gke-tpu-accelerator": "tpu7x"},
                },
                template_annotations={"cloud.google.com/gke-tpu-slice-topology": "4x4x8"},
                completions=32,
                parallelism=32,
            )
        ),
        {"accelerator": {"type": "tpu7x-4x4x8"}},
    ),
    "nodes with GPUs of which none is asked for": (
        job(pod(nodeSelector={"cloud.google.com/gke-accelerator": "nvidia-l4"})),
        {"image": IMAGE},
    ),
    "switches that are off": (
        job(
            pod(
                container(securityContext={"privileged": False, "allowPrivilegeEscalation": False}),
                hostPID=False,
                hostNetwork=False,
                hostIPC=False,
            )
        ),
        {"image": IMAGE},
    ),
    "pods of a group": (job(pod(schedulingGroup={"podGroupName": "g"})), {"image": IMAGE}),
    "a folder for a while to work in": (
        job(
            pod(
                container(workingDir="/work", volumeMounts=[{"name": "w", "mountPath": "/work"}]),
                volumes=[{"name": "w", "emptyDir": {}}],
            )
        ),
        {"command": ["sh", "-c", 'mkdir -p /work\nmkdir -p /work\ncd /work\nexec "$0" "$@"', "python", "train.py"]},
    ),
    "shared memory as large as the memory": (
        job(
            pod(
                container(
                    resources={"limits": {"cpu": 1, "memory": "4Gi"}},
                    volumeMounts=[{"name": "v", "mountPath": "/dev/shm"}],
                ),
                volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}],
            )
        ),
        {"shm_mib": 4096, "memory_mib": 4096},
    ),
    "shared memory without a limit": (mounted({"emptyDir": {"medium": "Memory"}}, "/dev/shm"), {}),
    "a folder for a while": (
        mounted({"emptyDir": {}}, "/scratch/a b"),
        {"command": ["sh", "-c", 'mkdir -p \'/scratch/a b\'\nexec "$0" "$@"', "python", "train.py"]},
    ),
    "a folder with a size": (mounted({"emptyDir": {"sizeLimit": "20Gi"}}), {"disk_gib": 20}),
    "a folder that is part of the disk": (in_disk("50Gi"), {"disk_gib": 50}),
    "a folder that is larger than the disk": (in_disk("10Gi"), {"disk_gib": 20}),
    "a folder at two paths": (
        at_paths({"emptyDir": {"sizeLimit": "20Gi"}}, {"mountPath": "/a"}, {"mountPath": "/b"}),
        {"disk_gib": 20},
    ),
    "two folders of a volume": (
        at_paths({"emptyDir": {}}, {"mountPath": "/a", "subPath": "a"}, {"mountPath": "/b", "subPath": "b"}),
        {"command": ["sh", "-c", 'mkdir -p /a /b\nexec "$0" "$@"', "python", "train.py"]},
    ),
    "rounded up": (
        with_container(resources={each: {"cpu": "300m", "memory": "1.5Mi"} for each in ("limits", "requests")}),
        {"cpus": 1, "memory_mib": 4},
    ),
    "a claim": (
        mounted({"persistentVolumeClaim": {"claimName": "data"}}, readOnly=True),
        {"mounts": [{"source": "volume://data", "path": "/data", "read_only": True}]},
    ),
    "a claim to read, which says so in words": (
        mounted({"persistentVolumeClaim": {"claimName": "data", "readOnly": "true"}}),
        {"mounts": [{"source": "volume://data", "path": "/data", "read_only": True}]},
    ),
    "a folder of a claim": (
        mounted({"persistentVolumeClaim": {"claimName": "data"}}, subPath="a/b"),
        {"mounts": [{"source": "volume://data/a/b", "path": "/data"}]},
    ),
    "a bucket": (mounted(GCS), {"mounts": [{"source": "gs://acme", "path": "/data"}]}),
    "a folder of a bucket": (
        mounted(
            {"csi": {**GCS["csi"], "volumeAttributes": {"bucketName": "b", "mountOptions": "implicit-dirs,only-dir=x"}}}
        ),
        {"mounts": [{"source": "gs://b/x", "path": "/data"}]},
    ),
    "a bucket that is read": (
        mounted({"csi": {**GCS["csi"], "volumeAttributes": {"bucketName": "b", "mountOptions": "implicit-dirs,ro"}}}),
        {"mounts": [{"source": "gs://b", "path": "/data", "read_only": True}]},
    ),
    "the driver's folder": (mounted({"hostPath": {"path": "/usr/local/nvidia"}}), {}),
    "a volume that is mounted nowhere": (job(pod(volumes=[{"name": "v", "configMap": {"name": "c"}}])), {}),
    "a disk for a while": (
        mounted({"ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "100Gi"}}}}}}),
        {"disk_gib": 100},
    ),
    "grace": (job(pod(terminationGracePeriodSeconds=60)), {"gke": {"grace_s": 60}}),
    "a user": (job(pod(securityContext={"runAsUser": 1000, "fsGroup": 1000})), {"gke": {"user": 1000}}),
    "a priority": (job(pod(priorityClassName="urgent")), {"gke": {"priority": "urgent"}}),
    "labels": (
        {
            **job(),
            "metadata": {"name": "a", "labels": {"team": "v", "kueue.x-k8s.io/queue-name": "q"}, "namespace": "n"},
        },
        {"labels": {"team": "v"}},
    ),
    "fields of pods": (
        job(
            pod(
                serviceAccountName="s",
                dnsPolicy="Default",
                hostNetwork=True,
                tolerations=[{"operator": "Exists"}],
                imagePullSecrets=[{"name": "r"}],
                schedulerName="x",
                automountServiceAccountToken=False,
            )
        ),
        {"image": IMAGE},
    ),
    "fields of containers": (
        with_container(
            imagePullPolicy="Always",
            ports=[{"containerPort": 80}],
            tty=True,
            livenessProbe={"exec": {"command": ["true"]}},
            securityContext={"privileged": True, "capabilities": {"add": ["IPC_LOCK"]}},
        ),
        {"image": IMAGE},
    ),
}


WHOLE_JOB = job(
    pod(
        container(
            args=["--lr", "$(LR)"],
            env=[
                {"name": "LR", "value": "0.1"},
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
            ],
            resources={"limits": {"nvidia.com/gpu": "1", "memory": "16Gi"}, "requests": {"cpu": "4", "memory": "8Gi"}},
            volumeMounts=[
                {"name": "shm", "mountPath": "/dev/shm"},
                {"name": "data", "mountPath": "/data", "readOnly": True},
                {"name": "bucket", "mountPath": "/models"},
            ],
            workingDir="/src",
        ),
        nodeSelector={"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-spot": "true"},
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        volumes=[
            {"name": "shm", **SHM},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "bucket", **GCS},
        ],
    ),
    completions=4,
    parallelism=2,
    completionMode="Indexed",
    ttlSecondsAfterFinished=600,
)
SHAPES["a whole job"] = (WHOLE_JOB, {"tasks": 4, "parallelism": 2, "spot": True, "cpus": 4})


@pytest.mark.parametrize("what", SHAPES)
def test_shapes(what: str) -> None:
    document, expected = SHAPES[what]
    values = values_of(document)
    assert {name: values.get(name) for name in expected} == expected


REFUSALS: list[tuple[Json, str]] = [
    ({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {}}, "is a RayJob, which starts nodes of its own"),
    ({"apiVersion": "apps/v1", "kind": "Deployment"}, "is a Deployment, which runs without end"),
    ({"apiVersion": "v1", "kind": "Service"}, "holds no job (Service)"),
    ({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}, "is a Job of batch.volcano.sh/v1alpha1"),
    ({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}, "is a workflow"),
    ({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}, "TrainingRuntime"),
    ({"apiVersion": "v1", "kind": "List", "items": []}, "holds no job"),
]


@pytest.mark.parametrize("document, said", REFUSALS)
def test_what_is_no_job(document: Json, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        found_in(document)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "document, field, said",
    [
        (with_container(command=None, args=["a"]), "args", "--var ENTRYPOINT"),
        (with_container(image=None), "image", "say --image"),
        (job(pod(initContainers=[container()])), "initContainers", "is a container before the job's"),
        (
            job(pod(initContainers=[container(restartPolicy="Always")])),
            "initContainers[0].name",
            "is a container beside the job's",
        ),
        (job({**pod(), "containers": [container(), container(name="b")]}), "containers[1]", "beside the job's"),
        (with_container(resources={"limits": {"amd.com/gpu": 1}}), "amd.com/gpu", "accelerators are nvidia.com/gpu"),
        (with_container(resources={"limits": {"cpu": "many"}}), "limits.cpu", "must be a quantity"),
        (with_container(resources={"claims": [{"name": "a"}]}), "claims", "asks for devices by claims"),
        (
            with_container(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]),
            "configMapKeyRef",
            "write it into env",
        ),
        (
            with_container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]),
            "fieldRef",
            "write a value for A",
        ),
        (with_container(envFrom=[{"secretRef": {"name": "s"}}]), "envFrom", "into secrets"),
        (mounted({"configMap": {"name": "c"}}), "configMap", "into the image"),
        (mounted({"secret": {"secretName": "s"}}), "secret", "secrets as variables"),
        (mounted({"hostPath": {"path": "/mnt/data"}}), "hostPath", "--mount /data=<source>"),
        (mounted({"nfs": {"server": "a", "path": "/b"}}), "nfs", "--mount /data=<source>"),
        (job(tpu("3x3", 4)), "tpu-accelerator", "is no topology"),
        (
            job({**tpu("4x4", 4), "nodeSelector": {"cloud.google.com/gke-tpu-topology": "4x4"}}),
            "google.com/tpu",
            "needs the labels",
        ),
        (
            with_container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}]),
            "fieldRef",
            "give it with --var A=<value>",
        ),
        (
            job_set(
                replicated(pod(container(volumeMounts=[{"name": "model", "mountPath": "/model"}]))),
                volumeClaimPolicies=[{"templates": [{"metadata": {"name": "model"}, "spec": {}}]}],
            ),
            "volumeMounts[0].name",
            "--mount /model=<source>",
        ),
        (with_container(resources={"limits": {"google.com/tpu": 4}}), "google.com/tpu", "needs the labels"),
        (selected(**{"cloud.google.com__gke-accelerator": "rtx8000"}), "gke-accelerator", "is no known accelerator"),
        (job_set(replicated(tpu("2x2", 4), replicas=2)), "replicas", "tpu_vm.slices"),
        (
            job_set(replicated(), {**replicated(), "name": "x", "dependsOn": [{"name": "w", "status": "Complete"}]}),
            "dependsOn[0].status",
            "starts after another has ended",
        ),
        (
            job_set(replicated(activeDeadlineSeconds=60), replicated(activeDeadlineSeconds=90)),
            "replicatedJobs[1].template.spec.activeDeadlineSeconds",
            "differs from the first's",
        ),
        (
            mounted({"csi": {**GCS["csi"], "volumeAttributes": {"bucketName": "_"}}}),
            "bucketName",
            "means every bucket: --mount /data=gs://<bucket>",
        ),
        (mounted({"persistentVolumeClaim": {"claimName": "c"}}, "data"), "mountPath", "must be an absolute path"),
        *(
            (mounted(volume), "readOnly", "must be true or false")
            for volume in (
                {"persistentVolumeClaim": {"claimName": "c", "readOnly": "sometimes"}},
                {"csi": {**GCS["csi"], "readOnly": "sometimes"}},
            )
        ),
        (
            at_paths({"emptyDir": {}}, {"mountPath": "/a"}, {"mountPath": "/a/"}),
            "volumeMounts[1].name",
            "is at /a, where",
        ),
        (with_container(args=["--out=gs://<BUCKET>/run"]), "args", '"<BUCKET>" is a placeholder'),
        (with_container(env=[{"name": "A", "value": "gs://YOUR_BUCKET/a"}]), "env[0].value", "is a placeholder"),
        (job_set(replicated(), replicated(pod(container(command=["b"])))), "command", "differs from the first's"),
        (of_kubeflow("TFJob", "tfReplicaSpecs", Worker={}, PS={"replicas": 1}), "PS", "nodes of another kind"),
        (of_kubeflow("MPIJob", "mpiReplicaSpecs", Worker={"replicas": 2}, Launcher={}), "Launcher", "by MPI"),
        (job(pod(hostPID=True)), "hostPID", "do not see"),
        (job(podTemplate={}), "", ""),
        (job(backoffLimits=1), "backoffLimits", "did you mean backoffLimit"),
        (with_container(image="${IMAGE}"), "image", "--var IMAGE=<value>"),
    ],
)
def test_what_stops(document: Json, field: str, said: str) -> None:
    stops = found_in(document).report.stops
    assert not said or any(field in entry.field and said in entry.text for entry in stops), [e.text for e in stops]


def test_choices_of_the_user() -> None:
    document = mounted({"hostPath": {"path": "/mnt/data"}}, readOnly=True)
    document["spec"]["template"]["spec"]["containers"][0] |= {"image": "${IMG}", "command": None, "args": ["--a"]}
    values = values_of(
        document,
        variables={"IMG": IMAGE, "ENTRYPOINT": "python train.py"},
        mounts={"/data": "gs://acme", "/more": "volume://x"},
    )
    assert values["image"] == IMAGE and values["command"] == ["python", "train.py", "--a"]
    mounts = [{"source": "gs://acme", "path": "/data", "read_only": True}, {"source": "volume://x", "path": "/more"}]
    assert values["mounts"] == mounts
    assert values_of(job(), image="other.example/x:2")["image"] == "other.example/x:2"


def test_values_that_the_user_gives() -> None:
    at_node = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    of_map = {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}
    values = values_of(with_container(env=[at_node, of_map], args=["$(A)"]), variables={"A": "one", "B": "two"})
    assert values["env"] == {"A": "one", "B": "two"} and values["command"][-1] == "one"
    claimed = job_set(
        replicated(pod(container(volumeMounts=[{"name": "model", "mountPath": "/model", "readOnly": True}]))),
        volumeClaimPolicies=[{"templates": [{"metadata": {"name": "model"}, "spec": {}}]}],
    )
    mounts = [{"source": "gs://acme", "path": "/model", "read_only": True}]
    assert values_of(claimed, mounts={"/model": "gs://acme"})["mounts"] == mounts


def test_a_variable_of_what_is_left_out_needs_no_value() -> None:
    document = job(pod(serviceAccountName="${SA}", subdomain="s-$JOB", schedulerName="{{ SCHEDULER }}"))
    document["metadata"] |= {
        "namespace": "$NS",
        "annotations": {"gke-gcsfuse/memory-limit": "${LIMIT}"},
        "labels": {"kueue.x-k8s.io/queue-name": "${QUEUE}", "team": "${TEAM}"},
    }
    found = found_in(document)
    assert [entry.field for entry in found.report.stops] == ["metadata.labels.team"]
    found = found_in(document, variables={"TEAM": "vision"})
    assert not found.report.stops and found.values == {**values_of(job(pod())), "labels": {"team": "vision"}}


def test_a_variable_that_is_asked_for_is_not_judged() -> None:
    limits = {"cpu": "${CPUS}", "memory": "${MEMORY}"}
    mounts = [{"name": "a", "mountPath": "${DATA}"}]
    volumes = [{"name": "a", "persistentVolumeClaim": {"claimName": "a"}}]
    document = job(
        pod(container(resources={"limits": limits}, volumeMounts=mounts), volumes=volumes),
        backoffLimit="${TRIES}",
        completions="${COUNT}",
    )
    found = found_in(document)
    assert len(found.report.stops) == 6  # one for each variable, and the line that names all
    assert {entry.kind for entry in found.report.stops} == {"decision"}
    said = ["; ".join(entry.why) for entry in found.report.stops[:-1]]
    assert all(re.fullmatch(r"holds .*; give it with --var \w+=<value>", each) for each in said), said
    assert not [entry.text for entry in found.report.entries if "are not all there" in entry.text]
    given = {"CPUS": "4", "MEMORY": "8Gi", "DATA": "/data", "TRIES": "2", "COUNT": "3"}
    values = values_of(document, variables=given)
    assert (values["cpus"], values["memory_mib"], values["retries"], values["tasks"]) == (4, 8192, 2, 3)


def test_a_template_may_fill_its_command_too() -> None:
    script = "OUT=$PLACE; for I in a b; do run $I $HOME $OUT $TOKEN; done"
    document = job(
        pod(
            container(command=["bash", "-c", script], env=[{"name": "TOKEN", "value": "x"}]), serviceAccountName="${SA}"
        )
    )
    field = "spec.template.spec.containers[0].command"
    found = found_in(document, variables={"SA": "trainer"})
    said = next(entry for entry in found.report.entries if entry.field == field)
    assert said.kind == "decision" and not said.open
    assert "reads PLACE, which nothing here sets" in said.text and said.text.endswith("--var PLACE=<value>")
    found = found_in(document, variables={"SA": "trainer", "PLACE": "gs://acme"})
    assert found.values["command"][-1].startswith("OUT=gs://acme;")
    assert next(entry for entry in found.report.entries if entry.field == field).kind == "kept"
    found = found_in(document)
    assert not found.report.stops
    assert "reads PLACE" in next(entry for entry in found.report.entries if entry.field == field).text
    document["spec"]["template"]["spec"].pop("serviceAccountName")
    assert next(entry for entry in found_in(document).report.entries if entry.field == field).kind == "kept"


def test_programs_of_a_pytorch_job_find_their_rank() -> None:
    document = of_kubeflow("PyTorchJob", "pytorchReplicaSpecs", Master={}, Worker={"replicas": 1})
    for name in ("Master", "Worker"):
        spec = document["spec"]["pytorchReplicaSpecs"][name]["template"]["spec"]
        spec["containers"][0]["command"] = ["sh", "-c", "echo $RANK of $WORLD_SIZE at $MASTER_ADDR"]
    path = {"PATH": "/usr/bin:/bin"}
    own = {
        **path,
        "ACCEL_NODE_COUNT": "2",
        "ACCEL_NODE_INDEX_FROM": "JOB_COMPLETION_INDEX",
        "JOB_COMPLETION_INDEX": "1",
    }
    done = subprocess.run(values_of(document)["command"], env=own, capture_output=True, text=True, check=True)
    assert done.stdout == "1 of 2 at 127.0.0.1\n"
    for name in ("Master", "Worker"):
        spec = document["spec"]["pytorchReplicaSpecs"][name]["template"]["spec"]
        spec["containers"][0]["command"] = ["torchrun", "train.py"]
    assert values_of(document)["command"] == ["torchrun", "train.py"]


def test_launchers_of_a_pytorch_job_are_told_their_rank() -> None:
    document = of_kubeflow("PyTorchJob", "pytorchReplicaSpecs", Worker={"replicas": 2})
    container_ = document["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    launch = ["python", "-m", "torch.distributed.launch", "--nnodes=$(WORLD_SIZE)", "--node_rank=$(RANK)", "a b.py"]
    container_["command"] = ["echo", *launch[1:]]
    own = {"PATH": "/usr/bin:/bin", "ACCEL_NODE_COUNT": "2", "ACCEL_NODE_INDEX_FROM": "N", "N": "1"}
    done = subprocess.run(values_of(document)["command"], env=own, capture_output=True, text=True, check=True)
    assert done.stdout == "-m torch.distributed.launch --nnodes=2 --node_rank=1 a b.py\n"
    container_["command"] = launch[:3]
    assert values_of(document)["command"] == launch[:3]
    container_["command"] = ["bash", "-c", "torchrun --nnodes $WORLD_SIZE train.py"]
    assert "export WORLD_SIZE=" in values_of(document)["command"][-1]


@pytest.mark.parametrize(
    "value, said",
    [
        ("train-w-0-0.train", "10.0.0.1"),
        ("train-w-0-0.train:3389", "10.0.0.1:3389"),
        ("train-w-0-1.train", "train-w-0-1.train"),
        ("train-w-1-0.train", "train-w-1-0.train"),
        ("train-0", "train-0"),
    ],
)
def test_the_first_pods_name_is_the_main_nodes_address(value: str, said: str) -> None:
    spec = pod(container(command=["sh", "-c", "echo $MAIN"], env=[{"name": "MAIN", "value": value}]))
    values = values_of(job_set(replicated(spec, completions=2, parallelism=2)))
    own = {"PATH": "/usr/bin:/bin", "ACCEL_MAIN_ADDRESS_FROM": "MASTER_ADDR", "MASTER_ADDR": "10.0.0.1"}
    done = subprocess.run(values["command"], env={**own, **values.get("env", {})}, capture_output=True, check=True)
    assert done.stdout.decode() == f"{said}\n"


def test_a_command_that_names_a_pod() -> None:
    found = found_in(with_container(args=["--coordinator=train-0.train"]))
    assert "names a pod" in next(entry.text for entry in found.report.entries if entry.field.endswith("args"))


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"LR": "0.1", "a.py": "x\ny\n"}}
SPEC = {"accessModes": ["ReadWriteOnce"]}
CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": SPEC}


def test_objects_beside_a_job() -> None:
    document = with_container(
        env=[{"name": "RATE", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "LR"}}}],
        envFrom=[{"configMapRef": {"name": "c"}}],
    )
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"clusterIP": "None"}}
    odd = {"apiVersion": "x/v1", "kind": "Odd", "metadata": {"name": "o"}}
    found = found_in(CONFIG, document, CLAIM, service)
    assert not found.report.stops and found.values["env"] == {"LR": "0.1", "RATE": "0.1"}
    by_field = {entry.field: entry for entry in found.report.entries}
    assert (
        by_field["ConfigMap/c.data.a.py"].kind == "decision"
        and "into the job file" in by_field["ConfigMap/c.data.LR"].text
    )
    assert by_field["PersistentVolumeClaim/data.spec.accessModes"].kind == "decision"
    assert by_field["Service/s.spec.clusterIP"].kind == "changed"
    assert "0.1" not in by_field["ConfigMap/c.data.LR"].text
    assert {entry.field for entry in found_in(document, CONFIG, odd).report.of("refused")} == {
        "Odd/o.apiVersion", "Odd/o.kind", "Odd/o.metadata.name",
    }  # fmt: skip
    with pytest.raises(BadInput, match=r"holds 2 jobs \(train, train\)"):
        found_in(document, document)
    listed = {"apiVersion": "v1", "kind": "List", "items": [CONFIG, document]}
    assert found_in(listed).values == found.values


def test_nodes_with_gpus_of_which_none_is_asked_for() -> None:
    found = found_in(SHAPES["nodes with GPUs of which none is asked for"][0])
    label = next(entry for entry in found.report.entries if entry.field.endswith("gke-accelerator"))
    assert label.kind == "decision" and "the container asks for none" in label.text


def entry_of(document: Json, field: str) -> Entry:
    """The report's entry of the first field that ends so."""
    return next(each for each in found_in(document).report.entries if each.field.endswith(field))


@pytest.mark.parametrize(
    "document, field, kind, said",
    [
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container()]}},
            "spec.restartPolicy",
            "changed",
            "retries: 0",
        ),
        (SHAPES["a deadline of tasks"][0], "activeDeadlineSeconds", "decision", "is of all tasks and attempts"),
        (SHAPES["a job set without backoffLimit"][0], "backoffLimit", "changed", "six times more"),
        (SHAPES["a job set of one pod that starts again"][0], "backoffLimit", "decision", "retries: 5"),
        (SHAPES["a job set of one pod that starts again"][0], "maxRestarts", "decision", "retries: 5"),
        (SHAPES["a folder at two paths"][0], "volumeMounts[1].mountPath", "decision", "is the folder /a too"),
        (SHAPES["two folders of a volume"][0], "volumeMounts[1].mountPath", "changed", "which the command makes"),
        (
            job_set(replicated(), {**replicated(), "name": "x", "dependsOn": [{"name": "w", "status": "Ready"}]}),
            "dependsOn[0].status",
            "decision",
            "start together",
        ),
        (SHAPES["rounded up"][0], "limits.cpu", "changed", "cpus: 1"),
        (SHAPES["a folder that is larger than the disk"][0], "ephemeral-storage", "changed", "disk_gib: 20"),
        (selected(accelerator="fast"), "nodeSelector.accelerator", "decision", "chooses nodes by a label"),
        (SHAPES["an elastic PyTorchJob"][0], "maxRestarts", "kept", "env.PET_MAX_RESTARTS"),
        (SHAPES["an elastic PyTorchJob"][0], "rdzvBackend", "changed", "docs/nodes.md"),
        (SHAPES["an elastic PyTorchJob"][0], "minReplicas", "decision", "how many nodes"),
        (
            mounted({"persistentVolumeClaim": {"claimName": "c"}}, "data"),
            "persistentVolumeClaim.claimName",
            "decision",
            "is a claim",
        ),
        (
            job_set(
                replicated(
                    {**tpu("4x4", 4), "nodeSelector": {"cloud.google.com/gke-tpu-topology": "4x4"}}, completions=4
                )
            ),
            "completions",
            "decision",
            "a slice that is not known",
        ),
    ],
)
def test_what_is_said(document: Json, field: str, kind: str, said: str) -> None:
    entry = entry_of(document, field)
    assert (entry.kind, said in entry.text) == (kind, True), entry.text


def test_objects_beside_a_job_that_run_without_end() -> None:
    server = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "rendezvous"},
        "spec": {"replicas": 1},
    }
    stops = found_in(server, job()).report.stops
    assert {entry.field.split(".")[0] for entry in stops} == {"Deployment/rendezvous"}
    assert "start it by itself, and take it out of the file" in stops[0].text


INDEX = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}


def printed(document: Json, **own: str) -> str:
    """What the job's command prints with its own variables and those given."""
    values = values_of(document)
    environment = {"PATH": "/usr/bin:/bin", **own, **values.get("env", {})}
    return subprocess.run(values["command"], env=environment, capture_output=True, text=True, check=True).stdout


def test_variables_of_variables_that_only_a_container_knows() -> None:
    env = [
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
        {"name": "SHARD", "valueFrom": INDEX},
        {"name": "RUN", "value": "a b"},
        {"name": "HEADER", "value": "Bearer $(TOKEN)"},
        {"name": "OUT", "value": "/out/$(RUN)/$(SHARD) $$(SHARD) $(LATER)"},
        {"name": "LATER", "value": "$(OUT)!"},
    ]
    document = with_container(command=["sh", "-c", 'echo "$HEADER $OUT $LATER"'], env=env)
    out = "/out/a b/3 $(SHARD) $(LATER)"
    assert printed(document, TOKEN="it's", JOB_COMPLETION_INDEX="3") == f"Bearer it's {out} {out}!\n"
    assert entry_of(document, "env[4].value").kind == "changed"


def test_a_variable_that_is_set_twice() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)0"}, {"name": "A", "value": "$(A)2"}]
    assert values_of(with_container(env=env))["env"] == {"B": "10", "A": "12"}


def test_dollars_beside_a_variable_that_only_a_container_knows() -> None:
    args = ["$(JOB_COMPLETION_INDEX)", "$$(JOB_COMPLETION_INDEX)", "$$(LR)", "$(LR)", "$(NONE)"]
    document = with_container(command=["echo"], args=args, env=[{"name": "LR", "value": "it's"}])
    assert printed(document, JOB_COMPLETION_INDEX="3") == "3 $(JOB_COMPLETION_INDEX) $(LR) it's $(NONE)\n"


def test_numbers_of_the_pods_of_several_jobs() -> None:
    reads = container(command=["sh", "-c", "echo $JOB_COMPLETION_INDEX"])
    told = container(env=[{"name": "N", "valueFrom": INDEX}])
    for first, field in ((reads, "command"), (told, "fieldPath")):
        entry = entry_of(job_set(replicated(pod(first), replicas=2, completions=2)), field)
        assert entry.kind == "decision" and "counts all 4 nodes" in entry.text
        assert entry_of(job_set(replicated(pod(first), completions=4)), field).kind != "decision"


def with_workers(value: str, *arguments: str, **replicas: Json) -> Json:
    """A PyTorchJob whose pods have a variable HOST."""
    first = container(command=["sh", "-c", "echo $HOST", *arguments], env=[{"name": "HOST", "value": value}])
    return of_kubeflow(
        "PyTorchJob",
        "pytorchReplicaSpecs",
        **{name: {"template": {"spec": pod(first)}, **each} for name, each in replicas.items()},
    )


def test_the_first_worker_is_the_main_node_where_no_master_is() -> None:
    own = {"ACCEL_MAIN_ADDRESS_FROM": "MAIN", "MAIN": "10.0.0.1"}
    assert printed(with_workers("train-worker-0", Worker={"replicas": 2}), **own) == "10.0.0.1\n"
    both = with_workers("train-worker-0", Master={}, Worker={"replicas": 2})
    assert printed(both, **own) == "train-worker-0\n"
    assert "names a pod" in entry_of(both, "Master.template.spec.containers[0].env[0].value").text
    assert "names a pod" in entry_of(with_workers("x", "--host=train-worker-0", Worker={}), "command").text
    for other in ("gs://acme/train-worker-0", "pre-train-worker-0"):
        assert printed(with_workers(other, Worker={}), **own) == f"{other}\n"
        assert entry_of(with_workers(other, Worker={}), "env[0].value").kind == "kept"


def test_processes_of_a_pytorch_job_are_counted() -> None:
    document = with_workers("x", Master={}, Worker={"replicas": 1})
    document["spec"]["nprocPerNode"] = "4"
    for each in document["spec"]["pytorchReplicaSpecs"].values():
        each["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "echo $WORLD_SIZE"]
    assert printed(document, ACCEL_NODE_COUNT="2") == "8\n"


def test_the_name_of_a_secret_is_shown() -> None:
    document = mounted({"secret": {"secretName": "certs"}}, "/etc/certs")
    said = " ".join(entry.text for entry in found_in(document).report.stops)
    assert "--mount /etc/certs=<source>" in said and "***" not in said.replace("secretName '***'", "")


def test_groups_of_pods_beside_a_job() -> None:
    group = {"apiVersion": "scheduling.k8s.io/v1alpha1", "kind": "Workload", "metadata": {"name": "g"}}
    assert not found_in(group, job()).report.stops


def test_lines_are_those_of_the_file() -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n" + dumped(job(backoffLimits=1))
    found = kubernetes.import_job("job.yaml", text, ImportOptions())
    line = next(n for n, each in enumerate(text.decode().splitlines(), 1) if "backoffLimits" in each)
    assert found.report.places["spec.backoffLimits"] == f"job.yaml:{line}"
    with pytest.raises(BadInput, match="render it first"):
        kubernetes.import_job("a.yaml", b"apiVersion: v1\nkind: Pod\nmetadata: {{ .x }}: {{ y }}\n", ImportOptions())


def objects(value: Any) -> Iterator[Json]:
    """Every mapping of a document."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner)


def open_mapping(document: Json, inside: Json) -> bool:
    """Whether an object is one of texts by name, such as labels."""
    return any(
        inside is each.get(key)
        for each in objects(document)
        for key in ("labels", "annotations", "nodeSelector", "data")
    )


@pytest.mark.parametrize("what", SHAPES)
def test_each_leaf_is_in_one_class_and_no_unknown_one_is_kept(what: str) -> None:
    """The law: every leaf has an entry; a key that nobody knows is never kept, wherever it stands."""
    document, _ = SHAPES[what]
    plain = json.loads(json.dumps(document))
    found = found_in(plain)
    assert {path for path, _ in leaves(plain)} <= {entry.field for entry in found.report.entries}
    for number in range(len(list(objects(plain)))):
        changed = copy.deepcopy(plain)
        inside = list(objects(changed))[number]
        inside["zzUnknown"] = {"deep": "zz1"} if number % 2 else "zz1"
        again = found_in(changed)
        entries = [entry for entry in again.report.entries if "zzUnknown" in entry.field]
        assert entries, inside
        if not open_mapping(changed, inside):
            assert all(entry.kind != "kept" for entry in entries), [entry.text for entry in entries]
        elif any(entry.kind == "kept" for entry in entries):
            assert again.values != found.values


@pytest.mark.parametrize("what", SHAPES)
def test_a_value_is_kept_only_where_the_job_has_it(what: str) -> None:
    """Another text in the place of one that is kept makes another job, or another report."""
    document, _ = SHAPES[what]
    plain = json.loads(json.dumps(document))
    found = found_in(plain)
    said = [(entry.kind, entry.why) for entry in found.report.entries]
    for entry in [
        each for each in found.report.entries if each.kind == "kept" and each.given and isinstance(each.old, str)
    ]:
        if entry.why or entry.old in ("", None) or entry.field in ("apiVersion", "kind"):
            continue
        changed = copy.deepcopy(plain)
        for inside in objects(changed):
            for key, value in inside.items():
                if str(value) == entry.old and not isinstance(value, bool) and entry.field.endswith(key):
                    inside[key] = f"{value}7" if entry.old.isdigit() else f"{value}-other"
        if changed == plain:
            continue
        try:
            again = found_in(changed)
        except BadInput:
            continue
        assert again.values != found.values or [(e.kind, e.why) for e in again.report.entries] != said, entry.text


@pytest.mark.parametrize(
    "text, number",
    [("500m", "0.5"), ("16Gi", str(2**34)), ("1e3", "1000"), ("2", "2"), ("1.5k", "1500"), ("12E", str(12 * 10**18))],
)
def test_quantities(text: str, number: str) -> None:
    assert quantity(text) == pytest.approx(float(number))
    assert all(quantity(wrong) is None for wrong in ("", "x", "1GiB", "--1", "1 2", None, True, ["1"]))


TAKEN = [
    what
    for what in SHAPES
    if what in ("a job", "indexed", "nodes", "a job set", "a PyTorchJob", "env", "a secret", "CPUs and memory", "a GPU")
    or what in ("a TPU", "a TPU of hosts", "shared memory", "a bucket", "grace", "labels", "a folder for a while")
]  # fmt: skip


@pytest.mark.parametrize("what", TAKEN)
def test_a_cluster_takes_what_was_imported(what: str) -> None:
    values = values_of(SHAPES[what][0])
    values.get("accelerator", {}).pop("type", None) if what == "a GPU" else None
    if "accelerator" not in values:
        values = {"cpus": 2, "memory_mib": 16_384, **values}
    spec = gke_target.spec_of(**{"command": [], **values})
    first = spec["containers"][0]
    assert first["image"] == IMAGE and bool(first.get("command")) == bool(values.get("command"))


def test_as_a_command(home: Path, invoke: Callable[..., Result]) -> None:
    document = with_container(resources=GPU, env=[{"name": "A", "value": "1"}])
    Path("job.yaml").write_bytes(dumped(CONFIG, document))
    done = invoke("import", "job.yaml")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.startswith("job.yaml: is read as kubernetes: a Kubernetes manifest, by apiVersion, kind\n")
    assert "submit it with --to a target of kind gke" in done.stderr
    assert yaml.safe_load(done.stdout)["accelerator"] == {"count": 1}
    Path("job.json").write_text(json.dumps(document))
    assert yaml.safe_load(invoke("import", "job.json").stdout) == yaml.safe_load(done.stdout)
    assert invoke("import", "kubernetes", "job.yaml", "--capacity", "spot").exit_code == 2
