"""Tasks of Google Batch that really run in the sandbox: runnables, failures, retries, preemption, logs."""

import base64
import contextlib
import json
import re
from typing import Any

import psutil
import pytest

from tests.support.google_batch import (
    JOBS,
    body,
    codes,
    control,
    create,
    entries,
    printed,
    ran,
    reach,
    said,
    shell,
    shown,
    state,
    task,
    tasks,
)
from tests.support.google_fake import Fake, P
from tests.support.google_tpus import preempt
from tests.support.google_tpus import said as refusal
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_batch"]
BARRIER = {"barrier": {"name": "all"}}
SECRET = f"{P}/secrets/batch-token"
POLICY = {
    "maxRetryCount": 2,
    "lifecyclePolicies": [{"action": "RETRY_TASK", "actionCondition": {"exitCodes": [50001]}}],
}


def retry(action: str, *given: int) -> dict[str, Any]:
    policy = {"action": action, "actionCondition": {"exitCodes": list(given)}}
    return {"maxRetryCount": 1, "lifecyclePolicies": [policy]}


def test_what_a_task_knows(batch: Fake) -> None:
    secrets = "secretmanager.googleapis.com/v1"
    if not batch.ask("GET", f"{secrets}/{SECRET}").ok:
        batch.call("POST", f"{secrets}/{P}/secrets", {"replication": {"automatic": {}}}, secretId="batch-token")
    value = base64.b64encode(b"hush").decode()
    version = batch.call("POST", f"{secrets}/{SECRET}:addVersion", {"payload": {"data": value}})["name"]
    assert batch.call("GET", f"{secrets}/{SECRET}/versions/latest:access")["payload"]["data"] == value
    line = 'echo "$BATCH_TASK_INDEX/$BATCH_TASK_COUNT $BATCH_TASK_RETRY_ATTEMPT $A $B $TOKEN $(basename $PWD)"'
    line += '; wc -l <"$BATCH_HOSTS_FILE"; echo "$BATCH_NODE_INDEX/$BATCH_NODE_COUNT"'
    line += '; [ "$(head -1 "$BATCH_HOSTS_FILE")" = "$BATCH_MAIN_NODE_HOSTNAME" ] && echo main'
    wanted = {"variables": {"A": "task", "B": "task"}, "secretVariables": {"TOKEN": version}}
    job, lines = ran(
        batch, shell(line, environment={"variables": {"B": "runnable"}}), count=2, spec={"environment": wanted},
        group={"requireHostsFile": True, "taskCountPerNode": 1},
    )  # fmt: skip
    assert job["status"]["state"] == "SUCCEEDED"
    assert {"0/2 0 task runnable hush tests", "1/2 0 task runnable hush tests"} <= set(lines)
    assert {"0/2", "1/2", "2", "main"} <= set(lines)
    each = [{"variables": {"A": "x"}}, {"variables": {"A": "y"}}, {"variables": {"A": "z"}}]
    job, lines = ran(batch, shell("echo $A"), group={"taskEnvironments": each})
    assert sorted(lines) == ["x", "y", "z"] and job["taskGroups"][0]["taskCount"] == "3"
    none = {"environment": {"secretVariables": {"TOKEN": f"{SECRET}/versions/99"}}}
    job, lines = ran(batch, shell("echo never"), spec=none)
    assert (codes(task(batch, job["name"].rpartition("/")[2])), lines) == ([50000], [])
    assert any("Secret Version" in row["textPayload"] for row in entries(batch, job, "batch_agent_logs"))


def test_scripts_run_by_their_first_line(batch: Fake) -> None:
    python = {"script": {"text": "#!/usr/bin/env python3\nprint('python')\n"}}
    job, lines = ran(batch, {"script": {"text": "echo shell $BATCH_TASK_INDEX"}}, python)
    assert (job["status"]["state"], lines) == ("SUCCEEDED", ["shell 0", "python"])


