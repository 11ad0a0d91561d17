"""Custom jobs of Vertex AI: as gcloud and the API take them, what is refused, and our own requests come back."""

import copy
import json
from datetime import date
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from jobs.importers.reading import leaves
from jobs.importers.vertex import import_job
from jobs.model.job import Job
from tests.jobs.backends.vertex_jobs import TODAY, make_request, make_target
from tests.jobs.imports.leaf_laws import parts

Json = dict[str, Any]
IMAGE = "us-docker.pkg.dev/acme/train/flowers:1.4"
SPEC: Json = {
    "workerPoolSpecs": [
        {
            "machineSpec": {
                "machineType": "a2-ultragpu-2g", "acceleratorType": "NVIDIA_A100_80GB", "acceleratorCount": 2,
            },
            "replicaCount": 1,
            "containerSpec": {"imageUri": IMAGE},
        }
    ]
}  # fmt: skip


def of(document: Json | str, *flags: str, **options: Any) -> ImportResult:
    text = document if isinstance(document, str) else yaml.safe_dump(document)
    return import_job("config.yaml", text.encode(), ImportOptions(flags=flags, today=date(2026, 11, 22), **options))


def stops(found: ImportResult) -> str:
    return "\n".join(entry.text for entry in found.report.stops)


def machine(kind: str, gpu: str | None = None, count: int | None = None, **more: Any) -> Json:
    spec = {"machineType": kind, "acceleratorType": gpu, "acceleratorCount": count, **more}
    pool = {
        **SPEC["workerPoolSpecs"][0],
        "machineSpec": {name: each for name, each in spec.items() if each is not None},
    }
    return {"workerPoolSpecs": [pool]}


def test_list_and_mapping_snake_and_camel_are_one() -> None:
    snake = {
        "worker_pool_specs": {
            "machine_spec": {
                "machine_type": "a2-ultragpu-2g", "accelerator_type": "NVIDIA_A100_80GB", "accelerator_count": 2,
            },
            "replica_count": 1, "container_spec": {"image_uri": IMAGE},
        }
    }  # fmt: skip
    assert of(snake).values == of(SPEC).values == of({"displayName": "config", "jobSpec": SPEC}).values
    assert of(json.dumps(SPEC)).values == of(SPEC).values


@pytest.mark.parametrize(
    "document, message",
    [
        (machine("a3-highgpu-2g", "NVIDIA_H100_80GB", 2), "is available as Spot or flex-start only"),
        (machine("a2-ultragpu-2g", "NVIDIA_TESLA_A100", 2), "a2-ultragpu-2g has 2 nvidia-a100-80gb built in"),
        (machine("n1-standard-8", "NVIDIA_TESLA_T4", 8), "machines have 1, 2 or 4"),
        (machine("a2-ultragpu-8g", "NVIDIA_A100_80GB", 16), "a2-ultragpu-8g has 8"),
        (machine("n1-standard-8", "NVIDIA_TESLA_K80", 1), "which is no longer offered"),
        (machine("n1-standard-8", "NVIDIA_RTX_4090", 1), "is not offered on AWS or Google Cloud"),
        (machine("cloud-tpu", "TPU_V4_POD", 8), "ct5lp-hightpu-4t"),
        ({"workerPoolSpecs": [{**SPEC["workerPoolSpecs"][0], "replicaCount": 2}]}, "and 1 in the second pool"),
        ({"workerPoolSpecs": SPEC["workerPoolSpecs"] * 5}, "has 5 pools"),
        ({**SPEC, "scheduling": {"timeout": "1h"}}, "seconds such as 7200s"),
        ({**SPEC, "scheduling": {"strategy": "CHEAP"}}, "use one of STANDARD, SPOT, FLEX_START"),
        ({**SPEC, "timeout": "3600s"}, "is no field that is known here"),
        ({**SPEC, "workerPoolSpec": 1}, "did you mean workerPoolSpecs?"),
        ({**SPEC, "baseOutputDirectory": {"outputUriPrefix": "gs://YOUR_BUCKET/x"}}, "is a placeholder"),
        ({"scheduling": {"timeout": "3600s"}}, "has no first pool"),
    ],
)  # fmt: skip
def test_what_is_refused(document: Json, message: str) -> None:
    assert message in stops(of(document))


