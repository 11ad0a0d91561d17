"""Run of one attempt on this host, from reading the machine's metadata to releasing the machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, NamedTuple

from . import command, hosts
from .cloud import CallError, Cloud
from .command import CommandEnd, Stop
from .hosts import Folder, Host, attempt_name
from .lines import Lines

FLUSH_S, LAST_FLUSH_S = 60.0, 3.0
"""Seconds that the end of a job waits for its log; the second value if the machine is being preempted."""


class Unready(Exception):
    """The command cannot be started. The text is the reason in the result."""


def main() -> int:
    """Run the attempt. Return the exit status of the startup script, which appears only on the serial console."""
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Whoever shuts the machine down takes it away from the job.
        signal.signal(number, lambda number, frame: stop.ask("preempted"))
    cloud = Cloud()
    text = cloud.metadata("instance/attributes/accel-job")
    if text is None:
        print("accel: the machine's metadata has no accel-job", flush=True)  # noqa: T201
        return 2
    job: dict[str, Any] = json.loads(text)
    try:
        host = hosts.this(cloud, job)
        return _hosted(cloud, job, host, Folder(cloud, job), stop)
    except (CallError, ValueError, KeyError) as error:
        # Without the bucket, or its place in the job, no result could ever be told: better no machine than one that
        # works for nobody.
        print(f"accel: {error}", flush=True)  # noqa: T201
        for said in _release(cloud, job):
            print(f"accel: {said}", flush=True)  # noqa: T201
        return 1


def _hosted(cloud: Cloud, job: dict[str, Any], host: Host, folder: Folder, stop: Stop) -> int:
    earlier = folder.read(f"result-{host.index}.json")
    boot = folder.arrive(host)
    log = _log(cloud, job, host, boot)
    try:
        over = folder.over(job["attempt"])
        if over:
            log.say(f"host {host.index}: {over}: the command is not run")
        elif earlier is None:
            _attempt(cloud, job, host, folder, log, stop, boot)
        else:
            # The machine was stopped and started again: its attempt is over, whoever started it.
            log.say(f"host {host.index} has its result from an earlier boot: the command is not run again")
        if host.index == 0:
            if not over:
                _all_over(job, folder)
            for said in _release(cloud, job):
                log.say(said, "ERROR")
    finally:
        _flush(folder, log, host, boot, LAST_FLUSH_S)
    return 0


def _log(cloud: Cloud, job: dict[str, Any], host: Host, boot: int) -> Lines:
    labels = {"accel-job": job["name"], "accel-attempt": str(job["attempt"]), "accel-host": str(host.index)}
    head = {"logName": job["log"], "resource": {"type": "global"}, "labels": labels}
    folder = Path(os.environ.get("ACCEL_WORK") or ".")
    return Lines(cloud.log, head, f"{hosts.attempt_name(job)}-{host.index}", boot, folder / "log.txt")


def _attempt(cloud: Cloud, job: dict[str, Any], host: Host, folder: Folder, log: Lines, stop: Stop, boot: int) -> None:
    """Run the command and write the result, whatever happens here."""
    log.say(f"host {host.index} of {job['hosts']}: {host.name}, attempt {job['attempt']}, boot {boot}")
    threading.Thread(target=_watch_preemption, args=(cloud, stop), daemon=True).start()
    ended = CommandEnd(None, "not-started: the agent failed, see the machine's serial console")
    started: list[str] = []
    try:
        ended = _ran(cloud, job, host, folder, log, stop, started)
    except Unready as unready:
        ended = CommandEnd(None, str(unready))
    except CallError as refused:
        ended = CommandEnd(None, f"not-started: {refused}")
    finally:
        if ended.reason != "exited":
            log.say(f"host {host.index} ended: {ended.reason}", "ERROR")
        # The log first: with the last result a client may remove the machine.
        _flush(folder, log, host, boot, LAST_FLUSH_S if ended.reason == "preempted" else FLUSH_S)
        result = {
            "host": host.index,
            # Of a command that was stopped for another host's sake it would tell nothing.
            "exit_code": None if ended.reason.startswith(hosts.STOPPED) else ended.exit_code,
            "reason": ended.reason,
            "started": started[0] if started else None,
            "stopped": command.now(),
            "lines": log.count,
        }
        folder.write(f"result-{host.index}.json", result, once=True)
        cloud.tell("result", json.dumps(result))


def _ran(
    cloud: Cloud, job: dict[str, Any], host: Host, folder: Folder, log: Lines, stop: Stop, started: list[str]
) -> CommandEnd:
    """Prepare the machine and run the command to its end. Raise Unready or CallError if it cannot start."""
    if job["gpus"]:
        _driver(job, stop)
    addresses = [host.ip]
    if job["hosts"] > 1:
        addresses, missing = folder.meet(job["meet_wait_s"], stop)
        _go_on(stop)
        if missing:
            shown = ", ".join(str(index) for index in missing)
            raise Unready(f"not-met: after {job['meet_wait_s']} s without host {shown}")
    wanted = {**hosts.environment(job, host, addresses), **job["env"]}
    secrets = {name: cloud.secret(version) for name, version in job["secrets"].items()}
    ready = prepare(cloud, job, host.index, wanted, secrets, log.say, stop)
    _go_on(stop)
    if ready.fault:
        raise Unready(f"not-started: {ready.fault}")
    if job["hosts"] > 1:
        threading.Thread(target=hosts.watch, args=(folder, host, stop), daemon=True).start()
    started.append(command.now())
    ended = command.run(ready.command, ready.env, log.put, stop, job["timeout_s"], job["grace_s"], ready.kill)
    if job["image"] and ended.exit_code == DAEMON and ended.last.startswith("docker: "):
        return CommandEnd(None, f"not-started: {ended.last[:400]}")
    if ended.reason == "exited" and ended.exit_code and cloud.metadata("instance/preempted", attempts=2) == "TRUE":
        return CommandEnd(ended.exit_code, "preempted")
    return ended


def _go_on(stop: Stop) -> None:
    if stop.requested:
        raise Unready(stop.reason)


def _driver(job: dict[str, Any], stop: Stop) -> None:
    """Wait until the driver has found the machine's GPUs. Raise Unready."""
    until = time.monotonic() + job["driver_wait_s"]
    while True:
        found = gpus()
        if found >= job["gpus"]:
            return
        if time.monotonic() >= until:
            raise Unready(f"driver-not-ready: after {job['driver_wait_s']} s it has {found} of {job['gpus']} GPUs")
        stop.sleep(2.0)
        _go_on(stop)


