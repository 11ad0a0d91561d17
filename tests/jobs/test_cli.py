"""The verbs, in this process, on jobs of this machine."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result

from accel.console import group
from jobs.cli.main import VERBS
from jobs.client import history
from tests.jobs.batch_target import BATCH

ROOT = Path(__file__).resolve().parents[2]
Invoke = Callable[..., Result]

JOB = "name: hello\ncommand: [sh, -c, 'echo hi $WHO; exit ${CODE:-0}']\n"


@pytest.fixture(autouse=True)
def file(home: Path) -> Path:
    (home / "j.yaml").write_text(JOB)
    return home / "j.yaml"


def test_an_interrupt_on_the_way_to_the_wait_names_the_job(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jobs.client.waiting.end", pressed)
    result = invoke("submit", "j.yaml", "-o", "id", "--wait")
    ref = result.stdout.strip()
    assert result.exit_code == 130 and f"error: interrupted; {ref} goes on\n" in result.stderr, result.stderr


def submitted(invoke: Invoke, *arguments: str) -> str:
    result = invoke("submit", "j.yaml", "-o", "id", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


# --- submit


def test_submit_prints_the_reference_on_stdout_only(invoke: Invoke) -> None:
    result = invoke("submit", "j.yaml")
    assert re.fullmatch(r"local:/hello-[0-9a-f]{12}\n", result.stdout)
    assert result.stderr.startswith("submitted hello-") and "logs -f" in result.stderr


def test_submit_in_every_form(invoke: Invoke) -> None:
    by_id = invoke("submit", "j.yaml", "-o", "id", "--key", "k")
    ref = by_id.stdout.strip()
    assert by_id.stderr == ""
    told = json.loads(invoke("submit", "j.yaml", "-o", "json", "--key", "k").stdout)
    assert told == {"ref": ref, "name": ref.removeprefix("local:/"), "target": "local", "key": "k"}
    (line,) = invoke("-o", "jsonl", "submit", "j.yaml", "--key", "k").stdout.splitlines()
    assert json.loads(line) == told


def test_two_submits_are_two_jobs_and_one_key_is_one(invoke: Invoke) -> None:
    assert submitted(invoke) != submitted(invoke)
    assert submitted(invoke, "--key", "a") == submitted(invoke, "--key", "a")
    assert submitted(invoke, "--key", "a") != submitted(invoke, "--key", "b")
    refused = invoke("submit", "j.yaml", "--key", "a", "-e", "WHO=x")
    assert refused.exit_code == 2 and "another content under the same key" in refused.stderr


def test_a_job_that_is_there_is_said_to_be(invoke: Invoke, tmp_path: Path) -> None:
    ref = submitted(invoke, "--key", "a")
    invoke("wait", ref)
    request = tmp_path / "state" / "accel" / "local" / ref.removeprefix("local:/") / "request.json"
    made = json.loads(request.read_text()) | {"created": (datetime.now(UTC) - timedelta(minutes=3)).isoformat()}
    request.write_text(json.dumps(made))
    again = invoke("submit", "j.yaml", "--key", "a")
    assert again.stdout.strip() == ref
    name = ref.removeprefix("local:/")
    assert again.stderr.startswith(f"already submitted 3m ago, SUCCEEDED now: {name} to local; `"), again.stderr
    several = invoke("submit", "j.yaml", "j.yaml", "--key", "a")
    assert "submitted 1 of 2 jobs; the others were submitted already\n" in several.stderr, several.stderr


def test_submit_from_standard_input(invoke: Invoke) -> None:
    assert invoke("submit", "-", "--wait", text=JOB).exit_code == 0
    wrong = invoke("submit", "-", text="nam: x\n")
    assert "error: stdin:1: nam: unknown field; did you mean name?" in wrong.stderr


def test_overrides_reach_the_job(invoke: Invoke) -> None:
    result = invoke("submit", "j.yaml", "-f", "-e", "WHO=you", "--set", "labels.a=b", "--name", "other")
    assert result.stdout.splitlines()[1:] == ["hi you"]
    assert result.stdout.startswith("local:/other-")


def test_wait_tells_states_on_stderr(invoke: Invoke) -> None:
    result = invoke("submit", "j.yaml", "--wait", "-o", "id")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 1
    assert result.stderr.splitlines()[-1].endswith(": SUCCEEDED")


def test_a_failed_job_is_125(invoke: Invoke) -> None:
    result = invoke("submit", "j.yaml", "--wait", "-o", "id", "-e", "CODE=7")
    ref = result.stdout.strip()
    assert result.exit_code == 125
    assert result.stderr.splitlines()[-2:] == [
        f"error: {ref}: FAILED, exit code 7",
        f"hint: `accel-jobs logs {ref}` shows what it printed",
    ]
    assert invoke("wait", ref).exit_code == 125
    assert invoke("logs", "-f", ref).exit_code == 125
    assert invoke("logs", ref).exit_code == 0


def test_waiting_times_out(invoke: Invoke) -> None:
    result = invoke("submit", "j.yaml", "--set", "command=[sleep, 60]", "--timeout", "1", "-o", "id")
    assert result.exit_code == 124
    assert "has not ended within 1 s; it goes on" in result.stderr
    ref = result.stdout.strip()
    assert invoke("wait", ref, "--timeout", "1").exit_code == 124
    invoke("cancel", ref, "--yes")
    assert invoke("wait", ref).exit_code == 125


def test_dry_run_submits_nothing_and_repeats_itself(invoke: Invoke, tmp_path: Path) -> None:
    first = invoke("submit", "j.yaml", "--dry-run")
    assert first.stdout == invoke("submit", "j.yaml", "--dry-run").stdout
    request = json.loads(first.stdout)
    assert request["kind"] == "local" and request["body"]["command"][0] == "sh"
    assert not (tmp_path / "state").exists()
    keyed = json.loads(invoke("submit", "j.yaml", "--dry-run", "--key", "k").stdout)
    assert submitted(invoke, "--key", "k") == f"local:/{keyed['name']}"


def test_dry_run_hides_what_is_named_like_a_secret(invoke: Invoke) -> None:
    told = invoke("submit", "j.yaml", "--dry-run", "-e", "HF_TOKEN=canary", "-e", "DB_PASSWORD=canary", "-e", "WHO=x")
    assert "canary" not in told.output
    shown = {"HF_TOKEN": "***", "DB_PASSWORD": "***", "WHO": "x", "ACCEL_GRACE_S": "30"}
    assert json.loads(told.stdout)["body"]["env"] == shown


def test_strict_refuses_a_warning(invoke: Invoke, file: Path) -> None:
    file.write_text(JOB + "aws_batch: {definition: x}\n")
    assert "warning: aws_batch:" in invoke("submit", "j.yaml").stderr
    refused = invoke("--strict", "submit", "j.yaml")
    assert refused.exit_code == 2 and refused.stdout == ""


def test_several_faults_are_several_lines(invoke: Invoke, file: Path) -> None:
    file.write_text("name: a b\ncpu: 1\n")
    lines = invoke("submit", "j.yaml").stderr.splitlines()
    assert [line.split(":")[0] for line in lines] == ["error", "error"]


# --- get, ls, logs


def test_get(invoke: Invoke) -> None:
    ref = invoke("submit", "j.yaml", "-o", "id", "-e", "CODE=3", "--wait").stdout.strip()
    told = json.loads(invoke("get", ref, "-o", "json").stdout)
    assert (told["ref"], told["phase"], told["exit_code"], told["target"]) == (ref, "FAILED", 3, "local")
    assert "age" not in told
    table = invoke("get", ref).stdout
    assert re.search(r"^phase +FAILED$", table, re.MULTILINE) and re.search(r"^exit_code +3$", table, re.MULTILINE)
    assert invoke("get", ref, "-o", "id").stdout == f"{ref}\n"
    two = json.loads(invoke("get", ref, ref, "-o", "json").stdout)
    assert [row["ref"] for row in two] == [ref, ref]


def test_short_references(invoke: Invoke) -> None:
    ref = submitted(invoke)
    other = submitted(invoke, "--name", "other")
    for short in ("hello", "hel", ref.removeprefix("local:/"), ref.removeprefix("local:/")[:9]):
        assert invoke("get", short, "-o", "id").stdout.strip() == ref
    assert invoke("get", "other", "-o", "id").stdout.strip() == other
    assert invoke("wait", ref, submitted(invoke)).exit_code == 0
    ambiguous = invoke("get", "hello")
    assert ambiguous.exit_code == 2 and "could be any of 2 jobs, newest first: local:/hello-" in ambiguous.stderr
    unknown = invoke("get", "ohter")
    assert unknown.exit_code == 6


def test_ls(invoke: Invoke) -> None:
    nothing = invoke("ls")
    assert nothing.stdout == "" and "no job is waiting or running" in nothing.stderr
    refs = [invoke("submit", "j.yaml", "--wait", "-o", "id").stdout.strip() for _ in range(3)]
    assert invoke("ls", "-o", "id").stdout == ""
    assert invoke("ls", "-a", "-o", "id").stdout.split() == refs[::-1]
    assert invoke("ls", "-a", "-n", "2", "-o", "id").stdout.split() == refs[:0:-1]
    table = invoke("ls", "-a").stdout.splitlines()
    assert table[0].split() == ["NAME", "ID", "TARGET", "PHASE", "TASKS", "AGE", "GPUS", "COST"] and len(table) == 4
    assert "EXIT_CODE" in invoke("ls", "-a", "-o", "wide").stdout
    assert [json.loads(line)["ref"] for line in invoke("ls", "-a", "-o", "jsonl").stdout.splitlines()] == refs[::-1]
    assert len(json.loads(invoke("ls", "-a", "-o", "json").stdout)) == 3
    assert json.loads(invoke("ls", "-o", "json").stdout) == []


def test_logs(invoke: Invoke) -> None:
    script = "command=[sh, -c, 'echo $ACCEL_TASK_INDEX']"
    ref = invoke("submit", "j.yaml", "--wait", "-o", "id", "--set", script, "--set", "tasks=3").stdout.strip()
    assert invoke("logs", ref).stdout == "[task 0] 0\n[task 1] 1\n[task 2] 2\n"
    assert invoke("logs", ref, "--task", "1").stdout == "[task 1] 1\n"
    assert re.match(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00 \[task 0\] 0\n", invoke("logs", ref, "-o", "wide").stdout)
    told = [json.loads(line) for line in invoke("logs", ref, "-o", "jsonl").stdout.splitlines()]
    assert [(line["source"], line["text"]) for line in told] == [
        ("task 0", "0"),
        ("task 1", "1"),
        ("task 2", "2"),
    ]
    assert invoke("logs", ref, "--task", "3").exit_code == 6


# --- cancel, retry, wait


def test_cancel_several(invoke: Invoke) -> None:
    refs = [submitted(invoke, "--set", "command=[sleep, 60]") for _ in range(2)]
    result = invoke("cancel", *refs, "--reason", "enough", "--yes")
    assert result.exit_code == 0 and result.stdout == ""
    assert invoke("wait", *refs, "--timeout", "20").exit_code == 125
    assert [json.loads(invoke("get", ref, "-o", "json").stdout)["reason"] for ref in refs] == ["cancelled: enough"] * 2
    assert invoke("cancel", *refs, "-o", "id", "--yes").stdout.split() == refs


def test_cancel_goes_on_after_one_that_is_not_there(invoke: Invoke) -> None:
    ref = submitted(invoke, "--set", "command=[sleep, 60]")
    result = invoke("cancel", "local:/gone", ref, "-y")
    assert result.exit_code == 6 and f"{ref}: asked to stop" in result.stderr


@pytest.mark.parametrize("answer, code", [("n\n", 8), ("\n", 8), ("y\n", 0)])
def test_cancel_asks_at_a_terminal(answer: str, code: int, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = submitted(invoke, "--set", "command=[sleep, 60]")
    monkeypatch.setattr("jobs.cli.cancel.interactive", lambda: True)
    result = invoke("cancel", ref, text=answer)
    assert result.exit_code == code and f"Stop {ref}? [y/N]" in result.stderr
    assert invoke("cancel", ref, "--yes").exit_code == 0
    assert invoke("--yes", "cancel", ref).exit_code == 0


def test_cancel_where_nobody_can_be_asked_needs_yes(invoke: Invoke) -> None:
    ref = submitted(invoke, "--set", "command=[sleep, 60]")
    result = invoke("cancel", ref)
    assert (result.exit_code, result.stdout) == (2, "")
    said = f"error: cancel {ref}: cannot be confirmed without a terminal\nhint: --yes stops it without asking\n"
    assert result.stderr == said
    assert json.loads(invoke("get", ref, "-o", "json").stdout)["phase"] in ("STARTING", "RUNNING")
    assert invoke("cancel", ref, "--yes").exit_code == 0


def test_retry(invoke: Invoke) -> None:
    ref = invoke("submit", "j.yaml", "--wait", "-o", "id", "-e", "CODE=4").stdout.strip()
    again = invoke("retry", ref, "-o", "id").stdout.strip()
    assert again != ref and again.startswith("local:/hello-")
    assert invoke("wait", again).exit_code == 125
    assert json.loads(invoke("get", again, "-o", "json").stdout)["exit_code"] == 4
    keyed = [invoke("retry", ref, "--key", "k", "-o", "id").stdout for _ in range(2)]
    assert keyed[0] == keyed[1]


def test_wait_for_several(invoke: Invoke) -> None:
    refs = [submitted(invoke) for _ in range(3)]
    result = invoke("wait", *refs, "-o", "jsonl")
    assert result.exit_code == 0
    assert [json.loads(line)["phase"] for line in result.stdout.splitlines()] == ["SUCCEEDED"] * 3


# --- targets, validate, doctor, completion


def test_targets(invoke: Invoke, home: Path) -> None:
    plain = invoke("targets")
    assert plain.stdout.split() == ["NAME", "KIND", "WHERE", "NOTE", "local", "local", str(home)]
    (home / ".accel").mkdir()
    (home / ".accel" / "targets.json").write_text('{"cpu": {"kind": "local"}, "new": {"kind": "from-tomorrow"}}')
    assert invoke("targets", "-o", "id").stdout.split() == ["cpu", "new", "local"]
    rows = {row["name"]: row for row in json.loads(invoke("targets", "-o", "json").stdout)}
    assert rows["new"]["note"].startswith("needs a newer accel")


def test_validate(invoke: Invoke, home: Path) -> None:
    (home / "bad.yaml").write_text("name: a\ncpu: 1\n")
    assert invoke("validate", "j.yaml").stdout == "j.yaml: ok\n"
    mixed = invoke("validate", "j.yaml", "bad.yaml", "gone.yaml")
    assert (mixed.exit_code, mixed.stdout) == (2, "j.yaml: ok\n")
    assert len(mixed.stderr.splitlines()) == 2
    told = json.loads(invoke("validate", "j.yaml", "bad.yaml", "-o", "json").stdout)
    assert told["valid"] == ["j.yaml"] and len(told["faults"]) == 1
    (home / "gpu.yaml").write_text(JOB + "spot: true\n")
    assert invoke("validate", "gpu.yaml").exit_code == 0
    refused = invoke("validate", "gpu.yaml", "--to", "local")
    assert refused.exit_code == 2 and "spot: this machine is not Spot capacity" in refused.stderr


def test_doctor(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    well = invoke("doctor")
    assert well.exit_code == 0
    assert all(line.startswith("ok    ") for line in well.stdout.splitlines())
    rows = json.loads(invoke("doctor", "-o", "json").stdout)
    assert {row["check"] for row in rows} >= {"python", "state", "cache", "clock", "targets"}
    monkeypatch.setenv("ACCEL_TARGETS", "gone.json")
    missing = invoke("doctor")
    assert missing.exit_code == 6 and "fail  targets: targets: gone.json: no such file" in missing.stdout
    monkeypatch.delenv("ACCEL_TARGETS")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    unwritable = invoke("doctor")
    assert unwritable.exit_code == 1 and re.search("fail  state: .* cannot be written", unwritable.stdout)


def test_doctor_on_aws(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    (home / "t.json").write_text(json.dumps({"gpu": BATCH}))
    monkeypatch.setenv("ACCEL_TARGETS", "t.json")
    for name, value in {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    silent = invoke("doctor")
    assert silent.exit_code == 9 and "fail  aws us-east-1: GetCallerIdentity:" in silent.stdout
    assert "warn  target gpu: no claim table" in silent.stdout


def test_targets_on_aws(invoke: Invoke, home: Path) -> None:
    (home / "t.json").write_text(json.dumps({"gpu": BATCH}))
    (row, _) = json.loads(invoke("targets", "--targets", "t.json", "-o", "json").stdout)
    assert (row["name"], row["where"], row["capacity"]) == ("gpu", "us-east-1", "e: spot g5")


def test_free_gpus_are_shown_where_a_platform_tells(
    invoke: Invoke, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accel.diagnostics.errors import CloudSilent
    from jobs.backends.aws_batch import AwsBatchBackend
    from jobs.backends.free_gpus import Free

    (home / "t.json").write_text(json.dumps({"gpu": BATCH}))
    monkeypatch.setattr(AwsBatchBackend, "free", lambda self: [Free("e", 3, 8), Free("f", 4, 4, 2)])
    head, row, local = invoke("targets", "--targets", "t.json", "-o", "wide").stdout.splitlines()
    assert "FREE_GPUS" in head and "e: 3 of 8; f: 4 of 4 (2 idle)" in row
    assert local[head.index("FREE_GPUS")] == "-"
    assert "FREE_GPUS" not in invoke("targets", "--targets", "t.json").stdout

    def silent(self: object) -> list[Free]:
        raise CloudSilent("no answer")

    monkeypatch.setattr(AwsBatchBackend, "free", silent)
    told = invoke("targets", "--targets", "t.json", "-o", "wide")
    assert told.exit_code == 0 and "unknown" in told.stdout
    assert "gpu: free GPUs are not known: no answer" in told.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, invoke: Invoke) -> None:
    script = invoke("completion", shell).stdout
    assert "_JOBS_COMPLETE" in script and "jobs" in script


def test_completion_answers(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_JOBS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "jobs su")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert "submit" in invoke().stdout


# --- help and the history


def test_help(invoke: Invoke) -> None:
    text = invoke("--help")
    assert text.exit_code == 0 and all(verb in text.stdout for verb in VERBS)
    assert invoke().stdout == text.stdout
    for verb in VERBS:
        told = invoke(verb, "--help")
        assert told.exit_code == 0 and f"Usage: jobs {verb}" in told.stdout and "--output" in told.stdout


def test_version(invoke: Invoke) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    said = invoke("--version").stdout
    assert re.fullmatch(rf"accel.*, commit {head[:12]}( with changes)?\n", said), said


def test_version_of_a_package_that_was_installed_from_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "accel_it-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: accel-it\nVersion: 1.0\n")
    (info / "top_level.txt").write_text("accel\n")
    noted = {"url": "https://x/y.git", "vcs_info": {"vcs": "git", "commit_id": "0123456789abcdef" * 2}}
    (info / "direct_url.json").write_text(json.dumps(noted))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(group, "__file__", str(tmp_path / "accel" / "jobs" / "cli" / "version.py"))
    assert group._commit() == ", commit 0123456789ab"  # pyright: ignore[reportPrivateUsage]


def test_the_history_is_bounded_and_forgiving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SIZE_MAX", 2000)
    monkeypatch.setattr(history, "KEPT", 5)
    for number in range(40):
        history.append(f"local:/a-{number}", f"a-{number}", "local", "k")
    assert history.path().stat().st_size <= 2200
    with history.path().open("a") as file:
        file.write('torn\n[1]\n{"a": 1}\n')
    assert [entry["ref"] for entry in history.recent()][:2] == ["local:/a-39", "local:/a-38"]


def test_without_a_writable_history_the_job_is_submitted(invoke: Invoke, tmp_path: Path) -> None:
    history.path().mkdir(parents=True)
    result = invoke("submit", "j.yaml", "-o", "id")
    assert result.exit_code == 0 and "not in the history" in result.stderr


def test_an_unexpected_error_is_one_line(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a fault\nin two lines")

    monkeypatch.setattr("jobs.client.targets.load", broken)
    monkeypatch.setattr("jobs.client.targets.load", broken)
    result = invoke("targets")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: unexpected: RuntimeError: a fault in two lines",
        "hint: this is a bug in accel; run the command with --debug for the traceback",
    ]


# --- several jobs at once


MANY = """
name: one
command: [sh, -c, 'exit 0']
---
# the second
name: two
command: [sh, -c, 'exit 3']
---
name: two
command: [sh, -c, 'exit 0']
"""


def test_several_files_and_documents_are_several_jobs(invoke: Invoke, home: Path) -> None:
    (home / "many.yaml").write_text(MANY)
    result = invoke("submit", "many.yaml", "j.yaml", "-o", "id", "--key", "k")
    refs = result.stdout.split()
    assert result.exit_code == 0, result.output
    assert [ref.rpartition("/")[2].rpartition("-")[0] for ref in refs] == ["one", "two", "two", "hello"]
    assert len(set(refs)) == 4 and result.stderr == ""
    assert invoke("submit", "many.yaml", "j.yaml", "-o", "id", "--key", "k").stdout.split() == refs
    assert submitted(invoke, "--key", "k") == refs[3], "alone it is the same job"
    assert [entry["ref"] for entry in history.recent()][:4] == [refs[3], refs[2], refs[1], refs[0]]
    waited = invoke("wait", *refs)
    assert waited.exit_code == 125 and f"error: {refs[1]}: FAILED, exit code 3" in waited.stderr
    rows = json.loads(invoke("submit", "many.yaml", "--key", "k", "-o", "json").stdout)
    assert [row["ref"] for row in rows] == refs[:3]
    lines = invoke("submit", "many.yaml", "--key", "k", "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == rows


def test_several_jobs_are_waited_for(invoke: Invoke, home: Path) -> None:
    (home / "many.yaml").write_text(MANY)
    result = invoke("submit", "many.yaml", "--wait")
    assert result.exit_code == 125 and "two" in result.stderr.splitlines()[-2]
    assert "submitting 3 jobs; after a crash too, the same command with --key " in result.stderr


def test_all_are_checked_before_the_first_is_sent(invoke: Invoke, home: Path) -> None:
    (home / "bad.yaml").write_text(MANY + "---\nname: three\ncpu: 1\ncommand: [x]\n---\nname: [\n")
    result = invoke("submit", "j.yaml", "bad.yaml")
    assert result.exit_code == 2 and "bad.yaml:17: is not YAML" in result.stderr
    (home / "bad.yaml").write_text(MANY + "---\nname: three\ncpu: 1\ncommand: [x]\n---\nnames: x\n")
    result = invoke("submit", "j.yaml", "bad.yaml")
    assert result.exit_code == 2
    assert "error: bad.yaml:13: cpu: unknown field" in result.stderr
    assert "error: bad.yaml:16: names: unknown field" in result.stderr
    (home / "bad.yaml").write_text(MANY + "---\nname: four\ncommand: [x]\nnodes: 2\n")
    result = invoke("submit", "j.yaml", "bad.yaml")
    assert result.exit_code == 2 and "error: four: target local: nodes:" in result.stderr
    assert history.recent() == []


def test_a_dry_run_of_several_is_a_list(invoke: Invoke, home: Path) -> None:
    (home / "many.yaml").write_text(MANY)
    shown = json.loads(invoke("submit", "many.yaml", "--dry-run", "-e", "A=1").stdout)
    assert [request["body"]["env"]["A"] for request in shown] == ["1"] * 3
    assert len({request["key"] for request in shown}) == 3


@pytest.mark.parametrize("option", [["--follow"], ["--then-to", "local"]])
def test_what_is_for_one_job_is_refused_for_several(invoke: Invoke, option: list[str]) -> None:
    result = invoke("submit", "j.yaml", "j.yaml", *option)
    assert result.exit_code == 2 and "is for one job, and there are 2" in result.stderr
    assert history.recent() == []


def test_a_job_is_not_sent_on_to_where_it_is(invoke: Invoke) -> None:
    result = invoke("submit", "j.yaml", "--to", "local", "--then-to", "local")
    assert result.exit_code == 2 and "error: --then-to: local is where the job is submitted to" in result.stderr


def test_validate_checks_every_document(invoke: Invoke, home: Path) -> None:
    (home / "many.yaml").write_text(MANY)
    assert invoke("validate", "many.yaml", "--to", "local").stdout == "many.yaml: ok\n"
    (home / "many.yaml").write_text(MANY + "---\nname: four\ncommand: [x]\nnodes: 2\n")
    assert invoke("validate", "many.yaml", "--to", "local").exit_code == 2
