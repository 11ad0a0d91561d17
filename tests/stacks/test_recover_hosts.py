"""Language hosts whose engine is gone are found, and no others."""

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from stacks.operations.recover.engine import end_process, orphan_hosts


def run(port: int, name: str = "/x/pulumi-language-test") -> subprocess.Popen[bytes]:
    """A process with the command line of a language host."""
    sleeps = ["-c", "import time; time.sleep(60)", f"127.0.0.1:{port}"]
    return subprocess.Popen([name, *sleeps], executable=sys.executable)


@pytest.fixture
def engine() -> Iterator[int]:
    """The port of an engine that is there."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_hosts_of_a_dead_engine_are_ended(engine: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        dead = gone.getsockname()[1]
    orphan, busy, other = run(dead), run(engine), run(dead, "/x/python")
    try:
        found = orphan_hosts()
        assert orphan.pid in found and not {busy.pid, other.pid} & {*found}
        end_process(orphan.pid)
        assert orphan.wait(60) == -15
        end_process(orphan.pid)
    finally:
        for each in (orphan, busy, other):
            each.kill()
            each.wait()
