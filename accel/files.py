"""Files that a command writes for its user."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from .diagnostics.errors import BadInput


def replace_file(path: Path, content: str | bytes, mode: int | None = None) -> None:
    """Write a file as a whole: after an error, such as a full disk, and for a reader meanwhile, it is as it was.
    Without `mode`, an existing file keeps its own. What is no regular file, such as /dev/stdout, is written to
    directly, and a link stays one. Raise OSError."""
    data = content.encode() if isinstance(content, str) else content
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    # The beginning of the name only: a name may have as many characters as the file system allows.
    draft = path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as file:
            file.write(data)
        if mode is not None or path.exists():
            draft.chmod(stat.S_IMODE(path.stat().st_mode) if mode is None else mode)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise


def write_output(
    option: str, path: Path, content: str | bytes, mode: int | None = None, *, folders: bool = False
) -> None:
    """Write the file that an option names as a whole, and its folders too if told so. Raise BadInput if it cannot be
    written."""
    try:
        if folders:
            path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content, mode)
    except OSError as error:
        raise BadInput(f"{option}: {path}: cannot be written: {error.strerror}") from error
