"""Which files are sent, which are refused, and how that is told."""

import os
from pathlib import Path

import pytest

from jobs.code import refused, tree
from jobs.code.archive import MOST_MIB, pack
from jobs.errors import BadInput, BadInputs
from tests.jobs.code.projects import git, project


def names(folder: Path, **options: bool) -> list[str]:
    return [entry.name for entry in tree.read(folder, **options).entries]


def test_what_git_would_add(tmp_path: Path) -> None:
    files = {"a.py": "", "sub/.gitignore": "*.bin\n!keep.bin\n", "sub/x.bin": "", "sub/keep.bin": "", "out/y": ""}
    root = project(tmp_path / "p", {**files, ".gitignore": "out/\n", "gone.py": "", "odd \n\u00fc.txt": ""})
    git(root, "add", "gone.py")
    (root / "gone.py").unlink()
    assert names(root) == [".gitignore", "a.py", "odd \n\u00fc.txt", "sub/.gitignore", "sub/keep.bin"]
    assert names(root / "sub") == [".gitignore", "keep.bin"]


def test_what_is_tracked_is_code_whatever_is_ignored(tmp_path: Path) -> None:
    root = project(tmp_path, {".gitignore": "*.cfg\n", "a.cfg": "", "b.cfg": ""})
    git(root, "add", "-f", "a.cfg")
    assert names(root) == [".gitignore", "a.cfg"]


def test_repositories_inside_are_read_by_their_own_rules(tmp_path: Path) -> None:
    root = project(tmp_path / "p", {"a.py": ""})
    project(root / "lib", {"b.py": "", "c.log": "", ".gitignore": "*.log\n"})
    source = project(tmp_path / "source", {"d.py": ""})
    git(source, "add", "d.py")
    git(source, "commit", "-qm", "d")
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), "module")
    assert names(root) == [".gitmodules", "a.py", "lib/.gitignore", "lib/b.py", "module/d.py"]
    git(root, "submodule", "deinit", "-f", "module")
    assert tree.read(root).left_out == ("module: is a submodule that is not checked out, and is left out",)


def test_the_variables_of_a_hook_lead_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = project(tmp_path / "other", {"theirs.py": ""})
    git(other, "add", "theirs.py")
    root = project(tmp_path / "mine", {"mine.py": ""})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    assert names(root) == ["mine.py"]


def test_a_repository_cannot_name_a_program_to_run(tmp_path: Path) -> None:
    root = project(tmp_path / "p", {"a.py": ""})
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    hook.chmod(0o755)
    git(root, "config", "core.fsmonitor", str(hook))
    assert names(root) == ["a.py"]
    assert not (tmp_path / "was-run").exists()


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(tmp_path / "p", {"a.py": "", "b/c": ""}, repository=False)
    (root / "link").symlink_to("b")
    with pytest.raises(BadInput, match=r"which files of .* are code is not known: fatal: not a git") as fault:
        tree.read(root)
    assert "--code-all" in str(fault.value.hint)
    assert names(root, everything=True) == ["a.py", "b/c", "link"]
    git(root, "init", "-q")
    assert names(root, everything=True) == ["a.py", "b/c", "link"]
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BadInput, match="there is no git here"):
        tree.read(root)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere is not a folder"):
        tree.read(tmp_path / "nowhere")


def test_what_is_neither_file_nor_link_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found = tree.read(tmp_path, everything=True)
    assert found.entries == () and found.left_out == ("pipe: is neither a file nor a link, and is left out",)


@pytest.mark.parametrize(
    "name",
    [".env", ".env.local", "prod.env", "certs/server.PEM", "id_rsa", "credentials", "aws/credentials.json", "a.key",
     "service-account-x.json", "gcp-credentials.json", ".netrc", "terraform.tfstate", "kubeconfig"],
)  # fmt: skip
def test_secrets(name: str, tmp_path: Path) -> None:
    root = project(tmp_path, {name: "x", "a.py": ""})
    with pytest.raises(BadInputs) as fault:
        pack(tree.read(root))
    assert fault.value.messages == [
        f"--code: {name}: looks like a secret; write it into .gitignore, give the job a reference in secrets, or "
        "`git add` it"
    ]
    git(root, "add", "-f", name)
    found = tree.read(root)
    assert refused.warnings(found) == [f"--code: {name}: looks like a secret, and is sent since Git has it"]
    assert pack(found).files == 2


@pytest.mark.parametrize("name", [".env.example", "keys.py", "environment.py", "credentials.py", "id_rsa.pub", "key"])
def test_no_secrets(name: str) -> None:
    assert not refused.secret(name)


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ("../out.txt", "leads to ../out.txt, outside of the folder; put a file there"),
        ("sub/../../out.txt", "leads to sub/../../out.txt, outside of the folder; put a file there"),
        ("/etc/passwd", "leads to /etc/passwd, which another machine does not have; make it a relative link or a file"),
        ("way/out.txt", "leads to way/out.txt, outside of the folder; put a file there"),
    ],
)
def test_links_that_lead_outside(target: str, fault: str, tmp_path: Path) -> None:
    root = project(tmp_path / "p", {"sub/a": ""})
    (tmp_path / "out.txt").write_text("")
    (root / "way").symlink_to("..")
    (root / "link").symlink_to(target)
    assert f"--code: link: {fault}" in refused.faults(tree.read(root))


def test_links_inside(tmp_path: Path) -> None:
    root = project(tmp_path / "p", {"sub/a": ""})
    (root / "sub" / "up").symlink_to("../b")
    (root / "dir").symlink_to("sub")
    assert refused.faults(tree.read(root)) == []


def test_names_that_others_cannot_have(tmp_path: Path) -> None:
    root = project(tmp_path, {".accel/x.py": ""})
    (root / os.fsdecode(b"\xff\n.py")).write_text("")
    assert refused.faults(tree.read(root)) == [
        "--code: .accel/x.py: .accel is for what accel adds; rename it",
        "--code: '\\udcff\\n.py': its name is not UTF-8; rename it",
    ]


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "a//x", "./x", ""])
def test_names_that_are_not_below_the_folder(name: str, tmp_path: Path) -> None:
    found = tree.Tree(tmp_path, (tree.Entry(name, 0),))
    assert refused.faults(found) == [f"--code: {name}: is not a name below the folder"]


def test_too_much(tmp_path: Path) -> None:
    root = project(tmp_path, {"a.py": ""})
    for number in range(3):
        with (root / f"big{number}").open("wb") as file:
            file.truncate((MOST_MIB + 2) * 2**20 // 3 + number)
    with pytest.raises(BadInput) as fault:
        pack(tree.read(root))
    assert "has 252.0 MiB, of which 250 MiB are sent; largest: big2 84.0 MiB, big1 84.0 MiB" in fault.value.message
    assert ".gitignore" in str(fault.value.hint)


def test_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no files that Git would add"):
        pack(tree.read(project(tmp_path, {})))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    root = project(tmp_path, {"a.py": "12"})
    found = tree.read(root)
    (root / "a.py").write_text("123")
    with pytest.raises(BadInput, match=r"a\.py: changed while it was packed"):
        pack(found)
    (root / "a.py").unlink()
    (root / "a.py").symlink_to("/etc/hostname")
    with pytest.raises(BadInput, match=r"a\.py: "):
        pack(found)
