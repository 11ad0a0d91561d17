"""The steps after a search in the cloud: for each pending operation, and for resources that the state does not know.
The state does not know what a killed provider created: the engine considers the call failed. A preview lists what the
next `up` would create. Each of these is searched for under the names that Pulumi would generate for it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from accel.clouds.google.rest import NOT_ENABLED
from accel.diagnostics.errors import BadInput, CloudRefused

from ..pulumi_command import UNKNOWN
from .lookup import Candidate, Finder, MadeAgain, NotSought
from .pending import Json, Pending, alike, created_resources, live, pending, resources

Deed = Literal["adopt", "clear", "read", "drop", "wait", "ask"]
"""`read`: the state has it, and is refreshed; `drop`: it has no effect; `wait`: its cloud is still working on it;
`ask`: nothing proves what it is, so a person has to decide."""

CLOCK = timedelta(seconds=2)
"""Tolerance: the history has whole seconds."""
_HIDDEN = (UNKNOWN, "[secret]")
_DIGITS = "[0-9a-f]{6,}"
_NOT_KEPT = frozenset({"outputs", "sourcePosition", "stackTrace"})


@dataclass(frozen=True)
class Step:
    """One operation, the action for it, and why. `id`: that of an adopted resource."""

    operation: Pending
    deed: Deed
    text: str
    id: str = ""
    rest: tuple[str, ...] = ()
    """Same as that of the candidate."""

    def __str__(self) -> str:
        return f"{self.operation.doing} {self.operation.type} {self.operation.name}: {self.text}"


@dataclass(frozen=True)
class Decisions:
    """A person's decisions, by URN or by name in the program: ids to adopt, and operations to clear."""

    adopt: Mapping[str, str] = field(default_factory=dict[str, str])
    clear: frozenset[str] = frozenset()

    def check(self, creating: Iterable[Pending]) -> None:
        """Raise BadInput for what is no pending create, and for a name that several have."""
        names = {each.urn: each.name for each in creating}
        given = [*(("--adopt", key) for key in self.adopt), *(("--clear", key) for key in sorted(self.clear))]
        for option, key in given:
            urns = [urn for urn, name in names.items() if key in (urn, name)]
            if not urns:
                known = ", ".join(sorted(set(names.values()))) or "none"
                raise BadInput(f"{option} {key}: no such create is pending; pending: {known}")
            if len(urns) > 1:
                raise BadInput(f"{option} {key}: several have this name: {', '.join(urns)}", "say the URN")


