"""Another user of this machine."""

import multiprocessing
import os
from collections.abc import Callable
from typing import Any

import pytest

_NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


def as_nobody(ask: Callable[[], Any]) -> Any:
    """What another user of this machine gets."""

    def run(told: Any) -> None:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
        try:
            told.send(ask())
        except OSError as error:
            told.send(repr(error))

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=run, args=(theirs,))
    process.start()
    assert ours.poll(120)
    process.join(60)
    return ours.recv()
