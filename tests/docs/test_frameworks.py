"""The programs of docs/frameworks.md: they run here, with the runtime of this checkout and a Keras that only counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from googleapiclient.discovery_cache import get_static_doc

from tests.support.pages import ROOT, blocks

PAGE = ROOT / "docs" / "frameworks.md"
KERAS = """
import json, os, signal
from types import SimpleNamespace


class Callback:
    model = None


class Model:
    def __init__(self, epochs=()):
        self.epochs, self.stop_training = list(epochs), False

    def save(self, path):
        path.write_text(json.dumps(self.epochs))

    def fit(self, data, epochs, initial_epoch, callbacks):
        ran = []
        for epoch in range(initial_epoch, epochs):
            self.epochs.append(epoch)
            ran.append(epoch)
            if epoch == int(os.environ.get("RECLAIMED_IN", "-1")):
                os.kill(os.getpid(), signal.SIGTERM)
            for each in callbacks:
                each.model = self
                each.on_epoch_end(epoch, {"loss": 1 / (epoch + 1)})
            if self.stop_training:
                break
        print("saw", self.epochs)
        return SimpleNamespace(epoch=ran)


callbacks = SimpleNamespace(Callback=Callback)
models = SimpleNamespace(load_model=lambda path: Model(json.loads(path.read_text())))
"""


def program(words: str) -> str:
    """The one Python block of the page with these words."""
    (found,) = [block.text for block in blocks(PAGE) if block.language == "python" and words in block.text]
    return found


def ran(folder: Path, text: str, **env: str) -> subprocess.CompletedProcess[str]:
    for name in ("keras", "accel_runtime"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "keras" / "__init__.py").write_text(KERAS)
    (folder / "accel_runtime").rmdir()
    (folder / "accel_runtime").symlink_to(ROOT / "jobs" / "runtime")
    try:
        return subprocess.run(
            [sys.executable, "-c", text],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), **env},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    finally:
        (folder / "accel_runtime").unlink()


def test_a_fit_that_is_reclaimed_goes_on_where_it_saved(tmp_path: Path) -> None:
    text = "import keras\nepochs, data, build = 6, None, keras.Model\n" + program("class Checkpoint")
    where = {"CHECKPOINT_DIR": str(tmp_path / "kept")}
    first = ran(tmp_path, text, RECLAIMED_IN="2", **where)
    assert first.returncode == 143, first.stderr
    assert "saw [0, 1, 2]\n" in first.stdout
    assert '"step":3' in first.stdout and '"loss"' in first.stdout
    second = ran(tmp_path, text, **where)
    assert (second.returncode, second.stderr) == (0, ""), second.stdout
    assert "saw [0, 1, 2, 3, 4, 5]" in second.stdout
    assert ran(tmp_path, text, **where).returncode == 0, "nothing is left to do"


@pytest.mark.parametrize(
    ("env", "index", "workers"),
    [
        ({}, 0, ["127.0.0.1:29500"]),
        (
            {"ACCEL_NODE_COUNT": "2", "ACCEL_NODE_INDEX_FROM": "JOB_COMPLETION_INDEX", "JOB_COMPLETION_INDEX": "1",
             "ACCEL_MAIN_ADDRESS_FROM": "MASTER_ADDR", "MASTER_ADDR": "train-0.train"},
            1, ["train-0.train:29500", "train-1.train:29500"],
        ),
        (
            {"CLUSTER_SPEC": json.dumps({
                "cluster": {"workerpool0": ["a:2222"], "workerpool1": ["b:2222"]},
                "task": {"type": "workerpool1", "index": 0},
            })},
            1, ["a:29500", "b:29500"],
        ),
    ],
    ids=["alone", "gke", "vertex"],
)  # fmt: skip
def test_tf_config_names_every_worker(tmp_path: Path, env: dict[str, str], index: int, workers: list[str]) -> None:
    line = program("tf_config()").partition("import tensorflow")[0]
    done = ran(tmp_path, f"{line}\nprint(os.environ['TF_CONFIG'])", **env)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told == {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}


def test_the_request_for_the_model_registry_is_one_of_the_api() -> None:
    (body,) = [json.loads(block.text) for block in blocks(PAGE) if block.language == "json"]
    schemas: dict[str, Any] = json.loads(str(get_static_doc("aiplatform", "v1")))["schemas"]
    assert body.keys() <= schemas["GoogleCloudAiplatformV1UploadModelRequest"]["properties"].keys()
    assert body["model"].keys() <= schemas["GoogleCloudAiplatformV1Model"]["properties"].keys()
    assert (
        body["model"]["containerSpec"].keys()
        <= schemas["GoogleCloudAiplatformV1ModelContainerSpec"]["properties"].keys()
    )


def test_every_target_is_spoken_of() -> None:
    text = PAGE.read_text()
    for words in ("Vertex AI", "GKE", "Google Batch", "AWS Batch", "GPU VMs", "this machine", "MirroredStrategy",
                  "ModelCheckpoint", "BackupAndRestore", "tf.device", "models upload", "write_buckets"):  # fmt: skip
        assert words in text, words
