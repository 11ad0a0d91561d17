"""Inspection and repair of what a killed run left: lock, state, pending operations, and resources that the state does
not know, in this order. Each step may be repeated; if one is cut short, the next inspection finds it undone."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from accel.clouds.pauses import Pauses
from accel.diagnostics.errors import CloudRefused, NotFound, WaitedTooLong

from ..stack_files import project_in
from .aws import Aws, accounts
from .engine import Engine, Files, Lock, end_process, orphan_hosts, read_locks
from .google import GoogleCloud, Kubernetes
from .lookup import Candidate, NotSought
from .pending import Json, Pending, pending, provider_inputs, resolve_pending, resources
from .plan import Decisions, Plan, Step, Unknown, began, missing_lines, planned_resources

POLL_S = (1.0, 15.0)
"""Shortest and longest pause between two polls."""


class Recovery:
    """Recovery of one stack of the project in this folder."""

    def __init__(self, stack: str, said: Decisions, break_lock: bool, settle_s: float, wait_s: float) -> None:
        self.engine = Engine(stack)
        self._said, self._break, self._settle_s, self._wait_s = said, break_lock, settle_s, wait_s
        self._began: datetime | None = None
        self._doubted = self._checked = False
        self._preview: Json = {}
        self._unread: list[str] = []

    @cached_property
    def _files(self) -> Files | None:
        return Files.of(self.engine.backend(), _project(), self.engine.stack.rpartition("/")[2])

    def look(self) -> list[str]:
        """Return a line for each leftover; empty if there is none. Raise CloudRefused where a run is at work."""
        found = self._locks()
        self._idle(found)
        lines = [each.text(datetime.now(UTC)) for each in found]
        if self._files and self._files.mark().exists():
            lines.append("an earlier `stacks recover` was cut short")
        lines += [f"{path}: half written" for path in (self._files.unfinished() if self._files else [])]
        if self._files and (corrupt := self._files.corrupt()):
            return [*lines, f"{corrupt}: no state, but cut off; {self._instead()}"]
        if self._files and (torn := self._files.torn()):
            return [*lines, f"{torn}: cut off, so the state cannot be read; it holds nothing of it, and is removed"]
        state = self.engine.export()
        lines += map(str, self._steps(state))
        return [*lines, *missing_lines(self._preview, state["deployment"])]

    def run(self) -> Iterator[str]:
        """Repair the stack; yield a line per action. Raise CloudRefused if a run is at work or a person must decide."""
        held = self._held()
        yield from self._restored()
        state = self.engine.export()
        steps = self._decided(self._steps(state))
        yield from self._unread
        if any(step.deed == "wait" for step in steps):
            yield from map(str, steps)
            state, steps = self._waited()
        if self._doubted or any(step.deed == "clear" for step in steps):
            state, steps = self._settled(state)
        # Last before a change: until then the lock keeps others out, and says when the run began.
        self._mark()
        yield from self._unlocked(held)
        yield from map(str, steps)
        self._act(state, steps)
        if self._doubted:
            yield from self._compared()
        if self._files:
            self._files.mark().unlink(missing_ok=True)

    def _compared(self) -> Iterator[str]:
        """Compare every resource of the state with its cloud, then search for what the state does not know; repeat,
        since contents of a found resource can be searched for only once the state has it."""
        self.engine.refresh()
        yield "every resource of the state was read again"
        while True:
            state = self.engine.export()
            steps = self._decided(self._steps(state), "the rest is left to you")
            if any(step.deed == "wait" for step in steps):
                state, steps = self._waited()
            if not steps:
                return
            yield from map(str, steps)
            self._act(state, steps)

    def _act(self, state: Json, steps: Sequence[Step]) -> None:
        if self.engine.export() != state:
            raise CloudRefused("the state has changed meanwhile: somebody else is at it", "run it again")
        # First, since a refresh keeps pending creates, and writing the state does not.
        read = [step.operation.urn for step in steps if step.deed == "read"]
        if read:
            self.engine.refresh(list(dict.fromkeys(read)))
            state = self.engine.export()
        adopted = [(step.operation, step.id) for step in steps if step.deed == "adopt"]
        if adopted or pending(state["deployment"]):
            clouds = Clouds(state["deployment"])
            # Before the state has it: if this is interrupted, the next run repeats it.
            for step in steps:
                if step.rest:
                    clouds.finish(step.operation, step.id)
            state = {**state, "deployment": resolve_pending(state["deployment"], adopted)}
            self.engine.replace(state)
            if adopted:
                self.engine.refresh(list(dict.fromkeys(operation.urn for operation, _ in adopted)))
        before, after = state["deployment"], self.engine.export()["deployment"]
        if left := pending(after):
            names = ", ".join(each.name for each in left)
            raise CloudRefused(f"still pending: {names}", "run it again")
        # By URN, since a provider may answer with another form of an id.
        lost = Counter(each["urn"] for each in resources(before))
        lost.subtract(each["urn"] for each in resources(after))
        if gone := [f"{operation.name} ({id})" for operation, id in adopted if lost[operation.urn] > 0]:
            raise CloudRefused(f"not adopted, since its cloud does not have it: {', '.join(gone)}")

    def _locks(self) -> list[Lock]:
        found = read_locks(self._files.locks()) if self._files else []
        self._began = min((each.since for each in found), default=self._began)
        return found

    def _held(self) -> list[Lock]:
        """Raise CloudRefused if a holder of a lock may be at work."""
        found = self._locks()
        self._idle(found)
        for lock in found:
            if lock.holder == "elsewhere" and not self._break:
                raise CloudRefused(lock.text(datetime.now(UTC)), "where that run has ended: --break-lock")
        return found

    def _idle(self, found: Sequence[Lock]) -> None:
        if lock := next((each for each in found if each.holder == "at work"), None):
            raise CloudRefused(lock.text(datetime.now(UTC)), "wait until it has ended")

    def _unlocked(self, held: Sequence[Lock]) -> Iterator[str]:
        if self._files is None and self._break:
            self.engine.cancel()
            yield "unlocked by `pulumi cancel`"
        for lock in held:
            lock.remove()
            yield f"unlocked: {lock.text(datetime.now(UTC))}"
        for pid in orphan_hosts():
            end_process(pid)
            yield f"ended: process {pid}, a language host whose engine is gone"
        for path in self._files.unfinished() if self._files else []:
            path.unlink(missing_ok=True)
            yield f"removed: {path}, half written"

    def _restored(self) -> Iterator[str]:
        if self._files and (torn := self._files.torn()):
            torn.unlink()
            yield f"{torn}: was cut off, and is removed"
        if self._files is None or not (corrupt := self._files.corrupt()):
            return
        backups = self._files.backups()
        if not backups:
            raise CloudRefused(f"{corrupt}: no state, but cut off; {self._instead()}")
        kept = corrupt.with_name(f"{corrupt.name}.corrupt-{int(time.time())}")
        kept.write_bytes(corrupt.read_bytes())
        half = corrupt.with_name(f"{corrupt.name}.half")
        half.write_bytes(backups[0].read_bytes())
        half.replace(corrupt)
        yield f"{corrupt}: was cut off, and is now {backups[0].name}; the other is {kept.name}"

    def _instead(self) -> str:
        backups = self._files.backups() if self._files else []
        if not backups:
            return "there is no backup of it"
        when = datetime.fromtimestamp(backups[0].stat().st_mtime, UTC)
        return f"{backups[0].name} of {when:%Y-%m-%d %H:%M:%S} UTC takes its place, and has not what was made after it"

    def _steps(self, state: Json) -> list[Step]:
        deployment = state["deployment"]
        clouds = Clouds(deployment)
        self._doubted = self._doubted or self._doubtful(deployment)
        self._preview = self._previewed() if self._doubted else {}
        unknown = planned_resources(self._preview, deployment)
        steps = Plan(deployment, clouds.find, self._said, self._began, None if self._checked else unknown).steps()
        self._checked = True
        there = Unknown(deployment, clouds.find, clouds.names, self._said, self._began)
        return steps + there.steps(unknown, steps)

    def _doubtful(self, deployment: Json) -> bool:
        """Return whether the last run may have done what the state does not know."""
        unsound = began(self.engine.history(), datetime.fromisoformat(deployment["manifest"]["time"]))
        marked = self._files is not None and self._files.mark().exists()
        locked = self._began is not None
        self._began = self._began or unsound
        return bool(locked or marked or unsound or self._break or pending(deployment))

    def _previewed(self) -> Json:
        try:
            self._unread = []
            return self.engine.planned()
        except CloudRefused as why:
            self._unread = [f"what the state does not know is not looked for: {why.message}"]
            return {}

    def _mark(self) -> None:
        if self._files and self._doubted:
            self._files.mark().parent.mkdir(parents=True, exist_ok=True)
            self._files.mark().touch()

    def _decided(self, steps: Sequence[Step], so_far: str = "nothing was changed") -> Sequence[Step]:
        asked = [step for step in steps if step.deed == "ask"]
        if asked:
            lines = "; ".join(map(str, asked))
            raise CloudRefused(f"{so_far}: {lines}", "look in the cloud, then: --adopt NAME=ID, or --clear NAME")
        return steps

    def _waited(self) -> tuple[Json, Sequence[Step]]:
        pauses = Pauses(self._wait_s, first_s=POLL_S[0])
        while True:
            pause_s = pauses.next_s(POLL_S[1])
            time.sleep(pause_s or 0)
            state = self.engine.export()
            steps = self._decided(self._steps(state))
            waiting = [step for step in steps if step.deed == "wait"]
            if not waiting:
                return state, steps
            if pause_s is None:
                raise WaitedTooLong("; ".join(map(str, waiting)), "run it again to go on")

    def _settled(self, state: Json) -> tuple[Json, Sequence[Step]]:
        """Look again: a provider of the killed run may live on and create something, and a listing may lag."""
        last = datetime.fromisoformat(state["deployment"]["manifest"]["time"])
        left = self._settle_s - (datetime.now(UTC) - last).total_seconds()
        if left > 0:
            time.sleep(left)
        state = self.engine.export()
        steps = self._decided(self._steps(state))
        return self._waited() if any(step.deed == "wait" for step in steps) else (state, steps)


def _project() -> str:
    """Return the name in Pulumi.yaml of this folder or the nearest above it that has one."""
    here = Path.cwd()
    if name := next((name for folder in (here, *here.parents) if (name := project_in(folder))), None):
        return name
    raise NotFound("no Pulumi.yaml with a name here or above", "run this in the folder of the Pulumi program")


class Clouds:
    """The clouds of one state; each signs in on its first search."""

    def __init__(self, deployment: Json) -> None:
        self._deployment = deployment

    def find(self, operation: Pending) -> Sequence[Candidate]:
        cloud = operation.type.partition(":")[0]
        match cloud:
            case "aws":
                return self._aws.find(operation)
            case "gcp":
                return self._google.find(operation)
            case "kubernetes":
                return self._kubernetes.find(operation)
            case _:
                raise NotSought(f"there is no way here to look for {operation.type}")

    def names(self, operation: Pending) -> Sequence[str]:
        match operation.type.partition(":")[0]:
            case "aws":
                return self._aws.names(operation)
            case "gcp":
                return self._google.names(operation)
            case _:
                raise NotSought(f"there is no way here to list {operation.type}")

    def finish(self, operation: Pending, id: str) -> None:
        """Make the remaining calls of a found resource's creation. Only AWS has any."""
        self._aws.finish(operation, id)

    @cached_property
    def _aws(self) -> Aws:
        return Aws(accounts(self._deployment), self._provider)

    @cached_property
    def _google(self) -> GoogleCloud:
        return GoogleCloud(self._provider)

    @cached_property
    def _kubernetes(self) -> Kubernetes:
        return Kubernetes(self._provider)

    def _provider(self, operation: Pending) -> Json:
        return provider_inputs(self._deployment, operation.resource)
