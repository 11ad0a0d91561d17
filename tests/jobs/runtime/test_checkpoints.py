"""Checkpoints in a folder, and of every kind in a bucket; kills are in test_checkpoints_killed.py."""

import errno
import json
import os
import sys
import time
import types
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.runtime import Checkpoints, checkpoints, hooks, reporting, writing


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("ACCEL_", "AWS_BATCH", "BATCH_", "RANK"))]:
        monkeypatch.delenv(name)


def put(content: bytes, name: str = "state") -> Callable[[writing.Writing], None]:
    def write(into: writing.Writing) -> None:
        with into.open(name) as file:
            file.write(content)

    return write


def names(folder: Path) -> list[str]:
    return sorted(path.name[:13] for path in folder.iterdir())


def test_the_newest_comes_back_and_the_last_ones_are_kept(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, keep=3)
    assert kept.resume() is None
    for step in range(1, 7):
        place = kept.save(step * 10, put(b"%d" % step))
        assert place and Path(place).is_dir()
    found = kept.resume()
    assert found and (found.step, found.open("state").read()) == (60, b"6")
    assert names(tmp_path) == ["step-00000040", "step-00000050", "step-00000060"]


def test_files_of_every_size_and_way_have_the_same_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "INLINE", 100)
    monkeypatch.setattr(writing, "BUFFER", 512)
    pieces = [1, 99, 100, 101, 511, 512, 513, 999, 1000, 1001, 5000]
    for number, piece in enumerate([1, 100, 1000, 1 << 24]):
        monkeypatch.setattr(writing, "PIECE", piece)
        with writing.threads() as pool:
            folder = tmp_path / str(number)
            folder.mkdir()
            into = writing.Writing(folder, pool)
            data = os.urandom(5000)
            for size in pieces:
                with into.open(f"f{size}") as file:
                    for at in range(0, len(data), size):
                        file.write(data[at : at + size])
            (folder / "by-path").write_bytes(data)
            assert len(set(into.files().values())) == 1 and len(into.files()) == len(pieces) + 1


def test_the_disk_begins_early_and_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[int, int]] = []
    synced: list[int] = []
    begin, fsync = writing._begin, os.fsync
    monkeypatch.setattr(writing, "AHEAD", 1000)
    monkeypatch.setattr(writing, "BUFFER", 512)
    monkeypatch.setattr(writing, "_begin", lambda file, *part: (begun.append(part), begin(file, *part)))
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(file), fsync(file)))
    with writing.threads() as pool:
        into = writing.Writing(tmp_path, pool)
        with into.open("state") as file:
            for _ in range(20):
                file.write(bytes(700))
        assert into.files()["state"].size == 14_000
    assert begun[0][0] == 0 and all(size >= 1000 for _, size in begun)
    assert all(start + size == after for (start, size), (after, _) in pairwise(begun))
    assert len(synced) == 1, "a mounted bucket takes an fsync for the end of an object"


def test_what_the_disk_says_at_the_end_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with writing.threads() as pool:
        into = writing.Writing(tmp_path, pool)
        into.open("state").write(b"state")
        with pytest.raises(OSError, match="Input/output error"):
            into.files()
        into.abandon()


def test_what_seeks_writes_a_stream(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)

    def write(into: writing.Writing) -> None:
        with into.open("a/arrays.npz") as file:
            np.savez(file, one=np.arange(10), two=np.ones((300, 300)))

    kept.save(1, write)
    found = kept.resume()
    assert found
    with np.load(found.path("a/arrays.npz")) as arrays:
        assert arrays["two"].sum() == 90000
    with zipfile.ZipFile(found.path("a/arrays.npz")) as archive:
        assert archive.testzip() is None


def test_no_flipped_bit_and_no_cut_goes_unseen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = Checkpoints(tmp_path, keep=2)
    kept.save(1, put(b"old" * 100))
    place = Path(kept.save(2, put(os.urandom(300))) or "")
    chance = np.random.default_rng(0)
    data = (place / "state").read_bytes()
    for position in chance.integers(0, len(data), 30):
        flipped = bytearray(data)
        flipped[position] ^= 1 << chance.integers(8)
        for damaged in (bytes(flipped), data[:position]):
            (place / "state").write_bytes(damaged)
            found = kept.resume()
            assert found and found.step == 1
    (place / "state").write_bytes(data)
    manifest = (place / writing.MANIFEST).read_bytes()
    for end in range(0, len(manifest) - 1, 7):
        (place / writing.MANIFEST).write_bytes(manifest[:end])
        found = kept.resume()
        assert found and found.step == 1
    assert "is truncated or corrupt: skipped" in capsys.readouterr().out
    (place / writing.MANIFEST).unlink()
    kept.resume()
    assert f"checkpoint {place} is not complete: skipped" in capsys.readouterr().out


def test_a_damaged_later_one_pushes_no_good_one_out(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, keep=2)
    for step in (1, 2, 9):
        kept.save(step, put(b"x"))
    (later,) = tmp_path.glob("step-00000009-*")
    (later / "state").write_bytes(b"")
    kept.save(3, put(b"x"))
    found = kept.resume()
    assert found and found.step == 3
    assert names(tmp_path) == ["step-00000002", "step-00000003", "step-00000009"]


def test_a_step_that_is_saved_again_replaces_nothing_before_it_is_whole(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, keep=1)
    kept.save(5, put(b"first"))

    def fails(into: writing.Writing) -> None:
        put(b"second")(into)
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        kept.save(5, fails)
    found = kept.resume()
    assert found and found.open("state").read() == b"first"
    kept.save(5, put(b"third"))
    found = kept.resume()
    assert found and found.open("state").read() == b"third"
    assert names(tmp_path) == ["step-00000005"]


