"""A custom job of Vertex AI from its creation to its end.

    QUEUED -> PENDING -> RUNNING -> SUCCEEDED | FAILED
                ^           |
                +-----------+ a Spot VM was taken away, a worker was restarted, an exit code that is tried again

and CANCELLING -> CANCELLED from all three. Every step is one of World.tick. Source, where no other is named:
https://docs.cloud.google.com/vertex-ai/docs/training/understanding-training-service
"""

import time
from collections.abc import Callable, Sequence
from urllib.parse import quote

from . import PROJECT_NUMBER
from .errors import Refused
from .faults import Plan
from .vertex_checks import seconds
from .vertex_limits import over, quota_in_use
from .vertex_machines import own_gpus
from .vertex_replicas import Replica, Replicas
from .world import Json, Pending, World, stamp

ENDED = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED")
TRIES = 3
"""Of a job that fails with one of TRANSIENT, or finds no machines."""
TRANSIENT = (6, 134, 11, 139)
PREEMPTIONS = 6
"""After which a job on Spot VMs fails. Source: https://docs.cloud.google.com/vertex-ai/docs/training/use-spot-vms"""
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


class Job:
    """A job that lives. `plan` is the fault that its creation met: it makes PENDING longer, or end in FAILED."""

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
        self.item |= {"state": state, "updateTime": stamp()}
        self._note()
        self.replicas.log("service", [_SAID[state]], "ERROR" if state == "JOB_STATE_FAILED" else "INFO")

    def _note(self) -> None:
        """For lists, which are late."""
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
        """That its code is RESOURCE_EXHAUSTED, and that a wait for flex-start ends in the same words, is guessed."""
        said = f"Resources are insufficient in region: {self.region}. Try a different region or use a different"
        self._end("JOB_STATE_FAILED", 8, f"{said} accelerator.")

    def _short(self) -> bool:
        """World.stockouts has machine types, or with a region or one of its zones before them."""
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
        """Whether something has happened that ends this attempt."""
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
        """A job whose time is over is cancelled: https://github.com/tensorflow/tfx/issues/6223."""
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
        """Wording: https://github.com/tensorflow/models/issues/10735; of what did not start:
        https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/1898."""
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
        """Shut down what still runs, then enter a last state."""
        self._error = {"code": code, "message": said} if code else {}
        self.replicas.stop()
        self._turn += 1
        self._later(0, lambda: self._last(state), self._quiet)

    def _last(self, state: str) -> None:
        self.item["endTime"] = stamp()
        if self._error:
            self.item["error"] = self._error
            if state == "JOB_STATE_FAILED":
                self.replicas.log("service", [self._error["message"]], "ERROR")
        self.world.runs.pop(f"aiplatform/{self.key}", None)
        self.enter(state)

    def cancel(self) -> None:
        """The code is that of customJobs.cancel in the discovery document; the message is from memory."""
        if self.state not in (*ENDED, "JOB_STATE_CANCELLING"):
            self.enter("JOB_STATE_CANCELLING")
            self.replicas.stop()
            self._error = {"code": 1, "message": "CANCELED"}
            self._later(self.world.settle_s, lambda: self._last("JOB_STATE_CANCELLED"), self._quiet)

    def preempt(self) -> None:
        """Take the Spot VMs away: the job starts anew, up to six times."""
        if self.state != "JOB_STATE_RUNNING" or self.scheduling.get("strategy") != "SPOT":
            raise Refused(400, f"sandbox: {self.key} is {self.state}, or not Spot")
        self._preemptions += 1
        if self._preemptions > PREEMPTIONS or self.scheduling.get("disableRetries"):
            self._stockout()
        else:
            self._again()

    def restart(self, name: str) -> None:
        """One worker loses its VM, as by maintenance: it starts again under its name, or with
        restartJobOnWorkerRestart all of them do."""
        replica = next((each for each in self.replicas.all if each.name == name), None)
        if replica is None or self.state != "JOB_STATE_RUNNING":
            raise Refused(404, f"sandbox: {self.key} has no replica {name} that runs")
        if self.scheduling.get("restartJobOnWorkerRestart") and not self.scheduling.get("disableRetries"):
            self._again()
        elif replica.run and replica not in self._restarting:
            self._restarting.append(replica)
            replica.run.stop()


def filled(spec: Json) -> None:
    """What the service adds to a CustomJobSpec."""
    for pool in filter(None, spec["workerPoolSpecs"]):
        newer = own_gpus(pool["machineSpec"]["machineType"]) in (("NVIDIA_H200_141GB", 8), ("NVIDIA_B200", 8))
        disk = {"bootDiskType": "hyperdisk-balanced" if newer else "pd-ssd", "bootDiskSizeGb": 100}
        pool["diskSpec"] = {**disk, **pool.get("diskSpec", {})}
        pool["replicaCount"] = str(pool["replicaCount"])
