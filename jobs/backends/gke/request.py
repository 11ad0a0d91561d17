"""A job as objects for the cluster: a Job, with a Service if its nodes need one, or a JobSet. Pure.

A pod of an Indexed Job has the host name <job>-<index>, which DNS resolves once a headless Service of the pod's
subdomain selects it; a JobSet creates such a Service itself. Source:
https://kubernetes.io/docs/tasks/job/job-with-pod-to-pod-communication/
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accel.contract import variables
from accel.contract.gke import GkeTarget
from accel.diagnostics.collector import Diagnostics
from accel.diagnostics.messages import did_you_mean
from accel.rules.gke import jobs
from accel.rules.gke.jobs import SPOT_GRACE_S
from accel.rules.jobs import containers, image_cuda, launchers, placeholders

from ...model import sweep_tasks
from ...model.blocks import Gke
from ...model.fields import Mount
from ...model.job import Job, unused_blocks
from ...model.keys import content_hash
from .. import grace, tasks
from ..base import Request
from . import labels as marks
from . import retries
from .labels import KIND
from .machines import CHIPS, GCSFUSE, GPUS, PoolChoice, choose, scheduling

MAX_RUN = "provreq.kueue.x-k8s.io/maxRunDurationSeconds"
"""Source: https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest"""
MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
RESTRICTED = "restricted"
SHM = "/dev/shm"  # noqa: S108 - the mount point that programs look for

_SECRET = re.compile(r"(?P<name>[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)/(?P<key>[A-Za-z0-9._-]{1,253})")
_VOLUME = re.compile(r"volume://(?P<key>[^/\s]+)(?P<folder>/\S*)?")
_BUCKET = re.compile(r"gs://(?P<bucket>[a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?P<folder>/\S*)?")


@dataclass(frozen=True)
class Draft:
    """Job during rendering, and its pools if any fit."""

    job: Job
    target: GkeTarget
    choice: PoolChoice | None


def render(job: Job, name: str, key: str, target_name: str, target: GkeTarget) -> Request:
    diagnostics = Diagnostics()
    choice = choose(job, target, diagnostics)
    draft = Draft(job, target, choice)
    for check in CHECKS:
        check(draft, diagnostics)
    if diagnostics.errors or choice is None:
        raise diagnostics.refusal()
    objects = _objects(job, marks.object_name(name), target_name, target, choice, key)
    diagnostics.add(jobs.size(objects))
    diagnostics.raise_errors()
    scope = marks.Scope(target.project, target.location, target.cluster, target.namespace)
    return request(target_name, key, str(scope), objects, diagnostics.warnings)


def request(target_name: str, key: str, scope: str, objects: list[dict[str, Any]], warnings: list[str]) -> Request:
    """Add the hash of all objects to the last one, which is the job."""
    metadata = objects[-1]["metadata"]
    metadata["annotations"][marks.SPEC] = content_hash(objects)
    return Request(KIND, target_name, metadata["name"], key, {"scope": scope, "objects": objects}, tuple(warnings))


def _image(draft: Draft, diagnostics: Diagnostics) -> None:
    image = draft.job.image
    if not image:
        diagnostics.error("image: is missing; a GKE target has no definition that would name one")
    elif not image.startswith(containers.LOCAL):  # which is a folder that no push changes
        gpus = {pool.accelerator: None for pool in (draft.choice.pools if draft.choice else ()) if pool.accelerator}
        diagnostics.add(containers.image(image) + placeholders.value("image", image) + image_cuda.image(image, gpus))


def _secrets(draft: Draft, diagnostics: Diagnostics) -> None:
    for name, reference in sorted(draft.job.secrets.items()):
        if not _SECRET.fullmatch(reference):
            # The text is not shown, because it may be the secret itself.
            namespace = draft.target.namespace
            diagnostics.error(f"secrets.{name}: must be <name>/<key> of a Secret in namespace {namespace}")


def _mounts(draft: Draft, diagnostics: Diagnostics) -> None:
    for i, mount in enumerate(draft.job.mounts):
        diagnostics.errors += _mount_faults(f"mounts[{i}].source", mount, draft.target)
        if mount.path == SHM:
            diagnostics.error(f"mounts[{i}].path: {SHM} is the pod's shared memory; shm_mib gives its size")


def _user(draft: Draft, diagnostics: Diagnostics) -> None:
    target, user = draft.target, draft.job.gke.user if draft.job.gke else None
    if target.pod_security == RESTRICTED and user == 0:
        diagnostics.error(
            f"gke.user: 0 is root, whom namespace {target.namespace} does not take; write another number, or have "
            "`pod_security: baseline` written for the namespace in its environment"
        )


def _priority(draft: Draft, diagnostics: Diagnostics) -> None:
    target, priority = draft.target, draft.job.gke.priority if draft.job.gke else None
    if priority and priority not in target.priorities:
        near = did_you_mean(priority, target.priorities) if target.priorities else "; the target has none"
        diagnostics.error(f'gke.priority: unknown priority "{priority}"{near}')


def _unused(draft: Draft, diagnostics: Diagnostics) -> None:
    diagnostics.warnings += [*unused_blocks(draft.job, KIND), *sweep_tasks.cap_warnings(draft.job, KIND)]


def _labels(draft: Draft, diagnostics: Diagnostics) -> None:
    diagnostics.add(jobs.labels(draft.job.labels) + jobs.tasks(draft.job.tasks))


def _variables(draft: Draft, diagnostics: Diagnostics) -> None:
    job = draft.job
    diagnostics.add(containers.environment(job.env) + jobs.environment({**job.env, **job.secrets}))


def _nodes(draft: Draft, diagnostics: Diagnostics) -> None:
    job, choice = draft.job, draft.choice
    if choice is None:
        return
    nodes = 1 if choice.slice else choice.nodes
    diagnostics.add(launchers.check(job.command, job.env, launchers.Shape(nodes, choice.size.gpus)))
    diagnostics.add(jobs.grace(job.gke.grace_s if job.gke else None, choice.spot))
    diagnostics.add(jobs.retries(job.retries, job.lost_retries, choice.nodes, draft.target.jobset))
    if choice.nodes > 1 and choice.slice and not draft.target.jobset:
        diagnostics.error(
            f"accelerator.type: {choice.slice.written} has {choice.nodes} hosts, and the cluster has no JobSet"
        )


def _mount_faults(field: str, mount: Mount, target: GkeTarget) -> list[str]:
    volume, bucket = _VOLUME.fullmatch(mount.source), _BUCKET.fullmatch(mount.source)
    if volume is None and bucket is None:
        return [f'{field}: "{mount.source}" is neither volume://<key>[/folder] nor gs://<bucket>[/folder]']
    parts = ((volume or bucket or {})["folder"] or "").split("/")
    if ".." in parts or "," in mount.source:
        return [f'{field}: "{mount.source}": a folder has neither .. nor a comma']
    if volume and volume["key"] not in target.volumes:
        near = did_you_mean(volume["key"], list(target.volumes)) if target.volumes else "; the target has none"
        return [f'{field}: unknown volume "{volume["key"]}"{near}']
    if volume and target.volumes[volume["key"]].read_only and not mount.read_only:
        return [f"{field}: volume {volume['key']} is read only: write read_only: true"]
    return []


CHECKS = (_image, _secrets, _mounts, _user, _priority, _unused, _labels, _variables, _nodes)
"""In the order of the messages."""


def _objects(
    job: Job, name: str, target_name: str, target: GkeTarget, choice: PoolChoice, key: str
) -> list[dict[str, Any]]:
    """Order the objects by creation. The last one is the job."""
    labels = {**job.labels, marks.OWNER: marks.JOBS}
    annotations = {marks.NAME: job.name, marks.TARGET: target_name, marks.KEY: key}
    head = labels | _queued(job, target)
    several = choice.nodes > 1
    jobset = several and target.jobset
    template: dict[str, Any] = {
        "metadata": {"labels": {**labels, marks.OBJECT: name}, "annotations": _pod_annotations(job, target)},
        "spec": _pod_template(job, target, choice, _environment(job, name, choice, jobset), _index_fields(choice)),
    }
    if any(pool.queued for pool in choice.pools) and job.timeout_s:
        annotations[MAX_RUN] = str(job.timeout_s)
    metadata: dict[str, Any] = {"name": name, "labels": head, "annotations": annotations}
    keep_s = (job.gke or Gke()).keep_s
    suspend = {"suspend": True} if target.queue else {}
    if jobset:
        return [_jobset(job, metadata, template, choice, {"ttlSecondsAfterFinished": keep_s, **suspend})]
    spec: dict[str, Any] = {"template": template, "ttlSecondsAfterFinished": keep_s, **suspend}
    spec |= _shape(job, choice, target, metadata)
    spec |= retries.of_job(
        job.retries, job.lost_retries, array=job.tasks > 1, nodes=choice.nodes, timed=job.timeout_s is not None
    )
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    if not several:
        return [made]
    template["spec"]["subdomain"] = name
    return [_service(name, {**labels, marks.OBJECT: name}), made]


def _queued(job: Job, target: GkeTarget) -> dict[str, str]:
    if target.queue is None:
        return {}
    priority = job.gke.priority if job.gke else None
    return {marks.QUEUE: target.queue} | ({marks.PRIORITY: priority} if priority else {})


def _shape(job: Job, choice: PoolChoice, target: GkeTarget, metadata: dict[str, Any]) -> dict[str, Any]:
    if choice.nodes > 1:
        return {"completionMode": "Indexed", "completions": choice.nodes, "parallelism": choice.nodes}
    if job.tasks == 1:
        return {"completions": 1, "parallelism": 1}
    parallelism = min(job.parallelism or job.tasks, job.tasks)
    if target.queue and parallelism > 1:
        # Fewer tasks at once rather than none while the queue has no room for all.
        metadata["annotations"][MIN_PARALLELISM] = "1"
    return {"completionMode": "Indexed", "completions": job.tasks, "parallelism": parallelism}


def _jobset(
    job: Job, metadata: dict[str, Any], template: dict[str, Any], choice: PoolChoice, rest: dict[str, Any]
) -> dict[str, Any]:
    """Return a JobSet, which runs all nodes or none: if one fails, all start again."""
    policy, attempts = retries.of_jobset(job.retries, job.lost_retries, timed=job.timeout_s is not None)
    if choice.slice:
        # A slice is a node pool, which two jobs must not share.
        metadata["annotations"][EXCLUSIVE] = "cloud.google.com/gke-nodepool"
    child = {
        "completionMode": "Indexed",
        "completions": choice.nodes,
        "parallelism": choice.nodes,
        "template": template,
        **attempts,
    }
    replicated = {"name": marks.REPLICATED, "replicas": 1, "template": {"spec": child}}
    spec = {
        "failurePolicy": policy,
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True, "subdomain": metadata["name"]},
        "replicatedJobs": [replicated],
        **rest,
    }
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}


def _environment(job: Job, name: str, choice: PoolChoice, jobset: bool) -> dict[str, str]:
    """Let the job file's own variables win over torchrun's."""
    ours = tasks.environment(job, KIND) | grace.environment(KIND, _grace_s(job, choice))
    return _node_environment(name, choice, jobset) | job.env | ours | sweep_tasks.environment(job)


MAIN_PORT = 29500
"""Port of torchrun's examples: https://docs.pytorch.org/docs/stable/elastic/run.html"""

