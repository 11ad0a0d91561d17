"""AWS Lambda function, deployed with accel/budget. Stops the stack when AWS Budgets reports a budget over its line.

A notification says which budget to check; the spending is read from AWS Budgets. A schedule continues unfinished stops
and checks every budget, since a notification is sent once and may be lost. It checks no budget on the first day of a
month, when a budget may still show the cost of the last one. `stacks budget` uses the same levers.
"""

import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from accel.budget.acting import Outcome, look
from accel.budget.levers import FOREIGN, Change, Lever, LeverError
from accel.budget.spending import Limit, Reading
from accel.budget.state import State, StateConflict, of_json, to_json
from accel.contract import stop

DESCRIBED_AT_ONCE = 100
BUSY = "resource is being modified"
TRIES, PAUSE_S = 10, 1.0


@dataclass(frozen=True)
class Queues:
    """Lever that disables job queues. A disabled queue accepts no new jobs, and finishes those it has.

    Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_UpdateJobQueue.html
    """

    batch: Any
    arns: Sequence[str]
    stage: str = "queues"
    kind: str = "aws-queue"

    def plan(self) -> list[Change]:
        return [
            Change(self.stage, self.kind, arn, state, "DISABLED", f"queue {_short(arn)}: {state} to DISABLED")
            for arn, state in self._states(self.arns).items()
            if state != "DISABLED"
        ]

    def pull(self, change: Change) -> None:
        self._set(change.name, change.after)

    def restore(self, change: Change) -> str | None:
        if change.name not in self.arns:
            return f"queue {_short(change.name)} {FOREIGN}"
        state = self._states([change.name]).get(change.name)
        if state == change.after:
            self._set(change.name, change.before)
        return None if state in (change.before, change.after) else f"queue {_short(change.name)} is {state or 'gone'}"

    def _set(self, arn: str, state: str) -> None:
        call_patiently(lambda: self.batch.update_job_queue(jobQueue=arn, state=state))

    def _states(self, arns: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for start in range(0, len(arns), DESCRIBED_AT_ONCE):
            part = list(arns[start : start + DESCRIBED_AT_ONCE])
            answer = call_patiently(lambda part=part: self.batch.describe_job_queues(jobQueues=part))
            found |= {each["jobQueueArn"]: each["state"] for each in answer["jobQueues"]}
        return found


@dataclass(frozen=True)
class Environments:
    """Lever that disables compute environments and sets their minimum to 0. The maximum stays.

    A disabled environment starts no more jobs and goes down to its minimum. A maximum that is too small for a job is
    MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE, for which the time limit of a queue cancels waiting jobs.
    Sources:
    https://docs.aws.amazon.com/batch/latest/APIReference/API_UpdateComputeEnvironment.html,
    https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable_misconfiguration.html
    """

    batch: Any
    arns: Sequence[str]
    stage: str = "maximums"
    kind: str = "aws-environment"

    def plan(self) -> list[Change]:
        planned: list[Change] = []
        for arn, now in self._sizes(self.arns).items():
            after = {"state": "DISABLED", "min": 0, "max": now["max"]}
            if now != after:
                text = f"environment {_short(arn)}: {_size(now)} to {_size(after)}"
                planned.append(Change(self.stage, self.kind, arn, now, after, text))
        return planned

    def pull(self, change: Change) -> None:
        self._set(change.name, change.after["state"], {"minvCpus": change.after["min"]})

    def restore(self, change: Change) -> str | None:
        if change.name not in self.arns:
            return f"environment {_short(change.name)} {FOREIGN}"
        now = self._sizes([change.name]).get(change.name)
        if now is None:
            return f"environment {_short(change.name)} is gone"
        before, after = change.before, change.after
        if now == before:
            return None
        # Versions up to 0.1.0 took the maximum down too, in steps and to 0: it may be anywhere on that way.
        if (now["state"], now["min"]) != ("DISABLED", 0) or not after["max"] <= now["max"] <= before["max"]:
            return f"environment {_short(change.name)} is {_size(now)}"
        self._set(change.name, before["state"], {"minvCpus": before["min"], "maxvCpus": before["max"]})
        return None

    def _set(self, arn: str, state: str, resources: dict[str, int]) -> None:
        call = self.batch.update_compute_environment
        call_patiently(lambda: call(computeEnvironment=arn, state=state, computeResources=resources))

    def _sizes(self, arns: Sequence[str]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for start in range(0, len(arns), DESCRIBED_AT_ONCE):
            part = list(arns[start : start + DESCRIBED_AT_ONCE])
            answer = call_patiently(
                lambda part=part: self.batch.describe_compute_environments(computeEnvironments=part)
            )
            for each in answer["computeEnvironments"]:
                of = each["computeResources"]
                size = {"state": each["state"], "min": of["minvCpus"], "max": of["maxvCpus"]}
                found[each["computeEnvironmentArn"]] = size
        return found


@dataclass(frozen=True)
class Jobs:
    """Lever that terminates running jobs: SIGTERM, and SIGKILL after 30 seconds. AWS does not retry them.

    Source: https://docs.aws.amazon.com/batch/latest/userguide/job_timeouts.html
    """

    batch: Any
    queues: Sequence[str]
    """ARNs."""
    most: int | None
    """Number of jobs to terminate at once; None: all."""
    stage: str = "running"
    kind: str = "aws-job"

    def plan(self) -> list[Change]:
        found = [job for queue in self.queues for job in self._running(queue)]
        part = found[: self.most]
        return [
            Change(
                self.stage,
                self.kind,
                job["jobId"],
                None,
                "terminated",
                f"job {job.get('jobName', '')} ({job['jobId']}): SIGTERM, and SIGKILL after 30 seconds",
                later=len(part) < len(found),
            )
            for job in part
        ]

    def pull(self, change: Change) -> None:
        reason = "the stack's budget is crossed"
        call_patiently(lambda: self.batch.terminate_job(jobId=change.name, reason=reason))

    def restore(self, change: Change) -> str | None:
        return f"job {change.name} has ended; submit it again"

    def _running(self, queue: str) -> Iterator[dict[str, Any]]:
        yield from self._listed(("STARTING", "RUNNING"), jobQueue=queue)
        # An array stays PENDING while its tasks run.
        for job in self._listed(("PENDING",), jobQueue=queue):
            if job.get("arrayProperties"):
                yield from self._listed(("STARTING", "RUNNING"), arrayJobId=job["jobId"])

    def _listed(self, statuses: Sequence[str], **of: str) -> list[dict[str, Any]]:
        pages = self.batch.get_paginator("list_jobs").paginate
        return [
            job
            for status in statuses
            for page in call_patiently(lambda status=status: list(pages(**of, jobStatus=status)))
            for job in page["jobSummaryList"]
        ]


def call_patiently(call: Callable[[], Any]) -> Any:
    """Return the call's answer. Retry while AWS is still working on the previous change. Raise LeverError."""
    errors: Any = import_module("botocore.exceptions")
    for left in reversed(range(TRIES)):
        try:
            return call()
        except (errors.BotoCoreError, errors.ClientError) as error:
            if BUSY not in str(error) or not left:
                raise LeverError(str(error)) from error
        time.sleep(PAUSE_S)
    raise AssertionError


def _size(size: dict[str, Any]) -> str:
    return f"{size['state']}, {size['min']} to {size['max']} vCPUs"


def _short(arn: str) -> str:
    return arn.rpartition("/")[2]


SETTINGS = "STACK"
"""Variable with the Settings, as JSON."""
AT_ONCE = 500
"""Number of jobs that one run terminates: AWS accepts some fifty calls a second, and a run has a time limit."""


@dataclass(frozen=True)
class Settings:
    """Settings that the stack gives its function."""

    region: str
    account: str
    table: str
    """Name of the table of claims."""
    budgets: dict[str, dict[str, Any]]
    """Fields of Limit, by the budget's name in AWS Budgets."""
    topics: dict[str, str]
    """Name in AWS Budgets of the budget that publishes to each topic, by the topic's ARN."""
    queues: list[str]
    """ARNs."""
    environments: list[str]
    """ARNs."""
    told: list[str]
    """ARNs of topics that are notified of what was done."""


class UnconfirmedNotification(Exception):
    """AWS Budgets has sent a notification, but does not show the spending that caused it. Lambda calls again, twice;
    after that, the schedule does."""


class UnfinishedStop(Exception):
    """Some calls were refused. Lambda calls again; after that, the schedule does."""


def handler(event: Any, context: Any) -> dict[str, Any]:
    """Handle a notification of SNS, or a call by the schedule. Return what was done, and why the stack is stopped.
    Raise UnfinishedStop and UnconfirmedNotification."""
    settings = Settings(**json.loads(os.environ[SETTINGS]))
    sdk: Any = import_module("boto3")  # here, since a program that deploys this needs none
    now, budgets = time.time(), sdk.client("budgets")
    notified = [settings.topics[record["Sns"]["TopicArn"]] for record in event.get("Records", [])]
    names = notified or ([] if time.gmtime(now).tm_mday == 1 else list(settings.budgets))
    limits = [Limit(**settings.budgets[name]) for name in names]
    store = TableStore(sdk.client("dynamodb", region_name=settings.region), settings.table)
    done = look(limits, [read(budgets, settings, name) for name in names], levers(sdk, settings), store, now)
    _tell(sdk, settings, done)
    if done.failures:
        raise UnfinishedStop("; ".join(done.failures))
    under = [limit.budget for limit in limits if not _known(limit.budget, done.state)] if notified else []
    if under:
        raise UnconfirmedNotification(f"{', '.join(under)}: notified, and below the line where it stops")
    return {"done": list(done.done), "stopped": done.state.stopped}


def levers(sdk: Any, settings: Settings, most: int | None = AT_ONCE) -> list[Lever]:
    """Return the levers of an AWS section. `most`: number of jobs to terminate at once; None: all."""
    batch = sdk.client("batch", region_name=settings.region)
    return [
        Queues(batch, settings.queues),
        Environments(batch, settings.environments),
        Jobs(batch, settings.queues, most),
    ]


def read(budgets: Any, settings: Settings, name: str) -> Reading:
    """Return the reading of one monthly budget from AWS Budgets."""
    found = call_patiently(lambda: budgets.describe_budget(AccountId=settings.account, BudgetName=name))["Budget"]
    spend: dict[str, Any] = found.get("CalculatedSpend") or {}
    forecast = spend.get("ForecastedSpend")
    return Reading(
        budget=settings.budgets[name]["budget"],
        period=time.strftime("%Y-%m-01", time.gmtime()),
        amount=float(found["BudgetLimit"]["Amount"]),
        currency=found["BudgetLimit"]["Unit"],
        actual=float(spend.get("ActualSpend", {}).get("Amount", 0)),
        forecast=float(forecast["Amount"]) if forecast else None,
    )


class TableStore:
    """State as a row of the claim table, replaced only if it is unchanged since it was read."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def load(self) -> tuple[State, int]:
        """Return the state and its version; 0: there is none."""
        key = {stop.TABLE_KEY: {"S": stop.KEY}}
        answer = call_patiently(lambda: self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True))
        item = answer.get("Item")
        return (of_json(item[stop.STATE]["S"]), int(item[stop.VERSION]["N"])) if item else (State(), 0)

    def save(self, state: State, seen: int) -> int:
        """Replace the state of version `seen`, and return the new version. Raise StateConflict."""
        item: dict[str, Any] = {
            stop.TABLE_KEY: {"S": stop.KEY},
            stop.STATE: {"S": to_json(state)},
            stop.VERSION: {"N": str(seen + 1)},
            **({stop.STOPPED: {"S": state.stopped}} if state.stopped else {}),
        }
        condition: dict[str, Any] = {
            "ConditionExpression": "attribute_not_exists(#version) OR #version = :seen",
            "ExpressionAttributeNames": {"#version": stop.VERSION},
            "ExpressionAttributeValues": {":seen": {"N": str(seen)}},
        }
        try:
            self._dynamodb.put_item(TableName=self._table, Item=item, **condition)
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            raise StateConflict("the state of the stop has been changed by somebody else") from None
        return seen + 1


def _known(budget: str, state: State) -> bool:
    return any(each.budget == budget for each in (*state.crossings, *state.resumed))


def _tell(sdk: Any, settings: Settings, outcome: Outcome) -> None:
    lines = [*outcome.done, *(f"failed, and tried again: {each}" for each in outcome.news)]
    if not lines:
        return
    text = "\n".join([f"Stopped: {outcome.state.stopped}", *lines, "`stacks budget resume` takes it back."])
    logging.getLogger().warning(text)
    for topic in settings.told:
        client = sdk.client("sns", region_name=topic.split(":")[3])
        call_patiently(
            lambda client=client, topic=topic: client.publish(TopicArn=topic, Subject="Budget", Message=text)
        )
