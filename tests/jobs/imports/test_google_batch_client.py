"""Jobs of Google Batch as client library and `gcloud batch jobs describe` print them, and what is to be filled in."""

import json
from typing import Any

import pytest

from accel.diagnostics.errors import BadInput
from jobs.importers.google_batch import import_job
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from jobs.importers.report import Entry
from jobs.model.job import Job
from tests.jobs.backends.google_batch_target import make_request

Json = dict[str, Any]
IMAGE = "us-docker.pkg.dev/acme/vision/crops:3"


def of(document: Json, **options: Any) -> ImportResult:
    return import_job("crops.json", json.dumps(document).encode(), ImportOptions(**options))


def entry(found: ImportResult, name: str) -> Entry:
    """What is said of a field."""
    (one,) = [each for each in found.report.entries if each.field == name]
    return one


def job(spec: Json | None = None, group: Json | None = None, policy: Json | None = None, **more: Any) -> Json:
    """A small job."""
    step = {"container": {"imageUri": IMAGE, "commands": ["--crop"]}}
    made: Json = {"taskGroups": [{"taskSpec": {"runnables": [step], **(spec or {})}, **(group or {})}]}
    made["allocationPolicy"] = {"instances": [{"policy": {"machineType": "e2-standard-4", **(policy or {})}}]}
    return {**made, **more}


def script(text: str, **more: Any) -> Json:
    return job({"runnables": [{"script": {"text": text}}], **more})


def printed_by_the_client() -> Json:
    """What Job.to_json() of the client library prints: choices by number, and zeros and empty texts for no value."""
    container = {
        "imageUri": IMAGE,
        "commands": ["--crop"],
        "entrypoint": "",
        "volumes": [],
        "options": "",
        "blockExternalNetwork": False,
        "username": "",
        "password": "",
        "enableImageStreaming": False,
    }
    step = {
        "container": container,
        "displayName": "",
        "ignoreExitStatus": False,
        "background": False,
        "alwaysRun": False,
        "labels": {},
    }
    spec = {
        "runnables": [step],
        "computeResource": {"cpuMilli": "3000", "memoryMib": "0", "bootDiskMib": "0"},
        "maxRetryCount": 2,
        "environments": {},
        "volumes": [],
        "lifecyclePolicies": [{"action": 1, "actionCondition": {"exitCodes": [50001]}}],
    }
    group = {
        "taskSpec": spec,
        "taskCount": "8",
        "parallelism": "0",
        "schedulingPolicy": 0,
        "name": "",
        "taskEnvironments": [],
        "taskCountPerNode": "0",
        "requireHostsFile": False,
        "permissiveSsh": False,
        "runAsNonRoot": False,
    }
    policy = {
        "machineType": "e2-standard-4",
        "minCpuPlatform": "",
        "provisioningModel": 2,
        "accelerators": [],
        "disks": [],
        "reservation": "",
        "bootDisk": {"sizeGb": "0", "image": "", "type": ""},
    }
    instance = {"policy": policy, "installGpuDrivers": False, "installOpsAgent": False, "blockProjectSshKeys": False}
    return {
        "name": "",
        "uid": "",
        "priority": "0",
        "taskGroups": [group],
        "allocationPolicy": {"instances": [instance], "labels": {}, "tags": []},
        "logsPolicy": {"destination": 1, "logsPath": ""},
        "labels": {},
        "notifications": [],
    }


def test_what_the_client_library_prints() -> None:
    found = of(printed_by_the_client())
    assert not found.report.stops, [each.text for each in found.report.stops]
    assert not found.report.of("decision")
    Job(**found.values)
    assert found.values == {
        "name": "crops", "image": IMAGE, "cpus": 3, "memory_mib": 2000, "tasks": 8, "retries": 0, "lost_retries": 2,
        "spot": True, "google_batch": {"args": ["--crop"], "machine_type": "e2-standard-4", "priority": 0},
    }  # fmt: skip


@pytest.mark.parametrize(
    "made, name, value",
    [
        (job(group={"schedulingPolicy": 2}), "google_batch.in_order", True),
        (job(group={"schedulingPolicy": "1"}), "google_batch.in_order", None),
        (job(policy={"provisioningModel": 1}), "spot", False),
        (job(policy={"provisioningModel": 3}), "spot", True),
        (job(policy={"provisioningModel": 0}), "spot", None),
        (job(policy={"provisioningModel": 5}), "google_batch.provisioning", "flex-start"),
        (job(spec={"maxRetryCount": 1, "lifecyclePolicies": [
            {"action": "2", "actionCondition": {"exitCodes": [9]}}]}), "retries", 1),
    ],
)  # fmt: skip
def test_a_choice_by_its_number(made: Json, name: str, value: Any) -> None:
    found = of(made)
    assert not found.report.stops, [each.text for each in found.report.stops]
    block, _, field = name.rpartition(".")
    assert (found.values.get(block, {}) if block else found.values).get(field) == value


