"""What readers need of the files of a local job. Fields that they do not know are another version's."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Moment = Annotated[str, AfterValidator(_moment)]
Count = Annotated[int, Field(ge=1)]


class Record(BaseModel):
    """Nothing is made fit: what is read is used as it stands."""

    model_config = ConfigDict(extra="ignore", strict=True)


class Accelerator(Record):
    """Devices of each task."""

    count: Count


class Mount(Record):
    """A folder of this machine that a container sees."""

    source: str
    path: str


class Body(Record):
    """The request itself."""

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
    """request.json."""

    key: str
    spec_hash: str
    name: str
    target: str
    devices: list[str]
    created: Moment
    body: Body


class SupervisorRecord(Record):
    """supervisor.json: accel's process.identity."""

    pid: Count
    started: str | None
    boot: str | None
    host: str
    namespace: str | None


class CancelRecord(Record):
    """cancel.json."""

    reason: str


class StatusRecord(Record):
    """status.json, of an attempt or of the job as a whole."""

    phase: Literal["running", "succeeded", "failed"]
    exit_code: int | None
    reason: str | None
    started: Moment | None
    stopped: Moment | None
    tasks: dict[str, int] = {}
    attempts: int = 0
