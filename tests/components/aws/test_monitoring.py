"""What the monitoring component sends: patterns, policies, alarms, the dashboard, and the script of the agent."""

import json
import subprocess
from typing import Any

import pytest

from components.aws.alarms import FailedJobs, IdleGpus
from components.aws.batch_roles import BatchRoles, BatchRolesArgs, BatchRolesSpec
from components.aws.gpu_metrics import agent_config, cloudwatch_agent_script
from components.aws.launch_template import LaunchTemplate, LaunchTemplateArgs, LaunchTemplateSpec
from components.aws.monitoring import MonitoringSpec
from components.aws.queue_age_function import METRIC
from tests.laws import components as make
from tests.support import memory

KEY = "arn:aws:kms:us-east-1:210020003000:key/1b2c"


def made(**values: Any) -> memory.Recorder:
    return memory.run(lambda: make.monitoring("watch", MonitoringSpec.model_validate(values)))


def sent(seen: memory.Recorder, kind: str) -> dict[str, dict[str, Any]]:
    return {one.name: one.inputs for one in seen.of(kind)}


def patterns(seen: memory.Recorder) -> dict[str, Any]:
    rules = sent(seen, "cloudwatch/eventRule:EventRule")
    return {name: json.loads(inputs["eventPattern"]) for name, inputs in rules.items() if "eventPattern" in inputs}


def test_what_is_told_of_and_what_is_only_logged() -> None:
    found = patterns(made())
    ours = {"jobQueue": [make.QUEUE]}
    assert found["watch-jobs"] == {
        "source": ["aws.batch"],
        "detail-type": ["Batch Job State Change"],
        "detail": {**ours, "status": ["FAILED"], "arrayProperties": {"index": [{"exists": False}]}},
    }
    assert found["watch-blocked"]["detail-type"] == ["Batch Job Queue Blocked"]
    assert found["watch-blocked"]["detail"] == ours
    assert found["watch-events"]["detail"] == ours, "the log has children of arrays too"


@pytest.mark.parametrize(
    ("values", "detail"),
    [
        ({"job_states": ["ALL"], "array_children": True}, {}),
        ({"job_states": ["FAILED", "SUCCEEDED"], "array_children": True}, {"status": ["FAILED", "SUCCEEDED"]}),
        ({"job_states": ["ALL", "FAILED"]}, {"arrayProperties": {"index": [{"exists": False}]}}),
    ],
)
def test_states_to_be_told_of(values: dict[str, Any], detail: dict[str, Any]) -> None:
    assert patterns(made(**values))["watch-jobs"]["detail"] == {"jobQueue": [make.QUEUE], **detail}


def test_a_message_has_no_variables_of_the_container() -> None:
    seen = made()
    targets = sent(seen, "cloudwatch/eventTarget:EventTarget")
    assert set(targets) == {"watch-jobs", "watch-blocked", "watch-events", "watch-age"}
    for name in ("watch-jobs", "watch-blocked"):
        paths = targets[name]["inputTransformer"]["inputPaths"].values()
        assert not any("environment" in path or path in ("$.detail", "$") for path in paths)
        json.loads(targets[name]["inputTransformer"]["inputTemplate"])  # a text has to be valid JSON too
    assert "roleArn" not in targets["watch-events"], "CloudWatch Logs takes no role of EventBridge"


def statements(text: str) -> list[dict[str, Any]]:
    return json.loads(text)["Statement"]


def test_who_may_publish() -> None:
    seen = made(gpu_metrics=True)
    role = sent(seen, "iam/role:Role")["watch-publish"]
    (trust,) = statements(role["assumeRolePolicy"])
    rules = [f"arn:aws:cloudwatch/eventRule:EventRule:{name}" for name in ("watch-jobs", "watch-blocked")]
    assert trust["Principal"] == {"Service": "events.amazonaws.com"}
    assert trust["Condition"] == {
        "ArnEquals": {"aws:SourceArn": rules},
        "StringEquals": {"aws:SourceAccount": "111122223333"},
    }
    topic = "arn:aws:sns/topic:Topic:watch"
    assert statements(sent(seen, "iam/rolePolicy:RolePolicy")["watch-publish"]["policy"]) == [
        {"Effect": "Allow", "Action": ["sns:Publish"], "Resource": topic}
    ]
    (alarms,) = statements(seen.one("sns/topicPolicy:TopicPolicy").inputs["policy"])
    assert (alarms["Principal"], alarms["Resource"]) == ({"Service": "cloudwatch.amazonaws.com"}, topic)
    assert len(alarms["Condition"]["ArnLike"]["aws:SourceArn"]) == 3
    assert "aws:SourceAccount" in alarms["Condition"]["StringEquals"]


