"""Multi-process launchers (torchrun, accelerate) and their variables, against the nodes and GPUs of a job."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

UNEXPANDED = rule("launcher.unexpanded")
NODES = rule("launcher.nodes")
PROCESSES = rule("launcher.processes")
IDLE = rule("launcher.idle-gpus")
RANK = rule("launcher.rank")
MEETING = rule("launcher.rendezvous")

SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh")
LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]", "0.0.0.0")  # noqa: S104 - compared, not listened on

_NODE_VARIABLE = (
    r"MASTER_(?:ADDR|PORT)|(?:NODE_|LOCAL_|GROUP_)?RANK|WORLD_SIZE|PET_[A-Z_]+|JOB_COMPLETION_INDEX"
    r"|ACCEL_[A-Z_]+|AWS_BATCH_[A-Z0-9_]+|TPU_WORKER_[A-Z]+"
)
_CALL = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_DOLLAR = re.compile(r"\$\{?(" + _NODE_VARIABLE + r")\b")
_KNOWN = re.compile(_NODE_VARIABLE)

_FLAGS = frozenset({
    *("--standalone", "--no-python", "--run-path", "--help"),
    *("--multi-gpu", "--cpu", "--tpu", "--use-deepspeed", "--use-fsdp", "--quiet", "-q", "--debug"),
})  # fmt: skip
"""Options without a value."""

OPTIONS: Mapping[str, str] = {
    "--nnodes": "nodes", "--num-machines": "nodes",
    "--nproc-per-node": "processes", "--num-processes": "all-processes",
    "--node-rank": "rank", "--machine-rank": "rank",
    "--master-addr": "address", "--main-process-ip": "address", "--rdzv-endpoint": "address",
    "--standalone": "alone",
}  # fmt: skip
VARIABLES: Mapping[str, str] = {
    "PET_NNODES": "nodes", "PET_NPROC_PER_NODE": "processes", "WORLD_SIZE": "world",
    "PET_NODE_RANK": "rank", "NODE_RANK": "rank", "RANK": "rank", "GROUP_RANK": "rank",
    "MASTER_ADDR": "address", "PET_MASTER_ADDR": "address", "PET_RDZV_ENDPOINT": "address",
    "PET_STANDALONE": "alone",
}  # fmt: skip
"""Meaning of each option or variable: number of nodes, of processes on one node or on all, rank of this node,
rendezvous. torchrun reads its options from variables that begin with PET_."""


@dataclass(frozen=True)
class Shape:
    """A job's nodes, and the GPUs of each; None: unknown."""

    nodes: int
    gpus: int | None


def check(command: Sequence[str], env: Mapping[str, object], shape: Shape) -> list[Finding]:
    found = list(_unexpanded(command, env))
    for index, argv, in_shell in _launchers(command):
        for option, value in _options(argv):
            if "$" in value:
                if not in_shell and (name := _DOLLAR.search(value)):
                    found.append(_literal(f"command[{index}]", f"{option} {value}", name[1]))
                continue
            found += _judged(OPTIONS.get(option), f"command[{index}]", f"{option} {value}".strip(), value, shape)
    for name, value in env.items():
        if name in VARIABLES and isinstance(value, str):
            found += _judged(VARIABLES[name], f"env.{name}", value, value, shape)
    return found


def _unexpanded(command: Sequence[str], env: Mapping[str, object]) -> Iterator[Finding]:
    for index, word in enumerate(command):
        for name in _CALL.findall(word):
            if name in env or _KNOWN.fullmatch(name):
                yield _literal(f"command[{index}]", word, name)
                break


def _literal(field: str, shown: str, name: str) -> Finding:
    message = f"has {name} in {shown[:80]!r}, which stays as it is written"
    return UNEXPANDED.finding(field, message, f"run it by a shell: [bash, -c, '... ${name} ...']")


def _launchers(command: Sequence[str]) -> Iterator[tuple[int, list[str], bool]]:
    """Yield index and arguments of each launcher, and whether a shell reads it."""
    if not command:
        return
    if command[0].rpartition("/")[2] in SHELLS:
        scripts = [i + 1 for i, word in enumerate(command[:-1]) if re.fullmatch(r"-[a-z]*c", word)]
        for index in scripts[:1]:
            for words in _commands(command[index]):
                if (argv := _after_launcher(words)) is not None:
                    yield index, argv, True
        return
    if (argv := _after_launcher(list(command))) is not None:
        yield len(command) - len(argv) - 1, argv, False


