"""No-break spaces of pasted text: read as spaces wherever a file is read, and said."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from accel.diagnostics import no_break_spaces, yaml_positions
from accel.diagnostics.errors import JobWarning
from jobs.cli.main import jobs
from jobs.model.job import Job
from stacks.cli.main import stacks
from tests.support.project import KEY, environment

NBSP = "\u00a0"
JOB = f"""name:{NBSP}digits
image: local/examples
command:
{NBSP}{NBSP}- python{NBSP}train.py
env:
  SAID: 'a{NBSP}b'
"""
SAID = "job.yaml:1: holds a no-break space (and in 1 more lines), which is read as a space; write spaces"


def test_a_job_file() -> None:
    tree = yaml_positions.read(JOB.encode())
    assert tree.value["name"] == "digits" and tree.value["command"] == ["python train.py"]
    assert tree.value["env"] == {"SAID": f"a{NBSP}b"}, "between quotes it is meant"
    assert tree.notes == [SAID.removeprefix("job.yaml:")]


def test_the_command_and_python_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB)
    done = CliRunner().invoke(jobs, ["validate", "job.yaml"])
    assert done.exit_code == 0 and SAID in done.stderr
    with pytest.warns(JobWarning, match="no-break space"):
        assert Job.read("job.yaml").name == "digits"


def test_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = yaml.safe_dump({"config": {KEY: environment("dev")}}).replace("owner: ", f"owner:{NBSP}", 1)
    (tmp_path / "Pulumi.it.yaml").write_text(text)
    done = CliRunner().invoke(stacks, ["validate", "it"])
    assert done.exit_code == 0 and "holds a no-break space, which is read as a space" in done.stdout


def test_json_and_a_pasted_command() -> None:
    text = f'{{"a":{NBSP}"x{NBSP}y",\n{NBSP}"b": "\\"{NBSP}"}}'
    plain, lines = no_break_spaces.in_text(text, "json")
    assert json.loads(plain) == {"a": f"x{NBSP}y", "b": f'"{NBSP}'} and lines == [1, 2]
    assert no_break_spaces.in_text(f"gcloud{NBSP}ai 'a{NBSP}b'", "shell") == (f"gcloud ai 'a{NBSP}b'", [1])


def test_an_import(tmp_path: Path) -> None:
    command = f"gcloud ai custom-jobs create --region=us-central1{NBSP}--display-name=fit"
    image = "us-docker.pkg.dev/ml-dev-4821/a/b:1"
    pool = f"--worker-pool-spec=machine-type=g2-standard-8,replica-count=1,container-image-uri={image}"
    (tmp_path / "pasted.sh").write_text(f"{command}{NBSP}{pool}\n")
    done = CliRunner().invoke(jobs, ["import", "vertex", str(tmp_path / "pasted.sh")])
    assert "which is read as a space" in done.stderr
    assert yaml.safe_load(done.stdout)["name"] == "fit", done.stderr


@given(st.text(alphabet=st.sampled_from([*"ab:-'\"[]{}#, \n", NBSP, "\u202f"]), max_size=60))
def test_text_without_any_is_left_alone_and_length_never_changes(text: str) -> None:
    plain, lines = no_break_spaces.in_yaml(text)
    assert len(plain) == len(text)
    assert bool(lines) == (plain != text)
    assert [a for a, b in zip(text, plain, strict=True) if a != b] == [
        a for a, b in zip(text, plain, strict=True) if a in no_break_spaces.BLANKS and b == " "
    ]
