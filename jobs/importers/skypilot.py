"""Importer of a SkyPilot task (https://docs.skypilot.co/en/latest/reference/yaml-spec.html)."""

import re
from collections.abc import Mapping

from accel.contract.variables import INDEX_FROM, JOB_NAME, TASK_COUNT
from accel.diagnostics import yaml_positions
from accel.diagnostics.errors import BadInput
from accel.diagnostics.redaction import SECRET_NAME
from accel.json_values import object_at

from . import skypilot_resources, vertex_templates
from .fields import RequestFields
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
    end_report,
    is_filled,
    mount,
    mount_option,
    named_values,
    node_exports,
    own_names,
    own_variables,
    refuse_places,
    takes_first,
    variable,
)

KNOWN = (
    *("name", "workdir", "url", "event_callback", "num_nodes", "resources", "file_mounts", "service", "pool"),
    *("setup", "run", "envs", "secrets", "managed_secrets", "inputs", "outputs", "file_mounts_mapping", "config"),
    *(
        "experimental",
        "volumes",
        "volume_mounts",
        "api_server_access",
        "api_access",
        "source",
        "store",
        "persistent",
        "mode",
    ),
    *("mount_options", "type", "size", "hooks", "execution", *skypilot_resources.KNOWN),
)
REFUSED = {
    "service": "is a service that stays, and a job ends; accel has no services",
    "pool": "is a pool of workers that stays, and a job ends; give the job `tasks` instead",
}
DECIDED = {
    "managed_secrets": "is kept by SkyPilot's server; keep it in the cloud, and name it in secrets of the job file",
    "event_callback": "is run where SkyPilot's controller is; `accel-jobs wait` and notifications tell of it",
    "config": "is SkyPilot's own configuration; a target has its network, identity and labels",
    "experimental": "is SkyPilot's own configuration; a target has its network, identity and labels",
    "inputs": "is an estimate of data for SkyPilot's choice of a cloud; --to chooses the target",
    "outputs": "is an estimate of data for SkyPilot's choice of a cloud; --to chooses the target",
    "volume_mounts": "is SkyPilot's own form of volumes; write mounts",
}
LEFT_OUT = {
    "file_mounts_mapping": "is SkyPilot's own",
    **dict.fromkeys(("api_server_access", "api_access"), "a job has no access to SkyPilot's server"),
    "_metadata": "is SkyPilot's own",
    "execution": "is of several tasks, and this is one",
}
PREFIX = "SKYPILOT"
_RANK, _COUNT, _FIRST, _LIST = (f"{PREFIX}_{each}" for each in ("NODE_RANK", "NUM_NODES", "MAIN_ADDRESS", "NODE_IPS"))
STORES = {"s3": "s3", "gcs": "gs", "gs": "gs"}
MOUNTED = ("s3://", "gs://")
_OTHER_STORE = re.compile(r"(az|r2|cos|oci|nebius|hf|cw|https?|git|vastdata|tigris)://|\S+@\S+:", re.IGNORECASE)


_CONTAINER = re.compile(
    r"(?:^|[;&|])[ \t]*(?:sudo\s+)?((?:docker|podman|nerdctl)(?:-compose)?)\s+(?:run|compose|up|exec|build)\b",
    re.MULTILINE,
)
"""Start of a container, which a machine of SkyPilot's has a program for."""


def import_job(name: str, data: bytes, chosen: ImportOptions) -> ImportResult:
    document = read(name, only_task(name, data))
    envs = {key: value for key, value in object_at(document, "envs").items() if isinstance(value, str)}
    known = {**envs, **chosen.variables}
    for key in document:
        if key not in ("envs", "secrets", "setup", "run", "config"):
            document[key] = vertex_templates.fill(document[key], known)
    given = RequestFields(document, nulls=("envs.", "secrets.", "resources."))
    for path in [path for path, value in given.values.items() if value is None and "accelerators." not in path]:
        if not path.startswith(("envs.", "secrets.")):
            given.report.keep(given.name(path), why="is empty")
            del given.values[path]
    given.refuse_all(REFUSED)
    values = named_values(given, name)
    block: Json = {}
    place = Destination()
    skypilot_resources.read(given, chosen.image, values, block, place)
    _nodes(given, values, block)
    _variables(given, document, chosen.variables, values)
    _command(given, values)
    _mounts(given, document, known, chosen.mounts, values, place)
    _volumes(given, document, chosen.mounts, values)
    _workdir(given)
    for table, why in DECIDED.items():
        for path in given.paths(table):
            given.report.decide(given.name(path), why, is_open=False)
    end_report(given, LEFT_OUT, KNOWN, chosen, values)
    if block:
        values["tpu_vm"] = block
    secrets = {
        **object_at(document, "secrets"),
        **{key: text for key, text in known.items() if SECRET_NAME.search(key)},
    }
    hide(given.report, [text for text in secrets.values() if isinstance(text, str)])
    return ImportResult(given.report, {}, values, place.region, targets=place.kinds)


