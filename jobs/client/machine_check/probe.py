"""Program that is sent whole to a machine or container, and prints its facts as one line of JSON.

Then it waits for a line, and prints the time. Python 3.8, standard library only; unknown values are null.
"""

import ctypes
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, List, Optional

MIB = 2**20


def output_of(command: List[str]) -> Optional[str]:
    """Return the output of a command; None where it fails or does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def text(path: str) -> str:
    """Return a file's text; empty where it cannot be read."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def number(value: str) -> Optional[int]:
    """Return the first whole number in a text."""
    found = re.search(r"\d+", value)
    return int(found.group()) if found else None


def versions() -> Dict[str, str]:
    """Return the versions of this Python's relevant packages, by name."""
    wanted = re.compile(r"torch|jax|jaxlib|libtpu(-nightly)?|nvidia-(nccl|cuda-runtime)(-cu\d+)?", re.ASCII)
    found: Dict[str, str] = {}
    for package in metadata.distributions():
        name = str(package.metadata["Name"] or "").lower()
        if wanted.fullmatch(name):
            found[name] = package.version
    return found


def library_version(library: str, function: str) -> Optional[int]:
    """Return the version of a C library, from a function that takes the address of an int and returns 0 for success."""
    try:
        call = getattr(ctypes.CDLL(library), function)
    except (OSError, AttributeError):
        return None
    told = ctypes.c_int(0)
    return told.value if call(ctypes.byref(told)) == 0 else None


def gpus() -> Dict[str, Any]:
    """Return NVIDIA's GPUs and driver, according to nvidia-smi."""
    listed = output_of(["nvidia-smi", "-L"])
    lines = [line.strip() for line in (listed or "").splitlines()]
    names = [re.sub(r"^GPU \d+: | \(UUID:.*$", "", line) for line in lines if line.startswith("GPU ")]
    parts = [line for line in lines if line.startswith("MIG ")]
    asked = ["nvidia-smi", "--format=csv,noheader,nounits"]
    driver = output_of([*asked, "--query-gpu=driver_version"]) or ""
    errors = output_of([*asked, "--query-gpu=ecc.errors.uncorrected.volatile.total"])
    return {
        "driver": driver.split("\n")[0].strip() or None,
        "gpus": len(parts or names),
        "gpu_names": names,
        "ecc_errors": sum(number(line) or 0 for line in errors.splitlines()) if errors is not None else None,
        "xids": sorted({int(code) for code in re.findall(r"NVRM: Xid \([^)]*\): (\d+)", output_of(["dmesg"]) or "")}),
    }


def cuda(known: Dict[str, str]) -> Dict[str, Any]:
    """Return versions: the newest CUDA that the driver runs, the installed CUDA, and NCCL."""
    # https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__VERSION.html: 1000 * major + 10 * minor
    most = library_version("libcuda.so.1", "cuDriverGetVersion")
    kits = {name.rpartition("-cu")[0] or name: version for name, version in known.items()}
    runtime = kits.get("nvidia-cuda-runtime") or os.environ.get("CUDA_VERSION")
    if runtime is None:
        with_kit = re.search(r'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"([^"]+)"', text("/usr/local/cuda/version.json"))
        runtime = with_kit.group(1) if with_kit else None
    nccl = kits.get("nvidia-nccl")
    if nccl is None:
        places = ("usr/lib/*-linux-gnu", "usr/lib64", "usr/local/lib", "usr/local/nvidia/lib64", "usr/local/gib/lib64")
        files = sorted(file.name for place in places for file in Path("/").glob(place + "/libnccl.so.*.*"))
        nccl = files[-1].partition(".so.")[2] if files else None
    return {
        "cuda_driver": f"{most // 1000}.{most % 1000 // 10}" if most else None,
        "cuda_runtime": runtime,
        "nccl": nccl,
        "torch": known.get("torch"),
    }


def chips(known: Dict[str, str], root: str = "/dev") -> Dict[str, Any]:
    """Count TPU chips by their device files: accel<n>, or the groups of VFIO for newer ones. Source:
    https://github.com/google/gvisor/tree/master/pkg/sentry/devices/tpuproxy"""
    counts = [len(list(Path(root).glob(pattern))) for pattern in ("accel[0-9]*", "vfio/[0-9]*")]
    return {
        "chips": max(counts),
        "libtpu": known.get("libtpu") or known.get("libtpu-nightly"),
        "jax": known.get("jax"),
    }


def disk(path: str) -> Optional[Dict[str, int]]:
    """Return the total and the free MiB of a disk."""
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return None
    return {"mib": usage.total // MIB, "free_mib": usage.free // MIB}


def memory() -> Dict[str, Any]:
    """Return the MiB of the machine, and the container's limit."""
    told = {line.partition(":")[0]: number(line) or 0 for line in text("/proc/meminfo").splitlines()}
    limit = number(text("/sys/fs/cgroup/memory.max"))
    return {
        "memory_mib": told.get("MemTotal", 0) // 1024,
        "memory_free_mib": told.get("MemAvailable", 0) // 1024,
        "memory_limit_mib": limit // MIB if limit else None,
    }


def say(value: Any) -> None:
    """Print one line at once."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def collect() -> Dict[str, Any]:
    """Return all facts."""
    known = versions()
    work = os.environ.get("ACCEL_WORK") or str(Path.cwd())
    return {
        "hostname": socket.gethostname(),
        **gpus(),
        **cuda(known),
        **chips(known),
        "disks": {"/": disk("/"), work: disk(work)},
        **memory(),
        "shm_mib": (disk("/dev/shm") or {}).get("mib"),  # noqa: S108, nothing is written there
        "python": "{}.{}.{}".format(*sys.version_info[:3]),
    }


if __name__ == "__main__":
    say(collect())
    sys.stdin.readline()
    say({"now": time.time()})
