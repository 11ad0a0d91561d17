"""Start of a server: the modules and models that it builds once and keeps, and the file by which others find it."""

import gc
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def without_collector() -> Generator[None]:
    """Build without the garbage collector, which would look through everything again and again, half of the time that
    moto takes to start; later collections leave out what was built."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def announce(told: Path, **about: Any) -> None:
    """Write a part's file, with its process and what else others need to call it. The file is whole as soon as it is
    there, and only this user can read it."""
    new = told.with_name(f"{told.name}.new")
    new.touch(0o600)
    new.write_text(json.dumps({"pid": os.getpid(), **about}))
    new.replace(told)
