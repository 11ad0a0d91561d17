"""How the nodes of a job learn each other's addresses where the platform tells the main one's alone.

Each of the others tells the main node its rank, and is answered with everybody's address: one line of JSON each way.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any, cast

LINE_MAX = 1 << 20
PAUSE_S = 0.2


def addresses(rank: int, nodes: int, main: str, port: int, timeout_s: float) -> tuple[str, ...]:
    """All nodes' addresses in the order of their ranks. Raises TimeoutError."""
    until = time.monotonic() + timeout_s
    return _gather(nodes, port, until) if rank == 0 else _ask(rank, nodes, main, port, until)


def _gather(nodes: int, port: int, until: float) -> tuple[str, ...]:
    known: dict[int, tuple[socket.socket, str]] = {}
    own = ""
    with socket.create_server(("", port), backlog=nodes) as server:
        while len(known) < nodes - 1:
            server.settimeout(_left(until, f"{len(known) + 1} of {nodes} nodes have come"))
            try:
                caller, (address, *_) = server.accept()
            except socket.timeout:  # in Python 3.9 it is no TimeoutError
                continue
            caller.settimeout(_left(until, "a node says nothing"))
            told = _line(caller)
            at = told.get("rank")
            if told.get("nodes") != nodes or not isinstance(at, int) or not 0 < at < nodes:
                caller.close()  # no node of this job
                continue
            if at in known:
                known[at][0].close()
            known[at], own = (caller, address), caller.getsockname()[0]
    hosts = [own, *(known[at][1] for at in range(1, nodes))]
    for caller, _ in known.values():
        with caller:
            caller.sendall(json.dumps({"hosts": hosts}).encode() + b"\n")
    return tuple(hosts)


def _ask(rank: int, nodes: int, main: str, port: int, until: float) -> tuple[str, ...]:
    while True:
        left = _left(until, f"node 0 does not answer at {main}:{port}")
        try:
            with socket.create_connection((main, port), timeout=min(left, 5.0)) as caller:
                caller.settimeout(left)
                caller.sendall(json.dumps({"rank": rank, "nodes": nodes}).encode() + b"\n")
                hosts: list[str] = _line(caller).get("hosts") or []
            if len(hosts) == nodes:
                return tuple(hosts)
        except OSError:
            pass  # it is not there yet
        time.sleep(min(PAUSE_S, left))


def _line(caller: socket.socket) -> dict[str, Any]:
    """What the other says; empty where that is nothing of ours."""
    text = b""
    try:
        while not text.endswith(b"\n") and len(text) < LINE_MAX:
            part = caller.recv(65536)
            if not part:
                break
            text += part
        told: Any = json.loads(text)
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", told) if isinstance(told, dict) else {}


def _left(until: float, doing: str) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError(f"the nodes of the job do not meet: {doing}")
    return left
