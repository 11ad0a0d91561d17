"""The packages of a job: a requirements file for pip, sent with the code or alone."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from accel.diagnostics.errors import BadInput, BadInputs
from accel.diagnostics.redaction import redact

from ...runtime.requirements import names_a_file

SIZE_MAX = 1 << 20
PROGRAM = ("python3", "-m", "accel_runtime.requirements")
"""Words before the command of a job with requirements; the file's place in the archive follows them."""
ALONE = ".accel/requirements.txt"
"""Place of the file in an archive whose folder does not hold it."""
_URL = re.compile(r"https?://\S+")


@dataclass(frozen=True)
class Requirements:
    """A requirements file: its name in the archive, and its content where the folder does not hold it."""

    name: str
    body: bytes | None = None


def read(path: Path, folder: Path | None) -> Requirements:
    """Raise BadInput for a file that cannot be read or sent, BadInputs with its wrong lines. `folder` is the code's."""
    try:
        body = path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise BadInput(f"requirements: {path}: {error.strerror}") from error
    if body is None:
        raise BadInput(f"requirements: {path}: there is no such file", "write a requirement a line, as pip reads them")
    if len(body) > SIZE_MAX:
        raise BadInput(f"requirements: {path}: has {len(body):,} bytes, and at most {SIZE_MAX:,} are sent")
    inside = folder is not None and path.resolve().is_relative_to(folder.resolve())
    _check(path, body, alone=not inside)
    if folder is not None and inside:
        return Requirements(path.resolve().relative_to(folder.resolve()).as_posix())
    return Requirements(ALONE, body)


def _check(path: Path, body: bytes, *, alone: bool) -> None:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"requirements: {path}: is not UTF-8") from None
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    wanted = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not wanted:
        raise BadInput(f"requirements: {path}: lists no package", "leave it out")
    faults = [
        f"{path}:{number}: {redact(line)[:100]}: names a file that is not sent; give its folder with --code"
        for number, line in wanted
        if alone and names_a_file(line)
    ]
    faults += [
        f"{path}:{number}: holds a password, which would lie in a bucket; write ${{NAME}} there, and NAME into secrets"
        for number, line in wanted
        if any(_has_password(url) for url in _URL.findall(line))
    ]
    if faults:
        raise BadInputs(faults)


def _has_password(url: str) -> bool:
    """Tell whether a URL has a password, other than a variable that pip expands. Source:
    https://pip.pypa.io/en/stable/reference/requirements-file-format/#using-environment-variables"""
    try:
        given = urlsplit(url)
    except ValueError:
        return False
    said = given.password or given.username
    return bool(said) and not re.fullmatch(r"\$\{[A-Z0-9_]+\}", said or "")
