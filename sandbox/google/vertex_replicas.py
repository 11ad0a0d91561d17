"""The replicas of a custom job: their variables, their processes, and what they write to Cloud Logging.

An image `local/<folder>` runs here, and any other ends well after a moment. All replicas are on 127.0.0.1, each with a
port of its own where Google's have host names of their own.
"""

import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..kubernetes.environment import expanded
from . import PROJECT, PROJECT_NUMBER
from .local_runs import NotStarted, Run, credentials, is_local, log_lines, start
from .world import Json, World

LOCAL = "127.0.0.1"
_ROLES = ("chief", "worker", "ps", "evaluator")
"""Of pools in TF_CONFIG."""
_START_ERROR = 128


@dataclass
class Replica:
    """One replica. `code` is how it ended, `why` why it could not start."""

    name: str
    pool: int
    index: int
    spec: Json
    run: Run | None = None
    code: int | None = None
    why: str = ""

    @property
    def image(self) -> str:
        task = self.spec.get("pythonPackageSpec")
        return task["executorImageUri"] if task else self.spec["containerSpec"]["imageUri"]

    @property
    def command(self) -> list[str]:
        """Without a command, the arguments: an image that runs here has no entry point."""
        if task := self.spec.get("pythonPackageSpec"):
            return ["python", "-m", task["pythonModule"], *task.get("args", [])]
        task = self.spec["containerSpec"]
        return [*task.get("command", []), *task.get("args", [])]


