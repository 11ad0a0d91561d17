"""Where a deployed stack and its clouds differ, as far as it matters to jobs."""

from datetime import UTC, datetime, timedelta

from accel.clouds.google.api import Google
from accel.diagnostics.errors import NotFound

from ...environment.images_lock import read
from ..quota.judgement import judge
from ..stack_files import ReadStack
from . import state as drift_state
from .aws import drift_of_aws
from .differences import Drift, in_order
from .google import When, drift_of_google
from .nodes import drift_of_clusters
from .targets import drift_of_targets


def drift_of_stack(stack: ReadStack, within: timedelta, properties: bool = True, quota: bool = True) -> list[Drift]:
    """Return everything that differs of one deployed stack.

    Raises NotFound where it was not deployed, and NoCredentials, CloudSilent.
    """
    now, folder = datetime.now(UTC), stack.path.parent
    state = drift_state.read_state(folder, stack.name)
    if not state.resources:
        raise NotFound(f"stack {stack.name} has no resources", "deploy it first: pulumi up")
    drifts = drift_of_targets(state)
    if properties:
        budgets = state.outputs.get("budgets") or state.outputs.get("gcp_budgets")
        fix = drift_state.AFTER_BUDGET if budgets else drift_state.SET_AGAIN
        drifts += drift_state.changed_properties(folder, stack.name, fix)
    if state.pending:
        text = "an update is under way, or was cut off"
        drifts.append(Drift("update", stack.name, "unknown", text, "wait for it; else stacks recover"))
    if quota:
        drifts += drift_of_quotas(stack)
    if stack.environment.aws:
        drifts += drift_of_aws(state, read(folder), now, within)
    if stack.environment.gcp:
        drifts += drift_of_google(state, Google(), When(now, within)) + drift_of_clusters(state, now)
    return in_order(drifts)


def drift_of_quotas(stack: ReadStack) -> list[Drift]:
    """Return the quotas that are smaller than what the stack can use at most, or that could not be read."""
    fixes = {"over": "stacks quota --request writes the request", "unknown": "stacks quota says what it needs"}
    return [
        Drift(
            "quota",
            f"{row.need.quota.code if row.need.quota else row.need.label} in {row.need.region}",
            "broken" if row.word == "over" else "unknown",
            row.reason,
            fixes[row.word],
        )
        for judgement in judge(stack)
        for row in judgement.verdicts
        if row.word in fixes
    ]
