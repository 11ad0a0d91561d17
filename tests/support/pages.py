"""The pages of the guide: their fenced blocks, the commands in those, and whether our own parsers take them.

A fence says what its block is:

    ```sh            commands that tests/e2e/test_docs.py runs, all of a page in one shell
    ```console       the same, each after `$ `, with what it prints; `...` stands for anything
    ```sh not-run    commands that need an account, a browser or a registry; they are parsed
    ```text          anything that is no input: output alone, a drawing
    ```yaml, json, python    are read as such
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import click
from click.testing import CliRunner

from sandbox.environment import project

ROOT = project()
FENCE = re.compile(r"^ {0,3}```(.*)$")
NOT_RUN = "not-run"
SHELLS = ("sh", "console")

FOREIGN = frozenset(
    {"aws", "curl", "docker", "gcloud", "git", "jq", "kubectl", "pip", "pulumi"}
    | {".", "[", "cat", "cd", "cp", "cut", "date", "echo", "env", "eval", "export", "grep", "head", "kill", "ls"}
    | {"mkdir", "printf", "rm", "sed", "set", "sleep", "sort", "tail", "test", "true", "wc", "$EDITOR", "crontab"}
)
"""Commands of others that pages may use."""
KEYWORDS = frozenset({"if", "then", "else", "fi", "do", "done", "while", "until", "{", "}", "!"})
OURS = frozenset({"jobs", "accel-jobs", "stacks", "sandbox", "policy"})
PLACEHOLDERS = {"N": "1"}
"""Words in capitals where a parser wants something else than text."""


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    info: str
    text: str

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]

    @property
    def runs(self) -> bool:
        return self.info in SHELLS

    @property
    def inputs(self) -> str:
        """The commands alone."""
        if self.language != "console":
            return self.text
        return "".join(command + "\n" for command, _ in steps(self))

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Those whose blocks are held to it."""
    return [ROOT / "README.md", ROOT / "examples/README.md", *sorted((ROOT / "docs").glob("*.md"))]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    kept: list[str] = []
    inside = False
    for line in page.read_text().splitlines():
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def blocks(page: Path) -> list[Block]:
    """In their order. Raises ValueError for a fence that does not end."""
    found: list[Block] = []
    begun: tuple[int, str] | None = None
    inside: list[str] = []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if begun is None:
            if fence:
                begun, inside = (number, fence[1].strip()), []
        elif fence and not fence[1]:
            found.append(Block(page, *begun, "".join(f"{each}\n" for each in inside)))
            begun = None
        else:
            inside.append(line)
    if begun:
        raise ValueError(f"{page}:{begun[0]}: the fence does not end")
    return found


def steps(block: Block) -> list[tuple[str, str | None]]:
    """Commands, each with what it is to print; None where the page does not say (a block of sh is one command)."""
    if block.language != "console":
        return [(block.text, None)]
    found: list[tuple[str, str | None]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif not found:
            raise ValueError(f"{block}: begins with an output")
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
        else:
            found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    return found


def printed_as(expected: str, printed: str) -> bool:
    """Whether an output is the one of a page: `...` stands for anything in a line, and alone on one for any lines."""
    pattern = ""
    for line in expected.rstrip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            parts = (re.escape(part) for part in re.sub(r"\s+", " ", line.rstrip()).split("..."))
            pattern += ".*".join(parts) + r"\n"
    seen = "".join(re.sub(r"\s+", " ", line.rstrip()) + "\n" for line in printed.rstrip().splitlines())
    return re.fullmatch(pattern, seen) is not None


MARK = "=== step "


def script_of(
    parts: Iterable[Block], words: Mapping[str, str] = MappingProxyType({})
) -> tuple[str, list[tuple[str, str, str | None]]]:
    """All steps of these blocks for one shell, before each a line with its number; and what each is to print.

    `words`: what stands for words of the page, such as REF.
    """
    script = "set -eu\n"
    wanted: list[tuple[str, str, str | None]] = []
    for block in parts:
        for command, expected in steps(block):
            for word, meant in words.items():
                command = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _, meant=meant: meant, command)
            script += f"printf '\\n{MARK}%s\\n' {len(wanted)}\n{command}\n"
            wanted.append((str(block), command, expected))
    return script, wanted


