"""What a run made and the state does not know: a provider that is killed has made it, and the engine takes the call for
one that failed.

A preview says what the next `up` would make. Each of that is looked for under the names that Pulumi makes up for it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from accel.clouds.google.rest import NOT_ENABLED
from accel.diagnostics.errors import CloudRefused

from .lookup import Candidate, Finder, MadeAgain, NotSought
from .pending import Json, Pending, created_resources, live, pending, resources
from .plan import Decisions, Step, dated, listed

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What stands in a preview for what is not known before the deployment. Source:
https://github.com/pulumi/pulumi/blob/master/sdk/go/common/resource/plugin/rpc.go (UnknownStringValue)"""
CLOCK = timedelta(seconds=2)
"""The history has whole seconds."""
_HIDDEN = (UNKNOWN, "[secret]")
_DIGITS = "[0-9a-f]{6,}"
_NOT_KEPT = frozenset({"outputs", "sourcePosition", "stackTrace"})


def began(history: Sequence[Json], written: datetime) -> datetime | None:
    """When the last run began, where what it did is in doubt: an `up` or a `destroy` that failed, or one that has left
    no trace but a state that was `written` after the end of the last that did. None: nothing is in doubt."""
    run = next((each for each in history if each["kind"] in ("update", "destroy")), None)
    if run and run["result"] != "succeeded":
        return datetime.fromisoformat(run["startTime"])
    ended = datetime.fromisoformat(history[0]["endTime"]) if history else None
    return ended if ended and written > ended + CLOCK else None


def planned(preview: Mapping[str, Any], deployment: Mapping[str, Any]) -> list[Pending]:
    """What a preview would make, of providers that the state has; without what is pending."""
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
            "inputs": {name: value for name, value in given.items() if not _hidden(value)},
            "provider": f"{provider['urn']}::{provider['id']}",
        }
        each = Pending("creating", resource, made.own(resource))
        found += [each] if each.outside else []
    return found


def missing_lines(preview: Mapping[str, Any], deployment: Mapping[str, Any]) -> list[str]:
    """A line for each resource that the state has, and that a preview with a refresh would make again."""
    made = [each for each in planned(preview, deployment) if live(deployment, each.urn)]
    return [f"{each.type} {each.name}: its cloud does not have it any more; the state forgets it" for each in made]


def _hidden(value: Any) -> bool:
    inside: Any = value
    if isinstance(value, Mapping):
        return any(map(_hidden, inside.values()))
    return any(map(_hidden, inside)) if isinstance(value, list) else value in _HIDDEN


@dataclass(frozen=True)
class Unknown:
    """`names` lists what a cloud has of an operation's kind; `began`: as of Plan."""

    deployment: Mapping[str, Any]
    find: Finder
    names: Callable[[Pending], Sequence[str]]
    said: Decisions
    began: datetime | None

    def steps(self, operations: Sequence[Pending]) -> list[Step]:
        """One for each that is there, or of which a person has to say whether it is."""
        taken = {(each["type"], each["id"]) for each in resources(self.deployment) if each.get("id")}
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
            # Of an API that is not enabled nothing can be there.
            return None if NOT_ENABLED in why.message else Step(operation, "ask", f"may be there: {why.message}")
        if given := next((self.said.adopt[key] for key in both if key in self.said.adopt), None):
            chosen = [(name, each) for name, each in seen if each.id == given] or [(operation, Candidate(given))]
            return _adopted(chosen[0][0], replace(chosen[0][1], why="as you say"))
        proven = [(name, told) for name, each in seen if (told := dated(each, self.began)).why]
        if len(proven) == 1:
            return _adopted(*proven[0])
        if proven:
            return Step(operation, "ask", f"several are like it: {listed([each for _, each in proven])}")
        if seen:
            told = listed([each for _, each in seen])
            return Step(operation, "ask", f"nothing proves that this stack's last run made {told}")
        return None

    def _seen(self, operation: Pending) -> Iterator[tuple[Pending, Candidate]]:
        try:
            for named in self._named(operation):
                # What is written over, the next up writes; but not under a name that it makes up.
                over = operation.made_up
                yield from ((named, each) for each in self.find(named) if not each.strange and (over or not each.over))
        except (MadeAgain, NotSought):
            return

    def _named(self, operation: Pending) -> list[Pending]:
        """The operation under each name that its cloud has, and that may have been made up for it."""
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
