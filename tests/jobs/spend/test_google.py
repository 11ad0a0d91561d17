"""Allowances on Google's services, from the command to a ledger in Firestore; and how the job of a hold is found."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from accel.contract.allowances import Allowances
from accel.contract.targets import AnyTarget, write
from accel.diagnostics.errors import NotFound
from jobs.backends.base import Request
from jobs.backends.gke.submit import submit
from jobs.backends.vm.gpu import GceBackend
from jobs.client.allowances import find_job as finding
from jobs.client.allowances.find_job import find_job, retention_s
from jobs.client.allowances.price import usd
from jobs.client.allowances.reservation import Change, Hold, Ledger
from jobs.model.job import Job
from tests.jobs.backends import gce_cloud as gce
from tests.jobs.backends import gke_target, vertex_jobs
from tests.jobs.backends.gke_cluster import Cluster
from tests.jobs.backends.google_batch_cloud import GROUND, Cloud
from tests.jobs.backends.google_batch_target import make_target
from tests.jobs.backends.vertex_cloud import GROUND as VERTEX
from tests.jobs.backends.vertex_cloud import Cloud as VertexCloud
from tests.jobs.spend.books import TEAM, hold, sums
from tests.support.gathering import until_there
from tests.support.google_fake import Fake

pytest_plugins = [
    "tests.support.google_fake",
    "tests.jobs.backends.google_batch_cloud",
    "tests.jobs.backends.vertex_cloud",
    "tests.jobs.backends.gce_cloud",
]
Of = Callable[[float], tuple[Allowances, Ledger]]
Invoke = Callable[..., Result]
JOB = "name: digits\nimage: local/tests\ncommand: [/bin/sh, -c, '{}']\ncpus: 2\ntimeout_s: {}\n"


@pytest.fixture
def kind() -> str:
    return "firestore"


def sought(request: Request) -> Hold:
    return hold(request.key, name=request.name, target=request.target)


def test_from_submit_to_settlement(
    batch_cloud: Cloud, ledger_of: Of, home: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowances, ledger = ledger_of(1)
    target = make_target(**GROUND, allowances=allowances.model_copy(update={"default_team": TEAM}))
    (home / "targets.json").write_text(json.dumps(write({"batch": target})))
    monkeypatch.setenv("ACCEL_TARGETS", str(home / "targets.json"))

    def jobs(*arguments: str, code: int = 0) -> Any:
        done = invoke(*arguments)
        assert done.exit_code == code, done.output
        return json.loads(done.stdout) if "json" in arguments else done.stderr if code else done.stdout.strip()

    end = home / "end"
    (home / "j.yaml").write_text(JOB.format(until_there(end), 3600))
    ref = jobs("submit", "j.yaml", "--to", "batch", "--no-quota", "--key", "k", "-o", "id")
    held, settled = sums(ledger)
    assert held > 0 and settled == 0
    (row,) = jobs("spend", "-o", "json")
    assert (row["team"], row["allowance"], float(row["held"]), row["jobs"]) == (TEAM, "1.00", held, 1)

    (home / "j.yaml").write_text(JOB.format(until_there(end), 864_000))
    said = jobs("submit", "j.yaml", "--to", "batch", "--no-quota", "--key", "dear", code=5)
    assert f"team {TEAM} has {usd(round((1 - held) * 1e6))} left of $1.00 for " in said
    assert "timeout_s of at most " in said and len(batch_cloud.left()) == 1

    # As a client leaves it that dies once the job is made.
    (seen,) = ledger.holds(TEAM)
    ledger.change([Change(seen, replace(seen, ref=None, lease_until=0))])
    ledger.add([hold("never", name="digits-0123456789ab", target="batch", period=seen.period, made=seen.made)], None)
    end.touch()
    jobs("wait", ref)
    rows = jobs("spend", "settle", "-o", "json")
    assert [(row["job"], row["why"]) for row in rows if row["job"] != ref] == [("digits-0123456789ab", "never made")]
    assert ref in [row["job"] for row in jobs("spend", "--jobs", "-o", "json")]
    held, settled = sums(ledger)
    assert held == 0 and 0 <= settled < float(row["held"])


def test_a_job_of_vertex_is_found_by_its_key(vertex_cloud: VertexCloud) -> None:
    request = vertex_cloud.request("found")
    target = vertex_jobs.make_target(**VERTEX)
    assert find_job(sought(request), target) is None
    ref = vertex_cloud.backend().submit(request)
    assert find_job(sought(request), target) == ref


def test_a_job_on_vms_is_found_by_its_name(gce_cloud: Fake) -> None:
    target = gce.make_target(**gce.GROUND)
    request = gce.make_request(target, "found", command=["true"])
    assert find_job(sought(request), target) is None
    ref = GceBackend("gpus", target).submit(request)
    assert find_job(sought(request), target) == ref
    GceBackend("gpus", target).cancel(ref, "enough")


def test_a_job_on_gke_is_found_by_its_name(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its backend nothing but the address is another: that of a small API server."""
    request, target = gke_target.make_request(cpus=2, memory_mib=4000), gke_target.make_target()

    class Backend:
        def status(self, ref: object) -> None:
            if not cluster.objects:
                raise NotFound(f"{ref}: no such job")
            assert ref == there

    def of_target(name: str, target: AnyTarget) -> Backend:
        return Backend()

    monkeypatch.setattr(finding, "of_target", of_target)
    assert find_job(sought(request), target) is None
    there = submit(request, cluster.api())
    assert find_job(sought(request), target) == there


def test_how_long_a_platform_knows_a_job() -> None:
    job = Job(name="a")
    kept = Job.model_validate({"name": "a", "gke": {"keep_s": 60}})
    days = {"aws-batch": 6, "gke": 7, "google-batch": 60}
    assert {kind: retention_s(job, kind) for kind in days} == {kind: 86_400 * each for kind, each in days.items()}
    assert retention_s(job, "vertex") is None
    assert retention_s(kept, "gke") == 60
