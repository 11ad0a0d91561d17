"""Every leaf of a document for Vertex AI or AI Platform Training is carried or is said to be lost: cases, and a law."""

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import googleapiclient
import pytest
import yaml
from click.testing import Result

from accel.diagnostics.errors import BadInput
from jobs.importers import ai_platform, vertex
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from tests.support.speed import CpuTime

Json = dict[str, Any]
IMAGE = "us-docker.pkg.dev/acme/train/flowers:1.4"
TODAY = date(2026, 11, 22)
RESERVED = "projects/acme/zones/us-central1-a/reservations/r"
KEY = "compute.googleapis.com/reservation-name"
POOL: Json = {
    "machineSpec": {"machineType": "g2-standard-24", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 2},
    "replicaCount": 1,
    "containerSpec": {"imageUri": IMAGE},
}
SPEC: Json = {"workerPoolSpecs": [POOL]}
TRAINING: Json = {
    "scaleTier": "CUSTOM", "region": "us-central1", "masterType": "n1-standard-8", "masterConfig": {"imageUri": IMAGE},
}  # fmt: skip


def of(document: Json | str, *flags: str, **options: Any) -> ImportResult:
    text = document if isinstance(document, str) else json.dumps(document)
    return vertex.import_job("config.yaml", text.encode(), ImportOptions(flags=flags, today=TODAY, **options))


def of_old(training: Json | str, *flags: str, **options: Any) -> ImportResult:
    text = training if isinstance(training, str) else json.dumps({"trainingInput": training})
    return ai_platform.import_job("config.yaml", text.encode(), ImportOptions(flags=flags, today=TODAY, **options))


def pool(**changes: Any) -> Json:
    """A job of one pool with other fields in it."""
    return {"workerPoolSpecs": [{**POOL, **changes}]}


def container(**changes: Any) -> Json:
    return pool(containerSpec={"imageUri": IMAGE, **changes})


def machine(**changes: Any) -> Json:
    return pool(machineSpec={**POOL["machineSpec"], **changes})


def second(**changes: Any) -> Json:
    """A job of two pools that differ."""
    return {"workerPoolSpecs": [POOL, {**POOL, **changes}]}


def affinity(kind: str, *values: str, **more: Any) -> Json:
    return {"reservationAffinity": {"reservationAffinityType": kind, "values": [*values], **more}}


def stops(found: ImportResult) -> str:
    return "\n".join(f"{entry.kind}: {entry.text}" for entry in found.report.stops)


def kinds(found: ImportResult) -> dict[str, str]:
    return {entry.field: entry.kind for entry in found.report.entries}