def test_a_number_that_no_choice_has() -> None:
    (stop,) = of(job(group={"schedulingPolicy": 7})).report.stops
    assert "IN_ORDER" in stop.text


def test_a_zero_is_no_value_where_the_api_has_a_default() -> None:
    found = of(job({"computeResource": {"cpuMilli": 0, "memoryMib": "0"}}, {"taskCount": 0}))
    assert (found.values["cpus"], found.values["memory_mib"], found.values.get("tasks")) == (2, 2000, None)
    assert "for no value" in entry(found, "taskGroups[0].taskCount").text
    snake = of({"task_groups": [{"task_count": "0", "task_spec": {"runnables": [{"script": {"text": ""}}]}}]})
    assert entry(snake, "task_groups[0].task_count").kind == "kept"
    assert entry(snake, "task_groups[0].task_spec.runnables[0].script.text").kind == "refused"


def test_a_job_that_was_described() -> None:
    made = job(
        name="projects/acme/locations/us-east4/jobs/crops-7",
        allocationPolicy={
            "instances": [{"policy": {"machineType": "e2-standard-4"}}],
            "labels": {"batch-job-id": "crops-7", "team": "vision"},
        },
    )
    found = of(made)
    assert found.values["labels"] == {"team": "vision"}
    assert entry(found, "allocationPolicy.labels.batch-job-id").kind == "changed"


@pytest.mark.parametrize("kept", ["MODE=$MODE", "MODE=${MODE}"])
def test_a_variable_that_the_program_reads_itself(kept: str) -> None:
    name, _, value = kept.partition("=")
    made = job({"environment": {"variables": {"AS": "$MODE"}}})
    assert "--var MODE=<value>" in of(made).report.stops[0].text
    found = of(made, variables={name: value})
    assert not found.report.stops, [each.text for each in found.report.stops]
    assert found.values["env"] == {"AS": value}
    pasted = f"gcloud batch jobs submit crops --location us-east4 --config - <<EOF\n{json.dumps(made)}\nEOF\n"
    again = import_job("submit.sh", pasted.encode(), ImportOptions(variables={name: value}))
    assert not again.report.stops, [each.text for each in again.report.stops]
    assert again.values["env"] == {"AS": value}
    other = of(job({"environment": {"variables": {"AS": "$MODEL"}}}), variables={name: value})
    assert "--var MODEL=<value>" in other.report.stops[0].text


@pytest.mark.parametrize("text", ["$STEPS", " ${STEPS}\n"])
def test_a_script_that_is_to_be_filled_in(text: str) -> None:
    (stop,) = of(script(text)).report.stops
    assert stop.field.endswith("script.text") and "--var STEPS=<value>" in stop.text
    filled = of(script(text), variables={"STEPS": "echo a"})
    plain = text.replace("${STEPS}", "$STEPS").replace("$STEPS", "echo a")
    assert filled.values["google_batch"]["runnables"] == [{"script": plain}]
    # The variable of a task, or one of Batch's, is put in by the shell.
    for own in (script(text, environment={"variables": {"STEPS": "echo a"}}), script("$BATCH_TASK_INDEX")):
        assert not of(own).report.stops
    assert not of(script(f"{text} now")).report.stops


def test_a_command_that_is_to_be_filled_in() -> None:
    made = job({"runnables": [{"container": {"imageUri": IMAGE, "entrypoint": "bash", "commands": ["-c", "${CMD}"]}}]})
    (stop,) = of(made).report.stops
    assert stop.field.endswith("container.commands") and "--var CMD=<value>" in stop.text
    assert of(made, variables={"CMD": "crop --all"}).values["command"] == ["bash", "-c", "crop --all"]


def test_a_variable_of_a_template_is_to_be_filled_in() -> None:
    made = job({"environment": {"variables": {"AS": "{{ mode }}", "KEY": "a {{ b }}"}}})
    (stop,) = of(made).report.stops
    assert stop.field.endswith(".AS") and "--var mode=<value>" in stop.text
    assert of(made, variables={"mode": "fast"}).values["env"] == {"AS": "fast", "KEY": "a {{ b }}"}


def test_a_boot_image_is_kept_as_it_is_named() -> None:
    made = job(group={"requireHostsFile": True, "taskCount": 2}, policy={"bootDisk": {"image": "batch-debian"}})
    assert of(made).values["google_batch"]["boot_image"] == "batch-debian"


