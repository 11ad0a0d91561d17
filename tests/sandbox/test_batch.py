"""A job's life in the sandbox's Batch, through plain boto3 against the running server."""

import json
import time
from typing import Any

import pytest


def test_a_job_runs_here_and_its_lines_are_in_its_stream(aws: Any, queue: str) -> None:
    definition = aws.definition(
        [
            "sh",
            "-c",
            "pwd; echo $WHO $AWS_BATCH_JQ_NAME $AWS_BATCH_JOB_ATTEMPT; echo Ref::what; echo to-stderr >&2",
        ],
        environment=[{"name": "WHO", "value": "nobody"}],
        jobRoleArn="arn:aws:iam::210020003000:role/jobs",
    )
    before = time.time() * 1000
    job = aws.ended(
        aws.submit(
            queue, definition, parameters={"what": "params"},
            containerOverrides={"environment": [{"name": "WHO", "value": "me"}]},
        )
    )  # fmt: skip
    assert (job["status"], job["statusReason"]) == ("SUCCEEDED", "Essential container in task exited")
    container = job["container"]
    assert container["exitCode"] == 0
    assert container["environment"] == [{"name": "WHO", "value": "me"}]
    assert container["jobRoleArn"] == "arn:aws:iam::210020003000:role/jobs"
    assert container["logStreamName"].startswith("def-")
    assert aws.lines(container["logStreamName"]) == [
        str(aws.root / "work"),
        f"me {queue} 1",
        "params",
        "to-stderr",
    ]
    [attempt] = job["attempts"]
    assert attempt["container"]["exitCode"] == 0
    assert before - 1 <= job["createdAt"] <= attempt["startedAt"] <= attempt["stoppedAt"] <= job["stoppedAt"]


def test_retries_follow_the_documented_globs(aws: Any, queue: str) -> None:
    """`jobs` names the attempts that each strategy leads to for a job that exits with 3."""
    definition = aws.definition(["sh", "-c", "exit 3"])
    exits = {"onReason": "*", "action": "EXIT"}
    strategies: list[tuple[dict[str, Any], int]] = [
        ({"attempts": 2}, 2),
        ({"attempts": 3, "evaluateOnExit": [{"onExitCode": "4*", "action": "EXIT"}]}, 3),
        ({"attempts": 3, "evaluateOnExit": [{"onExitCode": "3", "action": "exit"}]}, 1),
        ({"attempts": 2, "evaluateOnExit": [{"onExitCode": "3", "action": "retry"}, exits]}, 2),
        ({"attempts": 3, "evaluateOnExit": [{"onStatusReason": "Host EC2*", "action": "RETRY"}, exits]}, 1),
        ({"attempts": 3, "evaluateOnExit": [{"onStatusReason": "Essential", "action": "EXIT"}]}, 3),
        (
            {
                "attempts": 3,
                "evaluateOnExit": [{"onStatusReason": "Essential*", "onExitCode": "3", "action": "EXIT"}],
            },
            1,
        ),
    ]
    jobs = [aws.submit(queue, definition, retryStrategy=strategy) for strategy, _ in strategies]
    ended = [aws.ended(job) for job in jobs]
    assert [len(job["attempts"]) for job in ended] == [count for _, count in strategies]
    assert {(job["status"], job["container"]["exitCode"]) for job in ended} == {("FAILED", 3)}
    assert len({attempt["container"]["logStreamName"] for attempt in ended[0]["attempts"]}) == 2


@pytest.mark.parametrize(
    ("image", "command", "reason"),
    [
        ("local/absent", ["true"], "CannotPullContainerError: local/absent: there is no folder"),
        ("local/../..", ["true"], "CannotPullContainerError"),
        (
            "busybox",
            ["true"],
            "CannotPullContainerError: the sandbox runs only local/<folder> images, not busybox",
        ),
        ("local/work", ["no-such-command"], "CannotStartContainerError"),
        ("local/work", [], "CannotStartContainerError"),
    ],
)
def test_nothing_is_pretended_to_have_run(aws: Any, queue: str, image: str, command: list[str], reason: str) -> None:
    job = aws.ended(aws.submit(queue, aws.definition(command, image=image)))
    assert (job["status"], job["statusReason"]) == ("FAILED", "Task failed to start")
    assert job["attempts"][0]["container"]["reason"].startswith(reason)
    assert "exitCode" not in job["container"]


