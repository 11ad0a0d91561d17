"""Machines of a World, each with its folder, its metadata server, and the process that runs it (boot.py)."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from accel.catalog.accelerators import accelerator
from accel.catalog.machines import machine as machine_type
from accel.catalog.nearest import UnknownName

from .machine import Machine
from .metadata import Metadata

PROJECT = Path(__file__).resolve().parents[3]
SCRIPTS = ("startup-script", "shutdown-script")
_STAND_IN = """#!/bin/sh
exec '{python}' -I -c '
import sys
sys.path.insert(0, "{project}")
from sandbox.google.stand_ins.{module} import main
sys.exit(main(sys.argv[1], sys.argv[2:]))' '{folder}' "$@"
"""
_SUDO = """#!/bin/sh
# Whoever runs the sandbox is everybody on its machines.
while :; do
    case "$1" in
    -u | -g) shift 2 ;;
    -*) shift ;;
    *=*) export "$1" && shift ;;
    *) exec "$@" ;;
    esac
done
"""
_OFF = "#!/bin/sh\nkill -USR1 \"$(cat '{folder}/pid')\"\n"
_REBOOT = "#!/bin/sh\necho 'the sandbox does not reboot a machine' >&2\nexit 1\n"
_COMMANDS = {
    "docker": _STAND_IN.replace("{module}", "docker"),
    "nvidia-smi": _STAND_IN.replace("{module}", "nvidia_smi"),
    "sudo": _SUDO,
    **dict.fromkeys(("shutdown", "poweroff", "halt"), _OFF),
    "reboot": _REBOOT,
}


_DISK = ("home", "host_key")


class Host:
    """Machine from start to stop. `roots`: the variables that lead its processes to the sandbox's APIs."""

    def __init__(
        self,
        machine: Machine,
        folder: Path,
        token: str,
        roots: Mapping[str, str],
        grace_s: float,
        login: Callable[[str], Any],
    ) -> None:
        self.machine, self.folder = machine, folder
        self._token, self._roots, self._grace_s = token, roots, grace_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._over = False
        self._prepare()
        self.metadata = Metadata(machine, token, login)
        self._port = 0
        if any(machine.metadata.get(name) for name in SCRIPTS):
            self.boot()

    def _prepare(self) -> None:
        """Prepare the machine's folder. The disk of an earlier boot stays if the machine's id is the same."""
        about = self.folder / "id"
        if about.exists() and about.read_text() == self.machine.id:
            for each in self.folder.iterdir():
                if each.name not in _DISK:
                    shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        elif self.folder.exists():
            shutil.rmtree(self.folder)
        for name in ("bin", "docker", "home", "tmp"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        about.write_text(self.machine.id)
        (self.folder / "serial.log").touch()

    def boot(self) -> int:
        """Start the machine's process unless it runs; return its SSH server's port, 0 where the machine has ended."""
        with self._lock:
            if self._process is None and not self._over:
                self.metadata.serve()
                self._write()
                with socket.create_server(("127.0.0.1", 0)) as listener:
                    self._port = listener.getsockname()[1]
                    with (self.folder / "boot.log").open("wb") as log:
                        boot = [sys.executable, "-m", "sandbox.google.guests.boot", str(self.folder)]
                        # The pipe: everything on the machine ends when this server ends, in whatever way.
                        self._process = subprocess.Popen(
                            [*boot, str(listener.fileno())], pass_fds=[listener.fileno()], bufsize=0,
                            stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=PROJECT, start_new_session=True,
                        )  # fmt: skip
                threading.Thread(target=self._await, args=(self._process,), daemon=True).start()
            return self._port if self.running else 0

    def _write(self) -> None:
        """Write what boot.py and the stand-ins read."""
        folder, metadata = self.folder, self.machine.metadata
        for name in SCRIPTS:
            if script := metadata.get(name):
                _executable(folder / name, script)
        for name, text in _COMMANDS.items():
            filled = text.replace("{python}", sys.executable).replace("{project}", str(PROJECT))
            _executable(folder / "bin" / name, filled.replace("{folder}", str(folder)))
        os.mkfifo(folder / "life", 0o600)
        (folder / "gpus.json").write_text(json.dumps({"driver": self.machine.driver, "gpus": gpu_rows(self.machine)}))
        self._host_key()
        path = [str(folder / "bin"), str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]
        environment = {
            "PATH": os.pathsep.join(path),
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "GCE_METADATA_HOST": self.metadata.host,
            **self._roots,
        }
        about = {"environment": environment, "metadata": self.metadata.host, "grace_s": self._grace_s}
        (folder / "machine.json").touch(mode=0o600)
        (folder / "machine.json").write_text(json.dumps(about | {"token": self._token}))

    def _host_key(self) -> None:
        """Create SSH's host key at the first boot, and publish it in guest attributes where they are enabled. Source:
        https://cloud.google.com/solutions/connecting-securely"""
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        path = self.folder / "host_key"
        if not path.exists():
            path.touch(mode=0o600)
            made = Ed25519PrivateKey.generate()
            path.write_bytes(made.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()))
        key = form.load_ssh_private_key(path.read_bytes(), None).public_key()
        kind, _, value = key.public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH).decode().partition(" ")
        self.metadata.put(f"instance/guest-attributes/hostkeys/{kind}", value)

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        assert process.stdin
        with self._lock:
            process.stdin.close()
        self._end()

    def _end(self) -> None:
        with self._lock:
            if self._over:
                return
            self._over = True
        self.metadata.close()

    @property
    def running(self) -> bool:
        return not self._over and (self._process is None or self._process.poll() is None)

    def stop(self, grace_s: float | None = None) -> None:
        if self._process is None:
            self._end()
        else:
            self._say(f"stop {self._grace_s if grace_s is None else grace_s}")

    def _say(self, line: str) -> None:
        assert self._process and self._process.stdin
        # With the lock, `_await` closes it before or after.
        with self._lock, suppress(BrokenPipeError, ValueError):  # it has ended already
            self._process.stdin.write(f"{line}\n".encode())

    def end(self) -> None:
        if self._process is not None:
            self._say("end")

    def kill(self) -> None:
        self.end()
        if self._process is not None:
            self._process.wait()
        self._end()

    def serial(self) -> str:
        return (self.folder / "serial.log").read_text(errors="replace")


