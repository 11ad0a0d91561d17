"""Operations that a killed run left in a state, and the state with them resolved. Pure: deployments as `pulumi stack
export` writes them. A killed run leaves each operation that was under way as a pending one. The next `up` warns of
pending creates and creates the same resources again; they stay pending, beside those of its own. Sources:
https://www.pulumi.com/docs/iac/operations/troubleshooting/interrupted-updates/,
https://github.com/pulumi/pulumi/pull/9293, https://github.com/pulumi/pulumi/blob/master/pkg/backend/snapshot.go"""

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

Json = dict[str, Any]
Doing = Literal["creating", "updating", "deleting", "reading", "importing", "adopting"]
"""Pulumi's own words, and `adopting`: recover itself was killed between entering a resource and reading it."""

NAMES = (
    *("name", "bucket", "dashboardName", "policyName", "statementId"),
    *("accountId", "roleId", "repositoryId"),
)
"""Properties that name a resource in its cloud; a resource has one of them, or none."""
_MADE_UP = re.compile(r"[0-9a-f]{6,}$")
"""Suffix of names that Pulumi generates, unless a project says otherwise. Source:
https://www.pulumi.com/docs/iac/concepts/resources/names/#autonaming"""
_READ = ("aws:", "gcp:", "kubernetes:")
"""Types whose provider returns more than the inputs: at least an id."""


@dataclass(frozen=True)
class Pending:
    """An operation of which only the beginning is known."""

    doing: Doing
    resource: Json
    own: frozenset[str] = frozenset()
    """Properties whose values come from what the state has created."""
    sought: bool = False
    """Its name was taken from the cloud's list, and proves nothing."""
    unknown: frozenset[str] = frozenset()
    """Properties that are known only once something else has been created."""

    @property
    def urn(self) -> str:
        return self.resource["urn"]

    @property
    def type(self) -> str:
        return self.resource["type"]

    @property
    def name(self) -> str:
        """Return the name in the program."""
        return self.urn.rpartition("::")[2]

    @property
    def id(self) -> str:
        """Return the id; a create has one only if the state was written between the cloud's answer and its end."""
        return self.resource.get("id") or ""

    @cached_property
    def inputs(self) -> Json:
        return self.resource.get("inputs") or {}

    @property
    def outside(self) -> bool:
        """Return whether it affects anything outside the state: components and providers do not."""
        return bool(self.resource.get("custom")) and not self.type.startswith("pulumi:providers:")

    @property
    def naming(self) -> str:
        """Return the property that names it in its cloud; empty where none does."""
        return next((name for name in NAMES if name in self.inputs), "")

    @property
    def made_up(self) -> bool:
        """Return whether its name was generated, with random digits: a resource of that name is this operation's."""
        if self.type.startswith("kubernetes:"):
            # The provider marks a generated name. Source:
            # https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/metadata/naming.go
            marks: Json = self._metadata.get("annotations") or {}
            return marks.get("pulumi.com/autonamed") == "true"
        if self.sought:
            return False
        value, filled_in = self.inputs.get(self.naming), self.inputs.get("__defaults") or ()
        return isinstance(value, str) and self.naming in filled_in and _MADE_UP.search(value) is not None

    @property
    def fixed(self) -> bool:
        """Return whether the program names it, so that the next `up` would use the same name again."""
        return bool(self.naming or self._metadata.get("name")) and not self.made_up

    def called(self, name: str) -> "Pending":
        inputs = {**self.inputs, self.naming: name}
        return replace(self, resource={**self.resource, "inputs": inputs}, sought=True)

    @property
    def _metadata(self) -> Json:
        return self.inputs.get("metadata") or {} if self.type.startswith("kubernetes:") else {}


def pending(deployment: Mapping[str, Any]) -> list[Pending]:
    """Return every interrupted operation of the deployment: each create, and of all others one per resource."""
    told = [(each["type"], each["resource"]) for each in deployment.get("pending_operations") or ()]
    told += [("adopting", each) for each in resources(deployment) if _unread(each)]
    made = created_resources(deployment)
    known = {(each["urn"], each.get("id")) for each in resources(deployment)}
    found: dict[object, Pending] = {}
    for at, (doing, resource) in enumerate(told):
        # A `creating` of a resource that the state has under the same id is done: only its mark is left.
        done = doing == "creating" and (resource["urn"], resource.get("id")) in known
        each = Pending("reading" if done else doing, resource, made.own(resource))
        found.setdefault(at if each.doing == "creating" else (each.doing, each.urn), each)
    return list(found.values())


@dataclass(frozen=True)
class CreatedResources:
    """URNs of the resources that the state has created outside itself."""

    urns: frozenset[str]

    def own(self, resource: Mapping[str, Any]) -> frozenset[str]:
        """Return the properties of a resource that come from them."""
        of_properties: Mapping[str, Sequence[str] | None] = resource.get("propertyDependencies") or {}
        return frozenset(name for name, urns in of_properties.items() if self.urns.intersection(urns or ()))


