"""Documents as people have them, through the command: what is printed and what is reported, as it was looked at."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from accel.diagnostics.yaml_positions import Tree
from jobs.model.job import Job
from tests.jobs.backends import google_batch_target, vertex_jobs

GOLDEN = Path(__file__).parents[2] / "golden" / "imports"
TF, TORCH = "us-docker.pkg.dev/acme/train/tf:2", "us-docker.pkg.dev/acme/train/torch:2"
CASES = {
    "clusters": ("ai-platform", "clusters.yaml"),
    "clusters_custom_job": ("ai-platform", "clusters.yaml", "-o", "custom-job"),
    "legacy": ("ai-platform", "legacy.sh", "--image", TF),
    "legacy_undecided": ("ai-platform", "legacy.sh"),
    "legacy_v100": ("ai-platform", "legacy.sh", "--image", TF, "--k80-replacement", "v100"),
    "search": ("ai-platform", "search.yaml"),
    "search_tuning": ("ai-platform", "search.yaml", "-o", "tuning"),
    "one_gpu_as_written": ("google-batch", "one_gpu.json"),
    "one_gpu": ("google-batch", "one_gpu.json", "--image", "local/train", "--mount", "/mnt/disks/data=gs://acme-data"),
    "sweep": ("google-batch", "sweep.json"),
    "two_gpus": ("vertex", "two_gpus.yaml"),
    "two_h100": ("vertex", "two_h100.yaml"),
    "two_h100_spot": ("vertex", "two_h100.yaml", "--capacity", "spot"),
    "two_h100_flex_start": ("vertex", "two_h100.yaml", "--capacity", "flex-start"),
    "legacy_container": ("ai-platform", "legacy_container.yaml"),
    "four_gpus_as_written": ("vertex", "four_gpus.sh"),
    "four_gpus": ("vertex", "four_gpus.sh", "--image", TORCH),
    "chief_and_workers": ("vertex", "chief_and_workers.json"),
}


TAKEN = (
    *("one_gpu", "sweep", "clusters", "legacy", "legacy_v100", "legacy_container", "two_gpus", "four_gpus"),
    *("two_h100_spot", "two_h100_flex_start"),
)


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str, home: Path, invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    documents = shutil.copytree(GOLDEN, home / "documents")  # in the checkout, `make up` has left targets
    monkeypatch.chdir(documents)
    done = invoke("import", *CASES[case])
    text = f"exit {done.exit_code}\n--- stderr\n{done.stderr}--- stdout\n{done.stdout}"
    path = GOLDEN / "out" / f"{case}.txt"
    if os.environ.get("ACCEL_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
    if done.exit_code == 0 and "-o" not in CASES[case]:
        Job(**Tree(yaml.safe_load(done.stdout)).value)
    assert (done.stdout == "") == (done.exit_code == 2)


@pytest.mark.parametrize("case", TAKEN)
def test_targets_take_what_was_imported(case: str) -> None:
    text = (GOLDEN / "out" / f"{case}.txt").read_text().partition("--- stdout\n")[2]
    values = {"command": [], **yaml.safe_load(text)}
    of = google_batch_target if CASES[case][0] == "google-batch" else vertex_jobs
    assert of.make_request(**values).body["parent"].endswith("/us-central1")
