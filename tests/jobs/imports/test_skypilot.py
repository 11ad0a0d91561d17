"""A task of SkyPilot as a job file: shapes that people have, and that nothing of one is lost."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from click.testing import Result

from accel.diagnostics.errors import BadInput
from accel.diagnostics.yaml_positions import Tree
from jobs.importers import recognition
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from jobs.importers.skypilot import import_job
from jobs.model.document import Document
from jobs.model.job import Job
from tests.jobs.imports.leaf_laws import lost, unread

IMAGE = {"image_id": "docker:nvcr.io/nvidia/pytorch:24.10-py3"}
ARN = "arn:aws:secretsmanager:us-east-1:210987654321:secret:hf"


def of(text: str | dict[str, Any], **chosen: Any) -> ImportResult:
    data = text if isinstance(text, str) else yaml.safe_dump(text, sort_keys=False)
    return import_job("task.yaml", data.encode(), ImportOptions(**chosen))


def asking(**resources: Any) -> ImportResult:
    return of({"name": "t", "resources": {**IMAGE, **resources}, "run": "python train.py"})


def kinds(found: ImportResult) -> dict[str, str]:
    return {entry.field: entry.kind for entry in found.report.entries}


def said(found: ImportResult, field: str) -> str:
    return next(entry.text for entry in found.report.entries if entry.field == field)


@pytest.mark.parametrize(
    "run, program",
    [
        ("docker run --rm a/b:1 train", "docker"),
        ("cd x && sudo docker build -t a .", "docker"),
        ("podman run a", "podman"),
        ("docker-compose up", "docker-compose"),
        ("echo docker run", ""),
        ("python docker.py", ""),
    ],
)
def test_a_command_that_starts_containers_is_a_decision(run: str, program: str) -> None:
    found = of({"resources": IMAGE, "setup": run, "run": f"set -e\n{run}\n"})
    for field in ("setup", "run"):
        assert (kinds(found)[field] == "decision") == bool(program)
        assert f"calls {program}, which a job's container has none of" in said(found, field) or not program
    assert not found.report.stops


@pytest.mark.parametrize(
    "text, is_told",
    [
        ("pip list\nconda activate t\npython a.py", True),
        ("cd a && conda activate t", True),
        ('eval "$(conda shell.bash hook)"\nconda activate t', False),
        (". /opt/conda/etc/profile.d/conda.sh; conda activate t", False),
        ("# conda activate t\necho conda activate t", False),
        ("conda run -n t python a.py", False),
    ],
)
def test_an_environment_of_conda_needs_its_shell(text: str, is_told: bool) -> None:
    found = of({"resources": IMAGE, "setup": text, "run": text})
    for field in ("setup", "run"):
        assert (kinds(found)[field] == "decision") == is_told
        assert ('eval "$(conda shell.bash hook)"' in said(found, field)) == is_told
    assert not found.report.stops


@pytest.mark.parametrize(
    "resources, values, field, kind",
    [
        ({"accelerators": "A100:8"}, {"accelerator": {"type": "A100", "count": 8}}, "accelerators", "kept"),
        ({"accelerators": "H100"}, {"accelerator": {"type": "H100", "count": 1}}, "accelerators", "kept"),
        ({"accelerators": {"A100": 8}}, {"accelerator": {"type": "A100", "count": 8}}, "accelerators.A100", "kept"),
        ({"accelerators": {"A100": None}}, {"accelerator": {"type": "A100", "count": 1}}, "accelerators.A100", "kept"),
        ({"accelerators": {"L4:1": None, "A100:1": None}}, {"accelerator": {"type": "L4", "count": 1}},
         "accelerators.A100:1", "decision"),
        ({"accelerators": ["L4:2", "A10G:2"]}, {"accelerator": {"type": "L4", "count": 2}}, "accelerators", "decision"),
        ({"accelerators": ["L40:1", "A10:1", "L4:1"]}, {"accelerator": {"type": "L4", "count": 1}}, "accelerators",
         "decision"),
        ({"accelerators": {"A10": 2, "A10G": 2}}, {"accelerator": {"type": "A10G", "count": 2}}, "accelerators.A10",
         "decision"),
        ({"accelerators": ["A10:1", "L40:1"]}, {}, "accelerators", "refused"),
        ({"gpus": "H100:8"}, {"accelerator": {"type": "H100", "count": 8}}, "gpus", "kept"),
        ({"accelerators": "tpu-v5e-8"}, {"accelerator": {"type": "v5litepod-8"}}, "accelerators", "changed"),
        ({"accelerators": "tpu-v6e-8:1"}, {"accelerator": {"type": "v6e-8"}}, "accelerators", "changed"),
        ({"accelerators": "T4:0.5"}, {}, "accelerators", "refused"),
        ({"accelerators": "K80"}, {}, "accelerators", "refused"),
        ({"accelerators": "RTX4090:2"}, {}, "accelerators", "refused"),
        ({"accelerators": "MI300X:8"}, {}, "accelerators", "refused"),
        ({"accelerators": "Trainium:16"}, {"accelerator": {"type": "Trainium", "count": 16}}, "accelerators", "kept"),
        ({"cpus": 8}, {"cpus": 8}, "cpus", "kept"),
        ({"cpus": "8+"}, {"cpus": 8}, "cpus", "changed"),
        ({"cpus": 0.5}, {"cpus": 1}, "cpus", "changed"),
        ({"cpus": "lots"}, {}, "cpus", "refused"),
        ({"memory": 32}, {"memory_mib": 32768}, "memory", "kept"),
        ({"memory": "32+"}, {"memory_mib": 32768}, "memory", "changed"),
        ({"memory": "512MB"}, {"memory_mib": 512}, "memory", "kept"),
        ({"memory": "4x"}, {}, "memory", "refused"),
        ({"use_spot": True}, {"spot": True}, "use_spot", "kept"),
        ({"use_spot": False}, {"spot": False}, "use_spot", "kept"),
        ({"disk_size": 256}, {"disk_gib": 256}, "disk_size", "kept"),
        ({"disk_size": "1TB"}, {"disk_gib": 1024}, "disk_size", "kept"),
        ({"disk_tier": "best"}, {}, "disk_tier", "changed"),
        ({"network_tier": "best"}, {}, "network_tier", "changed"),
        ({"instance_type": "p3.8xlarge"}, {"accelerator": {"type": "nvidia-tesla-v100", "count": 4}}, "instance_type",
         "decision"),
        ({"instance_type": "n2-standard-8"}, {"cpus": 8}, "instance_type", "decision"),
        ({"instance_type": "Standard_NC6"}, {}, "instance_type", "decision"),
        ({"job_recovery": "FAILOVER"}, {}, "job_recovery", "changed"),
        ({"job_recovery": "none"}, {"lost_retries": 0}, "job_recovery", "kept"),
        ({"job_recovery": {"strategy": "EAGER_NEXT_REGION"}}, {}, "job_recovery.strategy", "changed"),
        ({"job_recovery": {"max_restarts_on_errors": 3}}, {"retries": 3},
         "job_recovery.max_restarts_on_errors", "kept"),
        ({"job_recovery": {"recover_on_exit_codes": [33, 34]}}, {}, "job_recovery.recover_on_exit_codes", "decision"),
        ({"spot_recovery": "FAILOVER"}, {}, "spot_recovery", "changed"),
        ({"cloud": "aws"}, {}, "cloud", "changed"),
        ({"cloud": "azure"}, {}, "cloud", "changed"),
        ({"region": "us-central1"}, {}, "region", "changed"),
        ({"zone": "us-central1-a"}, {}, "zone", "changed"),
        ({"infra": "gcp/us-central1/us-central1-a"}, {}, "infra", "changed"),
        ({"infra": "k8s/my-context"}, {}, "infra", "changed"),
        ({"ports": 8080}, {}, "ports", "changed"),
        ({"ports": ["8080", "9000-9010"]}, {}, "ports", "changed"),
        ({"labels": {"team": "a"}}, {"labels": {"team": "a"}}, "labels.team", "kept"),
        ({"autostop": 10}, {}, "autostop", "changed"),
        ({"autostop": {"idle_minutes": 5, "down": True}}, {}, "autostop.down", "changed"),
        ({"autostop": {"idle_minutes": 5, "hook": "git push"}}, {}, "autostop.hook", "decision"),
        ({"accelerators": "tpu-v4-8", "accelerator_args": {"runtime_version": "tpu-ubuntu2204-base"}},
         {"tpu_vm": {"runtime_version": "tpu-ubuntu2204-base"}}, "accelerator_args.runtime_version", "kept"),
        ({"accelerator_args": {"runtime_version": "x"}}, {}, "accelerator_args.runtime_version", "changed"),
        ({"accelerators": "tpu-v4-8", "accelerator_args": {"tpu_vm": False}}, {}, "accelerator_args.tpu_vm",
         "refused"),
        ({"accelerators": "tpu-v4-8", "accelerator_args": {"tpu_name": "a"}}, {}, "accelerator_args.tpu_name",
         "changed"),
        ({"max_hourly_cost": 5}, {}, "max_hourly_cost", "changed"),
        ({"priority": 100}, {}, "priority", "changed"),
        ({"local_disk": "100+"}, {}, "local_disk", "changed"),
        ({"ephemeral_storage": 50}, {"disk_gib": 50}, "ephemeral_storage", "kept"),
        ({"any_of": [{"accelerators": "L4:1"}, {"accelerators": "T4:1"}]}, {"accelerator": {"type": "L4", "count": 1}},
         "any_of[1].accelerators", "decision"),
        ({"use_spot": True, "ordered": [{"use_spot": False, "cloud": "aws"}, {"cloud": "gcp"}]}, {"spot": False},
         "use_spot", "changed"),
        ({"gpus": 1}, {}, "gpus", "refused"),
        ({"image_id": "ami-0868a20f5a3bf9702"}, {}, "image_id", "decision"),
        ({"image_id": {"us-east-1": "ami-1"}}, {}, "image_id.us-east-1", "decision"),
        ({"image_id": "docker:ubuntu:22.04"}, {"image": "ubuntu:22.04"}, "image_id", "kept"),
        ({"image_id": None}, {}, "image_id", "decision"),
        ({"volumes": [{"path": "/mnt", "disk_size": 10}]}, {}, "volumes[0].path", "decision"),
    ],
)  # fmt: skip
def test_resources(resources: dict[str, Any], values: dict[str, Any], field: str, kind: str) -> None:
    found = asking(**resources)
    assert found.values | values == found.values, found.values
    assert kinds(found)[f"resources.{field}"] == kind, [entry.text for entry in found.report.entries]
    assert lost(found) == []


@pytest.mark.parametrize(
    "resources, region, targets",
    [
        ({"infra": "aws/us-east-1"}, "us-east-1", ("aws-batch",)),
        ({"infra": "k8s"}, "", ("gke",)),
        ({"infra": "*/us-east-1"}, "us-east-1", ()),
        ({"cloud": "GCP", "region": "us-central1"}, "us-central1", ("gce", "google-batch", "vertex", "gke", "tpu-vm")),
        ({"cloud": "gcp", "accelerators": "tpu-v5e-8"}, "", ("tpu-vm", "gke")),
        ({"cloud": "lambda"}, "", ()),
        ({"region": "us-west-2"}, "us-west-2", ()),
    ],
)
def test_where_it_runs_is_the_targets(resources: dict[str, Any], region: str, targets: tuple[str, ...]) -> None:
    found = asking(**resources)
    assert (found.region, found.targets) == (region, targets)


@pytest.mark.parametrize(
    "mounts, source, field, kind",
    [
        ({"/data": "s3://acme-data/set"}, "s3://acme-data/set", "/data", "changed"),
        ({"/data": {"source": "gs://acme-data", "mode": "MOUNT"}}, "gs://acme-data", "/data.source", "kept"),
        ({"/data": {"source": "gs://acme-data", "mode": "COPY"}}, "gs://acme-data", "/data.source", "changed"),
        ({"/data": {"source": "s3://acme-data", "mode": "MOUNT_CACHED"}}, "s3://acme-data", "/data.mode", "changed"),
        ({"/ckpt": {"name": "acme-ckpt", "store": "gcs"}}, "gs://acme-ckpt", "/ckpt.name", "changed"),
        ({"/ckpt": {"name": "acme-ckpt", "store": "s3", "persistent": True}}, "s3://acme-ckpt", "/ckpt.persistent",
         "changed"),
        ({"/ckpt": {"name": "acme-ckpt", "mode": "MOUNT"}}, None, "/ckpt.name", "decision"),
        ({"/ckpt": {"name": "acme-ckpt", "store": "azure"}}, None, "/ckpt.store", "decision"),
        ({"/ckpt": {"name": None, "mode": "MOUNT"}}, None, "/ckpt.mode", "decision"),
        ({"~/ckpt": {"source": "s3://acme-ckpt", "mode": "MOUNT"}}, "s3://acme-ckpt", "~/ckpt.source", "kept"),
        ({"ckpt": "s3://acme-ckpt"}, None, "ckpt", "refused"),
        ({"/remote/a.txt": "./a.txt"}, None, "/remote/a.txt", "decision"),
        ({"/remote": "~/local"}, None, "/remote", "decision"),
        ({"/data/a.json": "s3://acme-data/a.json"}, None, "/data/a.json", "decision"),
        ({"/data": "https://example.com/a.tar"}, None, "/data", "decision"),
        ({"/data": {"name": "n", "source": ["./a", "./b"]}}, None, "/data.source", "decision"),
        ({"/data": {"source": "s3://acme-data", "config": {"mount": {"read_only": True}}}}, "s3://acme-data",
         "/data.config.mount.read_only", "kept"),
        ({"/data": {"source": "s3://acme-data", "type": "DATASET_RO"}}, "s3://acme-data", "/data.type", "changed"),
        ({"/data": "s3://your-bucket/x"}, None, "/data", "refused"),
        ({"/data": "s3://$BUCKET/x"}, None, "/data", "decision"),
    ],
)  # fmt: skip
def test_file_mounts(mounts: dict[str, Any], source: str | None, field: str, kind: str) -> None:
    found = of({"name": "t", "resources": IMAGE, "run": "x", "file_mounts": mounts})
    assert [mount["source"] for mount in found.values.get("mounts", [])] == ([source] if source else [])
    assert kinds(found)[f"file_mounts.{field}"] == kind, [entry.text for entry in found.report.entries]
    assert lost(found) == []


def test_a_file_below_the_home_is_named_as_a_shell_leaves_it() -> None:
    token = "~/.cache/huggingface/token"
    found = of({"name": "t", "resources": IMAGE, "run": "x", "file_mounts": {token: token, "/a": "a"}})
    told = {entry.field: entry.text for entry in found.report.entries}
    assert told[f"file_mounts.{token}"].endswith(f"give --mount '{token}=<source>'")
    assert told["file_mounts./a"].endswith("give --mount /a=<source>")


def test_a_chosen_mount_is_in_place_of_any_source() -> None:
    task = {"name": "t", "resources": IMAGE, "run": "x", "file_mounts": {"/data": "./data"}, "volumes": {"/v": "disk"}}
    found = of(task, mounts={"/data": "gs://acme-data", "/v": "gs://acme-v", "/more": "gs://acme-more"})
    assert not found.report.stops
    assert [mount["path"] for mount in found.values["mounts"]] == ["/data", "/v", "/more"]
    assert kinds(of(task))["volumes./v"] == "decision"


def test_variables() -> None:
    task = {
        "name": "t",
        "resources": IMAGE,
        "run": "x",
        "envs": {"A": "1", "N": 5, "B": True, "TOKEN": None, "L": "a\nb"},
    }
    found = of(task)
    assert found.values["env"] == {"A": "1", "N": "5", "B": "True"}
    assert {each: kinds(found)[f"envs.{each}"] for each in ("B", "TOKEN", "L")} == {
        "B": "changed",
        "TOKEN": "decision",
        "L": "refused",
    }
    found = of(task, variables={"TOKEN": ARN, "A": "2", "MORE": "3"})
    assert found.values["env"] == {"A": "2", "N": "5", "B": "True", "MORE": "3"}
    assert found.values["secrets"] == {"TOKEN": ARN} and ARN not in str(kinds(found))


def test_secrets_are_never_values_of_the_job_file() -> None:
    task = {"name": "t", "resources": IMAGE, "run": "x", "secrets": {"HF_TOKEN": "hf_abc123", "W": None}}
    found = of(task)
    assert "hf_abc123" not in json.dumps(found.values) and len(found.report.stops) == 2
    found = of(task, variables={"HF_TOKEN": ARN, "W": "plain"})
    assert (found.values["secrets"], found.values["env"]) == ({"HF_TOKEN": ARN}, {"W": "plain"})
    assert kinds(of({**task, "secrets": ["team/hf"]}))["secrets"] == "decision"


def test_variables_of_the_document_fill_its_own_fields() -> None:
    found = of(
        {
            "name": "t-${RUN}",
            "resources": IMAGE,
            "run": "echo $RUN",
            "envs": {"RUN": "7", "BUCKET": "acme-b"},
            "file_mounts": {"/out": {"source": "gs://${BUCKET}/x", "mode": "MOUNT"}},
        }
    )
    assert found.values["name"] == "t-7" and found.values["mounts"][0]["source"] == "gs://acme-b/x"
    assert "echo $RUN" in found.values["command"][2]


def test_setup_is_a_program_of_its_own_before_run() -> None:
    found = of({"name": "t", "resources": IMAGE, "setup": "cd /tmp\nfalse", "run": "pwd"})
    done = subprocess.run(found.values["command"], capture_output=True, text=True, cwd="/", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    found = of({"name": "t", "resources": IMAGE, "setup": "cd /tmp\necho a\n", "run": "pwd"})
    done = subprocess.run(found.values["command"], capture_output=True, text=True, cwd="/", check=False)
    assert (done.returncode, done.stdout) == (0, "a\n/\n")
    assert of({"name": "t", "resources": IMAGE, "setup": "true"}).values["command"] == ["bash", "-c", "true"]
    assert kinds(of({"name": "t", "resources": IMAGE}))["run"] == "refused"


NODES = (
    'echo $SKYPILOT_NODE_RANK/$SKYPILOT_NUM_NODES/$SKYPILOT_NUM_GPUS_PER_NODE $(echo "$SKYPILOT_NODE_IPS" | head -n1)\n'
)
COUNTED = f'{NODES}echo "$SKYPILOT_NODE_IPS" | wc -l\n'


@pytest.mark.parametrize(
    "environment, text",

        [
        ({}, "0/1/8 127.0.0.1\n1\n"),
        ({"ACCEL_NODE_COUNT": "3", "ACCEL_NODE_INDEX_FROM": "R", "R": "2", "ACCEL_MAIN_ADDRESS_FROM": "M",
         "M": "10.0.0.1"},
         "2/3/8 10.0.0.1\n3\n"),
        ({"ACCEL_NODE_COUNT": "2", "ACCEL_NODE_INDEX_FROM": "R", "R": "0", "ACCEL_MAIN_ADDRESS_FROM": "M"},
         "0/2/8 127.0.0.1\n2\n"),
    ],
)  # fmt: skip
def test_variables_of_nodes_are_set_from_accels(environment: dict[str, str], text: str) -> None:
    task = {"name": "t", "resources": {**IMAGE, "accelerators": "A100:8"}, "num_nodes": 3, "run": COUNTED}
    found = of(task)
    assert not found.report.stops and found.values["nodes"] == 3
    done = subprocess.run(found.values["command"], env=environment | {"PATH": "/usr/bin:/bin"}, capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert done.stdout == text


@pytest.mark.parametrize(
    "run, stops",
    [
        ("for ip in $SKYPILOT_NODE_IPS; do echo $ip; done", True),
        ("echo $SKYPILOT_CLUSTER_INFO", True),
        ("echo $SKYPILOT_TASK_ID", False),
        ('MAIN=$(echo "$SKYPILOT_NODE_IPS" | head -1)', False),
        ("export SKYPILOT_NODE_RANK=0", False),
    ],
)
def test_what_accel_does_not_give_is_a_decision(run: str, stops: bool) -> None:
    found = of({"name": "t", "resources": IMAGE, "num_nodes": 2, "run": run})
    assert bool(found.report.stops) == stops


@pytest.mark.parametrize(
    "field, kind, words",
    [
        ({"workdir": "."}, "changed", "submit --code ."),
        ({"service": {"readiness_probe": "/"}}, "refused", "accel has no services"),
        ({"pool": {"workers": 3}}, "refused", "`tasks`"),
        ({"config": {"gcp": {"use_internal_ips": True}}}, "decision", "configuration"),
        ({"event_callback": "echo"}, "decision", "accel-jobs wait"),
        ({"inputs": {"gs://a": 1}}, "decision", "estimate"),
        ({"experimental": {"config_overrides": {"a": 1}}}, "decision", "configuration"),
        ({"managed_secrets": ["a"]}, "decision", "secrets of the job file"),
        ({"api_server_access": True}, "changed", "server"),
        ({"workdir": {"url": "https://github.com/a/b", "ref": "main"}}, "changed", "submit --code"),
        ({"num_node": 2}, "refused", "did you mean num_nodes"),
    ],
)
def test_other_fields(field: dict[str, Any], kind: str, words: str) -> None:
    found = of({"name": "t", "resources": IMAGE, "run": "x", **field})
    (name,) = field
    entries = [entry for entry in found.report.entries if entry.field.startswith(name)]
    assert {entry.kind for entry in entries} == {kind} and words in entries[0].text
    assert lost(found) == []


def test_nodes_of_tpus_are_slices() -> None:
    found = of({"name": "t", "resources": {**IMAGE, "accelerators": "tpu-v4-8"}, "num_nodes": 2, "run": "x"})
    assert found.values["tpu_vm"] == {"slices": 2} and "nodes" not in found.values


PIPELINE = "name: pipe\n---\nname: a\nrun: x\n---\nname: b\nresources: {cpus: 2}\nrun: y\n"


def test_jobs_that_run_at_once_are_no_pipeline() -> None:
    text = "name: {{name}}\nexecution: parallel\n---\nname: a\nrun: x\n---\nname: b\nrun: y\n"
    with pytest.raises(BadInput, match=r"is a group of 2 jobs that run at once \(at the lines 3, 6\)"):
        of(text)


def test_templates_without_quotes() -> None:
    text = "name: {{ name }}\nresources:\n  cloud: {{cloud}} # one\n  cpus: 2\nrun: |\n  echo {{x}}\n  - {{y}}\n"
    told = {entry.field: entry.text for entry in of(text).report.stops}
    assert "--var name=<value>" in told["name"]
    found = of(text, variables={"name": "t", "cloud": "aws"})
    assert (found.values["name"], found.values["command"][2]) == ("t", "echo {{x}}\n- {{y}}\n")
    assert kinds(found)["resources.cloud"] == "changed"


@pytest.mark.parametrize(
    "run, kind",
    [
        ("# $SKYPILOT_NODE_IPS has all\nHEAD=$(echo $SKYPILOT_NODE_IPS | head -n1)\n", "changed"),
        ('read -r head _ <<< "$SKYPILOT_NODE_IPS"\n', "changed"),
        ('if [ -z "$SKYPILOT_NODE_IPS" ]; then exit 1; fi\n', "changed"),
        ("for ip in $SKYPILOT_NODE_IPS; do echo $ip; done\n", "decision"),
        ("echo $SKYPILOT_NODE_IPS > hosts\n", "decision"),
        ('echo "all: $SKYPILOT_NODE_IPS"\n', "changed"),
        ('echo "$SKYPILOT_NODE_IPS" \\\n  | tee hosts\n', "decision"),
        ('printf "%s" "$(sort <<< "$SKYPILOT_NODE_IPS")"\n', "decision"),
    ],
)
def test_the_first_of_the_addresses(run: str, kind: str) -> None:
    assert kinds(of({"name": "t", "num_nodes": 2, "resources": IMAGE, "run": run}))["run"] == kind


def test_a_variable_of_skypilot_that_accel_does_not_give() -> None:
    task = {"name": "t", "resources": IMAGE, "run": "echo $SKYPILOT_CLUSTER_NAME"}
    assert "--var SKYPILOT_CLUSTER_NAME=<value>" in said(of(task), "run")
    found = of(task, variables={"SKYPILOT_CLUSTER_NAME": "c"})
    assert not found.report.stops and found.values["env"] == {"SKYPILOT_CLUSTER_NAME": "c"}


def test_a_server_of_skypilot_is_left_out() -> None:
    assert kinds(of({"name": "t", "resources": IMAGE, "run": "x", "api_access": True}))["api_access"] == "changed"


def test_a_pipeline_is_refused_in_one_line(home: Any, invoke: Callable[..., Result]) -> None:
    with pytest.raises(BadInput, match="is a pipeline of 2 tasks"):
        of(PIPELINE)
    done = invoke("import", "-", text=PIPELINE)
    assert done.exit_code == 2 and "put each into a file of its own" in done.stderr
    assert of("name: pipe\n---\nname: a\nrun: x\n").values["name"] == "a"


@pytest.mark.parametrize(
    "text, by",
    [
        ("resources:\n  accelerators: L4:1\nrun: python a.py\n", "run, resources.accelerators"),
        ("num_nodes: 2\nsetup: |\n  a\n", "setup, num_nodes"),
        ("file_mounts:\n  /a: s3://b\n", "file_mounts"),
    ],
)
def test_a_task_is_recognized(text: str, by: str) -> None:
    found = recognition.recognize("task.yaml", text.encode())
    assert (found.kind, found.by) == ("skypilot", by)


@pytest.mark.parametrize("text", ["run:\n  timeout: 5m\nlinters: {}\n", "setup:\n  seed: 1\n", "resources: [a.yaml]\n"])
def test_what_only_has_such_keys_is_none(text: str) -> None:
    with pytest.raises(BadInput, match="is none of the kinds"):
        recognition.recognize("x.yaml", text.encode())


WHOLE: dict[str, Any] = {
    "name": "train",
    "workdir": ".",
    "num_nodes": 2,
    "resources": {
        **IMAGE,
        "infra": "aws/us-east-1",
        "accelerators": {"A100": 8},
        "accelerator_args": {"tpu_vm": True},
        "cpus": "8+",
        "memory": 64,
        "use_spot": True,
        "job_recovery": {"strategy": "FAILOVER", "max_restarts_on_errors": 2},
        "disk_size": 512,
        "disk_tier": "high",
        "ports": [8080],
        "labels": {"team": "a"},
        "autostop": {"idle_minutes": 5, "down": True},
        "any_of": [{"zone": "us-east-1a"}, {"region": "us-west-2", "labels": {"x": "y"}}],
    },
    "envs": {"A": "1", "EMPTY": ""},
    "secrets": {"HF_TOKEN": None},
    "file_mounts": {
        "/data": "s3://acme-data",
        "/out": {"source": "gs://acme-out", "mode": "MOUNT", "config": {"mount_cached": {"transfers": 4}}},
        "/f.txt": "./f.txt",
    },
    "volumes": {"/v": "disk", "/s": {"size": "10Gi"}},
    "config": {"kubernetes": {"pod_config": {"spec": {}}, "provision_timeout": 5}},
    "service": {"readiness_probe": {"path": "/", "post_data": {"a": 1}}, "replicas": 2},
    "setup": "pip install x",
    "run": "python train.py --nodes $SKYPILOT_NUM_NODES",
}


def test_nothing_is_lost() -> None:
    assert lost(of(WHOLE)) == []
    assert unread(lambda document: of(document), WHOLE, free=("labels", "envs", "image_id")) == []


def test_what_is_printed_is_a_job(home: Any, invoke: Callable[..., Result]) -> None:
    task = {key: value for key, value in WHOLE.items() if key not in ("service", "secrets", "volumes")}
    done = invoke("import", "-", text=yaml.safe_dump(task))
    assert done.exit_code == 0, done.stderr
    assert Document("job.yaml", Tree(yaml.safe_load(done.stdout)), Job).job().nodes == 2
    assert "of kind aws-batch" in done.stderr and "is read as skypilot" in done.stderr


def test_a_place_of_a_page_in_a_command_is_refused() -> None:
    found = of({"resources": IMAGE, "setup": "cat <<A\n<b>\nA", "run": "python t.py --out gs://<bucket>/x"})
    (stop,) = found.report.stops
    assert stop.field == "run" and "is a placeholder" in stop.text
