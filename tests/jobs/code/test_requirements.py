"""Packages that a job asks for are installed before its command, by the program that goes with its code."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from jobs.client.code import requirements as sent
from jobs.client.request_body import request_summary
from jobs.runtime import requirements
from tests.jobs.batch_target import BATCH
from tests.jobs.code.projects import project
from tests.support.clone import environment_of_its_own
from tests.support.small_wheel import write_wheel

Invoke = Callable[..., Result]
TARGETS: dict[str, Any] = {
    "here": {"kind": "local"},
    "gpu": {**BATCH, "claim_table": "t", "code_bucket": "code"},
}
LINES = "--no-index\n--find-links {folder}\nsmall-package=={version}\n"


@pytest.fixture
def wheels(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that plays the package index, beside a job file of a job that needs a package of it."""
    (home / "targets.json").write_text(json.dumps(TARGETS))
    monkeypatch.setenv("ACCEL_TARGETS", str(home / "targets.json"))
    folder = home / "wheels"
    write_wheel(folder)
    write(home, home / "requirements.txt")
    return folder


def write(home: Path, file: Path, version: str = "1.0", **fields: Any) -> None:
    program = "import small_package, sys; print('answer', small_package.answer, sys.prefix)"
    job = {"name": "needs", "command": ["python3", "-c", program], "cpus": 1, "memory_mib": 200, **fields}
    (home / "job.yaml").write_text(yaml.safe_dump(job))
    file.parent.mkdir(exist_ok=True)
    file.write_text(LINES.format(folder=home / "wheels", version=version))


def submit(invoke: Invoke, *more: str, to: str = "here") -> Result:
    image = ("--set", "image=i:1") if to == "gpu" else ()
    return invoke("submit", "job.yaml", "--to", to, *image, *more)


def test_a_package_is_installed_once_for_jobs_that_share_a_cache(wheels: Path, invoke: Invoke) -> None:
    """Without code the command stays in its own folder: a relative path in it is one of the image."""
    there = "importlib.util.find_spec('small_package') and __import__('small_package').answer"
    program = f"import importlib.util, os, sys; print('in', os.getcwd(), {there}, sys.prefix)"
    write(wheels.parent, wheels.parent / "requirements.txt", command=["python3", "-c", program])
    plain = submit(invoke, "--follow")
    (folder,) = re.findall("in (.*) None ", plain.stdout)
    first = submit(invoke, "--requirements", "requirements.txt", "--follow")
    assert first.exit_code == 0, first.output
    found = re.search("installing into (.*)", first.stdout)
    assert found and f"in {folder} 42 {found[1]}" in first.stdout, first.stdout
    again = submit(invoke, "--requirements", "requirements.txt", "--follow")
    assert again.exit_code == 0 and "installed before" in again.stdout and f"in {folder} 42 {found[1]}" in again.stdout


def test_the_job_file_names_a_file_beside_it(wheels: Path, invoke: Invoke) -> None:
    """An environment sees the packages of the Python that runs the job, also where that is one itself."""
    folder = wheels.parent / "there"
    program = "import small_package, yaml; print('both', small_package.answer)"
    write(folder.parent, folder / "needs.txt", command=["python3", "-c", program], requirements="needs.txt")
    (wheels.parent / "job.yaml").rename(folder / "job.yaml")
    done = invoke("submit", "there/job.yaml", "--to", "here", "--follow")
    assert done.exit_code == 0 and "both 42" in done.stdout, done.output


