"""What an image runs by itself, read from its registry before a job is sent, and the command judged with it.

Only where it makes a difference: a job without a command, and a command that the platform hands to the image's entry
point. A registry that shows the image to no stranger, or does not answer, is no reason to refuse a job. What was read
is kept for an hour, since registries count such reads (https://docs.docker.com/docker-hub/usage/).
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from accel.diagnostics.errors import BadInputs, JobsError
from accel.folders import cache, write_json
from accel.rules import Finding
from accel.rules.batch import runnables
from accel.rules.jobs import entry_points
from accel.rules.jobs.containers import LOCAL

if TYPE_CHECKING:
    from accel.console.reporter import Voice

    from ..model.job import Job
    from .bulk import Item

SWITCH = "ACCEL_IMAGE_CHECK"
"""`off` where no registry is to be asked, on a network that reaches none."""
HANDED = ("aws-batch", "tpu-vm", "gce", "local")
"""Kinds of targets that hand a command to the image's ENTRYPOINT; the others put it in its place."""
MAX_AGE_S = 3600.0
TIMEOUT_S = 3.0
PRIVATE = (".dkr.ecr.",)
"""Registries that tell strangers nothing."""

ARGV_RULES: dict[str, tuple[Callable[[Sequence[str]], list[Finding]], ...]] = {
    "google-batch": (runnables.command,),
}
"""Rules over what a container runs, entry point first, by kind of target: of a job whose command is its image's."""


def check(pairs: "Sequence[tuple[Job, Item]]", voice: "Voice") -> None:
    """Say what is wrong with commands; raise BadInputs where a container would have nothing to run."""
    if os.environ.get(SWITCH) == "off":
        return
    rejected: dict[str, None] = {}
    warned: dict[str, None] = {}
    images: dict[str, entry_points.Image | None] = {}
    for job, (_, request) in pairs:
        if not _asks(job, request.kind, request.body):
            continue
        name = str(job.image)
        if name not in images:
            images[name] = look(name)
        if (image := images[name]) is None:
            continue
        for finding in judged(image, job, request.kind):
            told = rejected if finding.severity == "reject" else warned
            told[f"{finding.field}: {finding.text} (image {name})"] = None
    for warning in warned:
        voice.warn(warning)
    if rejected:
        raise BadInputs(list(rejected))


def judged(image: entry_points.Image, job: "Job", kind: str) -> list[Finding]:
    """Return what rules say of what the container of a job runs."""
    replaced, swept = kind not in HANDED, bool(job.sweep and job.sweep.shell)
    found = entry_points.command(image, job.command, replaced=replaced, swept=swept)
    if found or job.command:
        return found
    line = entry_points.argv(image, job.command, replaced=replaced)
    own = "write command in the job file, which is then run so that it holds"
    return [replace(each, fix=own) for rule in ARGV_RULES.get(kind, ()) for each in rule(line)]


def _asks(job: "Job", kind: str, body: dict[str, object]) -> bool:
    if job.image is None or job.image.startswith(LOCAL) or any(part in job.image for part in PRIVATE):
        return False
    if job.command:
        return kind in HANDED
    if kind == "aws-batch":
        return body.get("register") is not None  # else the stack's definition has a command, or has none on purpose
    block = {"google-batch": job.google_batch, "vertex": job.vertex}.get(kind)
    # What runs is then written in the block, for each step or pool.
    return block is None or not block.model_fields_set & {"runnables", "args", "package"}


def look(name: str) -> entry_points.Image | None:
    """Return what an image runs by itself; None where its registry does not tell."""
    from accel.clouds.image_registry import Registry, parse

    path = cache() / f"entry-point-{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(path.read_text())
        if 0 <= time.time() - kept["at"] < MAX_AGE_S:
            return entry_points.Image(tuple(kept["entry_point"]), tuple(kept["cmd"]))
    try:
        found = Registry(parse(name), TIMEOUT_S).image("amd64")
    except JobsError:
        return None
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_json(path, {"at": time.time(), "entry_point": found.entry_point, "cmd": found.cmd})
    return entry_points.Image(found.entry_point, found.cmd)
