"""Whether the account's and the project's quotas hold an environment at its largest."""

from dataclasses import dataclass
from typing import Any

from accel.quota import Pool, Verdict

from ...environment.config import Aws
from ..stack_files import ReadStack, project_of
from .aws import judge_aws
from .pools import judge_pools


@dataclass(frozen=True)
class Judgement:
    """What the quotas say of one environment; of planned machines where `stack` is None. `whose` names the account or
    project."""

    stack: str | None
    whose: str | None
    verdicts: tuple[Verdict, ...]


def judge(stack: ReadStack) -> list[Judgement]:
    """Read what the needs of one environment are about, and compare: one entry a cloud.

    Raises NoCredentials, CloudSilent, and BadInput for credentials of another account than the environment's. Google's
    quotas are unknown where its project cannot be asked.
    """
    judgements: list[Judgement] = []
    aws, gcp, project = stack.environment.aws, stack.environment.gcp, project_of(stack.path)
    if aws is not None:
        account = aws.account_id
        verdicts = judge_aws(aws.region, pools(aws), account_id=account, project=project, stack=stack.name)
        judgements.append(Judgement(stack.name, f"account {account}" if account else None, verdicts))
    if gcp is not None and (verdicts := judge_pools(gcp, stack.name, project)):
        judgements.append(Judgement(stack.name, f"project {gcp.project}", verdicts))
    return judgements


def pools(section: Aws) -> list[Pool]:
    """Return the compute environments as plain values. A disabled one starts nothing, and keeps its min_vcpus."""
    return [
        Pool(
            name=name,
            region=section.region,
            spot=spec.capacity == "spot",
            instance_types=tuple(spec.instance_types),
            max_vcpus=spec.max_vcpus if spec.state == "ENABLED" else spec.min_vcpus,
            exceeds=spec.state == "ENABLED" and (spec.capacity, spec.allocation_strategy) != ("on-demand", "BEST_FIT"),
        )
        for name, spec in section.environments.items()
    ]


def row_of(stack: str | None, verdict: Verdict) -> dict[str, Any]:
    """Return one line of the table and of -o json; numbers are in `unit`."""
    need, quota = verdict.need, verdict.need.quota
    return {
        "stack": stack,
        "quota": quota.code if quota else None,
        "service": quota.service if quota else None,
        "name": quota.name if quota else need.label,
        "region": need.region,
        "unit": quota.unit if quota else None,
        "need": _whole(need.amount),
        "by": {name: _whole(value) for name, value in need.by.items()},
        "extra": dict(need.extra),
        "use": _whole(verdict.use.total) if verdict.use else None,
        "own": _whole(verdict.use.own) if verdict.use else None,
        "limit": _whole(verdict.limit),
        "total": _whole(verdict.total),
        "verdict": verdict.word,
        "reason": verdict.reason,
        "source": quota.source if quota else None,
    }


def _whole(value: float | None) -> float | int | None:
    return int(value) if value is not None and value == int(value) else value
