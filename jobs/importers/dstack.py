"""Translation of a dstack task (https://dstack.ai/docs/reference/dstack.yml/task/) into a job file."""

import re
import shlex
from collections.abc import Mapping
from typing import Any, cast

from accel.contract.variables import JOB_NAME
from accel.diagnostics import messages
from accel.diagnostics.errors import BadInput
from accel.diagnostics.redaction import SECRET_NAME
from accel.duration import seconds

from . import dstack_resources, vertex_templates
from .fields import RequestFields
from .images import image_of
from .options import ImportOptions
from .outcome import ImportResult
from .reading import Json, read
from .redact import hide
from .tasks import (
    CONDA,
    Destination,
    activates_conda,
    address_list,
    choose_mount,
    choose_secret,
    cloud_of,
    end_report,
    is_filled,
    mount,
    named_values,
    node_exports,
    own_names,
    own_variables,
    refuse_places,
    takes_first,
    variable,
)

TYPES = {
    "dev-environment": "is an environment to work in, and a job ends; `accel-jobs exec` opens a shell in one that runs",
    "service": "is a service that stays, and a job ends; accel has no services",
    "fleet": "is machines and no job: write them as an environment of a stack (docs/environment.md)",
    "volume": "is a volume and no job: make it in the cloud, and name it in mounts of a job file",
    "gateway": "is a gateway and no job",
}
DECIDED = {
    "instance_types": "is the machine's type: an environment of the stack has it, or machine_type in google_batch, gce "
    "or vertex",
    "reservation": "a target has its own; google_batch.reservation and vertex.reservation are a job's",
    "utilization_policy": "a job is not ended for that; `accel-jobs watch` shows it",
    "schedule": "a job is submitted by the clock of the caller: docs/schedules.md",
    "backend_options": "is dstack's own choice of an offer; --to chooses the target",
    "privileged": "a container has no privileges; on Google Batch, google_batch.docker_options gives it some",
    "docker": "runs Docker inside of the container, which no target lets it",
}
LEFT_OUT = {
    "home_dir": "has no effect",
    "single_branch": "no repository is cloned",
    "availability_zones": "zones are the target's; a job's own are zones of the block gce, google_batch or tpu_vm",
    "stop_duration": "seconds between SIGTERM and SIGKILL are grace_s of the block gke, gce or tpu_vm",
    "max_price": "a job file has no price; `accel-jobs explain` says what it costs, and budgets are the stack's",
    "creation_policy": "--to chooses the target, which makes and ends its machines itself",
    "termination_policy": "--to chooses the target, which makes and ends its machines itself",
    "termination_idle_time": "--to chooses the target, which makes and ends its machines itself",
    "idle_duration": "--to chooses the target, which makes and ends its machines itself",
    "pool_name": "--to chooses the target",
    "instance_name": "--to chooses the target",
    "fleets": "--to chooses the target",
    "instances": "--to chooses the target",
    "startup_order": "all nodes begin at once",
    "ports": "a job listens to nobody outside",
    "priority": "a target's own priorities are gke.priority and aws_batch.scheduling_priority",
    "setup": "has no effect in a task",
    "dstack": "there is no dstack server",
    "profile": "profiles are dstack's; --to chooses the target",
}
REFUSED = {
    "groups": "are nodes that differ, and all nodes of a job file are alike: write nodes, and ask for "
    "$DSTACK_NODE_RANK in the commands (on Vertex AI vertex.workers differ)",
    "registry_auth": "has no place in a job file: let the target's machines pull the image (docs/images.md)",
}
KNOWN = (
    *("type", "name", "image", "user", "entrypoint", "working_dir", "python", "nvcc", "env", "shell", "resources"),
    *("volumes", "repos", "files", "nodes", "commands", "backends", "regions", "spot_policy", "retry", "on_events"),
    *("duration", "max_duration", "stop_criteria", "tags", "instance_path", "path", "optional", "local_path", "url"),
    *("branch", "hash", "if_exists", "username", "password", "cron", *DECIDED, *LEFT_OUT, *REFUSED),
    *dstack_resources.KNOWN,
)
PREFIX = "DSTACK"
ENDS = "a job of several nodes ends with its main node"
_SECRET = re.compile(r"\$\{\{\s*secrets\.([\w-]+)\s*\}\}")
_RANK, _COUNT, _MAIN = f"{PREFIX}_NODE_RANK", f"{PREFIX}_NODES_NUM", f"{PREFIX}_MASTER_NODE_IP"
_LISTS = (f"{PREFIX}_NODES_IPS", f"{PREFIX}_MPI_HOSTFILE")


