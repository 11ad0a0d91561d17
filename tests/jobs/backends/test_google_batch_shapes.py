"""A job as the Job of Google Batch: its retries, its machine, its nodes in real shells, any job against the schema."""

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.catalog import machines
from accel.catalog.gpu_attachments import gpu_attachments
from accel.catalog.machines import machines_for
from accel.catalog.places import where
from accel.diagnostics.errors import BadInputs
from accel.rules.batch.jobs import LOST, OUT_OF_TIME
from jobs.backends.google_batch import nodes
from sandbox.google.discovery import check, document
from tests.jobs.backends.google_batch_target import IMAGE, REGION, make_request, make_target

Fields = dict[str, Any]
FINAL = sorted([OUT_OF_TIME, 126, 127])


def job_of(request: Any) -> dict[str, Any]:
    return request.body["job"]


def policy(request: Any) -> dict[str, Any]:
    return job_of(request)["allocationPolicy"]["instances"][0]["policy"]


@pytest.mark.parametrize(
    "fields, count, action, codes",
    [
        ({}, 3, "RETRY_TASK", [*LOST]),
        ({"spot": True, "retries": 0}, 3, "RETRY_TASK", [*LOST]),
        ({"lost_retries": 5}, 5, "RETRY_TASK", [*LOST]),
        ({"retries": 2}, 2, "FAIL_TASK", FINAL),
        ({"retries": 2, "lost_retries": 0}, 2, "FAIL_TASK", sorted([*FINAL, *LOST])),
        ({"retries": 2, "lost_retries": 3}, 5, "FAIL_TASK", FINAL),
        ({"lost_retries": 0}, 0, None, []),
        ({"nodes": 2}, 0, None, []),
        (
            {"lost_retries": 2, "google_batch": {"exit_codes": [{"codes": [2], "action": "fail"}]}},
            2,
            "RETRY_TASK",
            [*LOST],
        ),
        (
            {"retries": 2, "google_batch": {"exit_codes": [{"codes": [75], "action": "retry"}]}},
            2,
            "RETRY_TASK",
            [*LOST],
        ),
        (
            {"lost_retries": 2, "google_batch": {"exit_codes": [{"codes": [75], "action": "fail"}]}},
            2,
            "RETRY_TASK",
            [code for code in LOST if code != 75],
        ),
        (
            {"retries": 2, "lost_retries": 0, "google_batch": {"exit_codes": [{"codes": [75], "action": "retry"}]}},
            2,
            "RETRY_TASK",
            [75],
        ),
        (
            {"retries": 2, "google_batch": {"exit_codes": [{"codes": [2], "action": "fail"}]}},
            2,
            "FAIL_TASK",
            sorted([2, *FINAL]),
        ),
    ],
)  # fmt: skip
def test_what_is_tried_again(fields: Fields, count: int, action: str | None, codes: list[int]) -> None:
    """A task that ran out of its time never is."""
    spec = job_of(make_request(**fields))["taskGroups"][0]["taskSpec"]
    assert spec["maxRetryCount"] == count
    policies = spec.get("lifecyclePolicies", [])
    assert [(each["action"], each["actionCondition"]["exitCodes"]) for each in policies] == (
        [(action, codes)] if action else []
    )
    assert {75, 143} < set(LOST)
    for each in policies:
        assert (OUT_OF_TIME in each["actionCondition"]["exitCodes"]) == (each["action"] == "FAIL_TASK")


GPU_MACHINES = [each for each in machines("gcp") if each.whole_accelerators and each.kind == "accelerator"]
ATTACHED = [(kind, count) for kind, counts in gpu_attachments().items() for count in counts]


@pytest.mark.parametrize("each", GPU_MACHINES, ids=lambda each: each.name)
def test_every_gpu_machine_of_the_catalogue(each: Any) -> None:
    """By its name and by its GPUs; one more or less of them is refused, or is another machine's."""
    places = where("gcp", each.name)
    target = make_target(region=REGION if REGION in places or not places else next(iter(places)))
    count, block = each.whole_accelerators, {"machine_type": each.name}
    named = make_request(target, spot=True, accelerator={"type": each.accelerator, "count": count}, google_batch=block)
    assert policy(named)["machineType"] == each.name and "accelerators" not in policy(named)
    chosen = make_request(target, spot=True, accelerator={"type": each.accelerator, "count": count})
    assert policy(chosen)["machineType"] in [one.name for one in machines_for(each.accelerator, count, "gcp")]
    assert job_of(chosen)["allocationPolicy"]["instances"][0]["installGpuDrivers"] is True
    with pytest.raises(BadInputs):
        make_request(target, spot=True, accelerator={"type": each.accelerator, "count": count + 1}, google_batch=block)
    with pytest.raises(BadInputs):
        make_request(target, spot=True, accelerator={"type": each.accelerator, "count": 7})


