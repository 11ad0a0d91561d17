"""What a request runs, read back from its body: for every kind of target, plain, as a sweep and with code."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel.contract.targets import AnyTarget, LocalTarget
from jobs.backends.registry import of_target
from jobs.client.code.shipping import Shipping
from jobs.client.request_body import request_summary
from jobs.model.job import Job
from tests.jobs.code.projects import project
from tests.support.every_target import MADE

IMAGE = "us-docker.pkg.dev/acme/ml/train:1.4"
WORDS = ["python3", "train.py", "--note=a b", "--price=$5", "{}"]
TARGETS: dict[str, AnyTarget] = {
    **{kind: make() for kind, make in MADE.items()},
    **{kind: MADE[kind](code_bucket="acme-code") for kind in ("aws-batch", "gke")},
    "local": LocalTarget(kind="local", root="/"),
}
ARRAYS = ("aws-batch", "gke", "google-batch", "local")


def job_of(kind: str, **fields: object) -> Job:
    accelerator = {"tpu-vm": "v5litepod-8", "gce": "l4"}.get(kind)
    size = {"cpus": 2, "memory_mib": 4000} if kind in ("aws-batch", "gke") else {}
    chips = {"accelerator": {"type": accelerator}} if accelerator else {}
    image = {} if kind == "local" else {"image": IMAGE}
    return Job.model_validate({"name": "digits", "command": WORDS, **image, **size, **chips, **fields})


@pytest.mark.parametrize("kind", list(TARGETS))
def test_image_and_command_are_those_of_the_job(kind: str) -> None:
    backend = of_target("gpu", TARGETS[kind])
    found = request_summary(kind, backend.render(job_of(kind), "digits-1", "k").body)
    assert (found.image, list(found.command), found.code) == (None if kind == "local" else IMAGE, WORDS, None)


@pytest.mark.parametrize("kind", ARRAYS)
def test_a_sweeps_command_is_shown_without_what_sets_its_parameters(kind: str) -> None:
    backend = of_target("gpu", TARGETS[kind])
    sweep = {"grid": {"LR": ["0.1", "0.01"]}}
    assert list(request_summary(kind, backend.render(job_of(kind, sweep=sweep), "digits-1", "k").body).command) == WORDS


@pytest.mark.parametrize("kind", list(TARGETS))
def test_code_that_was_sent_is_told_by_its_digest(kind: str, tmp_path: Path) -> None:
    folder = project(tmp_path / "code", {"train.py": "print(1)\n"})
    target = TARGETS[kind]
    shipping = Shipping.of(folder)
    ready = shipping.with_code(job_of(kind), "gpu", target, "digits-1")
    found = request_summary(kind, of_target("gpu", target).render(ready, "digits-1", "k").body)
    assert (list(found.command), found.code) == (WORDS, shipping.archive.digest)


@pytest.mark.parametrize("body", [{}, {"submit": None}, {"image": 3, "command": [1]}, {"a": [[{"command": "x"}]]}])
def test_a_body_that_tells_nothing(body: dict[str, object]) -> None:
    found = request_summary("aws-batch", body)
    assert (found.image, found.command, found.code) == (None, (), None)