def import_job(name: str, data: bytes, chosen: ImportOptions) -> ImportResult:
    document = read(name, data)
    kind = document.get("type")
    if kind != "task":
        said = TYPES.get(kind, "is none of task") if isinstance(kind, str) else "is missing: type: task"
        raise BadInput(f"{name}: type {messages.display(kind)}: {said}")
    for key in document:
        if key not in ("env", "commands", "entrypoint"):
            document[key] = vertex_templates.fill(document[key], chosen.variables)
    given = RequestFields(document, nulls=("env.",))
    given.report.keep("type", why="is what a job file is of")
    values = named_values(given, name)
    place = Destination()
    _image(given, chosen.image, values)
    dstack_resources.read(given, values)
    if (count := given.whole("nodes", 1)) and count > 1:
        values["nodes"] = count
    given.keep_value("nodes", "nodes")
    secrets = _variables(given, document, chosen.variables, values)
    _command(given, values)
    _mounts(given, document, chosen.mounts, values)
    _profile(given, values, place)
    _code(given)
    given.refuse_all(REFUSED)
    for table, why in DECIDED.items():
        given.decide_unless_off(table, why)
    end_report(given, LEFT_OUT, KNOWN, chosen, values)
    hide(given.report, [*secrets, given.text("entrypoint") or ""])
    return ImportResult(given.report, {}, values, place.region, targets=place.kinds)


def _image(given: RequestFields, image: str | None, values: Json) -> None:
    text = given.text("image")
    if image:
        values["image"] = image_of(given, "--image", image)
        given.leave_value("image", "--image is in its place")
    elif text and is_filled(given, "image", text):
        values["image"] = image_of(given, "image", text, to="image")
    for path in ("python", "nvcc"):
        if path in given.values and image:
            given.leave_value(path, "--image is in its place")
        elif path in given.values:
            why = "is of dstack's own image; name one that has it with --image"
            given.report.decide(given.name(path), why, is_open=False)
    if not text and not image and "python" not in given.values:
        why = "is dstack's own there, with CUDA and Python; name one with --image, or a definition of the target has it"
        given.report.decide("image", why, is_open=False)
    if user := given.text("user"):
        if re.fullmatch(r"\d{1,9}", user):
            values["gke"] = {"user": int(user)}
            given.report.changed(given.name("user"), f"gke.user: {user}", "elsewhere it is the image's own user")
        else:
            why = "a container runs as the image's own user; on GKE, gke.user is the number of another"
            given.report.decide(given.name("user"), why, is_open=False)


def _variables(given: RequestFields, document: Json, chosen: Mapping[str, str], values: Json) -> list[str]:
    """Put the environment variables into the job. Return the values of secrets."""
    found: list[tuple[str, str, Any]] = []
    env = document.get("env")
    if isinstance(env, list):
        for index, item in enumerate(cast(list[Any], env)):
            path = "env" if "env" in given.values else f"env[{index}]"
            if isinstance(item, str):
                name, equals, text = item.partition("=")
                found.append((path, name, text if equals else None))
            elif path in given.values:
                given.report.refuse(given.name(path), "must be a list of NAME=value, or a mapping")
    elif isinstance(env, dict):
        for name, value in cast("dict[str, Any]", env).items():
            if f"env.{name}" in given.values:
                found.append((f"env.{name}", name, value))
    elif "env" in given.values:
        given.report.refuse("env", "must be a list of NAME=value, or a mapping")
    names = [name for _, name, _ in found]
    for path, name, value in found:
        if names.count(name) > 1:
            given.report.refuse(given.name(path), f"sets {name[:80]} more than once")
        elif isinstance(value, str) and (secret := _SECRET.search(value)):
            _secret(given, path, name, secret, {**chosen}, values)
        elif isinstance(value, str) and "${{" in value:
            given.report.decide(given.name(path), f"takes what dstack puts in; give --var {name}=<value>")
        else:
            variable(given, path, name, value, chosen, values)
    own_variables(given, PREFIX, chosen, values)
    return [text for _, name, text in found if isinstance(text, str) and SECRET_NAME.search(name)] + [
        text for name, text in chosen.items() if SECRET_NAME.search(name)
    ]


