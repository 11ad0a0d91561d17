"""Files that a command writes: as a whole, or not at all."""

import os
from pathlib import Path

import pytest

from accel.diagnostics.errors import BadInput
from accel.files import replace_file, write_output


def names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "page.html"
    file.write_text("before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(BadInput, match=r"--out: .*page\.html: cannot be written: No space left on device"):
        write_output("--out", file, "after")
    assert file.read_text() == "before"
    assert names(tmp_path) == ["page.html"]


def test_a_file_keeps_its_mode_and_a_link_stays_one(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    replace_file(link, "after")
    assert link.is_symlink() and file.read_text() == "after"
    assert file.stat().st_mode & 0o777 == 0o640
    replace_file(file, b"private", 0o600)
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_pipe_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    replace_file(pipe, "text")
    assert pipe.is_fifo() and os.read(reading, 10) == b"text"
    os.close(reading)


@pytest.mark.parametrize("name", [".", "file/x", "gone/x", "x" * 300])
def test_what_is_no_place_for_a_file_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"^--out: .*: cannot be written: "):
        write_output("--out", tmp_path / name, "text")
    assert names(tmp_path) == ["file"]


def test_a_name_may_be_as_long_as_a_name_may_be(tmp_path: Path) -> None:
    replace_file(tmp_path / ("x" * 255), "text")
    assert names(tmp_path) == ["x" * 255]
