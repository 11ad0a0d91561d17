"""Shared parts of the importers of task files (SkyPilot, dstack): sizes, variables, mounts, the command of a shell."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from accel.catalog import tpu
from accel.catalog.nearest import UnknownName
from accel.contract.variables import MAIN_ADDRESS_FROM, NODE_COUNT, NODE_INDEX_FROM, RESERVED_PREFIXES
from accel.rules.gcp import gpus
from accel.rules.jobs import imports, placeholders
from accel.whole_numbers import INT_MAX

from .fields import RequestFields, job_name
from .options import ImportOptions
from .reading import Json
from .slurm_script import places

_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(?:([KMGTP])i?)?B?", re.IGNORECASE)
_MIB = {"K": 2**-10, "M": 1, "G": 2**10, "T": 2**20, "P": 2**30}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNFILLED = re.compile(r"(?<![\\$])\$(?:\{([A-Za-z_]\w*)[^{}]*\}|([A-Za-z_]\w*))|\$?\{\{-?\s*([\w.]+)\s*-?\}\}")
_REFERENCE = re.compile(r"arn:aws[\w-]*:(secretsmanager|ssm):\S+|projects/[^/\s]+/secrets/\S+")
"""Name of a secret of a cloud, as a job file has it."""
_TPU = re.compile(r"(?:tpu-?)?v\d+(?:e|p|litepod)?-\d+", re.IGNORECASE)
_PRINTS = re.compile(r"\s*echo\s+[\"']?[\w-][^|<>`$\\]*(?:\$(?!\()[^|<>`$\\]*)+$")
"""Line that prints a variable after words of its own."""
_ACTIVATES = re.compile(r"(?:^|[;&|])[ \t]*conda\s+activate\b", re.MULTILINE)
_KNOWS_CONDA = re.compile(r"conda\s+shell\.|/profile\.d/conda\.sh|\.bashrc")
CONDA = (
    'write `eval "$(conda shell.bash hook)"` before `conda activate`, in an image that has conda: '
    "the shell of a job does not read ~/.bashrc"
)
CLOUDS: Mapping[str, tuple[str, ...]] = {
    "aws": ("aws-batch",),
    "gcp": ("gce", "google-batch", "vertex", "gke", "tpu-vm"),
    "kubernetes": ("gke",),
}
TPU_KINDS = ("tpu-vm", "gke")


@dataclass
class Destination:
    """Place where a document is to run: kinds of targets, empty for any, and the region if the cloud has regions."""

    kinds: tuple[str, ...] = ()
    region: str = ""


def mib(text: str) -> int | None:
    """Return a size in MiB, rounded up, or None if no job can have it. A number without a unit is in GiB."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    size = -(-float(found[1]) * _MIB[(found[2] or "G").upper()] // 1)
    return int(size) if 0 < size <= INT_MAX else None


def least(text: str) -> tuple[str, bool]:
    """Return the lower end of `8`, `8+`, `8..`, `8..16` or `..16`, and whether it is one of several values."""
    if ".." in text:
        return text.partition("..")[0].strip(), True
    return text.rstrip("+").strip(), text.endswith("+")


def is_slice(name: str) -> bool:
    return _TPU.fullmatch(name) is not None


def accelerator(given: RequestFields, path: str, name: str, count: str, values: Json) -> None:
    """Set the job's accelerator and its count, whichever cloud they are on."""
    at, report = given.name(path), given.report
    if _TPU.fullmatch(name):
        try:
            slice_name = tpu.tpu(name.lower()).name
        except (UnknownName, tpu.NoSuchSlice) as fault:
            report.refuse(at, str(fault))
            return
        if count != "1":
            report.refuse(at, f"asks for {count[:20]} slices; a job has one, or tpu_vm.slices of them")
            return
        values["accelerator"] = {"type": slice_name}
        given.keep_value(path, "accelerator.type")
        if slice_name != name:
            report.changed(at, slice_name, "is the slice's name in the Cloud TPU API")
        return
    stands = report.findings(at, gpus.accelerator_name(name, "accelerator", cloud="aws"))
    whole = re.fullmatch(r"(\d{1,4})(?:\.0+)?", count)
    if not whole or int(whole[1]) < 1:
        why = "a job file has whole GPUs; on GKE they are shared with gke.gpu_sharing or gke.gpu_partition"
        report.refuse(at, f"asks for {count[:20]} of {name[:40]}: {why}")
    elif stands:
        values["accelerator"] = {"type": name, "count": int(whole[1])}
        given.keep_value(path, "accelerator")


