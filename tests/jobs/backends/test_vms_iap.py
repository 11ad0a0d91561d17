"""The way through Identity-Aware Proxy, by the sandbox's stand-in of its relay."""

import hashlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from accel.clouds.google import api as google_api
from accel.clouds.google import iap
from accel.clouds.google.api import Google
from accel.clouds.timeouts import Timing
from accel.diagnostics.errors import CloudRefused, CloudSilent, JobsError, NoCredentials, NotFound
from jobs.backends.base import Streams
from jobs.backends.vm import shell
from jobs.backends.vm.shell import Connection, Host
from sandbox.google import PROJECT
from sandbox.google.world import World
from tests.support.guests import KEY, TOKEN, machine, serving
from tests.support.services import enable
from tests.support.waiting import until

QUICK = Timing(connect_s=20, read_s=20, attempts=3, backoff_s=0.01, longest_wait_s=0.02)
ZONE, NAME = "us-central1-a", "trainer"
OS_LOGIN = {"enable-oslogin": "TRUE", "enable-guest-attributes": "TRUE"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The server in this process, so that a test can put machines into its world."""
    with serving(tmp_path_factory.mktemp("google")) as made:
        yield made


@pytest.fixture
def google(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    """A client beside one machine that runs."""
    monkeypatch.setenv("ACCEL_IAP_URL", f"{world.url.replace('http', 'ws')}/v4/")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN)
    for api in ("oslogin", "openidconnect"):
        monkeypatch.setenv(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api.upper()}", f"{world.url}/{api}.googleapis.com/")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    world.guests.start(machine(metadata=OS_LOGIN))
    yield Google(QUICK)
    world.guests.stop(KEY)
    world.items.clear()
    until(lambda: not world.guests.running(KEY))


class Peer:
    """What listens on a port of the machine, with one connection."""

    def __init__(self, talk: Callable[[socket.socket], None]) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._run, args=(talk,), daemon=True)
        self._thread.start()

    def _run(self, talk: Callable[[socket.socket], None]) -> None:
        with self._server, self._server.accept()[0] as connection:
            talk(connection)

    def end(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()


def echo(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        connection.sendall(data)


def cut_after(google: Google, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the way to the relay leads through something that breaks off after so many bytes."""
    inner = os.environ["ACCEL_IAP_URL"].split("/")[2].split(":")
    server = socket.create_server(("127.0.0.1", 0))

    def hand_on(source: socket.socket, sink: socket.socket, left: list[int]) -> None:
        with suppress(OSError):
            while left[0] > 0 and (data := source.recv(1024)):
                sink.sendall(data)
                left[0] -= len(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def run() -> None:
        with server, server.accept()[0] as outside, socket.create_connection((inner[0], int(inner[1]))) as inside:
            left = [count]
            back = threading.Thread(target=hand_on, args=(inside, outside, left))
            back.start()
            hand_on(outside, inside, [1 << 40])
            back.join()

    threading.Thread(target=run, daemon=True).start()
    monkeypatch.setenv("ACCEL_IAP_URL", f"ws://127.0.0.1:{server.getsockname()[1]}/v4")


def connect(google: Google, name: str = NAME, port: int = 22, project: str = PROJECT, zone: str = ZONE) -> iap.Relay:
    return iap.connect(google, project, zone, name, port)


def test_bytes_go_both_ways_whole(google: Google) -> None:
    data = hashlib.shake_256(b"any").digest(3_000_000)
    peer = Peer(echo)
    relay = connect(google, port=peer.port)

    def send() -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[relay.send(bytes(rest[:100_000])) :]

    sender = threading.Thread(target=send)
    sender.start()
    got = bytearray()
    while len(got) < len(data):
        part = relay.recv(50_000)
        assert 0 < len(part) <= 50_000
        got += part
    sender.join()
    assert got == data
    relay.close()
    relay.close()
    peer.end()
    assert relay.recv(1) == b""
    with pytest.raises(OSError):
        relay.send(b"x")


def test_nothing_to_hear_in_time(google: Google) -> None:
    peer = Peer(echo)
    relay = connect(google, port=peer.port)
    relay.settimeout(0.01)
    with pytest.raises(TimeoutError):
        relay.recv(1)
    relay.settimeout(None)
    relay.send(b"still here")
    assert relay.recv(100) == b"still here"
    relay.close()
    peer.end()


def test_the_other_side_ends_it(google: Google) -> None:
    peer = Peer(lambda connection: connection.sendall(b"bye"))
    relay = connect(google, port=peer.port)
    got = b""
    while part := relay.recv(100):
        got += part
    assert (got, relay.why) == (b"bye", None)
    peer.end()


@pytest.mark.parametrize(
    "place, kind, message, hint",
    [
        ({"name": "nobody"}, NotFound, r"nobody in us-central1-a: IAP: Failed to lookup instance \(4047\)", "jobs get"),
        ({"zone": "us-central1-b"}, NotFound, r"trainer in us-central1-b: IAP: .*\(4047\)", "jobs get"),
        ({"project": "other"}, CloudRefused, r"not authorized \(4033\)", "roles/iap.tunnelResourceAccessor"),
        ({"port": 1}, CloudSilent, r"failed to connect to backend \(4003\)", "35.235.240.0/20"),
    ],
)
def test_what_leads_nowhere_is_said_with_what_to_check(
    google: Google, place: dict[str, str], kind: type[JobsError], message: str, hint: str
) -> None:
    with pytest.raises(kind, match=message) as refused:
        connect(google, **place)  # type: ignore[arg-type]
    assert hint in str(refused.value.hint) and "\n" not in refused.value.message


def test_a_machine_that_is_gone(world: World, google: Google) -> None:
    world.guests.stop(KEY)
    with pytest.raises(NotFound, match="4047"):
        connect(google)


def test_a_token_that_has_expired_is_replaced_once(google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = ["expired", TOKEN]
    monkeypatch.setattr(google_api, "auth_headers", lambda: {"Authorization": f"Bearer {tokens.pop(0)}"})
    peer = Peer(echo)
    connect(google, port=peer.port).close()
    peer.end()
    assert tokens == []
    tokens[:] = ["expired", "expired too"]
    with pytest.raises(NoCredentials, match="HTTP 401"):
        connect(Google(QUICK))


def test_no_relay_at_all(google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("ACCEL_IAP_URL", f"ws://127.0.0.1:{port}/v4")
    with pytest.raises(CloudSilent, match="trainer in us-central1-a: IAP: "):
        connect(google)


def test_a_relay_that_says_nothing(google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("ACCEL_IAP_URL", f"ws://127.0.0.1:{server.getsockname()[1]}/v4")
        with pytest.raises(CloudSilent, match="timed out"):
            connect(Google(Timing(connect_s=0.1, read_s=0.1)))


def test_a_connection_that_is_cut_says_so(google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_after(google, 2000, monkeypatch)
    peer = Peer(lambda connection: connection.sendall(b"x" * 100_000))
    relay = connect(google, port=peer.port)
    while relay.recv(10_000):
        pass
    peer.end()
    assert isinstance(relay.why, CloudSilent) and "the connection broke" in relay.why.message


def test_a_command_whose_connection_is_cut(world: World, google: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    enable(world.url, {"Authorization": f"Bearer {TOKEN}"}, "oslogin")
    cut_after(google, 200_000, monkeypatch)
    login = shell.login(google, PROJECT, "us-central1")
    connection = Connection(google, Host(PROJECT, ZONE, NAME, "compute.4711", {}), login)
    got = bytearray()
    with pytest.raises(CloudSilent, match="the connection broke"):
        connection.run(["sh", "-c", "while :; do echo line; done"], Streams(lambda is_error, data: got.extend(data)))
    assert got.startswith(b"line\nline\n")
    connection.close()
