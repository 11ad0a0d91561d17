"""Structure of a shell script's lines: heredocs, and the quotes, brackets and blocks that a line leaves open."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

_OPERATOR = re.compile(r"(?<!<)<<(-?)\s*(?:'([A-Za-z_]\w*)'|\"([A-Za-z_]\w*)\"|\\?([A-Za-z_]\w*))")
_BLOCK = re.compile(r"^[ \t]*(?:if|for|while|until|case|select)\b", re.MULTILINE)
_BLOCK_END = re.compile(r"(?:^|[;&])[ \t]*(?:fi|done|esac)\b", re.MULTILINE)
_TARGET = re.compile(r"(?:>\s*|\btee\s+(?:-a\s+)?)([^\s|&;<>]+)")


@dataclass
class Heredoc:
    """Lines after `<<END`, up to the line END. `file`: the file that they are written to, as the line spells it."""

    end: str
    file: str
    quoted: bool
    tabs: bool
    above: int = 0
    """Number of the line above the first one."""
    lines: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    def take(self, line: str) -> bool:
        """Add a line. Return False without adding it if it ends the heredoc."""
        own = line.lstrip("\t") if self.tabs else line
        if own.rstrip() == self.end:
            return False
        self.lines.append(own)
        return True


def split_heredocs(line: str, ends: Collection[str]) -> tuple[str, list[Heredoc]]:
    """Return the line without its heredocs' operators, and the heredocs. Operators in quotes do not count, nor do those
    whose end word no line has (`ends`: all lines)."""
    found: list[Heredoc] = []
    if "<<" not in line or line.lstrip().startswith("#"):
        return line, found
    target = _TARGET.search(line)
    kept: list[str] = []
    at = seen = 0
    opened = ""
    for each in _OPERATOR.finditer(line):
        opened, seen = open_quote(line[seen : each.start()], opened), each.start()
        if opened:
            continue
        end = each[2] or each[3] or each[4]
        if end not in ends:
            continue
        quoted = not each[4] or "\\" in each[0]
        file = target[1].strip("'\"") if target else ""
        found.append(Heredoc(end, file, quoted, bool(each[1])))
        kept.append(line[at : each.start()])
        at = each.end()
    return "".join([*kept, line[at:]]), found


def open_quote(line: str, opened: str) -> str:
    return open_list(line, opened, 0)[0]


def open_list(line: str, opened: str, depth: int) -> tuple[str, int]:
    """Return the quote and the number of brackets open after a line, given those before. Comments count for none."""
    index = 0
    while index < len(line):
        letter = line[index]
        if letter == "\\" and opened != "'":
            index += 1
        elif opened:
            opened = "" if letter == opened else opened
        elif letter in "'\"":
            opened = letter
        elif letter in "()":
            depth += 1 if letter == "(" else -1
        elif letter == "#" and (index == 0 or line[index - 1].isspace()):
            break
        index += 1
    return opened, depth


def open_blocks(text: str) -> int:
    return len(_BLOCK.findall(text)) - len(_BLOCK_END.findall(text))
