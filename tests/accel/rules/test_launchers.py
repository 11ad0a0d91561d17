"""Launchers against the nodes and GPUs of a job: what hangs, what idles, and what is as it should be."""

from typing import Any

import pytest

from accel.rules.jobs.launchers import Shape, check

RUN = ["torchrun", "--nnodes=2", "--nproc-per-node=4", "train.py"]


def rules(command: list[str], nodes: int = 2, gpus: int | None = 4, **env: str) -> list[str]:
    return [each.rule.removeprefix("launcher.") for each in check(command, env, Shape(nodes, gpus))]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (RUN, []),
        (["torchrun", "train.py", "--nnodes=7", "--node-rank=0"], []),  # the program's own
        (["torchrun", "--nnodes", "1:4", "--nproc_per_node", "gpu", "-m", "train", "--nnodes", "9"], []),
        (["python", "-m", "torch.distributed.run", "--nnodes=2", "--max-restarts", "3", "train.py"], []),
        (["torchrun", "--nnodes=3", "train.py"], ["nodes"]),
        (["torchrun", "--nnodes=3:8", "train.py"], ["nodes"]),
        (["/opt/conda/bin/torchrun", "--nproc_per_node", "8", "train.py"], ["processes"]),
        (["torchrun", "--nproc-per-node=2", "train.py"], ["idle-gpus"]),
        (["python3.11", "-u"], []),
        (["python3", "-m", "torch.distributed.launch", "--nnodes", "4", "train.py"], ["nodes"]),
        (["torchrun", "--node_rank=0", "train.py"], ["rank"]),
        (["torchrun", "--standalone", "--nproc-per-node=4", "train.py"], ["rendezvous"]),
        (["torchrun", "--rdzv-endpoint=localhost:29500", "train.py"], ["rendezvous"]),
        (["torchrun", "--rdzv-endpoint", "10.0.0.4:29500", "--rdzv-backend", "c10d", "train.py"], ["rendezvous"]),
        (["accelerate", "launch", "--multi_gpu", "--num_machines", "2", "--num_processes", "8", "train.py"], []),
        (["accelerate", "launch", "--num_processes", "16", "train.py"], ["processes"]),
        (["accelerate", "launch", "--num_processes", "7", "train.py"], ["nodes"]),
        (["accelerate", "launch", "--num_machines", "1", "train.py"], ["nodes"]),
        (["accelerate", "launch", "--same_network", "--num_machines", "4", "train.py"], ["nodes"]),
        # What a shell reads.
        (["bash", "-c", "pip install . && exec torchrun --nnodes=2 --node-rank=$RANK train.py"], []),
        (["bash", "-lc", "cd /app; torchrun --nnodes 3 train.py"], ["nodes"]),
        (["sh", "-c", "set -e\ntorchrun \\\n  --nproc-per-node=8 \\\n  train.py\n"], ["processes"]),
        (["bash", "-c", "torchrun --rdzv-endpoint=$MASTER_ADDR:$MASTER_PORT train.py"], []),
        (["bash", "-c", "echo 'torchrun --nnodes=9"], []),  # a quote that never ends is no word
        # What no shell reads.
        (["torchrun", "--rdzv-endpoint=$MASTER_ADDR:29500", "train.py"], ["unexpanded"]),
        (["torchrun", "--master-addr", "$(MASTER_ADDR)", "train.py"], ["unexpanded"]),
        (["bash", "-c", "torchrun --master-addr $(MASTER_ADDR) train.py"], ["unexpanded"]),
        (["python", "train.py", "--host", "$(PET_RDZV_ENDPOINT)"], ["unexpanded"]),
        (["bash", "-c", "echo $(hostname) $(date +%s)"], []),
        (["make", "train", "FLAGS=$(CFLAGS)"], []),
    ],
)
def test_commands(command: list[str], expected: list[str]) -> None:
    assert list(dict.fromkeys(rules(command))) == expected


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"PET_NNODES": "2", "PET_NPROC_PER_NODE": "4"}, []),
        ({"PET_NNODES": "4"}, ["nodes"]),
        ({"PET_NPROC_PER_NODE": "8"}, ["processes"]),
        ({"MASTER_ADDR": "127.0.0.1"}, ["rendezvous"]),
        ({"MASTER_ADDR": "node-0.cluster.local"}, ["rendezvous"]),
        ({"MASTER_PORT": "23456"}, []),
        ({"WORLD_SIZE": "8"}, []),
        ({"WORLD_SIZE": "16"}, ["nodes"]),
        ({"RANK": "0"}, ["rank"]),
        ({"PET_NODE_RANK": "1"}, ["rank"]),
        ({"PET_RDZV_ENDPOINT": "localhost:29400"}, ["rendezvous"]),
        ({"EPOCHS": "3"}, []),
    ],
)
def test_variables(env: dict[str, str], expected: list[str]) -> None:
    assert rules(["python", "train.py"], **env) == expected


def test_a_job_of_one_node_may_say_where_it_is() -> None:
    alone: dict[str, Any] = {"nodes": 1}
    assert rules(["torchrun", "--standalone", "--nproc-per-node=4", "train.py"], **alone) == []
    assert rules(["python", "train.py"], **alone, MASTER_ADDR="127.0.0.1", RANK="0", WORLD_SIZE="1") == []
    assert rules(["torchrun", "--nnodes=2", "train.py"], **alone) == ["nodes"]
    assert rules(["python", "train.py"], **alone, PET_NNODES="2") == ["nodes"]


def test_without_known_gpus_processes_are_not_judged() -> None:
    assert rules(["torchrun", "--nproc-per-node=8", "train.py"], gpus=None) == []


def test_a_variable_of_the_jobs_own_is_not_expanded_either() -> None:
    assert rules(["python", "train.py", "--run", "$(RUN_NAME)"], RUN_NAME="a") == ["unexpanded"]
    assert rules(["python", "train.py", "--run", "$(RUN_NAME)"]) == []
