"""SSH to machines of the sandbox's Google, through its stand-in of Identity-Aware Proxy's relay."""

import base64
import itertools
import json
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest
import websocket
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sandbox.google.world import World
from tests.support.guests import KEY, TOKEN, machine, serving
from tests.support.waiting import until

USER = "ada_example_com"
QUERY = "project=accel-sandbox&zone=us-central1-a&instance=trainer&interface=nic0&port=22"
OS_LOGIN = {"enable-oslogin": "TRUE", "enable-guest-attributes": "TRUE"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The server in this process, so that a test can put machines and keys into its world."""
    with serving(tmp_path_factory.mktemp("google")) as made:
        yield made


@pytest.fixture(autouse=True)
def _clean(world: World) -> Iterator[None]:
    yield
    world.guests.stop(KEY)
    world.items.clear()
    until(lambda: not world.guests.running(KEY))


class Relayed:
    """A socket for paramiko over the relay, as a client of Google's speaks it."""

    def __init__(self, world: World, query: str = QUERY, token: str = TOKEN, path: str = "connect") -> None:
        self.socket = websocket.create_connection(
            f"{world.url.replace('http', 'ws')}/v4/{path}?{query}",
            subprotocols=["relay.tunnel.cloudproxy.app"], origin="bot:iap-tunneler",
            header=[f"Authorization: Bearer {token}"], timeout=60,
        )  # fmt: skip
        self.session, self.data, self.received, self.acked = b"", b"", 0, 0
        self.closed_with: tuple[int, str] | None = None
        self._closed = False  # paramiko asks sockets for it

    def hear(self) -> bool:
        """Take in a message; False: it is over."""
        kind, message = self.socket.recv_data()
        if kind == websocket.ABNF.OPCODE_CLOSE:
            self.closed_with = (struct.unpack(">H", message[:2])[0], message[2:].decode())
            return False
        (tag,) = struct.unpack(">H", message[:2])
        if tag == 1:
            self.session = message[6:]
        elif tag == 4:
            assert struct.unpack(">I", message[2:6])[0] == len(message) - 6 <= 16384
            self.data += message[6:]
            self.received += len(message) - 6
            self.socket.send_binary(struct.pack(">HQ", 7, self.received))
        else:
            assert tag == 7
            (self.acked,) = struct.unpack(">Q", message[2:10])
        return True

    def recv(self, count: int) -> bytes:
        while not self.data:
            try:
                if not self.hear():
                    return b""
            except websocket.WebSocketTimeoutException:
                raise TimeoutError from None
            except websocket.WebSocketException:  # closed meanwhile, by this side
                return b""
        part, self.data = self.data[:count], self.data[count:]
        return part

    def send(self, data: bytes) -> int:
        part = bytes(data[:16384])
        self.socket.send_binary(struct.pack(">HI", 4, len(part)) + part)
        return len(part)

    def settimeout(self, timeout: float) -> None:
        self.socket.settimeout(timeout)

    def close(self) -> None:
        self._closed = True
        self.socket.close()


def key_of(folder: Path) -> tuple[paramiko.PKey, str]:
    """A new key and its public line."""
    made = Ed25519PrivateKey.generate()
    path = folder / "key"
    path.write_bytes(made.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()))
    public = made.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH).decode()
    return paramiko.Ed25519Key.from_private_key_file(str(path)), f"{public} ada@example.com"


def enrol(world: World, line: str, **more: Any) -> None:
    world.items["oslogin/users/ada@example.com"] = {
        "name": "ada@example.com",
        "posixAccounts": [{"username": USER, "primary": True}],
        "sshPublicKeys": {"mark": {"key": line, "fingerprint": "mark"} | more},
    }


def signed_in(world: World, key: paramiko.PKey) -> paramiko.Transport:
    transport = paramiko.Transport(Relayed(world))  # type: ignore[arg-type]
    transport.start_client(timeout=60)
    transport.auth_publickey(USER, key)
    return transport


@pytest.fixture
def ssh(world: World, tmp_path: Path) -> Iterator[paramiko.Transport]:
    key, line = key_of(tmp_path)
    enrol(world, line)
    world.guests.start(machine(metadata=OS_LOGIN))
    transport = signed_in(world, key)
    yield transport
    transport.close()


def run(ssh: paramiko.Transport, command: str, stdin: bytes = b"") -> tuple[int, str, str]:
    channel = ssh.open_session(timeout=60)
    channel.exec_command(command)
    if stdin:
        channel.sendall(stdin)
    channel.shutdown_write()
    out, err = channel.makefile().read().decode(), channel.makefile_stderr().read().decode()
    return channel.recv_exit_status(), out, err


def test_a_command_has_its_own_streams_and_exit_code(ssh: paramiko.Transport) -> None:
    assert run(ssh, "echo to one; echo to the other >&2; exit 7") == (7, "to one\n", "to the other\n")
    assert run(ssh, "true") == (0, "", "")
    code, out, _ = run(ssh, "echo $USER in $(basename $PWD); docker ps; echo $GCE_METADATA_HOST")
    assert code == 0 and out.startswith(f"{USER} in home\n127.0.0.1:")


def test_stdin_is_handed_on_to_its_end(ssh: paramiko.Transport) -> None:
    data = bytes(itertools.islice(itertools.cycle(b"0123456789\n"), 300_000))
    code, out, _ = run(ssh, "cat; wc -c >&2", data)
    assert (code, out) == (0, data.decode())


def test_a_command_that_a_signal_ended_says_so(ssh: paramiko.Transport) -> None:
    assert run(ssh, "kill -9 $$")[0] == -1


