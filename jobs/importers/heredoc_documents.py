"""Document that a page shows as a heredoc to paste into a shell (`cat > job.yaml <<EOF`), as a cell of a notebook, or
below `$ cat job.yaml`."""

import re

from accel.diagnostics.errors import BadInput

from .heredocs import Heredoc, split_heredocs
from .script_text import ENVIRONMENT
from .shell_expansion import Expansion, split

_WRITES = re.compile(r"\s*(?:\$\s+)?(?:sudo\s+)?(?:cat|tee|kubectl)\s")
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)")
_BEFORE = re.compile(r"\s*(?:(?:#|set\s|cd\s|mkdir\s).*)?$")
_AFTER = re.compile(r"\s*(?:(?:#|(?:\$\s+)?kubectl\s).*|\S+/\S+ (?:created|configured|unchanged))?$")
_CALLS = re.compile(rf"\|\s*{ENVIRONMENT}(?:gcloud|aws)\s")
"""Command that reads the document, which is imported with its options."""
_LISTING = re.compile(r"\s*(?:%%(?:write)?file\s.*|\$\s+cat\s+[\w./~-]+[^\S\n]*)\n")
"""Line above a document that writes or shows it: https://ipython.readthedocs.io/en/stable/interactive/magics.html"""


def listing_in(text: str) -> str | None:
    """Return the document below a line that shows it, and an empty line for each line above it, or None."""
    found = _LISTING.match(text)
    return "\n" * found[0].count("\n") + text[found.end() :] if found else None


def document_in(text: str) -> str | None:
    """Return the document with the text's variables set, below an empty line for each line above it, or None."""
    if (listing := listing_in(text)) is not None:
        return listing
    if "<<" not in text or text.lstrip().startswith(("{", "[")):
        return None
    lines = text.split("\n")
    known = Expansion({})
    try:
        for number, line in enumerate(lines, 1):
            if _CALLS.search(line):
                return None
            if _WRITES.match(line):
                _, bodies = split_heredocs(line, {each.strip() for each in lines})
                return _body(known, bodies[0], lines, number) if len(bodies) == 1 else None
            if assigned := _ASSIGNMENT.fullmatch(line):
                known.texts[assigned[1]] = " ".join(split("", known.line("", assigned[2], is_value=True))[:1])
            elif not _BEFORE.match(line):
                return None
    except BadInput:  # no shell could read it
        return None
    return None


def _body(known: Expansion, heredoc: Heredoc, lines: list[str], number: int) -> str | None:
    """Return the text of the heredoc that begins below a line, or None if other commands follow it."""
    at = number
    while at < len(lines) and heredoc.take(lines[at]):
        at += 1
    if not all(map(_AFTER.match, lines[at + 1 :])):
        return None
    text = heredoc.text if heredoc.quoted else known.body("", heredoc.text)[0]
    return "\n" * number + text
