"""Status, listing, cancelling, retrying and logs of custom jobs on Vertex AI."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from accel.clouds.google.rest import root_of
from accel.diagnostics.errors import BadInput, NotFound
from jobs.backends.base import JobRef, Listing, Many, Phase, Quotas, Resubmit
from jobs.backends.vertex import VertexBackend
from jobs.backends.vertex import labels as marks
from jobs.backends.vertex import status as states
from jobs.backends.vertex.logs import text_of
from jobs.backends.vertex.lookup import PHASES, Job
from jobs.backends.vertex.status import FEW, NO_ROOM, TAKEN, status_of
from jobs.model.job import Job as Wanted
from jobs.model.keys import submission_key
from sandbox.google.discovery import document
from tests.jobs.backends import vertex_jobs
from tests.jobs.backends.google_jobs_cloud import check_scopes
from tests.jobs.backends.vertex_cloud import JOBS, Cloud
from tests.support.gathering import met
from tests.support.soak import SOAK

pytest_plugins = ["tests.support.google_fake", "tests.jobs.backends.vertex_cloud"]


@pytest.fixture
def cloud(vertex_cloud: Cloud) -> Cloud:
    return vertex_cloud


REF = JobRef("vertex", "acme.us-central1", "17")
NAME = "projects/123/locations/us-central1/customJobs/17"
STOCKOUT = "Resources are insufficient in region: us-central1. Try a different region or use a different accelerator."


def run(text: str, **fields: Any) -> dict[str, Any]:
    """Of a job that really runs here."""
    return {"image": "local/examples", "command": ["sh", "-c", text], **fields}


def made(state: str, **more: Any) -> Job:
    """As the API has it."""
    return Job({"name": NAME, "displayName": "digits-0123456789ab", "state": f"JOB_STATE_{state}", **more})


def failed(message: str, **more: Any) -> Job:
    return made("FAILED", error={"code": 3, "message": message}, **more)


def test_every_state_has_a_phase() -> None:
    schema = document("aiplatform.v1").schema("GoogleCloudAiplatformV1CustomJob")
    assert {*PHASES} == {*schema["properties"]["state"]["enum"]} - {"JOB_STATE_UNSPECIFIED"}
    ended = [state for state, phase in PHASES.items() if phase.ended]
    words = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
    assert ended == [f"JOB_STATE_{word}" for word in words]


@pytest.mark.parametrize(
    ("message", "code", "replica"),
    [
        (
            "The replica workerpool0-0 exited with a non-zero status of 1. To find out more about why",
            1,
            "workerpool0-0",
        ),
        (
            "The replica workerpool1-11 exited with a non-zero status of 137. Termination reason: X",
            137,
            "workerpool1-11",
        ),
        ("The replica workerpool0-0 ran out of memory and exited with a non-zero status of 9.", 9, "workerpool0-0"),
        ("Replica exited with a non-zero status code 3", 3, None),
        (STOCKOUT, None, None),
        ("", None, None),
    ],
)
def test_exit_codes_are_those_of_the_error(message: str, code: int | None, replica: str | None) -> None:
    job = failed(message)
    assert (job.exit_code, job.failed) == (code, replica)
    assert status_of(REF, job).exit_code == code
    assert made("SUCCEEDED").exit_code == 0
    assert status_of(REF, made("RUNNING")).exit_code is None


def test_what_was_taken() -> None:
    began = {"startTime": "2026-01-01T00:00:00Z"}
    spot = {"jobSpec": {"scheduling": {"strategy": "SPOT"}}}
    assert status_of(REF, failed(STOCKOUT, **spot, **began)).taken == TAKEN
    assert status_of(REF, failed(STOCKOUT, **spot)).taken == NO_ROOM
    assert status_of(REF, failed(STOCKOUT, **began)).taken == NO_ROOM
    assert status_of(REF, failed("exited with a non-zero status of 1", **spot, **began)).taken is None
    assert status_of(REF, made("CANCELLED", error={"message": STOCKOUT})).taken is None


def test_a_job_from_end_to_end(cloud: Cloud) -> None:
    request = cloud.request("end to end", **run("echo hello; exit 3"))
    ref = cloud.backend().submit(request)
    assert ref == JobRef("vertex", "accel-sandbox.us-central1", ref.id) and ref.id.isdigit()
    found = cloud.becomes(ref, lambda status: status.phase.ended)
    assert (found.phase, found.native, found.exit_code, found.attempts) == (Phase.FAILED, "FAILED", 3, None)
    assert (found.name, found.target, found.taken) == ("digits", "trainer", None)
    assert found.reason and "non-zero status of 3" in found.reason
    assert found.created and found.started and found.stopped
    assert found.created <= found.started <= found.stopped
    assert VertexBackend.of_scope(ref.scope, timing=cloud.timing).status(ref) == found


def test_a_job_on_spot_machines_that_loses_them_too_often(cloud: Cloud) -> None:
    ref = cloud.backend().submit(cloud.request("spot", **run("sleep 60", spot=True)))
    found = cloud.becomes(ref, lambda status: status.phase.ended or (cloud.preempt(ref) and False))
    assert (found.phase, found.taken) == (Phase.FAILED, TAKEN)


def test_a_region_without_machines(cloud: Cloud) -> None:
    cloud.fake.fault(stockout=["n1-standard-4"])
    ref = cloud.backend().submit(cloud.request("stockout", vertex={"machine_type": "n1-standard-4"}))
    found = cloud.becomes(ref, lambda status: status.phase.ended)
    assert (found.phase, found.taken, found.attempts) == (Phase.FAILED, NO_ROOM, 0)


def test_cancelling(cloud: Cloud) -> None:
    backend = cloud.backend()
    ref = backend.submit(cloud.request("cancel", **run("sleep 60")))
    cloud.becomes(ref, lambda status: status.phase is Phase.RUNNING)
    cloud.proxy.faults["POST cancel"] = ["accept+reset"]
    backend.cancel(ref, "enough")
    backend.cancel(ref, "enough")
    found = cloud.becomes(ref, lambda status: status.phase.ended)
    assert (found.phase, found.native, found.reason) == (Phase.FAILED, "CANCELLED", "cancelled")
    backend.cancel(ref, "once more")
    with pytest.raises(NotFound, match=r"vertex:accel-sandbox\.us-central1/404: Vertex AI knows no such job"):
        backend.cancel(replace(ref, id="404"), "")


def test_listing(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.backends.vertex.lookup.PAGE", 3)
    backend = cloud.backend()
    assert isinstance(backend, Listing) and isinstance(backend, Many)
    started = datetime.now(UTC) - timedelta(seconds=2)
    refs = [backend.submit(cloud.request(f"list {n}")) for n in range(7)]
    live = backend.submit(cloud.request("list live", **run("sleep 60")))
    cloud.fake.call("POST", JOBS, {**cloud.request("not ours").body["customJob"], "labels": {}})
    for ref in refs:
        cloud.becomes(ref, lambda status: status.phase.ended)
    newest = [live, *reversed(refs)]
    shown: list[int] = []
    found = [*backend.list(limit=8, ended=True, progress=shown.append)]
    assert [status.ref for status in found] == newest
    assert shown == [*range(1, 9)]
    assert all(status.created and status.created > started for status in found)
    assert [status.ref for status in backend.list(limit=3, ended=True)] == newest[:3]
    assert [status.ref for status in backend.list(limit=3, ended=False)] == [live]
    assert backend.statuses(refs) == {ref: backend.status(ref) for ref in refs}
    assert backend.statuses([JobRef(*live.__dict__.values()), replace(live, id="404")]).keys() == {live}


def test_many_are_looked_at_with_few_calls(cloud: Cloud) -> None:
    backend = cloud.changed(read_s=10, lease_s=30).backend()
    refs = [backend.submit(cloud.request(f"many {n}")) for n in range(FEW + 2)]
    cloud.becomes(refs[-1], lambda status: status.phase.ended)
    cloud.proxy.calls.clear()
    found = backend.statuses([*refs, replace(refs[0], id="404")])
    assert found.keys() == {*refs}
    assert (cloud.proxy.calls["GET jobs"] < FEW, cloud.proxy.calls["GET job"]) == (True, 1)


def test_old_jobs_come_after_the_new(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The spans of time do not overlap, and leave nothing out."""
    backend = cloud.backend()
    refs = [backend.submit(cloud.request(f"old {n}")) for n in range(4)]
    monkeypatch.setattr(states, "SPANS", [timedelta(seconds=0), timedelta(seconds=1), timedelta(seconds=2)])
    found = [status.ref for status in backend.list(limit=1000, ended=True)]
    assert found[:4] == refs[::-1]
    assert len(found) == len({*found}) == len([each for each in cloud.all() if each.get("labels", {}).get(marks.MAKER)])


