"""Whoever has the submit policy of a stack, and nothing else, can submit, look at, retry and stop jobs."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
from botocore.client import BaseClient
from click.testing import CliRunner

from jobs.cli.main import jobs
from sandbox import keys
from tests.support.engine import Sandbox
from tests.support.iam import Ask, allows, asked
from tests.support.project import Stack

from .conftest import Shell

REGION, ACCOUNT, STACK = "us-east-1", "210020003000", "accel-e2e"
NAME = "submitter"
OWN = "name: own\nimage: local/examples\ncommand: [python, -c, 'print(1)']\nshm_mib: 512\n"
WANTED = {
    *("RegisterJobDefinition", "PassRole", "SubmitJob", "TagResource", "TerminateJob", "ListJobs", "DescribeJobs"),
    *("GetParametersByPath", "GetServiceQuota", "PutItem", "UpdateItem", "GetLogEvents"),
}
ARRAY = "name: many\nimage: local/examples\ncommand: [sleep, '60']\ntasks: 2\n"


@pytest.fixture
def documents(sandbox: Sandbox, deployed: Stack) -> Iterator[list[Any]]:
    """The stack's submit policies, which are all that NAME may do in the sandbox."""
    iam = sandbox.client("iam")
    found = [
        iam.get_policy_version(PolicyArn=arn, VersionId=iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"])[
            "PolicyVersion"
        ]["Document"]
        for arn in deployed.outputs()["access"]["submit_policy_arns"]
    ]
    url = f"{sandbox.variables['AWS_ENDPOINT_URL']}/sandbox-api/permissions"
    head = keys.bearer(sandbox.home)
    requests.post(url, json={"caller": NAME, "policies": found}, headers=head, timeout=120).raise_for_status()
    yield found
    requests.delete(url, headers=head, timeout=120).raise_for_status()


@pytest.fixture
def asks(sandbox: Sandbox, shell: Shell, documents: list[Any], monkeypatch: pytest.MonkeyPatch) -> list[Ask]:
    """What IAM is asked for by every request that this process makes, in the shell's variables."""
    found: list[Ask] = []
    for name, value in shell.variables.items():
        if name.startswith(("AWS_", "ACCEL_", "XDG_")):
            monkeypatch.setenv(name, value)
    for name, value in keys.aws(keys.key(sandbox.home), NAME).items():
        monkeypatch.setenv(name, value)
    real: Any = BaseClient._make_api_call  # pyright: ignore

    def recorded(self: Any, operation: str, given: Mapping[str, Any]) -> Any:
        found.extend(asked(self.meta.service_model.service_name, operation, given, REGION, ACCOUNT, STACK))
        return real(self, operation, given)

    monkeypatch.setattr(BaseClient, "_make_api_call", recorded)
    return found


def test_the_policy_is_enough(sandbox: Sandbox, asks: list[Ask], documents: list[Any], tmp_path: Path) -> None:
    def run(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(jobs, arguments, prog_name="jobs")
        assert done.exit_code == code, done.output
        return done.stdout.strip()

    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "many.yaml").write_text(ARRAY)
    published = "ssm:us-east-1/accel/e2e/targets"
    ref = run(
        "submit", str(tmp_path / "own.yaml"), "--to", "gpu", "--key", "access", "-o", "id", "--targets", published
    )
    assert run("wait", ref) is not None
    run("logs", ref)
    run("ls", "-a", "--to", "gpu")
    run("explain", ref)
    again = run("retry", ref, "-o", "id")
    run("cancel", again, "--yes")
    many = run("submit", str(tmp_path / "many.yaml"), "--to", "gpu", "-o", "id")
    refused = CliRunner().invoke(jobs, ["cancel", f"{many}:1", "--yes"], prog_name="jobs")
    assert "the submit policy ends whole jobs only" in refused.output, refused.output
    run("cancel", many, "--yes")

    made = list(asks)
    batch = sandbox.client("batch")
    for definition in batch.describe_job_definitions(status="ACTIVE")["jobDefinitions"]:
        if definition["jobDefinitionName"].startswith("accel-e2e-"):  # the job's own, which no stack takes away
            batch.deregister_job_definition(jobDefinition=definition["jobDefinitionArn"])
    # All but the end of one task: AWS has no tags of it, by which a policy could tell whose it is.
    alone = f"arn:aws:batch:{REGION}:{ACCOUNT}:job/{many.rpartition('/')[2]}:1"
    assert {each.resource for each in made if not allows(documents, each)} == {alone}
    assert {each.action.partition(":")[2] for each in made} >= WANTED, "the requests that matter were made"
