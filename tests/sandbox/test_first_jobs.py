"""The jobs of `make up`, by a command that stands in for accel-jobs; tests/test_make_again.py runs the real one."""

import json
import sys
from pathlib import Path

import pytest

from sandbox import first_jobs

STAND_IN = """\
import json, sys
from pathlib import Path

verb, *words = sys.argv[1:]
with Path(__file__).with_name("calls").open("a") as calls:
    calls.write(" ".join([verb, *words]) + "\\n")
if verb == "submit":
    target = words[words.index("--to") + 1]
    if target == "broken":
        sys.stderr.write("error: image: is missing\\n")
        sys.exit(2)
    print(f"fake:here/{target}")
elif verb == "watch":
    sys.exit(125 if "fake:here/fails" in words else 0)
elif verb == "logs":
    print(f"the log of {words[0]}")
elif verb == "ls":
    moments = {name: f"2026-01-01T00:0{at}+00:00" for name, at in
               {"created": "0:00", "started": "0:05", "stopped": "1:15"}.items()}
    print(json.dumps([
        {**moments, "ref": "fake:here/gpu", "phase": "SUCCEEDED", "cost_usd": [0.01, 0.02]},
        {"ref": "fake:here/fails", "phase": "FAILED", "created": moments["created"], "cost_usd": None},
    ]))
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    command = tmp_path / "jobs"
    command.write_text(f"#!{sys.executable}\n{STAND_IN}")
    command.chmod(0o755)
    monkeypatch.setattr(first_jobs, "COMMAND", command)
    monkeypatch.setenv("ACCEL_TARGETS", str(tmp_path / "targets.json"))

    def on(**kinds: str) -> tuple[int, str, str, list[str]]:
        (tmp_path / "targets.json").write_text(json.dumps({name: {"kind": kind} for name, kind in kinds.items()}))
        code = first_jobs.main("digits.yaml")
        out, err = capfd.readouterr()
        return code, out, err, (tmp_path / "calls").read_text().splitlines()

    return on


def test_each_target_gets_a_job_and_a_line(run) -> None:
    code, out, _, calls = run(gpu="aws-batch", tpu="tpu-vm")
    assert code == 0
    assert sorted(calls[:2]) == [
        "submit digits.yaml --to gpu -o id",
        "submit digits.yaml --to tpu -o id --set accelerator.type=v5litepod-4",
    ]
    assert calls[2:] == ["watch fake:here/gpu fake:here/tpu", "logs fake:here/gpu", "ls --all -o json"]
    table = [line.split() for line in out.splitlines()]
    assert ["gpu", "aws-batch", "SUCCEEDED", "5s", "1m10s", "$0.0100", "to", "0.0200"] in table
    assert ["tpu", "tpu-vm", "-", "-", "-", "-"] in table
    assert "  accel-jobs report fake:here/gpu --out job.html" in out.splitlines()


def test_every_log_is_shown_where_it_is_asked_for(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("V", "1")
    assert run(gpu="aws-batch", gke="gke")[1].count("the log of") == 2


def test_what_fails_is_said_and_hinders_no_other(run) -> None:
    code, _, err, calls = run(broken="gke", gpu="aws-batch")
    assert (code, err) == (2, "error: image: is missing\n")
    assert "watch fake:here/gpu" in calls
    assert run(gpu="aws-batch", fails="gke")[0] == 125
    assert run(broken="gke")[0] == 2
