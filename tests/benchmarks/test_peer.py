"""A peer's environment: made once, in the user's cache, and again where it was left half made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import peer


def test_it_is_made_once_and_a_half_made_one_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    pinned = (peer.ROOT / "benchmarks" / "requirements-skypilot.txt").read_text().strip()
    home = tmp_path / "accel" / f"skypilot-{pinned.partition('==')[2]}"
    left = home / "bin" / "python"
    left.parent.mkdir(parents=True)
    left.touch()

    def run(command: Sequence[str | Path]) -> str:
        assert not left.exists()
        ran.append(" ".join(map(str, command)))
        if "pip" in command:
            (home / "bin").mkdir(parents=True)
            (home / "bin" / "sky").touch()
        return ""

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(peer, "run", run)
    for _ in range(2):
        assert peer.command("requirements-skypilot.txt", "sky") == home / "bin" / "sky"
    assert len(ran) == 2 and ran[0].endswith(f"-m venv {home}")
    assert ran[1].endswith(f"-r {peer.ROOT / 'benchmarks' / 'requirements-skypilot.txt'}")