def created_resources(deployment: Mapping[str, Any]) -> CreatedResources:
    """Leave out resources that were only read."""
    there = (each for each in resources(deployment) if not each.get("external"))
    return CreatedResources(frozenset(each["urn"] for each in there if Pending("reading", each).outside))


def resources(deployment: Mapping[str, Any]) -> list[Json]:
    return deployment.get("resources") or []


def provider_inputs(deployment: Mapping[str, Any], resource: Mapping[str, Any]) -> Json:
    """Return the inputs of the provider that a resource names: <urn>::<id>."""
    urn = str(resource.get("provider") or "").rpartition("::")[0]
    found: list[Json] = [each.get("inputs") or {} for each in resources(deployment) if each["urn"] == urn]
    return found[0] if found else {}


def setting(inputs: Json, name: str) -> Any:
    """Return a provider's setting that is a map or a list; the engine keeps such settings as text."""
    given: Any = inputs.get(name) or {}
    return json.loads(given) if isinstance(given, str) else given


def live(deployment: Mapping[str, Any], urn: str) -> Json | None:
    """Return the state's resource of this name, unless it waits for deletion or was deleted to be replaced."""
    gone = ("delete", "pendingReplacement")
    there = (each for each in resources(deployment) if each["urn"] == urn)
    return next((each for each in there if not any(map(each.get, gone))), None)


def alike(one: Pending, other: Pending) -> bool:
    """Return whether two operations create the same, so that their results cannot be told apart."""
    return one.type == other.type and one.inputs == other.inputs


def resolve_pending(deployment: Mapping[str, Any], adopted: Sequence[tuple[Pending, str]]) -> Json:
    """Return the deployment without pending operations, with created resources entered by id, to be read. If the state
    has another one, the created one is entered for deletion by the next `up`: nothing refers to it yet, whether it was
    created a second time or to replace the other. Its outputs are its inputs until it has been read."""
    made: Json = copy.deepcopy(dict(deployment))
    made["pending_operations"] = []
    entries: list[Json] = made.get("resources") or []
    for operation, id in adopted:
        entry = {**operation.resource, "id": id, "outputs": _plain(operation.inputs)}
        entry = {name: value for name, value in entry.items() if name not in ("created", "modified")}
        if live({"resources": entries}, operation.urn):
            entries.append({**entry, "delete": True, "protect": False, "retainOnDelete": False})
        else:
            waits = [each for each in entries if each["urn"] == operation.urn and each.get("pendingReplacement")]
            entries = [*(each for each in entries if each not in waits), entry]
    made["resources"] = order_entries([_bound(each, {one["urn"] for one in entries}) for each in entries])
    return made


def _bound(entry: Json, there: set[str]) -> Json:
    """Drop names of resources that the state lacks: it would be refused with them."""
    lists = {name: [urn for urn in entry[name] if urn in there] for name in _LISTS if entry.get(name)}
    ones = {name for name in ("parent", "deletedWith") if entry.get(name) and entry[name] not in there}
    found = {name: value for name, value in {**entry, **lists}.items() if name not in ones}
    if of_properties := entry.get("propertyDependencies"):
        kept = {name: [urn for urn in urns or () if urn in there] for name, urns in of_properties.items()}
        found["propertyDependencies"] = kept
    return found


def order_entries(entries: Sequence[Json]) -> list[Json]:
    """Return the entries, each after those that it names: a state in another order is refused. Source:
    https://github.com/pulumi/pulumi/blob/master/pkg/resource/deploy/snapshot.go (VerifyIntegrity)"""
    first: dict[str, int] = {}
    for at, each in enumerate(entries):
        first.setdefault(each["urn"], at)
    done: dict[int, Json] = {}

    def place(at: int, way: frozenset[int]) -> None:
        if at in done or at in way:
            return
        for urn in _named(entries[at]):
            if urn in first:
                place(first[urn], way | {at})
        done[at] = entries[at]

    for at in range(len(entries)):
        place(at, frozenset())
    return list(done.values())


_LISTS = ("dependencies", "replaceWith")


def _named(entry: Mapping[str, Any]) -> Iterator[str]:
    yield from filter(None, (entry.get("parent"), entry.get("deletedWith")))
    yield str(entry.get("provider") or "").rpartition("::")[0]
    for name in _LISTS:
        yield from entry.get(name) or ()
    of_properties: Json = entry.get("propertyDependencies") or {}
    for urns in of_properties.values():
        yield from urns or ()


def _unread(entry: Mapping[str, Any]) -> bool:
    """Return whether resolve_pending() entered it and nothing read it since: outputs are inputs, without a time."""
    if not entry["type"].startswith(_READ) or not entry.get("id") or entry.get("created") or entry.get("modified"):
        return False
    inputs = _plain(entry.get("inputs") or {})
    return bool(inputs) and entry.get("outputs") == inputs


def _plain(inputs: Mapping[str, Any]) -> Json:
    return {name: value for name, value in inputs.items() if not name.startswith("__")}
