"""The request to stop a job, with its reason and exit code: a flag that signals and notices set."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from . import platforms

if TYPE_CHECKING:
    from .notices import Watch

EXIT_CODE = "ACCEL_STOP_EXIT_CODE"
STOPPED, INTERRUPTED = 143, 130
"""Exit codes of a shell for SIGTERM and SIGINT. No scheduler takes them for success."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class _State:
    def __init__(self) -> None:
        self.asked = False
        self.watching = False
        self.reason: str | None = None
        self.until: float | None = None
        self.platform = platforms.ELSEWHERE
        self.grace_s: float | None = None
        self.before: dict[int, Any] = {}
        self.watch: Watch | None = None


_state = _State()


def should_stop() -> bool:
    """Return whether to save and leave at the end of this step. The call reads a flag, and costs less than a
    microsecond. The first call begins to watch if `watch` was not called; it raises RuntimeError outside the main
    thread, which alone can receive signals."""
    return _state.asked or (not _state.watching and _began())


def watch() -> str:
    """Begin to watch for SIGTERM, SIGINT and the platform's own notices, and return the platform's name.

    A second call changes nothing. Call it first in a program that starts slowly: as the first process of a container, a
    program without a handler does not receive SIGTERM at all. Handlers that were there before are called too. A second
    Ctrl-C raises KeyboardInterrupt.

    Raises:
        RuntimeError: not in the main thread.
        ValueError: ACCEL_GRACE_S or ACCEL_STOP_EXIT_CODE cannot be used.
    """
    if _state.watching:
        return _state.platform.name
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("call accel_runtime.watch() in the main thread first: no other can receive signals")
    _configured()
    _state.platform = platforms.here()
    _state.grace_s = platforms.grace_s(_state.platform)
    for number in SIGNALS:
        if number == signal.SIGINT and signal.getsignal(number) == signal.SIG_IGN:
            continue  # a shell's background job: Ctrl-C is meant for another
        _state.before[number] = signal.signal(number, _signalled)
    _state.watching = True
    if _state.platform.notice:
        from .notices import Watch

        _state.watch = Watch(_state.platform.notice, _noticed)
    return _state.platform.name


def stop_reason() -> str | None:
    """Return `SIGTERM`, `SIGINT`, `spot-interruption`, `preempted`, `maintenance`, or the reason given to
    `ask_to_stop`. Return None while nothing has asked to stop."""
    return _state.reason


def seconds_left() -> float | None:
    """Return the seconds until the process is killed, at least 0, or None if nothing has asked to stop or the time is
    unknown."""
    return None if _state.until is None else max(0.0, _state.until - time.monotonic())


def ask_to_stop(reason: str, seconds: float | None = None) -> None:
    """Stop the job for a reason of the program's own. The first reason counts, and the earliest end."""
    _state.reason = _state.reason or reason
    if seconds is not None:
        until = time.monotonic() + seconds
        _state.until = until if _state.until is None else min(_state.until, until)
    _state.asked = True


def exit_code() -> int:
    """Return 0 while nothing has asked to stop. After that, return 130 for Ctrl-C, else ACCEL_STOP_EXIT_CODE, by
    default 143."""
    if not _state.asked:
        return 0
    return INTERRUPTED if _state.reason == "SIGINT" else _configured()


def finish(done: bool = False) -> NoReturn:
    """End the program: with 0 if nothing has asked to stop or the work is `done`, else with `exit_code()`."""
    from .reporting import event

    code = 0 if done else exit_code()
    if code:
        event("stop", f"{_state.reason}; exit code {code}")
    sys.exit(code)


def _began() -> bool:
    watch()
    return _state.asked


def _configured() -> int:
    told = os.environ.get(EXIT_CODE)
    if told is None:
        return STOPPED
    code = int(told) if told.isascii() and told.isdigit() else 0
    if not 1 <= code <= 255:
        raise ValueError(f"{EXIT_CODE}: must be a whole number from 1 to 255, is {told!r}")
    return code


def _signalled(number: int, frame: FrameType | None) -> None:
    ask_to_stop(signal.Signals(number).name, _state.grace_s)
    before = _state.before.get(number)
    if number == signal.SIGINT:
        signal.signal(number, signal.default_int_handler)
    if callable(before) and before is not signal.default_int_handler:
        before(number, frame)


def _noticed(reason: str, seconds: float | None) -> None:
    ask_to_stop(reason, _state.platform.notice_s if seconds is None else seconds)


def _forked() -> None:
    """Restore the former signal handlers in a forked child, so that SIGTERM ends it. No thread watches for it."""
    global _state
    before, _state = _state.before, _State()
    for number, handler in before.items():
        if signal.getsignal(number) is _signalled and handler is not None:
            signal.signal(number, handler)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
