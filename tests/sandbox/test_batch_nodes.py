"""Multi-node parallel jobs, through plain boto3."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.gathering import met, until_there

PREFIX = "AWS_BATCH_JOB_"
INDEX = f"${PREFIX}NODE_INDEX"


def group(target: str, command: list[str], *, gpu: int = 0, **more: Any) -> dict[str, Any]:
    needs = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "64"}]
    needs += [{"type": "GPU", "value": str(gpu)}] if gpu else []
    container = {"image": "local/work", "command": command, "resourceRequirements": needs}
    return {"targetNodes": target, "container": container, **more}


def properties(*groups: dict[str, Any], count: int = 2, main: int = 0) -> dict[str, Any]:
    return {"numNodes": count, "mainNode": main, "nodeRangeProperties": list(groups)}


def define(aws: Any, *groups: dict[str, Any], count: int = 2, main: int = 0, **more: Any) -> str:
    given = {"jobDefinitionName": aws.name("nodes"), "type": "multinode"}
    nodes = properties(*groups, count=count, main=main)
    return aws.batch.register_job_definition(**given, nodeProperties=nodes, **more)["jobDefinitionArn"]


def nodes(aws: Any, job: str, count: int) -> list[dict[str, Any]]:
    return [aws.job(f"{job}#{index}") for index in range(count)]


def test_each_node_is_a_process_on_an_instance_of_its_own(aws: Any, queue: str, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    meet = f"{met(tmp_path, INDEX, '012')}; {until_there(seen)}"
    show = ["sh", "-c", f"env | grep ^{PREFIX}[MN] | sort; {meet}"]
    job = aws.submit(queue, define(aws, group("0:", show), count=3, main=1))
    shown = aws.reaches(job, "RUNNING")
    assert (shown["nodeProperties"]["numNodes"], shown["nodeProperties"]["mainNode"]) == (3, 1)
    assert "container" not in shown and "nodeDetails" not in shown
    running = aws.batch.list_jobs(jobQueue=queue)["jobSummaryList"]
    assert [(row["jobId"], row["nodeProperties"]) for row in running] == [(job, {"numNodes": 3})]
    seen.touch()
    ended = aws.ended(job)
    assert (ended["status"], ended["statusReason"]) == ("SUCCEEDED", "Essential container in task exited")
    assert ended["attempts"][0]["container"]["exitCode"] == 0
    found = nodes(aws, job, 3)
    assert [row["nodeDetails"] for row in found] == [{"nodeIndex": i, "isMainNode": i == 1} for i in range(3)]
    assert ended["startedAt"] == found[1]["startedAt"]
    assert len({row["container"]["containerInstanceArn"] for row in found}) == 3
    assert len({row["container"]["logStreamName"] for row in found}) == 3
    assert {row["container"]["networkInterfaces"][0]["privateIpv4Address"] for row in found} == {"127.0.0.1"}
    main, child = (aws.lines(found[index]["container"]["logStreamName"]) for index in (1, 2))
    assert main == [f"{PREFIX}MAIN_NODE_INDEX=1", f"{PREFIX}NODE_INDEX=1", f"{PREFIX}NUM_NODES=3"]
    address = f"{PREFIX}MAIN_NODE_PRIVATE_IPV4_ADDRESS=127.0.0.1"
    assert child == [main[0], address, f"{PREFIX}NODE_INDEX=2", f"{PREFIX}NUM_NODES=3"]
    listed = aws.batch.list_jobs(multiNodeJobId=job, jobStatus="SUCCEEDED")["jobSummaryList"]
    assert f"{job}#1" in [row["jobId"] for row in listed]
    assert {row["nodeProperties"]["numNodes"] for row in listed} == {3}


def main_ends(folder: Path, nodes: str) -> list[str]:
    """A command whose main node ends once all run; the others do not."""
    return ["sh", "-c", f"{met(folder, INDEX, nodes)}; test {INDEX} = 0 || sleep 60"]


def test_the_job_ends_with_its_main_node(aws: Any, queue: str, tmp_path: Path) -> None:
    job = aws.submit(queue, define(aws, group("0:", main_ends(tmp_path, "01"))))
    assert aws.ended(job)["status"] == "SUCCEEDED"
    main, child = nodes(aws, job, 2)
    assert (main["status"], main["container"]["exitCode"]) == ("SUCCEEDED", 0)
    assert child["container"]["exitCode"] == 143


def test_a_failed_main_node_repeats_the_whole_and_a_failed_child_does_not(aws: Any, queue: str, tmp_path: Path) -> None:
    retry = {"retryStrategy": {"attempts": 2}}

    def submitted(main: int) -> str:
        attempt = f"{main}-${PREFIX}ATTEMPT"
        here = met(tmp_path, f"{attempt}-{INDEX}", [f"{attempt}-{node}" for node in "01"])
        return aws.submit(queue, define(aws, group("0:", ["sh", "-c", f"{here}; exit {INDEX}"]), main=main, **retry))

    child, main = submitted(0), submitted(1)
    ended = aws.ended(child)
    assert (ended["status"], len(ended["attempts"])) == ("SUCCEEDED", 1)
    ended = aws.ended(main)
    assert (ended["status"], len(ended["attempts"])) == ("FAILED", 2)
    assert [row["container"]["exitCode"] for row in ended["attempts"]] == [1, 1]
    assert [len(row["attempts"]) for row in nodes(aws, main, 2)] == [2, 2]


def test_nested_ranges_and_overrides_reach_their_nodes(aws: Any, queue: str, tmp_path: Path) -> None:
    here = met(tmp_path, INDEX, "012")
    wide, narrow = (
        group("0:", ["sh", "-c", f"echo $WHO; {here}"]),
        group("1:1", ["sh", "-c", f"echo narrow Ref::what; {here}"]),
    )
    arn = define(aws, wide, narrow, parameters={"what": "range"})
    named = {"targetNodes": "0:", "containerOverrides": {"environment": [{"name": "WHO", "value": "wide"}]}}
    job = aws.submit(queue, arn, nodeOverrides={"numNodes": 3, "nodePropertyOverrides": [named]})
    assert aws.ended(job)["nodeProperties"]["numNodes"] == 3
    lines = [aws.lines(row["container"]["logStreamName"]) for row in nodes(aws, job, 3)]
    assert lines[:2] == [["wide"], ["narrow range"]]
    for overrides, text in (
        (
            {"nodePropertyOverrides": [{"targetNodes": "0:0"}]},
            "NodeOverride targets should match job definition. Non matching targets - 0:0",
        ),
        ({"numNodes": 1}, "a range begins after 1 nodes"),
    ):
        given = {"jobName": "j", "jobQueue": queue, "jobDefinition": arn, "nodeOverrides": overrides}
        assert text in aws.refusal(aws.batch.submit_job, **given)
    given = {"jobName": "j", "jobQueue": queue, "jobDefinition": define(aws, group("0:1", ["true"]))}
    text = aws.refusal(aws.batch.submit_job, **given, nodeOverrides={"numNodes": 3})
    assert text.startswith("NumNodes override can only be applied if the job definition has at least 1 target node")
    assert "arrayProperties" in aws.refusal(aws.batch.submit_job, **given, arrayProperties={"size": 2})
    assert "containerOverrides" in aws.refusal(aws.batch.submit_job, **given, containerOverrides={"command": ["a"]})
    given["jobDefinition"] = aws.definition(["true"])
    assert "nodeOverrides" in aws.refusal(aws.batch.submit_job, **given, nodeOverrides={"numNodes": 3})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (properties(group("0:0", ["true"])), "must account for all nodes, not for [1]"),
        (properties(group("0:2", ["true"])), "outside of the 2 nodes"),
        (properties(group("0", ["true"])), "must be start:end"),
        (properties(group("0:", ["true"]), main=2), "mainNode 2 must be fewer than numNodes 2"),
        (properties(group("0:", ["true"]), group("0:", ["true"])), "given twice"),
        (properties(*(group(f"{i}:{i}", ["true"]) for i in range(6)), count=6), "1 to 5 ranges, has 6"),
        (properties({"targetNodes": "0:"}), "with a container only"),
        (properties(group("0:", ["true"], instanceTypes=["g5.xlarge", "g5.2xlarge"])), "one type"),
    ],
)
def test_register_refuses_nodes(aws: Any, given: dict[str, Any], text: str) -> None:
    register = aws.batch.register_job_definition
    assert text in aws.refusal(register, jobDefinitionName="refused", type="multinode", nodeProperties=given)


def test_nodes_wait_for_room_for_all_and_say_what_can_never_be(aws: Any, tmp_path: Path) -> None:
    environment = aws.environment(instanceTypes=["g5.xlarge"], maxvCpus=12)
    queue = aws.queue(environment)
    single = aws.submit(queue, aws.definition(["sleep", "60"]))
    aws.reaches(single, "RUNNING")
    job = aws.submit(queue, define(aws, group("0:", main_ends(tmp_path, "012")), count=3))
    aws.reaches(job, "RUNNABLE")
    assert aws.shown_environment(environment)["computeResources"]["desiredvCpus"] == 4
    aws.batch.terminate_job(jobId=single, reason="room")
    assert aws.ended(job)["status"] == "SUCCEEDED"
    for count, needs, text in (
        (4, {}, "COMPUTE_ENVIRONMENT_MAX_RESOURCE"),
        (2, {"gpu": 4}, "JOB_RESOURCE_REQUIREMENT"),
    ):
        stuck = aws.submit(queue, define(aws, group("0:", ["true"], **needs), count=count))
        assert text in aws.until(lambda stuck=stuck: aws.job(stuck).get("statusReason"))
        aws.batch.terminate_job(jobId=stuck, reason="never")
        assert {row["status"] for row in nodes(aws, stuck, count)} == {"FAILED"}
    typed = aws.submit(queue, define(aws, group("0:", ["true"], instanceTypes=["g5.2xlarge"])))
    assert "JOB_RESOURCE_REQUIREMENT" in aws.until(lambda: aws.job(typed).get("statusReason"))
    aws.batch.terminate_job(jobId=typed, reason="never")


def test_nodes_do_not_run_on_spot(aws: Any) -> None:
    spot = aws.environment(type="SPOT", allocationStrategy="SPOT_CAPACITY_OPTIMIZED")
    job = aws.submit(aws.queue(spot), define(aws, group("0:", ["true"])))
    assert aws.until(lambda: aws.job(job).get("statusReason")).startswith("UNDETERMINED")
    other = aws.submit(aws.queue(spot, aws.environment()), define(aws, group("0:", ["true"])))
    assert aws.ended(other)["status"] == "SUCCEEDED"
    aws.batch.cancel_job(jobId=job, reason="never")
    assert aws.ended(job)["statusReason"] == "never"


def test_termination_ends_every_node_and_is_not_retried(aws: Any, queue: str) -> None:
    sleeps = define(aws, group("0:", ["sleep", "60"]), retryStrategy={"attempts": 3})
    job = aws.submit(queue, sleeps)
    aws.reaches(job, "RUNNING")
    aws.batch.cancel_job(jobId=job, reason="no effect on a running job")
    aws.batch.terminate_job(jobId=job, reason="enough")
    ended = aws.ended(job)
    assert (ended["status"], ended["statusReason"], len(ended["attempts"])) == ("FAILED", "enough", 1)
    assert {row["statusReason"] for row in nodes(aws, job, 2)} == {"enough"}
