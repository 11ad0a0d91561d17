"""A job definition with ecsProperties: of one container it is a job as with containerProperties; nothing is lost."""

import copy
import json
from typing import Any

import pytest

from jobs.importers import recognition
from jobs.importers.outcome import ImportResult
from jobs.importers.reading import leaves
from tests.jobs.imports.leaf_laws import lost, unread
from tests.jobs.imports.test_aws_batch import GIVEN, asking, members, of, plausible
from tests.jobs.imports.test_pasted_batch import DEFINITION, STATED, multi_node, of_aws

TASK = "ecsProperties.taskProperties[0]"
CONTAINER = f"{TASK}.containers[0]"
OF_TASK = ("volumes", "executionRoleArn", "networkConfiguration", "ephemeralStorage")


def as_ecs(container: dict[str, Any]) -> dict[str, Any]:
    """The containerProperties as ecsProperties, with what only these have."""
    inner = {key: value for key, value in container.items() if key not in (*OF_TASK, "jobRoleArn", "memory")}
    inner["resourceRequirements"] = [*inner.get("resourceRequirements", []), {"type": "MEMORY", "value": "30000"}]
    task = {key: container[key] for key in OF_TASK if key in container}
    return {
        "taskProperties": [
            {
                **task,
                "taskRoleArn": "arn:aws:iam::210987654321:role/job",
                "platformVersion": "LATEST",
                "ipcMode": "task",
                "pidMode": "task",
                "containers": [{"name": "main", "essential": True, **inner}],
            }
        ]
    }


ECS: dict[str, Any] = {
    **{key: value for key, value in DEFINITION.items() if key != "containerProperties"},
    "ecsProperties": as_ecs(DEFINITION["containerProperties"]),
}


def changed(**container: Any) -> dict[str, Any]:
    document = copy.deepcopy(ECS)
    document["ecsProperties"]["taskProperties"][0]["containers"][0] |= container
    return document


def told(found: ImportResult) -> dict[str, tuple[str, str]]:
    return {entry.field: (entry.kind, entry.text) for entry in found.report.entries}


def test_one_container_is_the_same_job_as_containerproperties() -> None:
    found = of(ECS)
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values == of(DEFINITION).values
    kinds = {field: kind for field, (kind, _) in told(found).items()}
    assert kinds[f"{CONTAINER}.image"] == kinds[f"{CONTAINER}.essential"] == "kept"
    assert kinds[f"{CONTAINER}.name"] == kinds[f"{TASK}.taskRoleArn"] == kinds[f"{TASK}.platformVersion"] == "changed"
    assert kinds[f"{CONTAINER}.user"] == kinds[f"{TASK}.ipcMode"] == kinds[f"{TASK}.pidMode"] == "decision"
    assert set(kinds) >= {name for name, _ in leaves(ECS)}
    assert of_aws(json.dumps(ECS), epochs="9").values["command"][-1] == "9"


def test_disk_and_shared_memory() -> None:
    document = changed(linuxParameters={"sharedMemorySize": 64})
    document["ecsProperties"]["taskProperties"][0]["ephemeralStorage"] = {"sizeInGiB": 100}
    found = of(document)
    assert (found.values["disk_gib"], found.values["shm_mib"]) == (100, 64)


def test_no_advice_that_stacks_adopt_does_not_follow() -> None:
    texts = [entry.text for entry in of(ECS).report.entries if "stacks adopt" in entry.text]
    assert texts and all("a definition with containerProperties keeps it" in text for text in texts)


@pytest.mark.parametrize(
    "tasks, message",
    [
        (
            [{"containers": [{"image": "a:1"}, {"image": "b:1"}, {"image": "c:1"}]}],
            "is of 3 containers, and a job file",
        ),
        (
            [{"containers": [{"image": "a:1"}]}, {"containers": [{"image": "b:1"}]}],
            "is of 2 ECS tasks, and a job file has one container",
        ),
        ([{"ipcMode": "host"}], "is of 0 containers, and a job file has one"),
    ],
)
def test_several_are_refused_with_their_number(tasks: list[dict[str, Any]], message: str) -> None:
    found = of({"jobDefinitionName": "d", "ecsProperties": {"taskProperties": tasks}})
    assert {message in entry.text for entry in found.report.stops} == {True}
    assert all(entry.field.startswith("ecsProperties.taskProperties[") for entry in found.report.stops)


