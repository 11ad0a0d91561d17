"""The AWS of the sandbox as a process, and what every test of its Batch needs in it."""

import http.client
import itertools
import json
import os
import urllib.parse
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from accel.catalog.quotas import quotas
from accel.clouds.aws.clients import Clients, Timing
from jobs.backends.base import Explanation, JobRef
from jobs.backends.diagnosis.aws_batch import explain
from jobs.backends.diagnosis.causes import of_platform
from sandbox import keys
from tests.support.forking import Forked
from tests.support.gathering import until_there
from tests.support.waiting import announced, until

ROOT = Path(__file__).parents[2]
NUMBER = itertools.count()
ENDED = ("SUCCEEDED", "FAILED")
SETTLE_S, LONG_S = 0.1, 60
"""How long a change of a resource shows, usually and within `unsettled`."""


class Aws:
    """Plain boto3 clients of one server, and short cuts for what a test is not about."""

    def __init__(self, home: Path, process: Forked, root: Path, told: Mapping[str, Any]) -> None:
        self.home, self.process, self.root, self.told = home, process, root, told
        self._session = boto3.Session(**keys.boto(keys.key(home)), region_name="us-east-1")
        self._clients: dict[str, Any] = {}
        self.batch = self.client("batch")
        self.made: dict[str, str] = {}

    def client(self, service: str, **config: Any) -> Any:
        key = f"{service} {config}"
        if key not in self._clients:
            self._clients[key] = self._session.client(service, endpoint_url=self.told["url"], config=Config(**config))
        return self._clients[key]

    def control(self, path: str, method: str = "POST", **body: Any) -> dict[str, Any]:
        address = urllib.parse.urlsplit(self.told["url"])
        connection = http.client.HTTPConnection(address.netloc)
        connection.request(method, f"/sandbox-api/{path}", json.dumps(body), keys.bearer(self.home))
        answer = connection.getresponse()
        found = json.load(answer)
        assert answer.status == 200, found
        return found

    @contextmanager
    def unsettled(self) -> Generator[None]:
        """What is changed within it settles after its end, on a busy machine too."""
        self.control("clock", settle_s=LONG_S)
        try:
            yield
        finally:
            self.control("clock", settle_s=SETTLE_S, advance_s=LONG_S)

    def prepare(self) -> None:
        """The role, profile and network that compute environments name."""
        iam, ec2 = self.client("iam"), self.client("ec2")
        iam.create_role(RoleName="instances", AssumeRolePolicyDocument="{}")
        self.service_role("AWSBatchServiceRole")
        self.made["profile"] = iam.create_instance_profile(InstanceProfileName="instances")["InstanceProfile"]["Arn"]
        subnet = ec2.describe_subnets()["Subnets"][0]
        self.made["subnet"] = subnet["SubnetId"]
        self.made["group"] = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]

    def service_role(self, name: str, *, policy: bool = True) -> str:
        """A role that Batch can assume; its ARN."""
        trust = {"Statement": [{"Principal": {"Service": "batch.amazonaws.com"}}]}
        role = self.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))["Role"]
        if policy:
            allowed = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}]}
            self.client("iam").put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=json.dumps(allowed))
        return role["Arn"]

    def name(self, kind: str) -> str:
        return f"{kind}-{next(NUMBER)}"

    def resources(self, **changes: Any) -> dict[str, Any]:
        return {
            "type": "EC2",
            "allocationStrategy": "BEST_FIT_PROGRESSIVE",
            "minvCpus": 0,
            "maxvCpus": 64,
            "instanceTypes": ["g5"],
            "subnets": [self.made["subnet"]],
            "securityGroupIds": [self.made["group"]],
            "instanceRole": self.made["profile"],
        } | changes

    def environment(self, *, wait: bool = True, service_role: str | None = None, **changes: Any) -> str:
        name = self.name("env")
        resources = {key: value for key, value in self.resources(**changes).items() if value is not None}
        role = {"serviceRole": service_role} if service_role else {}
        self.batch.create_compute_environment(
            computeEnvironmentName=name, type="MANAGED", computeResources=resources, **role
        )
        if wait:
            until(lambda: self.shown_environment(name)["status"] in ("VALID", "INVALID"))
        return name

    def shown_environment(self, name: str) -> dict[str, Any]:
        found = self.batch.describe_compute_environments(computeEnvironments=[name])["computeEnvironments"]
        return found[0] if found else {}

    def queue(self, *environments: str, **more: Any) -> str:
        name = self.name("queue")
        order = [{"order": at, "computeEnvironment": row} for at, row in enumerate(environments, 1)]
        given = {"priority": 1, "computeEnvironmentOrder": order} | more
        self.batch.create_job_queue(jobQueueName=name, **given)
        until(lambda: self.shown_queue(name)["status"] == "VALID")
        return name

    def shown_queue(self, name: str) -> dict[str, Any]:
        found = self.batch.describe_job_queues(jobQueues=[name])["jobQueues"]
        return found[0] if found else {}

    def definition(
        self,
        command: list[str],
        *,
        vcpu: int = 1,
        memory: int = 64,
        gpu: int = 0,
        more: Any = (),
        **container: Any,
    ) -> str:
        needs = [{"type": "VCPU", "value": str(vcpu)}, {"type": "MEMORY", "value": str(memory)}]
        needs += [{"type": "GPU", "value": str(gpu)}] if gpu else []
        properties = {"image": "local/work", "command": command, "resourceRequirements": needs} | container
        return self.batch.register_job_definition(
            jobDefinitionName=self.name("def"), type="container", containerProperties=properties, **dict(more)
        )["jobDefinitionArn"]

    def waiting(self, file: Path, vcpu: int = 1) -> str:
        """A definition of a job that runs until there is this file."""
        return self.definition(["sh", "-c", until_there(file)], vcpu=vcpu)

    def submit(self, queue: str, definition: str, **more: Any) -> str:
        given = {"jobName": self.name("job"), "jobQueue": queue, "jobDefinition": definition} | more
        return self.batch.submit_job(**given)["jobId"]

    def job(self, job_id: str) -> dict[str, Any]:
        # A task of an array that was just submitted may not be there yet.
        return next(iter(self.batch.describe_jobs(jobs=[job_id])["jobs"]), {"status": "NONE"})

    def ended(self, job_id: str) -> dict[str, Any]:
        return until(lambda: (job := self.job(job_id))["status"] in ENDED and job)

    def reaches(self, job_id: str, status: str) -> dict[str, Any]:
        def there() -> dict[str, Any] | None:
            job = self.job(job_id)
            assert job["status"] == status or job["status"] not in ENDED, f"{job_id} ended before it was seen {status}"
            return job if job["status"] == status else None

        return until(there)

    def until(self, check: Callable[[], Any]) -> Any:
        return until(check)

    def refusal(self, call: Any, **request: Any) -> str:
        """The text of the ClientException that the call ends in."""
        with pytest.raises(call.__self__.exceptions.ClientException) as refused:
            call(**request)
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
        return refused.value.response["Error"]["Message"]

    def lines(self, stream: str, group: str = "/aws/batch/job") -> list[str]:
        answer = self.client("logs").get_log_events(logGroupName=group, logStreamName=stream, startFromHead=True)
        return [event["message"] for event in answer["events"]]