def test_a_log_group_must_exist_or_be_asked_for(aws: Any, queue: str) -> None:
    def configured(group: str, **more: str) -> dict[str, Any]:
        options = {"awslogs-group": group, "awslogs-stream-prefix": "training", **more}
        return {"logConfiguration": {"logDriver": "awslogs", "options": options}}

    job = aws.ended(aws.submit(queue, aws.definition(["true"], **configured("/absent"))))
    assert job["attempts"][0]["container"]["reason"].endswith("The specified log group does not exist.")
    made = configured("/made", **{"awslogs-create-group": "true"})
    job = aws.ended(aws.submit(queue, aws.definition(["echo", "hello"], **made)))
    stream = job["container"]["logStreamName"]
    assert stream.startswith("training/default/")
    assert aws.lines(stream, "/made") == ["hello"]


def test_lines_arrive_while_the_job_runs_and_bytes_are_kept(aws: Any, queue: str) -> None:
    script = r"printf 'first\n\nl\303\266ng'; sleep 60"
    job_id = aws.submit(queue, aws.definition(["sh", "-c", script]))
    stream = aws.reaches(job_id, "RUNNING")["container"]["logStreamName"]
    for _ in range(100):
        if aws.lines(stream):
            break
        time.sleep(0.05)
    assert aws.lines(stream) == ["first"]
    aws.batch.terminate_job(jobId=job_id, reason="enough")
    assert aws.ended(job_id)["statusReason"] == "enough"
    assert aws.lines(stream) == ["first", "l\u00f6ng"]


def test_secrets_are_resolved_and_a_missing_one_stops_the_job(aws: Any, queue: str) -> None:
    role = {"executionRoleArn": "arn:aws:iam::210020003000:role/execution"}
    secret = aws.client("secretsmanager").create_secret(Name="token", SecretString='{"user": "me"}')["ARN"]
    aws.client("ssm").put_parameter(Name="/a/key", Value="value", Type="SecureString")
    parameter = "arn:aws:ssm:us-east-1:210020003000:parameter/a/key"
    found = [
        {"name": "WHOLE", "valueFrom": secret},
        {"name": "USER", "valueFrom": f"{secret}:user::"},
        {"name": "KEY", "valueFrom": parameter},
        {"name": "BY_NAME", "valueFrom": "/a/key"},
    ]
    command = ["sh", "-c", "echo $WHOLE $USER $KEY $BY_NAME"]
    job = aws.ended(aws.submit(queue, aws.definition(command, secrets=found, **role)))
    assert aws.lines(job["container"]["logStreamName"]) == ['{"user": "me"} me value value']
    for absent in (secret.replace("token", "other"), f"{secret}:nobody::", "/not/there"):
        missing = [{"name": "A", "valueFrom": absent}]
        job = aws.ended(aws.submit(queue, aws.definition(["true"], secrets=missing, **role)))
        assert job["attempts"][0]["container"]["reason"].startswith("ResourceInitializationError: ")
    job = aws.ended(aws.submit(queue, aws.definition(["true"], secrets=found)))
    assert (job["attempts"], "'executionRoleArn'" in job["statusReason"]) == ([], True)


def test_a_secret_is_read_with_what_the_execution_role_may(aws: Any, queue: str) -> None:
    iam, name = aws.client("iam"), aws.name("execution")
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    secret = aws.client("secretsmanager").create_secret(Name="part", SecretString='{"user": "me"}')["ARN"]
    aws.client("ssm").put_parameter(Name="/part", Value="value", Type="SecureString")
    parameter = "arn:aws:ssm:us-east-1:210020003000:parameter/part"

    def started(source: str, action: str, resource: str) -> tuple[str, str]:
        statement = {"Effect": "Allow", "Action": [action], "Resource": [resource]}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_role_policy(RoleName=name, PolicyName="reads", PolicyDocument=document)
        variables = [{"name": "A", "valueFrom": source}]
        job = aws.ended(aws.submit(queue, aws.definition(["true"], secrets=variables, executionRoleArn=role)))
        return job["status"], job["attempts"][0]["container"].get("reason", "")

    get, part = "secretsmanager:GetSecretValue", f"{secret}:user::"
    status, reason = started(part, get, part)
    assert status == "FAILED" and f"not authorized to perform: {get} on resource: {secret} because" in reason
    assert started(part, get, secret) == started(part, get, f"{secret[:-6]}??????") == ("SUCCEEDED", "")
    assert started(part, "secretsmanager:*", "*") == ("SUCCEEDED", "")
    assert started("/part", "ssm:GetParameters", f"{parameter}:3")[0] == "FAILED"
    assert started("/part", "ssm:GetParameters", parameter) == ("SUCCEEDED", "")


