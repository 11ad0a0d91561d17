"""Diagnosis of a failure by exit code and last lines, whatever platform ran the job."""

import re
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..base import Explanation
from . import words
from .engine import Facts

TAIL = 100
"""Lines read, from the end."""
ENOUGH = 20
BEFORE_ECHO = 2 * ENOUGH
"""Lines before the traceback of a launcher, among which is what its process said, with a stack of native code."""
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
    gpus: bool | None = None
    """Whether it holds only with a GPU reserved, only without, or either way (None)."""
    reason: str = ""
    next_step: str = ""
    after: bool = False
    """Whether processes say it once another one has failed, too: it holds if no process tells of a failure before."""


_NO_DRIVER = (
    r"no CUDA-capable device is detected|Found no NVIDIA driver|No CUDA GPUs are available"
    r"|libcuda\.so\.1: cannot open shared object file|torch\.cuda\.is_available\(\) is False|No visible GPU devices"
)

# https://docs.pytorch.org/docs/stable/notes/faq.html, https://docs.jax.dev/en/latest/gpu_memory_allocation.html,
# https://docs.pytorch.org/docs/stable/multiprocessing.html
WORDS = (
    # https://docs.nvidia.com/deploy/xid-errors/: these numbers are faults of the hardware or of its connection.
    _Words(
        "gpu-failed",
        re.compile(
            r"uncorrectable ECC error|CUDA_ERROR_ECC_UNCORRECTABLE|fallen off the bus|GPU is lost"
            r"|NVRM: Xid .*: (48|63|64|74|79|92|94|95|119|120),"
        ),
    ),
    _Words(
        "cuda-out-of-memory",
        re.compile(
            r"CUDA out of memory|(?i:cuda[\w ]* (error|failure)[^a-z]{1,12}out of memory)"
            r"|cudaMalloc failed: out of memory|torch\.(cuda\.)?OutOfMemoryError|cupy\S*\.OutOfMemoryError"
            r"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|CU(BLAS|DNN|SPARSE)_STATUS_ALLOC_FAILED"
            r"|OOM when allocating tensor.*GPU|No available memory for the cache blocks"
            r"|larger than the available KV cache memory|less than desired GPU memory utilization"
        ),
    ),
    _Words(
        "cuda-out-of-memory",
        re.compile(
            r"RESOURCE_EXHAUSTED.*([Oo]ut of memory|Failed to allocate request)"
            r"|OOM when allocating tensor(?!.*(CPU:|allocator \w*cpu))"
        ),
        True,
    ),
    # The first of NCCL: https://github.com/NVIDIA/nccl/issues/525
    _Words(
        "shared-memory",
        re.compile(
            r"NCCL WARN .*(posix_fallocate failed|failed to extend /dev/shm|creating shared memory segment)"
            r"|killed by signal: Bus error|[Bb]us error encountered in worker|workers are out of shared memory"
            r"|unable to (open|mmap|allocate|write)(?!.*Too many open files).*shared memory"
            r"|No space left on device.*/dev/shm"
        ),
    ),
    _Words(
        "gpu-not-visible",
        re.compile(
            r"Torch not compiled with CUDA enabled|no kernel image is available for execution"
            r"|is not compatible with the current PyTorch installation"
        ),
        True,
        "the program's framework was built without CUDA, or not for a GPU of this kind",
        "install a build of it that is for CUDA and knows the GPU: newer GPUs need newer builds",
    ),
    _Words(
        "gpu-not-visible",
        re.compile(
            rf"{_NO_DRIVER}|CUDA driver version is insufficient|NVIDIA driver on your system is too old"
            r"|couldn't communicate with the NVIDIA driver|[Ff]ailed to initialize NVML"
            r"|forward compatibility was attempted|Unexpected error from cudaGetDeviceCount|CUDA unknown error"
            r"|PTX was compiled with an unsupported toolchain|devices are busy or unavailable"
            r"|Failed to infer device type"
        ),
        True,
    ),
    _Words("gpu-not-requested", re.compile(rf"{_NO_DRIVER}|Torch not compiled with CUDA enabled"), False),
    _Words(
        "requirements-failed",
        re.compile(
            r"^accel: requirements .*: (?!installing|installed before)"
            r"|^ERROR: (Could not find a version that satisfies|No matching distribution found)"
        ),
    ),
    _Words("image-platform", words.EXEC_FORMAT.pattern, None, words.EXEC_FORMAT.reason, words.EXEC_FORMAT.next_step),
    _Words("disk-full", re.compile(r"No space left on device|\[Errno 28\]|Disk quota exceeded")),
    _Words(
        "model-forbidden",
        re.compile(
            r"GatedRepoError|access(ing)? (a )?gated repo|40[13] Client Error.* https://huggingface\.co"
            r"|Repository Not Found for url: https://huggingface\.co"
            r"|is not a valid model identifier listed on 'https://huggingface\.co"
        ),
    ),
    _Words(
        "hub-rate-limit",
        re.compile(r"429 (Client Error|Too Many Requests).*https://\S*(huggingface|hf)\.co|We had to rate limit you"),
    ),
    _Words(
        "import-failed",
        re.compile(
            r"^(ModuleNotFoundError|ImportError): |python[\d.]*: No module named "
            r"|: error while loading shared libraries: |Could not load library lib\S+\.so"
            r"|version .(GLIBC|GLIBCXX|CXXABI)_\S+ not found"
        ),
    ),
    _Words(
        "out-of-memory",
        re.compile(
            r"^MemoryError\b|ArrayMemoryError|std::bad_alloc|DefaultCPUAllocator: (can't allocate|not enough) memory"
            r"|Cannot allocate memory|OOM when allocating tensor|ray\.exceptions\.OutOfMemoryError"
            r"|[Oo]ut of memory: Killed process"
        ),
        None,
        "a process asked for more of the machine's memory than there was",
    ),
    _Words(
        "killed",
        re.compile(
            r"signal: Killed|Signal 9 \(SIGKILL\)|signal SIGKILL|Signals\.SIGKILL|(exitcode\s*:|return code =) -9\b"
        ),
        None,
        "SIGKILL ended a process of the program, and nothing says who sent it: the kernel does when memory is short",
        after=True,
    ),
    _Words(
        "shared-memory",
        re.compile(r"\(SIGBUS\)|\bBus error\b"),
        None,
        "SIGBUS ended a process of the program, as a rule because shared memory (/dev/shm) was full; a file that is "
        "mapped and cannot be read does the same",
        after=True,
    ),
    _Words(
        "collective-timeout",
        re.compile(
            r"Watchdog caught collective operation timeout|Timed out after \d+ seconds waiting for clients"
            r"|Timed out initializing process group|client socket has timed out after|RendezvousTimeoutError"
            r"|Socket Timeout|Timeout waiting for key|Timed out waiting \d+ms|Barrier timed out"
        ),
        after=True,
    ),
)