@pytest.mark.parametrize(
    ("runnables", "lines", "code"),
    [
        ([shell("echo a; exit 3"), shell("echo b")], ["a"], 3),
        ([shell("exit 3"), shell("echo b; exit 4", alwaysRun=True), shell("echo c")], ["b"], 3),
        ([shell("exit 3", ignoreExitStatus=True), shell("echo b")], ["b"], None),
        ([shell("echo up; sleep 600", background=True), shell("while ! echo on; do :; done")], ["on"], None),
        ([shell("kill -9 $$")], [], 137),
        ([shell("sleep 600", timeout="0.2s"), shell("echo b")], [], 50005),
        ([{"container": {"imageUri": "local/tests", "entrypoint": "no-such-command"}}], [], 127),
        ([{"container": {"imageUri": "local/tests"}}], [], 125),
        ([{"container": {"imageUri": "local/nothing-here", "commands": ["true"]}}], [], 1),
    ],
)  # fmt: skip
def test_runnables_in_their_order(batch: Fake, runnables: Any, lines: list[str], code: int | None) -> None:
    job, found = ran(batch, *runnables)
    name = job["name"].rpartition("/")[2]
    assert [each for each in found if each not in ("up", "Terminated", "Killed")] == lines
    assert codes(task(batch, name)) == ([code] if code else [])
    assert job["status"]["state"] == ("FAILED" if code else "SUCCEEDED")
    if code and code < 50000:
        event = r'"Task state is updated from RUNNING to FAILED on zones/us-central1-a/instances/\d+ with exit code'
        why = r"\.Job failed due to task failure\. Specifically, task with index 0 failed due to the following task"
        head = f"Job state is set from RUNNING to FAILED for job projects/\\d+/locations/us-central1/jobs/{name}"
        assert re.fullmatch(f'{head}{why} event: {event} {code}\\."', said(job)[-1])


def test_barriers_and_the_maximum_runtime(batch: Fake) -> None:
    slow = shell("test $BATCH_TASK_INDEX = 0 && sleep 0.4; echo before")
    job, lines = ran(batch, slow, BARRIER, shell("echo after"), count=3)
    assert (job["status"]["state"], lines) == ("SUCCEEDED", ["before"] * 3 + ["after"] * 3)
    job, lines = ran(batch, shell("sleep 600"), shell("echo b", alwaysRun=True), spec={"maxRunDuration": "0.2s"})
    assert said(job)[-1].endswith('due to task runs over the maximum runtime with exit code 50005."')
    assert lines in ([], ["Terminated"])


@pytest.mark.parametrize(
    ("spec", "attempts"),
    [
        ({}, 1),
        ({"maxRetryCount": 2}, 3),
        (retry("RETRY_TASK", 7), 2),
        (retry("RETRY_TASK", 8), 1),
        (retry("FAIL_TASK", 7), 1),
        (retry("FAIL_TASK", 8), 2),
    ],
)
def test_which_failures_are_tried_again(batch: Fake, spec: Any, attempts: int) -> None:
    job, lines = ran(batch, shell("echo $BATCH_TASK_RETRY_ATTEMPT; exit 7"), spec=spec)
    assert lines == [str(number) for number in range(attempts)]
    found = task(batch, job["name"].rpartition("/")[2])
    assert (found["state"], codes(found)) == ("FAILED", [7] * attempts)
    assert job["status"]["taskGroups"]["group0"]["counts"] == {"FAILED": "1"}


def test_other_tasks_of_a_job_that_fails_run_to_their_end(batch: Fake) -> None:
    job, _ = ran(batch, shell("exit $BATCH_TASK_INDEX"), count=3, group={"parallelism": 1})
    assert job["status"]["taskGroups"]["group0"]["counts"] == {"FAILED": "2", "SUCCEEDED": "1"}
    assert "task with index 1 failed due to the following task event" in said(job)[-1]


