"""How long the provider's stand-in waits, and what it says when it gives up."""

from typing import Any

import pytest

from sandbox import keys
from sandbox.plugins.aws.cloud import Account
from sandbox.plugins.aws.plugin import KINDS, UnexpectedState, create_resource, update_resource

KIND = KINDS["aws:batch/computeEnvironment:ComputeEnvironment"]


def test_an_update_that_jobs_hold_up_is_given_up_and_goes_on(aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider's own 20 minutes, which no option of the resource makes longer, are SANDBOX_WAIT_S here."""
    account, api = Account(aws.told["url"], keys.key(aws.home)), aws.resources()
    resources: dict[str, Any] = {
        "type": "EC2",
        "allocationStrategy": "BEST_FIT_PROGRESSIVE",
        "instanceRole": api["instanceRole"],
        "instanceTypes": ["g5"],
        "minVcpus": 0,
        "maxVcpus": 64,
        "securityGroupIds": api["securityGroupIds"],
        "subnets": api["subnets"],
        "ec2Configurations": [{"imageType": "ECS_AL2023_NVIDIA"}],
    }
    policy = {"jobExecutionTimeoutMinutes": 30, "terminateJobsOnUpdate": False}
    olds = {
        "name": aws.name("environment"),
        "region": "us-east-1",
        "type": "MANAGED",
        "state": "ENABLED",
        "computeResources": resources,
        "updatePolicy": policy,
    }
    id, outputs = create_resource(account, KIND, olds)
    job = aws.submit(aws.queue(id), aws.definition(["sleep", "300"]))
    aws.reaches(job, "RUNNING")
    news = {**olds, "computeResources": {**resources, "instanceTypes": ["g6"]}}
    monkeypatch.setenv("SANDBOX_WAIT_S", "0.5")
    with pytest.raises(UnexpectedState) as refused:
        update_resource(account, KIND, id, outputs, olds, news)
    assert str(refused.value) == (
        f"waiting for Batch Compute Environment ({id}) update: timeout while waiting for state to become 'VALID' "
        "(last state: 'UPDATING', timeout: 20m0s)"
    )
    assert aws.job(job)["status"] == "RUNNING"
    aws.control("clock", advance_s=30 * 60)
    aws.until(lambda: aws.shown_environment(id)["status"] == "VALID")
    assert aws.shown_environment(id)["computeResources"]["instanceTypes"] == ["g6"]
