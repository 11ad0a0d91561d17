"""Every rule once."""

from . import (
    ai_platform,
    budgets,
    definitions,
    entry_points,
    environments,
    existing,
    gce_jobs,
    gcp_budgets,
    gcp_capacity,
    gcp_gpus,
    gcp_jobs_ground,
    gcp_tpu_jobs,
    gcp_tpus,
    gcp_vms,
    gke_clusters,
    gke_jobs,
    gke_pools,
    google_batch,
    google_batch_tasks,
    image_cuda,
    kubernetes,
    launchers,
    limits,
    monitoring,
    others,
    places,
    shapes,
    shares,
    vertex,
)
from .case import Case

CASES = (
    environments.CASES
    + definitions.CASES
    + others.CASES
    + places.CASES
    + limits.CASES
    + monitoring.CASES
    + shapes.CASES
    + launchers.CASES
    + existing.CASES
    + shares.CASES
    + gcp_gpus.CASES
    + gcp_tpus.CASES
    + gcp_tpu_jobs.CASES
    + gcp_vms.CASES
    + gcp_jobs_ground.CASES
    + budgets.CASES
    + gcp_budgets.CASES
    + gcp_capacity.CASES
    + gce_jobs.CASES
    + gke_clusters.CASES
    + gke_pools.CASES
    + kubernetes.CASES
    + gke_jobs.CASES
    + vertex.CASES
    + google_batch.CASES
    + google_batch_tasks.CASES
    + ai_platform.CASES
    + image_cuda.CASES
    + entry_points.CASES
)

__all__ = ["CASES", "Case"]
