"""Commands on the machines of a job: in its container if it has one, else on the machine itself.

Each machine is reached over one SSH connection; paramiko is imported with the first one. Users sign in by their own OS
Login profile and a key pair that it knows: gcloud's (~/.ssh/google_compute_engine) if there is one, else our own,
created on first use. A profile that already has the key stays unchanged; else it gets the key with an expiry. Source:
https://docs.cloud.google.com/compute/docs/oslogin/rest/v1/users/importSshPublicKey

A machine's guest agent writes its host keys to guest attributes when it boots, from which gcloud takes them too:
googlecloudsdk/command_lib/compute/ssh_utils.py (GetHostKeysFromGuestAttributes). The name of a TPU host is also there,
and nowhere else: googlecloudsdk/command_lib/compute/tpus/tpu_vm/ssh.py.
"""

import logging
import os
import queue
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

from accel import folders
from accel.clouds.google import iap
from accel.clouds.google.account import email
from accel.clouds.google.api import Google
from accel.clouds.google.rest import line, path_segment
from accel.clouds.timeouts import pause
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, NotFound
from accel.json_values import mapping, object_at, objects_at

from ..base import Places, Streams
from . import labels
from .record import MADE, Attempt, Record

KEEPALIVE_S = 30
"""Seconds between two keepalives: the relay closes a connection that is silent for an hour (recalled, not read on a
page), and proxies do so much sooner."""
CHUNK = 32_768
WAITING = 64
"""Chunks that may wait for a slow reader. Beyond that the machine waits, too."""
FRESH = 2
"""Factor for attempts while machines may not know the key yet: users report half a minute, no page does."""
ROLES = "roles/compute.osLogin or roles/compute.osAdminLogin, and roles/iam.serviceAccountUser on the machine's account"
"""Roles needed to sign in. Source: https://github.com/GoogleCloudPlatform/iap-desktop/wiki/Roles"""
_KEYS = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
"""Algorithms that prove a type of host key, if they have other names."""


@dataclass(frozen=True)
class Host:
    """Machine. `mark` is unique, even among later machines of the same name; `keys` are base64 by type, none if the
    machine has reported none."""

    project: str
    zone: str
    instance: str
    mark: str
    keys: Mapping[str, str]


@dataclass(frozen=True)
class Login:
    """User and key for signing in. `fresh`: the profile got the key recently, and machines may not know it yet."""

    user: str
    key: Any
    fresh: bool


