"""Jobs that an earlier version left on platforms that have no claim of them: what Kubernetes and Google Batch have of
them is read as that version did, and changed. TPUs that its stack declares, and jobs of several machines, go on from
its records. All is from tests/golden/records."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest

from accel.clouds.google.api import Google
from accel.contract import buckets
from accel.diagnostics.errors import BadInput, NotFound
from jobs.backends.base import JobRef, Request, Status
from jobs.backends.diagnosis import gke as gke_explain
from jobs.backends.diagnosis import google_batch as batch_explain
from jobs.backends.gke import labels as gke_labels
from jobs.backends.gke import status as gke_status
from jobs.backends.gke import submit as gke_submit
from jobs.backends.google_batch import labels as batch_labels
from jobs.backends.google_batch import status as batch_status
from jobs.backends.google_batch import submit as batch_submit
from jobs.backends.vm import state_machine as machine
from jobs.backends.vm.queues import KIND, DeclaredQueue
from jobs.backends.vm.record import Record, Result
from jobs.views.status_rows import status_row
from tests.jobs.backends.gke_cluster import Cluster
from tests.jobs.vm_walk import Walk, vm_records
from tests.support import records
from tests.support.records import CLUSTER_KINDS, Json

KINDS = {"jobs": "Job", "jobsets": "JobSet", "pods": "Pod", "services": "Service", "workloads": "Workload"}


@pytest.fixture(params=records.commits())
def whole(request: pytest.FixtureRequest) -> records.Records:
    return records.read(request.param)


def refs(whole: records.Records, kind: str) -> dict[str, JobRef]:
    """Of the jobs of a platform that are known to their client, by their keys."""
    return {key: JobRef.parse(each.ref) for key, each in whole.jobs.items() if each.ref.startswith(f"{kind}:")}


def row(status: Status) -> Json:
    return json.loads(json.dumps(status_row(status), default=str))


def outputs(whole: records.Records) -> list[Json]:
    """The resources of the stack of Google Cloud."""
    return whole.stacks["google"]["export"]["deployment"]["resources"]


@pytest.fixture
def cluster(whole: records.Records) -> Iterator[Cluster]:
    """An API server that has the objects of the version's."""
    found = Cluster()
    for kind, path in CLUSTER_KINDS.items():
        for each in whole.cluster[kind]:
            found.put(path, {"kind": KINDS[kind], **each})
    yield found
    found.stop()


def scope_of(refs: Mapping[str, JobRef]) -> gke_labels.Scope:
    (scope,) = {each.scope for each in refs.values()}
    return gke_labels.Scope.parse(scope)


def test_jobs_of_a_cluster_are_read_as_they_were(whole: records.Records, cluster: Cluster) -> None:
    of, api = refs(whole, "gke"), cluster.api()
    scope = scope_of(of)
    assert len(of) == 6
    for key, ref in of.items():
        assert row(gke_status.status(api, scope, ref)).items() >= whole.jobs[key].printed.items()
    listed = {each.name: each.phase for each in gke_status.list_jobs(api, scope, limit=99, ended=True, progress=print)}
    known = {key: whole.jobs[key].printed["phase"] for key in of}
    assert listed == {**known, "gke-unrecorded": listed["gke-unrecorded"]}
    assert [(each.place, each.exit_code) for each in gke_status.attempts(api, scope, of["gke-failed"])] == [(None, 3)]
    assert {len(gke_status.attempts(api, scope, of[key])) for key in ("gke-nodes", "gke-slice")} == {2, 4}
    assert [each.phase for each in gke_status.tasks(api, scope, of["gke-sweep"])] == ["RUNNING"] * 4
    found = {key: gke_explain.explain(api, scope, ref).cause for key, ref in of.items()}
    assert found["gke-failed"] == "exit-code" and found["gke-waits"] == "queue-full", found


def test_a_key_of_a_cluster_is_still_its_jobs(whole: records.Records, cluster: Cluster) -> None:
    of, api = refs(whole, "gke"), cluster.api()
    before = dict(cluster.objects)
    for name in {ref.id: key for key, ref in of.items()}:
        kind = "jobsets" if f"{CLUSTER_KINDS['jobsets']}/{name}" in before else "jobs"
        had = before[f"{CLUSTER_KINDS[kind]}/{name}"]["metadata"]["annotations"]
        body: Json = {"scope": str(scope_of(of)), "objects": json.loads(had[gke_labels.REQUEST])}
        request = Request("gke", "gke", name, had[gke_labels.KEY], body)
        made = gke_submit.submit(request, api)
        assert (made.id, made.there) == (name, True)
        body["objects"][-1]["metadata"]["annotations"][gke_labels.SPEC] = "another"
        with pytest.raises(BadInput, match="it was used for another request"):
            gke_submit.submit(request, api)
    assert cluster.objects.keys() == before.keys()


def test_jobs_of_a_cluster_are_cancelled_and_sent_again(whole: records.Records, cluster: Cluster) -> None:
    of, api = refs(whole, "gke"), cluster.api()
    scope = scope_of(of)
    for key in ("gke-sweep", "gke-nodes", "gke-slice", "gke-waits"):
        again = gke_submit.resubmit_request(api, scope, of[key], "0" * 64)
        assert of[key].id not in json.dumps(again.body) and again.name.startswith(key)
        gke_submit.cancel(api, scope, of[key], "enough")
        now = gke_status.status(api, scope, of[key])
        wanted = ("FAILED", "cancelled: enough") if key == "gke-waits" else ("RUNNING", "stopping: enough")
        assert (now.phase, now.reason) == wanted
    (workload,) = [each for each in cluster.objects.values() if each["kind"] == "Workload"
                   and each["spec"].get("active") is False]  # fmt: skip
    assert "gke-waits" in workload["metadata"]["name"]


