"""The program that a job with shipped code begins with, as a process of its own."""

import ast
import gzip
import hashlib
import io
import json
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.client.code import tree
from jobs.client.code.archive import Archive, is_secret_name, pack
from jobs.client.code.inside import program
from tests.jobs.code.projects import here, project, ran

SCHEMES = ("file", "gs", "s3")
SHOWN = "import json, os, sys; print(json.dumps([os.getcwd(), sys.argv[1:], os.environ['PYTHONPATH']]))"


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    files = {"main.py": SHOWN, "run.sh": "#!/bin/sh\nexit 7\n", "pkg/__init__.py": "", "data/a b": "x"}
    root = project(tmp_path / "project", files)
    (root / "run.sh").chmod(0o755)
    (root / "pkg" / "link.py").symlink_to("../main.py")
    return pack(tree.read(root))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_is_small_and_means_the_same_to_every_shell(scheme: str) -> None:
    text = program(scheme)
    assert len(json.dumps(text)) < 4600, "ECS takes 8192 characters of command and variables"
    assert "$" not in text and "Ref::" not in text and text.isascii()
    ast.parse(text, feature_version=(3, 9))


def test_the_command_takes_its_place(archive: Archive, tmp_path: Path) -> None:
    done = ran(here(archive, tmp_path), archive, "python3", "main.py", "a b", "$x", "", within=tmp_path / "in" / "job")
    folder, words, path = json.loads(done.stdout)
    assert Path(folder).parent == tmp_path / "in" / "job" and words == ["a b", "$x", ""]
    assert path.split(":") == [folder, f"{folder}/.accel"]
    assert f"accel: code {archive.digest[:12]}: " in done.stderr
    assert (Path(folder) / "pkg" / "link.py").readlink() == Path("../main.py")
    assert (Path(folder) / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (Path(folder) / "data" / "a b").stat().st_mode & 0o777 == 0o644
    assert time.time() - (Path(folder) / "main.py").stat().st_mtime < 3600
    again = ran(here(archive, tmp_path), archive, "python3", "main.py", within=tmp_path / "in" / "job")
    assert json.loads(again.stdout)[0] != folder, "two attempts do not share a folder"


def test_the_runtime_is_there(archive: Archive, tmp_path: Path) -> None:
    line = "import accel_runtime.lines as lines; print(lines.format_line(step=1))"
    done = ran(here(archive, tmp_path), archive, "python3", "-c", line, PYTHONPATH="/before")
    assert done.stdout.startswith('@accel {"at":')


def test_the_exit_code_is_the_command_s(archive: Archive, tmp_path: Path) -> None:
    source = here(archive, tmp_path)
    assert ran(source, archive, "./run.sh").returncode == 7
    missing = ran(source, archive, "no-such-command")
    assert missing.returncode == 127
    assert missing.stderr.splitlines()[-1] == "accel: no-such-command: No such file or directory"
    assert ran(source, archive, "./main.py").returncode == 126
    # Python ignores SIGPIPE, and what it starts would go on ignoring it.
    shell = ran(source, archive, "sh", "-c", "kill -PIPE $$; echo survived")
    assert shell.returncode == -signal.SIGPIPE and "survived" not in shell.stdout


def tampered(archive: Archive, folder: Path, data: bytes) -> str:
    path = folder / "other.tar.gz"
    path.write_bytes(data)
    return f"file://{path}"


def test_another_archive_is_not_unpacked(archive: Archive, tmp_path: Path) -> None:
    archive.data.seek(0)
    content = gzip.decompress(archive.data.read())
    quick = quick_program()
    for data in (
        gzip.compress(content.replace(b"exit 7", b"exit 0")),
        gzip.compress(content + b"\0" * 512),
        gzip.compress(content)[:-100],
        gzip.compress(b"\0" * 50_000_000),
        b"no archive",
        b"",
    ):
        source = tampered(archive, tmp_path, data)
        words = [source, archive.digest, str(archive.size), str(tmp_path / "in"), "./run.sh"]
        done = subprocess.run([sys.executable, "-c", quick, *words], capture_output=True, text=True, check=False)
        assert done.returncode in (75, 126), done.stderr
        assert source in done.stderr and "Traceback" not in done.stderr
        assert not list((tmp_path / "in").glob("accel-code-*"))


@pytest.mark.parametrize("member", ["../out", "/tmp/accel-out", "a/../../out"])
def test_members_that_lead_outside_are_not_unpacked(member: str, tmp_path: Path) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        tar.addfile(tarfile.TarInfo(member), io.BytesIO())
    text = content.getvalue()
    source = tmp_path / "a.tar.gz"
    source.write_bytes(gzip.compress(text))
    words = [f"file://{source}", hashlib.sha256(text).hexdigest(), str(len(text)), str(tmp_path / "in"), "true"]
    done = subprocess.run([sys.executable, "-c", quick_program(), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 126 and f"holds {member!r}: not unpacked" in done.stderr
    assert not list((tmp_path / "in").glob("accel-code-*"))


def quick_program() -> str:
    """The program, which does not wait between its attempts."""
    text = program("file")
    assert "(1, 2, 4, 8, 16, 0)" in text
    return text.replace("(1, 2, 4, 8, 16, 0)", "(0, 0)")


def test_what_is_not_there_yet_is_asked_for_again(archive: Archive, tmp_path: Path) -> None:
    source = here(archive, tmp_path / "kept")
    path = Path(source.removeprefix("file://"))
    hidden = path.rename(tmp_path / "hidden")
    words = [source, archive.digest, str(archive.size), "-", "./run.sh"]
    process = subprocess.Popen([sys.executable, "-c", program("file"), *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr
    assert "No such file" in process.stderr.readline()
    hidden.rename(path)
    assert process.wait(timeout=60) == 7
    process.stderr.close()


def test_sigterm_ends_it_while_it_fetches(archive: Archive, tmp_path: Path) -> None:
    words = [f"file://{tmp_path}/never", archive.digest, str(archive.size), "-", "./run.sh"]
    process = subprocess.Popen([sys.executable, "-c", program("file"), *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr and process.stderr.readline()
    process.terminate()
    assert process.wait(timeout=60) == 143
    process.stderr.close()


NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=30).filter(
    lambda name: name not in (".", "..", ".git", ".accel", "link") and len(name.encode()) < 200
)


@given(files=st.dictionaries(NAMES, st.binary(max_size=600), min_size=1, max_size=5))
def test_any_name_and_content_comes_out_as_it_went_in(
    files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("any")
    for name, data in files.items():
        (root / "sub").mkdir(exist_ok=True)
        (root / "sub" / name).write_bytes(data)
    if any(is_secret_name(name) for name in files):
        return
    archive = pack(tree.read(root, everything=True))
    archive.data.seek(0)
    with tarfile.open(fileobj=archive.data, mode="r:gz") as tar:
        out = tmp_path_factory.mktemp("out")
        tar.extractall(out, filter="data")
    assert {path.name: path.read_bytes() for path in (out / "sub").iterdir()} == {
        path.name: path.read_bytes() for path in (root / "sub").iterdir()
    }


def test_odd_names_reach_the_job(tmp_path: Path) -> None:
    names = ["a\nb.txt", "\u00fcml\u00e4ut\u2603.txt", "-rf", "x" * 150, "d/" * 60 + "deep", "'\"`$(x)", " ", "\t"]
    archive = pack(tree.read(project(tmp_path / "p", dict.fromkeys(names, "x"))))
    line = "import os, json; print(json.dumps([os.path.join(r, f)[2:] for r, _, fs in os.walk('.') for f in fs]))"
    done = ran(here(archive, tmp_path), archive, "python3", "-c", line)
    found = [name for name in json.loads(done.stdout) if not name.startswith(".accel/")]
    assert sorted(found) == sorted(names)
