"""Calls that AWS may refuse. Each is recorded as either read or refused."""

from collections.abc import Callable
from typing import Any, TypeVar

from accel.diagnostics.errors import CloudRefused, CloudSilent

from .clients import Client, Clients
from .errors import asking
from .responses import structure, structures

T = TypeVar("T")


class Reader:
    """Client that records what was read and what was refused, by permission."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self.region = clients.region
        self.looked: dict[str, None] = {}
        self.unread: dict[str, str] = {}

    def ask(self, permission: str, call: Callable[[Client], T], absent: tuple[str, ...] = ()) -> T | None:
        """Return None if it was refused. Raise NoCredentials, and Absent for codes of `absent` ("does not exist")."""
        service, _, operation = permission.partition(":")
        client = self._clients.batch if service == "batch" else self._clients.reader(service)
        try:
            with asking(operation):
                found = _answered(call, client, absent)
        except (CloudRefused, CloudSilent) as error:
            self.unread[permission] = error.message
            return None
        self.looked[permission] = None
        if isinstance(found, Absent):
            raise found
        return found

    def pages(self, permission: str, operation: str, key: str, **arguments: Any) -> list[dict[str, Any]] | None:

        def read(client: Client) -> list[dict[str, Any]]:
            every = client.get_paginator(operation).paginate(**arguments)
            return [row for page in every for row in structures(page, key)]

        return self.ask(permission, read)

    def unread_lines(self) -> tuple[str, ...]:
        return tuple(f"{permission}: {why}" for permission, why in self.unread.items())


class Absent(Exception):
    """AWS reports that the resource does not exist."""


def _answered(call: Callable[[Client], T], client: Client, absent: tuple[str, ...]) -> T | Absent:
    from botocore.exceptions import ClientError

    try:
        return call(client)
    except ClientError as error:
        answer: Any = error.response
        if structure(answer, "Error").get("Code") in absent:
            return Absent(str(error))
        raise
