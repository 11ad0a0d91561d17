"""Translation of the programs that the tasks of a Google Batch job run into a job file."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accel.contract.variables import NODE_COUNT, RESERVED_PREFIXES
from accel.rules.batch import runnables as google_batch_runnables
from accel.rules.jobs import containers, imports

from ..backends.google_batch import nodes, runnables
from .google_batch_fields import GROUP, SPEC, BatchFields, Step, placeholder_findings
from .google_batch_mounts import Storage, mounts_of
from .images import image_of
from .reading import Json

_SIZES = {"": 1 / 2**20, "b": 1 / 2**20, "k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2}
ENCRYPTED = "is encrypted by a key of KMS; a job file has secrets of Secret Manager alone (secretVariables)"
PRIVATE = (
    "is for a private registry, which a job file does not log in to; copy the image to Artifact Registry, which lets "
    "the target's service account in"
)
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Tasks:
    """Facts about the tasks. `several`: they are nodes that work together; `secrets`: those of single steps, by
    path."""

    several: bool = False
    storage: Storage = field(default_factory=Storage)
    secrets: Mapping[str, Any] = field(default_factory=dict[str, Any])


def steps(given: BatchFields, values: Json, block: Json, image: str | None, mounts: Mapping[str, str]) -> Tasks:
    found = [_step(given, path, image) for path in given.items(f"{SPEC}.runnables")]
    kinds = [each.kind for each in found]
    behind = [bool(each.more.get("background")) for each in found]
    if not found:
        given.report.refuse(f"{SPEC}.runnables", "is missing: a task runs something")
        return Tasks()
    given.report.findings(f"{SPEC}.runnables", google_batch_runnables.steps(kinds, behind))
    _host_network(given, found)
    several = f"{SPEC}.environment.variables.{NODE_COUNT}" in given.values
    bare = several and not _between(found)
    if several:
        found = [_unwrapped(each) for each in (found[1:-1] if _between(found) else found)]
    storage = mounts_of(given, found, mounts, values)
    _shared_memory(given, found, values)
    alone = len(found) == 1 and not found[0].more and not bare  # a node that is alone gets barriers
    if alone and (found[0].kind == "container" or _plain_script(found[0])):
        _alone(found[0], values, block)
    else:
        block["runnables"] = [_of_list(each) for each in found]
    secrets = {each: given.values[each] for step in found for each in _secrets(given, step)}
    return Tasks(several, storage, secrets)


def _host_network(given: BatchFields, found: Sequence[Step]) -> None:
    """Report that containers share their VM's network where tasks get a list of hosts."""
    options = [given.text(f"{each.path}.container.options") or "" for each in found if each.kind == "container"]
    at = f"{GROUP}.requireHostsFile"
    if given.flag(at) and any("--net" not in each for each in options):
        given.report.note(given.name(at), "containers have the network of their VM (--network=host)")


def variables(given: BatchFields, base: str, ours: Mapping[str, str] = {}) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, text in given.mapping(base).items():
        path = f"{base}.{name}"
        if name.startswith(RESERVED_PREFIXES) or name in ours:
            given.left_out(path, "is set by the platform")
        elif not _VARIABLE_NAME.fullmatch(name):
            given.refuse(path, "is not the name of a variable: letters, digits and _, no digit first")
        elif re.search(r"[\n\r\0]", text):
            given.refuse(path, "holds a line break or NUL, which a job file does not take; put it into a file")
        else:
            found[name] = text
            given.keep(path, "env")
    return found


def _between(found: Sequence[Step]) -> bool:
    """Return whether the steps are between the barriers that backends/google_batch writes for a multi-node job."""
    return len(found) > 2 and found[0].text == runnables.READY and found[-1].text == runnables.DONE


def _unwrapped(step: Step) -> Step:
    """Return the step without the preparation that a node runs first."""
    wrapper = nodes.command([])
    if step.words[: len(wrapper)] == wrapper and len(step.words) > len(wrapper):
        step.entrypoint, *step.command = step.words[len(wrapper) :]
    step.text = step.text.replace(nodes.PRELUDE, "", 1)
    return step


