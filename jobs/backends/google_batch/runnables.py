"""Steps of each task: containers, scripts and barriers."""

import shlex
from collections.abc import Sequence
from typing import Any

from accel.rules import Finding, under
from accel.rules.batch import jobs, runnables
from accel.rules.jobs import containers, placeholders

from ...model import sweep_tasks
from ...model.blocks_google import GoogleBatch, Runnable
from ...model.job import Job
from . import labels, nodes
from .storage import MountedVolume

READY, DONE = "nodes-ready", "nodes-done"
"""Barriers of nodes: none begins before all are ready, and none leaves while another still needs it. Source:
https://github.com/GoogleCloudPlatform/batch-samples/tree/main/mpi-container"""


def faults(job: Job, block: GoogleBatch) -> list[str]:
    found: list[str] = []
    if block.runnables:
        beside = {"image": job.image, "command": job.command, "google_batch.args": block.args}
        found += [
            f"google_batch.runnables: are beside {name}; use one of the two" for name, has in beside.items() if has
        ]
        if block.docker_options:
            found.append("google_batch.docker_options: are of a job's one container; write them into its runnables")
        if job.shm_mib and not any(each.image for each in block.runnables):
            found.append("shm_mib: is of a container, and no runnable has an image")
        return found
    if block.args and job.command:
        found.append("google_batch.args: are for the image's own entry point, and command takes its place; use one")
    if not job.image:
        alone = {
            "shm_mib": job.shm_mib,
            "google_batch.args": block.args,
            "google_batch.docker_options": block.docker_options,
        }
        found += [f"{name}: is of a container, and there is no image" for name, has in alone.items() if has]
        if not job.command:
            found.append("command: is missing, and there is no image that would have one")
    elif job.nodes > 1 and not job.command:
        found.append(
            "command: is missing; a job of several nodes runs it after what tells it of the others, which the image's "
            "own entry point cannot"
        )
    return found


def scripts(job: Job, block: GoogleBatch) -> bool:
    """Return whether a step runs on the VM itself."""
    return any(each.script for each in block.runnables) if block.runnables else not job.image


def findings(job: Job, block: GoogleBatch) -> list[Finding]:
    kept = [mount.path for mount in job.mounts if not mount.read_only]
    if not block.runnables:
        found = _image(job.image) + runnables.docker_options(block.docker_options)
        found += runnables.command(job.command) if job.command else []
        words = [*job.command, *block.args]
        return found + placeholders.addresses("command", words) + runnables.local_output(words, job.env, kept)
    kinds = ["barrier" if each.barrier else "script" if each.script else "container" for each in block.runnables]
    found = runnables.steps(kinds, [each.background for each in block.runnables])
    for i, each in enumerate(block.runnables):
        words = [*([each.entrypoint] if each.entrypoint else []), *each.command]
        of_one = _image(each.image) + runnables.docker_options(each.docker_options)
        of_one += runnables.command(words) if each.entrypoint else []
        of_one += placeholders.addresses("command", words) + runnables.local_output(words, each.env, kept)
        of_one += containers.environment(each.env) + jobs.environment(each.env)
        found += under(f"runnables[{i}]", of_one)
    return found + runnables.local_output([], job.env, kept)


def _image(image: str | None) -> list[Finding]:
    if not image or image.startswith(containers.LOCAL):
        return []
    return containers.image(image, "image") + placeholders.value("image", image)


def build(job: Job, block: GoogleBatch, volumes: Sequence[MountedVolume], *, hosts: bool) -> list[dict[str, Any]]:
    """Return the runnables; with `hosts`, tasks get the list of their VMs."""
    several = job.nodes > 1
    binds = [each.bind for each in volumes]
    if hosts:
        binds.append(f"{nodes.HOSTS_FILE}:{nodes.HOSTS_FILE}:ro")
    if block.permissive_ssh:
        binds += [f"{folder}:{folder}" for folder in nodes.SSH_FOLDERS]
    if block.runnables:
        return [_step(each, job, binds, hosts=hosts) for each in block.runnables]
    words = sweep_tasks.command(job, runnables.expand_variables(job.command), labels.KIND)
    if job.image:
        argv = nodes.command(words) if several else words
        made = {"container": _container(job.image, argv[:1], argv[1:] or block.args, binds)}
        _options(made["container"], job, block.docker_options, hosts=hosts)
    else:
        made = {"script": {"text": f"{nodes.PRELUDE if several else ''}exec {shlex.join(words)}\n"}}
    if not several:
        return [made]
    return [{"barrier": {"name": READY}}, made, {"barrier": {"name": DONE}}]


def _container(image: str, entry: Sequence[str], commands: Sequence[str], binds: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {"imageUri": image}
    if entry:
        made["entrypoint"] = entry[0]
    if commands:
        made["commands"] = list(commands)
    if binds:
        made["volumes"] = list(binds)
    return made


def _options(container: dict[str, Any], job: Job, given: str | None, *, hosts: bool) -> None:
    """Set docker's options. Batch itself adds the GPUs."""
    options = given
    for finding in runnables.docker_options(given):
        if finding.rule == runnables.GPUS_OPTION.id:
            options = str(finding.replacement) if finding.replacement else None
    own: list[str] = []
    if hosts and not (options and ("--network" in options or "--net" in options)):
        # It gives a container its VM's name and ports.
        own.append("--network=host")
    if job.shm_mib:
        own.append(f"--shm-size={job.shm_mib}m")
    if options:
        own.append(options)
    if own:
        container["options"] = " ".join(own)


def _step(each: Runnable, job: Job, binds: list[str], *, hosts: bool) -> dict[str, Any]:
    several = job.nodes > 1
    made: dict[str, Any] = {}
    if each.barrier:
        return {"barrier": {"name": each.barrier}}
    if each.script:
        made["script"] = {"text": (nodes.script(each.script) if several else None) or each.script}
    else:
        words = runnables.expand_variables([each.entrypoint, *each.command]) if each.entrypoint else []
        words = nodes.command(words) if several and words else words
        made["container"] = _container(each.image or "", words[:1], words[1:] or each.command, binds)
        _options(made["container"], job, each.docker_options, hosts=hosts)
    if each.env:
        made["environment"] = {"variables": dict(sorted(each.env.items()))}
    flags = {"background": each.background, "alwaysRun": each.always_run, "ignoreExitStatus": each.ignore_exit_status}
    made |= {name: True for name, on in flags.items() if on}
    if each.timeout_s:
        made["timeout"] = f"{each.timeout_s}s"
    return made


def untold(job: Job, block: GoogleBatch) -> list[str]:
    """Return a warning for each step of a job of several nodes that cannot learn of the others."""
    if job.nodes == 1:
        return []
    return [
        f"google_batch.runnables[{i}]: is not told of the other nodes, for want of "
        + ("a shell as its interpreter" if each.script else "an entrypoint")
        for i, each in enumerate(block.runnables)
        if (each.script and nodes.script(each.script) is None) or (each.image and not each.entrypoint)
    ]
