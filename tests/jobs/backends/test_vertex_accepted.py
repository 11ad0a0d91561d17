"""What is rendered, over the sandbox's Vertex AI: it takes the golden requests, and nodes find each other there."""

import json
from typing import Any

import pytest

from tests.jobs.backends.test_vertex_render import JOBS as GOLDEN
from tests.jobs.backends.vertex_jobs import make_request, make_target
from tests.support.google_fake import Fake
from tests.support.google_vertex import JOBS, printed, reach, slow
from tests.support.meeting import MEETING
from tests.support.soak import sampled
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_vertex"]
RUNNER = "runner@elsewhere.iam.gserviceaccount.com"
BUCKETS = "storage.googleapis.com/storage/v1/b"
NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PET_NODE_RANK", "PET_RDZV_ENDPOINT", "ACCEL_NODE_COUNT")


def show(*names: str) -> list[str]:
    """A command that prints these variables; the first machine, with which the job ends, waits for the others."""
    return ["python", "-c", f"import json, os\nprint(json.dumps([os.environ[name] for name in {names}]))\n{MEETING}"]


@pytest.fixture
def bucket(vertex: Fake) -> str:
    name = "acme-rendered"
    if vertex.ask("GET", f"{BUCKETS}/{name}").status_code == 404:
        vertex.call("POST", BUCKETS, {"name": name, "location": "US-CENTRAL1"}, project="accel-sandbox")
    return name


def sent(fake: Fake, bucket: str, target: dict[str, Any], fields: dict[str, Any]) -> Any:
    """The answer to a rendered job."""
    request = make_request(make_target(**target, bucket=bucket, service_account=RUNNER), **fields)
    return slow(fake, "POST", JOBS, request.body["customJob"])


CASES = sorted(GOLDEN.keys() - {"persistent_resource", "package"})


@pytest.mark.parametrize("case", sampled(CASES, CASES[::3]))
def test_the_sandbox_takes_it(vertex: Fake, bucket: str, case: str) -> None:
    target, fields = GOLDEN[case]
    target = {name: value for name, value in target.items() if name != "tensorboard"}  # which is not there
    vertex.fault(minute_s=0.001)
    assert sent(vertex, bucket, target, fields)["state"] == "JOB_STATE_QUEUED"


def test_the_nodes_of_a_job_are_told_of_each_other(vertex: Fake, bucket: str) -> None:
    fields = {"nodes": 3, "image": "local/examples", "command": show(*NAMES)}
    item = sent(vertex, bucket, {}, fields)
    reach(vertex, item, "SUCCEEDED")
    for rank, task in enumerate(("workerpool0-0", "workerpool1-0", "workerpool1-1")):
        line, *_ = until(lambda task=task: printed(vertex, item, task))
        main, port = "127.0.0.1", "29500"
        assert json.loads(line) == [str(rank), "3", main, port, str(rank), f"{main}:{port}", "3"]


def test_an_image_with_its_own_entry_point_gets_vertexs_variables(vertex: Fake, bucket: str) -> None:
    args = show("PET_NODE_RANK", "PET_RDZV_ENDPOINT")
    fields = {"nodes": 2, "image": "local/examples", "command": [], "vertex": {"args": args}}
    item = sent(vertex, bucket, {}, fields)
    reach(vertex, item, "SUCCEEDED")
    for rank, task in enumerate(("workerpool0-0", "workerpool1-0")):
        line, *_ = until(lambda task=task: printed(vertex, item, task))
        assert json.loads(line) == [str(rank), "127.0.0.1:29500"]
