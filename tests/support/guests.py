"""Machines of the sandbox's Google, without the server that they belong to, or with that in this process."""

import contextlib
import re
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sandbox.google.__main__ import Server, handler
from sandbox.google.api import Methods
from sandbox.google.guests.guests import Guests
from sandbox.google.guests.machine import Machine
from sandbox.google.world import World
from tests.support.waiting import until

TOKEN = "the-token-of-the-sandbox"
KEY = "compute/projects/accel-sandbox/zones/us-central1-a/instances/trainer"


def machine(script: str = "", **more: Any) -> Machine:
    """A machine whose script first says where its metadata server is."""
    metadata = {"startup-script": f"echo at $GCE_METADATA_HOST\n{script}"} if script else {}
    given = {"key": KEY, "name": "trainer", "zone": "us-central1-a", "id": "4711"} | more
    return Machine(**given | {"metadata": metadata | dict(more.get("metadata", {}))})


def said(guests: Guests, pattern: str, key: str = KEY) -> re.Match[str]:
    """What a script prints, once it has."""
    return until(lambda: re.search(pattern, guests.serial(key), re.MULTILINE))


def address(guests: Guests, key: str = KEY) -> str:
    """Where the metadata server of a machine is."""
    return f"http://{said(guests, '^at (.+)$', key)[1]}/computeMetadata/v1"


def runs(pid: int) -> bool:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def processes(home: Path) -> list[psutil.Process]:
    """Those of the machines of a sandbox, by what their environment or their command line has."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            known = f"{home}/" in f"{' '.join(process.cmdline())} {' '.join(process.environ().values())}"
            if known and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@contextlib.contextmanager
def serving(home: Path) -> Generator[World]:
    """The world of a server in this process. Its machines have all ended, and nothing of them is left, at the end."""
    made = World(home, TOKEN, 0.05)
    server = Server(("127.0.0.1", 0), handler(made, Methods()))
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    yield made
    server.shutdown()
    made.guests.close()
    assert processes(made.home) == []


@pytest.fixture
def guests(tmp_path: Path) -> Iterator[Guests]:
    """Its machines have all ended, and nothing of them is left, when the test is over."""
    made = Guests(tmp_path, "http://127.0.0.1:9", lambda account: TOKEN, lambda user: None)
    yield made
    made.close()
    assert processes(tmp_path) == []