@pytest.mark.parametrize(
    "document, field, message",
    [
        (pool(diskSpec={"bootDiskSizeGB": 200}), "bootDiskSizeGB", "did you mean bootDiskSizeGb"),
        (pool(diskSpec={"bootDiskType": "pd-ssd", "localSsds": 2}), "localSsds", "is no field"),
        (pool(diskSpec="200"), "diskSpec", "must be a mapping"),
        (pool(nfsMounts=[{"server": "10.0.0.2", "path": "/s", "mountPoint": "d", "readOnly": True}]), "readOnly", ""),
        (pool(nfsMounts=[{"server": "10.0.0.2", "path": "/s"}]), "mountPoint", "is missing"),
        (pool(lustreMounts=[{"instanceIp": "10.0.0.3"}]), "instanceIp", "Lustre"),
        (container(env=[{"name": "A", "value": "1", "secret": "x"}]), "secret", "is no field"),
        (container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k"}}}]), "valueFrom", "Secret Manager"),
        (container(env=[{"name": None, "value": "x"}]), "name", "a variable has a name"),
        (container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]), "name", "is there twice"),
        (container(env=[{"name": "A", "value": "$(AIP_MODEL_DIR)/x"}]), "value", "which Vertex AI fills in"),
        (container(env=["A=1"]), "env", "must be a list of mappings"),
        (container(args=["a", {"b": "c"}]), "args[1].b", ""),
        ({**SPEC, "scheduling": {"timeOut": "7200s"}}, "timeOut", "did you mean timeout"),
        ({**SPEC, "scheduling": {"timeout": "7200s", "priority": 5}}, "priority", "is no field"),
        (machine(gpuPartitionSize="1g.10gb"), "gpuPartitionSize", "part of a GPU"),
        (machine(**affinity("SPECIFIC_RESERVATION", RESERVED, name="x")), "reservationAffinity.name", "is no field"),
        (machine(**affinity("NO_RESERVATION", RESERVED)), "values", "goes with SPECIFIC_RESERVATION"),
        (pool(machineSpec=None), "machineSpec", "a machine type"),
        (pool(machineSpec={"machineType": "g2-standard-24", "tpuTopology": "2x2"}), "tpuTopology", "is for TPUs"),
        (second(machineSpec={**POOL["machineSpec"], **affinity("SPECIFIC_RESERVATION", RESERVED)}), "values", "first"),
        ({**SPEC, "experiment": "e"}, "experiment", "aiplatform.init"),
        ({**SPEC, "models": ["m"]}, "models", "Google's own"),
        ({**SPEC, "reservedIpRanges": ["r"]}, "reservedIpRanges", "leave it out"),
        ({**SPEC, "pscInterfaceConfig": {"dnsPeeringConfigs": [{"domain": "a."}]}}, "domain", "leave it out"),
        ({"jobSpec": SPEC, "serviceAccount": "a@b"}, "serviceAccount", "belongs below it"),
        ({"workerPoolSpecs": [POOL], "worker_pool_specs": [POOL]}, "worker_pool_specs[0].replicaCount", "same field"),
        (container(imageUri="gcr.io//x"), "imageUri", "is no image name"),
        (container(imageUri="https://gcr.io/acme/x"), "imageUri", "is no image name"),
        (container(imageUri="gcr.io/acme/x@sha256:abc"), "imageUri", "is no image name"),
        (container(imageUri="us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:"), "imageUri", "is no image"),
        ({**SPEC, "baseOutputDirectory": {"outputUriPrefix": "gs://[BUCKET]/x"}}, "outputUriPrefix", "placeholder"),
        (container(imageUri="gcr.io/[PROJECT_ID]/x:1"), "imageUri", "placeholder"),
        (container(args=["--data=gs://YOUR_BUCKET/x"]), "args", "placeholder"),
    ],
)  # fmt: skip
def test_what_vertex_loses_is_refused(document: Json, field: str, message: str) -> None:
    found = of(document)
    entries = [entry for entry in found.report.stops if field in entry.field]
    assert entries and message in entries[-1].text, stops(found)


def config(**changes: Any) -> Json:
    """A job of AI Platform with other fields of its master."""
    return {**TRAINING, "masterConfig": {"imageUri": IMAGE, **changes}}


@pytest.mark.parametrize(
    "training, field, message",
    [
        (config(acceleratorConfig={"count": 1, "typ": "x"}), "typ", "did you mean"),
        (config(acceleratorConfig=None), "acceleratorConfig", "has no value"),
        (config(acceleratorConfig={}), "acceleratorConfig", "has no value"),
        (config(acceleratorConfig={"type": None, "count": None}), "type", "value"),
        (config(acceleratorConfig="NVIDIA_TESLA_T4"), "acceleratorConfig", "mapp"),
        (config(diskConfig={"bootDiskSizeGB": 9}), "bootDiskSizeGB", "did you"),
        (config(diskConfig={"disks": 2}), "disks", "is no field"),
        ({**TRAINING, "scheduling": {"maxRunningtime": "7200s"}}, "maxRunningtime", "did you mean maxRunningTime"),
        (config(imageUri="gcr.io/$PROJECT/x"), "imageUri", "--var PROJECT=<value>"),
        ({**TRAINING, "jobDir": "gs://[BUCKET]/x"}, "jobDir", "placeholder"),
    ],
)  # fmt: skip
def test_what_ai_platform_loses_is_refused(training: Json, field: str, message: str) -> None:
    found = of_old(training)
    assert [entry for entry in found.report.stops if field in entry.field and message in entry.text], stops(found)
    assert "did you mean masterType" not in stops(found)


@pytest.mark.parametrize(
    "flag", ["--master-accelerator=type=,count=1", "--master-accelerator=type=nvidia-tesla-t4,count="]
)
def test_an_accelerator_flag_without_a_value(flag: str) -> None:
    assert "must have a" in stops(of_old(TRAINING, flag))


BASE_VALUES = {
    "name": "config", "image": IMAGE, "accelerator": {"type": "nvidia-l4", "count": 2},
    "vertex": {"machine_type": "g2-standard-24"},
}  # fmt: skip