def variable(given: RequestFields, path: str, name: str, value: Any, chosen: Mapping[str, str], values: Json) -> None:
    """Set a variable, or a secret if `value` names one of a cloud. If `value` is None, --var has to give it."""
    at, report = given.name(path), given.report
    if not _NAME.fullmatch(name):
        report.refuse(at, "is not the name of an environment variable: letters, digits and _")
        return
    if name.startswith(RESERVED_PREFIXES):
        report.changed(at, None, "is set by the platform")
        return
    text: Any = chosen.get(name, value)
    if text is None:
        report.decide(at, f"has no value: give --var {name}=<value>, or the name of a secret of the cloud")
    elif not isinstance(text, str):
        report.refuse(at, "must be text; put it in quotes")
    elif re.search(r"[\n\r\0]", text.rstrip("\n")):
        report.refuse(at, "holds a line break, which a variable of a job file cannot; put it into a file or a secret")
    else:
        to = "secrets" if _REFERENCE.fullmatch(text) else "env"
        values.setdefault(to, {})[name] = text.rstrip("\n")
        if name in chosen and chosen[name] != value:
            report.changed(at, text, f"is given with --var, and is in {to}")
        elif text.endswith("\n"):
            report.changed(at, text.rstrip("\n"), "ends with a line break, which is left out")
        else:
            report.keep(at, to)


def choose_secret(given: RequestFields, path: str, name: str, chosen: Mapping[str, str], values: Json) -> None:
    """Set a secret, whose value a job file never has: --var names the cloud's, or gives it as a plain variable."""
    if name in chosen:
        variable(given, path, name, None, chosen, values)
        if name in values.get("env", {}):
            given.report.note(given.name(path), "is a plain variable of the job file; a secret's name would hide it")
        return
    why = (
        "a job file names a secret and never holds it: keep it in the cloud (Secrets Manager, Secret Manager) and give"
    )
    given.report.decide(given.name(path), f"{why} --var {name}=<its name: arn:... or projects/...>")


def is_filled(given: RequestFields, path: str, text: str) -> bool:
    """Return whether nothing in a text is left to be filled in. Report what is left as a decision or a refusal."""
    at = given.name(path)
    if found := _UNFILLED.search(text):
        name = found[1] or found[2] or found[3]
        given.report.findings(at, imports.variable(found[0], name if _NAME.fullmatch(name) else "", at))
        return False
    return given.report.findings(at, placeholders.value(at, text))


def mount_option(at: str, source: str = "<source>") -> str:
    """Return the option that says what is at a path, in quotes if a shell would replace its `~` by another folder."""
    option = f"{at}={source}"
    return f"--mount '{option}'" if at.startswith("~") else f"--mount {option}"


def mount(given: RequestFields, path: str, source: str, at: str, values: Json) -> bool:
    """Return whether the mount was added, not refused. `at`: its path in the container, where ~ is root's home."""
    name = given.name(path)
    plain = re.sub(r"^~(?=/|$)", "/root", at)
    if not plain.startswith("/"):
        given.report.refuse(name, f"is seen at {at[:80]}, below the working directory; a mount's path begins with /")
        return False
    mounts = values.setdefault("mounts", [])
    if any(each["path"].rstrip("/") == plain.rstrip("/") for each in mounts):
        given.report.refuse(name, f"is seen at {plain[:80]}, as another one is; use a path for each")
        return False
    mounts.append({"source": source, "path": plain})
    if plain != at:
        given.report.note(name, f"is mounted at {plain}: in a container, ~ is root's home")
    return True


def choose_mount(given: RequestFields, path: str, at: str, chosen: Mapping[str, str], values: Json) -> bool:
    """Mount the source that --mount names for a path. Return whether it names one."""
    plain = {key.rstrip("/") or "/": source for key, source in chosen.items()}
    source = plain.get(at.rstrip("/") or "/")
    if source is None:
        return False
    if mount(given, path, source, at, values):
        for each in given.paths(path):
            given.report.changed(given.name(each), source, "is mounted as chosen with --mount")
    return True


def named_values(given: RequestFields, file: str) -> Json:
    """Return a job's first value, its name: that of the document, or of its file."""
    if not given.has("name"):
        given.values["name"] = file.rpartition("/")[2].partition(".")[0]
    elif text := given.text("name"):
        is_filled(given, "name", text)
    return {"name": job_name(given, "name")}


def end_report(
    given: RequestFields, left_out: Mapping[str, str], known: Sequence[str], chosen: ImportOptions, values: Json
) -> None:
    """Report what is left out, add what the user chose beside the document, and close the report."""
    for table, why in left_out.items():
        given.left_out(table, why)
    unused_mounts(given, chosen.mounts, values)
    unused_variables(given, chosen.variables, values)
    given.report.close(known)