@dataclass
class Replicas:
    """All replicas of one attempt of a job. `trial`: number of a trial, and the arguments that it adds."""

    world: World
    job_id: str
    region: str
    spec: Json
    folder: Path
    trial: tuple[str, Sequence[str]] = ("", ())
    all: list[Replica] = field(default_factory=list[Replica])

    def __post_init__(self) -> None:
        for number, pool in enumerate(self.spec["workerPoolSpecs"]):
            task = "pythonPackageSpec" if "pythonPackageSpec" in pool else "containerSpec"
            for index in range(int(pool.get("replicaCount") or 0) if pool else 0):
                own = {**pool, task: {**pool[task], "args": [*pool[task].get("args", []), *self.trial[1]]}}
                self.all.append(Replica(f"workerpool{number}-{index}", number, index, own))

    @property
    def local(self) -> bool:
        """Whether any of them really runs."""
        return any(is_local(each.image) for each in self.all)

    def start(self, only: Replica | None = None) -> None:
        """Start all of them, or one of them again with what it was told before."""
        if only is None:
            self._ports = free_ports(len(self.all) + 1)
        for replica in self.all if only is None else [only]:
            replica.code, replica.why = None, ""
            if is_local(replica.image):
                folder = self.folder / f"{replica.name}-{self.world.number()}"
                try:
                    replica.run = start(folder, replica.image, replica.command, self.environment(replica))
                except NotStarted as fault:
                    replica.code, replica.why = _START_ERROR, str(fault)

    def look(self, moment: bool) -> None:
        """Hand on what was printed, and note who has ended. `moment`: that after which other images end is over."""
        for replica in self.all:
            if replica.run is None and replica.code is None and moment:
                replica.code = 0
            if replica.run and replica.code is None:
                code = replica.run.poll()
                self.log(replica.name, replica.run.lines(last=code is not None))
                replica.code = _START_ERROR if replica.run.why else code
                replica.why = replica.run.why

    def stop(self) -> None:
        for replica in self.all:
            if replica.run and replica.code is None:
                replica.run.stop()

    def kill(self) -> None:
        for replica in self.all:
            if replica.run:
                replica.run.kill()

    @property
    def running(self) -> bool:
        return any(each.run and each.code is None for each in self.all)

    def environment(self, replica: Replica) -> dict[str, str]:
        """Google's variables, then the job's: a value may name those before it as $(NAME)."""
        found = {**credentials(self.world, self.spec.get("serviceAccount", "")), **dict(self._service(replica))}
        task = replica.spec.get("pythonPackageSpec") or replica.spec["containerSpec"]
        for row in task.get("env", []):
            found[row["name"]] = expanded(row["value"], found)  # its words are those of Kubernetes' EnvVar
        return found

    def _service(self, replica: Replica) -> Iterator[tuple[str, str]]:
        """Sources: training_utils/environment_variables.py of https://github.com/googleapis/python-aiplatform,
        https://docs.cloud.google.com/vertex-ai/docs/training/distributed-training; names of PyTorch:
        https://github.com/Lightning-AI/pytorch-lightning/issues/13374 (RANK is the node's),
        https://github.com/cellarium-ai/cellarium-ml/issues/56 (WORLD_SIZE is the number of nodes). Whether they are set
        on one node alone, and on parameter servers, was not found: here they are not."""
        yield "CLOUD_ML_PROJECT_ID", PROJECT_NUMBER
        yield "CLOUD_ML_REGION", self.region
        yield "CLOUD_ML_JOB_ID", self.job_id
        yield "HOSTNAME", f"cmle-training-{replica.name}"
        if prefix := self.spec.get("baseOutputDirectory", {}).get("outputUriPrefix"):
            base = prefix.rstrip("/") + (f"/{self.trial[0]}" if self.trial[0] else "")
            for name, folder in (("MODEL", "model"), ("CHECKPOINT", "checkpoints"), ("TENSORBOARD_LOG", "logs")):
                yield f"AIP_{name}_DIR", f"{base}/{folder}/"
        addresses = [f"{LOCAL}:{port}" for port in self._ports]
        cluster: dict[str, list[str]] = {}
        roles: dict[str, list[str]] = {}
        for each, address in zip(self.all, addresses, strict=False):
            cluster.setdefault(f"workerpool{each.pool}", []).append(address)
            if each.pool < len(_ROLES) - 1:  # evaluators are no part of TensorFlow's cluster
                roles.setdefault(_ROLES[each.pool], []).append(address)
        trial = {"trial": self.trial[0]} if self.trial[0] else {}
        package = replica.spec.get("pythonPackageSpec", {})
        job = {"python_module": package.get("pythonModule", ""), "package_uris": package.get("packageUris", []),
               "job_args": package.get("args", [])}  # fmt: skip
        # The documentation has `job` as an object; what people print has text, and open_ports:
        # https://github.com/search?q=cmle-training-workerpool0&type=code
        more = {"environment": "cloud", "job": json.dumps(job), "open_ports": self._ports[-1:]}
        task: dict[str, Any] = {"type": f"workerpool{replica.pool}", "index": replica.index, **trial}
        yield "CLUSTER_SPEC", json.dumps({"cluster": cluster, "task": task, **more})
        if len(self.all) > 1:
            task = {"type": _ROLES[replica.pool], "index": replica.index, "cloud": self.job_id, **trial}
            yield "TF_CONFIG", json.dumps({"cluster": roles, "task": task, **more})
            nodes = [each for each in self.all if each.pool < 2]
            if replica in nodes:
                yield "MASTER_ADDR", LOCAL
                yield "MASTER_PORT", str(self._ports[-1])
                yield "WORLD_SIZE", str(len(nodes))
                yield "RANK", str(nodes.index(replica))

    def log(self, task: str, lines: Sequence[str], severity: str = "INFO") -> None:
        """Form: googlecloudsdk/command_lib/ai/log_util.py of the Google Cloud CLI, which reads resource.labels.job_id
        and task_name, and the message of jsonPayload or textPayload; the service's own lines have the task `service`,
        as in https://github.com/tensorflow/models/issues/10735. The rest of a line's jsonPayload, and the names of
        logs, are from memory."""
        service = task == "service"
        log_lines(
            self.world,
            f"projects/{PROJECT}/logs/{f'ml.googleapis.com%2F{self.job_id}' if service else task}",
            {"type": "ml_job", "labels": {"job_id": self.job_id, "project_id": PROJECT, "task_name": task}},
            lines,
            {"ml.googleapis.com/job_id": self.job_id, "ml.googleapis.com/trial_id": self.trial[0]},
            severity,
            **({} if service else {"payload": lambda line: {"jsonPayload": {"levelname": "INFO", "message": line}}}),
        )


def free_ports(count: int) -> list[int]:
    """Ports that nobody has just now."""
    sockets = [socket.create_server((LOCAL, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