def _watch_preemption(cloud: Cloud, stop: Stop) -> None:
    etag = "0"
    while not stop.requested:
        try:
            taken, etag = cloud.preempted(etag, 60)
        except CallError:
            stop.sleep(5.0)
            continue
        if taken:
            stop.ask("preempted")
        stop.sleep(0.5)


def _all_over(job: dict[str, Any], folder: Folder) -> None:
    """Wait until every host has a result. If one has failed, the others that have arrived get time to end. A host that
    died reports nothing, and with a timeout all others have ended by then."""
    limit: int | None = job["timeout_s"]
    leave_s = job["grace_s"] + FLUSH_S
    until = float("inf") if limit is None else time.monotonic() + limit + leave_s
    known: dict[int, dict[str, Any]] = {}
    failed = False
    while time.monotonic() < until:
        try:
            now = folder.failed(known) is not None
            if len(known) == job["hosts"] or (now and set(folder.there("host")) <= known.keys()):
                return
            if now and not failed:
                failed, until = True, min(until, time.monotonic() + leave_s)
        except (CallError, ValueError) as error:
            print(f"accel: {error}", flush=True)  # noqa: T201
        time.sleep(folder.poll_s)


def _release(cloud: Cloud, job: dict[str, Any]) -> list[str]:
    """Delete the machines, including this one. Return what was refused, in words."""
    said: list[str] = []
    for call in job["release"]:
        try:
            cloud.call(call["method"], call["url"], attempts=10)
        except CallError as refused:
            if refused.status != 404:
                said.append(f"the machines are not released, and cost money until a client removes them: {refused}")
    return said


def _flush(folder: Folder, log: Lines, host: Host, boot: int, patience_s: float) -> None:
    left = log.flush(patience_s)
    if not left:
        return
    name = f"log-{host.index}.txt" if boot == 1 else f"log-{host.index}-{boot}.txt"
    try:
        folder.keep(name, left)
    except CallError as refused:
        print(f"accel: {refused}", flush=True)  # noqa: T201


DAEMON = 125
"""Exit code of `docker run` if docker itself failed. Source:
https://docs.docker.com/reference/cli/docker/container/run/#exit-status"""
PULLS = 4


class Ready(NamedTuple):
    """Command as it is run here, or the fault that prevents it."""

    command: list[str]
    env: dict[str, str]
    kill: Callable[[], None] = lambda: None
    fault: str = ""


