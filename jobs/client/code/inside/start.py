"""Start of a job with shipped code: downloads the code, checks it, unpacks it, and becomes the job's command.

Arguments: the archive, the SHA-256 and size of its content, the folder to unpack in or `-`, the command. Exit codes: 75
if the archive is unavailable for now, 126 if it always will be, 127 if there is no such command.
"""

import hashlib
import os
import signal
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable
from http.client import HTTPException
from typing import Any, Optional


class Wrong(Exception):
    """The archive is not what was sent."""

    code = 403


def say(text: str) -> None:
    """Write a line to stderr."""
    print(f"accel: {text}", file=sys.stderr, flush=True)


def stop(*_: object) -> None:
    """End the program as SIGTERM does."""
    os._exit(143)


def unpacked(stream: Any, digest: str, size: int, within: Optional[str]) -> str:
    """Unpack the archive, and return its folder. Raise Wrong before anything is unpacked."""
    seen, inflate = hashlib.sha256(), zlib.decompressobj(31)
    with stream, tempfile.TemporaryFile(dir=within) as tar:
        while tar.tell() <= size:
            part = stream.read(65536)
            plain = inflate.decompress(part)
            seen.update(plain)
            tar.write(plain)
            if not part:
                break
        if seen.hexdigest() != digest:
            raise Wrong(f"has SHA-256 {seen.hexdigest()}, not {digest}: not unpacked")
        tar.seek(0)
        with tarfile.open(fileobj=tar, mode="r:") as archive:
            members = archive.getmembers()
            for each in members:
                if each.name[:1] == "/" or ".." in each.name.split("/") or not (each.isreg() or each.issym()):
                    raise Wrong(f"holds {each.name!r}: not unpacked")
                # Zip archives, wheels among them, cannot hold the year 1970, which all files have.
                each.mtime = int(time.time())
            root = tempfile.mkdtemp(prefix="accel-code-", dir=within)
            os.chmod(root, 0o755)
            safe: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(root, members, **safe)
    say(f"code {digest[:12]}: {len(members)} files in {root}")
    return root


def main(opened: Callable[[str], Any]) -> None:
    """Replace this process with the command, in the folder of the code."""
    # As process 1 of a container this one would not see SIGTERM otherwise.
    signal.signal(signal.SIGTERM, stop)
    source, digest, size, folder, *command = sys.argv[1:]
    within = None if folder == "-" else folder
    for pause in (1, 2, 4, 8, 16, 0):
        try:
            if within:
                os.makedirs(within, exist_ok=True)
            root = unpacked(opened(source), digest, int(size), within)
            break
        except (OSError, HTTPException, ValueError, KeyError, Wrong, zlib.error, tarfile.TarError) as error:
            say(f"code {source}: {error or type(error).__name__}")
            code = 126 if getattr(error, "code", 0) in (400, 401, 403, 404) else 75
            time.sleep(pause)
    else:
        sys.exit(code)
    # Without code, the command stays in the image's folder.
    if os.listdir(root) != [".accel"]:
        os.chdir(root)
    env = os.environ
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [root, root + "/.accel", env.get("PYTHONPATH")]))
    env["ACCEL_CODE"] = digest
    # What Python ignores, its successor would ignore too.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        say(f"{command[0]}: {error.strerror}")
        sys.exit(127 if isinstance(error, (FileNotFoundError, NotADirectoryError)) else 126)
