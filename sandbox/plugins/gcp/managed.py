"""Topics, fields of Firestore and TensorBoards, as the provider makes them: its resource_pubsub_topic.go,
resource_firestore_field.go and resource_vertex_ai_tensorboard.go."""

from typing import Any

from ..resource import State
from .life import Kind, address, body, finished, formatted, observed_state
from .rest import Google


def create_topic(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    google.call("PUT", kind.api, address(kind, inputs), body(kind, inputs))
    return finished(google, kind, inputs)


def create_field(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    """Every field is there already: what is made is its own settings."""
    google.done(kind.api, "PATCH", address(kind, inputs), body(kind, inputs), doing=f"to create {kind.title}")
    return finished(google, kind, inputs)


def read_field(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    state = {**outs, **inputs}
    found = google.get(kind.api, address(kind, state))
    if found is None or not found.keys() & {"ttlConfig", "indexConfig"}:
        return None
    return observed_state(kind, {**state, "id": id}, inputs, found)


def delete_field(google: Google, kind: Kind, id: str, outs: State) -> None:
    at = address(kind, outs)
    if google.get(kind.api, at) is not None:
        google.done(kind.api, "PATCH", at, {}, doing="Deleting Field", updateMask="indexConfig,ttlConfig")


def create_tensorboard(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    """Its name is a number that the service makes up."""
    ended = google.done(
        kind.api, "POST", formatted(kind.path, inputs), body(kind, inputs), doing=f"to create {kind.title}"
    )
    return finished(google, kind, {**inputs, "name": ended["response"]["name"]})
