"""The words of the two commands: `python -m tests.support.words > tests/golden/words.txt`.

The list has the help of the commands as their parsers print it, the rules as their table has them, and every text of
the product's files that a person may read: errors and hints, findings, warnings, progress, headings of tables, causes
and log lines. A value in a text is written `{…}`. A text without words, and code, is left out.
"""

import ast
import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from accel.console.options import options
from accel.console.verb import Verb
from jobs.cli.main import jobs
from stacks.cli.main import stacks

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/words.txt"
FOLDERS = ("accel", "components", "jobs", "stacks", "policy")
RULES = "accel/rules/rules.csv"
VALUE = "{…}"

Words = dict[str, list[str]]
"""Texts by command or file."""

_PATTERNS = {"compile", "findall", "finditer", "fullmatch", "match", "search", "sub"}
_CUTS = {"endswith", "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rpartition", "rsplit", "rstrip"}
UNREAD = {*_PATTERNS, *_CUTS, "cast", "execute", "split", "startswith", "strftime", "strip", "strptime"}
"""Calls whose texts no person reads: patterns, text to remove, types, queries and forms of a date."""

FOREIGN = {"_PROBLEMS"}
"""Tables whose keys are the words of a library."""

CODE = re.compile(
    r"""
    \n | ^\s*(?:\#|import\ |case\ |--\w+:) | ^(?:aws|docker)\ [\w-]+\ [\w-]*--
    | \$[({] | [=!]= | && | \|\| | ;; | printf\ ' | ^\w+="
    | \(\? | \.\*(?!\*) | \\[DSWbdsw(.] | [a-z)]\|[(a-z]
    | \#\w+\ ?[<=] | begins_with\( | attribute_not_exists | \bADD\ \#
    | \bAND\ timestamp | ^\(?(?:labels|metric|resource)\.\S+\ ?= | ^\w*time\w*\ (?:asc|desc)$
    | </?[a-z]+[ ][a-z-]+= | \bvar\(-- | ^dot\ c | ^(?:Authorization:\ )?Bearer\ | ;\ charset=
    """,
    re.VERBOSE,
)
"""Programs, patterns, queries, markup and headers of requests."""

_WORD = re.compile(r"(?<![\w-])[A-Za-z][a-z]+(?![\w(/-])")
_COLUMNS = re.compile(r"_?(?:\w*COLUMNS|\w*WIDE|LISTED|KINDS|JOBS|TEAMS)")
"""Names of the constants that hold the headings of tables."""
_TABLES = {"table", "show", "_show"}


def words() -> Words:
    """Return every text. What a parser prints is not repeated under its file."""
    found = {**commands(), RULES: rules()}
    printed = {_of_option(text) for texts in found.values() for text in texts}
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        texts = texts_of(path.read_text())
        found[str(path.relative_to(ROOT))] = sorted(text for text in texts if text not in printed)
    return {place: texts for place, texts in found.items() if texts}


def page() -> str:
    """Return the list: a heading for each command and file, and a text a line."""
    return "\n".join(f"# {place}\n" + "".join(f"{text}\n" for text in texts) for place, texts in words().items())


def commands() -> Words:
    """Return the help of every command and its options, in the order of the parsers."""
    found: Words = {}
    for name, command in (("accel-jobs", jobs), ("stacks", stacks)):
        found |= dict(_help(command, click.Context(command, info_name=name)))
    return found


def _help(command: click.Command, context: click.Context) -> Iterator[tuple[str, list[str]]]:
    common = {option.name for option in options(command.COMMON)} if isinstance(command, Verb) else set[str | None]()
    texts = [text for part in (command.short_help, command.help) for text in _paragraphs(part)]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record and record[1] and parameter.name not in common and "--help" not in parameter.opts:
            texts.append(_line(": ".join(record)))
    yield context.command_path, [*texts, *_paragraphs(command.epilog)]
    if isinstance(command, click.Group):
        for verb in command.list_commands(context):
            inner = command.get_command(context, verb)
            assert inner is not None
            yield from _help(inner, click.Context(inner, context, info_name=verb))


def _of_option(text: str) -> str:
    """Return the text of an option as its file has it: without the option and its default."""
    return re.sub(r"^-.*?: | \[[^\]]*\]$", "", text)


