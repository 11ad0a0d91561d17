"""The agent as the process that a machine's startup script starts, on machines whose Google is the test's own."""

import ast
import json
import os
import signal
from pathlib import Path

import pytest

from jobs import agent
from jobs.agent.program.lines import GOES_ON
from tests.jobs.agent.machines import FOLDER, Cloud, on_stop, one, python
from tests.support.gathering import until_there
from tests.support.soak import sampled
from tests.support.waiting import until

PROGRAM = Path(agent.__file__).parent / "program"


def test_a_job_runs_and_its_machine_goes(cloud: Cloud) -> None:
    machine = one(cloud, python("import os; print('hello'); print(os.environ['EPOCHS'])"), env={"EPOCHS": "5"})
    machine.run()
    assert cloud.google.printed() == ["hello", "5"]
    result = cloud.google.result()
    assert (result["host"], result["exit_code"], result["reason"]) == (0, 0, "exited")
    assert result["started"] <= result["stopped"]
    assert json.loads(machine.told["instance/guest-attributes/accel/result"]) == result
    assert cloud.google.deleted == ["DELETE /compute/instances/train"]
    line = next(each for each in cloud.google.lines.values() if each["textPayload"] == "hello")
    assert line["labels"] == {"accel-job": "train-000000000000", "accel-attempt": "1", "accel-host": "0"}
    assert line["insertId"].startswith("train-000000000000-0-0000")
    numbers = [int(each.rpartition("-")[2]) for each in cloud.google.lines]
    assert numbers == list(range(result["lines"])), "the result says where the log ends"
    assert f"{FOLDER}/log-0.txt" not in cloud.google.objects


@pytest.mark.parametrize(
    "command, code, reason",
    [
        (["sh", "-c", "exit 3"], 3, "exited"),
        (["sh", "-c", "kill -9 $$"], 137, "exited"),
        (["/no/such/program"], 127, "not-started: [Errno 2] No such file or directory: '/no/such/program'"),
        (["/tmp"], 126, "not-started: [Errno 13] Permission denied: '/tmp'"),
    ],
)
def test_how_a_command_ended_is_told(cloud: Cloud, command: list[str], code: int, reason: str) -> None:
    one(cloud, command).run()
    assert (cloud.google.result()["exit_code"], cloud.google.result()["reason"]) == (code, reason)
    assert cloud.google.deleted


def test_nothing_of_the_agent_leaks_into_the_job(cloud: Cloud) -> None:
    one(cloud, python("import os; print(sorted(os.environ))")).run()
    names = set(ast.literal_eval(cloud.google.printed()[0]))
    assert names - {"LC_CTYPE"} == {"PATH", "HOME", "LANG", "TMPDIR", "PYTHONUNBUFFERED", "GCE_METADATA_HOST"}


def test_a_job_that_is_late_is_stopped(cloud: Cloud) -> None:
    script = on_stop("print('stopping'); sys.exit(4)")
    one(cloud, script, timeout_s=2).run()
    assert cloud.google.printed() == ["up", "stopping"]
    assert (cloud.google.result()["exit_code"], cloud.google.result()["reason"]) == (4, "timeout")


def test_a_job_that_does_not_stop_is_killed(cloud: Cloud) -> None:
    one(cloud, ["bash", "-c", "trap '' TERM; while :; do sleep 0.1; done"], timeout_s=1, grace_s=0.2).run()
    assert (cloud.google.result()["exit_code"], cloud.google.result()["reason"]) == (137, "timeout")


@pytest.mark.parametrize("how", ["notice", "signal"])
def test_a_machine_that_is_taken_away_leaves_time_for_a_checkpoint(cloud: Cloud, how: str) -> None:
    machine = one(cloud, on_stop("time.sleep(0.3); print('saved'); sys.exit(0)"))
    process = machine.boot()
    until(lambda: cloud.google.printed() == ["up"])
    machine.taken.set() if how == "notice" else os.killpg(process.pid, signal.SIGTERM)
    machine.end()
    assert cloud.google.printed() == ["up", "saved"]
    assert (cloud.google.result()["exit_code"], cloud.google.result()["reason"]) == (0, "preempted")


def test_a_command_that_dies_with_its_machine_was_preempted(cloud: Cloud) -> None:
    """Whatever stops containers may do so before the notice has arrived here."""
    machine = one(cloud, ["sh", "-c", "exit 143"])
    machine.quiet = True
    machine.taken.set()
    machine.run()
    assert (cloud.google.result()["exit_code"], cloud.google.result()["reason"]) == (143, "preempted")


def test_a_machine_that_is_taken_away_while_it_waits_starts_nothing(cloud: Cloud) -> None:
    machine = cloud.machines(["echo", "never"], hosts=2)[0]
    machine.boot()
    until(lambda: f"{FOLDER}/host-0.json" in cloud.google.objects)
    machine.taken.set()
    machine.end()
    assert (cloud.google.result()["exit_code"], cloud.google.result()["reason"]) == (None, "preempted")
    assert cloud.google.result()["started"] is None
    assert cloud.google.printed() == []


def test_output_of_any_kind_arrives(cloud: Cloud) -> None:
    text = (
        "import os, sys; w = sys.stdout.buffer.write\n"
        "w(b'\\xff\\xfe\\0bytes\\n'); w(b'x' * 700_000 + b'\\n'); w(b'\\n')\n"
        "w('wéird \\u20ac\\r\\n'.encode()); w(b'no end')"
    )
    one(cloud, python(text)).run()
    printed = cloud.google.printed()
    assert printed[0] == "\ufffd\ufffd\ufffdbytes"
    assert printed[-3:] == ["", "wéird €", "no end"]
    pieces = printed[1:-3]
    assert all(each.endswith(GOES_ON) for each in pieces[:-1]) and len(pieces) == 3
    assert "".join(each.removesuffix(GOES_ON) for each in pieces) == "x" * 700_000


