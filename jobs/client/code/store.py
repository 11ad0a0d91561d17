"""Where a target keeps the code of its jobs: each archive once, under the SHA-256 of its content.

A bucket forgets what is old, so an archive that has been there for a day is sent again: a job that is submitted now
finds it for as long as the bucket keeps what is new.
"""

import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Protocol

from accel.clouds.aws.errors import asking
from accel.contract.gke import GkeTarget
from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget
from accel.contract.google_vms import GceTarget, TpuVmTarget
from accel.contract.targets import AnyTarget, AwsBatchTarget, LocalTarget
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, JobsError, NotFound
from accel.folders import state

from .archive import Archive

FRESH_S = 86_400
KIND = "application/gzip"


class Store(Protocol):
    """Holds archives."""

    @property
    def scheme(self) -> str:
        """By which the program in the job is chosen."""
        ...

    def source(self, archive: Archive) -> str:
        """Where the program in the job finds it: `<scheme>://...`, of S3 with its region."""
        ...

    def address(self, archive: Archive) -> str:
        """The same as people and their tools write it."""
        ...

    def put(self, archive: Archive) -> bool:
        """False where it was there already. May be called again, and by several clients at once.

        Raises NoCredentials, CloudRefused, CloudSilent.
        """
        ...


@dataclass(frozen=True)
class Folder:
    """On this machine."""

    root: Path
    scheme: str = "file"

    def source(self, archive: Archive) -> str:
        return f"file://{self._path(archive)}"

    address = source

    def put(self, archive: Archive) -> bool:
        path = self._path(archive)
        if path.exists():
            return False
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft.write_bytes(_whole(archive))
            draft.replace(path)
        except OSError as error:
            raise JobsError(f"the code cannot be kept in {path.parent}: {error.strerror}") from error
        return True

    def _path(self, archive: Archive) -> Path:
        return self.root / Path(archive.name).name


@dataclass(frozen=True)
class S3:
    """In a bucket of AWS."""

    region: str
    bucket: str
    scheme: str = "s3"

    def source(self, archive: Archive) -> str:
        return f"s3://{self.region}/{self.bucket}/{archive.name}"

    def address(self, archive: Archive) -> str:
        return f"s3://{self.bucket}/{archive.name}"

    def put(self, archive: Archive) -> bool:
        from botocore.exceptions import ClientError

        from accel.clouds.aws.client import client

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
                # 412: somebody else has put the same there just now; 409: two are at it, of whom one is done.
                # Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
                if error.response["ResponseMetadata"]["HTTPStatusCode"] not in (409, 412) or not once:
                    raise
                s3.head_object(**where)
                return False
        return True


@dataclass(frozen=True)
class CloudStorage:
    """In a bucket of Google Cloud."""

    bucket: str
    scheme: str = "gs"

    def source(self, archive: Archive) -> str:
        return f"gs://{self.bucket}/{archive.name}"

    address = source

    def put(self, archive: Archive) -> bool:
        from accel.clouds.google.api import Conflict, Google, object_path

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
            # Of another client, which compressed the same content in another way.
            return False
        except NotFound as error:
            raise CloudRefused(f"gs://{self.bucket}: there is no such bucket") from error
        return True


def of_target(name: str, target: AnyTarget) -> Store:
    """The store that jobs of the target may read. Raises BadInput where it has none."""
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
    """When the service answered, by its own clock; this machine's where it does not say."""
    try:
        return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    except (KeyError, ValueError):
        return datetime.fromtimestamp(time.time(), UTC)
