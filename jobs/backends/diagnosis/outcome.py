"""Diagnosis of a failure by exit code and last lines, whatever platform ran the job."""

import re
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..base import Explanation
from .engine import Facts

TAIL = 100
"""Lines read, from the end."""
ENOUGH = 20
SHOWN = 5
WIDTH = 300

RANK = re.compile(r"^\[rank\d+\]: ?")  # torchrun's prefix
TRACEBACK = "Traceback (most recent call last)"
CHAINED = re.compile(r"During handling of the above exception|was the direct cause of the following exception")
# Lines of the launcher or the other ranks after one rank has failed: the failure is above them.
SECONDARY = re.compile(
    r"ChildFailedError|ProcessRaisedException|ProcessExitedException|CalledProcessError|DistBackendError|NCCL"
    r"|Connection closed by peer|Connection reset by peer|Broken pipe"
)


@dataclass(frozen=True)
class FailedAttempt:
    """Failed attempt: its exit code, the end of its log (None: not read), and what it had requested."""

    exit_code: int | None
    lines: tuple[str, ...] | None = ()
    gpus: int = 0
    memory_mib: int | None = None
    shm_mib: int | None = None


class _Words(NamedTuple):
    cause: str
    pattern: re.Pattern[str]
    gpus: bool | None
    """Whether it holds only with a GPU reserved, only without, or either way (None)."""


# https://docs.pytorch.org/docs/stable/notes/faq.html, https://docs.jax.dev/en/latest/gpu_memory_allocation.html,
# https://docs.pytorch.org/docs/stable/multiprocessing.html
WORDS = (
    _Words(
        "cuda-out-of-memory",
        re.compile(
            r"CUDA out of memory|torch\.(cuda\.)?OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
            r"|CUBLAS_STATUS_ALLOC_FAILED"
        ),
        None,
    ),
    _Words("cuda-out-of-memory", re.compile(r"RESOURCE_EXHAUSTED.*[Oo]ut of memory"), True),
    _Words(
        "shared-memory",
        re.compile(
            r"killed by signal: Bus error|[Bb]us error encountered in worker|out of shared memory"
            r"|unable to (open|mmap|allocate|write).*shared memory|No space left on device.*/dev/shm"
        ),
        None,
    ),
    _Words(
        "gpu-not-visible",
        re.compile(
            r"no CUDA-capable device is detected|Found no NVIDIA driver|No CUDA GPUs are available"
            r"|libcuda\.so\.1: cannot open shared object file|CUDA driver version is insufficient"
        ),
        True,
    ),
    _Words(
        "gpu-not-requested",
        re.compile(
            r"no CUDA-capable device is detected|Found no NVIDIA driver|No CUDA GPUs are available"
            r"|libcuda\.so\.1: cannot open shared object file"
        ),
        False,
    ),
    _Words("requirements-failed", re.compile(r"^accel: requirements .*: (?!installing|installed before)"), None),
    _Words("disk-full", re.compile(r"No space left on device|\[Errno 28\]"), None),
)


def program_failure(facts: Facts, ended: FailedAttempt, more: Iterable[str] = ()) -> Explanation | None:
    """Return None for code 0, and without a code unless words fit. `more`: evidence that belongs to the last lines."""
    code = ended.exit_code
    lines = region(ended.lines or ())
    if code == 0:
        return None
    for words in WORDS:
        line = next((line for line in lines if words.pattern.search(line)), None)
        if line is not None and words.gpus in (None, ended.gpus > 0):
            size = (f"shm_mib is {ended.shm_mib}",) if words.cause == "shared-memory" and ended.shm_mib else ()
            return facts.explanation(words.cause, evidence=(_cut(line), *size, *_code_text(code), *more))
    if code is None:
        return None
    tail = last(ended.lines)
    if code == 137:
        size = f"; the job asks for {ended.memory_mib} MiB" if ended.memory_mib else ""
        reason = f"SIGKILL ended the process, and nothing says who sent it: the kernel does when memory is short{size}"
        return facts.explanation("killed", reason, (*_code_text(code), *tail, *more))
    if code in SHELL:
        return facts.explanation(SHELL[code], evidence=(*_code_text(code), *tail, *more))
    return facts.explanation(
        "exit-code",
        f"the command ended by itself with exit code {code}{_signal(code)}",
        (*(tail or ("its log has no lines" if ended.lines is not None else "its log was not read",)), *more),
    )


# By POSIX: https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02
SHELL = {127: "command-not-found", 126: "command-not-executable"}


def region(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines about the failure, from the last traceback that is not an echo of an earlier one. Without a
    traceback, or after one that the program outlived, return the last ENOUGH."""
    tail = [RANK.sub("", line) for line in lines[-TAIL:]]
    starts = [at for at, line in enumerate(tail) if TRACEBACK in line]
    if not starts or _went_on(tail[starts[-1] + 1 :]):
        return tail[-ENOUGH:]
    while len(starts) > 1:
        echo = any(SECONDARY.search(line) for line in tail[starts[-1] :])
        chained = any(CHAINED.search(line) for line in tail[starts[-2] : starts[-1]])
        if not (echo or chained):
            break
        starts.pop()
    return tail[starts[-1] :]


def _went_on(after: Sequence[str]) -> bool:
    """Return whether the output after a traceback is so long that the program did not end with it."""
    end = next((at for at, line in enumerate(after) if line and not line[0].isspace()), len(after))
    return len(after) - end > ENOUGH


def last(lines: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(_cut(line) for line in [line for line in lines or () if line.strip()][-SHOWN:])


def _cut(line: str) -> str:
    line = line.strip()
    return line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."


def _code_text(code: int | None) -> tuple[str, ...]:
    return () if code is None else (f"exit code {code}{_signal(code)}",)


def _signal(code: int) -> str:
    """Describe an exit code of 128 plus a signal's number, by which shells and container engines report a signal."""
    try:
        return f" ({signal.Signals(code - 128).name})" if code > 128 else ""
    except ValueError:
        return ""
