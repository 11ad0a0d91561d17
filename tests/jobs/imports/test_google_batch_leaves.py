"""No leaf of a Google Batch job is lost: what is said to be kept is in the job file, and all else is spoken of."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import googleapiclient
import pytest

from accel.diagnostics.errors import BadInput
from jobs.importers.google_batch import import_job
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from jobs.importers.report import Entry
from jobs.model.job import Job
from tests.jobs.backends.google_batch_target import make_request, make_target
from tests.support.speed import CpuTime

Json = dict[str, Any]
GOLDEN = Path(__file__).parents[2] / "golden" / "imports"
IMAGE = "us-docker.pkg.dev/acme/train/flowers:1.4"
SPEC, POLICY = "taskGroups[0].taskSpec", "allocationPolicy.instances[0].policy"


def of(document: Json, **options: Any) -> ImportResult:
    return import_job("job.json", json.dumps(document).encode(), ImportOptions(**options))


def document(
    *steps: Json, spec: Json | None = None, group: Json | None = None, policy: Json | None = None, **more: Any
) -> Json:
    """A small job."""
    runnables = list(steps) or [container()]
    task = {"runnables": runnables, "computeResource": {"cpuMilli": "4000", "memoryMib": "8192"}, **(spec or {})}
    made = {"taskGroups": [{"taskSpec": task, **(group or {})}]}
    made["allocationPolicy"] = {"instances": [{"policy": {"machineType": "e2-standard-4", **(policy or {})}}]}  # type: ignore[assignment]
    return {**made, "logsPolicy": {"destination": "CLOUD_LOGGING"}, **more}


def container(**fields: Any) -> Json:
    return {"container": {"imageUri": IMAGE, "entrypoint": "python3", "commands": ["t.py"], **fields}}


def entry(found: ImportResult, name: str) -> Entry:
    """What is said of a field."""
    (one,) = [each for each in found.report.entries if each.field == name]
    return one


def values(found: ImportResult) -> Json:
    """The job file, which must be one."""
    assert not found.report.stops, [each.text for each in found.report.stops]
    Job(**found.values)
    return found.values


GCS = {"gcs": {"remotePath": "acme-data"}, "mountPath": "/mnt/disks/data"}
NFS = {"nfs": {"server": "10.0.0.2", "remotePath": "/share"}, "mountPath": "/mnt/disks/share"}
DISK = {"deviceName": "scratch", "mountPath": "/mnt/disks/scratch"}
NEW = {"deviceName": "scratch", "newDisk": {"sizeGb": "100", "type": "pd-ssd"}}


@pytest.mark.parametrize(
    "made, name",
    [
        (document({"barrier": {"name": "a", "nmae": "b"}}, container()), f"{SPEC}.runnables[0].barrier.nmae"),
        (document(spec={"volumes": [{**GCS, "gcs": {"remotePath": "a-b", "bucket": "c"}}]}),
         f"{SPEC}.volumes[0].gcs.bucket"),
        (document(spec={"volumes": [{**NFS, "nfs": {"server": "10.0.0.2", "remotePath": "/a", "port": "1"}}]}),
         f"{SPEC}.volumes[0].nfs.port"),
        (document(spec={"maxRetryCount": 1, "lifecyclePolicies": [
            {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [1], "signals": [9]}}]}),
         f"{SPEC}.lifecyclePolicies[0].actionCondition.signals"),
        (document(spec={"maxRetryCount": 1, "lifecyclePolicies": [
            {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [1]}, "backoff": "9s"}]}),
         f"{SPEC}.lifecyclePolicies[0].backoff"),
        (document(allocationPolicy={"serviceAccount": {"emial": "a@b.c"}}), "allocationPolicy.serviceAccount.emial"),
        (document(container(volumes=["/var/run/docker.sock:/var/run/docker.sock"])),
         f"{SPEC}.runnables[0].container.volumes"),
        (document(container(volumes=["/tmp:/scratch"])), f"{SPEC}.runnables[0].container.volumes"),
        (document(container(volumes=["/tmp:/tmp"]), container()), f"{SPEC}.runnables[0].container.volumes"),
        (document(container(volumes=["/dev/fuse:/dev/fuse"])), f"{SPEC}.runnables[0].container.volumes"),
        (document(container(volumes=["/root/.ssh:/root/.ssh"])), f"{SPEC}.runnables[0].container.volumes"),
        (document(container(volumes=["/mnt/disks/scratch:/a"]), container(volumes=["/mnt/disks/scratch:/b"]),
                  spec={"volumes": [DISK]}, policy={"disks": [NEW]}), f"{SPEC}.volumes[0].mountPath"),
        (document(container(volumes=["/mnt/disks/data:/d"]), container(volumes=["/mnt/disks/share:/d"]),
                  spec={"volumes": [GCS, NFS]}), f"{SPEC}.volumes[1].mountPath"),
        (document(spec={"volumes": [{**GCS, **NFS}]}), f"{SPEC}.volumes[0].nfs.server"),
        (document(spec={"volumes": [{"mountPath": "/mnt/disks/x"}]}), f"{SPEC}.volumes[0].mountPath"),
        (document(container(username="me")), f"{SPEC}.runnables[0].container.username"),
        (document(container(blockExternalNetwork=True)), f"{SPEC}.runnables[0].container.blockExternalNetwork"),
        (document(container(imageUri=None)), f"{SPEC}.runnables[0].container.imageUri"),
        (document({"script": {"text": "echo", "path": "/a.sh"}}), f"{SPEC}.runnables[0].script.path"),
        (document({"script": {"text": ""}}), f"{SPEC}.runnables[0].script.text"),
        (document(group={"runAsNonRoot": True}), "taskGroups[0].runAsNonRoot"),
        (document(group={"taskEnvironments": [{"variables": {"A": "1"}}]}),
         "taskGroups[0].taskEnvironments[0].variables.A"),
        (document(group={"schedulingPolicy": "RANDOM"}), "taskGroups[0].schedulingPolicy"),
        (document(spec={"environment": {"encryptedVariables": {"keyName": "k", "cipherText": "c"}}}),
         f"{SPEC}.environment.encryptedVariables.cipherText"),
        (document(spec={"environments": {"A": "1"}, "environment": {"variables": {"A": "2"}}}),
         f"{SPEC}.environments.A"),
        (document(spec={"environment": {"variables": {"A": "1"}, "secretVariables": {"A": "projects/p/secrets/s"}}}),
         f"{SPEC}.environment.secretVariables.A"),
        (document(spec={"environment": {"variables": {"a-b": "1"}}}), f"{SPEC}.environment.variables.a-b"),
        (document(policy={"disks": [{**NEW, "newDisk": {"sizeGb": "9", "snapshot": "s"}}]}),
         f"{POLICY}.disks[0].newDisk.snapshot"),
        (document(policy={"accelerators": [{"count": "1"}]}), f"{POLICY}.accelerators[0].type"),
        (document(labels={"a": "b"}, allocationPolicy={"labels": {"a": "c"}}), "allocationPolicy.labels.a"),
        (document(logsPolicy={"destination": "PATH"}), "logsPolicy.logsPath"),
        (document(logsPolicy={"destination": "PATH", "logsPath": "/var/log"}), "logsPolicy.logsPath"),
        (document(spec={"maxRetryCount": 1, "lifecyclePolicies": [{"action": "RETRY_TASK"}]}),
         f"{SPEC}.lifecyclePolicies[0].actionCondition.exitCodes"),
        (document(spec={"maxRetryCount": 1, "lifecyclePolicies": [{"actionCondition": {"exitCodes": [1]}}]}),
         f"{SPEC}.lifecyclePolicies[0].action"),
        *[(document(spec={"maxRetryCount": 1, "lifecyclePolicies": [
            {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [code]}}]}),
           f"{SPEC}.lifecyclePolicies[0].actionCondition.exitCodes") for code in ("abc", 0, 60000, -1, 1.5)],
        *[(document(container(imageUri=image)), f"{SPEC}.runnables[0].container.imageUri")
          for image in ("gcr.io//app:1", "gcr.io/acme/app:", "gcr.io/acme/app:1:2", "gcr.io/acme/app@sha256:12",
                        "gcr.io/acme/App:1", "gcr.io/acme/app:1 ", "gcr.io/acme/", "https://gcr.io/acme/app:1",
                        "us-docker.pkg.dev/$PROJECT/r/t:1", "us-docker.pkg.dev/${PROJECT}/r/t:1",
                        "us-docker.pkg.dev/[PROJECT]/r/t:1", "us-docker.pkg.dev/{{ project }}/r/t:1")],
        (document(policy={"machineType": "$MACHINE"}), f"{POLICY}.machineType"),
        *[(document(spec={"volumes": [{**GCS, "gcs": {"remotePath": bucket}}]}), f"{SPEC}.volumes[0].gcs.remotePath")
          for bucket in ("[BUCKET]", "$BUCKET/x", "<bucket>", "gs://MY_BUCKET")],
        (document({"script": {"text": "gsutil cp gs://MY_BUCKET/a ."}}), f"{SPEC}.runnables[0].script.text"),
        (document(container(commands=True)), f"{SPEC}.runnables[0].container.commands"),
        (document({}, container()), f"{SPEC}.runnables[0]"),
        (document(container(), "echo"), f"{SPEC}.runnables[1]"),
        (document(spec={"volumes": "gs://acme"}), f"{SPEC}.volumes"),
        (document(group={"taskEnvironments": [{}, {}]}), "taskGroups[0].taskEnvironments"),
        (document({"script": {"text": "x"}, "barrier": {"name": "b"}}), f"{SPEC}.runnables[0].barrier.name"),
    ],
)  # fmt: skip
def test_refused(made: Json, name: str) -> None:
    found = entry(of(made), name)
    assert found.kind == "refused" or found.open, found.text
    assert found.why


@pytest.mark.parametrize(
    "made, name, kind, part",
    [
        (document(container(volumes=["/tmp:/tmp"])), f"{SPEC}.runnables[0].container.volumes", "changed", {}),
        (document(container(volumes=["/var/lib/nvidia/lib64:/usr/local/nvidia/lib64"])),
         f"{SPEC}.runnables[0].container.volumes", "changed", {}),
        (document(container(volumes=["/dev/shm:/dev/shm"])), f"{SPEC}.runnables[0].container.volumes", "changed",
         {"google_batch": {"docker_options": "--ipc=host", "machine_type": "e2-standard-4"}}),
        (document(container(volumes=["/mnt/disks/data:/a", "/mnt/disks/data:/b:ro", "/mnt/disks/data/c:/d"]),
                  spec={"volumes": [GCS]}), f"{SPEC}.volumes[0].gcs.remotePath", "kept",
         {"mounts": [{"source": "gs://acme-data", "path": "/a"},
                     {"source": "gs://acme-data", "path": "/b", "read_only": True},
                     {"source": "gs://acme-data/c", "path": "/d"}]}),
        (document({"script": {"text": "ls /mnt/disks/data"}}, container(volumes=["/mnt/disks/data:/data"]),
                  spec={"volumes": [GCS]}), f"{SPEC}.volumes[0].mountPath", "kept",
         {"mounts": [{"source": "gs://acme-data", "path": "/data"},
                     {"source": "gs://acme-data", "path": "/mnt/disks/data"}]}),
        (document(container(volumes=["/mnt/disks/data:/d:ro"]), container(volumes=["/mnt/disks/data:/d"]),
                  spec={"volumes": [GCS]}), f"{SPEC}.runnables[1].container.volumes", "changed",
         {"mounts": [{"source": "gs://acme-data", "path": "/d"}]}),
        (document(spec={"volumes": [{**GCS, "mountOptions": ["--only-dir=set/a", "-o ro", "--uid=7"]}]}),
         f"{SPEC}.volumes[0].mountOptions", "changed",
         {"mounts": [{"source": "gs://acme-data/set/a", "path": "/mnt/disks/data", "read_only": True}]}),
        (document(spec={"volumes": [{**NFS, "mountOptions": "rw,errors=remount-ro"}]}),
         f"{SPEC}.volumes[0].mountOptions", "changed",
         {"mounts": [{"source": "nfs://10.0.0.2/share", "path": "/mnt/disks/share"}]}),
        (document(spec={"volumes": [DISK, GCS]}, policy={"disks": [NEW]},
                  logsPolicy={"destination": "PATH", "logsPath": "/mnt/disks/data/logs"}),
         "logsPolicy.logsPath", "kept",
         {"google_batch": {"disks": [{"name": "scratch", "gib": 100, "path": "/mnt/disks/scratch", "type": "pd-ssd"}],
                           "logs_path": "/mnt/disks/data/logs", "machine_type": "e2-standard-4"}}),
        (document(container(volumes=["/mnt/disks/scratch:/s", "/mnt/disks/data:/d"]),
                  spec={"volumes": [DISK, {**GCS, "mountPath": "/mnt/disks/data"}]}, policy={"disks": [NEW]},
                  logsPolicy={"destination": "PATH", "logsPath": "/mnt/disks/data/logs"}),
         "logsPolicy.logsPath", "kept",
         {"google_batch": {"disks": [{"name": "scratch", "gib": 100, "path": "/s", "type": "pd-ssd"}],
                           "logs_path": "/d/logs", "machine_type": "e2-standard-4"}}),
        (document(container(options="--shm-size=1g"), container(options="--shm-size 8gb"), container()),
         f"{SPEC}.runnables[0].container.options", "changed", {"shm_mib": 8192}),
        (document(container(options="--shm-size=1g"), container()),
         f"{SPEC}.runnables[1].container.options", "changed", {"shm_mib": 1024}),
        (document(spec={"computeResource": None}), f"{SPEC}.computeResource.cpuMilli", "kept",
         {"cpus": 2, "memory_mib": 2000}),
        (document(spec={"computeResource": {"cpuMilli": "1000"}}), f"{SPEC}.computeResource.memoryMib", "kept",
         {"cpus": 1, "memory_mib": 2000}),
        (document(spec={"maxRetryCount": 3, "lifecyclePolicies": [
            {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [17, 50001]}}]}),
         f"{SPEC}.lifecyclePolicies[0].actionCondition.exitCodes", "changed", {"retries": 3}),
        (document(spec={"maxRetryCount": 3, "lifecyclePolicies": [
            {"action": "FAIL_TASK", "actionCondition": {"exitCodes": 1}}]}),
         f"{SPEC}.lifecyclePolicies[0].actionCondition.exitCodes", "changed", {"retries": 3}),
        (document(policy={"bootDisk": {"sizeGb": "50"}}, spec={"computeResource": {"bootDiskMib": "102400"}}),
         f"{SPEC}.computeResource.bootDiskMib", "changed",
         {"google_batch": {"boot_disk_gib": 50, "machine_type": "e2-standard-4"}}),
        (document(allocationPolicy={"labels": {"team": "vision"}}), "allocationPolicy.labels.team", "kept",
         {"labels": {"team": "vision"}}),
        (document(spec={"volumes": [DISK]}, policy={"disks": [{"deviceName": "scratch", "newDisk": {"sizeGb": "9"}}]}),
         f"{POLICY}.disks[0].newDisk.type", "kept",
         {"google_batch": {"disks": [{"name": "scratch", "gib": 9, "path": DISK["mountPath"], "type": "pd-standard"}],
                           "machine_type": "e2-standard-4"}}),
        (document(group={"taskCount": "8"}, policy={"machineType": "n1-standard-8", "accelerators": [
            {"type": "nvidia-tesla-t4", "count": "1"}]}), "taskGroups[0].taskCountPerNode", "changed", {"tasks": 8}),
        (document(spec={"volumes": [{"nfs": {"server": "10.0.0.2", "remotePath": "/"}, "mountPath": "/mnt/a"}]}),
         f"{SPEC}.volumes[0].nfs.remotePath", "kept", {"mounts": [{"source": "nfs://10.0.0.2/", "path": "/mnt/a"}]}),
        (document(spec={"computeResource": {"memoryMib": 2}}), f"{SPEC}.computeResource.memoryMib", "changed",
         {"memory_mib": 4}),
        # What was refused without need.
        (document(container(commands="train.py --epochs 5")), f"{SPEC}.runnables[0].container.commands", "changed",
         {"command": ["python3", "train.py", "--epochs", "5"]}),
        (document(container(commands="t.py")), f"{SPEC}.runnables[0].container.commands", "kept",
         {"command": ["python3", "t.py"]}),
        (document(allocationPolicy={"instances": {"policy": {"machineType": "e2-standard-4"}}}),
         "allocationPolicy.instances.policy.machineType", "kept", {"google_batch": {"machine_type": "e2-standard-4"}}),
        (document(policy={"reservation": "NO_RESERVATION"}), f"{POLICY}.reservation", "decision", {}),
        (document(policy={"minCpuPlatform": "Intel Ice Lake"}), f"{POLICY}.minCpuPlatform", "decision", {}),
        (document(policy={"machineType": "e2-medium"}, spec={"computeResource": {"cpuMilli": 1000, "memoryMib": 512}}),
         f"{POLICY}.machineType", "decision", {"google_batch": {"machine_type": "e2-standard-2"}}),
        (document(policy={"machineType": "f1-micro"}, spec={"computeResource": {}}),
         f"{POLICY}.machineType", "decision",
         {"google_batch": {"machine_type": "n1-standard-1"}, "cpus": 1, "memory_mib": 2000}),
        (document(policy={"machineType": "f1-micro"}), f"{POLICY}.machineType", "decision",
         {"google_batch": {"machine_type": "n1-standard-4"}}),
        (document(allocationPolicy={"instances": [{"installOpsAgent": True}]}),
         "allocationPolicy.instances[0].installOpsAgent", "decision", {}),
        (document(container(enableImageStreaming=True)), f"{SPEC}.runnables[0].container.enableImageStreaming",
         "decision", {}),
        (document({**container(), "environment": {"secretVariables": {"T": "projects/p/secrets/s/versions/1"}}}),
         f"{SPEC}.runnables[0].environment.secretVariables.T", "kept",
         {"secrets": {"T": "projects/p/secrets/s/versions/1"}, "command": ["python3", "t.py"]}),
        (document({**container(), "environment": {"secretVariables": {"T": "projects/p/secrets/s/versions/1"}}},
                  container()), f"{SPEC}.runnables[0].environment.secretVariables.T", "changed",
         {"secrets": {"T": "projects/p/secrets/s/versions/1"}}),
        (document({"script": {"text": "cat <<EOF >/tmp/a\n$MY_VALUE TODO <pad>\nEOF\n"}}),
         f"{SPEC}.runnables[0].script.text", "kept", {}),
        (document({"script": {"text": "gsutil cp gs://$MY_BUCKET/${PROJECT_ID}/a .\n"}}),
         f"{SPEC}.runnables[0].script.text", "kept", {}),
        (document(container(commands=["t.py", "--pad", "<pad>", "--key-from", "MY_API_KEY"])),
         f"{SPEC}.runnables[0].container.commands", "kept", {}),
        (document(spec={"environment": {"variables": {"PAD": "<pad>", "NAME_OF": "MY_TOKEN"}}}),
         f"{SPEC}.environment.variables.PAD", "kept", {"env": {"PAD": "<pad>", "NAME_OF": "MY_TOKEN"}}),
        (document(spec={"volumes": [{**GCS, "mountPath": "/mnt/disks/my-bucket"}]}), f"{SPEC}.volumes[0].mountPath",
         "kept", {"mounts": [{"source": "gs://acme-data", "path": "/mnt/disks/my-bucket"}]}),
        (document(allocationPolicy={"tags": ["${TAG}"]}), "allocationPolicy.tags", "changed", {}),
        (document(logsPolicy={"destination": "DESTINATION_UNSPECIFIED"}), "logsPolicy.destination", "changed", {}),
        *[(document({"barrier": name}, container()), f"{SPEC}.runnables[0].barrier", "kept",
           {"google_batch": {"machine_type": "e2-standard-4", "runnables": [
               {"barrier": "barrier"}, {"image": IMAGE, "entrypoint": "python3", "command": ["t.py"]}]}})
          for name in ({}, None)],
        (document(allocationPolicy={"location": {"allowedLocations": ["regions/us-central1", "zones/us-central1-a"]}}),
         "allocationPolicy.location.allowedLocations", "changed", {"google_batch": {"zones": ["us-central1-a"]}}),
        (document({"script": {"text": "exec echo 'it\n"}}), f"{SPEC}.runnables[0].script.text", "kept", {}),
    ],
)  # fmt: skip
def test_carried(made: Json, name: str, kind: str, part: Json) -> None:
    found = of(made)
    got = values(found)
    assert entry(found, name).kind == kind, entry(found, name).text
    assert {key: got.get(key) for key in part} == part


def test_retry_codes_that_are_added_are_said() -> None:
    policy = {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [50001]}}
    found = of(document(spec={"maxRetryCount": 2, "lifecyclePolicies": [policy]}))
    said = entry(found, f"{SPEC}.lifecyclePolicies[0].actionCondition.exitCodes")
    assert said.kind == "changed" and said.new == [75, 143, 50001, 50002, 50003, 50004, 50006], said.text


def test_an_existing_disk_has_another_source() -> None:
    made = document(spec={"volumes": [DISK]}, policy={"disks": [{"deviceName": "scratch", "existingDisk": "d"}]})
    (stop,) = of(made).report.stops
    assert stop.field == f"{POLICY}.disks[0].existingDisk" and "--mount" in stop.why[0]
    found = of(made, mounts={"/mnt/disks/scratch": "gs://acme-data"})
    assert values(found)["mounts"] == [{"source": "gs://acme-data", "path": "/mnt/disks/scratch"}]


def test_an_instance_template_is_decided() -> None:
    made = document(allocationPolicy={"instances": [{"instanceTemplate": "projects/p/global/instanceTemplates/t"}]})
    (stop,) = of(made).report.stops
    assert stop.kind == "decision" and stop.field.endswith("instanceTemplate")
    request = make_request(make_target(instance_template="projects/p/global/instanceTemplates/t"))
    ours = of(request.body["job"])
    assert not ours.report.stops and "machine_type" not in ours.values.get("google_batch", {})


def test_both_spellings_of_a_field() -> None:
    camel = document(container(volumes=["/mnt/disks/data:/data"]), spec={"volumes": [GCS], "maxRunDuration": "60s"})
    snake = json.loads(
        json.dumps(camel)
        .replace("taskGroups", "task_groups")
        .replace("taskSpec", "task_spec")
        .replace("imageUri", "image_uri")
        .replace("remotePath", "remote_path")
        .replace("maxRunDuration", "max_run_duration")
        .replace("machineType", "machine_type")
    )
    assert values(of(snake)) == values(of(camel))
    assert entry(of(snake), "task_groups[0].task_spec.max_run_duration").kind == "kept"
    both = document(spec={"maxRetryCount": 1, "max_retry_count": 2})
    assert "another spelling" in entry(of(both), f"{SPEC}.max_retry_count").why[0]


def test_what_was_meant() -> None:
    assert "policy" in entry(of(document(machineType="e2-standard-4")), "machineType").why[0]
    (said,) = entry(of(document(container(imageURI="x"))), f"{SPEC}.runnables[0].container.imageURI").why
    assert "imageUri" in said


TWICE = ('{"priority": 1, "priority": 2}', "priority: 1\npriority: 2\n", '{"a.b": 1, "a": {"b": 2}}')


@pytest.mark.parametrize("text", TWICE)
def test_a_key_twice(text: str) -> None:
    with pytest.raises(BadInput):
        import_job("job", text.encode(), ImportOptions())


def test_a_password_is_not_shown() -> None:
    for password in ("n1234567", "XXXX-n1234567", "$n1234567"):
        found = of(document(container(password=password)))
        assert "n1234567" not in "".join(each.text for each in found.report.entries)


def test_many_runnables() -> None:
    made = document(*[container(volumes=["/mnt/disks/data:/data"]) for _ in range(3000)], spec={"volumes": [GCS]})
    with CpuTime() as cpu:
        found = of(made)
    assert cpu.seconds < 10  # it was minutes
    assert len(found.values["google_batch"]["runnables"]) == 3000


SCHEMAS: Json = json.loads(
    (Path(googleapiclient.__file__).parent / "discovery_cache" / "documents" / "batch.v1.json").read_text()
)["schemas"]

SAMPLES = {
    "sweep": json.loads((GOLDEN / "sweep.json").read_text()),
    "one_gpu": json.loads((GOLDEN / "one_gpu.json").read_text().replace("MY_PROJECT", "acme")),
    "small": document(),
    "steps": document(
        {"script": {"text": "echo a"}, "background": True},
        {"barrier": {"name": "all"}},
        {**container(volumes=["/mnt/disks/data:/data:ro", "/mnt/disks/scratch:/mnt/disks/scratch"], options="--init"),
         "environment": {"variables": {"A": "1"}}, "alwaysRun": True},
        spec={
            "volumes": [GCS, NFS, DISK],
            "environment": {"variables": {"B": "2"}, "secretVariables": {"C": "projects/p/secrets/s/versions/1"}},
            "maxRetryCount": 3,
            "lifecyclePolicies": [{"action": "RETRY_TASK", "actionCondition": {"exitCodes": [3, 4]}}],
            "maxRunDuration": "600s",
        },
        group={"taskCount": "9", "parallelism": "3", "taskCountPerNode": "1", "requireHostsFile": True},
        policy={"disks": [NEW], "bootDisk": {"image": "batch-cos", "sizeGb": "40"}, "provisioningModel": "SPOT"},
        labels={"team": "vision"},
        priority="7",
    ),
}  # fmt: skip


def _objects(value: Any, schema: str, path: str = "") -> Iterator[tuple[str, Json, str]]:
    """Every object of a document: its path, itself and the name of its schema."""
    yield path, value, schema
    for key, inner in cast(Json, value).items():
        field = SCHEMAS[schema]["properties"][key]
        name = f"{path}.{key}" if path else key
        if "$ref" in field:
            yield from _objects(inner, field["$ref"], name)
        elif "$ref" in field.get("items", {}):
            for index, each in enumerate(inner):
                yield from _objects(each, field["items"]["$ref"], f"{name}[{index}]")


def _snake(value: Any, schema: str) -> Any:
    """A document with the original names of all fields."""
    made: Json = {}
    for key, inner in cast(Json, value).items():
        field = SCHEMAS[schema]["properties"][key]
        if "$ref" in field:
            inner = _snake(inner, field["$ref"])
        elif "$ref" in field.get("items", {}):
            inner = [_snake(each, field["items"]["$ref"]) for each in inner]
        made[re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", key)] = inner
    return made


@pytest.mark.parametrize("sample", SAMPLES)
def test_original_names(sample: str) -> None:
    found, snake = of(SAMPLES[sample]), of(_snake(SAMPLES[sample], "Job"))
    assert snake.values == found.values
    assert [each.kind for each in snake.report.entries] == [each.kind for each in found.report.entries]


def _plausible(field: Json) -> Any:
    if "$ref" in field:
        return {
            key: _plausible(inner)
            for key, inner in SCHEMAS[field["$ref"]].get("properties", {}).items()
            if not inner.get("readOnly")
        }
    if field["type"] == "array":
        return [_plausible(field["items"])]
    if field["type"] == "object":
        return {"key": _plausible(field["additionalProperties"])}
    if field["type"] == "boolean":
        return True
    if field["type"] == "integer" or field.get("format") == "int64":
        return "3"
    if field.get("format") == "google-duration":
        return "30s"
    return field["enum"][-1] if "enum" in field else "plausible"


def _injected() -> Iterator[tuple[str, Json, Json, str]]:
    for sample in SAMPLES.values():
        for path, inside, schema in _objects(sample, "Job"):
            properties = SCHEMAS[schema].get("properties", {})
            for key in ("unknownKey", *properties):
                if key in inside:
                    continue
                value = _plausible(properties[key]) if key in properties else "x"
                made = copy.deepcopy(sample)
                (at,) = [each for name, each, _ in _objects(made, "Job") if name == path]
                at[key] = value
                yield schema, sample, made, f"{path}.{key}" if path else key


def test_samples_are_valid() -> None:
    for name, sample in SAMPLES.items():
        mounts = {"/mnt/disks/data": "gs://acme-data"} if name == "one_gpu" else {}
        assert values(of(sample, mounts=mounts))


def test_what_is_kept_changes_the_job() -> None:
    lost: list[str] = []
    for schema, sample, made, path in _injected():
        before, after = of(sample), of(made)
        told = [each for each in after.report.entries if each.given and each.field.startswith(path)]
        assert told, path
        same = (before.values, before.region) == (after.values, after.region)
        # What is so in any case is in the request, whatever the job file says.
        kept = [each for each in told if each.kind == "kept" and not any(why.startswith("is so") for why in each.why)]
        if kept and (same or path.endswith("unknownKey")):
            lost += [f"{schema}: {each.text}" for each in kept]
        if not path.endswith("unknownKey"):
            lost += [f"{schema}: {each.text}" for each in told if any("known here" in why for why in each.why)]
    assert not lost, "\n".join(lost)