def test_a_key_is_used_and_granted() -> None:
    seen = made(kms_key_arn=KEY)
    assert seen.one("sns/topic:Topic").inputs["kmsMasterKeyId"] == KEY
    assert {name: group["kmsKeyId"] for name, group in sent(seen, "cloudwatch/logGroup:LogGroup").items()} == {
        "watch-events": KEY,
        "watch-age": KEY,
    }
    granted = statements(sent(seen, "iam/rolePolicy:RolePolicy")["watch-publish"]["policy"])[1]
    assert granted == {"Effect": "Allow", "Action": ["kms:Decrypt", "kms:GenerateDataKey"], "Resource": KEY}


def test_only_our_rule_may_write_the_log() -> None:
    policy = made().one("cloudwatch/logResourcePolicy:LogResourcePolicy").inputs
    streams, lines = statements(policy["policyDocument"])
    group = "arn:aws:cloudwatch/logGroup:LogGroup:watch-events"
    assert (streams["Resource"], lines["Resource"]) == (f"{group}:*", f"{group}:*:*")
    assert policy["resourceArn"] == group and "policyName" not in policy, "an account has ten policies with names"
    assert lines["Condition"] == {"ArnEquals": {"aws:SourceArn": "arn:aws:cloudwatch/eventRule:EventRule:watch-events"}}


def test_alarms_name_what_the_log_counts() -> None:
    seen = made(failed_jobs={"jobs": 3, "period_s": 600}, gpu_metrics=True, idle_gpus={"below_percent": 5})
    counted = sent(seen, "cloudwatch/logMetricFilter:LogMetricFilter")["watch-jobs"]["metricTransformation"]
    alarms = sent(seen, "cloudwatch/metricAlarm:MetricAlarm")
    failed, idle = alarms["watch-gpu-failed"], alarms["watch-spot-idle"]
    assert (failed["namespace"], failed["metricName"]) == (counted["namespace"], counted["name"])
    assert set(failed["dimensions"]) == set(counted["dimensions"]) and failed["threshold"] == 3
    assert (idle["namespace"], idle["threshold"]) == ("accel/watch/spot", 5) and "dimensions" not in idle
    assert all(one["treatMissingData"] == "notBreaching" for one in alarms.values())
    assert all(one["alarmActions"] == ["arn:aws:sns/topic:Topic:watch"] for one in alarms.values())


def test_the_dashboard_shows_queues_and_environments() -> None:
    seen = made(gpu_metrics=True)
    body = json.loads(seen.one("cloudwatch/dashboard:Dashboard").inputs["dashboardBody"])
    titles = [widget["properties"]["title"] for widget in body["widgets"]]
    assert titles == [
        "Alarms",
        "gpu: jobs that changed to a state",
        "gpu: blocked",
        "gpu: oldest RUNNABLE job, s",
        "spot: reserved by jobs, percent",
        "spot: GPU in use, percent",
        "spot: GPU memory busy, percent",
        "spot: GPU memory, MiB",
    ]
    places = {(widget["x"], widget["y"]) for widget in body["widgets"]}
    assert len(places) == len(titles) and all(x + 8 <= 24 for x, _ in places)
    assert ["AWS/ECS", "GPUReservation", "ClusterName", "spot_Batch_1"] in body["widgets"][4]["properties"]["metrics"]
    assert make.QUEUE in body["widgets"][1]["properties"]["metrics"][0][0]["expression"]


def test_taking_a_subscriber_out_leaves_the_others() -> None:
    def names(*emails: str) -> set[str]:
        return {one.name for one in made(emails=list(emails)).of("sns/topicSubscription:TopicSubscription")}

    assert names("b@company.com") < names("a@company.com", "b@company.com")
    assert len(names("a@company.com", "a@company.com")) == 1


def test_nothing_to_tell_makes_no_role() -> None:
    seen = memory.run(lambda: make.MAKERS["monitoring-quiet"]("one"))
    assert not seen.of("iam/role:Role") and not seen.of("sns/topicPolicy:TopicPolicy")
    assert set(patterns(seen)) == {"one-events"}


