"""What the machines of a job find out about each other, in the shells that images have."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from jobs.backends.vertex import nodes
from tests.jobs.backends.vertex_jobs import make_request

SHELLS = [
    pytest.param(words, id=words[-1], marks=pytest.mark.skipif(not shutil.which(words[0]), reason="is not here"))
    for words in (["/bin/sh"], ["dash"], ["bash", "--posix"], ["busybox", "sh"])
]
SHOWN = (
    "$RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT $PET_NODE_RANK $PET_RDZV_ENDPOINT $PET_RDZV_CONF $JAX_PROCESS_ID "
    "$JAX_COORDINATOR_ADDRESS ${accel_main-none}"
)
SHOW = ["/bin/sh", "-c", f'echo "{SHOWN}" "$1"', "show", "it's $(here) $$"]


def spec(pool: str, index: int, **more: Any) -> dict[str, Any]:
    """As Google's page shows it, for one machine and three workers."""
    return {
        "cluster": {
            "workerpool0": ["cmle-training-workerpool0-ab-0:2222"],
            "workerpool1": [f"cmle-training-workerpool1-ab-{i}:2222" for i in range(3)],
        },
        "environment": "cloud",
        "task": {"type": pool, "index": index, "trial": "TRIAL_ID"},
        **more,
    }


def ran(shell: list[str], text: str) -> subprocess.CompletedProcess[str]:
    command = nodes.command(SHOW, "29500")
    assert command[0] == "/bin/sh"
    env = {"CLUSTER_SPEC": text, "ACCEL_NODE_COUNT": "4", "PATH": "/usr/bin:/bin"}
    return subprocess.run([*shell, *command[1:]], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("pool, index, rank", [("workerpool0", 0, 0), ("workerpool1", 0, 1), ("workerpool1", 12, 13)])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_node_knows_its_rank_and_the_first_machine(
    shell: list[str], pool: str, index: int, rank: int, separators: tuple[str, str]
) -> None:
    told = spec(pool, index, job={"jobArgs": ['"task":', "it's", "$HOME"], "pythonModule": ""})
    shapes = [told, dict(reversed(told.items())), {**told, "job": json.dumps(told["job"])}]
    main = "cmle-training-workerpool0-ab-0"
    for shape in shapes:
        done = ran(shell, json.dumps(shape, separators=separators))
        assert done.returncode == 0, done.stderr
        first = "1" if rank == 0 else "0"
        assert done.stdout == (
            f"{rank} 4 {main} 29500 {rank} {main}:29500 is_host={first} {rank} {main}:1234 none it's $(here) $$\n"
        )


@pytest.mark.parametrize("shell", SHELLS)
def test_a_spec_without_the_nodes_task_ends_the_job(shell: list[str]) -> None:
    for text in ("", "{}", json.dumps({"cluster": spec("workerpool0", 0)["cluster"]})):
        done = ran(shell, text)
        assert done.returncode == 1 and "CLUSTER_SPEC does not tell" in done.stderr and done.stdout == ""


def test_the_first_two_pools_are_told_and_the_others_are_not() -> None:
    fields: dict[str, Any] = {"evaluators": {"args": ["--eval"]}, "parameter_servers": {}}
    chief, workers, servers, evaluators = make_request(nodes=3, vertex=fields).body["customJob"]["jobSpec"][
        "workerPoolSpecs"
    ]
    told = [{each["name"]: each["value"] for each in pool["containerSpec"]["env"]} for pool in (chief, workers)]
    assert told[0] == told[1]
    assert told[0]["ACCEL_NODE_COUNT"] == told[0]["PET_NNODES"] == "3"
    assert (told[0]["ACCEL_NODE_INDEX_FROM"], told[0]["ACCEL_MAIN_ADDRESS_FROM"]) == ("RANK", "MASTER_ADDR")
    assert chief["containerSpec"]["command"][:2] == ["/bin/sh", "-c"]
    assert servers["containerSpec"]["command"] == ["python3", "train.py"]
    assert "command" not in evaluators["containerSpec"]
    for pool in (servers, evaluators):
        assert not [each for each in pool["containerSpec"]["env"] if each["name"].startswith("PET_")]


def test_an_image_with_its_own_entry_point_is_told_in_vertexs_own_variables() -> None:
    chief, _ = make_request(nodes=2, command=[]).body["customJob"]["jobSpec"]["workerPoolSpecs"]
    told = {each["name"]: each["value"] for each in chief["containerSpec"]["env"]}
    assert (told["PET_NODE_RANK"], told["PET_RDZV_ENDPOINT"]) == ("$(RANK)", "$(MASTER_ADDR):29500")
