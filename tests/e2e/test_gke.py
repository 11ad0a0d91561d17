"""Jobs on GKE, from `jobs submit` to their end: one API server, real controllers, commands that really run."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from accel.clouds.kubernetes.clusters import pem
from accel.clouds.kubernetes.endpoint_trust import Endpoint
from sandbox.kubernetes.client import Cluster
from tests.support import commands
from tests.support.engine import Sandbox
from tests.support.meeting import MEETING
from tests.support.project import Stack, environment, put
from tests.support.soak import soak_only
from tests.support.sought import sought
from tests.support.sweeping import sweep, swept
from tests.support.waiting import until

from . import files_of_others as files
from .conftest import Shell, shell_on
from .test_code import Project, goes_round, its_failed_tasks_run_the_same_code

JOBS = "/apis/batch/v1/namespaces/jobs/jobs"
PODS = "/api/v1/namespaces/jobs/pods"


def section() -> dict[str, Any]:
    """The sandbox's GKE section, with both forms of eight TPU chips and N1 machines with T4 beside its pools."""
    values = environment("sandbox", cloud="gcp")
    gcp = values["gcp"]
    forms = {"v5e-one": "ct5lp-hightpu-8t", "v5e-two": "ct5lp-hightpu-4t"}
    gcp["pools"] |= {key: {"kind": "tpu", "machine_type": name, "topology": "2x4"} for key, name in forms.items()}
    t4: dict[str, Any] = {"accelerator": "nvidia-tesla-t4", "accelerator_count": 2, "max_nodes": 1}
    gcp["pools"] |= {"t4": {"kind": "gpu", "machine_type": "n1-standard-8", **t4}}
    gcp["workloads"]["queueing"]["queues"]["training"]["pools"] += [{"pool": key} for key in (*forms, "t4")]
    return values


@pytest.fixture(scope="module")
def gke(google: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The sandbox's GKE section, deployed; destroyed, it leaves nothing, whatever jobs ran."""
    cluster = Cluster.of(google.home)
    before = {one["metadata"]["name"] for one in cluster.list("/api/v1/namespaces")}
    stack = Stack(tmp_path_factory.mktemp("gke"), google, section(), stack="e2e")
    stack.up_targets()
    yield stack
    stack.destroy()
    assert cluster.list("/api/v1/nodes") == []
    assert {one["metadata"]["name"] for one in cluster.list("/api/v1/namespaces")} == before
    assert cluster.list("/apis/kueue.x-k8s.io/v1beta1/clusterqueues") == []


@pytest.fixture
def cluster(google: Sandbox) -> Cluster:
    return Cluster.of(google.home)


@pytest.fixture
def shell(gke: Stack, google: Sandbox, tmp_path: Path) -> Shell:
    """A user's shell in the project's folder."""
    return shell_on(google, gke.folder / "targets.json", tmp_path)


@pytest.fixture
def submit(shell: Shell, tmp_path: Path) -> Callable[..., str]:
    """Submits a job and gives its reference."""

    def send(name: str, code: str = "", *more: str, **fields: Any) -> str:
        document = {
            "name": name,
            "image": "local/examples",
            "cpus": 1,
            "memory_mib": 1024,
            "command": ["python", "-c", code or "print('ran')"],
            **fields,
        }
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document))
        return shell.jobs("submit", str(path), "--to", "gke", "-o", "id", *more)

    return send


def shown(shell: Shell, ref: str) -> dict[str, Any]:
    found = json.loads(shell.jobs("get", ref, "-o", "json"))
    return found[0] if isinstance(found, list) else found


def phase(shell: Shell, ref: str, wanted: str) -> dict[str, Any]:
    return until(lambda: (row := shown(shell, ref))["phase"] == wanted and row)


def pods(cluster: Cluster, ref: str) -> list[dict[str, Any]]:
    return cluster.list(PODS, labelSelector=f"batch.kubernetes.io/job-name={ref.rpartition('/')[2]}")


