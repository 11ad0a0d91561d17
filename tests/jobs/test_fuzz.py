"""The reader of job files on rubbish: it answers with a job or with faults, soon, and with nothing else."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import yaml

from accel.diagnostics.errors import BadInputs
from jobs.model import document
from jobs.model.job import Job
from tests.support.soak import SOAK
from tests.support.speed import CpuTime, reference_seconds

CASES = 200_000 if SOAK else 1500
SEEDS = 8
SLOWEST_S = 1.0
RSS_MAX_MIB = 300

FILE = """\
name: digits
image: &i local/examples
command: [python, train.py, "--epochs", 5]
accelerator: {type: h100, count: 1}
cpus: 1
env:
  EPOCHS: 20
  IMAGE: *i
  TEXT: |-
    a line
mounts:
- source: efs://fs-1
  path: /data
timeout_s: 10m
tasks: 4
"""
DRAWN = """\
name: tune
image: local/examples
command: [python, train.py]
spot: prefer
deadline: 12h
work_s: 7h
changeover_s: 20m
lost_retries: 3
sweep:
  random:
    LEARNING_RATE: {log: [1e-4, 1e-1]}
    LAYERS: {int: [1, 8]}
    DROPOUT: {uniform: [0, 0.5]}
    KIND: {choice: [a, "b", 3]}
  count: 20
  seed: 7
  objective: {metric: accuracy, best: max}
  shell: false
"""
GRID = """\
name: grid
image: local/examples
command: [python, train.py]
tasks: 4
parallelism: 2
sweep:
  grid:
    LEARNING_RATE: [0.1, 1e-2]
    BATCH_SIZE: [&b 32, 64]
"""
LIST = """\
name: list
image: local/examples
command: [python, train.py]
sweep:
  list:
  - {RATE: 0.10, KIND: "no"}
  - {RATE: 1e-3, KIND: rbf}
