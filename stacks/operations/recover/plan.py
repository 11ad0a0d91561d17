"""What is to be done about each pending operation, after a look at the cloud."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from accel.diagnostics.errors import BadInput

from .lookup import Candidate, Finder, MadeAgain, NotSought
from .pending import Pending, alike, live, pending, resources

Deed = Literal["adopt", "clear", "read", "drop", "wait", "ask"]
"""`read`: the state has it, and is refreshed; `drop`: there is nothing to it; `wait`: its cloud is still at it; `ask`:
nothing proves what it is, so a person has to say."""


@dataclass(frozen=True)
class Step:
    """One operation, what is to be done about it, and why. `id`: of what is adopted."""

    operation: Pending
    deed: Deed
    text: str
    id: str = ""
    rest: tuple[str, ...] = ()
    """As of what was found."""

    def __str__(self) -> str:
        return f"{self.operation.doing} {self.operation.type} {self.operation.name}: {self.text}"


@dataclass(frozen=True)
class Decisions:
    """What a person has decided, by URN or by name in the program: ids to adopt, and operations to clear."""

    adopt: Mapping[str, str] = field(default_factory=dict[str, str])
    clear: frozenset[str] = frozenset()

    def check(self, creating: Iterable[Pending]) -> None:
        """Raises BadInput for what is no pending create, and for a name that several have."""
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
    """`find` looks in the cloud; `began`: when the run that was killed took its lock, where that is known."""

    deployment: Mapping[str, Any]
    find: Finder
    said: Decisions
    began: datetime | None
    more: Sequence[Pending] | None = ()
    """Creates besides that a person may speak of; None: what was said has been checked."""

    def steps(self) -> list[Step]:
        """One for each pending operation. Raises BadInput where a person has spoken of another."""
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
        found = [dated(each, self.began) for each in free]
        proven = [each for each in found if each.why]
        # Nothing refers yet to what is only pending, so of several that were asked for alike each may be any.
        left = [each for each in self._creating[self._creating.index(operation) :] if alike(each, operation)]
        if len(proven) > len(left):
            return Step(operation, "ask", f"several are like it: {listed(proven)}")
        if proven:
            return self._adopted(operation, proven[0])
        if found:
            return Step(operation, "ask", f"nothing proves that this run made {listed(found)}")
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
            # As an entry for deletion it would stand in the way of the next `up`, which makes the same name.
            why = f"{found.id} is there beside {there.get('id')}, which the state has; delete {found.id}"
            return Step(operation, "ask", why)
        why = f"{found.why}; the state has {there.get('id')}, so the next up deletes this one"
        return Step(operation, "adopt", f"adopt {found.id}: {why}", found.id)

    def _moving(self, operation: Pending) -> Candidate | None:
        """What a cloud is still changing or deleting, where its row can tell."""
        try:
            return next((each for each in self.find(operation) if each.id == operation.id and each.moving), None)
        except (MadeAgain, NotSought):
            return None


def dated(found: Candidate, began: datetime | None) -> Candidate:
    """With the proof that its time is, to the second as clouds tell it."""
    if found.why or not (began and found.made) or found.made < began.replace(microsecond=0):
        return found
    return replace(found, why="it was made after the run began")


def listed(found: Sequence[Candidate]) -> str:
    """Their ids."""
    return ", ".join(each.id for each in found)