@pytest.mark.parametrize(
    "document, values",
    [
        ({"worker_poolSpecs": [POOL]}, {}),
        ({"job_spec": {"workerPoolSpecs": [{**POOL, "replicaCount": None, "replica_count": "1"}]}}, {}),
        (pool(disk_spec={"boot_disk_size_gb": 200, "bootDiskType": "pd-ssd"}), {"disk_gib": 100}),
        (container(command="python3 train.py"), {"command": ["python3", "train.py"]}),
        (container(env={"name": "A", "value": "1"}), {"env": {"A": "1"}}),
        (container(env={"A": "1", "PROJECT_ID": "acme"}), {"env": {"A": "1", "PROJECT_ID": "acme"}}),
        (container(env=[{"name": "PROJECT_ID", "value": "acme"}]), {"env": {"PROJECT_ID": "acme"}}),
        (container(env=[{"name": "PAD", "value": "<pad>"}]), {"env": {"PAD": "<pad>"}}),
        (container(env=[{"name": "None", "value": "x"}]), {"env": {"None": "x"}}),
        (container(command=["bash", "-c", "cat <<EOF > /tmp/x\n$HOME\nEOF"]),
         {"command": ["bash", "-c", "cat <<EOF > /tmp/x\n$HOME\nEOF"]}),
        (pool(nfsMounts={"server": "10.0.0.2", "path": "/s", "mountPoint": "d"}),
         {"mounts": [{"source": "nfs://10.0.0.2/s", "path": "/mnt/nfs/d"}]}),
        (machine(**affinity("NO_RESERVATION")), {}),
        ({**SPEC, "scheduling": {"strategy": "STRATEGY_UNSPECIFIED"}}, {}),
        ({**SPEC, "encryptionSpec": {"kmsKeyName": "k"}, "jobSpec": None}, {}),
    ],
)  # fmt: skip
def test_what_was_refused_and_is_right(document: Json, values: Json) -> None:
    found = of(document)
    assert not found.report.stops, stops(found)
    assert {key: value for key, value in found.values.items() if key != "vertex"} == {
        key: value for key, value in {**BASE_VALUES, **values}.items() if key != "vertex"
    }