"""
FILES = (FILE, DRAWN, GRID, LIST)
PIECES = [
    "\t",
    "\0",
    "\ufeff",
    "\u2028",
    "\x85",
    "é",
    "😀",
    "---\n",
    "...\n",
    "&a ",
    "*a ",
    "*i",
    "<<: *i\n",
    "!!python/name:os ",
    "? ",
    "- ",
    "- - - ",
    ": ",
    "#",
    "|",
    ">-\n",
    "'",
    '"',
    "{",
    "}",
    "[",
    "]",
    ",",
    "%YAML 1.1\n",
    "!!set ",
    "!!binary ",
    "~",
    "yes",
    "on: ",
    "0x",
    "0o7",
    "1:30",
    ".nan",
    ".inf",
    "1e999",
    "9" * 400,
    "\r",
    "\n\n",
    " " * 50,
    "[" * 40,
    "a: " * 30,
    "@",
    "`",
    "\\",
    "!<x> ",
    "=",
    "<<",
    "2024-01-01",
    "null",
    "-0",
    "+1",
    "_",
    "1_0",
    '"\\ud800"',
    '"\\U0010ffff"',
]


def mutated(rng: random.Random) -> bytes:
    data = bytearray(rng.choice(FILES).encode())
    for _ in range(rng.choice((1, 1, 2, 3, 4, 6))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(7):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del data[at : at + rng.randint(1, 30)]
            case 2:
                data[at:at] = rng.choice(PIECES).encode(errors="surrogatepass")
            case 3:
                other = rng.randrange(len(data) + 1)
                data[at:at] = data[other : other + rng.randint(1, 60)]
            case 4:
                lines = bytes(data).split(b"\n")
                rng.shuffle(lines)
                data = bytearray(b"\n".join(lines))
            case 5:
                data[at:at] = rng.choice(PIECES).encode() * rng.randint(1, 200)
            case _:
                lines = bytes(data).split(b"\n")
                index = rng.randrange(len(lines))
                lines[index] = b" " * rng.randint(0, 6) + lines[index].lstrip()
                data = bytearray(b"\n".join(lines))
    return bytes(data)


def read_mutated(seed: int) -> tuple[int, float, int]:
    """How many mutated files could still be read, the slowest reading in s, the process's largest memory in MiB."""
    rng = random.Random(seed)
    slowest = 0.0
    read = 0
    for _ in range(CASES // SEEDS):
        data = mutated(rng)
        begun = time.process_time()
        try:
            job = document.parse(data, "f.yaml", Job).job()
        except BadInputs as faults:
            for line in faults.messages:
                assert line.startswith("f.yaml:") and line.isprintable(), (line, data)
        else:
            read += 1
            assert document.parse(document.dump(job).encode(), "f.yaml", Job).job() == job
        slowest = max(slowest, time.process_time() - begun)
    # What getrusage tells is handed down through exec: it would be the largest memory of this process's parent.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return read, reference_seconds(slowest), int(status["VmHWM"].split()[0]) // 1024


@pytest.fixture(scope="module")
def apart() -> Iterator[ProcessPoolExecutor]:
    """A fresh process: memory and garbage collection of this one tell of the tests before."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("text", FILES)
def test_what_is_mutated_can_be_read(text: str) -> None:
    assert document.parse(text.encode(), "f.yaml", Job).job().command[0] == "python"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_mutated_files(apart: ProcessPoolExecutor, seed: int) -> None:
    read, slowest, largest = apart.submit(read_mutated, seed).result()
    assert slowest < SLOWEST_S
    assert read, "every mutation broke the file: nothing was tried beyond the syntax"
    assert largest < RSS_MAX_MIB


LARGE = {
    "scalars": "x: " + "[a, " * 20 + "b" * 900_000,
    "one key": "k" * 900_000 + ": 1",
    "keys": "".join(f"k{n}: 1\n" for n in range(80_000)),
    "items": "command: [" + "a," * 400_000 + "]",
    "lines": "- a\n" * 250_000,
    "quotes": '"' + "\\x41" * 200_000 + '"',
    "comments": "# c\n" * 250_000,
    "anchors": "".join(f"- &a{n} x\n" for n in range(70_000)),
    "folded": "a: >\n" + "  words\n\n" * 90_000,
    "open braces": "{" * 1_000_000,
    "open quotes": "'" * 999_999,
    "question marks": "? " * 500_000,
    "colons": ": " * 500_000,
    "tags": "!!str " * 170_000,
    "percent": "%A\n" * 300_000,
    "document ends": "...\n" * 250_000,
    "document starts": "---\n" * 250_000,
    "long number": "name: a\ncpus: " + "1" * 900_000,
    "long duration": "name: a\ntimeout_s: " + "1" * 900_000 + "d",
    "base 60": "name: a\ncpus: 1" + ":01" * 300_000,
    "spaces": " " * 1_000_000,
    "unknown names": "name: a\n" + "".join(f"cpu{'s' * 50}{n}: 1\n" for n in range(1500)),
    "values of a sweep": "name: a\nsweep: {grid: {A: [" + "1," * 400_000 + "]}}",
    "axes of a sweep": "name: a\nsweep: {grid: {" + "".join(f"A{n}: [1, 2], " for n in range(50_000)) + "}}",
    "rows of a sweep": "name: a\nsweep: {list: [" + "{A: 1}, " * 100_000 + "]}",
    "draws of a sweep": "name: a\nsweep: {count: 100000, random: {"
    + "".join(f"A{n}: {{log: [1e-300, 1e300]}}, " for n in range(20_000))
    + "}}",
    "bad names": "name: a\nenv:\n" + "".join(f"  {n}-x: 1\n" for n in range(10_000)),
}


def read_large(kind: str) -> float:
    """Seconds of this process, to the refusal."""
    with CpuTime() as cpu, pytest.raises(BadInputs):
        document.parse(LARGE[kind].encode()[: 2**20], "f.yaml", Job).job()
    return cpu.seconds


@pytest.mark.parametrize("kind", LARGE)
def test_large_files(apart: ProcessPoolExecutor, kind: str) -> None:
    assert apart.submit(read_large, kind).result() < SLOWEST_S * 2


@pytest.mark.parametrize("text", [FILE, *(FILE.replace("cpus: 1", f"cpus: {n}") for n in range(1, 20))])
def test_the_same_values_as_plain_yaml_where_both_read(text: str) -> None:
    plain = yaml.safe_load(text)
    read = document.parse(text.encode(), "f", Job).job().model_dump()
    assert (read["name"], read["cpus"], read["tasks"]) == (plain["name"], plain["cpus"], plain["tasks"])
    assert read["env"] == {name: str(value) for name, value in plain["env"].items()}
