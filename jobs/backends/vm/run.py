"""Commands on the machines of a job: in its container where it has one, else on the machine itself."""

import threading
from collections.abc import Sequence

from accel.clouds.google.api import Google
from accel.clouds.google.rest import line
from accel.diagnostics.errors import CloudRefused

from ..base import Places, Streams
from . import labels, oslogin
from .hosts import host
from .record import Record
from .ssh import Connection

SUDO = "docker needs roles/compute.osAdminLogin, which allows sudo; --host runs the command on the machine itself"
_TELLS_ITS_END = '"$@"; exit $?'
"""Of sh: what a signal ended exits with 128 and its number, where sshd would tell no code."""


class Shells:
    """Of one client: it signs in once for all machines of a project."""

    def __init__(self, google: Google) -> None:
        self._google = google
        self._lock = threading.Lock()
        self._logins: dict[tuple[str, str], oslogin.Login] = {}

    def run(self, record: Record, number: int, command: Sequence[str], streams: Streams, *, outside: bool) -> int:
        """The command's exit code. `outside`: on the machine, whatever runs there.

        Raises BadInput, NotFound, NoCredentials, CloudRefused and CloudSilent.
        """
        found = host(self._google, record, number)
        connection = Connection(self._google, found, self._login(found.project, found.zone.rpartition("-")[0]))
        try:
            if record.body["job"]["image"] and not outside:
                name = f"{labels.attempt_name(record.name, record.last.number)}-{number}"
                if _runs(connection, name):
                    return connection.run(_inside(name, command, streams), streams)
                note = f"accel-jobs: container {name} does not run; this is the machine itself\n"
                streams.write(True, note.encode())
            return connection.run(["sh", "-c", _TELLS_ITS_END, "sh", *command], streams)
        finally:
            connection.close()

    def _login(self, project: str, region: str) -> oslogin.Login:
        with self._lock:
            if (project, region) not in self._logins:
                self._logins[project, region] = oslogin.login(self._google, project, region)
            return self._logins[project, region]


def places(record: Record) -> Places:
    """Where the job runs, and what accelerators each machine has."""
    hosts = record.hosts
    chips = int(record.body.get("chips") or 0) if record.kind == "tpu-vm" else 0
    return Places(
        word="node" if hosts > 1 else None,
        running=tuple(range(hosts)),
        gpus=int(record.body.get("gpus") or 0),
        chips=chips // hosts,
    )


def _runs(connection: Connection, name: str) -> bool:
    """Whether the container is there and runs. Raises CloudRefused where docker does not tell."""
    said = {False: bytearray(), True: bytearray()}
    listed = ["sudo", "-n", "docker", "ps", "--quiet", "--filter", f"name=^{name}$"]
    code = connection.run(listed, Streams(lambda is_error, data: said[is_error].extend(data)))
    if code:
        why = line(said[True].decode(errors="replace")) or f"exit code {code}"
        raise CloudRefused(f"{name}: whether its container runs is not told: {why}", SUDO)
    return bool(said[False].strip())


def _inside(name: str, command: Sequence[str], streams: Streams) -> list[str]:
    options = [*(["--interactive"] if streams.read else []), *(["--tty"] if streams.size else [])]
    return ["sudo", "-n", "docker", "exec", *options, name, *command]
