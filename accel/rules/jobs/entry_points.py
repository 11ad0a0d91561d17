"""Program of a container: the job's command, and ENTRYPOINT and CMD of its image."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

NOTHING = rule("container.command.none")
TWICE = rule("container.entry-point.twice")
SHELL = rule("container.entry-point.shell")

_INTERPRETER = re.compile(r"(?:.*/)?(python|node|java|Rscript|torchrun|accelerate|deepspeed)[\d.]*")
_PROGRAM = re.compile(r"(?:.*/)?([A-Za-z]+)[\d.]*")


@dataclass(frozen=True)
class Image:
    """The program that an image defines."""

    entry_point: Sequence[str] = ()
    cmd: Sequence[str] = ()


def argv(image: Image, command: Sequence[str], *, replaced: bool) -> list[str]:
    """Return what the container runs. `replaced`: the platform replaces ENTRYPOINT with a command."""
    if command:
        return [*([] if replaced else image.entry_point), *command]
    return [*image.entry_point, *image.cmd]


def command(
    image: Image, words: Sequence[str], *, replaced: bool, swept: bool = False, field: str = "command"
) -> list[Finding]:
    """Check a command against its image. `swept`: a sweep prepends /bin/sh."""
    if not argv(image, words, replaced=replaced):
        message = "is missing, and the image has neither ENTRYPOINT nor CMD"
        return [NOTHING.finding(field, message, "write what the container is to run")]
    if not words or replaced or not image.entry_point:
        return []
    shown = " ".join(image.entry_point)
    if swept and (found := _INTERPRETER.fullmatch(image.entry_point[0])):
        message = f"is handed to the image's entry point, {shown}, with /bin/sh of the sweep before it"
        fix = f"write sweep.shell: false, or use an image whose entry point is not {found[1]}"
        return [SHELL.finding(field, message, fix)]
    first, last = _PROGRAM.fullmatch(words[0]), _PROGRAM.fullmatch(image.entry_point[0])
    if first and last and first[1] == last[1]:
        message = f"begins with {words[0]}, and is handed to the image's entry point, {shown}"
        fix = f"leave {words[0]} out: it would run `{shown} {' '.join(words)[:80]}`"
        return [TWICE.finding(field, message, fix)]
    return []