def only_task(name: str, data: bytes) -> bytes:
    """Return the one task, not counting a first document that names a pipeline. Raise BadInput if there are several."""
    text = data.decode("utf-8-sig", errors="replace")
    if text.lstrip().startswith(("{", "[")):
        return data
    parts = yaml_positions.documents(data)
    bodies = [(above, part) for above, part in parts if re.search(rb"^[A-Za-z_]+\s*:", part, re.MULTILINE)]
    tasks = [(above, part) for above, part in bodies if re.search(rb"^(run|setup|resources)\s*:", part, re.MULTILINE)]
    if len(bodies) < 2:
        return data
    if len(tasks) == 1 and bodies[-1] == tasks[0]:
        above, part = tasks[0]
        others = [key for _, body in bodies[:-1] for key in read(name, body) if key not in ("name", "execution")]
        if not others:
            return b"\n" * above + re.sub(rb"^---", b"", part)
    lines = ", ".join(str(above + 1) for above, _ in tasks[:10])
    if any(re.search(rb"^execution\s*:\s*[\"']?parallel\b", part, re.MULTILINE) for _, part in bodies):
        what, how = (
            f"a group of {len(tasks)} jobs that run at once",
            "and submit them together; they do not know each other",
        )
    else:
        what, how = (
            f"a pipeline of {len(tasks)} tasks, which run one after the other",
            "and submit them in order (on AWS Batch, aws_batch.depends_on lets one wait for another)",
        )
    raise BadInput(
        f"{name}: is {what} (at the lines {lines}), and a job file is of one job: put each into a file of its own, "
        f"import them {how}"
    )


def _nodes(given: RequestFields, values: Json, block: Json) -> None:
    count = given.whole("num_nodes", 1)
    if count is None:
        return
    if str(values.get("accelerator", {}).get("type", "")).startswith("v") and count > 1:
        block["slices"] = count
        given.keep_value("num_nodes", "tpu_vm.slices")
        return
    if count > 1:
        values["nodes"] = count
    given.keep_value("num_nodes", "nodes")


def _variables(given: RequestFields, document: Json, chosen: Mapping[str, str], values: Json) -> None:
    for name, value in object_at(document, "envs").items():
        path = f"envs.{name}"
        if path not in given.values:
            continue
        if isinstance(value, bool):
            variable(given, path, name, str(value), {}, values)
            given.report.changed(given.name(path), str(value), "is the text that SkyPilot makes of it")
        else:
            variable(given, path, name, value, chosen, values)
    for path in given.paths("secrets"):
        name = path.removeprefix("secrets.")
        if path == "secrets":
            why = "are kept by SkyPilot's server; keep them in the cloud, and name them in secrets of the job file"
            given.report.decide(given.name(path), why)
        elif not re.fullmatch(r"[A-Za-z_]\w*", name):
            given.report.refuse(given.name(path), "is no variable's name")
        elif name in values.get("env", {}):
            given.report.refuse(given.name(path), "is in envs too; keep one of the two")
        else:
            choose_secret(given, path, name, chosen, values)
    own_variables(given, PREFIX, chosen, values)


def _command(given: RequestFields, values: Json) -> None:
    """Set the command: lines for SkyPilot's variables, `setup`, which is a program of its own there, and `run`."""
    setup, run = given.text("setup"), given.text("run")
    for path in ("setup", "run"):
        given.keep_value(path, "command")
    if not setup and not run:
        given.report.refuse("run", "is missing, and a job runs a command; a cluster to log in to is no job")
        return
    for path, text in (("setup", setup), ("run", run)):
        if text and (found := _CONTAINER.search(text)):
            why = f"calls {found[1]}, which a job's container has none of: name the image with --image, and write its"
            given.report.decide(path, f"{why} program", new="the command as it is", is_open=False)
        refuse_places(given, path, text or "")
        if text and activates_conda(text):
            given.report.decide(path, CONDA, new="the command as it is", is_open=False)
    before = _exports(given, f"{setup or ''}\n{run or ''}", values)
    parts = [*before]
    if setup and run:
        parts += ["(", setup.rstrip("\n"), ")", "setup_code=$?; [ $setup_code = 0 ] || exit $setup_code"]
        given.report.note("setup", "is run by each attempt, before run")
    elif setup:
        parts.append(setup)
    parts += [run] if run else []
    script = "\n".join(parts)
    values["command"] = ["bash", "-c", script]
    if before:
        why = f"is preceded by lines that set {', '.join(dict.fromkeys(_names(before)))} from accel's own variables"
        given.report.changed("run" if run else "setup", script, why)
    at = "run" if run and "sky_workdir" in run else "setup"
    if "sky_workdir" in f"{setup}{run}":
        why = "names ~/sky_workdir, which is the working directory of a job that is submitted with --code"
        given.report.decide(at, why, new="the command as it is", is_open=False)