INDEX_FIELD = f"metadata.annotations['{marks.INDEX}']"


def _node_environment(name: str, choice: PoolChoice, jobset: bool) -> dict[str, str]:
    """Return those of torch.distributed, torchrun (PET_ before an option's name) and a TPU slice."""
    if choice.nodes == 1 and not jobset:
        return {}
    hosts = [f"{_host(name, index, jobset)}.{name}" for index in range(choice.nodes)]
    found = {
        variables.NODE_COUNT: str(choice.nodes),
        **variables.NODE_VARIABLES[marks.KIND],
        "MASTER_ADDR": hosts[0],
        "MASTER_PORT": str(MAIN_PORT),
    }
    if choice.slice:
        # GKE sets these two itself if a Job asks for TPUs and has a subdomain; here they do not depend on it.
        found["TPU_WORKER_HOSTNAMES"] = ",".join(hosts)
    else:
        found |= {
            "PET_NNODES": str(choice.nodes),
            "PET_NPROC_PER_NODE": str(choice.size.gpus or 1),
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": f"{hosts[0]}:{MAIN_PORT}",
            "PET_RDZV_ID": name,
        }
    return found


def _index_fields(choice: PoolChoice) -> dict[str, str]:
    if choice.slice and choice.nodes > 1:
        return {"TPU_WORKER_ID": INDEX_FIELD}
    return {"PET_NODE_RANK": INDEX_FIELD} if choice.nodes > 1 else {}


