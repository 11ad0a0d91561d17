"""Importer of a pasted `xpk workload create`. Sources of its options, and of the JobSet that it writes:
https://github.com/AI-Hypercomputer/xpk/blob/main/src/xpk/parser/workload.py and
https://github.com/AI-Hypercomputer/xpk/blob/main/src/xpk/commands/workload.py"""

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, cast

from accel.catalog import UnknownName
from accel.catalog.tpu import NoSuchSlice, tpu
from accel.diagnostics.errors import BadInput
from accel.diagnostics.redaction import SECRET_NAME
from accel.rules.gcp import gpus
from accel.rules.jobs import imports, placeholders
from accel.whole_numbers import INT_MAX

from . import gcloud, script_text, vertex_templates
from .fields import RequestFields, job_name
from .images import image_of
from .options import ImportOptions
from .outcome import ImportResult
from .reading import Json, named_file
from .redact import hide
from .shell import REST, PastedCommand, pasted_command
from .tasks import node_exports, refuse_places, unused_mounts, variable

VERB = "workload create"
_PATHWAYS = re.compile(r"\bxpk\s(?:.*\s)?workload\s+create-pathways(?:\s|$)")
OF_TARGET = ("--cluster", "--project", "--project-number", "--zone", "--region", "--reservation")
OF_XPK = {
    **dict.fromkeys(("--docker-name", "--scheduler", "--output-manifest-file"), "is xpk's own"),
    "--docker-image-pull-secret": "let the target's machines pull the image (docs/images.md)",
}
OF_XPK_FLAGS = {
    **dict.fromkeys(
        ("--use-parallel-containers", "--no-use-parallel-containers"),
        "says how many containers a host has; a job file has one on each",
    ),
    **dict.fromkeys(
        (
            *("--dry-run", "--no-dry-run", "--quiet", "--no-quiet", "--skip-validation", "--no-skip-validation"),
            *("--sandbox-kubeconfig", "--no-sandbox-kubeconfig"),
            *("--dependency-auto-download", "--no-dependency-auto-download"),
        ),
        "is for xpk itself",
    ),
}
DECIDED = {
    "--priority": "is a priority class of xpk's clusters, and a target has its own: gke.priority names one of them",
    "--restart-on-exit-codes": "a job file has no exit codes on GKE: retries are after any failure",
    "--debug-dump-gcs": "xpk copies /tmp/xla_dump to it when the command has ended; write that into the command, with "
    "XLA_FLAGS in env",
    "--experiment-name": "is an experiment of Vertex AI that xpk makes; a program reports to TensorBoard itself",
}
DECIDED_FLAGS = {
    "--deploy-stacktrace-sidecar": "is a second container beside the program's, and a job has one",
    "--use-vertex-tensorboard": DECIDED["--experiment-name"],
    "--flex": "is of the nodes: a target of kind gke has flex-start pools, and a job takes the pools that fit",
}
REFUSED = {
    "--ramdisk-directory": "is of a driver for checkpoints that a cluster has, and a job file has none: leave it out, "
    "and write checkpoints to a bucket",
    "--colocated-python-sidecar-image": "is a second container beside the program's, and a job has one",
}
REFUSED_FLAGS = {
    "--mtc-enabled": REFUSED["--ramdisk-directory"],
    "--use-pathways": "runs Pathways' servers beside the program, and a job has one container; leave it out for a "
    "program that runs on each host (JAX does)",
}
READ = (
    *("--workload", "--command", "--tpu-type", "--device-type", "--num-slices", "--num-nodes", "--docker-image"),
    *("--base-docker-image", "--script-dir", "--env", "--env-file", "--max-restarts", "--storage"),
    *("--ttl-seconds-after-finished", "--termination-grace-period-seconds", "-tgps"),
)
READ_FLAGS = ("--enable-debug-logs", "--on-demand", "--spot")
FLAGS = {
    **dict.fromkeys((*READ, *OF_TARGET, *OF_XPK, *DECIDED, *REFUSED), True),
    **dict.fromkeys((*READ_FLAGS, *OF_XPK_FLAGS, *DECIDED_FLAGS, *REFUSED_FLAGS), False),
}
SEVERAL = ("--env", "--storage")
DEFAULT_IMAGE = "python:3.10"
"""Image if a command names none: https://github.com/AI-Hypercomputer/xpk/blob/main/src/xpk/core/docker_image.py"""
DEBUG = {
    "TPU_STDERR_LOG_LEVEL": "0",
    "TPU_MIN_LOG_LEVEL": "0",
    "TF_CPP_MIN_LOG_LEVEL": "0",
    "TPU_VMODULE": "real_program_continuator=1",
}
"""Variables that --enable-debug-logs sets:
https://github.com/AI-Hypercomputer/xpk/blob/main/src/xpk/core/docker_container.py"""
_OF_NODES = {"count": "NNODES", "rank": "NODE_RANK", "main": "JAX_COORDINATOR_ADDRESS"}
"""Variables that xpk sets on nodes with GPUs, beside JAX_COORDINATOR_PORT and GPUS_PER_NODE:
https://github.com/AI-Hypercomputer/xpk/blob/main/src/xpk/core/docker_resources.py"""
_OF_CPUS = {"count": "JAX_PROCESS_COUNT", "rank": "JOB_COMPLETION_INDEX", "main": "JAX_COORDINATOR_ADDRESS"}
"""Those of machines without GPUs, beside PROCESSES_IN_JOB and JOB_INDEX."""
WORDS = "words of the command"


