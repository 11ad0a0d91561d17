"""Containers for jobs on this machine: docker's command lines, and a check whether docker is available. `docker run` is
the attempt's process: it prints what the container prints, forwards SIGTERM to it, and ends with its exit code. A
killed client leaves its container behind, so each attempt has a command that removes it. Source:
https://docs.docker.com/reference/cli/docker/container/run/"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from accel.contract import variables

DAEMON_ERROR = 125
"""Exit code of `docker run` if docker itself failed. Source:
https://docs.docker.com/engine/containers/run/#exit-status"""
LOOK_S = 20.0
CLIENT = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY")
"""Variables by which the client finds its daemon and its registries' passwords."""
HOST = "host://"


def absence() -> str | None:
    """Return why no container can be run here; None if one can."""
    if shutil.which("docker") is None:
        return "this machine has no docker command"
    try:
        asked = subprocess.run(["docker", "info"], capture_output=True, text=True, check=False, timeout=LOOK_S)
    except (OSError, subprocess.TimeoutExpired):
        return "docker does not answer"
    if asked.returncode == 0:
        return None
    told = (asked.stderr.strip() or asked.stdout.strip() or f"exit code {asked.returncode}").splitlines()[-1]
    return f"docker has no daemon here: {told[:200]}"


def faults(mounts: Sequence[tuple[str, str]]) -> list[str]:
    """Return faults in a container's mounts, each given as a source and a path."""
    found: list[str] = []
    for number, (source, path) in enumerate(mounts):
        if not source.removeprefix(HOST).startswith("/"):
            found.append(f"mounts[{number}].source: {source}: must be a folder of this machine, /path or host:///path")
        elif "," in source or "," in path:
            found.append(f"mounts[{number}]: a path with a comma, which docker would cut there")
    return found


def command(body: Mapping[str, Any], name: str, env: Mapping[str, str], devices: Sequence[str]) -> list[str]:
    """Return the argv that runs a task in a container called `name`. `devices` are the ids of its GPUs; if they are
    unknown, docker gets their number."""
    # An init process forwards SIGTERM, as on AWS Batch: as process 1, Python without a handler ignores it.
    line = ["docker", "run", "--rm", "--init", "--name", name]
    if accelerator := body["accelerator"]:
        # The quotes are for docker, which reads a list with commas there.
        line += ["--gpus", f'"device={",".join(devices)}"' if devices else str(accelerator["count"])]
    for option, value in (("cpus", body["cpus"]), ("memory", body["memory_mib"]), ("shm-size", body["shm_mib"])):
        if value:
            line += [f"--{option}", str(value) if option == "cpus" else f"{value}m"]
    for mount in body["mounts"]:
        bind = f"type=bind,source={mount['source'].removeprefix(HOST)},target={mount['path']}"
        line += ["--mount", f"{bind},readonly" if mount["read_only"] else bind]
    for variable, value in sorted(env.items()):
        line += ["--env", f"{variable}={value}"]
    return [*line, body["image"], *body["command"]]


def removal(name: str) -> list[str]:
    """Return the argv that removes a container, whatever became of its client."""
    return ["docker", "rm", "--force", name]


def task_variables(body: Mapping[str, Any], task: int, attempt: int) -> dict[str, str]:
    return {
        variables.JOB_NAME: body["job"],
        variables.TASK_COUNT: str(body["tasks"]),
        variables.TASK_INDEX: str(task),
        variables.INDEX_FROM: variables.INDEX_VARIABLE["local"],
        variables.ATTEMPT: str(attempt),
    }


def client() -> dict[str, str]:
    """Return the variables of this process that docker's client needs."""
    return {name: os.environ[name] for name in CLIENT if name in os.environ}
