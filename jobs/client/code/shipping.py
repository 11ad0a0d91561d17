"""Shipping of code: a job whose command first fetches the code that was sent with it."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Protocol

from accel.clouds.aws.clients import client
from accel.clouds.aws.errors import asking
from accel.clouds.google.api import Conflict, Google, object_path
from accel.contract.gke import GkeTarget
from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget
from accel.contract.google_vms import GceTarget, TpuVmTarget
from accel.contract.targets import AnyTarget, AwsBatchTarget, LocalTarget
from accel.diagnostics.errors import BadInput, BadInputs, CloudRefused, CloudSilent, JobsError, NotFound
from accel.folders import state, write
from accel.rules.batch import runnables
from accel.rules.jobs.containers import LOCAL

from ...model.blocks_google import Pool, Vertex
from ...model.job import Job
from . import tree
from .archive import Archive, pack
from .inside import program
from .requirements import PROGRAM, Requirements
from .tree import Tree

FRESH_S = 86_400
KIND = "application/gzip"


class Store(Protocol):
    """Store of archives."""

    @property
    def scheme(self) -> str:
        """Return the scheme, which selects the program in the job."""
        ...

    def source(self, archive: Archive) -> str:
        """Return the URL that the program in the job fetches: `<scheme>://...`, for S3 with its region."""
        ...

    def address(self, archive: Archive) -> str:
        """Return the URL in the form that people and their tools use."""
        ...

    def put(self, archive: Archive) -> bool:
        """Upload the archive. Return False where it was there already. Several clients may do so at once, and again.
        Raises NoCredentials, CloudRefused, CloudSilent."""
        ...


@dataclass(frozen=True)
class Folder:
    """Store in a folder of this machine."""

    root: Path
    scheme: str = "file"

    def source(self, archive: Archive) -> str:
        return f"file://{self._path(archive)}"

    address = source

    def put(self, archive: Archive) -> bool:
        path = self._path(archive)
        if path.exists():
            return False
        try:
            write(path, _whole(archive))
        except OSError as error:
            raise JobsError(f"the code cannot be kept in {path.parent}: {error.strerror}") from error
        return True

    def _path(self, archive: Archive) -> Path:
        return self.root / Path(archive.name).name


@dataclass(frozen=True)
class S3:
    """Store in an S3 bucket."""

    region: str
    bucket: str
    scheme: str = "s3"

    def source(self, archive: Archive) -> str:
        return f"s3://{self.region}/{self.bucket}/{archive.name}"

    def address(self, archive: Archive) -> str:
        return f"s3://{self.bucket}/{archive.name}"

    def put(self, archive: Archive) -> bool:
        from botocore.exceptions import ClientError

        where: dict[str, Any] = {"Bucket": self.bucket, "Key": archive.name}
        doing = self.address(archive)
        with asking(doing):
            s3 = client("s3", self.region, connect_s=5, read_s=60, attempts=4)
            try:
                there = s3.head_object(**where)
                if _fresh(there["LastModified"], _moment(there)):
                    return False
                once: dict[str, str] = {}
            except ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
                    raise
                once = {"IfNoneMatch": "*"}
            try:
                s3.put_object(**where, Body=_whole(archive), ContentType=KIND, **once)
            except ClientError as error:
                # 412: another client has just uploaded the same archive; 409: two uploads at once, of which one
                # succeeds. Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
                if error.response["ResponseMetadata"]["HTTPStatusCode"] not in (409, 412) or not once:
                    raise
                s3.head_object(**where)
                return False
        return True


@dataclass(frozen=True)
class CloudStorage:
    """Store in a Cloud Storage bucket."""

    bucket: str
    scheme: str = "gs"

    def source(self, archive: Archive) -> str:
        return f"gs://{self.bucket}/{archive.name}"

    address = source

    def put(self, archive: Archive) -> bool:
        google = Google()
        generation: int | None = None
        try:
            there = google.get("storage", object_path(self.bucket, archive.name), fields="updated")
            if _fresh(datetime.fromisoformat(str(there.get("updated"))), datetime.fromtimestamp(google.clock, UTC)):
                return False
        except NotFound:
            generation = 0
        except ValueError as error:
            raise CloudSilent(f"gs://{self.bucket}/{archive.name}: {error}") from error
        try:
            google.write(self.bucket, archive.name, _whole(archive), generation=generation, kind=KIND)
        except Conflict:
            # Another client uploaded it, and compressed the same content in another way.
            return False
        except NotFound as error:
            raise CloudRefused(f"gs://{self.bucket}: there is no such bucket") from error
        return True


def of_target(name: str, target: AnyTarget) -> Store:
    """Raise BadInput where the target has no store that its jobs may read."""
    match target:
        case LocalTarget():
            return Folder(state() / "code")
        case AwsBatchTarget() if target.code_bucket:
            return S3(target.region, target.code_bucket)
        case GkeTarget() if target.code_bucket:
            return CloudStorage(target.code_bucket)
        case TpuVmTarget() | GceTarget() | GoogleBatchTarget() | VertexTarget():
            return CloudStorage(target.bucket)
        case AwsBatchTarget() | GkeTarget():
            raise BadInput(
                f"--code: target {name} has no bucket for code",
                f"the stack that made it gets one by `code: {{}}` in its {_SECTION[target.kind]} section, or is older",
            )


_SECTION = {"aws-batch": "aws", "gke": "gcp.workloads"}


def _whole(archive: Archive) -> bytes:
    archive.data.seek(0)
    return archive.data.read()


def _fresh(written: datetime, now: datetime) -> bool:
    return (now - written).total_seconds() < FRESH_S


def _moment(answer: Any) -> datetime:
    """Return the time of the answer by the service's clock; by this machine's where the answer has none."""
    try:
        return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    except (KeyError, ValueError):
        return datetime.fromtimestamp(time.time(), UTC)


POOLS = ("workers", "parameter_servers", "evaluators")
"""Vertex AI's machines beside the first that run the user's code; reduction servers run an image of Google's. Source:
https://docs.cloud.google.com/vertex-ai/docs/training/distributed-training"""

