"""What the tasks of a Google Batch job run and have mounted, in the terms of a job file."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accel.contract.variables import NODE_COUNT
from accel.rules.batch import runnables as google_batch_runnables
from accel.rules.jobs import imports

from ..backends.google_batch import nodes, runnables
from .fields import RequestFields
from .images import image_of
from .reading import Json

SPEC = "taskGroups[0].taskSpec"
_SIZES = {"": 1 / 2**20, "b": 1 / 2**20, "k": 1 / 1024, "m": 1, "g": 1024}


@dataclass
class Step:
    """A runnable. `kind`: container, script or barrier."""

    path: str
    kind: str
    image: str | None = None
    entrypoint: str | None = None
    command: list[str] = field(default_factory=list[str])
    options: str | None = None
    shm_mib: int | None = None
    volumes: list[str] = field(default_factory=list[str])
    text: str = ""
    more: Json = field(default_factory=dict[str, Any])

    @property
    def words(self) -> list[str]:
        """The whole argv, where it is known."""
        return [self.entrypoint, *self.command] if self.entrypoint else []


@dataclass(frozen=True)
class Volume:
    """A volume of the task at `host` on the VM; `device` is a disk's name."""

    path: str
    host: str
    source: str | None
    device: str | None
    read_only: bool


def steps(given: RequestFields, values: Json, block: Json, image: str | None, mounts: Mapping[str, str]) -> bool:
    """Puts what is run and mounted into the job; whether its tasks are nodes that work together."""
    found = [_step(given, path, image) for path in given.items(f"{SPEC}.runnables")]
    kinds = [each.kind for each in found]
    behind = [bool(each.more.get("background")) for each in found]
    if not found:
        given.report.refuse(f"{SPEC}.runnables", "is missing: a task runs something")
        return False
    given.report.findings(f"{SPEC}.runnables", google_batch_runnables.steps(kinds, behind))
    several = f"{SPEC}.environment.variables.{NODE_COUNT}" in given.values
    if several:
        found = [_unwrapped(each) for each in (found[1:-1] if _between(found) else found)]
    volumes = [_volume(given, path) for path in given.items(f"{SPEC}.volumes")]
    _mounts(given, found, volumes, mounts, values, block)
    if len(found) == 1 and not found[0].more and (found[0].kind == "container" or _plain_script(found[0])):
        _alone(found[0], values, block)
    else:
        block["runnables"] = [_of_list(each) for each in found]
    shm = [each.shm_mib for each in found if each.shm_mib]
    if shm:
        values["shm_mib"] = shm[0]
    return several


def _between(found: Sequence[Step]) -> bool:
    """Whether the steps are between the barriers that backends/google_batch writes for a job of several nodes."""
    return len(found) > 2 and found[0].text == runnables.READY and found[-1].text == runnables.DONE


def _unwrapped(step: Step) -> Step:
    """Without what a node is told first."""
    wrapper = nodes.command([])
    if step.words[: len(wrapper)] == wrapper and len(step.words) > len(wrapper):
        step.entrypoint, *step.command = step.words[len(wrapper) :]
    step.text = step.text.replace(nodes.PRELUDE, "", 1)
    return step


def _step(given: RequestFields, path: str, image: str | None) -> Step:
    kinds = [kind for kind in ("container", "script", "barrier") if given.has(f"{path}.{kind}")]
    if len(kinds) != 1 and f"{path}.barrier" not in given.names:
        given.report.refuse(path, "must have one of container, script and barrier")
    step = Step(path, kinds[0] if kinds else "barrier")
    if step.kind == "container":
        _container(given, f"{path}.container", step, image)
    elif step.kind == "script":
        step.text = given.text(f"{path}.script.text") or ""
        given.keep(f"{path}.script.text")
        if file := given.text(f"{path}.script.path"):
            step.text = f"exec {shlex.quote(file)}\n"
            given.report.changed(given.name(f"{path}.script.path"), step.text.strip(), "a job file has scripts as text")
    else:
        step.text = given.text(f"{path}.barrier.name") or "barrier"
        given.keep(f"{path}.barrier")
    for name, to in (
        ("background", "background"),
        ("alwaysRun", "always_run"),
        ("ignoreExitStatus", "ignore_exit_status"),
    ):
        if given.flag(f"{path}.{name}"):
            step.more[to] = True
        given.keep(f"{path}.{name}")
    if seconds := given.seconds(f"{path}.timeout"):
        step.more["timeout_s"] = seconds
    given.keep(f"{path}.timeout")
    if env := given.mapping(f"{path}.environment.variables"):
        step.more["env"] = env
    given.keep(f"{path}.environment.variables")
    for name in ("displayName", "labels"):
        given.left_out(f"{path}.{name}", "a job file has no names for its steps")
    return step


def _container(given: RequestFields, path: str, step: Step, image: str | None) -> None:
    own = given.text(f"{path}.imageUri")
    if image:
        given.report.changed(given.name(f"{path}.imageUri"), image, "was chosen with --image")
        step.image = image
    elif own:
        step.image = image_of(given, f"{path}.imageUri", own)
    step.entrypoint, step.command = given.text(f"{path}.entrypoint"), given.texts(f"{path}.commands")
    for name in ("entrypoint", "commands", "volumes", "options"):
        given.keep(f"{path}.{name}")
    commands = given.name(f"{path}.commands")
    for finding in google_batch_runnables.entry_point(step.entrypoint, step.command):
        given.report.findings(commands, [finding])
        step.entrypoint, step.command = step.command[0], step.command[1:]
    given.report.findings(commands, imports.python(step.words))
    if step.words:
        given.report.findings(commands, google_batch_runnables.command(step.words))
        step.entrypoint, *step.command = google_batch_runnables.expanded(step.words)
    step.volumes = given.texts(f"{path}.volumes")
    if options := given.text(f"{path}.options"):
        _options(given, f"{path}.options", options, step)


