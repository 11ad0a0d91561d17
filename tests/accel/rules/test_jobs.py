"""What the functions that look at several values together make of whole inputs."""

import pytest

from accel.rules import Finding
from accel.rules.aws import definitions, fit, jobs, names, retries
from accel.rules.jobs import containers, placeholders


def ids(findings: list[Finding]) -> set[str]:
    return {finding.rule for finding in findings}


def test_a_good_definition_has_no_finding() -> None:
    found = definitions.definition(
        definitions.DefinitionValues(
            name="train",
            image="210987654321.dkr.ecr.us-east-1.amazonaws.com/train:1.4",
            vcpus=8,
            memory_mib=30000,
            gpus=1,
            shm_mib=8192,
            env={"EPOCHS": "50"},
            attempts=3,
            evaluate_on_exit=[
                {"action": "RETRY", "on_status_reason": "Host EC2*"},
                {"action": "EXIT", "on_reason": "*"},
            ],
            timeout_s=3600,
            kinds=["SPOT", "EC2"],
            instance_types=["g5", "g6"],
        )
    )
    assert found == []


def test_a_definition_of_old_defaults() -> None:
    found = definitions.definition(
        definitions.DefinitionValues(
            name="gpu-training-job",
            image="123456789012.dkr.ecr.us-east-1.amazonaws.com/ml-training:latest",
            vcpus=8,
            memory_mib=32768,
            gpus=1,
            shm_mib=8192,
            env={"NVIDIA_VISIBLE_DEVICES": "all"},
            instance_types=["g5", "g6"],
        )
    )
    assert ids(found) == {
        "aws.placeholder.account",
        "container.image.latest",
        "aws.env.visible-devices",
        "aws.fit.head-room",
    }


def test_a_wrong_size_is_not_tried_on_instances() -> None:
    found = definitions.definition(definitions.DefinitionValues(vcpus=0, memory_mib=3, gpus=0.5, instance_types=["g5"]))
    assert ids(found) >= {"aws.definition.vcpus", "aws.definition.memory", "aws.definition.gpus"}
    assert not any(rule.startswith("aws.fit") for rule in ids(found))


def test_a_share_of_a_gpu_counts_as_a_gpu_for_the_variables() -> None:
    found = definitions.definition(
        definitions.DefinitionValues(vcpus=1, memory_mib=4000, gpus=0.5, env={"NVIDIA_VISIBLE_DEVICES": "all"})
    )
    assert "aws.env.visible-devices" in ids(found)


def test_a_cpu_job_needs_no_shared_memory_and_fits_a_gpu_instance() -> None:
    found = definitions.definition(definitions.DefinitionValues(vcpus=2, memory_mib=4000, instance_types=["g5.xlarge"]))
    assert found == []


def test_shared_memory_that_is_not_given_is_dockers() -> None:
    found = definitions.size(vcpus=4, memory_mib=8000, gpus=1)
    assert "64 MiB" in found[0].message


@pytest.mark.parametrize(
    "size, types, field, part",
    [
        ((64, 30000, 1), ["g5.2xlarge"], "vcpus", "g5.2xlarge has 8 vCPUs of the 64"),
        ((8, 900000, 8), ["g5.48xlarge"], "memory_mib", "g5.48xlarge has 786432 MiB of the 900000"),
        ((8, 30000, 16), ["g5"], "gpus", "no allowed instance type has more than 8"),
    ],
)
def test_a_job_that_fits_nowhere_names_the_field_at_fault(
    size: tuple[int, int, int], types: list[str], field: str, part: str
) -> None:
    (finding,) = fit.fit(*size, types)
    assert finding.severity == "reject"
    assert finding.field == field
    assert part in finding.message


def test_the_fix_names_types_that_hold_the_job() -> None:
    (finding,) = fit.fit(32, 131072, 4, ["g5.xlarge"])
    assert finding.fix == "allow a type that holds it, such as g4dn.12xlarge, g5.12xlarge, g6.12xlarge"
    (finding,) = fit.fit(8, 30000, 32, ["g5"])
    assert "several nodes" in finding.fix


def test_fit_says_nothing_without_known_types() -> None:
    assert fit.fit(8, 32768, 1, ["g9.huge"]) == []


@pytest.mark.parametrize(
    "rule, field",
    [
        ({"action": "AGAIN", "on_reason": "*"}, "evaluate_on_exit[0].action"),
        ({"action": "RETRY"}, "evaluate_on_exit[0]"),
        ({"action": "RETRY", "on_exit_code": "13x"}, "evaluate_on_exit[0].on_exit_code"),
        ({"action": "RETRY", "on_reason": "x" * 513}, "evaluate_on_exit[0].on_reason"),
    ],
)
def test_retry_rules_that_aws_refuses(rule: dict[str, str], field: str) -> None:
    found = retries.retries(2, [rule, {"action": "EXIT", "on_reason": "*"}])
    assert [(finding.rule, finding.field) for finding in found] == [("aws.retry.condition", field)]


