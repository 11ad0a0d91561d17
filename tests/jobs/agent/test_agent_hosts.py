"""The agent on hosts that belong together, and in containers; and how it is shipped."""

import ast
import sys
from pathlib import Path

import pytest

from jobs import agent
from jobs.agent.program.hosts import peer_reason
from jobs.agent.program.lines import GOES_ON, LINE_MAX, Splitter
from tests.jobs.agent.machines import Cloud, one, python, tools
from tests.support.soak import sampled
from tests.support.waiting import until

PROGRAM = Path(agent.__file__).parent / "program"


def test_three_hosts_meet(cloud: Cloud) -> None:
    text = "import os; print({k: v for k, v in os.environ.items() if k[:4] in ('ACCE', 'MAST', 'PET_', 'JAX_')})"
    machines = cloud.machines(python(text), hosts=3, gpus=0)
    for machine in machines:
        machine.boot()
    for machine in machines:
        machine.end()
    for index in range(3):
        (line,) = cloud.google.printed(index)
        assert ast.literal_eval(line) == {
            "ACCEL_NODE_COUNT": "3",
            "ACCEL_NODE_INDEX": str(index),
            "ACCEL_NODE_INDEX_FROM": "ACCEL_NODE_INDEX",
            "ACCEL_MAIN_ADDRESS_FROM": "MASTER_ADDR",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500",
            "JAX_COORDINATOR_ADDRESS": "127.0.0.1:8482",
            "JAX_NUM_PROCESSES": "3",
            "JAX_PROCESS_ID": str(index),
            "PET_NNODES": "3",
            "PET_NODE_RANK": str(index),
            "PET_NPROC_PER_NODE": "1",
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": "127.0.0.1:29500",
            "PET_RDZV_ID": "train-000000000000",
        }
    assert cloud.google.deleted == ["DELETE /compute/instances/train"]


def test_a_host_that_does_not_come_is_named(cloud: Cloud) -> None:
    machines = cloud.machines(["echo", "never"], hosts=2, meet_wait_s=1)
    machines[0].run()
    assert cloud.google.result()["reason"] == "not-met: after 1 s without host 1"
    assert cloud.google.deleted


@pytest.mark.parametrize("ending", sampled(["fails", "is taken away"], ["fails"]))
def test_a_host_that_ends_badly_ends_them_all(cloud: Cloud, ending: str) -> None:
    text = (
        "import os, sys, time\nif os.environ['ACCEL_NODE_INDEX'] == '2': sys.exit(3)\ntime.sleep(1000)"
        if ending == "fails"
        else "import time; print('up'); time.sleep(1000)"
    )
    machines = cloud.machines(python(text), hosts=3)
    for machine in machines:
        machine.boot()
    if ending != "fails":
        until(lambda: all(cloud.google.printed(index) == ["up"] for index in range(3)))
        machines[2].taken.set()
    for machine in machines:
        machine.end()
    reasons = [cloud.google.result(index)["reason"] for index in range(3)]
    if ending == "fails":
        assert reasons == ["stopped: host 2 ended: exit code 3"] * 2 + ["exited"]
        assert [cloud.google.result(index)["exit_code"] for index in range(3)] == [None, None, 3]
    else:
        assert reasons == ["preempted"] * 3
    assert cloud.google.deleted


def test_a_host_that_is_taken_away_fails_no_other() -> None:
    assert peer_reason({"host": 2, "reason": "preempted", "exit_code": None}) == "preempted"
    assert peer_reason({"host": 2, "reason": "exited", "exit_code": 3}) == "stopped: host 2 ended: exit code 3"