@pytest.mark.parametrize("kind, count", ATTACHED)
def test_every_number_of_attached_gpus(kind: str, count: int) -> None:
    made = policy(make_request(accelerator={"type": kind, "count": count}))
    assert made["machineType"].startswith("n1-")
    assert made["accelerators"] == [{"type": kind, "count": count}]
    assert where("gcp", f"n1+{kind}x{count}")


@pytest.mark.parametrize(
    "fields, machine",
    [
        ({}, "e2-standard-2"),
        ({"cpus": 8}, "e2-standard-8"),
        ({"cpus": 1, "memory_mib": 20_000}, "n1-highmem-4"),
        ({"cpus": 96}, "n1-standard-96"),
        ({"accelerator": {"type": "t4"}}, "n1-standard-4"),
        ({"accelerator": {"type": "t4"}, "cpus": 8, "memory_mib": 32768}, "n1-highmem-8"),
        ({"accelerator": {"type": "l4"}, "tasks": 8, "google_batch": {"tasks_per_vm": 4}}, "g2-standard-48"),
        ({"accelerator": {"type": "l4"}, "memory_mib": 16384}, "g2-standard-8"),
        ({"google_batch": {"machine_type": "n2-custom-6-20480"}}, "n2-custom-6-20480"),
    ],
)
def test_the_smallest_machine_that_holds_the_tasks(fields: Fields, machine: str) -> None:
    assert policy(make_request(**fields))["machineType"] == machine


