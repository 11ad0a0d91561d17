"""A running machine: `python -m sandbox.google.guests.boot FOLDER LISTENER`, one process for each.

It starts the startup script, serves SSH on the listening socket of descriptor LISTENER, and is the parent of all that
runs on the machine, orphaned processes included. Commands on stdin, a line each: `stop SECONDS` shuts down; the end of
stdin, for any reason, ends everything at once. SIGUSR1 means that the machine switches itself off.

SSH runs commands by `sh -c` with the machine's environment, for keys that OS Login knows; without `enable-oslogin` in
its metadata, for the keys of `ssh-keys` there. No SFTP and no forwarding.

FOLDER/machine.json  {"environment": {...}, "metadata": host and port, "grace_s": s, "token": for docker's login}
FOLDER/startup-script, FOLDER/shutdown-script; FOLDER/serial.log: what they print; FOLDER/home: where they run
"""

import base64
import contextlib
import ctypes
import fcntl
import http.client
import json
import os
import pty
import queue
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import psutil

if TYPE_CHECKING:
    import paramiko


_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, of Linux
_TICK_S = 0.05
_KILL_S = 10


_CHUNK = 1 << 15


class Sessions:
    """SSH server that serves in threads of its own, until `closed`."""

    def __init__(self, listener: socket.socket, folder: Path, environment: dict[str, str], metadata: str) -> None:
        self.closed = False
        self._listener, self._folder = listener, folder
        self._environment, self._metadata = environment, metadata
        self._processes: list[subprocess.Popen[bytes]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def groups(self) -> list[int]:
        """Return the process groups of running commands."""
        return [process.pid for process in self._processes if process.poll() is None]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        import paramiko
        from paramiko.common import MSG_CHANNEL_REQUEST

        transport = paramiko.Transport(connection)
        transport.add_server_key(paramiko.Ed25519Key.from_private_key_file(str(self._folder / "host_key")))
        interface = _interface(self)
        # A command may end before paramiko has confirmed its start, so it starts after that.
        table = transport._channel_handler_table
        requested = table[MSG_CHANNEL_REQUEST]

        def started(channel: paramiko.Channel, message: paramiko.Message) -> None:
            requested(channel, message)
            interface.begin(channel)

        transport._channel_handler_table = {**table, MSG_CHANNEL_REQUEST: started}
        with contextlib.suppress(paramiko.SSHException, EOFError, OSError):  # a client that goes away
            transport.start_server(server=interface)

    def keys(self, user: str) -> set[str]:
        """Return the public keys, in base64, that may sign in as this user now."""
        if self._ask("instance/attributes/enable-oslogin").upper() == "TRUE":
            found = json.loads(self._ask(f"oslogin/users?username={quote(user)}") or "{}").get("loginProfiles", [])
            rows = [row for profile in found for row in profile.get("sshPublicKeys", {}).values()]
            now = time.time() * 1e6
            lines = [row["key"] for row in rows if int(row.get("expirationTimeUsec") or now + 1) > now]
        else:
            rows = [line.partition(":") for line in self._ask("instance/attributes/ssh-keys").splitlines()]
            lines = [key for name, _, key in rows if name == user]
        return {line.split()[1] for line in lines if len(line.split()) > 1}

    def _ask(self, path: str) -> str:
        connection = http.client.HTTPConnection(self._metadata, timeout=10)
        connection.request("GET", f"/computeMetadata/v1/{path}", headers={"Metadata-Flavor": "Google"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return text if answer.status == 200 else ""

    def run(self, channel: "paramiko.Channel", user: str, command: list[str], terminal: tuple[int, int] | None) -> Any:
        """Start a command on a channel, and return a function that resizes its terminal."""
        master, inner = pty.openpty() if terminal else (-1, -1)
        if terminal:
            _resize(master, *terminal)
        give = inner if terminal else subprocess.PIPE
        process = subprocess.Popen(
            command, stdin=give, stdout=give, stderr=give, start_new_session=True,
            cwd=self._folder / "home", env=self._environment | {"USER": user, "LOGNAME": user},
            preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if terminal else None,
        )  # fmt: skip
        self._processes.append(process)
        if terminal:
            os.close(inner)
            ends = {"in": os.dup(master), "out": master}
        else:
            assert process.stdin and process.stdout and process.stderr
            ends = {"in": process.stdin, "out": process.stdout, "err": process.stderr}
        threading.Thread(target=_converse, args=(channel, process, ends), daemon=True).start()
        return lambda width, height: _resize(master, width, height)


def _converse(channel: "paramiko.Channel", process: subprocess.Popen[bytes], ends: dict[str, Any]) -> None:
    """Forward the streams until the command has ended, and report its exit."""
    outputs = [
        threading.Thread(target=_pump, args=(ends[name], send), daemon=True)
        for name, send in (("out", channel.sendall), ("err", channel.sendall_stderr))
        if name in ends
    ]
    for each in outputs:
        each.start()
    threading.Thread(target=_feed, args=(channel, ends["in"], isinstance(ends["in"], int)), daemon=True).start()
    for each in outputs:
        each.join()
    code = process.wait()
    with contextlib.suppress(OSError, EOFError):
        if code >= 0:
            channel.send_exit_status(code)
        else:
            _send_exit_signal(channel, signal.Signals(-code).name.removeprefix("SIG"))
        channel.close()


def _pump(source: Any, send: Callable[[bytes], Any]) -> None:
    """Forward the source until it ends, or nobody reads: then it is closed, as sshd does."""
    number = source if isinstance(source, int) else source.fileno()
    with contextlib.suppress(OSError):  # a terminal without users, a client that has gone
        while data := os.read(number, _CHUNK):
            send(data)
    with contextlib.suppress(OSError):
        os.close(number) if isinstance(source, int) else source.close()


def _feed(channel: "paramiko.Channel", sink: Any, terminal: bool) -> None:
    number = sink if terminal else sink.fileno()
    with contextlib.suppress(OSError):
        while data := channel.recv(_CHUNK):
            while data:
                data = data[os.write(number, data) :]
    with contextlib.suppress(OSError):
        os.close(number) if terminal else sink.close()


def _send_exit_signal(channel: "paramiko.Channel", name: str) -> None:
    """Send an exit signal (RFC 4254, 6.10); paramiko sends only statuses."""
    import paramiko
    from paramiko.common import cMSG_CHANNEL_REQUEST

    message = paramiko.Message()
    message.add_byte(cMSG_CHANNEL_REQUEST)
    message.add_int(channel.remote_chanid)
    message.add_string("exit-signal")
    message.add_boolean(False)
    message.add_string(name)
    message.add_boolean(False)
    message.add_string("")
    message.add_string("")
    if channel.transport:
        channel.transport._send_user_message(message)


def _resize(terminal: int, width: int, height: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


def _interface(sessions: Sessions) -> Any:
    """Return the interface of one connection. A local class, since paramiko is imported when a client connects."""
    import paramiko

    class Interface(paramiko.ServerInterface):
        def __init__(self) -> None:
            self.user = ""
            self.terminals: dict[int, tuple[int, int]] = {}
            self.resize: dict[int, Callable[[int, int], None]] = {}
            self.asked: dict[int, list[str]] = {}

        def get_allowed_auths(self, username: str) -> str:
            return "publickey"

        def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
            known = base64.b64encode(key.asbytes()).decode() in sessions.keys(username)
            self.user = username
            return paramiko.AUTH_SUCCESSFUL if known else paramiko.AUTH_FAILED

        def check_channel_request(self, kind: str, chanid: int) -> int:
            known = kind == "session" and not sessions.closed
            return paramiko.OPEN_SUCCEEDED if known else paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

        def check_channel_pty_request(
            self, channel: paramiko.Channel, term: bytes, width: int, height: int,
            pixelwidth: int, pixelheight: int, modes: bytes,
        ) -> bool:  # fmt: skip
            self.terminals[channel.get_id()] = (width, height)
            return True

        def check_channel_window_change_request(
            self, channel: paramiko.Channel, width: int, height: int, pixelwidth: int, pixelheight: int
        ) -> bool:
            if resize := self.resize.get(channel.get_id()):
                resize(width, height)
            return True

        def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
            self.asked[channel.get_id()] = ["sh", "-c", command.decode()]
            return True

        def check_channel_shell_request(self, channel: paramiko.Channel) -> bool:
            self.asked[channel.get_id()] = ["sh"]
            return True

        def begin(self, channel: paramiko.Channel) -> None:
            number = channel.get_id()
            if command := self.asked.pop(number, None):
                self.resize[number] = sessions.run(channel, self.user, command, self.terminals.get(number))

    return Interface()


class Running:
    def __init__(self, folder: Path, listener: socket.socket) -> None:
        self.folder, self._listener = folder, listener
        self._about = json.loads((folder / "machine.json").read_text())
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        # Containers end when the last writer, this process, has ended. Opened for both, it does not wait for another
        # end.
        self._life = os.open(folder / "life", os.O_RDWR)
        (folder / "pid").write_text(str(os.getpid()))
        for number, word in ((signal.SIGTERM, "end"), (signal.SIGINT, "end"), (signal.SIGHUP, "end")):
            signal.signal(number, lambda *_, word=word: self._said.put(word))
        signal.signal(signal.SIGUSR1, lambda *_: self._said.put(f"stop {self._about['grace_s']}"))
        self._scripts: list[subprocess.Popen[bytes]] = []
        self._groups = [self._script("startup-script")]
        self._sessions = Sessions(listener, folder, self._about["environment"], self._about["metadata"])
        threading.Thread(target=self._listen, daemon=True).start()

    def _script(self, name: str) -> int:
        """Start a script, if there is one, as a group of its own; by bash, as the guest agent does from memory."""
        script = self.folder / name
        if not script.exists():
            return 0
        with (self.folder / "serial.log").open("ab") as serial:
            process = subprocess.Popen(
                ["bash", "-c", str(script)],
                cwd=self.folder / "home", env=self._about["environment"], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=serial, stderr=serial,
            )  # fmt: skip
        self._scripts.append(process)  # never waited for: its number stays its group's
        return process.pid

    def _listen(self) -> None:
        for line in sys.stdin:
            self._said.put(line.strip())
        self._said.put("end")

    def run(self) -> None:
        word = self._said.get()
        if word.startswith("stop"):
            self._shut_down(float(word.split()[1]))
        self._listener.close()
        self._sessions.closed = True
        until = time.monotonic() + _KILL_S
        while (left := self._alive()) and time.monotonic() < until:
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            time.sleep(_TICK_S / 5)

    def _shut_down(self, grace_s: float) -> None:
        """Run the shutdown script and send SIGTERM, until nothing runs any more or the time is over."""
        self._groups += [*self._sessions.groups(), *self._containers()]
        for group in filter(None, self._groups):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)
        self._script("shutdown-script")
        until = time.monotonic() + grace_s
        while self._alive() and time.monotonic() < until:
            with contextlib.suppress(queue.Empty):
                word = self._said.get(timeout=_TICK_S)
                until = min(until, time.monotonic() + float(word.partition(" ")[2] or 0))

    def _containers(self) -> list[int]:
        """Return the runners of containers, which docker's daemon would stop; each leads a group."""
        ours = {process.pid for process in self._alive()}
        noted = [int(path.read_text() or 0) for path in self.folder.glob("docker/*/pid")]
        return [pid for pid in noted if pid in ours]

    def _alive(self) -> list[psutil.Process]:
        found: list[psutil.Process] = []
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found


def main() -> None:
    folder, listener = Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
    Running(folder, listener).run()
    os._exit(0)  # threads of SSH connections wait for clients


if __name__ == "__main__":
    main()
