"""Options of `sbatch`, `srun` and containers, by their long names. Sources: https://slurm.schedmd.com/sbatch.html and
srun.html; for container options, https://github.com/NVIDIA/pyxis."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from .names import suggestion

Takes = Literal["value", "none", "optional"]


@dataclass(frozen=True)
class SlurmOption:
    """Option as written. `value`: empty if it has none; `fault`: what is wrong; `note`: such as how Slurm reads it."""

    name: str
    written: str
    value: str = ""
    line: int = 0
    ignored: bool = False
    """True if a command stands above the option, so that Slurm does not read it."""
    fault: str = ""
    note: str = ""


_WORDS = re.compile(r"\S+")
_VALUES = _WORDS.findall(
    "account acctg-freq array batch bb bbf begin bell chdir cluster-constraint clusters comment constraint container "
    "container-id core-spec cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot "
    "dependency distribution error exclude export export-file extra extra-node-info gid gpu-bind gpu-freq gpus "
    "gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input job-name licenses mail-type mail-user "
    "mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nodefile nodelist nodes ntasks ntasks-per-core "
    "ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output partition power prefer priority profile "
    "propagate qos reservation segment signal sockets-per-node switches thread-spec threads-per-core time time-min "
    "tmp tres-bind tres-per-task uid wckey wrap image module volume container-image container-mounts "
    "container-workdir container-name container-save container-env resv-ports accel-bind mpi task-epilog task-prolog "
    "epilog prolog het-group pack-group jobid relative slurmd-debug threads max-exit-timeout max-launch-time compress "
    "bcast tree-width msg-timeout wait-all-nodes kill-on-invalid-dep workdir tasks-per-node tasks "
    "cluster cpu_bind mem_bind"
)
_FLAGS = _WORDS.findall(
    "contiguous disable-stdout-job-summary hold ignore-pbs multi-prog no-requeue overcommit parsable quiet reboot "
    "requeue spread-job stepmgr test-only use-min-nodes verbose wait consolidate-segments spread-segments "
    "container-mount-home no-container-mount-home container-remap-root no-container-remap-root container-entrypoint "
    "no-container-entrypoint container-writable container-readonly pty exact overlap label unbuffered "
    "disable-status preserve-env quit-on-interrupt send-libs whole external no-allocate"
)
_OPTIONAL = ("exclusive", "get-user-env", "nice", "no-kill", "oversubscribe", "share", "immediate", "x11")
_OF_SRUN: dict[str, Takes] = {"wait": "value", "kill-on-bad-exit": "optional", "pty": "optional"}
_BOTH: dict[str, Takes] = {
    **dict.fromkeys(_VALUES, "value"),
    **dict.fromkeys(_FLAGS, "none"),
    **dict.fromkeys(_OPTIONAL, "optional"),
    "kill-on-bad-exit": "optional",
}
ALIASES = {"workdir": "chdir", "tasks-per-node": "ntasks-per-node", "tasks": "ntasks", "share": "oversubscribe",
           "cluster": "clusters", "cpu_bind": "cpu-bind", "mem_bind": "mem-bind"}  # fmt: skip
_SHORT = {
    **{"A": "account", "a": "array", "b": "begin", "B": "extra-node-info", "c": "cpus-per-task", "C": "constraint"},
    **{"d": "dependency", "D": "chdir", "e": "error", "F": "nodefile", "G": "gpus", "H": "hold", "i": "input"},
    **{"J": "job-name", "k": "no-kill", "L": "licenses", "m": "distribution", "M": "clusters", "n": "ntasks"},
    **{"N": "nodes", "o": "output", "O": "overcommit", "p": "partition", "q": "qos", "Q": "quiet", "S": "core-spec"},
    **{"s": "oversubscribe", "t": "time", "v": "verbose", "w": "nodelist", "W": "wait", "x": "exclude"},
}
_SHORT_OF_SRUN = {"l": "label", "u": "unbuffered", "K": "kill-on-bad-exit", "r": "relative", "E": "preserve-env",
                  "I": "immediate", "T": "threads", "X": "disable-status", "Z": "no-allocate"}  # fmt: skip
KNOWN = tuple(_BOTH)
_OF_SRUN_ALONE = _WORDS.findall(
    "jobid relative pty exact overlap label unbuffered multi-prog mpi epilog prolog task-epilog task-prolog bcast "
    "compress threads slurmd-debug kill-on-bad-exit disable-status preserve-env quit-on-interrupt send-libs whole "
    "external no-allocate tree-width msg-timeout max-exit-timeout max-launch-time accel-bind"
)
_TEMPLATE = re.compile(r"\{\{.*?\}\}|%%\w+|@\w+@|<[A-Za-z][\w -]*>|(?<!\$)\{\w[\w.]*\}")
_DASHES = "‐‑‒–—―−"


def directives(text: str) -> Iterator[SlurmOption]:
    """Yield the options of a script's `#SBATCH` lines, including those below its first command."""
    is_read = True
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("#SBATCH"):
            # Without a space too: https://github.com/SchedMD/slurm/blob/master/src/sbatch/opt.c
            words = _words(line.removeprefix("#SBATCH"))
            found, _ = options_of(words, number)
            note = "is a place of a template: write its value there" if _TEMPLATE.search(" ".join(words)) else ""
            cut = "ends at the #, as Slurm reads it: write \\# for a part of the value" if _is_cut(line) else ""
            for each in found:
                yield replace(each, ignored=not is_read, note=note or (cut if each is found[-1] else "") or each.note)
        elif line.strip() and not line.lstrip().startswith("#"):
            is_read = False