def import_job(name: str, data: bytes, options: ImportOptions) -> ImportResult:
    text = script_text.with_xpk(script_text.readable(data.decode("utf-8-sig", errors="replace")))
    if _PATHWAYS.search(text) and not re.search(r"\bworkload\s+create(?:\s|$)", text):
        said = "runs Pathways' servers beside the program, and a job has one container"
        raise BadInput(
            f"{name}: `xpk workload create-pathways` {said}: paste an `xpk {VERB}` of a program for each host"
        )
    written = pasted_command(name, text, options.variables, VERB, "xpk")
    line = gcloud.parse_flags(written.argv, FLAGS)
    line.words = line.words[3:]
    document: Json = {flag: texts if flag in SEVERAL else texts[-1] for flag, texts in line.flags.items()}
    given = RequestFields(document, beside=_beside(line, written))
    values: Json = {"name": job_name(given, "--workload")}
    _tell(given, line, written)
    result = ImportResult(given.report, {}, values)
    _name(given, values, written)
    _ask(given, text, written, options.image)
    _machines(given, values, result)
    _image(given, values, options)
    _variables(given, name, values, written, options.variables)
    _command(given, values)
    _runs(given, values)
    _storage(given, values, options.mounts)
    _unread(given, result)
    secrets = [value for key, value in options.variables.items() if SECRET_NAME.search(key)]
    hide(given.report, [*written.secrets, *secrets, given.text("--command") or ""])
    return result


def _beside(line: gcloud.CommandLine, written: PastedCommand) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys([*line.unknown], "")
    found |= {WORDS: line.words} if line.words else {}
    found |= {REST: written.rest} if written.rest else {}
    return found | ({"args after --": line.rest} if line.rest else {})


def _tell(given: RequestFields, line: gcloud.CommandLine, written: PastedCommand) -> None:
    report = given.report
    for flag, why in line.unknown.items():
        report.refuse(flag, why)
    for flag in line.flags:
        if flag not in FLAGS:  # gcloud's own, which are no flags of xpk
            report.refuse(flag, "is no flag of this command")
    if line.words and all(re.match(r"\$\{\w+(\[[@*]\]|:?\+)", word) for word in line.words):
        report.refuse(WORDS, "are flags that the script puts in; write them into the command")
    elif line.words:
        report.refuse(WORDS, "the command takes flags alone; a value with spaces wants quotes")
    if line.rest:
        report.refuse("args after --", "the command has no `--`; the program and its arguments are --command")
    written.report_rest(report)


