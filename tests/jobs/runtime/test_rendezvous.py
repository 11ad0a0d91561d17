"""One contract of nodes and tasks out of what each backend sets, and real processes that meet by it."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accel.contract import variables
from jobs.runtime import Rendezvous, Task, rendezvous, task
from jobs.runtime.nodes import first_process

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = {"cluster": {"workerpool0": ["m-0:2222"], "workerpool1": ["w-0:2222", "w-1:2222"]}}


def told(kind: str, index: int, main: str | None, **more: str) -> dict[str, str]:
    """What the contract says a backend of a kind sets on a node of three."""
    names = variables.NODE_VARIABLES[kind]
    found = {variables.NODE_COUNT: "3", **names, names[variables.NODE_INDEX_FROM]: str(index), **more}
    return found if main is None else {**found, names[variables.MAIN_ADDRESS_FROM]: main}


CASES: list[tuple[str, dict[str, str], Rendezvous]] = [
    ("alone", {}, Rendezvous(0, 1, "127.0.0.1", hosts=("127.0.0.1",))),
    ("aws-batch, main", told("aws-batch", 0, None), Rendezvous(0, 3, "127.0.0.1")),
    ("aws-batch, another", told("aws-batch", 2, "10.0.0.4"), Rendezvous(2, 3, "10.0.0.4")),
    (
        "gke",
        told("gke", 1, "run-a-0.run-a", MASTER_PORT="29500"),
        Rendezvous(1, 3, "run-a-0.run-a", hosts=("run-a-0.run-a", "run-a-1.run-a", "run-a-2.run-a")),
    ),
    (
        "gke, a JobSet",
        told("gke", 2, "run-node-0-0.run"),
        Rendezvous(2, 3, "run-node-0-0.run", hosts=("run-node-0-0.run", "run-node-0-1.run", "run-node-0-2.run")),
    ),
    (
        "gke, a TPU slice",
        told("gke", 1, "a.x", TPU_WORKER_HOSTNAMES="a.x,b.x,c.x", TPU_WORKER_ID="1"),
        Rendezvous(1, 3, "a.x", hosts=("a.x", "b.x", "c.x")),
    ),
    (
        "gce",
        told("gce", 1, "10.1.0.2", MASTER_PORT="29500", JAX_COORDINATOR_ADDRESS="10.1.0.2:8482"),
        Rendezvous(1, 3, "10.1.0.2", coordinator="10.1.0.2:8482"),
    ),
    ("google-batch", told("google-batch", 1, "vm-a"), Rendezvous(1, 3, "vm-a")),
    ("vertex", told("vertex", 2, "m-0", CLUSTER_SPEC=json.dumps(CLUSTER)), Rendezvous(2, 3, "m-0")),
    (
        "vertex, under torchrun",
        told("vertex", 5, "m-0", TORCHELASTIC_RUN_ID="x", GROUP_RANK="1"),
        Rendezvous(1, 3, "m-0"),
    ),
    (
        "aws-batch, not ours",
        {"AWS_BATCH_JOB_NUM_NODES": "2", "AWS_BATCH_JOB_NODE_INDEX": "1", "AWS_BATCH_JOB_MAIN_NODE_INDEX": "0",
         "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS": "10.0.0.4"},
        Rendezvous(1, 2, "10.0.0.4"),
    ),
    (
        "vertex, not ours",
        {"CLUSTER_SPEC": json.dumps({**CLUSTER, "task": {"type": "workerpool1", "index": 1}})},
        Rendezvous(2, 3, "m-0", hosts=("m-0", "w-0", "w-1")),
    ),
    (
        "a TPU slice, not ours",
        {"TPU_WORKER_HOSTNAMES": "a,b", "TPU_WORKER_ID": "1"},
        Rendezvous(1, 2, "a", hosts=("a", "b")),
    ),
    (
        "several slices, not ours",
        {"TPU_WORKER_HOSTNAMES": "c,d", "TPU_WORKER_ID": "1", "MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": "1",
         "MEGASCALE_COORDINATOR_ADDRESS": "a:8080"},
        Rendezvous(3, 4, "a"),
    ),
]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = ("ACCEL_", "AWS_BATCH", "BATCH_", "TPU_", "MEGASCALE", "MASTER_", "PET_", "JAX_", "TORCH", "CLUSTER_")
    for name in [name for name in os.environ if name.startswith(heads) or name in ("RANK", "GROUP_RANK")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("env, wanted", [(env, wanted) for _, env, wanted in CASES], ids=[name for name, *_ in CASES])
def test_each_platform(env: dict[str, str], wanted: Rendezvous, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert rendezvous() == wanted
    jax: dict[str, Any] = rendezvous().jax()
    assert (jax["process_id"], jax["num_processes"]) == (wanted.rank, wanted.nodes)
    assert jax["coordinator_address"] in (wanted.coordinator, f"{wanted.address}:29500")
    torch = rendezvous().torchrun_env(8)
    assert torch["PET_RDZV_ENDPOINT"] == f"{wanted.address}:29500" and torch["PET_NNODES"] == str(wanted.nodes)
    assert (torch["PET_RDZV_CONF"] == "is_host=1") == (wanted.rank == 0) and torch["PET_NPROC_PER_NODE"] == "8"
    if wanted.hosts:
        config = json.loads(rendezvous().tf_config())
        assert config["task"] == {"type": "worker", "index": wanted.rank}
        assert config["cluster"]["worker"] == [f"{host}:29500" for host in wanted.hosts]
    else:
        with pytest.raises(ValueError, match="the main node's address alone"):
            rendezvous().tf_config()


def test_every_kind_of_the_contract_is_among_them() -> None:
    # A TPU VM's agent sets what that of a GPU VM does.
    assert {name.partition(",")[0] for name, *_ in CASES} | {"tpu-vm"} >= set(variables.NODE_VARIABLES)


def test_hosts_of_google_batch_are_read_from_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("vm-a x\nvm-b\n\nvm-c\n")
    for name, value in told("google-batch", 1, "vm-a", BATCH_JOB_UID="u", BATCH_HOSTS_FILE=f"{tmp_path}/hosts").items():
        monkeypatch.setenv(name, value)
    assert rendezvous().hosts == ("vm-a", "vm-b", "vm-c")


@pytest.mark.parametrize(
    "env, words",
    [
        ({"ACCEL_NODE_COUNT": "2"}, "ACCEL_NODE_INDEX: is missing"),
        ({"ACCEL_NODE_COUNT": "2", "ACCEL_NODE_INDEX": "1"}, "MASTER_ADDR: is missing; it names the main node"),
        ({"ACCEL_NODE_COUNT": "2", "ACCEL_NODE_INDEX": "5", "MASTER_ADDR": "a"}, "node 5 of 2 nodes: no such node"),
        ({"ACCEL_NODE_COUNT": "two"}, "ACCEL_NODE_COUNT: must be a whole number, is 'two'"),
        ({"CLUSTER_SPEC": "{"}, "CLUSTER_SPEC: does not tell of this node: {"),
        ({"MASTER_PORT": "x"}, "MASTER_PORT: must be a whole number, is 'x'"),
    ],
)
def test_a_variable_that_is_wrong_is_named(env: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError) as raised:
        rendezvous()
    assert str(raised.value).startswith(words)


@pytest.mark.parametrize("kind", sorted(variables.INDEX_VARIABLE))
def test_the_task_of_each_platform(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert task() == Task(0, 1)
    monkeypatch.setenv(variables.TASK_COUNT, "4")
    monkeypatch.setenv(variables.INDEX_FROM, variables.INDEX_VARIABLE[kind])
    monkeypatch.setenv(variables.INDEX_VARIABLE[kind], "3")
    assert task() == Task(3, 4)
    monkeypatch.setenv(variables.INDEX_VARIABLE[kind], "4")
    with pytest.raises(ValueError, match=f"{variables.INDEX_VARIABLE[kind]}: must be a whole number from 0 to 3, is 4"):
        task()
    monkeypatch.delenv(variables.INDEX_VARIABLE[kind])
    with pytest.raises(ValueError, match="is missing"):
        task()


def test_an_array_that_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BATCH_JOB_ARRAY_INDEX", "7")
    monkeypatch.setenv("AWS_BATCH_JOB_ARRAY_SIZE", "8")
    assert task() == Task(7, 8)


def test_the_first_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert first_process()
    monkeypatch.setenv("RANK", "1")
    assert not first_process()


def free_ports() -> int:
    """The first of two that are free."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as one:
            port = one.getsockname()[1]
            try:
                with socket.create_server(("", port + 1)):
                    return port
            except OSError:
                continue


