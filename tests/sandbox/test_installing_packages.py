"""The packages of a new virtual environment: by uv where it means the same as pip, else by pip."""

import os
import sys
from pathlib import Path

import pytest

from sandbox.toolchain import packages

SETTINGS = {
    "global.index-url='https://mirror.test/simple'": {"UV_DEFAULT_INDEX": "https://mirror.test/simple"},
    ":env:.cert='/etc/ca.crt'": {"SSL_CERT_FILE": "/etc/ca.crt"},
    ":env:.default-timeout='180'": {"UV_HTTP_TIMEOUT": "180"},
    "user.find-links='\\n/opt/one\\n/opt/two'": {"UV_FIND_LINKS": "/opt/one,/opt/two"},
    "global.disable-pip-version-check='1'": {},
    "download.no-binary=':all:'": {},
    "": {},
    # A second index: pip takes the newest of all, uv the first that has the package.
    "global.extra-index-url='https://more.test'": None,
    ":env:.no-index='1'": None,
    "install.require-hashes='true'": None,
}


@pytest.mark.parametrize("listed", SETTINGS)
def test_settings_of_pip_reach_uv_or_keep_it_out(listed: str) -> None:
    assert packages.uv_settings(f"{listed}\n") == SETTINGS[listed]


def test_the_later_of_two_scopes_wins() -> None:
    listed = "global.index-url='https://one.test'\n:env:.index-url='https://two.test'\n"
    assert packages.uv_settings(listed) == {"UV_DEFAULT_INDEX": "https://two.test"}


@pytest.mark.parametrize(
    ("listed", "uv", "ran"),
    [
        ("global.cert='/ca'", "exit 0", ["pip uv", "uv /ca"]),
        ("global.cert='/ca'", "exit 2", ["pip uv", "uv /ca", "pip all"]),
        ("global.cert='/ca'", None, ["pip uv", "pip all"]),
        ("global.no-index='1'", "exit 0", ["pip all"]),
    ],
    ids=["uv", "uv fails", "uv cannot be had", "pip is told otherwise"],
)
def test_uv_installs_them_or_pip_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: str, uv: str | None, ran: list[str]
) -> None:
    log, requirements = tmp_path / "log", tmp_path / "requirements.txt"
    requirements.write_text("-r other.txt\nuv==1.2.3\n")
    pip = _script(
        tmp_path / "pip",
        f'case "$*" in "config list") echo "{listed}"; exit ;; *uv==1.2.3) what=uv ;; *) what=all ;; esac\n'
        f"echo pip $what >> {log}",
    )
    if uv:
        _script(tmp_path / "uv", f"echo uv $SSL_CERT_FILE >> {log}; {uv}")
    monkeypatch.setattr(packages, "PIP", (str(pip),))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    for name in ("SSL_CERT_FILE", "UV_DEFAULT_INDEX"):
        monkeypatch.delenv(name, raising=False)
    assert packages.install(requirements, tmp_path / "constraints.txt") == 0
    assert log.read_text().splitlines() == ran


def test_the_pinned_uv_is_the_one_that_is_installed() -> None:
    pinned = packages.uv_requirement(Path(__file__).resolve().parents[2] / "requirements-dev.txt")
    assert pinned.startswith("uv==") and os.linesep not in pinned


def _script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path
