"""What the machines of an attempt are sent with, whichever they are: their labels, and what starts the agent."""

import json
from datetime import datetime

from accel.contract import variables

from . import marks
from .record import Attempt, Record
from .records import folder


def labels(record: Record, attempt: Attempt) -> dict[str, str]:
    """The marks of an attempt. They do not depend on when it is sent, so that it is the same each time."""
    expires = int(datetime.fromisoformat(attempt.planned).timestamp()) + int(record.body["expires_s"])
    return marks.labels(record.name, attempt.number, record.target, expires)


def metadata(record: Record, attempt: Attempt, release: str) -> dict[str, str]:
    """What starts the agent, and what it is told; `release` is the URL by whose deletion the machines go."""
    from ... import agent

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
