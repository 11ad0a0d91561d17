"""A libnvidia-ml.so.1 of our own, compiled from fake_nvml.c, with GPUs that a test can make sick."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


def compiler() -> str | None:
    """The C compiler of this machine; None where it has none."""
    return shutil.which("cc") or shutil.which("gcc")


def build(folder: Path, *options: str) -> Path:
    """Compiles it into a folder, under NVIDIA's name; once. `-DOLD_DRIVER`: without what drivers before 535 lack."""
    library = folder / "libnvidia-ml.so.1"
    if library.exists():
        return library
    command = compiler()
    assert command, "there is no C compiler"
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([command, "-shared", "-fPIC", "-O1", *options, "-o", library, SOURCE], check=True)
    return library


def tell(library: Path, text: str) -> None:
    """Changes what the library answers in this process: `3.lost=1;gpus=8`; see fake_nvml.c."""
    ctypes.CDLL(str(library)).fake_nvml(text.encode())