@pytest.mark.parametrize(
    "image, kind, message",
    [
        ("us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.1-13:latest", "refused", "was available until"),
        ("us-docker.pkg.dev/vertex-ai/training/tf-tpu.2-12:latest", "refused", "was available until"),
        ("gcr.io/acme/t:1", "changed", "us-docker.pkg.dev/acme/gcr.io/t:1"),
        ("pytorch/pytorch:2.0.0-cuda11.7-cudnn8-runtime", "kept", "of CUDA 11.7"),
    ],
)
def test_images(image: str, kind: str, message: str) -> None:
    spec = machine("a3-highgpu-8g", "NVIDIA_H100_80GB", 8)
    spec["workerPoolSpecs"][0]["containerSpec"] = {"imageUri": image}
    (entry,) = [entry for entry in of(spec).report.entries if entry.field.endswith("imageUri")]
    assert entry.kind == kind and message in entry.text


CREATE = "gcloud ai custom-jobs create --region=us-central1 --display-name=flowers "
POOL = f"--worker-pool-spec=machine-type=g2-standard-8,accelerator-type=NVIDIA_L4,container-image-uri={IMAGE} "


@pytest.mark.parametrize(
    "text, message",
    [
        (CREATE + POOL + "--timeout=3600s", "write timeout_s: 3600s into the job file"),
        (CREATE + POOL + "--machine-type=x", "is no flag of this command"),
        (CREATE + POOL + "-- --epochs=3", "a program's arguments are --args=a,b"),
        (CREATE + POOL + "--command='python train.py'$X", "--var X=<value>"),
        (
            CREATE + "--worker-pool-spec=machine-type=e2-standard-4,script=t.py,local-package-path=.",
            "gcloud builds an image",
        ),
        (
            CREATE + "--worker-pool-spec=machine-type=e2-standard-4,requirements=tensorflow-gpu==1.15;pandas",
            "use tensorflow[and-cuda]",
        ),
        (CREATE + "--worker-pool-spec=machine-type=e2-standard-4 --args=a", "is for a pool with a containerSpec"),
    ],
)
def test_commands_that_are_wrong(text: str, message: str) -> None:
    assert message in stops(of(text))


def test_the_flags_of_gcloud() -> None:
    found = of(
        CREATE + POOL + POOL.replace("machine-type", "replica-count=3,machine-type")
        + "--command=python,train.py --args='^;^--a=1,2;--b' --labels=team=vision --enable-web-access --network=n"
    )  # fmt: skip
    assert not found.report.stops, stops(found)
    assert found.region == "us-central1"
    assert found.values == {
        "name": "flowers", "image": IMAGE, "command": ["python", "train.py", "--a=1,2", "--b"], "nodes": 4,
        "accelerator": {"type": "nvidia-l4", "count": 1}, "labels": {"team": "vision"},
        "vertex": {"machine_type": "g2-standard-8", "web_access": True},
    }  # fmt: skip
    told = {entry.field: entry.kind for entry in found.report.entries}
    assert told["--network"] == "changed" and told["--worker-pool-spec[1].replica-count"] == "kept"


def test_a_name_of_each_moment() -> None:
    text = "NAME=flowers_$(date +%Y%m%d)\n" + CREATE.replace("=flowers", "=$NAME") + POOL
    found = of(text + "--project=$PROJECT --service-account=$ACCOUNT\n")
    assert not found.report.stops, stops(found)
    assert found.values["name"] == "flowers"
    told = {entry.field: entry for entry in found.report.entries}
    assert told["--display-name"].kind == told["--project"].kind == told["--service-account"].kind == "changed"
    assert "--var NAME=<value>" in stops(of(f"{text} --args=--out=gs://acme-models/$NAME\n"))


