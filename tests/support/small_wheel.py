"""A package of one module, as a wheel."""

import zipfile
from pathlib import Path


def write_wheel(folder: Path) -> None:
    """Put small_package 1.0, whose `answer` is 42, into a folder that pip can look in (--find-links)."""
    info = "small_package-1.0.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "small_package-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("small_package.py", "answer = 42\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: small-package\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
