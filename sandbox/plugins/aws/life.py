"""What the engine asks of a resource, done for any row of the tables."""

import contextlib
import json
import os
import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import jmespath
from botocore.exceptions import ClientError

from ..mapping import UNKNOWN, Unmapped, adopted, filled, has_unknown, observed
from ..planning import OURS, changed, completed, kept_outputs
from ..resource import Kind, State, Step
from .cloud import Account, Cloud, is_missing

_POLL_S = 0.05
_ENDED = {"DELETED", "deleted"}


class InitFailed(Exception):
    """The resource exists, but a step after its creation failed."""

    def __init__(self, id: str, outputs: State) -> None:
        super().__init__(id)
        self.id, self.outputs = id, outputs


class NotAnArn(Exception):
    """An input that the provider takes only as an ARN."""


class UnexpectedState(Exception):
    """A wait ended in a status that is not the one wanted."""


def _cloud(account: Account, kind: Kind, state: Mapping[str, Any]) -> Cloud:
    return Cloud(account, state.get("region") or "us-east-1", kind.service, kind.names)


def _run(step: Step, cloud: Cloud, kind: Kind, state: State, old: State, found: State) -> Any:
    if step.act:
        return step.act(cloud, state, old)
    sent: State = {}
    if step.spread:
        elsewhere = {name for other in kind.sets for name in other.on} | kind.own | OURS
        for name in [name for name in step.on if name in state] or sorted(state.keys() - elsewhere):
            if cloud.spelling(step.op, name):
                sent[name] = state[name]
            elif not old:
                raise Unmapped(f"property {name} is not mapped to {step.op}")
        if step is kind.create and state.get("tagsAll") and cloud.spelling(step.op, "tags"):
            sent["tags"] = state["tagsAll"]
    if step is kind.create and kind.tagged and state.get("tagsAll"):
        pairs = [{"key": key, "value": value} for key, value in state["tagsAll"].items()]
        sent["tagSpecifications"] = [{"resourceType": kind.tagged, "tags": pairs}]
    return cloud.call(step.op, **{**sent, **(filled(dict(step.params), state, found) or {})})


def _describe(cloud: Cloud, kind: Kind, state: State) -> State | None:
    try:
        found = jmespath.search(kind.found, _run(kind.read, cloud, kind, state, {}, {}) or {})
    except ClientError as error:
        if is_missing(error):
            return None
        raise
    ended = found and kind.wait and jmespath.search(kind.wait.status, found) in _ENDED
    return None if ended else found or None


def _settled(cloud: Cloud, kind: Kind, state: State, doing: str) -> State | None:
    """The description, once the status is a ready one. None: it is gone."""
    give_up = time.monotonic() + float(os.environ.get("SANDBOX_WAIT_S", "120"))
    while True:
        found, wait = _describe(cloud, kind, state), kind.wait
        if found is None or wait is None:
            return found
        status, deleting = jmespath.search(wait.status, found), doing == "delete"
        if status in wait.ready and not deleting:
            return found
        wanted = "''" if deleting else " or ".join(f"'{status}'" for status in sorted(wait.ready))
        about, reason = (
            f"waiting for {kind.title} ({state['id']}) {doing}",
            jmespath.search(wait.reason, found),
        )
        if status not in wait.pending | wait.ready:
            said = f". last error: {reason}" if reason else ""
            raise UnexpectedState(f"{about}: unexpected state '{status}', wanted target {wanted}{said}")
        if time.monotonic() > give_up:
            what = "resource to be gone" if deleting else f"state to become {wanted}"
            text = f"timeout while waiting for {what} (last state: '{status}', timeout: {wait.patience})"
            raise UnexpectedState(f"{about}: {text}")
        time.sleep(_POLL_S)


def _outputs(cloud: Cloud, kind: Kind, state: State, found: State) -> State:
    made = {name: value for name, value in state.items() if name != "__defaults"}
    for name, expression in kind.outputs.items():
        if expression.startswith(("arn:", "{")):
            made[name] = expression.format_map({**made, **cloud.facts()})
        else:
            value = jmespath.search(expression, found)
            made[name] = value.isoformat() if isinstance(value, datetime) else value
    return {name: value for name, value in made.items() if value is not None}


def _retagged(old: State, new: State) -> State:
    before, after = old.get("tagsAll") or {}, new.get("tagsAll") or {}
    put = {key: value for key, value in after.items() if before.get(key) != value}
    return {**new, "tagsPut": put, "tagsDropped": sorted(before.keys() - after.keys())}


def create(account: Account, kind: Kind, inputs: State) -> tuple[str, State]:
    cloud, state = _cloud(account, kind, inputs), dict(inputs)
    answer = _run(kind.create, cloud, kind, state, {}, {}) or {}
    if kind.id.startswith("{"):
        state["id"] = kind.id.format_map({**cloud.facts(), **answer, **state})
    else:
        state["id"] = jmespath.search(kind.id, answer)
    try:
        found = _settled(cloud, kind, state, "create") or {}
        for step in kind.sets:
            if not step.on or any(state.get(name) is not None for name in step.on):
                _run(step, cloud, kind, state, {}, found)
        tagged = kind.tagged or (kind.create.spread and cloud.spelling(kind.create.op, "tags"))
        if kind.tag and state.get("tagsAll") and not tagged:
            _run(kind.tag, cloud, kind, _retagged({}, state), {}, found)
        if kind.sets:
            found = _settled(cloud, kind, state, "update") or {}
    except (ClientError, UnexpectedState) as error:
        raise InitFailed(state["id"], state) from error
    return state["id"], _outputs(cloud, kind, state, found)