def start(home: Path, root: Path, **environment: str) -> Aws:
    """A server that answers."""
    (home / "cloud.json").unlink(missing_ok=True)
    where = ["--home", str(home), "--root", str(root)]
    environ = {**os.environ, "SANDBOX_SETTLE_S": str(SETTLE_S), "SANDBOX_GRACE_S": "1", **environment}
    process = Forked(["-m", "sandbox.aws", *where], ROOT, environ)
    found = Aws(home, process, root, announced(home / "cloud.json", process))
    # A session makes more than AWS lets one account have.
    codes = [quota.code for quota in quotas() if quota.service == "ec2"]
    found.control("quotas", **dict.fromkeys(codes, 1024), **dict.fromkeys(["batch/environments", "batch/queues"], 9999))
    return found


@pytest.fixture
def start_aws(tmp_path: Path) -> Iterator[Callable[..., Aws]]:
    """Starts a server of the test's own."""
    made: list[Aws] = []

    def begin(**environment: str) -> Aws:
        (tmp_path / "work").mkdir(exist_ok=True)
        made.append(start(tmp_path / "home", tmp_path, **environment))
        made[-1].prepare()
        return made[-1]

    yield begin
    for found in made:
        found.process.kill()
        found.process.wait()


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    root = tmp_path_factory.mktemp("root")
    (root / "work").mkdir()
    found = start(root / "home", root)
    found.prepare()
    yield found
    found.process.terminate()
    found.process.wait(120)


@pytest.fixture(scope="session")
def queue(aws: Aws) -> str:
    """A queue over one environment of up to 64 vCPUs of g5."""
    return aws.queue(aws.environment())


@pytest.fixture
def why(aws: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Explanation]:
    """Explains a job of the sandbox; `later`: as if so many seconds had passed on its clock, which tests advance."""
    for name, value in {
        "AWS_ENDPOINT_URL": aws.told["url"],
        **keys.aws(keys.key(aws.home)),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)

    def call(job: str, *, later: float = 0, region: str = "us-east-1", **rest: Any) -> Explanation:
        ref = JobRef("aws-batch", region, job)
        now = aws.control("clock", advance_s=0)["now"]
        told = explain(Clients(region, Timing()), ref, now=now + later, **rest)
        assert told.cause in of_platform("aws_batch")
        assert told.next_step or told.cause == "succeeded"
        return told

    return call