def _commands(script: str) -> Iterator[list[str]]:
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        simple: list[str] = []
        try:
            for word in words:
                if set(word) <= set(";&|()<>"):
                    yield simple
                    simple = []
                else:
                    simple.append(word)
        except ValueError:
            continue  # quotes that go on over lines
        yield simple


def _after_launcher(words: Sequence[str]) -> list[str] | None:
    for index, word in enumerate(words):
        name = word.rpartition("/")[2]
        following = list(words[index + 1 : index + 3])
        if name == "torchrun":
            return list(words[index + 1 :])
        if re.fullmatch(r"python[\d.]*", name) and following[:1] == ["-m"]:
            if following[1:] in (
                ["torch.distributed.run"],
                ["torch.distributed.launch"],
                ["accelerate.commands.launch"],
            ):
                return list(words[index + 3 :])
            return None
        if name == "accelerate" and following[:1] == ["launch"]:
            return list(words[index + 2 :])
    return None


def _options(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield options with their values, up to the program that the launcher starts."""
    index = 0
    while index < len(argv):
        word = argv[index]
        if not word.startswith("-") or word in ("-m", "--module", "--"):
            return
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        following = argv[index + 1] if index + 1 < len(argv) else ""
        # An option followed by another option has no value, whether it is known here or not.
        alone = bool(equals) or name in _FLAGS or following.startswith("--")
        yield name, value if alone else following
        index += 1 if alone else 2


def _judged(says: str | None, field: str, shown: str, value: str, shape: Shape) -> Iterator[Finding]:
    match says:
        case "nodes":
            yield from _nodes(field, shown, value, shape)
        case "processes" if value.isdecimal():
            yield from _processes(field, shown, int(value), shape)
        case "all-processes" if value.isdecimal() and int(value) % shape.nodes == 0:
            yield from _processes(field, shown, int(value) // shape.nodes, shape)
        case "all-processes" if value.isdecimal():
            fix = f"write a multiple of {shape.nodes}, or leave it out"
            yield NODES.finding(field, f"is {shown}, which {shape.nodes} nodes cannot share evenly", fix)
        case "world" if value.isdecimal() and shape.nodes > 1:
            if int(value) not in (shape.nodes, shape.nodes * (shape.gpus or 1)):
                yield NODES.finding(field, f"is {value}, and the job has {_shown(shape)}", "leave it out")
        case "rank" if shape.nodes > 1 and value.isdecimal():
            message = f"is {shown}, the same on each of {shape.nodes} nodes"
            yield RANK.finding(field, message, "leave it out: every node gets a rank of its own")
        case "address" if shape.nodes > 1:
            host = value if value.count(":") > 1 else value.partition(":")[0]
            where = "itself on every node" if host in LOOPBACK else "not where these nodes are"
            message = f"is {shown}, {where}, and the job has {shape.nodes} nodes"
            yield MEETING.finding(field, message, "leave it out: MASTER_ADDR is set on every node")
        case "alone" if shape.nodes > 1 and value in ("", "1"):
            message = f"is {shown}, so that each of {shape.nodes} nodes would train alone"
            yield MEETING.finding(field, message, "leave it out")
        case _:
            return


def _nodes(field: str, shown: str, value: str, shape: Shape) -> Iterator[Finding]:
    if not re.fullmatch(r"\d+(:\d+)?", value):
        return
    least, _, most = value.partition(":")
    if not int(least) <= shape.nodes <= int(most or least):
        fix = f"write nodes: {least} in the job, or {shape.nodes} here, or leave it out"
        yield NODES.finding(field, f"is {shown}, and the job has {_shown(shape)}", fix)


def _processes(field: str, shown: str, count: int, shape: Shape) -> Iterator[Finding]:
    if not shape.gpus or count == shape.gpus:
        return
    message = f"is {shown}, and a node has {shape.gpus} GPU{'s' * (shape.gpus > 1)}"
    broken = PROCESSES if count > shape.gpus else IDLE
    yield broken.finding(field, message, f"write {shape.gpus}, or leave it out")


def _shown(shape: Shape) -> str:
    return "one node" if shape.nodes == 1 else f"{shape.nodes} nodes"