def _executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o700)


# Plausible values: nothing here depends on them.
DRIVER, IDLE = "570.158.01", {"temperature.gpu": 34, "utilization.gpu": 0}


def gpu_rows(machine: Machine) -> list[dict[str, Any]]:
    """Return what nvidia-smi reports of each GPU, by the names of its --query-gpu. The name is the catalogue's."""
    kind, count = machine.gpu, machine.gpus
    if not kind and machine.machine_type:
        try:
            found = machine_type("gcp", machine.machine_type)
        except UnknownName:  # a type without an accelerator: the catalogue has few of them
            return []
        kind, count = found.accelerator, found.whole_accelerators
    if not kind or not accelerator(kind).is_nvidia_gpu:
        return []
    about = accelerator(kind)
    return [
        {
            "index": index,
            "name": f"NVIDIA {about.skypilot_name}",
            "uuid": f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{machine.key}/{machine.number}/{index}')}",
            "driver_version": DRIVER,
            "memory.total": int(about.memory_gib * 1024),
            **IDLE,
        }
        for index in range(count)
    ]


_ROOTS = {f"ACCEL_{name.upper()}_ROOT": name for name in ("storage", "logging", "secretmanager")}
_GRACE_S = float(os.environ.get("SANDBOX_GRACE_S", "30"))


class Guests:
    """Machines of a World, by key and number. `token(email)` returns that of a service account, `login(user)` the OS
    Login profile of a user name, or None."""

    def __init__(self, home: Path, url: str, token: Callable[[str], str], login: Callable[[str], Any]) -> None:
        self._folder, self._token, self._login = home / "machines", token, login
        self._roots = {name: f"{url}/{api}.googleapis.com/" for name, api in _ROOTS.items()}
        self._hosts: dict[tuple[str, int], Host] = {}
        self._lock = threading.Lock()

    def start(self, machine: Machine) -> None:
        """Boot: a metadata server of its own, then the startup script as a process group. A machine that was stopped
        boots again with its disk; what is left of the earlier boot ends at once."""
        place = (machine.key, machine.number)
        with self._lock:
            if before := self._hosts.pop(place, None):
                before.kill()
            folder = self._folder / machine.key / str(machine.number)
            self._hosts[place] = Host(machine, folder, self._token(machine.account), self._roots, _GRACE_S, self._login)

    def change(self, key: str, metadata: Mapping[str, str]) -> None:
        for host in self._of(key):
            host.metadata.change(metadata)

    def preempt(self, key: str, grace_s: float) -> None:
        """Set instance/preempted to TRUE, then `stop`, with SIGKILL after grace_s."""
        for host in self._of(key):
            host.metadata.preempt()
            host.stop(grace_s)

    def stop(self, key: str) -> None:
        """Shut down all hosts of the key, if any: shutdown-script, SIGTERM, SIGKILL after a grace period."""
        for host in self._of(key):
            host.stop()

    def running(self, key: str) -> bool:
        """Return whether a host of the key runs. One without a startup script runs until it is stopped."""
        return any(host.running for host in self._of(key))

    def attributes(self, key: str, number: int = 0) -> dict[str, dict[str, str]]:
        host = self._hosts.get((key, number))
        return {name: dict(rows) for name, rows in host.metadata.guest.items()} if host else {}

    def serial(self, key: str, number: int = 0) -> str:
        """Return what the scripts of the last boot printed."""
        host = self._hosts.get((key, number))
        return host.serial() if host else ""

    def ssh(self, project: str, zone: str, name: str) -> int:
        """Return the port of the SSH server of a running machine, booting it if need be; 0 where there is none."""
        place = f"/projects/{project}/"
        for host in list(self._hosts.values()):
            own = host.machine
            if (own.name, own.zone) == (name, zone) and place in f"/{own.key}" and host.running:
                return host.boot()
        return 0

    def close(self) -> None:
        with self._lock:
            for host in self._hosts.values():
                host.end()
            for host in self._hosts.values():
                host.kill()

    def _of(self, key: str) -> list[Host]:
        return [host for (own, _), host in list(self._hosts.items()) if own == key]
