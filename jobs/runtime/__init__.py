"""What a training program uses inside its job: when to stop, checkpoints, who the other machines are, what to report.

It goes into any image: the standard library only, Python 3.9 and later. There it is the package `accel_runtime`.
docs/runtime.md shows its use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .stop import ask_to_stop, exit_code, finish, seconds_left, should_stop, stop_reason, watch

if TYPE_CHECKING:
    from . import hooks
    from .checkpoints import Checkpoint, Checkpoints
    from .nodes import Rendezvous, Task, rendezvous, task
    from .reporting import event, report

__version__ = "0.1.0"

__all__ = [
    "Checkpoint",
    "Checkpoints",
    "Rendezvous",
    "Task",
    "ask_to_stop",
    "event",
    "exit_code",
    "finish",
    "hooks",
    "rendezvous",
    "report",
    "seconds_left",
    "should_stop",
    "stop_reason",
    "task",
    "watch",
]

_LATER = {
    "Checkpoint": "checkpoints",
    "Checkpoints": "checkpoints",
    "Rendezvous": "nodes",
    "Task": "nodes",
    "event": "reporting",
    "hooks": "",
    "rendezvous": "nodes",
    "report": "reporting",
    "task": "nodes",
}
"""Name: its module, imported when it is first used; empty: it is one itself."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f".{_LATER[name] or name}", __name__)
    found = getattr(module, name) if _LATER[name] else module
    globals()[name] = found
    return found