def test_gpus_are_named_to_the_job(aws: Any, queue: str) -> None:
    job = aws.ended(aws.submit(queue, aws.definition(["sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES"], gpu=4)))
    [line] = aws.lines(job["container"]["logStreamName"])
    assert len({part for part in line.split(",") if part.startswith("GPU-")}) == 4


def test_an_array_has_children_and_a_summary(aws: Any, queue: str) -> None:
    command = ["sh", "-c", 'echo $AWS_BATCH_JOB_ARRAY_INDEX; test "$AWS_BATCH_JOB_ARRAY_INDEX" != 1']
    job_id = aws.submit(queue, aws.definition(command), arrayProperties={"size": 3})
    parent = aws.ended(job_id)
    assert (parent["status"], parent["statusReason"]) == ("FAILED", "Array Child Job failed")
    summary = parent["arrayProperties"]["statusSummary"]
    assert (summary["SUCCEEDED"], summary["FAILED"], summary["RUNNING"]) == (2, 1, 0)
    children = [aws.job(f"{job_id}:{index}") for index in range(3)]
    assert [child["arrayProperties"]["index"] for child in children] == [0, 1, 2]
    assert [child["status"] for child in children] == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert [aws.lines(child["container"]["logStreamName"]) for child in children] == [["0"], ["1"], ["2"]]
    listed = aws.batch.list_jobs(arrayJobId=job_id, jobStatus="FAILED")["jobSummaryList"]
    assert [row["jobId"] for row in listed] == [f"{job_id}:1"]


def test_dependencies_hold_whole_jobs_pairs_and_sequences(aws: Any, queue: str) -> None:
    definition = aws.definition(["sh", "-c", "sleep 0.2"])
    first = aws.submit(queue, definition, arrayProperties={"size": 2}, dependsOn=[{"type": "SEQUENTIAL"}])
    pair = aws.submit(queue, definition, arrayProperties={"size": 2}, dependsOn=[{"jobId": first, "type": "N_TO_N"}])
    last = aws.submit(queue, definition, dependsOn=[{"jobId": pair}])
    assert aws.reaches(last, "PENDING")["dependsOn"] == [{"jobId": pair}]
    assert aws.ended(last)["status"] == "SUCCEEDED"
    jobs = {name: aws.job(name) for name in (f"{first}:0", f"{first}:1", f"{pair}:0", f"{pair}:1")}
    for before, after in (
        (f"{first}:0", f"{first}:1"),
        (f"{first}:0", f"{pair}:0"),
        (f"{first}:1", f"{pair}:1"),
    ):
        assert jobs[before]["stoppedAt"] <= jobs[after]["startedAt"]
    assert max(jobs[f"{pair}:{index}"]["stoppedAt"] for index in (0, 1)) <= aws.job(last)["startedAt"]


def test_a_failed_dependency_fails_a_chain_of_any_length(aws: Any, queue: str) -> None:
    fails = aws.submit(queue, aws.definition(["false"]))
    array = aws.submit(
        queue, aws.definition(["true"]), arrayProperties={"size": 10_000},
        dependsOn=[{"jobId": fails}, {"type": "SEQUENTIAL"}],
    )  # fmt: skip
    assert aws.ended(array)["statusReason"] == "Dependent Job failed"
    array = aws.submit(
        queue, aws.definition(["false"]), arrayProperties={"size": 2000}, dependsOn=[{"type": "SEQUENTIAL"}]
    )
    assert aws.ended(array)["statusReason"] == "Array Child Job failed"
    assert aws.job(f"{array}:1999")["statusReason"] == "Dependent Job failed"


