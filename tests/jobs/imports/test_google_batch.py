"""Jobs of Google Batch: each fault corrected or refused by its rule, nothing lost, and our own requests come back."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.importers.google_batch import import_job
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from jobs.importers.reading import leaves
from jobs.model.job import Job
from tests.jobs.backends.google_batch_target import make_request
from tests.jobs.imports.leaf_laws import parts

Json = dict[str, Any]
DOCUMENT = json.loads((Path(__file__).parents[2] / "golden" / "imports" / "sweep.json").read_text())
IMAGE = "us-docker.pkg.dev/acme/train/flowers:1.4"


def of(document: Json, **options: Any) -> ImportResult:
    return import_job("job.json", json.dumps(document).encode(), ImportOptions(**options))


def changed(*path: Any, value: Any) -> Json:
    """The document with another value at a path."""
    made = copy.deepcopy(DOCUMENT)
    inside: Any = made
    for part in path[:-1]:
        inside = inside[part] if isinstance(inside, list) else inside.setdefault(part, {})
    inside[path[-1]] = value
    return made


GROUP = ("taskGroups", 0)
SPEC = (*GROUP, "taskSpec")
CONTAINER = (*SPEC, "runnables", 0, "container")
INSTANCE = ("allocationPolicy", "instances", 0)
POLICY = (*INSTANCE, "policy")


@pytest.mark.parametrize(
    "path, value, rule, kind",
    [
        ((*CONTAINER, "imageUri"), "gcr.io/acme/t:1", "container.image.gcr", "changed"),
        ((*CONTAINER, "imageUri"), "us-docker.pkg.dev/MY_PROJECT/r/t:1", "placeholder.value", "refused"),
        ((*CONTAINER, "options"), "--gpus all --ipc=host", "google-batch.gpus-option", "changed"),
        ((*CONTAINER, "options"), "-v /a:/b", "google-batch.docker-options", "refused"),
        ((*CONTAINER, "commands"), ["python", "t.py", "--o=${BATCH_TASK_INDEX}"], "google-batch.unexpanded", "changed"),
        ((*CONTAINER, "commands"), ["python", "t.py"], "google-batch.entry-point", "changed"),
        ((*CONTAINER, "volumes"), ["/mnt/disks/data:/data"], "google-batch.bind-mount", "refused"),
        ((*SPEC, "computeResource", "memoryMib"), "32768", "google-batch.fit", "changed"),
        ((*SPEC, "computeResource", "memoryMib"), "900000", "google-batch.fit", "refused"),
        ((*SPEC, "maxRunDuration"), f"{15 * 86400}s", "google-batch.run-time", "refused"),
        ((*GROUP, "taskCount"), "100001", "google-batch.tasks", "refused"),
        ((*GROUP, "parallelism"), "5001", "google-batch.parallelism", "refused"),
        ((*POLICY, "accelerators", 0, "type"), "nvidia-tesla-t5", "gcp.gpu.unknown", "refused"),
        ((*POLICY, "accelerators", 0, "type"), "nvidia-rtx-4090", "gpu.consumer", "refused"),
        ((*POLICY, "accelerators", 0, "count"), "8", "gcp.gpu.count", "refused"),
        ((*POLICY, "accelerators", 0, "type"), "nvidia-l4", "gcp.machine.not-attachable", "changed"),
        ((*POLICY, "machineType"), "n1-standard-9", "gcp.machine.unknown", "refused"),
        ((*POLICY, "provisioningModel"), "PREEMPTIBLE", "google-batch.preemptible", "changed"),
        ((*INSTANCE, "installGpuDrivers"), False, "google-batch.drivers", "refused"),
        (("allocationPolicy", "location", "allowedLocations"), ["zones/us-east1-a", "zones/us-east1-b"],
         "google-batch.zone", "changed"),
        (("allocationPolicy", "location", "allowedLocations"), ["zones/us-east1-a"], "google-batch.zone", "refused"),
        (("allocationPolicy", "location", "allowedLocations"), ["zones/us-east1-b", "zones/us-west1-b"],
         "google-batch.region", "refused"),
        (("priority",), "100", "google-batch.priority", "refused"),
    ],
)  # fmt: skip
def test_faults(path: tuple[str | int, ...], value: Any, rule: str, kind: str) -> None:
    found = of(changed(*path, value=value))
    told = [entry for entry in found.report.entries if rule in entry.rules]
    assert told and kind in {entry.kind for entry in told}, [entry.text for entry in found.report.entries]
    assert bool(found.report.stops) == (kind == "refused")
    if kind == "changed":
        Job(**found.values)


@pytest.mark.parametrize(
    "path, value, name, is_",
    [
        ((*SPEC, "volumes"), [{"gcs": {"remotePath": "acme-data"}, "mountPath": "/mnt/d", "mountOptions": ["ro"]}],
         "mounts", [{"source": "gs://acme-data", "path": "/mnt/d", "read_only": True}]),
        ((*SPEC, "volumes"), [{"nfs": {"server": "10.0.0.2", "remotePath": "/share"}, "mountPath": "/mnt/n"}],
         "mounts", [{"source": "nfs://10.0.0.2/share", "path": "/mnt/n"}]),
        ((*CONTAINER, "options"), "--shm-size=8g", "shm_mib", 8192),
        ((*SPEC, "environment", "variables"), {"A": "1", "ACCEL_JOB_NAME": "x"}, "env", {"A": "1"}),
        ((*SPEC, "environment", "secretVariables"), {"T": "projects/p/secrets/s/versions/1"}, "secrets",
         {"T": "projects/p/secrets/s/versions/1"}),
        ((*SPEC, "computeResource", "bootDiskMib"), "102401", "disk_gib", 101),
        ((*POLICY, "provisioningModel"), "SPOT", "spot", True),
        (("labels",), {"team": "vision"}, "labels", {"team": "vision"}),
    ],
)  # fmt: skip
def test_what_is_carried(path: tuple[str | int, ...], value: Any, name: str, is_: Any) -> None:
    found = of(changed(*path, value=value))
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values[name] == is_


def test_variables_of_a_template_are_asked_for_in_one_line() -> None:
    document = changed(*POLICY, value={"machineType": "${MACHINE}", "bootDisk": {"sizeGb": "@SIZE@"}})
    document["labels"] = {"team": "$TEAM"}
    text = json.dumps(document).replace('"@SIZE@"', "${SIZE}")
    found = import_job("job.json", text.encode(), ImportOptions())
    told = {entry.field: entry.text for entry in found.report.stops}
    assert "--var SIZE=<value>" in told["allocationPolicy.instances[0].policy.bootDisk.sizeGb"]
    for name in ("SIZE", "MACHINE", "TEAM"):
        assert f"--var {name}=<value>" in told["--var"]
    given = {"MACHINE": "n1-standard-8", "SIZE": "60", "TEAM": "vision"}
    filled = import_job("job.json", text.encode(), ImportOptions(variables=given))
    assert not [entry for entry in filled.report.stops if "import.variable" in entry.rules]
    assert filled.values["labels"] == {"team": "vision"}


def test_a_region_that_is_written_bare() -> None:
    document = changed("allocationPolicy", "location", value={"allowedLocations": ["us-central1"]})
    assert "write regions/us-central1 or zones/us-central1-b" in str([e.text for e in of(document).report.stops])


def test_variables_that_nothing_puts_in() -> None:
    document = changed(*CONTAINER, "options", value="--shm-size=${SHM}")
    document["taskGroups"][0]["taskSpec"]["environment"] = {
        "variables": {"MODEL": "${_MODEL}", "TASK": "${BATCH_TASK_INDEX}", "TEXT": "a $b"}
    }
    told = {entry.field: entry.text for entry in of(document).report.stops}
    assert "--var SHM=<value>" in told["--var"] and "--var _MODEL=<value>" in told["--var"]
    found = of(document, variables={"SHM": "2g", "_MODEL": "bert"})
    assert not [entry for entry in found.report.stops if "import.variable" in entry.rules]
    assert found.values["env"] == {"MODEL": "bert", "TASK": "${BATCH_TASK_INDEX}", "TEXT": "a $b"}
    assert found.values["shm_mib"] == 2048


def test_spot_with_its_policy() -> None:
    policies = [{"action": "RETRY_TASK", "actionCondition": {"exitCodes": [50001]}}]
    found = of(changed(*SPEC, "lifecyclePolicies", value=policies))
    assert {name: found.values[name] for name in ("retries", "lost_retries")} == {"retries": 0, "lost_retries": 2}
    wrong = [{"action": "RETRY_TASK", "actionCondition": {"exitCodes": [50005]}}]
    assert "google-batch.retry-after-timeout" in str(
        of(changed(*SPEC, "lifecyclePolicies", value=wrong)).report.as_json()
    )


def test_several_steps() -> None:
    steps = [
        {"script": {"text": "echo begin\n"}, "background": True},
        {"barrier": {"name": "all"}},
        {"container": {"imageUri": IMAGE, "entrypoint": "python3", "commands": ["t.py"]}, "timeout": "60s"},
    ]
    found = of(changed(*SPEC, "runnables", value=steps))
    assert found.values["google_batch"]["runnables"] == [
        {"background": True, "script": "echo begin\n"},
        {"barrier": "all"},
        {"timeout_s": 60, "image": IMAGE, "entrypoint": "python3", "command": ["t.py"]},
    ]
    Job(**found.values)


NAMES = "taskGroups taskSpec runnables container imageUri commands labels logsPolicy allocationPolicy instances policy"
KEYS = st.sampled_from([*NAMES.split(), "accelerators", "count", "mountPath", "volumes", "unknown"])
PARTS = parts(KEYS, "CLOUD_LOGGING")


@given(st.sampled_from([SPEC, GROUP, CONTAINER, INSTANCE, POLICY, ("allocationPolicy",), ()]), KEYS, PARTS)
def test_every_field_is_in_exactly_one_class(at: tuple[str | int, ...], key: str, value: Any) -> None:
    document = changed(*at, key, value=value)
    found = of(document)
    told = [entry.field for entry in found.report.entries if entry.given]
    assert sorted(told) == sorted(name for name, _ in leaves(document))


OURS: dict[str, Json] = {
    "plain": {},
    "gpu": {"accelerator": {"type": "nvidia-l4", "count": 1}, "spot": True},
    "tasks": {"tasks": 100, "parallelism": 7, "retries": 2},
    "mounts": {"mounts": [{"source": "gs://acme-data/x", "path": "/data", "read_only": True}], "env": {"A": "1"}},
    "again": {"retries": 3, "lost_retries": 0, "timeout_s": 600},
    "lost": {"lost_retries": 5},
    "nodes": {"nodes": 3, "accelerator": {"type": "nvidia-tesla-t4", "count": 2}},
    "script": {"image": None, "command": ["bash", "-c", "echo 'a b'"]},
    "expanded": {"command": ["python3", "t.py", "--out=gs://b/${BATCH_TASK_INDEX}"]},
    "args": {"command": [], "google_batch": {"args": ["--a", "b c"]}},
    "disks": {"google_batch": {"disks": [{"name": "scratch", "gib": 100, "path": "/scratch"}]}},
    "more": {"shm_mib": 1024, "google_batch": {"priority": 5, "in_order": True, "docker_options": "--ipc=host"}},
    "steps": {
        "image": None, "command": [],
        "google_batch": {"runnables": [{"script": "echo a"}, {"image": IMAGE, "command": ["x"], "always_run": True}]},
    },
}  # fmt: skip


@pytest.mark.parametrize("case", OURS)
def test_our_own_requests_come_back(case: str) -> None:
    request = make_request(**OURS[case])
    found = of(request.body["job"])
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    fields = {**found.values, "name": "digits"}
    again = make_request(**{"image": None, "command": [], **fields})
    assert _bare(again.body["job"]) == _bare(request.body["job"])


def _bare(job: Json) -> Json:
    """Without what tells a job from another, and without the labels that a target adds again."""
    made = copy.deepcopy(job)
    made.pop("labels")
    made["allocationPolicy"].pop("labels")
    return made
