"""Whose a lock is, and what recover finds of Pulumi's file backend."""

import json
import os
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from stacks.operations.recover.engine import Files, read_locks

NOW = datetime(2026, 5, 1, 14, 30, tzinfo=UTC)


def lock(folder: Path, pid: int, host: str = "") -> Path:
    path = folder / f"{pid}.json"
    told = {"pid": pid, "username": "ana", "hostname": host or socket.gethostname()}
    path.write_text(json.dumps({**told, "timestamp": "2026-05-01T14:00:00.123456789Z"}))
    return path


def ended() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_holder_that_has_ended_is_gone(tmp_path: Path) -> None:
    pid = ended()
    (found,) = read_locks([lock(tmp_path, pid)])
    assert found.holder == "gone"
    assert found.text(NOW) == f"locked 30 min ago by ana on {socket.gethostname()}: process {pid} is gone"
    assert found.text(NOW + timedelta(hours=3)).startswith("locked 3.5 h ago by ana on ")


def test_a_process_that_is_no_pulumi_holds_no_lock(tmp_path: Path) -> None:
    (found,) = read_locks([lock(tmp_path, os.getpid())])
    assert found.holder == "gone", "its number is used again"


def test_a_process_that_nobody_waited_for_is_gone(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
    try:
        assert read_locks([lock(tmp_path, process.pid)])[0].holder == "gone"
    finally:
        process.wait()


def test_a_pulumi_that_runs_is_at_work(tmp_path: Path) -> None:
    command = tmp_path / "pulumi"
    command.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(command), "60"])
    try:
        while psutil.Process(process.pid).name() != "pulumi":  # it has its new name a moment after it has begun
            time.sleep(0.001)
        assert read_locks([lock(tmp_path, process.pid)])[0].holder == "at work"
    finally:
        process.kill()
        process.wait()


def test_another_machine_cannot_be_looked_at(tmp_path: Path) -> None:
    (found,) = read_locks([lock(tmp_path, 4711, "runner-7")])
    assert found.holder == "elsewhere"
    assert "by ana on runner-7: process 4711 runs on another machine, if it still does" in found.text(NOW)


@pytest.mark.parametrize("half", ["", '{"pid": 12, "userna'])
def test_half_a_lock_is_nobodys(tmp_path: Path, half: str) -> None:
    path = tmp_path / "half.json"
    path.write_text(half)
    (found,) = read_locks([path, tmp_path / "gone.json"])
    assert found.holder == "gone" and "whoever wrote half of this lock is gone" in found.text(NOW)
    (tmp_path / "half.json.attrs").touch()
    found.remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["file://{home}", "file://{home}?no_tmp_dir=true"])
def test_files_of_a_backend_in_a_folder(tmp_path: Path, url: str) -> None:
    files = Files.of(url.format(home=tmp_path), "p", "dev")
    assert files and files.root == tmp_path / ".pulumi"


def test_other_backends_have_no_files() -> None:
    for url in ("s3://states?region=us-east-1", "gs://states", "https://api.pulumi.com"):
        assert Files.of(url, "p", "dev") is None
    home = Files.of("file://~", "p", "dev")
    assert home and home.root == Path.home() / ".pulumi"


def test_what_was_cut_off_and_what_is_left_of_it(tmp_path: Path) -> None:
    files = Files(tmp_path, "p", "dev")
    folder = tmp_path / "stacks" / "p"
    kept = tmp_path / "backups" / "p" / "dev"
    folder.mkdir(parents=True)
    kept.mkdir(parents=True)
    state = folder / "dev.json"
    assert (files.corrupt(), files.torn(), files.backups()) == (None, None, []), "nothing was written yet"
    state.write_text('{"version": 3, "checkpoint": {"latest": {}}}')
    state.with_name("dev.json.attrs").write_text("{}")
    assert (files.corrupt(), files.torn()) == (None, None)
    state.with_name("dev.json.attrs").write_text("")
    assert files.torn() == state.with_name("dev.json.attrs")

    for cut in ("", '{"version": 3, "checkp', "[]", '{"version": 3}'):
        state.write_text(cut)
        assert files.corrupt() == state
    whole = '{"checkpoint": {}}'
    texts = {kept / "dev.1.json": whole, folder / "dev.json.bak": whole, kept / "dev.2.json": "{"}
    for at, (path, text) in enumerate(texts.items()):
        path.write_text(text)
        os.utime(path, (at, at))
    assert files.backups() == [folder / "dev.json.bak", kept / "dev.1.json"], "the latest that can be read is first"


def test_half_written_files_of_this_stack_alone_are_found(tmp_path: Path) -> None:
    files = Files(tmp_path, "p", "dev")
    own = ("stacks/p/dev.json.bak.18ea.tmp", "stacks/p/dev.json.18eb.tmp", "backups/p/dev/dev.1.json.18ec.tmp")
    others = ("stacks/p/dev.json", "stacks/p/dev.json.bak", "stacks/p/prod.json.18ea.tmp", "backups/q/dev/a.tmp")
    for name in (*own, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert {str(path.relative_to(tmp_path)) for path in files.unfinished()} == set(own)
