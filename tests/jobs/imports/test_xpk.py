"""A pasted `xpk workload create` as a job file: shapes that people have, and that nothing of one is lost."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from accel.diagnostics.errors import BadInput
from jobs.importers import recognition
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from jobs.importers.xpk import import_job
from tests.support.speed import CpuTime

IMAGE = "us-docker.pkg.dev/acme/train/max:1"
WHOLE = (
    "NAME=gemma\n"
    "xpk workload create --cluster c1 --workload $NAME --tpu-type=v5litepod-16 --zone us-east5-b --project acme \\\n"
    f'  --docker-image={IMAGE} --command "python3 train.py run_name=$NAME" --max-restarts=2 --priority=high \\\n'
    "  --env A=b --env XLA_FLAGS='--x=1 --y=2' --on-demand --ttl-seconds-after-finished=3600 -tgps 60 \\\n"
    "  --num-slices=1 --scheduler=default-scheduler --enable-debug-logs --deploy-stacktrace-sidecar\n"
)


def of(text: str, **chosen: Any) -> ImportResult:
    return import_job("stdin", text.encode(), ImportOptions(**chosen))


def create(options: str, **chosen: Any) -> ImportResult:
    base = f"xpk workload create --cluster c --workload w --docker-image {IMAGE}"
    return of(f"{base} --command 'python3 train.py' {options}\n", **chosen)


def kinds(found: ImportResult) -> dict[str, str]:
    return {entry.field: entry.kind for entry in found.report.entries}


def test_a_whole_command() -> None:
    found = of(WHOLE)
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values == {
        "name": "gemma",
        "accelerator": {"type": "v5litepod-16"},
        "image": IMAGE,
        "env": {
            "TPU_STDERR_LOG_LEVEL": "0",
            "TPU_MIN_LOG_LEVEL": "0",
            "TF_CPP_MIN_LOG_LEVEL": "0",
            "TPU_VMODULE": "real_program_continuator=1",
            "A": "b",
            "XLA_FLAGS": "--x=1 --y=2",
        },
        "command": ["bash", "-c", "python3 train.py run_name=gemma"],
        "retries": 2,
        "gke": {"grace_s": 60, "keep_s": 3600},
        "spot": False,
    }
    assert found.region == "us-east5" and found.targets == ("gke", "tpu-vm")
    said = kinds(found)
    assert {name for name in found.report.fields if name not in said} == set()
    assert said["--priority"] == said["--deploy-stacktrace-sidecar"] == "decision"
    assert said["--cluster"] == said["--scheduler"] == said["--max-restarts"] == "changed"


@pytest.mark.parametrize(
    "options, values, field, kind",
    [
        ("--tpu-type v6e-256", {"accelerator": {"type": "v6e-256"}}, "--tpu-type", "kept"),
        ("--device-type=v5p-128", {"accelerator": {"type": "v5p-128"}}, "--device-type", "kept"),
        ("--tpu-type=tpu7x-4x4x8", {"accelerator": {"type": "tpu7x-4x4x8"}}, "--tpu-type", "kept"),
        ("--tpu-type v6e-16 --num-slices 4", {"tpu_vm": {"slices": 4}}, "--num-slices", "changed"),
        ("--tpu-type tpu7x-4x4x4 --num-slices 2", {}, "--num-slices", "refused"),
        ("--device-type h100-80gb-8", {"accelerator": {"type": "h100-80gb", "count": 8}}, "--device-type", "kept"),
        ("--device-type l4-2", {"accelerator": {"type": "l4", "count": 2}}, "--device-type", "kept"),
        ("--device-type a100-40gb-4", {"accelerator": {"type": "a100", "count": 4}}, "--device-type", "kept"),
        ("--device-type h200-141gb-8 --num-nodes 2", {"nodes": 2}, "--num-nodes", "kept"),
        ("--device-type h100-80gb-8 --num-slices 2", {}, "--num-slices", "refused"),
        ("--device-type n2-standard-32-4", {"cpus": 30, "nodes": 4}, "--device-type", "decision"),
        ("--tpu-type v5litepod-7", {}, "--tpu-type", "refused"),
        ("--device-type DEVICE", {}, "--device-type", "refused"),
        ("--tpu-type v6e-16 --device-type v6e-16", {}, "--tpu-type", "refused"),
        ("", {}, "--tpu-type", "refused"),
        ("--device-type ''", {}, "--device-type", "refused"),
        ("--num-slices 2", {}, "--num-slices", "kept"),
        ("--tpu-type $T --num-slices 2", {}, "--num-slices", "kept"),
        ("--tpu-type v5litepod-7 --num-slices 2", {}, "--num-slices", "kept"),
        ("--tpu-type v6e-16 --spot", {"spot": True}, "--spot", "kept"),
        ("--tpu-type v6e-16 --flex", {}, "--flex", "decision"),
        ("--tpu-type v6e-16 --reservation r", {}, "--reservation", "changed"),
        ("--tpu-type v6e-16", {"retries": 0}, "--workload", "kept"),
        ("--tpu-type v6e-16 --storage data", {}, "--storage", "decision"),
        ("--tpu-type v6e-16 --ramdisk-directory=r --mtc-enabled", {}, "--mtc-enabled", "refused"),
        ("--tpu-type v6e-16 --use-pathways", {}, "--use-pathways", "refused"),
        ("--tpu-type v6e-16 --debug-dump-gcs=gs://acme-data/x", {}, "--debug-dump-gcs", "decision"),
        ("--tpu-type v6e-16 --use-vertex-tensorboard", {}, "--use-vertex-tensorboard", "decision"),
        ("--tpu-type v6e-16 --no-use-parallel-containers", {}, "--no-use-parallel-containers", "changed"),
        ("--tpu-type v6e-16 --env A", {}, "--env", "refused"),
        ("--tpu-type v6e-16 --format json", {}, "--format", "refused"),
        ("--tpu-type v6e-16 --tpu v6e", {}, "--tpu", "refused"),
        ("--tpu-type v6e-16 ${R:+--reservation=\"$R\"}", {}, "words of the command", "refused"),
        ("--tpu-type v6e-16 --num-nodes 3", {}, "--num-nodes", "changed"),
        ("--tpu-type v6e-16 --base-docker-image local --script-dir src", {}, "--script-dir", "decision"),
    ],
)  # fmt: skip
def test_options(options: str, values: dict[str, Any], field: str, kind: str) -> None:
    found = create(options)
    assert found.values | values == found.values, found.values
    assert kinds(found)[field] == kind, [entry.text for entry in found.report.entries]
    assert {name for name in found.report.fields if name not in kinds(found)} == set()


@pytest.mark.parametrize(
    "call",
    [
        "xpk workload create",
        "$ xpk workload create",
        "python3 xpk.py workload create",
        "python3 ../xpk/xpk.py workload create",
        "python xpk/xpk.py workload create",
        "~/xpk/xpk.py workload create",
    ],
)
def test_ways_to_call_it(call: str) -> None:
    text = f"#!/bin/bash\nset -e\n{call} --workload=w --tpu-type=v6e-8 --cluster=c --docker-image={IMAGE} --command=a\n"
    assert recognition.recognize("stdin", text.encode()).kind == "xpk"
    assert of(text).values["name"] == "w"


def test_images() -> None:
    base = "xpk workload create --workload w --cluster c --tpu-type v6e-8 --command a"
    found = of(f"{base}\n")
    assert found.values["image"] == "python:3.10" and kinds(found)["--base-docker-image"] == "changed"
    found = of(f"{base} --base-docker-image {IMAGE} --script-dir ./src\n")
    assert found.values["image"] == IMAGE and kinds(found)["--script-dir"] == "decision"
    assert not found.report.stops
    found = of(f"{base} --base-docker-image maxtext_base_image\n")
    assert [entry.field for entry in found.report.stops] == ["--base-docker-image"]
    found = of(f"{base} --base-docker-image maxtext_base_image\n", image=IMAGE)
    assert found.values["image"] == IMAGE and not found.report.stops
    found = of(f'IMAGE=""\n{base} --docker-image="$IMAGE"\n')
    assert "--image" in found.report.stops[0].text


def test_variables_that_must_be_set_are_asked_for() -> None:
    text = (
        "xpk workload create --cluster ${CLUSTER?} --workload ${RUN:?name it} --tpu-type v6e-8 \\\n"
        f"  --docker-image {IMAGE} --project ${{PROJECT?}} --command 'a' --zone $ZONE\n"
    )
    assert [entry.field for entry in of(text).report.stops] == ["--workload"]
    assert "--var RUN=<value>" in of(text).report.stops[0].text
    assert of(text, variables={"RUN": "r"}).values["name"] == "r"


def test_a_moment_in_the_name_is_left_out_and_one_in_the_command_is_asked_for() -> None:
    base = f"xpk workload create --cluster c --tpu-type v6e-8 --docker-image {IMAGE}"
    found = of(f"{base} --workload tf-$(date +%H%M) --command a\n")
    assert found.values["name"] == "tf" and not found.report.stops
    text = f'W="a-$(date +%s)"\n{base} --workload $W --command "train run=$W"\n'
    assert [entry.field for entry in of(text).report.stops] == ["--command"]
    assert "--var W=<value>" in of(text).report.stops[0].text
    assert of(text, variables={"W": "b"}).values["command"] == ["bash", "-c", "train run=b"]


def test_what_a_shell_leaves_of_a_backslash() -> None:
    text = (
        f"if ! xpk workload create --cluster c --workload w --tpu-type v6e-8 --docker-image {IMAGE} --env A='\\$B' \\\n"
        "  --command \"run \\$A '\\$C' \\`hostname\\` 2>&1 | tee log\" 2>&1 | tee x; then exit 1; fi\n"
    )
    assert recognition.recognize("stdin", text.encode()).kind == "xpk"
    found = of(text)
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values["command"][2] == "run $A '$C' `hostname` 2>&1 | tee log"
    assert found.values["env"] == {"A": "\\$B"}


def test_a_long_command_is_read_at_once() -> None:
    words = " ".join(f"$(a {number})" for number in range(8_000))
    assigned = "\n".join(f"A{number}=$(b {number})" for number in range(2_000))
    with CpuTime() as cpu:
        create(f'--tpu-type v6e-8 --env A="{words}"')
        of(f"{assigned}\nxpk workload create --workload w --tpu-type v6e-8 --command {words}\n")
    assert cpu.seconds < 5


def test_a_file_of_variables() -> None:
    text = (
        "cat > env.txt <<EOF\n# two\nA=1\nB=x y\nEOF\n"
        f"xpk workload create --cluster c --workload w --tpu-type v6e-8 --docker-image {IMAGE} --command a "
        "--env-file env.txt\n"
    )
    assert of(text).values["env"] == {"A": "1", "B": "x y"}
    with pytest.raises(BadInput, match=r"--env-file other\.txt: cannot be read"):
        of(text.replace("--env-file env.txt", "--env-file other.txt"))


def test_nodes_with_gpus_know_each_other() -> None:
    found = create("--device-type h100-mega-80gb-8 --num-nodes 2")
    script = found.values["command"][2]
    for name in ("NNODES", "NODE_RANK", "JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_PORT=6002", "GPUS_PER_NODE=8"):
        assert f"export {name}" in script, name
    assert script.endswith("\npython3 train.py")
    assert kinds(found)["--command"] == "changed"
    assert create("--device-type h100-mega-80gb-8").values["command"][2] == "python3 train.py"


def test_machines_without_gpus_have_the_variables_that_xpk_gives_them() -> None:
    script = create("--device-type n2-standard-8-3").values["command"][2]
    path = {"PATH": "/usr/bin:/bin", "ACCEL_NODE_COUNT": "3", "ACCEL_NODE_INDEX_FROM": "N", "N": "2"}
    path |= {"ACCEL_MAIN_ADDRESS_FROM": "MAIN", "MAIN": "10.0.0.1"}
    names = ("JAX_PROCESS_COUNT", "PROCESSES_IN_JOB", "JOB_COMPLETION_INDEX", "JOB_INDEX", "JAX_COORDINATOR_ADDRESS")
    told = "echo " + " ".join(f"${name}" for name in (*names, "NNODES", "GPUS_PER_NODE"))
    run = script.replace("python3 train.py", told)
    assert subprocess.run(["bash", "-c", run], env=path, text=True, capture_output=True, check=True).stdout == (
        "3 3 2 0 10.0.0.1\n"
    )
    plain = create("--device-type n2-standard-8-1 --command 'a $JAX_PROCESS_COUNT'").values["command"][2]
    assert "export JAX_PROCESS_COUNT=" in plain and "JOB_INDEX" not in plain


@pytest.mark.parametrize(
    "options", ["--tpu-type v6e-8 --num-slices $N", "--device-type h200-141gb-8 --num-nodes ${N?}"]
)
def test_a_number_that_is_not_known_is_asked_for(options: str) -> None:
    (stop,) = create(options).report.stops
    assert stop.kind == "decision" and "--var N=<value>" in stop.text
    assert "must be an integer" not in stop.text and "is so without it" not in stop.text


@pytest.mark.parametrize("option", ["--docker-image=$WHICH", "--base-docker-image=reg.example/$WHICH:1"])
def test_a_chosen_image_settles_the_commands_own(option: str) -> None:
    text = f"xpk workload create --cluster c --workload w --tpu-type v6e-8 --command a {option}\n"
    assert "--var WHICH" in of(text).report.stops[0].text
    found = of(text, image=IMAGE)
    assert found.values["image"] == IMAGE and not found.report.stops


def test_a_storage_is_mounted_as_chosen() -> None:
    found = create("--tpu-type v6e-8 --storage data", mounts={"/data": "gs://acme-data"})
    assert found.values["mounts"] == [{"source": "gs://acme-data", "path": "/data"}]
    assert not found.report.stops


@pytest.mark.parametrize(
    "options",
    [
        "--tpu-type v6e-8 --env A=hunter2zq --env HF_TOKEN=hunter2zq",
        "--tpu-type v6e-8 --env hunter2zq",
        "--device-type h100-80gb-8 --num-nodes 2 --env A=x --no-such hunter2zq --command 'x;T=hunter2zq'",
    ],
)
def test_no_secret_is_told(options: str) -> None:
    report = create(options).report
    assert "hunter2zq" not in "\n".join(entry.text for entry in report.entries)
    assert "hunter2zq" not in str(report.as_json())


def test_pathways_is_refused() -> None:
    text = "xpk workload create-pathways --workload w --tpu-type v6e-8 --cluster c --command a\n"
    assert recognition.recognize("stdin", text.encode()).kind == "xpk"
    with pytest.raises(BadInput, match=r"create-pathways.*one container"):
        of(text)


def test_the_command_imports_it(home: Path, invoke: Callable[..., Result]) -> None:
    done = invoke("import", "-", text=WHOLE)
    assert done.exit_code == 0, done.output
    assert "is read as xpk: a command of xpk" in done.stderr
    assert "type: v5litepod-16" in done.stdout and "of kind gke or tpu-vm" in done.stderr


def test_a_place_of_a_page_in_a_command_is_refused() -> None:
    (stop,) = create("--tpu-type v6e-8 --command 'python3 t.py out=gs://<bucket>'").report.stops
    assert stop.field == "--command" and "is a placeholder" in stop.text
