"""A job of Google Batch from QUEUED to its end. World.tick lets it go on. Tasks that have not begun are only counted,
so that 100,000 of them cost nothing."""

import random
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sandbox import loopback

from ..world import Json, World
from .attempt import (
    OTHERWISE,
    PREEMPTED,
    Attempt,
    Event,
    Log,
    PretendedRun,
    Real,
    failure_text,
    job_event,
    job_text,
    no_agent_text,
    notify,
    really_runs,
    refusal_text,
    short_text,
    task_event,
    time_of,
)
from .checks import numbered_name
from .machines import Shape, Vm
from .settings import Settings, settings

ENDED = ("SUCCEEDED", "FAILED", "UNEXECUTED")


@dataclass(slots=True)
class Task:
    index: int
    state: str = "PENDING"
    failed: int = 0  # failed attempts
    vm: Vm | None = None
    attempt: Attempt | None = None
    events: list[Event] = field(default_factory=list[Event])


class Tasks:
    """Tasks of a job. `number()` returns an id that no VM had before; `told(task, event)` runs after each change of
    state."""

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
        """Place the next waiting task on a VM with room; return None where no more VMs may be had."""
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
        """Create a VM. Form of its name: https://github.com/nextflow-io/nextflow/issues/3061 and others that quote such
        names."""
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
        task.failed += 1
        self.counts[task.state] -= 1
        self.counts["PENDING"] += 1
        task.state = "PENDING"
        self._again.append(task.index)

    def drop(self) -> None:
        for index in self._again:
            self.begun[index].state = "UNEXECUTED"
        self._next, self._again = self.count, deque[int]()
        self.counts["UNEXECUTED"] += self.counts.pop("PENDING", 0)

    def failures(self) -> Iterator[Task]:
        return (self.begun[index] for index in sorted(self.begun) if self.begun[index].state == "FAILED")

    def counts_by_state(self) -> Json:
        return {state: str(count) for state, count in sorted(self.counts.items()) if count}


OVER = ("SUCCEEDED", "FAILED", "CANCELLED")
_PROCESSES = 64  # of all jobs at a time; any more wait
_EVENTS = 100  # events of tasks that a job reports
_LOST = range(PREEMPTED, 50005), (50006,)  # codes of a lost VM