def body_of(text: str) -> str:
    """Return the script with its `#SBATCH` lines emptied, so that the number of lines stays the same."""
    return "\n".join("" if line.startswith("#SBATCH") else line for line in text.split("\n"))


def options_of(
    words: Sequence[str], line: int, *, srun: bool = False, stops: bool = False
) -> tuple[list[SlurmOption], int]:
    """Return a directive's options, or those that begin a command (`srun`; `stops`: sbatch), and their words' count."""
    found: list[SlurmOption] = []
    index = 0
    while index < len(words):
        word = words[index]
        if word == "--":
            index += 1
            break
        if len(word) < 2 or word[0] not in f"-{_DASHES}":
            if srun or stops:
                break
            found.append(SlurmOption("", word, "", line, fault="is no option: Slurm refuses the script for it"))
            index += 1
            continue
        following = words[index + 1] if index + 1 < len(words) else None
        each, more = _long(word, following, line, srun) if _is_long(word) else _short(word, following, line, srun)
        found += each
        index += 1 + more
    return found, index


def _is_long(word: str) -> bool:
    return word.startswith("--")


def _takes(name: str, srun: bool) -> Takes:
    return (srun and _OF_SRUN.get(name)) or _BOTH[name]


def _long(word: str, following: str | None, line: int, srun: bool) -> tuple[list[SlurmOption], int]:
    given, equals, value = word[2:].partition("=")
    name, fault = _whole(given, srun)
    written = f"--{given}"
    if fault:
        takes_next = not equals and following is not None and not following.startswith("-") and not srun
        return [SlurmOption("", written, value or (following or "" if takes_next else ""), line, fault=fault)], int(
            takes_next
        )
    takes = _takes(name, srun)
    name = ALIASES.get(name, name)
    if takes == "none":
        fault = "takes no value" if equals else ""
        return [SlurmOption(name, written, value, line, fault=fault)], 0
    if equals or takes == "optional":
        return [SlurmOption(name, written, value, line)], 0
    if following is None:
        return [SlurmOption(name, written, "", line, fault="has no value")], 0
    return [SlurmOption(name, written, following, line)], 1


def _short(word: str, following: str | None, line: int, srun: bool) -> tuple[list[SlurmOption], int]:
    if word[0] in _DASHES:
        plain = word.lstrip(_DASHES + "-").partition("=")[0]
        fault = f"begins with a dash that is no -: write --{plain}"
        return [SlurmOption("", word.partition("=")[0], word.partition("=")[2], line, fault=fault)], 0
    found: list[SlurmOption] = []
    known = {**_SHORT, **(_SHORT_OF_SRUN if srun else {})}
    rest = word[1:]
    while rest:
        letter, rest = rest[0], rest[1:]
        written = f"-{letter}"
        name = known.get(letter)
        if name is None:
            near = suggestion(word[1:].partition("=")[0], KNOWN) if not found else ""
            found.append(SlurmOption("", written, rest, line, fault=f"is no option of Slurm{near}"))
            return found, 0
        takes = _takes(name, srun)
        if takes == "none":
            found.append(SlurmOption(name, written, "", line))
            continue
        if rest or takes == "optional":
            note = "a value follows a short option without =" if rest.startswith("=") else ""
            found.append(SlurmOption(name, written, rest.removeprefix("="), line, note=note))
            return found, 0
        if following is None:
            found.append(SlurmOption(name, written, "", line, fault="has no value"))
            return found, 0
        found.append(SlurmOption(name, written, following, line))
        return found, 1
    return found, 0


def _whole(given: str, srun: bool) -> tuple[str, str]:
    """Return the long name that a word means, which may be abbreviated, and what is wrong with it."""
    if given in KNOWN:
        return given, ""
    longer = [name for name in KNOWN if given and name.startswith(given) and (srun or name not in _OF_SRUN_ALONE)]
    if len(longer) == 1:
        return longer[0], ""
    if longer:
        return "", f"may be --{' or --'.join(longer[:4])}"
    near = suggestion(given, KNOWN)
    return "", f"is no option of Slurm{near or '; leave it out, where it is of a plugin of the cluster'}"


_WORD = re.compile(r"""(?:\\.|"(?:\\.|[^"\\])*"?|'[^']*'?|[^\s\\"'#])+|\\|#.*""", re.DOTALL)


def _words(line: str) -> list[str]:
    words: list[str] = []
    for found in _WORD.finditer(line):
        if found[0].startswith("#"):
            break
        words.append(plain_word(found[0]))
    return words


def _is_cut(line: str) -> bool:
    """Return whether a directive ends at a # inside of a word."""
    parts = list(_WORD.finditer(line.removeprefix("#SBATCH")))
    last = next((at for at, part in enumerate(parts) if part[0].startswith("#")), 0)
    return last > 0 and parts[last - 1].end() == parts[last].start()


def plain_word(word: str) -> str:
    """Return a word without the quotes and backslashes that a shell removes."""
    out: list[str] = []
    opened, index = "", 0
    while index < len(word):
        letter = word[index]
        if letter == "\\" and opened != "'" and index + 1 < len(word):
            index += 1
            if word[index] != "\n":
                out.append(word[index])
        elif opened and letter == opened:
            opened = ""
        elif not opened and letter in "\"'":
            opened = letter
        else:
            out.append(letter)
        index += 1
    return "".join(out)
