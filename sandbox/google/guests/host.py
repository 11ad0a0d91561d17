"""One machine of Guests: its folder, its metadata server, and the process that is its life (boot.py)."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .gpus import gpu_rows
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
    """A machine from start to stop. `roots`: the variables that lead what runs on it to the sandbox's APIs."""

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
        """The machine's folder; its disk is that of the boot before where this is the same machine."""
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
        """Start its process unless it runs; returns the port of its SSH server, 0 where the machine is gone."""
        with self._lock:
            if self._process is None and not self._over:
                self.metadata.serve()
                self._write()
                with socket.create_server(("127.0.0.1", 0)) as listener:
                    self._port = listener.getsockname()[1]
                    with (self.folder / "boot.log").open("wb") as log:
                        boot = [sys.executable, "-m", "sandbox.google.guests.boot", str(self.folder)]
                        # The pipe: everything on the machine ends when this server is gone, however it went.
                        self._process = subprocess.Popen(
                            [*boot, str(listener.fileno())], pass_fds=[listener.fileno()], bufsize=0,
                            stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=PROJECT, start_new_session=True,
                        )  # fmt: skip
                threading.Thread(target=self._await, args=(self._process,), daemon=True).start()
            return self._port if self.running else 0

    def _write(self) -> None:
        """What boot.py and the stand-ins read."""
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
        """SSH's, made at the first boot and told in guest attributes where they are enabled. Source:
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
        """Shut down; returns at once."""
        if self._process is None:
            self._end()
        else:
            self._say(f"stop {self._grace_s if grace_s is None else grace_s}")

    def _say(self, line: str) -> None:
        assert self._process and self._process.stdin
        try:
            self._process.stdin.write(f"{line}\n".encode())
        except (BrokenPipeError, ValueError):  # it is over already
            return

    def end(self) -> None:
        """End everything; returns at once."""
        if self._process is not None:
            self._say("end")

    def kill(self) -> None:
        """End everything, and wait for that."""
        self.end()
        if self._process is not None:
            self._process.wait()
        self._end()

    def serial(self) -> str:
        return (self.folder / "serial.log").read_text(errors="replace")


def _executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o700)