def _paragraphs(text: str | None) -> Iterator[str]:
    """Yield paragraphs, and each line of those that the terminal does not wrap."""
    for paragraph in re.split(r"\n\s*\n", text or ""):
        for part in paragraph.splitlines() if "\b" in paragraph else [paragraph]:
            if line := _line(part.replace("\b", "")):
                yield line


def rules() -> list[str]:
    """Return the sentences of the table of rules."""
    with (ROOT / RULES).open(newline="") as file:
        return [f"{row['rule']}: {row['summary']}" for row in csv.DictReader(file)]


def texts_of(source: str) -> set[str]:
    """Return the texts of a file."""
    reader = _Reader()
    reader.visit(ast.parse(source))
    return reader.texts


class _Reader(ast.NodeVisitor):
    """Collects texts. Docstrings, annotations, indices and comparisons are passed over."""

    def __init__(self) -> None:
        self.texts: set[str] = set()

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assigned(node.targets[0], node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self._assigned(node.target, node.value)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        name = target.id if isinstance(target, ast.Name) else ""
        for part in value.values if isinstance(value, ast.Dict) and name in FOREIGN else [value]:
            self.visit(part)
        if isinstance(value, ast.Tuple) and _COLUMNS.fullmatch(name):
            self._headings(value)

    def _headings(self, row: ast.Tuple) -> None:
        cells = [
            cell.value.upper() for cell in row.elts if isinstance(cell, ast.Constant) and isinstance(cell.value, str)
        ]
        if cells:
            self.texts.add("  ".join(cells))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults, *node.body):
            if part is not None:
                self.visit(part)

    def visit_Compare(self, node: ast.Compare) -> None:
        for part in (node.left, *node.comparators):
            if not isinstance(part, ast.Constant | ast.Tuple | ast.Set | ast.List):
                self.visit(part)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.visit(node.value)

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        pass

    def visit_Name(self, node: ast.Name) -> None:
        pass  # as the visitor would, but faster: most nodes are names

    def visit_Call(self, node: ast.Call) -> None:
        self.visit(node.func)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if name in UNREAD:
            return
        for part in (*node.args, *(keyword.value for keyword in node.keywords)):
            if isinstance(part, ast.Tuple) and name in _TABLES:
                self._headings(part)
            self.visit(part)
        if name in ("Column", "_Column") and node.args and (title := _text(node.args[0])):
            self.texts.add(title)

    def visit_Raise(self, node: ast.Raise) -> None:
        # The message of an error is one, though it may be a single word.
        if isinstance(node.exc, ast.Call) and node.exc.args and (text := _text(node.exc.args[0])):
            self._add(text, several=False)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._add(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._put_together(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._put_together(node)

    def _put_together(self, node: ast.JoinedStr | ast.BinOp) -> None:
        """Add a text that consists of parts, and the texts within its values."""
        text = _text(node)
        if text is None:
            self.generic_visit(node)
            return
        self._add(text)
        for value in _values(node):
            self.visit(value)

    def _add(self, text: str, *, several: bool = True) -> None:
        """Add a text of words: of `several` words, unless it is known to be a message."""
        text = text.strip()
        if not CODE.search(text) and (" " in text or not several) and _WORD.search(text):
            self.texts.add(_line(text))


def _text(node: ast.expr) -> str | None:
    """Return a text with `{…}` for its values; None for what is not a text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr():
            return "".join(str(part.value) if isinstance(part, ast.Constant) else VALUE for part in node.values)
        case ast.BinOp(op=ast.Add()):
            sides = _text(node.left), _text(node.right)
            return None if sides == (None, None) else "".join(VALUE if side is None else side for side in sides)
        case _:
            return None


def _values(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what stands in a text for `{…}`."""
    match node:
        case ast.Constant():
            return
        case ast.JoinedStr():
            yield from (part.value for part in node.values if isinstance(part, ast.FormattedValue))
        case ast.BinOp(op=ast.Add()):
            yield from (*_values(node.left), *_values(node.right))
        case _:
            yield node


def _line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


if __name__ == "__main__":
    sys.stdout.write(page())