def test_a_preempted_task_that_is_tried_again_succeeds(batch: Fake) -> None:
    """What its events tell last is the failure of the first attempt."""
    line = "echo attempt $BATCH_TASK_RETRY_ATTEMPT; test $BATCH_TASK_RETRY_ATTEMPT = 1 || sleep 600"
    name = create(batch, body(shell(line), spot=True, spec=POLICY))
    job = reach(batch, name, "RUNNING")
    until(lambda: printed(batch, job) == ["attempt 0"])
    assert preempt(batch, f"{job['name']}/taskGroups/group0/tasks/0").ok
    job = reach(batch, name, "SUCCEEDED")
    found = task(batch, name)
    assert (found["state"], codes(found)) == ("SUCCEEDED", [50001])
    text = [row["description"] for row in job["status"]["statusEvents"] if row.get("taskState") == "FAILED"]
    assert len(text) == 1 and text[0].endswith("due to Spot VM preemption with exit code 50001.")
    assert "taskExecution" not in found["statusEvents"][-1]
    hosts = {row["labels"]["hostname"] for row in entries(batch, job)}
    assert len(hosts) == 2  # another VM


def test_vms_are_taken_with_all_of_their_tasks(batch: Fake) -> None:
    name = create(batch, body(shell("echo up; sleep 600"), count=4, spot=True, group={"taskCountPerNode": 2}))
    job = reach(batch, name, "RUNNING")
    rows = until(lambda: rows if len(rows := entries(batch, job)) == 4 else None)
    host = next(row["labels"]["hostname"] for row in rows if row["labels"]["task_id"].endswith("-0"))
    assert preempt(batch, f"{P}/zones/us-central1-a/instances/{host}").ok
    until(lambda: shown(batch, name)["status"]["taskGroups"]["group0"]["counts"].get("FAILED") == "2")
    assert preempt(batch, job["name"]).ok
    reach(batch, name, "FAILED")
    assert [codes(row["status"]) for row in tasks(batch, name)["tasks"]] == [[50001]] * 4
    assert refusal(preempt(batch, job["name"]))[0] == 400
    assert refusal(preempt(batch, f"{P}/zones/us-central1-a/instances/nobody"))[0] == 404
    steady = create(batch, body(shell("sleep 600")))
    reach(batch, steady, "RUNNING")
    assert "is not Spot" in refusal(preempt(batch, f"{job['name'].rpartition('/')[0]}/{steady}"))[1]
    ended = {"end": f"{job['name'].rpartition('/')[0]}/{steady}", "exitCode": 50002}
    assert control(batch, **ended).ok and control(batch, **{**ended, "exitCode": 3}).status_code == 400
    assert "due to Batch no longer receives VM updates" in said(reach(batch, steady, "FAILED"))[-1]


def test_log_entries(batch: Fake) -> None:
    batch.fault(log_lag_s=0.3)
    many = shell("for n in $(seq 300); do echo line $n; done; printf last", labels={"step": "one"})
    name = create(batch, body(many, labels={"team": "a"}))
    job = reach(batch, name, "SUCCEEDED")
    lines = until(lambda: found if len(found := printed(batch, job)) == 301 else None)
    assert lines == [f"line {n}" for n in range(1, 301)] + ["last"]
    row = entries(batch, job)[0]
    assert row["resource"]["type"] == "batch.googleapis.com/Job"
    assert row["resource"]["labels"]["job_id"] == job["uid"] and row["severity"] == "INFO"
    labels = row["labels"]
    assert labels["task_id"] == f"{job['uid']}-group0-0" and labels["job_uid"] == job["uid"]
    assert labels["task_group_name"] == job["taskGroups"][0]["name"] and labels["hostname"].startswith(job["uid"])
    assert (labels["team"], labels["step"], labels["runnable_index"]) == ("a", "one", "0")
    agent = entries(batch, job, "batch_agent_logs")
    assert f"task/{job['uid']}-group0-0/0/0" in agent[0]["textPayload"]
    _, silent = ran(batch, shell("echo unheard"), logsPolicy={"destination": "DESTINATION_UNSPECIFIED"})
    assert silent == []