def _host(name: str, index: int, jobset: bool) -> str:
    return f"{name}-{marks.REPLICATED}-0-{index}" if jobset else f"{name}-{index}"


def _service(name: str, labels: dict[str, str]) -> dict[str, Any]:
    """Resolve names before pods are ready, because pods wait for each other."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": labels},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {marks.OBJECT: name}},
    }


GRACE_S = 30
GROUP = 1000
"""Group that owns volumes, if a job may not be root and does not name its user."""
_UNSURE = re.compile(r"\$[$(]")


def _pod_template(
    job: Job, target: GkeTarget, choice: PoolChoice, environment: Mapping[str, str], fields: Mapping[str, str]
) -> dict[str, Any]:
    """Take `environment` as plain variables, `fields` as those that hold a field of the pod."""
    volumes, mounts = _volumes(job, target)
    container: dict[str, Any] = {
        "name": marks.CONTAINER,
        "image": job.image,
        "env": _env(job, environment, fields),
        "resources": _resources(choice),
        "securityContext": {"allowPrivilegeEscalation": False}
        | ({"capabilities": {"drop": ["ALL"]}} if target.pod_security == RESTRICTED else {}),
        # This puts the end of the output into the pod's status, also where nobody kept the logs.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if job.command:
        container["command"] = [literal(argument) for argument in sweep_tasks.command(job, job.command, KIND)]
    if mounts:
        container["volumeMounts"] = mounts
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,  # workload identity uses the node's metadata server
        "containers": [container],
        "restartPolicy": "Never",
        "securityContext": _security(job, target),
        "serviceAccountName": target.service_account,
        "terminationGracePeriodSeconds": _grace_s(job, choice),
        **scheduling(choice),
    }
    if volumes:
        spec["volumes"] = volumes
    if job.timeout_s is not None:
        # The Job's own deadline would include the wait for nodes, and treat all attempts as one.
        spec["activeDeadlineSeconds"] = job.timeout_s
    if job.gke and job.gke.priority and target.queue is None:
        spec["priorityClassName"] = job.gke.priority
    return spec


def _security(job: Job, target: GkeTarget) -> dict[str, Any]:
    """Meet what the namespace takes: https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    user = job.gke.user if job.gke else None
    made: dict[str, Any] = {"seccompProfile": {"type": "RuntimeDefault"}}
    if target.pod_security == RESTRICTED:
        made["runAsNonRoot"] = True
    if user is not None:
        made |= {"runAsUser": user, "runAsGroup": user}
    if job.mounts and (user or target.pod_security == RESTRICTED):
        # No check of every file of a volume that already belongs to the group.
        made |= {"fsGroup": user or GROUP, "fsGroupChangePolicy": "OnRootMismatch"}
    return made