def program_failure(facts: Facts, ended: FailedAttempt, more: Iterable[str] = ()) -> Explanation | None:
    """Return None for code 0, and without a code unless words fit. `more`: evidence that belongs to the last lines."""
    code = ended.exit_code
    lines = region(ended.lines or ())
    if code == 0:
        return None
    first = _first_failure(lines)
    for each in WORDS:
        line = next((line for line in (first if each.after else lines) if each.pattern.search(line)), None)
        if line is not None and each.gpus in (None, ended.gpus > 0):
            size = (f"shm_mib is {ended.shm_mib}",) if each.cause == "shared-memory" and ended.shm_mib else ()
            evidence = (_cut(line), *size, *_code_text(code), *more)
            return facts.explanation(each.cause, each.reason, evidence, each.next_step)
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
    traceback, or after one that the program outlived, return the last ENOUGH; of a mere echo, what is before."""
    tail = [RANK.sub("", line) for line in lines[-TAIL:]]
    starts = [at for at, line in enumerate(tail) if TRACEBACK in line]
    if not starts or _went_on(tail[starts[-1] + 1 :]):
        return tail[-ENOUGH:]
    while len(starts) > 1:
        chained = any(CHAINED.search(line) for line in tail[starts[-2] : starts[-1]])
        if not (_is_echo(tail[starts[-1] :]) or chained):
            break
        starts.pop()
    if len(starts) == 1 and _is_echo(tail[starts[0] :]):
        return tail[max(0, starts[0] - BEFORE_ECHO) :]
    return tail[starts[-1] :]


def _is_echo(lines: Sequence[str]) -> bool:
    return any(SECONDARY.search(line) for line in lines)


def _first_failure(lines: Sequence[str]) -> Sequence[str]:
    """Return the first traceback with the line that ends it. If they begin with none, or with an echo, return all."""
    if not lines or TRACEBACK not in lines[0]:
        return lines
    end = next((at for at, line in enumerate(lines[1:], 1) if line and not line[0].isspace()), len(lines))
    return lines if _is_echo(lines[: end + 1]) else lines[: end + 1]


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
