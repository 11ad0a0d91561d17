"""Machines that run the agent as a process, and a Google that holds what it writes."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from jobs.agent import metadata
from tests.support.serving import QuietServer

FOLDER = "records/train-000000000000/attempts/1"
PATIENCE_S = 60
"""Far longer than anything here takes, on any machine."""

Answer = tuple[int, bytes]
Ask = Callable[[str, str, dict[str, str], bytes], Answer]


@contextmanager
def serving(ask: Ask) -> Generator[str]:
    """An HTTP server on a free port, whose answers `ask` gives."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, data = ask(self.command, unquote(parts.path), dict(parse_qsl(parts.query)), body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = QuietServer(Handler)
    try:
        yield server.host
    finally:
        server.stop()


@dataclass
class Google:
    """Buckets, logs, secrets and deletions. `refuse` has a status for each API that is out of order."""

    objects: dict[str, bytes] = field(default_factory=dict)
    lines: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: int = 0
    deleted: list[str] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)
    refuse: dict[str, int] = field(default_factory=dict)
    address: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        api = {"upload": "storage", "storage": "storage", "v2": "logging", "v1": "secretmanager"}.get(
            path.split("/")[1], "compute"
        )
        if status := self.refuse.get(api):
            return status, json.dumps({"error": {"message": f"{api} is out of order"}}).encode()
        with self.lock:
            return getattr(self, f"_{api}")(method, path, query, body)

    def _storage(self, method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if method == "POST":
            if query.get("ifGenerationMatch") == "0" and query["name"] in self.objects:
                return 412, b"{}"
            self.objects[query["name"]] = body
            return 200, b"{}"
        if "alt" in query:
            data = self.objects.get(path.partition("/o/")[2])
            return (404, b"{}") if data is None else (200, data)
        found = [{"name": name} for name in sorted(self.objects) if name.startswith(query["prefix"])]
        return 200, json.dumps({"items": found} if found else {}).encode()

    def _logging(self, method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        sent = json.loads(body)
        for entry in sent["entries"]:
            assert len(json.dumps(entry).encode()) < 260_000 or "\\u" in json.dumps(entry)
            assert len(entry["textPayload"].encode()) <= 256 * 1024 - 1000
            known = self.lines.setdefault(entry["insertId"], entry | {"labels": sent["labels"]})
            assert known["textPayload"] == entry["textPayload"], "one id for two lines"
        self.writes += 1
        return 200, b"{}"

    def _secretmanager(self, method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        name = path.removeprefix("/v1/").removesuffix(":access")
        if name not in self.secrets:
            return 403, b"{}"
        return 200, json.dumps({"payload": {"data": base64.b64encode(self.secrets[name].encode()).decode()}}).encode()

    def _compute(self, method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        self.deleted.append(f"{method} {path}")
        return 200, b"{}"

    def result(self, host: int = 0) -> dict[str, Any]:
        return json.loads(self.objects[f"{FOLDER}/result-{host}.json"])

    def printed(self, host: int = 0) -> list[str]:
        """What the job printed on a host, in order, without the agent's own lines."""
        mine = [each for each in self.lines.values() if each["labels"]["accel-host"] == str(host)]
        in_order = sorted(mine, key=lambda each: (each["timestamp"], each["insertId"]))
        return [each["textPayload"] for each in in_order if not each["textPayload"].startswith("accel: ")]

    def said(self) -> str:
        return "\n".join(each["textPayload"] for each in self.lines.values() if each["textPayload"][:7] == "accel: ")


@dataclass
class Machine:
    """One machine: its metadata, and the processes of its boots."""

    google: Google
    folder: Path
    values: dict[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    told: dict[str, str] = field(default_factory=dict)
    taken: threading.Event = field(default_factory=threading.Event)
    address: str = ""
    path: str = ""
    quiet: bool = False
    """It tells nobody at once that it is being taken away."""

    def ask(self, method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        key = path.removeprefix("/computeMetadata/v1/")
        if method == "PUT":
            self.told[key] = body.decode()
            return 200, b""
        if key == "instance/preempted":
            if "wait_for_change" in query:
                self.taken.wait(30)
            if "wait_for_change" in query and self.quiet:
                return 503, b""
            return 200, b"TRUE" if self.taken.is_set() else b"FALSE"
        if key.endswith("/token"):
            return 200, json.dumps({"access_token": "t0k3n", "expires_in": 3000}).encode()
        value = self.values.get(key)
        return (404, b"") if value is None else (200, value.encode())

    def boot(self) -> subprocess.Popen[bytes]:
        """Runs the startup script, as the guest environment of an image does."""
        root = f"http://{self.google.address}/"
        env = {
            "PATH": os.pathsep.join([self.path, str(Path(sys.executable).parent), os.environ["PATH"]]).strip(":"),
            "TMPDIR": str(self.folder),
            "GCE_METADATA_HOST": self.address,
            **{f"ACCEL_{api}_ROOT": root for api in ("STORAGE", "LOGGING", "SECRETMANAGER")},
        }
        script = self.folder / "startup.sh"
        script.write_text(self.values["instance/attributes/startup-script"])
        with (self.folder / "serial.log").open("ab") as serial:
            process = subprocess.Popen(
                ["bash", str(script)], env=env, stdout=serial, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.processes.append(process)
        return process

    def run(self) -> None:
        """Boots, and waits for the end of the agent."""
        self.boot()
        self.end()

    def end(self) -> None:
        self.processes[-1].wait(PATIENCE_S)

    @property
    def serial(self) -> str:
        return (self.folder / "serial.log").read_text()

    def kill(self) -> None:
        """The power fails: nothing of the agent lives on."""
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(PATIENCE_S)


class Cloud:
    """Makes machines that belong together."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.google = Google()
        self.google.address = stack.enter_context(serving(self.google.ask))
        self._stack = stack
        self._folder = folder

    def machines(self, command: list[str], **more: Any) -> list[Machine]:
        """The machines of one attempt, none of which has booted."""
        attributes = more.pop("attributes", [{}] * 64)
        job: dict[str, Any] = {
            "name": "train-000000000000",
            "attempt": 1,
            "kind": "gce",
            "project": "acme",
            "bucket": "acme-jobs",
            "folder": FOLDER,
            "log": "projects/acme/logs/accel-jobs",
            "image": None,
            "command": command,
            "env": {},
            "secrets": {},
            "mounts": [],
            "shm_mib": None,
            "hosts": 1,
            "slices": 1,
            "hosts_per_slice": 1,
            "gpus": 0,
            "timeout_s": None,
            "grace_s": 30,
            "driver_wait_s": 600,
            "meet_wait_s": 600,
            "release": [{"method": "DELETE", "url": f"http://{self.google.address}/compute/instances/train"}],
            "task": None,
        } | more
        return [self._machine(job, index, attributes[index]) for index in range(job["hosts"])]

    def _machine(self, job: dict[str, Any], index: int, attributes: dict[str, str]) -> Machine:
        folder = self._folder / f"machine-{index}"
        folder.mkdir()
        values = {
            "instance/name": f"train-000000000000-{index}",
            "instance/network-interfaces/0/ip": f"127.0.0.{index + 1}",
            "instance/attributes/accel-job": json.dumps(job),
            **{f"instance/attributes/{key}": value for key, value in (metadata() | attributes).items()},
        }
        machine = Machine(self.google, folder, values)
        machine.address = self._stack.enter_context(serving(machine.ask))
        self._stack.callback(machine.kill)
        return machine


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def on_stop(text: str) -> list[str]:
    """Runs until it is asked to stop."""
    return python(
        f"import signal, sys, time\ndef stop(*_):\n    {text}\n"
        "signal.signal(signal.SIGTERM, stop)\nprint('up')\nwhile True: time.sleep(0.1)"
    )


def one(cloud: Cloud, command: list[str], **more: Any) -> Machine:
    return cloud.machines(command, **more)[0]


def tools(folder: Path, **scripts: str) -> Path:
    made = folder / "tools"
    made.mkdir()
    for name, text in scripts.items():
        (made / name).write_text(text)
        (made / name).chmod(0o755)
    return made
