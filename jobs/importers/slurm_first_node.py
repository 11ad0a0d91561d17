"""Parts of a script that Slurm computes once, on the first node, and a job's command on every node."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .slurm_script import Edit, name_of, outside_quotes, statements
from .slurm_steps import Script

ADDRESS = "printf '%s\\n' \"$SLURM_JOB_NODELIST\" "
"""Command that prints the first node's address, in place of `hostname`."""
SEED = "RANDOM=$SLURM_JOB_ID"
_DIFFERING = ("date", "uuidgen", "shuf", "openssl")
_OPENED = re.compile(r"(?:\$\(|`)[ \t]*$")
_TELLS = re.compile(r"\s*(?:echo|printf)\b[^>|]*$")
_RANDOM = re.compile(r"\bRANDOM\b(?!=)")
_HOSTNAME = re.compile(r"\$(?:HOSTNAME\b|\{HOSTNAME\b)")
NAMED_MAX = 4


@dataclass
class FirstNode:
    """Edits that give every node the first node's values, and what to say of it. `draws`: it takes random numbers."""

    edits: list[Edit] = field(default_factory=list[Edit])
    whys: list[str] = field(default_factory=list[str])
    draws: bool = False


def of_first_node(script: Script) -> FirstNode:
    found = FirstNode()
    if not script.is_shell:
        return found
    telling = {number for number, line in enumerate(script.body.split("\n"), 1) if _TELLS.match(line)}
    places: list[str] = []
    differing: list[str] = []
    for statement in statements(script.body):
        before = script.body[max(0, statement.start - 10) : statement.start]
        if not _OPENED.search(before) or statement.line in telling:
            continue
        if name_of(statement.texts) == "hostname":
            found.edits.append(Edit(statement.start, statement.end, ADDRESS.rstrip()))
            places.append(str(statement.line))
        elif name_of(statement.texts) in _DIFFERING:
            differing.append(f"{name_of(statement.texts)} (line {statement.line})")
    plain = outside_quotes(script.body)
    if not re.search(r"\bHOSTNAME=", plain):
        differing += [f"$HOSTNAME (line {number})" for number in _lines(_HOSTNAME, plain)]
    found.draws = script.shell() in (None, "bash") and any(_lines(_RANDOM, plain))
    if places:
        where = f"line{'s' if len(places) > 1 else ''} {', '.join(places[:NAMED_MAX])}"
        found.whys.append(f"hostname ({where}) is the first node's address, where Slurm runs the script")
    if found.draws:
        found.whys.append("$RANDOM begins with the job's number on each node, outside of $(...)")
    if differing:
        why = "differs from node to node, and Slurm computes it once, on the first: write a value"
        found.whys.append(f"{', '.join(differing[:NAMED_MAX])} {why}")
    return found


def _lines(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    """Yield the numbers of the lines that do more than print what a pattern finds."""
    for number, line in enumerate(text.split("\n"), 1):
        if pattern.search(line) and not _TELLS.match(line):
            yield number