def test_once_more(cloud: Cloud) -> None:
    backend = cloud.backend()
    assert isinstance(backend, Resubmit)
    request = cloud.request("once more", **run("echo $EPOCHS", env={"EPOCHS": "5"}, labels={"stage": "test"}))
    first = backend.submit(request)
    key = submission_key("digits", "again and again")
    more = backend.resubmit_request(first, key)
    second = backend.submit(more)
    assert second != first and backend.submit(more) == second
    assert more.name == f"digits-{key[:12]}" and request.name not in str(more.body)
    labels, before = more.body["customJob"]["labels"], request.body["customJob"]["labels"]
    assert {name: labels[name] for name in (marks.NAME, marks.TARGET, "stage", "team")} == {
        name: before[name] for name in (marks.NAME, marks.TARGET, "stage", "team")
    }
    assert [line.text for line in backend.logs(second, follow=True)] == ["5"]
    foreign = cloud.fake.call("POST", JOBS, {**request.body["customJob"], "labels": {}})
    with pytest.raises(BadInput, match="was not submitted by accel"):
        backend.resubmit_request(replace(first, id=foreign["name"].rpartition("/")[2]), key)


def test_a_followed_job(cloud: Cloud) -> None:
    ref = cloud.backend().submit(cloud.request("followed", **run("for i in 1 2 3; do echo line $i; done; exit 3")))
    lines = [("", "line 1"), ("", "line 2"), ("", "line 3")]
    assert cloud.printed(ref) == lines == cloud.printed(ref, follow=False) == cloud.printed(ref, task=0)
    assert cloud.printed(ref, tail=2) == lines[1:] == cloud.printed(ref, follow=False, tail=2)
    with pytest.raises(BadInput, match=r"node: vertex:\S+ has nodes 0 to 0, not 1"):
        cloud.printed(ref, task=1)