def _step(given: BatchFields, path: str, image: str | None) -> Step:
    kinds = [kind for kind in ("container", "script", "barrier") if given.is_written(f"{path}.{kind}")]
    if len(kinds) != 1:
        given.report.refuse(
            path, f"must have one of container, script and barrier, has {' and '.join(kinds) or 'none'}"
        )
    step = Step(path, kinds[0] if kinds else "barrier")
    if step.kind == "container":
        _container(given, f"{path}.container", step, image)
    elif step.kind == "script":
        _script(given, f"{path}.script", step)
    else:
        step.text = given.text(f"{path}.barrier.name") or "barrier"
        given.keep(f"{path}.barrier.name", "barrier")
    for other in kinds[1:]:
        given.refuse(f"{path}.{other}", f"is beside {kinds[0]}, and a runnable is one of the two")
    _more(given, path, step)
    for name in ("displayName", "labels"):
        given.left_out(f"{path}.{name}", "a job file has no names for its steps")
    return step


def _more(given: BatchFields, path: str, step: Step) -> None:
    if given.has(encrypted := f"{path}.environment.encryptedVariables"):
        given.refuse(encrypted, ENCRYPTED)
    if step.kind == "barrier":
        for name in ("background", "alwaysRun", "ignoreExitStatus", "timeout", "environment"):
            given.left_out(f"{path}.{name}", "is of a barrier, which runs nothing")
        return
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
    if env := variables(given, f"{path}.environment.variables"):
        step.more["env"] = env


def _secrets(given: BatchFields, step: Step) -> list[str]:
    return [] if step.kind == "barrier" else given.below(f"{step.path}.environment.secretVariables")


def _script(given: BatchFields, path: str, step: Step) -> None:
    step.text = given.text(f"{path}.text") or ""
    given.keep(f"{path}.text", "script")
    file = given.text(f"{path}.path")
    if file and step.text:
        given.refuse(f"{path}.path", "is beside text, and a script is one of the two")
    elif file:
        step.text = f"exec {shlex.quote(file)}\n"
        given.report.changed(given.name(f"{path}.path"), step.text.strip(), "a job file has scripts as text")
    elif not step.text:
        given.report.refuse(given.name(f"{path}.text"), "is missing: a script has text, or the path of a file")


def _container(given: BatchFields, path: str, step: Step, image: str | None) -> None:
    _image(given, f"{path}.imageUri", step, image)
    step.entrypoint, step.command = given.text(f"{path}.entrypoint"), given.texts(f"{path}.commands")
    commands = given.name(f"{path}.commands")
    for name in ("entrypoint", "commands", "volumes", "options"):
        given.keep(f"{path}.{name}")
    if f"{path}.commands" in given.single and step.command and len(step.command[0].split()) > 1:
        _one_text(given, commands, step)
    for finding in google_batch_runnables.entry_point(step.entrypoint, step.command):
        given.report.findings(commands, [finding])
        step.entrypoint, step.command = step.command[0], step.command[1:]
    given.report.findings(commands, imports.python(step.words))
    if step.words:
        given.report.findings(commands, google_batch_runnables.command(step.words))
        step.entrypoint, *step.command = google_batch_runnables.expand_variables(step.words)
    step.volumes = given.texts(f"{path}.volumes")
    if options := given.text(f"{path}.options"):
        _options(given, f"{path}.options", options, step)
    for name in ("username", "password"):
        if given.has(f"{path}.{name}"):
            given.refuse(f"{path}.{name}", PRIVATE)
    if given.is_on(f"{path}.blockExternalNetwork"):
        why = "has no place in a job file; write --network=none into options, if the container needs no network at all"
        given.refuse(f"{path}.blockExternalNetwork", why)
    if given.is_on(f"{path}.enableImageStreaming"):
        why = "has no place in a job file: the image is pulled before the step begins"
        given.settle(f"{path}.enableImageStreaming", why)


