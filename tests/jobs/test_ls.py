"""`ls`: names, short ids, filters, and what could not be read; and every verb by the name or the short id."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from jobs.backends.base import JobRef
from jobs.client.names import job_name, match_rank, shorts
from tests.jobs.batch_target import BATCH
from tests.support.gathering import until_there
from tests.support.terminal import Terminal, plain
from tests.support.waiting import until

from .conftest import ROOT, command

Invoke = Callable[..., Result]
Submit = Callable[..., str]


@pytest.fixture
def submit(invoke: Invoke, home: Path) -> Submit:
    """Submits a command as a local job; its reference."""

    def call(script: str, *more: str, name: str = "train") -> str:
        (home / "j.yaml").write_text(json.dumps({"name": name, "command": ["sh", "-c", script]}))
        result = invoke("submit", "j.yaml", "-o", "id", *more)
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    return call


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """While it is not there, what waits for it runs."""
    return tmp_path / "gate"


def listed(invoke: Invoke, *arguments: str) -> list[str]:
    result = invoke("ls", "-o", "id", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.split()


def test_what_the_table_shows(invoke: Invoke, submit: Submit, gate: Path) -> None:
    script = f"test $ACCEL_TASK_INDEX -gt 1 || exit $ACCEL_TASK_INDEX; {until_there(gate)}"
    array = submit(script, "--set", "tasks=4", "--set", "labels.team=vision", name="sweep")
    counts = {"SUCCEEDED": 1, "FAILED": 1, "RUNNING": 2}
    until(lambda: json.loads(invoke("ls", "-o", "jsonl").stdout)["tasks"] == counts)
    row = json.loads(invoke("ls", "-o", "jsonl").stdout)
    short = array.rpartition("-")[2][:8]
    assert (row["job"], row["short"], row["gpus"], row["owner"], row["cost_usd"]) == (
        "sweep", short, 0, "vision", [0.0, 0.0],
    )  # fmt: skip
    titles, line = invoke("ls").stdout.splitlines()
    assert titles.split() == ["NAME", "ID", "TARGET", "PHASE", "TASKS", "AGE", "GPUS", "COST"]
    assert re.fullmatch(rf"sweep  {short}  local   RUNNING  2/4, 1 failed  \d+s +0 +free", line), line
    wide = invoke("ls", "-o", "wide").stdout
    assert array in wide and "SUCCEEDED:1" in wide and "vision" in wide
    gate.touch()
    invoke("wait", array)


def test_filters_of_ls_and_watch(invoke: Invoke, submit: Submit, gate: Path) -> None:
    done = submit("true", name="eval-1")
    failed = submit("exit 3", "--set", "labels.owner=ada", name="train-1")
    invoke("wait", done, failed)
    runs = submit(until_there(gate), "--set", "labels.team=vision", name="train-2")
    assert listed(invoke) == [runs]
    assert listed(invoke, "-a", "--name", "train-*") == [runs, failed]
    assert listed(invoke, "-a", "--name", "train-1") == [failed], "the name in the file is enough"
    assert listed(invoke, "--state", "FAILED") == [failed], "a state of ended jobs needs no -a"
    assert listed(invoke, "--state", "succeeded", "--state", "running") == [runs, done]
    assert listed(invoke, "-a", "--owner", "ada") == [failed]
    assert listed(invoke, "-a", "--owner", "vision", "--target", "local") == [runs]
    assert listed(invoke, "-a", "--name", "*", "-n", "1") == [runs]
    wrong = invoke("ls", "--state", "runing")
    assert wrong.exit_code == 2 and "--state: unknown value runing; did you mean running" in wrong.stderr
    none = invoke("ls", "--owner", "nobody")
    assert (none.exit_code, none.stdout) == (0, "") and "no job that was asked for is waiting" in none.stderr
    gate.touch()
    watched = invoke("watch", "--owner", "vision", "--state", "running", "--name", "train-*", "--no-logs")
    assert watched.exit_code == 0 and f"{runs}: SUCCEEDED" in watched.stdout, watched.output


@pytest.fixture
def blind(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Targets of which one is an endpoint that is gone."""
    (home / "t.json").write_text(json.dumps({"gpu": BATCH}))
    monkeypatch.setenv("ACCEL_TARGETS", str(home / "t.json"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    return home


def test_what_could_not_be_read_is_no_empty_list(
    invoke: Invoke, submit: Submit, blind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = invoke("ls")
    assert (silent.exit_code, silent.stdout) == (9, "") and "no job is" not in silent.stderr
    assert silent.stderr.splitlines()[-2] == "error: incomplete: 1 of 2 targets could not be read"
    here = submit("true", "--to", "local")
    partly = invoke("ls", "-a", "-o", "json")
    assert partly.exit_code == 9 and [row["ref"] for row in json.loads(partly.stdout)] == [here]
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(blind / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(blind / "none"))
    assert command("ls", "-a").returncode == 3
    assert command("ls", "-a", "--to", "local").returncode == 0
    assert command("get", "nowhere").returncode == 3, "it may be where nobody could look"


def test_any_verb_takes_the_name_or_the_short_id(invoke: Invoke, submit: Submit, gate: Path, tmp_path: Path) -> None:
    old = [submit("echo hi", "-e", f"N={n}") for n in range(2)]
    invoke("wait", *old)
    short = old[0].rpartition("-")[2][:8]
    for verb in (("get",), ("logs",), ("explain",), ("wait",)):
        assert invoke(*verb, short).exit_code == 0
    several = invoke("logs", "train")
    assert several.exit_code == 2
    assert several.stderr == f"error: train: could be any of 2 jobs, newest first: {old[1]}, {old[0]}\n"
    live = submit(until_there(gate))
    assert invoke("get", "train", "-o", "id").stdout.strip() == live, "the only one that has not ended"
    other = submit(until_there(gate), "-e", "N=9")
    refused = invoke("cancel", "train", "--yes")
    assert refused.exit_code == 2 and f"any of 4 jobs, newest first: {other}, {live}, {old[1]}" in refused.stderr
    gate.touch()
    invoke("wait", live, other)


def test_a_job_of_somebody_else_is_found_by_what_ls_shows(invoke: Invoke, submit: Submit, tmp_path: Path) -> None:
    refs = [submit("true", name=name) for name in ("one", "two", "two")]
    invoke("wait", *refs)
    (tmp_path / "state" / "accel" / "history.jsonl").unlink()
    shown = {row["short"]: row["ref"] for row in json.loads(invoke("ls", "-a", "-o", "json").stdout)}
    for short, ref in shown.items():
        assert invoke("get", short, "-o", "id").stdout.strip() == ref
    assert invoke("get", "one", "-o", "id").stdout.strip() == refs[0]
    assert invoke("get", "two").exit_code == 2
    unknown = invoke("get", "three")
    assert unknown.exit_code == 6 and "no target has one" in unknown.stderr


@pytest.mark.parametrize("columns", [120, 70, 40, 20])
def test_columns_fit_the_terminal(columns: int, invoke: Invoke, submit: Submit, home: Path) -> None:
    name = "a-name-that-is-as-long-as-names-may-well-be-and-longer"
    ref = submit("true", "--set", "tasks=3", name=name)
    invoke("wait", ref)
    line = [sys.executable, "-P", "-m", "jobs", "ls", "-a"]
    terminal = Terminal(line, home, os.environ | {"PYTHONPATH": str(ROOT)}, columns, 24)
    try:
        assert terminal.process.wait(60) == 0
        until(lambda: "SUCC" in terminal.written)
    finally:
        terminal.end()
    titles, row = plain(terminal.written).splitlines()
    assert max(len(titles), len(row)) < columns and row.startswith("a-n") and titles.startswith("NAME")
    assert ("COST" in titles) == (columns > 60) and ("ID" in titles) == (columns > 30)
    assert "\x1b[34m" in terminal.written, "states have their colours"


def test_short_ids_tell_jobs_apart() -> None:
    refs = [
        JobRef("vertex", "p.us-central1", "4000000000000007919"),
        JobRef("vertex", "p.us-central1", "4000000000000015838"),
        JobRef("aws-batch", "us-east-1", "0b9d5d29-7f5c-4a3b-9b5d-0123456789ab"),
        JobRef("local", "", "train-0123456789ab"),
    ]
    assert list(shorts(refs).values()) == ["400000000000000", "400000000000001", "0b9d5d29", "01234567"]
    assert shorts([]) == {}
    assert job_name("train-0123456789ab") == "train" and job_name("train-2") == "train-2"
    texts = {refs[3].id: 0, "train": 1, "tra": 2, "0123": 2, "x": None, "": None}
    assert {text: match_rank(text, refs[3], "train-0123456789ab") for text in texts} == texts
