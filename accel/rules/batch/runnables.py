"""The runnables of a task on Google Batch: command, Docker options, mounts, and output paths."""

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

from accel.diagnostics.findings import Finding
from accel.rules.jobs import placeholders
from accel.rules.table import rule

UNEXPANDED = rule("google-batch.unexpanded")
ENTRY_POINT = rule("google-batch.entry-point")
ONE_WORD = rule("google-batch.command.one-word")
GPUS_OPTION = rule("google-batch.gpus-option")
OPTIONS = rule("google-batch.docker-options")
BIND = rule("google-batch.bind-mount")
SOURCE = rule("google-batch.mount")
PATH = rule("google-batch.mount-path")
LOGS_PATH = rule("google-batch.logs-path")
LOCAL_OUTPUT = rule("google-batch.local-output")
STEPS = rule("google-batch.runnables")

SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh", "busybox")
HOST_FOLDERS = ("/etc/cloudbatch-taskgroup-hosts", "/etc/ssh", "/root/.ssh", "/var/lib/nvidia", "/dev", "/tmp")  # noqa: S108
"""Folders of a VM that Batch or its image fill, or in which the steps of one task leave files for each other."""
_PROGRAM = re.compile(
    r"(/[\w./-]+/)?(python[\d.]*|(ba|da|z|k)?sh|torchrun|accelerate|deepspeed|mpirun|node|java|Rscript)"
)
_BATCH_VARIABLE = re.compile(r"\$(?:\{(BATCH_[A-Z_]+)\}|(BATCH_[A-Z_]+)\b)")
_BUCKET = re.compile(r"gs://[a-z0-9][-_.a-z0-9]{1,220}[a-z0-9](?:/[^,:\0]*)?")
_NFS = re.compile(r"nfs://[A-Za-z0-9][A-Za-z0-9.-]*/[^,:\s\0]*")
_OUTPUT = re.compile(r"(?i)(^|[-_])(output|out|save|checkpoints?|ckpt|results?|export)([-_]|$)")


def command(words: Sequence[str], field: str = "command") -> list[Finding]:
    """Check a whole argv for a variable of Batch's that nothing expands. The replacement is a shell's argv."""
    shown = expand_variables(words)
    if shown == list(words):
        return []
    if shown == split(words):
        return [ONE_WORD.finding(field, f"is one string, {words[0]!r}", f"write [{', '.join(shown)}]", shown)]
    name = next(found[0] for word in words if (found := _BATCH_VARIABLE.search(word)))
    message = f"has {name} in the arguments of {words[0]}, where no shell puts its value in"
    return [UNEXPANDED.finding(field, message, f"it is run by /bin/sh -c: {' '.join(shown[-1].split())[:200]}", shown)]


def expand_variables(words: Sequence[str]) -> list[str]:
    """Return the argv of a shell that expands Batch's variables, or the command if it has none or is a shell's."""
    words = split(words)
    if _shell(words) or not any(_BATCH_VARIABLE.search(word) for word in words):
        return list(words)
    return ["/bin/sh", "-c", f"exec {' '.join(_quoted(word) for word in words)}"]


def split(words: Sequence[str]) -> list[str]:
    """Split a first word that is a whole command line, unless its quotes do not match."""
    if not words or len(words[0].split()) < 2:
        return list(words)
    try:
        return [*shlex.split(words[0]), *words[1:]]
    except ValueError:
        return list(words)


def _shell(words: Sequence[str]) -> bool:
    first = words[0].rpartition("/")[2] if words else ""
    return first in SHELLS and any(re.fullmatch(r"-[a-z]*c[a-z]*", word) for word in words[1:4])


def _quoted(word: str) -> str:
    """Quote a word for a shell, except for Batch's variables."""
    found, last = "", 0
    for name in _BATCH_VARIABLE.finditer(word):
        if literal := word[last : name.start()]:
            found += shlex.quote(literal)
        found += f'"${{{name[1] or name[2]}}}"'
        last = name.end()
    return found + (shlex.quote(word[last:]) if word[last:] or not word else "")


def entry_point(entrypoint: str | None, commands: Sequence[str], field: str = "commands") -> list[Finding]:
    """Check commands without an entry point that begin with a program. The replacement is the entry point."""
    if entrypoint or not commands or not _PROGRAM.fullmatch(commands[0]):
        return []
    message = f'begin with "{commands[0]}", and are appended to an ENTRYPOINT that the image may have'
    return [ENTRY_POINT.finding(field, message, f"{commands[0]} is named as the entry point", commands[0])]


def docker_options(options: str | None, field: str = "docker_options") -> list[Finding]:
    """Check the options. The replacement for `--gpus all` is the options without it."""
    if not options:
        return []
    try:
        words = shlex.split(options)
    except ValueError:
        return [OPTIONS.finding(field, f'are "{options[:80]}", whose quotes do not match', "close them")]
    found = [
        OPTIONS.finding(field, f"have {word}, which is for the fields of a job", fix)
        for word in words
        for names, fix in _FIELDS_FOR.items()
        if word.partition("=")[0] in names
    ]
    without = _without_gpus(words)
    if len(without) < len(words):
        message = f'are "{options[:80]}", and Batch gives the container its GPUs by itself'
        found.append(GPUS_OPTION.finding(field, message, "--gpus is left out", shlex.join(without) or None))
    return found