def test_a_place_that_is_to_be_filled_in() -> None:
    share = {"nfs": {"server": "10.9.0.2", "remotePath": "<your export, such as /vol1>"}, "mountPath": "/mnt/share"}
    (stop,) = of(job({"volumes": [share]})).report.stops
    assert stop.field.endswith("nfs.remotePath") and "placeholder" in stop.text


@pytest.mark.parametrize(
    "source, field",
    [({"gcs": {"remotePath": "Acme_Data"}}, "gcs.remotePath"), ({"nfs": {"server": "a b"}}, "nfs.server"),
     ({"gcs": {"remotePath": "[BUCKET]"}}, "gcs.remotePath")],
)  # fmt: skip
def test_a_source_that_cannot_be_mounted_is_said_of_the_source(source: Json, field: str) -> None:
    (stop,) = of(job({"volumes": [{**source, "mountPath": "/mnt/share"}]})).report.stops
    assert stop.field == f"taskGroups[0].taskSpec.volumes[0].{field}"


def test_shared_memory_is_part_of_the_memory() -> None:
    step = {"container": {"imageUri": IMAGE, "commands": ["--crop"], "options": "--shm-size=3g"}}
    found = of(job({"runnables": [step]}))
    assert not found.report.stops
    Job(**found.values)
    assert (found.values["shm_mib"], found.values["memory_mib"]) == (3072, 3072)
    said = entry(found, "taskGroups[0].taskSpec.computeResource.memoryMib")
    assert (said.kind, said.new) == ("changed", 3072)
    large = of(job({"runnables": [step], "computeResource": {"memoryMib": 9000}}))
    assert large.values["memory_mib"] == 9000


def test_a_boot_disk_of_two_sizes() -> None:
    made = job({"computeResource": {"bootDiskMib": 50_000}}, policy={"bootDisk": {"sizeGb": 80}})
    found = of(made)
    assert "disk_gib" not in found.values and found.values["google_batch"]["boot_disk_gib"] == 80
    said = entry(found, "taskGroups[0].taskSpec.computeResource.bootDiskMib")
    assert (said.kind, said.new) == ("changed", None)


@pytest.mark.parametrize("image", [None, "batch-cos", "projects/acme/global/images/family/train"])
@pytest.mark.parametrize("size", ["10", "30", "80"])
def test_a_boot_disk_keeps_its_size(size: str, image: str | None) -> None:
    """The size is that of the whole disk, and what an image needs of it is not added."""
    disk = {"sizeGb": size, **({"image": image} if image else {})}
    found = of(job({}, {"taskCount": 4, "taskCountPerNode": 2}, policy={"bootDisk": disk}))
    assert entry(found, "allocationPolicy.instances[0].policy.bootDisk.sizeGb").kind == "kept"
    made = make_request(command=[], **found.values).body["job"]
    assert made["allocationPolicy"]["instances"][0]["policy"]["bootDisk"]["sizeGb"] == int(size)
    assert "bootDiskMib" not in made["taskGroups"][0]["taskSpec"]["computeResource"]


def test_a_list_of_hosts_gives_containers_the_network_of_their_vm() -> None:
    said = "--network=host"
    name = "taskGroups[0].requireHostsFile"
    step = {"container": {"imageUri": IMAGE, "commands": ["--crop"], "options": "--init"}}
    assert said in entry(of(job({"runnables": [step]}, {"requireHostsFile": True})), name).text
    assert said not in entry(of(job({"runnables": [step]}, {"requireHostsFile": False})), name).text
    step["container"]["options"] = "--network host"
    assert said not in entry(of(job({"runnables": [step]}, {"requireHostsFile": True})), name).text


@pytest.mark.parametrize(
    "text, said",
    [
        (
            '{\n  "taskGroups": [{"taskCount": 2},],\n}',
            "crops.json:2: is not JSON: has a comma before the ]; leave it out",
        ),
        ('{\n  "priority": 3, }', "crops.json:2: is not JSON: has a comma before the }; leave it out"),
        ('{\n  // How many?\n  "priority": 3}', "crops.json:2: is not JSON: has a comment; leave it out"),
        ('{"priority": /* low */ 3}', "crops.json:1: is not JSON: has a comment; leave it out"),
        ('\n// Crops.\n{"priority": 3}', "crops.json:2: is not JSON: has a comment; leave it out"),
        ('{"priority": three}', "crops.json:1: is not JSON: Expecting value"),
    ],
)
def test_json_that_is_none(text: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        import_job("crops.json", text.encode(), ImportOptions())
    assert str(refused.value) == said