def _pod_annotations(job: Job, target: GkeTarget) -> dict[str, str]:
    found = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    named = [volume["key"] for mount in job.mounts if (volume := _VOLUME.fullmatch(mount.source))]
    of_volumes = {name: text for key in named for name, text in target.volumes[key].annotations.items()}
    if of_volumes or any(_BUCKET.fullmatch(mount.source) for mount in job.mounts):
        # A limit of 0 means none. Source:
        # https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-sidecar
        found |= {
            "gke-gcsfuse/volumes": "true",
            "gke-gcsfuse/cpu-request": f"{GCSFUSE.cpu_m}m",
            "gke-gcsfuse/cpu-limit": "0",
            "gke-gcsfuse/memory-request": f"{GCSFUSE.memory_mib}Mi",
            "gke-gcsfuse/memory-limit": "0",
            "gke-gcsfuse/ephemeral-storage-request": f"{GCSFUSE.disk_gib}Gi",
            "gke-gcsfuse/ephemeral-storage-limit": "0",
            **of_volumes,
        }
    return found


def _grace_s(job: Job, choice: PoolChoice) -> int:
    if job.gke and job.gke.grace_s:
        return job.gke.grace_s
    return SPOT_GRACE_S if choice.spot else GRACE_S


def literal(text: str) -> str:
    """Escape text that must stay literal: Kubernetes expands variables in $(NAME), and reads $$ as one $. Source:
    https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/"""
    return text.replace("$", "$$") if _UNSURE.search(text) else text


