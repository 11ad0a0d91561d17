"""`jobs doctor`: this machine's set-up, a line each: ok, warn or fail."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import click

from accel.clouds.aws.clients import client
from accel.clouds.aws.errors import asking
from accel.clouds.google.api import Google
from accel.clouds.timeouts import Timing
from accel.console.options import Settings
from accel.console.output import show_json, span
from accel.console.verb import Verb
from accel.contract import buckets
from accel.contract.targets import AwsBatchTarget, LocalTarget
from accel.diagnostics.errors import BadInputs, JobsError
from accel.folders import cache, state
from accel.json_values import entries, object_at

from ..client import history
from ..client.stale_targets import compare_targets

if TYPE_CHECKING:
    from accel.contract.gke import GkeTarget
    from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget
    from accel.contract.google_vms import GceTarget, TpuVmTarget

_CREATE = {
    "gce": "compute.instances.create",
    "tpu-vm": "tpu.nodes.create",
    "google-batch": "batch.jobs.create",
    "vertex": "aiplatform.customJobs.create",
}
"""Permission that making a job requires, by kind of target."""

CLOCK_SKEW_S = 300
"""AWS refuses a signature whose time is further off. Source:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html"""
BUILT = 1_767_225_600
"""2026-01-01: a clock before this is wrong."""

CONNECT_S = 3
READ_S = 5


@dataclass(frozen=True)
class Finding:
    """Result of one check; `code` is the exit code that a failure of this kind has elsewhere."""

    level: str
    check: str
    text: str
    code: int = 0


@click.command(cls=Verb)
@click.pass_obj
def doctor(settings: Settings) -> None:
    """Check what jobs need on this machine. Exits with the code of the first failure."""
    checks: tuple[Callable[[Settings], Iterator[Finding]], ...] = (_python, _state, _history, _clock, _targets)
    found: list[Finding] = []
    for check in checks:
        for finding in check(settings):
            found.append(finding)
            if settings.output in ("table", "wide"):
                click.echo(f"{finding.level:4}  {finding.check}: {finding.text}")
    if settings.output in ("json", "jsonl"):
        rows = [asdict(finding) for finding in found]
        show_json(rows, settings.output)
    failed = [finding.code for finding in found if finding.level == "fail"]
    warned = [2 for finding in found if settings.strict and finding.level == "warn"]
    click.get_current_context().exit(next(iter([*failed, *warned]), 0))


def _python(settings: Settings) -> Iterator[Finding]:
    yield Finding("ok", "python", f"{sys.version.split()[0]} at {sys.executable}")


def _state(settings: Settings) -> Iterator[Finding]:
    for name, folder in (("state", state()), ("cache", cache())):
        probe = folder / f".probe.{os.getpid()}"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe.touch()
            probe.unlink()
        except OSError as error:
            yield Finding("fail", name, f"{folder} cannot be written: {error.strerror}", 1)
        else:
            yield Finding("ok", name, str(folder))


def _history(settings: Settings) -> Iterator[Finding]:
    for fault in history.faults():
        yield Finding("warn", "history", f"{fault}: remove it from {history.path()}")


def _clock(settings: Settings) -> Iterator[Finding]:
    if time.time() < BUILT:
        yield Finding(
            "fail",
            "clock",
            f"says {time.strftime('%Y-%m-%d')}, which is past; clouds will refuse signatures",
            1,
        )
    else:
        yield Finding("ok", "clock", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


def _targets(settings: Settings) -> Iterator[Finding]:
    from accel.contract.targets import GkeTarget

    from ..client.targets import load

    try:
        targets = load(settings.targets)
    except JobsError as error:
        for message in error.messages if isinstance(error, BadInputs) else [error.message]:
            yield Finding("fail", "targets", message, error.exit_code)
        return
    age = "" if targets.age_s is None else f", read {span(targets.age_s)} ago"
    yield Finding("ok", "targets", f"{len(targets.entries)} from {targets.source}{age}")
    for warning in [*targets.warnings, *compare_targets(targets, targets.entries)[1]]:
        yield Finding("warn", "targets", warning)
    regions: set[str] = set()
    for entry in targets.entries.values():
        if entry.target is None:
            yield Finding("warn", f"target {entry.name}", entry.fault or "cannot be used")
        elif isinstance(entry.target, AwsBatchTarget):
            regions.add(entry.target.region)
            if entry.target.claim_table is None:
                yield Finding(
                    "warn", f"target {entry.name}", "no claim table: submit is idempotent on one machine only"
                )
        elif isinstance(entry.target, GkeTarget):
            yield _gke(entry.name, entry.target)
        elif isinstance(entry.target, LocalTarget):
            if not os.access(entry.target.root, os.R_OK | os.X_OK):
                yield Finding("fail", f"target {entry.name}", f"its root {entry.target.root} cannot be read", 2)
        else:
            if entry.target.kind == "vertex" and entry.target.claims is None:
                yield Finding("warn", f"target {entry.name}", "no claims: submit is idempotent on one machine only")
            yield _google(entry.name, entry.target)
    for region in sorted(regions):
        yield from _aws(region)


def _gke(name: str, target: "GkeTarget") -> Finding:
    """Check sign-in, the way to the cluster and the permission to submit there, with one call."""
    from accel.clouds.kubernetes.client import Timing
    from accel.clouds.kubernetes.clusters import Clusters

    from ..backends.gke.labels import Scope

    check = f"target {name}"
    scope = Scope(target.project, target.location, target.cluster, target.namespace)
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "namespace": target.namespace,
                "verb": "create",
                "group": "batch",
                "resource": "jobs",
            }
        },
    }
    try:
        api = Clusters(scope, target, Timing(connect_s=CONNECT_S, read_s=READ_S, attempts=1)).api
        answer = api.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    except JobsError as error:
        return Finding("fail", check, error.message, error.exit_code)
    if object_at(answer, "status").get("allowed") is True:
        return Finding("ok", check, f"cluster {target.cluster} reached; jobs may be made in {target.namespace}")
    return Finding("fail", check, f"you may not make jobs in namespace {target.namespace} of {target.cluster}", 4)


def _google(name: str, target: "TpuVmTarget | GceTarget | GoogleBatchTarget | VertexTarget") -> Finding:
    """Check sign-in, what every job reads (service or bucket of records) and the right to make one, with two calls."""
    check = f"target {name}"
    needed = [_CREATE[target.kind]]
    try:
        google = Google(Timing(connect_s=CONNECT_S, read_s=READ_S, attempts=1))
        match target.kind:
            case "google-batch" | "vertex":
                api, jobs = ("batch", "jobs") if target.kind == "google-batch" else ("aiplatform", "customJobs")
                host = api if api == "batch" else f"{target.region}-{api}"
                google.get(host, f"v1/projects/{target.project}/locations/{target.region}/{jobs}", pageSize=1)
                read = f"{api} in {target.region}"
            case "tpu-vm" | "gce":
                google.get("storage", f"b/{target.bucket}/o", prefix=f"{buckets.JOBS}/", maxResults=1)
                read = f"bucket {target.bucket}"
        path = f"v1/projects/{target.project}:testIamPermissions"
        given = entries(
            google.post("cloudresourcemanager", path, {"permissions": needed}, repeat=True).get("permissions")
        )
    except JobsError as error:
        return Finding("fail", check, error.message, error.exit_code)
    if missing := [permission for permission in needed if permission not in given]:
        return Finding("fail", check, f"you lack {', '.join(missing)} in project {target.project}", 4)
    return Finding("ok", check, f"{read} read; {needed[0]} in project {target.project}")


def _aws(region: str) -> Iterator[Finding]:
    """Check credentials, the way to AWS and the clock, with one call that needs no permission."""
    check = f"aws {region}"
    try:
        with asking("GetCallerIdentity"):
            sts = client("sts", region, connect_s=CONNECT_S, read_s=READ_S, attempts=1)
            answer = sts.get_caller_identity()
    except JobsError as error:
        yield Finding("fail", check, error.message, error.exit_code)
        return
    yield Finding("ok", check, f"reached as {answer['Arn']}")
    date: str | None = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    skew = abs(parsedate_to_datetime(date).timestamp() - time.time()) if date else 0
    if skew > CLOCK_SKEW_S:
        yield Finding("fail", "clock", f"is {skew:.0f} s off the clock of AWS, which allows {CLOCK_SKEW_S}", 1)
