"""A task of dstack as a job file: shapes that people have, and that nothing of one is lost."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from click.testing import Result

from accel.diagnostics.errors import BadInput
from jobs.importers.dstack import import_job
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from tests.jobs.imports.leaf_laws import lost, unread

ARN = "arn:aws:secretsmanager:us-east-1:210987654321:secret:hf"


def of(document: dict[str, Any], **chosen: Any) -> ImportResult:
    return import_job(".dstack.yml", yaml.safe_dump(document, sort_keys=False).encode(), ImportOptions(**chosen))


def task(**fields: Any) -> dict[str, Any]:
    return {"type": "task", "name": "t", "image": "acme/train:1", "commands": ["python train.py"], **fields}


def kinds(found: ImportResult) -> dict[str, str]:
    return {entry.field: entry.kind for entry in found.report.entries}


@pytest.mark.parametrize(
    "resources, values, field, kind",
    [
        ({"gpu": "A100"}, {"accelerator": {"type": "A100", "count": 1}}, "gpu", "kept"),
        ({"gpu": "A100:2"}, {"accelerator": {"type": "A100", "count": 2}}, "gpu", "kept"),
        ({"gpu": "A100:80GB:8"}, {"accelerator": {"type": "nvidia-a100-80gb", "count": 8}}, "gpu", "kept"),
        ({"gpu": "A100:40GB:2"}, {"accelerator": {"type": "A100", "count": 2}}, "gpu", "kept"),
        ({"gpu": "nvidia:H100:4"}, {"accelerator": {"type": "H100", "count": 4}}, "gpu", "kept"),
        ({"gpu": "H100:1..8"}, {"accelerator": {"type": "H100", "count": 1}}, "gpu", "changed"),
        ({"gpu": "24GB"}, {"accelerator": {"count": 1}}, "gpu", "decision"),
        ({"gpu": "24GB..:2"}, {"accelerator": {"count": 2}}, "gpu", "decision"),
        ({"gpu": "40GB..80GB:4"}, {"accelerator": {"count": 4}}, "gpu", "decision"),
        ({"gpu": 8}, {"accelerator": {"count": 8}}, "gpu", "kept"),
        ({"gpu": "1..8"}, {"accelerator": {"count": 1}}, "gpu", "changed"),
        ({"gpu": 0}, {}, "gpu", "changed"),
        ({"gpu": "0..4"}, {}, "gpu", "changed"),
        ({"gpu": "A10G,L4:2"}, {"accelerator": {"type": "A10G", "count": 2}}, "gpu", "decision"),
        ({"gpu": "MI300X:8"}, {}, "gpu", "refused"),
        ({"gpu": "amd:8"}, {}, "gpu", "refused"),
        ({"gpu": "A100:16GB"}, {}, "gpu", "refused"),
        ({"gpu": "RTX4090"}, {}, "gpu", "refused"),
        ({"gpu": "v5litepod-8"}, {"accelerator": {"type": "v5litepod-8"}}, "gpu", "kept"),
        ({"gpu": "tpu:v5p-8"}, {"accelerator": {"type": "v5p-8"}}, "gpu", "kept"),
        ({"gpu": "tpu-v4-8"}, {"accelerator": {"type": "v4-8"}}, "gpu", "changed"),
        ({"gpu": {"name": "H100", "count": 8}}, {"accelerator": {"type": "H100", "count": 8}}, "gpu.count", "kept"),
        ({"gpu": {"name": ["L4", "A10G"], "count": 1}}, {"accelerator": {"type": "L4", "count": 1}}, "gpu.name",
         "decision"),
        ({"gpu": {"name": "A100", "memory": "80GB"}}, {"accelerator": {"type": "nvidia-a100-80gb", "count": 1}},
         "gpu.memory", "kept"),
        ({"gpu": {"memory": "24GB..", "count": "2..4"}}, {"accelerator": {"count": 2}}, "gpu.memory", "decision"),
        ({"gpu": {"count": {"min": 2, "max": 4}}}, {"accelerator": {"count": 2}}, "gpu.count.max", "changed"),
        ({"gpu": {"name": "L4", "compute_capability": 8.9}}, {"accelerator": {"type": "L4", "count": 1}},
         "gpu.compute_capability", "decision"),
        ({"gpu": {"vendor": "amd", "name": "MI300X"}}, {}, "gpu.name", "refused"),
        ({"cpu": 8}, {"cpus": 8}, "cpu", "kept"),
        ({"cpu": "8.."}, {"cpus": 8}, "cpu", "changed"),
        ({"cpu": "4..16"}, {"cpus": 4}, "cpu", "changed"),
        ({"cpu": "..64"}, {}, "cpu", "changed"),
        ({"cpu": "x86:96.."}, {"cpus": 96}, "cpu", "changed"),
        ({"cpu": "arm:4"}, {"cpus": 4}, "cpu", "changed"),
        ({"cpu": {"arch": "arm", "count": 4}}, {"cpus": 4}, "cpu.arch", "changed"),
        ({"cpu": {"min": 4, "max": 8}}, {"cpus": 4}, "cpu.max", "changed"),
        ({"cpu": "lots"}, {}, "cpu", "refused"),
        ({"memory": "32GB"}, {"memory_mib": 32768}, "memory", "kept"),
        ({"memory": "200GB.."}, {"memory_mib": 204800}, "memory", "changed"),
        ({"memory": {"min": 16, "max": 32}}, {"memory_mib": 16384}, "memory.min", "changed"),
        ({"shm_size": "16GB"}, {"shm_mib": 16384}, "shm_size", "kept"),
        ({"disk": "200GB"}, {"disk_gib": 200}, "disk", "kept"),
        ({"disk": {"size": "1TB.."}}, {"disk_gib": 1024}, "disk.size", "changed"),
        ({"disk": "much"}, {}, "disk", "refused"),
        ({"gpus": 1}, {}, "gpus", "refused"),
    ],
)  # fmt: skip
def test_resources(resources: dict[str, Any], values: dict[str, Any], field: str, kind: str) -> None:
    found = of(task(resources=resources))
    assert found.values | values == found.values, found.values
    assert kinds(found)[f"resources.{field}"] == kind, [entry.text for entry in found.report.entries]
    assert lost(found) == []


@pytest.mark.parametrize(
    "fields, values, field, kind",
    [
        ({"nodes": 2}, {"nodes": 2}, "nodes", "kept"),
        ({"nodes": "2..4"}, {}, "nodes", "refused"),
        ({"groups": [{"nodes": 2, "commands": ["x"]}]}, {}, "groups[0].nodes", "refused"),
        ({"python": 3.12}, {}, "python", "decision"),
        ({"nvcc": True}, {}, "nvcc", "decision"),
        ({"docker": True}, {}, "docker", "decision"),
        ({"privileged": True}, {}, "privileged", "decision"),
        ({"privileged": False}, {}, "privileged", "kept"),
        ({"user": "1000:1000"}, {}, "user", "decision"),
        ({"user": "1000"}, {"gke": {"user": 1000}}, "user", "changed"),
        ({"entrypoint": "python -m x"}, {"command": ["python", "-m", "x", "python train.py"]}, "entrypoint", "kept"),
        ({"shell": "zsh"}, {"command": ["zsh", "-c", "python train.py"]}, "shell", "kept"),
        ({"working_dir": "/w"}, {"command": ["sh", "-c", "cd /w && python train.py"]}, "working_dir", "changed"),
        ({"commands": ["a &", "b"]}, {"command": ["sh", "-c", "{ a & } && b"]}, "commands", "kept"),
        ({"spot_policy": "spot"}, {"spot": True}, "spot_policy", "kept"),
        ({"spot_policy": "on-demand"}, {"spot": False}, "spot_policy", "kept"),
        ({"spot_policy": "auto"}, {}, "spot_policy", "kept"),
        ({"spot_policy": "x"}, {}, "spot_policy", "refused"),
        ({"max_duration": "2h"}, {"timeout_s": 7200}, "max_duration", "kept"),
        ({"max_duration": "1w"}, {"timeout_s": 604800}, "max_duration", "kept"),
        ({"max_duration": "off"}, {}, "max_duration", "kept"),
        ({"max_duration": "soon"}, {}, "max_duration", "refused"),
        ({"retry": False}, {"retries": 0, "lost_retries": 0}, "retry", "kept"),
        ({"retry": True}, {}, "retry", "decision"),
        ({"retry": {"on_events": ["error", "interruption"], "duration": "4h"}}, {}, "retry.on_events", "decision"),
        ({"volumes": ["/mnt/nfs:/data"]}, {"mounts": [{"source": "host:///mnt/nfs", "path": "/data"}]}, "volumes",
         "changed"),
        ({"volumes": ["vol:/data"]}, {}, "volumes", "decision"),
        ({"volumes": [{"name": "vol", "path": "/data"}]}, {}, "volumes[0].name", "decision"),
        ({"volumes": [{"name": ["a", "b"], "path": "/data"}]}, {}, "volumes[0].name", "decision"),
        ({"volumes": [{"instance_path": "/a", "path": "/b", "optional": True}]},
         {"mounts": [{"source": "host:///a", "path": "/b"}]}, "volumes[0].optional", "changed"),
        ({"files": ["a.py", "b.py:/b.py"]}, {}, "files", "changed"),
        ({"files": [{"local_path": "a", "path": "b"}]}, {}, "files[0].local_path", "changed"),
        ({"files": ["~/.netrc:/root/.netrc"]}, {}, "files", "decision"),
        ({"files": ["a.py", "../b.py"]}, {}, "files", "decision"),
        ({"files": [{"local_path": "/etc/a.conf", "path": "a"}]}, {}, "files[0].local_path", "decision"),
        ({"files": [{"local_path": "a", "path": "/b"}]}, {}, "files[0].path", "changed"),
        ({"repos": ["."]}, {}, "repos", "changed"),
        ({"repos": ["..:/src"]}, {}, "repos", "decision"),
        ({"repos": [{"local_path": ".", "path": "/src"}]}, {}, "repos[0].path", "decision"),
        ({"repos": ["https://github.com/a/b", "git@github.com:a/c.git"]}, {}, "repos", "changed"),
        ({"repos": [{"url": "https://github.com/a/b", "branch": "main"}]}, {}, "repos[0].url", "changed"),
        ({"ports": [8080, "80:80"]}, {}, "ports", "changed"),
        ({"priority": 50}, {}, "priority", "changed"),
        ({"registry_auth": {"username": "me", "password": "p"}}, {}, "registry_auth.password", "refused"),
        ({"backends": ["aws"]}, {}, "backends", "changed"),
        ({"regions": ["us-east-1", "us-west-2"]}, {}, "regions", "changed"),
        ({"instance_types": ["p5.48xlarge"]}, {}, "instance_types", "decision"),
        ({"reservation": "r"}, {}, "reservation", "decision"),
        ({"max_price": 4.5}, {}, "max_price", "changed"),
        ({"idle_duration": "5m"}, {}, "idle_duration", "changed"),
        ({"utilization_policy": {"min_gpu_utilization": 10, "time_window": "1h"}}, {},
         "utilization_policy.time_window", "decision"),
        ({"schedule": {"cron": "15 23 * * *"}}, {}, "schedule.cron", "decision"),
        ({"fleets": ["my"]}, {}, "fleets", "changed"),
        ({"tags": {"team": "a"}}, {"labels": {"team": "a"}}, "tags.team", "kept"),
        ({"stop_criteria": "master-done"}, {}, "stop_criteria", "changed"),
        ({"home_dir": "/root"}, {}, "home_dir", "changed"),
        ({"comands": ["x"]}, {}, "comands", "refused"),
        ({"env": {"A": "1", "B": None}}, {"env": {"A": "1"}}, "env.B", "decision"),
        ({"env": ["A=1", "B"]}, {"env": {"A": "1"}}, "env", "decision"),
        ({"env": ["A=1=2", "E="]}, {"env": {"A": "1=2", "E": ""}}, "env", "kept"),
        ({"env": ["A=1", "A=2"]}, {}, "env", "refused"),
        ({"env": {"A": 5}}, {"env": {"A": "5"}}, "env.A", "kept"),
        ({"env": {"A": True}}, {}, "env.A", "refused"),
        ({"env": {"HF_TOKEN": "${{ secrets.hf }}"}}, {}, "env.HF_TOKEN", "decision"),
        ({"commands": ["echo $DSTACK_NODES_IPS"], "nodes": 2}, {"nodes": 2}, "commands", "decision"),
        ({"commands": ["cat $DSTACK_MPI_HOSTFILE"]}, {}, "commands", "decision"),
        ({"commands": ["echo ${{ run.args }}"]}, {}, "commands", "decision"),
    ],
)  # fmt: skip
def test_fields(fields: dict[str, Any], values: dict[str, Any], field: str, kind: str) -> None:
    found = of(task(**fields))
    assert found.values | values == found.values, found.values
    assert kinds(found)[field] == kind, [entry.text for entry in found.report.entries]
    assert lost(found) == []


@pytest.mark.parametrize(
    "kind, words",
    [
        ("dev-environment", "accel-jobs exec"),
        ("service", "accel has no services"),
        ("fleet", "environment of a stack"),
        ("volume", "mounts of a job file"),
        ("gateway", "is a gateway"),
        ("x", "is none of task"),
    ],
)
def test_what_is_no_task_is_one_line(home: Any, invoke: Callable[..., Result], kind: str, words: str) -> None:
    done = invoke("import", "dstack", "-", text=f"type: {kind}\nname: a\nnodes: 2\n")
    assert done.exit_code == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1


def test_given_values() -> None:
    document = task(env=["HF_TOKEN", "W=${{ secrets.wandb }}"], volumes=["vol:/data"])
    found = of(document, variables={"HF_TOKEN": "plain", "wandb": ARN}, mounts={"/data": "gs://acme-data"})
    assert not found.report.stops
    assert (found.values["env"], found.values["secrets"]) == ({"HF_TOKEN": "plain"}, {"W": ARN})
    assert found.values["mounts"] == [{"source": "gs://acme-data", "path": "/data"}]
    assert of(document, image="acme/other:2").values["image"] == "acme/other:2"


def test_variables_of_nodes_are_set_from_accels() -> None:
    text = "echo $DSTACK_NODE_RANK/$DSTACK_NODES_NUM $DSTACK_GPUS_PER_NODE/$DSTACK_GPUS_NUM $DSTACK_MASTER_NODE_IP"
    found = of(task(nodes=2, commands=["cd /", text], resources={"gpu": "A100:8"}))
    environment = {"ACCEL_NODE_COUNT": "2", "ACCEL_NODE_INDEX_FROM": "R", "R": "1", "PATH": "/usr/bin:/bin"}
    for more, address in (({}, "127.0.0.1"), ({"ACCEL_MAIN_ADDRESS_FROM": "M", "M": "10.0.0.1"}, "10.0.0.1")):
        done = subprocess.run(
            found.values["command"], env=environment | more, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"1/2 8/16 {address}\n"


def test_region_and_targets() -> None:
    found = of(task(backends=["gcp"], regions=["us-central1"]))
    assert found.region == "us-central1" and "google-batch" in found.targets
    assert of(task(backends=["aws", "gcp"])).targets == ()
    with pytest.raises(BadInput, match="type"):
        of({"name": "x"})


WHOLE = task(
    nodes=2,
    python="3.12",
    env={"A": "1"},
    resources={"gpu": {"name": "A100", "count": 2, "memory": "80GB"}, "cpu": {"count": "8.."}, "disk": {"size": "1TB"}},
    volumes=[{"instance_path": "/c", "path": "/cache"}, {"name": "v", "path": "/v"}],
    files=[{"local_path": "a", "path": "/a"}],
    repos=[{"url": "https://github.com/a/b"}],
    retry={"on_events": ["error"], "duration": "1h"},
    tags={"team": "a"},
    schedule={"cron": "0 0 * * *"},
    registry_auth={"username": "a", "password": "b"},
    groups=[{"nodes": 1, "resources": {"gpu": 1}}],
    ports=[{"local_port": 80, "container_port": 80}],
)


def test_nothing_is_lost() -> None:
    assert lost(of(WHOLE)) == []
    assert unread(of, WHOLE, free=("tags", "env")) == []


def test_what_is_printed_is_a_job(home: Any, invoke: Callable[..., Result]) -> None:
    document = {key: WHOLE[key] for key in ("type", "image", "commands", "nodes", "env", "resources", "tags")}
    done = invoke("import", "-", "-o", "json", text=yaml.safe_dump({**document, "backends": ["aws"]}))
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["accelerator"] == {"type": "nvidia-a100-80gb", "count": 2}
    assert "of kind aws-batch" in done.stderr and "is read as dstack" in done.stderr


def test_addresses_that_are_counted_are_as_many_as_the_nodes() -> None:
    found = of(task(nodes=3, commands=['N=$(echo "$DSTACK_NODES_IPS" | wc -l)', "echo $N"]))
    shell, option, script = found.values["command"]
    done = subprocess.run(
        [shell, option, script], env={"ACCEL_NODE_COUNT": "3"}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "3\n"


def test_a_job_of_several_nodes_ends_with_its_main_node() -> None:
    (said,) = [each.text for each in of(task(nodes=2)).report.entries if each.field == "stop_criteria"]
    assert "is all-done there without it" in said and "main node" in said
    assert "stop_criteria" not in kinds(of(task())) and "stop_criteria" not in kinds(of(task(nodes=1)))


def test_groups_are_refused_with_what_to_write() -> None:
    found = of(task(groups=[{"nodes": 1, "commands": ["a"]}, {"nodes": 1, "commands": ["b"]}]))
    assert "write nodes, and ask for $DSTACK_NODE_RANK in the commands" in found.report.stops[0].text


def test_an_environment_of_conda_needs_its_shell() -> None:
    found = of(task(commands=["cd a", "conda activate t", "python a.py"]))
    assert kinds(found)["commands"] == "decision" and not found.report.stops
    assert kinds(of(task(commands=['eval "$(conda shell.bash hook)"', "conda activate t"])))["commands"] == "kept"


def test_a_place_of_a_page_in_a_command_is_refused() -> None:
    (stop,) = of(task(commands=["cd a", "login --token <token>"])).report.stops
    assert stop.field == "commands" and "is a placeholder" in stop.text
    assert not of(task(commands=["echo '<token>' >a", "sort <a"])).report.stops


@pytest.mark.parametrize("entrypoint, shell", [("bash -c", "bash"), ("/bin/sh -c", "/bin/sh")])
def test_an_entry_point_that_is_a_shell_runs_one_command(entrypoint: str, shell: str) -> None:
    run = "echo $DSTACK_NODES_NUM $DSTACK_NODE_RANK; pwd"
    found = of(task(entrypoint=entrypoint, commands=[run], nodes=2, working_dir="/usr", **{"shell": "zsh"}))
    assert not found.report.stops and found.values["command"][:2] == [shell, "-c"]
    assert kinds(found)["entrypoint"] == "kept" and kinds(found)["shell"] == "changed"
    names = {"PATH": "/usr/bin:/bin", "ACCEL_NODE_COUNT": "2", "ACCEL_NODE_INDEX_FROM": "R", "R": "1"}
    done = subprocess.run(found.values["command"], env=names, capture_output=True, text=True, check=True)
    assert done.stdout == "2 1\n/usr\n"
    assert of(task(entrypoint=entrypoint, commands=[run, "x"], nodes=2)).report.stops
    plain = of(task(entrypoint=entrypoint, commands=["a &&  b"]))
    assert plain.values["command"] == [shell, "-c", "a &&  b"]
