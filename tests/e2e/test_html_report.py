"""The page and the table about a job on AWS Batch that loses its Spot machine once, in a browser and a terminal.

ACCEL_UPDATE_GOLDEN=1 makes the pictures of docs/watch.md anew: longer jobs, and more of them. Look at them.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.environment import project
from tests.support.browser import found, opened
from tests.support.drifted import control
from tests.support.engine import Sandbox
from tests.support.resuming import command
from tests.support.terminal import Terminal, page, plain
from tests.support.waiting import until

from .conftest import Shell

PICTURES = project() / "docs" / "pictures"
ANEW = bool(os.environ.get("ACCEL_UPDATE_GOLDEN"))
STEPS, HOLD, STEP_S = (120, 72, 0.5) if ANEW else (24, 12, 0.05)
BYTES_MAX = 150_000
EIGHT_GPUS = ["g5.48xlarge", "g6.48xlarge"]


@pytest.fixture
def submit(shell: Shell, tmp_path: Path) -> Iterator[Callable[..., str]]:
    made: list[str] = []

    def send(name: str, hold: int = HOLD, **fields: Any) -> str:
        words = command(tmp_path / name, steps=STEPS, hold=hold, step_s=STEP_S)
        job = {"name": name, "image": "local/examples", "command": words, "timeout_s": 900, **fields}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(job))
        made.append(shell.jobs("submit", str(tmp_path / f"{name}.yaml"), "--to", "gpu", "-o", "id", "--no-quota"))
        return made[-1]

    yield send
    for ref in made:  # one that still runs would count against the quotas of others
        shell.jobs("cancel", ref, "--yes")


@pytest.fixture
def watch(shell: Shell) -> Iterator[Callable[..., Terminal]]:
    begun: list[Terminal] = []

    def begin(*refs: str) -> Terminal:
        line = [sys.executable, "-m", "jobs", "watch", *refs]
        begun.append(Terminal(line, shell.folder, shell.variables, columns=124, rows=24))
        return begun[-1]

    yield begin
    for each in begun:
        each.end()


def shown(terminal: Terminal, *words: str) -> list[str]:
    """The frames with all these words; waits for one."""
    give_up = time.monotonic() + 180
    while not (found := [frame for frame in terminal.frames() if all(word in plain(frame) for word in words)]):
        assert time.monotonic() < give_up, [plain(frame) for frame in terminal.frames()[-1:]]
        time.sleep(0.2)
    return found


def test_both_attempts_and_the_reclaim_are_seen(
    shell: Shell, sandbox: Sandbox, submit: Any, watch: Any, tmp_path: Path
) -> None:
    ref = submit("digits", lost_retries=1)
    terminal = watch(ref)
    shown(terminal, "RUNNING", f"{HOLD / STEPS:.0%} ", "loss")
    control(sandbox, "faults", {"kind": "reclaim", "job_id": ref.rpartition("/")[2]})
    until(lambda: terminal.process.poll() is not None)
    last = shown(terminal, "1 job: 1 succeeded")[-1]
    assert terminal.process.returncode == 0 and "\x1b[34mSUCCEEDED" in last
    assert all(words in plain(last) for words in ("100%", "  gpu ", "loss 0.", "accuracy 0."))
    shell.jobs("report", ref, "--out", str(tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text()
    for words in ("attempt 1", "attempt 2", "its machine was taken away: Host EC2", 'class="lost"',
                  "USD, from the catalogue", "1 of 2 attempts were lost", "resume: ", "<dd>gpu</dd>"):  # fmt: skip
        assert words in text, words
    assert text.count("<polyline") == 10, "loss, accuracy, use, use of memory, and memory, of each attempt"
    if not found():
        return  # tests/jobs/test_html_browser.py says so
    with opened(tmp_path / "page.html", tmp_path) as browser:
        for width in (1280, 480):
            browser.size(width, 900)
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert (browser.asked, browser.said) == ([], [])
        if ANEW:
            # Down to what GPUs did: the rest is text.
            end = "document.querySelectorAll('section')[3].getBoundingClientRect().top + scrollY"
            browser.picture(PICTURES / "report.png", 1000, upto=end)


@pytest.mark.skipif(not ANEW, reason="makes a picture, and takes a minute for it: ACCEL_UPDATE_GOLDEN=1")
def test_the_picture_of_the_table(shell: Shell, sandbox: Sandbox, submit: Any, watch: Any, tmp_path: Path) -> None:
    jobs = [submit("digits", hold=2 * STEPS), submit("rates", hold=2 * STEPS, tasks=6)]
    control(sandbox, "faults", {"kind": "stockout", "instance_types": EIGHT_GPUS})
    eight = {"accelerator": {"count": 8}, "cpus": 96, "memory_mib": 300_000}
    jobs.append(submit("pretrain", **eight))
    terminal = watch(*jobs)
    frames = shown(terminal, "1 queued", "2 running", "slow: ", " 60%  loss", "INSUFFICIENT_INSTANCE_CAPACITY")
    assert all(f"{name} " in plain(frames[-1]) for name in ("  gpu", "QUEUED", "RUNNING"))
    control(sandbox, "faults", {"kind": "stockout", "instance_types": []})
    (tmp_path / "watch.html").write_text(page("accel-jobs watch", frames[-1]))
    with opened(tmp_path / "watch.html", tmp_path) as browser:
        browser.picture(PICTURES / "watch.png", browser.evaluate("document.body.offsetWidth"))
    shell.jobs("cancel", *jobs, "--yes")


@pytest.mark.parametrize("name", ["report.png", "watch.png"])
def test_the_pictures_are_there_and_small(name: str) -> None:
    picture = (PICTURES / name).read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) < BYTES_MAX
    assert f"pictures/{name}" in (PICTURES.parent / "watch.md").read_text()
