"""Lifecycle of a resource, generic for any row of the table."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jmespath

from sandbox.google.discovery import document

from ..mapping import UNKNOWN, UnmappedName, changes, has_unknown, observe
from ..planning import complete_inputs
from ..resource import Autoname, State
from .body import to_body, to_names
from .rest import Google, Json

_OURS = {"pulumiLabels", "__defaults", "timeouts", "id"}


class InitFailure(Exception):
    """Error of a resource that exists, but did not become what was requested."""

    def __init__(self, id: str, outputs: State, reason: str) -> None:
        super().__init__(reason)
        self.id, self.outputs = id, outputs


@dataclass(frozen=True, kw_only=True)
class Own:
    """Functions of special.py for a type that differs from the rest; each replaces the whole step."""

    create: Callable[..., Any] | None = None
    read: Callable[..., Any] | None = None
    update: Callable[..., Any] | None = None
    delete: Callable[..., Any] | None = None
    finish: Callable[..., Any] | None = None  # id and outputs of what was created or changed


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A Pulumi type. `path` is its collection, `id` its id; both are formats over its properties. `outputs` are
    JMESPath over the API's answer, or formats where they have a {name}; "" leaves an output to `acts.finish`."""

    title: str
    api: str = ""
    schema: str = ""
    path: str = ""
    id: str = ""
    name: str = "name"  # the property that names it in its collection
    wrap: str = ""
    query: Mapping[str, str] = field(default_factory=dict[str, str])  # of the creation; formats
    mask: bool = False  # a change names its fields
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    places: tuple[str, ...] = ("project",)
    labels: str = ""  # the property that has labels
    outputs: Mapping[str, str] = field(default_factory=dict[str, str])
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    replace: frozenset[str] = frozenset()
    computed: frozenset[str] = frozenset()
    moving: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()  # properties of the provider alone
    apart: frozenset[str] = frozenset()  # properties that are no part of the body
    unread: frozenset[str] = frozenset()  # sent, and not compared with Google's value
    implied: Mapping[str, Json] = field(default_factory=dict[str, Json])  # what a property sends in addition
    calls: Mapping[str, str] = field(default_factory=dict[str, str])  # properties that a method of their own changes
    autoname: Autoname | None = None
    check: Mapping[str, str] = field(default_factory=dict[str, str])  # patterns
    acts: Own = field(default_factory=Own)
    replace_if: Callable[[State, State], frozenset[str]] = lambda old, new: frozenset()
    regional: bool = False
    version: str = "v1"

    @property
    def document(self) -> Any:
        return document(f"{self.api}.{self.version}")


_CLUSTER = re.compile(r"projects/(?P<project>[^/]+)/locations/(?P<location>[^/]+)/clusters/(?P<cluster>[^/]+)")


def format_template(template: str, state: Mapping[str, Any]) -> str:
    """Return a template with the state's values. A cluster's id brings its own project and location."""
    if "{cluster}" in template and (found := _CLUSTER.search(str(state["cluster"]))):
        state = {**state, **found.groupdict()}
    return re.sub(r"\{(\w+)\}", lambda found: str(state[found[1]]), template)


def body(kind: Kind, state: State) -> Json:
    """Return the body that the API gets for these properties, without those of the provider alone."""
    url = set(re.findall(r"\{(\w+)\}", kind.path)) | {"project"}
    members = kind.document.schema(kind.schema)["properties"]
    outside = {name for name in url if name not in members or name in ("project", "region", "zone", "location")}
    properties = {n: v for n, v in state.items() if n not in kind.own | kind.apart | _OURS | outside | {kind.labels}}
    made = to_body(kind.document, kind.schema, properties, kind.names)
    for name, more in kind.implied.items():
        if name in made:
            made[name] = {**more, **made[name]}
    if kind.labels and state.get("pulumiLabels"):
        made[kind.labels] = state["pulumiLabels"]
    return made


def address(kind: Kind, state: State) -> str:
    """Return the resource's own path below the API. A name that the service generated is the whole path already."""
    at = format_template(kind.path, state)
    collection = at.rpartition("/")[2]
    return f"{at}/{str(state[kind.name]).rpartition(f'/{collection}/')[2]}"