def told(shell: str, tmp_path: Path, hosts: list[str], **env: str) -> dict[str, str]:
    """What a command is told in a shell that has nothing but what it brings itself."""
    file = tmp_path / "hosts"
    file.write_text("\n".join(hosts))
    argv = nodes.command(["/usr/bin/env"])[1:]
    known = {"BATCH_HOSTS_FILE": str(file), "BATCH_TASK_INDEX": "7", "MASTER_PORT": "29500", "PATH": "", **env}
    done = subprocess.run([shell, *argv], env=known, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


SHELLS = [found for name in ("sh", "dash", "bash", "busybox") if (found := shutil.which(name))]


@pytest.mark.parametrize("shell", [each for each in SHELLS if not each.endswith("busybox")])
def test_a_node_finds_its_place_among_the_hosts(shell: str, tmp_path: Path) -> None:
    own = socket.gethostname().partition(".")[0]
    found = told(shell, tmp_path, ["vm-a", f"{own}.c.acme.internal", "vm-b"])
    assert (found["ACCEL_NODE_INDEX"], found["PET_NODE_RANK"], found["JAX_PROCESS_ID"]) == ("1", "1", "1")
    assert (found["MASTER_ADDR"], found["PET_RDZV_ENDPOINT"]) == ("vm-a", "vm-a:29500")
    assert found["JAX_COORDINATOR_ADDRESS"] == "vm-a:8482"
    assert not [name for name in found if name.startswith("accel_")]
    main = told(shell, tmp_path, [own, "", "vm-b slots=8"])
    assert (main["ACCEL_NODE_INDEX"], main["MASTER_ADDR"]) == ("0", own)
    nowhere = told(shell, tmp_path, ["localhost", "localhost"], MASTER_ADDR="10.0.0.9")
    assert (nowhere["ACCEL_NODE_INDEX"], nowhere["PET_RDZV_ENDPOINT"]) == ("7", "10.0.0.9:29500")
    same = told(shell, tmp_path, [own, own])
    assert same["ACCEL_NODE_INDEX"] == "7", "a name that stands there twice tells nothing"


def test_a_node_without_the_list_says_so(tmp_path: Path) -> None:
    env = {"BATCH_HOSTS_FILE": str(tmp_path / "none"), "BATCH_TASK_INDEX": "0", "PATH": os.environ["PATH"]}
    done = subprocess.run(nodes.command(["true"]), env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "the list of hosts" in done.stderr


@pytest.mark.parametrize(
    "first, rest",
    [("", "echo a"), ("#!/bin/bash -e\n", "echo a\n"), ("#!/usr/bin/env bash\n", "echo a"), ("#!/bin/sh\n", "")],
)
def test_a_script_is_told_after_its_first_line(first: str, rest: str) -> None:
    assert nodes.script(first + rest) == first + nodes.PRELUDE + rest
    assert nodes.script("#!/usr/bin/python3\nprint()") is None


ACCELERATORS = st.sampled_from(
    [None, ("l4", 1), ("l4", 8), ("t4", 1), ("t4", 4), ("v100", 8), ("a100", 16), ("h100", 8)]
)
TEXT = st.text("abc é$\"'{}`\\", max_size=20)
STEP = st.one_of(
    st.fixed_dictionaries(
        {"image": st.just(IMAGE), "entrypoint": st.sampled_from(["python3", "/bin/sh"])},
        optional={
            "command": st.lists(TEXT, max_size=3),
            "background": st.booleans(),
            "timeout_s": st.integers(1, 10**6),
        },
    ),
    st.fixed_dictionaries(
        {"script": st.sampled_from(["ls", "#!/bin/bash\nls"])}, optional={"always_run": st.booleans()}
    ),
    st.fixed_dictionaries({"barrier": st.sampled_from(["a", "b"])}),
)
FIELDS = st.fixed_dictionaries(
    {"accelerator": ACCELERATORS.map(lambda pair: pair and {"type": pair[0], "count": pair[1]})},
    optional={
        "spot": st.booleans(),
        "nodes": st.integers(1, 5),
        "timeout_s": st.integers(1, 14 * 86_400),
        "disk_gib": st.integers(1, 5000),
        "retries": st.integers(0, 5),
        "lost_retries": st.integers(0, 5),
        "command": st.lists(TEXT, min_size=1, max_size=4),
        "env": st.dictionaries(st.from_regex(r"[A-Z]{1,8}", fullmatch=True), TEXT, max_size=3),
        "labels": st.dictionaries(
            st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.text("abc-", max_size=20), max_size=3
        ),
        "mounts": st.just([{"source": "gs://acme-data/a", "path": "/data"}]),
        "shm_mib": st.integers(1, 4096),
        "steps": st.lists(STEP, min_size=1, max_size=3),
        "block": st.fixed_dictionaries(
            {},
            optional={
                "priority": st.integers(0, 99),
                "hosts_file": st.booleans(),
                "permissive_ssh": st.booleans(),
                "boot_disk_gib": st.integers(1, 5000),
                "in_order": st.booleans(),
                "zones": st.just(["us-central1-a"]),
                "disks": st.just([{"name": "d", "gib": 10, "path": "/scratch"}]),
                "logs_path": st.just("/data/logs"),
                "driver_version": st.just("550.90.07"),
            },
        ),
    },
)


@given(FIELDS)
def test_every_body_fits_googles_schema(drawn: Fields) -> None:
    """And the same job gives the same body. What is refused is not sent; other tests read the words."""
    fields = dict(drawn)
    block, steps = fields.pop("block", {}), fields.pop("steps", None)
    if steps:
        fields |= {"image": None, "command": []}
        block = {**block, "runnables": steps}
    try:
        request = make_request(**fields, google_batch=block)
    except BadInputs:
        return
    assert request == make_request(**fields, google_batch=block)
    assert json.loads(json.dumps(request.body)) == request.body
    check(document("batch.v1"), "Job", job_of(request))
    group = job_of(request)["taskGroups"][0]
    assert group["taskCount"] == max(fields.get("nodes", 1), 1)
    for step in group["taskSpec"]["runnables"]:
        assert len(set(step) & {"container", "script", "barrier"}) == 1
    mounted = {each["mountPath"] for each in group["taskSpec"].get("volumes", [])}
    for step in group["taskSpec"]["runnables"]:
        for bind in step.get("container", {}).get("volumes", []):
            host = bind.split(":")[0]
            assert host in mounted or host in (nodes.HOSTS_FILE, *nodes.SSH_FOLDERS)