class Connection:
    """Signed-in connection to one machine. The caller closes it."""

    def __init__(self, google: Google, host: Host, login: Login) -> None:
        """Connect and sign in. Raise the errors of iap.connect, and CloudRefused if the machine does not let the user
        in, or has an unexpected host key."""
        self._what = f"{host.instance} in {host.zone}"
        attempts = google.timing.attempts * FRESH if login.fresh else 1
        for attempt in range(attempts):
            self._relay = iap.connect(google, host.project, host.zone, host.instance)
            self._transport: Any = None
            let_in = False
            try:
                let_in = self._signed_in(google, host, login)
            finally:
                if not let_in:
                    self.close()
            if let_in:
                return
            if attempt + 1 < attempts:
                pause(google.timing, attempt)
        raise CloudRefused(f"{self._what}: SSH does not let {login.user} in", f"it takes {ROLES}")

    def _signed_in(self, google: Google, host: Host, login: Login) -> bool:
        paramiko = _ssh_library()
        self._transport = transport = paramiko.Transport(self._relay)
        transport.daemon = True
        transport.banner_timeout = google.timing.read_s
        options = transport.get_security_options()
        proofs = [proof for kind in host.keys for proof in _KEYS.get(kind, (kind,))]
        # Only the types that the machine has reported, if they are known here.
        options.key_types = [kind for kind in options.key_types if kind in proofs] or options.key_types
        try:
            transport.start_client(timeout=google.timing.read_s)
            self._trust(host, transport.get_remote_server_key())
            transport.auth_publickey(login.user, login.key)
        except paramiko.AuthenticationException:
            return False
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise self._cut(f"no SSH connection: {line(error) or 'it was closed'}") from error
        transport.set_keepalive(KEEPALIVE_S)
        return True

    def _trust(self, host: Host, key: Any) -> None:
        """Accept a host key that the machine has reported; if it has reported none, the one that it had first."""
        name, value = str(key.get_name()), str(key.get_base64())
        if host.keys:
            if host.keys.get(name) != value:
                raise CloudRefused(
                    f"{self._what}: its SSH host key is none of those in its guest attributes",
                    "somebody else may be answering, or its keys were changed after it started",
                )
            return
        place = folders.state() / "ssh" / "hosts" / f"{host.project}.{host.mark}"
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The first of several processes writes it.
        with suppress(FileExistsError), place.open("x") as file:
            file.write(f"{name} {value}\n")
        if place.read_text().split() != [name, value]:
            raise CloudRefused(
                f"{self._what}: its SSH host key is not the one that it had before",
                f"somebody else may be answering; if you know that it was changed, delete {place}",
            )

    def run(self, command: Sequence[str], streams: Streams) -> int:
        """Return the exit code. Raise CloudSilent if it is unknown, for example after a broken connection."""
        paramiko = _ssh_library()
        try:
            channel = self._transport.open_session()
            if streams.size:
                channel.get_pty(os.environ.get("TERM") or "xterm", *streams.size)
            channel.exec_command(shlex.join(command))
            if not streams.read:
                channel.shutdown_write()
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise self._cut(f"the connection broke: {line(error) or 'it was closed'}") from error
        if streams.read:
            threading.Thread(target=_feed, args=(channel, streams.read), daemon=True).start()
        _hand_on(channel, streams)
        code = int(channel.recv_exit_status())
        if code < 0 and not self._transport.is_active():
            raise self._cut("the connection ended before the command's end was told")
        # A negative code means that a signal ended the command. 255 is the code of OpenSSH's client.
        return code if code >= 0 else 255

    def _cut(self, message: str) -> CloudSilent:
        if self._relay.why is not None:
            return CloudSilent(self._relay.why.message, self._relay.why.hint)
        return CloudSilent(f"{self._what}: {message}", iap.GONE)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self._relay.close()


SUDO = "docker needs roles/compute.osAdminLogin, which allows sudo; --host runs the command on the machine itself"
_TELLS_ITS_END = '"$@"; exit $?'
"""Shell command that exits with 128 and the number of a signal, where sshd would report no code."""


class Shells:
    """SSH access of one client, which signs in once for all machines of a project."""

    def __init__(self, google: Google) -> None:
        self._google = google
        self._lock = threading.Lock()
        self._logins: dict[tuple[str, str], Login] = {}

    def run(self, record: Record, number: int, command: Sequence[str], streams: Streams, *, outside: bool) -> int:
        """Return the exit code. `outside`: on the machine, whatever runs there. Raise BadInput, NotFound,
        NoCredentials, CloudRefused and CloudSilent."""
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

    def _login(self, project: str, region: str) -> Login:
        with self._lock:
            if (project, region) not in self._logins:
                self._logins[project, region] = login(self._google, project, region)
            return self._logins[project, region]


_HOST_KEYS = "hostkeys"
"""Namespace of the guest attributes."""
_NO_NAME = (
    "the organisation policy compute.disableGuestAttributesAccess must not be enforced; a host that starts has none yet"
)


def host(google: Google, record: Record, number: int) -> Host:
    """Return a machine of the last attempt. Raise BadInput unless it runs, NotFound if it does not exist (any more)."""
    attempt = record.last
    if record.ended or attempt.state != MADE:
        raise BadInput(f"{record.name}: has no machines now", "`accel-jobs get` shows the job's state")
    if not 0 <= number < record.hosts:
        has = f"nodes 0 to {record.hosts - 1}" if record.hosts > 1 else "one node"
        raise BadInput(f"node: {record.name} has {has}, not {number}")
    find = _worker if record.kind == "tpu-vm" else _instance
    try:
        return find(google, record, attempt, number)
    except NotFound as missing:
        raise NotFound(f"{attempt.name} in {attempt.zone}: there is no machine {number}", iap.GONE) from missing


