"""The tasks of a Batch job: which wait, which run and on which VM, how they ended. What has not begun is only counted,
so that 100,000 of them cost nothing."""

import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .batch_attempt import Attempt
from .batch_machines import Vm
from .batch_words import Event
from .world import Json

ENDED = ("SUCCEEDED", "FAILED", "UNEXECUTED")


@dataclass(slots=True)
class Task:
    """One that has begun."""

    index: int
    state: str = "PENDING"
    failed: int = 0  # attempts that failed
    vm: Vm | None = None
    attempt: Attempt | None = None
    events: list[Event] = field(default_factory=list[Event])


class Tasks:
    """All of a job. `number()`: an id that no VM had before; `told(task, event)` runs after each change of state."""

    def __init__(self, count: int, uid: str, number: Callable[[], int], told: Callable[[Task, Event], None]) -> None:
        self.count, self.counts = count, Counter({"PENDING": count})
        self.begun: dict[int, Task] = {}
        self.running: dict[int, Task] = {}
        self.vms: dict[int, Vm] = {}
        self._uid, self._number, self._told = uid, number, told
        self._next, self._again = 0, deque[int]()
        self._free: deque[Vm] = deque()
        self._slots: list[int] = []

    def state(self, index: int) -> str:
        task = self.begun.get(index)
        return task.state if task else ("UNEXECUTED" if self.counts["UNEXECUTED"] else "PENDING")

    @property
    def waiting(self) -> bool:
        return self._next < self.count or bool(self._again)

    @property
    def over(self) -> bool:
        return not self.running and not self.waiting

    def take(self, zones: list[str], pack: int, most_vms: float) -> Task | None:
        """The next one that waits, on a VM with room; None: no VM more may be had."""
        while self._free and (self._free[0].slot not in self.vms or len(self._free[0].tasks) >= pack):
            self._free.popleft()
        if not self._free:
            if len(self.vms) >= most_vms or not zones:
                return None
            slot = self._slots.pop() if self._slots else len(self.vms)
            vm = self.new_vm(slot, zones[slot % len(zones)])
            self.vms[slot] = vm
            self._free.append(vm)
        vm = self._free[0]
        index = self._again.popleft() if self._again else self._next
        self._next = max(self._next, index + 1)
        task = self.begun.setdefault(index, Task(index))
        task.vm = vm
        vm.tasks.add(index)
        self.running[index] = task
        return task

    def new_vm(self, slot: int, zone: str) -> Vm:
        """Names: https://github.com/nextflow-io/nextflow/issues/3061 and others that quote them."""
        return Vm(f"{self._uid}-group0-{slot}-{secrets.token_hex(2)}", zone, str(self._number()), slot)

    def move(self, task: Task, state: str, code: int | None = None) -> None:
        assert task.vm
        event = (time.time(), task.state, state, task.vm, code)
        self.counts[task.state] -= 1
        self.counts[state] += 1
        task.state = state
        task.events.append(event)
        self._told(task, event)

    def leave(self, task: Task, *, lost: bool) -> None:
        """Off its VM, which goes when it was lost, and another takes its place."""
        del self.running[task.index]
        vm, task.attempt = task.vm, None
        assert vm
        vm.tasks.discard(task.index)
        if lost and self.vms.get(vm.slot) is vm:
            del self.vms[vm.slot]
            self._slots.append(vm.slot)
        elif not lost and self.vms.get(vm.slot) is vm:
            self._free.append(vm)

    def again(self, task: Task) -> None:
        """A failed one waits once more."""
        task.failed += 1
        self.counts[task.state] -= 1
        self.counts["PENDING"] += 1
        task.state = "PENDING"
        self._again.append(task.index)

    def drop(self) -> None:
        """None of those that wait begins any more."""
        for index in self._again:
            self.begun[index].state = "UNEXECUTED"
        self._next, self._again = self.count, deque[int]()
        self.counts["UNEXECUTED"] += self.counts.pop("PENDING", 0)

    def failures(self) -> Iterator[Task]:
        return (self.begun[index] for index in sorted(self.begun) if self.begun[index].state == "FAILED")

    def counts_by_state(self) -> Json:
        return {state: str(count) for state, count in sorted(self.counts.items()) if count}