def _name(given: RequestFields, values: Json, written: PastedCommand) -> None:
    """Replace a name that a shell makes different in each submission with one that stays the same."""
    text = given.text("--workload") or ""
    given.report.findings("--workload", placeholders.value("--workload", text))
    marks = [mark for mark in written.unknown.values() if mark in text and mark.startswith(("$(", "`"))]
    for mark in marks:
        text = text.replace(mark, "")
    if marks:
        given.values["--workload"] = text.strip("-_ ") or "imported"
        values["name"] = job_name(given, "--workload")
        why = f"{marks[0][:60]} makes each name another, and a job's reference is one anyway"
        given.report.changed("--workload", values["name"], why)


def _machines(given: RequestFields, values: Json, result: ImportResult) -> None:
    asked = [flag for flag in ("--tpu-type", "--device-type") if given.text(flag)]
    at = asked[0] if asked else "--tpu-type"
    name = (given.text(at) or "").strip()
    result.targets = ("gke",)
    if len(asked) != 1:
        _not_one(given, several=bool(asked))
    is_named = len(asked) == 1 and not re.search(r"[$`]", name)  # or it is asked for
    if not is_named or not given.report.findings(at, placeholders.value(at, name)):
        _keep_numbers(given)
    elif found := re.fullmatch(r"((?:n1|n2|n2d|e2|c3|c4|m1|m3)-[a-z]+-(\d+))-(\d+)", name):
        values["cpus"] = max(1, int(int(found[2]) * 0.95))
        why = f"are the CPUs that xpk asks for on a {found[1]}; a target of kind gke needs memory_mib too"
        given.report.decide(at, why, new=f"cpus: {values['cpus']}", is_open=False)
        _nodes(given, values, int(found[3]))
    elif gpu := re.fullmatch(
        r"(l4|a100-40gb|a100-80gb|h100-80gb|h100-mega-80gb|h200-141gb|b200|gb200)-(\d+)(-\w+)?", name
    ):
        kind = {"a100-40gb": "a100"}.get(gpu[1], gpu[1])
        if given.report.findings(at, gpus.accelerator_name(kind, "accelerator")):
            values["accelerator"] = {"type": kind, "count": int(gpu[2])}
            given.keep(at, f"accelerator: {kind}")
        _nodes(given, values, 1)
    else:
        _slice(given, at, name, values, result)


def _not_one(given: RequestFields, *, several: bool) -> None:
    empty = [flag for flag in ("--tpu-type", "--device-type") if flag in given.values]
    if several:
        given.report.refuse("--tpu-type", "is beside --device-type; keep one of the two")
    elif empty:
        given.report.refuse(empty[0], "is empty: give the variable that it is made of with --var")
    else:
        given.report.refuse("--tpu-type", "is missing: name --tpu-type or --device-type")


def _keep_numbers(given: RequestFields) -> None:
    """Keep the numbers of slices and nodes without a remark, since their type is not known."""
    for flag in ("--num-slices", "--num-nodes"):
        given.keep(flag)


def _nodes(given: RequestFields, values: Json, of_type: int) -> None:
    count = max(of_type, _number(given, "--num-nodes"))
    if count > 1:
        values["nodes"] = count
    given.keep("--num-nodes", "nodes")
    if _number(given, "--num-slices") == 1:
        given.keep("--num-slices", why="" if given.report.stopped_by("--num-slices") else "is so without it")
    else:
        given.report.refuse("--num-slices", "is of TPUs; --num-nodes are machines with GPUs or CPUs")


def _number(given: RequestFields, flag: str) -> int:
    """Return a flag's number, or 1 if it is not given, wrong, or made of a variable, which is asked for."""
    if re.search(r"[$`]", given.text(flag) or ""):
        return 1
    return given.whole(flag, 1) or 1


def _slice(given: RequestFields, at: str, name: str, values: Json, result: ImportResult) -> None:
    try:
        found = tpu(name.lower())
    except (UnknownName, NoSuchSlice) as fault:
        given.report.refuse(at, f"{fault}; write a TPU such as v5litepod-16, or GPUs such as h100-80gb-8")
        _keep_numbers(given)
        return
    values["accelerator"] = {"type": found.name}
    given.keep(at, f"accelerator.type: {found.name}")
    given.left_out("--num-nodes", "a slice has as many nodes as it has hosts")
    slices = _number(given, "--num-slices")
    result.targets = ("gke",) if found.api == "gke-only" else ("gke", "tpu-vm")
    if slices == 1:
        given.keep("--num-slices", why="" if given.report.stopped_by("--num-slices") else "is so without it")
    elif found.api == "gke-only":
        why = "are several slices, which a target of kind gke does not join, and the kind tpu-vm has no such TPU"
        given.report.refuse("--num-slices", why)
    else:
        values["tpu_vm"] = {"slices": slices}
        result.targets = ("tpu-vm",)
        why = "several slices are one job on the kind tpu-vm alone: a target of kind gke does not join them"
        given.report.changed("--num-slices", f"tpu_vm.slices: {slices}", why)


