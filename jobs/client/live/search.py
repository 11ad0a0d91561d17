"""Search for the jobs that wait or run now in some places, by requests to the clouds."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from accel.contract.gke import GkeTarget
from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget
from accel.contract.google_vms import GceTarget, TpuVmTarget
from accel.contract.targets import AnyTarget, AwsBatchTarget, LocalTarget, read_one
from accel.diagnostics.errors import JobsError
from accel.json_values import object_at
from accel.threads import in_threads

from .job import Live, ground

AT_ONCE = 16

Where = tuple[str, str | None]
"""A place, and its region where it has one."""
Asked = Callable[[], Iterable[Live]]


def search(
    places: Iterable[Where], documents: Mapping[str, Any], now: datetime | None = None
) -> tuple[list[Live], list[str]]:
    """Return the jobs that may depend on these places, the most hours first, and a line for each place not searched.
    `documents` has targets by name. Lists no other jobs, and raises nothing for a cloud that cannot be read."""
    wanted, at = tuple(places), now or datetime.now(UTC)
    targets, unread = _targets(documents)
    questions = {**_aws(wanted, targets, at), **_others(wanted, targets, at)}
    found: dict[str, Live] = {}
    for what, answer in zip(questions, in_threads(_answer, [*questions.values()], AT_ONCE), strict=True):
        if isinstance(answer, JobsError):
            unread.append(f"{what}: {answer.message}")
        else:
            found |= {job.ref: job for job in answer}
    return sorted(found.values(), key=lambda job: (-(job.hours or 0.0), job.ref)), unread


def _answer(ask: Asked) -> list[Live] | JobsError:
    try:
        return list(ask())
    except JobsError as error:
        return error


def _targets(documents: Mapping[str, Any]) -> tuple[dict[str, AnyTarget], list[str]]:
    found: dict[str, AnyTarget] = {}
    unread: list[str] = []
    for name, document in documents.items():
        try:
            found[name] = read_one(object_at(document))
        except ValidationError:
            unread.append(f"target {name}: this version does not understand it, so its jobs were not looked for")
    return found, unread


def _aws(places: tuple[Where, ...], targets: Mapping[str, AnyTarget], now: datetime) -> dict[str, Asked]:
    """Return one search per region. Jobs of any queue may use an environment, other stacks' included."""
    from .aws import jobs_of

    own = {each.queue_arn: (name, each) for name, each in targets.items() if isinstance(each, AwsBatchTarget)}
    regions = {region for _, region in places if region}
    regions |= {each.region for _, each in own.values() if any(_stands_on(each, place) for place, _ in places)}
    found: dict[str, Asked] = {}
    for region in sorted(regions):
        here = [place.partition(":") for place, within in places if within == region]
        queues = {arn for arn, (_, each) in own.items() if each.region == region}
        queues |= {name for kind, _, name in here if kind == "queue"}
        asked = None if any(kind == "cluster" for kind, _, _ in here) else queues
        found[f"AWS Batch in {region}"] = lambda region=region, asked=asked: jobs_of(region, asked, own, now)
    return found


def _others(places: tuple[Where, ...], targets: Mapping[str, AnyTarget], now: datetime) -> dict[str, Asked]:
    found: dict[str, Asked] = {}
    for name, target in targets.items():
        if any(_stands_on(target, place) for place, _ in places) and (ask := _asked(name, target, now)):
            found[f"target {name}"] = ask
    return found


def _asked(name: str, target: AnyTarget, now: datetime) -> Asked | None:
    from . import google

    match target:
        case GkeTarget():
            return lambda: google.on_gke(name, target, now)
        case TpuVmTarget() | GceTarget():
            return lambda: google.on_vms(name, target, now)
        case GoogleBatchTarget():
            return lambda: google.on_batch(name, target, now)
        case VertexTarget():
            return lambda: google.on_vertex(name, target, now)
        case AwsBatchTarget() | LocalTarget():
            return None


def _stands_on(target: AnyTarget, place: str) -> bool:
    kind, _, name = place.partition(":")
    match target:
        case AwsBatchTarget():
            return place in (f"role:{target.job_role_arn}", f"role:{target.execution_role_arn}")
        case GkeTarget():
            if kind in ("namespace", "localqueue"):
                return name.partition("/")[0] == target.namespace
            if kind == "definition":
                return target.jobset
            return kind in ("gke", "pool") and name.startswith(f"{target.project}/{target.location}/{target.cluster}")
        case TpuVmTarget() | GceTarget() | GoogleBatchTarget() | VertexTarget():
            return place in ground(target)
        case LocalTarget():
            return False
