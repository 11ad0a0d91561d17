"""A custom job of Vertex AI from its creation to its end.

    QUEUED -> PENDING -> RUNNING -> SUCCEEDED | FAILED
                 ^           |
                 +-----------+ a Spot VM was preempted, a worker was restarted, an exit code that is retried

and CANCELLING -> CANCELLED from all three. Every step is one of World.tick. Source, where no other is named:
https://docs.cloud.google.com/vertex-ai/docs/training/understanding-training-service

An image `local/<folder>` runs here, and any other ends well after a moment. All replicas are on 127.0.0.1, each with a
port of its own where Google's have host names of their own.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...kubernetes.environment import expand
from ...loopback import LOCAL, free_ports
from .. import PROJECT, PROJECT_NUMBER
from ..errors import ApiError
from ..faults import Plan
from ..local_runs import Run, StartFailure, credentials, is_local, log_lines, start
from ..world import Json, Pending, World, stamp
from .checks import seconds
from .limits import over, quota_in_use
from .machines import own_gpus

ENDED = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED")
TRIES = 3
"""Retries of a job that fails with one of TRANSIENT, or finds no machines."""
TRANSIENT = (6, 134, 11, 139)
PREEMPTIONS = 6
"""Preemptions after which a job on Spot VMs fails. Source:
https://docs.cloud.google.com/vertex-ai/docs/training/use-spot-vms"""
_WAIT_S = 24 * 3600
_SAID = {
    "JOB_STATE_QUEUED": "Waiting for job to be provisioned.",
    "JOB_STATE_PENDING": "Job is preparing.",
    "JOB_STATE_RUNNING": "Job is running.",
    "JOB_STATE_SUCCEEDED": "Job completed successfully.",
    "JOB_STATE_FAILED": "Job failed.",
    "JOB_STATE_CANCELLING": "Job is cancelling.",
    "JOB_STATE_CANCELLED": "Job is cancelled.",
}
"""Lines of the task `service`; those of cancelling are from memory."""

_ROLES = ("chief", "worker", "ps", "evaluator")
"""Roles of pools in TF_CONFIG."""
_START_ERROR = 128


@dataclass
class Replica:
    """One replica. `code` is its exit code, `why` the reason why it could not start."""

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
        """Command and arguments. A local image has no entry point, so without a command the arguments are run."""
        if task := self.spec.get("pythonPackageSpec"):
            return ["python", "-m", task["pythonModule"], *task.get("args", [])]
        task = self.spec["containerSpec"]
        return [*task.get("command", []), *task.get("args", [])]


