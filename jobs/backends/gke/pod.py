"""One pod of a job: its container, what it mounts, and what it is told."""

import re
from collections.abc import Mapping
from typing import Any

from accel.contract.gke import GkeTarget
from accel.diagnostics.messages import did_you_mean
from accel.rules.gke.jobs import SPOT_GRACE_S

from ...model import sweep_tasks
from ...model.fields import Mount
from ...model.job import Job
from . import labels
from .machines import CHIPS, GCSFUSE, GPUS, PoolChoice, scheduling

GRACE_S = 30
GROUP = 1000
"""That volumes belong to, where a job may not be root and does not say as whom it runs."""
RESTRICTED = "restricted"
SHM = "/dev/shm"  # noqa: S108 - the mount point that programs look for

_SECRET = re.compile(r"(?P<name>[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)/(?P<key>[A-Za-z0-9._-]{1,253})")
_VOLUME = re.compile(r"volume://(?P<key>[^/\s]+)(?P<folder>/\S*)?")
_BUCKET = re.compile(r"gs://(?P<bucket>[a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?P<folder>/\S*)?")
_UNSURE = re.compile(r"\$[$(]")


def template(
    job: Job, target: GkeTarget, choice: PoolChoice, environment: Mapping[str, str], fields: Mapping[str, str]
) -> dict[str, Any]:
    """The pod template's spec. `environment` are plain variables, `fields` those that hold a field of the pod."""
    volumes, mounts = _volumes(job, target)
    container: dict[str, Any] = {
        "name": labels.CONTAINER,
        "image": job.image,
        "env": _env(job, environment, fields),
        "resources": _resources(choice),
        "securityContext": {"allowPrivilegeEscalation": False}
        | ({"capabilities": {"drop": ["ALL"]}} if target.pod_security == RESTRICTED else {}),
        # The end of the output is then in the pod's status, also where nobody kept the logs.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if job.command:
        container["command"] = [literal(argument) for argument in sweep_tasks.command(job, job.command, labels.KIND)]
    if mounts:
        container["volumeMounts"] = mounts
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,  # workload identity asks the node's metadata server
        "containers": [container],
        "restartPolicy": "Never",
        "securityContext": _security(job, target),
        "serviceAccountName": target.service_account,
        "terminationGracePeriodSeconds": grace_s(job, choice),
        **scheduling(choice),
    }
    if volumes:
        spec["volumes"] = volumes
    if job.timeout_s is not None:
        # The Job's own deadline would count the wait for nodes, and all attempts as one.
        spec["activeDeadlineSeconds"] = job.timeout_s
    if job.gke and job.gke.priority and target.queue is None:
        spec["priorityClassName"] = job.gke.priority
    return spec


def _security(job: Job, target: GkeTarget) -> dict[str, Any]:
    """Of the pod, as its namespace takes it. Source:
    https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    user = job.gke.user if job.gke else None
    made: dict[str, Any] = {"seccompProfile": {"type": "RuntimeDefault"}}
    if target.pod_security == RESTRICTED:
        made["runAsNonRoot"] = True
    if user is not None:
        made |= {"runAsUser": user, "runAsGroup": user}
    if job.mounts and (user or target.pod_security == RESTRICTED):
        # Without a look at every file of a volume that is the group's already.
        made |= {"fsGroup": user or GROUP, "fsGroupChangePolicy": "OnRootMismatch"}
    return made


def annotations(job: Job, target: GkeTarget) -> dict[str, str]:
    """Of the pod."""
    found = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    named = [volume["key"] for mount in job.mounts if (volume := _VOLUME.fullmatch(mount.source))]
    of_volumes = {name: text for key in named for name, text in target.volumes[key].annotations.items()}
    if of_volumes or any(_BUCKET.fullmatch(mount.source) for mount in job.mounts):
        # A limit of 0 is none. Source:
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


def grace_s(job: Job, choice: PoolChoice) -> int:
    """Seconds between SIGTERM and SIGKILL."""
    if job.gke and job.gke.grace_s:
        return job.gke.grace_s
    return SPOT_GRACE_S if choice.spot else GRACE_S


def literal(text: str) -> str:
    """The text as it is: Kubernetes puts variables in for $(NAME), and reads $$ as one $. Source:
    https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/"""
    return text.replace("$", "$$") if _UNSURE.search(text) else text


def faults(job: Job, target: GkeTarget) -> list[str]:
    """Secrets, mounts and a priority that the target does not have."""
    found: list[str] = []
    for name, reference in sorted(job.secrets.items()):
        if not _SECRET.fullmatch(reference):
            # The text is not shown: it may be the secret itself.
            found.append(f"secrets.{name}: must be <name>/<key> of a Secret in namespace {target.namespace}")
    for i, mount in enumerate(job.mounts):
        found += _mount_faults(f"mounts[{i}].source", mount, target)
        if mount.path == SHM:
            found.append(f"mounts[{i}].path: {SHM} is the pod's shared memory; shm_mib gives its size")
    if target.pod_security == RESTRICTED and job.gke and job.gke.user == 0:
        found.append(
            f"gke.user: 0 is root, whom namespace {target.namespace} does not take; write another number, or have "
            "`pod_security: baseline` written for the namespace in its environment"
        )
    priority = job.gke.priority if job.gke else None
    if priority and priority not in target.priorities:
        near = did_you_mean(priority, target.priorities) if target.priorities else "; the target has none"
        found.append(f'gke.priority: unknown priority "{priority}"{near}')
    return found


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
    """GPUs and chips in the limits alone, from which Kubernetes takes the requests; memory the same in both, so that no
    pod is killed for what another one uses."""
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
            # One claim mounted twice is one volume of the pod.
            claim = target.volumes[volume["key"]].claim
            name = next((n for n, v in volumes.items() if part_claim(v) == claim), f"mount-{i}")
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


def part_claim(volume: Mapping[str, Any]) -> str | None:
    """The claim of a pod's volume."""
    return volume.get("persistentVolumeClaim", {}).get("claimName")


def _bucket(name: str, found: re.Match[str], read_only: bool) -> dict[str, Any]:
    """Source: https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-ephemeral"""
    folder = (found["folder"] or "").strip("/")
    options = ["implicit-dirs", *([f"only-dir={folder}"] if folder else [])]
    attributes = {"bucketName": found["bucket"], "mountOptions": ",".join(options)}
    driver = {"driver": "gcsfuse.csi.storage.gke.io", "readOnly": read_only, "volumeAttributes": attributes}
    return {"name": name, "csi": driver}
