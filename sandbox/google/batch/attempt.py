"""One attempt of a task, and Google Batch's reports of a job and its tasks: status events, notifications, log entries.

Runnables run in their order, those that are local as processes of this machine. Forms:
https://docs.cloud.google.com/batch/docs/troubleshooting (tasks), https://github.com/nextflow-io/nextflow/issues/4225
(states of jobs), https://github.com/broadinstitute/cromwell (BatchRequestExecutorSpec: a job that failed by a task).
"""

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from .. import PROJECT, pubsub, secret_versions
from ..errors import ApiError
from ..local_runs import Run, begin, credentials, folder_of, is_local, log_lines
from ..world import Json, World
from .machines import Vm

CODES = {
    50001: "Spot VM preemption",
    50002: "Batch no longer receives VM updates",
    50003: "VM is rebooted during task execution",
    50004: "tasks cannot be canceled",
    50005: "task runs over the maximum runtime",
    50006: "VM is recreated during task execution",
}
"""https://docs.cloud.google.com/batch/docs/troubleshooting#reserved-exit-codes"""
PREEMPTED, OVER_TIME, OTHERWISE = 50001, 50005, 50000
"""Exit codes of preemption, of a timeout, and of a failure that belongs to no runnable and has none of CODES, by the
description of TaskExecution.exitCode."""

Event = tuple[float, str, str, Vm, int | None]
"""Time (seconds since 1970), old and new state, VM, and the exit code of a failure."""


def time_of(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "000Z")


def task_text(event: Event) -> str:
    _, before, after, vm, code = event
    said = f"Task state is updated from {before} to {after} on zones/{vm.zone}/instances/{vm.id}"
    if code is None:
        return f"{said}."
    return f"{said}{f' due to {CODES[code]}' if code in CODES else ''} with exit code {code}."


def task_event(event: Event) -> Json:
    """Return a status event. Only a failure has an exit code: https://github.com/nextflow-io/nextflow/pull/6977"""
    ended = {"taskExecution": {"exitCode": event[4]}} if event[4] is not None else {}
    made = {"type": "STATUS_CHANGED", "description": task_text(event), "eventTime": time_of(event[0])}
    return {**made, "taskState": event[2], **ended}


def job_event(description: str, at: float, kind: str = "STATUS_CHANGED") -> Json:
    return {"type": kind, "description": description, "eventTime": time_of(at)}


def job_text(name: str, before: str, after: str) -> str:
    return f"Job state is set from {before} to {after} for job {name}."


def failure_text(index: int, event: Event) -> str:
    what = f'task with index {index} failed due to the following task event: "{task_text(event)}"'
    return f"Job failed due to task failure. Specifically, {what}"


def short_text(code: str, vm: str, why: str) -> str:
    """Return the text for VMs that cannot be had. Form: https://github.com/nextflow-io/nextflow/issues/3061"""
    said = f"Batch Error: code - {code}, description - error count is 1, latest message example: Instance '{vm}'"
    return f"VM in Managed Instance Group meets error: {said} creation failed: {why}"


def refusal_text(why: str) -> str:
    return f"Job gets non-retryable information Batch Error: code - CODE_GCE_INVALID_FIELD_VALUE, description - {why}"


def no_agent_text(vm: Vm, at: float) -> str:
    said = f"VM state for instance {vm.name} is {time_of(at)},agent,start"
    return f"No VM has agent reporting correctly within time window 1080 seconds, {said}"


def notify(world: World, job: Json, level: str, state: str, text: str, task: str = "") -> None:
    """Notify the topics of the job. JobName, JobUID, NewJobState and Type appear in public code that reads them; the
    attributes of a task, and the text as data, are from memory."""
    for each in job.get("notifications", []):
        message = each.get("message", {})
        wanted = message.get(f"new{level.title()}State")
        kind = f"{level}_STATE_CHANGED"
        if message.get("type") != kind or (wanted and wanted != state):
            continue
        told = {"Type": kind, "JobName": job["name"], "JobUID": job["uid"], f"New{level.title()}State": state}
        told |= {"TaskName": task} if task else {}
        pubsub.publish(world, each.get("pubsubTopic", ""), text, told)


