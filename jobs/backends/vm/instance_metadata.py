"""Labels and metadata of an attempt's machines, of whichever kind. The metadata starts the agent."""

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
    """Raise CloudSilent if a read of what was just requested is refused: the request may still create it."""
    try:
        return read()
    except (CloudRefused, NotFound) as refused:
        raise CloudSilent(refused.message, refused.hint) from refused


def labels(record: Record, attempt: Attempt) -> dict[str, str]:
    """Return labels that do not depend on when an attempt is sent, so that every request for it is the same."""
    if record.standing is not None:
        return marks.queue_labels(record.name, attempt.number, record.job_name)
    expires = int(datetime.fromisoformat(attempt.planned).timestamp()) + int(record.body["expires_s"])
    return marks.labels(record.name, attempt.number, record.target, expires)


def metadata(record: Record, attempt: Attempt, release: str) -> dict[str, str]:
    """Return the metadata with the agent and its spec. Deleting the URL `release` removes the machines. A declared
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
    """Return a new id, by which Google recognizes a request that is sent again because it was not answered. Each
    request for machines needs a new one: for an hour, the id of a completed request returns its old operation, and
    machines that it created and that were preempted since would not be created again. Names ensure that nothing is
    created twice."""
    return str(uuid.uuid4())