def test_a_last_rule_with_another_condition_catches_not_all() -> None:
    rules = [{"action": "EXIT", "on_reason": "*", "on_exit_code": "1"}]
    assert ids(retries.retries(2, rules)) == {"aws.retry.no-catch-all"}


@pytest.mark.parametrize("value", ["a\nb", "a\0b", "a\rb"])
def test_control_characters_in_variables(value: str) -> None:
    found = containers.environment({"A": value, f"B{value}": "1"})
    assert ids(found) == {"container.env.name", "container.env.value"}
    assert all(finding.text.isprintable() for finding in found)


def test_the_value_of_a_variable_is_never_shown() -> None:
    secret = "hunter2\n"
    found = containers.environment({"TOKEN": secret, "OTHER": 31337})
    assert "hunter2" not in repr(found)
    assert "31337" not in repr(found)


@pytest.mark.parametrize(
    "name, rule",
    [
        ("train:latest", "container.image.latest"),
        ("localhost:5000/train", "container.image.latest"),
        ("a" * 256, "container.image.name"),
        ("", "container.image.name"),
    ],
)
def test_image_names(name: str, rule: str) -> None:
    assert ids(containers.image(name)) == {rule}


def test_the_artifact_registry_name_keeps_a_digest() -> None:
    digest = f"sha256:{'a' * 64}"
    (finding,) = containers.image(f"gcr.io/proj/img@{digest}")
    assert finding.fix == f"write us-docker.pkg.dev/proj/gcr.io/img@{digest}"


@pytest.mark.parametrize(
    "dependency, field",
    [
        ({}, "depends_on[0]"),
        ({"type": "N_TO_N"}, "depends_on[0]"),
        ({"type": "AFTER", "jobId": "1"}, "depends_on[0].type"),
    ],
)
def test_dependencies_of_an_array(dependency: dict[str, str], field: str) -> None:
    assert [finding.field for finding in jobs.dependencies([dependency], is_array=True)] == [field]


def test_a_sequential_array_depends_on_itself() -> None:
    assert jobs.job(name="sweep", array_size=10_000, depends_on=[{"type": "SEQUENTIAL"}]) == []


def test_what_is_not_ascii_counts_as_botocore_writes_it() -> None:
    assert ids(jobs.request_size({"parameters": {"p": "é" * 6000}})) == {"aws.job.payload"}


@pytest.mark.parametrize(
    "text",
    ["MY_PROJECT", "gs://YOUR_BUCKET/x", "<region>", "CHANGEME", "xxxx", "PROJECT_ID", "<your export, such as /vol1>"],
)
def test_placeholders(text: str) -> None:
    assert ids(placeholders.value("field", text)) == {"placeholder.value"}


@pytest.mark.parametrize("text", ["my_project", "a < b", "max", "todos", "maxxx", "amy_project", "<v1.2, x>"])
def test_no_placeholders(text: str) -> None:
    assert placeholders.value("field", text) == []


@pytest.mark.parametrize("value", ["subnet-", "subnet-1A2B3C4D", "sg-1a2b3c4d", "subnet-123456789", "subnet-1a2b3c4d "])
def test_ids_of_another_form(value: str) -> None:
    assert ids(placeholders.resource_id("subnet_ids[0]", value, "subnet")) == {"aws.placeholder.resource-id"}


def test_a_name_of_nothing_but_signs_has_a_fix_too() -> None:
    (finding,) = names.definition("!!!")
    assert finding.fix == "write a name"
    assert ids(names.job("")) == {"aws.name.job"}


@pytest.mark.parametrize(
    "text",
    [
        "your-project", "your_bucket", "gs://your-bucket/data", "us-docker.pkg.dev/your-project/repo/train:1",
        "my-project", "my-project-id", "gs://my-bucket/out", "my-training-image:latest", "registry/my-training-image",
        "us-docker.pkg.dev/my-project/repo/train:1", "arn:aws:s3:::my-bucket/*",
    ],
)  # fmt: skip
def test_sample_values_in_lower_case(text: str) -> None:
    (found,) = placeholders.value("image", text)
    assert found.rule == "placeholder.value" and "is a placeholder" in found.message


@pytest.mark.parametrize(
    "text",
    [
        "my.registry/train:1.4", "my-team-train:1", "my-image:2", "us-docker.pkg.dev/ml-dev-4821/my-repo/train:1",
        "gs://my-bucketed-data", "tomy-project", "my-projects", "gs://acme-my-project-9", "yourself", "for-your-eyes",
        "my-cluster", "my-queue", "local/my-app",
    ],
)  # fmt: skip
def test_names_of_ones_own(text: str) -> None:
    assert placeholders.value("image", text) == []