def _names(lines: list[str]) -> list[str]:
    return [found[0] for line in lines if (found := re.search(rf"{PREFIX}_\w+(?==)", line))]


def _exports(given: RequestFields, text: str, values: Json) -> list[str]:
    nodes = values.get("nodes", 1)
    own = {*values.get("env", {}), *values.get("secrets", {})}
    asked = [name for name in own_names(PREFIX, text) if name not in own]
    if nodes > 1:
        asked = sorted({*asked, _RANK, _COUNT, f"{PREFIX}_NUM_GPUS_PER_NODE"})
    plain = {
        f"{PREFIX}_NUM_GPUS_PER_NODE": str(values.get("accelerator", {}).get("count", 0)),
        f"{PREFIX}_SETUP_NUM_GPUS_PER_NODE": str(values.get("accelerator", {}).get("count", 0)),
        f"{PREFIX}_SETUP_NODE_RANK": f"${{{_RANK}}}",
        f"{PREFIX}_TASK_ID": f"${{{JOB_NAME}}}",
        f"{PREFIX}_MANAGED_JOB_ID": f"${{{JOB_NAME}}}",
        f"{PREFIX}_NUM_JOBS": f"${{{TASK_COUNT}:-1}}",
    }
    lines: list[str] = []
    known = node_exports((_RANK, _COUNT, _FIRST), count=_COUNT, rank=_RANK, main=_FIRST)
    if f"{PREFIX}_SETUP_NODE_RANK" in asked or _RANK in asked:
        lines.append(known[_RANK])
    for name in asked:
        if name == _COUNT:
            lines.append(known[_COUNT])
        elif name in plain:
            lines.append(f'export {name}="{plain[name]}"')
        elif name == f"{PREFIX}_JOB_RANK":
            lines.append(f'eval "export {name}=\\${{${{{INDEX_FROM}:-ACCEL_TASK_INDEX}}:-0}}"')
        elif name in (_LIST, f"{PREFIX}_SETUP_NODE_IPS"):
            lines += _addresses(given, text, name, nodes, known[_FIRST].replace(_FIRST, name))
        elif name not in (_RANK, f"{PREFIX}_SETUP_NODE_RANK"):
            at = "run" if name in str(given.values.get("run")) else "setup"
            given.report.decide(at, f"takes {name}, which accel does not give: give --var {name}=<value>")
    for name in (f"{PREFIX}_TASK_ID", f"{PREFIX}_MANAGED_JOB_ID"):
        if name in asked:
            given.report.note("run", f"{name} is the job's name, the same in each submission of this job file")
    return lines


def _addresses(given: RequestFields, text: str, name: str, nodes: int, line: str) -> list[str]:
    """Return the lines that set the list of addresses, of which accel provides only the main node's."""
    at = "run" if name in str(given.values.get("run")) else "setup"
    if nodes == 1:
        return [line]
    if takes_first(text, name):
        why = f"{name} has the main node's address first, and words in place of the others, which nothing takes"
        given.report.note(at, why)
        return address_list(name, line)
    why = f"takes all of {name}, and accel gives the main node's address alone: take its first line (| head -n1)"
    given.report.decide(at, f"{why}, and ${_COUNT} for how many there are; accel_runtime's meet() knows all")
    return [line]


def _mounts(
    given: RequestFields,
    document: Json,
    known: Mapping[str, str],
    chosen: Mapping[str, str],
    values: Json,
    place: Destination,
) -> None:
    for key, value in object_at(document, "file_mounts").items():
        path = f"file_mounts.{key}"
        at = vertex_templates.fill(key, known)
        if choose_mount(given, path, at, chosen, values):
            continue
        if path in given.values:
            if isinstance(value, str) and value:
                _file_mount(given, path, value, at, values)
            elif value != "":
                given.report.refuse(given.name(path), "must be a source, or a mapping with source, name and mode")
        elif isinstance(value, dict):
            _storage(given, path, at, values, place)


def _file_mount(given: RequestFields, path: str, source: str, at: str, values: Json, *, copied: bool = True) -> bool:
    """Translate a source as it is written. Return whether it is mounted."""
    name, report = given.name(path), given.report
    if not is_filled(given, path, source) or not is_filled(given, path, at):
        return False
    if source.startswith(MOUNTED):
        last, seen = source.rpartition("/")[2], at.rpartition("/")[2]
        if re.search(r"\w\.\w{1,8}$", last) and re.search(r"\w\.\w{1,8}$", seen):
            why = "is one file, and a mount is of a folder: mount its folder with --mount, or copy it in the command"
            report.decide(name, f"{why}: {mount_option(at)}")
            return False
        if not mount(given, path, source, at, values):
            return False
        if copied:
            report.changed(
                name, source, "is mounted, where SkyPilot copies it: what is written there goes to the bucket"
            )
        else:
            report.keep(name, "mounts")
        return True
    if _OTHER_STORE.match(source):
        report.decide(name, f"is of a store that no target mounts; fetch it in the command, or {mount_option(at)}")
        return False
    why = "is on this machine; put it into the folder of submit --code, or into a bucket"
    report.decide(name, f"{why} and give {mount_option(at)}", is_open=False)
    return False