def test_nothing_counts_before_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    sync, rename = os.fsync, os.rename

    def synced(file: int) -> None:
        done.append(Path(f"/proc/self/fd/{file}").readlink().name)
        sync(file)

    def renamed(old: Any, new: Any) -> None:
        done.append("renamed")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    Checkpoints(tmp_path).save(1, put(b"x"))
    assert done[:2] == ["state", writing.MANIFEST]
    assert done[2].startswith(".writing-step-00000001-")
    assert done[3:] == ["renamed", tmp_path.name]


@pytest.mark.parametrize(
    "write, words",
    [
        (lambda into: None, "nothing was written"),
        (lambda into: (into.folder / "link").symlink_to("/etc/hosts"), "is a link"),
        (lambda into: into.open("../out"), "is no name for a file"),
        (lambda into: into.open("manifest.json"), "is no name for a file"),
        (lambda into: (into.folder / "manifest.json").touch(), "is no name for a file"),
    ],
)
def test_what_could_not_be_read_again_is_refused(write: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        Checkpoints(tmp_path).save(1, write)
    assert list(tmp_path.iterdir()) == []


def test_tasks_of_an_array_have_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_TASK_COUNT", "4")
    monkeypatch.setenv("ACCEL_TASK_INDEX", "3")
    assert Checkpoints(tmp_path).place == f"{tmp_path}/task-3"
    monkeypatch.setenv("ACCEL_SMOKE", "1")
    assert Checkpoints(tmp_path).place == f"{tmp_path}/smoke/task-3"
    assert Checkpoints(tmp_path, shared=True).place == f"{tmp_path}/smoke"
    monkeypatch.delenv("ACCEL_SMOKE")
    assert Checkpoints(f"{tmp_path}/", shared=True).place == str(tmp_path)


def test_one_process_of_several_writes_and_all_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Checkpoints(tmp_path).save(1, put(b"x"))
    monkeypatch.setenv("RANK", "1")
    other = Checkpoints(tmp_path)
    assert not other.writer and other.save(2, put(b"y")) is None
    found = other.resume()
    assert found and found.step == 1
    assert Checkpoints(tmp_path, writer=True).save(2, put(b"y"))


def test_due_counts_from_the_last_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [time.monotonic()]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now[0])
    kept = Checkpoints(tmp_path, interval_s=60)
    assert not kept.due()
    now[0] += 60
    assert kept.due()
    kept.save(1, put(b"x"))
    assert not kept.due()


def test_a_place_that_cannot_be_read_is_an_error_and_never_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        Checkpoints(tmp_path / "file" / "folder").resume()
    with pytest.raises(ValueError, match=r"must be a folder, s3://<bucket>/<prefix> or gs://<bucket>/<prefix>"):
        Checkpoints("http://x/y")
    with pytest.raises(ValueError, match="keep must be at least 1"):
        Checkpoints(tmp_path, keep=0)


def test_s3_without_boto3_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ImportError, match="s3://b: needs boto3; install it in the image"):
        Checkpoints("s3://b/x")


def test_files_and_folders_are_copied(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_text("w")
    (tmp_path / "notes.txt").write_text("n")
    kept = Checkpoints(tmp_path / "kept")
    kept.save(1, hooks.files(tmp_path / "model", tmp_path / "notes.txt"))
    found = kept.resume()
    assert found and found.path("model/weights").read_text() == "w" and found.path("notes.txt").read_text() == "n"
    with pytest.raises(FileNotFoundError, match=r"holds no other; there is model/weights, notes.txt"):
        found.path("other")


def test_torch_writes_to_the_stream_and_reads_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in of torch's two functions, in their signatures; torch itself is not installed here."""
    stand_in: Any = types.ModuleType("torch")
    stand_in.save = lambda value, file: file.write(json.dumps(value).encode())
    stand_in.load = lambda file, map_location=None: json.loads(Path(file).read_bytes())
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    kept = Checkpoints(tmp_path)
    kept.save(1, hooks.torch({"w": [1, 2]}))
    found = kept.resume()
    assert found and hooks.torch_load(found, map_location="cpu") == {"w": [1, 2]}


def test_reports_are_one_a_second_and_lose_no_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(reporting.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(reporting, "_last", float("-inf"))
    reporting.report(step=1, steps=9, loss=np.float32(0.5))
    reporting.report(step=2, accuracy=1)
    reporting.report(step=3, loss=0.25)
    assert capsys.readouterr().out.count("@accel") == 1
    now[0] += 1
    reporting.report(step=4)
    line = capsys.readouterr().out
    assert '"step":4,"metrics":{"accuracy":1,"loss":0.25}' in line
    with pytest.raises(TypeError, match="loss: a metric must be a number, is list"):
        reporting.report(loss=[1])  # pyright: ignore


@pytest.mark.parametrize("writer", [True, False])
def test_what_a_kill_left_half_deleted_goes_when_the_job_resumes(tmp_path: Path, writer: bool) -> None:
    Checkpoints(tmp_path).save(2, lambda into: into.open("state").write(b"x"))
    left = [tmp_path / name for name in (".deleting-step-00000001-aaaaaaaa", "step-00000001-bbbbbbbb")]
    later = tmp_path / "step-00000003-cccccccc"
    for folder in (*left, later):
        folder.mkdir()
        (folder / "state").write_bytes(b"x")
    found = Checkpoints(tmp_path, writer=writer).resume()
    assert found and found.step == 2
    assert [folder.exists() for folder in left] == [not writer, not writer]
    assert later.exists(), "somebody may be writing it"