def unlike(wanted: list[tuple[str, str, str | None]], printed: str) -> str:
    """Where a script printed something else than the page shows; empty: nowhere."""
    seen = re.split(rf"^{MARK}\d+\n", printed, flags=re.MULTILINE)[1:]
    return "\n".join(
        f"{at}: {command}\n--- the page\n{expected}--- printed\n{got}"
        for (at, command, expected), got in zip(wanted, seen, strict=True)
        if expected is not None and not printed_as(expected, got)
    )


def commands(script: str) -> Iterator[list[str]]:
    """The simple commands of a script, without assignments, redirections and keywords."""
    joined = re.sub(r"\\\n\s*", " ", script)
    for inner in re.findall(r'"[^"\n]*?\$\(([^()]*)\)[^"\n]*"', joined):
        yield from commands(inner)
    for line in joined.splitlines():
        lexer = shlex.shlex(re.sub(r"<([\w .:-]+)>", r"\1", line), posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        yield from _of_line([*lexer, ";"])


def _of_line(tokens: list[str]) -> Iterator[list[str]]:
    words: list[str] = []
    around: list[list[str]] = []
    """Of `a $(b) c`, within the brackets: a, of which the rest is still to come."""
    redirected = False
    for token in tokens:
        if redirected:
            redirected = False
        elif set(token) <= set("<>&") and set(token) & set("<>"):
            redirected = True
        elif not set(token) <= set("();|&"):
            if words or not (token in KEYWORDS or re.match(r"[A-Za-z_]\w*=", token)):
                words.append(token)
        else:
            for character in token:
                if character == "(":
                    around.append(words)
                elif words and words[0] != "for":  # its names are no command
                    yield words
                words = around.pop() if character == ")" and around else []


def fault(words: list[str]) -> str | None:
    """What is wrong with a command, as far as that can be told without running it."""
    name, *rest = words
    name = Path(name).name if name.startswith(".venv/bin/") else name
    if name in ("python", "python3"):
        match rest:
            case ["-m", module, *more] if module in OURS:
                name, rest = module, more
            case ["-m", "stacks.reference" | "benchmarks" | "accel.rules" | "venv", *_] | ["-c", *_]:
                return None
            case [path, *_] if (ROOT / path).is_file() or (ROOT / "examples" / path).is_file():
                return None
            case _:
                return f"python {' '.join(rest[:2])}: is no program of this project"
    if name == "make":
        known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        unknown = [word for word in rest if "=" not in word and word not in known]
        return f"make {unknown[0]}: no such target" if unknown else None
    if name in OURS:
        return _refused(name, [PLACEHOLDERS.get(word, word) for word in rest])
    known = name in FOREIGN or ("/" in name and (ROOT / name).is_file())
    return None if known else f"{name}: no command that a page may use"


def _refused(name: str, arguments: list[str]) -> str | None:
    if name == "sandbox":
        from sandbox.__main__ import _parser

        try:
            _parser().parse_args(arguments)
        except SystemExit as ended:
            return f"sandbox {' '.join(arguments)}: refused by its parser" if ended.code else None
        return None
    done = CliRunner().invoke(_groups()[name], arguments, prog_name=name)
    return None if done.exit_code == 0 else f"{name} {' '.join(arguments)}: {done.output.strip()}"


def _groups() -> dict[str, click.Group]:
    from jobs.cli.main import jobs
    from policy.commands import policy
    from stacks.cli.main import stacks

    return {"jobs": jobs, "accel-jobs": jobs, "stacks": stacks, "policy": policy}
