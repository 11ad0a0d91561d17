"""Variables that Slurm sets in a job's environment, as shell lines that derive them from accel's own. Sources: the
output environment variables of https://slurm.schedmd.com/sbatch.html, and accel/contract/variables.py."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from accel.contract import variables as ours
from accel.whole_numbers import INT_MAX

from .slurm_values import Indices

_NAME = re.compile(r"\bSLURM(?:D)?_[A-Z0-9_]*[A-Z0-9]\b")
_GUARDED = re.compile(r"\$\{(SLURMD?_[A-Z0-9_]+):?[-+=?]")

_VARIABLE = re.compile(r"\$?\{?([A-Za-z_]\w*)\}?")
_PRODUCT = re.compile(r"""["']?\$\(\(([\w\s${}*]+)\)\)["']?[ \t]*(?:#.*)?""")


@dataclass(frozen=True)
class Shape:
    """Resources that the job asks for, as variables give them."""

    nodes: int = 1
    tasks: int = 1
    """Processes that srun starts on each node."""
    indices: Indices | None = None
    cpus_per_task: int | None = None
    cpus: int | None = None
    gpus: int = 0
    mem_mib: int | None = None
    mem_per_cpu_mib: int | None = None
    bind_gpus: int = 0
    """Number of its node's GPUs that each process of srun sees, if it sees only its own; otherwise 0."""


@dataclass(frozen=True)
class Variable:
    """Lines that set a variable. `why`: how it differs from Slurm's, for the author; `needs`: variables before it."""

    lines: tuple[str, ...]
    why: str = ""
    needs: tuple[str, ...] = ()


def _set(name: str, value: str, why: str = "", *needs: str) -> Variable:
    return Variable((f"export {name}={value}",), why, needs)


def _through(name: str, of: str, default: str) -> Variable:
    """Return a variable with the value of the variable whose name `of` holds."""
    return Variable((f'eval "export {name}=\\${{${{{of}:-{default}}}:-0}}"',))


def _main(shape: Shape) -> Variable:
    if shape.nodes == 1:
        return _set("SLURM_JOB_NODELIST", "$(hostname)")
    # Unset on the main node itself of some platforms.
    line = f'eval "export SLURM_JOB_NODELIST=\\${{${{{ours.MAIN_ADDRESS_FROM}:-ACCEL_NONE}}:-127.0.0.1}}"'
    return Variable((line,), "is the first node's address alone: the others are numbered, and have no list of names")


def table(shape: Shape) -> dict[str, Variable]:
    """Return the variables that can be set, each after those that it needs."""
    job = "is a number made of the job's name, the same each time that it is submitted"
    own = "is each node's own name: outside of srun, Slurm's is the first node's" if shape.nodes > 1 else ""
    per_node, gpus = shape.tasks, max(shape.gpus, 0)
    found = {
        "SLURM_JOB_NAME": _set("SLURM_JOB_NAME", f'"${ours.JOB_NAME}"'),
        "SLURM_JOB_ID": _set("SLURM_JOB_ID", f'$(printf %s "${ours.JOB_NAME}" | cksum | cut -d" " -f1)', job),
        "SLURM_NNODES": _set("SLURM_NNODES", f'"${{{ours.NODE_COUNT}:-1}}"'),
        "SLURM_NODEID": _through("SLURM_NODEID", ours.NODE_INDEX_FROM, "ACCEL_NONE"),
        "SLURM_NTASKS": _set("SLURM_NTASKS", f"$((SLURM_NNODES * {per_node}))", "", "SLURM_NNODES"),
        "SLURM_NTASKS_PER_NODE": _set("SLURM_NTASKS_PER_NODE", str(per_node)),
        "SLURM_TASKS_PER_NODE": _set("SLURM_TASKS_PER_NODE", str(per_node)),
        "SLURM_PROCID": _set("SLURM_PROCID", f"$((SLURM_NODEID * {per_node}))", "", "SLURM_NODEID"),
        "SLURM_LOCALID": _set("SLURM_LOCALID", "0"),
        "SLURM_JOB_NODELIST": _main(shape),
        "SLURM_CPUS_ON_NODE": _set("SLURM_CPUS_ON_NODE", str(shape.cpus or "$(nproc)")),
        "SLURM_SUBMIT_DIR": _set("SLURM_SUBMIT_DIR", '"$PWD"', "is the folder in which the command begins"),
        "SLURM_TMPDIR": _set("SLURM_TMPDIR", '"${TMPDIR:-/tmp}"', "is the container's own disk: see disk_gib"),
        "SLURM_RESTART_COUNT": _set(
            "SLURM_RESTART_COUNT", f"$((${{AWS_BATCH_JOB_ATTEMPT:-${{{ours.ATTEMPT}:-1}}}} - 1))"
        ),
        "SLURMD_NODENAME": _set("SLURMD_NODENAME", "$(hostname)", own),
        "SLURM_SUBMIT_HOST": _set("SLURM_SUBMIT_HOST", "$(hostname)", "is the machine that runs the job"),
        "SLURM_JOB_USER": _set("SLURM_JOB_USER", "$(id -un)", "is the container's user"),
        "SLURM_TASK_PID": _set("SLURM_TASK_PID", "$$"),
        "SLURM_GPUS_ON_NODE": _set("SLURM_GPUS_ON_NODE", str(gpus)),
        "SLURM_GPUS": _set("SLURM_GPUS", f"$((SLURM_NNODES * {gpus}))", "", "SLURM_NNODES"),
        "SLURM_JOB_GPUS": _set("SLURM_JOB_GPUS", ",".join(map(str, range(min(gpus, 64))))),
    }
    if shape.cpus_per_task:
        found["SLURM_CPUS_PER_TASK"] = _set("SLURM_CPUS_PER_TASK", str(shape.cpus_per_task))
    if shape.mem_mib:
        found["SLURM_MEM_PER_NODE"] = _set("SLURM_MEM_PER_NODE", str(shape.mem_mib))
    if shape.mem_per_cpu_mib:
        found["SLURM_MEM_PER_CPU"] = _set("SLURM_MEM_PER_CPU", str(shape.mem_per_cpu_mib))
    if shape.tasks and shape.gpus and not shape.gpus % shape.tasks:
        found["SLURM_GPUS_PER_TASK"] = _set("SLURM_GPUS_PER_TASK", str(shape.gpus // shape.tasks))
    if shape.indices:
        found |= _array(shape.indices)
    for name, of in _SAME.items():
        if of in found:
            found[name] = _set(name, f'"${of}"', found[of].why, of)
    return found


_SAME = {
    "SLURM_JOBID": "SLURM_JOB_ID",
    "SLURM_ARRAY_JOB_ID": "SLURM_JOB_ID",
    "SLURM_JOB_NUM_NODES": "SLURM_NNODES",
    "SLURM_NPROCS": "SLURM_NTASKS",
    "SLURM_NODELIST": "SLURM_JOB_NODELIST",
    "SLURM_STEP_NODELIST": "SLURM_JOB_NODELIST",
    "SLURM_JOB_CPUS_PER_NODE": "SLURM_CPUS_ON_NODE",
    "SLURM_GPUS_PER_NODE": "SLURM_GPUS_ON_NODE",
    "SLURM_STEP_GPUS": "SLURM_JOB_GPUS",
}


def _array(indices: Indices) -> dict[str, Variable]:
    values, step = indices.values, indices.step
    position = _through("SLURM_ARRAY_POSITION", ours.INDEX_FROM, ours.TASK_INDEX)
    if step is not None:
        first, times = values[0], f" * {step}" if step != 1 else ""
        value = f"$(({first} + SLURM_ARRAY_POSITION{times}))" if first or times else '"$SLURM_ARRAY_POSITION"'
    else:
        listed = " ".join(map(str, values))
        value = f'$(echo {listed} | cut -d" " -f$((SLURM_ARRAY_POSITION + 1)))'
    return {
        "SLURM_ARRAY_POSITION": position,
        "SLURM_ARRAY_TASK_ID": _set("SLURM_ARRAY_TASK_ID", value, "", "SLURM_ARRAY_POSITION"),
        "SLURM_ARRAY_TASK_COUNT": _set("SLURM_ARRAY_TASK_COUNT", str(len(values))),
        "SLURM_ARRAY_TASK_MIN": _set("SLURM_ARRAY_TASK_MIN", str(values[0])),
        "SLURM_ARRAY_TASK_MAX": _set("SLURM_ARRAY_TASK_MAX", str(values[-1])),
        "SLURM_ARRAY_TASK_STEP": _set("SLURM_ARRAY_TASK_STEP", str(step or 1)),
    }


OF_STEPS = ("SLURM_NNODES", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_PROCID", "SLURM_LOCALID",
            "SLURM_JOB_NODELIST", "SLURM_CPUS_PER_TASK")  # fmt: skip
"""Variables that programs started by srun read."""
RUN_TASKS = """\
run_tasks() (
  _n=$1 _i=0 _pids= _status=0; shift
  while [ "$_i" -lt "$_n" ]; do
    SLURM_LOCALID=$_i SLURM_PROCID=$((SLURM_NODEID * _n + _i)) SLURM_NTASKS=$((SLURM_NNODES * _n))BIND "$@" &
    _pids="$_pids $!"; _i=$((_i + 1))
  done
  eval "set -- $_pids"
  for _pid; do wait "$_pid" || _status=$?; done
  exit "$_status"
)"""
"""In a subshell and with names of its own, so that the script's variables stay as they are."""
SCONTROL = """scontrol() { printf '%s\\n' "$SLURM_JOB_NODELIST"; }"""


def names_in(text: str) -> dict[str, bool]:
    """Return Slurm's variables in a script, each with whether the script itself says what to use if it is not set."""
    found = dict.fromkeys(_NAME.findall(text), False)
    for name in _GUARDED.findall(text):
        if len(re.findall(rf"\b{name}\b", text)) == len(re.findall(rf"\$\{{{name}:?[-+=?]", text)):
            found[name] = True
    return found


def lines(names: Iterable[str], known: dict[str, Variable]) -> list[str]:
    wanted: set[str] = set()
    left = [name for name in names if name in known]
    while left:
        name = left.pop()
        if name not in wanted:
            wanted.add(name)
            left += known[name].needs
    return [line for name, each in known.items() if name in wanted for line in each.lines]


def run_tasks(shape: Shape) -> str:
    """Return a shell function that starts a program several times on a node, as srun does."""
    bind = ""
    if shape.bind_gpus == 1:
        bind = " CUDA_VISIBLE_DEVICES=$_i"
    elif shape.bind_gpus > 1:
        n = shape.bind_gpus
        bind = f" CUDA_VISIBLE_DEVICES=$(seq -s, $((_i * {n})) $((_i * {n} + {n - 1})))"
    return RUN_TASKS.replace("BIND", bind)


def number_of(body: str, value: Callable[[str], str], shape: Shape, text: str) -> int | None:
    """Return the number that an option of srun has: its own, one of Slurm's counts of the job, or a product of such
    numbers that a script computes once. Return None for any other variable. `value` replaces the variables of a word
    that the script sets."""
    nodes, tasks = shape.nodes, shape.tasks
    counts = {
        **dict.fromkeys(("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), nodes),
        **dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS"), nodes * tasks),
        "SLURM_NTASKS_PER_NODE": tasks,
    }
    if (named := _VARIABLE.fullmatch(text)) and named[1] not in counts:
        computed = re.findall(rf"^[ \t]*(?:export[ \t]+)?{named[1]}=(.*)$", body, re.MULTILINE)
        text = computed[0] if len(computed) == 1 else ""
    product = _PRODUCT.fullmatch(text)
    number = 1
    for factor in (product[1] if product else text).split("*"):
        named = _VARIABLE.fullmatch(factor.strip())
        own = value(f"${named[1]}" if named else factor.strip())
        if named and named[1] in counts:
            number *= counts[named[1]]
        elif re.fullmatch(r"\d{1,6}", own):
            number *= int(own)
        else:
            return None
    return number if number < INT_MAX else None