def test_a_command_of_a_notebook() -> None:
    text = (
        "! gcloud ai custom-jobs create --region={REGION} --display-name={JOB} \\\n"
        f"  --worker-pool-spec=machine-type={{MACHINE}},container-image-uri={IMAGE} --args='^;^--a={{1}}'\n"
    )
    assert "--var REGION=<value> --var JOB=<value> --var MACHINE=<value>" in stops(of(text))
    found = of(text, variables={"REGION": "us-central1", "JOB": "flowers", "MACHINE": "n1-standard-8"})
    assert not found.report.stops, stops(found)
    assert found.values["vertex"] == {"machine_type": "n1-standard-8", "args": ["--a={1}"]}


def test_variables_that_must_be_set() -> None:
    text = (CREATE + POOL).replace("=flowers", "=${NAME:?name the job}").replace(":1.4", ":${TAG?}")
    assert "--var NAME=<value> --var TAG=<value>" in stops(of(text))
    assert of(text, variables={"NAME": "flowers", "TAG": "2"}).values["image"].endswith(":2")


def test_json_with_numbers_that_are_to_be_filled_in() -> None:
    text = json.dumps({**SPEC, "scheduling": {"timeout": "60s"}}).replace('"replicaCount": 1', '"replicaCount": ${N}')
    assert "--var N=<value>" in stops(of(text))
    assert not of(text, variables={"N": "1"}).report.stops


def test_what_the_target_has_needs_no_value() -> None:
    filled = {"network": "projects/$PROJECT/global/networks/<NETWORK>", "serviceAccount": "${ACCOUNT}"}
    found = of({**SPEC, **filled})
    assert not found.report.stops, stops(found)
    assert found.values == of(SPEC).values
    told = {entry.field: entry for entry in found.report.entries}
    assert told["network"].kind == told["serviceAccount"].kind == "changed"


def test_an_image_that_has_ended_may_be_replaced() -> None:
    spec = machine("n1-standard-8")
    spec["workerPoolSpecs"][0]["containerSpec"] = {"imageUri": "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-3:latest"}
    assert "--image names another" in stops(of(spec))
    assert of(spec, image=IMAGE).values["image"] == IMAGE


def test_flags_win_over_the_file() -> None:
    found = of({**SPEC, "serviceAccount": "a@b"}, "--display-name", "flowers", "--service-account=c@d")
    assert found.values["name"] == "flowers"
    assert [entry.rules for entry in found.report.entries if entry.field == "serviceAccount"] == [["import.flag-wins"]]


NAMES = "machineSpec machine_type replicaCount containerSpec imageUri args env name value scheduling timeout labels"
KEYS = st.sampled_from([*NAMES.split(), "diskSpec", "bootDiskSizeGb", "nfsMounts", "unknown"])
PARTS = parts(KEYS, "SPOT")


@given(st.booleans(), KEYS, PARTS)
def test_every_field_is_in_exactly_one_class(in_pool: bool, key: str, value: Any) -> None:
    document = copy.deepcopy(SPEC)
    (document["workerPoolSpecs"][0] if in_pool else document)[key] = value
    found = of(document)
    told = [entry.field for entry in found.report.entries if entry.given]
    assert sorted(told) == sorted(name for name, _ in leaves(document))
    if not found.report.stops:
        Job(**found.values)