def _secret(
    given: RequestFields, path: str, name: str, secret: re.Match[str], chosen: dict[str, str], values: Json
) -> None:
    """Translate a variable that takes a dstack secret, whose value --var gives under either name."""
    if secret[1] in chosen:
        chosen.setdefault(name, chosen[secret[1]])
    if secret[0] != secret.string and name not in chosen:
        given.report.decide(given.name(path), f"holds a secret inside of a text; give --var {name}=<value>")
    else:
        choose_secret(given, path, name, chosen, values)


def _command(given: RequestFields, values: Json) -> None:
    """Translate what dstack runs: all commands as one shell line, or the entry point with them as its arguments."""
    commands = _commands(given)
    entrypoint = given.text("entrypoint")
    shell = given.text("shell") or ("sh" if given.values.get("image") else "bash")
    folder = given.text("working_dir")
    if not commands and not entrypoint:
        if "image" not in values and not given.has("groups"):
            given.report.refuse("commands", "are missing, and there is no image that has a command of its own")
        given.leave_value("shell", "there are no commands")
        if folder:
            given.report.decide(given.name("working_dir"), "is the image's own; write `cd` before a command")
        return
    if any("${{" in command for command in (*commands, entrypoint or "")):
        given.report.decide("commands", "take what dstack puts in (${{ ... }}); write its value")
    text = "\n".join([*commands, entrypoint or ""])
    for path in given.paths("commands"):
        refuse_places(given, path, text)
        if activates_conda(text):
            given.report.decide(given.name(path), CONDA, new="the commands as they are", is_open=False)
    before = _exports(given, text, values)
    argv = _split(given, entrypoint or "")
    if len(commands) == 1 and argv[1:] == ["-c"] and argv[0].rpartition("/")[2] in ("bash", "sh"):
        given.keep_value("entrypoint", "command")
        given.leave_value("shell", "the entry point is one")
        shell = argv[0]
    elif entrypoint:
        if before or folder:
            given.report.decide("entrypoint", "takes variables or a folder of dstack's; write commands in its place")
        given.keep_value("entrypoint", "command")
        given.leave_value("shell", "the entry point is run without one")
        for path in given.paths("commands"):
            given.report.keep(given.name(path), "command")
        values["command"] = [*argv, *commands]
        return
    else:
        given.keep_value("shell", "command")
    if folder:
        before.append(f"cd {shlex.quote(folder)}")
        if is_filled(given, "working_dir", folder):
            given.report.changed(given.name("working_dir"), f"cd {folder}", "is a command before the others")
    line = " && ".join(_apart(command) for command in commands)
    script = "\n".join([*before, line]) if not folder else "\n".join([*before[:-1], f"{before[-1]} && {line}"])
    values["command"] = [shell, "-c", script]
    for path in given.paths("commands"):
        given.report.keep(given.name(path), "command")
        if before:
            given.report.changed(
                given.name(path), script, "is preceded by what dstack sets, from accel's own variables"
            )


def _commands(given: RequestFields) -> list[str]:
    value = given.values.get("commands")
    if isinstance(value, str):
        given.report.refuse("commands", "must be a list of texts")
        return []
    return given.texts("commands") if value is not None else []


def _apart(command: str) -> str:
    """Return a command that can precede `&&`. Group one that runs in the background, as dstack does."""
    plain = command.strip()
    return f"{{ {plain} }}" if plain.endswith("&") else plain


def _split(given: RequestFields, entrypoint: str) -> list[str]:
    try:
        return shlex.split(entrypoint)
    except ValueError as error:
        given.report.refuse("entrypoint", f"cannot be read as a shell would: {str(error).lower()}")
        return []