def create(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    if kind.acts.create:
        return kind.acts.create(google, kind, inputs)
    sent = body(kind, inputs)
    query = {name: format_template(value, inputs) for name, value in kind.query.items()}
    sent = {kind.wrap: sent} if kind.wrap else sent
    google.done(kind.api, "POST", format_template(kind.path, inputs), sent, doing=f"to create {kind.title}", **query)
    return finish(google, kind, inputs)


def finish(google: Google, kind: Kind, state: State) -> tuple[str, State]:
    """Return id and outputs of the existing resource."""
    if kind.acts.finish:
        return kind.acts.finish(google, kind, state)
    found = google.get(kind.api, address(kind, state)) or {}
    id = format_template(kind.id, {**state, **{k: v for k, v in found.items() if k not in state}})
    return id, outputs(kind, {**state, "id": id}, found)


def outputs(kind: Kind, state: State, found: Json) -> State:
    made = {name: value for name, value in state.items() if name not in ("__defaults",)}
    for name, expression in kind.outputs.items():
        if re.search(r"\{\w+\}", expression):
            made[name] = format_template(expression, {**found, **made})
        elif expression:
            made[name] = jmespath.search(expression, found)
    if kind.labels:
        made["effectiveLabels"] = found.get(kind.labels, {})
    return {name: value for name, value in made.items() if value is not None}


def read(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> tuple[State, State] | None:
    """Return inputs and outputs as Google has them; None for a resource that does not exist."""
    if kind.acts.read:
        return kind.acts.read(google, kind, id, inputs, outs)
    state = {**_of_id(kind, id), **inputs, **{k: v for k, v in outs.items() if k in (kind.name, "project")}}
    found = google.get(kind.api, address(kind, state))
    if found is None:
        return None
    return observed_state(kind, {**state, "id": id}, inputs or _of_id(kind, id), found)


def observed_state(kind: Kind, state: State, inputs: State, found: Json) -> tuple[State, State]:
    names = kind.names
    known = {
        n: v
        for n, v in inputs.items()
        if n not in kind.own | kind.apart | kind.unread | _OURS | {*kind.places, kind.labels}
    }
    now = {**inputs, **observe(known, to_names(known, found, names), {})}
    if kind.labels:
        every, of_provider = found.get(kind.labels, {}), inputs.get("pulumiLabels", {})
        mine = inputs.get(kind.labels, {})
        drifted = {name: value for name, value in every.items() if of_provider.get(name) != value}
        kept = {name: every[name] for name in mine if name in every}
        now["pulumiLabels"] = every
        if {**kept, **drifted} or mine:
            now[kind.labels] = {**kept, **drifted}
    return now, outputs(kind, {**state, **now}, found)


def _of_id(kind: Kind, id: str) -> State:
    """Return the properties that an id contains, for an import."""
    found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", kind.id), id) if kind.id else None
    return dict(found.groupdict()) if found else {}


def changed_names(kind: Kind, olds: State, news: State) -> set[str]:
    changed = {path.partition(".")[0].partition("[")[0] for path, _ in changes(olds, news)}
    return {kind.labels if name == "pulumiLabels" else name for name in changed} - kind.own - {"__defaults", "timeouts"}


def update(google: Google, kind: Kind, id: str, outs: State, olds: State, news: State) -> State:
    state, changed = {**news, "id": id}, changed_names(kind, olds, news)
    if kind.name not in state:
        state[kind.name] = outs[kind.name]
    if kind.acts.update:
        kind.acts.update(google, kind, state, olds, changed)
    elif changed:
        _patch(google, kind, state, body(kind, news), body(kind, olds))
    return finish(google, kind, state)[1]


def _patch(google: Google, kind: Kind, state: State, whole: Json, before: Json) -> None:
    """Send the differences: a property with a call of its own in that call, the rest in one."""
    at, doing = address(kind, state), f"Updating {kind.title}"
    keys = sorted(name for name in whole.keys() | before.keys() if whole.get(name) != before.get(name))
    for name in [name for name in keys if name in kind.calls]:
        keys.remove(name)
        google.done(kind.api, "POST", f"{at}/{kind.calls[name]}", {name: whole.get(name)}, doing=doing)
    if not keys:
        return
    masked = kind.mask or bool(kind.wrap)
    sent: Json = {name: whole.get(name) if masked else _merge(before.get(name), whole.get(name)) for name in keys}
    mask = {"updateMask": ",".join(keys)} if masked else {}
    if kind.wrap:
        google.done(kind.api, "PATCH", at, {kind.wrap: sent, **mask}, doing=doing)
    else:
        google.done(kind.api, "PATCH", at, sent, doing=doing, **mask)


def _merge(old: Any, new: Any) -> Any:
    """Return a merge patch from one value to another: null for what is to go."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {name: _merge(old.get(name), new.get(name)) for name in old.keys() | new.keys()}
    return new


def delete(google: Google, kind: Kind, id: str, outs: State) -> None:
    if outs.get("deletionPolicy") == "ABANDON":
        return
    if outs.get("deletionPolicy") == "PREVENT":
        raise UnmappedName(f"cannot destroy {kind.title} {id} while deletion_policy is set to PREVENT")
    if kind.acts.delete:
        kind.acts.delete(google, kind, id, outs)
    elif google.get(kind.api, address(kind, outs)) is not None:
        google.done(kind.api, "DELETE", address(kind, outs), doing=f"Deleting {kind.title}")


def check_inputs(kind: Kind, name: str, olds: State, news: State, config: State, seed: str) -> tuple[State, str]:
    """Return the inputs completed as the provider does it (defaults, an automatic name, project and place, all labels),
    and what is wrong with them."""
    inputs, defaulted = complete_inputs(kind, name, olds, news, seed)
    for place in kind.places:
        given = config.get(place)
        if place == "location":
            given = config.get("zone") or config.get("region")
        if place not in inputs and given:
            inputs[place] = given
    missing = [place for place in kind.places if place not in inputs]
    if kind.labels:
        inputs["pulumiLabels"] = _labels(kind, inputs, olds, config)
    for prop, pattern in kind.check.items():
        value = inputs.get(prop)
        if isinstance(value, str) and value != UNKNOWN and not re.fullmatch(pattern, value):
            return inputs, f'"{prop}" ("{value}") doesn\'t match regexp "^{pattern}$"'
    wrong = f"{missing[0]}: required field is not set" if missing else ""
    return {**inputs, "__defaults": defaulted}, wrong


def _labels(kind: Kind, inputs: State, olds: State, config: State) -> Any:
    """Return the labels, with the provider's and the one that names Pulumi as creator: on new resources, unless it is
    switched off. Source: https://github.com/pulumi/pulumi-gcp, the guide to version 8."""
    own, of_provider = inputs.get(kind.labels) or {}, config.get("defaultLabels") or {}
    if has_unknown(own) or has_unknown(of_provider):
        return UNKNOWN
    before = olds.get("pulumiLabels")
    kept = "goog-pulumi-provisioned" in before if isinstance(before, dict) else True
    mark = str(config.get("addPulumiAttributionLabel", True)).lower() != "false" and kept
    return {**of_provider, **own, **({"goog-pulumi-provisioned": "true"} if mark else {})}
