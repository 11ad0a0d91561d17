"""Targets as they are published, against those that the stack promised when it was deployed last."""

from collections.abc import Iterator, Mapping
from typing import Any

from accel.clouds.aws.responses import part
from accel.contract.published import SOURCE
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound

from .differences import Drift, attempt_check
from .state import State

FIX = "pulumi up --refresh publishes what the stack has"
BUCKET_TARGETS = "accel:gcp:BucketTargets"
SSM_TARGETS = "accel:aws:PublishedTargets"
BORNE = (CloudRefused, CloudSilent, NotFound)
"""A private cluster is silent to whoever is outside it."""


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
    from jobs.client.published_targets import load

    try:
        documents = load(source, refresh=True)
    except NotFound:
        published: Mapping[str, Any] = {}
    else:
        if documents.age_s:  # an older copy: nobody answered
            raise CloudSilent("; ".join(documents.warnings))
        published = documents.by_name
    for name, target in wanted.items():
        if name not in published:
            yield Drift("target", name, "broken", f"is not published in {source}", FIX)
        elif published[name] != target:
            fields = _differing(target, published[name])
            yield Drift("target", name, "changed", f"is published otherwise in {source}: {fields}", FIX)
    for name in sorted(published.keys() - wanted.keys()):
        text = f"is published in {source}, and the stack has no such target"
        yield Drift("target", name, "changed", text, "remove it there: jobs would still be sent to it")


def _differing(wanted: Any, published: Any) -> str:
    if not (isinstance(wanted, dict) and isinstance(published, dict)):
        return "it is no target"
    names: set[str] = {*wanted, *published}  # pyright: ignore[reportUnknownVariableType]
    return ", ".join(sorted(name for name in names if wanted.get(name) != published.get(name)))  # pyright: ignore