def test_nodes_side_by_side_and_one_alone(cloud: Cloud, tmp_path: Path) -> None:
    text = f"echo i am $RANK of $WORLD_SIZE; {met(tmp_path, '$RANK', '012')}"
    ref = cloud.backend().submit(cloud.request("nodes", **run(text, nodes=3)))
    found = cloud.printed(ref)
    assert sorted(found) == [(f"node {n}", f"i am {n} of 3") for n in range(3)]
    assert cloud.printed(ref, task=2) == [("", "i am 2 of 3")]
    assert cloud.backend().status(ref).phase is Phase.SUCCEEDED


def test_replicas_have_the_names_that_vertex_gives_them() -> None:
    pools = [{"replicaCount": "1"}, {}, {"replicaCount": 2}, {"replicaCount": "1"}]
    job = made("RUNNING", jobSpec={"workerPoolSpecs": pools})
    assert job.replicas == ["workerpool0-0", "workerpool2-0", "workerpool2-1", "workerpool3-0"]


def test_late_lines_and_calls_that_break(cloud: Cloud, tmp_path: Path) -> None:
    """Each entry can be read at its own time, after entries that were written later."""
    cloud.fake.fault(log_lag_s=0.25)
    count = 2000 if SOAK else 60
    text = f"i=0; while [ $i -lt {count} ]; do echo $RANK.$i; i=$((i+1)); done; {met(tmp_path, '$RANK', '01')}"
    ref = cloud.backend().submit(cloud.request("late", **run(text, nodes=2)))
    cloud.proxy.faults["POST entries:list"] = ["503", "reset", "429", "accept+reset", "accept+truncate"] * 2
    found = [line for _, line in cloud.printed(ref)]
    assert sorted(found) == sorted(f"{node}.{i}" for node in range(2) for i in range(count))


def test_lines_are_text_or_json() -> None:
    assert text_of({"jsonPayload": {"message": "a\n", "levelname": "INFO"}}) == "a"
    assert text_of({"textPayload": "b"}) == "b"
    assert text_of({"jsonPayload": {"levelname": "INFO"}}) == ""


def test_scopes() -> None:
    backend = check_scopes(VertexBackend, marks.Scope)
    with pytest.raises(BadInput, match="needs a target"):
        backend.render(Wanted(name="x", command=["true"]), "x", "0" * 64)


def test_each_region_has_an_address_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM", raising=False)
    assert root_of(marks.Scope("p", "us-west1").api) == "https://us-west1-aiplatform.googleapis.com"
    assert root_of("aiplatform") == "https://aiplatform.googleapis.com"
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM", "http://here/")
    assert root_of("us-west1-aiplatform") == root_of("aiplatform") == "http://here"


def test_quotas_are_those_of_vertex(cloud: Cloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not Compute Engine's; flex-start and Spot have one of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    quota = "aiplatform/us-central1/custom_model_training"
    cloud.fake.fault(
        quota={
            f"{quota}_nvidia_l4_gpus": 4,
            f"{quota}_preemptible_nvidia_l4_gpus": 0,
            "compute/us-central1/NVIDIA_L4_GPUS": 0,
        }
    )
    backend = cloud.backend()
    assert isinstance(backend, Quotas)

    def asked(**fields: Any) -> Any:
        values = {"name": "digits", "image": vertex_jobs.IMAGE, "command": ["true"], **fields}
        return backend.quota(Wanted(**values))

    l4 = {"accelerator": {"type": "l4", "count": 4}}
    assert asked().over == asked(**l4).over == ()
    said = "takes 8 GPUs, and the limit of Custom model training NVIDIA L4 GPUs per region"
    assert any(said in line for line in asked(**l4, nodes=2).over)
    assert any("preemptible_nvidia_l4_gpus" in line for line in asked(**l4, spot=True).over)
    unknown = asked(accelerator={"type": "b200", "count": 8}, spot=True)
    assert unknown.over == () and unknown.unknown