PYTHON = ["python3", "-c"]
_HEAD = 7
"""Words before a command that fetches code: PYTHON, the program, the source, the digest, the size, the folder."""
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass
class Shipping:
    """An archive, and the stores that jobs fetch it from; `send` uploads it there."""

    archive: Archive
    warnings: tuple[str, ...]
    requirements: str | None = None
    """Path of the requirements file in the archive."""
    stores: dict[str, Store] = field(default_factory=dict[str, Store])

    @classmethod
    def of(
        cls, folder: Path | None, *, everything: bool = False, requirements: Requirements | None = None
    ) -> "Shipping":
        """Pack a folder, a requirements file, or both. Raises BadInput, and BadInputs for refused files."""
        files = Tree(Path(), ()) if folder is None else tree.read(folder, everything=everything)
        if requirements is None:
            archive = pack(files)
            return cls(archive, archive.warnings)
        name, body = requirements.name, requirements.body
        if body is None and name not in (each.name for each in files.entries):
            raise BadInput(f"requirements: {name}: Git ignores it, so that it does not go with the code")
        archive = pack(files, {} if body is None else {name: body})
        return cls(archive, archive.warnings, name)

    def caller(self, text: str) -> str:
        """Return the caller's text of the key with the code's digest: other code makes another job."""
        return f"{text}\0{self.archive.digest}"

    def with_code(self, job: Job, name: str, target: AnyTarget, job_id: str) -> Job:
        """Return the job with a command that first fetches the code. `job_id` is its name on its platform. Raises
        BadInput for a job whose commands are not known here, and for a target without a bucket."""
        store = self.stores.setdefault(name, of_target(name, target))
        folder = str(state() / "local" / job_id / "code") if target.kind == "local" else "-"
        head = [*PYTHON, program(store.scheme), store.source(self.archive)]
        head += [self.archive.digest, str(self.archive.size), folder]
        if self.requirements:
            head += [*PROGRAM, self.requirements]
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
        """Raise BadInput where a job of the first target cannot continue on the second with the same command."""
        if of_target(first, target) != of_target(second, other):
            raise BadInput(
                f"--code: {second} has another bucket for code than {first}, and spot: prefer goes on with one command",
                "name a target of the same stack",
            )

    def send(self) -> list[str]:
        return [
            f"code {self.archive.digest[:12]}: {'sent to' if store.put(self.archive) else 'is already at'} "
            f"{store.address(self.archive)}"
            for store in self.stores.values()
        ]


def unwrap(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the digest of the code that a command fetches first, and the command itself."""
    if len(words) < _HEAD or not _DIGEST.fullmatch(words[_HEAD - 3]) or [*words[:2]] != PYTHON:
        return None, list(words)
    command = list(words[_HEAD:])
    own = len(PROGRAM)
    return words[_HEAD - 3], command[own + 1 :] if tuple(command[:own]) == PROGRAM else command


def _faults(job: Job, kind: str) -> list[str]:
    """Return a fault for each command that is not known here, since nothing can run before it."""
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
    own = {
        name: pool.model_copy(update={"command": wrapped(pool.command)})
        for name, pool in _pools(block).items()
        if pool.command
    }
    return block.model_copy(update=own)
