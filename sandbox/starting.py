"""Start of a server: the modules and models that it builds once and keeps."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


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
