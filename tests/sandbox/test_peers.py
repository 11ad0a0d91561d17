"""Whose connection it is."""

import socket
import sys
from collections.abc import Iterator

import pytest

from sandbox import peers


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, int, int]]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0],
    ):
        yield client, client.getsockname()[1], server.getsockname()[1]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    name = "_on_linux" if sys.platform == "linux" else "_elsewhere"
    look, made = getattr(peers, name), list[int]()

    def counted(theirs: int, port: int) -> bool:
        made.append(theirs)
        return look(theirs, port)

    monkeypatch.setattr(peers, name, counted)
    monkeypatch.setattr(peers, "_seen", {})
    return made


def test_a_connection_of_this_user_is_looked_up_once_a_second(
    connection: tuple[socket.socket, int, int], looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, theirs, port = connection
    monkeypatch.setattr(peers, "VALID_S", 600)
    assert peers.ours(theirs, port) and peers.ours(theirs, port)
    assert len(looks) == 1
    monkeypatch.setattr(peers, "VALID_S", 0)
    assert peers.ours(theirs, port)
    assert len(looks) == 2


def test_what_is_no_connection_of_this_user_is_looked_up_each_time(
    connection: tuple[socket.socket, int, int], looks: list[int]
) -> None:
    client, theirs, port = connection
    client.close()
    assert not peers.ours(theirs, port) and not peers.ours(theirs, port)
    assert len(looks) == 2
