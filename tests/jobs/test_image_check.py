"""What an image runs by itself is read before a job is sent, and its command judged with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from accel.clouds.image_registry import read
from accel.diagnostics.errors import BadInputs
from jobs.backends.base import Backend, Request
from jobs.client import dispatch
from jobs.handle import QuietReporter
from jobs.model.job import Job
from tests.support.image_registry import Registry, serving

pytestmark = pytest.mark.usefixtures("home")
KINDS = ("aws-batch", "gke", "google-batch", "vertex", "tpu-vm", "gce", "local")
PYTHON = {"Entrypoint": ["python3"], "Cmd": ["train.py"]}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.delenv(dispatch.IMAGE_SWITCH)
    with serving() as found:
        yield found


@dataclass
class Said(QuietReporter):
    """A reporter that keeps its warnings to itself."""

    warned: list[str] = field(default_factory=list[str])

    def warn(self, message: str) -> None:
        self.warned.append(message)


def said(kind: str, image: str, body: dict[str, Any] | None = None, **fields: Any) -> list[str]:
    job, reporter = Job(**{"name": "digits", "image": image, **fields}), Said()
    request = Request(kind, "t", "n", "k", body if body is not None else {"register": {}})
    dispatch.check_images([(job, (cast(Backend, None), request))], reporter)
    return reporter.warned


def test_entry_point_and_cmd_are_read(registry: Registry) -> None:
    registry.push("team/train", "1", PYTHON, ("amd64", "arm64"))
    found = read(f"{registry.host}/team/train:1")
    assert (found.entry_point, found.cmd) == (("python3",), ("train.py",))
    registry.push("team/bare", "1", {"Entrypoint": None})
    found = read(f"{registry.host}/team/bare:1")
    assert (found.entry_point, found.cmd) == ((), ())


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_without_anything_to_run_is_refused_on_every_platform(kind: str, registry: Registry) -> None:
    registry.push("team/bare", "1", {})
    image = f"{registry.host}/team/bare:1"
    with pytest.raises(BadInputs, match=r"command: is missing, and the image has neither ENTRYPOINT nor CMD.*bare:1"):
        said(kind, image)
    assert said(kind, image, command=["python", "t.py"]) == []
    registry.push("team/train", "1", PYTHON)
    assert said(kind, f"{registry.host}/team/train:1") == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_is_judged_with_the_entry_point_that_gets_it(kind: str, registry: Registry) -> None:
    registry.push("team/train", "1", PYTHON)
    image = f"{registry.host}/team/train:1"
    twice = said(kind, image, command=["python", "train.py"])
    sweep = said(kind, image, command=["train.py"], sweep={"grid": {"LR": ["1", "2"]}})
    if kind in dispatch.THROUGH_ENTRYPOINT:
        assert len(twice) == 1 and "it would run `python3 python train.py`" in twice[0]
        assert len(sweep) == 1 and "sweep.shell: false" in sweep[0]
    else:
        assert (twice, sweep, registry.asked) == ([], [], []), "nothing is asked where it makes no difference"


def test_a_variable_that_nothing_expands_is_found_in_the_images_own_command(registry: Registry) -> None:
    registry.push("team/train", "1", {"Entrypoint": ["python3", "t.py", "--out=${BATCH_TASK_INDEX}"]})
    (warning,) = said("google-batch", f"{registry.host}/team/train:1")
    assert "${BATCH_TASK_INDEX} in the arguments of python3" in warning and "write command in the job file" in warning


def test_what_is_not_known_refuses_nothing(registry: Registry) -> None:
    registry.answers["/v2/team/private/manifests/1"] = (403, b"{}")
    for image in (f"{registry.host}/team/private:1", f"{registry.host}/team/none:1", "127.0.0.1:9/team/x:1"):
        assert said("gke", image) == []
    asked = len(registry.asked)
    assert said("aws-batch", "123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1") == []
    assert said("aws-batch", f"{registry.host}/team/none:1", {"register": None}) == [], "the definition has a command"
    assert said("google-batch", f"{registry.host}/x:1", google_batch={"args": ["a"]}) == []
    assert said("local", "local/folder", command=["python", "t.py"]) == [] and len(registry.asked) == asked


def test_what_was_read_is_kept(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.push("team/train", "1", PYTHON)
    image = f"{registry.host}/team/train:1"
    said("gke", image)
    asked = len(registry.asked)
    said("gke", image)
    assert len(registry.asked) == asked
    monkeypatch.setattr(dispatch, "IMAGE_AGE_MAX_S", -1)
    said("gke", image)
    assert len(registry.asked) > asked
    monkeypatch.setenv(dispatch.IMAGE_SWITCH, "off")
    registry.push("team/bare", "1", {})
    assert said("gke", f"{registry.host}/team/bare:1") == []


def test_a_submit_asks_before_it_sends(registry: Registry, invoke: Any, home: Any) -> None:
    registry.push("team/bare", "1", {})
    (home / "job.yaml").write_text(f"name: digits\nimage: {registry.host}/team/bare:1\n")
    told = invoke("submit", "job.yaml", "--to", "local")
    assert told.exit_code == 2 and "error: command: is missing, and the image has neither" in told.stderr
    assert invoke("submit", "job.yaml", "--to", "local", "--dry-run").exit_code == 0, "nothing is asked for a dry run"