@pytest.mark.parametrize(
    "container, field, message",
    [
        ({"essential": False}, "essential", "must be true: it is the only container"),
        ({"dependsOn": [{"containerName": "a", "condition": "START"}]}, "dependsOn[0].containerName", "is for several"),
        ({"image": ""}, "image", "is missing"),
        ({"comand": ["x"]}, "comand", "did you mean command?"),
        ({"environment": [{"name": "A", "value": "1"}] * 2}, "environment[1].name",
         f"is set twice, here and in {CONTAINER}.environment[0]"),
    ],
)  # fmt: skip
def test_what_is_refused(container: dict[str, Any], field: str, message: str) -> None:
    kind, text = told(of(changed(**container)))[f"{CONTAINER}.{field}"]
    assert kind == "refused" and message in text, text


def test_both_forms_are_refused() -> None:
    found = of({**DEFINITION, "ecsProperties": ECS["ecsProperties"]})
    kind, text = told(found)["containerProperties.image"]
    assert kind == "refused" and "stands beside ecsProperties; keep one of the two" in text


def test_nodes_of_one_container_each() -> None:
    document = multi_node()
    (first,) = document["nodeProperties"]["nodeRangeProperties"]
    del first["container"]
    first["ecsProperties"] = ECS["ecsProperties"]
    found = of({**document, "parameters": {"epochs": "5"}})
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert (found.values["nodes"], found.values["image"], found.values["memory_mib"]) == (4, "acme/train:1", 30000)


def test_a_definition_on_eks_is_refused_for_that_alone() -> None:
    found = of({"jobDefinitionName": "d", "eksProperties": {"podProperties": {"hostNetwork": True}}})
    assert [entry.field for entry in found.report.stops] == ["eksProperties.podProperties.hostNetwork"]


def with_one_source(value: Any) -> Any:
    """A plausible value, in which each volume has one source, as the service demands."""
    if isinstance(value, list):
        return [with_one_source(each) for each in value]
    if not isinstance(value, dict):
        return value
    others = ("host", "s3filesVolumeConfiguration") if "efsVolumeConfiguration" in value else ()
    return {key: with_one_source(inner) for key, inner in value.items() if key not in others}


def test_every_field_of_the_service_is_known() -> None:
    document = {"jobDefinitionName": "d", "ecsProperties": with_one_source(plausible("EcsProperties"))}
    found = of(document)
    assert set(found.report.fields) <= set(told(found))
    assert [entry.text for entry in found.report.entries if "is no field that is known" in entry.text] == []
    assert {"essential", "firelensConfiguration", "startTimeout"} <= set(members("TaskContainerProperties"))


def test_a_volume_of_s3_files_is_refused_for_its_source() -> None:
    document = copy.deepcopy(ECS)
    files = {"fileSystemArn": "arn:aws:s3files:us-east-1:210987654321:file-system/fs-1"}
    document["ecsProperties"]["taskProperties"][0]["volumes"][1] = {"name": "h", "s3filesVolumeConfiguration": files}
    kind, text = told(of(document))[f"{TASK}.volumes[1].s3filesVolumeConfiguration.fileSystemArn"]
    assert kind == "refused" and "has no source that a job file mounts; a definition with containerProperties" in text


def test_nothing_is_lost() -> None:
    assert lost(of(ECS), STATED) == []
    assert unread(of, ECS, ("parameters", "tags", "options")) == []


def test_a_command_that_registers_it() -> None:
    ecs = json.dumps({"taskProperties": [{"containers": [{"image": "acme/train:1", "command": ["run"]}]}]})
    for value in (f"'{ecs}'", "taskProperties=[{containers=[{image=acme/train:1,command=[run]}]}]"):
        text = f"aws batch register-job-definition --job-definition-name d --type container --ecs-properties {value}\n"
        found = of_aws(text)
        assert not found.report.stops, [entry.text for entry in found.report.stops]
        assert (found.values["image"], found.values["command"]) == ("acme/train:1", ["run"])


def test_the_definition_and_its_answer_are_recognized() -> None:
    ecs = {"ecsProperties": ECS["ecsProperties"]}
    assert recognition.recognize("stdin", json.dumps(ecs).encode()).text.endswith("by ecsProperties")
    answer = {"jobDefinitions": [ECS]}
    assert recognition.recognize("stdin", json.dumps(answer).encode()).kind == "aws-batch"
    assert f"jobDefinitions[0].{CONTAINER}.image" in told(of(answer))


