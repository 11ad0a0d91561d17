"""Check whether Vertex AI's own quotas, not Compute Engine's, could ever hold a job's machines. Flex-start counts as
Spot does. Metrics are those of accel.catalog.quotas. Sources: https://docs.cloud.google.com/vertex-ai/docs/quotas,
https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/700"""

from collections.abc import Mapping, Sequence
from typing import Any

from accel.catalog.accelerators import accelerators
from accel.catalog.quotas import Quota
from accel.clouds.google.api import Google
from accel.clouds.google.quotas import infos_path, limit_of
from accel.clouds.google.rest import path_segment
from accel.clouds.quota_cache import Limit
from accel.clouds.timeouts import Timing
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound
from accel.json_values import object_at
from accel.quota import GooglePool, google_needs

from ..base import QuotaAnswer
from ..vm import quota as project
from ..vm.quota import QuotaDemand

PREEMPTIBLE = ("SPOT", "FLEX_START")


def check(custom_job: Mapping[str, Any], where: str, region: str, timing: Timing | None = None) -> QuotaAnswer:
    """Check a CustomJob against the quotas of project `where`. A job on a persistent resource needs none."""
    return project.check(where, quota_demands(object_at(custom_job, "jobSpec"), region), timing)


def quota_demands(spec: Mapping[str, Any], region: str) -> list[QuotaDemand]:
    """Return the demands of a CustomJobSpec: accelerators, of all its pools together. CPUs are not checked."""
    if spec.get("persistentResourceId"):
        return []
    strategy = object_at(spec, "scheduling").get("strategy")
    pools = [found for each in spec.get("workerPoolSpecs", []) if (found := _pool(each, region, strategy))]
    what = " and ".join(dict.fromkeys(each.name for each in pools))
    return [QuotaDemand(region, what, tuple(google_needs(pools)))] if pools else []


def _pool(pool: Mapping[str, Any], region: str, strategy: object) -> GooglePool | None:
    machine, replicas = object_at(pool, "machineSpec"), int(pool.get("replicaCount") or 0)
    named = [each.name for each in accelerators().values() if each.vertex_name == machine.get("acceleratorType")]
    count = int(machine.get("acceleratorCount") or 0)
    if not (named and count and replicas):
        return None
    what = f"{replicas} x {machine.get('machineType')}" if replicas > 1 else str(machine.get("machineType"))
    return GooglePool(what, region, named[0], count, replicas, strategy in PREEMPTIBLE, service="aiplatform")


def usage(specs: Sequence[Mapping[str, Any]], region: str) -> dict[str, float]:
    """Return how much of each quota, by its key, these jobs take together."""
    found: dict[str, float] = {}
    for spec in specs:
        for each in quota_demands(spec, region):
            for need in each.needs:
                found[need.label] = found.get(need.label, 0) + need.amount
    return found


def limits(google: Google, where: str, spec: Mapping[str, Any], region: str) -> dict[str, Limit]:
    found: dict[str, Limit] = {}
    for each in quota_demands(spec, region):
        for need in each.needs:
            found[need.label] = _limit(google, where, need.quota, region)
    return found


def _limit(google: Google, where: str, quota: Quota | None, region: str) -> Limit:
    if quota is None or not quota.quota_id:
        return Limit(None, "its id in Cloud Quotas is not known")
    try:
        info = google.get("cloudquotas", f"{infos_path(where, quota.service)}/{path_segment(quota.quota_id)}")
    except (CloudRefused, CloudSilent, NotFound) as error:
        return Limit(None, error.message)
    value = limit_of(info, quota, region)
    return Limit(value, "" if value is not None else f"Cloud Quotas has no value of it for {region}")
