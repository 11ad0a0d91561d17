"""Translation of the volumes that the steps of a Google Batch task see into mounts and disks of a job file. A job file
has a mount at one path for all steps. A script sees the VM itself, so a mount is there at its own path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from accel.rules.batch import runnables as google_batch_runnables

from ..backends.google_batch import nodes
from .google_batch_fields import GROUP, SPEC, BatchFields, Step
from .reading import Json

_OURS = ("rw", "async", "defaults", "implicit-dirs", "implicit_dirs")
"""Options that a mount of a job file has by itself."""
_SHM, _TMP = "/dev/shm", "/tmp"  # noqa: S108 - names of a document
_DRIVER = ("/var/lib/nvidia", "/usr/local/nvidia", "/dev/nvidia")


@dataclass(frozen=True)
class Volume:
    """Volume of the task at `host` on the VM. `device` is a disk's name."""

    path: str
    host: str
    source: str | None
    device: str | None
    read_only: bool


@dataclass(frozen=True)
class Storage:
    """Outcome of the volumes. `devices`: path of each disk, by its name; `replaced`: disks in whose place another
    source was chosen; `places`: each folder of the VM, and where a job sees it."""

    devices: dict[str, str] = field(default_factory=dict[str, str])
    replaced: set[str] = field(default_factory=set[str])
    places: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


@dataclass(frozen=True)
class _Bind:
    """Bind mount `/host:/inside:ro`, as docker run takes it."""

    text: str
    host: str
    inside: str
    read_only: bool
    others: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> _Bind:
        host, _, rest = text.partition(":")
        inside, _, mode = rest.partition(":")
        modes = [each for each in mode.split(",") if each]
        others = tuple(each for each in modes if each not in ("ro", "rw", "z", "Z"))
        return cls(text, host.rstrip("/") or "/", inside or host, "ro" in modes, others)


_Uses = dict[tuple[str, str], bool]
"""Uses of a volume: the folder below it and the path where it is seen, and whether it is read-only there."""


def mounts_of(given: BatchFields, found: Sequence[Step], chosen: Mapping[str, str], values: Json) -> Storage:
    storage = Storage()
    plain = {host.rstrip("/") or "/": source for host, source in chosen.items()}
    volumes = [_volume(given, path, plain, storage) for path in given.items(f"{SPEC}.volumes")]
    own = {volume.host for volume in volumes}
    volumes += [Volume("", host, source, None, False) for host, source in plain.items() if host not in own]
    for host, source in plain.items():
        given.report.findings(f"--mount {host}", google_batch_runnables.mount(source))
    by_host = {volume.host: volume for volume in volumes}
    uses: dict[str, _Uses] = {}
    for step in found:
        for bind in map(_Bind.of, step.volumes):
            at = given.name(f"{step.path}.container.volumes")
            volume = _at(bind.host, by_host)
            if volume is None:
                _host_bind(given, at, bind, step, list(by_host), alone=len(found) == 1)
            else:
                _use(given, at, bind, volume, uses.setdefault(volume.host, {}))
    # A container that lists no volumes has all of them, under their own paths.
    everywhere = any(each.kind == "script" or (each.kind == "container" and not each.volumes) for each in found)
    for volume in volumes:
        of = uses.setdefault(volume.host, {})
        if everywhere or not of:
            of.setdefault(("", volume.host), False)
        _mount(given, volume, of, values, storage)
    return storage


def _at(host: str, by_host: Mapping[str, Volume]) -> Volume | None:
    """Return the volume that contains a folder of the VM, or None."""
    while host not in by_host and host != "/":
        host = host.rpartition("/")[0] or "/"
        if not host.startswith("/"):
            return None
    return by_host.get(host)


def _use(given: BatchFields, at: str, bind: _Bind, volume: Volume, of: _Uses) -> None:
    if not volume.path:
        given.report.changed(at, volume.source, f"{volume.host} is mounted as chosen with --mount")
    if bind.others:
        given.report.changed(
            at, None, f"{bind.text}: a job file has read_only alone; {', '.join(bind.others)} is left out"
        )
    if not bind.inside.startswith("/"):
        given.report.refuse(at, f"{bind.text} is seen at no path that begins with /")
        return
    key = (bind.host[len(volume.host.rstrip("/")) :], bind.inside.rstrip("/") or "/")
    if of.get(key, bind.read_only) != bind.read_only:
        why = f"{bind.inside} is read-only in some steps alone; a mount is the same in all, so it can be written to"
        given.report.changed(at, "rw", why)
    of[key] = of.get(key, True) and bind.read_only


def _mount(given: BatchFields, volume: Volume, of: _Uses, values: Json, storage: Storage) -> None:
    at = given.name(f"{volume.path}.mountPath") if volume.path else f"--mount {volume.host}"
    seen = {mount["path"]: mount["source"] for mount in values.get("mounts", [])}
    for (below, path), read_only in of.items():
        storage.places.append((volume.host + below, path))
        if volume.source:
            source = f"{volume.source.rstrip('/')}{below}" if below else volume.source
            if seen.get(path, source) != source or path in storage.devices.values():
                given.report.refuse(at, f"is seen at {path}, as is {seen.get(path, 'a disk')}; use a path for each")
            elif path not in seen:
                made = {"source": source, "path": path}
                made |= {"read_only": True} if read_only or volume.read_only else {}
                values.setdefault("mounts", []).append(made)
        elif volume.device:
            if below:
                why = f"its folder {below[1:]} is seen at {path}, and a job file mounts a disk whole, at one path"
                given.report.refuse(at, why)
            elif storage.devices.setdefault(volume.device, path) != path:
                other = storage.devices[volume.device]
                given.report.refuse(at, f"is seen at {other} and at {path}, and a job file has a disk at one path")
            elif path in seen:
                given.report.refuse(at, f"is seen at {path}, as is {seen[path]}; use a path for each")