def several(code: str, count: int, **env: str) -> list[str]:
    """What so many nodes of one job print, each a process of this machine."""
    port = free_ports()
    base = {"PATH": os.environ["PATH"], "ACCEL_NODE_COUNT": str(count), "MASTER_PORT": str(port), **env}
    nodes = [
        subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom jobs import runtime\n{code}"],
            env={**base, "ACCEL_NODE_INDEX": str(rank), "MASTER_ADDR": "127.0.0.1"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(count)
    ]  # fmt: skip
    answers = [node.communicate(timeout=240) for node in nodes]
    assert [node.returncode for node in nodes] == [0] * count, answers
    return [out for out, _ in answers]


def test_nodes_that_know_the_main_one_alone_meet() -> None:
    found = several("print(runtime.rendezvous().meet(200).tf_config())", 3)
    configs = [json.loads(text) for text in found]
    assert [config["task"]["index"] for config in configs] == [0, 1, 2]
    assert {json.dumps(config["cluster"]) for config in configs} == {json.dumps(configs[0]["cluster"])}
    assert [worker.partition(":")[0] for worker in configs[0]["cluster"]["worker"]] == ["127.0.0.1"] * 3


def test_a_node_that_does_not_come_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TimeoutError, match="the nodes of the job do not meet: 1 of 2 nodes have come"):
        Rendezvous(0, 2, "127.0.0.1", free_ports()).meet(0.2)
    with pytest.raises(TimeoutError, match=r"node 0 does not answer at 127\.0\.0\.1:"):
        Rendezvous(1, 2, "127.0.0.1", free_ports()).meet(0.2)


@pytest.mark.slow
def test_two_processes_of_jax_start_by_it_and_agree_to_stop() -> None:
    code = """
import jax
jax.distributed.initialize(**runtime.rendezvous().jax())
if jax.process_index() == 1:
    runtime.ask_to_stop("of its own")
runtime.watch()
print("processes", jax.process_count(), runtime.should_stop(), runtime.hooks.should_stop_jax())
"""
    found = several(code, 2, JAX_PLATFORMS="cpu", JAX_CPU_COLLECTIVES_IMPLEMENTATION="gloo")
    assert [out.splitlines()[-1] for out in found] == ["processes 2 False True", "processes 2 True True"]