def test_hosts_of_tpu_slices_know_their_places(cloud: Cloud) -> None:
    text = (
        "import os; print({k: v for k, v in os.environ.items() if k[:4] in ('TPU_', 'PJRT', 'MEGA') or 'NODE_I' in k})"
    )
    attributes = [
        {
            "agent-worker-number": str(worker),
            "tpu-env": f"MEGASCALE_SLICE_ID: '{part}'\nMEGASCALE_COORDINATOR_ADDRESS: '10.0.0.9'\n",
        }
        for part in (0, 1)
        for worker in (0, 1)
    ]
    more = {"kind": "tpu-vm", "hosts": 4, "slices": 2, "hosts_per_slice": 2, "attributes": attributes}
    machines = cloud.machines(python(text), **more)
    for machine in reversed(machines):
        machine.boot()
    for machine in machines:
        machine.end()
    (line,) = cloud.google.printed(3)
    assert ast.literal_eval(line) == {
        "ACCEL_NODE_INDEX": "3",
        "ACCEL_NODE_INDEX_FROM": "ACCEL_NODE_INDEX",
        "PJRT_DEVICE": "TPU",
        "TPU_WORKER_ID": "1",
        "TPU_WORKER_HOSTNAMES": "127.0.0.3,127.0.0.4",
        "MEGASCALE_COORDINATOR_ADDRESS": "10.0.0.9",
        "MEGASCALE_NUM_SLICES": "2",
        "MEGASCALE_SLICE_ID": "1",
    }


DOCKER = """#!/bin/bash
echo "$@" >>"$(dirname "$0")/calls"
case "$1" in
  login) cat >"$(dirname "$0")/token" ;;
  pull) [ "${@: -1}" != no/such ] || { echo "pull access denied for no/such" >&2; exit 1; } ;;
  run) echo "the secret has ${#HF} letters"; exit "${CODE:-0}" ;;
esac
"""


def test_an_image_is_run_by_docker(cloud: Cloud, tmp_path: Path) -> None:
    version = "projects/acme/secrets/hf/versions/1"
    cloud.google.secrets[version] = "hf_0123456789"
    image = "europe-docker.pkg.dev/acme/train/main:1"
    machine = one(
        cloud, ["train", "--fast"], image=image, env={"A": "b c"}, secrets={"HF": version}, gpus=1, shm_mib=64
    )
    made = tools(tmp_path, docker=DOCKER, **{"nvidia-smi": '#!/bin/sh\necho "GPU 0: NVIDIA L4 (UUID: GPU-1)"\n'})
    machine.path = str(made)
    machine.run()
    assert cloud.google.printed() == ["the secret has 13 letters"]
    assert (made / "token").read_text() == "t0k3n"
    login, pull, remove, run = (made / "calls").read_text().splitlines()
    assert login == "login --username oauth2accesstoken --password-stdin https://europe-docker.pkg.dev"
    assert (pull, remove) == (f"pull --quiet {image}", "rm --force train-000000000000-0")
    assert run == (
        "run --rm --name train-000000000000-0 --network host --stop-timeout 30 --gpus all --shm-size 64m "
        f"--env A=b c --env HF {image} train --fast"
    )


def test_an_image_that_cannot_be_pulled_is_named(cloud: Cloud, tmp_path: Path) -> None:
    machine = one(cloud, ["train"], image="no/such")
    machine.path = str(tools(tmp_path, docker=DOCKER))
    machine.boot()
    until(lambda: "pulls no/such" in machine.serial)
    machine.taken.set()  # while it pulls again and again
    machine.end()
    assert cloud.google.result()["reason"] == "preempted"


def test_bytes_are_cut_at_characters() -> None:
    for shift in range(4):
        found: list[str] = []
        splitter = Splitter(found.append)
        data = b"a" * shift + ("€" * LINE_MAX).encode()
        for start in range(0, len(data), 65_536):
            splitter.feed(data[start : start + 65_536])
        splitter.end()
        assert "".join(each.removesuffix(GOES_ON) for each in found) == data.decode()
        assert all(len(each.encode()) <= LINE_MAX + len(GOES_ON) for each in found)


def test_every_machine_has_the_python_for_it() -> None:
    newer = {"removeprefix", "removesuffix", "UTC", "to_thread", "randbytes"}
    for path in PROGRAM.glob("*.py"):
        tree = ast.parse(path.read_text(), feature_version=(3, 8))
        used = {each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
        assert not used & newer, path
        own = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom) and not each.level]
        imported = {str(each.module).partition(".")[0] for each in own}
        imported |= {name.name for each in ast.walk(tree) if isinstance(each, ast.Import) for name in each.names}
        assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names, path


def test_the_metadata_has_room_for_it() -> None:
    found = agent.metadata()
    assert set(found) == {"startup-script", "accel-agent"}
    assert all(len(value.encode()) <= 256 * 1024 // 2 for value in found.values())