def _exports(given: RequestFields, text: str, values: Json) -> list[str]:
    nodes, gpus = values.get("nodes", 1), values.get("accelerator", {}).get("count", 0)
    own = {*values.get("env", {}), *values.get("secrets", {})}
    asked = [name for name in own_names(PREFIX, text) if name not in own]
    if nodes > 1:
        asked = sorted({*asked, _RANK, _COUNT, _MAIN, f"{PREFIX}_GPUS_PER_NODE"})
    plain = {
        f"{PREFIX}_GPUS_PER_NODE": str(gpus),
        f"{PREFIX}_GPUS_NUM": str(gpus * nodes),
        f"{PREFIX}_RUN_NAME": f"${{{JOB_NAME}}}",
        f"{PREFIX}_RUN_ID": f"${{{JOB_NAME}}}",
    }
    known = node_exports((_RANK, _COUNT, _MAIN), count=_COUNT, rank=_RANK, main=_MAIN)
    lines: list[str] = []
    for name in asked:
        if name in known:
            lines.append(known[name])
        elif name in plain:
            lines.append(f'export {name}="{plain[name]}"')
        elif name == _LISTS[0] and (nodes == 1 or takes_first(text, name)):
            line = known[_MAIN].replace(_MAIN, name)
            lines += [line] if nodes == 1 else address_list(name, line)
        elif name in _LISTS:
            why = f"take {name}, and accel gives the main node's address alone ({_MAIN})"
            given.report.decide("commands", f"{why}; accel_runtime's meet() knows all")
        else:
            given.report.decide("commands", f"take {name}, which accel does not give: give --var {name}=<value>")
    return lines


def _mounts(given: RequestFields, document: Json, chosen: Mapping[str, str], values: Json) -> None:
    volumes = document.get("volumes")
    for index, item in enumerate(cast(list[Any], volumes) if isinstance(volumes, list) else []):
        path = "volumes" if "volumes" in given.values else f"volumes[{index}]"
        if isinstance(item, str):
            source, _, seen = item.partition(":")
            _mount(given, path, source, seen.partition(":")[0], chosen, values)
        elif isinstance(item, dict):
            seen = given.text(f"{path}.path") or ""
            at = f"{path}.instance_path" if given.has(f"{path}.instance_path") else f"{path}.name"
            value = given.values.get(at)
            sources = cast(list[Any], value) if isinstance(value, list) else [value]
            source = sources[0] if sources and isinstance(sources[0], str) else ""
            if not choose_mount(given, path, seen, chosen, values):
                _mount(given, at, source, seen, {}, values)
                _keep_path(given, path, at, seen)
            given.leave_value(f"{path}.optional", "a mount is always there")
    if isinstance(volumes, str):
        given.report.refuse("volumes", "must be a list")


def _keep_path(given: RequestFields, path: str, at: str, seen: str) -> None:
    if given.report.stopped_by(given.name(at)):
        given.leave_value(f"{path}.path", "goes with the volume")
    elif seen:
        given.keep_value(f"{path}.path", "mounts")


def _mount(given: RequestFields, path: str, source: str, seen: str, chosen: Mapping[str, str], values: Json) -> None:
    name = given.name(path)
    plain = {key.rstrip("/"): each for key, each in chosen.items()}
    if seen.rstrip("/") in plain:
        if mount(given, path, plain[seen.rstrip("/")], seen, values):
            given.report.changed(name, plain[seen.rstrip("/")], f"{seen} is mounted as chosen with --mount")
    elif not source or not seen:
        given.report.refuse(name, "must be <name or folder>:<path in the container>")
    elif not is_filled(given, path, source) or not is_filled(given, path, seen):
        return
    elif source.startswith("/"):
        if mount(given, path, f"host://{source}", seen, values):
            why = f"is a folder of the machine, which AWS Batch alone mounts; elsewhere --mount {seen}=<source>"
            given.report.changed(name, f"host://{source}", why)
    else:
        why = f"is a volume of dstack's: give --mount {seen}=<source>, a bucket or a volume of the target"
        given.report.decide(name, why)


