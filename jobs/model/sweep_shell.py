"""Shell code that exports a task's parameters before its command, for any POSIX shell, with its builtins alone. A job's
tasks share one environment and one command on every platform, and only their index differs. Values are quoted words of
the script, never its code."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from accel.contract import variables

from ..runtime import sweep as parameters
from .sweep import WORD_MAX, Sweep, sweep_spec, text

SHELL = "/bin/sh"
_LEAST_ROW = 4
"""Fewest bytes that a task of `list` or `random` takes in the script."""

_INDEX = """\
case ${from} in {ours}) ;; *) {ours}=${native} ;; esac
"""
# A job that reruns some tasks of a sweep numbers them from 0; `only` gives their numbers in the sweep.
_SCRIPT = """\
accel_bad() {{ echo "accel: sweep: $1" >&2; exit 2; }}
{index}case ${ours} in ''|*[!0-9]*) accel_bad "no task's number in ${from}" ;; esac
if [ -n "${only}" ]; then
accel_left=${ours}
accel_rest=${only},
{ours}=
while [ -n "$accel_rest" ]; do
accel_span=${{accel_rest%%,*}}
accel_rest=${{accel_rest#*,}}
accel_low=${{accel_span%-*}}
accel_size=$((${{accel_span#*-}} - $accel_low + 1))
if [ "$accel_left" -lt "$accel_size" ]; then
{ours}=$(($accel_low + $accel_left))
break
fi
accel_left=$(($accel_left - $accel_size))
done
unset accel_left accel_rest accel_span accel_low accel_size {only}
fi
case ${ours} in ''|*[!0-9]*) accel_bad "the job has no such task" ;; esac
if [ "${ours}" -ge {count} ]; then accel_bad "task ${ours} of {count}"; fi
{table}
{from}={ours}
{tasks}={count}
export {names} {ours} {from} {tasks}
exec "$@"
"""


def command(spec: Mapping[str, Any], words: Sequence[str], kind: str) -> list[str]:
    """Return the argv that exports a task's parameters and then runs the command, on a platform of `kind`."""
    return [SHELL, "-c", script(spec, kind), "accel", *words]


def unwrap(words: Sequence[str]) -> list[str]:
    """Return the command that was passed to `command`; other words unchanged."""
    shell, *rest = words or [""]
    if shell != SHELL or len(rest) < 3 or not rest[1].startswith(_SCRIPT.partition("(")[0]):
        return list(words)
    return list(rest[3:])


def script(spec: Mapping[str, Any], kind: str) -> str:
    """Return a script that exits with code 2 where the platform gave no index of the sweep."""
    native, ours = variables.INDEX_VARIABLE[kind], variables.TASK_INDEX
    known = {"ours": ours, "native": native, "from": variables.INDEX_FROM}
    return _SCRIPT.format(
        **known,
        index="" if native == ours else _INDEX.format(**known),
        only=parameters.ONLY,
        tasks=variables.TASK_COUNT,
        count=parameters.count(spec),
        names=" ".join(parameters.names(spec)),
        table="\n".join(_grid(spec) if "grid" in spec else _rows(spec)),
    )


def _grid(spec: Mapping[str, Any]) -> list[str]:
    """Choose the value of each name by its own part of the index."""
    lines: list[str] = []
    stride = parameters.count(spec)
    for name, values in spec["grid"].items():
        stride //= len(values)
        lines.append(f"case $((${variables.TASK_INDEX} / {stride} % {len(values)})) in")
        lines += [f"{at}) {name}={shlex.quote(value)} ;;" for at, value in enumerate(values)]
        lines.append("esac")
    return lines


def _rows(spec: Mapping[str, Any]) -> list[str]:
    names = parameters.names(spec)
    sets = " ".join(f"{name}=${{{at}}}" for at, name in enumerate(names, 1))
    lines = [f"accel_set() {{ {sets}; }}", f"case ${variables.TASK_INDEX} in"]
    for index in range(parameters.count(spec)):
        values = parameters.params(spec, index).values()
        lines.append(f"{index}) accel_set {' '.join(shlex.quote(value) for value in values)} ;;")
    return [*lines, "esac"]


def size_faults(sweep: Sweep) -> list[str]:
    """Return a fault, `<path>: <words>`, for a sweep that exceeds what Linux gives a program."""
    spec = sweep_spec(sweep)
    fix = "make the sweep smaller, or several of it"
    if len(text(spec)) + len(variables.SWEEP) + 1 > WORD_MAX:
        return [f"sweep: has {len(text(spec))} bytes, of which a variable takes {WORD_MAX}; {fix}"]
    if not sweep.shell:
        return []
    rows = 0 if "grid" in spec else parameters.count(spec)
    size = rows * _LEAST_ROW
    if size <= WORD_MAX:
        # The longest script, whatever the platform.
        size = max(len(script(spec, kind).encode()) for kind in ("aws-batch", "local"))
    if size <= WORD_MAX:
        return []
    return [
        f"sweep: the parameters of {rows or parameters.count(spec)} tasks are more than the {WORD_MAX} bytes that a "
        "command may have; shell: false leaves them to the program"
    ]
