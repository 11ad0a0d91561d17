"""How the command is run: what docker is told, and what has to be there before."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Callable, NamedTuple

from . import command
from .cloud import Cloud
from .command import Stop
from .hosts import attempt_name

DAEMON = 125
"""What `docker run` exits with where docker itself failed. Source:
https://docs.docker.com/reference/cli/docker/container/run/#exit-status"""
PULLS = 4


class Ready(NamedTuple):
    """A command as it is run here, or why it cannot be."""

    command: list[str]
    env: dict[str, str]
    kill: Callable[[], None] = lambda: None
    fault: str = ""


def gpus() -> int:
    """The GPUs that the driver has found; 0 without a driver."""
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
    """Mounts buckets and pulls the image. `secrets` are never part of a command line."""
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
    """Source of --privileged for TPUs: https://docs.cloud.google.com/tpu/docs/run-in-container"""
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
    """Buckets made visible by gcsfuse: what docker is told of them, and what went wrong. Source:
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