def _code(given: RequestFields) -> None:
    """Leave out local files and repositories, except those that are not where the commands look for them."""
    for path in given.paths("files"):
        if (found := _found(given, path, _OUTSIDE)) and not path.endswith("].path"):
            why = f"{found} is outside of the folder of submit --code: copy it there, or put it into the image"
            given.report.decide(given.name(path), why, is_open=False)
        else:
            given.left_out(path, "goes with the job where it lies in the folder of submit --code, not at another path")
    for path in given.paths("repos"):
        if path.endswith("].path") or _found(given, path, _OWN_FOLDER):
            why = "is a folder of the repository's own, and the command begins in that of submit --code: write `cd`"
            given.report.decide(given.name(path), why, is_open=False)
        else:
            given.left_out(path, "goes with the job: submit --code FOLDER; clone one that has an address here")


_OUTSIDE = re.compile(r"[~/]|\.\.(?:/|$)")
_OWN_FOLDER = re.compile(r".+:[~/](?!/)")


def _found(given: RequestFields, path: str, pattern: re.Pattern[str]) -> str:
    """Return the first text at a path that begins as a pattern says, or an empty text."""
    value = given.values[path]
    texts = cast(list[Any], value) if isinstance(value, list) else [value]
    return next((each.partition(":")[0][:60] for each in texts if isinstance(each, str) and pattern.match(each)), "")


_BACKENDS = {"aws": "aws", "gcp": "gcp", "kubernetes": "kubernetes"}


def _profile(given: RequestFields, values: Json, place: Destination) -> None:
    _place(given, place)
    policy = given.text("spot_policy")
    if policy not in (None, "spot", "on-demand", "auto"):
        given.report.refuse("spot_policy", "must be spot, on-demand or auto")
    if policy != "auto":
        values["spot"] = policy == "spot"
    if policy == "auto":
        given.report.keep("spot_policy", why="is so without spot")
    else:
        given.keep_value("spot_policy", f"spot: {str(policy == 'spot').lower()}")
    if policy is None:
        given.report.note("spot_policy", "is on-demand there without it: spot: false")
    _retry(given, values)
    _duration(given, values)
    criteria = given.text("stop_criteria")
    given.leave_value("stop_criteria", ENDS if criteria else "")
    if not criteria and values.get("nodes", 1) > 1:
        given.report.note("stop_criteria", f"is all-done there without it, and {ENDS}")
    for name, text in given.mapping("tags").items():
        if name.startswith("accel-"):
            given.leave_value(f"tags.{name}", "is the platform's own")
        elif is_filled(given, f"tags.{name}", text):
            values.setdefault("labels", {})[name] = text
            given.keep_value(f"tags.{name}", "labels")


def _place(given: RequestFields, place: Destination) -> None:
    backends, regions = given.texts("backends"), given.texts("regions")
    region = regions[0] if len(regions) == 1 else ""
    given.leave_value("regions", "is the target's")
    if len(backends) == 1:
        given.leave_value(
            "backends", cloud_of(given, "backends", _BACKENDS.get(backends[0], backends[0]), region, place)
        )
    else:
        given.leave_value("backends", "--to chooses the target")
        place.region = region


def _retry(given: RequestFields, values: Json) -> None:
    flag = given.values.get("retry")
    if isinstance(flag, bool) and not flag:
        values |= {"retries": 0, "lost_retries": 0}
        given.keep_value("retry", "retries: 0, lost_retries: 0")
        return
    why = "a job file counts attempts, and has no time for them: write retries (after any failure) or lost_retries"
    for path in given.paths("retry"):
        if path in ("retry", "retry.on_events", "retry.duration") or path.startswith("retry.on_events["):
            given.report.decide(given.name(path), why, is_open=False)


def _duration(given: RequestFields, values: Json) -> None:
    value = given.values.get("max_duration")
    text = str(value) if isinstance(value, str) else ""
    if value is False or text.lower() == "off":
        given.report.keep("max_duration", why="is so without it")
        return
    if not text:
        return
    weeks = re.fullmatch(r"(\d{1,4})w", text)
    number = int(weeks[1]) * 604_800 if weeks else seconds(text)
    if not number:
        given.report.refuse("max_duration", "must be a duration such as 2h, 1d or off")
        return
    values["timeout_s"] = number
    given.report.keep("max_duration", f"timeout_s: {number}", "is of one attempt")