def _host_bind(given: BatchFields, at: str, bind: _Bind, step: Step, mounted: Sequence[str], *, alone: bool) -> None:
    """Translate a bind of a VM's folder that no volume fills."""
    same = bind.inside.rstrip("/") == bind.host
    if bind.host == nodes.HOSTS_FILE and not given.flag(f"{GROUP}.requireHostsFile"):
        given.report.changed(at, None, f"{bind.text}: Batch writes that file with requireHostsFile alone")
    elif bind.host in nodes.SSH_FOLDERS and not given.flag(f"{GROUP}.permissiveSsh"):
        given.report.refuse(at, f"{bind.text}: a job file has it with permissive_ssh alone; set permissiveSsh: true")
    elif bind.host in (nodes.HOSTS_FILE, *nodes.SSH_FOLDERS):
        if not same:
            given.report.refuse(at, f"{bind.text}: a job file has it at {bind.host} alone")
    elif bind.host.startswith(_DRIVER):
        given.report.changed(at, None, f"{bind.text}: Batch gives containers the GPUs and their driver by itself")
    elif bind.host == _SHM and same:
        why = f"{bind.text}: the VM's shared memory is docker_options --ipc=host"
        given.report.changed(at, "--ipc=host", why)
        if "--ipc" not in (step.options or ""):
            step.options = f"{step.options} --ipc=host" if step.options else "--ipc=host"
    elif bind.host == _TMP and same and alone:
        given.report.changed(at, None, f"{bind.text}: the one container of the task has a {_TMP} of its own")
    else:
        found = google_batch_runnables.binds([bind.text], mounted)
        given.report.findings(at, found)
        if not found:
            why = f"{bind.text} is a folder of the VM itself, which a job file does not name"
            given.report.refuse(at, f"{why}; use a bucket or a disk (disks)", google_batch_runnables.BIND.id)
        given.report.note(at, f"--mount {bind.host}=gs://<bucket> says what is there")


def _volume(given: BatchFields, path: str, chosen: Mapping[str, str], storage: Storage) -> Volume:
    written = (given.text(f"{path}.mountPath") or "").rstrip("/")
    host = written or "/"
    given.keep(f"{path}.mountPath", "mounts")
    if not written.startswith("/"):
        given.report.refuse(given.name(f"{path}.mountPath"), "must be a path that begins with /")
    kinds = [kind for kind in ("gcs", "nfs", "deviceName") if given.is_written(f"{path}.{kind}")]
    device = given.text(f"{path}.deviceName")
    if host in chosen:
        if device:
            storage.replaced.add(device)
        for kind in (*kinds, "mountOptions"):
            given.left_out(f"{path}.{kind}", f"{chosen[host]} was chosen with --mount")
        return Volume(path, host, chosen[host], None, False)
    if len(kinds) != 1:
        has = " and ".join(kinds) or "none"
        given.refuse(path, f"must have one of gcs, nfs and deviceName, has {has}")
    read_only, folder = _options(given, f"{path}.mountOptions", disk=kinds == ["deviceName"])
    source, at = None, f"{path}.{'gcs.remotePath' if 'gcs' in kinds else 'nfs.server'}"
    if "gcs" in kinds:
        if bucket := given.text(f"{path}.gcs.remotePath"):
            source = f"gs://{bucket.removeprefix('gs://').rstrip('/')}{folder}"
        given.keep(f"{path}.gcs.remotePath", "mounts")
    elif "nfs" in kinds:
        if server := given.text(f"{path}.nfs.server"):
            source = f"nfs://{server}/{(given.text(f'{path}.nfs.remotePath') or '').lstrip('/')}"
        given.keep(f"{path}.nfs.server", "mounts")
        given.keep(f"{path}.nfs.remotePath", "mounts")
    else:
        given.keep(f"{path}.deviceName", "google_batch.disks")
    if source and not any(given.report.stopped_by(given.name(each)) for each in (at, f"{path}.nfs.remotePath")):
        given.report.findings(given.name(at), google_batch_runnables.mount(source))
    elif not source and kinds and kinds != ["deviceName"]:
        given.report.refuse(given.name(at), "is missing: a volume has something to mount")
    return Volume(path, host, source, device if kinds == ["deviceName"] else None, read_only)


def _options(given: BatchFields, path: str, *, disk: bool) -> tuple[bool, str]:
    """Return whether a volume is read-only, and the folder of its bucket if that alone is mounted."""
    read_only, folder = False, ""
    others: list[str] = []
    words = iter([word for text in given.texts(path) for word in text.split()])
    for word in words:
        name, equals, value = word.partition("=")
        if name.lstrip("-") == "only-dir":
            folder = f"/{(value if equals else next(words, '')).strip('/')}"
            continue
        if re.fullmatch(r"--?o", name):
            word = value if equals else next(words, "")
        elif re.match(r"-o\w", word):
            word = word[2:]
        for option in word.split(","):
            read_only = read_only or option == "ro"
            others += [option] if option and option != "ro" and option.lstrip("-") not in _OURS else []
    given.keep(path, "mounts")
    name = given.name(path)
    if others:
        given.report.changed(name, None, f"a job file has read_only alone; {', '.join(others)} are left out")
    if folder:
        given.report.changed(name, folder, f"the folder {folder[1:]} of the bucket is part of the mount's source")
    if read_only and disk:
        given.report.changed(name, None, "a new disk has nothing to read, so that it can be written to")
    return read_only, folder
