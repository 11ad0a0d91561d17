"""Custom jobs of the sandbox's Vertex AI that really run: variables, logs, failures, restarts."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from sandbox.environment import project
from tests.support.google_fake import Fake
from tests.support.google_vertex import API, JOBS, get, job, key, local, logs, pool, preempt, printed, reach, slow
from tests.support.soak import soak_only
from tests.support.waiting import announced, until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_vertex"]
SHOW = "import json, os; print(json.dumps(dict(os.environ)))"
SLEEP = "import time; print('up', flush=True); time.sleep(600)"


def run(fake: Fake, *pools: Any, **spec: Any) -> Any:
    return slow(fake, "POST", JOBS, job(*pools, **spec))


def variables(fake: Fake, item: Any, task: str = "workerpool0-0") -> Any:
    return json.loads(until(lambda: printed(fake, item, task))[0])


def test_a_replica_runs_and_logs(vertex: Fake) -> None:
    env = [{"name": "ONE", "value": "1"}, {"name": "TWO", "value": "$(ONE)/$(CLOUD_ML_REGION)/$$(ONE)/$(NONE)"},
           {"name": "THREE", "value": "$$(date +%s) $$$(ONE) $HOME $$HOME $(date +%s) $$"}]  # fmt: skip
    shown = pool(containerSpec={
        "imageUri": "local/examples", "command": ["python", "-c"], "args": [f"{SHOW}; print('x', 2)"], "env": env,
    })  # fmt: skip
    made = run(vertex, shown)
    ended = reach(vertex, made, "SUCCEEDED")
    found, number = variables(vertex, made), made["name"].rpartition("/")[2]
    assert (found["ONE"], found["TWO"]) == ("1", "1/us-central1/$(ONE)/$(NONE)")
    assert found["THREE"] == "$(date +%s) $1 $HOME $HOME $(date +%s) $", "as Kubernetes puts them in"
    assert (found["CLOUD_ML_JOB_ID"], found["CLOUD_ML_PROJECT_ID"]) == (number, "210020003000")
    assert found["ACCEL_STORAGE_ROOT"].startswith(vertex.url) and "AIP_MODEL_DIR" not in found
    assert not found.keys() & {"TF_CONFIG", "RANK", "MASTER_ADDR"}, "those are of distributed jobs"
    spec = json.loads(found["CLUSTER_SPEC"])
    assert (spec["task"], spec["environment"]) == ({"type": "workerpool0", "index": 0}, "cloud")
    *_, last = logs(vertex, made)
    assert last["jsonPayload"]["message"] == "x 2" and last["severity"] == "INFO"
    assert last["logName"] == "projects/accel-sandbox/logs/workerpool0-0"
    assert last["labels"]["ml.googleapis.com/job_id"] == number
    labels = {"job_id": number, "task_name": "workerpool0-0", "project_id": "accel-sandbox"}
    assert last["resource"] == {"type": "ml_job", "labels": labels}
    assert ended["startTime"] <= last["timestamp"]


def test_pools_find_each_other(vertex: Fake, tmp_path: Path) -> None:
    """The workers speak with the first; the job ends with it, and they with the job."""
    seen = tmp_path / "seen"
    head = f"""if True:
        import os, socket, time
        server = socket.create_server((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
        print(sorted(server.accept()[0].makefile().readline().strip() for _ in range(2)))
        while not os.path.exists({str(seen)!r}):
            time.sleep(0.05)
    """
    worker = """if True:
        import os, socket, time, json
        print(json.dumps(dict(os.environ)), flush=True)
        while True:
            try:
                peer = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
                break
            except OSError:
                time.sleep(0.05)
        peer.sendall(f"{os.environ['RANK']} of {os.environ['WORLD_SIZE']}\\n".encode())
        time.sleep(600)
    """
    made = run(vertex, local(head), local(worker, replicas=2), {}, local(SHOW))
    evaluator = variables(vertex, made, "workerpool3-0")
    seen.touch()  # the job's end would be the end of an evaluator that has not printed yet
    reach(vertex, made, "SUCCEEDED")
    assert printed(vertex, made) == ["['1 of 3', '2 of 3']"]
    second = variables(vertex, made, "workerpool1-1")
    config, spec = json.loads(second["TF_CONFIG"]), json.loads(second["CLUSTER_SPEC"])
    assert {name: len(rows) for name, rows in spec["cluster"].items()} == {
        "workerpool0": 1, "workerpool1": 2, "workerpool3": 1,
    }  # fmt: skip
    assert spec["task"] == {"type": "workerpool1", "index": 1}
    assert config["cluster"].keys() == {"chief", "worker"} and config["task"]["type"] == "worker"
    addresses = [address for rows in spec["cluster"].values() for address in rows]
    assert len(set(addresses)) == 4 and all(address.startswith("127.0.0.1:") for address in addresses)
    assert json.loads(evaluator["TF_CONFIG"])["task"]["type"] == "evaluator" and "RANK" not in evaluator


def test_output_folders(vertex: Fake) -> None:
    body = {"name": "vertex-output", "location": "us-central1"}
    vertex.ask("POST", "storage.googleapis.com/storage/v1/b", body, project="accel-sandbox")
    made = run(vertex, local(SHOW), baseOutputDirectory={"outputUriPrefix": "gs://vertex-output/jobs/a"})
    found = variables(vertex, made)
    for name, folder in (("MODEL", "model"), ("CHECKPOINT", "checkpoints"), ("TENSORBOARD_LOG", "logs")):
        assert found[f"AIP_{name}_DIR"] == f"gs://vertex-output/jobs/a/{folder}/"


def test_a_python_package_runs_its_module(vertex: Fake) -> None:
    package = {"executorImageUri": "local/examples", "packageUris": ["gs://b/x.tar.gz"], "pythonModule": "calendar"}
    made = run(vertex, {**pool(), "containerSpec": None, "pythonPackageSpec": {**package, "args": ["2026", "1"]}})
    reach(vertex, made, "SUCCEEDED")
    assert printed(vertex, made)[0].strip() == "January 2026"


def test_a_replica_that_fails(vertex: Fake) -> None:
    made = run(vertex, local(SLEEP), local("import sys; print('oops'); sys.exit(7)"))
    error = reach(vertex, made, "FAILED")["error"]
    number = made["name"].rpartition("/")[2]
    assert error["code"] == 3 and error["message"] == (
        "The replica workerpool1-0 exited with a non-zero status of 7. To find out more about why your job exited"
        " please check the logs: https://console.cloud.google.com/logs/viewer?project=210020003000&resource=ml_job%2Fjob_id%2F"
        f"{number}&advancedFilter=resource.type%3D%22ml_job%22%0Aresource.labels.job_id%3D%22{number}%22"
    )
    assert printed(vertex, made, "workerpool1-0") == ["oops"]
    assert error["message"] in logs(vertex, made, "service")[-2]["textPayload"]


@pytest.mark.parametrize(
    "image, command, why",
    [
        ("local/nowhere", ["true"], "failed to pull and unpack image"),
        ("local/examples", [], "no command specified"),
        ("local/examples", ["no-such-command"], "No such file or directory"),
    ],
)
def test_a_container_that_does_not_start(vertex: Fake, image: str, command: list[str], why: str) -> None:
    made = run(vertex, pool(*command, image=image))
    said = reach(vertex, made, "FAILED")["error"]["message"]
    assert "exited with a non-zero status of 128. Termination reason: StartError. \n Termination log" in said
    assert why in said


@pytest.mark.parametrize("retried", [True, False])
def test_some_exit_codes_are_tried_again(vertex: Fake, retried: bool) -> None:
    code = "import os; print('try', flush=True); os.abort()"
    made = run(vertex, local(code), scheduling={} if retried else {"disableRetries": True})
    assert "non-zero status of 134" in reach(vertex, made, "FAILED")["error"]["message"]
    assert printed(vertex, made) == ["try"] * (4 if retried else 1)


def test_a_job_whose_time_is_over_is_cancelled(vertex: Fake) -> None:
    made = run(vertex, local(SLEEP), scheduling={"timeout": "1s"})
    assert reach(vertex, made, "CANCELLED")["error"]["code"] == 1


def test_cancelling_ends_the_processes(vertex: Fake) -> None:
    code = "import os, signal, time; signal.signal(15, lambda *_: os._exit(print('bye', flush=True) or 0))"
    made = run(vertex, local(f"{code}; print(os.getpid(), flush=True); time.sleep(600)"))
    pid = int(until(lambda: printed(vertex, made))[0])
    vertex.call("POST", f"{API}/{made['name']}:cancel", {})
    assert get(vertex, made)["state"] in ("JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED")
    reach(vertex, made, "CANCELLED")
    assert printed(vertex, made)[1:] == ["bye"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@soak_only
def test_spot_machines_that_are_taken_away(vertex: Fake) -> None:
    spot = {"strategy": "SPOT"}
    made = run(vertex, local(SLEEP), local(SLEEP), scheduling=spot)
    started = reach(vertex, made, "RUNNING")["startTime"]

    def counts() -> list[int]:
        return [len(printed(vertex, made, task)) for task in ("workerpool0-0", "workerpool1-0")]

    for turn in range(1, 7):
        until(lambda turn=turn: counts() == [turn, turn])
        assert preempt(vertex, key(made)).ok
    until(lambda: counts() == [7, 7])
    assert get(vertex, made)["startTime"] == started
    assert preempt(vertex, key(made)).ok, "the seventh is one too many"
    assert reach(vertex, made, "FAILED")["error"]["code"] == 8


def test_what_is_not_spot_is_not_taken_away(vertex: Fake) -> None:
    made = run(vertex, local(SLEEP))
    reach(vertex, made, "RUNNING")
    assert preempt(vertex, key(made)).status_code == 400


def test_without_retries_the_first_loss_is_the_end(vertex: Fake) -> None:
    made = run(vertex, local(SLEEP), scheduling={"strategy": "SPOT", "disableRetries": True})
    reach(vertex, made, "RUNNING")
    assert preempt(vertex, key(made)).ok
    assert "Resources are insufficient" in reach(vertex, made, "FAILED")["error"]["message"]


@pytest.mark.parametrize("whole", [False, True])
def test_a_worker_that_is_restarted(vertex: Fake, whole: bool) -> None:
    made = run(vertex, local(SLEEP), local(SLEEP), scheduling={"restartJobOnWorkerRestart": whole})
    for task in ("workerpool0-0", "workerpool1-0"):
        until(lambda task=task: printed(vertex, made, task))
    assert preempt(vertex, f"{key(made)}/replicas/workerpool9-0").status_code == 404
    assert preempt(vertex, f"{key(made)}/replicas/workerpool1-0").ok
    until(lambda: len(printed(vertex, made, "workerpool1-0")) == 2)
    if whole:
        until(lambda: len(printed(vertex, made)) == 2)
    assert len(printed(vertex, made)) == (2 if whole else 1) and get(vertex, made)["state"] == "JOB_STATE_RUNNING"


def test_logs_are_late_when_they_are_told_to_be(vertex: Fake) -> None:
    vertex.fault(log_lag_s=1.5)
    made = run(vertex, local("print('late')"))
    ended = reach(vertex, made, "SUCCEEDED")
    began = time.monotonic()
    assert logs(vertex, ended) == [] or time.monotonic() > began + 1
    assert until(lambda: printed(vertex, ended)) == ["late"]


def test_a_job_goes_on_without_being_asked_for(vertex: Fake) -> None:
    """A worker that has no end of its own ends with the job, though nobody asks how it is."""
    made = run(
        vertex,
        local("import time; time.sleep(1)"),
        local("import os, time; print(os.getpid(), flush=True); time.sleep(600)"),
    )
    pid = int(until(lambda: printed(vertex, made, "workerpool1-0"))[0])
    until(lambda: not psutil.pid_exists(pid))
    reach(vertex, made, "SUCCEEDED")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_the_sandbox(tmp_path: Path, number: signal.Signals) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "sandbox.google", "--home", str(tmp_path), "--all-services"], cwd=project()
    )
    own = Fake(tmp_path, announced(tmp_path / "google.json", server)["url"], (tmp_path / "key").read_text())
    made = run(own, local(f"import os; print(os.getpid()); {SLEEP}"))
    pid = int(until(lambda: printed(own, made))[0])
    server.send_signal(number)
    server.wait(120)
    until(lambda: not psutil.pid_exists(pid))


def test_many_lines_come_once_and_in_order(vertex: Fake) -> None:
    made = run(vertex, local("for n in range(5000): print(n)"))
    reach(vertex, made, "SUCCEEDED")
    number, seen, token = made["name"].rpartition("/")[2], list[str](), ""
    text = f'resource.labels.job_id="{number}" AND resource.labels.task_name="workerpool0-0"'
    while True:
        body = {"resourceNames": ["projects/accel-sandbox"], "filter": text, "pageSize": 700, "pageToken": token}
        page = vertex.call("POST", "logging.googleapis.com/v2/entries:list", body)
        seen += [each["jsonPayload"]["message"] for each in page["entries"]]
        if not (token := page.get("nextPageToken", "")):
            break
    assert seen == [str(n) for n in range(5000)]