def test_cancel_stops_what_waits_and_terminate_what_runs(aws: Any, queue: str) -> None:
    sleeps = aws.definition(["sleep", "60"])
    running = aws.submit(queue, sleeps, retryStrategy={"attempts": 3})
    aws.reaches(running, "RUNNING")
    waiting = aws.submit(queue, sleeps, dependsOn=[{"jobId": running}])
    blocked = aws.submit(queue, aws.definition(["true"], gpu=16))
    aws.reaches(blocked, "RUNNABLE")
    aws.batch.cancel_job(jobId=running, reason="no effect on a running job")
    aws.batch.cancel_job(jobId=waiting, reason="not needed")
    aws.batch.cancel_job(jobId=blocked, reason="never fits")
    ended = aws.ended(blocked)
    assert (ended["status"], ended["statusReason"], ended["isCancelled"]) == ("FAILED", "never fits", True)
    assert (aws.job(running)["status"], aws.job(waiting)["status"]) == ("RUNNING", "PENDING")
    assert aws.job(waiting)["isCancelled"]
    aws.batch.terminate_job(jobId=running, reason="seen enough")
    ended = aws.ended(running)
    assert (ended["statusReason"], len(ended["attempts"]), ended["isTerminated"]) == ("seen enough", 1, True)
    assert aws.ended(waiting)["statusReason"] == "not needed"
    array = aws.submit(queue, sleeps, arrayProperties={"size": 20})
    aws.reaches(f"{array}:0", "RUNNING")
    aws.batch.terminate_job(jobId=array, reason="all of it")
    assert aws.ended(array)["arrayProperties"]["statusSummary"]["FAILED"] == 20
    assert aws.job(f"{array}:19")["statusReason"] == "all of it"


def test_a_job_that_ignores_the_signal_is_killed(aws: Any, queue: str) -> None:
    job_id = aws.submit(queue, aws.definition(["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"]))
    stream = aws.reaches(job_id, "RUNNING")["container"]["logStreamName"]
    aws.until(lambda: aws.lines(stream) == ["up"])
    aws.batch.terminate_job(jobId=job_id, reason="stop")
    assert aws.ended(job_id)["container"]["exitCode"] == 137


@pytest.mark.parametrize(
    "request_",
    [
        {"jobName": "-bad"},
        {"jobName": "x" * 129},
        {"jobQueue": "absent"},
        {"jobDefinition": "absent"},
        {"arrayProperties": {"size": 1}},
        {"arrayProperties": {"size": 10_001}},
        {"dependsOn": [{"jobId": "absent"}]},
        {"dependsOn": [{"type": "SEQUENTIAL"}]},
        {"retryStrategy": {"attempts": 11}},
        {"retryStrategy": {"evaluateOnExit": [{"action": "RETRY"}]}},
        {"retryStrategy": {"attempts": 2, "evaluateOnExit": [{"action": "EXIT"}] * 6}},
        {"retryStrategy": {"attempts": 2, "evaluateOnExit": [{"onExitCode": "1*2", "action": "EXIT"}]}},
        {"retryStrategy": {"attempts": 2, "evaluateOnExit": [{"action": "AGAIN"}]}},
        {"timeout": {"attemptDurationSeconds": 59}},
        {"containerOverrides": {"command": ["x" * 31_000]}},
        {"containerOverrides": {"resourceRequirements": [{"type": "TPU", "value": "1"}]}},
        {"containerOverrides": {"resourceRequirements": [{"type": "GPU", "value": "0.5"}]}},
        {"containerOverrides": {"environment": [{"name": "A", "value": 1}]}},
    ],
    ids=str,
)
def test_submit_refuses(aws: Any, queue: str, request_: dict[str, Any]) -> None:
    unchecked = aws.client("batch", parameter_validation=False)
    given = {"jobName": "job", "jobQueue": queue, "jobDefinition": aws.definition(["true"])} | request_
    assert aws.refusal(unchecked.submit_job, **given)


def test_long_overrides_fail_the_job_as_ecs_would(aws: Any, queue: str) -> None:
    job_id = aws.submit(queue, aws.definition(["true"]), containerOverrides={"command": ["x" * 9000]})
    assert aws.ended(job_id)["statusReason"] == "Container Overrides length must be at most 8192"