class Log:
    """Log entries of one job. Labels and resource: https://docs.cloud.google.com/batch/docs/analyze-job-using-logs
    names job_uid; public code that reads entries has task_id, task_group_name and those of the resource; hostname and
    runnable_index are from memory."""

    def __init__(self, world: World, job: Json, seed: int) -> None:
        self.world, self.job = world, job
        self._chance = random.Random(f"{seed} {job['uid']}")
        self._on = job.get("logsPolicy", {}).get("destination") == "CLOUD_LOGGING"

    def task(self, index: int, vm: Vm, lines: Sequence[str], runnable: int, labels: Mapping[str, str]) -> None:
        """Log a runnable's output. On Google Cloud, lines of stderr have severity ERROR; here both streams are one."""
        own = {"task_id": f"{self.job['uid']}-group0-{index}", "runnable_index": str(runnable), **labels}
        self._write("batch_task_logs", vm, lines, own)

    def agent(self, vm: Vm, lines: Sequence[str], severity: str = "INFO") -> None:
        self._write("batch_agent_logs", vm, lines, {"task_id": "action/STARTUP/0/0/group0"}, severity)

    def _write(self, log: str, vm: Vm, lines: Sequence[str], labels: Mapping[str, str], severity: str = "INFO") -> None:
        if not self._on or not lines:
            return
        job: Any = self.job
        known = {"job_uid": job["uid"], "task_group_name": job["taskGroups"][0]["name"], "hostname": vm.name}
        where = {"job_id": job["uid"], "location": vm.zone, "resource_container": PROJECT, "project_id": PROJECT}
        resource = {"type": "batch.googleapis.com/Job", "labels": where}
        every = {**job.get("labels", {}), **known, **labels}
        log_lines(self.world, f"projects/{PROJECT}/logs/{log}", resource, lines, every, severity, self._chance)


# docker's codes for what it cannot run: https://docs.docker.com/engine/containers/run/#exit-status. Batch's own for an
# image that cannot be pulled is 1, as public code has seen.
_NO_IMAGE, _NO_COMMAND = 1, 125


class Attempt(Protocol):
    @property
    def processes(self) -> int: ...

    def step(self, now: float) -> int | None: ...
    def end(self, code: int) -> None: ...
    def kill(self) -> None: ...


class PretendedRun:
    """Attempt in which nothing runs. It ends after a moment."""

    processes = 0

    def __init__(self, until: float, code: int = 0) -> None:
        self._until, self._code = until, code

    def step(self, now: float) -> int | None:
        return self._code if now >= self._until else None

    def end(self, code: int) -> None:
        self._until, self._code = 0.0, code

    def kill(self) -> None:
        pass


def seconds(given: str | None) -> float | None:
    """Return the seconds of "14400s"; None, no limit, for 0 and for no value."""
    return float(given.removesuffix("s")) or None if given else None


def really_runs(spec: Json) -> bool:
    images = [each["container"]["imageUri"] for each in spec["runnables"] if "container" in each]
    return not images or any(map(is_local, images))