class Job:
    """One job. `item` is its completed body; `as_json()` adds its status."""

    def __init__(self, world: World, key: str, item: Json, hold_s: float = 0, fails: str = "") -> None:
        self.world, self.key, self.item, self._fails = world, key, item, fails
        self.name, self.uid = numbered_name(key), item["uid"]
        self.group: Json = item["taskGroups"][0]
        self.spec: Json = self.group["taskSpec"]
        self.shape = Shape(item, key.split("/")[3], world)
        self.tasks = Tasks(int(self.group["taskCount"]), self.uid, world.number, self._told)
        self.state, self.made, self.changed = "QUEUED", time.monotonic(), time.time()
        self._events: list[Json] = []
        self._said: set[str] = set()
        self._due = self.made + world.settle_s + hold_s
        self._real = really_runs(self.spec)
        self._barriers: set[int] = set()
        self._log = Log(world, item, settings(world).seed)
        self._ran: tuple[float, float] = 0.0, 0.0
        self._seen: tuple[float, Json] | None = None
        self._chance = random.Random(self.uid)
        self.listed = False  # whether tasks can be seen: https://github.com/nextflow-io/nextflow/pull/5567

    @property
    def processes(self) -> int:
        return sum(task.attempt.processes for task in self.tasks.running.values() if task.attempt)

    def move(self, state: str, why: str = "") -> None:
        text = job_text(self.name, self.state, state) + why
        self.state, self.changed = state, time.time()
        self._events.append(job_event(text, self.changed))
        if state == "RUNNING":
            self._ran = self.changed, 0.0
        elif self._ran[0] and not self._ran[1]:
            self._ran = self._ran[0], self.changed
        notify(self.world, self.item, "JOB", state, text)

    def step(self) -> bool:
        """Advance as far as possible now; return whether the job has ended and nothing of it runs."""
        now = time.monotonic()
        if self.state == "QUEUED" and now >= self._due:
            self._schedule(now)
        if self.state == "SCHEDULED" and now >= self._due:
            self._allocate(now)
        if self.state == "RUNNING":
            self._begin(now)
        for task in list(self.tasks.running.values()):
            if task.attempt and (code := task.attempt.step(now)) is not None:
                self._ended(task, code)
        if self.state == "RUNNING" and self.tasks.over:
            self._finish()
        elif self.state in ("CANCELLATION_IN_PROGRESS", "DELETION_IN_PROGRESS") and not self.tasks.running:
            if self.state == "CANCELLATION_IN_PROGRESS":
                self.move("CANCELLED")
            return True
        return self.state in OVER and not self.tasks.running

    def _schedule(self, now: float) -> None:
        self.move("SCHEDULED")
        why = self.shape.nowhere()
        if why or self._fails:
            said = refusal_text(why) if why else self._fails
            self._events.append(job_event(said, time.time(), "OPERATIONAL_INFO"))
            self.tasks.drop()
            self.move("FAILED", said)
            return
        self.listed = True
        self._due = now + self.world.settle_s

    def _allocate(self, now: float) -> None:
        """Wait for VMs. A task that does not fit on one waits for ever: Batch does not document that case, and that no
        event reports it is from memory."""
        if not self.shape.fits or not self._room():
            return
        if not settings(self.world).agent:
            vm = self.tasks.new_vm(0, self.shape.zones[0])
            said = no_agent_text(vm, time.time())
            self._events.append(job_event(said, time.time(), "OPERATIONAL_INFO"))
            self.tasks.drop()
            self.move("FAILED", said)
            return
        self.move("RUNNING")

    def _room(self) -> float:
        """Return how many VMs there may be now; record an event that says why there are no more."""
        zones, project = self.shape.in_stock(self.world), self.item["name"].split("/")[1]
        vm = f"{self.uid}-group0-0-{self._chance.randrange(16**4):04x}"
        if not zones:
            zone = self.shape.zones[0]
            why = f"The zone 'projects/{project}/zones/{zone}' does not have enough resources available to fulfill the"
            why += " request.  Try a different zone, or try again later."
            self._short("CODE_GCE_ZONE_RESOURCE_POOL_EXHAUSTED", vm, why)
            return 0
        most, why = self.shape.room(self.world, self._held())
        if most <= 0:
            self._short("CODE_GCE_QUOTA_EXCEEDED", vm, why)
        return len(self.tasks.vms) + max(0, most)

    def _short(self, code: str, vm: str, why: str) -> None:
        if why not in self._said:
            self._said.add(why)
            self._events.append(job_event(short_text(code, vm, why), time.time(), "OPERATIONAL_INFO"))

    def _held(self) -> Iterator[tuple[Shape, int]]:
        yield self.shape, 0
        for name, job in self.world.live.items():
            if name.startswith("batch/") and isinstance(job, Job):
                yield job.shape, len(job.tasks.vms) if job.tasks.running else 0

    def _begin(self, now: float) -> None:
        tasks, free = self.tasks, int(self.group["parallelism"]) - len(self.tasks.running)
        if self._real and free > 0:
            free = min(free, _PROCESSES - sum(getattr(run, "processes", 1) for run in self.world.runs.values()))
        if free <= 0 or not tasks.waiting:
            return
        zones, most, pack = self.shape.in_stock(self.world), self._room(), self.shape.pack
        wave = now + self.world.settle_s
        for _ in range(free):
            if not tasks.waiting or (task := tasks.take(zones, pack, most)) is None:
                return
            tasks.move(task, "ASSIGNED")
            task.attempt = self._attempt(task, wave)
            tasks.move(task, "RUNNING")

    def _attempt(self, task: Task, wave: float) -> Attempt:
        """Start an attempt. A bucket has to exist, but its content is not mounted. The agent's words and the code are
        from memory."""
        assert task.vm
        buckets = {
            each["gcs"]["remotePath"].partition("/")[0] for each in self.spec.get("volumes", []) if "gcs" in each
        }
        if missing := sorted(name for name in buckets if f"storage/b/{name}" not in self.world.items):
            self._log.agent(task.vm, [f"mount gs://{missing[0]}: gcsfuse: bucket does not exist"], "ERROR")
            return PretendedRun(wave, OTHERWISE)
        if not self._real:
            return PretendedRun(wave)
        folder = self.world.home / "machines" / "batch" / self.uid / str(task.index) / str(task.failed)
        env = self._environment(task, task.vm)
        return Real(self.world, self.item, self._log, task.index, task.vm, folder, env, self.passed)

    def _environment(self, task: Task, vm: Vm) -> dict[str, str]:
        """Return Batch's variables of a task. INDEX, COUNT, RETRY_ATTEMPT and HOSTS_FILE are documented;
        https://github.com/GoogleCloudPlatform/batch-samples and https://github.com/pytorch/torchx read those of nodes
        and of the job's id."""
        group, vms = self.group, -(-self.tasks.count // self.shape.pack)
        found = {
            "BATCH_TASK_INDEX": str(task.index),
            "BATCH_TASK_COUNT": str(self.tasks.count),
            "BATCH_TASK_RETRY_ATTEMPT": str(task.failed),
            "BATCH_JOB_UID": self.uid,
            "BATCH_JOB_ID": self.key.rpartition("/")[2],
            "BATCH_NODE_INDEX": str(vm.slot),
            "BATCH_NODE_COUNT": str(min(vms, -(-int(group["parallelism"]) // self.shape.pack))),
            "BATCH_MAIN_NODE_HOSTNAME": loopback.address(self.uid, 0),
        }
        if group.get("requireHostsFile"):
            path = self.world.home / "machines" / "batch" / self.uid / "hosts"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                "".join(f"{loopback.address(self.uid, i)}\n" for i in range(int(found["BATCH_NODE_COUNT"])))
            )
            found["BATCH_HOSTS_FILE"] = str(path)
        return found

    def passed(self, barrier: int) -> bool:
        """Return whether every task has reached this runnable, now or before."""
        if barrier not in self._barriers:
            begun = self.tasks.begun.values()
            there = sum(task.state == "SUCCEEDED" or getattr(task.attempt, "at", -1) >= barrier for task in begun)
            if there < self.tasks.count:
                return False
            self._barriers.add(barrier)
        return True

    def _ended(self, task: Task, code: int) -> None:
        lost = any(code in codes for codes in _LOST)
        self.tasks.move(task, "FAILED" if code else "SUCCEEDED", code or None)
        self.tasks.leave(task, lost=lost)
        if code and self.state == "RUNNING" and self._retried(task, code):
            self.tasks.again(task)

    def _retried(self, task: Task, code: int) -> bool:
        """Apply the policy. A code that is not in it has the opposite of its action, by the action's description."""
        if task.failed >= int(self.spec.get("maxRetryCount", 0)):
            return False
        policy: Json = (self.spec.get("lifecyclePolicies") or [{}])[0]
        action = policy.get("action", "ACTION_UNSPECIFIED")
        if action == "ACTION_UNSPECIFIED":
            return True
        return (code in policy.get("actionCondition", {}).get("exitCodes", [])) == (action == "RETRY_TASK")

    def _told(self, task: Task, event: Event) -> None:
        self.changed = event[0]
        if event[4] is not None and len(self._events) < _EVENTS:
            self._events.append(task_event(event))
        if self.item.get("notifications"):
            made = task_event(event)
            notify(self.world, self.item, "TASK", event[2], made["description"], self.task_name(task.index))

    def _finish(self) -> None:
        failed = next(self.tasks.failures(), None)
        self.move("FAILED" if failed else "SUCCEEDED", failure_text(failed.index, failed.events[-1]) if failed else "")

    def leave(self, state: str) -> None:
        """Enter a state towards CANCELLED or deletion, and end the tasks."""
        if self.state not in OVER:
            self.tasks.drop()
            for task in self.tasks.running.values():
                if task.attempt:
                    task.attempt.end(OTHERWISE)
        self.move(state)

    def end(self, indexes: list[int], code: int) -> None:
        chosen = [self.tasks.running[index] for index in indexes]
        lost = {id(task.vm) for task in chosen}
        for task in self.tasks.running.values():
            if task.attempt and id(task.vm) in lost:
                task.attempt.end(code)

    def kill(self) -> None:
        for task in self.tasks.running.values():
            if task.attempt:
                task.attempt.kill()

    def task_name(self, index: int) -> str:
        return f"{self.group['name']}/tasks/{index}"

    def task(self, index: int) -> Json:
        begun = self.tasks.begun.get(index)
        events = {"statusEvents": [task_event(event) for event in begun.events]} if begun else {}
        return {"name": self.task_name(index), "status": {"state": self.tasks.state(index), **events}}

    def as_json(self) -> Json:
        lag, now = settings(self.world).state_lag_s, time.monotonic()
        if not self._seen or now - self._seen[0] >= lag:
            self._seen = now, self._status()
        return {**self.item, "status": self._seen[1], "updateTime": time_of(self.changed)}

    def _status(self) -> Json:
        ran = (self._ran[1] or time.time()) - self._ran[0] if self._ran[0] else 0
        found: dict[str, Any] = {"state": self.state, "runDuration": f"{ran:.9f}s" if ran else "0s"}
        if self._events:
            found["statusEvents"] = list(self._events)
        if self.listed:
            group = {"counts": self.tasks.counts_by_state(), "instances": [self.shape.as_json()]}
            found["taskGroups"] = {"group0": group}
        return found


__all__ = ["OVER", "Job", "Settings"]