def read(account: Account, kind: Kind, id: str, inputs: State, outputs: State) -> tuple[State, State] | None:
    """Inputs and outputs as the cloud has them; None where the resource is not there."""
    state = {**inputs, **outputs, "id": outputs.get("id", id)}
    cloud = _cloud(account, kind, state)
    found = _describe(cloud, kind, state)
    if found is None:
        return None
    if not outputs:
        inputs = _imported(cloud, kind, found, inputs)
    known = {name: value for name, value in inputs.items() if name not in kind.own | OURS}
    seen = {**inputs, **observed(known, found, kind.names)}
    if kind.taggable:
        now, own = _tags(found), inputs.get("tags", {})
        of_provider = {key: value for key, value in inputs.get("tagsAll", {}).items() if key not in own}
        tags = {key: value for key, value in now.items() if of_provider.get(key) != value}
        seen |= {"tagsAll": now} | ({"tags": tags} if tags or "tags" in inputs else {})
    return seen, _outputs(cloud, kind, {**state, **seen}, found)


def _tags(found: State) -> dict[str, str]:
    """The tags of a description, however it lists them, without those that AWS itself sets."""
    listed = found.get("Tags") or found.get("tags") or found.get("TagSet") or {}
    if isinstance(listed, list):
        listed = {tag.get("Key", tag.get("key")): tag.get("Value", tag.get("value")) for tag in listed}
    return {key: value for key, value in listed.items() if not key.startswith("aws:")}


def _imported(cloud: Cloud, kind: Kind, found: State, given: State) -> State:
    """Inputs of a resource that Pulumi did not make: what the create call takes and the description has."""
    back, inputs = {api: name for name, api in kind.names.items()}, dict(kind.defaults)
    for api in cloud.inputs(kind.create.op).members if kind.create.op else ():
        name = back.get(api, api[:1].lower() + api[1:])
        if found.get(api) not in (None, "", [], {}) and name not in OURS | kind.unknown:
            value = adopted(found[api], kind.names)
            inputs[name] = json.dumps(value) if name in kind.texts else value
    return {**inputs, **given}


def update(account: Account, kind: Kind, id: str, outputs: State, olds: State, news: State) -> State:
    """`outputs` as they were, and the inputs as they were and are to be; the new outputs."""
    cloud, named = _cloud(account, kind, news), {"id": outputs.get("id", id)}
    before, state = ({**kept_outputs(kind, outputs), **side, **named} for side in (olds, news))
    moved = changed(olds, news) - kind.own
    found = _describe(cloud, kind, state) or {}
    for step in (*kind.sets, *kind.updates):
        if moved & set(step.on) if step.on else moved - OURS:
            _run(step, cloud, kind, state, before, found)
            found = _settled(cloud, kind, state, "update") or {}
    tags = _retagged(before, state)
    if kind.untag and tags["tagsDropped"]:
        _run(kind.untag, cloud, kind, tags, before, found)
    if kind.tag and (tags["tagsPut"] or (tags["tagsDropped"] and not kind.untag)):
        _run(kind.tag, cloud, kind, tags, before, found)
    return _outputs(cloud, kind, state, _settled(cloud, kind, state, "update") or {})


def delete(account: Account, kind: Kind, id: str, outputs: State) -> None:
    cloud, state = _cloud(account, kind, outputs), {**outputs, "id": outputs.get("id", id)}
    found = _describe(cloud, kind, state)
    if found is None:
        return
    for step in kind.deletes:
        try:
            _run(step, cloud, kind, state, {}, found)
        except ClientError as error:
            if not is_missing(error) or _describe(cloud, kind, state):
                raise
        if step is not kind.deletes[-1]:
            with contextlib.suppress(UnexpectedState):  # an INVALID environment is deleted all the same
                _settled(cloud, kind, state, "update")
    if kind.wait:
        _settled(cloud, kind, state, "delete")


def checked(kind: Kind, name: str, olds: State, news: State, config: State, seed: str) -> State:
    """The inputs completed as pulumi-aws does: defaults, an automatic name, the region, all tags."""
    inputs, defaulted = completed(kind, name, olds, news, seed)
    if kind.regional:
        inputs.setdefault("region", config.get("region"))
    if kind.taggable:
        own, of_provider = inputs.get("tags", {}), (config.get("defaultTags") or {}).get("tags") or {}
        unknown = has_unknown(own) or has_unknown(of_provider)
        inputs["tagsAll"] = UNKNOWN if unknown else {**of_provider, **own}
    _only_arns(kind, inputs)
    return {**inputs, "__defaults": defaulted}


def _only_arns(kind: Kind, inputs: State) -> None:
    """As terraform-provider-aws's verify.ValidARN, of which this is the first part.

    Source: https://github.com/hashicorp/terraform-provider-aws/blob/main/internal/verify/validate.go
    """
    for path in kind.arns:
        value: Any = inputs
        for step in path.split("."):
            name = re.sub(r"_(\w)", lambda part: part[1].upper(), step)
            value = value if step.isdigit() else value.get(name) if isinstance(value, dict) else None
        if not value or value == UNKNOWN or not isinstance(value, str):
            continue
        fault = (
            "invalid prefix" if not value.startswith("arn:") else "not enough sections" if value.count(":") < 5 else ""
        )
        if fault:
            raise NotAnArn(f'"{path}" ({value}) is an invalid ARN: arn: {fault}')
