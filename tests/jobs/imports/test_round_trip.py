"""What backends/google_batch and backends/vertex ask for comes back from an import as a job that asks for the same."""

import copy
import json
from typing import Any

from hypothesis import assume, example, given

from accel.diagnostics.errors import BadInputs
from jobs.backends.base import Request
from jobs.importers import google_batch, vertex
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from tests.jobs.backends import google_batch_target, vertex_jobs
from tests.jobs.backends.test_google_batch_shapes import FIELDS as OF_BATCH
from tests.jobs.backends.test_vertex_render import FIELDS as OF_VERTEX

Json = dict[str, Any]
ALONE = {"name": "digits", "image": None, "command": []}


def bare(job: Json) -> Json:
    """Without labels: those of a target are its own, and a key's hash is of all the job's."""
    made = copy.deepcopy(job)
    made.pop("labels", None)
    made.get("allocationPolicy", {}).pop("labels", None)
    return made


def same(found: ImportResult, again: Request, key: str, body: Json) -> None:
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    assert bare(again.body[key]) == bare(body)


@given(OF_BATCH)
@example({"nodes": 2, "block": {"hosts_file": False}})
@example({"nodes": 2, "steps": [{"image": "us-docker.pkg.dev/acme/ml/train:1.4", "entrypoint": "python3"}]})
def test_google_batch(drawn: Json) -> None:
    fields = dict(drawn)
    block, steps = fields.pop("block", {}), fields.pop("steps", None)
    if steps:
        fields |= {"image": None, "command": []}
        block = {**block, "runnables": steps}
    assume(fields.get("command", ["x"])[:1] != [""])  # no program is called nothing
    try:
        body = google_batch_target.make_request(**fields, google_batch=block).body["job"]
    except BadInputs:
        return
    found = google_batch.import_job("job.json", json.dumps(body).encode(), ImportOptions())
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    same(found, google_batch_target.make_request(**{**found.values, **_named(found)}), "job", body)


def _named(found: ImportResult) -> Json:
    return {name: value for name, value in ALONE.items() if name == "name" or name not in found.values}


@given(OF_VERTEX)
def test_vertex(fields: Json) -> None:
    try:
        body = vertex_jobs.make_request(**fields).body["customJob"]
    except BadInputs:
        return
    options = ImportOptions(today=vertex_jobs.TODAY)
    found = vertex.import_job("job.json", json.dumps(body).encode(), options)
    assert not found.report.stops, [entry.text for entry in found.report.stops]
    same(found, vertex_jobs.make_request(**{**found.values, **_named(found)}), "customJob", body)
