"""The program that a job with shipped code begins with; `program` puts it together from this folder's files.

It runs with the Python of any image (3.9 and later, standard library only), is given on the command line, and so is
kept small: ECS takes 8,192 characters of command and variables together. It holds no `$`, which Kubernetes and a shell
would replace. Equal for every client of one version: a job is found again by what is sent.
"""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent


@cache
def program(scheme: str) -> str:
    """Return the program for an archive at `<scheme>://`: how it is opened, and what is done with it."""
    return "\n".join([*(_plain((_HERE / f"{name}.py").read_text()) for name in (scheme, "start")), "main(opened)\n"])


def _plain(text: str) -> str:
    """Return the module without types, docstrings, comments and empty lines, indented by a space a level."""
    lines = text.splitlines(keepends=True)
    ends = [0]
    for line in lines:
        assert line.isascii(), "columns are counted in bytes"
        ends.append(ends[-1] + len(line))

    def at(line: int, column: int) -> int:
        return ends[line - 1] + column

    kept = text
    for start, end in sorted(_cuts(ast.parse(text), text, at), reverse=True):
        kept = kept[:start] + kept[end:]
    found = [line.rstrip() for line in kept.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return "\n".join(" " * ((len(line) - len(line.lstrip())) // 4) + line.lstrip() for line in found)


def _cuts(tree: ast.Module, text: str, at: Callable[[int, int], int]) -> Iterator[tuple[int, int]]:
    """Yield where types, docstrings and the import of types stand."""

    def end(node: ast.expr | ast.stmt) -> int:
        return at(node.end_lineno or 0, node.end_col_offset or 0)

    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=ast.expr() as kind):
                yield at(node.lineno, node.col_offset) + len(node.arg), end(kind)
            case ast.FunctionDef(returns=ast.expr() as kind):
                yield text.rindex(" ->", 0, at(kind.lineno, kind.col_offset)), end(kind)
            case ast.AnnAssign(target=target, annotation=kind):
                yield end(target), end(kind)
            case ast.Expr(value=ast.Constant(value=str())) | ast.ImportFrom(module="typing" | "collections.abc"):
                yield at(node.lineno, node.col_offset), end(node)
            case _:
                pass