OVERRIDES = "ecsPropertiesOverride.taskProperties[0].containers[0]"


def overriding(*containers: dict[str, Any], **changes: Any) -> ImportResult:
    return asking(ecsPropertiesOverride={"taskProperties": [{"containers": [*containers]}]}, **changes)


def test_overrides_of_one_container_are_those_of_containeroverrides() -> None:
    overrides = {key: value for key, value in GIVEN["containerOverrides"].items() if key not in ("vcpus", "memory")}
    request = {key: value for key, value in GIVEN.items() if key != "containerOverrides"}
    needs = [{"type": "MEMORY", "value": "2048"}, {"type": "GPU", "value": "2"}]
    inner = {**overrides, "resourceRequirements": needs}
    ecs = {"taskProperties": [{"containers": [{"name": "main", **inner}]}]}
    found, other = of({**request, "ecsPropertiesOverride": ecs}), of({**request, "containerOverrides": inner})
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values == other.values and found.values["accelerator"] == {"count": 2}
    kinds = told(found)
    assert kinds[f"{OVERRIDES}.name"][0] == "changed" and kinds[f"{OVERRIDES}.command"][0] == "kept"
    kind, text = kinds["jobDefinition"]
    assert kind == "decision" and "import it, as `aws batch describe-job-definitions --job-definitions" in text
    assert lost(found, STATED) == []


def test_parameters_apply_to_the_command_of_the_container() -> None:
    found = overriding({"name": "main", "command": ["train", "Ref::n"]}, parameters={"n": "5"})
    assert found.values["command"] == ["train", "5"]
    (stop,) = overriding({"name": "main"}, parameters={"n": "5"}).report.stops
    assert f"write that command into {OVERRIDES}.command" in stop.text


@pytest.mark.parametrize(
    "changes, field, message",
    [
        ({"ecsPropertiesOverride": {"taskProperties": [{"containers": [{"name": "a"}, {"name": "b"}]}]}},
         f"{OVERRIDES}.name", "is of 2 containers, and a job file has one container"),
        ({"ecsPropertiesOverride": {"taskProperties": [{"containers": [{"name": "a"}]}] * 2}},
         f"{OVERRIDES}.name", "is of 2 ECS tasks, and a job file has one container"),
        ({"ecsPropertiesOverride": {"taskProperties": [{"containers": [{"name": "a"}]}]},
          "containerOverrides": {"command": ["b"]}},
         "containerOverrides.command", "stands beside ecsPropertiesOverride; keep one of the two"),
        ({"ecsPropertiesOverride": {"taskProperties": [{"containers": [{"comand": ["a"]}]}]}},
         f"{OVERRIDES}.comand", "did you mean command?"),
        ({"ecsPropertiesOverride": {"taskProperties": [{"containers": "a"}]}},
         "ecsPropertiesOverride.taskProperties[0].containers", "is no field that is known here, or not in this form"),
    ],
)  # fmt: skip
def test_overrides_that_are_refused(changes: dict[str, Any], field: str, message: str) -> None:
    kind, text = told(asking(**changes))[field]
    assert kind == "refused" and message in text, text


def test_overrides_of_a_skeleton_say_nothing() -> None:
    empty = {
        "command": [""],
        "environment": [{"name": "", "value": ""}],
        "name": "",
        "resourceRequirements": [{"value": "", "type": "GPU"}],
    }
    found = overriding(empty, containerOverrides={"command": ["run"]})
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert found.values["command"] == ["run"] and told(found)["jobDefinition"][0] == "kept"


def test_every_override_of_the_service_is_known() -> None:
    found = asking(ecsPropertiesOverride=plausible("EcsPropertiesOverride"))
    assert [entry.text for entry in found.report.entries if "is no field that is known" in entry.text] == []


def test_a_command_with_overrides() -> None:
    ecs = json.dumps({"taskProperties": [{"containers": [{"name": "main", "command": ["run"]}]}]})
    for value in (f"'{ecs}'", "taskProperties=[{containers=[{name=main,command=[run]}]}]"):
        text = f"aws batch submit-job --job-name n --job-queue q --job-definition d --ecs-properties-override {value}\n"
        found = of_aws(text)
        assert not found.report.stops, [entry.text for entry in found.report.stops]
        assert found.values["command"] == ["run"] and found.values["aws_batch"] == {"definition": "d"}
