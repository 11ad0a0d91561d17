"""Budgets, notification channels and functions, as the provider makes them: its resource_billing_budget.go,
resource_monitoring_notification_channel.go and resource_cloudfunctions2_function.go."""

from typing import Any

from ..resource import State
from .life import Kind, address, body, finished, formatted, observed_state
from .rest import Google, Json


def create_named(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    """What gets its name from the service."""
    made = google.call("POST", kind.api, formatted(kind.path, inputs), _body(kind, inputs))
    return finished(google, kind, {**inputs, "name": made["name"]})


def finish_named(google: Google, kind: Kind, state: State) -> tuple[str, State]:
    found = google.get(kind.api, state["name"]) or {}
    return found.get("name", state["name"]), observed_state(
        kind, {**state, "id": state["name"]}, state, _pulumis(found)
    )[1]


def read_named(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    found = google.get(kind.api, id)
    return (
        None if found is None else observed_state(kind, {**outs, **inputs, "id": id}, inputs or outs, _pulumis(found))
    )


def update_named(google: Google, kind: Kind, state: State, olds: State, changed: set[str]) -> None:
    whole, before = _body(kind, state), _body(kind, olds)
    keys = sorted(key for key in whole.keys() | before.keys() if whole.get(key) != before.get(key))
    if keys:
        sent = {key: whole.get(key) for key in keys}
        google.call("PATCH", kind.api, state["name"], sent, updateMask=",".join(keys))


def delete_named(google: Google, kind: Kind, id: str, outs: State) -> None:
    if google.get(kind.api, id) is not None:
        google.call("DELETE", kind.api, id)


def _body(kind: Kind, state: State) -> Json:
    """As body(); a budget's label has a list of its one value."""
    made = body(kind, state)
    kept = made.get("budgetFilter", {})
    if "labels" in kept:
        made["budgetFilter"] = {**kept, "labels": {name: [value] for name, value in kept["labels"].items()}}
    return made


def _pulumis(found: Json) -> Json:
    kept = found.get("budgetFilter", {})
    if "labels" in kept:
        plain = {name: value[0] for name, value in kept["labels"].items()}
        return {**found, "budgetFilter": {**kept, "labels": plain}}
    return found


def create_schedule(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    """The whole name is in the body."""
    sent = {**body(kind, inputs), "name": formatted(kind.id, inputs)}
    google.done(kind.api, "POST", formatted(kind.path, inputs), sent, doing=f"to create {kind.title}")
    return finished(google, kind, inputs)


def create_function(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    """The name is in the body too, whole."""
    sent = {**body(kind, inputs), "name": address(kind, inputs)}
    google.done(
        kind.api, "POST", formatted(kind.path, inputs), sent, doing=f"to create {kind.title}", functionId=inputs["name"]
    )
    return finished(google, kind, inputs)
