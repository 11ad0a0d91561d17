"""A budget that is crossed, through the real engine: what stops, what was said beforehand, and what takes it back."""

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from sandbox.keys import bearer
from tests.support import commands
from tests.support.cloud import listing
from tests.support.engine import Sandbox
from tests.support.project import Stack, environment, put
from tests.support.soak import soak_only
from tests.support.waiting import until

REGION = "eu-west-2"

BUDGET: dict[str, Any] = {
    "amount": 1000,
    "recipients": {"emails": ["ml-oncall@company.com"]},
    "stop": {"at": 1.0, "running": {"after_min": 0}},
}

SAVES = """
import pathlib, signal, sys, time
def save(*_):
    pathlib.Path({folder!r}, "checkpoint").write_text("step 7")
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
pathlib.Path({folder!r}, "started").write_text("")
while True:
    time.sleep(0.1)
"""


def limited(**changed: Any) -> dict[str, Any]:
    values = put("aws.region", REGION, environment("sandbox"))
    values = put("aws.network.zones", [f"{REGION}a"], values)
    return put("aws.budgets", {"gpus": {**BUDGET, **changed}}, values)


class Limited(Stack):
    """The stack, and its budget's controls."""

    @cached_property
    def promise(self) -> dict[str, Any]:
        """What the stack says of its budget."""
        return self.outputs()["budgets"]["gpus"]

    def control(self, path: str, **body: Any) -> Any:
        url, head = self.variables["AWS_ENDPOINT_URL"], bearer(self.sandbox.home)
        answer = requests.post(f"{url}/sandbox-api/{path}", json=body, headers=head, timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def spend(self, actual: float, again: bool = False) -> list[dict[str, Any]]:
        """What the budget shows from now on; the calls of the function once all have ended."""
        self.control("spend", budget=self.promise["name"], actual=actual, again=again)
        address = f"{self.variables['AWS_ENDPOINT_URL']}/sandbox-api/functions"
        calls = requests.get(address, headers=bearer(self.sandbox.home), timeout=120).json()
        return [one for one in calls if one["function"] == self.promise["function"]]

    def tick(self) -> dict[str, Any]:
        """The schedule's call."""
        return self.control("functions", function=self.promise["function"], event={})

    def budget(self, verb: str, *options: str) -> Any:
        return commands.run(
            "stacks", "budget", verb, "--stack", self.stack, *options, cwd=self.folder, env=self.environ
        )

    def submit(self, name: str, command: list[str]) -> Any:
        job = {"name": name, "image": "local/examples", "command": command, "cpus": 1, "memory_mib": 2048}
        (self.folder / "job.yaml").write_text(yaml.safe_dump(job))
        return commands.run("jobs", "submit", "job.yaml", "--no-quota", "-o", "json", cwd=self.folder, env=self.environ)

    @property
    def environ(self) -> dict[str, str]:
        return {**self.variables, "HOME": str(self.folder), "ACCEL_TARGETS": str(self.folder / ".accel/targets.json")}


@pytest.fixture
def stack(tmp_path: Path, sandbox: Sandbox) -> Iterator[Limited]:
    made = Limited(tmp_path / "limited", sandbox, limited(), stack="limited")
    yield made
    if made.export():
        made.destroy(check=False)


def environments(sandbox: Sandbox) -> list[dict[str, Any]]:
    return sandbox.client("batch", REGION).describe_compute_environments()["computeEnvironments"]


def sizes(sandbox: Sandbox) -> dict[str, tuple[str, int, int]]:
    """State, minimum and maximum by the author's keys; of a queue its state."""
    queues = sandbox.client("batch", REGION).describe_job_queues()["jobQueues"]
    found = {one["jobQueueName"].rpartition("-")[0]: (one["state"], 0, 0) for one in queues}
    for one in environments(sandbox):
        of = one["computeResources"]
        found[one["computeEnvironmentName"].rpartition("-")[0]] = (one["state"], of["minvCpus"], of["maxvCpus"])
    return found


def idle(sandbox: Sandbox) -> bool:
    return all(not one["computeResources"].get("desiredvCpus") for one in environments(sandbox))


def settled(sandbox: Sandbox) -> bool:
    return all(one["status"] == "VALID" for one in environments(sandbox))


def test_crossing_stops_and_resume_restores(stack: Limited, sandbox: Sandbox, tmp_path: Path) -> None:
    empty = listing(sandbox, REGION)
    stack.up()
    commands.run("stacks", "export", "--stack", "limited", cwd=stack.folder, env=stack.environ)
    before = sizes(sandbox)
    assert before == {"gpu": ("ENABLED", 0, 0), "spot": ("ENABLED", 0, 256), "on-demand": ("ENABLED", 0, 96)}
    made = stack.submit("saves", ["python", "-c", SAVES.format(folder=str(tmp_path))])
    assert made.returncode == 0, made.stderr
    job = json.loads(made.stdout)["ref"].rpartition("/")[2]
    batch = sandbox.client("batch", REGION)
    until((tmp_path / "started").exists)
    until(lambda: batch.describe_jobs(jobs=[job])["jobs"][0]["status"] == "RUNNING")

    rehearsed = json.loads(stack.budget("drill", "-o", "json").stdout)
    assert [row["stage"] for row in rehearsed] == ["submissions", "queues", "maximums", "maximums", "running"]
    assert sizes(sandbox) == before, "a drill changes nothing"

    assert stack.spend(950) == [], "below its line a budget calls nobody"
    (call,) = stack.spend(1200)
    assert not call["failed"], call["log"]
    assert call["result"]["done"] == [row["text"] for row in rehearsed]
    assert {state for state, *_ in sizes(sandbox).values()} == {"DISABLED"}

    # SIGTERM came first, and the job had time to save.
    until((tmp_path / "checkpoint").exists)
    until(lambda: batch.describe_jobs(jobs=[job])["jobs"][0]["status"] == "FAILED")
    refused = stack.submit("later", ["true"])
    assert refused.returncode == 5 and "the stack accepts no new jobs: budget gpus: 1,200.00 USD" in refused.stderr

    # What is delivered twice, and the schedule: nothing is done again.
    until(lambda: idle(sandbox))
    assert not stack.tick()["failed"]
    assert sizes(sandbox) == {name: ("DISABLED", 0, most) for name, (_, _, most) in before.items()}
    assert stack.spend(1200, again=True)[-1]["result"]["done"] == []
    shown = stack.budget("status")
    assert shown.returncode == 0 and "stopped since" in shown.stdout and "1,200.00 USD" in shown.stdout, shown.stderr
    assert "all of it is stopped already" in stack.budget("drill").stderr

    undone = stack.up("--refresh", check=False)
    assert undone.exit_code != 0 and "run `stacks budget resume`, then deploy again" in undone.text
    assert {state for state, *_ in sizes(sandbox).values()} == {"DISABLED"}

    resumed = stack.budget("resume")
    assert resumed.returncode == 0, resumed.stderr
    assert sizes(sandbox) == before
    until(lambda: settled(sandbox))
    assert stack.submit("again", ["true"]).returncode == 0
    assert stack.spend(1300, again=True)[-1]["result"]["done"] == [], "what was waved through stops nothing again"
    assert sizes(sandbox) == before
    assert "no budget has stopped" in stack.budget("resume").stderr

    # The state is as the cloud is: of a change to the budget only the budget is changed.
    stack.write_environment(limited(amount=2000, thresholds={"actual": [0.8], "forecast": []}))
    steps = stack.up("--refresh").steps
    changed = {(one.op, one.type) for one in steps if one.type.startswith("aws:") and one.op not in ("same", "refresh")}
    assert changed == {("update", "aws:budgets/budget:Budget")}
    assert set(stack.destroy().ops("same")) == {"delete"}
    assert listing(sandbox, REGION) == empty


@soak_only
def test_an_update_without_changes_leaves_a_stop_alone(stack: Limited, sandbox: Sandbox) -> None:
    stack.up()
    assert stack.up("--refresh", "--expect-no-changes").ops("same", "refresh") == {}
    stack.spend(1200)
    stopped = sizes(sandbox)
    assert stack.up().ops("same") == {}
    # Without the budget nothing would be left that takes the stop back.
    stack.write_environment(limited(stop=None))
    undone = stack.up(check=False)
    assert undone.exit_code != 0 and "run `stacks budget resume`, then deploy again" in undone.text
    assert sizes(sandbox) == stopped and stack.budget("resume").returncode == 0
    until(lambda: settled(sandbox))
    stack.up()
    assert {state for state, *_ in sizes(sandbox).values()} == {"ENABLED"}
    assert "has no budget that stops it" in stack.budget("status").stderr