def _storage(given: RequestFields, path: str, seen: str, values: Json, place: Destination) -> None:
    source, bucket = given.values.get(f"{path}.source"), given.text(f"{path}.name")
    store = (given.text(f"{path}.store") or "").lower()
    mode = (given.text(f"{path}.mode") or "MOUNT").upper()
    read_only = any(given.flag(f"{path}.config.{each}.read_only") for each in ("mount", "mount_cached"))
    mounted = False
    if isinstance(source, str) and source:
        mounted = _file_mount(given, f"{path}.source", source, seen, values, copied=mode == "COPY")
        given.leave_value(f"{path}.name", "the source names the bucket")
    elif source:
        why = "are on this machine; put them into the folder of submit --code, or into a bucket"
        given.report.decide(f"{path}.source", f"{why} and give {mount_option(seen)}", is_open=False)
        given.leave_value(f"{path}.name", "is the bucket that SkyPilot makes of them")
    elif bucket:
        scheme = STORES.get(store) or ("s3" if "aws-batch" in place.kinds else "gs" if place.kinds else "")
        if store and store not in STORES:
            why = f"is of a store that no target mounts: give {mount_option(seen)}"
            given.report.decide(given.name(f"{path}.store"), why)
            given.leave_value(f"{path}.name", "is of that store")
        elif not scheme:
            option = mount_option(seen, f"s3://{bucket[:60]}")
            why = f"is a bucket of either cloud: give {option} or gs://{bucket[:60]}"
            given.report.decide(given.name(f"{path}.name"), why)
        elif is_filled(given, f"{path}.name", bucket):
            mounted = mount(given, f"{path}.name", f"{scheme}://{bucket}", seen, values)
            given.report.changed(
                given.name(f"{path}.name"), f"{scheme}://{bucket}", "has to be there: accel makes none"
            )
    else:
        why = f"has neither a source nor a name: give {mount_option(seen)}"
        given.report.decide(given.name(next(iter(given.paths(path)), path)), why)
    if mounted and read_only:
        values["mounts"][-1]["read_only"] = True
    for each in ("mount", "mount_cached"):
        at = f"{path}.config.{each}.read_only"
        if mounted and read_only and given.flag(at):
            given.keep_value(at, "read_only")
        else:
            given.leave_value(at, "a mount can be written to without it")
    given.leave_value(f"{path}.store", "the source names it")
    if mode not in ("MOUNT", "COPY", "MOUNT_CACHED"):
        given.report.refuse(given.name(f"{path}.mode"), "must be MOUNT, COPY or MOUNT_CACHED")
    elif mode == "MOUNT" and mounted:
        given.keep_value(f"{path}.mode", "mounts")
    else:
        given.leave_value(f"{path}.mode", "a job file's mounts are neither copies nor caches")
    given.leave_value(f"{path}.persistent", "a bucket stays")
    for each in ("mount_options", "type"):
        given.leave_value(f"{path}.{each}", "a target has the options of its own mounts")
    for each in given.paths(f"{path}.config"):
        if not each.endswith(".read_only"):
            given.report.changed(given.name(each), None, "a target has the options of its own mounts")


def _volumes(given: RequestFields, document: Json, chosen: Mapping[str, str], values: Json) -> None:
    for key in object_at(document, "volumes"):
        path = f"volumes.{key}"
        if choose_mount(given, path, key, chosen, values):
            continue
        for each in given.paths(path):
            if each.endswith((".size", ".type")) and each.count(".") == path.count(".") + 1 and each != f"{path}.name":
                given.report.changed(
                    given.name(each), None, "is scratch that goes with the job; disk_gib says how much"
                )
            else:
                why = (
                    f"is a volume of SkyPilot's; give --mount {key}=<source>, such as volume://<a volume of the target>"
                )
                given.report.decide(given.name(each), why)


def _workdir(given: RequestFields) -> None:
    if folder := given.text("workdir"):
        given.leave_value("workdir", f"goes with the job: submit --code {folder[:80]}")
    url = given.text("workdir.url")
    if url:
        given.leave_value("workdir.url", "is cloned there: clone it here, and submit --code its folder")
        given.leave_value("workdir.ref", "check it out before you submit")