class Real:
    """Attempt that runs here. `passed(k)` returns whether every task has reached barrier k."""

    def __init__(
        self, world: World, job: Json, log: Log, index: int, vm: Vm, folder: Path, env: Mapping[str, str],
        passed: Callable[[int], bool],
    ) -> None:  # fmt: skip
        self.index, self.at = index, -1  # index of the current runnable; a barrier counts when it is reached
        self._world, self._log, self._vm, self._folder, self._passed = world, log, vm, folder, passed
        self._spec: Json = job["taskGroups"][0]["taskSpec"]
        self._group: Json = job["taskGroups"][0]
        self._account: str = job["allocationPolicy"]["serviceAccount"].get("email", "")
        self._batch = dict(env)
        self._current: Run | None = None
        self._background: list[tuple[int, Run]] = []
        self._until = 0.0
        self._forced: int | None = None
        self._code = 0
        limit = seconds(self._spec.get("maxRunDuration"))
        self._over = time.monotonic() + limit if limit else float("inf")
        self._done = False

    @property
    def processes(self) -> int:
        return (self._current is not None) + len(self._background)

    def step(self, now: float) -> int | None:
        """Return the exit code of the task, once nothing of it runs any more."""
        if now > self._over and self._forced is None:
            self._agent(f"runs over the maximum runtime: exit code {OVER_TIME}")
            self.end(OVER_TIME)
        while self._forced is None and not self._done:
            if not self._ready(now):
                return self._ship()
        self._ship()
        if self._current is not None and not self._collect(self.at, self._current):
            return None
        self._current = None
        for _, run in self._background:
            run.stop()
        self._background = [(at, run) for at, run in self._background if not self._collect(at, run)]
        if self._background:
            return None
        return self._code if self._forced is None else self._forced

    def _ready(self, now: float) -> bool:
        """Return whether the current runnable has ended, and begin the next one."""
        spec: Json = self._spec["runnables"][self.at] if self.at >= 0 else {}
        if self._current is not None:
            if (code := self._current.poll()) is None:
                return False
            self._collect(self.at, self._current)
            code = OVER_TIME if self._current.timed_out else code
            self._note(self.at, code, self._current.why)
            self._current = None
            self._fail(spec, code)
        elif now < self._until or ("barrier" in spec and not self._passed(self.at)):
            return False
        self._next(now)
        return True

    def _fail(self, spec: Json, code: int) -> None:
        """Record the first failure, whose code is the task's by the description of TaskExecution.exitCode."""
        if code and not spec.get("ignoreExitStatus") and not self._code:
            self._code = code

    def _next(self, now: float) -> None:
        runnables: list[Json] = self._spec["runnables"]
        self.at += 1
        while self.at < len(runnables) and self._code and not runnables[self.at].get("alwaysRun"):
            self.at += 1
        if self.at >= len(runnables):
            self._done = True
            return
        spec = runnables[self.at]
        if "barrier" in spec:
            return
        if "container" in spec and not is_local(spec["container"]["imageUri"]):
            self._until = now + self._world.settle_s
            return
        try:
            run = self._begin(spec)
        except ApiError as refused:  # a secret that cannot be read
            self._agent(f"runnable {self.at}: {refused}")
            self._fail({}, OTHERWISE)
            return
        if run is None:
            self._fail(spec, _NO_IMAGE if folder_of(spec["container"]["imageUri"]) is None else _NO_COMMAND)
        elif spec.get("background"):
            self._background.append((self.at, run))
        else:
            self._current = run

    def _begin(self, spec: Json) -> Run | None:
        """Start a runnable, or return None where docker would fail."""
        folder, timeout_s = self._folder / str(self.at), seconds(spec.get("timeout"))
        env = self._environment(spec)
        if "script" in spec:
            command, workdir = self._script(spec["script"]), self._folder
        else:
            container: Json = spec["container"]
            entry: list[str] = [container["entrypoint"]] if container.get("entrypoint") else []
            command, found = [*entry, *container.get("commands", [])], folder_of(container["imageUri"])
            said = f"pull access denied for {container['imageUri']}, repository does not exist" if found is None else ""
            if found is None or not command:
                self._agent(f"docker: Error response from daemon: {said or 'no command specified'}")
                return None
            workdir = found
        self._agent(f"runnable {self.at} starts")
        return begin(folder, command, env, workdir, timeout_s=timeout_s)

    def _script(self, script: Json) -> list[str]:
        """Return the command of a script: that of its first line, else /bin/sh, as the field's description says."""
        self._folder.mkdir(parents=True, exist_ok=True)
        if "path" in script:
            return ["/bin/sh", script["path"]]
        path = self._folder / f"script-{self.at}"
        path.write_text(script["text"])
        path.chmod(0o700)
        return [str(path)] if script["text"].startswith("#!") else ["/bin/sh", str(path)]

    def _environment(self, spec: Json) -> dict[str, str]:
        """Return the variables of the task, of its index and of the runnable; Batch's own win."""
        each: list[Json] = self._group.get("taskEnvironments", [])
        rows: list[Json] = [self._spec.get("environment", {}), *each[self.index : self.index + 1]]
        rows.append(spec.get("environment", {}))
        found = {**credentials(self._world, self._account), "GOOGLE_CLOUD_PROJECT": PROJECT}
        for row in rows:
            found |= row.get("variables", {})
            for name, version in row.get("secretVariables", {}).items():
                found[name] = secret_versions.value(self._world, version).decode()
        return {**found, **self._batch}

    def _ship(self) -> None:
        rows = [*self._background, *([(self.at, self._current)] if self._current else [])]
        for at, run in rows:
            self._print(at, run.lines(last=False))

    def _collect(self, at: int, run: Run) -> bool:
        if run.poll() is None:
            return False
        self._print(at, run.lines(last=True))
        return True

    def _print(self, at: int, lines: list[str]) -> None:
        self._log.task(self.index, self._vm, lines, at, self._spec["runnables"][at].get("labels", {}))

    def _note(self, at: int, code: int, why: str) -> None:
        self._agent(f"runnable {at} exited with status {code}{f': {why}' if why else ''}", "ERROR" if code else "INFO")

    def _agent(self, text: str, severity: str = "INFO") -> None:
        """Log a line of the agent. The form of a task's name is that of
        https://docs.cloud.google.com/batch/docs/troubleshooting (50002); the message is the sandbox's."""
        job: Any = self._log.job
        name = f"task/{job['uid']}-group0-{self.index}/{self._batch['BATCH_TASK_RETRY_ATTEMPT']}/0"
        said = re.sub(r"\s+", " ", text)
        self._log.agent(self._vm, [f'instance:"{self._vm.name}" task_id:"{name}" {said}'], severity)

    def end(self, code: int) -> None:
        if self._forced is None:
            self._forced = code
        for run in [*([self._current] if self._current else []), *(run for _, run in self._background)]:
            run.stop()

    def kill(self) -> None:
        for run in [*([self._current] if self._current else []), *(run for _, run in self._background)]:
            run.kill()