def gpus() -> int:
    """Return the number of GPUs that the driver has found; 0 without a driver."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines()) if listed.returncode == 0 else 0


def prepare(
    cloud: Cloud,
    job: dict[str, Any],
    index: int,
    wanted: dict[str, str],
    secrets: dict[str, str],
    say: Callable[[str], None],
    stop: Stop,
) -> Ready:
    """Mount buckets, pull the image, and return the command. `secrets` are never part of a command line."""
    volumes, fault = _mounts(job, stop)
    if fault:
        return Ready([], {}, fault=fault)
    if not job["image"]:
        return Ready(job["command"], command.environment({**wanted, **secrets}))
    work = Path(os.environ.get("ACCEL_WORK") or ".")
    own = {**os.environ, "DOCKER_CONFIG": str(work / "docker")}
    name = f"{attempt_name(job)}-{index}"
    fault = _pulled(cloud, job["image"], own, say, stop)
    if fault:
        return Ready([], {}, fault=fault)
    # One that is left of an earlier boot has the name.
    command.quietly(["docker", "rm", "--force", name], own, stop)
    # When the machine shuts down, docker stops the container by itself, and would wait for 15 seconds. Source:
    # ShutdownTimeout of https://github.com/moby/moby/blob/master/daemon/daemon.go
    line = ["docker", "run", "--rm", "--name", name, "--network", "host", "--stop-timeout", str(job["grace_s"])]
    line += [*_devices(job), *volumes]
    for variable, value in wanted.items():
        line += ["--env", f"{variable}={value}"]
    for variable in secrets:
        line += ["--env", variable]

    def kill() -> None:
        command.quietly(["docker", "kill", name], own, Stop())

    return Ready([*line, job["image"], *job["command"]], {**own, **secrets}, kill)


def _devices(job: dict[str, Any]) -> list[str]:
    """Return docker's options for devices and shared memory. Source of --privileged for TPUs:
    https://docs.cloud.google.com/tpu/docs/run-in-container"""
    accelerated = job["gpus"] or job["kind"] == "tpu-vm"
    found = ["--privileged"] if job["kind"] == "tpu-vm" else ["--gpus", "all"] if job["gpus"] else []
    shm_mib = job["shm_mib"] or (_memory_mib() // 2 if accelerated else 0)
    # Docker's 64 MiB are too few for workers of a data loader and for NCCL.
    return [*found, *(["--shm-size", f"{shm_mib}m"] if shm_mib else [])]


def _memory_mib() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def _pulled(cloud: Cloud, image: str, env: dict[str, str], say: Callable[[str], None], stop: Stop) -> str:
    host = image.partition("/")[0]
    if host.endswith("-docker.pkg.dev") or host == "gcr.io" or host.endswith(".gcr.io"):
        # Source: https://docs.cloud.google.com/artifact-registry/docs/docker/authentication#token
        login = ["docker", "login", "--username", "oauth2accesstoken", "--password-stdin", f"https://{host}"]
        said = command.quietly(login, env, stop, given=cloud.token())
        if said:
            return f"docker login {host}: {said}"
    say(f"pulls {image}")
    said = command.quietly(["docker", "pull", "--quiet", image], env, stop, attempts=PULLS)
    return f"docker pull {image}: {said}" if said else ""


def _mounts(job: dict[str, Any], stop: Stop) -> tuple[list[str], str]:
    """Mount buckets with gcsfuse. Return docker's options for them, and a fault, "" for none. Source:
    https://docs.cloud.google.com/storage/docs/cloud-storage-fuse/cli-options"""
    volumes: list[str] = []
    work = Path(os.environ.get("ACCEL_WORK") or ".")
    for number, mount in enumerate(job["mounts"]):
        bucket, _, folder = mount["source"][len("gs://") :].partition("/")
        place = work / f"mount-{number}" if job["image"] else Path(mount["path"])
        line = ["gcsfuse", "--implicit-dirs", "-o", "allow_other"]
        line += ["--only-dir", folder.strip("/")] if folder.strip("/") else []
        line += ["-o", "ro"] if mount["read_only"] else []
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            return [], f"mount {mount['path']}: {error}"
        said = command.quietly([*line, bucket, str(place)], dict(os.environ), stop)
        if said:
            return [], f"mount {mount['source']}: gcsfuse: {said}"
        volumes += ["--volume", f"{place}:{mount['path']}{':ro' if mount['read_only'] else ''}"]
    return volumes, ""


if __name__ == "__main__":
    sys.exit(main())
