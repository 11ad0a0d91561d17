"""`stacks`: its lines, its exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import commands
from tests.support.project import environment, put

from .test_config import ROOT

SPOT = "environment.aws.environments.spot"


def stacks(*arguments: str, cwd: Path = ROOT) -> tuple[int, list[str], list[str]]:
    """The exit code, and the lines of stdout and stderr."""
    done = commands.run("stacks", *arguments, cwd=cwd, env={"PATH": str(cwd), "PYTHONPATH": str(ROOT)})
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


OWN = ("dev", "gke-dev", "gke-prod-cluster", "gke-prod-network", "gke-prod-workloads", "prod", "sandbox")


def test_our_own_are_valid() -> None:
    assert stacks("validate") == (0, [f"Pulumi.{name}.yaml: valid" for name in OWN], [])


def test_faults_of_all_files_have_file_and_line(tmp_path: Path) -> None:
    text = (ROOT / "Pulumi.dev.yaml").read_text()
    (tmp_path / "Pulumi.one.yaml").write_text(text.replace("max_vcpus: 128", "max_vcpu: 128"))
    (tmp_path / "Pulumi.two.yaml").write_text(
        text.replace("[g5, g6]", "[g5, p3]", 1).replace("    owner: ml-platform\n", "")
    )
    code, out, errors = stacks("validate", cwd=tmp_path)
    line = text.splitlines().index("          max_vcpus: 128") + 1
    assert (code, out) == (2, [])
    assert errors[0] == f"error: Pulumi.one.yaml:{line}: {SPOT}.max_vcpu: unknown key; did you mean max_vcpus?"
    assert any(f"{SPOT}.instance_types[1]: " in error and "Pulumi.two.yaml:" in error for error in errors)
    assert any("environment.owner: is missing" in error for error in errors)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("config: [", "Pulumi.bad.yaml:2: is not YAML"),
        ("", "Pulumi.bad.yaml:1: is empty"),
        ("config: {}", "config has no accel:environment"),
        ("other: 1", "config has no accel:environment"),
        ("config:\n  accel:environmnt: {}", "config has no accel:environment"),
        ("config:\n  accel:environment:\n    owner: a\n    owner: b", "Pulumi.bad.yaml:4: "),
    ],
)
def test_what_is_no_environment(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "Pulumi.bad.yaml").write_text(text)
    code, _, errors = stacks("validate", "bad", cwd=tmp_path)
    assert code == 2 and any(said in error for error in errors), errors


def test_strict_refuses_warnings(tmp_path: Path) -> None:
    text = (ROOT / "Pulumi.dev.yaml").read_text()
    (tmp_path / "Pulumi.old.yaml").write_text(text.replace("capacity: spot", "capacity: spot\n          min_vcpus: 4"))
    code, out, _ = stacks("validate", cwd=tmp_path)
    assert code == 0 and "min_vcpus" in out[1] and out[1].startswith("warning: ")
    code, _, errors = stacks("validate", "--strict", cwd=tmp_path)
    assert code == 2 and "min_vcpus" in errors[0]


ACCOUNT = {"namespace": "jobs", "service_account": "jobs"}
VOLUME = {"namespace": "jobs", "volume": {"kind": "bucket", "bucket": "gs://acme-data"}}
OPEN: list[tuple[str, str, Any, str]] = [
    *(
        ("dev", f"aws.roles.{kind}_buckets", ["acme-data", name], f'{kind}_buckets[1]: is "{name}", which is no bucket')
        for kind in ("read", "write")
        for name in ("*", "acme-*", "s3://acme-data", "https://acme.s3.amazonaws.com", "acme/folder", "Acme", "${a}")
    ),
    *(
        ("gke-dev", "gcp.accounts.workloads.jobs", {**ACCOUNT, f"{kind}_buckets": [name]}, f'[0]: is "{name}"')
        for kind in ("read", "write")
        for name in ("*", "gs://acme-data", "acme/folder")
    ),
    ("gke-dev", "gcp.workloads.volumes.data", VOLUME, 'bucket: is "gs://acme-data", which is no bucket'),
    ("dev", "owner", " ", 'owner: is " ", without a letter or digit'),
    ("dev", "owner", "ml; rm", "';' is no character of a tag"),
    ("dev", "labels", {"": "vision"}, 'labels: has no key for "vision"'),
    ("dev", "labels", {"accel:Stack": "prod"}, "begins with accel:"),
    ("gke-dev", "labels", {"": "vision"}, 'labels: has no key for "vision"'),
    ("gke-dev", "labels", {"accel-stack": "prod"}, "keys of accel- are the stack's own"),
]


@pytest.mark.parametrize(("name", "path", "value", "said"), OPEN, ids=[f"{at}-{value}" for _, at, value, _ in OPEN])
def test_what_a_cloud_refuses_or_opens_to_all_is_refused_here(
    tmp_path: Path, name: str, path: str, value: Any, said: str
) -> None:
    config = {"config": {"accel:environment": put(path, value, environment(name, "aws" if name == "dev" else "gcp"))}}
    (tmp_path / "Pulumi.one.yaml").write_text(yaml.safe_dump(config))
    code, out, errors = stacks("validate", cwd=tmp_path)
    assert (code, out) == (2, []) and any(said in error for error in errors), errors


def test_names_that_are_not_there() -> None:
    assert stacks("validate", "dve") == (6, [], ["error: no stack 'dve' here", "hint: nearest: dev"])
    assert stacks("validate", "none.yaml")[0] == 6
    code, _, errors = stacks("validat")
    assert code == 2 and "did you mean validate?" in errors[0]
    assert stacks("validate", "--sack")[0] == 2


def test_config_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.folder.yaml").mkdir()
    (tmp_path / "Pulumi.loop.yaml").symlink_to("Pulumi.loop.yaml")
    (tmp_path / "Pulumi.two.yaml").write_text("config: {}\n---\nconfig: {}\n")
    folder, loop, two = (
        "error: Pulumi.folder.yaml: cannot be read: Is a directory",
        "error: Pulumi.loop.yaml: cannot be read: Too many levels of symbolic links",
        "error: Pulumi.two.yaml:2: a second document begins; a file has one",
    )
    for verb in ("validate", "cost", "permissions"):
        assert stacks(verb, cwd=tmp_path) == (2, [], [folder, loop, two])
    for name, said in (("folder", folder), ("loop", loop), ("two", two)):
        assert stacks("validate", name, cwd=tmp_path) == (2, [], [said])
    assert stacks("validate", "x" * 300, cwd=tmp_path)[0] == 6


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("leaks dev --older-than nan", "stacks leaks: --older-than: must be a number, is 'nan'"),
        ("leaks dev --older-than inf", "stacks leaks: --older-than: must be a number, is 'inf'"),
        ("drift dev --within 99999999999", "stacks drift: --within: 99999999999 is not in the range 1<=x<=36500"),
        ("unwedge spot --timeout 99999999999", "stacks unwedge: --timeout: must be at most 2147483647"),
        ("recover dev --settle 99999999999", "stacks recover: --settle: must be at most 2147483647"),
    ],
)
def test_numbers_that_no_clock_has(line: str, said: str) -> None:
    code, _, errors = stacks(*line.split())
    assert code == 2 and errors[0].startswith(f"error: {said}")


def test_export_needs_pulumi() -> None:
    code, _, errors = stacks("export", "--stack", "dev")
    assert code == 1 and errors[0] == "error: pulumi is not on PATH"


def test_export_says_what_pulumi_said(tmp_path: Path) -> None:
    fake = tmp_path / "pulumi"
    fake.write_text("#!/bin/sh\necho \"error: no stack named 'x' found\" >&2\nexit 255\n")
    fake.chmod(0o755)
    code, _, errors = stacks("export", "--stack", "x", cwd=tmp_path)
    assert code == 6 and "no stack named 'x' found" in errors[0]


VERBS = (
    *("validate", "cost", "quota", "leaks", "permissions", "images list", "drift", "report", "recover"),
    *("export --stack", "budget status --stack", "budget drill --stack", "budget resume --stack"),
)


@pytest.mark.parametrize("verb", VERBS)
def test_a_stack_that_is_not_there_is_not_found_by_any_verb(verb: str, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text((ROOT / "Pulumi.dev.yaml").read_text())
    fake = tmp_path / "pulumi"
    fake.write_text("#!/bin/sh\necho \"error: no stack named 'nonsuch' found\" >&2\nexit 255\n")
    fake.chmod(0o755)
    code, out, errors = stacks(*verb.split(), "nonsuch", cwd=tmp_path)
    assert (code, out) == (6, []) and "nonsuch" in errors[0] and errors[1].startswith("hint: "), errors


def test_export_writes_where_jobs_looks(tmp_path: Path) -> None:
    fake = tmp_path / "pulumi"
    fake.write_text('#!/bin/sh\necho \'{"gpu": {"kind": "local"}}\'\n')
    fake.chmod(0o755)
    assert stacks("export", cwd=tmp_path)[:2] == (0, ["gpu"])
    assert json.loads((tmp_path / ".accel" / "targets.json").read_text()) == {"gpu": {"kind": "local"}}
    assert list((tmp_path / ".accel").iterdir()) == [tmp_path / ".accel" / "targets.json"]


@pytest.mark.parametrize("out", [".", "pulumi/x", "/proc/x", "x" * 300, ""])
def test_export_to_what_is_no_place_for_a_file(out: str, tmp_path: Path) -> None:
    fake = tmp_path / "pulumi"
    fake.write_text('#!/bin/sh\necho \'{"gpu": {"kind": "local"}}\'\n')
    fake.chmod(0o755)
    code, said, errors = stacks("export", "--out", out, cwd=tmp_path)
    assert (code, said) == (2, [])
    assert len(errors) == 1 and errors[0].startswith("error: --out: ") and ": cannot be written: " in errors[0]
    assert list(tmp_path.iterdir()) == [fake]