@dataclass
class Plan:
    """`find` searches the cloud; `began`: when the killed run took its lock, if known."""

    deployment: Mapping[str, Any]
    find: Finder
    said: Decisions
    began: datetime | None
    more: Sequence[Pending] | None = ()
    """Further creates that a person may decide on; None: the decisions have been checked."""

    def steps(self) -> list[Step]:
        """Return one step for each pending operation. Raise BadInput for a decision about any other."""
        operations = pending(self.deployment)
        self._creating = [each for each in operations if each.doing == "creating"]
        if self.more is not None:
            self.said.check([*self._creating, *self.more])
        self._urns = {each["urn"] for each in resources(self.deployment)}
        self._known = {(each["type"], each["id"]) for each in resources(self.deployment) if each.get("id")}
        self._taken = set(self._known)
        return [self._step(each) for each in operations]

    def _step(self, operation: Pending) -> Step:
        if not operation.outside:
            return Step(operation, "drop", "drop it: nothing outside the state is made of it")
        match operation.doing:
            case "creating":
                made = self._created(operation)
                self._taken.add((operation.type, made.id))
                return made
            case "updating" | "deleting" | "adopting":
                if operation.urn not in self._urns:
                    return Step(operation, "drop", "the state does not have it any more")
                if moving := self._moving(operation):
                    return Step(operation, "wait", f"{moving.id} is {moving.state}; it is read when that has ended")
                return Step(operation, "read", "read how it is now, or that it is gone")
            case "reading" | "importing":
                return Step(operation, "drop", "drop it: nothing was made by it")

    def _created(self, operation: Pending) -> Step:
        both = (operation.urn, operation.name)
        if any(key in self.said.clear for key in both):
            return Step(operation, "clear", "clear it, as you say")
        if str(operation.resource.get("provider") or "").rpartition("::")[0] not in self._urns:
            return Step(operation, "ask", "the state does not have its provider any more")
        given = next((self.said.adopt[key] for key in both if key in self.said.adopt), None)
        if given and (operation.type, given) in self._known:
            raise BadInput(f"--adopt {operation.name}={given}: the state has it already")
        if given and (operation.type, given) not in self._taken:
            return self._adopted(operation, Candidate(given, why="as you say"))
        if operation.id:
            return self._adopted(operation, Candidate(operation.id, why="the state has the cloud's answer"))
        try:
            seen = self.find(operation)
        except MadeAgain:
            return Step(operation, "clear", "clear it: to make it again changes nothing where it is there")
        except NotSought as why:
            return Step(operation, "ask", str(why))
        free = [each for each in seen if (operation.type, each.id) not in self._taken and not each.strange]
        found = [add_time_proof(each, self.began) for each in free]
        proven = [each for each in found if each.why]
        # Nothing refers yet to a pending resource, so several identical requests are interchangeable.
        left = [each for each in self._creating[self._creating.index(operation) :] if alike(each, operation)]
        if len(proven) > len(left):
            return Step(operation, "ask", f"several are like it: {ids_text(proven)}")
        if proven:
            return self._adopted(operation, proven[0])
        if found:
            return Step(operation, "ask", f"nothing proves that this run made {ids_text(found)}")
        return Step(operation, "clear", "clear it: the cloud does not have it")

    def _adopted(self, operation: Pending, found: Candidate) -> Step:
        if found.moving:
            return Step(operation, "wait", f"{found.id} is {found.state}; it is adopted when that has ended", found.id)
        there = live(self.deployment, operation.urn)
        if there is None:
            then = f"; then {', '.join(found.rest)}, as its creation does" if found.rest else ""
            return Step(operation, "adopt", f"adopt {found.id}: {found.why}{then}", found.id, found.rest)
        if found.over or (found.only and there.get("inputs") == operation.inputs):
            return Step(operation, "drop", f"drop it: the state has {there.get('id')}, and there can be one only")
        if found.only or operation.fixed:
            # As an entry for deletion it would block the next `up`, which uses the same name.
            why = f"{found.id} is there beside {there.get('id')}, which the state has; delete {found.id}"
            return Step(operation, "ask", why)
        why = f"{found.why}; the state has {there.get('id')}, so the next up deletes this one"
        return Step(operation, "adopt", f"adopt {found.id}: {why}", found.id)

    def _moving(self, operation: Pending) -> Candidate | None:
        try:
            return next((each for each in self.find(operation) if each.id == operation.id and each.moving), None)
        except (MadeAgain, NotSought):
            return None


def add_time_proof(found: Candidate, began: datetime | None) -> Candidate:
    """Add the proof of its creation time, to the second as clouds report it."""
    if found.why or not (began and found.made) or found.made < began.replace(microsecond=0):
        return found
    return replace(found, why="it was made after the run began")


def ids_text(found: Sequence[Candidate]) -> str:
    return ", ".join(each.id for each in found)


def began(history: Sequence[Json], written: datetime) -> datetime | None:
    """Return when the last run began if its result is in doubt; None if nothing is. In doubt is an `up` or a `destroy`
    that failed, or one that has left no trace but a state that was `written` after the end of the last recorded run."""
    run = next((each for each in history if each["kind"] in ("update", "destroy")), None)
    if run and run["result"] != "succeeded":
        return datetime.fromisoformat(run["startTime"])
    ended = datetime.fromisoformat(history[0]["endTime"]) if history else None
    return ended if ended and written > ended + CLOCK else None


def planned_resources(preview: Mapping[str, Any], deployment: Mapping[str, Any]) -> list[Pending]:
    """Return what a preview would create with providers that the state has, except for what is pending."""
    at_work = {each.urn for each in pending(deployment)}
    there = {each["urn"]: each for each in resources(deployment)}
    made = created_resources(deployment)
    found: list[Pending] = []
    for step in preview.get("steps") or ():
        state: Json = step.get("newState") or {}
        provider = there.get(str(state.get("provider") or "").rpartition("::")[0])
        if step.get("op") != "create" or not provider or state["urn"] in at_work:
            continue
        given: Json = state.get("inputs") or {}
        resource = {name: value for name, value in state.items() if name not in _NOT_KEPT} | {
            "inputs": {name: value for name, value in given.items() if not _contains(value, *_HIDDEN)},
            "provider": f"{provider['urn']}::{provider['id']}",
        }
        unknown = frozenset(name for name, value in given.items() if _contains(value, UNKNOWN))
        each = Pending("creating", resource, made.own(resource), unknown=unknown)
        found += [each] if each.outside else []
    return found