def _instance(google: Google, record: Record, attempt: Attempt, number: int) -> Host:
    project = str(record.body["project"])
    name = f"{attempt.name}-{number}" if record.hosts > 1 else attempt.name
    path = f"projects/{path_segment(project)}/zones/{path_segment(attempt.zone)}/instances/{path_segment(name)}"
    found = google.get("compute", path)
    _check_state(f"{name} in {attempt.zone}", found.get("status"), "RUNNING")
    told: list[dict[str, Any]] = []
    # The machine reported none, or the caller may not read them.
    with suppress(NotFound, CloudRefused):
        answer = google.get("compute", f"{path}/getGuestAttributes", queryPath=f"{_HOST_KEYS}/")
        told = objects_at(object_at(answer, "queryValue"), "items")
    return Host(project, attempt.zone, name, f"compute.{found.get('id')}", _host_keys(told))


def _worker(google: Google, record: Record, attempt: Attempt, number: int) -> Host:
    project, slices = str(record.body["project"]), int(record.body["machine"]["slices"])
    slice_number, worker = divmod(number, record.hosts // slices)
    name = attempt.name if slices == 1 else f"{attempt.name}-{slice_number}"
    path = f"v2/projects/{path_segment(project)}/locations/{path_segment(attempt.zone)}/nodes/{path_segment(name)}"
    node = google.get("tpu", path)
    _check_state(f"TPU {name} in {attempt.zone}", node.get("state"), "READY")
    answer = google.post("tpu", f"{path}:getGuestAttributes", {"workerIds": [str(worker)]}, repeat=True)
    told = [
        item
        for each in objects_at(answer, "guestAttributes")
        for item in objects_at(object_at(each, "queryValue"), "items")
    ]
    # gcloud requests no namespace, so its code does not show which one the name is in.
    hostname = next((str(item.get("value")) for item in told if item.get("key") == "hostname"), "")
    if not hostname:
        raise CloudRefused(f"TPU {name} in {attempt.zone}: host {worker} has not told its name", _NO_NAME)
    return Host(project, attempt.zone, hostname, f"tpu.{node.get('id')}-{worker}", _host_keys(told))


def _check_state(what: str, state: object, wanted: str) -> None:
    if state != wanted:
        raise BadInput(f"{what}: is {state}, not {wanted}, so nothing can be run in it")


def _host_keys(told: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    kept = [item for item in told if item.get("namespace") == _HOST_KEYS and item.get("key") != "hostname"]
    return {str(item.get("key")): str(item.get("value")) for item in kept}


def places(record: Record) -> Places:
    hosts = record.hosts
    chips = int(record.body.get("chips") or 0) if record.kind == "tpu-vm" else 0
    return Places(
        word="node" if hosts > 1 else None,
        running=tuple(range(hosts)),
        gpus=int(record.body.get("gpus") or 0),
        chips=chips // hosts,
    )


_OS_LOGIN = "oslogin"
_KEPT_S = 12 * 3600
"""Time for which a profile keeps the key that it gets."""
_LEFT_S = 600
"""Remaining time below which the key is submitted again."""
_LATELY_S = 120
_COMMENT = "accel-jobs"


def login(google: Google, project: str, region: str) -> Login:
    """Return the user's name and key on machines of the project. Raise CloudRefused for a profile that may not be read
    or changed, or has no POSIX account; NoCredentials."""
    key = key_pair()
    user = f"v1/users/{path_segment(email())}"
    profile: dict[str, Any] = {}
    with suppress(NotFound):
        profile = google.get(_OS_LOGIN, f"{user}/loginProfile", projectId=project)
    name, left_s = _user_name(profile), _left_s(profile, key.get_base64())
    if not name or left_s < _LEFT_S:
        body = {
            "key": f"{key.get_name()} {key.get_base64()} {_COMMENT}",
            "expirationTimeUsec": str(int((time.time() + _KEPT_S) * 1e6)),
        }
        try:
            # With a region, the answer comes when machines there can see the key.
            answer = google.post(
                _OS_LOGIN, f"{user}:importSshPublicKey", body, repeat=True, projectId=project, regions=[region]
            )
        except NotFound as missing:
            raise CloudRefused(missing.message) from missing
        name, left_s = _user_name(object_at(answer, "loginProfile")), _KEPT_S
    if not name:
        raise CloudRefused(
            f"OS Login: the profile of {email()} has no POSIX account for {project}",
            "an administrator of your organisation can give it one",
        )
    return Login(name, key, fresh=_KEPT_S - _LATELY_S < left_s < inf)


def key_pair() -> Any:
    """Return a private key of paramiko's. Raise CloudSilent if the key file can be neither read nor created."""
    paramiko = _ssh_library()
    gclouds = Path.home() / ".ssh" / "google_compute_engine"
    # A key with a passphrase, or of a kind that is no longer supported, is of no use here.
    with suppress(OSError, ValueError, paramiko.SSHException):
        return paramiko.PKey.from_path(gclouds)
    own = folders.state() / "ssh" / "key"
    try:
        if not own.exists():
            _make_key(own)
        return paramiko.PKey.from_path(own)
    except (OSError, ValueError, paramiko.SSHException) as error:
        raise CloudSilent(f"{own}: {error}", "delete it, and another is made") from error


def _user_name(profile: dict[str, Any]) -> str:
    """Return the name of the primary account, or of the only one."""
    accounts = sorted(objects_at(profile, "posixAccounts"), key=lambda each: not each.get("primary"))
    return str(accounts[0].get("username") or "") if accounts else ""


def _left_s(profile: dict[str, Any], key: str) -> float:
    """Return the seconds that the profile still keeps the key: 0 for a missing key, infinity without an expiry."""
    kept: Iterable[Any] = object_at(profile, "sshPublicKeys").values()
    ours = (each for each in map(mapping, kept) if each and key in str(each.get("key", "")).split())
    return max((float(each.get("expirationTimeUsec") or inf) / 1e6 - time.time() for each in ours), default=0)


def _make_key(path: Path) -> None:
    """Create a key, unless another process has created one meanwhile."""
    form = import_module("cryptography.hazmat.primitives.serialization")
    ed25519 = import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_bytes(
        ed25519.Ed25519PrivateKey.generate().private_bytes(
            form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()
        )
    )
    with suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()


def _ssh_library() -> Any:
    """Return paramiko with its own log silenced: failures are raised as errors."""
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    return import_module("paramiko")


def _runs(connection: Connection, name: str) -> bool:
    """Return whether the container exists and runs. Raise CloudRefused if docker cannot be asked."""
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


def _hand_on(channel: Any, streams: Streams) -> None:
    """Write the command's output as it arrives, until both of its streams have ended."""
    came: queue.Queue[tuple[bool, bytes]] = queue.Queue(WAITING)

    def hear(is_error: bool, receive: Callable[[int], bytes]) -> None:
        data = b"-"
        while data:
            data = receive(CHUNK)
            came.put((is_error, data))

    for is_error, receive in ((False, channel.recv), (True, channel.recv_stderr)):
        threading.Thread(target=hear, args=(is_error, receive), daemon=True).start()
    open_streams = 2
    while open_streams:
        is_error, data = came.get()
        if data:
            streams.write(is_error, data)
        else:
            open_streams -= 1


def _feed(channel: Any, read: Callable[[int], bytes]) -> None:
    # An error means that the command has ended, which the other thread reports.
    with suppress(OSError, EOFError):
        while chunk := read(CHUNK):
            channel.sendall(chunk)
        channel.shutdown_write()