@dataclass
class Replicas:
    """Replicas of one attempt of a job. `trial`: number of a trial, and the arguments that it adds."""

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
        return any(is_local(each.image) for each in self.all)

    def start(self, only: Replica | None = None) -> None:
        """Start all of them, or restart one with its earlier ports."""
        if only is None:
            self._ports = free_ports(len(self.all) + 1)
        for replica in self.all if only is None else [only]:
            replica.code, replica.why = None, ""
            if is_local(replica.image):
                folder = self.folder / f"{replica.name}-{self.world.number()}"
                try:
                    replica.run = start(folder, replica.image, replica.command, self.environment(replica))
                except StartFailure as fault:
                    replica.code, replica.why = _START_ERROR, str(fault)

    def look(self, moment: bool) -> None:
        """Log their output, and record who has ended. Once `moment` is true, images that do not run here have ended."""
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
        """Return Google's variables, then the job's, whose values may name earlier ones as $(NAME)."""
        found = {**credentials(self.world, self.spec.get("serviceAccount", "")), **dict(self._service(replica))}
        task = replica.spec.get("pythonPackageSpec") or replica.spec["containerSpec"]
        for row in task.get("env", []):
            found[row["name"]] = expand(row["value"], found)  # its words are those of Kubernetes' EnvVar
        return found

    def _service(self, replica: Replica) -> Iterator[tuple[str, str]]:
        """Yield the variables that the service sets. Sources: training_utils/environment_variables.py of
        https://github.com/googleapis/python-aiplatform,
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
        # The documentation has `job` as an object; output that people post has text, and open_ports:
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
        """Write log entries of a task. Form: googlecloudsdk/command_lib/ai/log_util.py of the Google Cloud CLI, which
        reads resource.labels.job_id and task_name, and the message of jsonPayload or textPayload; the service's own
        lines have the task `service`, as in https://github.com/tensorflow/models/issues/10735. The rest of a line's
        jsonPayload, and the names of logs, are from memory."""
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


def state_change(state: str) -> Json:
    """Return what the entry into a state writes. The end of a job and its last update are one moment."""
    now = stamp()
    return {"state": state, "updateTime": now, **({"endTime": now} if state in ENDED else {})}


class Job:
    """Job that exists. `plan` is the fault of its creation: it makes PENDING longer, or end in FAILED."""

    def __init__(
        self, world: World, key: str, item: Json, plan: Plan | None = None, trial: tuple[str, Sequence[str]] = ("", ())
    ) -> None:
        self.world, self.key, self.item, self.plan = world, key, item, plan
        self.id = key.rpartition("/")[2]
        self.region = key.split("/")[3]
        self.spec: Json = item["jobSpec"]
        folder = world.home / "machines" / "aiplatform" / self.id
        self.replicas = Replicas(world, self.id, self.region, self.spec, folder, trial)
        self._turn = self._tries = self._preemptions = 0
        self._since = 0.0
        self._error: Json = {}
        self._restarting: list[Replica] = []
        world.runs[f"aiplatform/{key}"] = self
        self.enter("JOB_STATE_QUEUED")
        self._later(world.settle_s, self._admit)

    @property
    def state(self) -> str:
        return self.item["state"]

    @property
    def scheduling(self) -> Json:
        return self.spec.get("scheduling", {})

    def kill(self) -> None:
        self.replicas.kill()

    def enter(self, state: str) -> None:
        self._turn += 1
        self.item |= state_change(state)
        self._note()
        self.replicas.log("service", [_SAID[state]], "ERROR" if state == "JOB_STATE_FAILED" else "INFO")

    def _note(self) -> None:
        """Record the job for lists, which are delayed."""
        rows = self.world.history.setdefault(f"aiplatform/{self.key}", [])
        rows.append((time.monotonic() + self.world.list_lag_s, {**self.item}))

    def _later(self, delay_s: float, step: Callable[[], None], ready: Callable[[], bool] = lambda: True) -> None:
        turn = self._turn

        def end() -> None:
            if self._turn == turn:
                step()

        due = time.monotonic() + delay_s
        self.world.pending.append(Pending(self.key, due, end, lambda: self._turn != turn or ready()))

    def _admit(self) -> None:
        limited = any(name.startswith("aiplatform/") for name in self.world.quota)
        if limited and over(self.world, self.region, self.spec, quota_in_use(self.world, self.region)):
            return self._later(self.world.settle_s, self._admit)
        self.enter("JOB_STATE_PENDING")
        self._since = time.monotonic()
        return self._later(self.world.settle_s + (self.plan.delay_s if self.plan else 0), self._provision)

    def _provision(self) -> None:
        if self.plan and self.plan.fails:
            return self._end("JOB_STATE_FAILED", 13, self.plan.fails)
        if not self._short():
            return self._run()
        waits, wait_s = self.scheduling.get("strategy") == "FLEX_START", seconds(self.scheduling.get("maxWaitDuration"))
        wait_s = _WAIT_S if wait_s is None else wait_s
        self._tries += not waits
        late = wait_s and time.monotonic() - self._since > wait_s
        if late if waits else (self._tries > TRIES or self.scheduling.get("disableRetries")):
            return self._stockout()
        return self._later(self.world.settle_s, self._provision)

    def _stockout(self) -> None:
        """End the job for lack of machines. That its code is RESOURCE_EXHAUSTED, and that a wait for flex-start ends in
        the same words, is a guess."""
        said = f"Resources are insufficient in region: {self.region}. Try a different region or use a different"
        self._end("JOB_STATE_FAILED", 8, f"{said} accelerator.")

    def _short(self) -> bool:
        """Return whether machines are out of stock, which World.stockouts has by type, region/type or zone/type."""
        kinds = {each.spec["machineSpec"]["machineType"] for each in self.replicas.all}
        places = {name.rpartition("/")[::2] for name in self.world.stockouts}
        return any(kind in kinds and (not place or place.startswith(self.region)) for place, kind in places)

    def _run(self) -> None:
        self.replicas.start()
        self.item.setdefault("startTime", stamp())
        self._since = time.monotonic()
        if self.spec.get("enableWebAccess"):  # the form of the addresses is from memory
            host = f"dot-{self.region}.aiplatform-training.googleusercontent.com"
            self.item["webAccessUris"] = {
                each.name: f"https://{self.id}-{each.name}-{host}" for each in self.replicas.all
            }
        self.enter("JOB_STATE_RUNNING")
        if self.replicas.local:
            self.world.watch()
        self._later(0, self._decide, self._looked)

    def _looked(self) -> bool:
        """Return whether something has happened that ends this attempt."""
        running_s = time.monotonic() - self._since
        self.replicas.look(running_s >= self.world.settle_s)
        for replica in [each for each in self._restarting if each.code is not None]:
            self._restarting.remove(replica)
            self.replicas.start(replica)
        ended = self.replicas.all[0].code is not None or any(each.code for each in self.replicas.all)
        return ended or self._late(running_s)

    def _late(self, running_s: float) -> bool:
        limit = seconds(self.scheduling.get("timeout"))
        return bool(limit) and running_s > (limit or 0)

    def _decide(self) -> None:
        """End the attempt. A job whose time is over is cancelled: https://github.com/tensorflow/tfx/issues/6223."""
        failed = next((each for each in self.replicas.all if each.code), None)
        if failed is None and self.replicas.all[0].code is None:
            return self.cancel()
        if failed is None:
            return self._end("JOB_STATE_SUCCEEDED")
        self._tries += 1
        if failed.code in TRANSIENT and self._tries <= TRIES and not self.scheduling.get("disableRetries"):
            return self._again()
        return self._end("JOB_STATE_FAILED", 3, self._why(failed))

    def _why(self, failed: Replica) -> str:
        """Return why a job failed. Wording: https://github.com/tensorflow/models/issues/10735; for a replica that did
        not start: https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/1898."""
        said = f"The replica {failed.name} exited with a non-zero status of {failed.code}. "
        if failed.why:
            said += f"Termination reason: StartError. \n Termination log message: {failed.why}\n "
        wanted = quote(f'resource.type="ml_job"\nresource.labels.job_id="{self.id}"', safe="")
        console = f"https://console.cloud.google.com/logs/viewer?project={PROJECT_NUMBER}"
        link = f"{console}&resource=ml_job%2Fjob_id%2F{self.id}&advancedFilter={wanted}"
        return f"{said}To find out more about why your job exited please check the logs: {link}"

    def _again(self) -> None:
        """End all replicas, and look for machines again."""
        self.replicas.stop()
        self._turn += 1
        self._later(0, self._prepare, self._quiet)

    def _prepare(self) -> None:
        self._restarting.clear()
        self.enter("JOB_STATE_PENDING")
        self._later(self.world.settle_s, self._provision)

    def _quiet(self) -> bool:
        self.replicas.look(moment=True)
        return not self.replicas.running

    def _end(self, state: str, code: int = 0, said: str = "") -> None:
        self._error = {"code": code, "message": said} if code else {}
        self.replicas.stop()
        self._turn += 1
        self._later(0, lambda: self._last(state), self._quiet)

    def _last(self, state: str) -> None:
        if self._error:
            self.item["error"] = self._error
            if state == "JOB_STATE_FAILED":
                self.replicas.log("service", [self._error["message"]], "ERROR")
        self.world.runs.pop(f"aiplatform/{self.key}", None)
        self.enter(state)

    def cancel(self) -> None:
        """Cancel the job, with the code of customJobs.cancel in the discovery document; the message is from memory."""
        if self.state not in (*ENDED, "JOB_STATE_CANCELLING"):
            self.enter("JOB_STATE_CANCELLING")
            self.replicas.stop()
            self._error = {"code": 1, "message": "CANCELED"}
            self._later(self.world.settle_s, lambda: self._last("JOB_STATE_CANCELLED"), self._quiet)

    def preempt(self) -> None:
        if self.state != "JOB_STATE_RUNNING" or self.scheduling.get("strategy") != "SPOT":
            raise ApiError(400, f"sandbox: {self.key} is {self.state}, or not Spot")
        self._preemptions += 1
        if self._preemptions > PREEMPTIONS or self.scheduling.get("disableRetries"):
            self._stockout()
        else:
            self._again()

    def restart(self, name: str) -> None:
        """Restart one worker under its name, as maintenance does, or with restartJobOnWorkerRestart all of them."""
        replica = next((each for each in self.replicas.all if each.name == name), None)
        if replica is None or self.state != "JOB_STATE_RUNNING":
            raise ApiError(404, f"sandbox: {self.key} has no replica {name} that runs")
        if self.scheduling.get("restartJobOnWorkerRestart") and not self.scheduling.get("disableRetries"):
            self._again()
        elif replica.run and replica not in self._restarting:
            self._restarting.append(replica)
            replica.run.stop()


def fill_defaults(spec: Json) -> None:
    for pool in filter(None, spec["workerPoolSpecs"]):
        newer = own_gpus(pool["machineSpec"]["machineType"]) in (("NVIDIA_H200_141GB", 8), ("NVIDIA_B200", 8))
        disk = {"bootDiskType": "hyperdisk-balanced" if newer else "pd-ssd", "bootDiskSizeGb": 100}
        pool["diskSpec"] = {**disk, **pool.get("diskSpec", {})}
        pool["replicaCount"] = str(pool["replicaCount"])
