"""What the machines of an attempt are sent with, whichever they are: their labels, and what starts the agent."""

import json
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from accel.contract import variables
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound

from ... import agent
from . import labels as marks
from .record import Attempt, Record
from .records import folder

T = TypeVar("T")


def under_way(read: Callable[[], T]) -> T:
    """What a look at something gives that was asked for just now. Raises CloudSilent where the look is refused: what
    was asked for goes on, and may be there later."""
    try:
        return read()
    except (CloudRefused, NotFound) as refused:
        raise CloudSilent(refused.message, refused.hint) from refused


def labels(record: Record, attempt: Attempt) -> dict[str, str]:
    """The marks of an attempt. They do not depend on when it is sent, so that it is the same each time."""
    if record.standing is not None:
        return marks.queue_labels(record.name, attempt.number, record.job_name)
    expires = int(datetime.fromisoformat(attempt.planned).timestamp()) + int(record.body["expires_s"])
    return marks.labels(record.name, attempt.number, record.target, expires)


def metadata(record: Record, attempt: Attempt, release: str) -> dict[str, str]:
    """What starts the agent, and what it is told; `release` is the URL by whose deletion the machines go. A declared
    queue runs nothing: its nodes only say where its record is."""
    if record.standing is not None:
        return {marks.QUEUE: json.dumps({"bucket": record.body["bucket"], "name": record.name})}

    job = dict(record.body["job"])
    told = {
        **job,
        "name": record.name,
        "attempt": attempt.number,
        "bucket": record.body["bucket"],
        "folder": folder(record.name, attempt.number),
        "env": {**job["env"], variables.ATTEMPT: str(attempt.number)},
        "release": [{"method": "DELETE", "url": release}],
    }
    return {**agent.metadata(), "accel-job": json.dumps(told)}


def request_id() -> str:
    """By which Google knows a request that is sent again because it was not answered. Another one each time that
    machines are asked for: for an hour the id of a request that was carried out gives its old operation, and what was
    made by it and taken away since would not be made again. That nothing is made twice is for names to see to."""
    return str(uuid.uuid4())
