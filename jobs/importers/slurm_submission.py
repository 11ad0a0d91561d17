"""`sbatch` pasted together with the script that it submits, in a heredoc or a file that the text writes, or a text that
writes a script without submitting it. Without a file name, sbatch reads standard input; its options override the
script's: https://slurm.schedmd.com/sbatch.html"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from accel.diagnostics.errors import BadInput
from accel.rules.jobs import imports

from .heredocs import Heredoc, split_heredocs
from .report import Report
from .script_text import with_own_lines
from .shell import PastedCommand, is_command, pasted_command
from .slurm_options import SlurmOption, options_of

PROGRAM = "sbatch"
DIRECTIVE = "#SBATCH"
_PIPED = re.compile(r"^(\s*(?:\$\s+)?)cat\s+(<<-?\s*\S+)\s*\|\s*sbatch\b(.*)$")
_CAPTURED = re.compile(r"^(\s*)(?:(?:export|local|readonly)\s+)?\w+=[\"']?\$\(\s*(?=sbatch\b.*<<)")
_CHAINED = re.compile(r"^[^#'\"<]*&&\s*(?=sbatch\s)")
_COMPUTED = re.compile(r"(?<!\\)(?:\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`)")
COMPUTED_MAX = 3
ELSEWHERE = "is a command sbatch: import the script that it submits, with these options as #SBATCH lines"


@dataclass(frozen=True)
class Submission:
    """Script of a pasted sbatch, at the lines where the text has it, with the options and arguments of the command."""

    script: str
    options: list[SlurmOption]
    arguments: list[str]
    command: PastedCommand
    computed: list[str]
    """Parts of the script that the submitting shell would run."""


def is_submission(text: str) -> bool:
    return PROGRAM in text and is_command("\n".join(_plain(text)[0]), PROGRAM)


def submission(name: str, text: str, variables: Mapping[str, str]) -> Submission | None:
    """Return the script that a text submits, or that it writes and nobody submits. Return None if the text has no
    heredoc or is a batch script itself. Raise BadInput if it submits another script, or several."""
    if "<<" not in text:
        return None
    lines, own, heredocs = _plain(text)
    if any(line.startswith(DIRECTIVE) for line in own):
        return None
    if not is_command("\n".join(own), PROGRAM):
        scripts = {each.file: each for each in heredocs if each.file and f"\n{DIRECTIVE}" in f"\n{each.text}"}
        if not scripts:
            return None
        if len(scripts) > 1:
            raise BadInput(f"{name}: writes {len(scripts)} scripts of Slurm ({', '.join(scripts)}): import one of them")
        lines.append(f"{PROGRAM} {shlex.quote(next(iter(scripts)))}")
    command = pasted_command(name, "\n".join(lines), variables, "", PROGRAM)
    options, count = options_of(command.argv[1:], command.line, stops=True)
    left = command.argv[1 + count :]
    file = next((each for each in command.files if _is_file(each, left)), None)
    if file is None:
        raise BadInput(f"{name}: {ELSEWHERE}")
    heredoc = command.heredocs[file]
    computed = [] if heredoc.quoted else list(dict.fromkeys(_COMPUTED.findall(heredoc.text)))
    script = interpreter_first("\n" * heredoc.above + command.files[file])
    return Submission(script, options, left[1:], command, computed)


def report_command(found: Submission, report: Report, options: Mapping[str, str], commands: str) -> None:
    """Report the command around the script, and ask for the variables that its shell would have replaced. `options`:
    values of all options, by their leaves; `commands`: leaf of the script's body."""
    command = found.command
    command.report_lines(report)
    if command.rest:
        report.changed("after the command", None, "is not the command's")
    body = "\n".join(line for line in found.script.split("\n") if not line.startswith(DIRECTIVE))
    for name in dict.fromkeys(command.written):
        written = re.compile(rf"\$(?:{name}\b|\{{{name}\}})")
        for leaf, value in {**options, commands: body}.items():
            if held := written.search(value):
                report.findings(leaf, imports.variable(held[0], name, leaf))
    for name, mark in command.unknown.items():
        for leaf in [leaf for leaf, value in options.items() if mark in value]:
            report.findings(leaf, imports.variable(mark, name if re.fullmatch(r"\w+", name) else "", leaf))
    if found.computed:
        parts = ", ".join(each[:60] for each in found.computed[:COMPUTED_MAX])
        verb = "is" if len(found.computed) == 1 else "are"
        why = f"{parts} {verb} run by the shell that submits, and here by the job"
        report.decide(commands, why, new="command", is_open=False)


def _plain(text: str) -> tuple[list[str], list[str], list[Heredoc]]:
    """Return the lines with each sbatch call at a line's beginning, those of them that are in no heredoc, and the
    heredocs."""
    lines = text.split("\n")
    ends = {line.strip() for line in lines}
    own: list[str] = []
    heredocs: list[Heredoc] = []
    waiting: list[Heredoc] = []
    for number, line in enumerate(lines):
        if waiting:
            if not waiting[0].take(line):
                waiting.pop(0)
            continue
        if PROGRAM in line:
            line = with_own_lines(line)
            line = _PIPED.sub(r"\1sbatch\3 \2", _CAPTURED.sub(r"\1", _CHAINED.sub("", line)))
        lines[number] = line
        own.append(line)
        _, waiting = split_heredocs(line, ends)
        heredocs += waiting
    return lines, own, heredocs


def _is_file(file: str, left: list[str]) -> bool:
    """Return whether a heredoc of this name is the script of a command, whose words after the options are `left`."""
    return PurePosixPath(file) == PurePosixPath(left[0]) if left else file == "-"


def interpreter_first(text: str) -> str:
    """Return a script whose interpreter's line, if it has one below empty lines, is above them."""
    plain = text.lstrip("\n")
    first, line_break, rest = plain.partition("\n")
    above = text[: len(text) - len(plain)]
    return f"{first}{line_break}{above}{rest}" if plain.startswith("#!") else text
