"""Every rule. Apart from the package itself, so that who needs one topic does not load them all."""

from accel.rules import (
    aws_clusters,
    aws_definitions,
    aws_environments,
    aws_fit,
    aws_images,
    aws_jobs,
    aws_monitoring,
    aws_network,
    aws_nodes,
    aws_places,
    aws_queues,
    aws_reservations,
    aws_retries,
    aws_roles,
    aws_shares,
    aws_storage,
    aws_templates,
    aws_types,
    containers,
    gcp_gpus,
    gcp_legacy,
    gcp_machines,
    gcp_pools,
    gcp_tpu,
    gcp_tpu_runtimes,
    gcp_zones,
    names,
    placeholders,
)
from accel.rules.finding import Rule

_TOPICS = (
    names, aws_environments, aws_types, aws_images, aws_roles, aws_queues, aws_shares, aws_definitions, aws_fit,
    aws_retries, aws_jobs, aws_monitoring, aws_network, aws_places, aws_templates, aws_clusters,
    aws_reservations, aws_storage, aws_nodes, containers, placeholders,
    gcp_gpus, gcp_machines, gcp_pools, gcp_zones, gcp_tpu, gcp_tpu_runtimes, gcp_legacy,
)  # fmt: skip

RULES: dict[str, Rule] = {rule.id: rule for topic in _TOPICS for rule in topic.RULES}
"""Every rule by its id. docs/rules.md is this table: `python -m accel.rules > docs/rules.md`."""
