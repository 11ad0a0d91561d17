"""Program of a worker pool: an image with a command, one with its own entry point, or a Python package."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, cast

from accel.rules import Finding
from accel.rules.jobs import placeholders
from accel.rules.vertex import images, jobs

from ...model.blocks_google import PythonPackage
from ...model.job import Job
from .. import tasks
from . import nodes
from .labels import KIND

_UNSURE = re.compile(r"\$[$(]")


@dataclass(frozen=True)
class Program:
    """Image, and the program in it."""

    image: str
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    package: PythonPackage | None = None


@dataclass(frozen=True)
class CheckedProgram:
    """Program with the rules' replacements for its image and command, and all findings on it as written."""

    program: Program
    findings: Sequence[Finding]


@dataclass(frozen=True)
class Node:
    """Settings for the machines of a pool, one of the first two in a job of several nodes."""

    count: int
    gpus: int
    port: str


def check_program(program: Program, field: str, today: date) -> CheckedProgram:
    """Check a program. `field` is that of its pool, with a dot."""
    findings = images.image(program.image, today=today, field=f"{field}image") if program.image else []
    findings += jobs.program(program.command, program.args, bool(program.package), f"{field}command")
    findings += jobs.command(program.command, f"{field}command")
    for name, words in (("command", program.command), ("args", program.args)):
        findings += placeholders.addresses(f"{field}{name}", words)
    image, command = program.image, list(program.command)
    for finding in findings:
        if finding.rule == jobs.COMMAND.id:
            command = cast("list[str]", finding.replacement)
        elif finding.severity == "translate":
            image = cast(str, finding.replacement)
    return CheckedProgram(replace(program, image=image, command=command), findings)


def task(program: Program, job: Job, name: str, node: Node | None) -> dict[str, Any]:
    """Return the part of a WorkerPoolSpec that describes the program. Source:
    https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/configure-container-settings"""
    told = job.env | tasks.environment(job, KIND)
    plain: dict[str, str] = {}
    command = list(program.command)
    if node:
        told |= nodes.environment(name, node.count, node.gpus)
        if command:
            command = nodes.command(command, node.port)
        else:
            plain = nodes.rank_variables(node.port)
    env = _env(told, plain)
    if program.package:
        made: dict[str, Any] = {
            "executorImageUri": program.image,
            "packageUris": list(program.package.uris),
            "pythonModule": program.package.module,
        }
        return {"pythonPackageSpec": made | ({"args": list(program.args)} if program.args else {}) | {"env": env}}
    made = {"imageUri": program.image, "env": env}
    if command:
        made["command"] = command
    if program.args:
        made["args"] = list(program.args)
    return {"containerSpec": made}


def _env(told: Mapping[str, str], plain: Mapping[str, str]) -> list[dict[str, str]]:
    """Let Vertex AI expand its own variables in those of `plain` only."""
    found = {name: literal(text) for name, text in told.items()} | dict(plain)
    return [{"name": name, "value": found[name]} for name in sorted(found)]


def literal(text: str) -> str:
    """Escape text that must stay literal: Vertex AI expands $(NAME), unless it is written $$(NAME). Source:
    https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar"""
    return text.replace("$", "$$") if _UNSURE.search(text) else text
