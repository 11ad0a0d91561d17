"""Deadline-aware Spot: the plan that a job carries, and a follower that may die anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import Result

from accel.contract.targets import AwsBatchTarget, write
from accel.contract.variables import PLAN
from accel.diagnostics.errors import BadInput, CloudSilent
from jobs.backends.base import Backend, JobRef, LogLine, Phase, Request, Status
from jobs.backends.registry import of_target
from jobs.client.deadline import plan as plans
from jobs.client.deadline.follow import Follower
from jobs.client.deadline.plan import MOVED, Plan, plan_job, plan_of, second, second_key
from jobs.client.targets import Entry, Targets
from jobs.model.job import Job
from jobs.model.keys import platform_name
from tests.jobs.backends import aws_batch_target, gce_target, gke_target, google_batch_target, tpu_target
from tests.jobs.deadline_lines import printed

HOUR = 3600
KEY = "0" * 64


def preferring(**fields: Any) -> Job:
    values = {"name": "a", "image": "i", "command": ["x"], "cpus": 1, "memory_mib": 1024, "spot": "prefer"}
    return Job.model_validate({**values, "deadline": "4h", "work_s": "2h", "env": {"A": "$(B) 'ü'"}, **fields})


# --- the plan


def environments(capacity: str) -> AwsBatchTarget:
    batch = aws_batch_target.make_target()
    only = [batch.environments[0].model_copy(update={"capacity": capacity})]
    return batch.model_copy(update={"environments": only, "queue_arn": f"{batch.queue_arn}-{capacity}"})


GKE, GOOGLE_BATCH = gke_target.make_target(), google_batch_target.make_target()
TARGETS = {"spot": environments("spot"), "steady": environments("on-demand"), "batch": GOOGLE_BATCH, "gke": GKE}
KNOWN = Targets("tests", {name: Entry(name, target.kind, target) for name, target in TARGETS.items()})


@dataclass
class Sent:
    """What a backend would read back of a job that was sent."""

    request: Request

    def resubmit_request(self, ref: JobRef, key: str) -> Request:
        return replace(self.request, key=key)


@pytest.mark.parametrize(("name", "then_to"), [("spot", "steady"), ("batch", None), ("gke", None)])
def test_the_job_on_spot_carries_the_one_on_demand(name: str, then_to: str | None) -> None:
    job = preferring(**({"accelerator": {"type": "a100-40gb"}} if name == "gke" else {}))
    backend = of_target(name, TARGETS[name])
    ready = plan_job(job, name, TARGETS[name], then_to, KNOWN)
    assert (ready.spot, ready.deadline) == (True, None)
    request = backend.render(ready, platform_name(job.name, KEY), KEY)
    assert request == backend.render(plan_job(job, name, TARGETS[name], then_to, KNOWN), platform_name("a", KEY), KEY)
    found = plan_of(cast(Backend, Sent(request)), JobRef("k", "s", "1"))
    bucket = GOOGLE_BATCH.bucket if name == "batch" else None
    assert found == Plan(job, then_to or name, bucket)
    _, other = second(found, KNOWN, KEY)
    text = json.dumps(other.body)
    assert PLAN not in text and "STANDARD" in text if name == "batch" else PLAN not in text
    assert other.target == (then_to or name)


def test_as_many_attempts_may_be_lost_as_the_platform_takes_and_none_that_retries_are_for() -> None:
    for name, then_to, most in (("spot", "steady", 9), ("batch", None, 10)):
        ready = plan_job(preferring(retries=2), name, TARGETS[name], then_to, KNOWN)
        assert (ready.retries, ready.lost_retries) == (2, most - 2)
        plan = Plan(preferring(retries=2), "")
        assert plan.lost_left(most - 3, TARGETS[name].kind) == 1
        assert Plan(preferring(), "").lost_left(3, TARGETS[name].kind) is None
    ready = plan_job(preferring(retries=2, accelerator={"type": "a100-40gb"}), "gke", GKE, None, KNOWN)
    assert ready.lost_retries is None, "GKE counts no lost one"
    assert plan_job(preferring(lost_retries=1), "batch", GOOGLE_BATCH, None, KNOWN).lost_retries == 1


def test_a_job_without_a_plan_has_none_and_a_damaged_one_is_told() -> None:
    ref = JobRef("k", "s", "1")
    assert plan_of(cast(Backend, Sent(Request("k", "t", "n", KEY, {"env": {"A": "b"}}))), ref) is None
    damaged = Request("k", "t", "n", KEY, {"env": [{"name": PLAN, "value": "e30="}]})
    with pytest.raises(BadInput, match="its plan cannot be read"):
        plan_of(cast(Backend, Sent(damaged)), ref)


def test_other_targets_refuse_it() -> None:
    for target in (gce_target.make_target(), tpu_target.make_target()):
        with pytest.raises(BadInput, match="spot: prefer is for targets of kind aws-batch, google-batch and gke"):
            of_target("t", target).render(preferring(), "a-000000000000", KEY)


# --- who follows


class Died(Exception):
    """The client, at this call."""


@dataclass
class World:
    """A platform with a job on Spot, which any client may look at, and dies of the n-th call that changes something."""

    now: float = 1000.0
    dies_at: int = 0
    calls: int = 0
    reason: str | None = None
    phase: Phase = Phase.RUNNING
    taken: str | None = None
    lines: list[str] = field(default_factory=list[str])
    silent: bool = False
    stops_after: int = 1
    """Looks at it between a cancel and its end."""
    made: dict[str, JobRef] = field(default_factory=dict[str, JobRef])
    ran_beside: bool = False

    def change(self) -> None:
        self.calls += 1
        if self.calls == self.dies_at:
            raise Died

    def status(self, ref: JobRef) -> Status:
        if self.silent:
            raise CloudSilent("not now")
        if self.phase is Phase.RUNNING and self.reason:
            self.stops_after -= 1
            self.phase = Phase.FAILED if self.stops_after <= 0 else self.phase
        created = datetime.fromtimestamp(1000, UTC)
        return Status(ref, "a", self.phase, str(self.phase), self.reason, taken=self.taken, created=created, attempts=1)

    def cancel(self, ref: JobRef, reason: str) -> None:
        self.change()
        self.reason = self.reason or reason  # the first one given stands
        self.change()

    def logs(self, ref: JobRef, *, task: int | None = None, follow: bool = False) -> Iterator[LogLine]:
        return (LogLine(datetime.now(UTC), line) for line in self.lines)

    def send(self, plan: Plan, backend: Backend, request: Request) -> JobRef:
        self.change()
        self.ran_beside |= not self.phase.ended
        ref = self.made.setdefault(request.key, JobRef("aws-batch", "us-east-1", request.key[:8]))
        self.change()
        return ref


REF = JobRef("aws-batch", "us-east-1", "1")


def follower(world: World, **fields: Any) -> Follower:
    plan = Plan(preferring(**fields), "steady")
    return Follower(REF, cast(Backend, world), plan, KNOWN, world.send, clock=lambda: world.now)


def test_it_is_left_alone_while_there_is_time_and_then_moved_once() -> None:
    world = World()
    assert follower(world).look()[1] is None and world.reason is None
    world.now += 2 * HOUR - 900 - 31
    follower(world).look()
    assert world.reason is None
    world.now += 2
    follower(world).look()
    assert world.reason and world.reason.startswith(MOVED) and not world.made
    found = [follower(world).look()[1] for _ in range(3)]
    assert found[0] is not None and len({each[0] for each in found if each}) == 1
    assert list(world.made) == [second_key(REF)] and not world.ran_beside


@pytest.mark.parametrize("dies_at", [1, 2, 3, 4])
def test_a_client_that_dies_anywhere_leaves_the_rest_to_the_next(dies_at: int) -> None:
    world = World(now=1000 + 2 * HOUR, dies_at=dies_at)
    for _ in range(5):
        try:
            follower(world).look()
        except Died:
            continue
    assert len(world.made) == 1 and not world.ran_beside and world.calls >= dies_at


@pytest.mark.parametrize(
    ("fields", "goes_on"),
    [
        ({"phase": Phase.SUCCEEDED}, False),
        ({"phase": Phase.FAILED, "reason": "exit code 1"}, False),
        ({"phase": Phase.FAILED, "reason": "cancelled by the user"}, False),
        ({"phase": Phase.FAILED, "reason": f"cancelled: {MOVED}: x"}, True),
        ({"phase": Phase.FAILED, "reason": "Host EC2 (instance i-1) terminated.", "taken": "its host was"}, True),
        ({"phase": Phase.RUNNING, "reason": "stopping: someone cancelled it", "stops_after": 9}, False),
    ],
)
def test_only_what_was_moved_or_taken_goes_on(fields: dict[str, Any], goes_on: bool) -> None:
    world = World(now=1000 + 3 * HOUR, **fields)
    assert bool(follower(world).look()[1]) is bool(world.made) is goes_on
    assert world.reason == fields.get("reason"), "nobody was asked to stop it again"


def test_what_it_has_done_keeps_it_on_spot() -> None:
    world = World(now=1000 + 2 * HOUR)
    world.lines = [text for _, text in printed({"step": 90, "steps": 100, "event": "checkpoint"})]
    follower(world).look()
    assert world.reason is None
    world.now += HOUR + 45 * 60  # 15 minutes are left for 12 minutes of work and as many to change over
    follower(world).look()
    assert world.reason and "720 s of work left" in world.reason


def test_a_job_that_turns_out_slower_is_moved_before_its_file_would_have_it() -> None:
    world = World(now=1000 + HOUR / 2)
    steps = ({"step": step, "steps": 100, "at": 200.0 * step} for step in range(8))
    world.lines = [text for _, text in printed(*steps)]
    follower(world).look()
    assert world.reason, "at this pace it needs five hours more"


def test_a_platform_that_does_not_answer_moves_nothing() -> None:
    world = World(now=1000 + 3 * HOUR, silent=True)
    with pytest.raises(CloudSilent):
        follower(world).look()
    assert world.calls == 0


def test_the_second_job_is_the_same_for_everybody() -> None:
    assert second_key(REF) == second_key(JobRef.parse(str(REF))) != second_key(replace(REF, id="2"))
    assert plans.WORD == "on-demand"


# --- the command


def test_a_dry_run_shows_the_job_on_spot_and_hides_the_plan(invoke: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "targets.json").write_text(json.dumps(write(TARGETS)))
    (tmp_path / "job.yaml").write_text(json.dumps(preferring().model_dump(exclude_defaults=True)))
    common = ("--targets", str(tmp_path / "targets.json"), "submit", str(tmp_path / "job.yaml"), "--dry-run")
    for to in (("--to", "batch"), ("--to", "spot", "--then-to", "steady")):
        result = invoke(*common, *to)
        assert result.exit_code == 0, result.output
        assert f'"{PLAN}"' in result.stdout and "eyJ" not in result.stdout
    refused = invoke(*common, "--to", "spot")
    assert refused.exit_code == 2 and "job.yaml:1: spot: prefer: on AWS Batch" in refused.stderr
    assert invoke(*common, "--to", "batch", "--follow").exit_code == 2
