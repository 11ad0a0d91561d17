"""Old revisions of job definitions; every deployment leaves one behind."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from accel.clouds.aws.batch_jobs import describe, pages
from accel.clouds.aws.clients import client
from accel.clouds.aws.errors import asking
from accel.clouds.aws.responses import structure
from accel.clouds.backoff import Lease, now, patiently, pause
from accel.contract.targets import AwsBatchTarget

LATEST = 5
"""Number of revisions of each definition to keep."""
LIVE = ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING", "RUNNABLE")
"""States of a job that has not ended, in the order in which they are listed: a job that changes its state shows up in a
later one, a retried one in the last. The parent of an array is PENDING while its children run. Source:
https://docs.aws.amazon.com/batch/latest/APIReference/API_ListJobs.html"""
PAUSE_S = 0.2
"""Average pause between two DeregisterJobDefinition calls: submitters share the account's limit."""
PATIENCE_S = 300
CALL_S = 25

Result = TypeVar("Result")


@dataclass(frozen=True)
class Revision:
    """An active revision of a job definition, whether to deregister it, and why or why not."""

    name: str
    number: int
    arn: str
    region: str
    goes: bool
    why: str

    def row(self) -> dict[str, Any]:
        action = "deregister" if self.goes else "keep"
        return {"definition": self.name, "revision": self.number, "action": action, "why": self.why, "arn": self.arn}


def revisions(targets: Iterable[AwsBatchTarget], keep: int, unused: bool) -> Iterator[Revision]:
    """Yield every active revision of the targets' definitions, by region, name and falling number."""
    by_region: dict[str, list[AwsBatchTarget]] = {}
    for target in targets:
        by_region.setdefault(target.region, []).append(target)
    for region, members in by_region.items():
        batch = _client(region)
        prefixes = {target.definition_prefix for target in members}
        own = {each.arn.rpartition("/")[2] for target in members for each in target.definitions.values()}
        families: dict[str, list[dict[str, Any]]] = {}
        for one in _active(batch):
            if one["jobDefinitionName"] in own or is_registered_by_jobs(one, prefixes):
                families.setdefault(one["jobDefinitionName"], []).append(one)
        # Listed after the definitions, so that a job submitted meanwhile is seen.
        live = _live(batch, {target.queue_arn for target in members})
        for name in sorted(families):
            ranked = sorted(families[name], key=lambda one: -one["revision"])
            for rank, one in enumerate(ranked):
                arn = one["jobDefinitionArn"]
                goes, why = _verdict(rank, live[arn], keep, unused and name not in own)
                yield Revision(name, one["revision"], arn, region, goes, why)


def is_registered_by_jobs(definition: Mapping[str, Any], prefixes: Iterable[str]) -> bool:
    """Return whether a job registered the definition, under one of the prefixes, by the hash of its content."""
    name, tags = definition["jobDefinitionName"], structure(definition, "tags")
    named = any(re.fullmatch(re.escape(prefix[:115]) + "-[0-9a-f]{12}", name) for prefix in prefixes)
    return named and tags.get("accel:owner") == "jobs"


def _verdict(rank: int, jobs: int, keep: int, unused: bool) -> tuple[bool, str]:
    if jobs:
        return False, f"{jobs} live job{'s' if jobs > 1 else ''}"
    if unused:
        return True, "registered by a job, and no live job names it"
    if rank < keep:
        return False, "the latest" if rank == 0 else f"one of the latest {keep}"
    return True, f"{rank} newer revisions"


def _client(region: str) -> Any:
    with asking(f"batch in {region}"):
        return client("batch", region, connect_s=5, read_s=20, attempts=4)


def _active(batch: Any) -> Iterator[dict[str, Any]]:
    token: dict[str, str] = {}
    while True:

        def page(token: dict[str, str] = token) -> dict[str, Any]:
            with asking("DescribeJobDefinitions"):
                answer = batch.describe_job_definitions(status="ACTIVE", maxResults=100, **token)
                # Without them it is no answer of AWS, and no list without revisions.
                return {"jobDefinitions": answer["jobDefinitions"], "nextToken": answer.get("nextToken")}

        answer = _patient(page)
        yield from answer["jobDefinitions"]
        if not answer["nextToken"]:
            return
        token = {"nextToken": answer["nextToken"]}


def _live(batch: Any, queues: Iterable[str]) -> Counter[str]:
    """Count the jobs that have not ended, by the revision that they name."""
    named: dict[str, str] = {}
    for queue in sorted(queues):
        for state in LIVE:

            def listed(queue: str = queue, state: str = state) -> list[dict[str, Any]]:
                return [job for page in pages(batch, jobQueue=queue, jobStatus=state) for job in page]

            jobs = _patient(listed)
            named |= {job["jobId"]: job["jobDefinition"] for job in jobs if job.get("jobDefinition")}
            untold = [job["jobId"] for job in jobs if job["jobId"] not in named]
            if untold:
                details = _patient(lambda ids=untold: describe(batch, ids))
                named |= {job["jobId"]: job["jobDefinition"] for job in details}
    return Counter(named.values())


def deregister(old: list[Revision]) -> Iterator[str]:
    """Deregister the oldest first, so that an interruption leaves the newer ones. An inactive one stays inactive."""
    clients: dict[str, Any] = {}
    for at, one in enumerate(sorted(old, key=lambda one: (one.region, one.name, one.number))):
        if one.region not in clients:
            clients[one.region] = _client(one.region)
        if at:
            pause(PAUSE_S)

        def call(batch: Any = clients[one.region], arn: str = one.arn) -> None:
            with asking(f"DeregisterJobDefinition {arn}"):
                batch.deregister_job_definition(jobDefinition=arn)

        _patient(call)
        yield f"deregistered {one.name}:{one.number}"


def _patient(call: Callable[[], Result]) -> Result:
    """Repeat an idempotent call, with growing pauses, while AWS throttles it."""
    return patiently(call, Lease(now() + PATIENCE_S), CALL_S)
