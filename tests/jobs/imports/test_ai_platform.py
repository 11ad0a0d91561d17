"""AI Platform Training's jobs: every tier, machine, accelerator and flag; what is refused, with its reason."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from accel.catalog.legacy import legacy_machines
from accel.diagnostics.errors import BadInput
from accel.rules.vertex.ai_platform import REPLACEMENTS, TIERS
from jobs.importers.ai_platform import import_job
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from tests.jobs.backends.vertex_jobs import make_request

IMAGE = "us-docker.pkg.dev/acme/train/flowers:1.4"
TODAY = date(2026, 11, 22)
CUSTOM = {"scaleTier": "CUSTOM", "region": "us-central1", "masterConfig": {"imageUri": IMAGE}}
Json = dict[str, Any]


def of(training: Json, *flags: str, **options: Any) -> ImportResult:
    text = yaml.safe_dump({"trainingInput": training}).encode()
    return import_job("config.yaml", text, ImportOptions(flags=flags, today=TODAY, **options))


def pool(found: ImportResult, place: int = 0) -> Json:
    return found.body["jobSpec"]["workerPoolSpecs"][place]["machineSpec"]


def stops(found: ImportResult) -> str:
    return "\n".join(entry.text for entry in found.report.stops)


@pytest.mark.parametrize("name", [name for name, each in legacy_machines().items() if each.machine])
def test_every_legacy_machine(name: str) -> None:
    found = of({**CUSTOM, "masterType": name})
    legacy = legacy_machines()[name]
    assert not found.report.stops, stops(found)
    assert pool(found)["machineType"] == legacy.machine
    assert pool(found).get("acceleratorCount", 0) == legacy.count
    (entry,) = [entry for entry in found.report.entries if entry.field == "trainingInput.masterType"]
    assert entry.kind == "changed" and "gcp.legacy.machine-type" in entry.rules


@pytest.mark.parametrize(
    "replacement, machine, count",
    [
        ("nvidia-tesla-t4", None, None),
        ("nvidia-tesla-v100", "n1-standard-32", 8),
        ("nvidia-l4", "g2-standard-96", 8),
        ("nvidia-tesla-a100", "a2-highgpu-8g", 8),
        ("nvidia-tesla-p100", None, None),
    ],
)
def test_eight_k80(replacement: str, machine: str | None, count: int | None) -> None:
    found = of({**CUSTOM, "masterType": "complex_model_l_gpu"}, k80=replacement)
    if machine:
        assert (pool(found)["machineType"], pool(found)["acceleratorCount"]) == (machine, count)
        return
    assert [entry.open for entry in found.report.of("decision")] == [True]
    assert "8 nvidia-tesla-v100 (n1-standard-32) or 8 nvidia-tesla-a100 (a2-highgpu-8g)" in stops(found)


@pytest.mark.parametrize("size", [100, 101, 250])
def test_a_boot_disk_keeps_its_size(size: int) -> None:
    """The size is that of the whole disk, and 100 GB are the own ones of both services."""
    config = {"imageUri": IMAGE, "diskConfig": {"bootDiskSizeGb": size}}
    training = {**CUSTOM, "masterType": "n1-standard-8", "masterConfig": config}
    (custom,) = of(training, form="custom-job").body["jobSpec"]["workerPoolSpecs"]
    assert custom["diskSpec"]["bootDiskSizeGb"] == size
    found = of(training)
    assert not found.report.stops, stops(found)
    (made,) = make_request(**{"name": "digits", **found.values}).body["customJob"]["jobSpec"]["workerPoolSpecs"]
    assert made.get("diskSpec", {}).get("bootDiskSizeGb", 100) == size


@pytest.mark.parametrize("replacement", REPLACEMENTS)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_k80s_of_compute_engine(replacement: str, count: int) -> None:
    config = {"imageUri": IMAGE, "acceleratorConfig": {"type": "NVIDIA_TESLA_K80", "count": count}}
    found = of({**CUSTOM, "masterType": "n1-standard-8", "masterConfig": config}, k80=replacement, form="custom-job")
    assert not found.report.stops, stops(found)
    assert pool(found)["acceleratorCount"] == count
    assert found.report.of("changed")[0].rules == ["ai-platform.k80"]


@pytest.mark.parametrize("tier", TIERS)
def test_every_tier(tier: str) -> None:
    found = of({"scaleTier": tier, "region": "us-central1", "masterConfig": {"imageUri": IMAGE}})
    if tier in ("BASIC", "BASIC_GPU"):
        assert pool(found)["machineType"] == "n1-standard-4"
        assert pool(found).get("acceleratorType") == ("NVIDIA_TESLA_T4" if tier == "BASIC_GPU" else None)
    else:
        assert {
            "STANDARD_1": "decision: ", "PREMIUM_1": "decision: ", "BASIC_TPU": "refused: ", "CUSTOM": "refused: ",
        }[tier] in "".join(f"{entry.kind}: " for entry in found.report.stops)  # fmt: skip


@pytest.mark.parametrize(
    "training, message",
    [
        ({"scaleTier": "STANDARD_2"}, 'is "STANDARD_2", which is no scale tier; use STANDARD_1'),
        ({"scaleTier": "BASIC_TPU"}, "use a TPU VM"),
        ({**CUSTOM}, "masterType (not given): is missing, and scaleTier is CUSTOM"),
        ({**CUSTOM, "masterType": "cloud_tpu"}, "use a TPU VM"),
        ({**CUSTOM, "masterType": "complex_model_xl"}, "which AI Platform Training did not have; use complex_model_l"),
        ({**CUSTOM, "masterType": "standard", "workerType": "n1-standard-4", "workerCount": 1}, "legacy"),
        ({**CUSTOM, "masterType": "n1-standard-4", "workerCount": 2}, "there are 2 replicas"),
        ({"scaleTier": "BASIC", "masterType": "n1-standard-4"}, "write scaleTier CUSTOM"),
        ({**CUSTOM, "masterType": "n1-standard-4", "workerCount": "many"}, "must be an integer from 0, is 'many'"),
        ({**CUSTOM, "masterType": "n1-standard-4", "runtimeVersion": "2.11"}, "the job has an image too"),
        ({"scaleTier": "BASIC"}, "is missing, and so is an image"),
        ({**CUSTOM, "masterType": "n1-standard-4", "jobDir": "/tmp/out"}, "write gs://<bucket>/<folder>"),
        ({**CUSTOM, "masterType": "n1-standard-4", "jobDir": "gs://YOUR_BUCKET/x"}, "is a placeholder"),
        ({**CUSTOM, "masterType": "n1-standard-4", "region": "us-central1-a"}, "is a zone; use us-central1"),
        ({**CUSTOM, "masterType": "n1-standard-4", "scaleTeir": "BASIC"}, "did you mean scaleTier"),
        ({**CUSTOM, "masterType": "n1-standard-4", "scheduling": {"maxRunningTime": "2h"}}, "seconds such as 7200s"),
        (
            {**CUSTOM, "masterType": "n1-standard-4", "masterConfig": {"imageUri": IMAGE, "containerArgs": ["a"]},
             "args": ["b"]},
            "stands beside args",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(training: Json, message: str) -> None:
    assert message in stops(of(training))


@pytest.mark.parametrize(
    "machine, kind, count, message",
    [
        ("n1-standard-8", "NVIDIA_TESLA_T4", 3, "machines have 1, 2 or 4"),
        ("n1-standard-32", "NVIDIA_TESLA_V100", 2, "takes 4, 8 of nvidia-tesla-v100"),
        ("n1-standard-32", "NVIDIA_TESLA_K80", 2, "took 4, 8 of nvidia-tesla-k80"),
        ("n1-standard-96", "NVIDIA_TESLA_K80", 8, "8 nvidia-tesla-t4 fit no machine"),
        ("n1-standard-8", "NVIDIA_TESLA_K80", 8, "8 nvidia-tesla-t4 fit no machine"),
        ("a2-highgpu-2g", "NVIDIA_TESLA_A100", 4, "a2-highgpu-2g has 2"),
        ("n1-standard-8", "TPU_V2", 8, "use a TPU VM"),
        ("n1-standard-8", "NVIDIA_RTX_4090", 1, "is not offered"),
    ],
)
def test_accelerators_that_do_not_fit(machine: str, kind: str, count: int, message: str) -> None:
    config = {"imageUri": IMAGE, "acceleratorConfig": {"type": kind, "count": count}}
    assert message in stops(of({**CUSTOM, "masterType": machine, "masterConfig": config}))


def test_gpus_of_one_region_and_no_zone() -> None:
    training: Json = {"scaleTier": "CUSTOM", "region": "australia-southeast1", "workerCount": 1}
    for role, kind in (("master", "NVIDIA_TESLA_K80"), ("worker", "NVIDIA_TESLA_P100")):
        config = {"imageUri": IMAGE, "acceleratorConfig": {"type": kind, "count": 1}}
        training |= {f"{role}Type": "n1-standard-8", f"{role}Config": config}
    assert "have no zone in common: nvidia-tesla-t4 in australia-southeast1-a" in stops(of(training))
    assert "gcp.zones.none-common" not in str(of({**training, "region": "us-central1"}).report.as_json())


def test_flags_win_and_it_is_told() -> None:
    training = {**CUSTOM, "masterType": "n1-standard-4", "workerType": "n1-standard-4", "workerCount": 2}
    found = of(
        training, "flowers_2", "--region=europe-west4", "--scale-tier", "custom", "--worker-count=5",
        "--master-accelerator", "count=1,type=nvidia-tesla-t4", "--", "--epochs=3",
    )  # fmt: skip
    assert not found.report.stops, stops(found)
    assert (found.region, found.values["name"]) == ("europe-west4", "flowers_2")
    assert found.values["vertex"]["workers"]["replicas"] == 5
    assert found.values["accelerator"] == {"type": "nvidia-tesla-t4", "count": 1}
    changed = {entry.field: entry for entry in found.report.of("changed")}
    assert changed["trainingInput.region"].rules == ["import.flag-wins"]
    assert changed["trainingInput.region"].new == "europe-west4"
    assert "trainingInput.scaleTier" not in changed


@pytest.mark.parametrize(
    "flags, message",
    [
        (("--", "--job-dir=gs://b/x"), "has --job-dir, a flag of the service, after `--`"),
        (("--", "--scale-tier", "basic"), "has --scale-tier"),
        (("--worker-server-count", "3"), "is no flag of this command"),
        (("--worker-acelerator=count=1",), "did you mean --worker-accelerator"),
        (("--master-accelerator", "type=nvidia-tesla-t4"), "must have a count"),
        (("one", "two"), "must be one job's name"),
        (("--region",), "has no value"),
        (("--package-path", "trainer"), "a folder of this machine"),
    ],
)
def test_flags_that_are_wrong(flags: tuple[str, ...], message: str) -> None:
    assert message in stops(of({**CUSTOM, "masterType": "n1-standard-4"}, *flags))


def test_a_program_may_have_a_flag_of_a_common_name() -> None:
    found = of({**CUSTOM, "masterType": "n1-standard-4"}, "--", "--config=mine.yaml", "--labels", "a")
    assert not found.report.stops
    (entry,) = [entry for entry in found.report.entries if entry.field == "args after --"]
    assert entry.kind == "kept" and entry.rules == ["import.flag-passed-on"]
    assert found.values["vertex"]["args"] == ["--config=mine.yaml", "--labels", "a"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("gcloud ai-platform jobs submit training", "JOB"),
        ("gcloud ai-platform models create x", "must hold one command `gcloud ... jobs submit training`"),
        ("gcloud ai-platform jobs submit training a --region 'us", "cannot be read as a shell would: no closing"),
        ("gcloud ai-platform jobs submit training a --config missing.yaml", "--config missing.yaml: cannot be read"),
    ],
)
def test_commands_that_cannot_be_read(text: str, message: str, home: Path) -> None:
    if message == "JOB":
        assert import_job("job.sh", text.encode(), ImportOptions(today=TODAY)).report.stops
        return
    with pytest.raises(BadInput) as caught:
        import_job("job.sh", text.encode(), ImportOptions(today=TODAY))
    assert message in caught.value.message


def test_variables_and_what_a_shell_would_trip_over(home: Path) -> None:
    Path("config.yaml").write_text(yaml.safe_dump({"trainingInput": {**CUSTOM, "masterType": "n1-standard-4"}}))
    text = (
        "gcloud projects add-iam-policy-binding acme --role roles/ml.developer\n"
        'BUCKET="gs://acme-models"\n'
        "gcloud ml-engine jobs submit training flowers_$(date +%s) \\ \n"
        "  --job-dir ${BUCKET}/out --config config.yaml \\  # where\n"
        "  -- --data=$DATA --literal='$DATA' | tee log\n"
    )
    found = import_job("job.sh", text.encode(), ImportOptions(today=TODAY))
    told = {entry.field: entry for entry in found.report.entries}
    assert told["args after --"].open and "--var DATA=<value>" in told["args after --"].text
    assert (told["JOB"].kind, told["JOB"].new) == ("changed", "flowers")
    assert "$(date +%s) makes each name another" in told["JOB"].text
    assert "a space after the backslash" in told["the command"].text
    assert "a comment after the backslash" in told["the command"].text
    assert told["roles/ml.developer"].new == "roles/aiplatform.user"
    assert told["after the command"].kind == "changed"
    assert told["--job-dir"].old == "gs://acme-models/out"


PASTED = (
    "JOBNAME=flowers_$(date -u +%y%m%d_%H%M%S)\n"
    "gcloud ai-platform jobs submit training $JOBNAME --region us-central1 --module-name trainer.task \\\n"
    "  --package-path ${PWD}/flowers/trainer --job-dir gs://acme-models/out --staging-bucket gs://$STAGING \\\n"
    "  --project $PROJECT --scale-tier BASIC -- --job-dir=./tmp --epochs 3\n"
)


def pasted(text: str, *flags: str, **options: Any) -> ImportResult:
    return import_job("job.sh", text.encode(), ImportOptions(flags=flags, image=IMAGE, today=TODAY, **options))


def test_a_variable_in_what_is_left_out_needs_no_value() -> None:
    told = {entry.field: entry for entry in pasted(PASTED).report.entries}
    assert told["--project"].kind == told["--staging-bucket"].kind == "changed"
    assert "--var" not in told and not told["JOB"].open


def test_a_variable_that_is_asked_for_is_not_judged() -> None:
    text = (
        "gcloud ml-engine jobs submit training flowers --job-dir $OUT --region $REGION --scale-tier BASIC_GPU \\\n"
        "  --runtime-version $TF --packages gs://acme-models/a-1.tar.gz --module-name a.b\n"
    )
    told = {entry.field: entry for entry in pasted(text).report.stops}
    assert set(told) == {"--job-dir", "--region", "--runtime-version", "--var"}
    for entry in told.values():
        assert entry.kind == "decision" and "which is no" not in entry.text and "had no GPUs" not in entry.text
        assert "never had an image" not in entry.text
    given = {"OUT": "/tmp/a", "REGION": "us-central1", "TF": "1.4"}
    told = {entry.field: entry for entry in pasted(text, variables=given).report.stops}
    assert "is not in Cloud Storage" in told["--job-dir"].text


def test_a_package_that_is_named_after_the_command() -> None:
    assert "name it with --packages" in stops(pasted(PASTED))
    assert "is missing" not in stops(pasted(PASTED))
    found = pasted(PASTED, "--packages", "gs://acme-models/flowers-1.tar.gz")
    assert not found.report.stops, stops(found)
    assert found.values["name"] == "flowers"
    assert found.values["vertex"]["package"]["uris"] == ["gs://acme-models/flowers-1.tar.gz"]
    known = pasted(PASTED, variables={"STAGING": "acme-staging", "JOBNAME": "flowers_1"})
    assert known.values["vertex"]["package"]["uris"] == ["gs://acme-staging/flowers_1/trainer-0.0.0.tar.gz"]


def test_a_program_may_have_a_flag_that_the_command_has_too() -> None:
    found = pasted(PASTED, "--packages", "gs://acme-models/flowers-1.tar.gz")
    (entry,) = [entry for entry in found.report.entries if entry.field == "args after --"]
    assert entry.kind == "kept" and entry.rules == ["import.flag-passed-on"]
    assert found.values["vertex"]["args"][:3] == ["--job-dir=./tmp", "--epochs", "3"]


def test_a_file_without_a_program_is_of_a_command() -> None:
    assert "give its flags after --" in stops(of({"scaleTier": "BASIC"}))


def test_a_moment_that_a_variable_holds_is_given_with_it() -> None:
    text = PASTED.replace("--epochs 3", "--out gs://acme-models/$JOBNAME")
    assert "--var JOBNAME=<value>" in stops(pasted(text, "--packages", "gs://acme-models/flowers-1.tar.gz"))
    found = pasted(text, "--packages", "gs://acme-models/flowers-1.tar.gz", variables={"JOBNAME": "f1"})
    assert not found.report.stops and "gs://acme-models/f1" in found.values["vertex"]["args"]


def test_the_chief_is_told_of() -> None:
    training = {**CUSTOM, "masterType": "n1-standard-4", "workerType": "n1-standard-4", "workerCount": 2}
    (entry,) = [entry for entry in of(training).report.entries if "ai-platform.tf-config" in entry.rules]
    assert "`chief`" in entry.text
    assert not [entry for entry in of({**training, "useChiefInTfConfig": True}).report.entries
                if "ai-platform.tf-config" in entry.rules]  # fmt: skip


def test_four_pools() -> None:
    training = {**CUSTOM, "masterType": "n1-standard-8", "evaluatorType": "n1-standard-4", "evaluatorCount": 1}
    found = of(training, form="custom-job")
    assert [bool(each) for each in found.body["jobSpec"]["workerPoolSpecs"]] == [True, False, False, True]
    assert of(training).values["vertex"]["evaluators"] == {"replicas": 1, "machine_type": "n1-standard-4"}
