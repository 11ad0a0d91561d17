"""A job on Spot nodes that is moved, by what an API server keeps of it: plan, cancel, and the job on other nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from jobs.backends.base import Backend, JobRef, LogLine, Phase, Request, Status
from jobs.backends.gke import status as observe
from jobs.backends.gke.submit import cancel, resubmit_request, submit
from jobs.backends.registry import of_target
from jobs.client.deadline.follow import Follower
from jobs.client.deadline.plan import Plan, plan_job, plan_of
from jobs.client.targets import Entry, Targets
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key
from tests.jobs.backends.gke_cluster import SCOPE, Cluster
from tests.jobs.backends.gke_target import IMAGE, make_target, pools_of
from tests.jobs.backends.test_gke_observe import a_pod, body, failed, has

TARGET = make_target(queue=None)
KNOWN = Targets("tests", {"gke": Entry("gke", "gke", TARGET)})
JOB: dict[str, Any] = {
    "name": "moves",
    "image": IMAGE,
    "command": ["train"],
    "accelerator": {"type": "a100-40gb", "count": 4},
    "spot": "prefer",
    "deadline": "4h",
    "work_s": "2h",
    "env": {"COST": "$(ECHO) $$1"},
}


@dataclass
class OnCluster:
    """The backend's own functions, on a cluster of the tests."""

    cluster: Cluster

    def status(self, ref: JobRef) -> Status:
        return observe.status(self.cluster.api(), SCOPE, ref)

    def cancel(self, ref: JobRef, reason: str) -> None:
        cancel(self.cluster.api(), SCOPE, ref, reason)

    def resubmit_request(self, ref: JobRef, key: str) -> Request:
        return resubmit_request(self.cluster.api(), SCOPE, ref, key)

    def logs(self, ref: JobRef, *, task: int | None = None, follow: bool = False) -> Iterator[LogLine]:
        return iter(())


def test_a_job_goes_on_on_other_nodes_once_its_pods_have_ended(cluster: Cluster) -> None:
    job = Job.model_validate(JOB)
    key = submission_key(job.name, "k")
    ready = plan_job(job, "gke", TARGET, None, KNOWN)
    ref = submit(of_target("gke", TARGET).render(ready, platform_name(job.name, key), key), cluster.api())
    assert pools_of(body(cluster, ref)["spec"]["template"]["spec"]) == ["spot-1a2b3c4"]
    backend = cast(Backend, OnCluster(cluster))
    plan = plan_of(backend, ref)
    assert plan == Plan(job, "gke")

    now = 0.0
    made: list[JobRef] = []

    def send(plan: Plan, backend: Backend, request: Request) -> JobRef:
        made.append(submit(request, cluster.api()))
        return made[-1]

    def look() -> Status:
        assert plan is not None
        return Follower(ref, backend, plan, KNOWN, send, clock=lambda: now).look()[0]

    a_pod(cluster, ref, "Running")
    created = look().created
    assert isinstance(created, datetime)
    now = created.timestamp() + 3600
    assert look().reason is None and "activeDeadlineSeconds" not in body(cluster, ref)["spec"]
    now = created.timestamp() + 2 * 3600 - 900
    look()
    assert body(cluster, ref)["spec"]["activeDeadlineSeconds"] == 1
    stopping = look()
    assert stopping.phase is Phase.RUNNING and (stopping.reason or "").startswith("stopping: moved to on demand")
    assert made == [], "its pods have not ended"
    has(cluster, ref, **failed("DeadlineExceeded"))
    assert look().phase is Phase.FAILED and look().taken is None
    assert len(set(made)) == 1, "however often anybody looks"
    second = body(cluster, made[0])["spec"]["template"]["spec"]
    assert pools_of(second) == ["a100-1a2b3c4"]
    (container,) = second["containers"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert variables["COST"] == "$$(ECHO) $$$$1", "escaped once, as in the first"
    assert not [name for name in variables if name.endswith("_PLAN")]