def test_scalars_where_the_service_has_lists() -> None:
    assert of(container(args="--epochs=3")).values["vertex"]["args"] == ["--epochs=3"]
    found = of(container(args="--epochs 3 --name 'a b'"))
    assert found.values["vertex"]["args"] == ["--epochs", "3", "--name", "a b"]
    assert [entry.kind for entry in found.report.entries if entry.field.endswith("args")] == ["changed"]
    reserved = {"reservationAffinityType": "SPECIFIC_RESERVATION", "key": KEY, "values": RESERVED}
    assert of(machine(reservationAffinity=reserved)).values["vertex"]["reservation"] == RESERVED
    package = {"executorImageUri": IMAGE, "packageUris": "gs://b/t.tar.gz", "pythonModule": "t"}
    spec = {"workerPoolSpecs": [{**POOL, "containerSpec": None, "pythonPackageSpec": package}]}
    assert of(spec).values["vertex"]["package"]["uris"] == ["gs://b/t.tar.gz"]
    old = of_old(config(containerCommand="python3 t.py"), form="custom-job")
    assert old.body["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["command"] == ["python3", "t.py"]
    old = of_old({**TRAINING, "args": "--epochs=3"})
    assert old.values["vertex"]["args"] == ["--epochs=3"] and not old.report.stops


def test_fields_of_ai_platform_in_both_spellings() -> None:
    snake = {"training_input": {
        "scale_tier": "CUSTOM", "region": "us-central1", "masterType": "n1-standard-8",
        "master_config": {"image_uri": IMAGE, "disk_config": {"boot_disk_size_gb": 200}},
    }}  # fmt: skip
    found = of_old(json.dumps(snake))
    assert not found.report.stops, stops(found)
    assert found.values["disk_gib"] == 100 and found.values["image"] == IMAGE


def test_an_image_in_place_of_a_runtime_version() -> None:
    for training in (
        {"scaleTier": "BASIC", "runtimeVersion": "2.11", "pythonVersion": "3.7"},
        {**TRAINING, "runtimeVersion": "2.11"},
    ):
        found = of_old({**training, "region": "us-central1"}, image=IMAGE)
        assert not found.report.stops, stops(found)
        assert kinds(found)["trainingInput.runtimeVersion"] == "changed"


def test_pools_that_differ() -> None:
    disk = {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 300}
    found = of({"workerPoolSpecs": [{**POOL, "diskSpec": disk}, {**POOL, "diskSpec": {**disk, "bootDiskSizeGb": 100}}]})
    assert kinds(found)["workerPoolSpecs[1].diskSpec.bootDiskSizeGb"] == "changed"
    found = of({"workerPoolSpecs": [{**POOL, "diskSpec": disk}, POOL]})
    told = kinds(found)
    assert [told[f"jobSpec.workerPoolSpecs[1].diskSpec.{name}"] for name in disk] == ["changed", "changed"]
    reserved = {**POOL, "machineSpec": {**POOL["machineSpec"], **affinity("SPECIFIC_RESERVATION", RESERVED)}}
    assert "write it here too" in stops(of({"workerPoolSpecs": [reserved, POOL]}))
    assert not of({"workerPoolSpecs": [reserved, reserved]}).report.stops
    gone = of({"workerPoolSpecs": [POOL, {**POOL, "replicaCount": 0}]})
    assert "nodes" not in gone.values
    assert {kind for field, kind in kinds(gone).items() if "[1]" in field} == {"changed"}


def test_a_restart_that_is_turned_off_stays_off() -> None:
    found = of({**second(), "scheduling": {"restartJobOnWorkerRestart": False}})
    assert found.values["vertex"]["restart"] is False and found.values["nodes"] == 2


def test_a_key_is_to_be_decided() -> None:
    found = of({"jobSpec": SPEC, "encryptionSpec": {"kmsKeyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k"}})
    (entry,) = found.report.of("decision")
    assert entry.field == "encryptionSpec.kmsKeyName" and not entry.open


TEMPLATE = """\
workerPoolSpecs:
- machineSpec: {machineType: $MACHINE}
  containerSpec:
    imageUri: ${REGISTRY}/train:${TAG:-1}
    args: [--out=$OUT, "--key=$$x"]
    env: [{name: MODE, value: "{{ mode }}"}]
"""
GIVEN = {"MACHINE": "n1-standard-8", "REGISTRY": "us-docker.pkg.dev/acme/a", "TAG": "2", "OUT": "o", "mode": "m"}


def test_a_template_asks_for_all_its_variables() -> None:
    found = of(TEMPLATE)
    asked = next(entry for entry in found.report.stops if entry.field == "--var")
    assert asked.open and asked.text.endswith(
        "give --var MACHINE=<value> --var REGISTRY=<value> --var TAG=<value> --var OUT=<value> --var mode=<value> "
        "[import.variable]"
    )
    done = of(TEMPLATE, variables=GIVEN)
    assert not done.report.stops, stops(done)
    assert (done.values["image"], done.values["vertex"]["args"][0]) == ("us-docker.pkg.dev/acme/a/train:2", "--out=o")
    assert done.values["env"] == {"MODE": "m"}


def test_a_variable_that_is_meant() -> None:
    assert of(container(args=["$X"]), variables={"X": "$X"}).values["vertex"]["args"] == ["$X"]
    assert "--var X=<value>" in stops(of(container(args=["$X"])))


CREATE = "gcloud ai custom-jobs create --region=us-central1 --display-name=flowers"
POOL_FLAG = f" --worker-pool-spec=machine-type=n1-standard-8,container-image-uri={IMAGE}"


@pytest.mark.parametrize(
    "text",
    [
        "cat > config.yaml <<EOF\n{}EOF\n{} --config=config.yaml\n",
        "cat <<'EOF' > ./config.yaml\n{}EOF\n{} --config config.yaml\n",
        "tee config.yaml <<-EOF\n{}EOF\n{} \\\n  --config=config.yaml \\\n  | tee log\n",
        "{1} --config=/dev/stdin <<EOF\n{0}EOF\n",
    ],
)
def test_a_config_that_a_heredoc_writes(text: str) -> None:
    found = of("IMAGE=x\n" + text.format(yaml.safe_dump(SPEC), CREATE))
    assert not found.report.stops, stops(found)
    assert found.values == {**BASE_VALUES, "name": "flowers"}


def test_a_heredoc_has_the_variables_of_the_script() -> None:
    document = yaml.safe_dump(container()).replace(IMAGE, "$REPO/t:$TAG")
    text = f"REPO=us-docker.pkg.dev/acme/a\ncat > c.yaml <<EOF\n{document}EOF\n{CREATE} --config=c.yaml\n"
    found = of(text)
    assert "holds $TAG" in stops(found) and "--var TAG=<value>" in stops(found)
    assert of(text, variables={"TAG": "3"}).values["image"] == "us-docker.pkg.dev/acme/a/t:3"
    literal = text.replace("<<EOF", "<<'EOF'")
    assert "--var REPO=<value> --var TAG=<value>" in stops(of(literal))


def test_a_heredoc_of_a_file_without_a_name() -> None:
    spec = container(command=["bash", "-lc"], args=["echo \\$HOME ${BRANCH}\nls"])
    text = (
        f'CONFIG="$(mktemp)"\ncat >"$CONFIG" <<YAML\n{json.dumps(spec)}\nYAML\n{CREATE} --config="$CONFIG"\n'
    ).replace("\\\\$", "\\$")
    found = of(text)
    assert [entry.field for entry in found.report.stops] == ["workerPoolSpecs[0].containerSpec.args"], stops(found)
    assert "--var BRANCH=<value>" in stops(found) and "HOME" not in stops(found)
    done = of(text, variables={"BRANCH": "main"})
    assert not done.report.stops and done.values["command"] == ["bash", "-lc", "echo $HOME main\nls"]


def test_lines_and_quotes_that_go_on() -> None:
    text = (
        f'{CREATE} \\\n--worker-pool-spec="machine-type=g2-standard-24,\\\naccelerator-type=NVIDIA_L4,\\\n'
        f"accelerator-count=2,\\\ncontainer-image-uri={IMAGE}\" \\\n  --args='^;^--a\n;--b'\n"
    )
    found = of(text)
    assert not found.report.stops, stops(found)
    assert found.values["vertex"]["args"] == ["--a\n", "--b"] and found.values["accelerator"]["count"] == 2


def test_a_script_that_gcloud_would_build_an_image_of() -> None:
    local = f"{CREATE} --worker-pool-spec=machine-type=n1-standard-8,local-package-path=app,executor-image-uri={IMAGE}"
    found = of(f"{local},script=train.py,output-image-uri=x --args=--epochs=3")
    assert not found.report.stops, stops(found)
    assert (found.values["image"], found.values["command"]) == (IMAGE, ["python3", "train.py", "--epochs=3"])
    assert {entry.new for entry in found.report.of("decision")} == {"--code app"}
    assert of(f"{local},python-module=t.task").values["command"] == ["python3", "-m", "t.task"]
    wanting = f"{local},script=t.py,requirements=pandas"
    assert "packages that gcloud installs" in stops(of(wanting))
    assert not of(wanting, image=IMAGE).report.stops
    assert "name script or python-module" in stops(of(local))
    bare = of(local.replace(f",executor-image-uri={IMAGE}", ",script=t.py"))
    assert "--code app" in stops(bare) and "choose one with --image" in stops(bare)


@pytest.mark.parametrize(
    "spec, message",
    [
        ("machine-type=a,machine-type=b", "is set twice"),
        ("machine-type=n1-standard-8,accelerator-type=,accelerator-count=1", "has no value"),
        ("machine-type=n1-standard-8,custom-image-uri=x", "has custom-image-uri"),
    ],
)
def test_pools_of_flags_that_are_wrong(spec: str, message: str) -> None:
    assert message in stops(of(f"{CREATE} --worker-pool-spec={spec},container-image-uri={IMAGE}"))


def test_a_config_whose_name_is_a_variable() -> None:
    with pytest.raises(BadInput) as caught:
        of(f"{CREATE} --config=$FILE --persistent-resource-id=$WHO --service-account=$LEFT_OUT")
    assert "give --var FILE=<value> --var WHO=<value>" in caught.value.message


@pytest.mark.parametrize(
    "text, message",
    [
        (f"{CREATE} --persistent-resource-id=$1", "holds $1"),
        (f"{CREATE} --persistent-resource-id=$'a'", "holds $'a'"),
        (f"{CREATE} --flags-file=f.yaml", "write them into the command"),
        (
            f"{CREATE} --persistent-resource-id=${{ID:?}}",
            "holds ${ID}, which no shell has replaced; give it with --var ID=",
        ),
        (f"{CREATE} --enable-web-access=maybe", "must be true or false"),
    ],
)
def test_what_is_no_value(text: str, message: str) -> None:
    assert message in stops(of(text + POOL_FLAG))


def test_a_list_in_json_is_no_list_of_gcloud() -> None:
    text = f"""{CREATE} --args='["--epochs", "10"]'{POOL_FLAG}"""
    assert "is a list in JSON" in stops(of(text))


def test_flags_of_a_command_that_are_given_again() -> None:
    text = f"{CREATE}{POOL_FLAG}"
    found = of(text, "--region=us-east1", POOL_FLAG.strip().replace("standard-8", "standard-16"))
    assert not found.report.stops and found.region == "us-east1"
    told = {entry.field: entry for entry in found.report.entries}
    for field in ("--region", "--worker-pool-spec.machine-type"):
        assert told[field].kind == "kept" and "given after -- too" in told[field].text
    old = of_old("gcloud ai-platform jobs submit training a --region=us-central1", "--region=us-east1")
    assert "given after -- too" in next(entry.text for entry in old.report.entries if entry.field == "--region")


def test_a_command_whose_output_a_variable_takes() -> None:
    found = of(f'JOB="$({CREATE} \\\n {POOL_FLAG} \\\n --format=json | jq .name)"\n')
    assert not found.report.stops and found.values["name"] == "flowers", stops(found)


def test_pools_beside_one_that_gcloud_would_build() -> None:
    built = f"--worker-pool-spec=machine-type=n1-standard-8,local-package-path=.,script=t.py,executor-image-uri={IMAGE}"
    found = of(f"{CREATE} {built} --worker-pool-spec=machine-type=n1-standard-8,replica-count=2 --args=a")
    assert not found.report.stops, stops(found)
    assert (found.values["nodes"], found.values["command"]) == (3, ["python3", "t.py", "a"])
    bare = "--worker-pool-spec=machine-type=n1-standard-8"
    assert "is missing: a pool runs an image" in stops(of(f"{CREATE} {POOL_FLAG} {bare}"))


def test_two_smaller_than_signs_are_no_heredoc() -> None:
    found = of(f"A=$((1<<B))\n{CREATE}{POOL_FLAG}\ncat <<EOF\n")
    assert not found.report.stops, stops(found)


def test_what_a_shell_reads() -> None:
    flags = "--network=${NET:-n} --labels=t=a#b,u=$TAG --enable-web-access=false"
    found = of(f"TAG=a\nTAG=b\n{CREATE} {flags}{POOL_FLAG} # x'y\n")
    assert not found.report.stops, stops(found)
    assert found.values["labels"] == {"t": "a#b", "u": "b"} and "web_access" not in found.values["vertex"]
    (entry,) = [entry for entry in found.report.entries if entry.field == "the command"]
    assert "sets TAG again" in entry.text and "NET is not set here, and its default is used" in entry.text


def test_a_document_whose_program_calls_gcloud() -> None:
    found = of(yaml.safe_dump(container(command=["bash", "-c", "gcloud storage ls\ngcloud version"])))
    assert found.values["command"][0] == "bash"


DOUBLING = "A0=xxxxxxxxxx\n" + "".join(f"A{n + 1}=$A{n}$A{n}\n" for n in range(22)) + f"{CREATE} --args=$A22\n"


def test_variables_that_grow_without_end() -> None:
    with CpuTime() as cpu, pytest.raises(BadInput) as caught:
        of(DOUBLING)
    assert "its variables become more than 131072 characters" in caught.value.message
    assert cpu.seconds < 2


@pytest.mark.parametrize(
    "text", ["$" * 100_000, "$(" * 50_000, "${" * 50_000, "`" * 99_999, "<<A" * 30_000, "a\\\n" * 50_000]
)
def test_long_commands_are_read_in_time(text: str) -> None:
    with CpuTime() as cpu, contextlib.suppress(BadInput):
        of(f"{CREATE} --args={text}")
    assert cpu.seconds < 3


SECRET = "Tr0ub4dor"
SECRETS = {
    "variable": f"export HF_TOKEN={SECRET}\n{CREATE} --display-name=x-$HF_TOKEN --network=$HF_TOKEN{POOL_FLAG} "
    f"--command='{SECRET} a'",
    "rest": f"{CREATE} --config=c.yaml; export TOKEN={SECRET}",
    "unknown_key": json.dumps(pool(containerSpec={"imageUri": IMAGE, "password": SECRET})),
    "address": json.dumps({**SPEC, "network": f"https://me:{SECRET}@acme.example/x"}),
    "argument": f"{CREATE} --config=c.yaml stray --token {SECRET}",
    "wrong": json.dumps(pool(diskSpec={"bootDiskSizeGb": f"https://me:{SECRET}@acme.example/x"})),
}


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("case", SECRETS)
def test_secrets_are_not_printed(case: str, form: str, home: Path, invoke: Callable[..., Result]) -> None:
    Path("c.yaml").write_text(yaml.safe_dump(SPEC))
    done = invoke("import", "vertex", "-", "--report", form, text=SECRETS[case])
    assert done.stderr and SECRET not in done.stderr


# The law. Documents, each field that the service knows and a document lacks, and a key that nobody knows.

_FOLDER = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
VERTEX = json.loads((_FOLDER / "aiplatform.v1.json").read_text())["schemas"]
OLD = json.loads((_FOLDER / "ml.v1.json").read_text())["schemas"]
PLAUSIBLE: Json = {
    "machineType": "g2-standard-24", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 2, "tpuTopology": "2x2",
    "replicaCount": 3, "timeout": "7200s", "maxWaitDuration": "3600s", "strategy": "SPOT", "bootDiskSizeGb": 300,
    "bootDiskType": "pd-ssd", "outputUriPrefix": "gs://acme/x", "reservationAffinityType": "SPECIFIC_RESERVATION",
    "values": [RESERVED], "key": KEY, "imageUri": f"{IMAGE}.1", "executorImageUri": IMAGE, "pythonModule": "t.task",
    "packageUris": ["gs://acme/t.tar.gz"], "server": "10.0.0.2", "path": "/share", "mountPoint": "data",
    "maxRunningTime": "7200s", "maxWaitTime": "3600s", "count": 1, "type": "NVIDIA_TESLA_T4", "jobDir": "gs://acme/o",
    **{f"{role}Type": "n1-standard-8" for role in ("master", "worker", "parameterServer", "evaluator")},
    **{f"{role}Count": 2 for role in ("worker", "parameterServer", "evaluator")}, "region": "europe-west4",
}  # fmt: skip

Path_ = tuple[str | int, ...]


def objects(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Json]]:
    if isinstance(value, dict):
        yield path, value
        for key, inner in value.items():
            yield from objects(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from objects(inner, (*path, index))


def schema_at(schemas: Json, root: str, path: Path_) -> Json | None:
    """The schema of the object at a path; None where the keys are the author's."""
    found = schemas[root]
    for part in path:
        if isinstance(part, int):
            continue
        inner = found.get("properties", {}).get(part.split("[")[0])
        if inner is None:
            return None
        inner = inner.get("items", inner)
        if "$ref" not in inner:
            return None
        found = schemas[inner["$ref"]]
    return found


def plausible(schemas: Json, name: str, field: Json, depth: int = 0) -> Any:
    if name in PLAUSIBLE:
        return PLAUSIBLE[name]
    if field.get("type") == "array":
        return [plausible(schemas, "", field["items"], depth)]
    if "$ref" in field:
        inner = schemas[field["$ref"]].get("properties", {})
        return {key: plausible(schemas, key, each, depth + 1) for key, each in inner.items()} if depth < 4 else {}
    if field.get("type") == "object":
        return {"k": "v"}
    plain = {"boolean": True, "integer": 5, "number": 5}
    return plain.get(field.get("type", ""), "5" if field.get("format") == "int64" else "some-text")


def changes(document: Json, schemas: Json, root: str) -> Iterator[tuple[str, Path_, str, Any]]:
    """Each object with one more key."""
    for path, inside in objects(document):
        schema = schema_at(schemas, root, path)
        if schema is None:
            continue
        for value in ("v", 5, True, None, ["v"], {"k": "v"}, [{"k": "v"}]):
            yield "unknown", path, "unknownKey", value
        for name, field in schema.get("properties", {}).items():
            if name not in inside:
                yield "known", path, name, plausible(schemas, name, field)


def with_key(document: Json, path: Path_, key: str, value: Any) -> Json:
    made: Any = copy.deepcopy(document)
    at = made
    for part in path:
        at = at[part]
    at[key] = value
    return made


def output(found: ImportResult) -> Any:
    return json.dumps([found.values, found.body, found.region], sort_keys=True)


PACKAGE = {"executorImageUri": IMAGE, "packageUris": ["gs://b/t.tar.gz"], "pythonModule": "t", "args": ["a"]}
DOCUMENTS: dict[str, Json] = {
    "plain": {"displayName": "x", "jobSpec": SPEC},
    "full": {
        "displayName": "x",
        "labels": {"team": "vision"},
        "encryptionSpec": {"kmsKeyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k"},
        "jobSpec": {
            "workerPoolSpecs": [
                {
                    "machineSpec": {**POOL["machineSpec"], **affinity("SPECIFIC_RESERVATION", RESERVED, key=KEY)},
                    "replicaCount": "1",
                    "containerSpec": {
                        "imageUri": IMAGE, "command": ["python3"], "args": ["a"], "env": [{"name": "A", "value": "1"}],
                    },
                    "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200},
                    "nfsMounts": [{"server": "10.0.0.2", "path": "/s", "mountPoint": "d"}],
                }
            ],
            "scheduling": {"timeout": "3600s"},
            "baseOutputDirectory": {"outputUriPrefix": "gs://acme/x"},
            "pscInterfaceConfig": {"networkAttachment": "projects/p/regions/r/networkAttachments/a"},
        },
    },
    "package": {
        "displayName": "x",
        "jobSpec": {"workerPoolSpecs": [{**POOL, "containerSpec": None, "pythonPackageSpec": PACKAGE}]},
    },
    "pools": {"displayName": "x", "jobSpec": {"workerPoolSpecs": [POOL, {**POOL, "replicaCount": 2}]}},
}  # fmt: skip
OLD_DOCUMENTS: dict[str, Json] = {
    "plain": {"jobId": "x", "trainingInput": TRAINING},
    "basic": {
        "jobId": "x",
        "trainingInput": {"scaleTier": "BASIC_GPU", "region": "us-central1", "masterConfig": {"imageUri": IMAGE}},
    },
    "full": {
        "jobId": "x",
        "labels": {"team": "vision"},
        "trainingInput": {
            **TRAINING,
            "masterConfig": {
                "imageUri": IMAGE, "acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 1},
                "diskConfig": {"bootDiskSizeGb": 200},
            },
            "workerType": "n1-standard-8", "workerCount": 2,
            "workerConfig": {"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 1}},
            "scheduling": {"maxRunningTime": "3600s"}, "encryptionConfig": {"kmsKeyName": "k"},
        },
    },
}  # fmt: skip


SEARCH: Json = {
    "jobId": "x",
    "trainingInput": {
        **TRAINING,
        "hyperparameters": {
            "goal": "MAXIMIZE", "maxTrials": 5,
            "params": [
                {"parameterName": "a", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1},
                {"parameterName": "b", "type": "CATEGORICAL", "categoricalValues": ["x", "y"]},
                {"parameterName": "c", "type": "DISCRETE", "discreteValues": [1, 2]},
            ],
        },
    },
}  # fmt: skip
GOLDEN = Path(__file__).parents[2] / "golden" / "imports"
GOLDENS = [
    *(("vertex", name) for name in ("chief_and_workers.json", "two_gpus.yaml", "two_h100.yaml")),
    *(("ai-platform", name) for name in ("clusters.yaml", "legacy_container.yaml", "search.yaml")),
]


@pytest.mark.parametrize("kind, name", GOLDENS)
def test_no_key_that_nobody_knows_is_kept(kind: str, name: str) -> None:
    document = yaml.safe_load((GOLDEN / name).read_text())
    for path, _ in objects(document):
        for key in ("unknownKey", "unknown_key"):
            text = json.dumps(with_key(document, path, key, "v")) if "labels" not in path else ""
            found = (of(text) if kind == "vertex" else of_old(text)) if text else None
            assert not found or [each.kind for each in found.report.entries if key in each.field] == ["refused"]


@pytest.mark.parametrize("form", ["custom-job", "tuning"])
def test_no_field_of_a_search_is_kept_and_lost(form: Any) -> None:
    def read(changed: Json) -> ImportResult:
        return of_old(json.dumps(changed), form=form)

    assert bool(read(SEARCH).report.stops) == (form != "tuning"), stops(read(SEARCH))
    _law(SEARCH, read, OLD, "GoogleCloudMlV1__Job")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_field_of_vertex_is_kept_and_lost(name: str) -> None:
    document = DOCUMENTS[name]
    assert not of(document).report.stops, stops(of(document))
    _law(document, of, VERTEX, "GoogleCloudAiplatformV1CustomJob")


@pytest.mark.parametrize("form", ["job", "custom-job"])
@pytest.mark.parametrize("name", OLD_DOCUMENTS)
def test_no_field_of_ai_platform_is_kept_and_lost(name: str, form: Any) -> None:
    document = OLD_DOCUMENTS[name]

    def read(changed: Json) -> ImportResult:
        return of_old(json.dumps(changed), form=form)

    assert not read(document).report.stops, stops(read(document))
    _law(document, read, OLD, "GoogleCloudMlV1__Job")


def _law(document: Json, read: Callable[[Json], ImportResult], schemas: Json, root: str) -> None:
    before = read(document)
    fields = set(before.report.fields)
    lost: list[str] = []
    for kind, path, key, value in changes(document, schemas, root):
        after = read(with_key(document, path, key, value))
        new = [entry for entry in after.report.entries if entry.given and entry.field not in fields]
        kept = [entry for entry in new if entry.kind == "kept" and entry.why[:1] not in (["is empty"], ["means none"])]
        if kept and (kind == "unknown" or (not after.report.stops and output(after) == output(before))):
            lost.append(f"{path}.{key}: {[entry.text for entry in kept]}")
        if kind == "unknown" and value is not None and not after.report.stops:
            lost.append(f"{path}.{key}: is not refused")
    assert not lost, "\n".join(lost)