def test_the_agents_script(tmp_path: Any) -> None:
    script = cloudwatch_agent_script("accel/dev/spot", 60)
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    config = json.loads(script.partition("<<'CONFIG'\n")[2].partition("\nCONFIG\n")[0])
    assert config == agent_config("accel/dev/spot", 60)
    assert config["metrics"]["aggregation_dimensions"] == [[]], "an alarm needs one metric that is always the same"
    assert "append_dimensions" not in config["metrics"]["metrics_collected"]["nvidia_gpu"], "the agent takes none here"
    # Without a driver it does nothing, and no failure.
    done = subprocess.run(["/bin/bash", "-c", script], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("installed", [True, False])
def test_the_agent_is_installed_once(tmp_path: Any, installed: bool) -> None:
    log = tmp_path / "log"
    tools = {"nvidia-smi": "", "rpm": f"exit {0 if installed else 1}", "dnf": f"echo dnf $@ >>{log}", "cat": "exit 1"}
    for name, body in tools.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    script = cloudwatch_agent_script("accel/dev/spot", 60).replace("/opt/aws", str(tmp_path))
    subprocess.run(["/bin/bash", "-c", script], env={"PATH": str(tmp_path)}, capture_output=True, check=False)
    assert log.exists() is not installed
    if not installed:
        assert log.read_text() == "dnf install -y amazon-cloudwatch-agent\n"


def test_scripts_run_after_the_specs_own() -> None:
    import base64

    args = LaunchTemplateArgs(spec=LaunchTemplateSpec(user_data=["#!/bin/sh\nfirst\n"]), scripts=["#!/bin/sh\nlast\n"])
    sent = memory.run(lambda: LaunchTemplate("train", args)).one("ec2/launchTemplate:LaunchTemplate").inputs
    text = base64.b64decode(sent["userData"]).decode()
    assert 0 < text.index("first") < text.index("last")


def test_instances_publish_in_their_namespaces_alone() -> None:
    def policy(*namespaces: str) -> list[Any]:
        args = BatchRolesArgs(
            spec=BatchRolesSpec(), log_group_arn="arn:l", repository_arns=[], metric_namespaces=namespaces
        )
        found = sent(memory.run(lambda: BatchRoles("batch", args)), "iam/rolePolicy:RolePolicy")
        return statements(found["batch-instance"]["policy"]) if "batch-instance" in found else []

    assert policy() == []
    assert policy("accel/dev/spot") == [
        {
            "Effect": "Allow",
            "Action": ["cloudwatch:PutMetricData"],
            "Resource": "*",
            "Condition": {"StringEquals": {"cloudwatch:namespace": ["accel/dev/spot"]}},
        }
    ]


def test_specs_refuse_what_cloudwatch_would() -> None:
    with pytest.raises(ValueError, match="write 60"):
        FailedJobs(period_s=30)
    with pytest.raises(ValueError, match="at most 288"):
        IdleGpus(periods=300)


def test_an_alarm_rings_for_a_job_that_waits_and_a_function_looks() -> None:
    seen = made(waiting_jobs={"minutes": 30, "every_min": 1})
    (alarm,) = [one for name, one in sent(seen, "cloudwatch/metricAlarm:MetricAlarm").items() if "waiting" in name]
    function = seen.one("lambda/function:Function").inputs
    variables = function["environment"]["variables"]
    assert (alarm["threshold"], alarm["period"], alarm["statistic"]) == (1800, 60, "Maximum")
    assert (alarm["metricName"], alarm["dimensions"]) == (METRIC, {"Queue": make.QUEUE})
    assert (alarm["namespace"], json.loads(variables["QUEUES"])) == (variables["NAMESPACE"], [make.QUEUE])
    (rule,) = [one for one in sent(seen, "cloudwatch/eventRule:EventRule").values() if "scheduleExpression" in one]
    assert rule["scheduleExpression"] == "rate(1 minute)"
    jobs, metrics, _ = statements(sent(seen, "iam/rolePolicy:RolePolicy")["watch-age"]["policy"])
    assert (jobs["Action"], metrics["Action"]) == (["batch:ListJobs"], ["cloudwatch:PutMetricData"])
    assert metrics["Condition"] == {"StringEquals": {"cloudwatch:namespace": variables["NAMESPACE"]}}


def test_without_an_alarm_no_function_looks() -> None:
    seen = made(waiting_jobs=None)
    assert not seen.of("lambda/function:Function") and "watch-age" not in sent(seen, "iam/role:Role")
