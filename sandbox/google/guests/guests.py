"""All machines of a World."""

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .host import Host
from .machine import Machine

_ROOTS = {f"ACCEL_{name.upper()}_ROOT": name for name in ("storage", "logging", "secretmanager")}
_GRACE_S = float(os.environ.get("SANDBOX_GRACE_S", "30"))


class Guests:
    """All machines of a World, by key and number. `token(email)`: that of a service account. `login(user)`: the OS
    Login profile of a user name, or None."""

    def __init__(self, home: Path, url: str, token: Callable[[str], str], login: Callable[[str], Any]) -> None:
        self._folder, self._token, self._login = home / "machines", token, login
        self._roots = {name: f"{url}/{api}.googleapis.com/" for name, api in _ROOTS.items()}
        self._hosts: dict[tuple[str, int], Host] = {}
        self._lock = threading.Lock()

    def start(self, machine: Machine) -> None:
        """Boot: a metadata server of its own, then the startup script as a process group.

        Again after a stop, with the disk that it had; what is left of the boot before ends at once.
        """
        place = (machine.key, machine.number)
        with self._lock:
            if before := self._hosts.pop(place, None):
                before.kill()
            folder = self._folder / machine.key / str(machine.number)
            self._hosts[place] = Host(machine, folder, self._token(machine.account), self._roots, _GRACE_S, self._login)

    def change(self, key: str, metadata: Mapping[str, str]) -> None:
        """Give all hosts of the key other metadata, as setMetadata does."""
        for host in self._of(key):
            host.metadata.change(metadata)

    def preempt(self, key: str, grace_s: float) -> None:
        """instance/preempted becomes TRUE, then as `stop`, with SIGKILL after grace_s."""
        for host in self._of(key):
            host.metadata.preempt()
            host.stop(grace_s)

    def stop(self, key: str) -> None:
        """Shut down all hosts of the key: shutdown-script, SIGTERM, SIGKILL after a grace. Unknown: nothing."""
        for host in self._of(key):
            host.stop()

    def running(self, key: str) -> bool:
        """Whether a host of the key runs; one without a startup script does until it is stopped."""
        return any(host.running for host in self._of(key))

    def attributes(self, key: str, number: int = 0) -> dict[str, dict[str, str]]:
        """Guest attributes by namespace and key."""
        host = self._hosts.get((key, number))
        return {name: dict(rows) for name, rows in host.metadata.guest.items()} if host else {}

    def serial(self, key: str, number: int = 0) -> str:
        """What the scripts of its last boot printed."""
        host = self._hosts.get((key, number))
        return host.serial() if host else ""

    def ssh(self, project: str, zone: str, name: str) -> int:
        """The port of the SSH server of a machine that runs, booting it if need be; 0: there is none."""
        place = f"/projects/{project}/"
        for host in list(self._hosts.values()):
            own = host.machine
            if (own.name, own.zone) == (name, zone) and place in f"/{own.key}" and host.running:
                return host.boot()
        return 0

    def close(self) -> None:
        """End every machine at once, and wait until none of their processes is left."""
        with self._lock:
            for host in self._hosts.values():
                host.end()
            for host in self._hosts.values():
                host.kill()

    def _of(self, key: str) -> list[Host]:
        return [host for (own, _), host in list(self._hosts.items()) if own == key]
