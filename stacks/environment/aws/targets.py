"""The queues of an AWS section as targets, and their layout in SSM parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from accel.contract.target_layout import without_definitions
from accel.contract.targets import AwsBatchDefinition, AwsBatchEnvironment, AwsBatchTarget, write
from accel.diagnostics.findings import Finding
from accel.rules.aws import targets as rules
from accel.rules.aws.clusters import efa_cards

if TYPE_CHECKING:
    from .config import Aws

LONGEST_ARN = "x" * 128
"""The maximum length of a part's ARN: 68 characters before the name of an environment in the longest region, and a key
of 40 with its suffix."""


def text(document: Any) -> str:
    return json.dumps(document, sort_keys=True)


def split(section: Aws, allowances: Any) -> bool:
    """Return whether a target might be too large for one parameter, before anything exists: by the longest names."""
    return any(len(text(target)) > rules.MOST for target in _longest(section, allowances).values())


def findings(section: Aws, allowances: Any) -> list[Finding]:
    targets = _longest(section, allowances)
    first = next(iter(targets.values()), dict[str, Any]())
    return rules.sizes(
        {name: len(text(without_definitions(target))) for name, target in targets.items()},
        {name: len(text(each)) for name, each in first.get("definitions", {}).items()},
    )


def _longest(section: Aws, allowances: Any) -> dict[str, dict[str, Any]]:
    arns: dict[str, Any] = {
        **dict.fromkeys(
            ("queue", "log_group", "job_role", "execution_role", "claim_table", "code_bucket"), LONGEST_ARN
        ),
        "environments": dict.fromkeys(section.environments, LONGEST_ARN),
        "definitions": dict.fromkeys(section.definitions, LONGEST_ARN),
        "allowances": allowances,
    }
    return write({name: aws_batch(section, name, LONGEST_ARN, arns) for name in section.queues})


def aws_batch(section: Aws, queue: str, prefix: str, arns: Mapping[str, Any]) -> AwsBatchTarget:
    """Return a queue as a target. `arns`: those of its parts, by kind."""
    return AwsBatchTarget(
        region=section.region,
        queue_arn=arns["queue"],
        environments=[
            _environment(section, key, arns["environments"][key]) for key in section.queues[queue].environments
        ],
        definitions={name: _definition(section, name, arn) for name, arn in arns["definitions"].items()},
        definition_prefix=prefix,
        log_group=arns["log_group"],
        job_role_arn=arns["job_role"],
        execution_role_arn=arns["execution_role"],
        claim_table=arns["claim_table"],
        shares=section.queues[queue].shares,
        allowances=arns.get("allowances"),
        code_bucket=arns["code_bucket"],
        closed=section.closed or None,
        budget_stops=any(budget.stop for budget in section.budgets.values()),
    )


def _environment(section: Aws, key: str, arn: str) -> AwsBatchEnvironment:
    spec = section.environments[key]
    return AwsBatchEnvironment(
        name=key,
        arn=arn,
        capacity=spec.capacity,
        instance_types=spec.instance_types,
        max_vcpus=spec.max_vcpus,
        disk_gib=spec.instance.disk_gib,
        close=spec.placement == "cluster" or spec.in_block,
        efa_interfaces=len(efa_cards(spec.instance_types)) if spec.efa else 0,
        local_nvme=spec.local_nvme,
        buckets=spec.buckets,
    )


def _definition(section: Aws, name: str, arn: str) -> AwsBatchDefinition:
    spec = section.definitions[name]
    return AwsBatchDefinition(
        arn=arn,
        image=spec.image,
        vcpus=spec.vcpus,
        memory_mib=spec.memory_mib,
        gpus=spec.gpus,
        shm_mib=spec.shm_mib,
        secrets=spec.secrets,
        attempts=spec.attempts,
        timeout_s=spec.timeout_s,
    )
