"""The jobs that wait or run now, and what each stands on, asked of the clouds."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from accel.clouds.google.rest import mapping
from accel.contract.gke import GkeTarget
from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget
from accel.contract.google_vms import GceTarget, TpuVmTarget
from accel.contract.targets import AnyTarget, AwsBatchTarget, LocalTarget, read_one
from accel.diagnostics.errors import JobsError

from ..threats import Threat
from .job import Live, ground

AT_ONCE = 16


@dataclass(frozen=True)
class Hit:
    """A job and what becomes of it."""

    threat: Threat
    job: Live


@dataclass(frozen=True)
class Hits:
    """What the changes do to jobs. `unread`: where nobody could look, and why."""

    hits: tuple[Hit, ...] = ()
    unread: tuple[str, ...] = ()


Asked = Callable[[], Iterable[Live]]


def hits(threats: Iterable[Threat], outputs: Mapping[str, Any], now: datetime | None = None) -> Hits:
    """Asks for the jobs that the threats can be about, and no others. Raises nothing for what cannot be asked."""
    wanted = tuple(threats)
    if not wanted:
        return Hits()
    targets, unread = _targets(outputs)
    questions = {
        **_aws(wanted, targets, now or datetime.now(UTC)),
        **_others(wanted, targets, now or datetime.now(UTC)),
    }
    found: dict[str, Live] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = {what: pool.submit(_all, ask) for what, ask in questions.items()}
        for what, answer in answers.items():
            try:
                found |= {job.ref: job for job in answer.result()}
            except JobsError as error:
                unread.append(f"{what}: {error.message}")
    order = sorted(found.values(), key=lambda job: (-(job.hours or 0.0), job.ref))
    matched = (Hit(threat, job) for threat in wanted for job in order if _is_hit(threat, job))
    return Hits(tuple(matched), tuple(unread))


def _all(ask: Asked) -> list[Live]:
    return list(ask())


def _is_hit(threat: Threat, job: Live) -> bool:
    return threat.place in job.places and (threat.queued or not job.waits)


def _targets(outputs: Mapping[str, Any]) -> tuple[dict[str, AnyTarget], list[str]]:
    found: dict[str, AnyTarget] = {}
    unread: list[str] = []
    for name, document in (mapping(outputs.get("targets")) or {}).items():
        try:
            found[name] = read_one(mapping(document) or {})
        except ValidationError:
            unread.append(f"target {name}: this version does not understand it, so its jobs were not looked for")
    return found, unread


def _aws(threats: tuple[Threat, ...], targets: Mapping[str, AnyTarget], now: datetime) -> dict[str, Asked]:
    """A question a region. Jobs of any queue may be on an environment, other stacks' included."""
    from .aws import jobs_of

    own = {each.queue_arn: (name, each) for name, each in targets.items() if isinstance(each, AwsBatchTarget)}
    regions = {threat.region for threat in threats if threat.region}
    regions |= {each.region for _, each in own.values() if any(_stands_on(each, threat.place) for threat in threats)}
    found: dict[str, Asked] = {}
    for region in sorted(regions):
        here = [threat.place.partition(":") for threat in threats if threat.region == region]
        queues = {arn for arn, (_, each) in own.items() if each.region == region}
        queues |= {name for kind, _, name in here if kind == "queue"}
        asked = None if any(kind == "cluster" for kind, _, _ in here) else queues
        found[f"AWS Batch in {region}"] = lambda region=region, asked=asked: jobs_of(region, asked, own, now)
    return found


def _others(threats: tuple[Threat, ...], targets: Mapping[str, AnyTarget], now: datetime) -> dict[str, Asked]:
    found: dict[str, Asked] = {}
    for name, target in targets.items():
        if any(_stands_on(target, threat.place) for threat in threats) and (ask := _asked(name, target, now)):
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
    """Whether a job of the target can have the place."""
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
