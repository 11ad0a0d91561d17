"""A terminal that a command believes in, and what stands on it, as a page for a browser."""

import fcntl
import html
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

_OVER = re.compile(r"\x1b\[\d+A\r|\x1b\[H\x1b\[2J")
"""Where accel/console/screen.py begins to write over its last lines."""
_END = "\x1b[J"
_COLOUR = re.compile(r"\x1b\[(\d+)m")
_CSS = {
    1: "font-weight: bold; color: #fff", 2: "color: #8b97a6", 31: "color: #ee7a6d", 32: "color: #5cba85",
    33: "color: #e0b13c", 34: "color: #6ea8e5", 35: "color: #c58be8", 36: "color: #4cc2d4",
}  # fmt: skip
_PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title><style>
body {{ margin: 0; padding: 20px; background: #fff; width: max-content; }}
div {{ background: #12171e; color: #d5dbe3; border-radius: 9px; overflow: hidden; width: max-content; }}
h1 {{ margin: 0; padding: 8px 14px; font: 13px system-ui, sans-serif; color: #9aa6b6; background: #1d2530; }}
pre {{ margin: 0; padding: 14px 18px; font: 14px/1.45 "DejaVu Sans Mono", ui-monospace, monospace; }}
</style><div><h1>{title}</h1><pre>{inside}</pre></div>
"""


class Terminal:
    """Runs a command, and keeps all that it writes."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str], columns: int, rows: int) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        # COLUMNS and LINES, which a terminal around the tests may have set, would count before its own size.
        env = {name: value for name, value in env.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        env |= {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self._written = b""
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        try:
            while read := os.read(self._ours, 65_536):
                self._written += read
        except OSError:  # the command has ended
            return

    @property
    def written(self) -> str:
        """All of it, as it was written."""
        return self._written.decode(errors="replace")

    def frames(self) -> list[str]:
        """What stood there, one after the other, each whole; colours are in it."""
        found = _OVER.split(self.written.replace("\r\n", "\n"))
        return [frame for frame in found if frame.endswith(_END)]

    def end(self) -> None:
        """Kills what still runs."""
        self.process.kill()
        self.process.wait()
        self._reading.join()
        os.close(self._ours)


def plain(frame: str) -> str:
    """Its text."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", frame)


def page(title: str, frame: str) -> str:
    """HTML that shows it."""
    found, open_ = "", False
    for place, part in enumerate(_COLOUR.split(re.sub(r"\x1b\[[KJ]", "", frame).rstrip("\n"))):
        if place % 2:
            found += "</span>" * open_ + (f'<span style="{_CSS[int(part)]}">' if int(part) else "")
            open_ = bool(int(part))
        else:
            found += html.escape(part)
    return _PAGE.format(title=html.escape(title), inside=found + "</span>" * open_)
