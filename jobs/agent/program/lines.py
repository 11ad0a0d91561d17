"""What the job prints, line by line, into Cloud Logging.

Nothing here ever holds the job up. A line is kept until Logging has taken it, in memory and then on disk, and one that
it never takes ends in an object beside the results. Logging knows a line that is written twice by its insertId and
timestamp. Limits: https://docs.cloud.google.com/logging/quotas (256 KiB an entry, 10 MB a request).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from .cloud import CallError

LINE_MAX = 240 * 1024
"""Bytes of a line; labels and names have the rest of an entry."""
GOES_ON = " [the line goes on]"
BATCH_LINES, BATCH_BYTES = 1000, 4 * 1024 * 1024
EVERY_S = 0.5
MEMORY_BYTES = 64 * 1024 * 1024
"""Of lines that wait; what is above goes to the file."""
SILENCE_S = 5.0
"""Between two attempts while Logging does not answer."""
BOOT_LINES = 10**9
NEVER = (400, 413)
"""A batch that is answered so has an entry that Logging does not take."""
KEPT_BYTES = 100 * 1024 * 1024
"""Of what Logging did not take: so much goes to the bucket, the last of it."""
HOPELESS = (401, 403, 404)
"""May pass while the job runs, since permissions take minutes to reach everywhere; not worth to wait for at its end."""


class Line(NamedTuple):
    """A line as it will be written."""

    number: int
    at: str
    text: str
    severity: str


class Splitter:
    """Bytes as lines. A line that is too long is cut, and each piece but the last says so."""

    def __init__(self, put: Callable[[str], None]) -> None:
        self._put = put
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """More bytes; whole lines are passed on."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._put_pieces(line)
        while len(self._rest) > LINE_MAX:
            end = LINE_MAX
            while end > LINE_MAX - 4 and self._rest[end] & 0xC0 == 0x80:  # not inside of a character
                end -= 1
            self._put_pieces(self._rest[:end], GOES_ON)
            self._rest = self._rest[end:]

    def end(self) -> None:
        """A last line without an end is one too."""
        if self._rest:
            self._put_pieces(self._rest)
        self._rest = b""

    def _put_pieces(self, line: bytes, more: str = "") -> None:
        # A replacement character is longer than the byte that it stands for.
        text = line.rstrip(b"\r").decode("utf-8", "replace").replace("\0", "\ufffd")
        size = len(text) if len(text.encode()) <= LINE_MAX else LINE_MAX // 4
        pieces = [text[start : start + size] for start in range(0, len(text), size or 1)] or [""]
        for piece in pieces[:-1]:
            self._put(piece + GOES_ON)
        self._put(pieces[-1] + more)


class Lines:
    """The log of one host. `write` sends a batch to Logging and raises CallError; the file `kept` has what it does not
    take. `host` begins every insertId."""

    def __init__(
        self, write: Callable[[dict[str, Any]], None], head: dict[str, Any], host: str, boot: int, kept: Path
    ) -> None:
        self.kept = kept
        self._write, self._head, self._host = write, head, host
        # A machine that was started again goes on with numbers that it did not use before.
        self._number = (boot - 1) % 10 * BOOT_LINES
        self._waiting: deque[Line] = deque()
        self._bytes = 0
        self._last = 0.0
        self._refused = self._tries = 0
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._hurry = threading.Event()
        kept.write_bytes(b"")
        threading.Thread(target=self._send, daemon=True).start()

    def put(self, text: str, severity: str = "DEFAULT") -> None:
        """A line of the job; never waits for Logging."""
        with self._lock:
            # A clock that is set back must not turn lines around.
            self._last = max(time.time(), self._last)
            at = datetime.fromtimestamp(self._last, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            line = Line(self._number, at, text, severity)
            self._number += 1
            if self._bytes > MEMORY_BYTES:
                self._keep([line])
            else:
                self._waiting.append(line)
                self._bytes += len(text)
        self._news.set()

    def say(self, text: str, severity: str = "NOTICE") -> None:
        """A line of the agent's own, on the serial console too."""
        print(f"accel: {text}", flush=True)  # noqa: T201
        self.put(f"accel: {text}", severity)

    @property
    def count(self) -> int:
        """The number of the next line: those of the lines that were put are below it."""
        return self._number

    def flush(self, patience_s: float) -> bytes:
        """Waits until all is written, at most so long; what is left is in the file then. The file's bytes, the last of
        them where they are many."""
        until = time.monotonic() + patience_s
        enough = self._tries + 2  # one of them may be on its way already
        self._hurry.set()
        while self._waiting and time.monotonic() < until:
            if self._refused in HOPELESS and self._tries >= enough:
                break
            time.sleep(0.05)
        with self._lock:
            self._keep(list(self._waiting))
            self._waiting.clear()
            self._bytes = 0
        self._hurry.clear()
        with self.kept.open("rb") as file:
            file.seek(max(0, self.kept.stat().st_size - KEPT_BYTES))
            return file.read()

    def _send(self) -> None:
        while True:
            batch = self._batch()
            if not batch:
                self._news.wait()
                self._news.clear()
                # One call for what a chatty job prints in that time.
                self._hurry.wait(EVERY_S)
            elif self._sent(batch):
                with self._lock:
                    while self._waiting and self._waiting[0].number <= batch[-1].number:
                        self._bytes -= len(self._waiting.popleft().text)
            else:
                self._hurry.wait(SILENCE_S)
                time.sleep(0.2)

    def _batch(self) -> list[Line]:
        found: list[Line] = []
        size = 0
        with self._lock:
            for line in self._waiting:
                size += len(line.text.encode()) + 300
                if found and (size > BATCH_BYTES or len(found) == BATCH_LINES):
                    break
                found.append(line)
        return found

    def _sent(self, batch: list[Line]) -> bool:
        """Whether nothing more is to be done about the lines."""
        entries = [
            {
                "insertId": f"{self._host}-{line.number:010d}",
                "timestamp": line.at,
                "severity": line.severity,
                "textPayload": line.text,
            }
            for line in batch
        ]
        self._tries += 1
        try:
            self._write({**self._head, "entries": entries, "partialSuccess": True})
        except CallError as refused:
            if refused.status != self._refused:
                print(f"accel: {refused}", flush=True)  # noqa: T201
            self._refused = refused.status
            if refused.status not in NEVER:
                return False
            with self._lock:
                self._keep(batch)
            return True
        self._refused = 0
        return True

    def _keep(self, lines: list[Line]) -> None:
        with self.kept.open("ab") as file:
            file.writelines(f"{line.at} {line.text}\n".encode() for line in lines)