def _options(given: RequestFields, path: str, options: str, step: Step) -> None:
    """Docker's options; shared memory has a field of its own."""
    name = given.name(path)
    size = re.search(r"(?:^|\s)--shm-size[= ](\d+)([bkmgBKMG]?)(?=\s|$)", options)
    if size:
        step.shm_mib = max(int(int(size[1]) * _SIZES[size[2].lower()]), 1)
        options = (options[: size.start()] + options[size.end() :]).strip()
        given.report.changed(name, options or None, f"the size of shared memory is shm_mib: {step.shm_mib}")
    if given.flag("taskGroups[0].requireHostsFile"):
        options = re.sub(r"(?:^|\s)--network=host(?=\s|$)", "", options).strip()
    step.options = options or None
    for finding in google_batch_runnables.docker_options(step.options):
        given.report.findings(name, [finding])
        if finding.severity == "translate":
            step.options = str(finding.replacement) if finding.replacement else None


def _volume(given: RequestFields, path: str) -> Volume:
    host = given.text(f"{path}.mountPath") or ""
    given.keep(f"{path}.mountPath")
    source = device = None
    if bucket := given.text(f"{path}.gcs.remotePath"):
        source = f"gs://{bucket.removeprefix('gs://').rstrip('/')}"
        given.keep(f"{path}.gcs")
    elif server := given.text(f"{path}.nfs.server"):
        source = f"nfs://{server}/{(given.text(f'{path}.nfs.remotePath') or '').lstrip('/')}"
        given.keep(f"{path}.nfs")
    else:
        device = given.text(f"{path}.deviceName")
        given.keep(f"{path}.deviceName")
    if source:
        given.report.findings(given.name(f"{path}.mountPath"), google_batch_runnables.mount(source))
    options = given.texts(f"{path}.mountOptions")
    read_only = any(re.search(r"(^|\W)ro(\W|$)", option) for option in options)
    ours = ("-o ro", "-o rw", "-implicit-dirs", "ro", "rw", "async")
    given.keep(f"{path}.mountOptions", "mounts")
    if others := [option for option in options if option not in ours]:
        why = f"a job file has read_only alone; {', '.join(others)} are left out"
        given.report.changed(given.name(f"{path}.mountOptions"), None, why)
    return Volume(path, host, source, device, read_only)


def _mounts(
    given: RequestFields,
    found: Sequence[Step],
    volumes: Sequence[Volume],
    chosen: Mapping[str, str],
    values: Json,
    block: Json,
) -> None:
    """Where the containers see the volumes."""
    seen: dict[str, tuple[str, bool]] = {}
    hosts = [volume.host for volume in volumes]
    for step in found:
        at = given.name(f"{step.path}.container.volumes")
        for bind in step.volumes:
            host, _, rest = bind.partition(":")
            inside, _, mode = rest.partition(":")
            if host in (nodes.HOSTS_FILE, *nodes.SSH_FOLDERS):
                continue
            if host in chosen:
                values.setdefault("mounts", []).append({"source": chosen[host], "path": inside or host})
                given.report.changed(at, chosen[host], f"{host} is mounted as chosen with --mount")
                continue
            volume = next((each for each in volumes if host == each.host or host.startswith(f"{each.host}/")), None)
            if volume is None:
                for finding in google_batch_runnables.binds([bind], hosts):
                    given.report.findings(at, [finding])
                    given.report.note(at, f"--mount {host}=gs://<bucket> says what is there")
                continue
            below = host.removeprefix(volume.host)
            if below and not volume.source:
                given.report.refuse(at, f"{bind} is a folder of a disk, which a job file mounts whole")
            seen[volume.path] = (inside or host, mode == "ro")
            if below:
                values.setdefault("mounts", []).append(_mount(f"{volume.source}{below}", inside, mode == "ro"))
    for volume in volumes:
        path, read_only = seen.get(volume.path, (volume.host, False))
        if any(mount["source"].startswith(f"{volume.source}/") for mount in values.get("mounts", [])):
            continue
        if volume.source:
            values.setdefault("mounts", []).append(_mount(volume.source, path, read_only or volume.read_only))
        elif volume.device:
            block.setdefault("_devices", {})[volume.device] = path


def _mount(source: str, path: str, read_only: bool) -> Json:
    return {"source": source, "path": path, **({"read_only": True} if read_only else {})}


def _plain_script(step: Step) -> bool:
    """Whether a script is one command, as backends/google_batch writes it for a job without an image."""
    words = re.fullmatch(r"exec (.+)\n", step.text)
    return (
        step.kind == "script" and bool(words) and shlex.join(shlex.split(words[1] if words else "")) == (words or "")[1]
    )


def _alone(step: Step, values: Json, block: Json) -> None:
    """A job of one step."""
    if step.kind == "script":
        values["command"] = shlex.split(step.text)[1:]
        return
    if step.image:
        values["image"] = step.image
    if step.words:
        values["command"] = step.words
    elif step.command:
        block["args"] = step.command
    if step.options:
        block["docker_options"] = step.options


def _of_list(step: Step) -> Json:
    """A Runnable of a job file."""
    made: Json = dict(step.more)
    if step.kind == "container":
        asked = {"image": step.image, "entrypoint": step.entrypoint, "command": step.command}
        asked["docker_options"] = step.options
        made |= {name: value for name, value in asked.items() if value}
    else:
        made[step.kind] = step.text
    return made