def _one_text(given: BatchFields, commands: str, step: Step) -> None:
    """Split the command into words if it is one text where the API has a list."""
    try:
        words = shlex.split(step.command[0]) if "\n" not in step.command[0].strip() else []
    except ValueError:
        words = []
    if not words:
        given.report.refuse(commands, "is one text, and the API has a list of words; write each word as an item")
        return
    rule = google_batch_runnables.ONE_WORD.id
    given.report.changed(commands, words, "is one text, and a command is a list of words", rule)
    step.command = words


def _image(given: BatchFields, path: str, step: Step, image: str | None) -> None:
    own = given.text(path)
    name = given.name(path)
    if image:
        given.report.changed(name, image, "was chosen with --image")
        step.image = image
        return
    step.image = own
    if not own:
        given.report.refuse(name, "is missing: a container has an image; give one with --image")
    elif found := placeholder_findings("image", own):
        given.keep(path)
        given.report.findings(name, found)
    elif malformed := [each for each in containers.image(own) if each.rule == containers.IMAGE.id]:
        given.refuse(path, f"{malformed[0].message}; {malformed[0].fix}", containers.IMAGE.id)
    else:
        step.image = image_of(given, path, own)


def _options(given: BatchFields, path: str, options: str, step: Step) -> None:
    """Translate Docker's options. Shared memory has a field of its own."""
    name = given.name(path)
    step.options = options
    try:
        words = shlex.split(options)
    except ValueError:
        words = []
    rest, size = _without_size(words)
    if size:
        step.shm_mib = size
        step.options = shlex.join(rest) or None
        given.report.changed(name, step.options, f"the size of shared memory is shm_mib: {size}")
    if given.flag(f"{GROUP}.requireHostsFile") and "--network=host" in rest:
        # It is what the platform writes then.
        rest = [word for word in rest if word != "--network=host"]
        step.options = shlex.join(rest) or None
    for finding in google_batch_runnables.docker_options(step.options):
        given.report.findings(name, [finding])
        if finding.severity == "translate":
            step.options = str(finding.replacement) if finding.replacement else None


def _without_size(words: Sequence[str]) -> tuple[list[str], int | None]:
    """Return the options without --shm-size, and its MiB. The last one counts, as for docker run."""
    rest: list[str] = []
    size: int | None = None
    left = iter(words)
    for word in left:
        option, equals, text = word.partition("=")
        text = text if equals else next(left, "") if option == "--shm-size" else ""
        if option == "--shm-size" and (found := re.fullmatch(r"(\d+(?:\.\d+)?) ?([bkmgt]?)(?:i?b)?", text.lower())):
            size = max(int(-(-float(found[1]) * _SIZES[found[2]] // 1)), 1)
        else:
            rest += [word] if equals or option != "--shm-size" else [word, text]
    return rest, size


def _shared_memory(given: BatchFields, found: Sequence[Step], values: Json) -> None:
    """Set the size of shared memory. A job file has one size for all containers: the largest."""
    most = max((each.shm_mib or 0 for each in found), default=0)
    if not most:
        return
    values["shm_mib"] = most
    for each in found:
        if each.kind == "container" and each.shm_mib != most:
            why = f"shared memory has one size for all steps, the largest: shm_mib {most}"
            given.report.changed(given.name(f"{each.path}.container.options"), f"--shm-size={most}m", why)


def _plain_script(step: Step) -> bool:
    """Return whether a script is one command, as backends/google_batch writes it for a job without an image."""
    words = re.fullmatch(r"exec (.+)\n", step.text)
    if step.kind != "script" or not words:
        return False
    try:
        return shlex.join(shlex.split(words[1])) == words[1]
    except ValueError:
        return False


def _alone(step: Step, values: Json, block: Json) -> None:
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
    made: Json = dict(step.more)
    if step.kind == "container":
        asked = {"image": step.image, "entrypoint": step.entrypoint, "command": step.command}
        asked["docker_options"] = step.options
        made |= {name: value for name, value in asked.items() if value}
    else:
        made[step.kind] = step.text
    return made
