"""Limits of Vertex AI on jobs: calls a minute, and GPUs and CPUs at a time."""

import time
from collections import deque

from accel.catalog.accelerators import accelerators
from accel.catalog.quotas import quota_for

from .. import PROJECT, PROJECT_NUMBER
from ..errors import ApiError
from ..world import Call, Json, World
from .machines import vcpus

SUBMISSIONS = 60
"""Calls a minute and region, for jobs and long-running operations: creating and deleting custom jobs, tuning jobs and
the like. Source: https://docs.cloud.google.com/vertex-ai/docs/quotas"""
_METRIC = "Job or LRO submission requests"


def count_submission(call: Call) -> None:
    """Count a call. Refuse the 61st of a minute (World.minute_s long). Form of the words:
    https://github.com/GoogleCloudPlatform/python-docs-samples/issues/10242; the metric's name: the quotas' page and
    https://docs.cloud.google.com/monitoring/api/metrics_gcp_a_b (job_or_lro_submission_requests)."""
    now = time.monotonic()
    calls = call.world.calls.setdefault(f"aiplatform/{call.location}/submissions", deque())
    while calls and calls[0] <= now - call.world.minute_s:
        calls.popleft()
    if len(calls) >= SUBMISSIONS:
        limit, service = f"{_METRIC} per minute per region", "aiplatform.googleapis.com"
        said = f"Quota exceeded for quota metric '{_METRIC}' and limit '{limit}' of service '{service}' for consumer"
        about = {"service": service, "quota_metric": f"{service}/job_or_lro_submission_requests",
                 "quota_location": call.location, "quota_limit_value": str(SUBMISSIONS),
                 "consumer": f"projects/{PROJECT_NUMBER}"}  # fmt: skip
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED",
                "domain": "googleapis.com", "metadata": about}  # fmt: skip
        raise ApiError(429, f"{said} 'project_number:{PROJECT_NUMBER}'.", details=[info])
    calls.append(now)


def quota_use(spec: Json) -> dict[str, int]:
    """Return how much of each quota a job holds. Flex-start counts as Spot does: the docs' schedule-jobs-dws."""
    spot = spec.get("scheduling", {}).get("strategy") in ("SPOT", "FLEX_START")
    found: dict[str, int] = {}
    if spec.get("persistentResourceId"):
        return found
    for pool in filter(None, spec["workerPoolSpecs"]):
        machine, replicas = pool["machineSpec"], int(pool.get("replicaCount") or 0)
        name = next((each.name for each in accelerators().values()
                     if each.vertex_name == machine.get("acceleratorType")), "")  # fmt: skip
        quota = quota_for("gcp", name, spot, service="aiplatform") if name else None
        held = {quota.code: int(machine["acceleratorCount"])} if quota else {}
        if cpus := vcpus(machine["machineType"]):
            held[f"custom_model_training_{'preemptible_' if spot else ''}cpus"] = cpus
        for metric, count in held.items():
            found[metric] = found.get(metric, 0) + count * replicas
    return found


def over(world: World, region: str, spec: Json, held: dict[str, int]) -> list[str]:
    """Return the quotas that a job would exceed in addition to what is held."""
    limits = {metric: world.quota.get(f"aiplatform/{region}/{metric}") for metric in quota_use(spec)}
    return [
        metric
        for metric, count in quota_use(spec).items()
        if (limit := limits[metric]) is not None and count + held.get(metric, 0) > limit
    ]


def within(call: Call, spec: Json) -> None:
    """Refuse a job that exceeds a quota by itself. One that has to wait for others is queued:
    https://docs.cloud.google.com/vertex-ai/docs/training/understanding-training-service. Wording:
    https://github.com/GoogleCloudPlatform/stable-diffusion-on-gcp/issues/12."""
    if metrics := over(call.world, call.location, spec, {}):
        named = ", ".join(f"aiplatform.googleapis.com/{metric}" for metric in metrics)
        raise ApiError(429, f"The following quota metrics exceed quota limits: {named}")


def quota_in_use(world: World, region: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in world.below("aiplatform", f"projects/{PROJECT}/locations/{region}/customJobs"):
        if item["state"] in ("JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_CANCELLING"):
            for metric, count in quota_use(item["jobSpec"]).items():
                found[metric] = found.get(metric, 0) + count
    return found
