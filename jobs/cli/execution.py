"""`jobs exec` after its options: run the command in a job's tasks or nodes, or --check their machines, a row each."""

import os
import sys
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from accel.console.errors import say
from accel.console.options import Settings
from accel.console.output import show
from accel.diagnostics.errors import BadInput, Interrupted, JobFailed, JobsError
from accel.diagnostics.redaction import own

from ..backends.base import Exec, JobRef, Places, Streams
from ..client import resolve
from ..client.fanout import Lines, everywhere
from ..client.machine_check import ask, judge
from ..client.machine_check import command as check_command
from ..client.machine_check.judge import free_share

if TYPE_CHECKING:
    from ..client.machine_check import MachineReport

COLUMNS = ("node", "host", "devices", "driver", "cuda", "nccl", "libtpu", "disk_free", "skew_s", "verdict")
WIDE = (*COLUMNS[:-1], "torch", "jax", "memory_gib", "shm_gib", "ecc_errors", "xids", "python", "verdict")


def execute(
    job: str,
    command: tuple[str, ...],
    settings: Settings,
    *,
    task: int | None,
    stdin: bool,
    tty: bool,
    host: bool,
    check: bool,
) -> int:
    """Return the exit code. Raises BadInput, Interrupted, and JobFailed where --check finds faults."""
    if check == bool(command):
        raise BadInput("--check: takes no COMMAND" if check else "COMMAND is missing", "`-- nvidia-smi`, or --check")
    if check and (stdin or tty):
        raise BadInput("--check: takes neither --stdin nor --tty")
    ref, backend = resolve.job(job, settings)
    if not isinstance(backend, Exec):
        raise BadInput(f"{ref}: no command can be run in jobs of kind {ref.kind}")
    if tty and not sys.stdin.isatty():
        raise BadInput("--tty: standard input is no terminal; leave it out, or use --stdin")
    try:
        places = backend.places(ref) if check or task is None else None
        if check and places:
            numbers = places.running if task is None else (task,)
            check_machines(backend, ref, places, numbers, host, settings.output)
            code = 0
        elif places is None or places.word is None:
            code = _one(backend, ref, command, task, stdin, tty, host)
        elif stdin or tty:
            shown = ", ".join(map(str, places.running[:6])) + (", ..." if len(places.running) > 6 else "")
            raise BadInput(f"{ref}: --{places.word} is missing; {places.word}s that run: {shown}")
        else:
            code = _several(backend, ref, command, places, host)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {ref} goes on, and so may the command") from None
    return code


def _one(
    backend: Exec, ref: JobRef, command: tuple[str, ...], task: int | None, stdin: bool, tty: bool, host: bool
) -> int:
    size = os.get_terminal_size(sys.stdin.fileno()) if tty else None
    streams = Streams(_write, _read if stdin or tty else None, None if size is None else (size.columns, size.lines))
    with _raw(tty):
        return backend.run(ref, command, streams, task=task, host=host)


def _several(backend: Exec, ref: JobRef, command: tuple[str, ...], places: Places, host: bool) -> int:
    """Return the first exit code that is not 0."""
    lines = Lines(_write)

    def work(number: int) -> int:
        name = f"{places.word} {number}"
        streams = Streams(lambda is_error, data: lines.write(name, is_error, data))
        try:
            return backend.run(ref, command, streams, task=number, host=host)
        except JobsError as error:
            lines.write(name, True, f"error: {error.message}{f' ({error.hint})' if error.hint else ''}\n".encode())
            raise
        finally:
            lines.end(name)

    ends = everywhere(places.running, work).values()
    codes = [end.exit_code if isinstance(end, JobsError) else end for end in ends]
    return next((code for code in codes if code), 0)


def _read(most: int) -> bytes:
    return os.read(sys.stdin.fileno(), most)


def _write(to_stderr: bool, data: bytes) -> None:
    stream = own(sys.stderr if to_stderr else sys.stdout).buffer
    stream.write(data)
    stream.flush()


@contextmanager
def _raw(tty: bool) -> Generator[None]:
    """Set the terminal so that all keys go to the command, Ctrl-C too."""
    if not tty:
        yield
        return
    import termios
    import tty as terminal

    before = termios.tcgetattr(sys.stdin.fileno())
    try:
        terminal.setraw(sys.stdin.fileno())
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)


def check_machines(backend: Exec, ref: JobRef, places: Places, numbers: Sequence[int], host: bool, form: str) -> None:
    """Raise JobFailed where a machine has faults, or does not answer."""

    def work(number: int) -> "MachineReport":
        task = number if places.word else None
        return ask(lambda streams: backend.run(ref, check_command(), streams, task=task, host=host))

    rows: list[Mapping[str, Any]] = []
    wrong: dict[int, list[str]] = {}
    for number, seen in everywhere(numbers, work).items():
        if isinstance(seen, JobsError):
            wrong[number] = [seen.message]
            rows.append({"node": number, "faults": [seen.message], "verdict": "unknown"})
            continue
        if faults := judge.faults(seen, places):
            wrong[number] = faults
        rows.append(_row(number, seen, faults))
    show(rows, form, COLUMNS, WIDE, "node")
    for number, faults in wrong.items():
        say(f"{places.word or 'node'} {number}: {'; '.join(faults)}")
    if wrong:
        raise JobFailed(f"{len(wrong)} of {len(rows)} machines of {ref} are not as they should be")


def _row(number: int, seen: "MachineReport", faults: list[str]) -> dict[str, Any]:
    facts = seen.facts
    names: Counter[str] = Counter(facts.get("gpu_names") or [])
    chips = facts.get("chips")
    disks: dict[str, Any] = facts.get("disks") or {}
    shares = [share for disk in disks.values() if (share := free_share(disk)) is not None]
    cuda = [f"driver {facts['cuda_driver']}"] if facts.get("cuda_driver") else []
    return dict(facts) | {
        "node": number,
        "host": facts.get("hostname"),
        "devices": ", ".join(f"{count} {name}" for name, count in names.items()) or (f"{chips} chips" if chips else ""),
        "cuda": ", ".join([*([str(facts["cuda_runtime"])] if facts.get("cuda_runtime") else []), *cuda]),
        "disk_free": f"{min(shares):.0%}" if shares else None,
        "memory_gib": _gib(facts.get("memory_mib")),
        "shm_gib": _gib(facts.get("shm_mib")),
        "skew_s": seen.skew.estimate_s,
        "faults": faults,
        "verdict": "; ".join(faults) or "ok",
    }


def _gib(mib: Any) -> float | None:
    return None if mib is None else round(mib / 1024, 1)