class BatchAnswers(Google):
    """Google's API as it answered: jobs of Google Batch and their tasks, by their names."""

    def __init__(self, whole: records.Records) -> None:
        super().__init__()
        self.bodies: dict[str, Json] = {}
        for each in whole.google_batch:
            name = each["job"]["name"]
            self.bodies[f"v1/{name}"] = each["job"]
            # A task is named after the project's number.
            self.bodies |= {
                f"v1/{name}{task['name'].partition(name.rpartition('/')[2])[2]}": task for task in each["tasks"]
            }
        self.posted: list[tuple[str, Any]] = []

    def get(self, api: str, path: str, **query: object) -> Json:
        if path not in self.bodies:
            raise NotFound(path)
        return self.bodies[path]

    def pages(self, api: str, path: str, member: str, **query: object) -> Iterator[Json]:
        wanted = str(query.get("filter") or "")
        for name, body in self.bodies.items():
            if name.rpartition("/")[0] == path and (not wanted or body["status"]["state"] in wanted):
                yield body

    def post(self, api: str, path: str, body: Any, *, repeat: bool = False, **query: object) -> Json:
        self.posted.append((path, body))
        return {"name": "operations/cancel"}


def test_jobs_of_google_batch_are_read_as_they_were(whole: records.Records) -> None:
    google, of = BatchAnswers(whole), refs(whole, "google-batch")
    (text,) = {each.scope for each in of.values()}
    scope = batch_labels.Scope.parse(text)
    assert len(of) == 5
    for key, ref in of.items():
        assert row(batch_status.status(google, scope, ref)).items() >= whole.jobs[key].printed.items()
    every = batch_status.list_jobs(google, scope, limit=99, ended=True, progress=print)
    listed = {each.name: each.phase for each in every}
    known = {key: whole.jobs[key].printed["phase"] for key in of}
    assert listed == {**known, "google-batch-unrecorded": listed["google-batch-unrecorded"]}
    assert [each.exit_code for each in batch_status.attempts(google, scope, of["google-batch-failed"])] == [3]
    assert len(batch_status.tasks(google, scope, of["google-batch-sweep"])) == 3
    assert batch_explain.explain(google, scope, of["google-batch-failed"]).cause == "exit-code"


def test_jobs_of_google_batch_are_cancelled_and_sent_again(whole: records.Records) -> None:
    google, of = BatchAnswers(whole), refs(whole, "google-batch")
    for key, ref in of.items():
        scope = batch_labels.Scope.parse(ref.scope)
        again = batch_submit.resubmit_request(google, scope, ref, "0" * 64)
        assert ref.id not in json.dumps(again.body) and again.name.startswith(key)
        batch_submit.cancel(google, scope, ref)
    stopped = {path.rpartition("/")[2] for path, _ in google.posted}
    assert stopped == {f"{of[f'google-batch-{job}'].id}:cancel" for job in ("runs", "sweep", "nodes")}


def declarations(whole: records.Records) -> dict[str, Json]:
    """The objects by which the stack declares TPUs, by their keys."""
    found = [each["outputs"] for each in outputs(whole) if each["type"] == "gcp:storage/bucketObject:BucketObject"]
    return {name: each for each in found if (name := str(each["name"]).partition(f"{buckets.QUEUES}/")[2])}


def test_declared_tpus_have_the_records_that_were_made_of_them(whole: records.Records) -> None:
    """By another name, or another body, this version would ask anew for TPUs that are there."""
    found, queues = vm_records(whole), declarations(whole)
    assert queues.keys() == {"trainer.json", "later.json"}
    for name, each in queues.items():
        key = name.removesuffix(".json")
        record = found[key]
        assert record.kind == KIND
        generation = whole.generations[f"b/{each['bucket']}/o/{quote(each['name'], safe='')}"]
        assert DeclaredQueue(each["bucket"], key, generation).name == record.name
        assert {**json.loads(whole.objects[each["bucket"]][each["name"]]), "bucket": each["bucket"]} == record.body


@pytest.mark.parametrize("key", ["trainer", "later"])
def test_declared_tpus_are_moved_on(whole: records.Records, key: str) -> None:
    record = vm_records(whole)[key]
    assert Walk(record).go(machine.RUNNING).steps == ["Write", "Wait"]  # since when it has its TPUs
    assert Walk(record).go(machine.WAITING).steps == ["Wait"]
    lost = Walk(record).go(machine.TAKEN).record
    assert (lost.last.number, lost.last.name) == (2, f"{record.name}-r2") and not lost.ended


def results_of(record: Record, code: int) -> dict[int, Result]:
    """What every host tells of its end."""
    return {
        host: Result(host=host, exit_code=code, reason="exited", started=None, stopped=None)
        for host in range(record.hosts)
    }


@pytest.mark.parametrize(("key", "hosts"), [("vm-nodes", 2), ("tpu-slice", 4)])
def test_jobs_of_several_machines_are_moved_on(whole: records.Records, key: str, hosts: int) -> None:
    record = vm_records(whole)[key]
    assert record.hosts == hosts
    assert Walk(record).go(machine.RUNNING).steps[-1] == "Wait"
    half = {host: each for host, each in results_of(record, 0).items() if host}
    assert Walk(record).go(machine.RUNNING, half).record.outcome == ""
    ended = Walk(record).go(machine.RUNNING, results_of(record, 0)).record
    assert (ended.outcome, ended.last.state) == ("succeeded", "gone")
    lost = Walk(record).go(machine.TAKEN).record
    assert (lost.attempts[0].outcome, lost.last.number, lost.last.state) == ("lost", 2, "planned")
