"""State of a stop as an object of a bucket, replaced only if it is unchanged since it was read.

Its fields are those of accel.contract.stop; clients read it before they submit. Source of the precondition:
https://docs.cloud.google.com/storage/docs/request-preconditions
"""

from __future__ import annotations

import json
from contextlib import suppress

from accel.budget import state as states
from accel.budget.state import State, StateConflict

from . import plan as plans
from .cloud import GENERATION, Cloud, NotThere, Unmet, path_segment

STOPPED, STATE = "stopped", "state"


class BucketStore:
    """State of a stop, and its plan, in one bucket."""

    def __init__(self, cloud: Cloud, bucket: str) -> None:
        self._cloud, self.bucket = cloud, bucket

    def plan(self) -> plans.Plan:
        """Return the plan of the stack. Raise CallError."""
        return plans.of_json(self._read(plans.PLAN)[0])

    def load(self) -> tuple[State, str]:
        """Return the state and the object's generation; 0: there is none."""
        try:
            data, generation = self._read(plans.STOP)
        except NotThere:
            return State(), "0"
        return states.of_json(json.loads(data)[STATE]), generation

    def save(self, state: State, seen: str) -> str:
        """Replace the state of generation `seen`, and return the new generation. Raise StateConflict."""
        document = {STATE: states.to_json(state)} | ({STOPPED: state.stopped} if state.stopped else {})
        data = json.dumps(document, sort_keys=True).encode()
        query = {"uploadType": "media", "name": plans.STOP, "ifGenerationMatch": seen}
        at = f"b/{path_segment(self.bucket)}/o"
        try:
            answer, _ = self._cloud.send("POST", "storage-upload", at, data, **query)
            return str(json.loads(answer)["generation"])
        except Unmet as unmet:
            # Perhaps it was our own attempt before, whose answer was lost.
            with suppress(NotThere):
                there, generation = self._read(plans.STOP)
                if there == data:
                    return generation
            raise StateConflict(f"gs://{self.bucket}/{plans.STOP}: somebody else has changed it") from unmet

    def _read(self, name: str) -> tuple[bytes, str]:
        at = f"b/{path_segment(self.bucket)}/o/{path_segment(name)}"
        data, headers = self._cloud.send("GET", "storage", at, alt="media")
        return data, headers[GENERATION]