def test_what_the_client_library_prints() -> None:
    # CustomJob.to_json() has choices by number, and empty texts for no value.
    pool = {
        "machineSpec": {"machineType": "g2-standard-12", "acceleratorType": 11, "acceleratorCount": 1,
                        "gpuPartitionSize": "", "tpuTopology": "",
                        "reservationAffinity": {"reservationAffinityType": 2, "key": "", "values": []}},
        "replicaCount": "1", "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100},
        "containerSpec": {"imageUri": IMAGE, "command": [], "args": ["--crop"], "env": []},
        "nfsMounts": [], "lustreMounts": [],
    }  # fmt: skip
    empty = dict.fromkeys(
        ("persistentResourceId", "serviceAccount", "network", "tensorboard", "experiment", "experimentRun",
         "protectedArtifactLocationId"), "",
    )  # fmt: skip
    scheduling = {"timeout": "5400.500s", "strategy": 4, "restartJobOnWorkerRestart": False, "disableRetries": False}
    spec = {"workerPoolSpecs": [pool], "scheduling": scheduling, **empty, "reservedIpRanges": [], "models": []}
    found = of({"displayName": "crops", "jobSpec": spec, "name": "", "state": 0, "labels": {}, "webAccessUris": {},
                "encryptionSpec": {"kmsKeyName": ""}})  # fmt: skip
    assert not found.report.stops, stops(found)
    assert not found.report.of("decision")
    Job(**found.values)
    assert found.values["accelerator"] == {"type": "nvidia-l4", "count": 1}
    assert (found.values["spot"], found.values["timeout_s"]) == (True, 5401)


@pytest.mark.parametrize("number, is_", [(0, None), (1, False), (2, True), (3, False), (6, None)])
def test_a_strategy_by_its_number(number: int, is_: bool | None) -> None:
    found = of({**SPEC, "scheduling": {"strategy": number}})
    assert not found.report.stops, stops(found)
    assert found.values.get("spot") is is_
    assert found.values["vertex"].get("provisioning") == ("flex-start" if number == 6 else None)


@pytest.mark.parametrize("sizes", [(100, 100), (101, 101), (250, 250), (100, 250)])
def test_a_boot_disk_keeps_its_size(sizes: tuple[int, int]) -> None:
    """The size is that of the whole disk, and 100 GB are Vertex AI's own."""
    pool = SPEC["workerPoolSpecs"][0]
    pools = [{**pool, "diskSpec": {"bootDiskSizeGb": size}} for size in sizes]
    found = of({"workerPoolSpecs": pools})
    told = {entry.field: entry.kind for entry in found.report.entries}
    assert {told[f"workerPoolSpecs[{place}].diskSpec.bootDiskSizeGb"] for place in range(2)} == {"kept"}
    made = make_request(**{"name": "digits", **found.values}).body["customJob"]["jobSpec"]["workerPoolSpecs"]
    assert tuple(each.get("diskSpec", {}).get("bootDiskSizeGb", 100) for each in made) == sizes


def test_a_number_that_no_choice_has() -> None:
    assert 'is "5"' in stops(of({**SPEC, "scheduling": {"strategy": 5}}))


def test_reduction_servers_get_the_variables_of_the_first_pool() -> None:
    server = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:2"
    first = {
        **SPEC["workerPoolSpecs"][0],
        "containerSpec": {"imageUri": IMAGE, "env": [{"name": "SEED", "value": "9"}]},
    }
    third = {"machineSpec": {"machineType": "n1-highcpu-16"}, "replicaCount": 3, "containerSpec": {"imageUri": server}}
    found = of({"workerPoolSpecs": [first, {**first, "replicaCount": 2}, third]})
    assert not found.report.stops, stops(found)
    assert found.values["vertex"]["reduction_servers"]["replicas"] == 3
    (said,) = [
        each for each in found.report.of("changed") if each.field.endswith("workerPoolSpecs[2].containerSpec.env")
    ]
    assert said.new == ["SEED"]
    other = {**third, "containerSpec": {"imageUri": IMAGE, "args": ["ps"]}}
    assert "differs from the first pool's" in stops(
        of({"workerPoolSpecs": [first, {**first, "replicaCount": 2}, other]})
    )


