"""Where the engine comes from, with stand-ins for the commands; one test asks the real one."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from sandbox import toolchain

NEWER = ".".join(map(str, (*toolchain.parse_version(toolchain.ENGINE_VERSION)[:2], 99)))


def command(path: Path, answer: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)
    return path


def whole_engine(folder: Path, version: str = toolchain.ENGINE_VERSION) -> Path:
    command(folder / "pulumi", f"v{version}")
    command(folder / "pulumi-language-python", "")
    command(folder / "pulumi-language-python-exec", "")
    return folder


@pytest.fixture(autouse=True)
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Nothing on PATH, an empty cache, and nothing to be had from outside."""
    if request.node.get_closest_marker("engine"):
        return
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(toolchain, "cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(toolchain, "_download", unreachable)
    toolchain.engine.cache_clear()


def unreachable(root: Path) -> None:
    raise toolchain.ToolchainError("pulumi cannot be downloaded: no such host")


@pytest.mark.parametrize(
    "version, accepted",
    [(toolchain.ENGINE_VERSION, True), (NEWER, True), ("3.1.0", False), ("4.0.0", False), ("", False)],
)
def test_accepts_the_pin_and_later_versions_of_its_major(version: str, accepted: bool) -> None:
    assert toolchain.accepts(toolchain.parse_version(version)) is accepted


def test_an_engine_on_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = whole_engine(tmp_path / "installed", NEWER)
    monkeypatch.setenv("PATH", str(folder))
    assert toolchain.engine() == folder


def test_the_host_may_lie_beside_what_a_link_on_path_points_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = whole_engine(tmp_path / "installed", NEWER)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "pulumi").symlink_to(folder / "pulumi")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert toolchain.engine() == folder


def test_an_old_engine_on_path_is_passed_over_for_the_cached_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = whole_engine(tmp_path / "installed", "3.100.0")
    cached = whole_engine(toolchain.engine_root() / "bin")
    monkeypatch.setenv("PATH", str(old))
    assert toolchain.engine() == cached
    assert toolchain.ENGINE_VERSION in capsys.readouterr().err


def test_a_cached_engine_is_used_without_a_look_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    cached = whole_engine(toolchain.engine_root() / "bin")
    monkeypatch.setattr(toolchain, "_make", lambda root: pytest.fail("made another one"))
    assert toolchain.engine() == cached


def test_a_damaged_cached_engine_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cached = whole_engine(toolchain.engine_root() / "bin")
    (cached / "pulumi").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setattr(toolchain, "_download", lambda root: whole_engine(root / "bin"))
    assert toolchain.engine() == cached
    assert toolchain.ENGINE_VERSION in (cached / "pulumi").read_text()


def test_what_a_killed_build_left_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    root = toolchain.engine_root()
    left = root.with_name(f"{root.name}.partial-abandoned")
    left.mkdir(parents=True)
    monkeypatch.setattr(toolchain, "_download", lambda root: whole_engine(root / "bin"))
    toolchain.engine()
    assert not left.exists()
    assert {path.name for path in root.parent.iterdir()} == {root.name, f"{root.name}.lock"}


def test_an_engine_that_cannot_be_downloaded_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_build", whole_engine)
    assert toolchain.engine() == toolchain.engine_root() / "bin"


def test_two_at_once_make_it_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    made: list[Path] = []

    def slowly(root: Path) -> None:
        made.append(root)
        time.sleep(0.5)
        whole_engine(root / "bin")

    monkeypatch.setattr(toolchain, "_download", slowly)
    answers: list[Path] = []
    runs = [threading.Thread(target=lambda: answers.append(toolchain.engine.__wrapped__())) for _ in "ab"]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert answers == [toolchain.engine_root() / "bin"] * 2
    assert len(made) == 1
    assert "waiting for it" in capsys.readouterr().err


def test_without_anything_one_error_and_one_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert toolchain.main([]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines[-2:]] == ["error", "hint"]
    assert not list(toolchain.engine_root().parent.glob("*.partial-*"))


def test_print_writes_the_folder_alone_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    cached = whole_engine(toolchain.engine_root() / "bin")
    assert toolchain.main(["--print"]) == 0
    assert capsys.readouterr().out == f"{cached}\n"


def test_a_new_enough_go_on_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = command(tmp_path / "bin" / "go", "go1.99.0")
    monkeypatch.setenv("PATH", str(go.parent))
    assert toolchain._go() == str(go)


def test_an_old_go_is_passed_over_for_the_one_from_pypi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(tmp_path / "bin" / "go", "go1.20.1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def install(arguments: list[str], label: str) -> None:
        command(Path(arguments[arguments.index("--target") + 1]) / "go" / "bin" / "go", "go1.99.0")

    monkeypatch.setattr(toolchain, "_run", install)
    found = Path(toolchain._go())
    assert found.is_relative_to(toolchain.cache())
    assert found.exists()


def test_a_command_that_takes_too_long_is_ended_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(toolchain, "PROGRESS_S", 0.05)
    with pytest.raises(toolchain.ToolchainError, match="waiting took longer than 0 s"):
        toolchain._run([sys.executable, "-c", "import time; time.sleep(60)"], "waiting", timeout_s=0.1)


@pytest.mark.engine
def test_the_real_engine_is_the_pinned_one() -> None:
    folder = toolchain.engine()
    assert toolchain.accepts(toolchain._version_of(str(folder / "pulumi"), "version"))
    assert os.access(folder / "pulumi", os.X_OK)