def _image(given: RequestFields, values: Json, options: ImportOptions) -> None:
    own, base = given.text("--docker-image"), given.text("--base-docker-image")
    folder = given.text("--script-dir") or "."
    if options.image:
        values["image"] = image_of(given, "--image", options.image)
        for flag in ("--docker-image", "--base-docker-image"):
            given.left_out(flag, "--image is in its place")
    elif own:
        values["image"] = image_of(given, "--docker-image", own, to="image")
        given.left_out("--base-docker-image", "--docker-image is used as it is")
    elif base and not re.search(r"[/:$`]", base):
        why = "is an image of this machine: push it to a registry, and name it there with --image"
        given.report.decide("--base-docker-image", why)
    elif base:
        values["image"] = image_of(given, "--base-docker-image", base, to="image")
    elif "--docker-image" in given.values or "--base-docker-image" in given.values:
        at = "--docker-image" if "--docker-image" in given.values else "--base-docker-image"
        given.report.decide(at, "name the image with --image")
    else:
        values["image"] = DEFAULT_IMAGE
        given.report.changed(
            "--base-docker-image", DEFAULT_IMAGE, "is xpk's own where none is named; --image is another"
        )
    if "--script-dir" in given.values or not own:
        why = f"xpk puts the folder into an image; `submit --code {folder}` sends it, and the command runs in it"
        given.report.decide("--script-dir", why, new=f"--code {folder}", is_open=False)


def _variables(
    given: RequestFields, name: str, values: Json, written: PastedCommand, chosen: Mapping[str, str]
) -> None:
    for text in given.texts("--env"):
        key, equals, value = text.partition("=")
        path = "--env"
        if not equals:
            given.report.refuse(path, "must be NAME=value: xpk takes none from the shell around it")
        else:
            variable(given, path, key, value, {}, values)
    if file := given.text("--env-file"):
        for line in _file(name, file, written).splitlines():
            key, equals, value = line.strip().partition("=")
            if key and not key.startswith("#"):
                variable(given, "--env-file", key, value if equals else None, chosen, values)
        if "--env" in given.values:
            given.report.refuse("--env-file", "is beside --env, and xpk takes one of the two")
    if given.flag("--enable-debug-logs"):
        values["env"] = {**DEBUG, **values.get("env", {})}
        given.keep("--enable-debug-logs", "env", why="are variables of the libraries' logs")


def _file(name: str, path: str, written: PastedCommand) -> str:
    """Return the text of a file of variables, which the script may write."""
    if path in written.files:
        return written.files[path]
    return named_file(name, "--env-file", path)[0].decode(errors="replace")


def _command(given: RequestFields, values: Json) -> None:
    """Set the command that bash runs on each host, after the variables that xpk sets on nodes with GPUs."""
    text = given.text("--command")
    if not text or not text.strip():
        why = (
            "is empty: give the variable that it is made of with --var" if "--command" in given.values else "is missing"
        )
        given.report.refuse("--command", f"{why}; it is what each host runs")
        return
    given.keep("--command", "command")
    refuse_places(given, "--command", text)
    own = values.get("env", {})
    before: list[str] = []
    asked: list[str] = []
    if (gpus_each := values.get("accelerator", {}).get("count")) or "cpus" in values:
        of_nodes = _OF_NODES if gpus_each else _OF_CPUS
        plain = {"JAX_COORDINATOR_PORT": "6002", "GPUS_PER_NODE": str(gpus_each)}
        if not gpus_each:
            plain = {"PROCESSES_IN_JOB": str(values.get("nodes", 1)), "JOB_INDEX": "0"}
        names = (*of_nodes.values(), *plain)
        several = values.get("nodes", 1) > 1
        asked = [each for each in names if each not in own and (several or re.search(rf"\b{each}\b", text))]
        known = node_exports(asked, **of_nodes)
        before = [*known.values(), *(f"export {each}={plain[each]}" for each in asked if each in plain)]
    script = "\n".join([*before, text])
    values["command"] = ["bash", "-c", script]
    if before:
        why = f"is preceded by what xpk sets on nodes ({', '.join(asked)}), from accel's own variables"
        given.report.changed("--command", script, why)