def unused_mounts(given: RequestFields, chosen: Mapping[str, str], values: Json) -> None:
    """Add the mounts that the user chose for paths that the document does not name."""
    seen = {mount["path"].rstrip("/") for mount in values.get("mounts", [])}
    for at, source in chosen.items():
        if re.sub(r"^~(?=/|$)", "/root", at).rstrip("/") not in seen:
            mount(given, f"--mount {at}", source, at, values)


def unused_variables(given: RequestFields, chosen: Mapping[str, str], values: Json) -> None:
    """Set the variables that the user gave and nothing in the document names, as --env of both tools does."""
    named = {*values.get("env", {}), *values.get("secrets", {})}
    for name in chosen:
        if name not in named and _NAME.fullmatch(name) and not _mentioned(given, name):
            variable(given, f"--var {name}", name, None, chosen, values)


def _mentioned(given: RequestFields, name: str) -> bool:
    asked = re.compile(rf"(?:\$\{{?|\{{\{{-?\s*(?:secrets\.)?){re.escape(name)}\b")
    for value in given.report.fields.values():
        texts = cast("list[Any]", value) if isinstance(value, list) else [value]
        if any(isinstance(text, str) and asked.search(text) for text in texts):
            return True
    return False


def cloud_of(given: RequestFields, path: str, cloud: str, region: str, place: Destination) -> str:
    """Take a cloud and a region for the target, and return what the report says about them."""
    name = {"k8s": "kubernetes", "google": "gcp"}.get(cloud.lower(), cloud.lower())
    if name in ("", "*"):
        place.region = place.region or region
        return "is the target's"
    if name not in CLOUDS:
        return f"accel has targets on AWS and Google Cloud, and none on {cloud[:40]}; --to says which one runs the job"
    place.kinds = CLOUDS[name]
    place.region = region if name != "kubernetes" else ""
    return f"is the target's: submit it with --to a target of kind {' or '.join(CLOUDS[name])}"


def node_exports(names: Sequence[str], *, count: str, rank: str, main: str) -> dict[str, str]:
    """Return shell lines that set the tool's variables from accel's. `count`, `rank`, `main`: the tool's names."""
    known = {
        count: f'export {count}="${{{NODE_COUNT}:-1}}"',
        rank: f'eval "export {rank}=\\${{${{{NODE_INDEX_FROM}:-ACCEL_NODE_INDEX}}:-0}}"',
        main: f'eval "export {main}=\\${{${{{MAIN_ADDRESS_FROM}:-ACCEL_MAIN_ADDRESS}}:-127.0.0.1}}"',
    }
    return {name: known[name] for name in names if name in known}


def own_variables(given: RequestFields, prefix: str, chosen: Mapping[str, str], values: Json) -> None:
    """Set the other tool's variables that --var gives, in place of their substitutes."""
    for name in chosen:
        if name.startswith(f"{prefix}_") and name not in {*values.get("env", {}), *values.get("secrets", {})}:
            variable(given, f"--var {name}", name, None, chosen, values)


def own_names(prefix: str, text: str) -> list[str]:
    return sorted(set(re.findall(rf"(?<![A-Z0-9_]){prefix}_[A-Z0-9_]*[A-Z0-9]", text)))


def address_list(name: str, line: str) -> list[str]:
    """Return shell lines that set a list of addresses of which only the first is known, which `line` sets. The list has
    as many entries as there are nodes, so that they can be counted."""
    more = f'i=1; while [ "$i" -lt "${{{NODE_COUNT}:-1}}" ]; do printf "\\nnode-$i"; i=$((i+1)); done'
    return [line, f'export {name}="${name}$({more})"']


def takes_first(text: str, name: str) -> bool:
    """Return whether a shell script reads no more than the first line and the number of lines of a variable that lists
    addresses. Comments and lines that only print it do not count."""
    first = re.compile(
        r"head -n ?1\b|head -1\b|head --lines[= ]1\b|sed -n ['\"]?1p|NR ?==? ?1\b|\| *wc -l"
        r"|\bread (?:-r )?\w+ _ <<<|\[\[? -[nz] "
    )
    lines = [line for line in text.splitlines() if re.search(rf"\b{name}\b", line) and line.lstrip()[:1] != "#"]
    return all(first.search(line) or _PRINTS.match(line) for line in lines)


def refuse_places(given: RequestFields, path: str, script: str) -> None:
    for place in places(script)[:3]:
        given.report.findings(given.name(path), placeholders.value(given.name(path), place))


def activates_conda(text: str) -> bool:
    """Return whether a shell script activates an environment of conda and leaves it to its shell to know how."""
    return _ACTIVATES.search(text) is not None and not _KNOWS_CONDA.search(text)