_FIELDS_FOR = {
    ("-v", "--volume", "--mount"): "use mounts",
    ("--entrypoint",): "use command",
    ("-e", "--env", "--env-file"): "use env",
    ("--shm-size",): "use shm_mib",
}


def _without_gpus(words: Sequence[str]) -> list[str]:
    found: list[str] = []
    skip = False
    for word in words:
        if skip or word.startswith("--gpus="):
            skip = False
        elif word == "--gpus":
            skip = True
        else:
            found.append(word)
    return found


def binds(volumes: Iterable[str], mounted: Collection[str], field: str = "volumes") -> list[Finding]:
    """Check `/host:/container[:ro]` against the mount points of the task's volumes."""
    found: list[Finding] = []
    for i, volume in enumerate(volumes):
        host = volume.partition(":")[0]
        if any(_inside(host, folder) for folder in (*mounted, *HOST_FOLDERS)):
            continue
        message = f'is "{volume}", and no volume of the task is mounted at {host}: the folder is empty on a new VM'
        fix = "name its bucket, share or disk as a mount (source: gs://<bucket>), or leave it out"
        found.append(BIND.finding(f"{field}[{i}]", message, fix))
    return found


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def mount(source: str, field: str = "source") -> list[Finding]:
    """Check a source: gs://bucket[/folder] or nfs://server/share."""
    shown = source[:80]
    if unfilled := placeholders.value(field, source):
        return unfilled
    if source.startswith("host://") or source.startswith("/"):
        message = f'is "{shown}", a folder of the VM, which is new for the job and has nothing there'
        return [SOURCE.finding(field, message, "use gs://<bucket>[/folder], nfs://<server>/<share>, or a disk (disks)")]
    if not (_BUCKET.fullmatch(source) or _NFS.fullmatch(source)):
        message = f'is "{shown}", which is neither gs://<bucket>[/folder] nor nfs://<server>/<share>'
        return [SOURCE.finding(field, message, "use one of the two, or a disk (disks)")]
    if ".." in source.split("/"):
        return [SOURCE.finding(field, f'is "{shown}", which has ..', "name the folder itself")]
    return []


def mount_paths(paths: Mapping[str, str]) -> list[Finding]:
    found: list[Finding] = []
    first: dict[str, str] = {}
    for field, path in paths.items():
        plain = path.rstrip("/")
        if not plain or re.search(r"[:,\s\0]", path) or ".." in path.split("/"):
            message = f'is "{path[:80]}"'
            found.append(PATH.finding(field, message, "use a folder below /, without .., colon, comma and space"))
        elif plain in ("/dev/shm", "/dev", "/proc", "/sys", "/etc"):  # noqa: S108 - refused
            found.append(PATH.finding(field, f"is {plain}, which is the container's own", "use another folder"))
        elif plain in first:
            found.append(PATH.finding(field, f"is {plain}, as is {first[plain]}", "use another folder"))
        first.setdefault(plain, field)
    return found


def logs_path(path: str | None, kept: Collection[str], field: str = "logs_path") -> list[Finding]:
    if path is None or any(_inside(path, folder) for folder in kept):
        return []
    message = f"is {path}, which is in none of the job's writable mounts and is deleted with the VM"
    fix = f"use a folder of {' or '.join(kept)}" if kept else "mount a bucket, or leave it out for Cloud Logging"
    return [LOGS_PATH.finding(field, message, fix)]


def local_output(words: Sequence[str], variables: Mapping[str, str], kept: Collection[str]) -> list[Finding]:
    """Check for outputs, recognized by name, outside of all mounts."""
    return [
        LOCAL_OUTPUT.finding(
            field,
            f"has {name} {value[:80]}, on the VM's own disk, which is deleted after the task",
            "write to a mounted bucket, or upload it",
        )
        for field, name, value in output_paths(words, variables, kept)
    ]


def output_paths(
    words: Sequence[str], variables: Mapping[str, str], kept: Collection[str]
) -> list[tuple[str, str, str]]:
    """Return field, name and folder of each output, recognized by name, outside of the persistent folders."""
    named = [("command", *pair) for pair in _named(words)]
    named += [(f"env.{name}", name, text) for name, text in variables.items()]
    return [
        (field, name, value)
        for field, name, value in named
        if _OUTPUT.search(name) and value.startswith("/") and not any(_inside(value, each) for each in (*kept, "/dev"))
    ]


def _named(words: Sequence[str]) -> Iterable[tuple[str, str]]:
    for i, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        if not equals and i + 1 < len(words):
            value = words[i + 1]
        yield name, value


def steps(kinds: Sequence[str], background: Sequence[bool], field: str = "runnables") -> list[Finding]:
    """Check the steps (`container`, `script`, `barrier`), and which are in the background."""
    if any(kind != "barrier" and not behind for kind, behind in zip(kinds, background, strict=True)):
        return []
    message = "have no container and no script whose end is waited for, so that tasks end at once"
    return [STEPS.finding(field, message, "let one of them run in the foreground")]