def _runs(given: RequestFields, values: Json) -> None:
    """Set retries, time and capacity."""
    restarts = given.whole("--max-restarts")
    values["retries"] = min(restarts or 0, INT_MAX)
    given.keep("--max-restarts", f"retries: {values['retries']}")
    if restarts:
        why = "xpk restarts a program that ended with 42 or 127 to 255, and retries are after any failure"
        given.report.changed("--max-restarts", f"retries: {restarts}", why)
    is_slices = "tpu_vm" in values
    for flag in ("--termination-grace-period-seconds", "-tgps"):
        if seconds := given.whole(flag):
            values.setdefault("tpu_vm" if is_slices else "gke", {})["grace_s"] = seconds
            given.keep(flag, f"grace_s: {seconds}")
    if seconds := given.whole("--ttl-seconds-after-finished", 1):
        if is_slices:
            given.left_out("--ttl-seconds-after-finished", "is of a cluster, which keeps jobs that have ended")
        else:
            values.setdefault("gke", {})["keep_s"] = seconds
            given.keep("--ttl-seconds-after-finished", f"gke.keep_s: {seconds}")
    for flag, is_spot in (("--spot", True), ("--on-demand", False)):
        if given.flag(flag):
            values["spot"] = is_spot
            given.keep(flag, f"spot: {str(is_spot).lower()}")


def _storage(given: RequestFields, values: Json, chosen: Mapping[str, str]) -> None:
    names = given.texts("--storage")
    if names and not chosen:
        why = "is what `xpk storage` attached to the cluster: give --mount <its mount point>=<a bucket or a volume>"
        given.report.decide("--storage", why)
    elif names:
        given.report.changed("--storage", list(chosen), "is mounted as chosen with --mount")
    unused_mounts(given, chosen, values)


def _unread(given: RequestFields, result: ImportResult) -> None:
    """Report the flags that concern xpk or a target and have no place in a job file."""
    zone = given.text("--zone") or ""
    if found := re.fullmatch(r"([a-z]+-[a-z]+\d+)-[a-z]", zone):
        result.region = found[1]
    result.region = result.region or (given.text("--region") or "")
    result.region = "" if "$" in result.region else result.region
    for flag in OF_TARGET:
        given.left_out(flag, "is the target's")
    for flag, why in {**OF_XPK, **OF_XPK_FLAGS}.items():
        given.left_out(flag, why)
    for flag, why in {**DECIDED, **DECIDED_FLAGS}.items():
        if given.has(flag):
            given.report.decide(flag, why, is_open=False)
    for flag, why in {**REFUSED, **REFUSED_FLAGS}.items():
        if given.has(flag):
            given.report.refuse(flag, why)
    given.report.close(FLAGS)


def _ask(given: RequestFields, text: str, written: PastedCommand, image: str | None) -> None:
    """Ask for the variables that kept values hold. `image`: the image that the user chose, if any."""
    others = ("--docker-image", "--base-docker-image") if image else ()
    lacking: list[str] = []
    for name, plain in islice(script_text.holders(text, written.unknown).items(), script_text.HELD_MAX):
        mark = written.unknown[name]
        for path, value in given.values.items():
            texts = cast("list[Any]", value) if isinstance(value, list) else [value]
            if not any(isinstance(each, str) and mark in each for each in texts):
                continue
            if path in (*OF_TARGET, *OF_XPK, *DECIDED, *others):
                continue
            given.report.findings(given.name(path), imports.variable(mark, plain, path))
            lacking.append(plain)
    vertex_templates.ask_for_all(given.report, lacking)
