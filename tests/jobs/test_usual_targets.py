"""Which `.accel/targets.json` is read without being named: the user's own, in the repository or the home folder."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from jobs.client import targets

USUAL = Path(".accel", "targets.json")
Invoke = Callable[..., Result]


def write(folder: Path, name: str) -> Path:
    path = folder / USUAL
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({name: {"kind": "local"}}))
    return path


def at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)
    return folder


def foreign(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's: given away, or, for who may not give, as another user sees it."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


def test_the_search_ends_at_the_root_of_the_repository(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, "outside")
    (home / "repo" / ".git").mkdir(parents=True)
    at(home / "repo" / "a" / "b", monkeypatch)
    assert list(targets.load().entries) == ["local"]
    write(home / "repo", "inside")
    assert list(targets.load().entries) == ["inside", "local"]


def test_a_worktree_is_a_repository_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, "outside")
    at(home / "tree", monkeypatch)
    (home / "tree" / ".git").write_text("gitdir: elsewhere\n")
    assert list(targets.load().entries) == ["local"]


def test_without_a_repository_it_ends_at_the_home_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, "above")
    write(home / "me", "mine")
    monkeypatch.setenv("HOME", str(home / "me"))
    at(home / "me" / "a", monkeypatch)
    assert list(targets.load().entries) == ["mine", "local"]
    at(home / "b", monkeypatch)
    assert list(targets.load().entries) == ["local"], "neither in a repository nor below the home folder: here alone"
    write(home / "b", "here")
    assert list(targets.load().entries) == ["here", "local"]


@pytest.mark.parametrize("part", [USUAL, USUAL.parent, Path()])
def test_what_belongs_to_somebody_else_is_passed_over(
    part: Path, home: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".git").mkdir()
    write(home, "mine")
    theirs = write(at(home / "theirs", monkeypatch), "theirs")
    foreign(home / "theirs" / part, monkeypatch)
    told = invoke("targets", "-o", "id")
    assert "theirs" not in told.stdout
    assert f"warning: targets: {theirs} is ignored: " in told.stderr and "belongs to " in told.stderr
    assert f"--targets {theirs}" in told.stderr
    if os.geteuid() == 0:
        assert told.stdout.split() == ["mine", "local"]
    assert "theirs" in invoke("targets", "-o", "id", "--targets", str(theirs)).stdout, "who names it, means it"


@pytest.mark.parametrize(
    ("part", "mode", "ignored"),
    [
        (USUAL, 0o666, True),
        (USUAL, 0o644, False),
        (USUAL.parent, 0o777, True),
        (USUAL.parent, 0o755, False),
        (Path(), 0o777, True),
        (Path(), 0o1777, False),  # as /tmp: others may add there, and take nothing away
    ],
)
def test_what_others_may_write_is_passed_over(
    part: Path, mode: int, ignored: bool, home: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(at(home / "mine", monkeypatch), "mine")
    (home / "mine" / part).chmod(mode)
    told = invoke("targets", "-o", "id")
    assert ("mine" not in told.stdout.split()) is ignored
    assert (f"targets: {path} is ignored: " in told.stderr and "others may write" in told.stderr) is ignored
    assert (invoke("targets", "--strict").exit_code == 2) is ignored


@pytest.mark.parametrize("group, ignored", [("own", False), ("foreign", True)])
def test_a_group_of_the_user_alone_is_no_others(
    group: str, ignored: bool, home: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a umask of 002, as Debian's users have it, each has a group of their own name."""
    write(at(home / "mine", monkeypatch), "mine")
    if group == "foreign":
        if os.geteuid() != 0:
            pytest.skip("gives a folder to a group that is not ours")
        os.chown(home / "mine" / USUAL, -1, 12345)
    (home / "mine" / USUAL).chmod(0o664)
    assert ("mine" not in invoke("targets", "-o", "id").stdout.split()) is ignored


def test_a_link_of_somebody_else_is_passed_over(home: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("gives a link away")
    write(home / "mine", "mine")
    at(home / "shared", monkeypatch)
    link = home / "shared" / USUAL.parent
    link.symlink_to(home / "mine" / USUAL.parent)
    assert "mine" in invoke("targets", "-o", "id").stdout
    foreign(link, monkeypatch)
    assert "mine" not in invoke("targets", "-o", "id").stdout
