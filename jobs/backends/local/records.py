"""Fields that readers need from the files of a local job. Unknown fields belong to another version."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Moment = Annotated[str, AfterValidator(_moment)]
Count = Annotated[int, Field(ge=1)]


class Record(BaseModel):
    """Base of the records. Values are used as they are read, without conversion."""

    model_config = ConfigDict(extra="ignore", strict=True)


class Accelerator(Record):
    """Devices of each task."""

    count: Count


class Mount(Record):
    """Folder of this machine that a container sees."""

    source: str
    path: str


class Body(Record):
    """Body of the request."""

    job: str
    command: list[str] | None
    env: dict[str, str]
    folder: str
    tasks: Count
    parallelism: Count | None
    retries: int
    timeout_s: float | None
    grace_s: float
    cpus: float | None
    memory_mib: int | None
    shm_mib: int | None
    disk_gib: int | None
    accelerator: Accelerator | None
    labels: dict[str, str]
    image: str = ""
    mounts: list[Mount] = []


class RequestRecord(Record):
    """Content of request.json."""

    key: str
    spec_hash: str
    name: str
    target: str
    devices: list[str]
    created: Moment
    body: Body


class SupervisorRecord(Record):
    """Content of supervisor.json: accel's process.identity."""

    pid: Count
    started: str | None
    boot: str | None
    host: str
    namespace: str | None


class CancelRecord(Record):
    """Content of cancel.json."""

    reason: str


class StatusRecord(Record):
    """Content of status.json, for an attempt or for the job as a whole."""

    phase: Literal["running", "succeeded", "failed"]
    exit_code: int | None
    reason: str | None
    started: Moment | None
    stopped: Moment | None
    tasks: dict[str, int] = {}
    attempts: int = 0