def _env(job: Job, environment: Mapping[str, str], fields: Mapping[str, str]) -> list[dict[str, Any]]:
    plain = {name: {"name": name, "value": literal(environment[name])} for name in environment}
    from_pod = {
        name: {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in fields.items()
        if name not in environment
    }
    secret: dict[str, dict[str, Any]] = {}
    for name, reference in job.secrets.items():
        key = (_SECRET.fullmatch(reference) or {"name": "", "key": ""})["key"]
        source = {"name": reference.partition("/")[0], "key": key}
        secret[name] = {"name": name, "valueFrom": {"secretKeyRef": source}}
    merged = plain | from_pod | secret
    return [merged[name] for name in sorted(merged)]


def _resources(choice: PoolChoice) -> dict[str, Any]:
    """Return the resources. GPUs and chips are limits only, from which Kubernetes derives the requests; memory is the
    same in both, so that no pod is killed for another one's use."""
    size = choice.size
    requests = {"cpu": f"{size.cpu_m}m", "memory": f"{size.memory_mib}Mi"}
    limits = {"memory": f"{size.memory_mib}Mi"}
    if size.disk_gib:
        requests["ephemeral-storage"] = f"{size.disk_gib}Gi"
    limits |= {name: str(count) for name, count in ((GPUS, size.gpus), (CHIPS, size.chips)) if count}
    return {"limits": limits, "requests": requests}


def _volumes(job: Job, target: GkeTarget) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    volumes: dict[str, dict[str, Any]] = {}
    mounts: list[dict[str, Any]] = []
    if job.shm_mib or job.accelerator:
        memory = {"medium": "Memory"} | ({"sizeLimit": f"{job.shm_mib}Mi"} if job.shm_mib else {})
        volumes["shm"] = {"name": "shm", "emptyDir": memory}
        mounts.append({"name": "shm", "mountPath": SHM})
    for i, mount in enumerate(job.mounts):
        volume = _VOLUME.fullmatch(mount.source)
        if volume and volume["key"] in target.volumes:
            # A claim that is mounted twice is one volume of the pod.
            claim = target.volumes[volume["key"]].claim
            name = next((n for n, v in volumes.items() if _claim(v) == claim), f"mount-{i}")
            volumes[name] = {"name": name, "persistentVolumeClaim": {"claimName": claim}}
            folder = (volume["folder"] or "").strip("/")
            mounts.append(
                {"name": name, "mountPath": mount.path, "readOnly": mount.read_only}
                | ({"subPath": folder} if folder else {})
            )
        elif bucket := _BUCKET.fullmatch(mount.source):
            volumes[f"mount-{i}"] = _bucket(f"mount-{i}", bucket, mount.read_only)
            mounts.append({"name": f"mount-{i}", "mountPath": mount.path, "readOnly": mount.read_only})
    return list(volumes.values()), mounts


def _claim(volume: Mapping[str, Any]) -> str | None:
    return volume.get("persistentVolumeClaim", {}).get("claimName")


def _bucket(name: str, found: re.Match[str], read_only: bool) -> dict[str, Any]:
    """Follow https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-ephemeral."""
    folder = (found["folder"] or "").strip("/")
    options = ["implicit-dirs", *([f"only-dir={folder}"] if folder else [])]
    attributes = {"bucketName": found["bucket"], "mountOptions": ",".join(options)}
    driver = {"driver": "gcsfuse.csi.storage.gke.io", "readOnly": read_only, "volumeAttributes": attributes}
    return {"name": name, "csi": driver}
