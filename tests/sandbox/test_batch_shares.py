"""Scheduling policies and fair-share queues, through plain boto3."""

from pathlib import Path
from typing import Any

import pytest


def policy(aws: Any, **fair: Any) -> str:
    return aws.batch.create_scheduling_policy(name=aws.name("policy"), fairsharePolicy=fair)["arn"]


def shared(aws: Any, max_vcpus: int, **fair: Any) -> str:
    """A queue of that policy over one environment of 4 vCPUs an instance."""
    environment = aws.environment(instanceTypes=["g5.xlarge"], maxvCpus=max_vcpus)
    return aws.queue(environment, schedulingPolicyArn=policy(aws, **fair))


def submit(aws: Any, queue: str, definition: str, share: str, priority: int = 0) -> str:
    return aws.submit(queue, definition, shareIdentifier=share, schedulingPriorityOverride=priority)


def order(aws: Any, jobs: dict[str, str]) -> list[str]:
    """The names in the order in which their jobs started."""
    return sorted(jobs, key=lambda name: aws.ended(jobs[name])["startedAt"])


def test_a_policy_is_made_listed_changed_and_deleted(aws: Any) -> None:
    batch = aws.batch
    arn, other = policy(aws, shareDecaySeconds=60), policy(aws)
    pages = batch.get_paginator("list_scheduling_policies").paginate(PaginationConfig={"PageSize": 1})
    assert {arn, other} <= {row["arn"] for page in pages for row in page["schedulingPolicies"]}
    new = {"computeReservation": 10, "shareDistribution": [{"shareIdentifier": "a*", "weightFactor": 0.5}]}
    batch.update_scheduling_policy(arn=arn, fairsharePolicy=new)
    [shown] = batch.describe_scheduling_policies(arns=[arn])["schedulingPolicies"]
    assert shown["fairsharePolicy"] == {"shareDecaySeconds": 0, **new}
    queue = aws.queue(aws.environment(), schedulingPolicyArn=arn)
    assert aws.shown_queue(queue)["schedulingPolicyArn"] == arn
    assert queue in aws.refusal(batch.delete_scheduling_policy, arn=arn)
    batch.update_job_queue(jobQueue=queue, schedulingPolicyArn=other)
    aws.until(lambda: aws.shown_queue(queue)["status"] == "VALID")
    batch.delete_scheduling_policy(arn=arn)
    assert batch.describe_scheduling_policies(arns=[arn])["schedulingPolicies"] == []
    fifo = aws.queue(aws.environment())
    for named, given in ((queue, ""), (fifo, other)):
        text = aws.refusal(batch.update_job_queue, jobQueue=named, schedulingPolicyArn=given)
        assert "replaced, not added or removed" in text


@pytest.mark.parametrize(
    "fair",
    [
        {"shareDecaySeconds": 604_801},
        {"computeReservation": 100},
        {"shareDistribution": [{"shareIdentifier": "a", "weightFactor": 0.0}]},
        {"shareDistribution": [{"shareIdentifier": "a b"}]},
        {"shareDistribution": [{"shareIdentifier": "team*"}, {"shareIdentifier": "team1"}]},
    ],
    ids=str,
)
def test_a_policy_outside_of_the_limits_is_refused(aws: Any, fair: dict[str, Any]) -> None:
    assert aws.refusal(aws.batch.create_scheduling_policy, name="refused", fairsharePolicy=fair)


def test_submit_asks_for_a_share_and_a_priority_where_there_is_a_policy(aws: Any, queue: str) -> None:
    fair, definition = shared(aws, 4), aws.definition(["true"])
    given = {"jobName": "j", "jobQueue": fair, "jobDefinition": definition}
    submit_job = aws.batch.submit_job
    assert aws.refusal(submit_job, **given) == "shareIdentifier must be specified."
    given["shareIdentifier"] = "a"
    text = "Either schedulingPriority in job definition or schedulingPriorityOverride should be specified."
    assert aws.refusal(submit_job, **given) == text
    assert "9999" in aws.refusal(submit_job, **given, schedulingPriorityOverride=10_000)
    given["jobQueue"] = queue
    assert "no fair-share" in aws.refusal(submit_job, **given)
    own = aws.definition(["true"], more={"schedulingPriority": 5})
    job = aws.ended(aws.submit(fair, own, shareIdentifier="a"))
    assert (job["status"], job["shareIdentifier"], job["schedulingPriority"]) == ("SUCCEEDED", "a", 5)


def test_the_share_that_used_least_goes_first_and_a_priority_counts_within_it(aws: Any, tmp_path: Path) -> None:
    queue, definition, all_wait = shared(aws, 4), aws.definition(["true"], vcpu=4), tmp_path / "all-wait"
    aws.reaches(submit(aws, queue, aws.waiting(all_wait, vcpu=4), "a"), "RUNNING")
    jobs = {
        "a low": submit(aws, queue, definition, "a"),
        "a high": submit(aws, queue, definition, "a", priority=9),
        "b": submit(aws, queue, definition, "b"),
    }
    all_wait.touch()
    assert order(aws, jobs) == ["b", "a high", "a low"]


def test_a_weight_divides_what_a_share_has_used(aws: Any, tmp_path: Path) -> None:
    weights = [{"shareIdentifier": "light*", "weightFactor": 0.001}]
    queue, definition = shared(aws, 4, shareDistribution=weights), aws.definition(["sleep", "0.5"], vcpu=4)
    quick = aws.definition(["true"], vcpu=4)
    aws.ended(submit(aws, queue, definition, "light1"))
    aws.ended(submit(aws, queue, quick, "heavy"))
    both_wait = tmp_path / "both-wait"
    aws.reaches(submit(aws, queue, aws.waiting(both_wait, vcpu=4), "other"), "RUNNING")
    jobs = {"heavy": submit(aws, queue, quick, "heavy"), "light": submit(aws, queue, quick, "light1")}
    both_wait.touch()
    assert order(aws, jobs) == ["light", "heavy"]


def test_what_was_used_long_ago_is_forgotten(aws: Any, tmp_path: Path) -> None:
    queue, definition = shared(aws, 4), aws.definition(["sleep", "0.5"], vcpu=4)
    aws.ended(submit(aws, queue, definition, "a"))
    aws.control("clock", advance_s=601)
    aws.ended(submit(aws, queue, definition, "b"))
    both_wait = tmp_path / "both-wait"
    aws.reaches(submit(aws, queue, aws.waiting(both_wait, vcpu=4), "c"), "RUNNING")
    jobs = {"b": submit(aws, queue, definition, "b"), "a": submit(aws, queue, definition, "a")}
    both_wait.touch()
    assert order(aws, jobs) == ["a", "b"]


def test_a_reservation_leaves_room_for_a_share_to_come(aws: Any) -> None:
    queue = shared(aws, 16, computeReservation=50)
    definition = aws.definition(["sleep", "60"], vcpu=4)
    own = [submit(aws, queue, definition, "a") for _ in range(3)]
    for job in own[:2]:
        aws.reaches(job, "RUNNING")
    # When a job of another queue has run, the scheduler has served this one too.
    aws.ended(aws.submit(aws.queue(aws.environment()), aws.definition(["true"])))
    assert aws.job(own[2])["status"] == "RUNNABLE"
    late = submit(aws, queue, definition, "b")
    aws.reaches(late, "RUNNING")
    assert aws.job(own[2])["status"] == "RUNNABLE"
    for job in (*own, late):
        aws.batch.terminate_job(jobId=job, reason="seen")
        aws.ended(job)
