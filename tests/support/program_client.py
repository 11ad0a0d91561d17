"""Stands for a Pulumi program's Python and ends as the program does: `program_client.py SOCKET ARGUMENTS`."""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    socket.send_fds(server, [b"."], [0, 1, 2])
    cwd = os.getcwd()  # noqa: PTH109 - pathlib takes longer to import than the rest of this
    server.sendall(json.dumps([sys.argv[2:], cwd, dict(os.environ)]).encode() + b"\n")
    _, code = server.makefile()
    sys.exit(int(code) if int(code) >= 0 else 1)