def test_a_job_that_closes_its_output_goes_on(cloud: Cloud) -> None:
    text = "import os, time; print('one', flush=True); os.close(1); os.close(2); time.sleep(0.2); os._exit(5)"
    one(cloud, python(text)).run()
    assert cloud.google.printed() == ["one"]
    assert cloud.google.result()["exit_code"] == 5


def test_what_a_job_leaves_running_does_not_hold_the_machine(cloud: Cloud) -> None:
    one(cloud, ["bash", "-c", "sleep 1000 & echo done"]).run()
    assert cloud.google.printed() == ["done"]
    assert cloud.google.deleted


def test_many_lines_arrive_once_and_in_order(cloud: Cloud) -> None:
    one(cloud, python("for i in range(5000): print(i)")).run()
    assert cloud.google.printed() == [str(number) for number in range(5000)]
    assert cloud.google.writes < 50


@pytest.mark.parametrize("status", sampled([503, 403], [503]))
def test_logs_survive_an_outage(cloud: Cloud, tmp_path: Path, status: int) -> None:
    cloud.google.refuse["logging"] = status
    flag = tmp_path / "go"
    machine = one(cloud, ["bash", "-c", f"echo one; {until_there(flag)}; echo two"])
    machine.boot()
    until(lambda: f"HTTP {status}" in machine.serial)
    del cloud.google.refuse["logging"]
    flag.touch()
    machine.end()
    assert cloud.google.printed() == ["one", "two"]
    assert f"{FOLDER}/log-0.txt" not in cloud.google.objects


def test_logs_that_are_refused_for_good_are_kept_in_the_bucket(cloud: Cloud) -> None:
    cloud.google.refuse["logging"] = 403
    one(cloud, ["echo", "hello"]).run()
    assert cloud.google.result()["exit_code"] == 0
    kept = cloud.google.objects[f"{FOLDER}/log-0.txt"].decode().splitlines()
    assert [line.partition(" ")[2] for line in kept][-1] == "hello"
    assert cloud.google.deleted


def test_a_release_that_is_refused_is_said(cloud: Cloud) -> None:
    cloud.google.refuse["compute"] = 403
    machine = one(cloud, ["true"])
    machine.run()
    assert "not released" in cloud.google.said() and "HTTP 403: compute is out of order" in cloud.google.said()
    assert "not released" in machine.serial


def test_without_its_bucket_a_machine_goes(cloud: Cloud) -> None:
    cloud.google.refuse["storage"] = 403
    machine = one(cloud, ["echo", "never"])
    machine.run()
    assert cloud.google.deleted and cloud.google.printed() == []
    assert "storage is out of order" in machine.serial


def test_a_machine_whose_place_is_not_known_goes(cloud: Cloud) -> None:
    machine = cloud.machines(["echo", "never"], hosts=2)[0]
    machine.values["instance/name"] = "a-name-without-a-number"
    machine.run()
    assert cloud.google.deleted and cloud.google.printed() == []
    assert "invalid literal" in machine.serial


def test_a_secret_is_given_and_shown_nowhere(cloud: Cloud) -> None:
    version = "projects/acme/secrets/hf/versions/latest"
    cloud.google.secrets[version] = "hf_0123456789"
    machine = one(cloud, python("import os; print(len(os.environ['HF']))"), secrets={"HF": version})
    machine.run()
    assert cloud.google.printed() == ["13"]
    assert "hf_0123" not in machine.serial + cloud.google.said()


def test_a_secret_that_cannot_be_read_is_named(cloud: Cloud) -> None:
    machine = one(cloud, ["true"], secrets={"HF": "projects/acme/secrets/hf/versions/1"})
    machine.run()
    result = cloud.google.result()
    assert result["exit_code"] is None
    assert result["reason"].startswith("not-started: secret projects/acme/secrets/hf/versions/1: HTTP 403")


def test_a_machine_without_a_driver_says_so(cloud: Cloud) -> None:
    machine = one(cloud, ["true"], gpus=2, driver_wait_s=0)
    machine.run()
    assert cloud.google.result()["reason"] == "driver-not-ready: after 0 s it has 0 of 2 GPUs"


def test_a_mount_needs_gcsfuse(cloud: Cloud, tmp_path: Path) -> None:
    mounts = [{"source": "gs://data/a", "path": str(tmp_path / "data"), "read_only": True}]
    one(cloud, ["true"], mounts=mounts).run()
    assert "mount gs://data/a: gcsfuse: " in cloud.google.result()["reason"]


def test_a_host_that_boots_again_runs_the_command_again(cloud: Cloud) -> None:
    machine = one(cloud, ["bash", "-c", "echo boot; exec sleep 1000"])
    machine.boot()
    until(lambda: cloud.google.printed() == ["boot"])
    machine.kill()
    machine.boot()
    until(lambda: cloud.google.printed() == ["boot", "boot"])
    machine.taken.set()
    machine.end()
    assert cloud.google.result()["reason"] == "preempted"
    assert json.loads(cloud.google.objects[f"{FOLDER}/host-0.json"])["boots"] == 2


def test_a_host_with_a_result_does_not_run_again(cloud: Cloud) -> None:
    cloud.google.refuse["compute"] = 403
    machine = one(cloud, ["bash", "-c", "echo once; exit 7"])
    machine.run()
    before = cloud.google.result()
    del cloud.google.refuse["compute"]
    machine.run()
    assert cloud.google.printed() == ["once"]
    assert cloud.google.result() == before
    assert cloud.google.deleted == ["DELETE /compute/instances/train"]
