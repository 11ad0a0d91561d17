"""Where a deployed stack and its clouds differ, as far as it matters to jobs."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from accel.clouds.aws.responses import part
from accel.clouds.google.api import Google
from accel.contract.published import SOURCE
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound
from jobs.client import published_targets

from ...environment.images_lock import read
from ..quota.judgement import judge
from ..stack_files import ReadStack
from . import state as drift_state
from .aws import drift_of_aws
from .differences import Drift, attempt_check, in_order
from .google import When, drift_of_google
from .nodes import drift_of_clusters
from .state import State

TARGETS_FIX = "pulumi up --refresh publishes what the stack has"
BUCKET_TARGETS = "accel:gcp:BucketTargets"
SSM_TARGETS = "accel:aws:PublishedTargets"
BORNE = (CloudRefused, CloudSilent, NotFound)
"""A private cluster is silent to whoever is outside it."""


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


def drift_of_targets(state: State) -> list[Drift]:
    """Targets that jobs would read otherwise than the stack has them, that are missing, and that it has no longer."""
    promised = part(state.outputs, "targets")
    found: list[Drift] = []
    for source, names in sorted(_sources(state, promised).items()):
        wanted = {name: {key: value for key, value in part(promised, name).items() if key != SOURCE} for name in names}
        found += attempt_check(source, lambda source=source, wanted=wanted: _compared(source, wanted), BORNE)
    return found


def _sources(state: State, promised: Mapping[str, Any]) -> dict[str, list[str]]:
    """Where each target is published, as `jobs --targets` takes it."""
    paths = [str(each.outputs.get("path")) for each in state.of(SSM_TARGETS)]
    buckets = {
        each.name.removeprefix(f"{parent.name}-"): str(parent.outputs.get("source"))
        for parent in state.of(BUCKET_TARGETS)
        for each in state.of("gcp:storage/bucketObject:BucketObject")
        if each.parent == parent.name
    }
    found: dict[str, list[str]] = {}
    for name in promised:
        target = part(promised, name)
        match target.get("kind"):
            case "aws-batch":
                source = f"ssm:{target['region']}{paths[0]}" if paths else None
            case "gke":
                source = "configmap:{project}/{location}/{cluster}/{namespace}".format_map(target)
            case _:
                source = buckets.get(name)
        if source:
            found.setdefault(source, []).append(name)
    return found


def _compared(source: str, wanted: Mapping[str, Any]) -> Iterator[Drift]:
    try:
        documents = published_targets.load(source, refresh=True)
    except NotFound:
        published: Mapping[str, Any] = {}
    else:
        if documents.age_s:  # an older copy: nobody answered
            raise CloudSilent("; ".join(documents.warnings))
        published = documents.by_name
    for name, target in wanted.items():
        if name not in published:
            yield Drift("target", name, "broken", f"is not published in {source}", TARGETS_FIX)
        elif published[name] != target:
            fields = _differing(target, published[name])
            yield Drift("target", name, "changed", f"is published otherwise in {source}: {fields}", TARGETS_FIX)
    for name in sorted(published.keys() - wanted.keys()):
        text = f"is published in {source}, and the stack has no such target"
        yield Drift("target", name, "changed", text, "remove it there: jobs would still be sent to it")


def _differing(wanted: Any, published: Any) -> str:
    if not (isinstance(wanted, dict) and isinstance(published, dict)):
        return "it is no target"
    names: set[str] = {*wanted, *published}  # pyright: ignore[reportUnknownVariableType]
    return ", ".join(sorted(name for name in names if wanted.get(name) != published.get(name)))  # pyright: ignore
