"""Where the engine comes from, with stand-ins for the commands; one test asks the real one."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest
import requests

from sandbox.toolchain import control_plane, making, pulumi
from sandbox.toolchain.__main__ import main

NEWER = ".".join(map(str, (*making.parse_version(pulumi.ENGINE_VERSION)[:2], 99)))


def command(path: Path, answer: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)
    return path


def whole_engine(folder: Path, version: str = pulumi.ENGINE_VERSION) -> Path:
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
    monkeypatch.setattr(making, "cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(pulumi, "_download", unreachable)
    pulumi.engine.cache_clear()
    control_plane.kubernetes.cache_clear()


def unreachable(root: Path) -> None:
    raise making.ToolchainError("pulumi cannot be downloaded: no such host")


@pytest.mark.parametrize(
    "version, accepted",
    [(pulumi.ENGINE_VERSION, True), (NEWER, True), ("3.1.0", False), ("4.0.0", False), ("", False)],
)
def test_accepts_the_pin_and_later_versions_of_its_major(version: str, accepted: bool) -> None:
    assert pulumi.accepts(making.parse_version(version)) is accepted


def test_an_engine_on_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = whole_engine(tmp_path / "installed", NEWER)
    monkeypatch.setenv("PATH", str(folder))
    assert pulumi.engine() == folder


def test_the_host_may_lie_beside_what_a_link_on_path_points_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = whole_engine(tmp_path / "installed", NEWER)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "pulumi").symlink_to(folder / "pulumi")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert pulumi.engine() == folder


def test_an_old_engine_on_path_is_passed_over_for_the_cached_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = whole_engine(tmp_path / "installed", "3.100.0")
    cached = whole_engine(pulumi.engine_root() / "bin")
    monkeypatch.setenv("PATH", str(old))
    assert pulumi.engine() == cached
    assert pulumi.ENGINE_VERSION in capsys.readouterr().err


def test_a_cached_engine_is_used_without_a_look_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    cached = whole_engine(pulumi.engine_root() / "bin")
    monkeypatch.setattr(pulumi, "_make", lambda root: pytest.fail("made another one"))
    assert pulumi.engine() == cached


def test_a_damaged_cached_engine_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cached = whole_engine(pulumi.engine_root() / "bin")
    (cached / "pulumi").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setattr(pulumi, "_download", lambda root: whole_engine(root / "bin"))
    assert pulumi.engine() == cached
    assert pulumi.ENGINE_VERSION in (cached / "pulumi").read_text()


def test_what_a_killed_build_left_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    root = pulumi.engine_root()
    left = root.with_name(f"{root.name}.partial-abandoned")
    left.mkdir(parents=True)
    monkeypatch.setattr(pulumi, "_download", lambda root: whole_engine(root / "bin"))
    pulumi.engine()
    assert not left.exists()
    assert {path.name for path in root.parent.iterdir()} == {root.name, f"{root.name}.lock"}


def test_an_engine_that_cannot_be_downloaded_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulumi, "_build", whole_engine)
    assert pulumi.engine() == pulumi.engine_root() / "bin"


def test_the_engine_and_its_language_host_are_built_each_from_its_module(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[tuple[str, list[str]]] = []

    def run(words: list[str], label: str, *, cwd: Path, **_: object) -> None:
        ran.append((cwd.name, words))
        for package in (pulumi.ENGINE_PACKAGE, pulumi.LANGUAGE_PACKAGE):
            if package in words:
                built = package.removesuffix("/v3").rpartition("/")[2]
                command(Path(words[words.index("-o") + 1]) / built, f"v{pulumi.ENGINE_VERSION}")

    sources = tmp_path / "sources"
    command(sources / "python" / "cmd" / f"{pulumi.LANGUAGE_HOST}-exec", "")
    monkeypatch.setattr(making, "go", lambda *modules: "go")
    monkeypatch.setattr(making, "run", run)
    monkeypatch.setattr(making, "source_of", lambda go, module, path: sources)
    assert pulumi.engine() == pulumi.engine_root() / "bin"
    assert [module for module, _ in ran] == ["pulumi", pulumi.LANGUAGE_HOST]
    stamped = f"-X {pulumi.SDK_MODULE}/go/common/version.Version=v{pulumi.ENGINE_VERSION}"
    assert [any(stamped in word for word in words) for _, words in ran] == [True, False]


def test_two_at_once_make_it_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    made: list[Path] = []

    def slowly(root: Path) -> None:
        made.append(root)
        time.sleep(0.5)
        whole_engine(root / "bin")

    monkeypatch.setattr(pulumi, "_download", slowly)
    answers: list[Path] = []
    runs = [threading.Thread(target=lambda: answers.append(pulumi.engine.__wrapped__())) for _ in "ab"]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert answers == [pulumi.engine_root() / "bin"] * 2
    assert len(made) == 1
    assert "waiting for it" in capsys.readouterr().err


def test_without_anything_one_error_and_one_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert main([]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines[-2:]] == ["error", "hint"]
    assert f"https://get.pulumi.com/install.sh | sh -s -- --version {pulumi.ENGINE_VERSION})" in lines[-1]
    assert not list(pulumi.engine_root().parent.glob("*.partial-*"))


def test_print_writes_the_folder_alone_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    cached = whole_engine(pulumi.engine_root() / "bin")
    assert main(["--print"]) == 0
    assert capsys.readouterr().out == f"{cached}\n"


def test_a_new_enough_go_on_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = command(tmp_path / "bin" / "go", "go1.99.0")
    monkeypatch.setenv("PATH", str(go.parent))
    assert making.go("pulumi") == str(go)


def test_an_old_go_is_passed_over_for_the_one_from_pypi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(tmp_path / "bin" / "go", "go1.20.1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def install(arguments: list[str], label: str) -> None:
        command(Path(arguments[arguments.index("--target") + 1]) / "go" / "bin" / "go", "go1.99.0")

    monkeypatch.setattr(making, "run", install)
    found = Path(making.go("pulumi"))
    assert found.is_relative_to(making.cache())
    assert found.exists()


def test_a_command_that_takes_too_long_is_ended_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(making, "PROGRESS_S", 0.05)
    with pytest.raises(making.ToolchainError, match="waiting took longer than 0 s"):
        making.run([sys.executable, "-c", "import time; time.sleep(60)"], "waiting", timeout_s=0.1)


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="a kernel that does not group by session")
def test_a_low_priority_is_kept_by_the_session_of_a_build() -> None:
    told = "import time; time.sleep(1); print(open('/proc/self/autogroup').read())"
    script = "import os, sys; os.nice(7); from sandbox.toolchain import making; making.run(sys.argv[1:], 'a build')"
    command = [sys.executable, "-c", script, sys.executable, "-c", told]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    assert re.search(r"nice 7$", said, re.MULTILINE), said


@pytest.fixture
def go_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """A Go that makes a stand-in of any command, and has the sources of all; what it made, with the stamp on it."""
    made: list[tuple[str, str]] = []
    sources = tmp_path / "sources"
    for name in ("crd/bases/kind.yaml", "webhook/manifests.yaml"):
        (sources / "config/components" / name).parent.mkdir(parents=True)
        (sources / "config/components" / name).write_text("kind: Any")
    (sources / "config/crd").mkdir()
    (sources / "config/crd/x_provisioningrequests.yaml").write_text("kind: Any")

    def build(go: str, module: Path, packages: dict[str, str], folder: Path, stamp: str = "") -> None:
        for name in packages:
            made.append((name, stamp))
            command(folder / name, "made")

    monkeypatch.setattr(making, "go", lambda *modules: "go")
    monkeypatch.setattr(control_plane, "go_build", build)
    monkeypatch.setattr(control_plane, "source_of", lambda go, module, path: sources)
    return made


ALL = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "jobset", "kueue"]


def published(monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> list[str]:
    """What can be downloaded, by the end of its address; the addresses asked for."""
    asked: list[str] = []

    def get(url: str, **options: object) -> requests.Response:
        assert options["timeout"] == control_plane.TIMEOUT_S
        asked.append(url)
        found = [content for end, content in files.items() if url.endswith(end)]
        if not found:
            raise requests.ConnectionError("no such host")
        answer = requests.Response()
        answer.status_code, answer.raw = 200, io.BytesIO(found[0])
        return answer

    monkeypatch.setattr(requests, "get", get)
    return asked


def test_commands_of_kubernetes_that_cannot_be_downloaded_are_built(
    monkeypatch: pytest.MonkeyPatch, go_makes: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = published(monkeypatch, {})
    folder = control_plane.kubernetes()
    assert [name for name, _ in go_makes] == ALL and len(asked) == 1  # a network that is not there is asked once
    pinned = control_plane.version("kubernetes")
    assert all(f"gitVersion={pinned}" in stamp for _, stamp in go_makes)
    assert {path.name for path in (folder / "bin").iterdir()} == set(ALL)
    assert {path.name for path in (folder / "manifests/webhooks").iterdir()} == {"jobset.yaml", "kueue.yaml"}
    assert {path.name for path in (folder / "manifests/crd").iterdir()} == {"kind.yaml", "x_provisioningrequests.yaml"}
    assert "cannot be had: no such host; building it" in capsys.readouterr().err
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, f"{folder.name}.lock"}
    monkeypatch.setattr(control_plane, "_fill", lambda *_: pytest.fail("made again"))
    assert control_plane.kubernetes.__wrapped__() == folder


def test_only_what_a_killed_call_had_not_finished_is_made(
    monkeypatch: pytest.MonkeyPatch, go_makes: list[tuple[str, str]]
) -> None:
    published(monkeypatch, {})
    place = control_plane.root()
    for name in ALL[:2]:
        command(place / "bin" / name, "finished")
    command(place / "partial-killed" / ALL[2], "half")
    assert main(["--check"]) == 1
    assert control_plane.kubernetes() == place
    assert [name for name, _ in go_makes] == ALL[2:]
    assert "finished" in (place / "bin" / ALL[0]).read_text()
    assert {path.name for path in place.iterdir()} == {"bin", "manifests"}
    assert main(["--check"]) == 0 and main(["--kubernetes"]) == 0


def test_a_failed_build_shows_its_errors_and_not_what_it_downloaded(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    go = command(tmp_path / "go", "")
    go.write_text("#!/bin/sh\necho go: downloading example.com/any v1.0.0 >&2\necho undefined: any >&2\nexit 1\n")
    with pytest.raises(making.ToolchainError, match="building any with Go failed with exit code 1"):
        making.go_build(str(go), tmp_path, {"any": "example.com/any"}, tmp_path)
    said = capfd.readouterr().err
    assert "undefined: any" in said and "downloading" not in said


def test_commands_built_together_have_the_names_that_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(words: list[str], label: str, **_: object) -> None:
        folder = Path(words[words.index("-o") + 1])
        for built in ("server", "kube-apiserver"):  # as `go build` names etcd's and the API server's packages
            command(folder / built, "made")

    monkeypatch.setattr(making, "run", run)
    etcd = control_plane.TABLE["etcd"].commands
    making.go_build("go", tmp_path, {**etcd, "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver"}, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"etcd", "kube-apiserver"}


@pytest.mark.skipif(sys.platform != "linux", reason="Kubernetes publishes commands for Linux only")
@pytest.mark.parametrize("whole", [True, False])
def test_published_commands_are_taken_with_the_right_checksum_only(
    whole: bool, monkeypatch: pytest.MonkeyPatch, go_makes: list[tuple[str, str]]
) -> None:
    name = f"etcd-{control_plane.version('etcd')}-linux-{control_plane._architecture()}"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo(f"{name}/etcd")
        entry.size = 4
        archive.addfile(entry, io.BytesIO(b"etcd"))
    sums = {content: hashlib.sha256(content).hexdigest().encode() for content in (packed.getvalue(), b"server")}
    told = sums[b"server"] if whole else b"0" * 64
    files = {".sha256": told, "SHA256SUMS": sums[packed.getvalue()] + f"  {name}.tar.gz\n".encode()}
    published(monkeypatch, {**files, ".tar.gz": packed.getvalue(), "/kube-apiserver": b"server", "r": b"server"})
    folder = control_plane.kubernetes() / "bin"
    assert (folder / "etcd").read_bytes() == b"etcd" and os.access(folder / "etcd", os.X_OK)
    assert ((folder / "kube-scheduler").read_bytes() == b"server") is whole
    assert [name for name, _ in go_makes] == ALL[4 if whole else 1 :]
    assert {path.name for path in folder.iterdir()} == set(ALL)


def test_without_go_the_engine_is_there_and_one_line_says_that_kubernetes_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole_engine(pulumi.engine_root() / "bin")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert main([]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "without Kubernetes" in line]
    assert "no Go from 1.26 up here" in line and control_plane.WHAT_TO_INSTALL in line
    assert not list(control_plane.root().parent.glob("*.partial-*"))


def test_what_is_pinned_names_the_place_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = control_plane.root()
    shutil.copytree(making.MODULES, tmp_path / "modules")
    pins = tmp_path / "modules" / "kubernetes" / "go.mod"
    pins.chmod(0o644)
    pins.write_text(pins.read_text().replace("sigs.k8s.io/kueue v0", "sigs.k8s.io/kueue v1"))
    monkeypatch.setattr(control_plane, "MODULES", tmp_path / "modules")
    assert control_plane.root() != before
    assert control_plane.version("kueue").startswith("v1")


@pytest.mark.engine
def test_the_real_engine_is_the_pinned_one() -> None:
    folder = pulumi.engine()
    assert pulumi.accepts(making.version_of(str(folder / "pulumi"), "version"))
    assert os.access(folder / "pulumi", os.X_OK)
