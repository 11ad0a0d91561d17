"""A job whose code is sent with it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from accel.contract.targets import AnyTarget
from accel.diagnostics.errors import BadInput, BadInputs
from accel.folders import state
from accel.rules.batch import runnables
from accel.rules.jobs.containers import LOCAL

from ...model.blocks_google import Pool, Vertex
from ...model.job import Job
from . import tree
from .archive import Archive, pack
from .inside import program
from .store import Store, of_target

POOLS = ("workers", "parameter_servers", "evaluators")
"""Machines of Vertex AI beside the first that run the user's code; reduction servers run an image of Google's.
Source: https://docs.cloud.google.com/vertex-ai/docs/training/distributed-training"""

PYTHON = ["python3", "-c"]
_HEAD = 7
"""Words before a command whose code is fetched: PYTHON, the program, the source, the digest, the size, the folder."""
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass
class Shipping:
    """An archive, and the stores that jobs were told to fetch it from; `send` puts it there."""

    archive: Archive
    warnings: tuple[str, ...]
    stores: dict[str, Store] = field(default_factory=dict[str, Store])

    @classmethod
    def of(cls, folder: Path, *, everything: bool = False) -> "Shipping":
        """Packs a folder. Raises BadInput, and BadInputs for files that are refused."""
        archive = pack(tree.read(folder, everything=everything))
        return cls(archive, archive.warnings)

    def caller(self, text: str) -> str:
        """The caller's text of the key: with other code it is another job."""
        return f"{text}\0{self.archive.digest}"

    def with_code(self, job: Job, name: str, target: AnyTarget, job_id: str) -> Job:
        """The job, which fetches the code before its command runs. `name`: of the target; `job_id`: on its platform.

        Raises BadInput for a job whose commands are not known here, and for a target without a bucket.
        """
        store = self.stores.setdefault(name, of_target(name, target))
        folder = str(state() / "local" / job_id / "code") if target.kind == "local" else "-"
        head = [*PYTHON, program(store.scheme), store.source(self.archive)]
        head += [self.archive.digest, str(self.archive.size), folder]
        split = target.kind in ("google-batch", "vertex")

        def wrapped(words: list[str]) -> list[str]:
            return [*head, *(runnables.split(words) if split else words)]

        faults = _faults(job, target.kind)
        if target.kind == "local" and job.image and not job.image.startswith(LOCAL):
            faults.append("--code: a container on this machine does not see the folder of the code; mount it (mounts)")
        if faults:
            raise BadInputs(faults)
        if target.kind == "vertex" and job.vertex:
            job = job.model_copy(update={"vertex": _vertex(job.vertex, wrapped)})
        return job.model_copy(update={"command": wrapped(job.command)})

    def reach_both(self, first: str, target: AnyTarget, second: str, other: AnyTarget) -> None:
        """Raises BadInput where a job of the first target cannot go on on the second with the same command."""
        if of_target(first, target) != of_target(second, other):
            raise BadInput(
                f"--code: {second} has another bucket for code than {first}, and spot: prefer goes on with one command",
                "name a target of the same stack",
            )

    def send(self) -> list[str]:
        """Puts the archive where it was promised; what was done, a line each."""
        return [
            f"code {self.archive.digest[:12]}: {'sent to' if store.put(self.archive) else 'is already at'} "
            f"{store.address(self.archive)}"
            for store in self.stores.values()
        ]


def unwrapped(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The digest of the code that a command fetches first, and the command itself."""
    if len(words) < _HEAD or not _DIGEST.fullmatch(words[_HEAD - 3]) or [*words[:2]] != PYTHON:
        return None, list(words)
    return words[_HEAD - 3], list(words[_HEAD:])


def _faults(job: Job, kind: str) -> list[str]:
    """Commands that are not known here, so that nothing can be done before them."""
    own = "and with --code the command has to be known here"
    if kind == "google-batch" and job.google_batch and job.google_batch.runnables:
        return [f"google_batch.runnables: have commands of their own, {own}; write command in their place"]
    faults = [] if job.command else [f"command: is missing, {own}; write what the image runs without one"]
    for name, pool in _pools(job.vertex if kind == "vertex" else None).items():
        faults += [
            f"vertex.{name}.{said}: is for an image's own program, {own}"
            for said in ("args", "package")
            if getattr(pool, said)
        ]
    return faults


def _pools(block: Vertex | None) -> dict[str, Pool]:
    return {name: pool for name in POOLS if block and (pool := getattr(block, name)) is not None}


def _vertex(block: Vertex, wrapped: Callable[[list[str]], list[str]]) -> Vertex:
    """The block, whose pools with commands of their own fetch the code too."""
    own = {
        name: pool.model_copy(update={"command": wrapped(pool.command)})
        for name, pool in _pools(block).items()
        if pool.command
    }
    return block.model_copy(update=own)
