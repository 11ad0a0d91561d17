"""Shares and retries in the request: who pays for an attempt, and what is tried again."""

from typing import Any

import pytest

from accel.diagnostics.errors import BadInputs
from jobs.backends.aws_batch import AwsBatchBackend, retries
from jobs.backends.aws_batch.price_rates import demand
from jobs.backends.base import Request
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key
from tests.jobs.backends.aws_batch_target import make_target

FAIR = {"research": 0.5, "team*": 2.0}


def render(shares: dict[str, float] | None = None, **fields: Any) -> Request:
    job = Job(**{"name": "digits", **fields})
    key = submission_key(job.name, "x")
    return AwsBatchBackend("gpu", make_target(shares=shares)).render(job, platform_name(job.name, key), key)


def faults(shares: dict[str, float] | None = None, **fields: Any) -> list[str]:
    with pytest.raises(BadInputs) as refused:
        render(shares, **fields)
    return refused.value.messages


@pytest.mark.parametrize("shares", [FAIR, {}])
def test_a_fair_share_queue_takes_no_job_without_a_share(shares: dict[str, float]) -> None:
    (fault,) = faults(shares)
    assert fault.startswith("aws_batch.share_identifier: is missing, and the queue shares by it")


def test_a_share_has_a_priority_without_which_aws_refuses_the_job() -> None:
    submit = render(FAIR, aws_batch={"share_identifier": "research"}).body["submit"]
    assert (submit["shareIdentifier"], submit["schedulingPriorityOverride"]) == ("research", 0)
    own = {"share_identifier": "team7", "scheduling_priority": 9}
    assert render(FAIR, aws_batch=own).body["submit"]["schedulingPriorityOverride"] == 9


def test_a_first_in_first_out_queue_takes_neither_share_nor_priority() -> None:
    found = faults(None, aws_batch={"share_identifier": "research", "scheduling_priority": 1})
    assert [fault.partition(":")[0] for fault in found] == [
        "aws_batch.share_identifier",
        "aws_batch.scheduling_priority",
    ]
    assert "shareIdentifier" not in render(None).body["submit"]


def test_a_share_that_the_queue_does_not_list_is_a_warning_with_the_nearest() -> None:
    (warning,) = render(FAIR, aws_batch={"share_identifier": "reserch"}).warnings
    assert "weighs 1" in warning and "did you mean research?" in warning
    assert render({}, aws_batch={"share_identifier": "anybody"}).warnings == ()
    assert "letters and digits" in faults({}, aws_batch={"share_identifier": "a-b"})[0]


def ends(strategy: dict[str, Any], *, status: str = "", reason: str = "", code: str = "") -> bool:
    """Whether Batch stops after an attempt that ended so: the first rule that matches, else another attempt."""
    seen = {"onStatusReason": status, "onReason": reason, "onExitCode": code}
    for rule in strategy.get("evaluateOnExit", []):
        patterns = {key: rule[key] for key in seen if key in rule}
        if all(
            seen[key].startswith(pattern[:-1]) if pattern.endswith("*") else seen[key] == pattern
            for key, pattern in patterns.items()
        ):
            return rule["action"] == "EXIT"
    return False


LOST = {"status": "Host EC2 (instance i-0123456789abcdef0) terminated."}
UNPULLED = {"status": "Task failed to start", "reason": "CannotPullContainerError: pull access denied"}
OWN = {"status": "Essential container in task exited", "code": "1"}
STOPPED = {"status": "Essential container in task exited", "code": "143"}


@pytest.mark.parametrize(
    ("own", "lost", "attempts", "tried_again"),
    [
        (None, None, None, ()),
        (2, None, 3, (LOST, UNPULLED, STOPPED, OWN)),
        (None, 4, 5, (LOST, UNPULLED, STOPPED)),
        (0, 4, 5, (LOST, UNPULLED, STOPPED)),
        (2, 0, 3, (OWN,)),
        (2, 4, 7, (LOST, UNPULLED, STOPPED, OWN)),
        (0, 0, 1, ()),
        (None, 0, 1, ()),
    ],
)
def test_what_is_tried_again(
    own: int | None, lost: int | None, attempts: int | None, tried_again: tuple[dict[str, str], ...]
) -> None:
    strategy = retries.of_job(own, lost)
    if strategy is None:
        assert attempts is None
        return
    assert strategy["attempts"] == attempts
    for how in (LOST, UNPULLED, STOPPED, OWN):
        assert strategy["attempts"] == 1 or ends(strategy, **how) == (how not in tried_again), how
    assert strategy["attempts"] == 1 or ends(strategy, status="Essential container in task exited", code="127")
    assert len(strategy.get("evaluateOnExit", [])) <= 5


def test_a_definition_that_says_nothing_retries_what_was_lost() -> None:
    strategy = retries.infrastructure_only()
    assert [ends(strategy, **how) for how in (LOST, UNPULLED, STOPPED, OWN)] == [False, False, False, True]
    assert not ends(strategy, reason="AGENT")


def test_two_counts_are_one_to_batch_which_is_said() -> None:
    (warning,) = render(retries=2, lost_retries=4).warnings
    assert warning.startswith("lost_retries: 4 and 2 retries are one count to AWS Batch: at most 6 more of either")
    assert render(retries=0, lost_retries=4).warnings == render(lost_retries=4).warnings == ()
    assert "lost_retries: must be 0 to 5 with 4 retries, is 6" in faults(retries=4, lost_retries=6)[0]


def test_a_worst_case_counts_both() -> None:
    assert demand(Job(name="a", retries=2, lost_retries=4), make_target()).attempts == 7
    assert demand(Job(name="a", lost_retries=4), make_target()).attempts == 5