def test_the_driver_lands_on_the_pools_that_ask_for_it(gke: Stack, cluster: Cluster, submit: Any, shell: Shell) -> None:
    for name, accelerator in (("spot", {"type": "l4"}), ("steady", {"type": "l4"})):
        shell.jobs("wait", submit(name, accelerator=accelerator, spot=name == "spot"))
    nodes = {one["metadata"]["name"]: one["metadata"]["labels"] for one in cluster.list("/api/v1/nodes")}
    owners = {
        nodes[pod["spec"]["nodeName"]]["cloud.google.com/gke-nodepool"].rpartition("-")[0]
        for pod in cluster.list("/api/v1/namespaces/kube-system/pods", labelSelector="k8s-app=nvidia-driver-installer")
    }
    assert owners == {"l4"}
    managed = [one for one in nodes.values() if one.get("cloud.google.com/gke-gpu-driver-version")]
    assert {one["cloud.google.com/gke-nodepool"].rpartition("-")[0] for one in managed} == {"l4-spot"}


def test_what_a_killed_run_made_in_the_cluster_is_found(gke: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    nameless = {"gcp:projects/iAMCustomRole:IAMCustomRole": "not proven"}  # it has neither labels nor a time
    told = sought(gke, monkeypatch, nameless)
    assert not told, "\n".join(told)


def test_one_gpu(submit: Any, shell: Shell) -> None:
    ref = submit(
        "single", "import sys; print('out'); print('err', file=sys.stderr)", "--wait", accelerator={"type": "l4"}
    )
    assert sorted(shell.jobs("logs", ref).splitlines()) == ["err", "out"]
    row = shown(shell, ref)
    assert (row["phase"], row["exit_code"]) == ("SUCCEEDED", 0)
    assert ref in shell.jobs("ls", "-a", "--to", "gke", "-o", "id").splitlines()
    assert shell.jobs("submit", "--help")


def test_a_failure_is_told_with_its_exit_code(submit: Any, shell: Shell) -> None:
    ref = submit("fails", "import sys; sys.exit(3)", accelerator={"type": "l4"})
    lines = shell.fails("wait", ref, code=125)
    assert "exit code 3" in " ".join(lines)
    assert (row := shown(shell, ref))["exit_code"] == 3 and row["attempts"] == 1


def test_two_nodes_meet_as_torchrun_does(submit: Any, shell: Shell) -> None:
    ref = submit("meets", MEETING, "--wait", nodes=2, accelerator={"type": "l4"}, spot=False)
    text = shell.jobs("logs", ref)
    assert "met rank 1" in text and "heard done" in text
    assert {line.split()[0] for line in text.splitlines()} != {"met"}, "each line says whose it is"


def test_the_hosts_of_a_tpu_slice_run_as_one(submit: Any, shell: Shell, cluster: Cluster) -> None:
    tell = "print(os.environ['TPU_WORKER_ID'], len(os.environ['TPU_WORKER_HOSTNAMES'].split(',')), flush=True)"
    ref = submit("slice", f"{MEETING}\n{tell}", "--wait", accelerator={"type": "v5e-16"})
    text = shell.jobs("logs", ref)
    assert {line.split()[-2] for line in text.splitlines() if line.endswith(" 4")} == {"0", "1", "2", "3"}
    assert all(f"met rank {rank}" in text for rank in (1, 2, 3))
    (found,) = cluster.list(
        "/apis/jobset.x-k8s.io/v1alpha2/namespaces/jobs/jobsets",
        fieldSelector=f"metadata.name={ref.rpartition('/')[2]}",
    )
    nodes = {
        one["spec"]["nodeName"] for one in cluster.list(PODS) if found["metadata"]["name"] in one["metadata"]["name"]
    }
    assert len(nodes) == 4


@pytest.mark.parametrize(("pool", "fields", "hosts"), [("v5e-one", {}, 1), ("v5e-two", {"nodes": 2, "count": 4}, 2)])
def test_eight_tpu_chips_run_on_the_hosts_that_are_named(
    submit: Any, shell: Shell, cluster: Cluster, pool: str, fields: dict[str, int], hosts: int
) -> None:
    count = {"count": fields["count"]} if "count" in fields else {}
    code = MEETING if hosts > 1 else "print('alone')"
    accelerator = {"type": "v5e-8", **count}
    ref = submit(f"eight-{hosts}", code, "--wait", accelerator=accelerator, nodes=fields.get("nodes", 1))
    text = shell.jobs("logs", ref)
    assert ("met rank 1" in text and "heard done" in text) if hosts > 1 else text == "alone"
    name = ref.rpartition("/")[2]
    ran = {one["spec"]["nodeName"] for one in cluster.list(PODS) if one["metadata"]["name"].startswith(name)}
    nodes = [one for one in cluster.list("/api/v1/nodes") if one["metadata"]["name"] in ran]
    assert len(nodes) == hosts
    assert {one["metadata"]["labels"]["accel.dev/pool"] for one in nodes} == {pool}
    assert {one["status"]["allocatable"]["google.com/tpu"] for one in nodes} == {str(8 // hosts)}


def test_gpus_attached_to_n1_are_the_nodes(submit: Any, cluster: Cluster) -> None:
    ref = submit("attached", "print('two')", "--wait", accelerator={"type": "t4", "count": 2})
    ran = {one["spec"]["nodeName"] for one in pods(cluster, ref)}
    (node,) = [one for one in cluster.list("/api/v1/nodes") if one["metadata"]["name"] in ran]
    labels, free = node["metadata"]["labels"], node["status"]["allocatable"]
    assert labels["cloud.google.com/gke-accelerator"] == "nvidia-tesla-t4"
    assert (labels["node.kubernetes.io/instance-type"], labels["accel.dev/pool"]) == ("n1-standard-8", "t4")
    assert free["nvidia.com/gpu"] == "2"


@soak_only
def test_twenty_tasks_four_at_once(submit: Any, shell: Shell) -> None:
    code = "import os, time; time.sleep(0.3); print('task', os.environ[os.environ['ACCEL_TASK_INDEX_FROM']])"
    ref = submit("sweep", code, tasks=20, parallelism=4)
    most = 0
    while (row := shown(shell, ref))["phase"] not in ("SUCCEEDED", "FAILED"):
        most = max(most, sum(count for state, count in row["tasks"].items() if state.lower() in ("active", "running")))
    assert row["phase"] == "SUCCEEDED" and most <= 4
    told = {line.rpartition("task ")[2] for line in shell.jobs("logs", ref).splitlines()}
    assert told == {str(index) for index in range(20)}


@soak_only
def test_a_sweep_runs_its_failed_tasks_again(submit: Any, shell: Shell, tmp_path: Path) -> None:
    mended = tmp_path / "mended"
    first = submit(**sweep(mended))
    phase(shell, first, "FAILED")
    mended.touch()
    second = shell.jobs("retry", first, "-o", "id")
    phase(shell, second, "SUCCEEDED")
    found = swept(shell.jobs("results", second, "-o", "json"))
    assert {each["task"] for each in found if each["job"] == second} == {2, 3}
    assert {each["state"] for each in found} == {"SUCCEEDED"}


def test_a_job_waits_for_quota_until_another_ends(submit: Any, shell: Shell, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    holds = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.1)"
    first = submit("holds", holds, accelerator={"type": "l4"}, tasks=4, spot=True)
    phase(shell, first, "RUNNING")
    second = submit("waits", accelerator={"type": "l4"}, spot=True)
    row = until(lambda: (row := shown(shell, second))["phase"] == "QUEUED" and row.get("reason") and row)
    assert "quota" in row["reason"]
    gate.touch()
    shell.jobs("wait", first, second)


@soak_only
def test_a_reclaimed_spot_node_restarts_the_job_which_resumes(
    submit: Any, shell: Shell, cluster: Cluster, tmp_path: Path
) -> None:
    kept = tmp_path / "step"
    code = f"""
import pathlib, signal, sys, time
kept = pathlib.Path({str(kept)!r})
step = int(kept.read_text()) if kept.exists() else 0
print("from", step, flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
while step < 30:
    step += 1
    kept.with_suffix(".new").write_text(str(step))
    kept.with_suffix(".new").replace(kept)
    time.sleep(0.1)
"""
    ref = submit("resumes", code, accelerator={"type": "l4"}, spot=True)
    until(lambda: kept.exists() and int(kept.read_text()) > 3)
    (pod,) = [one for one in pods(cluster, ref) if one["status"]["phase"] == "Running"]
    cluster.delete(f"/api/v1/nodes/{pod['spec']['nodeName']}")
    shell.jobs("wait", ref)
    (last,) = pods(cluster, ref)
    assert last["metadata"]["name"] != pod["metadata"]["name"], "what was lost is made anew"
    assert int(kept.read_text()) == 30
    starts = [int(line.rpartition("from ")[2]) for line in shell.jobs("logs", ref).splitlines() if "from " in line]
    assert starts[-1] > 3, "the second attempt goes on where the first stopped"


def test_cancel_ends_the_pods_and_frees_the_quota(submit: Any, shell: Shell, cluster: Cluster) -> None:
    ref = submit("lasts", "import time; time.sleep(600)", accelerator={"type": "l4"})
    phase(shell, ref, "RUNNING")
    shell.jobs("cancel", ref, "--yes")
    row = phase(shell, ref, "FAILED")
    assert "cancel" in row["reason"]
    until(lambda: not [one for one in pods(cluster, ref) if one["status"]["phase"] == "Running"])
    shell.jobs("cancel", ref, "--yes")
    shell.jobs("wait", submit("after", accelerator={"type": "l4"}))


@soak_only
def test_exec_in_a_running_task(submit: Any, shell: Shell) -> None:
    ref = submit("busy", "import time; time.sleep(600)", accelerator={"type": "l4"})
    phase(shell, ref, "RUNNING")
    assert shell.jobs("exec", ref, "--", "python", "-c", "print('inside')") == "inside"
    shell.run("jobs", "exec", ref, "--", "python", "-c", "import sys; sys.exit(7)", code=7)
    shell.jobs("cancel", ref, "--yes")


def test_exec_in_every_task_and_the_check(submit: Any, shell: Shell) -> None:
    ref = submit("two", "import time; time.sleep(600)", tasks=2)

    def both() -> bool:
        row = json.loads(shell.jobs("get", ref, "-o", "json"))
        return row["phase"] == "RUNNING" and len(json.loads(shell.jobs("exec", ref, "--check", "-o", "json"))) == 2

    until(both)
    said = shell.jobs("exec", ref, "--", "python", "-c", "print('inside')")
    assert sorted(said.splitlines()) == ["[task 0] inside", "[task 1] inside"]
    rows = json.loads(shell.jobs("exec", ref, "--check", "-o", "json"))
    assert [row["verdict"] for row in rows] == ["ok", "ok"] and rows[0]["hostname"]
    shell.jobs("cancel", ref, "--yes")


def test_the_same_key_makes_one_job(shell: Shell, submit: Any, cluster: Cluster) -> None:
    refs = {submit("once", "print(1)", "--key", "k") for _ in range(3)}
    assert len(refs) == 1
    listed = cluster.list(JOBS, fieldSelector=f"metadata.name={refs.pop().rpartition('/')[2]}")
    assert len(listed) == 1


BAD: list[tuple[dict[str, Any], str]] = [
    ({"accelerator": {"type": "h100"}}, "h100"),
    ({"accelerator": {"type": "l4", "count": 8}}, "count"),
    ({"cpus": 200}, "cpus"),
    ({"memory_mib": 10_000_000}, "memory_mib"),
    ({"gke": {"priority": "soon"}}, "priority"),
    ({"gke": {"pools": ["l5"]}}, "pools"),
]


@pytest.mark.parametrize(("fields", "said"), BAD)
def test_what_no_pool_can_run_is_refused(submit: Any, shell: Shell, tmp_path: Path, fields: Any, said: str) -> None:
    document = {"name": "bad", "image": "local/examples", "cpus": 1, "memory_mib": 512, "command": ["true"], **fields}
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(document))
    lines = shell.fails("submit", str(tmp_path / "bad.yaml"), "--to", "gke", code=2)
    assert said in lines[0] and lines[0].startswith("error: ")


@soak_only
def test_a_cluster_that_does_not_answer_is_one_line(shell: Shell, gke: Stack, tmp_path: Path) -> None:
    targets = json.loads((gke.folder / "targets.json").read_text())
    targets["gke"]["endpoint"] = "127.0.0.1:9"
    (tmp_path / "away.json").write_text(json.dumps(targets))
    (tmp_path / "job.yaml").write_text("name: x\nimage: local/examples\ncommand: ['true']\ncpus: 1\nmemory_mib: 512\n")
    away = {"ACCEL_TARGETS": str(tmp_path / "away.json"), "XDG_STATE_HOME": str(tmp_path / "state")}
    place = Endpoint("127.0.0.1:9", pem(targets["gke"]["ca_certificate"], "ca_certificate"))
    shell.jobs("targets", "--confirm", "gke", "--fingerprint", place.fingerprint, **away)
    started = time.monotonic()
    lines = shell.fails("submit", str(tmp_path / "job.yaml"), "--to", "gke", code=9, **away)
    assert "127.0.0.1:9" in lines[0] and time.monotonic() - started < 60


def test_an_expired_credential_is_one_line(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("name: x\nimage: local/examples\ncommand: ['true']\ncpus: 1\nmemory_mib: 512\n")
    lines = shell.fails(
        "submit", str(tmp_path / "job.yaml"), "--to", "gke", code=3, GOOGLE_OAUTH_ACCESS_TOKEN="expired"
    )
    assert lines[0].startswith("error: ")


@soak_only
def test_no_change_and_an_update_in_place(gke: Stack) -> None:
    assert gke.up("--refresh", "--expect-no-changes").ops("same", "refresh") == {}
    values = put("gcp.pools.l4-spot.max_nodes", 5, section())
    gke.write_environment(values)
    changed = [(step.op, step.name) for step in gke.up().steps if step.op != "same" and not step.name.startswith("e2e")]
    assert ("update", "l4-spot") in changed
    assert {op for op, _ in changed} == {"update"}
    gke.write_environment(section())
    gke.up()


def test_what_another_stack_finds_there_is_checked_before_its_up(gke: Stack, shell: Shell, tmp_path: Path) -> None:
    """An environment of other people on this network and in this cluster."""
    outputs = gke.outputs()
    told, network = outputs["clusters"]["cluster"], outputs["gcp_network"]
    gcp: dict[str, Any] = {
        "project": "accel-sandbox",
        "region": "us-central1",
        "network": {"kind": "existing", "network": network["network"], "subnets": network["subnets"]},
        "cluster": {
            "kind": "existing",
            **{key: told[key] for key in ("name", "location", "endpoint", "ca_certificate")},
        },
        "workloads": {"releases": [{"release": name, "install": False} for name in ("kueue", "jobset")]},
    }
    guest = tmp_path / "Pulumi.guest.yaml"

    def validate(section: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        guest.write_text(yaml.safe_dump({"config": {"accel:environment": {"owner": "guests", "gcp": section}}}))
        return commands.run("stacks", "validate", "--online", str(guest), cwd=tmp_path, env=shell.variables)

    done = validate(gcp)
    assert (done.returncode, done.stderr) == (0, "")
    for read in ("compute.subnetworks.get", "container.clusters.get", "the cluster's API groups"):
        assert read in done.stdout
    refused = validate(put("cluster.name", "elsewhere", gcp))
    assert refused.returncode == 2 and "gcp.existing.missing" in refused.stderr


def test_a_manifest_runs_to_its_end(shell: Shell, tmp_path: Path) -> None:
    assert "trained with --epochs 2" in files.imported(shell, files.KUBERNETES, "kubernetes", "gke", tmp_path)


def test_its_code_is_sent_and_runs(shell: Shell, tmp_path: Path) -> None:
    code = Project(tmp_path / "project")
    goes_round(shell, code, "gke", tmp_path, cpus=1, memory_mib=1024)
    its_failed_tasks_run_the_same_code(shell, code, "gke", tmp_path, cpus=1, memory_mib=1024)
