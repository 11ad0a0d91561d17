"""One attempt of a job: the local runner as a process, its log stream, its secrets."""

import json
import os
import sys
import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

from moto.core.exceptions import ServiceException
from moto.logs.exceptions import LogsClientError
from moto.secretsmanager.exceptions import SecretsManagerClientError
from moto.secretsmanager.models import secretsmanager_backends
from moto.ssm.models import ssm_backends

from ...keys import aws, key
from ...runner_process import RunnerProcess
from .. import permissions
from .instances import Instance
from .state import Batch, Document, Environment, Job, Outcome

DEFAULT_GROUP = "/aws/batch/job"
# Wording on EC2 instances; Fargate says ResourceInitializationError. https://github.com/aws/aws-cdk/issues/5954
NO_LOG_GROUP = (
    "CannotStartContainerError: Error response from daemon: failed to initialize logging driver: failed to "
    "create Cloudwatch log stream: ResourceNotFoundException: The specified log group does not exist."
)
# CloudWatch's limit for one event is 256 KB with 26 bytes of overhead; dockerd splits there too.
# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html
EVENT_BYTES = 262_118
# Every node of a multi-node job is a process of this machine.
LOCAL = "127.0.0.1"
# Variables from an image that let the job find its command and print.
KEPT_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")


class StartFailure(Exception):
    """Reason why ECS would not start the container: the attempt's `reason`."""


