"""Names and arguments that a shell would act on are only ever text."""

from __future__ import annotations

import ast
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from accel.contract.targets import LocalTarget
from jobs.backends.base import JobRef
from jobs.backends.local import LocalBackend
from jobs.model import keys
from jobs.model.job import Job

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned",
    "| touch pwned",
    "&& touch pwned",
    "\n touch pwned\n",
    "$IFS",
    "'; touch pwned; '",
    '"; touch pwned; "',
    "../../pwned",
    "/etc/passwd",
    "~/x",
    "-rf",
    "--help",
    "%s%n",
    "{}",
    "*",
    "?",
    "[a-z]",
    "<pwned",
    ">pwned",
    "2>pwned",
    "\\",
    "\t",
    " ",
    "",
    "\x1b]0;x\x07",
    "\u202e",
    "é",
    "😀",
    "${PATH}",
    "!!",
    "#",
    "\r",
    "a" * 3000,
    "\x7f",
    "$'\\x41'",
    "<(touch pwned)",
    "%PATH%",
    "a=b",
    "\ufeff",
    "()",
    "() { :;}; touch pwned",
    "\u2028",
]


def hostile(rng: random.Random) -> str:
    return "".join(rng.choice(HOSTILE) for _ in range(rng.randint(1, 4)))


def test_five_hundred_arguments_arrive_as_they_are(home: Path) -> None:
    rng = random.Random(11)
    arguments = [hostile(rng) for _ in range(500)]
    program = "import sys; sys.stdout.buffer.write('\\0'.join(sys.argv[1:]).encode())"
    backend = LocalBackend("here", LocalTarget(root=str(home)))
    job = Job(
        name="a",
        command=["python", "-c", program, *arguments],
        env={f"V{n}": text for n, text in enumerate(arguments) if not set(text) & set("\n\r")},
    )
    key = keys.submission_key(job.name, keys.random_key())
    ref = backend.submit(backend.render(job, keys.platform_name(job.name, key), key))
    for _ in backend.logs(ref, follow=True):
        pass
    output = home.parent / "state" / "accel" / "local" / ref.id / "tasks" / "0" / "1" / "output.log"
    assert output.read_bytes().decode().split("\0") == arguments
    assert list(home.iterdir()) == []


def test_five_hundred_names_harm_nothing(home: Path, tmp_path: Path, invoke: Callable[..., Result]) -> None:
    (home / "j.yaml").write_text("name: a\ncommand: ['true']\n")
    rng = random.Random(12)
    before = sorted(path for path in tmp_path.rglob("*"))
    for number in range(500):
        text = hostile(rng)
        arguments = [
            ["submit", "j.yaml", "--name", text],
            ["submit", "j.yaml", "--to", text],
            ["get", f"local:/{text}"],
            ["logs", text],
            ["submit", "j.yaml", "--set", text],
            ["--targets", text, "targets"],
            ["validate", text],
        ][number % 7]
        result = invoke(*arguments)
        assert result.exit_code in (2, 6) or text in ("--help", ""), (arguments, result.output)
        assert all(line.startswith(("error: ", "hint: ")) and line.isprintable() for line in result.stderr.splitlines())
    assert sorted(path for path in tmp_path.rglob("*")) == before
    assert not (home / "pwned").exists()


@pytest.mark.parametrize("text", [text for text in HOSTILE if "/" not in text and text])
def test_a_folder_is_only_a_name(text: str, home: Path) -> None:
    backend = LocalBackend("here", LocalTarget(root=str(home)))
    job = Job(name="a", image=f"local/{text}", command=["true"])
    assert backend.render(job, "a-0", "0").body["folder"] == os.path.normpath(f"{home}/{text}") or text in (" ",)


def test_no_shell_is_ever_used() -> None:
    for path in (ROOT / "jobs").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "shell":
                pytest.fail(f"{path}:{node.value.lineno} gives shell=")
            if isinstance(node, ast.Attribute) and node.attr in (
                "system",
                "popen",
                "getoutput",
                "getstatusoutput",
            ):
                pytest.fail(f"{path}:{node.lineno} uses {node.attr}")


@pytest.mark.parametrize("text", ["local:/a", "aws-batch:us-east-1/0f3c", "aws-batch:us-east-1/0f3c:7", "x:/a/b:c"])
def test_references_are_text(text: str) -> None:
    assert str(JobRef.parse(text)) == text