def test_a_wait_without_an_end() -> None:
    said = stops(of({**SPEC, "scheduling": {"strategy": "FLEX_START", "maxWaitDuration": "0s"}}))
    assert "without an end" in said and "604800s" in said


@pytest.mark.parametrize("wait", ["0s", "7200s"])
def test_a_wait_that_is_not_for_flex_start_means_nothing(wait: str) -> None:
    found = of({**SPEC, "scheduling": {"strategy": "SPOT", "maxWaitDuration": wait}})
    assert not found.report.stops and "wait_s" not in found.values["vertex"]
    (said,) = [each for each in found.report.of("changed") if each.field == "scheduling.maxWaitDuration"]
    assert said.new is None and "flex-start" in said.why[0]


def test_a_restart_of_all_machines_is_said() -> None:
    two = {"workerPoolSpecs": [SPEC["workerPoolSpecs"][0], {**SPEC["workerPoolSpecs"][0], "replicaCount": 3}]}
    (said,) = of(two).report.of("changed")
    assert said.field.endswith("restartJobOnWorkerRestart") and said.new is True and "vertex.restart" in said.why[0]
    assert not of(SPEC).report.of("changed")
    assert not of({**two, "scheduling": {"restartJobOnWorkerRestart": True}}).report.of("changed")
    assert not of({**two, "scheduling": {"disableRetries": True}}).report.of("changed")


def test_retries_that_are_off_turn_a_restart_off() -> None:
    found = of({**SPEC, "scheduling": {"disableRetries": True, "restartJobOnWorkerRestart": True}})
    assert not found.report.stops and "restart" not in found.values["vertex"]
    (said,) = found.report.of("changed")
    assert "disableRetries" in said.why[0]


OURS: dict[str, Json] = {
    "plain": {},
    "gpu": {"accelerator": {"type": "l4", "count": 2}, "spot": True, "timeout_s": 3600},
    "nodes": {"nodes": 4, "accelerator": {"type": "l4", "count": 1}},
    "args": {"command": [], "vertex": {"args": ["--a", "b c"]}},
    "package": {"command": [], "vertex": {"package": {"uris": ["gs://b/t.tar.gz"], "module": "t.task"}, "args": ["x"]}},
    "pools": {
        "vertex": {
            "machine_type": "n1-standard-8", "workers": {"replicas": 2, "machine_type": "n1-highmem-8"},
            "parameter_servers": {"machine_type": "n1-highmem-4", "image": IMAGE, "args": ["ps"]},
            "evaluators": {"machine_type": "n1-standard-4"},
        }
    },
    "disks": {"disk_gib": 200, "vertex": {"disk_type": "pd-standard"}},
    "shares": {"mounts": [{"source": "nfs://10.0.0.2/share", "path": "/mnt/nfs/data"}]},
    "env": {"env": {"A": "1", "B": "$(x) $y"}, "labels": {"a": "b"}},
    "once": {"retries": 0, "lost_retries": 0},
    "more": {"vertex": {"web_access": True, "dashboard_access": True, "output": "gs://acme-models/x"}},
    "flex": {"accelerator": {"type": "l4"}, "vertex": {"provisioning": "flex-start", "wait_s": 7200}},
}  # fmt: skip


@pytest.mark.parametrize("case", OURS)
def test_our_own_requests_come_back(case: str) -> None:
    target = make_target(network="projects/1/global/networks/n") if case == "shares" else None
    request = make_request(target, **OURS[case])
    text = json.dumps(request.body["customJob"])
    found = import_job("job.json", text.encode(), ImportOptions(today=TODAY))
    assert not found.report.stops, stops(found)
    again = make_request(target, **{"command": [], **found.values, "name": "digits"})
    assert _bare(again.body["customJob"]) == _bare(request.body["customJob"])


def _bare(job: Json) -> Json:
    made = copy.deepcopy(job)
    made.pop("labels")
    return made