def test_no_process_outlives_its_job(batch: Fake) -> None:
    name = create(batch, body(shell("sleep 611 & echo $$; wait"), count=2))
    job = reach(batch, name, "RUNNING")
    rows = until(lambda: found if len(found := printed(batch, job)) == 2 else None)
    pids = [int(each) for each in rows]
    assert all(psutil.pid_exists(pid) for pid in pids)
    batch.call("DELETE", f"{JOBS}/{name}")
    until(lambda: batch.ask("GET", f"{JOBS}/{name}").status_code == 404)
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_topics_are_resources(batch: Fake) -> None:
    topics = f"pubsub.googleapis.com/v1/{P}/topics"
    made = batch.call("PUT", f"{topics}/t1", {"labels": {"a": "b"}})
    assert made["name"] == f"{P}/topics/t1"
    assert refusal(batch.ask("PUT", f"{topics}/t1", {})) == (
        409, "Resource already exists in the project (resource=t1).",
    )  # fmt: skip
    policy = {"bindings": [{"role": "roles/pubsub.publisher", "members": ["user:a@example.com"]}]}
    batch.call("POST", f"{topics}/t1:setIamPolicy", {"policy": policy})
    assert batch.call("GET", f"{topics}/t1:getIamPolicy")["bindings"] == policy["bindings"]
    batch.call("PATCH", f"{topics}/t1", {"topic": {"labels": {"c": "d"}}, "updateMask": "labels"})
    assert batch.call("GET", f"{topics}/t1")["labels"] == {"c": "d"}
    subscription = f"pubsub.googleapis.com/v1/{P}/subscriptions/s1"
    batch.call("PUT", subscription, {"topic": f"{P}/topics/t1"})
    data = base64.b64encode(json.dumps({"n": 1}).encode()).decode()
    batch.call("POST", f"{topics}/t1:publish", {"messages": [{"data": data}]})
    (row,) = batch.call("POST", f"{subscription}:pull", {"maxMessages": 5})["receivedMessages"]
    assert row["message"]["data"] == data
    assert batch.call("POST", f"{subscription}:pull", {"maxMessages": 5}) == {}  # it is lent
    batch.call("POST", f"{subscription}:modifyAckDeadline", {"ackIds": [row["ackId"]], "ackDeadlineSeconds": 0})
    (row,) = batch.call("POST", f"{subscription}:pull", {"maxMessages": 5})["receivedMessages"]
    batch.call("POST", f"{subscription}:acknowledge", {"ackIds": [row["ackId"]]})
    assert refusal(batch.ask("POST", f"{topics}/none:publish", {"messages": [{"data": data}]}))[0] == 404
    batch.call("DELETE", f"{topics}/t1")
    assert batch.call("GET", subscription)["topic"] == "_deleted-topic_"
    batch.call("DELETE", subscription)
    assert refusal(batch.ask("GET", f"{topics}/t1")) == (404, "Resource not found (resource=t1).")


def test_cancelling_waits_for_the_processes(batch: Fake) -> None:
    name = create(batch, body(shell("trap '' TERM; echo up; while :; do sleep 0.05; done")))
    job = reach(batch, name, "RUNNING")
    until(lambda: printed(batch, job))
    batch.call("POST", f"{JOBS}/{name}:cancel", {})
    assert state(batch, name) == "CANCELLATION_IN_PROGRESS"
    assert batch.ask("GET", "sandbox-api/faults").ok
    for process in psutil.process_iter():
        if process.is_running() and any(job["uid"] in part for part in _line(process)):
            for each in (*process.children(recursive=True), process):  # nothing of it outlives the test
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
    reach(batch, name, "CANCELLED")


def _line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