def missing_lines(preview: Mapping[str, Any], deployment: Mapping[str, Any]) -> list[str]:
    made = [each for each in planned_resources(preview, deployment) if live(deployment, each.urn)]
    return [f"{each.type} {each.name}: its cloud does not have it any more; the state forgets it" for each in made]


def _contains(value: Any, *marks: str) -> bool:
    inside: Any = value
    if isinstance(value, Mapping | list):
        parts = inside.values() if isinstance(value, Mapping) else inside
        return any(_contains(each, *marks) for each in parts)
    return value in marks


@dataclass(frozen=True)
class Unknown:
    """`names` lists what a cloud has of an operation's kind; `began`: as in Plan."""

    deployment: Mapping[str, Any]
    find: Finder
    names: Callable[[Pending], Sequence[str]]
    said: Decisions
    began: datetime | None

    def steps(self, operations: Sequence[Pending], before: Iterable[Step] = ()) -> list[Step]:
        """Return a step for each resource that exists, or that a person has to judge. `before`: the plan's own."""
        taken = {(each["type"], each["id"]) for each in resources(self.deployment) if each.get("id")}
        taken |= {(each.operation.type, each.id) for each in before if each.id}
        found: list[Step] = []
        for each in operations:
            if live(self.deployment, each.urn) is None and (step := self._step(each, taken)):
                taken.add((each.type, step.id))
                found.append(step)
        return found

    def _step(self, operation: Pending, taken: set[tuple[str, str]]) -> Step | None:
        both = (operation.urn, operation.name)
        if any(key in self.said.clear for key in both):
            return None
        try:
            seen = [(name, each) for name, each in self._seen(operation) if (operation.type, each.id) not in taken]
        except CloudRefused as why:
            # An API that is not enabled has no resources.
            return None if NOT_ENABLED in why.message else Step(operation, "ask", f"may be there: {why.message}")
        if given := next((self.said.adopt[key] for key in both if key in self.said.adopt), None):
            chosen = [(name, each) for name, each in seen if each.id == given] or [(operation, Candidate(given))]
            return _adopted(chosen[0][0], replace(chosen[0][1], why="as you say"))
        proven = [(name, told) for name, each in seen if (told := add_time_proof(each, self.began)).why]
        if len(proven) == 1:
            return _adopted(*proven[0])
        if proven:
            return Step(operation, "ask", f"several are like it: {ids_text([each for _, each in proven])}")
        if seen:
            told = ids_text([each for _, each in seen])
            return Step(operation, "ask", f"nothing proves that this stack's last run made {told}")
        return None

    def _seen(self, operation: Pending) -> Iterator[tuple[Pending, Candidate]]:
        try:
            for named in self._named(operation):
                # The next `up` overwrites such a resource, except under a name that it generates.
                over = operation.made_up
                yield from ((named, each) for each in self.find(named) if not each.strange and (over or not each.over))
        except (MadeAgain, NotSought):
            return

    def _named(self, operation: Pending) -> list[Pending]:
        """Return the operation under each name that its cloud has, and that may have been generated for it."""
        if not operation.made_up:
            return [operation]
        base = re.sub(f"{_DIGITS}$", "", operation.inputs[operation.naming])
        fitting = [name for name in self.names(operation) if re.fullmatch(re.escape(base) + _DIGITS, name)]
        return [operation.called(name) for name in fitting]


def _adopted(operation: Pending, found: Candidate) -> Step:
    if found.moving:
        return Step(operation, "wait", f"{found.id} is {found.state}; it is adopted when that has ended", found.id)
    text = f"adopt {found.id}, which the state does not know: {found.why}"
    return Step(operation, "adopt", text, found.id, found.rest)
