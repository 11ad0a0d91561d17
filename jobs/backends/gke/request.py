"""A job as the objects that the cluster will get: a Job, with a Service where its nodes need one, or a JobSet. Pure."""

from collections.abc import Iterable
from typing import Any

from accel.contract import variables
from accel.contract.gke import GkeTarget
from accel.diagnostics.collector import Diagnostics
from accel.rules import Finding
from accel.rules.gke import jobs
from accel.rules.jobs import containers, image_cuda, launchers, placeholders

from ...model import sweep_tasks
from ...model.blocks import Gke
from ...model.job import Job, unused_blocks
from ...model.keys import content_hash
from .. import grace
from ..base import Request
from . import labels as marks
from . import nodes, pod, retries
from .labels import KIND
from .machines import PoolChoice, choose

MAX_RUN = "provreq.kueue.x-k8s.io/maxRunDurationSeconds"
"""Source: https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest"""
MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def render(job: Job, name: str, key: str, target_name: str, target: GkeTarget) -> Request:
    """The request for a job. Raises BadInputs with every field that cannot be honoured."""
    diagnostics = Diagnostics(
        [*_unsupported(job), *pod.faults(job, target)],
        [*unused_blocks(job, KIND), *sweep_tasks.cap_warnings(job, KIND)],
    )
    choice = choose(job, target, diagnostics)
    diagnostics.add(_findings(job, target, choice))
    if choice and choice.nodes > 1 and choice.slice and not target.jobset:
        diagnostics.error(
            f"accelerator.type: {choice.slice.written} has {choice.nodes} hosts, and the cluster has no JobSet"
        )
    if diagnostics.errors or choice is None:
        raise diagnostics.refusal()
    objects = _objects(job, marks.object_name(name), target_name, target, choice, key)
    diagnostics.add(jobs.size(objects))
    diagnostics.raise_errors()
    scope = marks.Scope(target.project, target.location, target.cluster, target.namespace)
    return request(target_name, key, str(scope), objects, diagnostics.warnings)


def request(target_name: str, key: str, scope: str, objects: list[dict[str, Any]], warnings: list[str]) -> Request:
    """The request for objects, the last of which is the job; it gets the hash of them all."""
    metadata = objects[-1]["metadata"]
    metadata["annotations"][marks.SPEC] = content_hash(objects)
    return Request(KIND, target_name, metadata["name"], key, {"scope": scope, "objects": objects}, tuple(warnings))


def _findings(job: Job, target: GkeTarget, choice: PoolChoice | None) -> Iterable[Finding]:
    found = jobs.labels(job.labels) + jobs.tasks(job.tasks)
    found += containers.environment(job.env) + jobs.environment({**job.env, **job.secrets})
    # A local image is a folder, which no push changes.
    if job.image and not job.image.startswith(containers.LOCAL):
        found += containers.image(job.image) + placeholders.value("image", job.image)
        gpus = {pool.accelerator: None for pool in (choice.pools if choice else ()) if pool.accelerator}
        found += image_cuda.image(job.image, gpus)
    if choice:
        nodes = 1 if choice.slice else choice.nodes
        found += launchers.check(job.command, job.env, launchers.Shape(nodes, choice.size.gpus))
        grace_s = job.gke.grace_s if job.gke else None
        found += jobs.grace(grace_s, choice.spot)
        found += jobs.retries(job.retries, job.lost_retries, choice.nodes, target.jobset)
    return found


def _unsupported(job: Job) -> list[str]:
    return [] if job.image else ["image: is missing; a GKE target has no definition that would name one"]


def _objects(
    job: Job, name: str, target_name: str, target: GkeTarget, choice: PoolChoice, key: str
) -> list[dict[str, Any]]:
    """What is made, in this order; the last one is the job."""
    labels = {**job.labels, marks.OWNER: marks.JOBS}
    annotations = {marks.NAME: job.name, marks.TARGET: target_name, marks.KEY: key}
    head = labels | _queued(job, target)
    several = choice.nodes > 1
    jobset = several and target.jobset
    template: dict[str, Any] = {
        "metadata": {"labels": {**labels, marks.OBJECT: name}, "annotations": pod.annotations(job, target)},
        "spec": pod.template(job, target, choice, _environment(job, name, choice, jobset), nodes.fields(choice)),
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
    return [nodes.service(name, {**labels, marks.OBJECT: name}), made]


def _queued(job: Job, target: GkeTarget) -> dict[str, str]:
    """Kueue's labels of the job itself."""
    if target.queue is None:
        return {}
    priority = job.gke.priority if job.gke else None
    return {marks.QUEUE: target.queue} | ({marks.PRIORITY: priority} if priority else {})


def _shape(job: Job, choice: PoolChoice, target: GkeTarget, metadata: dict[str, Any]) -> dict[str, Any]:
    """How many pods, and whether each has an index."""
    if choice.nodes > 1:
        return {"completionMode": "Indexed", "completions": choice.nodes, "parallelism": choice.nodes}
    if job.tasks == 1:
        return {"completions": 1, "parallelism": 1}
    parallelism = min(job.parallelism or job.tasks, job.tasks)
    if target.queue and parallelism > 1:
        # Fewer tasks at once rather than none while the queue has less room than for all.
        metadata["annotations"][MIN_PARALLELISM] = "1"
    return {"completionMode": "Indexed", "completions": job.tasks, "parallelism": parallelism}


def _jobset(
    job: Job, metadata: dict[str, Any], template: dict[str, Any], choice: PoolChoice, rest: dict[str, Any]
) -> dict[str, Any]:
    """All nodes or none: where one ends badly, all start again."""
    policy, attempts = retries.of_jobset(job.retries, job.lost_retries, timed=job.timeout_s is not None)
    if choice.slice:
        # A slice is a node pool: no two jobs may share one.
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
    """What every pod is told; the job file's own variables win over torchrun's."""
    # Kubernetes sets the index in the pods of an Indexed Job only.
    array = job.tasks > 1
    ours = {
        variables.JOB_NAME: job.name,
        variables.TASK_COUNT: str(job.tasks),
        variables.INDEX_FROM: variables.INDEX_VARIABLE[KIND] if array else variables.TASK_INDEX,
    }
    if not array:
        ours[variables.TASK_INDEX] = "0"
    ours |= grace.environment(KIND, pod.grace_s(job, choice))
    return nodes.environment(name, choice, jobset) | job.env | ours | sweep_tasks.environment(job)
