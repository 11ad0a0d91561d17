"""AI Platform Training's jobs: no field is lost, and what is carried is what Vertex AI's schema and a job file take."""

import json
from pathlib import Path
from typing import Any

import googleapiclient
import yaml
from hypothesis import given
from hypothesis import strategies as st

from accel.catalog.legacy import legacy_machines
from jobs.importers import ai_platform_fields as fields
from jobs.importers.ai_platform import import_job
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from jobs.importers.reading import leaves
from jobs.model.job import Job
from sandbox.google.discovery import check, document
from tests.jobs.imports.test_ai_platform import CUSTOM, TODAY, of

Json = dict[str, Any]


def test_fields_are_those_of_the_service() -> None:
    path = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents" / "ml.v1.json"
    schemas = json.loads(path.read_text())["schemas"]

    def top(name: str) -> set[str]:
        return set(schemas[f"GoogleCloudMlV1__{name}"]["properties"])

    assert {name.partition(".")[0] for name in fields.TRAINING_INPUT} == top("TrainingInput")
    assert {name.partition(".")[0] for name in fields.REPLICA} == top("ReplicaConfig")
    assert set(fields.PARAMETER) == top("ParameterSpec")
    assert set(fields.HYPERPARAMETERS) == top("HyperparameterSpec")


TEXTS = st.sampled_from(
    ["x", "n1-standard-8", "standard_gpu", "CUSTOM", "gs://b/o", "us-central1", "7200s", "", "2.10"]
)
VALUES = st.one_of(TEXTS, st.integers(0, 9), st.booleans(), st.lists(TEXTS, max_size=2), st.none())
CONFIGS = st.dictionaries(
    st.sampled_from([*{name.partition(".")[0] for name in fields.REPLICA}, "unknownKey"]),
    VALUES | st.dictionaries(st.sampled_from(["count", "type", "bootDiskSizeGb"]), VALUES, max_size=2),
    max_size=3,
)
INPUTS = st.dictionaries(
    st.sampled_from([*sorted(fields.TOP), "unknownKey"]),
    VALUES
    | CONFIGS
    | st.fixed_dictionaries({"params": st.lists(st.dictionaries(st.sampled_from(fields.PARAMETER), VALUES))}),
    max_size=8,
)


@given(INPUTS, st.sampled_from(["job", "custom-job", "tuning"]))
def test_every_field_is_in_exactly_one_class(training: Json, form: Any) -> None:
    text = {"trainingInput": training, "labels": {"a": "b"}}
    found = import_job("config.yaml", yaml.safe_dump(text).encode(), ImportOptions(form=form, today=TODAY))
    told = [entry.field for entry in found.report.entries if entry.given]
    assert sorted(told) == sorted(name for name, _ in leaves(text))
    if not found.report.stops:
        _fits(found, form)


def _fits(found: ImportResult, form: str) -> None:
    if form == "job":
        Job(**found.values)
        return
    name = "GoogleCloudAiplatformV1" + ("HyperparameterTuningJob" if form == "tuning" else "CustomJob")
    check(document("aiplatform.v1"), name, found.body)


@given(
    st.sampled_from([*[name for name, each in legacy_machines().items() if each.machine], "n1-standard-16"]),
    st.sampled_from([None, "standard", "n1-highmem-8"]), st.integers(0, 12), st.lists(st.text(max_size=8), max_size=3),
    st.sampled_from(["job", "custom-job"]),
)  # fmt: skip
def test_what_can_be_carried_fits_the_service(
    master: str, worker: str | None, count: int, args: list[str], form: Any
) -> None:
    training: Json = {**CUSTOM, "masterType": master, "args": args, "jobDir": "gs://acme-models/out"}
    if worker:
        training |= {"workerType": worker, "workerCount": count}
    found = of(training, form=form)
    if not found.report.stops:
        _fits(found, form)
