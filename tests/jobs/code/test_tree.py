"""Which files are sent, which are left out or refused, and how that is told."""

import os
import tarfile
from pathlib import Path

import pytest

from accel.diagnostics.errors import BadInput
from jobs.client.code import archive, tree
from jobs.client.code.archive import MOST_MIB, pack
from jobs.client.code.shipping import Shipping
from tests.jobs.code.projects import git, project
from tests.support.soak import sampled
from tests.support.speed import CpuTime


def shipped(folder: Path, **options: bool) -> tuple[list[str], list[str]]:
    """The names of the archive's own files, and what was warned of."""
    shipping = Shipping.of(folder, **options)
    shipping.archive.data.seek(0)
    with tarfile.open(fileobj=shipping.archive.data) as tar:
        found = [name for name in tar.getnames() if not name.startswith(".accel/")]
    assert len(found) == shipping.archive.files
    return found, list(shipping.warnings)


def faults(folder: Path) -> list[str]:
    return archive.faults(folder, tree.read(folder).entries)


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


NAMES = [".env", ".env.local", "prod.env", "certs/server.PEM", "id_rsa", "credentials", "aws/credentials.json", "a.key",
         "service-account-x.json", "gcp-credentials.json", ".netrc", "terraform.tfstate", "kubeconfig", ".envrc",
         ".vault-token", ".docker/config.json", "home/.Docker/config.json", ".kube/config", "x/.kube/config",
         "prod.tfvars", "prod.auto.tfvars.json", ".s3cfg", ".boto", "id_ed25519_sk", "id_ecdsa_sk", "deploy_ed25519",
         "vpn.ovpn", ".dockercfg", "sa.keytab", ".bash_history", ".terraformrc", "rclone.conf",
         ".cache/huggingface/token"]  # fmt: skip


def check_stays(root: Path, name: str, why: str) -> None:
    """It is sent once Git has it."""
    packed, notes = shipped(root)
    assert packed == ["a.py"]
    assert notes == [f"--code: {name}: {why}, and is left out; give the job a reference in secrets"]
    git(root, "add", "-f", name)
    packed, notes = shipped(root)
    assert packed == sorted([name, "a.py"])
    assert notes == [f"--code: {name}: {why}, and is sent since Git has it"]


def test_every_name_of_a_secret_is_known() -> None:
    assert [name for name in NAMES if not archive.is_secret_name(name)] == []


@pytest.mark.parametrize("name", sampled(NAMES, NAMES[::8]))
def test_a_secret_by_its_name_stays_here(name: str, tmp_path: Path) -> None:
    check_stays(project(tmp_path, {name: "x", "a.py": ""}), name, "looks like a secret")


KEYS = {
    "sa.json": '{"type": "service_account", "private_key_id": "0", "private_key": "-----BEGIN PRIVATE KEY-----\\nMIIE'
    + "a" * 60 + '\\n-----END PRIVATE KEY-----\\n", "client_email": "a@p.iam.gserviceaccount.com"}',
    "short.json": '{"private_key":"-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----"}',
    "notes.txt": "mine:\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\n-----END OPENSSH PRIVATE KEY-----\n",
    "old": "-----BEGIN RSA PRIVATE KEY-----\r\nProc-Type: 4,ENCRYPTED\r\nDEK-Info: AES-128-CBC,00FF\r\n\r\n"
    + "QUJD" * 16 + "\r\n-----END RSA PRIVATE KEY-----\r\n",
    "gpg.txt": "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n" + "lQOYBF" * 10 + "\n",
    "deep.yaml": "key: |\n" + "  # x\n" * 300_000 + "  -----BEGIN EC PRIVATE KEY-----\n  " + "MHcC" * 16 + "\n",
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_a_private_key_by_its_content_stays_here(name: str, tmp_path: Path) -> None:
    check_stays(project(tmp_path, {name: KEYS[name], "a.py": ""}), name, "holds a private key")


@pytest.mark.parametrize(
    "text",
    [
        'if line == "-----BEGIN PRIVATE KEY-----":\n    raise ValueError("no PRIVATE KEY here")\n',
        'PEM = f"-----BEGIN PRIVATE KEY-----\\n{body}\\n-----END PRIVATE KEY-----"\n',
        'RULE = r"-----BEGIN (RSA )?PRIVATE KEY-----"\n',
        "-----BEGIN CERTIFICATE-----\n" + "MIIE" * 16 + "\n-----END CERTIFICATE-----\n",
        "-----BEGIN PUBLIC KEY-----\n" + "MIIE" * 16 + "\n-----END PUBLIC KEY-----\n",
    ],
)  # fmt: skip
def test_code_that_speaks_of_private_keys_goes(text: str, tmp_path: Path) -> None:
    assert shipped(project(tmp_path, {"a.py": text})) == (["a.py"], [])


def test_all_of_a_folder_names_its_secrets(tmp_path: Path) -> None:
    root = project(tmp_path, {".env": "x", "sa.json": KEYS["sa.json"], "a.py": ""}, repository=False)
    packed, notes = shipped(root, everything=True)
    assert packed == [".env", "a.py", "sa.json"]
    assert notes == [
        "--code: .env: looks like a secret, and is sent since --code-all sends every file",
        "--code: sa.json: holds a private key, and is sent since --code-all sends every file",
    ]


def test_nothing_but_secrets(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"has no files that Git would add, but for 1 that looks like a secret"):
        Shipping.of(project(tmp_path, {".env": "x"}))


def test_a_link_that_is_named_as_a_secret_stays_here(tmp_path: Path) -> None:
    root = project(tmp_path, {"a.py": ""})
    (root / ".env").symlink_to("/etc/hostname")
    packed, notes = shipped(root)
    assert packed == ["a.py"] and notes[0].startswith("--code: .env: looks like a secret, and is left out")


def test_a_large_file_is_judged_as_fast_as_it_is_packed(tmp_path: Path) -> None:
    root = project(tmp_path, {"a.bin": (b"-----BEGIN PRIVATE KEY-----\n" + b"no key\x00" * 1000) * 7_000})
    with CpuTime() as cpu:
        assert shipped(root)[0] == ["a.bin"]
    assert cpu.seconds < 20


@pytest.mark.parametrize(
    "name",
    [".env.example", "keys.py", "environment.py", "credentials.py", "id_rsa.pub", "key", "config.json", "kube/config",
     "docker/config.json", "prod.tfvars.example", ".envrc.sample", "token", "tokenizer.json", "id_ed25519_sk.pub"],
)  # fmt: skip
def test_no_secrets(name: str) -> None:
    assert not archive.is_secret_name(name)


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
    assert f"--code: link: {fault}" in faults(root)


def test_links_inside(tmp_path: Path) -> None:
    root = project(tmp_path / "p", {"sub/a": ""})
    (root / "sub" / "up").symlink_to("../b")
    (root / "dir").symlink_to("sub")
    assert faults(root) == []


def test_names_that_others_cannot_have(tmp_path: Path) -> None:
    root = project(tmp_path, {".accel/x.py": ""})
    (root / os.fsdecode(b"\xff\n.py")).write_text("")
    assert faults(root) == [
        "--code: .accel/x.py: .accel is for what accel adds; rename it",
        "--code: '\\udcff\\n.py': its name is not UTF-8; rename it",
    ]


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "a//x", "./x", ""])
def test_names_that_are_not_below_the_folder(name: str, tmp_path: Path) -> None:
    found = tree.Tree(tmp_path, (tree.Entry(name, 0),))
    assert archive.faults(found.folder, found.entries) == [f"--code: {name}: is not a name below the folder"]


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