def test_packages_that_the_image_finds_through_a_path_file_stay(wheels: Path) -> None:
    """As those of `pip install --editable` are."""
    image, sent_in = environment_of_its_own(wheels.parent), wheels.parent / ".accel"
    write(wheels.parent, sent_in / "requirements.txt")
    shutil.copytree(Path(requirements.__file__).parent, sent_in / "accel_runtime")
    words = ["-m", "accel_runtime.requirements", ".accel/requirements.txt", "python3", "-c"]
    done = subprocess.run(
        [image / "python3", *words, "import small_package, numpy; print('both', small_package.answer)"],
        env={**os.environ, "PYTHONPATH": str(sent_in), requirements.CACHE: str(wheels.parent / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "both 42\n", done.stderr


def test_a_file_in_the_folder_of_the_code_may_name_others(wheels: Path, invoke: Invoke) -> None:
    code = project(
        wheels.parent / "code",
        {"base.txt": LINES.format(folder=wheels, version="1.0"), "all.txt": "-r base.txt\n", "train.py": ""},
    )
    done = submit(invoke, "--code", str(code), "--requirements", str(code / "all.txt"), "--follow")
    assert done.exit_code == 0 and "answer 42" in done.stdout, done.output


ALONE = """
requests [security] >= 2.8.1, == 2.8.* ; python_version < "2.7"
urllib3 @ https://github.com/urllib3/urllib3/archive/refs/tags/1.26.8.zip
https://wxpython.org/Phoenix/snapshot-builds/wxPython_Phoenix-3.0.3-cp35-cp35m-linux.whl
-e git+https://github.com/pallets/click.git@8.1.7#egg=click
--editable=git+ssh://git@github.com/pallets/click.git
git+https://github.com/huggingface/transformers
-r https://raw.githubusercontent.com/pytorch/pytorch/main/requirements.txt
-chttps://releases.openstack.org/constraints/upper/master
-f https://download.pytorch.org/whl/torch_stable.html
--find-links /opt/wheels
--extra-index-url https://download.pytorch.org/whl/cu121
-i ${INDEX}
--prefer-binary
--require-hashes
zip-files==1.0
""".strip().splitlines()
"""Of pip's own page on the format and of public projects."""
WITH_FILES = """
-r other-requirements.txt
-rother.txt
-r=base.txt
--requirement ../base.txt
-c constraints.txt
-e .
-e ./src[extra]
--editable=file:///work/pkg
./downloads/numpy-1.9.2-cp34-none-win32.whl
downloads/numpy-1.9.2-cp34-none-win32.whl  # of ours
pkg-1.0.tar.gz
/home/me/pkg
wheels/
file:///home/me/pkg
pkg @ file:./pkg
-f wheels
""".strip().splitlines()


@pytest.mark.parametrize("line", ALONE + WITH_FILES)
def test_a_line_that_names_a_file_is_known_by_its_form(line: str) -> None:
    assert requirements.names_a_file(line) == (line in WITH_FILES)


def test_what_cannot_be_installed_has_an_exit_code_and_a_cause(wheels: Path, invoke: Invoke) -> None:
    write(wheels.parent, wheels.parent / "requirements.txt", version="2.0")
    failed = submit(invoke, "--requirements", "requirements.txt", "--wait")
    assert failed.exit_code == 125 and "FAILED, exit code 69" in failed.stderr, failed.output
    told = invoke("explain", failed.stdout.split()[0])
    assert "the packages of its requirements could not be installed (requirements-failed)" in told.stdout
    assert requirements.FAILED == 69


def test_its_program_comes_before_the_command(wheels: Path, invoke: Invoke) -> None:
    answer = submit(invoke, "--requirements", "requirements.txt", "--dry-run", to="gpu")
    body = json.loads(answer.stdout)["body"]
    words = body["submit"]["containerOverrides"]["command"]
    assert words[7:11] == [*sent.PROGRAM, sent.ALONE] and words[11:13] == ["python3", "-c"]
    shown = request_summary("aws-batch", body)
    assert shown.command[:2] == ("python3", "-c") and shown.code == words[4]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "requirements: requirements.txt: there is no such file"),
        ("# nothing yet\n\n", "requirements: requirements.txt: lists no package"),
        ("a\n-r base.txt\n", "requirements.txt:2: -r base.txt: names a file that is not sent; give its folder"),
        ("-e .\n", "requirements.txt:1: -e .: names a file that is not sent"),
        ("./own.whl\n", "requirements.txt:1: ./own.whl: names a file that is not sent"),
        ("own @ file:///tmp/own.whl\n", "requirements.txt:1: own @ file:///tmp/own.whl: names a file"),
        ("--index-url https://me:hunter2@host/simple\n", "requirements.txt:1: holds a password"),
        (b"\xff\xfe", "requirements: requirements.txt: is not UTF-8"),
    ],
)
def test_what_cannot_be_sent_is_refused(text: str | bytes | None, says: str, wheels: Path, invoke: Invoke) -> None:
    file = wheels.parent / "requirements.txt"
    if text is None:
        file.unlink()
    else:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    refused = submit(invoke, "--requirements", "requirements.txt", "--dry-run", to="gpu")
    assert refused.exit_code == 2 and says in refused.stderr, refused.output
    assert "hunter2" not in refused.output


def test_a_variable_in_the_place_of_a_password_is_sent(wheels: Path, invoke: Invoke) -> None:
    (wheels.parent / "requirements.txt").write_text("--index-url https://${USER_NAME}:${TOKEN}@host/simple\na==1\n")
    assert submit(invoke, "--requirements", "requirements.txt", "--dry-run", to="gpu").exit_code == 0


def test_a_file_that_git_ignores_does_not_go(wheels: Path, invoke: Invoke) -> None:
    code = project(wheels.parent / "code", {"train.py": "", ".gitignore": "needs.txt\n"})
    (code / "needs.txt").write_text("a==1\n")
    refused = submit(invoke, "--code", str(code), "--requirements", str(code / "needs.txt"), "--dry-run", to="gpu")
    assert refused.exit_code == 2 and "needs.txt: Git ignores it" in refused.stderr, refused.output


def test_jobs_of_several_files_are_submitted_apart(wheels: Path, invoke: Invoke) -> None:
    one = yaml.safe_load((wheels.parent / "job.yaml").read_text())
    documents = [one | {"requirements": "requirements.txt"}, one | {"name": "other"}]
    (wheels.parent / "job.yaml").write_text(yaml.safe_dump_all(documents))
    refused = submit(invoke, "--dry-run", to="gpu")
    assert refused.exit_code == 2 and "requirements: the jobs have several, none, requirements.txt" in refused.stderr
