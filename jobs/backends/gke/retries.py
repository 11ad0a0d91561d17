"""Retry policies: which failures are retried.

Kubernetes sets the condition DisruptionTarget on a pod that it or the cloud took away: a preempted Spot node, a drain,
a preemption. Source: https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions

retries   lost_retries   what is retried
none      none           lost pods, without end
n         none           n failures; lost pods without end, not counted
none, 0   m              m lost pods; a failure is final
n         0              n failures; a lost pod is final
n         m              n + m of both kinds: a Job has one count

A pod is also lost if its command says so by its exit code (accel/rules/jobs/exit_codes.py), with two exceptions. A pod
whose time is over also gets SIGTERM, and ends with the same code: with a `timeout_s` that is a failure. And a machine
that is not fit may be the only one: if lost pods are retried without end, that is a failure too.
"""

from typing import Any, Literal

from accel.rules.jobs import exit_codes

from .labels import CONTAINER

Action = Literal["FailJob", "FailIndex", "Ignore", "Count"]


def lost_exit_codes(timed: bool) -> list[int]:
    """Return the exit codes of a lost pod. `timed`: the pod has a time limit."""
    return [exit_codes.BAD_NODE] if timed else list(exit_codes.LOST)


def of_job(
    failures: int | None, lost: int | None, *, array: bool = False, nodes: int = 1, timed: bool = False
) -> dict[str, Any]:
    """Count for each task of an array. `nodes` fail together, and count so."""
    final: Action = "FailIndex" if array else "FailJob"
    limit = ((failures or 0) + (lost or 0)) * nodes
    rules = _lost("Ignore" if lost is None else "Count" if lost else final, lost is None, timed)
    if lost and not failures:
        rules.append(_exits(final, "NotIn", [0]))
    elif limit:
        rules.append(_exits(final, "In", list(exit_codes.CANNOT_RUN)))
    return {
        "backoffLimitPerIndex" if array else "backoffLimit": limit,
        "podFailurePolicy": {"rules": rules},
    }


def of_jobset(failures: int | None, lost: int | None, *, timed: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the failure policy of a JobSet, whose nodes restart together, and the part of its Job. The Job ends with
    the first pod that fails; its reason shows the JobSet whether the pod was lost. A Job that ran out of time was
    cancelled (see submit.py). Source: https://jobset.sigs.k8s.io/docs/tasks/failure_policy/"""
    lost_action = "RestartJobSetAndIgnoreMaxRestarts" if lost is None else "RestartJobSet" if lost else "FailJobSet"
    rules = [
        {"name": "cancelled", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]},
        {"name": "lost", "action": lost_action, "onJobFailureReasons": ["PodFailurePolicy"]},
    ]
    if lost and not failures:
        rules.append({"name": "failed", "action": "FailJobSet", "onJobFailureReasons": ["BackoffLimitExceeded"]})
    policy = {"maxRestarts": (failures or 0) + (lost or 0), "rules": rules}
    return policy, {"backoffLimit": 0, "podFailurePolicy": {"rules": _lost("FailJob", lost is None, timed)}}


def _lost(action: Action, endless: bool, timed: bool) -> list[dict[str, Any]]:
    taken = {"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    codes = [code for code in lost_exit_codes(timed) if not (endless and code == exit_codes.BAD_NODE)]
    return [taken, _exits(action, "In", codes)] if codes else [taken]


def _exits(action: Action, operator: str, codes: list[int]) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"containerName": CONTAINER, "operator": operator, "values": codes}}