def test_a_terminal_has_a_size_that_changes(ssh: paramiko.Transport) -> None:
    channel = ssh.open_session(timeout=60)
    channel.get_pty(width=90, height=20)
    channel.exec_command("stty size; read again; stty size; test -t 2 && exit 5")
    text = channel.makefile()
    assert text.readline() == "20 90\r\n"
    channel.resize_pty(width=100, height=30)
    channel.sendall(b"now\n")
    assert [text.readline(), text.readline()] == ["now\r\n", "30 100\r\n"]
    assert channel.recv_exit_status() == 5


def test_the_host_key_is_told_in_guest_attributes(world: World, ssh: paramiko.Transport) -> None:
    told = world.guests.attributes(KEY)["hostkeys"]["ssh-ed25519"]
    assert base64.b64encode(ssh.get_remote_server_key().asbytes()).decode() == told


def test_a_container_is_entered(world: World, ssh: paramiko.Transport) -> None:
    up = "docker run -d --name job local/examples sh -c 'while :; do sleep 0.05; done'"
    assert run(ssh, up)[0] == 0
    assert run(ssh, "sudo docker exec -i job sh -c 'cat; exit 4'", b"given") == (4, "given", "")


@pytest.mark.parametrize("more", [None, {"expirationTimeUsec": str(int(time.time() - 60) * 10**6)}])
def test_a_key_that_is_not_known_any_more_is_refused(world: World, tmp_path: Path, more: Any) -> None:
    key, line = key_of(tmp_path)
    if more:
        enrol(world, line, **more)
    world.guests.start(machine(metadata=OS_LOGIN))
    with pytest.raises(paramiko.AuthenticationException):
        signed_in(world, key)
    enrol(world, line)
    assert run(signed_in(world, key), "echo in")[1] == "in\n"


def test_without_os_login_the_metadata_has_the_keys(world: World, tmp_path: Path) -> None:
    key, line = key_of(tmp_path)
    world.guests.start(machine(metadata={"ssh-keys": f"somebody:ssh-rsa AAAA\n{USER}:{line}"}))
    assert run(signed_in(world, key), "echo in")[1] == "in\n"
    enrol(world, line)
    world.guests.change(KEY, OS_LOGIN)
    assert run(signed_in(world, key), "echo in")[1] == "in\n"
    world.items.clear()
    with pytest.raises(paramiko.AuthenticationException):
        signed_in(world, key)


def test_a_command_ends_with_its_machine(world: World, ssh: paramiko.Transport) -> None:
    channel = ssh.open_session(timeout=60)
    channel.exec_command("echo up; trap 'echo asked; exit' TERM; while :; do sleep 0.05; done")
    assert channel.makefile().readline() == "up\n"
    world.guests.stop(KEY)
    until(lambda: not world.guests.running(KEY))
    until(lambda: not ssh.is_active())


@pytest.mark.parametrize(
    "query, path, why",
    [
        (QUERY.replace("trainer", "nobody"), "connect", (4047, "Failed to lookup instance")),
        (QUERY.replace("us-central1-a", "us-central1-b"), "connect", (4047, "Failed to lookup instance")),
        (QUERY.replace("accel-sandbox", "other"), "connect", (4033, "not authorized")),
        ("sid=x&ack=0", "reconnect", (4001, "unknown session")),
    ],
)
def test_the_relay_says_why_it_leads_nowhere(world: World, query: str, path: str, why: tuple[int, str]) -> None:
    world.guests.start(machine())
    relayed = Relayed(world, query, path=path)
    assert not relayed.hear()
    assert relayed.closed_with == why


def test_a_port_where_nothing_listens_is_no_backend(world: World) -> None:
    world.guests.start(machine())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    relayed = Relayed(world, QUERY.replace("port=22", f"port={port}"))
    assert not relayed.hear()
    assert relayed.closed_with == (4003, "failed to connect to backend")


def test_a_stopped_machine_is_not_found(world: World) -> None:
    world.guests.start(machine())
    world.guests.stop(KEY)
    relayed = Relayed(world)
    assert not relayed.hear()
    assert relayed.closed_with == (4047, "Failed to lookup instance")


def test_the_relay_wants_the_token(world: World) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        Relayed(world, token="another")
    assert refused.value.status_code == 401


def test_the_relay_leads_to_other_ports_and_tells_what_it_has_got(world: World) -> None:
    world.guests.start(machine())
    with socket.create_server(("127.0.0.1", 0)) as server:
        relayed = Relayed(world, QUERY.replace("port=22", f"port={server.getsockname()[1]}"))
        other, _ = server.accept()
    with other:
        assert relayed.hear() and relayed.session
        sent = b"x" * 16384 * 3
        for at in range(0, len(sent), 16384):
            relayed.send(sent[at:])
        assert other.recv(len(sent), socket.MSG_WAITALL) == sent
        assert relayed.hear()
        assert relayed.acked == len(sent)
        other.sendall(b"and back")
        assert relayed.recv(100) == b"and back"
    assert not relayed.hear()
    assert relayed.closed_with == (1000, "")


def test_a_machine_is_taken_away_by_its_name(world: World) -> None:
    import requests

    taken: list[str] = []
    world.items["compute/projects/p/zones/z/instances/n"] = {}
    world.preempt["compute"] = lambda _, name: taken.append(name)
    url = f"{world.url}/sandbox-api/preempt"
    name = "projects/p/zones/z/instances/n"
    head = {"Authorization": f"Bearer {world.token}"}
    assert requests.post(url, json={"name": name}, headers=head, timeout=60).json() == {"name": name}
    assert taken == [name]
    answer = requests.post(url, data=json.dumps({"name": f"{name}x"}), headers=head, timeout=60)
    assert answer.status_code == 404
    assert answer.json()["error"]["message"] == f"no machine {name}x that can be taken away"
