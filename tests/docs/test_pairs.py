"""What README and the guide show together: each environment is deployed, each job submitted."""

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from jobs.cli.main import jobs
from stacks.cli.main import stacks
from stacks.environment.config import load_environment
from stacks.environment.deployment import deploy
from tests.support import memory
from tests.support.engine import Sandbox
from tests.support.pages import ROOT, Block
from tests.support.project import KEY, Stack, environment
from tests.support.shown import README_JOB, kind_of, lent, pairs, shown

Values = dict[str, Any]
PAIRS = pairs()


MANIFEST = "apiVersion: v1\nkind: Namespace\nmetadata: {name: controller}\n"


@pytest.fixture(autouse=True)
def no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the vendors publish of Kueue and JobSet is not there for tests."""
    monkeypatch.setattr("components.kubernetes.bundle.manifest", lambda spec: MANIFEST)


def deployed(values: Values) -> dict[str, Any]:
    """The targets of an environment, deployed on the engine in memory."""
    return _deployed(json.dumps(values, sort_keys=True))


@functools.cache
def _deployed(values: str) -> dict[str, Any]:
    return memory.run(lambda: deploy(load_environment(json.loads(values)))).exports.get("targets", {})


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """What `accel-jobs submit --dry-run` says of a job, with these targets."""

    def submit(job: Values, targets: dict[str, Any], to: str) -> Result:
        (tmp_path / "targets.json").write_text(json.dumps(targets))
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(job, sort_keys=False))
        (tmp_path / "requirements.txt").write_text("einops==0.8.1\n")  # the reader's own
        words = ["submit", str(tmp_path / "job.yaml"), "--to", to, "--dry-run", "--no-quota"]
        return CliRunner().invoke(jobs, words, prog_name="jobs")

    monkeypatch.setenv("ACCEL_TARGETS", str(tmp_path / "targets.json"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return submit


def test_every_block_is_a_job_or_an_environment_or_a_workflow() -> None:
    assert [str(block) for block in shown() if kind_of(block) == "unknown"] == []


@pytest.mark.parametrize("at", list(dict.fromkeys(pair.at for pair in PAIRS)), ids=str)
def test_an_environment_of_a_page_is_valid(at: Block, tmp_path: Path) -> None:
    for number, pair in enumerate(pair for pair in PAIRS if pair.at == at):
        (tmp_path / f"Pulumi.{number}.yaml").write_text(yaml.safe_dump({"config": {KEY: pair.environment}}))
    done = CliRunner().invoke(stacks, ["validate", *(str(path) for path in tmp_path.glob("Pulumi.*.yaml"))])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("at", list(dict.fromkeys(pair.at for pair in PAIRS)), ids=str)
def test_what_a_page_shows_together_is_deployed_and_submitted(at: Block, submitted: Callable[..., Result]) -> None:
    """Every target that the page's commands name takes the job; where they name none, some target does."""
    taken, refusals = set[str](), dict[str, str]()
    for pair in (pair for pair in PAIRS if pair.at == at):
        targets = deployed(pair.environment)
        if not targets and "targets" not in str(pair.environment) and "queues" not in str(pair.environment):
            taken.add("a cluster alone, which has no target")
        for name in targets:
            done = submitted(pair.job, targets, name)
            taken |= {name} if done.exit_code == 0 else set()
            refusals |= {} if done.exit_code == 0 else {name: done.output}
    named = next(pair.named for pair in PAIRS if pair.at == at)
    wanted = named & {*taken, *refusals}
    assert wanted <= taken if wanted else taken, refusals


def test_readmes_job_goes_to_every_target_of_the_sandbox_but_tpus(submitted: Callable[..., Result]) -> None:
    targets = deployed({**environment("sandbox", "aws"), **environment("sandbox", "gcp")})
    refused = {name: submitted(README_JOB, targets, name) for name in targets if targets[name]["kind"] != "tpu-vm"}
    assert {name: done.output for name, done in refused.items() if done.exit_code} == {}


def test_a_queue_of_several_types_says_what_to_write_for_one(submitted: Callable[..., Result]) -> None:
    """What the refusal says to write is a queue that takes the job."""
    mixed = lent()["README.md"]
    for each in mixed["aws"]["environments"].values():
        each["instance_types"] = ["g5", "g6"]
    done = submitted(README_JOB, deployed(mixed), "gpu")
    assert done.exit_code == 2 and "Batch chooses the instance, and could place the job without l4 on g5" in done.output
    parts = [yaml.safe_load(text) for text in re.findall(r"`((?:environments|queues): [^`]*)`", done.output)]
    (to,) = re.findall(r"--to (\S+) after `pulumi up`", done.output)
    for part in parts:
        for key, entries in part.items():
            mixed["aws"][key] |= entries
    taken = submitted(README_JOB, deployed(mixed), to)
    assert taken.exit_code == 0, taken.output


@pytest.mark.engine
def test_readmes_environment_takes_its_job_on_the_engine(
    tmp_path: Path, sandbox: Sandbox, submitted: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = Stack(tmp_path / "readme", sandbox, lent()["README.md"], stack="readme")
    try:
        targets = stack.up().outputs["targets"]
        for name, value in sandbox.variables.items():
            if name.startswith("AWS_"):
                monkeypatch.setenv(name, value)
        assert submitted(README_JOB, targets, "gpu").exit_code == 0
        words = ["submit", str(tmp_path / "job.yaml"), "--to", "gpu", "--key", "readme", "-o", "id"]
        done = CliRunner().invoke(jobs, words, prog_name="jobs")
        assert done.exit_code == 0 and "aws-batch:us-east-1/" in done.output, done.output
    finally:
        stack.destroy()


def test_the_guide_is_read_whole() -> None:
    """Neither environments nor jobs are overlooked: what is counted here grows with the pages."""
    kinds = [kind_of(block) for block in shown()]
    assert kinds.count("environment") >= 18 and kinds.count("job") >= 9
    assert {block.page for block in shown()} >= {ROOT / "README.md", ROOT / "docs" / "nodes.md"}
