"""Every fenced block of the guide says what it is, and what is not run is at least taken by the parsers."""

import ast
import json
from pathlib import Path

import click
import pytest
import yaml

from jobs.model.document import parse
from jobs.model.job import Job
from tests.support.pages import FENCE, NOT_RUN, ROOT, SHELLS, Block, blocks, commands, fault, pages, printed_as, steps

ALL = [block for page in pages() for block in blocks(page)]
KNOWN = {*SHELLS, *(f"{shell} {NOT_RUN}" for shell in SHELLS), "text", "yaml", "json", "python"}


@pytest.fixture
def parsed_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands read their options and do nothing."""
    monkeypatch.setattr(click.Command, "invoke", lambda self, context: None)  # a group has its own


def faults_of(block: Block) -> list[str]:
    """What is wrong with a block, a line each."""
    match block.language:
        case "sh" | "console":
            return [f"{block}: {found}" for words in commands(block.inputs) if (found := fault(words))]
        case "python":
            ast.parse(block.text)
        case "json":
            json.loads(block.text)
        case "yaml":
            values = yaml.safe_load(block.text)
            if isinstance(values, dict) and "name" in values and "command" in values:
                parse(block.text.encode(), str(block), Job).job()
        case _:
            pass
    return []


def test_every_block_says_what_it_is() -> None:
    assert [f"{block}: {block.info!r}" for block in ALL if block.info not in KNOWN] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_no_fence_is_overlooked(page: Path) -> None:
    marks = [
        line for line in page.read_text().splitlines() if line.lstrip(" >*-0123456789.").startswith(("```", "~~~"))
    ]
    assert [line for line in marks if not FENCE.match(line)] == []


@pytest.mark.usefixtures("parsed_only")
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_what_blocks_hold_is_taken(page: Path) -> None:
    assert [found for block in ALL if block.page == page for found in faults_of(block)] == []


def block(text: str, info: str = "sh") -> Block:
    return Block(ROOT / "docs/x.md", 1, info, text)


@pytest.mark.usefixtures("parsed_only")
@pytest.mark.parametrize(
    "text, words",
    [
        ("accel-jobs submitt job.yaml", "unknown command submitt"),
        ("accel-jobs submit job.yaml --too gpu", "unknown option --too"),
        ("X=1 accel-jobs logs REF --task x | grep x", "--task"),
        ("cd x && stacks images upgrad dev", "upgrad"),
        ('eval "$(.venv/bin/sandbox start --onlyy aws)"', "sandbox start --onlyy aws: refused"),
        ("ref=$(accel-jobs submit)", "FILE is missing"),
        ("for f in a b; do accel-jobs wat $f; done", "unknown command wat"),
        ("accel-jobs results $(accel-jobs tend $(cat refs) -o id --nope)", "unknown option --nope"),
        ("accel-jobs results $(cat refs) --nope", "unknown option --nope"),
        ("make upp", "make upp: no such target"),
        ("python nothing.py", "is no program of this project"),
        ("frobnicate --all", "no command that a page may use"),
    ],
)
def test_a_wrong_command_is_found(text: str, words: str) -> None:
    (found,) = faults_of(block(text))
    assert words in found


@pytest.mark.usefixtures("parsed_only")
def test_a_wrong_job_file_is_found() -> None:
    with pytest.raises(Exception, match="retires"):
        faults_of(block("name: a\ncommand: [x]\nretires: 3\n", "yaml"))


def test_steps_of_a_console_have_their_outputs() -> None:
    shown = block("$ a \\\n> b\none\n$ c\n", "console")
    assert steps(shown) == [("a \\\nb", "one\n"), ("c", "")]
    assert list(commands(shown.inputs)) == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    "expected, printed, same",
    [
        ("a ... c\n", "a b c\n", True),
        ("a ... c\n", "a b d\n", False),
        ("a\n...\nz\n", "a\nb\nc\nz\n", True),
        ("a\n...\nz\n", "a\nb\n", False),
        ("NAME  KIND\n", "NAME   KIND   \n", True),
        ("", "a\n", False),
        ("a.b\n", "aXb\n", False),
    ],
)
def test_outputs_are_compared(expected: str, printed: str, same: bool) -> None:
    assert printed_as(expected, printed) is same
