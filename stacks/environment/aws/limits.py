"""The size of an AWS section against AWS's limits, before anything is created."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from accel.budget.spending import Limit
from accel.catalog.aws_partitions import partition_of
from accel.diagnostics.findings import Finding, under
from accel.rules.aws import limits as rules
from components.aws.budget_function import SETTINGS
from components.aws.budget_stop import settings_text
from components.aws.compute_environment import own_scripts
from components.aws.gpu_metrics import cloudwatch_agent_script, gpu_namespace
from components.aws.launch_template import user_data

if TYPE_CHECKING:
    from .config import Aws

_SUFFIX = "-0123456"
"""Suffix that auto-naming appends to a key."""
_NAMESPACE = f"{'p' * 30}/{'s' * 30}"
"""Longest namespace of metrics, <project>/<stack>: the real one is unknown when a file is validated."""


def findings(section: Aws) -> list[Finding]:
    found: list[Finding] = []
    for name, spec in section.environments.items():
        if spec.adopted is None or "launch_template" not in spec.adopted.keeps:
            scripts = [*spec.instance.user_data, *own_scripts(spec), *_agent(section, name)]
            found += under(f"environments.{name}", rules.user_data(len(user_data(scripts).encode())))
    queues = [_arn(section, "job-queue", name) for name in section.queues]
    if section.monitoring and section.monitoring.waiting_jobs:
        size = _size({"NAMESPACE": _NAMESPACE, "QUEUES": json.dumps(queues)})
        found += rules.function_environment(size, "monitoring.waiting_jobs")
    if any(budget.stop for budget in section.budgets.values()):
        found += rules.function_environment(_size({SETTINGS: _stop(section, queues)}), "budget_stop")
    return found


def _agent(section: Aws, environment: str) -> list[str]:
    watched = section.monitoring
    if watched is None or not watched.gpu_metrics:
        return []
    return [cloudwatch_agent_script(gpu_namespace(_NAMESPACE, environment), watched.gpu_interval_s)]


def _stop(section: Aws, queues: list[str]) -> str:
    stops = {key: spec for key, spec in section.budgets.items() if spec.stop}
    told = {spec.recipients.sns_topic_arn for spec in stops.values() if spec.recipients.sns_topic_arn}
    known: dict[str, Any] = {
        "account": "0" * 12,
        "table": f"claims{_SUFFIX}",
        "names": {key: f"{key}{_SUFFIX}" for key in stops},
        "topics": {key: f"{_arn(section, 'topic', key)}-stop" for key in stops},
        "queues": queues,
        "environments": [_arn(section, "compute-environment", name) for name in section.environments],
        "told": [*told, _arn(section, "topic", "budget-stop-done")],
    }
    limits = {
        key: Limit(key, spec.stop.at, spec.stop.basis, spec.stop.running_after_s)
        for key, spec in stops.items()
        if spec.stop
    }
    return settings_text(section.region, limits, known)


def _arn(section: Aws, kind: str, key: str) -> str:
    return f"arn:{partition_of(section.region).name}:batch:{section.region}:{'0' * 12}:{kind}/{key}{_SUFFIX}"


def _size(variables: dict[str, str]) -> int:
    return len(json.dumps(variables, separators=(",", ":")).encode())
