"""Records of jobs on VMs that an earlier version wrote, and the reconciler's steps on one."""

import json
from datetime import datetime, timedelta

from jobs.backends.vm import state_machine as machine
from jobs.backends.vm.record import Record, Result, of_json
from jobs.backends.vm.state_machine import MachineState, decide
from tests.support import records


def vm_records(whole: records.Records) -> dict[str, Record]:
    """Of VM jobs, by the name of the job."""
    texts = {name: text for objects in whole.objects.values() for name, text in objects.items()}
    found = [of_json(json.loads(text), name) for name, text in texts.items() if name.endswith("/record.json")]
    return {record.job_name: record for record in found}


class Walk:
    """The reconciler's steps of one record, against machines that are told."""

    def __init__(self, record: Record) -> None:
        self.record, self.steps = record, list[str]()
        last = record.last
        self.now = datetime.fromisoformat(last.started or last.made or last.planned) + timedelta(minutes=1)

    def go(self, state: str, results: dict[int, Result] | None = None, most: int = 10) -> "Walk":
        for _ in range(most):
            step = decide(self.record, MachineState(state, state.upper()), results or {}, self.now)
            self.steps.append(type(step).__name__)
            if isinstance(step, machine.Write):
                self.record = step.record
            elif isinstance(step, machine.Remove):
                state = machine.ABSENT
            else:
                break
        return self
