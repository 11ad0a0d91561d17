"""The package of jobs/runtime as one file, for any image: pip installs it, and Python imports from the file itself. The
same sources give the same bytes, so its digest names its content."""

import base64
import hashlib
import io
import re
import zipfile
from functools import cache
from pathlib import Path

from accel.files import replace_file

PACKAGE = "accel_runtime"
WHEN = (1980, 1, 1, 0, 0, 0)
"""Earliest time that a zip can store."""
PYTHON = ">=3.9"


@cache
def content() -> bytes:
    """Compress nothing: zlib's versions differ, and imports need no inflating."""
    folder = Path(__file__).parents[1] / "runtime"
    head = f"{PACKAGE}-{version()}.dist-info"
    files = {f"{PACKAGE}/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
    # Source: https://packaging.python.org/en/latest/specifications/binary-distribution-format/
    files[f"{head}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: accel-runtime\nVersion: {version()}\n"
        f"Summary: What a training program uses inside its job\nLicense: Apache-2.0\nRequires-Python: {PYTHON}\n"
    ).encode()
    files[f"{head}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: accel\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    lines = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in files.items()]
    files[f"{head}/RECORD"] = "\n".join([*lines, f"{head}/RECORD,,", ""]).encode()
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, WHEN)
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, data)
    return held.getvalue()


@cache
def version() -> str:
    text = (Path(__file__).parents[1] / "runtime" / "__init__.py").read_text()
    (found,) = re.findall(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    return found


def name() -> str:
    """Return the only name under which pip accepts the file."""
    return f"{PACKAGE}-{version()}-py3-none-any.whl"


def write(to: Path) -> Path:
    """Write the file into a folder under its own name, or to the path `to` itself. Raises OSError."""
    path = to / name() if to.is_dir() else to
    replace_file(path, content())
    return path


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