class Run:
    """Job on an instance, from STARTING until `outcome` is set."""

    def __init__(self, batch: Batch, job: Job, environment: Environment, instance: Instance, gpus: list[str]) -> None:
        self.batch, self.job, self.environment = batch, job, environment
        self.instance, self.gpus = instance, gpus
        self.task = uuid.uuid4().hex
        self.folder = batch.world.jobs_dir / self.task
        self.placed_at = batch.world.now()
        self.started_at: int | None = None
        self.outcome: Outcome | None = None
        self._stop: Outcome | None = None
        self._kill_at = 0.0
        self._process: RunnerProcess | None = None
        cluster = environment.document["ecsClusterArn"].rpartition("/")[2]
        prefix = f"arn:{batch.partition}:ecs:{batch.region_name}:{batch.account_id}"
        self.container: Document = {
            "containerInstanceArn": instance.arn,
            "taskArn": f"{prefix}:task/{cluster}/{self.task}",
            "networkInterfaces": [{"attachmentId": self.task, "privateIpv4Address": LOCAL}] if job.whole else [],
        }
        try:
            self._start()
        except StartFailure as fault:
            self.container["reason"] = str(fault)
            self.outcome = Outcome("Task failed to start")

    def _start(self) -> None:
        world, image = self.batch.world, self.job.container["image"]
        workdir = world.root / image.removeprefix("local/")
        if not image.startswith("local/"):
            raise StartFailure(f"CannotPullContainerError: the sandbox runs only local/<folder> images, not {image}")
        if not workdir.resolve().is_relative_to(world.root.resolve()) or not workdir.is_dir():
            raise StartFailure(f"CannotPullContainerError: {image}: there is no folder {workdir}")
        if not self.job.container["command"]:
            raise StartFailure("CannotStartContainerError: Error response from daemon: no command specified")
        environment = self._environment()
        self._open_log()
        self.folder.mkdir(parents=True)
        spec = {"command": self.job.container["command"], "env": environment, "workdir": str(workdir)}
        # The sandbox's clock, which tests advance, counts the timeout, so the runner does not.
        self._process = RunnerProcess(self.folder, spec | {"timeout_s": None, "grace_s": world.grace_s})

    def _environment(self) -> dict[str, str]:
        """Let Batch's own names win over the author's."""
        job, region = self.job, self.batch.region_name
        kept = {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ}
        kept["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
        # In place of the job role's credentials, so that the job reaches this cloud and no other.
        kept |= {
            "AWS_ENDPOINT_URL": self.batch.world.endpoint,
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            **aws(key(self.batch.world.home)),
        }
        own = {row["name"]: row["value"] for row in job.container["environment"]}
        secrets = {row["name"]: self._secret(row["valueFrom"]) for row in job.container["secrets"]}
        return kept | own | secrets | self.batch_environment()

    def batch_environment(self) -> dict[str, str]:
        job = self.job
        found = {
            "AWS_BATCH_JOB_ID": job.id,
            "AWS_BATCH_JOB_ATTEMPT": str(len((job.whole or job).document["attempts"]) + 1),
            "AWS_BATCH_JQ_NAME": job.queue.document["jobQueueName"],
            "AWS_BATCH_CE_NAME": self.environment.document["computeEnvironmentName"],
        }
        if job.parent:
            found["AWS_BATCH_JOB_ARRAY_INDEX"] = str(job.document["arrayProperties"]["index"])
            found["AWS_BATCH_JOB_ARRAY_SIZE"] = str(len(job.parent.children))
        if job.whole:
            found |= {
                "AWS_BATCH_JOB_NODE_INDEX": str(job.document["nodeDetails"]["nodeIndex"]),
                "AWS_BATCH_JOB_NUM_NODES": str(len(job.whole.nodes)),
                "AWS_BATCH_JOB_MAIN_NODE_INDEX": str(job.whole.document["nodeProperties"]["mainNode"]),
            }
            if job is not job.whole.main:
                found["AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS"] = LOCAL
        return found | ({"NVIDIA_VISIBLE_DEVICES": ",".join(self.gpus)} if self.gpus else {})

    def _secret(self, source: str) -> str:
        failed = "ResourceInitializationError: unable to pull secrets or registry auth: "
        account = self.batch.account_id
        region = source.split(":")[3] if source.startswith("arn:") else self.batch.region_name
        try:
            if ":secretsmanager:" not in source:
                name = source.partition(":parameter")[2] or source
                found: Any = ssm_backends[account][region].get_parameter(name)
                if found is None:
                    raise StartFailure(f"{failed}unable to retrieve secrets from ssm: invalid parameters: {source}")
                parameter = f"arn:{self.batch.partition}:ssm:{region}:{account}:parameter/{name.lstrip('/')}"
                self._may("ssm:GetParameters", parameter, f"{failed}unable to retrieve secrets from ssm: ")
                return found.response_object(decrypt=True, region=region)["Value"]
            # arn:aws:secretsmanager:<region>:<account>:secret:<name>[:<json key>:<stage>:<version>]
            parts = [*source.split(":"), "", "", ""]
            value: Document = secretsmanager_backends[account][region].get_secret_value(
                ":".join(parts[:7]), parts[9], parts[8]
            )
            # https://github.com/aws/copilot-cli/issues/4504
            unable = f"Fetching secret data from AWS Secrets Manager in region {region}: secret {source}: "
            self._may("secretsmanager:GetSecretValue", value["ARN"], unable)
            return json.loads(value["SecretString"])[parts[7]] if parts[7] else value["SecretString"]
        except (SecretsManagerClientError, ServiceException, KeyError, ValueError) as error:
            raise StartFailure(f"{failed}unable to retrieve secret from asm: {source}: {error}") from error

    def _may(self, action: str, resource: str, unable: str) -> None:
        role = str(self.job.container.get("executionRoleArn"))
        if answer := permissions.denial(self.batch.iam_backend, role, action, resource):
            raise StartFailure(unable + answer)

    def _open_log(self) -> None:
        configuration = self.job.container.get("logConfiguration", {})
        options = configuration.get("options", {})
        self._logs = self.batch.logs_backend if configuration.get("logDriver", "awslogs") == "awslogs" else None
        if self._logs is None:
            return
        self._group = options.get("awslogs-group", DEFAULT_GROUP)
        name = self.job.document["jobDefinition"].rpartition("/")[2].partition(":")[0]
        self._stream = f"{options.get('awslogs-stream-prefix', name)}/default/{self.task}"
        create = options.get("awslogs-create-group", "").lower() == "true" or self._group == DEFAULT_GROUP
        if self._group not in self._logs.groups:
            if not create:
                raise StartFailure(NO_LOG_GROUP)
            self._logs.create_log_group(self._group, {})
        self._logs.create_log_stream(self._group, self._stream)
        self.container["logStreamName"] = self._stream

    def _ship(self, last: bool) -> None:
        assert self._process
        now = int(time.time() * 1000)
        events = [
            {"timestamp": now, "message": line[at : at + EVENT_BYTES].decode(errors="replace")}
            for line in (line.removesuffix(b"\r") for line in self._process.lines(last))
            for at in range(0, len(line), EVENT_BYTES)
        ]
        if events and self._logs:
            try:
                self._logs.put_log_events(self._group, self._stream, events)
            except LogsClientError:
                # The group was deleted during the job: its driver drops the lines, the job goes on.
                self._logs = None

    def poll(self) -> None:
        """Poll the process: record its start, ship its lines, and set `outcome` once it has ended."""
        if self.outcome or self._process is None:
            return
        world, exit_status = self.batch.world, self._process.poll()
        report = self._process.report()
        if self.started_at is None and report.get("started"):
            began = datetime.fromisoformat(report["started"]).timestamp()
            self.started_at = self.job.document["startedAt"] = int((began + world.offset_s) * 1000)
        self._ship(last=exit_status is not None)
        limit = self.job.document.get("timeout", {}).get("attemptDurationSeconds")
        if self.started_at and limit and world.ms() > self.started_at + limit * 1000:
            self.stop("Job attempt duration exceeded timeout", retry=False)
        if exit_status is None:
            if self._stop and time.monotonic() > self._kill_at:
                self.kill()
            return
        code, why = report.get("exit_code"), report.get("reason") or ""
        if code is not None and not why.startswith("not-started"):
            self.container["exitCode"] = code
        if self._stop:
            self.outcome = self._stop
        elif why.startswith("not-started"):
            self.container["reason"] = f"CannotStartContainerError: Error response from daemon: {why[12:].strip()}"
            self.outcome = Outcome("Task failed to start")
        else:
            if report.get("phase") not in ("succeeded", "failed"):
                self.container["reason"] = f"the local runner ended with {exit_status}: see {self.folder}/runner.log"
            self.outcome = Outcome("Essential container in task exited", succeeded=code == 0)

    def stop(self, reason: str, *, retry: bool) -> None:
        """Ask the job to stop. Does nothing once it has ended; the first reason given stands."""
        if self._stop or self.outcome or (self._process and self._process.poll() is not None):
            return
        self._stop = Outcome(reason, retry=retry)
        self._kill_at = time.monotonic() + self.batch.world.grace_s + 10
        if self._process:
            self._process.terminate()

    def kill(self) -> None:
        if self._process:
            self._process.kill()
