"""Launchers and their variables."""

from collections.abc import Mapping

from accel.rules import Finding
from accel.rules.jobs.launchers import Shape, check

from .case import Case


def _two(*command: str, env: Mapping[str, str] | None = None) -> list[Finding]:
    return check(command, env or {}, Shape(2, 4))


CASES = [
    Case(
        "launcher.unexpanded", "command[2]", ("MASTER_ADDR", "stays as it is written"), "[bash, -c, '... $MASTER_ADDR",
        lambda: _two("train", "--host", "$(MASTER_ADDR)"), lambda: _two("bash", "-c", "train --host $MASTER_ADDR"),
    ),
    Case(
        "launcher.nodes", "command[0]", ("--nnodes 3", "2 nodes"), "nodes: 3",
        lambda: _two("torchrun", "--nnodes", "3", "a.py"), lambda: _two("torchrun", "--nnodes", "1:3", "a.py"),
    ),
    Case(
        "launcher.processes", "env.PET_NPROC_PER_NODE", ("is 8", "4 GPUs"), "write 4",
        lambda: _two(env={"PET_NPROC_PER_NODE": "8"}), lambda: _two(env={"PET_NPROC_PER_NODE": "auto"}),
    ),
    Case(
        "launcher.idle-gpus", "command[0]", ("--nproc-per-node 1", "4 GPUs"), "write 4",
        lambda: _two("torchrun", "--nproc-per-node", "1", "a.py"), lambda: _two("torchrun", "--nproc-per-node=4", "a"),
    ),
    Case(
        "launcher.rank", "env.NODE_RANK", ("the same on each of 2 nodes",), "leave it out",
        lambda: _two(env={"NODE_RANK": "0"}), lambda: check([], {"NODE_RANK": "0"}, Shape(1, 4)),
    ),
    Case(
        "launcher.rendezvous", "env.MASTER_ADDR", ("is localhost", "itself on every node"), "MASTER_ADDR is set",
        lambda: _two(env={"MASTER_ADDR": "localhost"}), lambda: _two(env={"MASTER_PORT": "29501"}),
    ),
]  # fmt: skip
