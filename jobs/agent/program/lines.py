"""Transfer of the job's output to Cloud Logging, line by line.

It never delays the job. A line is kept, in memory and then on disk, until Logging has accepted it; a line that Logging
never accepts goes to an object next to the results. Logging recognizes a line that is written twice by its insertId and
timestamp. Limits: https://docs.cloud.google.com/logging/quotas (256 KiB per entry, 10 MB per request).
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
"""Most bytes of a line; labels and names take the rest of an entry."""
GOES_ON = " [the line goes on]"
BATCH_LINES, BATCH_BYTES = 1000, 4 * 1024 * 1024
EVERY_S = 0.5
MEMORY_BYTES = 64 * 1024 * 1024
"""Most bytes of waiting lines in memory; further lines go to the file."""
SILENCE_S = 5.0
"""Seconds between two attempts while Logging does not answer."""
BOOT_LINES = 10**9
NEVER = (400, 413)
"""Statuses of a batch with an entry that Logging does not accept."""
KEPT_BYTES = 100 * 1024 * 1024
"""Most bytes of rejected lines that go to the bucket: the last ones."""
HOPELESS = (401, 403, 404)
"""Statuses that may pass while the job runs, since permissions take minutes to reach everywhere; at its end they are
not worth waiting for."""


class Line(NamedTuple):
    """Line as it will be written."""

    number: int
    at: str
    text: str
    severity: str


class Splitter:
    """Splitter of bytes into lines. A line that is too long is cut, and each piece except the last says so."""

    def __init__(self, put: Callable[[str], None]) -> None:
        self._put = put
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Add bytes, and pass on whole lines."""
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
        """Pass on a last line that has no line end."""
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
    """Log of one host. `write` sends a batch to Logging and raises CallError; the file `kept` gets what Logging does
    not accept. Every insertId begins with `host`."""

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
        """Add a line of the job. Never waits for Logging."""
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
        """Add a line of the agent's own, and print it to the serial console."""
        print(f"accel: {text}", flush=True)  # noqa: T201
        self.put(f"accel: {text}", severity)

    @property
    def count(self) -> int:
        """Number of the next line; all lines so far have lower numbers."""
        return self._number

    def flush(self, patience_s: float) -> bytes:
        """Wait until all lines are written, at most so long; lines that are left go to the file. Return the file's
        bytes, at most the last KEPT_BYTES."""
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
        """Send a batch. Return whether its lines are finished: accepted, or kept in the file."""
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
