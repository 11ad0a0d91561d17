"""Stands for a Pulumi program's Python and ends as the program does: `program_client.py SOCKET ARGUMENTS`."""

import json
import os
import socket
import sys
import time

START_S = 300.0

until = time.monotonic() + START_S
while not os.access(sys.argv[1], os.F_OK) and time.monotonic() < until:
    time.sleep(0.02)
with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    socket.send_fds(server, [b"."], [0, 1, 2])
    cwd = os.getcwd()  # noqa: PTH109 - pathlib takes longer to import than the rest of this
    server.sendall(json.dumps([sys.argv[2:], cwd, dict(os.environ)]).encode() + b"\n")
    sys.exit(int(server.recv(16) or 1))
